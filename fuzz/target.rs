//! One binary per target, all of this source. The name of the binary selects the target.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anabranch_fuzz::run(env!("CARGO_BIN_NAME"), bytes));
