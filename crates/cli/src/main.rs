//! The program `anabranch`.

mod allocator;

use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::end_without_threads();
    anabranch::main_with(vec![])
}
