//! Assertions about comparisons, against means by hand.

use crate::{
    common,
    common::{flow, meta, one_flow as summary, result, unfinish},
};
use anabranch_report::{Assertion, Comparison};
use anabranch_results::{Formats, Summary};
use anabranch_units::Time;
use std::path::PathBuf;

fn schemes() -> Vec<String> {
    ["ecmp", "prime", "prime.2", "hf2t+letflow"].map(String::from).to_vec()
}

/// Means over two seeds: ecmp 4, prime 2, prime.2 3.
fn comparison() -> Comparison {
    let runs: Vec<Summary> = [("ecmp", [3.0, 5.0]), ("prime", [1.5, 2.5]), ("prime.2", [2.0, 4.0])]
        .into_iter()
        .flat_map(|(scheme, values)| values.into_iter().zip(1..).map(move |(v, seed)| summary(scheme, seed, v)))
        .collect();
    Comparison::new(&runs, &schemes(), "ecmp")
}

fn parse(text: &str) -> Result<Assertion, String> {
    Assertion::parse(text, &schemes(), &["web".into(), "dp.ar".into()]).map_err(|error| error.message)
}

#[test]
fn means_are_compared_with_numbers_and_each_other() {
    let comparison = comparison();
    for (text, holds) in [
        ("prime.slowdown_p99 < 2.1", true),
        ("prime.slowdown_p99 < 2", false),
        ("prime.slowdown_p99 <= 2", true),
        ("4>=ecmp.slowdown_p99", true),
        ("ecmp.slowdown_p99 > 4", false),
        ("prime.slowdown_p99 < ecmp.slowdown_p99", true),
        ("prime.slowdown_p99 <= 0.5 * ecmp.slowdown_p99", true),
        ("prime.slowdown_p99 < 0.4*ecmp.slowdown_p99", false),
        // A name with a dot is not read as `prime` with a workload `2`.
        ("prime.2.slowdown_p99 > 2.9", true),
        ("1e-3 < prime.fct_mean", true),
    ] {
        let checked = parse(text).expect(text).check(&comparison, &[]).unwrap();
        assert_eq!(checked.holds, Some(holds), "{}", checked.text);
    }
    let checked = parse("prime.slowdown_p99 < 0.4 * ecmp.slowdown_p99").unwrap().check(&comparison, &[]).unwrap();
    let told = "prime.slowdown_p99 is 2.000, 0.4 * ecmp.slowdown_p99 is 1.600";
    assert!(checked.text.ends_with(told), "{}", checked.text);
}

/// Without a scheme it is about each: it holds if it holds for all.
#[test]
fn every_scheme_is_meant_where_none_is_named() {
    let comparison = comparison();
    for (text, holds) in [
        ("slowdown_p99 < 4.1", true),
        ("slowdown_p99 < 4", false),
        ("slowdown_p99 >= 2", true),
        ("slowdown_p99 <= ecmp.slowdown_p99", true),
        ("web.slowdown_p99 < 4.1", true),
    ] {
        let checked = parse(text).expect(text).check(&comparison, &[]).unwrap();
        assert_eq!(checked.holds, Some(holds), "{}", checked.text);
        assert!(["ecmp.", "prime.", "prime.2."].iter().all(|scheme| checked.text.contains(scheme)), "{}", checked.text);
    }
}

#[test]
fn what_is_unknown_does_not_hold() {
    let mut open = flow(0, 300_000, Time::ZERO, 2.0);
    unfinish(&mut open);
    let runs = [
        common::summary(&result(vec![open, flow(1, 300_000, Time::ZERO, 1.0)]), &meta("prime", 1)),
        summary("ecmp", 1, 2.0),
    ];
    let comparison = Comparison::new(&runs, &schemes(), "ecmp");
    for (text, reason) in
        [("prime.slowdown_p99 < 9", "1 flows did not finish"), ("prime.2.slowdown_p99 < 9", "it has no run")]
    {
        let checked = parse(text).expect(text).check(&comparison, &[]).unwrap();
        assert!(checked.holds.is_none() && checked.text.contains(reason), "{}", checked.text);
    }
}

/// Any metric of the language is asserted, as the mean over the seeds compared: 4 flows of slowdown 1 to 4 in each run.
#[test]
fn metrics_beyond_the_comparison_are_read_from_the_runs() {
    let folder = anabranch_testkit::folder();
    let runs: Vec<(Summary, PathBuf)> = (1..=2)
        .map(|seed| {
            let flows = (0..4).map(|n| flow(n, 300_000, Time::ZERO, f64::from(n + 1))).collect();
            let place = folder.join(format!("{seed}"));
            let (result, meta) = (result(flows), meta("prime", seed));
            (common::write_run(&place, &result, &meta, Formats::PARQUET), place)
        })
        .collect();
    let summaries: Vec<Summary> = runs.iter().map(|(summary, _)| summary.clone()).collect();
    let comparison = Comparison::new(&summaries, &["prime".to_string()], "prime");
    for text in [
        "prime.flows <= 4",
        "prime.flows >= 4",
        "prime.flows.size_bytes.sum > 1.19e6",
        "prime.flows.size_bytes.sum < 1.21e6",
        // Jain's index of 1 to 4: 100 / (4 * 30).
        "prime.jain(slowdown) > 0.83",
        "prime.jain(slowdown) < 0.84",
        "prime.slowdown_p100 >= 4",
        "prime.all.slowdown_max / slowdown_mean < 1.61",
    ] {
        let checked = parse(text).expect(text).check(&comparison, &runs).unwrap();
        assert_eq!(checked.holds, Some(true), "{}", checked.text);
    }
    let unknown = parse("prime.unlisted.total < 1").unwrap().check(&comparison, &runs).unwrap();
    assert!(unknown.holds.is_none() && unknown.text.contains("was not measured"), "{}", unknown.text);
}

#[test]
fn invalid_assertions() {
    for (text, words) in [
        ("prime.slowdown_p99", "found no operator"),
        ("1 < 2", "found two numbers"),
        (
            "prmie.slowdown_p99 < 2",
            "found `prmie` before the metric, expected a load balancer or a workload; there are ecmp, prime",
        ),
        ("ecmp.webb.slowdown_p99 < 9", "found `webb` before the metric, expected a workload; there are web, dp.ar"),
        ("prime.slowdwn_p98 < 2", "no metric is called `slowdwn_p98`"),
        ("prime.web.slowdwn_p98 < 2", "no metric is called `slowdwn_p98`"),
        ("prime < 2", "expected a number, METRIC or SCHEME.METRIC"),
        ("x * prime.slowdown_p99 < 2", "found `x` before `*`"),
        ("nan < prime.slowdown_p99", "no metric is called `nan`"),
        ("prime.slowdown_p99 < ", "expected a number"),
    ] {
        let message = parse(text).expect_err(text);
        assert!(message.contains(words), "{text}: {message}");
    }
}
