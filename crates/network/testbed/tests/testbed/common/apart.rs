//! A test in mount and network namespaces of its own.

use anabranch_testbed::space;
use anabranch_testkit::{has_no_testbed, run_test, turn};
use std::ffi::OsString;

/// Runs `test`, the test of this name, in namespaces of its own, or skips it if namespaces are not permitted.
pub(crate) fn apart(name: &str, test: impl FnOnce()) {
    if space::is_inside() {
        space::settle().unwrap();
        return test();
    }
    let _turn = turn();
    let arguments = [name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"].map(OsString::from);
    let mut command = match space::apart(&arguments) {
        Ok((command, _)) => command,
        Err(error) if has_no_testbed(&error.to_string()) => return,
        Err(error) => panic!("{error}"),
    };
    run_test(&mut command, name);
}
