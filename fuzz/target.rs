//! One binary per target, all of this source: which it is says its name.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| anabranch_fuzz::run(env!("CARGO_BIN_NAME"), bytes));
