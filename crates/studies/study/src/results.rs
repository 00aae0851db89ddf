//! Runs one scenario from its setup to a directory of results.

use crate::{
    directory::{Taken, take_directory},
    error::RunError,
    hold::Hold,
    input_error,
    pcap::{Captured, Captures},
};
use anabranch_backend::FctKind;
use anabranch_backend::{self as backend, Progress, RunOptions, Setup};
use anabranch_outcome::RunResult;
use anabranch_report::{
    Attempt, CollectiveMeta, Content, Formats, InputEntry, Inputs, LinkFault, OutputDir, Provenance, ReportError,
    ResultKind, RunMeta, SeriesSums, Summary, WorkloadMeta, write_fresh_run, write_run, write_run_to_draw,
};
use anabranch_scenario::{
    backend::{BackendEntry, SIMULATOR},
    error::ScenarioError,
    machine::{COMMIT, VERSION, machine, peak_rss_bytes},
    scenario::{Scenario, readings::readings},
};
use anabranch_topology::{FaultAction, NodeId};
use anabranch_units::Time;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

/// Runs `scenario` with its seed on `threads` threads into the directory `taken`, and `captures` to their files.
///
/// Partial results are written too, and marked. `before` is called with the setup before the run begins. Also returns the sums of
/// the run's series, for [`anabranch_report::report_run`].
///
/// # Errors
/// [`RunError`]; nothing is written in that case.
pub fn run_into(
    scenario: &Scenario,
    backend: &BackendEntry,
    threads: usize,
    taken: &Taken,
    captures: &Captures,
    before: &dyn Fn(&Setup),
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Summary, Vec<Captured>, SeriesSums), RunError> {
    let to = Destination { is_drawn: true, ..Destination::in_place(scenario.scheme(), taken.directory(), taken) };
    let prepare = |setup: &mut Setup| {
        captures.ask(setup)?;
        before(setup);
        Ok(())
    };
    let (setup, result, _hold) = run_setup(scenario, backend, threads, &prepare, progress)?;
    let files = captures.write(&setup, &result)?;
    let summary = to.write(scenario, backend, &setup, &result, threads)?;
    Ok((summary, files.publish()?, SeriesSums::of(&result)))
}

/// A finished run, in memory.
pub struct Ran {
    /// The rows.
    pub result: RunResult,
    /// The names to which the rows refer by number.
    pub meta: RunMeta,
    provenance: Provenance,
}

/// Runs `scenario` with its seed on `threads` threads and keeps the result in memory; an interrupted run is an error.
pub fn run(
    scenario: &Scenario,
    backend: &BackendEntry,
    threads: usize,
    before: &dyn Fn(&Setup),
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Ran, RunError> {
    let started = Instant::now();
    let prepare = |setup: &mut Setup| {
        before(setup);
        Ok(())
    };
    let (setup, result, _hold) = run_setup(scenario, backend, threads, &prepare, progress)?;
    match result.interrupted {
        true => Err(RunError::Interrupted),
        false => Ok(Ran {
            meta: meta_of(scenario, backend, &setup, threads, &result),
            provenance: provenance(scenario, started),
            result,
        }),
    }
}

impl Ran {
    /// Computes its statistics.
    pub fn summary(&self) -> Summary {
        Summary::new(&self.result, &self.meta)
    }

    /// Writes rows, summary and manifest into `directory`.
    ///
    /// # Errors
    /// [`ReportError`] where a file cannot be written; nothing half-written is left.
    pub fn write(&self, directory: &Path) -> Result<Summary, ReportError> {
        write_run(directory, &self.result, &self.meta, &self.provenance, Formats::BOTH)
    }
}

/// Takes `directory` for the results of one run.
///
/// Results of another scenario are replaced only with `replace`; those of a comparison or a sweep, and foreign files,
/// never. Returns the files of another scenario that would be removed too.
///
/// # Errors
/// [`ScenarioError`] that names what is in the way.
pub fn take_for_a_run(
    directory: &Path,
    scenario: &Scenario,
    backend: &BackendEntry,
    replace: bool,
) -> Result<(Taken, Vec<String>), ScenarioError> {
    let open = || OutputDir::keeping(directory, Inputs::of(scenario.inputs())).map_err(input_error);
    let (_, taken) = OutputDir::settled(open, |output| {
        let removed = free(output, scenario.hash(), backend, replace)?;
        output.admit_results(&["summary.json"]).map_err(input_error)?;
        Ok((take_directory(directory)?, removed))
    })?;
    Ok(taken)
}

/// As [`take_for_a_run`], for a run with this hash.
fn free(output: &OutputDir, hash: u64, backend: &BackendEntry, replace: bool) -> Result<Vec<String>, ScenarioError> {
    let name = output.path().display();
    let Some(there) = output.manifest() else { return Ok(Vec::new()) };
    if there.kind() != ResultKind::Run {
        return Err(ScenarioError::new(format!(
            "`--out {name}` contains {}; a single run needs a separate directory, for example `--out {name}-run`",
            there.kind()
        )));
    }
    if there.backend() == backend.name && there.scenario_hash == format!("{hash:016x}") {
        return Ok(Vec::new());
    }
    if replace {
        return Ok(output.listed());
    }
    let seeds: Vec<String> = there.seeds.iter().map(u64::to_string).collect();
    let message = format!(
        "{name} contains other results: {}, {}, seed {}, version {}",
        there.name,
        there.schemes.join(", "),
        seeds.join(", "),
        there.version
    );
    Err(ScenarioError::new(message).help("give another directory with --out DIR, or --replace"))
}

pub(crate) struct Destination<'a> {
    pub(crate) entry: &'a str,
    pub(crate) directory: &'a Path,
    /// The directory around it, where this process has taken that directory.
    pub(crate) taken: Option<&'a Taken>,
    pub(crate) formats: Formats,
    /// `true` if figures and page of this run follow.
    pub(crate) is_drawn: bool,
    pub(crate) started: Instant,
    /// For a run in a store: its directory is created for it, and gets its name and place when it is whole.
    pub(crate) fresh: Option<Attempt>,
}

impl<'a> Destination<'a> {
    /// A directory that others may read meanwhile.
    pub(crate) fn in_place(entry: &'a str, directory: &'a Path, taken: &'a Taken) -> Self {
        let (formats, started) = (Formats::BOTH, Instant::now());
        Destination { entry, directory, taken: Some(taken), formats, started, is_drawn: false, fresh: None }
    }
}

/// As [`run_into`], but an interrupted run leaves no files.
pub(crate) fn run_unless(
    scenario: &Scenario,
    backend: &BackendEntry,
    threads: usize,
    to: &Destination<'_>,
    progress: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Option<Summary>, RunError> {
    let (setup, result, _hold) = match run_setup(scenario, backend, threads, &|_| Ok(()), progress) {
        Err(RunError::Interrupted) => return Ok(None),
        simulated => simulated?,
    };
    match result.interrupted {
        true => Ok(None),
        false => to.write(scenario, backend, &setup, &result, threads).map(Some),
    }
}

/// A panic is reported as a bug of this program, and ends this run alone.
pub(crate) fn run_setup(
    scenario: &Scenario,
    backend: &BackendEntry,
    threads: usize,
    prepare: &dyn Fn(&mut Setup) -> Result<(), ScenarioError>,
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
    catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().map(ToString::to_string);
        let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(broken(scenario, backend, threads, backend::RunError::Invariant(format!("panic: {words}"))))
    })
}

impl Destination<'_> {
    fn write(
        &self,
        scenario: &Scenario,
        backend: &BackendEntry,
        setup: &Setup,
        result: &RunResult,
        threads: usize,
    ) -> Result<Summary, RunError> {
        self.taken.map_or(Ok(()), Taken::check)?;
        let provenance = provenance(scenario, self.started);
        let meta = RunMeta { scheme: self.entry.to_string(), ..meta_of(scenario, backend, setup, threads, result) };
        Ok(match &self.fresh {
            None if self.is_drawn => write_run_to_draw(self.directory, result, &meta, &provenance, self.formats)?,
            None => write_run(self.directory, result, &meta, &provenance, self.formats)?,
            Some(attempt) => write_fresh_run(self.directory, result, &meta, &provenance, self.formats, attempt)?,
        })
    }
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

type Known = (u64, Option<SystemTime>, InputEntry);

/// Each file is read once while it does not change. A file that is gone is skipped.
fn input_entries(paths: &[PathBuf]) -> Vec<InputEntry> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let of = |path: &PathBuf| {
        let metadata = std::fs::metadata(path).ok()?;
        let (bytes, changed) = (metadata.len(), metadata.modified().ok());
        if let Some((size, time, entry)) = known.get(path)
            && (*size, *time) == (bytes, changed)
        {
            return Some(entry.clone());
        }
        let Content { bytes: read, blake3 } = Content::of_file(path).ok()?;
        let entry = InputEntry { path: path.display().to_string(), bytes: read, blake3 };
        known.insert(path.clone(), (bytes, changed, entry.clone()));
        Some(entry)
    };
    paths.iter().filter_map(of).collect()
}

fn broken(scenario: &Scenario, backend: &BackendEntry, threads: usize, error: backend::RunError) -> RunError {
    match error {
        backend::RunError::Refused(refusal) => RunError::Scenario(scenario.refused(&refusal, backend)),
        backend::RunError::Setup(message) => RunError::Scenario(scenario.setup_error(&message)),
        backend::RunError::Interrupted => RunError::Interrupted,
        backend::RunError::Invariant(_) | backend::RunError::EndedEarly(_) | backend::RunError::Failed(_) => {
            let (scheme, seed) = (scenario.scheme(), scenario.seed);
            let on = match *backend == SIMULATOR {
                true => String::new(),
                false => format!(" --backend {}", backend.name),
            };
            let again = match scenario.is_at_hand() {
                true => format!(
                    "anabranch run {} --set load_balancer.scheme={scheme} --seed {seed} --threads {threads}{on}",
                    scenario.origin()
                ),
                false => format!("anabranch run FILE --threads {threads}{on}, FILE being\n\n{}", scenario.to_toml()),
            };
            RunError::Broken(format!(
                "{error}\n  scenario {} (hash {:016x}), load balancer {scheme}, seed {seed}, threads {threads}, version {VERSION} ({COMMIT})\n  \
                 to see it again: {again}",
                scenario.name,
                scenario.hash(),
            ))
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
            FctKind::Rx => anabranch_report::FctKind::Rx,
            FctKind::Ack => anabranch_report::FctKind::Ack,
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
