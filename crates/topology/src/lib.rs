//! Graphs, routing tables, path sets and failures of AI-cluster fabrics.

mod build;
mod fault;
mod files;
mod graph;
mod kinds;
mod overrides;
mod partition;
mod paths;
mod routes;
mod summary;
mod switch_graph;

pub use fault::{Affects, Fault, FaultAction, FaultKind, FaultParameters};
pub use graph::{Link, LinkClass, LinkId, Node, NodeId, NodeKind, Topology, TopologyError};
pub use kinds::{
    FatTreeParameters, FileFormat, FileParameters, KindInfo, LeafSpineParameters, TOPOLOGY_KINDS, TopologyParameters,
};
pub use overrides::LinkOverride;
pub use partition::partition;
pub use paths::BasePaths;
pub use routes::{Group, NextHops, Routes};
pub use summary::{PathCount, Summary, TierCount};
