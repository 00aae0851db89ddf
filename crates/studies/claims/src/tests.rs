//! Tests of claim files: errors are reported with their position, and the embedded files are valid.

use super::{Selected, plans, *};
use anabranch_scenario::ScenarioError;
use proptest::prelude::*;

pub(super) const EXAMPLE: &str = r#"
[names]
prime = "PRIME"

[[study]]
id = "sizes"
label = "Permutation"
scenario = "tiny"
set = ["topology.radix=4"]
over = { "workload.0.size" = ["16KiB", "64KiB"] }
schemes = ["ecmp", "ops", "prime"]
variants = { short = "load_balancer.prime.p_ecn=8" }
seeds = 3
bins = ["32KiB"]
quick = { over = { "workload.0.size" = ["16KiB"] }, seeds = 2 }

[[study]]
id = "large"
scenario = "tiny"
schemes = ["ecmp", "prime"]
seeds = 4
quick = false

[[figure]]
id = "fig1"
title = "Fig. 1: sizes"
study = "sizes"
kind = "bars"
metrics = ["fct_mean", "fct_ratio_max"]
x = "workload.0.size"
published = [{ where = { scheme = "prime", "workload.0.size" = "16KiB" }, value = 1.5 }]

[[claim]]
id = "ahead"
figure = "fig1"
says = "PRIME is ahead of ECMP by up to 15 %."
study = "sizes"
metric = "fct_mean"
kind = "change"
a = "prime"
b = ["ecmp", "ops"]
each = ["workload.0.size"]
take = "most"
published = -15
ours = ["load_balancer.prime.p_ecn"]

[[claim]]
id = "order"
section = "4.2"
says = "PRIME before all others, which are alike."
study = "large"
quick_study = "sizes"
metric = "fct_max"
kind = "order"
order = ["prime", ["ecmp"]]
"#;

pub(super) fn claim_set(text: &str) -> Result<ClaimSet, ScenarioError> {
    ClaimSet::read(PAPERS[0], &[SourceFile { name: "claims/test.toml".into(), text: text.into() }])
}

fn error(text: &str) -> (String, Option<usize>) {
    let found = match claim_set(text) {
        Err(error) => error,
        Ok(claim_set) => {
            let found = [Scale::Full, Scale::Quick].into_iter().find_map(|scale| plans(&claim_set, scale).err());
            found.unwrap_or_else(|| panic!("nothing wrong in {text}"))
        }
    };
    let remedy = found.remedy().map(str::to_string).unwrap_or_default();
    (format!("{found} {remedy}"), found.line_column().map(|(line, _)| line))
}

#[test]
fn bundled_files_are_valid() {
    for paper in PAPERS {
        let claim_set = ClaimSet::embedded(*paper).unwrap_or_else(|error| panic!("{}: {error}", paper.name));
        for scale in [Scale::Quick, Scale::Full] {
            if let Err(error) = plans(&claim_set, scale) {
                panic!("{}: {error} {}", paper.name, error.remedy().unwrap_or_default());
            }
        }
    }
}

#[test]
fn the_example_is_planned_at_both_scales() {
    let claim_set = claim_set(EXAMPLE).unwrap();
    let (quick, full) = (plans(&claim_set, Scale::Quick).unwrap(), plans(&claim_set, Scale::Full).unwrap());
    // Two sizes, three schemes and a variant, three seeds; at the quick scale one size and two seeds. A variant that
    // changes a parameter of PRIME is a run of its own.
    assert_eq!((full["sizes"].sweep.order().len(), quick["sizes"].sweep.order().len()), (2 * 4 * 3, 4 * 2));
    assert_eq!(full["large"].sweep.order().len(), 2 * 4);
    assert!(!quick.contains_key("large"));
    let groups = Selected::new(&claim_set.claims[0], &full, Scale::Full).unwrap().groups;
    let sizes: Vec<_> = groups.iter().map(|group| group.at[0].1.as_str()).collect();
    assert_eq!(sizes, ["16KiB", "64KiB"]);
    assert_eq!(claim_set.studies[0].bins(), ["<32KiB", ">=32KiB"]);
    assert_eq!(claim_set.studies[0].bounds("<32KiB"), Some((0, 32 * 1024)));
    assert_eq!(claim_set.studies[0].bounds(">=32KiB"), Some((32 * 1024, u64::MAX)));
}

/// Claim on a 99th percentile of random arrivals, from rows of three seeds with this many flows each.
fn tail_claim(flows: Option<u64>) -> Judged {
    let text = r#"
[[study]]
id = "tail"
scenario = "hf2t-hadoop"
schemes = ["letflow", "hf2t"]
seeds = 3
quick = false

[[claim]]
id = "p99"
section = "1"
says = "HF2T is ahead at p99."
study = "tail"
metric = "slowdown_p99"
kind = "change"
a = "hf2t"
b = "letflow"
published = "lower"
"#;
    let claim_set = claim_set(text).unwrap();
    let row = |scheme: &str, seed: u64, value: f64| {
        format!("{scheme},{seed},all,all,c,{value},{}\n", flows.map_or(String::new(), |flows| flows.to_string()))
    };
    let rows: String = (1..=3)
        .flat_map(|seed| [row("letflow", seed, 10.0 + seed as f64), row("hf2t", seed, 5.0 + seed as f64)])
        .collect();
    let rows = Rows::from_csv("tail", &format!("scheme,seed,workload,bin,commit,slowdown_p99,flows\n{rows}")).unwrap();
    let mut stored = StoredRows::default();
    assert!(stored.put("tail", Scale::Full, rows));
    PaperPlan::from_stored_rows(&claim_set, Scale::Full, &stored).unwrap().claims.remove(0).1
}

#[test]
fn a_percentile_of_few_flows_decides_nothing() {
    assert_eq!(tail_claim(Some(300)).verdict, Verdict::Reproduced);
    let few = tail_claim(Some(299));
    assert_eq!(few.verdict, Verdict::TooFewSeeds);
    assert!(few.ours.ends_with("; 299 flows in a group, 300 are needed"), "{}", few.ours);
    let uncounted = tail_claim(None);
    assert_eq!(uncounted.verdict, Verdict::Reproduced, "rows from before flows were counted");
    assert!(uncounted.ours.ends_with("; unknown number of flows in a group, 300 are needed"), "{}", uncounted.ours);
}

#[test]
fn errors_name_position_and_nearest_choice() {
    for (from, to, words) in [
        ("metrics = [\"fct_mean\"", "metrics = [\"fct_men\"", "fct_mean"),
        ("metric = \"fct_mean\"", "metric = \"fct_max - fct_mean - fct_max\"", "found 2 operators"),
        ("metric = \"fct_mean\"", "metric = \"fct_max - fct_mean\"", "may be zero or negative"),
        ("kind = \"change\"", "kind = \"chnage\"", "change"),
        ("kind = \"change\"", "kind = \"factor\"", "more than 0"),
        ("published = -15", "published = -101", "-100"),
        ("published = -15", "published = [-120, -15]", "-100"),
        ("published = -15", "published = { at_most = -120 }", "-100"),
        ("published = -15", "published = -15\ntolerance = 1.5", "from 0 to 1"),
        ("b = [\"ecmp\", \"ops\"]", "b = [\"ecmp\", \"prime\"]", "which `a` names too"),
        ("published = -15", "published = -15\ntried = 0", "`tried`: found 0, expected at least 1"),
        ("x = \"workload.0.size\"", "x = \"workload.0.size\"\ndigits = 10", "`digits`: found 10, expected 1 to 9"),
        ("x = \"workload.0.size\"", "x = \"workload.0.size\"\nrelative_to = \"ecpm\"", "did you mean `ecmp`?"),
        ("published = -15", "published = -15\nwhere = { scheme = \"ecmp\" }", "name the load balancers in `a`"),
        ("id = \"ahead\"", "idd = \"ahead\"", "`id` is missing"),
        ("tak", "tke", "unknown key `tkee`"),
        ("scenario = \"tiny\"\nset", "scenario = \"tony\"\nset", "tiny"),
        ("topology.radix=4", "topology.radx=4", "radix"),
        ("\"ops\", \"prime\"", "\"ops\", \"prme\"", "prime"),
        ("a = \"prime\"", "a = \"prme\"", "prime"),
        ("each = [\"workload.0.size\"]", "each = []", "has several values"),
        ("each = [\"workload.0.size\"]", "each = [\"workload.0.sizes\"]", "workload.0.size"),
        ("figure = \"fig1\"", "figure = \"fig2\"", "fig1"),
        ("study = \"large\"", "study = \"largo\"", "large"),
        ("quick_study = \"sizes\"", "note = \"x\"", "has no quick scale"),
        ("x = \"workload.0.size\"", "x = \"bin\"", "has several values"),
        ("\"load_balancer.prime.p_ecn\"", "\"load_balancer.prime.p_en\"", "no scenario of its has"),
        ("scheme = \"prime\", \"workload", "scheme = \"pime\", \"workload", "prime"),
        ("published = -15", "published = \"up\"", "lower"),
        ("published = -15", "published = [3, 1]", "[from, to]"),
        ("published = -15", "published = 0", "other than zero"),
        ("published = -15", "published = -15\norder = []", "has no meaning"),
        ("id = \"order\"", "id = \"ahead\"", "is defined twice"),
        ("id = \"order\"", "id = \"fig1\"", "a figure and a claim are named `fig1`"),
        ("bins = [\"32KiB\"]", "bins = [\"32KiB\", \"1KiB\"]", "ascending"),
        ("order = [\"prime\", [\"ecmp\"]]", "order = [\"prime\"]", "best first"),
        ("seeds = 3", "seeds = \"three\"", "whole number"),
    ] {
        assert!(EXAMPLE.contains(from), "{from}");
        let text = EXAMPLE.replacen(from, to, 1);
        let (message, line) = error(&text);
        assert!(message.contains(words), "{to}: {message}");
        assert!(line.is_some_and(|line| line > 1), "{to}: no place in {message}");
    }
}

#[test]
fn unknown_paper_names_the_nearest() {
    let error = claim_sets("hoper", None).unwrap_err();
    assert_eq!(error.remedy(), Some("did you mean `hopper`?"));
    assert!(error.to_string().contains("all"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn arbitrary_text_does_not_panic(at in 0usize..EXAMPLE.len(), cut in 0usize..40, with in "[ -~\n]{0,12}") {
        if EXAMPLE.is_char_boundary(at) {
            let end = (at + cut).min(EXAMPLE.len());
            let text = format!("{}{with}{}", &EXAMPLE[..at], &EXAMPLE[end..]);
            let _ = claim_set(&text).map(|claim_set| plans(&claim_set, Scale::Quick).map(|_| ()));
        }
    }
}
