//! Which numbers a claim is about: its groups, and in each where its two sides lie.

use super::{
    Plan, Scale,
    model::{Claim, ClaimKind, Filter, Operand},
    plan::{Coordinate, at, check_names, coordinates},
};
use anabranch_scenario::{
    error::ScenarioError,
    section::{did_you_mean, list},
};
use anabranch_settings::nearest;

/// One group of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The values of the dimensions that make it.
    pub at: Coordinate,
    /// Where A lies: several where a key is reduced or followed.
    pub a: Vec<Coordinate>,
    /// Where B lies.
    pub b: Vec<Coordinate>,
}

impl Claim {
    /// Its groups in `plans`, those of its studies.
    ///
    /// # Errors
    /// Where it names what is not there, or leaves open which of several values is meant.
    pub fn groups(&self, plans: &[&Plan], scale: Scale) -> Result<Vec<Group>, ScenarioError> {
        self.find(plans, scale).map_err(|error| {
            let remedy = error.remedy().map(str::to_string);
            let placed = ScenarioError::new(format!("claim `{}`, {} scale: {error}", self.id, scale.word()))
                .at(self.place.clone());
            remedy.into_iter().fold(placed, ScenarioError::help)
        })
    }

    fn find(&self, plans: &[&Plan], scale: Scale) -> Result<Vec<Group>, ScenarioError> {
        let (a, b) = (self.filter.with(&self.a_filter), self.filter.with(&self.b_filter));
        let dimensions: Vec<&str> = self.each.iter().chain(&self.along).map(String::as_str).collect();
        check_names(plans, &[&self.filter, &self.a_filter, &self.b_filter], &dimensions, scale == Scale::Full)?;
        let by_scheme = self.each.iter().any(|each| each == "scheme");
        if by_scheme && matches!(self.kind, ClaimKind::Order(..) | ClaimKind::Trend(..) | ClaimKind::Shown(_)) {
            return Err(ScenarioError::new("`each` names `scheme`, but this kind names its load balancers itself"));
        }
        if let Some(both) =
            self.each.iter().find(|name| self.a_filter.values(name).or(self.b_filter.values(name)).is_some())
        {
            return Err(ScenarioError::new(format!("`{both}` stands in `each` and in `a_where` or `b_where`")));
        }
        self.check_schemes(plans)?;
        self.check_metric(&[&a, &b])?;
        let mut groups: Vec<Coordinate> = vec![];
        let open: Vec<String> = self.each.clone();
        for coordinate in coordinates(plans, &self.filter, &open) {
            let own: Coordinate = coordinate.into_iter().filter(|(name, _)| self.each.contains(name)).collect();
            if !groups.contains(&own) {
                groups.push(own);
            }
        }
        let side = |filter: &Filter, group: &Coordinate| -> Result<Vec<Coordinate>, ScenarioError> {
            let fixed = Filter(group.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect());
            let found = coordinates(plans, &filter.with(&fixed), &open);
            self.check_open(&found)?;
            Ok(found)
        };
        let two = matches!(self.kind, ClaimKind::Change(..) | ClaimKind::Factor(..) | ClaimKind::Equal(..));
        let mut found = vec![];
        for group in groups {
            let a = side(&a, &group)?;
            let b = if two { side(&b, &group)? } else { vec![] };
            // In one of several studies a group may have one side only.
            if a.is_empty() || (two && b.is_empty()) {
                continue;
            }
            if matches!(self.kind, ClaimKind::Trend(..)) && a.len() < 2 {
                let key = self.along.as_deref().unwrap_or_default();
                return Err(ScenarioError::new(format!("a trend needs two values of `{key}` at least")));
            }
            found.push(Group { at: group, a, b });
        }
        if found.is_empty() {
            return Err(ScenarioError::new("nothing of its studies fits `where`"));
        }
        Ok(found)
    }

    /// Whether something is left open that has several values.
    fn check_open(&self, found: &[Coordinate]) -> Result<(), ScenarioError> {
        let Some(first) = found.first() else { return Ok(()) };
        for other in found {
            for (name, value) in other {
                if Some(name) != self.along.as_ref() && at(first, name) != Some(value) {
                    return Err(ScenarioError::new(format!(
                        "`{name}` has several values ({} and {value}): fix it in `where`, or name it in `each` or `along`",
                        at(first, name).unwrap_or_default()
                    )));
                }
            }
        }
        Ok(())
    }

    fn check_metric(&self, filters: &[&Filter]) -> Result<(), ScenarioError> {
        let named = |dimension: &str| {
            let other = |filter: &&Filter| {
                filter.values(dimension).is_some_and(|values| values.iter().any(|value| value != super::metric::ALL))
            };
            self.each.iter().any(|each| each == dimension) || filters.iter().any(other)
        };
        if named("bin") && !self.metric.is_per_bin() {
            return Err(ScenarioError::new(format!("`{}` is not kept per bin of flow sizes", self.metric)));
        }
        if named("workload") && !self.metric.is_per_workload() {
            return Err(ScenarioError::new(format!("`{}` is of the whole run, not of a workload", self.metric)));
        }
        Ok(())
    }

    /// The load balancers it names.
    pub fn schemes(&self) -> Vec<&String> {
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                [a, b].into_iter().filter_map(named).flatten().collect()
            }
            ClaimKind::Value(a, _) => named(a).into_iter().flatten().collect(),
            ClaimKind::Order(tiers, _) => tiers.iter().flatten().collect(),
            ClaimKind::Trend(schemes, ..) | ClaimKind::Shown(schemes) => schemes.iter().collect(),
        }
    }

    fn check_schemes(&self, plans: &[&Plan]) -> Result<(), ScenarioError> {
        for plan in plans {
            let entries = &plan.sweep.plan.entries;
            if let Some(missing) = self.schemes().into_iter().find(|scheme| !entries.contains(scheme)) {
                let names: Vec<&str> = entries.iter().map(String::as_str).collect();
                let message = format!("study `{}` does not run `{missing}`, but {}", plan.study.id, list(&names));
                return Err(did_you_mean(ScenarioError::new(message), nearest(missing, names)));
            }
        }
        Ok(())
    }

    /// The load balancers of both sides in a study's entries.
    pub fn sides(&self, entries: &[String]) -> (Vec<String>, Vec<String>) {
        let names = |operand: &Operand, other: Option<&Operand>| match operand {
            Operand::Schemes(names) => names.clone(),
            Operand::Others => {
                let taken = other.and_then(named).cloned().unwrap_or_default();
                entries.iter().filter(|entry| !taken.contains(entry)).cloned().collect()
            }
        };
        match &self.kind {
            ClaimKind::Change(a, b, _) | ClaimKind::Factor(a, b, _) | ClaimKind::Equal(a, b) => {
                (names(a, Some(b)), names(b, Some(a)))
            }
            ClaimKind::Value(a, _) => (names(a, None), vec![]),
            ClaimKind::Order(tiers, _) => (tiers.iter().flatten().cloned().collect(), vec![]),
            ClaimKind::Trend(schemes, ..) => (schemes.clone(), vec![]),
            ClaimKind::Shown(schemes) if schemes.is_empty() => (entries.to_vec(), vec![]),
            ClaimKind::Shown(schemes) => (schemes.clone(), vec![]),
        }
    }
}

fn named(operand: &Operand) -> Option<&Vec<String>> {
    if let Operand::Schemes(names) = operand { Some(names) } else { None }
}
