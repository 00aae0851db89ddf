use super::{
    agree::{unlike, write_and_print_agreement},
    request::{directory, request, runs_failed, threads, unfinished},
    run::print_result_paths,
};
use crate::{
    BackendArguments, EntryArguments, Failure, Format, INTERRUPTED, NumberedProgress, RunOptions, ScenarioArguments,
    arguments, complete, note, print, print_json, select_backends, table::Table as Drawn, width, wrapped,
};
use anabranch_report::{Side, Sweep as Table};
use anabranch_results::{Inputs, Plan, bytes};
use anabranch_scenario::{BackendEntry, SIMULATOR, ScenarioError, library};
use anabranch_study::{
    Again, Options, Place, Request, begin_backends, sweep,
    sweep::{DryRun, SweepFile, Swept, over},
};
use serde_json::{Value, json};
use std::{path::Path, sync::atomic::Ordering, time::Duration};

#[derive(Debug, clap::Args)]
pub(crate) struct Sweep {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) on: BackendArguments,
    /// Key and its values: KEY=A,B,... or KEY=A..B:STEP; repeatable
    #[arg(long, value_name = "KEY=VALUES", add = complete::keys())]
    pub(crate) over: Vec<String>,
    /// Combine the first values of all keys, then the second values, instead of every combination
    #[arg(long)]
    pub(crate) zip: bool,
    #[command(flatten)]
    pub(crate) entries: EntryArguments,
    /// Estimate time and memory from one run, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the runs with their hashes, and run nothing
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) list: bool,
    /// Run share K of N of the runs, K from 1
    #[arg(long, value_name = "K/N", conflicts_with_all = ["dry_run", "list"])]
    pub(crate) task: Option<String>,
    /// Address of a Dask scheduler whose workers do the runs (Python package only)
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dry_run", "list", "task"])]
    pub(crate) dask: Option<String>,
    /// Repeat finished runs: all, or the failed ones
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<arguments::Again>,
    /// Replace tables and figures of another sweep in the directory; its runs stay
    #[arg(long)]
    pub(crate) replace: bool,
    /// Exit with 1 if a flow did not finish
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Maximum number of printed rows; `sweep.csv` has all.
const MAX_ROWS: usize = 100;
/// Maximum time of the run of `--dry-run`.
const MAX_DRY_RUN: Duration = Duration::from_secs(20);

pub(crate) fn sweep(arguments: &Sweep, backends: &[&'static BackendEntry]) -> Result<(), Failure> {
    let chosen = select_backends(&arguments.on, backends)?;
    if chosen.len() > 1 && (arguments.list || arguments.dry_run) {
        return Err(ScenarioError::new("--list and --dry-run: found several backends, expected one")
            .help("name one with --backend, for example --backend sim")
            .into());
    }
    if let Some(address) = &arguments.dask {
        let message = format!("--dask {address}: this program has no Dask; that of the Python package does");
        return Err(ScenarioError::new(message)
            .help("pip install 'anabranch[dask]', and repeat the command; or use --task K/N")
            .into());
    }
    let sweeps = chosen.iter().map(|backend| plan(arguments, backend)).collect::<Result<Vec<_>, _>>()?;
    // Check before `enter` restarts the process in new namespaces.
    if chosen.iter().any(|backend| backend.enter.is_some()) {
        let (first, _) = &sweeps[0];
        let first_seed = |number: &&usize| first.plan.seeds.first() == Some(&first.plan.runs[**number].seed);
        for number in first.order().iter().filter(first_seed) {
            let scenario = first.scenario(*number)?;
            let setup = scenario.setup(scenario.seed)?;
            let mut entered = chosen.iter().filter(|backend| backend.enter.is_some());
            entered.try_for_each(|backend| scenario.check(&setup, backend))?;
        }
        chosen.iter().filter_map(|backend| backend.enter).try_for_each(|enter| enter())?;
    }
    let (first, name) = &sweeps[0];
    let name = match chosen.as_slice() {
        [backend] if *backend == &SIMULATOR => name.clone(),
        several => format!("{name}-{}", several.iter().map(|backend| backend.name).collect::<Vec<_>>().join("-")),
    };
    let directory = directory(&arguments.options, &format!("{name}-sweep"), first.identity())?;
    if let [(sweep, _)] = sweeps.as_slice() {
        return match sweep_on(arguments, sweep, &Place::one(&directory))? {
            Some(swept) => {
                print_outcome(sweep, &swept, &directory, arguments.options.format)?;
                if arguments.strict { unfinished(&unfinished_points(&swept)) } else { Ok(()) }
            }
            None => Ok(()),
        };
    }
    if !arguments.list && !arguments.dry_run {
        let plans = sweeps.iter().zip(&chosen).map(|((sweep, _), backend)| (backend.name, sweep.plan.clone()));
        begin_backends(&directory, &Plan::of_backends(plans), &first.inputs(), arguments.replace)?;
    }
    let (mut sides, mut open) = (Vec::new(), Vec::new());
    for ((sweep, _), backend) in sweeps.iter().zip(&chosen) {
        note(&format!("on `{}`:", backend.name));
        let Some(swept) = sweep_on(arguments, sweep, &Place::side(&directory, backend.name))? else { continue };
        ended(&swept)?;
        open.extend(unfinished_points(&swept).into_iter().map(|line| format!("{line} on {}", backend.name)));
        sides.push(Side::read(backend.name, &directory)?);
    }
    if sides.len() < chosen.len() || sides.iter().any(|side| side.runs.is_empty()) {
        return Ok(());
    }
    let inputs = Inputs::of(first.inputs());
    let point = first.order().first().copied().unwrap_or_default();
    let unlike = unlike(&first.scenario(point)?, &chosen)?;
    write_and_print_agreement(&sides, &sides[0].schemes(), None, unlike, &directory, inputs, &arguments.options)?;
    if arguments.strict { unfinished(&open) } else { Ok(()) }
}

/// Runs the missing runs of `sweep` in `place`; `None` with `--list` and `--dry-run`.
fn sweep_on(arguments: &Sweep, sweep: &sweep::Sweep, place: &Place) -> Result<Option<Swept>, Failure> {
    let directory = place.runs();
    if arguments.list {
        return list(sweep, directory, arguments.options.format).map(|()| None);
    }
    for warning in sweep.warnings() {
        note(&format!("warning: {warning}"));
    }
    let threads = threads(&arguments.options);
    if arguments.dry_run {
        let interrupted = || INTERRUPTED.load(Ordering::Relaxed);
        let dry = sweep.dry_run(directory, threads, MAX_DRY_RUN, &interrupted)?;
        if interrupted() {
            return Err(Failure::Interrupted);
        }
        print_dry_run(sweep, &dry, directory, arguments.options.format);
        return Ok(None);
    }
    let again = match arguments.again {
        None => Again::No,
        Some(arguments::Again::Failed) => Again::Failed,
        Some(arguments::Again::All) => Again::All,
    };
    let task = arguments.task.as_deref().map(share).transpose()?;
    let options = Options { threads, again, replace: arguments.replace, task };
    let due = sweep.due(directory, &options).into_iter().map(|number| (number, sweep.name(number))).collect();
    let watch = NumberedProgress::new(arguments.options.progress, due, sweep.plan.runs.len());
    let swept = sweep.execute(place, options, &watch);
    watch.watch.close();
    Ok(Some(swept?))
}

/// Returns the sweep of the options, or of a file with a `[sweep]` table.
fn plan(arguments: &Sweep, backend: &'static BackendEntry) -> Result<(sweep::Sweep, String), Failure> {
    let asked = &arguments.scenario;
    let file = SweepFile::read(Path::new(&asked.scenario))?;
    let (name, axes, zip, request) = match file {
        Some(file) => {
            let entries = &arguments.entries;
            let given = [
                ("--over", !arguments.over.is_empty()),
                ("--zip", arguments.zip),
                ("--schemes", !entries.schemes.is_empty()),
                ("--variant", !entries.variants.is_empty()),
                ("--seeds", entries.seeds.is_some()),
                ("--baseline", entries.baseline.is_some()),
            ];
            if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
                let message = format!("{flag}: found beside {}, a sweep file, which defines it", asked.scenario);
                return Err(ScenarioError::new(message)
                    .help("change the file, or name a scenario instead of a sweep file")
                    .into());
            }
            (file.scenario, file.axes, file.zip, file.request)
        }
        None => {
            let axes = arguments.over.iter().map(|text| over::axis(text)).collect::<Result<Vec<_>, _>>()?;
            (asked.scenario.clone(), axes, arguments.zip, request(&arguments.entries))
        }
    };
    let base = library::load(&name, &asked.set, asked.seed)?;
    for warning in base.warnings() {
        note(&format!("warning: {warning}"));
    }
    let stem = match Path::new(&asked.scenario).is_file() {
        true => Path::new(&asked.scenario).file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        false => base.stem.clone(),
    };
    Ok((sweep::Sweep::new(base, axes, zip, &Request { backend, ..request })?, stem))
}

fn share(text: &str) -> Result<(usize, usize), Failure> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.trim().parse().ok()?, n.trim().parse().ok()?)));
    match parts {
        Some((k, n)) if (1..=n).contains(&k) => Ok((k, n)),
        _ => Err(ScenarioError::new(format!("--task {text}: expected K/N with K from 1 to N"))
            .help("for example --task 3/8, the third of eight shares")
            .into()),
    }
}

fn list(sweep: &sweep::Sweep, directory: &Path, format: Format) -> Result<(), Failure> {
    let status = |run: &str| match () {
        () if anabranch_results::is_complete_run(&anabranch_results::store_directory(directory, run)) => "finished",
        () if anabranch_results::failed_file(directory, run).exists() => "failed",
        () => "missing",
    };
    let plan = &sweep.plan;
    match format {
        Format::Json => {
            let one = |number: &usize| {
                let run = &plan.runs[*number];
                json!({ "run": run.run, "over": values(plan, run.point), "scheme": plan.entries[run.entry], "seed": run.seed,
                        "status": status(&run.run) })
            };
            let runs: Vec<Value> = sweep.order().iter().map(one).collect();
            print_json(&json!({ "directory": directory.to_string_lossy(), "runs": runs }));
        }
        Format::Table => {
            let mut header: Vec<&str> = vec!["run", "status"];
            header.extend(plan.axes.iter().map(|axis| axis.key.as_str()));
            header.extend(["scheme", "seed"]);
            let row = |number: &usize| {
                let run = &plan.runs[*number];
                let mut row = vec![run.run.clone(), status(&run.run).to_string()];
                row.extend(plan.values(run.point).into_iter().map(str::to_string));
                row.extend([plan.entries[run.entry].clone(), run.seed.to_string()]);
                row
            };
            let rows: Vec<_> = sweep.order().iter().map(row).collect();
            print(&Drawn::new(&header, rows).hide_first(&["status"]).draw());
        }
    }
    Ok(())
}

/// Returns the values of the keys at a point.
fn values(plan: &Plan, point: usize) -> Value {
    plan.axes.iter().zip(plan.values(point)).map(|(axis, value)| (axis.key.clone(), Value::from(value))).collect()
}

fn print_dry_run(sweep: &sweep::Sweep, dry: &DryRun, directory: &Path, format: Format) {
    let points = sweep.plan.points();
    let measured = dry.measured.as_ref();
    if format == Format::Json {
        print_json(&json!({
            "points": points,
            "runs": dry.runs,
            "missing": dry.missing,
            "measured": measured.map(|m| json!({ "run": m.name, "seconds": m.seconds, "stopped": m.stopped,
                                                 "memory_bytes": m.memory_bytes, "disk_bytes": m.disk_bytes })),
            "side_by_side": dry.side_by_side,
            "seconds": dry.seconds(),
            "directory": directory.to_string_lossy(),
        }));
        return;
    }
    let done = dry.runs - dry.missing;
    let mut text = format!("{points} points, {} runs, {done} of them done, in {}\n", dry.runs, directory.display());
    if let Some(m) = measured {
        let about = if m.stopped { "about " } else { "" };
        let memory = m.memory_bytes.map_or("unknown".to_string(), |bytes| format!("{:.0} MB", bytes as f64 / 1e6));
        // The gathered tables repeat the rows of the runs.
        let disk =
            |runs: usize| m.disk_bytes.map_or("unknown".to_string(), |each| bytes((2 * each) as f64 * runs as f64));
        text += &format!("Measured: {}: {about}{:.3} s, {memory} of memory, {} of disk\n", m.name, m.seconds, disk(1));
        text += &format!(
            "If the {} missing runs are similar, {} in parallel take {} and {} of disk\n",
            dry.missing,
            dry.side_by_side,
            duration(dry.seconds()),
            disk(dry.missing)
        );
    }
    print(&text);
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn print_outcome(sweep: &sweep::Sweep, swept: &Swept, directory: &Path, format: Format) -> Result<(), Failure> {
    if swept.reused > 0 {
        note(&format!("{} of {} runs were already finished and not repeated", swept.reused, swept.share));
    }
    let runs = sweep.order().len();
    match format {
        Format::Json => {
            let rows = swept.table.as_ref().map(|(table, _)| rows(table));
            let failed: Vec<Value> =
                swept.failed.iter().map(|(name, error)| json!({ "run": name, "error": error })).collect();
            print_json(&json!({
                "scenario": sweep.plan.name,
                "over": sweep.plan.axes.iter().map(|axis| json!({ "key": axis.key, "values": axis.values })).collect::<Vec<_>>(),
                "schemes": sweep.plan.entries,
                "seeds": sweep.plan.seeds,
                "baseline": sweep.plan.baseline,
                "runs": runs,
                "reused_runs": swept.reused,
                "missing": swept.missing,
                "failed": failed,
                "interrupted": swept.interrupted,
                "sweep": rows,
                "directory": directory.to_string_lossy(),
            }));
        }
        Format::Table => {
            if let Some((told, _)) = &swept.table {
                print(&text(told));
            }
        }
    }
    match &swept.table {
        Some((_, page)) => print_result_paths(directory, page),
        None if swept.missing == 0 => note(&format!("results in {}; all {runs} runs failed", directory.display())),
        None => note(&format!(
            "results in {}; {} of {runs} runs are missing, tables and figures follow once all are finished",
            directory.display(),
            swept.missing
        )),
    }
    ended(swept)
}

/// Returns a line per point and scheme with unfinished flows.
fn unfinished_points(swept: &Swept) -> Vec<String> {
    let Some((table, _)) = &swept.table else { return Vec::new() };
    let mut open: Vec<String> = vec![];
    for (point, comparison) in table.comparisons.iter().enumerate() {
        let values = table.plan.axes.iter().zip(table.plan.values(point));
        let place: String = values.map(|(axis, value)| format!("{}={value}, ", axis.key)).collect();
        let rows = comparison.iter().flat_map(|comparison| &comparison.rows).filter(|row| row.unfinished_flows > 0);
        open.extend(rows.map(|row| format!("\n  {place}{}: {}", row.scheme, row.unfinished_flows)));
    }
    open.dedup();
    open
}

fn ended(swept: &Swept) -> Result<(), Failure> {
    if swept.interrupted {
        note("partial: repeat the command to continue");
        return Err(Failure::Interrupted);
    }
    if !swept.failed.is_empty() {
        return Err(runs_failed(&swept.failed, swept.share));
    }
    Ok(())
}

/// Formats the table, with as many metrics as fit the terminal, at least the main one.
fn text(sweep: &Table) -> String {
    let drawn = |others: usize| {
        let (header, mut rows) = sweep.table(others);
        let all = rows.len();
        rows.truncate(MAX_ROWS);
        let more = all - rows.len();
        (Drawn::new(&header, rows).draw(), more)
    };
    let fits = |text: &str| text.lines().all(|line| line.chars().count() <= width());
    let others = (1..=2).rev().find(|others| fits(&drawn(*others).0)).unwrap_or(0);
    let (lines, more) = drawn(others);
    let mut text = format!("{}\n\n{lines}", sweep.plan.name);
    if more > 0 {
        text += &format!("{more} more rows in sweep.csv\n");
    }
    if others < 2 {
        let shown = sweep.table(others).0.len();
        let names: Vec<String> =
            sweep.table(2).0.split_off(shown).into_iter().filter(|name| name != "change").collect();
        let note = format!("columns hidden (narrow terminal), see sweep.csv: {}", names.join(", "));
        text += &(wrapped(&note, width()) + "\n");
    }
    text += "\n";
    for conclusion in sweep.conclusions() {
        text += &(wrapped(&conclusion, width()) + "\n");
    }
    text += "\n";
    for note in sweep.notes() {
        text += &(wrapped(&note, width()) + "\n");
    }
    text
}

fn rows(sweep: &Table) -> Value {
    let of = |(point, comparison): (usize, &Option<anabranch_report::Comparison>)| {
        let comparison = comparison.as_ref()?;
        let rows = serde_json::to_value(&comparison.rows).ok()?;
        Some(json!({ "over": values(&sweep.plan, point), "comparison": rows }))
    };
    sweep.comparisons.iter().enumerate().filter_map(of).collect()
}
