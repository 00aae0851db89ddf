//! Tests of studies that are run: rows are independent of the order of execution, and verdicts follow from them.

use super::{
    tests::{EXAMPLE, claim_set},
    *,
};
use anabranch_backend::Progress;
use anabranch_study::{Again, Observer};
use anabranch_testkit::folder;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Observer that interrupts after a number of runs.
struct InterruptAfter(AtomicUsize);
impl Observer for InterruptAfter {
    fn started(&self, _: usize) {}
    fn note(&self, _: &str) {}
    fn progress(&self, _: usize, _: &Progress) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }
    fn finished(&self, _: usize) {
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    }
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

fn settings(threads: usize) -> ReproductionSettings {
    ReproductionSettings { threads, again: Again::No, any_commit: false, only_finished: false }
}

fn reproduction() -> Reproduction {
    Reproduction::new(vec![claim_set(EXAMPLE).unwrap()], Scale::Full, None, &[]).unwrap()
}

fn seen(outcome: &ReproductionOutcome) -> (Vec<String>, Vec<Judged>, Vec<String>) {
    let paper = &outcome.papers[0];
    let rows = paper.rows.values().map(Rows::to_csv).collect();
    let claims = paper.claims.iter().map(|(_, judged)| judged.clone()).collect();
    (rows, claims, paper.figures.iter().filter_map(|(_, shown)| Some(shown.as_ref()?.tables.clone())).collect())
}

#[test]
fn the_same_rows_in_one_go_interrupted_and_on_two_threads() {
    let patient = || InterruptAfter(AtomicUsize::new(usize::MAX));
    let (one, two, parts) = (folder(), folder(), folder());
    let whole = reproduction().execute(&one, &settings(1), &patient()).unwrap();
    // Two sizes and four entries with three seeds; two schemes and four seeds at the scenario's own size, 64 KiB, of
    // which three seeds are the same runs.
    assert_eq!((whole.runs, whole.reused, whole.missing, whole.failed.len()), (24 + 8 - 6, 0, 0, 0));
    let (rows, claims, tables) = seen(&whole);
    assert_eq!((rows.len(), claims.len(), tables.len()), (2, 2, 1));
    assert!(tables[0].contains("| PRIME |"), "{}", tables[0]);
    assert!(tables[0].contains("(1.5)"), "the published value: {}", tables[0]);
    let together = reproduction().execute(&two, &settings(2), &patient()).unwrap();
    assert_eq!(seen(&together), seen(&whole));
    for _ in 0..5 {
        let part = reproduction().execute(&parts, &settings(1), &InterruptAfter(AtomicUsize::new(5))).unwrap();
        assert!(part.interrupted && part.missing > 0);
    }
    let last = reproduction().execute(&parts, &settings(1), &patient()).unwrap();
    assert_eq!((last.reused, last.missing), (25, 0), "what was done is not repeated");
    assert_eq!(seen(&last), seen(&whole));
    // stored rows give the same results as the runs.
    let mut stored_rows = StoredRows::default();
    for (study, rows) in &whole.papers[0].rows {
        let read = Rows::from_csv(study, &rows.to_csv()).unwrap();
        assert!(stored_rows.put(study, Scale::Full, read));
        let fewer = Rows { rows: rows.rows[..1].to_vec(), ..rows.clone() };
        assert!(!stored_rows.put(study, Scale::Full, fewer), "fewer runs do not replace more");
    }
    let again = PaperPlan::from_stored_rows(&claim_set(EXAMPLE).unwrap(), Scale::Full, &stored_rows).unwrap();
    let verdicts: Vec<Judged> = again.claims.into_iter().map(|(_, judged)| judged).collect();
    assert_eq!(verdicts, claims);
    for file in [
        "report.html",
        "claims.csv",
        "comparisons.csv",
        "rows/sizes.csv",
        "figures/fig1.svg",
        "figures/fig1.png",
        "figures/fig1.csv",
    ] {
        let path = one.join("reproduce/full/hopper").join(file);
        assert!(path.exists(), "no {}", path.display());
    }
}

#[test]
fn runs_of_other_commits_count_on_request() {
    let folder = folder();
    let patient = InterruptAfter(AtomicUsize::new(usize::MAX));
    let only = vec!["large".to_string()];
    let new = || Reproduction::new(vec![claim_set(EXAMPLE).unwrap()], Scale::Full, None, &only).unwrap();
    let first = new().execute(&folder, &settings(1), &patient).unwrap();
    assert_eq!((first.runs, first.missing), (8, 0));
    // Rewrites the runs as those of another commit: other names, another commit in manifest and summary.
    for entry in std::fs::read_dir(folder.join("runs")).unwrap().flatten() {
        let rewrite = |name: &str, edit: &dyn Fn(&mut serde_json::Value)| {
            let path = entry.path().join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            let mut json: serde_json::Value =
                serde_json::from_str(&text.replace(anabranch_scenario::machine::COMMIT, "0123456789ab")).unwrap();
            edit(&mut json);
            let text = anabranch_results::resealed(&format!("{json:#}"));
            std::fs::write(&path, &text).unwrap();
            anabranch_results::Content::of(text.as_bytes())
        };
        let summary = rewrite("summary.json", &|_| {});
        rewrite("manifest.json", &|manifest| {
            let files = manifest["files"].as_array_mut().unwrap();
            let entry = files.iter_mut().find(|file| file["name"] == "summary.json").unwrap();
            (entry["bytes"], entry["blake3"]) = (summary.bytes.into(), summary.blake3.clone().into());
        });
        let hash = anabranch_results::Manifest::read(&entry.path()).unwrap().unwrap().scenario_hash;
        let name = anabranch_results::run_key(&hash, "sim", "0123456789ab");
        std::fs::rename(entry.path(), folder.join("runs").join(name)).unwrap();
    }
    let none = ReproductionSettings { only_finished: true, ..settings(1) };
    assert_eq!(new().execute(&folder, &none, &patient).unwrap().missing, 8);
    let any = ReproductionSettings { any_commit: true, ..none };
    let found = new().execute(&folder, &any, &patient).unwrap();
    assert_eq!(found.missing, 0);
    let rows = &found.papers[0].rows["large"];
    assert_eq!(rows.commits().into_iter().collect::<Vec<_>>(), ["0123456789ab"]);
    let values = |rows: &Rows| rows.rows.iter().map(|row| row.values.clone()).collect::<Vec<_>>();
    assert_eq!(values(rows), values(&first.papers[0].rows["large"]));
    // Another version is another program.
    for entry in std::fs::read_dir(folder.join("runs")).unwrap().flatten() {
        let path = entry.path().join("manifest.json");
        let text = std::fs::read_to_string(&path).unwrap();
        let version = format!("\"version\": \"{}\"", anabranch_scenario::machine::VERSION);
        let other = text.replace(&version, "\"version\": \"0.0.1\"");
        std::fs::write(&path, anabranch_results::resealed(&other)).unwrap();
    }
    assert_eq!(new().execute(&folder, &any, &patient).unwrap().missing, 8);
}

#[test]
fn missing_runs_are_costed_without_running() {
    let folder = folder();
    let patient = InterruptAfter(AtomicUsize::new(usize::MAX));
    let none = ReproductionSettings { only_finished: true, ..settings(1) };
    let outcome = reproduction().execute(&folder, &none, &patient).unwrap();
    assert_eq!((outcome.runs, outcome.missing), (26, 26));
    assert!(outcome.papers[0].claims.iter().all(|(_, judged)| judged.verdict == Verdict::NotRun));
    assert!(outcome.papers[0].figures.iter().all(|(_, shown)| shown.is_none()));
    let costs = reproduction().costs(&folder, false).unwrap();
    assert_eq!(costs.iter().map(|cost| (cost.runs, cost.missing)).collect::<Vec<_>>(), [(8, 8), (18, 18)]);
    assert!(costs.iter().all(|cost| cost.seconds > 0.0));
}

#[test]
fn figures_claims_and_studies_can_be_selected() {
    let of = |figure: Option<&str>, only: &[&str]| {
        let only: Vec<String> = only.iter().map(ToString::to_string).collect();
        Reproduction::new(vec![claim_set(EXAMPLE).unwrap()], Scale::Full, figure, &only)
    };
    let counts =
        |found: Reproduction| (found.paper_plans[0].claims.len(), found.paper_plans[0].figures.len(), found.total());
    assert_eq!(counts(of(Some("fig1"), &[]).unwrap()), (1, 1, 24));
    assert_eq!(counts(of(Some("order"), &[]).unwrap()), (1, 0, 8));
    assert_eq!(counts(of(None, &["large"]).unwrap()), (1, 0, 8));
    let remedy = |error: Option<anabranch_scenario::ScenarioError>| error.unwrap().remedy().map(str::to_string);
    assert_eq!(remedy(of(Some("fig11"), &[]).err()), Some("did you mean `fig1`?".into()));
    assert_eq!(remedy(of(None, &["lrge"]).err()), Some("did you mean `large`?".into()));
    let quick = Reproduction::new(vec![claim_set(EXAMPLE).unwrap()], Scale::Quick, None, &["large".to_string()]);
    let error = quick.err().expect("an error");
    assert!(error.to_string().contains("full scale only"), "{error}");
    // What was given is no advice.
    assert_eq!(remedy(of(Some("order"), &["sizes"]).err()), Some("one of them needs --only large".into()));
}

#[test]
fn tables_name_the_study_that_was_judged() {
    let set = claim_set(EXAMPLE).unwrap();
    let none = ReproductionSettings { only_finished: true, ..settings(1) };
    let folder = folder();
    let reproduction = Reproduction::new(vec![set], Scale::Quick, None, &[]).unwrap();
    let outcome = reproduction.execute(&folder, &none, &InterruptAfter(AtomicUsize::new(usize::MAX))).unwrap();
    let text = std::fs::read_to_string(folder.join("reproduce/quick/hopper/claims.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|other| other == name).expect("a column");
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let order = rows.iter().find(|row| &row[column("claim")] == "order").unwrap();
    assert_eq!(&order[column("studies")], "sizes");
    let text = summary_text(&reproduction.paper_plans, Scale::Quick, &outcome, 200);
    assert_eq!(text.matches("judged on `sizes` at this scale").count(), 1, "{text}");
}
