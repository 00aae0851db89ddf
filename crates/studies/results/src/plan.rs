//! The plan of a store: keys, values, schemes, seeds, backends, runs.

use crate::{Manifest, PLAN, ReportError, capital, read_json, run_name, store_directory};
use anabranch_statistics::Sequential;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A key with its values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    pub key: String,
    /// Values, as on the command line.
    pub values: Vec<String>,
    /// The values as numbers in one unit; empty if they are not numbers.
    pub numbers: Vec<f64>,
    /// Meaning of the key, from its declaration; empty in results of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

impl Axis {
    /// Returns the meaning of the key, else the key, up to the first semicolon or full stop.
    pub fn words(&self) -> &str {
        let end = self.meaning.find([';', '.', ':']).unwrap_or(self.meaning.len());
        let words = self.meaning[..end].trim();
        if words.is_empty() { &self.key } else { words }
    }

    /// Returns the unit of all values: the letters behind their numbers; empty if they have none or several.
    pub fn unit(&self) -> &str {
        let unit = |value: &'_ str| value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
        let Some(first) = self.values.first().filter(|_| self.numbers.len() == self.values.len()) else { return "" };
        let of_first = &first[unit(first)..];
        if self.values.iter().all(|value| &value[unit(value)..] == of_first) { of_first } else { "" }
    }

    /// Returns the values as ticks of an axis titled with [`unit`](Self::unit).
    pub fn ticks(&self) -> Vec<String> {
        let unit = self.unit();
        self.values.iter().map(|value| value.strip_suffix(unit).unwrap_or(value).to_string()).collect()
    }

    /// Returns the title of an axis at most as wide as `fits` allows, with the unit.
    pub fn title(&self, fits: impl Fn(&str) -> bool) -> String {
        let unit = match self.unit() {
            "" => String::new(),
            "bdp" => " [BDP]".to_string(),
            "us" => " [\u{b5}s]".to_string(),
            unit => unit.strip_suffix("bps").map_or_else(|| format!(" [{unit}]"), |prefix| format!(" [{prefix}bit/s]")),
        };
        let last = self.key.rsplit('.').next().unwrap_or(&self.key).replace('_', " ");
        let titles = [self.words(), &last].map(|words| format!("{}{unit}", capital(words)));
        titles.iter().find(|title| fits(title)).unwrap_or(&titles[1]).clone()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRun {
    pub point: usize,
    /// Index of the load balancer or variant in [`Plan::entries`].
    pub entry: usize,
    pub seed: u64,
    /// Index of the backend in [`Plan::backends`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub backend: usize,
    /// Hash of the run, the name of its directory in `runs`. Several runs may share one.
    pub run: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub name: String,
    pub version: String,
    pub commit: String,
    /// The scenario with all defaults, as TOML, before any key is set.
    pub scenario: String,
    /// Hash of that scenario, 16 hexadecimal digits.
    pub scenario_hash: String,
    /// Hash of what all runs share without keys: the scenario except load balancers and seed, 16 hexadecimal digits.
    pub ground: String,
    /// The keys with their values.
    pub axes: Vec<Axis>,
    /// `true` if the values of all keys change together (`zip`), instead of every value with every other.
    pub zip: bool,
    /// The load balancers and variants.
    pub entries: Vec<String>,
    /// The entry that the others are compared with.
    pub baseline: String,
    /// The backends, if there are several: the others are compared with the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// `true` for one run that is shown by itself, not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_run: bool,
    pub seeds: Vec<u64>,
    /// Plan by which a comparison adds seeds until its differences are decided; absent if their number is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_decided: Option<Sequential>,
    /// The last such plan of the store, if a command without one followed: its results are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_before: Option<Sequential>,
    /// All runs: point by point, seed by seed.
    pub runs: Vec<PlannedRun>,
}

impl Plan {
    /// Returns point and load balancer of a run as one name: `load = 0.3, ecmp`.
    pub fn scheme_at(&self, run: &PlannedRun) -> String {
        let (point, entry) = (self.point_name(run.point), &self.entries[run.entry]);
        if point.is_empty() { entry.clone() } else { format!("{point}, {entry}") }
    }

    /// Returns the name of a point: `load = 0.3, radix = 8`.
    pub fn point_name(&self, point: usize) -> String {
        let keys = self.axes.iter().map(|axis| axis.key.rsplit('.').next().unwrap_or(&axis.key));
        let values = keys.zip(self.values(point)).map(|(key, value)| format!("{key} = {value}"));
        values.collect::<Vec<_>>().join(", ")
    }

    pub fn points(&self) -> usize {
        match self.zip {
            true => self.axes.first().map_or(1, |axis| axis.values.len()),
            false => self.axes.iter().map(|axis| axis.values.len()).product(),
        }
    }

    /// Returns the indices of a point into the values of each axis. The last axis changes fastest.
    pub fn place(&self, point: usize) -> Vec<usize> {
        if self.zip {
            return vec![point; self.axes.len()];
        }
        let mut rest = point;
        let mut places: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let place = rest % axis.values.len().max(1);
                rest /= axis.values.len().max(1);
                place
            })
            .collect();
        places.reverse();
        places
    }

    /// Returns the values of a point, one per axis.
    pub fn values(&self, point: usize) -> Vec<&str> {
        self.place(point).into_iter().zip(&self.axes).map(|(place, axis)| axis.values[place].as_str()).collect()
    }

    /// Returns `true` if the plan has no keys: every entry with every seed at one point.
    pub fn is_comparison(&self) -> bool {
        self.axes.is_empty()
    }

    /// Returns the name of a run: `prime/seed1` in a comparison, `sim/prime/seed1` in one of backends, its hash in a sweep.
    pub fn run_name(&self, run: &PlannedRun) -> String {
        if !self.is_comparison() {
            return run.run.clone();
        }
        let name = run_name(&self.entries[run.entry], run.seed);
        self.backends.get(run.backend).map_or(name.clone(), |backend| format!("{backend}/{name}"))
    }

    /// Returns `true` if tables and figures of both plans have the same form: those of one are replaced by the other's.
    pub fn is_alike(&self, other: &Plan) -> bool {
        let keys = |plan: &Plan| plan.axes.iter().map(|axis| axis.key.clone()).collect::<Vec<_>>();
        let is_same_form = self.backends == other.backends && self.is_run == other.is_run;
        is_same_form && keys(self) == keys(other) && self.ground == other.ground
    }

    /// Joins the plans of several backends, each with its name, over the same scenario.
    pub fn of_backends<'n>(plans: impl IntoIterator<Item = (&'n str, Plan)>) -> Self {
        let mut joined = Plan::default();
        for (backend, (name, plan)) in plans.into_iter().enumerate() {
            let (mut backends, mut runs) = (joined.backends, joined.runs);
            backends.push(name.to_string());
            runs.extend(plan.runs.iter().map(|run| PlannedRun { backend, ..run.clone() }));
            joined = Plan { backends, runs, ..plan };
        }
        joined
    }

    /// Returns the directory of the run of `entry` and `seed` in a comparison in `dir`.
    pub fn directory(&self, dir: &Path, entry: &str, seed: u64) -> Option<PathBuf> {
        let own = |run: &&PlannedRun| run.seed == seed && self.entries[run.entry] == entry;
        self.runs.iter().find(own).map(|run| store_directory(dir, &run.run))
    }

    /// Reads the plan in `dir`; `None` if there is none.
    pub fn read(dir: &Path) -> Result<Option<Self>, ReportError> {
        read_json(&dir.join(PLAN)).map_err(|error| match error {
            ReportError::Content { path, found, .. } => {
                let remedy = "the same command with --replace writes it again and keeps finished runs".to_string();
                ReportError::Content { path, found, remedy }
            }
            other => other,
        })
    }

    /// Returns a manifest of the plan without files.
    pub fn described(&self) -> Manifest {
        Manifest {
            name: self.name.clone(),
            version: self.version.clone(),
            commit: self.commit.clone(),
            scenario: self.scenario.clone(),
            scenario_hash: self.scenario_hash.clone(),
            schemes: self.entries.clone(),
            baseline: Some(self.baseline.clone()),
            seeds: self.seeds.clone(),
            until_decided: self.until_decided.clone(),
            ..Manifest::default()
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[&str]) -> Axis {
        Axis { key: key.into(), values: values.iter().map(ToString::to_string).collect(), ..Axis::default() }
    }

    #[test]
    fn axes_are_titled_by_their_meaning_and_common_unit() {
        let meaning = "Rate of every link; a cable has two.".to_string();
        let rate = Axis { numbers: vec![1e11, 4e11], meaning, ..axis("topology.link_rate", &["100Gbps", "400Gbps"]) };
        assert_eq!(rate.title(|_| true), "Rate of every link [Gbit/s]");
        assert_eq!(rate.title(|title| title.len() < 24), "Link rate [Gbit/s]");
        assert_eq!(rate.ticks(), ["100", "400"]);
        let mixed = Axis { numbers: vec![1e3, 1e6], ..axis("workload.0.size", &["1kB", "1MB"]) };
        assert_eq!((mixed.title(|_| true), mixed.ticks()), ("Workload.0.size".to_string(), mixed.values.clone()));
        // Words of one length are no numbers with a unit.
        assert_eq!(axis("topology.kind", &["fat-tree", "fat-tree"]).unit(), "");
    }

    #[test]
    fn points_of_grid_and_zip() {
        let axes = vec![axis("a", &["1", "2"]), axis("b", &["x", "y", "z"])];
        let grid = Plan { axes: axes.clone(), ..Plan::default() };
        assert_eq!(grid.points(), 6);
        let values: Vec<Vec<&str>> = (0..6).map(|point| grid.values(point)).collect();
        assert_eq!(values[..4], [["1", "x"], ["1", "y"], ["1", "z"], ["2", "x"]]);
        let zip = Plan { axes: vec![axes[1].clone(), axis("c", &["7", "8", "9"])], zip: true, ..Plan::default() };
        assert_eq!((zip.points(), zip.values(2)), (3, vec!["z", "9"]));
    }
}
