use crate::{
    Failure, Format, INTERRUPTED, ProgressMode, complete, count, note, print, print_json,
    progress::{BAR_COLUMNS, LINE_INTERVAL, bar_or_lines},
    stderr_width, table,
};
use anabranch_scenario::{COMMIT, ScenarioError, VERSION};
use anabranch_soak::{Failed, FailureKind, Request, Restrictions, SoakOutcome, SoakProgress, again, soak as draw};
use anabranch_study::Hold;
use indicatif::ProgressBar;
use serde_json::{Value, json};
use std::{
    path::PathBuf,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Seed and number determine a case. It runs on 1, 2, 3 and 5 threads, with one and with many partitions, with lazy and eager ports, with and without measurements; results must be equal byte for byte. Exit code: 0 all cases passed, 1 a case failed, 2 invalid input, 130 interrupted."
)]
pub(crate) struct Soak {
    /// Minutes after which no case starts [default: 10, or no limit with --cases]
    #[arg(long, value_name = "N", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// Number of cases [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cases: Option<u64>,
    /// Seed of all cases [default: random]
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Draw only this load balancer; a host or switch scheme includes all its pairs
    #[arg(long, value_name = "NAME", add = complete::schemes())]
    pub(crate) scheme: Option<String>,
    /// Draw only this topology: a kind, a scenario whose [topology] is used, or a topology file
    #[arg(long, value_name = "FILE", add = complete::scenarios())]
    pub(crate) topology: Option<String>,
    /// Check only case N of --seed
    #[arg(long, value_name = "N", requires = "seed", conflicts_with_all = ["cases", "minutes"])]
    pub(crate) case: Option<u64>,
    /// Check a scenario, a kept case or a directory of kept cases instead
    #[arg(long, value_name = "SCENARIO", conflicts_with_all = ["minutes", "cases", "seed", "scheme", "topology", "case", "out"])]
    pub(crate) again: Option<String>,
    /// Directory for failing cases; must be empty or new [default: soak-failures/seed-S]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Progress output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) progress: ProgressMode,
}

impl Soak {
    pub(crate) fn first(&self) -> u64 {
        self.case.unwrap_or(0)
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|minutes| *minutes > 0.0 && *minutes <= 1e6)
        .ok_or_else(|| "expected minutes above 0, for example 60".into())
}

/// Upper bound of random seeds, so that they are short to type.
const MAX_CHOSEN_SEED: u64 = 1_000_000;

pub(crate) fn soak(arguments: &Soak) -> Result<(), Failure> {
    // Runs check for interruption themselves; what was found is kept.
    let _hold = Hold::take();
    let (outcome, seed) = match &arguments.again {
        Some(scenario) => (again(scenario, &INTERRUPTED)?, None),
        None => {
            let request = request(arguments)?;
            note(&format!("seed {}, version {VERSION}, commit {COMMIT}", request.seed));
            let mut progress = Progress::new(arguments.progress);
            let outcome = draw(&request, &INTERRUPTED, &mut |done| progress.show(done));
            progress.close();
            (outcome?, Some(request.seed))
        }
    };
    match arguments.format {
        Format::Json => {
            let mut all = json!({ "version": VERSION, "commit": COMMIT, "seed": seed, "first_case": seed.map(|_| arguments.first()) });
            if let (Value::Object(all), Value::Object(found)) = (&mut all, outcome.json()) {
                all.extend(found);
            }
            print_json(&all);
        }
        Format::Table => print(&text(&outcome, seed)),
    }
    match outcome.failures.len() {
        _ if outcome.interrupted => Err(Failure::Interrupted),
        0 => Ok(()),
        failed => Err(Failure::Check(format!("{failed} of {} cases failed", outcome.cases))),
    }
}

fn request(arguments: &Soak) -> Result<Request, ScenarioError> {
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        anabranch_random::mix(now.as_nanos() as u64) % MAX_CHOSEN_SEED
    });
    let cases = arguments.case.map(|_| 1).or(arguments.cases);
    // With a number of cases there is no time limit.
    let minutes = arguments.minutes.or(cases.is_none().then_some(10.0));
    Ok(Request {
        seed,
        first: arguments.first(),
        cases,
        time: minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
        only: Restrictions::new(arguments.scheme.as_deref(), arguments.topology.as_deref())?,
        out: Some(arguments.out.clone().unwrap_or_else(|| free_directory(seed))),
    })
}

fn free_directory(seed: u64) -> PathBuf {
    let name = |number: u64| match number {
        1 => PathBuf::from(format!("soak-failures/seed-{seed}")),
        _ => PathBuf::from(format!("soak-failures/seed-{seed}-{number}")),
    };
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(1))
}

struct Progress {
    bar: Option<ProgressBar>,
    lines: bool,
    started: Instant,
    last: Instant,
}

impl Progress {
    fn new(show: ProgressMode) -> Self {
        let ((bar, lines), now) = (bar_or_lines(show), Instant::now());
        Progress { bar, lines, started: now, last: now }
    }

    fn show(&mut self, progress: &SoakProgress) {
        let line = line(progress, self.started.elapsed());
        if let Some(bar) = &self.bar {
            bar.set_position((1000.0 * progress.share.unwrap_or(0.0)) as u64);
            bar.set_message(line.chars().take(stderr_width().saturating_sub(BAR_COLUMNS + 1)).collect::<String>());
        } else if self.lines && self.last.elapsed() >= LINE_INTERVAL {
            self.last = Instant::now();
            note(&line);
        }
    }

    fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(progress: &SoakProgress, elapsed: Duration) -> String {
    let SoakProgress { cases, refused, failed, share } = *progress;
    let left = share.filter(|share| *share > 0.01).map(|share| elapsed.mul_f64((1.0 - share).max(0.0) / share));
    let left = left.map_or("time left unknown".into(), |left| format!("{:.0} s left", left.as_secs_f64()));
    format!("{} cases | {failed} failed | {} refused | {left}", count(cases), count(refused))
}

fn text(outcome: &SoakOutcome, seed: Option<u64>) -> String {
    let of = |kind: FailureKind| count(outcome.failures.iter().filter(|failed| failed.kind == kind).count() as u64);
    let kinds = FailureKind::ALL.map(of);
    let header = ["cases", "refused", "failed", "results differ", "broken", "too slow", "time (s)"];
    let [different, broken, slow] = kinds;
    let failed = count(outcome.failures.len() as u64);
    let seconds = format!("{:.0}", outcome.seconds);
    let row = vec![count(outcome.cases), count(outcome.refused), failed, different, broken, slow, seconds];
    let mut out = table(&header, &[row]);
    if let Some(seed) = seed {
        out += &format!("\nSeed {seed}.");
        if outcome.too_many {
            out += " Stopped early: too many cases failed.";
        }
        out += "\n";
    }
    out + &outcome.failures.iter().map(one).collect::<String>()
}

fn one(failed: &Failed) -> String {
    let name = failed.case.map_or_else(String::new, |case| format!("case {case}: "));
    let at = failed.at.as_ref().map_or_else(String::new, |at| format!("  kept in {}\n", at.display()));
    let commands: String = failed.commands.iter().map(|command| format!("    {command}\n")).collect();
    format!("\n{name}{}: {}\n{at}  to reproduce:\n{commands}", failed.mode, failed.text)
}
