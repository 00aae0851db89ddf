//! `anabranch reproduce --why CLAIM`: which open parameters and readings flip the verdict of a claim.

use super::{
    reproduce::settings,
    request::{directory, runs_failed, threads},
};
use crate::{
    arguments::{Format, Reproduce},
    failure::Failure,
    printing::{note, print, print_json, table, width, wrapped},
    progress::NumberedProgress,
};
use anabranch_claims::{ClaimSet, Scale, SettingResult, Why, WhyOutcome};
use anabranch_report::significant_digits;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(super) fn why(claim_sets: &[ClaimSet], claim: &str, scale: Scale, arguments: &Reproduce) -> Result<(), Failure> {
    let why = Why::new(claim_sets, claim, scale, !arguments.singles)?;
    let output = arguments.options.out.clone().unwrap_or_else(|| PathBuf::from("results/reproduce"));
    directory(&arguments.options, "reproduce", 0)?;
    let (runs, missing, seconds) = why.cost(&output, arguments.any_commit)?;
    let settings = settings(arguments);
    let due = why.due(&output, &settings);
    let repeated = if arguments.again.is_some() { due.len().saturating_sub(missing) } else { 0 };
    let cost = Cost { runs, missing, repeated, seconds };
    if arguments.dry_run {
        print_plan(&why, scale, &cost, &output, arguments);
        return Ok(());
    }
    note(&format!("{}, {runs} runs", cost_words(&why, scale, &cost, arguments)));
    let watch = NumberedProgress::new(arguments.options.progress, due, runs);
    let outcome = why.execute(&output, &settings, &watch);
    watch.watch.close();
    let (outcome, path) = outcome?;
    match arguments.options.format {
        Format::Json => print_json(&as_json(&why, &outcome, scale, &path)),
        Format::Table => print_results(&why, &outcome, scale),
    }
    note(&format!("a row per setting in {}", path.display()));
    if outcome.runs.missing > 0 {
        note(&format!("{} of {} runs are missing", outcome.runs.missing, outcome.runs.runs));
    }
    if outcome.runs.interrupted {
        note("partial: repeat the command to continue");
        return Err(Failure::Interrupted);
    }
    if !outcome.runs.failed.is_empty() {
        return Err(runs_failed(&outcome.runs.failed, outcome.runs.runs));
    }
    Ok(())
}

/// Runs of all settings.
struct Cost {
    runs: usize,
    missing: usize,
    /// Finished runs that `--again` repeats.
    repeated: usize,
    /// CPU seconds of the missing runs.
    seconds: f64,
}

fn cost_words(why: &Why, scale: Scale, cost: &Cost, arguments: &Reproduce) -> String {
    let tries = why.settings.len() - 1;
    let threads = threads(&arguments.options);
    let (hours, minutes) = (cost.seconds / 3600.0, cost.seconds / 60.0 / threads as f64);
    let missing = match cost.missing {
        0 => "no run is missing".to_string(),
        missing if arguments.no_run => format!("{missing} missing and not run"),
        missing => format!("{missing} missing: about {hours:.2} CPU hours, {minutes:.0} minutes on {threads} threads"),
    };
    let words = match (cost.missing, cost.repeated) {
        (_, 0) => missing,
        (0, repeated) => format!("--again repeats {repeated} finished"),
        (_, repeated) => format!("{missing}; --again repeats {repeated} finished"),
    };
    format!("{} scale: ours and {tries} other settings; {words}", scale.word())
}

fn print_plan(why: &Why, scale: Scale, cost: &Cost, output: &Path, arguments: &Reproduce) {
    let Cost { runs, missing, repeated, seconds } = *cost;
    let words = |turns: &[anabranch_claims::Turn]| match turns {
        [] => "ours".to_string(),
        turns => turns.iter().map(anabranch_claims::Turn::words).collect::<Vec<_>>().join(", "),
    };
    if arguments.options.format == Format::Json {
        print_json(&json!({
            "paper": why.paper.name, "claim": why.claim.id, "scale": scale.word(),
            "settings": why.settings.iter().map(|turns| words(turns)).collect::<Vec<_>>(),
            "left_out": why.left_out, "runs": runs, "missing": missing, "repeated": repeated, "cpu_seconds": seconds,
            "directory": output.to_string_lossy(),
        }));
        return;
    }
    print("settings:\n");
    why.settings.iter().for_each(|turns| print(&format!("  {}\n", words(turns))));
    let mut reasons: Vec<(&str, &str)> = vec![];
    for turn in why.settings.iter().flatten() {
        if !reasons.contains(&(turn.of.as_str(), turn.why.as_str())) {
            reasons.push((&turn.of, &turn.why));
        }
    }
    let mut text = String::from("\n");
    reasons.iter().for_each(|(of, why)| text += &format!("{of}: {why}\n"));
    why.left_out.iter().for_each(|reason| text += &format!("not tried: {reason}\n"));
    text += &format!("\n{}, {runs} runs\n", cost_words(why, scale, cost, arguments));
    print(&wrapped(&text, width()));
}

/// Returns the difference of a setting's effect to that of ours, as text.
fn against(result: &SettingResult, ours: Option<f64>) -> String {
    match result.effect().zip(ours) {
        Some((own, ours)) if !result.turns.is_empty() => {
            let difference = own - ours;
            let sign = if difference < 0.0 { "-" } else { "+" };
            format!("{sign}{}", significant_digits(difference.abs(), 3))
        }
        _ => String::new(),
    }
}

fn print_results(why: &Why, outcome: &WhyOutcome, scale: Scale) {
    let Some(first) = outcome.results.first() else { return };
    let ours = first.effect();
    let head = format!(
        "{} {} ({}), {} scale: {}\n{}\npublished {}\n\n",
        why.paper.name,
        why.claim.id,
        why.claim.source(),
        scale.word(),
        first.judged.verdict.words(),
        why.claim.says,
        first.judged.published
    );
    print(&wrapped(&head, width()));
    let row = |result: &SettingResult| {
        vec![
            result.words(),
            result.judged.ours.clone(),
            against(result, ours),
            result.judged.verdict.words().to_string(),
            match result.judged.after_tries {
                Some((_, after)) if !result.turns.is_empty() && result.is_tested => after.words().to_string(),
                Some(_) if !result.turns.is_empty() => "does not apply".to_string(),
                _ => String::new(),
            },
        ]
    };
    let rows: Vec<Vec<String>> = outcome.results.iter().map(row).collect();
    // A row per setting is wider than a terminal: it is not wrapped.
    print(&format!("{}\n", table(&["setting", "result", "against ours", "verdict", "corrected"], &rows)));
    let mut text = String::new();
    let flips: Vec<&SettingResult> = outcome.flips().collect();
    let (tries, judged) = (outcome.tries(), outcome.judged());
    text += &match (first.is_judged(), judged, flips.len()) {
        (false, ..) => format!("Ours has no result, so no flip can be told; {judged} of {tries} settings have one.\n"),
        (true, 0, _) => format!("None of {tries} settings has a result.\n"),
        (true, _, 0) => format!("None of {judged} settings flips the verdict.\n"),
        (true, _, flips) => format!("{flips} of {judged} settings flip the verdict.\n"),
    };
    if first.is_judged() && (1..tries).contains(&judged) {
        text += &format!("{} of {tries} settings have no result.\n", tries - judged);
    }
    for result in flips {
        let after = result.judged.after_tries.map_or(result.judged.verdict, |(_, verdict)| verdict);
        let words = match result.is_tested {
            true if after == result.judged.verdict => format!("which holds after the correction for {tries} tries"),
            true => format!("which does not hold after the correction for {tries} tries"),
            false => "by its interval, to which the correction does not apply".to_string(),
        };
        text += &format!("{}: {}, {words}\n", result.words(), result.judged.verdict.words());
    }
    if judged > 0 {
        text += &format!(
            "corrected: the verdict with p-values times {tries} (Bonferroni); intervals remain those of one setting.\n"
        );
    }
    if let Some(readings) = outcome.depends_on() {
        text += &format!("depends on a reading: {readings}\n");
    }
    if !first.judged.limits.is_empty() {
        text += &format!("{}\n", first.judged.limits);
    }
    why.left_out.iter().for_each(|reason| text += &format!("not tried: {reason}\n"));
    print(&wrapped(&text, width()));
}

fn as_json(why: &Why, outcome: &WhyOutcome, scale: Scale, path: &Path) -> Value {
    let ours = outcome.results.first().and_then(SettingResult::effect);
    let result = |result: &SettingResult| {
        json!({
            "setting": result.words(),
            "turned": result.turns.iter().map(|turn| json!({ "of": turn.of, "reading": turn.is_reading, "set": turn.set,
                "why": turn.why })).collect::<Vec<_>>(),
            "verdict": result.judged.verdict.words(),
            "flips": outcome.is_flip(result),
            "ours": result.judged.ours,
            "effect": result.effect(),
            "against_ours": result.effect().zip(ours).map(|(own, ours)| own - ours),
            "seeds": result.judged.seeds,
            "correction_applies": result.is_judged().then_some(result.is_tested),
            "verdict_after_tries": result.judged.after_tries.map(|(_, verdict)| verdict.words()),
        })
    };
    json!({
        "paper": why.paper.name, "claim": why.claim.id, "says": why.claim.says, "scale": scale.word(),
        "published": outcome.results.first().map(|result| &result.judged.published),
        "settings": outcome.results.iter().map(result).collect::<Vec<_>>(),
        "settings_tried": outcome.tries(), "settings_judged": outcome.judged(),
        "depends_on": outcome.depends_on(),
        "left_out": why.left_out,
        "runs": outcome.runs.runs, "reused_runs": outcome.runs.reused, "missing": outcome.runs.missing,
        "file": path.to_string_lossy(),
    })
}
