use crate::{
    Caption, Comparison, Dataset, Figure, FigureFiles, FigureStyle, SeriesSums,
    agreement::report_agreement,
    figures::{PAGE_LAYOUT, draw_all},
    page, stage_style, style_folder,
    sweep::report_sweep_styled,
    view::with_link,
};
use anabranch_results::{
    FileEntry, Manifest, OutputDir, PAGE, Plan, ReportError, SUMMARY, Staging, VIEW, read_limits, to_json,
};
use std::path::{Path, PathBuf};

/// Returns the comparison of the summaries in `dir`; `None` for a single run's directory.
/// Fails if `dir` contains no results or they cannot be read.
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
    Some(comparison.with_limits(read_limits(dir).ok().flatten().as_ref()))
}

/// Draws the figures of the run, comparison or sweep in `dir`, writes `report.html` from its rows, and returns the page's path.
///
/// Fails if `dir` contains no results, they cannot be read, or a file cannot be written. All results are read first.
pub fn report(dir: &Path) -> Result<PathBuf, ReportError> {
    report_styled(dir, FigureStyle::Page, false).map(|drawn| drawn.page)
}

/// Draws as [`report`] a run that this process has just written to `dir`, whose series `sums` are: their rows are not read.
pub fn report_run(dir: &Path, sums: &SeriesSums) -> Result<PathBuf, ReportError> {
    draw(dir, FigureStyle::Page, false, Some(sums)).map(|(page, _)| page)
}

/// Draws as [`report`], but also shows several workloads pooled as one, and labels them so.
pub fn report_pooled(dir: &Path) -> Result<PathBuf, ReportError> {
    report_styled(dir, FigureStyle::Page, true).map(|drawn| drawn.page)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redrawn {
    pub page: PathBuf,
    /// Directories of the figures of the style, none for [`FigureStyle::Page`].
    pub folders: Vec<PathBuf>,
    /// Figures of the style.
    pub figures: usize,
}

/// Draws as [`report`], and the same figures once more for `style`. `pooled`: as [`report_pooled`].
///
/// Figures of a style stay until the results change.
/// Fails as [`report`], and if `dir` has the two sides of a comparison of backends, whose page has no figures.
pub fn report_styled(dir: &Path, style: FigureStyle, pooled: bool) -> Result<Redrawn, ReportError> {
    let drawn = draw(dir, style, pooled, None)?;
    let folders = if drawn.1 == 0 { &[] } else { style.layouts() };
    let folders = folders.iter().map(|layout| dir.join("figures").join(layout.folder)).collect();
    Ok(Redrawn { page: drawn.0, folders, figures: drawn.1 })
}

fn draw(
    dir: &Path,
    style: FigureStyle,
    with_all: bool,
    sums: Option<&SeriesSums>,
) -> Result<(PathBuf, usize), ReportError> {
    if let Some(page) = report_agreement(dir)? {
        if style != FigureStyle::Page {
            let remedy = "draw those of one backend: name its directory";
            return Err(ReportError::content(dir, "results of several backends have no figures", remedy));
        }
        return Ok((page, 0));
    }
    if Plan::read(dir)?.is_some_and(|plan| !plan.is_comparison()) {
        return report_sweep_styled(dir, style);
    }
    let data = Dataset::read_with(dir, sums)?;
    let comparison = compared(dir, &data);
    let drawn = draw_all(&data, comparison.as_ref(), with_all, PAGE_LAYOUT);
    let provenance = data.provenance();
    let mut staging = Staging::new(OutputDir::open(dir)?)?;
    let mut files = vec![];
    for figure in &drawn.figures {
        files.push(FigureFiles::stage(figure, &provenance, &mut staging)?);
    }
    let mut manifest = with_figures(&data.manifest, &drawn.figures);
    let caption = Caption::of(&data, comparison.as_ref());
    for layout in style.layouts() {
        let drawn = draw_all(&data, comparison.as_ref(), with_all, *layout);
        let entries = stage_style(&drawn.figures, layout, &caption, &provenance, &mut staging)?;
        manifest.files.retain(|file| style_folder(&file.name) != Some(layout.folder));
        manifest.files.extend(entries);
    }
    let page = page::render(&data, comparison.as_ref(), &drawn, &files, with_all)?;
    if let Some(comparison) = &comparison {
        staging.write_all("comparison.csv", comparison.to_csv())?;
        staging.write_all("comparison.json", to_json(comparison))?;
    }
    let page = if manifest.file(VIEW).is_some() { with_link(&page) } else { page };
    staging.write_all(PAGE, page)?;
    staging.publish(manifest)?;
    let figures = if style == FigureStyle::Page { 0 } else { drawn.figures.len() };
    Ok((dir.join(PAGE), figures))
}

fn with_figures(manifest: &Manifest, figures: &[Figure]) -> Manifest {
    let mut manifest = manifest.clone();
    let is_redrawn = |name: &str| name == PAGE || name.starts_with("figures/") && style_folder(name).is_none();
    manifest.files.retain(|file| !is_redrawn(&file.name));
    manifest.files.extend(figures.iter().flat_map(|figure| figure.entries(&PAGE_LAYOUT)));
    manifest.files.push(FileEntry::page());
    manifest
}
