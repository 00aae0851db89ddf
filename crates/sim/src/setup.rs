//! What a run needs: the checked scenario turned into a graph, flows and configurations.

use anabranch_fabric::{FabricParameters, Measure, TransportParameters};
use anabranch_lb::registry::{HostParameters, SwitchParameters};
use anabranch_topology::{Fault, Topology};
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
