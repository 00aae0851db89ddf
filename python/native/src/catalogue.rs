//! Catalogue of names, explanations, and the command line program.

use crate::{error, scenario::Scenario, wait};
use anabranch_scenario::{explain as study, library};
use anabranch_settings::Level;
use pyo3::prelude::*;
use std::ffi::OsString;

/// Entries of a kind: name, sort, meaning.
#[pyfunction]
pub(crate) fn catalogue(kind: &str) -> PyResult<Vec<(String, &'static str, String)>> {
    let kinds = [
        ("schemes", study::CatalogueKind::Schemes),
        ("topologies", study::CatalogueKind::Topologies),
        ("transports", study::CatalogueKind::Transports),
        ("workloads", study::CatalogueKind::Workloads),
        ("scenarios", study::CatalogueKind::Scenarios),
        ("paper-scenarios", study::CatalogueKind::PaperScenarios),
    ];
    let names = kinds.map(|(name, _)| name);
    let Some((_, kind)) = kinds.into_iter().find(|(name, _)| *name == kind) else {
        let message = format!("unknown kind `{kind}`; allowed are {}", names.join(", "));
        let near = anabranch_settings::nearest(kind, names);
        let error = anabranch_scenario::ScenarioError::new(message);
        return Err(error::scenario(&match near {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }));
    };
    Ok(study::catalogue(kind).into_iter().map(|entry| (entry.name, entry.sort, entry.meaning)).collect())
}

/// Explanation of a name, as JSON and as text.
#[pyfunction]
pub(crate) fn explain(name: &str, columns: usize) -> PyResult<(String, String)> {
    let explanation = anabranch_study::explain::explain(name).map_err(|e| error::scenario(&e))?;
    Ok((explanation.json().to_string(), explanation.at(&[Level::User]).text(columns)))
}

/// JSON Schema of scenario files.
#[pyfunction]
pub(crate) fn schema() -> String {
    anabranch_scenario::schema::schema().to_string()
}

/// Ready-made scenarios: name and text.
#[pyfunction]
pub(crate) fn ready_made() -> Vec<(&'static str, &'static str)> {
    library::READY_MADE.iter().map(|ready| (ready.name, ready.text)).collect()
}

/// Returns the nearest of `names` to `found`.
#[pyfunction]
pub(crate) fn nearest(found: &str, names: Vec<String>) -> Option<String> {
    anabranch_settings::nearest(found, names.iter().map(String::as_str))
}

/// Returns the mean of values and its 95 % confidence interval (Student's t) for two or more.
#[pyfunction]
pub(crate) fn estimate(values: Vec<f64>) -> (f64, Option<f64>, Option<f64>) {
    let estimate = anabranch_statistics::Estimate::of(&values);
    let (low, high) = estimate.as_ref().and_then(|estimate| estimate.interval()).unzip();
    (estimate.map_or(f64::NAN, |estimate| estimate.mean), low, high)
}

/// Returns the styles of the schemes of a figure: colour, lengths of dashes and gaps, and number of the marker.
#[pyfunction]
pub(crate) fn line_styles(names: Vec<String>) -> Vec<(&'static str, &'static str, usize)> {
    anabranch_report::line_styles(&names).into_iter().map(|style| (style.colour, style.dash, style.marker)).collect()
}

type SizeRow = ([u64; 3], usize, Option<f64>, Option<(f64, f64)>);

/// Returns a quantile of the slowdown by flow size, points per scheme. `schemes`: sizes as little-endian integers of 64 bits, and
/// slowdowns as such floats, per scheme and seed.
#[pyfunction]
pub(crate) fn slowdown_by_size(schemes: Vec<Vec<(Vec<u8>, Vec<u8>)>>, quantile: f64) -> Vec<Vec<SizeRow>> {
    let flows = |(sizes, slowdowns): (Vec<u8>, Vec<u8>)| {
        let (sizes, slowdowns) = (sizes.as_chunks::<8>().0, slowdowns.as_chunks::<8>().0);
        let both = sizes.iter().zip(slowdowns);
        both.map(|(size, slowdown)| (u64::from_le_bytes(*size), f64::from_le_bytes(*slowdown))).collect()
    };
    let schemes: Vec<Vec<Vec<(u64, f64)>>> =
        schemes.into_iter().map(|seeds| seeds.into_iter().map(flows).collect()).collect();
    let point = |point: anabranch_report::SizePoint| (point.sizes, point.flows, point.slowdown, point.interval);
    let points = anabranch_report::slowdown_by_size(&schemes, quantile);
    points.into_iter().map(|of| of.into_iter().map(point).collect()).collect()
}

/// Returns a scenario's graph, and the paths of a pair of hosts, as JSON.
#[pyfunction]
#[pyo3(signature = (scenario, pair=None))]
pub(crate) fn topology(py: Python<'_>, scenario: &Scenario, pair: Option<[String; 2]>) -> PyResult<String> {
    let scenario = scenario.checked.clone();
    wait::attend(py, 1, None, move |_| anabranch::topology_of(&scenario, pair.as_ref()))?
        .map(|answer| answer.to_string())
        .map_err(|e| error::scenario(&e))
}

/// Runs the program with `words`, the first being its name. Returns the exit code.
#[pyfunction]
pub(crate) fn command(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| anabranch::command(words, anabranch::BACKENDS))
}
