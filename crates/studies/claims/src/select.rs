//! Selection of the numbers that a claim refers to: its groups, and the coordinates of both sides in each.

use super::{ALL, Claim, ClaimKind, Coordinate, Filter, Scale, StudyPlan, at, check_names, coordinates};
use anabranch_scenario::{ScenarioError, did_you_mean, list};
use anabranch_settings::nearest;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) at: Coordinate,
    /// Coordinates of side A; several if a key is reduced or followed.
    pub(crate) a: Vec<Coordinate>,
    pub(crate) b: Vec<Coordinate>,
}

pub(crate) struct Selected<'s> {
    pub(crate) claim: &'s Claim,
    pub(crate) plans: Vec<&'s StudyPlan>,
    pub(crate) groups: Vec<Group>,
}

impl<'s> Selected<'s> {
    /// Fails if a name does not exist, or if a dimension with several values is not fixed.
    pub(crate) fn new(
        claim: &'s Claim,
        plans: &'s BTreeMap<String, StudyPlan>,
        scale: Scale,
    ) -> Result<Self, ScenarioError> {
        let own = claim.studies_at(scale).iter().filter_map(|id| plans.get(id)).collect();
        let mut selected = Selected { claim, plans: own, groups: vec![] };
        let named = |error: ScenarioError| {
            error.of(&format!("claim `{}`, {} scale", claim.id, scale.word())).at(claim.place.clone())
        };
        selected.groups = selected.find(scale).map_err(named)?;
        Ok(selected)
    }

    fn find(&self, scale: Scale) -> Result<Vec<Group>, ScenarioError> {
        let (claim, plans) = (self.claim, self.plans.as_slice());
        let (a, b) = (claim.filter.with(&claim.a_filter), claim.filter.with(&claim.b_filter));
        let dimensions: Vec<&str> = claim.each.iter().chain(&claim.along).map(String::as_str).collect();
        check_names(plans, &[&claim.filter, &claim.a_filter, &claim.b_filter], &dimensions, scale == Scale::Full)?;
        let by_scheme = claim.each.iter().any(|each| each == "scheme");
        if by_scheme && matches!(claim.kind, ClaimKind::Order(..) | ClaimKind::Trend(..) | ClaimKind::Shown(_)) {
            return Err(ScenarioError::new("`each` names `scheme`, but this kind names its load balancers itself"));
        }
        if let Some(both) =
            claim.each.iter().find(|name| claim.a_filter.values(name).or(claim.b_filter.values(name)).is_some())
        {
            return Err(ScenarioError::new(format!("`{both}` is in `each` and in `a_where` or `b_where`")));
        }
        self.check_schemes()?;
        self.check_metric(&[&a, &b])?;
        let mut groups: Vec<Coordinate> = vec![];
        let open: Vec<String> = claim.each.clone();
        for coordinate in coordinates(plans, &claim.filter, &open) {
            let own: Coordinate = coordinate.into_iter().filter(|(name, _)| claim.each.contains(name)).collect();
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
        let two = matches!(claim.kind, ClaimKind::Change(..) | ClaimKind::Factor(..) | ClaimKind::Equal(..));
        let mut found = vec![];
        for group in groups {
            let a = side(&a, &group)?;
            let b = if two { side(&b, &group)? } else { vec![] };
            // In one of several studies a group may have one side only.
            if a.is_empty() || (two && b.is_empty()) {
                continue;
            }
            if matches!(claim.kind, ClaimKind::Trend(..)) && a.len() < 2 {
                let key = claim.along.as_deref().unwrap_or_default();
                return Err(ScenarioError::new(format!("a trend needs two values of `{key}` at least")));
            }
            found.push(Group { at: group, a, b });
        }
        if found.is_empty() {
            return Err(ScenarioError::new("no row of its studies matches `where`"));
        }
        Ok(found)
    }

    /// Checks that every dimension is fixed, or is the one that is reduced or followed.
    fn check_open(&self, found: &[Coordinate]) -> Result<(), ScenarioError> {
        let Some(first) = found.first() else { return Ok(()) };
        for other in found {
            for (name, value) in other {
                if Some(name) != self.claim.along.as_ref() && at(first, name) != Some(value) {
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
                filter.values(dimension).is_some_and(|values| values.iter().any(|value| value != ALL))
            };
            self.claim.each.iter().any(|each| each == dimension) || filters.iter().any(other)
        };
        if named("bin") && !self.claim.metric.is_per_bin() {
            return Err(ScenarioError::new(format!("`{}` is not kept per bin of flow sizes", self.claim.metric)));
        }
        if named("workload") && !self.claim.metric.is_per_workload() {
            return Err(ScenarioError::new(format!(
                "`{}` is a metric of the run, not of a workload",
                self.claim.metric
            )));
        }
        Ok(())
    }

    fn check_schemes(&self) -> Result<(), ScenarioError> {
        for plan in &self.plans {
            let entries = &plan.sweep.plan.entries;
            if let Some(missing) = self.claim.schemes().into_iter().find(|scheme| !entries.contains(scheme)) {
                let names: Vec<&str> = entries.iter().map(String::as_str).collect();
                let message = format!("study `{}` does not run `{missing}`, but {}", plan.study.id, list(&names));
                return Err(did_you_mean(ScenarioError::new(message), nearest(missing, names)));
            }
        }
        Ok(())
    }
}
