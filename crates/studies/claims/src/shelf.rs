//! A book at a scale: its studies planned, everything that claims and figures name checked, and what rows say of them.

use super::{
    book::Book,
    claim::Claim,
    figure::{Layout, Shown},
    judge::{Judged, judge},
    kept::Kept,
    metric::Metric,
    model::{Figure, Scale},
    plan::{Coordinate, Plan, at},
    rows::{Rows, Wanted},
    select::Selected,
};
use anabranch_scenario::error::ScenarioError;
use std::collections::BTreeMap;

/// A paper's book at a scale, as far as it was asked for.
pub struct Shelf {
    /// The book.
    pub book: Book,
    /// The scale.
    pub scale: Scale,
    /// Its studies at the scale.
    pub plans: BTreeMap<String, Plan>,
    /// What is asked of them.
    pub(crate) wanted: BTreeMap<String, Wanted>,
    /// The claims asked for.
    pub claims: Vec<Claim>,
    /// The figures asked for.
    pub figures: Vec<Figure>,
}

/// What came out of a paper.
pub struct PaperResult {
    /// The paper's name.
    pub paper: &'static str,
    /// Its claims, judged.
    pub claims: Vec<(Claim, Judged)>,
    /// Its figures as far as their runs are there.
    pub figures: Vec<(Figure, Option<Shown>)>,
    /// The rows of its studies.
    pub rows: BTreeMap<String, Rows>,
}

/// What came of it.
pub struct Outcome {
    /// Per paper.
    pub papers: Vec<PaperResult>,
    /// Runs in all.
    pub runs: usize,
    /// Runs that were finished before.
    pub reused: usize,
    /// Runs that failed: name and error.
    pub failed: Vec<(String, String)>,
    /// Runs that are not there.
    pub missing: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

impl Shelf {
    /// Claims judged and figures made from rows, wherever they come from.
    ///
    /// # Errors
    /// None that planning did not find.
    pub fn judge(&self, rows: BTreeMap<String, Rows>) -> Result<PaperResult, ScenarioError> {
        let claims = self.claims.iter().map(|claim| {
            let selected = Selected::new(claim, &self.plans, self.scale)?;
            Ok((claim.clone(), judge(&selected, &rows)))
        });
        let claims: Vec<(Claim, Judged)> = claims.collect::<Result<_, ScenarioError>>()?;
        let note = format!("{} scale", self.scale.word());
        let shown = |figure: &Figure| {
            let layout = Layout::new(figure, &self.plans);
            (figure.clone(), layout.and_then(|layout| layout.show(&self.book, &rows, &note)))
        };
        let figures = self.figures.iter().map(shown).collect();
        Ok(PaperResult { paper: self.book.paper.name, claims, figures, rows })
    }

    /// All of a book, judged from kept rows.
    ///
    /// # Errors
    /// As [`Reproduction::new`].
    pub fn of_kept(book: &Book, scale: Scale, kept: &Kept) -> Result<PaperResult, ScenarioError> {
        let plans = plans(book, scale)?;
        let wanted = wanted(&plans, &book.claims, &book.figures, scale)?;
        let rows = wanted.keys().filter_map(|id| Some((id.clone(), kept.rows(id, scale)?.clone()))).collect();
        let (claims, figures) = (book.claims.clone(), book.figures.clone());
        Shelf { book: book.clone(), scale, plans, wanted, claims, figures }.judge(rows)
    }
}

/// The studies of a book at a scale, by id, those left out that are not for it. Every scenario, key, value, scheme, workload,
/// bin and metric that anything in the book names is checked.
///
/// # Errors
/// [`ScenarioError`] of the first mistake.
pub(crate) fn plans(book: &Book, scale: Scale) -> Result<BTreeMap<String, Plan>, ScenarioError> {
    let mut plans = BTreeMap::new();
    for study in &book.studies {
        if let Some(plan) = Plan::new(study, scale)? {
            plans.insert(study.id.clone(), plan);
        }
    }
    for claim in &book.claims {
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
    for figure in &book.figures {
        if let Some(layout) = Layout::new(figure, &plans) {
            layout.check(scale)?;
        }
    }
    Ok(plans)
}

/// What claims and figures ask of each study.
pub(crate) fn wanted(
    plans: &BTreeMap<String, Plan>,
    claims: &[Claim],
    figures: &[Figure],
    scale: Scale,
) -> Result<BTreeMap<String, Wanted>, ScenarioError> {
    let mut wanted: BTreeMap<String, Wanted> = BTreeMap::new();
    let mut add = |metric: &Metric, coordinate: &Coordinate| {
        if let Some(study) = at(coordinate, "study") {
            wanted.entry(study.to_string()).or_default().add(metric, coordinate);
        }
    };
    for claim in claims {
        for group in &Selected::new(claim, plans, scale)?.groups {
            group.a.iter().chain(&group.b).for_each(|coordinate| add(&claim.metric, coordinate));
        }
    }
    for figure in figures {
        for coordinate in Layout::new(figure, plans).iter().flat_map(|layout| &layout.coordinates) {
            figure.metrics.iter().for_each(|metric| add(metric, coordinate));
        }
    }
    Ok(wanted)
}
