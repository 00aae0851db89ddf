use super::request::{directory, runs_failed, threads};
use crate::{
    Failure, Format, NumberedProgress, RunOptions, arguments, complete, note, print, print_json, table, width,
};
use anabranch_claims::{
    Claim, ClaimSet, Cost, PaperPlan, Reproduction, ReproductionOutcome, ReproductionSettings, Rows, Scale, StoredRows,
    StudyPlan, claim_sets, pages, summary_text,
};
use anabranch_scenario::ScenarioError;
use anabranch_study::Again;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Size of the studies of `reproduce`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StudySize {
    /// Every claim in minutes, at smaller sizes
    #[default]
    Quick,
    /// The papers' sizes
    Full,
}

/// Help of `--out` where all commands share one store.
const OUT_OF_REPRODUCE: &str = "Directory for results [default: results/reproduce]";

#[derive(Debug, clap::Args)]
#[command(mut_arg("out", |out| out.help(OUT_OF_REPRODUCE)))]
pub(crate) struct Reproduce {
    /// Paper: hopper, hf2t, prime, spritz, mrc, matrix, or all
    #[arg(value_name = "PAPER", add = complete::papers())]
    pub(crate) paper: String,
    #[command(flatten)]
    pub(crate) how: How,
}

#[derive(Debug, clap::Args)]
#[command(mut_arg("out", |out| out.help(OUT_OF_REPRODUCE)))]
pub(crate) struct Matrix {
    /// Restrict to these schemes [default: all that fit a ground]
    #[arg(long, value_name = "SCHEME,...", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    #[command(flatten)]
    pub(crate) how: How,
}

/// Selection and execution of studies.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// Figure or claim, by its name in `--list` [default: all]
    #[arg(value_name = "FIGURE")]
    pub(crate) figure: Option<String>,
    /// Size of the studies
    #[arg(long, value_enum, default_value_t)]
    pub(crate) scale: StudySize,
    /// Restrict to claims and figures that need no other studies than these
    #[arg(long, value_name = "STUDY,...", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Print studies, figures and claims, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Print missing runs with an estimate of their time, and run nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) dry_run: bool,
    /// Judge and draw finished runs, and run nothing
    #[arg(long, conflicts_with_all = ["list", "dry_run"])]
    pub(crate) no_run: bool,
    /// Accept finished runs of other commits of this version
    #[arg(long)]
    pub(crate) any_commit: bool,
    /// Repeat finished runs: all, or the failed ones
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "all", value_name = "WHICH")]
    pub(crate) again: Option<arguments::Again>,
    /// Read claim files from DIR/PAPER [default: those of this program]
    #[arg(long, value_name = "DIR")]
    pub(crate) claims: Option<PathBuf>,
    /// For maintainers: store the rows in claims/rows and write the tables of docs, in the repository DIR
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = ".", value_name = "DIR")]
    pub(crate) write_docs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

pub(crate) fn reproduce(arguments: &Reproduce) -> Result<(), Failure> {
    perform(claim_sets(&arguments.paper, arguments.how.claims.as_deref())?, &arguments.how)
}

pub(crate) fn matrix(arguments: &Matrix) -> Result<(), Failure> {
    let mut sets = claim_sets("matrix", arguments.how.claims.as_deref())?;
    sets.iter_mut().for_each(|set| set.restrict(&arguments.schemes));
    perform(sets, &arguments.how)
}

fn perform(claim_sets: Vec<ClaimSet>, arguments: &How) -> Result<(), Failure> {
    if arguments.list {
        return list(claim_sets, arguments);
    }
    let scale = scale(arguments);
    let root = arguments.write_docs.as_deref().map(repository).transpose()?;
    let all = claim_sets.clone();
    let reproduction = Reproduction::new(claim_sets, scale, arguments.figure.as_deref(), &arguments.only)?;
    let output = arguments.options.out.clone().unwrap_or_else(|| "results/reproduce".into());
    directory(&arguments.options, "reproduce", 0)?;
    if arguments.dry_run {
        return print_dry_run(&reproduction, &output, arguments);
    }
    let settings = settings(arguments);
    let due = reproduction.due(&output, &settings);
    let watch = NumberedProgress::new(arguments.options.progress, due, reproduction.total());
    let outcome = reproduction.execute(&output, &settings, &watch);
    watch.watch.close();
    let outcome = outcome?;
    print_outcome(&reproduction, &outcome, &output, arguments.options.format);
    if let Some(root) = root {
        write_docs(root, &reproduction, &outcome, &output, arguments.any_commit, &all)?;
    }
    if outcome.interrupted {
        note("partial: repeat the command to continue");
        return Err(Failure::Interrupted);
    }
    if !outcome.failed.is_empty() {
        return Err(runs_failed(&outcome.failed, outcome.runs));
    }
    Ok(())
}

fn scale(arguments: &How) -> Scale {
    match arguments.scale {
        StudySize::Quick => Scale::Quick,
        StudySize::Full => Scale::Full,
    }
}

fn settings(arguments: &How) -> ReproductionSettings {
    let again = match arguments.again {
        None => Again::No,
        Some(arguments::Again::Failed) => Again::Failed,
        Some(arguments::Again::All) => Again::All,
    };
    let threads = threads(&arguments.options);
    ReproductionSettings { threads, again, any_commit: arguments.any_commit, only_finished: arguments.no_run }
}

/// Returns the directory of a repository.
fn repository(root: &Path) -> Result<&Path, ScenarioError> {
    if root.join("claims").is_dir() && root.join("docs").is_dir() {
        return Ok(root);
    }
    let message = format!("--write-docs: {} has no `claims` and `docs`", root.display());
    Err(ScenarioError::new(message).help("give the directory of the repository: --write-docs=DIR"))
}

fn write_docs(
    root: &Path,
    reproduction: &Reproduction,
    outcome: &ReproductionOutcome,
    output: &Path,
    any_commit: bool,
    claim_sets: &[ClaimSet],
) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::input(format!("--write-docs: {error}"));
    let costs = reproduction.costs(output, any_commit)?;
    for claim_set in claim_sets {
        let mut stored_rows = StoredRows::read(root, claim_set.paper.name)?;
        let mut replaced = BTreeSet::new();
        for paper in outcome.papers.iter().filter(|paper| paper.paper == claim_set.paper.name) {
            for (study, rows) in &paper.rows {
                if stored_rows.put(study, reproduction.scale, rows.clone()) {
                    replaced.insert(study);
                } else {
                    note(&format!("{} {study}: not replaced, more runs are stored already", claim_set.paper.name));
                }
            }
        }
        let plans = reproduction.paper_plans.iter().find(|plan| plan.claim_set.paper.name == claim_set.paper.name);
        let planned = |study: &str| plans.and_then(|plan| plan.plans.get(study)).map(|plan| plan.sweep.order().len());
        // A run that this store lacks is missing only if the repository has no rows of it.
        for cost in costs.iter().filter(|cost| cost.paper == claim_set.paper.name) {
            let stored = stored_rows.rows(&cost.study, reproduction.scale).map_or(0, Rows::runs);
            if planned(&cost.study).is_some_and(|planned| stored >= planned) {
                stored_rows.put_cost(reproduction.scale, &Cost { missing: 0, ..cost.clone() });
            } else if stored == 0 || replaced.contains(&cost.study) {
                stored_rows.put_cost(reproduction.scale, cost);
            }
        }
        stored_rows.write(root, claim_set.paper.name).map_err(failed)?;
    }
    for page in pages(root)?.into_iter().filter(|page| !page.matches()) {
        page.write().map_err(failed)?;
        note(&format!("written: {}", page.path.display()));
    }
    Ok(())
}

fn print_dry_run(reproduction: &Reproduction, output: &Path, arguments: &How) -> Result<(), Failure> {
    let costs = reproduction.costs(output, arguments.any_commit)?;
    let missing: usize = costs.iter().map(|cost| cost.missing).sum();
    // The sum of nothing is -0.
    let seconds = costs.iter().map(|cost| cost.seconds).sum::<f64>() + 0.0;
    let threads = threads(&arguments.options);
    let repeated = reproduction.due(output, &settings(arguments)).len().saturating_sub(missing);
    if arguments.options.format == Format::Json {
        let studies: Vec<Value> = costs
            .iter()
            .map(|cost| {
                json!({ "paper": cost.paper, "study": cost.study, "runs": cost.runs, "missing": cost.missing,
                        "cpu_seconds": cost.seconds })
            })
            .collect();
        print_json(&json!({ "scale": reproduction.scale.word(), "studies": studies, "runs": reproduction.total(),
                            "missing": missing, "repeated": repeated, "cpu_seconds": seconds, "directory": output.to_string_lossy() }));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = costs
        .iter()
        .map(|cost| {
            vec![
                cost.paper.to_string(),
                cost.study.clone(),
                cost.runs.to_string(),
                cost.missing.to_string(),
                format!("{:.3}", cost.seconds / 3600.0),
            ]
        })
        .collect();
    print(&table(&["paper", "study", "runs", "missing", "CPU hours"], &rows));
    let (runs, scale) = (reproduction.total(), reproduction.scale.word());
    print(&format!(
        "\n{scale} scale: {runs} runs, {missing} missing in {}; about {:.2} CPU hours, {:.0} minutes on {threads} threads\n",
        output.display(),
        seconds / 3600.0,
        seconds / 60.0 / threads as f64
    ));
    if repeated > 0 {
        note(&format!("--again repeats {repeated} finished runs; their time is not counted"));
    }
    Ok(())
}

fn print_outcome(reproduction: &Reproduction, outcome: &ReproductionOutcome, output: &Path, format: Format) {
    let scale = reproduction.scale;
    if outcome.reused > 0 {
        note(&format!("{} of {} runs were already finished and not repeated", outcome.reused, outcome.runs));
    }
    let size = |paper: &str, study: &String| {
        let paper_plan = reproduction.paper_plans.iter().find(|paper_plan| paper_plan.claim_set.paper.name == paper);
        paper_plan
            .and_then(|paper_plan| paper_plan.plans.get(study))
            .map_or(study.clone(), |plan: &StudyPlan| plan.size(scale))
    };
    if format == Format::Json {
        let claims: Vec<Value> = outcome
            .papers
            .iter()
            .flat_map(|paper| {
                paper.claims.iter().map(move |(claim, judged)| {
                    let sizes: Vec<String> =
                        claim.studies_at(scale).iter().map(|study| size(paper.paper, study)).collect();
                    json!({ "paper": paper.paper, "claim": claim.id, "figure": claim.figure, "section": claim.section,
                            "says": claim.says, "published": judged.published, "ours": judged.ours,
                            "verdict": judged.verdict.word(), "seeds": judged.seeds, "sizes": sizes, "open": claim.ours,
                            "limits": judged.limits, "depends_on": judged.depends_on() })
                })
            })
            .collect();
        let failed: Vec<Value> =
            outcome.failed.iter().map(|(name, error)| json!({ "run": name, "error": error })).collect();
        print_json(
            &json!({ "scale": scale.word(), "claims": claims, "runs": outcome.runs, "reused_runs": outcome.reused,
                            "missing": outcome.missing, "failed": failed, "interrupted": outcome.interrupted,
                            "directory": output.to_string_lossy() }),
        );
        return;
    }
    print(&summary_text(&reproduction.paper_plans, scale, outcome, width()));
    let figures = outcome.papers.iter().flat_map(|paper| &paper.figures);
    let (drawn, all) = (figures.clone().filter(|(_, shown)| shown.is_some()).count(), figures.count());
    note(&format!(
        "{drawn} of {all} figures drawn; rows, comparisons and figures in {}",
        output.join("reproduce").join(scale.word()).display()
    ));
    if outcome.missing > 0 {
        note(&format!("{} of {} runs are missing", outcome.missing, outcome.runs));
    }
}

/// Prints studies with their runs, figures and claims; with a figure or `--only`, those it needs. All are checked.
fn list(claim_sets: Vec<ClaimSet>, arguments: &How) -> Result<(), Failure> {
    let at = |scale, only: &[String]| Reproduction::new(claim_sets.clone(), scale, arguments.figure.as_deref(), only);
    let full = at(Scale::Full, &arguments.only)?;
    let quick = match at(Scale::Quick, &arguments.only) {
        Ok(quick) => quick.paper_plans,
        // Studies of the full scale alone have no quick runs to list; any other problem without them is an error.
        Err(_) if !arguments.only.is_empty() => at(Scale::Quick, &[]).map(|_| vec![])?,
        Err(error) => return Err(error.into()),
    };
    let everything = arguments.figure.is_none() && arguments.only.is_empty();
    let mut studies = vec![];
    for (at, full) in full.paper_plans.iter().enumerate() {
        let runs = |plans: &BTreeMap<String, StudyPlan>, id: &str| plans.get(id).map(|plan| plan.sweep.order().len());
        for study in &full.claim_set.studies {
            let quick = quick.get(at).and_then(|quick| runs(&quick.plans, &study.id));
            let full_runs = runs(&full.plans, &study.id);
            if everything || quick.is_some() || full_runs.is_some() {
                studies.push((full.claim_set.paper.name, study, quick, full_runs));
            }
        }
    }
    if arguments.options.format == Format::Json {
        let studies: Vec<Value> = studies
            .iter()
            .map(|(paper, study, quick, full)| {
                json!({ "paper": paper, "study": study.id, "scenario": study.scenario, "quick_runs": quick, "full_runs": full })
            })
            .collect();
        let (mut figures, mut claims, mut readings): (Vec<Value>, Vec<Value>, Vec<Value>) = Default::default();
        for PaperPlan { claim_set, figures: of_paper, claims: judged, .. } in &full.paper_plans {
            let paper = claim_set.paper.name;
            figures.extend(of_paper.iter().map(|figure| {
                json!({ "paper": paper, "figure": figure.id, "title": figure.title, "studies": figure.studies })
            }));
            claims.extend(judged.iter().map(|claim| {
                json!({ "paper": paper, "claim": claim.id, "figure": claim.figure, "section": claim.section,
                        "says": claim.says, "studies": claim.studies, "metric": claim.metric.name(), "ours": claim.ours,
                        "readings": claim.readings })
            }));
            readings.extend(claim_set.readings.iter().map(|reading| {
                json!({ "paper": paper, "reading": reading.id, "section": reading.section,
                        "entries": reading.entries.iter().cloned().collect::<BTreeMap<_, _>>(), "why": reading.why })
            }));
        }
        print_json(&json!({ "studies": studies, "figures": figures, "claims": claims, "readings": readings }));
        return Ok(());
    }
    let number = |runs: &Option<usize>| runs.map_or("-".to_string(), |runs| runs.to_string());
    let rows: Vec<Vec<String>> = studies
        .iter()
        .map(|(paper, study, quick, full)| {
            vec![(*paper).to_string(), study.id.clone(), study.scenario.clone(), number(quick), number(full)]
        })
        .collect();
    print(&format!("{}\n", table(&["paper", "study", "scenario", "quick runs", "full runs"], &rows)));
    let (mut figures, mut claims) = (vec![], vec![]);
    for plan in &full.paper_plans {
        let paper = || plan.claim_set.paper.name.to_string();
        figures.extend(plan.figures.iter().map(|figure| vec![paper(), figure.id.clone(), figure.title.clone()]));
        let row = |claim: &Claim| vec![paper(), claim.id.clone(), claim.source(), claim.says.clone()];
        claims.extend(plan.claims.iter().map(row));
    }
    print(&format!("{}\n", table(&["paper", "figure", "title"], &figures)));
    print(&table(&["paper", "claim", "where", "says"], &claims));
    Ok(())
}
