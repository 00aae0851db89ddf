//! Execution of the runs that claims need, in one store, and judgement of their rows.

use super::{
    Claim, ClaimSet, Cost, Figure, PaperPlan, PaperResult, ReproductionOutcome, Rows, Scale, Selected, StudyBound,
    StudyPlan, Verdict, at, paper_plan::required, plans, sig, text,
};
use anabranch_report::write_claims;
use anabranch_results::{
    FailedRun, Manifest, OutputDir, PlannedRun, create_store, failed_file, is_complete_run, read_limits_file,
    read_summary, store_directory, write_limits_file,
};
use anabranch_scenario::{BackendEntry, COMMIT, SIMULATOR, Scenario, ScenarioError, Tree, VERSION, did_you_mean};
use anabranch_study::{
    Again, Batch, Observer, RunError, Runs, Store, check,
    limits::{flows_key, limits_of, link_limits},
    store::write_alone,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Runs, claims and figures to reproduce.
pub struct Reproduction {
    /// Papers with their selected claims.
    pub paper_plans: Vec<PaperPlan>,
    pub scale: Scale,
    /// Every run once: shelf, study, number in its sweep.
    runs: Vec<(usize, String, usize)>,
}

#[derive(Clone, Copy, Debug)]
pub struct ReproductionSettings {
    pub threads: usize,
    pub again: Again,
    /// `true` if finished runs of other commits count.
    pub any_commit: bool,
    /// `true` if nothing is run.
    pub only_finished: bool,
}

pub(crate) const REPRODUCE: &[(&str, &str)] = &[
    ("reproduce", "claims, rows and figures of each paper at each scale"),
    (LIMITS, "bounds and reference of the flows of studies that request them"),
];

/// Folder of bounds and references in the store.
const LIMITS: &str = "limits";

fn limits_file(directory: &Path, scenario: &Scenario, bound: StudyBound) -> PathBuf {
    let suffix = if bound == StudyBound::Links { "-links" } else { "" };
    directory.join(LIMITS).join(format!("{}{suffix}.json", flows_key(scenario)))
}

/// Folders of finished runs of other commits, by the hash of their scenario.
#[derive(Debug, Default)]
struct OtherCommits(BTreeMap<u64, PathBuf>);

impl OtherCommits {
    /// Searches the store for runs of this version by other commits, by the hash that this build gives their scenario.
    fn find(directory: &Path) -> Self {
        let mut found: BTreeMap<u64, (String, PathBuf)> = BTreeMap::new();
        let entries = fs::read_dir(directory.join("runs")).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let Ok(Some(manifest)) = Manifest::read(&path) else { continue };
            if manifest.version != VERSION || manifest.commit == COMMIT || !is_complete_run(&path) {
                continue;
            }
            let Ok(tree) = Tree::parse("manifest", &manifest.scenario) else { continue };
            let Ok(scenario) = Scenario::read(tree, &manifest.name, Path::new("")) else { continue };
            // Of several commits the greatest hash counts, so that the choice is the same everywhere.
            let entry = found.entry(scenario.hash()).or_insert_with(|| (manifest.commit.clone(), path.clone()));
            if manifest.commit > entry.0 {
                *entry = (manifest.commit, path);
            }
        }
        OtherCommits(found.into_iter().map(|(hash, (_, path))| (hash, path)).collect())
    }
}

struct FinishedRuns<'r> {
    directory: &'r Path,
    others: BTreeMap<String, PathBuf>,
}

impl FinishedRuns<'_> {
    fn place(&self, run: &str) -> Option<PathBuf> {
        let own = store_directory(self.directory, run);
        if is_complete_run(&own) { Some(own) } else { self.others.get(run).cloned() }
    }
}

impl Reproduction {
    /// Selects from `claim_sets` at `scale`: all, only those of one `figure` (or claim), or only those that need no
    /// studies besides `only`.
    ///
    /// Fails if a claim set is invalid, or if there is no such figure or study.
    pub fn new(
        claim_sets: Vec<ClaimSet>,
        scale: Scale,
        figure: Option<&str>,
        only: &[String],
    ) -> Result<Self, ScenarioError> {
        if let Some(figure) = figure {
            let figures =
                claim_sets.iter().flat_map(|claim_set| claim_set.figures.iter().map(|figure| figure.id.as_str()));
            let claims = claim_sets.iter().flat_map(|claim_set| claim_set.claims.iter().map(|claim| claim.id.as_str()));
            let names: Vec<&str> = figures.chain(claims).collect();
            unknown("figure or claim", figure, &names)?;
        }
        let studies: Vec<&str> =
            claim_sets.iter().flat_map(|claim_set| claim_set.studies.iter().map(|study| study.id.as_str())).collect();
        for study in only {
            unknown("study", study, &studies)?;
        }
        let is_covered = |ids: &[String]| only.is_empty() || ids.iter().all(|id| only.contains(id));
        let mut paper_plans = vec![];
        let wider = beyond(&claim_sets, scale, figure, only);
        let full_only = scale == Scale::Quick && only.iter().all(|id| is_full_only(&claim_sets, id));
        for claim_set in claim_sets {
            let mut plans = plans(&claim_set, scale)?;
            let is_selected =
                |id: &str, of: Option<&str>| figure.is_none_or(|required| required == id || Some(required) == of);
            let claims: Vec<Claim> = claim_set
                .claims
                .iter()
                .filter(|claim| is_selected(&claim.id, claim.figure.as_deref()) && is_covered(claim.studies_at(scale)))
                .cloned()
                .collect();
            let figures: Vec<Figure> = claim_set
                .figures
                .iter()
                .filter(|figure| is_selected(&figure.id, None) && is_covered(&figure.studies))
                .cloned()
                .collect();
            let required = required(&plans, &claims, &figures, scale)?;
            plans.retain(|id, _| required.contains_key(id));
            paper_plans.push(PaperPlan { claim_set, scale, plans, required, claims, figures, tries: 0 });
        }
        if !only.is_empty() && paper_plans.iter().all(|paper_plan| paper_plan.plans.is_empty()) {
            let only = only.join(",");
            if full_only {
                let message = format!("--only {only}: there is no quick scale of it, full scale only");
                return Err(ScenarioError::new(message).help("add --scale full"));
            }
            let of = figure.map_or("no figure or claim".to_string(), |figure| format!("nothing of `{figure}`"));
            let error = ScenarioError::new(format!("--only {only}: {of} needs these studies alone"));
            return Err(wider
                .into_iter()
                .fold(error, |error, studies| error.help(format!("one of them needs --only {}", studies.join(",")))));
        }
        let mut runs: Vec<(u64, usize, String, usize)> = vec![];
        let mut seen = BTreeSet::new();
        for (at, paper_plan) in paper_plans.iter().enumerate() {
            for (id, plan) in &paper_plan.plans {
                for &number in plan.sweep.order() {
                    let run = &plan.sweep.plan.runs[number];
                    if seen.insert(run.run.clone()) {
                        runs.push((run.seed, at, id.clone(), number));
                    }
                }
            }
        }
        // The first seed of every study precedes the second seed of any.
        runs.sort();
        let runs = runs.into_iter().map(|(_, at, id, number)| (at, id, number)).collect();
        Ok(Reproduction { paper_plans, scale, runs })
    }

    fn plan(&self, at: usize, id: &str) -> &StudyPlan {
        &self.paper_plans[at].plans[id]
    }

    pub fn total(&self) -> usize {
        self.runs.len()
    }

    fn finished_runs<'r>(&self, directory: &'r Path, any_commit: bool) -> FinishedRuns<'r> {
        let mut others = BTreeMap::new();
        if any_commit {
            let there = OtherCommits::find(directory);
            if !there.0.is_empty() {
                for (at, id, number) in &self.runs {
                    let plan = self.plan(*at, id);
                    let Ok(scenario) = plan.sweep.scenario(*number) else { continue };
                    if let Some(path) = there.0.get(&scenario.hash()) {
                        others.insert(plan.sweep.plan.runs[*number].run.clone(), path.clone());
                    }
                }
            }
        }
        FinishedRuns { directory, others }
    }

    /// Returns the runs that would be executed, in order, with their names.
    pub fn due(&self, directory: &Path, settings: &ReproductionSettings) -> Vec<(usize, String)> {
        if settings.only_finished {
            return vec![];
        }
        let finished_runs = self.finished_runs(directory, settings.any_commit);
        let due = |number: &usize| {
            let run = self.key(*number);
            let finished = || finished_runs.place(run).is_some();
            let failed = || failed_file(directory, run).exists();
            match settings.again {
                Again::All => true,
                Again::Failed => !finished(),
                Again::No => !finished() && !failed(),
            }
        };
        (0..self.runs.len()).filter(due).map(|number| (number, self.name(number))).collect()
    }

    /// Executes the missing runs in the store `directory`, then writes verdicts and figures of all finished runs into
    /// `directory/reproduce`. A failed run is stored with its error and does not stop the others.
    ///
    /// Fails if something cannot be run at all (reported before any run starts), or if the results cannot be written.
    pub fn execute(
        &self,
        directory: &Path,
        settings: &ReproductionSettings,
        observer: &dyn Observer,
    ) -> Result<ReproductionOutcome, RunError> {
        let outcome = self.run(directory, settings, observer)?;
        self.write(directory, &outcome)?;
        Ok(outcome)
    }

    /// As [`Reproduction::execute`], without writing verdicts and figures.
    pub(crate) fn run(
        &self,
        directory: &Path,
        settings: &ReproductionSettings,
        observer: &dyn Observer,
    ) -> Result<ReproductionOutcome, RunError> {
        let jobs: Vec<usize> = self.due(directory, settings).into_iter().map(|(number, _)| number).collect();
        let due = jobs.len();
        let mut reused = if settings.only_finished { 0 } else { self.runs.len() - due };
        if !jobs.is_empty() {
            self.check(&jobs, observer)?;
            let store = Store::open_with(directory, REPRODUCE)?;
            let (elsewhere, fatal) =
                Batch::new(self, &store, settings.again).work_off(jobs, settings.threads, observer);
            reused += elsewhere;
            if let Some(error) = fatal {
                return Err(error);
            }
        }
        if !settings.only_finished {
            self.add_limits(directory, settings, observer)?;
        }
        let finished_runs = self.finished_runs(directory, settings.any_commit);
        let papers = self.paper_plans.iter().map(|paper_plan| finished_runs.paper(paper_plan, settings.threads));
        let mut papers: Vec<PaperResult> = papers.collect::<Result<_, RunError>>()?;
        self.explain_missing(&mut papers, &finished_runs)?;
        let mut failed = vec![];
        let mut missing = 0;
        for number in 0..self.runs.len() {
            let run = self.key(number);
            if finished_runs.place(run).is_some() {
                continue;
            }
            let text =
                anabranch_input::read_text(&failed_file(directory, run), anabranch_input::MAX_TEXT).unwrap_or_default();
            match serde_json::from_str::<FailedRun>(&text) {
                Ok(why) => failed.push((self.name(number), why.error)),
                Err(_) => missing += 1,
            }
        }
        let interrupted = observer.interrupted() && missing > 0;
        Ok(ReproductionOutcome { papers, runs: self.runs.len(), reused, failed, missing, interrupted })
    }

    /// Computes the missing bounds and references of studies that request them, for the flows of finished runs.
    fn add_limits(
        &self,
        directory: &Path,
        settings: &ReproductionSettings,
        observer: &dyn Observer,
    ) -> Result<(), RunError> {
        let finished_runs = self.finished_runs(directory, settings.any_commit);
        let plans = self.paper_plans.iter().flat_map(|paper_plan| &paper_plan.plans);
        for (id, plan) in plans.filter(|(_, plan)| plan.study.bound != StudyBound::No) {
            let runs = plan.sweep.plan.runs.iter().enumerate();
            for (number, run) in runs.filter(|(_, run)| run.entry == 0) {
                if observer.interrupted() || finished_runs.place(&run.run).is_none() {
                    continue;
                }
                let scenario = plan.sweep.scenario(number)?;
                let path = limits_file(directory, &scenario, plan.study.bound);
                if path.exists() {
                    continue;
                }
                observer.note(&format!("{id}: bounds and reference of {}", plan.sweep.name(number)));
                let limits = match plan.study.bound {
                    StudyBound::Links => Some(link_limits(&scenario)?),
                    _ => limits_of(&scenario, settings.threads, observer)?,
                };
                let Some(limits) = limits else { continue };
                create_store(directory, VERSION, REPRODUCE)?;
                write_limits_file(&limits, &path)?;
            }
        }
        Ok(())
    }

    /// Sets up the first run of each study, to report errors of a topology, traffic or load balancer in advance.
    fn check(&self, jobs: &[usize], observer: &dyn Observer) -> Result<(), ScenarioError> {
        let mut seen = BTreeSet::new();
        for &number in jobs {
            let (at, id, _) = &self.runs[number];
            if observer.interrupted() || !seen.insert((*at, id.clone())) {
                continue;
            }
            let scenario = Runs::scenario(self, number)?;
            check(&scenario, &SIMULATOR, &self.name(number), &mut None, observer)
                .map_err(|error| error.of(&self.name(number)))?;
        }
        Ok(())
    }

    /// Returns the folder of a paper's results in the store `directory`.
    pub(crate) fn folder(&self, directory: &Path, paper: &str) -> PathBuf {
        directory.join("reproduce").join(self.scale.word()).join(paper)
    }

    fn write(&self, directory: &Path, outcome: &ReproductionOutcome) -> Result<(), RunError> {
        // Another process may fill the same store, and write over the same folders.
        write_alone(directory, || self.write_locked(directory, outcome))
    }

    fn write_locked(&self, directory: &Path, outcome: &ReproductionOutcome) -> Result<(), RunError> {
        create_store(directory, VERSION, REPRODUCE)?;
        let output = OutputDir::open(directory)?;
        for paper in &outcome.papers {
            let place = self.folder(directory, paper.paper);
            output.admit_folder(&Path::new("reproduce").join(self.scale.word()).join(paper.paper))?;
            let plan = self.paper_plans.iter().find(|paper_plan| paper_plan.claim_set.paper.name == paper.paper);
            let Some(paper_plan) = plan else { continue };
            let mut tables = vec![
                ("claims.csv".to_string(), "a row per claim, with its verdict", text::claims_csv(paper_plan, paper)),
                ("comparisons.csv".to_string(), "the comparisons that claims rest on", text::comparisons_csv(paper)),
            ];
            let of_study = "the metrics of each run of a study";
            tables.extend(paper.rows.iter().map(|(id, rows)| (format!("rows/{id}.csv"), of_study, rows.to_csv())));
            let figures: Vec<_> =
                paper.figures.iter().filter_map(|(_, shown)| Some(shown.as_ref()?.figure.clone())).collect();
            write_claims(&place, &text::page(paper_plan, paper, outcome), &figures, &tables)?;
        }
        Ok(())
    }

    /// Returns the cost of each study: its runs, the missing ones, and their CPU seconds.
    pub fn costs(&self, directory: &Path, any_commit: bool) -> Result<Vec<Cost>, ScenarioError> {
        let finished_runs = self.finished_runs(directory, any_commit);
        let seconds = self.missing_seconds(&finished_runs)?;
        let mut all = vec![];
        for (at, paper_plan) in self.paper_plans.iter().enumerate() {
            for (id, plan) in &paper_plan.plans {
                let own = self.runs.iter().filter(|(of, study, _)| *of == at && study == id);
                let own: Vec<&str> = own.map(|(_, _, number)| plan.sweep.plan.runs[*number].run.as_str()).collect();
                let missing: Vec<f64> = own.iter().filter_map(|run| seconds.get(*run).copied()).collect();
                all.push(Cost {
                    paper: paper_plan.claim_set.paper.name,
                    study: id.clone(),
                    runs: own.len(),
                    missing: missing.len(),
                    // The sum of nothing is -0.
                    seconds: missing.iter().sum::<f64>() + 0.0,
                });
            }
        }
        Ok(all)
    }

    /// Returns the CPU seconds of each missing run.
    fn missing_seconds(&self, finished_runs: &FinishedRuns<'_>) -> Result<BTreeMap<&str, f64>, ScenarioError> {
        let mut hops: BTreeMap<&str, f64> = BTreeMap::new();
        // The fastest run counts, because a slower one shared its core.
        let mut fastest = 0.0f64;
        for (at, paper_plan) in self.paper_plans.iter().enumerate() {
            for (id, plan) in &paper_plan.plans {
                let own = self.runs.iter().filter(|(of, study, _)| *of == at && study == id);
                let own: Vec<usize> = own.map(|(_, _, number)| *number).collect();
                let mut measured = (0.0, 0u32);
                let mut missing: BTreeMap<usize, Vec<&PlannedRun>> = BTreeMap::new();
                for &number in &own {
                    let run: &PlannedRun = &plan.sweep.plan.runs[number];
                    match finished_runs.place(&run.run).map(|place| read_summary(&place)) {
                        Some(Ok(Some(summary))) => {
                            let seconds = summary.wall_s * summary.threads as f64;
                            let hops = summary.packet_hops.unwrap_or_default() as f64;
                            if seconds > 0.1 {
                                fastest = fastest.max(hops / seconds);
                            }
                            measured.0 += hops;
                            measured.1 += 1;
                        }
                        _ => missing.entry(run.point).or_default().push(run),
                    }
                }
                for (point, runs) in &missing {
                    let first = own.iter().find(|number| plan.sweep.plan.runs[**number].point == *point);
                    let each = match (measured, first) {
                        ((sum, count), _) if count > 0 && plan.sweep.plan.points() == 1 => sum / f64::from(count),
                        // ACKs add at most as many hops as data.
                        (_, Some(first)) => 2.0 * plan.sweep.scenario(*first)?.foreseen_hops()? as f64,
                        _ => 0.0,
                    };
                    hops.extend(runs.iter().map(|run| (run.run.as_str(), each)));
                }
            }
        }
        let speed = fastest.max(SPEED);
        hops.values_mut().for_each(|value| *value /= speed);
        Ok(hops)
    }

    /// Gives claims without a verdict the reason as their result: runs that are missing, with the CPU hours they take, or finished
    /// runs without a value.
    fn explain_missing(
        &self,
        papers: &mut [PaperResult],
        finished_runs: &FinishedRuns<'_>,
    ) -> Result<(), ScenarioError> {
        let mut seconds: Option<BTreeMap<&str, f64>> = None;
        for (paper_plan, paper) in self.paper_plans.iter().zip(papers) {
            let rows = &paper.rows;
            for (claim, judged) in paper.claims.iter_mut().filter(|(_, judged)| judged.verdict == Verdict::NotRun) {
                let runs = claim_runs(paper_plan, claim, rows)?;
                let is_finished = |run: &str| finished_runs.place(run).is_some();
                let missing: Vec<&str> = runs.keys().copied().filter(|run| !is_finished(run)).collect();
                let total = runs.len();
                if missing.is_empty() {
                    let metric = claim.metric.name();
                    let valued = runs.values().filter(|has_value| **has_value).count();
                    judged.ours = match valued {
                        0 => format!("{total} of {total} runs are finished, none has a value of `{metric}`"),
                        _ => format!("{total} of {total} runs are finished, {valued} have a value of `{metric}`"),
                    };
                    continue;
                }
                let all = match &mut seconds {
                    Some(all) => all,
                    None => seconds.insert(self.missing_seconds(finished_runs)?),
                };
                let hours = missing.iter().filter_map(|run| all.get(run)).sum::<f64>() / 3600.0;
                let hours = if hours < 0.01 { "less than 0.01".to_string() } else { sig(hours, 2) };
                let failed = missing.iter().filter(|run| failed_file(finished_runs.directory, run).exists()).count();
                let failed = if failed == 0 { String::new() } else { format!(" ({failed} failed)") };
                judged.ours = format!("{} of {total} runs are missing{failed}, {hours} CPU hours", missing.len());
            }
        }
        Ok(())
    }
}

/// Returns the runs that a claim is judged by, `true` for those with a value of its metric.
fn claim_runs<'p>(
    paper_plan: &'p PaperPlan,
    claim: &Claim,
    rows: &BTreeMap<String, Rows>,
) -> Result<BTreeMap<&'p str, bool>, ScenarioError> {
    let mut runs: BTreeMap<&str, bool> = BTreeMap::new();
    let selected = Selected::new(claim, &paper_plan.plans, paper_plan.scale)?;
    for (coordinate, is_a) in selected.groups.iter().flat_map(|group| {
        group.a.iter().map(|coordinate| (coordinate, true)).chain(group.b.iter().map(|coordinate| (coordinate, false)))
    }) {
        let study = at(coordinate, "study").unwrap_or_default();
        let Some(plan) = paper_plan.plans.get(study) else { continue };
        let (point, entries) = (plan.point(coordinate), &plan.sweep.plan.entries);
        let (a, b) = claim.sides(entries);
        for scheme in if is_a { a } else { b } {
            let values = rows.get(study).map(|rows| rows.series(coordinate, &scheme, claim.metric.name()));
            let own = plan.sweep.plan.runs.iter();
            for run in own.filter(|run| Some(run.point) == point && entries[run.entry] == scheme) {
                let has_value =
                    values.as_ref().and_then(|values| values.get(&run.seed)).is_some_and(|value| value.is_finite());
                // A run that several groups share has a value if it has one for each of them.
                runs.entry(&run.run).and_modify(|all| *all &= has_value).or_insert(has_value);
            }
        }
    }
    Ok(runs)
}

/// Minimum assumed speed in packet-hops per second of one core, used if no faster run was measured.
const SPEED: f64 = 5e6;

impl Runs for Reproduction {
    fn key(&self, number: usize) -> &str {
        let (at, id, number) = &self.runs[number];
        &self.plan(*at, id).sweep.plan.runs[*number].run
    }
    fn name(&self, number: usize) -> String {
        let (at, id, number) = &self.runs[number];
        format!("{} {id}: {}", self.paper_plans[*at].claim_set.paper.name, self.plan(*at, id).sweep.name(*number))
    }
    fn backend(&self) -> &'static BackendEntry {
        &SIMULATOR
    }
    fn scenario(&self, number: usize) -> Result<Scenario, ScenarioError> {
        let (at, id, number) = &self.runs[number];
        self.plan(*at, id).sweep.scenario(*number)
    }
}

impl FinishedRuns<'_> {
    fn paper(&self, paper_plan: &PaperPlan, threads: usize) -> Result<PaperResult, RunError> {
        let mut rows = BTreeMap::new();
        for (id, plan) in &paper_plan.plans {
            let place = |run: &PlannedRun| self.place(&run.run);
            let limits = |run: &PlannedRun| {
                let number = plan.sweep.plan.runs.iter().position(|other| other.run == run.run)?;
                let scenario = plan.sweep.scenario(number).ok()?;
                read_limits_file(&limits_file(self.directory, &scenario, plan.study.bound)).ok().flatten()
            };
            let found = Rows::gather(plan, &paper_plan.required[id], &place, &limits, threads)?;
            if !found.rows.is_empty() {
                rows.insert(id.clone(), found);
            }
        }
        Ok(paper_plan.judge(rows)?)
    }
}

/// Returns the studies of the first selected figure or claim that needs one of `only` and others too.
fn beyond(claim_sets: &[ClaimSet], scale: Scale, figure: Option<&str>, only: &[String]) -> Option<Vec<String>> {
    let is_selected = |id: &str, of: Option<&str>| figure.is_none_or(|figure| figure == id || Some(figure) == of);
    let needs = claim_sets.iter().flat_map(|claim_set| {
        let figures = claim_set.figures.iter().filter(|figure| is_selected(&figure.id, None));
        let claims = claim_set.claims.iter().filter(|claim| is_selected(&claim.id, claim.figure.as_deref()));
        figures.map(|figure| figure.studies.as_slice()).chain(claims.map(|claim| claim.studies_at(scale)))
    });
    let others = needs.filter(|ids| ids.iter().any(|id| !only.contains(id)));
    let shares = |ids: &&[String]| ids.iter().any(|id| only.contains(id));
    // A figure that is named needs its studies, whichever were given.
    let mut fitting = others.filter(|ids| figure.is_some() || shares(ids));
    fitting.next().map(<[String]>::to_vec)
}

fn is_full_only(claim_sets: &[ClaimSet], id: &str) -> bool {
    let mut studies = claim_sets.iter().filter_map(|claim_set| claim_set.study(id)).peekable();
    studies.peek().is_some() && studies.all(|study| study.quick.is_none())
}

fn unknown(what: &str, name: &str, names: &[&str]) -> Result<(), ScenarioError> {
    if names.contains(&name) {
        return Ok(());
    }
    // A paper has dozens of names: `--list` prints all of them, and the first ones show their form.
    let mut seen = BTreeSet::new();
    let once: Vec<&str> = names.iter().copied().filter(|name| seen.insert(*name)).collect();
    let (first, rest) = once.split_at(once.len().min(12));
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more (`--list`)", rest.len()) };
    let error = ScenarioError::new(format!("no {what} `{name}`; there are {}{more}", first.join(", ")));
    Err(did_you_mean(error, anabranch_settings::nearest(name, names.iter().copied())))
}
