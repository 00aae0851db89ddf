//! The program `anabranch`.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::end_without_threads();
    ExitCode::from(anabranch::command(std::env::args_os(), anabranch::BACKENDS))
}
