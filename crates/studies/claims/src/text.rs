//! Verdicts as text: CSV for programs, Markdown for the docs.

use super::{
    Claim, ClaimSet, Detail, Figure, FigureKind, Judged, Paper, PaperPlan, PaperResult, ReproductionOutcome, Rows,
    Scale, Shown, StoredRows, StudyPlan, Verdict, csv, sig,
};
use anabranch_report::{ClaimPage, ClaimRow};
use anabranch_results::capital;
use anabranch_scenario::{COMMIT, VERSION};
use std::collections::{BTreeMap, BTreeSet};

const CLAIMS: &str = "paper,claim,figure,section,says,studies,metric,published,ours,verdict,seeds,open,note,limits,readings,tries,after_tries";

pub(super) fn claims_csv(paper_plan: &PaperPlan, paper: &PaperResult) -> String {
    let maybe = |text: &Option<String>| text.clone().unwrap_or_default();
    let row = |(claim, judged): &(Claim, Judged)| {
        vec![
            paper.paper.to_string(),
            claim.id.clone(),
            maybe(&claim.figure),
            maybe(&claim.section),
            claim.says.clone(),
            claim.studies_at(paper_plan.scale).join(" "),
            claim.metric.name().to_string(),
            judged.published.clone(),
            judged.ours.clone(),
            judged.verdict.word().to_string(),
            judged.seeds.to_string(),
            claim.ours.join(" "),
            maybe(&claim.note),
            judged.limits.clone(),
            judged.depends_on().unwrap_or_default(),
            judged.after_tries.map_or(String::new(), |(tries, _)| tries.to_string()),
            judged.after_tries.map_or(String::new(), |(_, verdict)| verdict.word().to_string()),
        ]
    };
    csv(CLAIMS.split(','), paper.claims.iter().map(row))
}

const COMPARISONS: &str = "claim,at,a,a_mean,b,b_mean,effect,ci95_low,ci95_high,significant,seeds";

/// Returns `comparisons.csv`, one row per comparison that a verdict rests on.
pub(super) fn comparisons_csv(paper: &PaperResult) -> String {
    let number = |value: f64| if value.is_nan() { String::new() } else { value.to_string() };
    let row = |claim: &Claim, detail: &Detail| {
        let at: Vec<String> = detail.at.iter().map(|(name, value)| format!("{name}={value}")).collect();
        vec![
            claim.id.clone(),
            at.join(" "),
            detail.a.clone(),
            number(detail.a_mean),
            detail.b.clone(),
            number(detail.b_mean),
            number(detail.effect),
            detail.interval.map_or(String::new(), |interval| number(interval.0)),
            detail.interval.map_or(String::new(), |interval| number(interval.1)),
            detail.significant.map_or(String::new(), |significant| significant.to_string()),
            detail.seeds.to_string(),
        ]
    };
    let rows = paper.claims.iter().flat_map(|(claim, judged)| judged.details.iter().map(move |detail| (claim, detail)));
    csv(COMPARISONS.split(','), rows.map(|(claim, detail)| row(claim, detail)))
}

pub(super) fn page(paper_plan: &PaperPlan, paper: &PaperResult, outcome: &ReproductionOutcome) -> ClaimPage {
    let scale = paper_plan.scale;
    let size = |id: &String| paper_plan.plans.get(id).map_or(id.clone(), |plan| plan.size(scale));
    let sizes = |claim: &Claim| {
        let sizes: Vec<String> = claim.studies_at(scale).iter().map(size).collect();
        [other_studies(claim, scale), Some(sizes.join("; "))].into_iter().flatten().collect::<Vec<_>>().join(": ")
    };
    let line = |(claim, judged): &(Claim, Judged)| ClaimRow {
        id: claim.id.clone(),
        place: claim.source(),
        says: claim.says.clone(),
        published: judged.published.clone(),
        ours: if judged.verdict == Verdict::NotRun { "-".into() } else { with_limits(judged) },
        verdict: verdict_words(judged),
        size: sizes(claim),
        open: claim.ours.join(", "),
        note: claim.note.clone().unwrap_or_default(),
    };
    let mut warnings = vec![];
    if outcome.missing > 0 {
        warnings.push(format!("{} of {} requested runs are missing.", outcome.missing, outcome.runs));
    }
    warnings.extend(
        outcome
            .failed
            .iter()
            .map(|(name, error)| format!("Failed: {name}: {}", error.lines().next().unwrap_or_default())),
    );
    ClaimPage {
        title: paper_plan.claim_set.paper.title.to_string(),
        scale: scale.word().to_string(),
        totals: totals(paper.claims.iter().map(|(_, judged)| judged)),
        warnings,
        claims: paper.claims.iter().map(line).collect(),
        version: format!("{VERSION}, commit {COMMIT}"),
    }
}

/// Formats every verdict with its basis, for a terminal of `width` columns.
pub fn summary_text(paper_plans: &[PaperPlan], scale: Scale, outcome: &ReproductionOutcome, width: usize) -> String {
    let options = textwrap::Options::new(width).initial_indent("    ").subsequent_indent("    ");
    let mut text = String::new();
    for (paper, paper_plan) in outcome.papers.iter().zip(paper_plans) {
        for (claim, judged) in &paper.claims {
            let head = format!("{} {} ({}): {}", paper.paper, claim.id, claim.source(), verdict_words(judged));
            text += &(textwrap::fill(&head, textwrap::Options::new(width).subsequent_indent("    ")) + "\n");
            let mut line = |words: &str| text += &(textwrap::fill(words, &options) + "\n");
            line(&claim.says);
            match judged.verdict {
                Verdict::NotRun => line(&format!("published {}", judged.published)),
                _ => line(&format!("published {}; ours {}", judged.published, with_limits(judged))),
            }
            if let Some(other) = other_studies(claim, scale) {
                line(&other);
            }
            for study in claim.studies_at(scale) {
                line(&paper_plan.plans.get(study).map_or(study.clone(), |plan| plan.size(scale)));
            }
        }
    }
    let tables = |(figure, shown): &(Figure, Option<Shown>)| {
        Some(shown.as_ref()?.tables.clone() + "\n").filter(|_| figure.kind == FigureKind::Matrix)
    };
    text.extend(outcome.papers.iter().flat_map(|paper| paper.figures.iter().filter_map(tables)));
    if outcome.papers.iter().all(|paper| paper.claims.is_empty()) {
        return text;
    }
    let judged = outcome.papers.iter().flat_map(|paper| paper.claims.iter().map(|(_, judged)| judged));
    text + &format!("\n{} scale: {}\n", scale.word(), totals(judged))
}

/// Returns the number of claims per verdict: `12 reproduced, 3 not reproduced`.
pub(crate) fn totals<'j>(judged: impl Iterator<Item = &'j Judged>) -> String {
    let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for judged in judged {
        *counts.entry(judged.verdict).or_default() += 1;
    }
    let parts: Vec<String> = counts.iter().map(|(verdict, count)| format!("{count} {}", verdict.word())).collect();
    if parts.is_empty() { "no claims".into() } else { parts.join(", ") }
}

/// Returns the number of claims per verdict in Markdown, one row per paper and one for all.
pub(super) fn totals_table(papers: &[(Paper, &PaperResult, &BTreeMap<String, StudyPlan>)], scale: Scale) -> String {
    let all = || papers.iter().flat_map(|(_, result, _)| result.claims.iter().map(|(_, judged)| judged.verdict));
    let verdicts: BTreeSet<Verdict> = all().collect();
    let mut text = String::from("| paper | claims |");
    verdicts.iter().for_each(|verdict| text += &format!(" {} |", verdict.word()));
    text += &format!(" runs | seeds |\n|---|{}\n", "---|".repeat(verdicts.len() + 3));
    let mut row = |name: &str, found: &[Verdict], runs: usize, seeds: BTreeSet<usize>| {
        text += &format!("| {name} | {} |", found.len());
        for verdict in &verdicts {
            text += &format!(" {} |", found.iter().filter(|found| *found == verdict).count());
        }
        let seeds = match (seeds.first(), seeds.last()) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (Some(seeds), _) => seeds.to_string(),
            _ => "-".into(),
        };
        text += &format!(" {runs} | {seeds} |\n");
    };
    let mut sum = (0, BTreeSet::new());
    let mut commits = BTreeSet::new();
    for (paper, result, plans) in papers {
        let runs = result.rows.values().map(Rows::runs).sum();
        let planned = result.rows.keys().filter_map(|id| Some(plans.get(id)?.sweep.plan.seeds.len()));
        let seeds: BTreeSet<usize> = planned.collect();
        let verdicts: Vec<Verdict> = result.claims.iter().map(|(_, judged)| judged.verdict).collect();
        sum.0 += runs;
        sum.1.extend(seeds.iter().copied());
        commits.extend(result.rows.values().flat_map(Rows::commits));
        row(paper.title, &verdicts, runs, seeds);
    }
    row("all", &all().collect::<Vec<_>>(), sum.0, sum.1);
    let commits: Vec<&str> = commits.into_iter().collect();
    let commits = if commits.is_empty() { "nothing run".into() } else { format!("commit {}", commits.join(", ")) };
    text + &format!("\n`anabranch reproduce all --scale {}`; {commits}.\n", scale.word())
}

/// Returns a table of verdicts in Markdown, followed by the studies that they rest on.
pub(super) fn verdicts(
    claim_set: &ClaimSet,
    claims: &[&(Claim, Judged)],
    plans: &BTreeMap<String, StudyPlan>,
    paper: &PaperResult,
    stored_rows: &StoredRows,
    scale: Scale,
) -> String {
    let mut text = String::from("| where | the paper says | published | ours | verdict |\n|---|---|---|---|---|\n");
    let cell = |text: &str| text.replace('|', "\\|").replace('\n', " ");
    // Parameters that are our choice, and notes, appear once below the table, since many claims share them.
    let (mut open, mut notes): (Vec<&[String]>, Vec<&str>) = (vec![], vec![]);
    for (claim, judged) in claims {
        let verdict = match judged.verdict {
            Verdict::NotRun => not_run(claim.studies_at(scale), stored_rows, scale),
            _ => judged.words(),
        };
        let mark = match claim.ours.as_slice() {
            [] => String::new(),
            ours => {
                let at = open.iter().position(|known| *known == ours).unwrap_or_else(|| {
                    open.push(ours);
                    open.len() - 1
                });
                format!(" ({})", letter(at))
            }
        };
        let mut number = |note| {
            let at = notes.iter().position(|known| *known == note);
            let at = at.unwrap_or_else(|| {
                notes.push(note);
                notes.len() - 1
            });
            (at + 1).to_string()
        };
        let numbers: Vec<String> = claim.note.iter().flat_map(|note| note.split("; ")).map(&mut number).collect();
        let note = if numbers.is_empty() { String::new() } else { format!(" ({})", numbers.join(", ")) };
        text += &format!(
            "| {} | {}{} | {} | {}{} | {verdict} |\n",
            cell(&claim.source()),
            cell(&claim.says),
            mark,
            cell(&judged.published),
            cell(&with_limits(judged)),
            cell(&note)
        );
    }
    for (at, ours) in open.iter().enumerate() {
        text +=
            &format!("\n({}) values that the paper does not give, chosen by us: `{}`\n", letter(at), ours.join("`, `"));
    }
    for (at, note) in notes.iter().enumerate() {
        text += &format!("\n({}) {note}\n", at + 1);
    }
    let used: BTreeSet<&String> = claims.iter().flat_map(|(claim, _)| claim.studies_at(scale)).collect();
    text += &format!("\n{} scale: {}.\n", capital(scale.word()), totals(claims.iter().map(|(_, judged)| judged)));
    let mut lines = vec![];
    for id in used {
        let Some(plan) = plans.get(id) else { continue };
        let label = claim_set.study(id).map_or(id.as_str(), |study| study.label.as_str());
        let commits: Vec<&str> =
            paper.rows.get(id).map(|rows| rows.commits().into_iter().collect()).unwrap_or_default();
        let commits = if commits.is_empty() { "not run".to_string() } else { format!("commit {}", commits.join(", ")) };
        lines.push(format!("- {label}: `{}`; {commits}", plan.size(scale)));
    }
    text + &lines.join("\n") + "\n"
}

/// Returns the verdict in words; of a claim without one, with the reason.
fn verdict_words(judged: &Judged) -> String {
    match judged.verdict {
        Verdict::NotRun if judged.ours != "-" => format!("{} ({})", judged.words(), judged.ours),
        _ => judged.words(),
    }
}

/// Returns the studies that a claim is judged by where they are not its own: `judged on `strict` at this scale`.
fn other_studies(claim: &Claim, scale: Scale) -> Option<String> {
    let studies = claim.studies_at(scale);
    (studies != claim.studies).then(|| format!("judged on `{}` at this scale", studies.join("`, `")))
}

/// Returns our result with what bound and reference leave open, and with the verdict after the correction for several tries.
fn with_limits(judged: &Judged) -> String {
    let limits = if judged.limits.is_empty() { String::new() } else { format!("; {}", judged.limits) };
    let tries = judged.after_tries.map_or(String::new(), |(tries, verdict)| {
        format!("; after the correction for {tries} settings: {}", verdict.word())
    });
    format!("{}{limits}{tries}", judged.ours)
}

/// Returns `a`, `b`, and so on to `z`, then `a1`.
fn letter(at: usize) -> String {
    let letter = char::from(b'a' + (at % 26) as u8);
    if at < 26 { letter.to_string() } else { format!("{letter}{}", at / 26) }
}

/// Returns `not run (3.2 CPU hours)`, or `not run` if the cost is unknown.
pub(super) fn not_run(studies: &[String], stored_rows: &StoredRows, scale: Scale) -> String {
    let costs: Vec<(usize, f64)> = studies.iter().filter_map(|id| stored_rows.cost(id, scale)).collect();
    if costs.is_empty() {
        return "not run".into();
    }
    let hours: f64 = costs.iter().map(|cost| cost.1).sum();
    let hours = if hours < 0.1 { "less than 0.1".to_string() } else { sig(hours, 2) };
    format!("not run ({hours} CPU hours)")
}
