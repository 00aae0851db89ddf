//! Plan of a study at a scale: its sweep, and the values of its dimensions.

use super::{ALL, Filter, Scale, Study, StudyBound, every, rows::BOUND};
use anabranch_scenario::{ScenarioError, did_you_mean, library, list, scenario::SkipRule};
use anabranch_settings::nearest;
use anabranch_study::{Request, Sweep};
use std::collections::BTreeSet;

/// Plan of a study at a scale, with every key and value checked.
pub struct StudyPlan {
    pub study: Study,
    pub sweep: Sweep,
    pub workloads: Vec<String>,
    /// `true` if flows arrive at random, so that a run has a sample of them.
    pub is_sample: bool,
}

/// One value per dimension, `study` first, without the scheme.
pub type Coordinate = Vec<(String, String)>;

pub(crate) fn at<'c>(coordinate: &'c [(String, String)], dimension: &str) -> Option<&'c str> {
    coordinate.iter().find(|(name, _)| name == dimension).map(|(_, value)| value.as_str())
}

impl StudyPlan {
    /// Plans `study` at `scale`; `None` if the study excludes that scale.
    /// Fails if its scenario does not exist, or a key, value, scheme or variant is wrong.
    pub fn new(study: &Study, scale: Scale) -> Result<Option<Self>, ScenarioError> {
        let placed = |error: ScenarioError| {
            let remedy = error.remedy().map(str::to_string);
            let at = error.source_name().map(|name| format!(" ({name})")).unwrap_or_default();
            let message = format!("study `{}`, {} scale: {error}{at}", study.id, scale.word());
            let placed = ScenarioError::new(message).at(study.place.clone());
            remedy.into_iter().fold(placed, ScenarioError::help)
        };
        let (mut set, mut over) = (study.set.clone(), study.over.clone());
        let (mut schemes, mut seeds) = (study.schemes.clone(), study.seeds);
        if scale == Scale::Quick {
            let Some(quick) = &study.quick else { return Ok(None) };
            set.extend(quick.set.iter().cloned());
            over = quick.over.clone().unwrap_or(over);
            schemes = quick.schemes.clone().unwrap_or(schemes);
            seeds = quick.seeds.or(seeds);
        }
        let base = library::load(&study.scenario, &set, None).map_err(placed)?;
        if base.run.skip != SkipRule::Off || over.iter().any(|axis| axis.key == "run.skip") {
            let message = "`run.skip`: a claim is judged from runs that are simulated in full";
            return Err(placed(ScenarioError::new(message).help("leave `run.skip` out of the study")));
        }
        let asked = schemes.len();
        let schemes = every::expand(schemes, &base).map_err(placed)?;
        if schemes.is_empty() && asked > 0 {
            return Ok(None);
        }
        let workloads = base.workloads.iter().flat_map(|workload| workload.names()).collect();
        let is_sample = base.workloads.iter().any(|workload| workload.kind.name() == "poisson");
        let request = Request { schemes, variants: study.variants.clone(), seeds, ..Request::default() };
        let sweep = Sweep::planned(base, over, study.zip, &request).map_err(placed)?;
        Ok(Some(StudyPlan { study: study.clone(), sweep, workloads, is_sample }))
    }

    /// Returns the values of a dimension in order, without `all`; `None` if the study has no such dimension.
    pub fn values(&self, dimension: &str) -> Option<Vec<String>> {
        match dimension {
            "study" => Some(vec![self.study.id.clone()]),
            // A figure may name the bound as well.
            "scheme" => {
                let bound = (self.study.bound != StudyBound::No).then(|| BOUND.to_string());
                Some(self.sweep.plan.entries.iter().cloned().chain(bound).collect())
            }
            "workload" => Some(self.workloads.clone()),
            "bin" => Some(self.study.bins()),
            key => self.sweep.plan.axes.iter().find(|axis| axis.key == key).map(|axis| axis.values.clone()),
        }
    }

    /// Returns the changes of its scenario at this scale as text: `tiny, 3 seeds, topology.radix=4`.
    pub fn size(&self, scale: Scale) -> String {
        let mut words = vec![self.study.scenario.clone()];
        words.push(match self.sweep.plan.seeds.len() {
            1 => "one seed".to_string(),
            seeds => format!("{seeds} seeds"),
        });
        let quick = self.study.quick.iter().filter(|_| scale == Scale::Quick).flat_map(|quick| &quick.set);
        let set: Vec<&String> = self.study.set.iter().chain(quick).collect();
        // A setting of the command line is in both, and the last one counts.
        let counts = |at: &usize| !set[at + 1..].contains(&set[*at]);
        words.extend((0..set.len()).filter(counts).map(|at| set[at].clone()));
        words.extend(self.sweep.plan.axes.iter().map(|axis| format!("{}={}", axis.key, axis.values.join(","))));
        words.join(", ")
    }

    pub fn dimensions(&self) -> Vec<String> {
        let keys = self.sweep.plan.axes.iter().map(|axis| axis.key.clone());
        ["study".to_string()].into_iter().chain(keys).chain(["workload".into(), "bin".into()]).collect()
    }

    /// Workload and bin are `all` unless `filter` or `open` names them. Values that the study lacks are skipped.
    fn coordinates(&self, filter: &Filter, open: &[String]) -> Vec<Coordinate> {
        let mut all: Vec<Coordinate> = vec![vec![]];
        for dimension in self.dimensions() {
            let there = self.values(&dimension).unwrap_or_default();
            let pooled = dimension == "workload" || dimension == "bin";
            let fits = |value: &&String| there.contains(value) || (pooled && value.as_str() == ALL);
            let values: Vec<String> = match filter.values(&dimension) {
                Some(required) => required.iter().filter(fits).cloned().collect(),
                None if pooled && !open.contains(&dimension) => vec![ALL.to_string()],
                None => there,
            };
            all = all
                .into_iter()
                .flat_map(|before| {
                    let dimension = &dimension;
                    let with = move |value: &String| {
                        let mut longer = before.clone();
                        longer.push((dimension.clone(), value.clone()));
                        longer
                    };
                    values.iter().map(with).collect::<Vec<_>>()
                })
                .collect();
        }
        // In a zip not every combination is a point.
        all.retain(|coordinate| self.point(coordinate).is_some());
        all
    }

    /// Returns the point of its sweep at a coordinate.
    pub fn point(&self, coordinate: &[(String, String)]) -> Option<usize> {
        let axes = &self.sweep.plan.axes;
        let required: Vec<&str> = axes.iter().map(|axis| at(coordinate, &axis.key)).collect::<Option<_>>()?;
        (0..self.sweep.plan.points()).find(|point| self.sweep.plan.values(*point) == required)
    }

    /// Returns `true` if one of its scenarios has the key, explicitly or by default.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        let mut seen = BTreeSet::new();
        self.sweep.order().iter().any(|&number| {
            let run = &self.sweep.plan.runs[number];
            if !seen.insert(run.entry) {
                return false;
            }
            let Ok(scenario) = self.sweep.scenario(number) else { return false };
            has(&scenario.to_toml(), key)
        })
    }
}

pub(crate) fn coordinates(plans: &[&StudyPlan], filter: &Filter, open: &[String]) -> Vec<Coordinate> {
    plans.iter().flat_map(|plan| plan.coordinates(filter, open)).collect()
}

/// If `whole`, every value that filters name must exist; otherwise one of each dimension.
pub(crate) fn check_names(
    plans: &[&StudyPlan],
    filters: &[&Filter],
    dimensions: &[&str],
    whole: bool,
) -> Result<(), ScenarioError> {
    let mut known: BTreeSet<String> = plans.iter().flat_map(|plan| plan.dimensions()).collect();
    known.insert("scheme".into());
    let named = filters.iter().flat_map(|filter| filter.0.iter().map(|(name, _)| name.as_str()));
    for name in named.chain(dimensions.iter().copied()) {
        if !known.contains(name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let error = ScenarioError::new(format!("no dimension `{name}`; there are {}", list(&names)));
            return Err(did_you_mean(error, nearest(name, names)));
        }
    }
    for (name, values) in filters.iter().flat_map(|filter| &filter.0) {
        let there: Vec<String> = plans.iter().filter_map(|plan| plan.values(name)).flatten().collect();
        let pooled = (name == "workload" || name == "bin").then(|| ALL.to_string());
        let all: Vec<&String> = there.iter().chain(&pooled).collect();
        let missing: Vec<&String> = values.iter().filter(|value| !all.contains(value)).collect();
        if let Some(first) = missing.first()
            && (whole || missing.len() == values.len())
        {
            let names: Vec<&str> = all.iter().map(|value| value.as_str()).collect();
            let error = ScenarioError::new(format!("`{name}` is never `{first}` here; it is {}", list(&names)));
            return Err(did_you_mean(error, nearest(first, names)));
        }
    }
    Ok(())
}

/// Returns `true` if the text of a scenario has the key.
fn has(text: &str, key: &str) -> bool {
    let Ok(document) = text.parse::<toml::Table>() else { return false };
    let document = toml::Value::Table(document);
    let mut parts = key.split('.');
    let at = parts.try_fold(&document, |at, part| match part.parse::<usize>() {
        Ok(index) => at.get(index),
        Err(_) => at.get(part),
    });
    at.is_some()
}
