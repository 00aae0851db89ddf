//! The testbed as a backend of runs.

use crate::{
    Launch, MAX_RATE, MIN_RATE, TestbedError, TestbedPlan,
    faults::{harm, is_unidirectional},
    harm::ONLY_ROOT,
    run::{rate, run},
    space,
    unlike::unlike,
};
use anabranch_backend::{
    Backend, Clock, MarkingParameters, Measures, Progress, Refusal, RunError, RunOptions, RunRows, Setup,
};
use anabranch_lb::registry::{HostParameters, SchemeError, check_host_side};
use anabranch_outcome::{CounterMeasures, FlowMeasures, LinkMeasures};
use anabranch_settings::SetError;
use anabranch_topology::{Fault, FaultAction};
use anabranch_units::Rate;
use anabranch_wire::WireParameters;
use std::fmt;

/// Backend that builds a testbed of network namespaces for each run and removes it afterwards.
///
/// The process runs in namespaces of its own ([`crate::space`]). Only the host side of load balancers applies: the
/// switches are the kernel's.
pub struct Testbed {
    wire: WireParameters,
    launch: Box<Launch<'static>>,
}

impl Testbed {
    /// Returns a testbed with endpoints configured by `wire`; `launch` returns the settings of the ranks of collectives.
    pub fn new(wire: WireParameters, launch: Box<Launch<'static>>) -> Self {
        Testbed { wire, launch }
    }
}

impl fmt::Debug for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Testbed").field("wire", &self.wire).finish_non_exhaustive()
    }
}

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
    schemes: true,
};

impl Backend for Testbed {
    fn measures(&self) -> Measures {
        MEASURES
    }

    fn runs_switch_schemes(&self) -> bool {
        false
    }

    fn check(&self, setup: &Setup) -> Result<(), RunError> {
        TestbedPlan::of_setup(setup, &self.wire).map_err(|error| unbuildable(&error))?;
        refuse(setup, &self.wire)
    }

    fn unlike(&self, setup: &Setup) -> Vec<String> {
        unlike(setup, &self.wire)
    }

    fn host_scheme(&self, setup: &Setup, scheme: &HostParameters, host: u32) -> Result<HostParameters, RunError> {
        let settings = self.wire.settings(&setup.transport, scheme.clone(), rate(setup, host), setup.seed);
        settings.map(|settings| settings.scheme).map_err(|error| RunError::Setup(format!("[wire]: {error}")))
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

fn refuse(setup: &Setup, wire: &WireParameters) -> Result<(), RunError> {
    let refused = |key: String, reason: &str, remedy: &str| Err(RunError::Refused(Refusal::new(key, reason, remedy)));
    if setup.flows.servers.is_some() {
        return refused(
            "servers.gpus".into(),
            "found [servers], whose scale-up network between GPUs a testbed does not have",
            "leave [servers] out: every host is an endpoint then, or run it in the simulator (`--backend sim`)",
        );
    }
    let workloads = &setup.flows.workloads;
    let first = workloads.first().map(|workload| workload.load_balancer);
    if let Some(other) = workloads.iter().position(|workload| Some(workload.load_balancer) != first) {
        return refused(
            format!("workload[{other}].load_balancer"),
            "found another load balancer than that of the first workload: an endpoint of a testbed has one scheme",
            "give all workloads one load balancer, or run it in the simulator (`--backend sim`)",
        );
    }
    if let Some(own) = setup.own_transports.keys().next() {
        return refused(
            format!("workload[{own}].congestion_control"),
            "found one of its own: an endpoint of a testbed has one transport",
            "give `transport.congestion_control` alone, or run it in the simulator (`--backend sim`)",
        );
    }
    let planes = setup.topology.planes;
    if !wire.labels.is_multiple_of(planes) {
        return refused(
            "wire.labels".into(),
            &format!("found {} labels for {planes} planes", wire.labels),
            &format!("a multiple of the planes, such as {}", wire.labels.next_multiple_of(planes)),
        );
    }
    if setup.fabric.pfc {
        return refused(
            "fabric.pfc".into(),
            "found true: ports of namespaces send no pause frames",
            "`fabric.pfc = false`, or a lossy profile such as \"uet-lossy\" or \"roce-irn\"",
        );
    }
    let rule = setup.marking.chosen(&setup.fabric.marking);
    if setup.fabric.ecn && !matches!(rule, MarkingParameters::Red(_)) {
        return refused(
            "fabric.marking".into(),
            &format!("found \"{}\": ports of namespaces mark by RED alone", rule.name()),
            "`fabric.marking = \"red\"`, `fabric.ecn = false`, or the simulator (`--backend sim`)",
        );
    }
    for balancer in &setup.load_balancers {
        if let Err(SchemeError::SwitchesChoose { switch, instead }) = check_host_side(&balancer.host, &balancer.switch)
        {
            let reason = format!(
                "found `{}`: its switches choose the paths (`{switch}`), and those of a testbed are the kernel's, with ECMP",
                balancer.name
            );
            let remedy = format!("`{instead}`, whose hosts choose the paths, or the simulator (`--backend sim`)");
            return refused("load_balancer.scheme".into(), &reason, &remedy);
        }
    }
    for balancer in &setup.load_balancers {
        let of_hosts =
            wire.settings_with_key(&setup.transport, balancer.host.clone(), Rate(MAX_RATE), setup.seed, None);
        of_hosts.map_err(|error| match error {
            // Of the scheme, not of [wire].
            SetError::InvalidValue { key, wrong } if key.contains('.') => RunError::Setup(format!("{key}: {wrong}")),
            error => RunError::Setup(format!("[wire]: {error}")),
        })?;
    }
    for fault in &setup.faults {
        refuse_fault(fault)?;
    }
    if !setup.flows.templates.is_empty() {
        return refused(
            "measure.flow_rows".into(),
            "found \"without-jobs\", and a testbed knows its flows in advance",
            "give `measure.flow_rows = \"all\"`",
        );
    }
    if setup.flows.triggers.iter().any(|trigger| trigger.cpu.is_some()) {
        let message = "a schedule computes on processors of hosts, and hosts of a testbed do not compute".to_string();
        return Err(RunError::Setup(message));
    }
    Ok(())
}

/// Refuses faults that cables of namespaces cannot have.
fn refuse_fault(fault: &Fault) -> Result<(), RunError> {
    let refused =
        |key: &str, reason: &str, remedy: &str| Err(RunError::Refused(Refusal::new(fault.key(key), reason, remedy)));
    if fault.data_only {
        return refused(
            "affects",
            "found \"data\": links of a testbed cannot tell data from answers, and faults affect all packets alike",
            "`affects = \"all\"`",
        );
    }
    if fault.detect_at.is_some() && !matches!(fault.action, FaultAction::Degrade(_)) {
        return refused(
            "detect_after",
            "found a time: the kernel's switches take a cable that is cut whole out of their routes at once, and other switches \
             never notice",
            "`detect_after = \"never\"`, or the simulator (`--backend sim`)",
        );
    }
    if matches!(fault.action, FaultAction::Deny | FaultAction::Allow) {
        return refused(
            "kind",
            "found path-deny or path-allow: no controller notifies the hosts of a testbed",
            "another kind, or the simulator (`--backend sim`)",
        );
    }
    if let FaultAction::Degrade(rate) = fault.action
        && !(MIN_RATE..=MAX_RATE).contains(&rate.0)
    {
        let (least, most) = (Rate(MIN_RATE), Rate(MAX_RATE));
        let reason = format!("found {rate}, and links of a testbed have from {least} to {most}");
        return refused("rate", &reason, &format!("a rate from {least} to {most}"));
    }
    let is_part = matches!(fault.action, FaultAction::Down | FaultAction::Up) && is_unidirectional(&fault.links);
    if (is_part || harm(fault.action).is_some()) && !space::may_load_programs() {
        let reason = match is_part {
            true => "found a direction of a cable alone, which a BPF program takes down: that needs root".to_string(),
            false => format!("{ONLY_ROOT}: that needs root"),
        };
        let remedy = if is_part { "run it as root, or name the whole cable" } else { "run it as root" };
        return refused(if is_part { "links" } else { "kind" }, &reason, remedy);
    }
    Ok(())
}
