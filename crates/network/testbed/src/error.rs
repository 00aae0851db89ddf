//! Errors of testbeds.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The scenario's network cannot be built of namespaces.
    #[error("a testbed of namespaces cannot be built: {found}; it can be {expected}")]
    Unbuildable {
        /// Unsupported property of the network.
        found: String,
        /// Supported networks.
        expected: String,
    },
    /// Invalid input: a named item is missing or has an unsupported value.
    #[error("{0}")]
    Input(String),
    /// Paths could not be traced.
    #[error(transparent)]
    Paths(#[from] anabranch_wire::paths::PathError),
    /// A program is not installed.
    #[error("the program `{program}` is missing: on Debian it comes with `apt-get install {package}`")]
    MissingProgram {
        program: String,
        /// Debian package that contains it.
        package: &'static str,
    },
    /// The system denies this user namespaces.
    #[error(
        "this user may not make namespaces here ({0}): run it as root, or allow user namespaces \
         (`sysctl kernel.unprivileged_userns_clone=1`, in containers `--privileged`)"
    )]
    NoNamespaces(String),
    /// A program failed.
    #[error("`{command}` failed: {message}")]
    Program {
        command: String,
        /// Standard error of the program.
        message: String,
    },
    /// A request to the system failed.
    #[error("{what}: {source}")]
    System {
        /// Operation that failed.
        what: String,
        source: io::Error,
    },
}

impl TestbedError {
    /// Returns a [`TestbedError::System`] for a failed operation.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        TestbedError::System { what: what.into(), source: source.into() }
    }
}
