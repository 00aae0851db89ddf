//! The namespaces of a network: their names, and work in them.

use crate::{Plan, TestbedError};
use nix::sched::{CloneFlags, setns};
use std::{fs::File, path::Path};

/// Where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// The namespaces of a network.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) plan: Plan,
    /// Before every namespace's name: several networks may stand in one process.
    pub(crate) prefix: String,
}

impl Net {
    /// The name of a node's namespace.
    pub(crate) fn namespace(&self, node: usize) -> String {
        format!("{}{}", self.prefix, self.plan.nodes[node].name)
    }

    /// Whether a node's namespace is there.
    pub(crate) fn is_there(&self, node: usize) -> bool {
        Path::new(NAMESPACES).join(self.namespace(node)).exists()
    }

    /// The name of a node: that of its neighbours' ports to it, too.
    pub(crate) fn name(&self, node: usize) -> &str {
        &self.plan.nodes[node].name
    }

    /// See [`crate::Fabric::within`].
    pub(crate) fn within<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let namespace = self.namespace(node);
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || enter(&namespace).map(|()| work())).join();
            entered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Moves the calling thread into a namespace.
///
/// # Errors
/// Where there is none of that name.
pub(crate) fn enter(namespace: &str) -> Result<(), TestbedError> {
    let path = Path::new(NAMESPACES).join(namespace);
    let failed = |source| TestbedError::system(format!("entering the namespace {}", path.display()), source);
    let file = File::open(&path).map_err(failed)?;
    setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))
}
