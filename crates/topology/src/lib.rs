//! Graphs, routing tables, path sets and failures of AI-cluster fabrics.

mod fault;
mod files;
mod graph;
mod kinds;
mod paths;
mod routes;

pub use graph::{Link, LinkClass, LinkId, Node, NodeId, NodeKind, Topology, TopologyError};
