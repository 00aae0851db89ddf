//! Graphs, routing tables, path sets and failures of AI-cluster fabrics.

#![warn(missing_docs)]

mod adversarial;
mod base_paths;
mod build;
mod families;
mod fault;
mod gf;
mod graph;
mod guidance;
mod guide;
mod kinds;
mod overrides;
mod pairs;
mod partition;
mod paths;
mod propose;
mod routes;
mod select;
mod summary;
mod switch_graph;
mod topology;

pub use base_paths::BasePaths;
pub use fault::{Affects, Fault, FaultAction, FaultKind, FaultParameters};
pub use graph::{Graph, Link, LinkClass, LinkId, Node, NodeId, NodeKind, Rails, TopologyError};
pub use guidance::{Guidance, PathType};
pub use guide::{Guide, GuidedPath, guided_table_bytes, virtual_channel};
pub use kinds::{
    Arrangement, ClosParameters, DragonflyParameters, FatTreeParameters, FileFormat, FileParameters, HyperxParameters,
    LeafSpineParameters, RailOnlyParameters, RailOptimisedParameters, Scale, SlimFlyParameters, TopologyParameters,
};
pub use overrides::LinkOverride;
pub use pairs::{Pair, Pairs, Step};
pub use partition::partition;
pub use propose::{Proposal, propose};
pub use routes::{Group, NextHops, Routes};
pub use select::is_like;
pub use summary::{GuidedSummary, PathCount, Summary, TierCount, TypeCount};
pub use topology::Topology;
