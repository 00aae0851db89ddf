//! `claims/predictions.toml`: expected results of claims before their runs at the full scale, with date and reason.

use super::{
    claim_set::{ClaimSet, PAPERS},
    paper_plan::PaperResult,
    verdict::Verdict,
};
use anabranch_scenario::{
    error::ScenarioError,
    section::{Section, did_you_mean, list},
    tree::{Place, Tree},
};
use anabranch_settings::nearest;
use std::path::Path;

const EMBEDDED: &str = include_str!("../../../../claims/predictions.toml");
const NAME: &str = "claims/predictions.toml";

/// Expectation of a claim, written down before its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Paper name.
    pub paper: String,
    /// Claim of the paper.
    pub claim: String,
    /// Day of the prediction, `YYYY-MM-DD`.
    pub date: String,
    /// Expected verdict; `None` if only the numbers are predicted.
    pub verdict: Option<Verdict>,
    /// Expected result, in words.
    pub expects: String,
    /// Reason for it.
    pub why: String,
    place: Place,
}

impl Prediction {
    /// Formats what is expected.
    pub fn words(&self) -> String {
        match self.verdict {
            Some(verdict) => format!("{}: {} ({})", verdict.words(), self.expects, self.date),
            None => format!("{} ({})", self.expects, self.date),
        }
    }
}

/// Returns the predictions that the command was built with.
///
/// # Errors
/// [`ScenarioError`] of the first error in the file.
pub fn predictions() -> Result<Vec<Prediction>, ScenarioError> {
    read_predictions(NAME, EMBEDDED)
}

/// Checks `predictions.toml` in `folder`, or the file that the command was built with, against claim sets. A folder without the file
/// predicts nothing.
///
/// # Errors
/// [`ScenarioError`] of the first error in the file, with its place.
pub fn check_all_predictions(claim_sets: &[ClaimSet], folder: Option<&Path>) -> Result<(), ScenarioError> {
    let found = match folder.map(|folder| folder.join("predictions.toml")) {
        None => predictions()?,
        Some(path) if !path.exists() => return Ok(()),
        Some(path) => {
            let name = path.display().to_string();
            let unreadable = |error| ScenarioError::new(format!("{name} cannot be read: {error}"));
            let text = anabranch_input::read_text(&path, anabranch_input::MAX_TEXT).map_err(unreadable)?;
            read_predictions(&name, &text)?
        }
    };
    claim_sets.iter().try_for_each(|claim_set| check_predictions(&found, claim_set))
}

/// Parses a file of predictions.
///
/// # Errors
/// [`ScenarioError`] with its place: a missing key, an unknown paper or verdict, a date that is no day, two predictions of a claim.
pub fn read_predictions(name: &str, text: &str) -> Result<Vec<Prediction>, ScenarioError> {
    let tree = Tree::parse(name, text)?;
    let mut root = Section::of(tree.root(), "the file of predictions")?;
    let mut found: Vec<Prediction> = vec![];
    for mut section in root.tables("prediction", "prediction")? {
        let prediction = prediction(&mut section)?;
        section.finish(&["paper", "claim", "date", "verdict", "expects", "why"])?;
        if found.iter().any(|other| other.paper == prediction.paper && other.claim == prediction.claim) {
            let message = format!("{} `{}` is predicted twice", prediction.paper, prediction.claim);
            return Err(ScenarioError::new(message).at(prediction.place));
        }
        found.push(prediction);
    }
    root.finish(&["prediction"])?;
    Ok(found)
}

fn prediction(section: &mut Section<'_>) -> Result<Prediction, ScenarioError> {
    let mut need = |key: &str| {
        let missing = section.error(format!("`{key}` is missing"));
        section.read::<String>(key)?.filter(|text| !text.trim().is_empty()).ok_or(missing)
    };
    let (paper, claim, date) = (need("paper")?, need("claim")?, need("date")?);
    let (expects, why) = (need("expects")?, need("why")?);
    let papers: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
    if !papers.contains(&paper.as_str()) {
        let error = section.error(format!("no paper `{paper}`; there are {}", list(&papers)));
        return Err(did_you_mean(error, nearest(&paper, papers)));
    }
    if !is_day(&date) {
        return Err(section.error(format!("`date`: found \"{date}\", expected a day such as \"2026-11-27\"")));
    }
    let words: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.words()).collect();
    let word = section.word("verdict", &words)?;
    let verdict = word.and_then(|word| Verdict::ALL.into_iter().find(|verdict| verdict.words() == word));
    let nowhere = || section.error("a prediction without a place");
    let place = section.place().ok_or_else(nowhere)?;
    Ok(Prediction { paper, claim, date, verdict, expects, why, place })
}

/// Returns `true` for a day of the calendar, `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number = |text: &str, digits: usize| {
        (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Checks that every prediction of the paper of `claim_set` is about one of its claims.
///
/// # Errors
/// [`ScenarioError`] with the place of the prediction, and the nearest claim.
pub fn check_predictions(predictions: &[Prediction], claim_set: &ClaimSet) -> Result<(), ScenarioError> {
    let names: Vec<&str> = claim_set.claims.iter().map(|claim| claim.id.as_str()).collect();
    for prediction in predictions.iter().filter(|prediction| prediction.paper == claim_set.paper.name) {
        if !names.contains(&prediction.claim.as_str()) {
            let message = format!("{} has no claim `{}` to predict", prediction.paper, prediction.claim);
            let error = ScenarioError::new(message).at(prediction.place.clone());
            return Err(did_you_mean(error, nearest(&prediction.claim, names.iter().copied())));
        }
    }
    Ok(())
}

/// Returns a table of predicted, published and ours in Markdown, for the papers in `results`.
pub(crate) fn table(predictions: &[Prediction], results: &[&PaperResult]) -> String {
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    let mut text =
        String::from("| claim | predicted | published | ours | verdict | right |\n|---|---|---|---|---|---|\n");
    let (mut right, mut judged_count) = (0, 0);
    for prediction in predictions {
        let of_paper = results.iter().filter(|result| result.paper == prediction.paper);
        let Some((claim, judged)) =
            of_paper.flat_map(|result| &result.claims).find(|(claim, _)| claim.id == prediction.claim)
        else {
            continue;
        };
        let is_right = match (prediction.verdict, judged.verdict) {
            (_, Verdict::NotRun) | (None, _) => "",
            (Some(expected), found) => {
                judged_count += 1;
                right += usize::from(expected == found);
                if expected == found { "yes" } else { "no" }
            }
        };
        text += &format!(
            "| {} `{}` | {} | {} | {} | {} | {is_right} |\n",
            prediction.paper,
            claim.id,
            cell(&format!("{} Because {}", prediction.words(), prediction.why)),
            cell(&judged.published),
            cell(&judged.ours),
            cell(&judged.words())
        );
    }
    text + &format!("\n{right} of {judged_count} predicted verdicts are right.\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim_set::claim_sets;

    const ONE: &str = "[[prediction]]\npaper = \"prime\"\nclaim = \"degraded-reps\"\ndate = \"2026-11-27\"\nverdict = \"reproduced\"\n\
                       expects = \"-27 %\"\nwhy = \"the abstract says so\"\n";

    #[test]
    fn predictions_are_read_and_checked() {
        let found = read_predictions("p.toml", ONE).unwrap();
        assert_eq!((found.len(), found[0].verdict), (1, Some(Verdict::Reproduced)));
        let prime = &claim_sets("prime", None).unwrap()[0];
        check_predictions(&found, prime).unwrap();
        let error = |text: String| {
            let found = read_predictions("p.toml", &text).and_then(|found| check_predictions(&found, prime));
            let error = found.expect_err(&text);
            assert!(error.line_column().is_some(), "no place: {error}");
            format!("{error} {}", error.remedy().unwrap_or_default())
        };
        for (from, to, words) in [
            ("degraded-reps", "degraded-rep", "did you mean `degraded-reps`?"),
            ("\"prime\"", "\"prim\"", "did you mean `prime`?"),
            ("2026-11-27", "2026-02-30", "expected a day"),
            ("2026-11-27", "27.11.2026", "expected a day"),
            ("reproduced", "true", "not reproduced"),
            ("why = \"the abstract says so\"", "why = \"\"", "`why` is missing"),
            ("expects", "expect", "`expects` is missing"),
        ] {
            let message = error(ONE.replacen(from, to, 1));
            assert!(message.contains(words), "{to}: {message}");
        }
        assert!(error(format!("{ONE}{ONE}")).contains("predicted twice"));
    }

    #[test]
    fn predictions_beside_the_claims_of_a_folder_are_checked() {
        let folder = anabranch_testkit::folder();
        let prime = claim_sets("prime", None).unwrap();
        check_all_predictions(&prime, Some(&folder)).unwrap();
        std::fs::write(folder.join("predictions.toml"), ONE.replace("degraded-reps", "degraded-rep")).unwrap();
        let error = check_all_predictions(&prime, Some(&folder)).unwrap_err();
        assert!(error.source_name().is_some_and(|name| name.ends_with("predictions.toml")), "{error}");
        std::fs::write(folder.join("predictions.toml"), "garbage").unwrap();
        check_all_predictions(&prime, Some(&folder)).unwrap_err();
        check_all_predictions(&claim_sets("all", None).unwrap(), None).unwrap();
    }

    #[test]
    fn the_file_of_the_repository_is_valid() {
        let found = predictions().unwrap_or_else(|error| panic!("{error}"));
        for set in claim_sets("all", None).unwrap() {
            check_predictions(&found, &set).unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
