//! The command `anabranch` with the schemes of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    anabranch::main_with(my_scheme::schemes())
}
