//! What the tables of claim files say of each other, and of scenarios, keys and schemes: checked without running.

use super::{Book, Plan, Scale, metric::ALL, model::Figure, plan::check_names, plan::coordinates};
use anabranch_scenario::{
    error::ScenarioError,
    section::{did_you_mean, list},
    tree::Place,
};
use anabranch_settings::nearest;
use std::collections::BTreeMap;

impl Book {
    /// Names within the book: unique ids, studies and figures that exist.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        let unique = |what: &str, ids: Vec<(&String, &Place)>| {
            let twice = ids.iter().enumerate().find(|(i, (id, _))| ids[..*i].iter().any(|(other, _)| other == id));
            match twice {
                Some((_, (id, place))) => {
                    Err(ScenarioError::new(format!("the {what} `{id}` stands twice")).at((*place).clone()))
                }
                None => Ok(()),
            }
        };
        unique("study", self.studies.iter().map(|study| (&study.id, &study.place)).collect())?;
        unique("figure", self.figures.iter().map(|figure| (&figure.id, &figure.place)).collect())?;
        unique("claim", self.claims.iter().map(|claim| (&claim.id, &claim.place)).collect())?;
        let studies: Vec<&str> = self.studies.iter().map(|study| study.id.as_str()).collect();
        let figures: Vec<&str> = self.figures.iter().map(|figure| figure.id.as_str()).collect();
        let known = |what: &str, id: &str, names: &[&str], by: &str, place: &Place| {
            if names.contains(&id) {
                return Ok(());
            }
            let message = format!("{by} names the {what} `{id}`; there are {}", list(names));
            Err(did_you_mean(ScenarioError::new(message).at(place.clone()), nearest(id, names.iter().copied())))
        };
        for figure in &self.figures {
            for study in &figure.studies {
                known("study", study, &studies, &format!("figure `{}`", figure.id), &figure.place)?;
            }
        }
        for claim in &self.claims {
            let by = format!("claim `{}`", claim.id);
            for study in claim.studies.iter().chain(&claim.quick_studies) {
                known("study", study, &studies, &by, &claim.place)?;
            }
            if let Some(figure) = &claim.figure {
                known("figure", figure, &figures, &by, &claim.place)?;
            }
        }
        Ok(())
    }

    /// Its studies at a scale, by id, those left out that are not for it. Every scenario, key, value, scheme, workload,
    /// bin and metric that anything in the book names is checked.
    ///
    /// # Errors
    /// [`ScenarioError`] of the first mistake.
    pub fn plans(&self, scale: Scale) -> Result<BTreeMap<String, Plan>, ScenarioError> {
        let mut plans = BTreeMap::new();
        for study in &self.studies {
            if let Some(plan) = Plan::new(study, scale)? {
                plans.insert(study.id.clone(), plan);
            }
        }
        for claim in &self.claims {
            let ids = claim.studies_at(scale);
            if let Some(missing) = ids.iter().find(|id| !plans.contains_key(*id)) {
                let message = format!("claim `{}`: the study `{missing}` has no {} scale", claim.id, scale.word());
                return Err(ScenarioError::new(message)
                    .at(claim.place.clone())
                    .help("name another one: `quick_study`"));
            }
            let own: Vec<&Plan> = ids.iter().map(|id| &plans[id]).collect();
            claim.groups(&own, scale)?;
            for key in &claim.ours {
                if !own.iter().any(|plan| plan.has_key(key)) {
                    let message = format!("claim `{}`: `ours` names `{key}`, which no scenario of its has", claim.id);
                    return Err(ScenarioError::new(message).at(claim.place.clone()));
                }
            }
        }
        for figure in &self.figures {
            let own: Vec<&Plan> = figure.studies.iter().filter_map(|id| plans.get(id)).collect();
            if !own.is_empty() {
                figure.check(&own, scale)?;
            }
        }
        Ok(plans)
    }
}

impl super::Claim {
    /// The studies it is judged by at a scale.
    pub fn studies_at(&self, scale: Scale) -> &[String] {
        match scale {
            Scale::Quick => &self.quick_studies,
            Scale::Full => &self.studies,
        }
    }
}

impl Figure {
    /// Dimensions that the figure tells apart.
    pub(crate) fn dimensions(&self) -> Vec<&str> {
        [&self.x, &self.series].into_iter().chain(&self.panel).map(String::as_str).collect()
    }

    fn check(&self, plans: &[&Plan], scale: Scale) -> Result<(), ScenarioError> {
        let named = |error: ScenarioError| {
            let remedy = error.remedy().map(str::to_string);
            let placed = ScenarioError::new(format!("figure `{}`, {} scale: {error}", self.id, scale.word()))
                .at(self.place.clone());
            remedy.into_iter().fold(placed, ScenarioError::help)
        };
        let mut dimensions = self.dimensions();
        let twice = dimensions.iter().enumerate().find(|(i, name)| dimensions[..*i].contains(name));
        if let Some((_, name)) = twice {
            return Err(named(ScenarioError::new(format!("`{name}` is used for two of x, series and panel"))));
        }
        if !dimensions.contains(&"scheme") && self.filter.values("scheme").is_none_or(|schemes| schemes.len() != 1) {
            let message = "neither x, series nor panel is `scheme`: fix one load balancer in `where`";
            return Err(named(ScenarioError::new(message)));
        }
        dimensions.retain(|name| *name != "metric");
        let mut filters: Vec<&super::Filter> = self.published.iter().map(|target| &target.at).collect();
        let published = filters
            .iter()
            .map(|filter| super::Filter(filter.0.iter().filter(|(name, _)| name != "metric").cloned().collect()));
        let published: Vec<super::Filter> = published.collect();
        filters = published.iter().chain([&self.filter]).collect();
        check_names(plans, &filters, &dimensions, scale == Scale::Full).map_err(named)?;
        let open: Vec<String> = dimensions.iter().map(ToString::to_string).collect();
        let found = coordinates(plans, &self.filter, &open);
        let Some(first) = found.first() else {
            return Err(named(ScenarioError::new("nothing of its studies fits `where`")));
        };
        for (name, value) in found.iter().flatten() {
            let other = first.iter().find(|(first, _)| first == name).map_or(ALL, |(_, value)| value.as_str());
            if other != value && !dimensions.contains(&name.as_str()) {
                let message = format!(
                    "`{name}` has several values ({other} and {value}): fix it in `where`, or use it as x, series or panel"
                );
                return Err(named(ScenarioError::new(message)));
            }
        }
        let bins = found.iter().flatten().any(|(name, value)| name == "bin" && value != ALL);
        let workloads = found.iter().flatten().any(|(name, value)| name == "workload" && value != ALL);
        for metric in &self.metrics {
            if (bins && !metric.is_per_bin()) || (workloads && !metric.is_per_workload()) {
                let message =
                    format!("`{metric}` is not kept per {}", if bins { "bin of flow sizes" } else { "workload" });
                return Err(named(ScenarioError::new(message)));
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Whether a scenario of it has the key, given or by default.
    fn has_key(&self, key: &str) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        self.sweep.order().iter().any(|&number| {
            let run = &self.sweep.plan.runs[number];
            if !seen.insert(run.entry) {
                return false;
            }
            let Ok(scenario) = self.sweep.scenario(number) else { return false };
            let Ok(document) = scenario.to_toml().parse::<toml::Table>() else { return false };
            let document = toml::Value::Table(document);
            let mut parts = key.split('.');
            parts
                .try_fold(&document, |at, part| match part.parse::<usize>() {
                    Ok(index) => at.get(index),
                    Err(_) => at.get(part),
                })
                .is_some()
        })
    }
}
