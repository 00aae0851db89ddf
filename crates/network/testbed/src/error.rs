//! Why there is no testbed.

use std::io;

/// Why something could not be done with a testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The scenario's network is not one that namespaces can be.
    #[error("a testbed of namespaces cannot be built: {found}; it can be {expected}")]
    Unbuildable {
        /// What the network is.
        found: String,
        /// What it can be.
        expected: String,
    },
    /// Something that the user named is not there, or not so.
    #[error("{0}")]
    Input(String),
    /// A program is not installed.
    #[error("the program `{program}` is missing: on Debian it comes with `apt-get install {package}`")]
    MissingProgram {
        /// Its name.
        program: String,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// The system does not let this user make namespaces.
    #[error(
        "this user may not make namespaces here ({0}): run it as root, or allow user namespaces \
         (`sysctl kernel.unprivileged_userns_clone=1`, in containers `--privileged`)"
    )]
    NoNamespaces(String),
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Program {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// The system said no.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What it said.
        source: io::Error,
    },
}

impl TestbedError {
    /// What the system said to an attempt.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        TestbedError::System { what: what.into(), source: source.into() }
    }
}
