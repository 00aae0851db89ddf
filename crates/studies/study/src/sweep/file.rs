//! Sweep files: a TOML file whose `[sweep]` table holds the settings that flags of `anabranch sweep` give.

use super::over::{axis_from, axis_of};
use crate::Request;
use anabranch_results::Axis;
use anabranch_scenario::{Node, ScenarioError, Section, Tree, document::text, tree::Value};
use anabranch_settings::Raw;
use std::path::Path;

const KEYS: &[&str] = &["scenario", "over", "mode", "schemes", "seeds", "baseline", "variants"];

#[derive(Clone, Debug)]
pub struct SweepFile {
    /// The scenario: a file, or the name of a ready-made one.
    pub scenario: String,
    pub axes: Vec<Axis>,
    /// `true` if the axes advance together, instead of every value with every other.
    pub zip: bool,
    /// Load balancers, variants, seeds, baseline.
    pub request: Request,
}

impl SweepFile {
    /// Reads `path`; `None` where it is no file, or one without a `[sweep]` table.
    pub fn read(path: &Path) -> Result<Option<Self>, ScenarioError> {
        let name = path.display().to_string();
        let Ok(text) = anabranch_input::read_text(path, anabranch_input::MAX_TEXT) else { return Ok(None) };
        let Ok(tree) = Tree::parse(&name, &text) else { return Ok(None) };
        let mut root = Section::of(tree.root(), "the sweep file")?;
        let Some(mut section) = root.table("sweep")? else { return Ok(None) };
        if let Some((key, node)) = root.matching(|_| true).into_iter().next() {
            return Err(ScenarioError::new(format!("a sweep file holds [sweep] alone; found `{key}` beside it"))
                .at(node.key.clone())
                .help("keep the scenario in a separate file, and name it: `scenario = \"FILE\"`"));
        }
        let missing = |key: &str| section.error(format!("`{key}` is missing; allowed are {}", KEYS.join(", ")));
        let (no_scenario, no_over) = (missing("scenario"), missing("over"));
        let scenario: String = section.read("scenario")?.ok_or(no_scenario)?;
        // Relative to the folder of the file, as everywhere.
        let beside = path.parent().unwrap_or(Path::new("")).join(&scenario);
        let scenario = if beside.exists() { beside.to_string_lossy().into_owned() } else { scenario };
        let mut axes = Vec::new();
        flatten("", section.take("over").ok_or(no_over)?, &mut axes)?;
        let zip = section.word("mode", &["grid", "zip"])? == Some("zip");
        let schemes = section.read::<Vec<String>>("schemes")?.unwrap_or_default();
        let (seeds, baseline) = (section.read("seeds")?, section.read("baseline")?);
        let variants = variants(&mut section)?;
        section.finish(KEYS)?;
        Ok(Some(SweepFile {
            scenario,
            axes,
            zip,
            request: Request { schemes, variants, seeds, baseline, ..Request::default() },
        }))
    }
}

/// Collects the keys below `node`, dotted, with their values: a list, or text such as `"0.3..0.9:0.1"`.
pub fn flatten(prefix: &str, node: &Node, axes: &mut Vec<Axis>) -> Result<(), ScenarioError> {
    if let Value::Table(entries) = &node.value {
        for (key, below) in entries {
            let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            flatten(&key, below, axes)?;
        }
        return Ok(());
    }
    let axis = match (node.raw(), prefix) {
        (_, "") | (None, _) => {
            let message = format!("[sweep]: `over`: found {}, expected keys with their values", node.describe());
            return Err(ScenarioError::new(message).at(node.place.clone()).help(
                "for example `[sweep.over]` with lines such as `workload.0.load = \"0.3..0.9:0.1\"` and \
                 `topology.radix = [8, 16]`",
            ));
        }
        (Some(Raw::Text(text)), key) => axis_of(key, &text),
        (Some(Raw::List(items)), key) => axis_from(key, items.iter().map(text).collect()),
        (Some(raw), key) => axis_from(key, vec![text(&raw)]),
    };
    axes.push(axis.map_err(|error| error.at(node.place.clone()))?);
    Ok(())
}

/// Reads the variants of a table, in the form of `--variant`.
pub fn variants(section: &mut Section<'_>) -> Result<Vec<String>, ScenarioError> {
    match section.table("variants")? {
        None => Ok(Vec::new()),
        Some(table) => table.rest().map(|(name, node)| variant(name, node)).collect(),
    }
}

fn variant(name: &str, node: &Node) -> Result<String, ScenarioError> {
    match node.raw() {
        Some(Raw::Text(changes)) => Ok(format!("{name}={changes}")),
        _ => Err(ScenarioError::new(format!(
            "[sweep.variants]: `{name}`: found {}, expected text such as \"KEY=VALUE;KEY=VALUE\"",
            node.describe()
        ))
        .at(node.place.clone())),
    }
}
