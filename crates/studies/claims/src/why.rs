//! Causes of a claim's verdict: its open parameters and readings are turned one at a time, then in pairs.

use super::{
    changes::{sweeps, with_changes},
    claim::{Claim, ClaimKind, Published},
    claim_set::{ClaimSet, Paper},
    judge::{Judged, judge},
    model::Scale,
    paper_plan::{PaperPlan, PaperResult, ReproductionOutcome},
    plan::StudyPlan,
    rows::csv,
    run::{REPRODUCE, Reproduction, ReproductionSettings},
    select::Selected,
    stored_rows::Cost,
    verdict::Verdict,
};
use anabranch_report::{Inputs, OutputFile, create_store, disk};
use anabranch_scenario::{
    error::ScenarioError,
    machine::VERSION,
    section::{did_you_mean, list},
};
use anabranch_settings::nearest;
use anabranch_study::{results::RunError, schedule::Observer, store::write_alone};
use std::path::{Path, PathBuf};

/// A parameter or reading other than ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Key of the parameter, or name of the reading.
    pub of: String,
    /// `true` for a reading.
    pub is_reading: bool,
    /// Settings that give it, `KEY=VALUE`.
    pub set: Vec<String>,
    /// Entries that have it, by the entry that they replace.
    pub entries: Vec<(String, String)>,
    /// Reason why it is tried.
    pub why: String,
}

impl Turn {
    /// Returns the words for tables: `KEY=VALUE`, or `reading NAME`.
    pub fn words(&self) -> String {
        if self.is_reading { format!("reading {}", self.of) } else { self.set.join(" ") }
    }
}

/// A claim under several settings.
pub struct Why {
    /// Paper of the claim.
    pub paper: Paper,
    /// The claim.
    pub claim: Claim,
    /// Settings: the turns of each. The first is ours, without any.
    pub settings: Vec<Vec<Turn>>,
    /// Parameters and readings that are not tried, with the reason.
    pub left_out: Vec<String>,
    reproduction: Reproduction,
}

/// Result of a setting.
pub struct SettingResult {
    /// Turns; none for ours.
    pub turns: Vec<Turn>,
    /// Judgement under the setting.
    pub judged: Judged,
    /// `true` if the verdict rests on a p-value, which the correction for several tries changes; `false` if intervals decide it.
    pub is_tested: bool,
}

impl SettingResult {
    /// Returns the words for tables.
    pub fn words(&self) -> String {
        match self.turns.as_slice() {
            [] => "ours".to_string(),
            turns => turns.iter().map(Turn::words).collect::<Vec<_>>().join(", "),
        }
    }

    /// Returns `true` if the setting has results.
    pub fn is_judged(&self) -> bool {
        self.judged.verdict != Verdict::NotRun
    }

    /// Returns the mean effect over the groups of the claim, in its unit; `None` without results.
    pub fn effect(&self) -> Option<f64> {
        let effects: Vec<f64> = self.judged.details.iter().map(|detail| detail.effect).collect();
        let mean = effects.iter().sum::<f64>() / effects.len() as f64;
        mean.is_finite().then_some(mean)
    }
}

/// Results of every setting.
pub struct WhyOutcome {
    /// A result per setting, ours first.
    pub results: Vec<SettingResult>,
    /// The runs behind them.
    pub runs: ReproductionOutcome,
}

impl WhyOutcome {
    /// Returns the number of settings tried, ours excluded.
    pub fn tries(&self) -> usize {
        self.results.len().saturating_sub(1)
    }

    /// Returns the number of settings with results, ours excluded.
    pub fn judged(&self) -> usize {
        self.results.iter().skip(1).filter(|result| result.is_judged()).count()
    }

    /// Returns `true` if the verdict of a setting differs from ours; `None` unless both have results.
    pub fn is_flip(&self, result: &SettingResult) -> Option<bool> {
        let ours = self.results.first().filter(|ours| ours.is_judged())?;
        result.is_judged().then(|| result.judged.verdict != ours.judged.verdict)
    }

    /// Returns the settings whose verdict differs from ours, among those with results.
    pub fn flips(&self) -> impl Iterator<Item = &SettingResult> {
        self.results.iter().skip(1).filter(|result| self.is_flip(result) == Some(true))
    }

    /// Returns the words that mark a claim that is reproduced under some readings alone, ours among them, with each reading's verdict.
    pub fn depends_on(&self) -> Option<String> {
        let mut ours = self.results.first()?.judged.clone();
        for result in &self.results[1..] {
            if let [turn] = result.turns.as_slice()
                && turn.is_reading
                && !ours.readings.iter().any(|(known, _)| *known == turn.of)
            {
                ours.readings.push((turn.of.clone(), result.judged.verdict));
            }
        }
        ours.depends_on()
    }
}

impl Why {
    /// Plans the settings of the claim `id` at `scale`; those of two turns too if `in_pairs`.
    ///
    /// # Errors
    /// [`ScenarioError`] if there is no such claim, several papers have it, or nothing of it is open.
    pub fn new(claim_sets: &[ClaimSet], id: &str, scale: Scale, in_pairs: bool) -> Result<Self, ScenarioError> {
        let (claim_set, claim) = find(claim_sets, id)?;
        let mut left_out = vec![];
        let turns = turns(claim_set, claim, scale, &mut left_out)?;
        if turns.is_empty() {
            return Err(nothing_open(claim, &left_out));
        }
        let mut settings: Vec<Vec<Turn>> = vec![vec![]];
        settings.extend(turns.iter().map(|turn| vec![turn.clone()]));
        if in_pairs {
            for (number, turn) in turns.iter().enumerate() {
                let others = turns[number + 1..].iter().filter(|other| other.of != turn.of);
                settings.extend(others.map(|other| vec![turn.clone(), other.clone()]));
            }
        }
        // A setting with the runs and entries of another one, ours above all, shows nothing.
        let mut seen: Vec<(Vec<String>, Claim)> = vec![];
        let mut kept = vec![];
        let mut sets = vec![];
        for turns in settings {
            let set = changed(claim_set, claim, scale, &turns)?;
            let plans: Vec<StudyPlan> = set
                .studies
                .iter()
                .filter_map(|study| StudyPlan::new(study, scale).transpose())
                .collect::<Result<_, _>>()?;
            let mut keys: Vec<String> =
                plans.iter().flat_map(|plan| &plan.sweep.plan.runs).map(|run| run.run.clone()).collect();
            keys.sort();
            let own = (keys, set.claims[0].clone());
            if seen.contains(&own) {
                if let [turn] = turns.as_slice() {
                    left_out.push(format!("{}: the runs are those of another setting", turn.words()));
                }
                continue;
            }
            seen.push(own);
            kept.push(turns);
            sets.push(set);
        }
        if kept.len() < 2 {
            return Err(nothing_open(claim, &left_out));
        }
        let mut reproduction = Reproduction::new(sets, scale, None, &[])?;
        let tries = kept.len() as u64 - 1;
        reproduction.paper_plans.iter_mut().for_each(|plan| plan.tries = tries);
        Ok(Why { paper: claim_set.paper, claim: claim.clone(), settings: kept, left_out, reproduction })
    }

    /// Returns the runs of all settings: their number, those missing in `directory`, and the CPU seconds of these.
    ///
    /// # Errors
    /// [`ScenarioError`] if a scenario cannot be planned.
    pub fn cost(&self, directory: &Path, any_commit: bool) -> Result<(usize, usize, f64), ScenarioError> {
        let costs: Vec<Cost> = self.reproduction.costs(directory, any_commit)?;
        let missing = costs.iter().map(|cost| cost.missing).sum();
        Ok((self.reproduction.len(), missing, costs.iter().map(|cost| cost.seconds).sum()))
    }

    /// Returns the missing runs, as [`Reproduction::due`].
    pub fn due(&self, directory: &Path, settings: &ReproductionSettings) -> Vec<(usize, String)> {
        self.reproduction.due(directory, settings)
    }

    /// Executes the missing runs in the store `directory`, judges the claim under every setting, and writes the results to
    /// `reproduce/SCALE/PAPER/why/CLAIM.csv` in it. Returns them with that path.
    ///
    /// # Errors
    /// [`RunError`] if something cannot be run at all, or the results cannot be written.
    pub fn execute(
        &self,
        directory: &Path,
        settings: &ReproductionSettings,
        observer: &dyn Observer,
    ) -> Result<(WhyOutcome, PathBuf), RunError> {
        let mut runs = self.reproduction.run(directory, settings, observer)?;
        let mut results = vec![];
        for ((turns, plan), paper) in self.settings.iter().zip(&self.reproduction.paper_plans).zip(&mut runs.papers) {
            let Some((claim, judged)) = paper.claims.pop() else { continue };
            let is_tested = is_tested(&claim, &judged, plan, paper)?;
            results.push(SettingResult { turns: turns.clone(), judged, is_tested });
        }
        let outcome = WhyOutcome { results, runs };
        let folder = self.reproduction.folder(directory, self.paper.name).join("why");
        let path = folder.join(format!("{}.csv", self.claim.id));
        let failed = |error: std::io::Error| {
            RunError::Scenario(ScenarioError::new(format!("{} cannot be written: {error}", folder.display())))
        };
        write_alone(directory, || {
            // Without its manifest the store would be a foreign directory to the next command.
            create_store(directory, VERSION, REPRODUCE)?;
            disk::make_directories(&folder).map_err(failed)?;
            let file =
                OutputFile::new(&path, true, &Inputs::default()).map_err(std::io::Error::other).map_err(failed)?;
            file.write_all(to_csv(&outcome).as_bytes()).map_err(std::io::Error::other).map_err(failed)
        })?;
        Ok((outcome, path))
    }
}

/// Returns `true` if the verdict rests on a p-value: it needs a significant direction, or would be another without any.
fn is_tested(claim: &Claim, judged: &Judged, plan: &PaperPlan, paper: &PaperResult) -> Result<bool, ScenarioError> {
    let needs_direction = |published: &Published, none: f64| match published {
        Published::Number(_) | Published::Direction(_) => true,
        Published::Range(low, high) => *low > none || *high < none,
        Published::AtLeast(bound) => *bound > none,
        Published::AtMost(_) => false,
    };
    let is_directed = match &claim.kind {
        ClaimKind::Change(_, _, published) => needs_direction(published, 0.0),
        ClaimKind::Factor(_, _, published) => needs_direction(published, 1.0),
        ClaimKind::Order(_, strict) | ClaimKind::Trend(_, _, strict) => *strict,
        ClaimKind::Value(..) | ClaimKind::Equal(..) | ClaimKind::Shown(_) => false,
    };
    if is_directed && matches!(judged.verdict, Verdict::Reproduced | Verdict::Stronger | Verdict::Weaker) {
        return Ok(true);
    }
    let selected = Selected::new(claim, &plan.plans, plan.scale)?;
    let without = judge(&selected, &paper.rows, u64::MAX).after_tries;
    Ok(judged.verdict != Verdict::NotRun && without.is_some_and(|(_, verdict)| verdict != judged.verdict))
}

/// Header of the table of settings.
pub const WHY_COLUMNS: &str =
    "setting,turned,verdict,published,ours,effect,against_ours,seeds,settings_tried,verdict_after_tries,why";

fn to_csv(outcome: &WhyOutcome) -> String {
    let ours = outcome.results.first().and_then(SettingResult::effect);
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let row = |result: &SettingResult| {
        vec![
            result.words(),
            result.turns.len().to_string(),
            result.judged.verdict.words().to_string(),
            result.judged.published.clone(),
            result.judged.ours.clone(),
            number(result.effect()),
            number(result.effect().zip(ours).map(|(own, ours)| own - ours)),
            result.judged.seeds.to_string(),
            outcome.tries().to_string(),
            result.judged.after_tries.map_or(String::new(), |(_, verdict)| verdict.words().to_string()),
            result.turns.iter().map(|turn| turn.why.clone()).collect::<Vec<_>>().join("; "),
        ]
    };
    csv(WHY_COLUMNS.split(','), outcome.results.iter().map(row))
}

fn find<'c>(claim_sets: &'c [ClaimSet], id: &str) -> Result<(&'c ClaimSet, &'c Claim), ScenarioError> {
    let all = || claim_sets.iter().flat_map(|set| set.claims.iter().map(move |claim| (set, claim)));
    let found: Vec<_> = all().filter(|(_, claim)| claim.id == id).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            let names = all().map(|(_, claim)| claim.id.as_str());
            let error = ScenarioError::new(format!("--why: there is no claim `{id}` (`--list` names them)"));
            Err(did_you_mean(error, nearest(id, names)))
        }
        several => {
            let papers: Vec<&str> = several.iter().map(|(set, _)| set.paper.name).collect();
            let message = format!("--why: several papers have a claim `{id}`: {}", list(&papers));
            Err(ScenarioError::new(message).help(format!("name one: anabranch reproduce {} --why {id}", papers[0])))
        }
    }
}

fn nothing_open(claim: &Claim, left_out: &[String]) -> ScenarioError {
    let open = match claim.ours.as_slice() {
        [] => "it names no open parameter in `ours` and no reading".to_string(),
        ours => format!(
            "of its open parameters {} none has values to try",
            list(&ours.iter().map(String::as_str).collect::<Vec<_>>())
        ),
    };
    let reasons = if left_out.is_empty() { String::new() } else { format!(" ({})", left_out.join("; ")) };
    ScenarioError::new(format!("--why: nothing of the claim `{}` can be turned: {open}{reasons}", claim.id))
        .at(claim.place.clone())
        .help("add [[open]] with the key and values, or [[reading]], to the claim file: docs/reference/claims.md")
}

/// Returns the turns of a claim; what cannot be turned is added to `left_out`.
fn turns(
    claim_set: &ClaimSet,
    claim: &Claim,
    scale: Scale,
    left_out: &mut Vec<String>,
) -> Result<Vec<Turn>, ScenarioError> {
    let studies = || claim.studies_at(scale).iter().filter_map(|id| claim_set.study(id));
    let mut turns = vec![];
    for key in &claim.ours {
        if studies().all(|study| sweeps(study, key)) {
            left_out.push(format!("{key}: its studies run several values already"));
            continue;
        }
        let Some(open) = claim_set.open.iter().find(|open| open.key == *key) else {
            left_out.push(format!("{key}: no [[open]] names values to try"));
            continue;
        };
        turns.extend(open.values.iter().map(|value| Turn {
            of: key.clone(),
            is_reading: false,
            set: vec![format!("{key}={value}")],
            entries: vec![],
            why: open.why.clone(),
        }));
    }
    for reading in claim_set.readings_of(claim) {
        let swept = reading.set.iter().find_map(|change| {
            let key = change.split('=').next().unwrap_or_default().trim();
            studies().all(|study| sweeps(study, key)).then(|| key.to_string())
        });
        if let Some(key) = swept {
            left_out.push(format!("reading {}: the studies run several values of {key} already", reading.id));
            continue;
        }
        turns.push(Turn {
            of: reading.id.clone(),
            is_reading: true,
            set: reading.set.clone(),
            entries: reading.entries.clone(),
            why: reading.why.clone(),
        });
    }
    Ok(turns)
}

/// Returns a claim set of the claim alone, with its studies under a setting.
fn changed(claim_set: &ClaimSet, claim: &Claim, scale: Scale, turns: &[Turn]) -> Result<ClaimSet, ScenarioError> {
    let ids = claim.studies_at(scale);
    let mut other = ClaimSet {
        studies: claim_set.studies.iter().filter(|study| ids.contains(&study.id)).cloned().collect(),
        figures: vec![],
        claims: vec![claim.clone()],
        ..claim_set.clone()
    };
    // Readings are turns here, and judged one by one.
    other.claims[0].readings = vec![];
    for turn in turns {
        other =
            with_changes(&other, &turn.set, None).map_err(|error| error.of(&turn.words()).at(claim.place.clone()))?;
        let entry = |name: &str| {
            turn.entries.iter().find(|(own, _)| own == name).map_or(name.to_string(), |(_, other)| other.clone())
        };
        other.claims[0] = other.claims[0].with_entries(&entry);
    }
    Ok(other)
}
