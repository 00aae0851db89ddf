//! The simulator as a backend.

pub use anabranch_fabric::{How, Split, Timing, window_times};

use anabranch_backend::{
    Backend, CsigSignal, Measures, Progress, Refusal, RunError, RunOptions, RunResult, RunRows, Setup,
};
use anabranch_settings::Setting;
use anabranch_topology::Fault;

/// Backend that simulates packet by packet and measures all metrics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator {
    how: Option<How>,
}

impl Simulator {
    /// Creates a simulator with a fixed mode of execution, which overrides the number of threads.
    pub fn with(how: How) -> Self {
        Simulator { how: Some(how) }
    }
}

impl Backend for Simulator {
    fn measures(&self) -> Measures {
        Measures::ALL
    }

    fn check(&self, setup: &Setup) -> Result<(), RunError> {
        refuse(setup)?;
        anabranch_fabric::check(setup, &mut || true)
    }

    fn run(
        &self,
        setup: &Setup,
        options: RunOptions,
        progress: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<RunRows, RunError> {
        refuse(setup)?;
        anabranch_fabric::run(setup, self.how.unwrap_or_else(|| How::on(options.threads)), progress)
    }
}

fn refuse(setup: &Setup) -> Result<(), RunError> {
    let real = |fault: &Fault| Some((fault.key("kind"), fault.action.real_only()?));
    if let Some((key, kind)) = setup.faults.iter().find_map(real) {
        return Err(RunError::Refused(Refusal::new(
            key,
            format!(
                "found {}, which needs real packets: simulated ones have neither bits nor copies, and links have fixed delays",
                kind.write()
            ),
            "`anabranch run SCENARIO --backend testbed` does it on network namespaces; in a simulation \"packet-loss\" loses packets, and \
             `topology.link_delay` sets delays",
        )));
    }
    refuse_skip(setup)?;
    let Some(job) = setup.flows.jobs.first() else { return Ok(()) };
    Err(RunError::Refused(Refusal::new(
        format!("workload[{}].kind", job.workload),
        "found \"nccl\", whose ranks are processes that load a plugin; a simulation cannot run them",
        "`anabranch testbed run` (`--backend testbed`) runs it on network namespaces; the kinds \"collective\" and \"all-to-all\" send the \
         same shapes in a simulation",
    )))
}

/// Refuses to skip the steady state of a run that measures packets, or that has none.
fn refuse_skip(setup: &Setup) -> Result<(), RunError> {
    if !setup.limits.skip {
        return Ok(());
    }
    let never_settles = |what: &str, why: &str, key: &str| {
        let found = format!(
            "found \"steady\" together with {what}, which never settles: {why}, between which its rates look constant"
        );
        let help = format!("give `run.skip = \"off\"`, or another `{key}`");
        Err(RunError::Refused(Refusal::new("run.skip", found, help)))
    };
    let mut transports = std::iter::once(&setup.transport).chain(setup.own_transports.values());
    if transports.clone().any(|transport| transport.takes_credit()) {
        return Err(RunError::Refused(Refusal::new(
            "run.skip",
            "found \"steady\" together with receiver credit, whose grants cannot be skipped",
            "give `run.skip = \"off\"`, or another `transport.congestion_control`",
        )));
    }
    if transports.any(|transport| transport.control().name == "dcqcn") {
        let control = "transport.congestion_control";
        return never_settles("the congestion control `dcqcn`", "its rates follow timers", control);
    }
    if setup.load_balancers.iter().any(|balancer| balancer.host.name() == "hf2t") {
        let why = "its threshold changes every `load_balancer.hf2t.refresh`";
        return never_settles("the host scheme `hf2t`", why, "load_balancer.scheme");
    }
    if !setup.flows.templates.is_empty() {
        return Err(RunError::Refused(Refusal::new(
            "run.skip",
            "found \"steady\" together with `measure.flow_rows = \"without-jobs\"`, whose flows come and go",
            "give `run.skip = \"off\"`, or `measure.flow_rows = \"all\"`",
        )));
    }
    if setup.limits.skip && setup.flows.servers.is_some() {
        return Err(RunError::Refused(Refusal::new(
            "run.skip",
            "found \"steady\" together with [servers]: messages over scale-up have no steady state",
            "give `run.skip = \"off\"`, or leave [servers] out",
        )));
    }
    let of = &setup.measure;
    let asked = [
        ("measure.series_links", !of.series_links.is_empty()),
        ("measure.series_flows", !of.series_flows.is_empty()),
        ("measure.series_scheme", of.series_scheme),
        ("measure.uplink_counts", of.uplink_counts),
        ("measure.occupancy", of.occupancy),
        ("measure.attribution", of.attribution),
        ("measure.trace_flows", !of.trace_flows.is_empty()),
        ("a capture", !of.capture_links.is_empty()),
        ("`fabric.csig`", setup.fabric.csig != CsigSignal::Off),
    ];
    let Some((what, _)) = asked.into_iter().find(|(_, is_asked)| *is_asked) else { return Ok(()) };
    Err(RunError::Refused(Refusal::new(
        "run.skip",
        format!("found \"steady\" together with {what}: packets that are skipped cannot be measured"),
        "leave it out, or give `run.skip = \"off\"`",
    )))
}

/// Runs `setup` in the simulator on `threads` threads.
pub fn run(setup: &Setup, threads: usize, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, RunError> {
    anabranch_backend::run(&Simulator::default(), setup, RunOptions { threads }, progress)
}

/// Runs as [`run`], with a selected mode of execution.
pub fn run_with(setup: &Setup, how: How, progress: &mut dyn FnMut(&Progress) -> bool) -> Result<RunResult, RunError> {
    anabranch_backend::run(&Simulator::with(how), setup, RunOptions { threads: 1 }, progress)
}
