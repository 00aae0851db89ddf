//! Claim set at a scale: plans its studies, checks all names in claims and figures, and judges rows.

use super::{
    Claim, ClaimSet, Coordinate, Figure, Judged, Metric, Rows, Scale, Selected, Shown, StoredRows, StudyPlan, at,
    figure::Layout, judge::judge, rows::RequiredMetrics,
};
use anabranch_scenario::ScenarioError;
use std::collections::BTreeMap;

/// Claim set of a paper at a scale, limited to the selected claims and figures.
pub struct PaperPlan {
    pub claim_set: ClaimSet,
    pub scale: Scale,
    /// Plans of the studies at the scale.
    pub plans: BTreeMap<String, StudyPlan>,
    pub(crate) required: BTreeMap<String, RequiredMetrics>,
    pub claims: Vec<Claim>,
    pub figures: Vec<Figure>,
    /// Number of settings tried of which this plan is one; 0 for the settings of the claim files.
    pub tries: u64,
}

pub struct PaperResult {
    pub paper: &'static str,
    /// Claims with their verdicts.
    pub claims: Vec<(Claim, Judged)>,
    /// Figures; `None` if no run of a figure has finished.
    pub figures: Vec<(Figure, Option<Shown>)>,
    pub rows: BTreeMap<String, Rows>,
}

pub struct ReproductionOutcome {
    pub papers: Vec<PaperResult>,
    /// Total number of runs.
    pub runs: usize,
    /// Number of runs that had finished before.
    pub reused: usize,
    /// Failed runs: name and error.
    pub failed: Vec<(String, String)>,
    pub missing: usize,
    /// `true` if the reproduction was interrupted.
    pub interrupted: bool,
}

impl PaperPlan {
    /// Judges the claims and draws the figures from rows, regardless of their origin. Errors are those of planning.
    pub fn judge(&self, rows: BTreeMap<String, Rows>) -> Result<PaperResult, ScenarioError> {
        let claims = self.claims.iter().map(|claim| {
            let selected = Selected::new(claim, &self.plans, self.scale)?;
            let mut judged = judge(&selected, &rows, self.tries);
            for reading in self.claim_set.readings_of(claim) {
                let other = claim.with_entries(&|entry| reading.entry(entry).to_string());
                // The quick scale may omit entries.
                if let Ok(selected) = Selected::new(&other, &self.plans, self.scale) {
                    judged.readings.push((reading.id.clone(), judge(&selected, &rows, self.tries).verdict));
                }
            }
            Ok((claim.clone(), judged))
        });
        let claims: Vec<(Claim, Judged)> = claims.collect::<Result<_, ScenarioError>>()?;
        let note = format!("{} scale", self.scale.word());
        let shown = |figure: &Figure| {
            let layout = Layout::new(figure, &self.plans);
            (figure.clone(), layout.and_then(|layout| layout.show(&self.claim_set, &rows, &note)))
        };
        let figures = self.figures.iter().map(shown).collect();
        Ok(PaperResult { paper: self.claim_set.paper.name, claims, figures, rows })
    }

    /// Judges all of a claim set from stored rows.
    pub fn from_stored_rows(
        claim_set: &ClaimSet,
        scale: Scale,
        stored_rows: &StoredRows,
    ) -> Result<PaperResult, ScenarioError> {
        let plans = plans(claim_set, scale)?;
        let required = required(&plans, &claim_set.claims, &claim_set.figures, scale)?;
        let rows = required.keys().filter_map(|id| Some((id.clone(), stored_rows.rows(id, scale)?.clone()))).collect();
        let (claims, figures) = (claim_set.claims.clone(), claim_set.figures.clone());
        PaperPlan { claim_set: claim_set.clone(), scale, plans, required, claims, figures, tries: 0 }.judge(rows)
    }
}

/// Plans by study id, without studies that exclude the scale. Checks every name and value in the claim set.
pub(crate) fn plans(claim_set: &ClaimSet, scale: Scale) -> Result<BTreeMap<String, StudyPlan>, ScenarioError> {
    let mut plans = BTreeMap::new();
    for study in &claim_set.studies {
        if let Some(plan) = StudyPlan::new(study, scale)? {
            plans.insert(study.id.clone(), plan);
        }
    }
    for claim in &claim_set.claims {
        let ids = claim.studies_at(scale);
        if let Some(missing) = ids.iter().find(|id| !plans.contains_key(*id)) {
            let message = format!("claim `{}`: the study `{missing}` has no {} scale", claim.id, scale.word());
            return Err(ScenarioError::new(message).at(claim.place.clone()).help("name another one: `quick_study`"));
        }
        let selected = Selected::new(claim, &plans, scale)?;
        for key in &claim.ours {
            if !selected.plans.iter().any(|plan| plan.has_key(key)) {
                let message = format!("claim `{}`: `ours` names `{key}`, which no scenario of its has", claim.id);
                return Err(ScenarioError::new(message).at(claim.place.clone()));
            }
        }
    }
    check_readings(claim_set, &plans, scale)?;
    for figure in &claim_set.figures {
        if let Some(layout) = Layout::new(figure, &plans) {
            layout.check(scale)?;
        }
    }
    Ok(plans)
}

/// Checks that the studies of each claim run the entries of its readings.
fn check_readings(
    claim_set: &ClaimSet,
    plans: &BTreeMap<String, StudyPlan>,
    scale: Scale,
) -> Result<(), ScenarioError> {
    for claim in &claim_set.claims {
        for reading in claim_set.readings_of(claim) {
            let by = format!("claim `{}`: the reading `{}`", claim.id, reading.id);
            let other = claim.with_entries(&|entry| reading.entry(entry).to_string());
            if scale == Scale::Full {
                Selected::new(&other, plans, scale).map_err(|error| error.of(&by).at(reading.place.clone()))?;
                if other == *claim {
                    let message = format!("{by} replaces no entry of the claim");
                    return Err(ScenarioError::new(message).at(reading.place.clone()));
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn required(
    plans: &BTreeMap<String, StudyPlan>,
    claims: &[Claim],
    figures: &[Figure],
    scale: Scale,
) -> Result<BTreeMap<String, RequiredMetrics>, ScenarioError> {
    let mut required: BTreeMap<String, RequiredMetrics> = BTreeMap::new();
    let mut add = |metric: &Metric, coordinate: &Coordinate| {
        if let Some(study) = at(coordinate, "study") {
            required.entry(study.to_string()).or_default().add(metric, coordinate);
        }
    };
    for claim in claims {
        let selected = Selected::new(claim, plans, scale)?;
        let counts_flows = claim.metric.required_flows().is_some() && selected.plans.iter().any(|plan| plan.is_sample);
        for coordinate in selected.groups.iter().flat_map(|group| group.a.iter().chain(&group.b)) {
            add(&claim.metric, coordinate);
            if counts_flows {
                add(&Metric::flow_count(), coordinate);
            }
        }
    }
    for figure in figures {
        for coordinate in Layout::new(figure, plans).iter().flat_map(|layout| &layout.coordinates) {
            figure.metrics.iter().for_each(|metric| add(metric, coordinate));
        }
    }
    Ok(required)
}
