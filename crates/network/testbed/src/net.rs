//! Namespaces of a network: their names, and code that runs inside them.

use crate::{TestbedError, TestbedPlan};
use nix::sched::{CloneFlags, setns};
use std::{fs::File, path::Path};

/// Folder in which `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) plan: TestbedPlan,
    /// Prefix of every namespace's name, since one process may build several networks.
    pub(crate) prefix: String,
}

impl Net {
    pub(crate) fn namespace(&self, node: usize) -> String {
        format!("{}{}", self.prefix, self.plan.nodes[node].name)
    }

    pub(crate) fn is_there(&self, node: usize) -> bool {
        Path::new(NAMESPACES).join(self.namespace(node)).exists()
    }

    /// Returns the name of a node and of its neighbours' ports to it.
    pub(crate) fn name(&self, node: usize) -> &str {
        &self.plan.nodes[node].name
    }

    pub(crate) fn within<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let namespace = self.namespace(node);
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || enter(&namespace).map(|()| work())).join();
            entered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Moves the calling thread into a namespace.
pub(crate) fn enter(namespace: &str) -> Result<(), TestbedError> {
    let path = Path::new(NAMESPACES).join(namespace);
    let failed = |source| TestbedError::system(format!("entering the namespace {}", path.display()), source);
    let file = File::open(&path).map_err(failed)?;
    setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))
}
