use crate::{
    agreement::report_agreement,
    comparison::Comparison,
    dataset::Dataset,
    error::ReportError,
    figures::{Figure, FigureFiles, draw_all},
    json::to_json,
    limits::Limits,
    manifest::{FileEntry, Manifest},
    names::{PAGE, SUMMARY, SWEEP, VIEW},
    output::OutputDir,
    page,
    staging::Staging,
    sweep::report_sweep,
    view::with_link,
};
use std::path::{Path, PathBuf};

/// Returns the comparison of the summaries in `dir`; `None` for a single run's directory.
///
/// # Errors
/// [`ReportError`] if `dir` contains no results or they cannot be read.
pub fn read_comparison(dir: &Path) -> Result<Option<Comparison>, ReportError> {
    Ok(compared(dir, &Dataset::read(dir)?))
}

fn compared(dir: &Path, data: &Dataset) -> Option<Comparison> {
    if dir.join(SUMMARY).exists() {
        return None;
    }
    let mut schemes: Vec<String> = data.manifest.schemes.clone();
    schemes.extend(data.schemes.iter().map(|s| s.name.clone()).filter(|name| !data.manifest.schemes.contains(name)));
    let has_run = |scheme: &&String| data.summaries.iter().any(|summary| summary.scheme == **scheme);
    let named = data.manifest.baseline.as_ref().filter(has_run);
    let baseline = named.or(schemes.iter().find(has_run))?.clone();
    let comparison = Comparison::planned(&data.summaries, &schemes, &baseline, data.manifest.until_decided.as_ref());
    Some(comparison.with_limits(Limits::read(dir).ok().flatten().as_ref()))
}

/// Draws the figures of the run, comparison or sweep in `dir`, writes `report.html` from its rows, and returns the page's path.
///
/// # Errors
/// [`ReportError`] if `dir` contains no results, they cannot be read, or a file cannot be written. All results are read first.
pub fn report(dir: &Path) -> Result<PathBuf, ReportError> {
    draw(dir, false)
}

/// Draws as [`report`], but also shows several workloads pooled as one, and labels them so.
pub fn report_pooled(dir: &Path) -> Result<PathBuf, ReportError> {
    draw(dir, true)
}

fn draw(dir: &Path, with_all: bool) -> Result<PathBuf, ReportError> {
    if let Some(page) = report_agreement(dir)? {
        return Ok(page);
    }
    if dir.join(SWEEP).exists() {
        return report_sweep(dir, true, "").map(|(_, page)| page);
    }
    let data = Dataset::read(dir)?;
    let comparison = compared(dir, &data);
    let drawn = draw_all(&data, comparison.as_ref(), with_all);
    let provenance = data.provenance();
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut files = vec![];
    for figure in &drawn.figures {
        files.push(FigureFiles::stage(figure, &provenance, &mut staging)?);
    }
    let manifest = with_figures(&data.manifest, &drawn.figures);
    let page = page::render(&data, comparison.as_ref(), &drawn, &files, with_all)?;
    if let Some(comparison) = &comparison {
        staging.write_all("comparison.csv", comparison.to_csv())?;
        staging.write_all("comparison.json", to_json(comparison))?;
    }
    let page = if manifest.file(VIEW).is_some() { with_link(&page) } else { page };
    staging.write_all(PAGE, page)?;
    staging.publish(manifest)?;
    Ok(dir.join(PAGE))
}

fn with_figures(manifest: &Manifest, figures: &[Figure]) -> Manifest {
    let mut manifest = manifest.clone();
    manifest.files.retain(|file| !file.name.starts_with("figures/") && file.name != PAGE);
    manifest.files.extend(figures.iter().flat_map(Figure::entries));
    manifest.files.push(FileEntry::page());
    manifest
}
