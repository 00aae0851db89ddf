//! Tests of what turns open parameters and readings, and of bounds beside verdicts.

use super::{
    tests::{EXAMPLE, claim_set},
    *,
};
use anabranch_backend::Progress;
use anabranch_study::{schedule::Observer, sweep::Again};
use anabranch_testkit::folder;
use std::sync::atomic::{AtomicUsize, Ordering};

const OPEN: &str = r#"
[[open]]
key = "load_balancer.prime.p_ecn"
values = [2, 40]
why = "The paper gives none."

[[reading]]
id = "short-penalty"
section = "III-C"
why = "A mark counts for eight packets."
entries = { prime = "short" }
claims = ["ahead"]
"#;

/// Observer that interrupts after a number of runs.
struct Patience(AtomicUsize);
impl Observer for Patience {
    fn started(&self, _: usize) {}
    fn note(&self, _: &str) {}
    fn progress(&self, _: usize, _: &Progress) -> bool {
        !self.interrupted()
    }
    fn finished(&self, _: usize) {
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    }
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }
}

const SETTINGS: ReproductionSettings =
    ReproductionSettings { threads: 1, again: Again::No, any_commit: false, only_finished: false };

#[test]
fn a_claim_is_judged_under_every_setting() {
    let sets = [claim_set(&format!("{EXAMPLE}{OPEN}")).unwrap()];
    let why = Why::new(&sets, "ahead", Scale::Quick, true).unwrap();
    let words = |turns: &[Turn]| turns.iter().map(Turn::words).collect::<Vec<_>>().join(", ");
    let settings: Vec<String> = why.settings.iter().map(|turns| words(turns)).collect();
    let (two, forty) = ("load_balancer.prime.p_ecn=2", "load_balancer.prime.p_ecn=40");
    let reading = "reading short-penalty";
    // Ours, three turns, and the pairs of different parameters.
    let pair = |one: &str| format!("{one}, {reading}");
    assert_eq!(settings, ["", two, forty, reading, &pair(two), &pair(forty)]);
    assert_eq!(Why::new(&sets, "ahead", Scale::Quick, false).unwrap().settings.len(), 4);
    let folder = folder();
    let (runs, missing, seconds) = why.cost(&folder, false).unwrap();
    assert!(runs == missing && seconds > 0.0);
    // One size, two seeds, four entries, three values of a key that counts for the variant alone in none of them: the variant
    // `short` and the schemes other than PRIME have the value too.
    assert!(runs >= 8, "{runs}");
    let part = why.execute(&folder, &SETTINGS, &Patience(AtomicUsize::new(3))).unwrap().0;
    assert!(part.runs.interrupted && part.runs.missing > 0);
    let (whole, path) = why.execute(&folder, &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap();
    assert_eq!((whole.runs.missing, whole.runs.reused, whole.tries()), (0, 3, 5));
    for result in &whole.results {
        assert_ne!(result.judged.verdict, Verdict::NotRun, "{}", result.words());
        assert_eq!(result.judged.after_tries.map(|(tries, _)| tries), Some(5));
    }
    assert_eq!(whole.results[0].words(), "ours");
    // The reading names the variant, which the comparison then has on side A.
    assert_eq!(whole.results[3].judged.details[0].a, "short");
    let rows = std::fs::read_to_string(path).unwrap();
    assert_eq!(rows.lines().count(), 1 + 6, "{rows}");
}

#[test]
fn a_claim_without_anything_open_is_refused_with_its_place() {
    let refused = |text: &str, id: &str| {
        let error = Why::new(&[claim_set(text).unwrap()], id, Scale::Quick, true).err().expect("an error");
        (error.to_string(), error.line_column(), error.remedy().unwrap_or_default().to_string())
    };
    let (message, place, remedy) = refused(EXAMPLE, "order");
    assert!(message.contains("no open parameter") && place.is_some() && remedy.contains("[[open]]"), "{message}");
    // Open, but no values to try.
    let (message, place, _) = refused(EXAMPLE, "ahead");
    assert!(message.contains("no [[open]] names values") && place.is_some(), "{message}");
    let (message, _, remedy) = refused(EXAMPLE, "aheadd");
    assert!(message.contains("no claim `aheadd`") && remedy.contains("`ahead`"), "{message} {remedy}");
}

#[test]
fn readings_and_open_parameters_are_checked() {
    let wrong = |from: &str, to: &str| {
        let text = format!("{EXAMPLE}{OPEN}").replacen(from, to, 1);
        let found = claim_set(&text).and_then(|set| super::paper_plan::plans(&set, Scale::Full).map(drop));
        let error = found.expect_err(to);
        assert!(error.line_column().is_some(), "no place: {error}");
        format!("{error} {}", error.remedy().unwrap_or_default())
    };
    for (from, to, words) in [
        ("entries = { prime = \"short\" }", "", "either `set`"),
        (
            "entries = { prime = \"short\" }",
            "set = [\"load_balancer.prime.p_enc=8\"]",
            "which no scenario of the claim has",
        ),
        ("entries = { prime = \"short\" }", "entries = { prime = \"shrt\" }", "short"),
        ("entries = { prime = \"short\" }", "entries = { reps = \"short\" }", "replaces no entry"),
        ("claims = [\"ahead\"]", "claims = [\"aheadd\"]", "did you mean `ahead`?"),
        ("values = [2, 40]", "values = []", "`values` is missing"),
        ("why = \"The paper gives none.\"", "", "`why` is missing"),
    ] {
        let message = wrong(from, to);
        assert!(message.contains(words), "{to}: {message}");
    }
}

/// Claims on EXAMPLE with runs, judged by intervals (`by-value`) and by a direction.
const BY_INTERVAL: &str = r#"
[[claim]]
id = "by-value"
section = "1"
says = "A value."
study = "sizes"
metric = "fct_mean"
kind = "value"
a = "prime"
where = { "workload.0.size" = "16KiB" }
published = { at_least = 0 }
ours = ["load_balancer.prime.p_ecn"]

[[claim]]
id = "no-value"
section = "1"
says = "No packet is trimmed, so the ratio has no value."
study = "sizes"
metric = "counters.trimmed / counters.trimmed"
kind = "value"
a = "prime"
where = { "workload.0.size" = "16KiB" }
published = 1
"#;

#[test]
fn verdicts_of_intervals_are_not_corrected() {
    let sets = [claim_set(&format!("{EXAMPLE}{OPEN}{BY_INTERVAL}").replace("seeds = 2", "seeds = 3")).unwrap()];
    let why = Why::new(&sets, "by-value", Scale::Quick, false).unwrap();
    let found = why.execute(&folder(), &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap().0;
    for result in &found.results {
        assert_eq!((result.judged.verdict, result.is_tested), (Verdict::Reproduced, false), "{}", result.words());
        assert_eq!(found.is_flip(result), Some(false));
    }
    // A direction needs a p-value, under every setting in which it is significant.
    let text = format!("{EXAMPLE}{OPEN}")
        .replace("seeds = 2", "seeds = 3")
        .replace("published = -15", "published = \"lower\"");
    let sets = [claim_set(&text.replace("b = [\"ecmp\", \"ops\"]", "b = \"ecmp\"")).unwrap()];
    let why = Why::new(&sets, "ahead", Scale::Quick, false).unwrap();
    let found = why.execute(&folder(), &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap().0;
    let ours = &found.results[0];
    assert_eq!((ours.judged.verdict, ours.is_tested), (Verdict::Reproduced, true), "{}", ours.judged.ours);
}

#[test]
fn settings_without_results_flip_nothing() {
    let sets = [claim_set(&format!("{EXAMPLE}{OPEN}")).unwrap()];
    let why = Why::new(&sets, "ahead", Scale::Quick, false).unwrap();
    let folder = folder();
    let none = ReproductionSettings { only_finished: true, ..SETTINGS };
    let found = why.execute(&folder, &none, &Patience(AtomicUsize::new(usize::MAX))).unwrap().0;
    assert_eq!((found.tries(), found.judged(), found.flips().count()), (3, 0, 0));
    assert!(found.results.iter().all(|result| found.is_flip(result).is_none() && !result.is_tested));
    let ours = &found.results[0].judged.ours;
    assert!(ours.contains(" runs are missing, less than 0.01 CPU hours"), "{ours}");
    // The folder is a store, which the next command continues.
    let all = Reproduction::new(sets.to_vec(), Scale::Quick, None, &[]).unwrap();
    all.execute(&folder, &none, &Patience(AtomicUsize::new(usize::MAX))).unwrap();
}

#[test]
fn finished_runs_without_a_value_are_not_missing() {
    let sets = vec![claim_set(&format!("{EXAMPLE}{BY_INTERVAL}")).unwrap()];
    let all = Reproduction::new(sets, Scale::Quick, Some("no-value"), &[]).unwrap();
    let found = all.execute(&folder(), &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap();
    let (claim, judged) = &found.papers[0].claims[0];
    assert_eq!((judged.verdict, found.missing), (Verdict::NotRun, 0));
    let reason = "2 of 2 runs are finished, none has a value of `counters.trimmed / counters.trimmed`";
    assert_eq!(judged.ours, reason, "{}", claim.id);
    let text = summary_text(&all.paper_plans, Scale::Quick, &found, 200);
    assert!(text.contains(&format!("not run ({reason})")), "{text}");
}

#[test]
fn open_values_and_readings_are_tried_before_they_are_run() {
    let wrong = |from: &str, to: &str| {
        let text = format!("{EXAMPLE}{OPEN}");
        assert!(text.contains(from), "{from}");
        let error = check_open(&claim_set(&text.replacen(from, to, 1)).unwrap()).expect_err(to);
        assert!(error.line_column().is_some_and(|(line, _)| line > 1), "no place: {error}");
        assert!(!error.to_string().contains("--set"), "{error}");
        format!("{error} {}", error.remedy().unwrap_or_default())
    };
    for (from, to, words) in [
        ("key = \"load_balancer.prime.p_ecn\"", "key = \"load_balancer.prime.p_enc\"", "unknown key `p_enc`"),
        ("values = [2, 40]", "values = [2, \"many\"]", "found \"many\""),
        ("entries = { prime = \"short\" }", "set = [\"load_balancer.prime.p_ecn=many\"]", "found \"many\""),
        ("entries = { prime = \"short\" }", "set = [\"fault.0.fraction=0.1\"]", "has no `fault.0`"),
    ] {
        let message = wrong(from, to);
        assert!(message.contains(words), "{to}: {message}");
    }
    for set in claim_sets("all", None).unwrap() {
        check_open(&set).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn bounds_of_links_need_no_reference() {
    let bound = |word: &str| EXAMPLE.replacen("quick = false", &format!("bound = {word}"), 1);
    let error = claim_set(&bound("\"link\"")).unwrap_err().to_string();
    assert!(error.contains("true, false or \"links\""), "{error}");
    // A flow needs the time of its bytes on the link of its host: 99 % less than ECMP is beyond that.
    let text = bound("\"links\"")
        + r#"
[[claim]]
id = "too-much"
section = "1"
says = "PRIME is 99 % ahead of ECMP."
study = "large"
metric = "fct_mean"
kind = "change"
a = "prime"
b = "ecmp"
published = -99
"#;
    let set = claim_set(&text).unwrap();
    let reproduction = Reproduction::new(vec![set], Scale::Full, Some("too-much"), &[]).unwrap();
    let outcome = reproduction.execute(&folder(), &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap();
    let judged = &outcome.papers[0].claims[0].1;
    assert_eq!(judged.verdict, Verdict::OutOfReach, "{judged:?}");
    let limits = &judged.limits;
    assert!(limits.contains("bound: no more than -") && !limits.contains("reference"), "{limits}");
}

#[test]
fn a_number_beyond_the_bound_is_out_of_reach() {
    // Eight flows of 64 KiB over two paths per leaf: with ECMP at most two share a link, so that no scheme can halve its mean twice.
    let text = EXAMPLE.replacen("quick = false", "bound = true", 1)
        + r#"
[[claim]]
id = "too-much"
section = "1"
says = "PRIME is 90 % ahead of ECMP."
study = "large"
metric = "fct_mean"
kind = "change"
a = "prime"
b = "ecmp"
published = -90
"#;
    let set = claim_set(&text).unwrap();
    let reproduction = Reproduction::new(vec![set], Scale::Full, Some("too-much"), &[]).unwrap();
    let folder = folder();
    let outcome = reproduction.execute(&folder, &SETTINGS, &Patience(AtomicUsize::new(usize::MAX))).unwrap();
    let judged = &outcome.papers[0].claims[0].1;
    assert_eq!(judged.verdict, Verdict::OutOfReach, "{judged:?}");
    assert!(
        judged.limits.contains("bound: no more than -") && judged.limits.contains("reference -"),
        "{}",
        judged.limits
    );
    // A row of each per seed, beside two schemes with four seeds; they count as no runs.
    let rows = &outcome.papers[0].rows["large"];
    assert_eq!((rows.rows.len(), rows.runs()), (4 * 4, 8));
    // Stored rows give the same verdict.
    let read = Rows::from_csv("large", &rows.to_csv()).unwrap();
    assert_eq!(&read, rows);
}

#[test]
fn a_claim_that_holds_under_some_readings_alone_is_marked() {
    let judged = |verdict, readings: &[(&str, Verdict)]| Judged {
        verdict,
        published: String::new(),
        ours: String::new(),
        seeds: 3,
        details: vec![],
        after_tries: None,
        limits: String::new(),
        readings: readings.iter().map(|(name, verdict)| ((*name).to_string(), *verdict)).collect(),
    };
    let both = judged(Verdict::Reproduced, &[("other", Verdict::NotReproduced)]);
    assert_eq!(both.depends_on().as_deref(), Some("ours: reproduced; other: not reproduced"));
    assert!(both.words().starts_with("reproduced, depends on a reading"));
    assert!(judged(Verdict::Weaker, &[("other", Verdict::Reproduced)]).depends_on().is_some());
    // Not run is no verdict, and missing it either way is no difference.
    assert_eq!(judged(Verdict::Reproduced, &[("other", Verdict::NotRun)]).depends_on(), None);
    assert_eq!(judged(Verdict::Weaker, &[("other", Verdict::NotReproduced)]).words(), "same direction, weaker");
}

#[test]
fn settings_and_seeds_of_the_command_line_reach_the_studies() {
    let set = claim_set(&format!("{EXAMPLE}{OPEN}")).unwrap();
    let changed = with_changes(&set, &["load_balancer.prime.p_ecn=40".to_string()], Some(1001)).unwrap();
    let plans = super::paper_plan::plans(&changed, Scale::Quick).unwrap();
    assert_eq!(plans["sizes"].sweep.plan.seeds, [1001, 1002]);
    assert!(plans["sizes"].size(Scale::Quick).contains("load_balancer.prime.p_ecn=40"));
    let error = with_changes(&set, &["load_balancer.prime.p_enc=40".to_string()], None).expect_err("an error");
    assert!(error.to_string().contains("no study of hopper takes it"), "{error}");
    // In the study and in its quick scale, and printed once.
    assert_eq!(plans["sizes"].size(Scale::Quick).matches("p_ecn=40").count(), 1);
    // A value that is refused is no misspelled key.
    let error = with_changes(&set, &["load_balancer.prime.p_ecn=many".to_string()], None).expect_err("an error");
    assert!(
        error.to_string().contains("found \"many\"")
            && error.remedy().is_none_or(|remedy| !remedy.contains("did you mean"))
    );
    let swept_alone = ClaimSet { studies: set.studies[..1].to_vec(), ..set.clone() };
    let error = with_changes(&swept_alone, &["workload.0.size=1KiB".to_string()], None).expect_err("an error");
    assert!(error.to_string().contains("sweep it: sizes"), "{error}");
    assert_eq!(sweeping(&set, "workload.0.size"), ["sizes"]);
    // A key that the only other study lacks is swept by one: the sweep stays.
    let swept = with_changes(&set, &["workload.0.size=1KiB".to_string()], None).unwrap();
    assert_eq!(swept.studies[0].set, set.studies[0].set);
}
