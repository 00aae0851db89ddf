//! Runs one scenario from its setup to a directory of results.

use crate::{Hold, RunError};
use anabranch_backend::{self as backend, FctKind, Progress, RunOptions, Setup};
use anabranch_outcome::RunResult;
use anabranch_results::{
    Attempt, CollectiveMeta, Content, Formats, InputEntry, LinkFault, Provenance, RunMeta, Summary, WorkloadMeta,
    content_of, write_fresh_run, write_run,
};
use anabranch_scenario::{
    BackendEntry, COMMIT, SIMULATOR, Scenario, VERSION, machine::machine, peak_rss_bytes, scenario::readings::readings,
};
use anabranch_topology::{FaultAction, NodeId};
use anabranch_units::Time;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Instant,
};

/// A run that has ended, in memory.
pub struct Ran {
    pub result: RunResult,
    /// The names to which the rows refer by number.
    pub meta: RunMeta,
    pub setup: Setup,
    provenance: Provenance,
    /// What a report of a bug needs, should writing panic.
    again: String,
    _hold: Hold,
}

/// Runs `scenario` with its seed on `threads` threads and keeps the result in memory, also that of an interrupted run.
/// `prepare` is called with the setup before the run begins, and may refuse it.
pub fn run(
    scenario: &Scenario,
    backend: &'static BackendEntry,
    threads: usize,
    prepare: &dyn Fn(&mut Setup) -> Result<(), RunError>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Ran, RunError> {
    let started = Instant::now();
    let (setup, result, hold) = run_setup(scenario, backend, threads, prepare, progress)?;
    let meta = meta_of(scenario, backend, &setup, threads, &result);
    let again = again(scenario, backend, threads);
    Ok(Ran { meta, provenance: provenance(scenario, started), again, result, setup, _hold: hold })
}

impl Ran {
    /// Computes its statistics.
    pub fn summary(&self) -> Summary {
        Summary::new(&self.result, &self.meta)
    }

    /// Writes an interrupted run into `directory`, with page and figures to follow.
    pub(crate) fn write_part(&self, directory: &Path) -> Result<Summary, RunError> {
        let write = || Ok(write_run(directory, &self.result, &self.meta, &self.provenance, Formats::BOTH)?);
        without_panic(&|| self.again.clone(), write)
    }

    /// Writes the run into `directory`, which it creates, for a store.
    pub(crate) fn write_fresh(
        &self,
        directory: &Path,
        formats: Formats,
        attempt: &Attempt,
    ) -> Result<Summary, RunError> {
        let Ran { result, meta, provenance, .. } = self;
        let write = || Ok(write_fresh_run(directory, result, meta, provenance, formats, attempt)?);
        without_panic(&|| self.again.clone(), write)
    }
}

/// A panic is reported as a bug of this program, and ends this run alone.
fn without_panic<T>(again: &dyn Fn() -> String, body: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let error = backend::RunError::Invariant(format!("panic: {words}"));
        Err(RunError::Broken(format!("{error}\n  {}", again())))
    })
}

fn run_setup(
    scenario: &Scenario,
    backend: &BackendEntry,
    threads: usize,
    prepare: &dyn Fn(&mut Setup) -> Result<(), RunError>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Setup, RunResult, Hold), RunError> {
    let attempt = || {
        let mut setup = scenario.setup(scenario.seed)?;
        prepare(&mut setup)?;
        // From the first events on, there are results to lose.
        let mut hold = None;
        let mut progress = |at: &Progress| {
            if at.now > Time::ZERO || at.packet_hops > Some(0) {
                hold.get_or_insert_with(Hold::take);
            }
            progress(at)
        };
        scenario.check(&setup, backend)?;
        let result = backend::run((backend.make)(scenario).as_ref(), &setup, RunOptions { threads }, &mut progress);
        let result = result.map_err(|error| broken(scenario, backend, threads, error))?;
        Ok((setup, result, hold.unwrap_or_else(Hold::take)))
    };
    without_panic(&|| again(scenario, backend, threads), attempt)
}

pub(crate) fn provenance(scenario: &Scenario, started: Instant) -> Provenance {
    Provenance {
        scenario_toml: scenario.to_toml(),
        scenario_hash: scenario.hash(),
        machine: machine(),
        wall_seconds: started.elapsed().as_secs_f64(),
        command: anabranch_scenario::machine::command(),
        inputs: input_entries(&scenario.inputs()),
        readings: readings(scenario),
    }
}

/// A file that is gone is skipped.
fn input_entries(paths: &[PathBuf]) -> Vec<InputEntry> {
    let of = |path: &PathBuf| {
        let Content { bytes, blake3 } = content_of(path).ok()?;
        Some(InputEntry { path: path.display().to_string(), bytes, blake3 })
    };
    paths.iter().filter_map(of).collect()
}

/// Returns which run it was, and the command that repeats it.
fn again(scenario: &Scenario, backend: &BackendEntry, threads: usize) -> String {
    let (scheme, seed) = (scenario.scheme(), scenario.seed);
    let on = if *backend == SIMULATOR { String::new() } else { format!(" --backend {}", backend.name) };
    let command = match scenario.is_at_hand() {
        true => format!(
            "anabranch run {} --set load_balancer.scheme={scheme} --seed {seed} --threads {threads}{on}",
            scenario.origin()
        ),
        false => format!("anabranch run FILE --threads {threads}{on}, FILE being\n\n{}", scenario.to_toml()),
    };
    format!(
        "scenario {} (hash {:016x}), load balancer {scheme}, seed {seed}, threads {threads}, version {VERSION} ({COMMIT})\n  \
         to see it again: {command}",
        scenario.name,
        scenario.hash(),
    )
}

fn broken(scenario: &Scenario, backend: &BackendEntry, threads: usize, error: backend::RunError) -> RunError {
    match error {
        backend::RunError::Refused(refusal) => RunError::Scenario(scenario.refused(&refusal, backend)),
        backend::RunError::Setup(message) => RunError::Scenario(scenario.setup_error(&message)),
        backend::RunError::Interrupted => RunError::Interrupted,
        backend::RunError::Invariant(_) | backend::RunError::EndedEarly(_) | backend::RunError::Failed(_) => {
            RunError::Broken(format!("{error}\n  {}", again(scenario, backend, threads)))
        }
    }
}

/// Returns the names to which the rows of a run of `scenario` refer by number.
pub fn meta(scenario: &Scenario, backend: &BackendEntry, setup: &Setup, threads: usize) -> RunMeta {
    let workload = |w: &anabranch_workload::WorkloadInfo| WorkloadMeta {
        name: w.name.clone(),
        measured: w.measured,
        is_job: w.is_job,
        collective: w.collective.as_ref().map(|of| CollectiveMeta {
            name: of.name.to_string(),
            ranks: of.ranks as usize,
            bytes: of.bytes,
            rounds: of.rounds,
            bus_factor: of.bus_factor,
        }),
    };
    RunMeta {
        scenario: scenario.name.clone(),
        scheme: scenario.scheme().to_string(),
        seed: scenario.seed,
        backend: backend.name.to_string(),
        threads,
        version: VERSION.into(),
        commit: COMMIT.into(),
        fct_kind: match scenario.fabric.fct_kind {
            FctKind::Rx => anabranch_results::FctKind::Rx,
            FctKind::Ack => anabranch_results::FctKind::Ack,
        },
        workloads: setup.flows.workloads.iter().map(workload).collect(),
        load_balancers: setup.load_balancers.iter().map(|b| b.name.clone()).collect(),
        classes: setup.fabric.classes.clone(),
        warmup: scenario.run.warmup,
        ideal_note: anabranch_backend::ideal_note(setup),
        flows_wait: setup.flows.all_flows().any(|flow| {
            matches!(flow.start, anabranch_workload::Start::On(_))
                && setup.flows.workloads[usize::from(flow.workload)].measured
        }),
        peak_rss_bytes: peak_rss_bytes(),
        faults: faults(setup, None),
        planned_faults: setup.faults.iter().map(|fault| (fault.number, fault.at)).collect(),
    }
}

/// Faults of real packets have the times at which they took effect.
fn meta_of(scenario: &Scenario, backend: &BackendEntry, setup: &Setup, threads: usize, result: &RunResult) -> RunMeta {
    let effects = result.on_wire.as_ref().map(|wire| wire.faults.as_slice());
    RunMeta { faults: faults(setup, effects), ..meta(scenario, backend, setup, threads) }
}

/// In the order of their times. With `effects`, these are the times at which faults took effect; others are skipped.
fn faults(setup: &Setup, effects: Option<&[Option<Time>]>) -> Vec<LinkFault> {
    let name = |node: NodeId| setup.topology.node(node).name.clone();
    let mut faults: Vec<LinkFault> = vec![];
    for (number, fault) in setup.faults.iter().enumerate() {
        let at = match effects {
            None => Some(fault.at),
            Some(effects) => effects.get(number).copied().flatten().map(|at| Time::from_us(at.ps() / 1_000_000)),
        };
        let Some(at) = at else { continue };
        let what = match fault.action {
            FaultAction::Down => LinkFault::DOWN.to_string(),
            FaultAction::Up => "up".to_string(),
            FaultAction::Deny => "denied to hosts".to_string(),
            FaultAction::Allow => "allowed to hosts again".to_string(),
            FaultAction::Degrade(rate) => rate.to_string(),
            FaultAction::Loss { per_billion } => format!("loses {} % of packets", per_billion as f64 / 1e7),
            FaultAction::Corrupt { per_billion } => format!("changes {} % of packets", per_billion as f64 / 1e7),
            FaultAction::Duplicate { per_billion } => format!("repeats {} % of packets", per_billion as f64 / 1e7),
            FaultAction::Delay { delay, jitter } => format!("delays packets by {delay} ± {jitter}"),
        };
        for &id in &fault.links {
            let (link, parallel) = (setup.topology.link(id), setup.topology.parallel(id));
            faults.push(LinkFault { from: name(link.from), to: name(link.to), parallel, at, what: what.clone() });
        }
    }
    faults.sort_by_key(|fault| fault.at);
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_scenario::library::load;

    #[test]
    fn failed_invariant_names_command_to_reproduce_it() {
        let scenario = load("tiny", &["name=a b".into(), "topology.radix=8".into()], Some(5)).unwrap();
        let variant = scenario.with_scheme("ops+drill").unwrap().with_seed(6);
        let text = broken(&variant, &SIMULATOR, 2, backend::RunError::EndedEarly("flow 3 is open".into())).to_string();
        let again = "anabranch run tiny --set 'name=a b' --set topology.radix=8 --set load_balancer.scheme=ops+drill \
                     --seed 6 --threads 2";
        for part in [
            "the simulation ended early: flow 3 is open",
            "scenario a b",
            "load balancer ops+drill, seed 6",
            VERSION,
            again,
        ] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        let text = broken(&variant, &SIMULATOR, 2, backend::RunError::Setup("too many".into()));
        assert!(matches!(text, RunError::Scenario(_)), "a mistake of the user");
    }
}
