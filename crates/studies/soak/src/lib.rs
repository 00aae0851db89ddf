//! The soak: random scenarios, each run in every mode that must not affect its results, which must be equal byte for byte.
//!
//! A case follows from a seed and a number. [`soak`] draws and checks cases, and keeps and shrinks those that fail;
//! [`again`] checks a kept scenario or any other. docs/how-to/soak.md is for users.

mod check;
mod dice;
mod draft;
mod draw;
mod ending;
mod kept;
mod restrictions;
mod shrink;
mod tally;
#[cfg(test)]
mod tests;

pub use check::FailureKind;
pub(crate) use dice::{Dice, quoted};
pub(crate) use draft::{Draft, Section};
pub use kept::Failed;
pub use restrictions::Restrictions;
pub use tally::Tally;

use anabranch_scenario::ScenarioError;
use check::{Failure, Limits, OTHER_MODES, Verdict, check, check_setup};
use draft::SCENARIO;
use kept::FailureStore;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

/// Maximum processor time of one run; most take some milliseconds.
const RUN: Duration = Duration::from_secs(20);

/// Factor of that time in the retry of a case that took too long, since the machine may have been busy.
const RETRY_FACTOR: u32 = 5;

const SHRINKING: Duration = Duration::from_secs(60);

const MAX_FAILURES: usize = 20;

const MAX_REASONS: usize = 5;

/// Number of first cases, of which at least one must suit the requested load balancer.
const FIRST_CASES: u64 = 9;

/// Cases of a soak, and the directory of failures.
#[derive(Clone, Debug)]
pub struct Request {
    /// Seed of all cases.
    pub seed: u64,
    /// Number of the first case.
    pub first: u64,
    /// Number of cases; `None`: no limit.
    pub cases: Option<u64>,
    /// Wall time after which no case starts; `None`: no limit.
    pub time: Option<Duration>,
    pub only: Restrictions,
    /// Directory of failing cases, which must be empty or missing; `None`: failing cases are neither kept nor shrunk.
    pub out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SoakProgress {
    pub cases: u64,
    /// Cases that cannot be run.
    pub refused: u64,
    pub failed: usize,
    /// Share of the time or the cases, from 0 to 1; `None`: no limit.
    pub share: Option<f64>,
}

#[derive(Clone, Debug, Default)]
pub struct SoakOutcome {
    /// Cases checked, refused ones included.
    pub cases: u64,
    /// Cases that cannot be run, for which `anabranch run` ends with exit code 2.
    pub refused: u64,
    /// Reasons of the first refusals.
    pub reasons: Vec<String>,
    pub failures: Vec<Failed>,
    /// Number of draws of each registered name.
    pub drawn: Tally,
    /// Wall time.
    pub seconds: f64,
    /// Interrupted by the user.
    pub interrupted: bool,
    /// The soak ended early because of too many failures.
    pub too_many: bool,
}

impl SoakOutcome {
    /// Returns the results as `--format json` prints them, without the request.
    pub fn json(&self) -> Value {
        let kinds = FailureKind::ALL.map(|kind| {
            let number = self.failures.iter().filter(|failed| failed.kind == kind).count();
            (kind.name().to_string(), json!(number))
        });
        json!({
            "cases": self.cases,
            "refused": self.refused,
            "refusals": self.reasons,
            "failed": self.failures.len(),
            "kinds": kinds.into_iter().collect::<serde_json::Map<_, _>>(),
            "failures": self.failures.iter().map(Failed::json).collect::<Vec<_>>(),
            "drawn": self.drawn.json(),
            "wall_s": self.seconds,
            "interrupted": self.interrupted,
            "ended_early": self.too_many,
        })
    }
}

/// Draws and checks the cases of `request`, one at a time, until `stop` is set. `progress` is called after each.
/// Fails if no case can suit the request, or failing cases cannot be kept.
pub fn soak(
    request: &Request,
    stop: &'static AtomicBool,
    progress: &mut dyn FnMut(&SoakProgress),
) -> Result<SoakOutcome, ScenarioError> {
    let started = Instant::now();
    let limits = Limits { run: RUN, stop };
    let scratch = tempfile::tempdir().map_err(|error| ScenarioError::new(format!("a temporary directory: {error}")))?;
    let kept = request.out.as_deref().map(FailureStore::new).transpose()?;
    can_be_drawn(request, &scratch)?;
    let share = |outcome: &SoakOutcome| {
        let cases = request.cases.map(|cases| outcome.cases as f64 / cases.max(1) as f64);
        let time = request.time.map(|time| started.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-9));
        [cases, time].into_iter().flatten().max_by(f64::total_cmp).map(|share| share.min(1.0))
    };
    let mut outcome = SoakOutcome::default();
    while !limits.stopped()
        && request.cases.is_none_or(|cases| outcome.cases < cases)
        && request.time.is_none_or(|time| started.elapsed() < time)
    {
        let number = request.first.wrapping_add(outcome.cases);
        match one(request, number, &scratch, limits, &mut outcome.drawn) {
            (_, Verdict::Interrupted) => break,
            (_, Verdict::Passed) => {}
            (_, Verdict::Refused(reason)) => {
                outcome.refused += 1;
                if outcome.reasons.len() < MAX_REASONS {
                    outcome.reasons.push(format!("case {number}: {reason}"));
                }
            }
            (draft, Verdict::Failed(failure)) => {
                let again = format!("anabranch soak --seed {} --case {number}{}", request.seed, request.only.flags);
                let failed = match (&kept, draft) {
                    (Some(kept), Some(draft)) => {
                        let mut fails = |draft: &draft::Draft, mode| check(draft, scratch.path(), &[mode], limits);
                        kept.keep(number, &draft, failure, &again, &scratch, &mut fails)?
                    }
                    _ => Failed::new(Some(number), &failure, None, &[], again),
                };
                outcome.failures.push(failed);
            }
        }
        outcome.cases += 1;
        outcome.too_many = outcome.failures.len() >= MAX_FAILURES;
        progress(&SoakProgress {
            cases: outcome.cases,
            refused: outcome.refused,
            failed: outcome.failures.len(),
            share: share(&outcome),
        });
        if outcome.too_many {
            break;
        }
    }
    outcome.interrupted = limits.stopped();
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}

/// Refuses restrictions that no case suits.
fn can_be_drawn(request: &Request, scratch: &tempfile::TempDir) -> Result<(), ScenarioError> {
    let mut refused: Vec<(usize, String)> = Vec::new();
    for number in 0..FIRST_CASES {
        match draw::case(request.seed, request.first.wrapping_add(number), &request.only, scratch.path()) {
            Ok(_) => return Ok(()),
            Err(error) => {
                let error = error.to_string();
                match refused.iter_mut().find(|(_, known)| *known == error) {
                    Some((count, _)) => *count += 1,
                    None => refused.push((1, error)),
                }
            }
        }
    }
    let Some((count, error)) = refused.into_iter().max_by_key(|(count, _)| *count) else { return Ok(()) };
    let what = request.only.flags.trim();
    let message = format!("`{what}`: none of {FIRST_CASES} cases can be run; {count} of them: {error}");
    Err(ScenarioError::new(message).help("choose a scheme and a topology that go together"))
}

fn one(
    request: &Request,
    number: u64,
    scratch: &tempfile::TempDir,
    limits: Limits,
    drawn: &mut Tally,
) -> (Option<draft::Draft>, Verdict) {
    let draft = match draw::case(request.seed, number, &request.only, scratch.path()) {
        Ok(draft) => draft,
        Err(error) => return (None, Verdict::Refused(error.to_string())),
    };
    drawn.add(&draft);
    let mut verdict = check(&draft, scratch.path(), OTHER_MODES, limits);
    if matches!(verdict, Verdict::Failed(Failure { kind: FailureKind::Slow, .. })) {
        verdict = check(&draft, scratch.path(), OTHER_MODES, Limits { run: limits.run * RETRY_FACTOR, ..limits });
    }
    (Some(draft), verdict)
}

/// Checks scenarios in every mode: a scenario (a file or a ready-made one), a kept case, or a directory of kept cases.
/// Fails if there is no such scenario, or it cannot be run.
pub fn again(name: &str, stop: &'static AtomicBool) -> Result<SoakOutcome, ScenarioError> {
    let started = Instant::now();
    let limits = Limits { run: RUN * RETRY_FACTOR, stop };
    let mut outcome = SoakOutcome::default();
    let scenarios = scenarios(Path::new(name))?;
    let only = scenarios.len() == 1;
    for scenario in scenarios {
        let (read, setup) = draft::read(&scenario)?;
        match check_setup(&read, setup, OTHER_MODES, limits) {
            Verdict::Interrupted => break,
            Verdict::Passed => {}
            Verdict::Refused(reason) if only => return Err(read.setup_error(&reason)),
            Verdict::Refused(reason) => {
                outcome.refused += 1;
                outcome.reasons.push(format!("{scenario}: {reason}"));
            }
            Verdict::Failed(failure) => {
                let again = format!("anabranch soak --again {}", anabranch_scenario::machine::quoted(&scenario));
                outcome.failures.push(Failed::new(None, &failure, Some(scenario.into()), &[], again));
            }
        }
        outcome.cases += 1;
    }
    outcome.interrupted = limits.stopped();
    outcome.seconds = started.elapsed().as_secs_f64();
    Ok(outcome)
}

fn scenarios(at: &Path) -> Result<Vec<String>, ScenarioError> {
    let name = |path: PathBuf| path.to_string_lossy().into_owned();
    if !at.is_dir() {
        return Ok(vec![name(at.to_path_buf())]);
    }
    if at.join(SCENARIO).is_file() {
        return Ok(vec![name(at.join(SCENARIO))]);
    }
    let entries = fs::read_dir(at).map_err(|error| ScenarioError::new(format!("{}: {error}", at.display())))?;
    let cases = entries.filter_map(|entry| Some(entry.ok()?.path().join(SCENARIO)));
    let mut cases: Vec<String> = cases.filter(|path| path.is_file()).map(name).collect();
    cases.sort();
    match cases.is_empty() {
        true => Err(ScenarioError::new(format!("{} contains no {SCENARIO}, and no directory with one", at.display()))
            .help("name a scenario, a case that `anabranch soak` kept, or a directory of such cases")),
        false => Ok(cases),
    }
}
