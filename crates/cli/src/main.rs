//! The program `anabranch`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(anabranch::command(std::env::args_os(), anabranch::BACKENDS))
}
