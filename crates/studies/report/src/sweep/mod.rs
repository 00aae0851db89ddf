//! Sweeps: one comparison per point of a grid. `plan.json` contains the plan; the runs are in `runs/`, each in a
//! directory of its own that is complete as soon as it exists. [`Sweep::read`] computes all results from them.

mod conclusions;
mod curves;
mod heat;
mod model;
mod page;
mod tables;

pub use model::Sweep;

use crate::{
    Caption, Figure, FigureFiles, FigureStyle, Layout, figures::PAGE_LAYOUT, stage_style, style_folder, wording,
};
use anabranch_results::{
    Axis, ColumnKind, FileEntry, Inputs, Label, Manifest, Member, OutputDir, PAGE, PLAN, Plan, PlannedRun, ReportError,
    Staging, plan_entries, stage_gathered, store_directory, to_json,
};
use model::RunState;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

fn labels(plan: &Plan) -> Vec<Label> {
    let axis = |axis: &Axis| {
        let kind = match () {
            () if axis.values.iter().all(|value| value.parse::<i64>().is_ok()) => ColumnKind::Integer,
            () if axis.values.iter().all(|value| value.parse::<f64>().is_ok()) => ColumnKind::Real,
            () => ColumnKind::Text,
        };
        Label { name: axis.key.clone(), kind, meaning: "value of this key of the scenario".into() }
    };
    let text = |name: &str, meaning: &str| Label { name: name.into(), kind: ColumnKind::Text, meaning: meaning.into() };
    let mut labels: Vec<Label> = plan.axes.iter().map(axis).collect();
    labels.push(text("entry", "load balancer or variant, as in sweep.csv"));
    labels.push(text("run", "hash of the run, the name of its directory in `runs`"));
    labels
}

/// Writes the tables, figures and page of the sweep in `dir` over its finished runs, and returns the sweep and the
/// page's path.
///
/// `rows`: also the rows of all runs, a Parquet file per table. The manifest records `state`, the state of the runs.
/// Fails if `dir` contains no sweep or no finished run, or if a file cannot be read or written.
pub fn report_sweep(dir: &Path, rows: bool, state: &str) -> Result<(Sweep, PathBuf), ReportError> {
    report_sweep_in(dir, rows, state, FigureStyle::Page).map(|(sweep, page, _)| (sweep, page))
}

/// Writes the same with figures of `style`, and returns the page's path and the number of these figures.
pub(crate) fn report_sweep_styled(dir: &Path, style: FigureStyle) -> Result<(PathBuf, usize), ReportError> {
    report_sweep_in(dir, true, "", style).map(|(_, page, figures)| (page, figures))
}

fn draw(sweep: &Sweep, layout: Layout) -> Vec<Figure> {
    [curves::draw(sweep, layout), heat::draw(sweep, layout)].into_iter().flatten().collect()
}

fn report_sweep_in(
    dir: &Path,
    rows: bool,
    state: &str,
    style: FigureStyle,
) -> Result<(Sweep, PathBuf, usize), ReportError> {
    let none = || ReportError::NoResults { path: dir.to_path_buf() };
    let sweep = Sweep::read(dir)?.ok_or_else(none)?;
    if sweep.counts().0 == 0 {
        return Err(none());
    }
    let figures = draw(&sweep, PAGE_LAYOUT);
    let mut staging = Staging::new(OutputDir::keeping(dir, Inputs::default())?)?;
    let provenance = sweep.provenance();
    let drawn: Vec<FigureFiles> =
        figures.iter().map(|figure| FigureFiles::stage(figure, &provenance, &mut staging)).collect::<Result<_, _>>()?;
    let mut manifest = manifest(dir, &sweep, &figures, state);
    let caption = caption(&sweep);
    for layout in style.layouts() {
        let entries = stage_style(&draw(&sweep, *layout), layout, &caption, &provenance, &mut staging)?;
        manifest.files.extend(entries);
    }
    // Those of an earlier call stay while the results are the same.
    let same = staging.target().manifest().filter(|old| old.runs == manifest.runs);
    let of_style = |file: &&FileEntry| {
        style_folder(&file.name).is_some_and(|folder| style.layouts().iter().all(|layout| layout.folder != folder))
    };
    manifest.files.extend(same.iter().flat_map(|old| old.files.iter().filter(of_style)).cloned());
    staging.write_all(PLAN, to_json(&sweep.plan))?;
    staging.write_all("sweep.csv", sweep.to_csv())?;
    staging.write_all("runs.csv", sweep.runs_csv())?;
    staging.write_all(PAGE, page::render(&sweep, &figures, &drawn)?)?;
    if rows {
        let finished = sweep.plan.runs.iter().zip(&sweep.states);
        let finished = finished.filter(|(_, state)| matches!(state, RunState::Finished { .. }));
        let member = |run: &PlannedRun| {
            let values = sweep.plan.values(run.point).into_iter().map(str::to_string);
            let entry = sweep.plan.entries[run.entry].clone();
            Member {
                directory: store_directory(dir, &run.run),
                labels: values.chain([entry, run.run.clone()]).collect(),
            }
        };
        let members: Vec<Member> = finished.map(|(run, _)| member(run)).collect();
        stage_gathered(&mut staging, &mut manifest, &labels(&sweep.plan), &members)?;
    }
    staging.publish(manifest)?;
    let drawn = if style == FigureStyle::Page { 0 } else { figures.len() };
    Ok((sweep, dir.join(PAGE), drawn))
}

fn caption(sweep: &Sweep) -> Caption {
    let (finished, runs) = (sweep.counts().0, sweep.plan.runs.len());
    let missing = (finished < runs).then(|| format!("{finished} of {runs} runs are finished"));
    let rows = sweep.main_rows();
    let tests = wording::tests(&rows.iter().collect::<Vec<_>>(), &sweep.plan.baseline)
        .map(|tests| format!("Main metric: {tests}, at each point"));
    Caption::new(&sweep.plan.seeds, tests, missing.into_iter().collect(), format!("Source: {}", sweep.provenance()))
}

fn manifest(dir: &Path, sweep: &Sweep, figures: &[Figure], state: &str) -> Manifest {
    let mut files = plan_entries();
    files.extend([
        FileEntry::new("sweep.csv", "a row per point, workload, metric and scheme", sweep.columns()),
        FileEntry::new("runs.csv", "a row per run", sweep.run_columns()),
    ]);
    files.extend(figures.iter().flat_map(|figure| figure.entries(&PAGE_LAYOUT)));
    files.push(FileEntry::page());
    let finished = sweep.plan.runs.iter().zip(&sweep.states);
    let finished = finished.filter(|(_, state)| matches!(state, RunState::Finished { .. }));
    let rows = |(run, _): (&PlannedRun, &RunState)| {
        let manifest = Manifest::read(&store_directory(dir, &run.run)).ok().flatten()?;
        Some((run.run.clone(), manifest.rows_digest()?))
    };
    Manifest {
        fingerprints: fingerprints(sweep),
        runs: finished.filter_map(rows).collect(),
        run_states: state.to_string(),
        files,
        ..sweep.plan.described()
    }
}

fn fingerprints(sweep: &Sweep) -> BTreeMap<String, String> {
    let of = |(run, state): (&PlannedRun, &RunState)| match state {
        RunState::Finished { fingerprint, .. } => Some((run.run.clone(), fingerprint.clone()?)),
        _ => None,
    };
    sweep.plan.runs.iter().zip(&sweep.states).filter_map(of).collect()
}
