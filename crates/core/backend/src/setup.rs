//! What a run needs: the checked scenario turned into a graph, flows and configurations.

use crate::FabricParameters;
use anabranch_lb::{
    Record,
    registry::{HostParameters, SwitchParameters},
};
use anabranch_topology::{Fault, LinkId, Topology};
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use anabranch_workload::FlowSet;

/// A load balancer of the scenario: what runs on the hosts and what runs in the switches.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    /// The name it goes by: an alias (`prime`) or `host+switch`.
    pub name: String,
    /// The host side.
    pub host: HostParameters,
    /// The switch side.
    pub switch: SwitchParameters,
}

/// What is measured beyond what always is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Links whose ports give a time series.
    pub series_links: Vec<LinkId>,
    /// Flows that give a time series, ascending.
    pub series_flows: Vec<u32>,
    /// Whether load balancers give a time series.
    pub series_scheme: bool,
    /// Interval of the samples; zero: no series.
    pub series_interval: Time,
    /// Bytes of memory that the time series may take; a run whose series take more is an error. `None`: no limit.
    pub series_memory: Option<u64>,
    /// Per-flow packet counts per uplink.
    pub uplink_counts: bool,
    /// Occupancy histograms per port, in packets.
    pub occupancy: bool,
    /// Flows whose packets are traced.
    pub trace_flows: Vec<u32>,
    /// Rows that the trace may have; later ones are left out.
    pub trace_limit: u64,
    /// Links whose packets are kept.
    pub capture_links: Vec<LinkId>,
    /// Packets that one of them may have; a run with more is an error.
    pub capture_limit: u64,
    /// Where what host schemes are told and answer is kept; `None`: nowhere.
    pub record: Option<Record>,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// End when every flow is done (else at `time_limit` alone).
    pub until_all_done: bool,
    /// End here at the latest.
    pub time_limit: Time,
    /// Time for a trigger to reach another host.
    pub trigger_latency: Time,
    /// Flows that start earlier than this after the first flow are run but not counted.
    pub warmup: Time,
}

/// Everything a run is a function of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The graph.
    pub topology: Topology,
    /// The traffic.
    pub flows: FlowSet,
    /// Buffers, marking, trimming, classes.
    pub fabric: FabricParameters,
    /// The transport and its congestion controls.
    pub transport: TransportParameters,
    /// Load balancers in use; workloads point into this list.
    pub load_balancers: Vec<LoadBalancer>,
    /// Faults, resolved to links.
    pub faults: Vec<Fault>,
    /// Extra measurements.
    pub measure: Measure,
    /// When it ends.
    pub limits: RunLimits,
    /// Seed of everything random but the traffic (which is drawn already).
    pub seed: u64,
}
