//! The testbed as a backend of runs.

use crate::{
    Launch, Plan, TestbedError,
    run::{harm, run},
};
use anabranch_backend::{Backend, Clock, Measures, Progress, Refusal, RunError, RunOptions, RunRows, Setup};
use anabranch_outcome::{CounterMeasures, FlowMeasures, LinkMeasures};
use anabranch_wire::WireParameters;
use std::fmt;

/// A testbed of network namespaces, built for each run and gone with it. The process lives in namespaces of its own
/// ([`crate::space`]). Of load balancers the host side alone runs: the switches are the kernel's.
pub struct Testbed {
    wire: WireParameters,
    launch: Box<Launch<'static>>,
}

impl Testbed {
    /// A testbed whose endpoints are as `wire` says; `launch` says how ranks of collectives are started.
    pub fn new(wire: WireParameters, launch: Box<Launch<'static>>) -> Self {
        Testbed { wire, launch }
    }
}

impl fmt::Debug for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testbed").field("wire", &self.wire).finish_non_exhaustive()
    }
}

/// What a testbed measures: what endpoints count, and what the ports of the kernel do.
const MEASURES: Measures = Measures {
    clock: Clock::Machine,
    flows: FlowMeasures { retransmitted_packets: true, path_switches: true, ..FlowMeasures::NONE },
    links: Some(LinkMeasures {
        queue_max_bytes: true,
        ecn_marks: true,
        trims: true,
        drops: true,
        ..LinkMeasures::NONE
    }),
    counters: CounterMeasures {
        data_packets: true,
        ecn_marked: true,
        trimmed: true,
        dropped: true,
        retransmitted: true,
        timeouts: true,
        path_switches: true,
        probes: true,
        probe_bytes: true,
        ..CounterMeasures::NONE
    },
    conservation: false,
    packet_hops: true,
    samples: false,
};

impl Backend for Testbed {
    fn measures(&self) -> Measures {
        MEASURES
    }

    fn runs_switch_schemes(&self) -> bool {
        false
    }

    fn check(&self, setup: &Setup) -> Result<(), RunError> {
        Plan::of_setup(setup, &self.wire).map_err(|error| unbuildable(&error))?;
        refuse(setup)
    }

    fn run(
        &self,
        setup: &Setup,
        _: RunOptions,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError> {
        self.check(setup)?;
        run(setup, &self.wire, &*self.launch, progress)
    }
}

fn unbuildable(error: &TestbedError) -> RunError {
    match error {
        TestbedError::Unbuildable { found, expected } => {
            let reason = format!("a testbed of namespaces cannot be built: {found}");
            RunError::Refused(Refusal::new("topology.kind", reason, format!("it can be {expected}")))
        }
        error => RunError::Setup(error.to_string()),
    }
}

/// Refuses what only simulations can do.
fn refuse(setup: &Setup) -> Result<(), RunError> {
    let refused = |key: String, reason: &str, remedy: &str| Err(RunError::Refused(Refusal::new(key, reason, remedy)));
    let workloads = &setup.flows.workloads;
    let first = workloads.first().map(|workload| workload.load_balancer);
    if let Some(other) = workloads.iter().position(|workload| Some(workload.load_balancer) != first) {
        return refused(
            format!("workload[{other}].load_balancer"),
            "found another load balancer than that of the first workload: an endpoint of a testbed has one scheme",
            "give all workloads one load balancer, or run it in the simulator (`--backend sim`)",
        );
    }
    if setup.fabric.pfc {
        return refused(
            "fabric.pfc".into(),
            "found true: ports of namespaces send no pause frames",
            "`fabric.pfc = false`, or a lossy profile such as \"uet-lossy\" or \"roce-irn\"",
        );
    }
    if let Some(fault) = setup.faults.iter().find(|fault| fault.data_only && harm(fault.action).is_some()) {
        return refused(
            fault.key("affects"),
            "found \"data\": links of a testbed cannot tell data from answers, and harm all packets alike",
            "`affects = \"all\"`",
        );
    }
    if setup.flows.triggers.iter().any(|trigger| trigger.cpu.is_some()) {
        let message = "a schedule computes on processors of hosts, and hosts of a testbed do not compute".to_string();
        return Err(RunError::Setup(message));
    }
    Ok(())
}
