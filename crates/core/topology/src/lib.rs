//! Graphs, routing tables, path sets and failures of AI-cluster fabrics.

mod adversarial;
mod build;
mod fault;
mod files;
mod gf;
mod graph;
mod guide;
mod kinds;
mod overrides;
mod partition;
mod paths;
mod routes;
mod select;
mod summary;
mod switch_graph;

pub use fault::{Affects, Fault, FaultAction, FaultKind, FaultParameters};
pub use graph::{Link, LinkClass, LinkId, Node, NodeId, NodeKind, Topology, TopologyError};
pub use guide::{Guidance, Guide, GuidedPath, PathType, guided_table_bytes, virtual_channel};
pub use kinds::{
    Arrangement, DragonflyParameters, FatTreeParameters, FileFormat, FileParameters, LeafSpineParameters, Scale,
    SlimFlyParameters, TopologyParameters,
};
pub use overrides::LinkOverride;
pub use partition::partition;
pub use paths::BasePaths;
pub use routes::{Group, NextHops, Routes};
pub use select::is_like;
pub use summary::{GuidedSummary, PathCount, Summary, TierCount, TypeCount};
