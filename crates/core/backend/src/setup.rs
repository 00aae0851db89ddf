use crate::{FabricParameters, MarkingParameters, PortSelector, Steering};
use anabranch_lb::registry::{HostParameters, SwitchParameters, TagKind};
use anabranch_settings::Each;
use anabranch_topology::{Fault, LinkId, Topology};
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use anabranch_workload::FlowSet;
use std::collections::BTreeMap;

/// A load balancer of the scenario: its host and switch side.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    /// Its name: an alias (`prime`) or `host+switch`.
    pub name: String,
    pub host: HostParameters,
    pub switch: SwitchParameters,
}

impl LoadBalancer {
    /// Returns the number of planes that its multi-part entropy values name as their first part; 1: they name none.
    pub fn named_planes(&self, selector: PortSelector, planes: u32) -> u32 {
        let has_parts = self.host.capabilities().tags() == TagKind::MultiPart;
        if has_parts && selector != PortSelector::FreePort { planes } else { 1 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measure {
    /// Links whose ports are sampled.
    pub series_links: Vec<LinkId>,
    /// Flows that are sampled, ascending.
    pub series_flows: Vec<u32>,
    /// Enables the time series of load balancers.
    pub series_scheme: bool,
    /// Interval of the samples; zero: no series.
    pub series_interval: Time,
    /// Memory limit of what grows during a run, time series and packets under way, in bytes; a run that exceeds it is an
    /// error. `None`: no limit.
    pub memory: Option<u64>,
    /// Per-flow packet counts per uplink.
    pub uplink_counts: bool,
    /// Occupancy histograms per port, in packets.
    pub occupancy: bool,
    /// Parts of the completion time per flow.
    pub attribution: bool,
    /// Flows whose packets are traced.
    pub trace_flows: Vec<u32>,
    /// Records the calls of the schemes of these flows and the states that they leave.
    pub trace_scheme: bool,
    /// Maximum rows of the trace, and of the calls of schemes; later ones are omitted.
    pub trace_limit: u64,
    /// Links whose packets are captured.
    pub capture_links: Vec<LinkId>,
    /// Maximum packets of a capture; a run with more is an error.
    pub capture_limit: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// End when every flow is complete (else only at `time_limit`).
    pub until_all_done: bool,
    /// Latest end of the run.
    pub time_limit: Time,
    /// Time for a trigger to reach another host.
    pub trigger_latency: Time,
    /// Timeouts without a received byte after which a run with nothing else ahead ends as stalled; `None`: never.
    pub stall_after: Option<u64>,
    /// Skips the steady state where there is one.
    pub skip: bool,
    /// Flows that start earlier than this after the first flow are excluded from the statistics.
    pub warmup: Time,
}

/// Complete input of a run: the checked scenario as a graph, flows and configurations.
#[derive(Clone, Debug)]
pub struct Setup {
    pub topology: Topology,
    pub flows: FlowSet,
    /// Buffers, marking, trimming, classes.
    pub fabric: FabricParameters,
    /// Parameters of the marking rules, of which `fabric.marking` names one.
    pub marking: Each<MarkingParameters>,
    /// The transport and its congestion controls.
    pub transport: TransportParameters,
    /// The transport with another congestion control, for each workload (by its index in `flows`) that has its own.
    pub own_transports: BTreeMap<u32, TransportParameters>,
    /// Load balancers in use; workloads refer to this list.
    pub load_balancers: Vec<LoadBalancer>,
    /// Faults, resolved to links.
    pub faults: Vec<Fault>,
    pub measure: Measure,
    pub limits: RunLimits,
    /// Seed of all random draws except the traffic (which is drawn already).
    pub seed: u64,
    /// An agent outside the run that steers its host schemes; `None`: the schemes decide alone.
    pub steering: Option<Steering>,
}
