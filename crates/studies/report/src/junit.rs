//! Checks as XML of `JUnit`, which services of continuous integration show as tests.

use crate::figures::escape;
use std::fmt::Write;

/// A check, as one test case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JunitCase {
    /// What is checked: load balancer and workload, or `assert`.
    pub class: String,
    /// The metric, or the statement.
    pub name: String,
    /// Why it failed; `None` if it passed.
    pub failure: Option<String>,
}

/// Returns a file with one suite of these cases.
pub fn junit(suite: &str, cases: &[JunitCase]) -> String {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    let counts = format!("tests=\"{}\" failures=\"{failures}\"", cases.len());
    let mut text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n");
    // Writing into a string cannot fail, so the result of `writeln!` is ignored.
    let _ = writeln!(text, "<testsuite name=\"{}\" {counts}>", escape(suite));
    for case in cases {
        let _ = write!(text, "<testcase classname=\"{}\" name=\"{}\"", escape(&case.class), escape(&case.name));
        let _ = match &case.failure {
            Some(reason) => writeln!(text, "><failure message=\"{}\"/></testcase>", escape(reason)),
            None => writeln!(text, "/>"),
        };
    }
    text + "</testsuite>\n</testsuites>\n"
}
