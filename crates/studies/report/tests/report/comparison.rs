//! Comparisons against manual calculations.

use crate::{
    common,
    common::{flow, meta, names, one_flow as summary, result, unfinish},
};
use anabranch_outcome::{EndpointLoad, MachineLoad, OnWire};
use anabranch_report::{ALL, Comparison};
use anabranch_results::{LimitRow, Limits, RunStatus, Summary, WorkloadMeta};
use anabranch_statistics::Method;
use anabranch_testkit::assert_contains;
use anabranch_units::Time;

/// Three seeds: ecmp 2, 4, 6; prime 1, 2, 3; ops 2.5, 3.5, 6.
fn runs() -> Vec<Summary> {
    [("ecmp", [2.0, 4.0, 6.0]), ("prime", [1.0, 2.0, 3.0]), ("ops", [2.5, 3.5, 6.0])]
        .into_iter()
        .flat_map(|(scheme, values)| values.into_iter().zip(1..).map(move |(v, seed)| summary(scheme, seed, v)))
        .collect()
}

fn close(found: Option<f64>, expected: f64) {
    assert!(found.is_some_and(|found| (found - expected).abs() < 1e-3), "{found:?} is not {expected}");
}

#[test]
fn means_intervals_ratios_and_tests() {
    let comparison = Comparison::new(&runs(), &names(&["ecmp", "prime", "ops"]), "ecmp");
    assert_eq!(comparison.seeds, [1, 2, 3]);
    let row = |scheme| comparison.row(ALL, scheme, "slowdown_p99").unwrap();
    // ecmp: mean 4, deviation 2, t(2) = 4.3027: 4.3027 * 2 / sqrt(3) = 4.968. Slowdowns are at least 1, and the mean exceeds
    // that by 3: the interval is 1 + 3 exp(-4.968 / 3) to 1 + 3 exp(4.968 / 3), that is 1.573 to 16.716.
    let ecmp = row("ecmp");
    close(ecmp.mean, 4.0);
    close(ecmp.ci95_low, 1.5726);
    close(ecmp.ci95_high, 16.7163);
    close(ecmp.ci95_half_width, 7.5719);
    close(ecmp.ratio_to_baseline, 1.0);
    assert_eq!((ecmp.difference, ecmp.p_value, ecmp.significant, ecmp.best), (None, None, None, false));
    assert_eq!(ecmp.p_holm, None);
    // Means 4, 2, 4, of the seeds 11/6, 19/6, 5, of all 10/3. Residuals: ecmp -1/2, 1/6, 1/3; prime 1/2, 1/6, -2/3; ops 0, -1/3,
    // 1/3. Their squares add up to 14/36 + 26/36 + 8/36 = 4/3; with (3 - 1)(3 - 1) = 4 degrees of freedom the mean square is
    // 1/3, and t = -2 / sqrt(2 / 3 / 3) = -4.2426. For four degrees p = 1 - s (1 + c / 2) with c = 4 / (t^2 + 4) = 2/11, s^2 =
    // 9/11. Two comparisons: Holm doubles it.
    let prime = row("prime");
    let p = 1.0 - (9.0f64 / 11.0).sqrt() * (1.0 + 1.0 / 11.0);
    close(prime.ratio_to_baseline, 0.5);
    close(prime.difference, -2.0);
    close(prime.p_value, p);
    close(prime.p_holm, 2.0 * p);
    assert_eq!((prime.significant, prime.best, prime.seeds), (Some(true), true, 3));
    assert_eq!((prime.test, ecmp.test), (Some(Method::Blocked), None));
    // ops - ecmp: 0.5, -0.5, 0: mean 0, p = 1.
    close(row("ops").difference, 0.0);
    close(row("ops").p_value, 1.0);
    assert_eq!(row("ops").significant, Some(false));
    // Counters are equal for all schemes: none is best.
    assert!(comparison.rows.iter().filter(|row| row.metric == "trimmed").all(|row| !row.best));
}

#[test]
fn worst_status_is_shown() {
    let of = |scheme: &str, seed, status| Summary { status: Some(status), ..summary(scheme, seed, 3.0) };
    let runs =
        [of("ecmp", 1, RunStatus::Stalled), of("ecmp", 2, RunStatus::Skipped), of("prime", 1, RunStatus::Skipped)];
    let runs = [&runs[..], &[of("prime", 2, RunStatus::TimeLimit)]].concat();
    let comparison = Comparison::new(&runs, &names(&["ecmp", "prime"]), "ecmp");
    let status = |scheme| comparison.row(ALL, scheme, "slowdown_mean").unwrap().status;
    assert_eq!((status("ecmp"), status("prime")), (Some(RunStatus::Stalled), Some(RunStatus::TimeLimit)));
}

#[test]
fn one_seed_has_neither_interval_nor_test() {
    let runs = [summary("ecmp", 1, 3.0), summary("prime", 1, 1.5)];
    let comparison = Comparison::new(&runs, &names(&["ecmp", "prime"]), "ecmp");
    let row = comparison.row(ALL, "prime", "slowdown_p50").unwrap();
    close(row.ratio_to_baseline, 0.5);
    assert_eq!((row.ci95_low, row.ci95_high, row.p_value, row.significant), (None, None, None, None));
    assert!(comparison.to_text(80).contains("one seed: confidence interval and test n/a"));
}

#[test]
fn only_common_seeds_are_compared() {
    // prime lacks seed 1, so all rows are over seeds 2 and 3, at which ecmp has 4 and 6, prime 2 and 3.
    let mut runs = runs();
    runs.retain(|run| !(run.scheme == "prime" && run.seed == 1));
    runs.reverse();
    let comparison = Comparison::new(&runs, &names(&["ecmp", "prime", "absent"]), "ecmp");
    let row = |scheme| comparison.row(ALL, scheme, "slowdown_mean").unwrap();
    assert_eq!((row("prime").seeds, row("ecmp").seeds), (2, 2));
    close(row("ecmp").mean, 5.0);
    close(row("prime").ratio_to_baseline, 0.5);
    close(row("prime").difference, -2.5);
    assert_eq!((&comparison.seeds, &comparison.compared_seeds), (&vec![1, 2, 3], &vec![2, 3]));
    assert_eq!(comparison.missing(), [("prime", vec![1]), ("absent", vec![1, 2, 3])]);
    let text = comparison.to_text(80);
    assert!(text.contains("MISSING prime: 2 of 3 seeds; not run: seed 1"), "{text}");
    assert!(text.contains("MISSING absent: 0 of 3 seeds"), "{text}");
}

#[test]
fn pairs_use_their_common_seeds() {
    let of = |scheme, seeds: &[u64]| seeds.iter().map(|s| summary(scheme, *s, *s as f64 + 1.0)).collect::<Vec<_>>();
    let runs = [of("a", &[1, 2]), of("b", &[2, 3]), of("c", &[3, 4])].concat();
    let comparison = Comparison::new(&runs, &names(&["a", "b", "c"]), "a");
    assert!(comparison.compared_seeds.is_empty());
    let row = |scheme| comparison.row(ALL, scheme, "slowdown_mean").unwrap();
    // a and b share seed 2, at which both have 3; a and c share none.
    close(row("b").ratio_to_baseline, 1.0);
    assert_eq!((row("c").ratio_to_baseline, row("c").difference), (None, None));
    assert!(row("a").group.is_empty() && row("a").leading.is_none());
}

#[test]
fn scheme_with_unfinished_flows_is_not_best() {
    let mut flows = vec![flow(0, 300_000, Time::ZERO, 1.0), flow(1, 300_000, Time::ZERO, 1.0)];
    unfinish(&mut flows[1]);
    let quick = common::summary(&result(flows), &meta("quick", 1));
    let comparison = Comparison::new(&[quick, summary("slow", 1, 3.0)], &names(&["quick", "slow"]), "quick");
    let row = |scheme| comparison.row(ALL, scheme, "slowdown_p99").unwrap();
    assert_eq!((row("quick").best, row("quick").unfinished_flows), (false, 1));
    assert!(row("slow").best);
    let text = comparison.to_text(80);
    assert!(text.lines().any(|line| line.contains("quick") && line.contains('!')), "{text}");
    assert_eq!(comparison.row(ALL, "quick", "fct_ratio_max").unwrap().mean, None);
}

#[test]
fn workloads_are_compared_separately() {
    let run = |scheme: &str, slowdown: f64| {
        let mut meta = meta(scheme, 1);
        meta.workloads.push(WorkloadMeta { name: "background".into(), ..WorkloadMeta::default() });
        let mut second = flow(1, 300_000, Time::ZERO, 2.0 * slowdown);
        second.workload = 1;
        common::summary(&result(vec![flow(0, 300_000, Time::ZERO, slowdown), second]), &meta)
    };
    let comparison = Comparison::new(&[run("ecmp", 2.0), run("prime", 1.0)], &names(&["ecmp", "prime"]), "ecmp");
    assert_eq!(comparison.workloads(), [ALL, "background", "web"]);
    close(comparison.row("background", "ecmp", "slowdown_max").unwrap().mean, 4.0);
    close(comparison.row(ALL, "ecmp", "slowdown_max").unwrap().mean, 2.0);
    assert!(comparison.row("background", "ecmp", "dropped").is_none());
}

#[test]
fn csv_has_a_row_per_scheme_and_metric() {
    let comparison = Comparison::new(&runs(), &names(&["ecmp", "prime", "ops"]), "ecmp");
    let text = comparison.to_csv();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    for name in
        ["workload", "scheme", "metric", "mean", "ci95_low", "ci95_high", "ratio_to_baseline", "significant", "seeds"]
    {
        assert!(header.iter().any(|found| found == name), "{name} is missing in {header:?}");
    }
    assert_eq!(reader.records().count(), comparison.rows.len());
    // A workload with one size of flow is ranked by the slowest flow.
    assert_eq!(comparison.main_metric, "fct_ratio_max");
    let json: serde_json::Value = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["rows"][0]["scheme"], "ecmp");
}

#[test]
fn schemes_without_runs_are_excluded() {
    let comparison = Comparison::new(&runs(), &names(&["absent", "prime", "ecmp"]), "ecmp");
    assert_eq!(comparison.schemes, ["prime", "ecmp"]);
}

/// A run of real packets that was late for `late_ms` of 1000 ms.
fn carried(scheme: &str, seed: u64, slowdown: f64, late_ms: u64) -> Summary {
    let ms = |ms: u64| Time::from_us(1000 * ms);
    let endpoint = EndpointLoad { sending: ms(1000), active: ms(1000), late: ms(late_ms), ..EndpointLoad::default() };
    let mut result = result(vec![flow(0, 300_000, Time::ZERO, slowdown)]);
    result.on_wire = Some(OnWire {
        datapath: "udp".into(),
        longest_pause: Some(ms(1)),
        machine: MachineLoad::new(&[endpoint], None, true),
        ..OnWire::default()
    });
    common::summary(&result, &meta(scheme, seed))
}

#[test]
fn machine_bound_seeds_are_excluded_if_others_remain() {
    let (schemes, late) = (names(&["ecmp", "prime"]), 30);
    let mut runs: Vec<Summary> = (1..4).map(|seed| carried("ecmp", seed, 2.0, 5)).collect();
    runs.extend([carried("prime", 1, 1.0, 0), carried("prime", 2, 9.0, late), carried("prime", 3, 1.0, 0)]);
    let comparison = Comparison::new(&runs, &schemes, "ecmp");
    assert_eq!(comparison.compared_seeds, [1, 3]);
    assert_eq!(comparison.machine_bound, ["prime/seed2"]);
    close(comparison.row(ALL, "prime", "slowdown_p99").unwrap().ratio_to_baseline, 0.5);
    assert!(comparison.to_text(100).contains("MACHINE-BOUND prime/seed2: their seeds are not compared"));
    // With one seed in total there is no other seed to compare.
    let only = [carried("ecmp", 2, 2.0, 0), carried("prime", 2, 9.0, late)];
    let comparison = Comparison::new(&only, &schemes, "ecmp");
    assert_eq!(comparison.compared_seeds, [2]);
    assert!(comparison.to_text(100).contains("MACHINE-BOUND prime/seed2: compared nevertheless"));
    assert!(!Comparison::new(&runs[..3], &names(&["ecmp"]), "ecmp").to_text(100).contains("MACHINE-BOUND"));
}

#[test]
fn unmeasured_values_are_null() {
    let machine = MachineLoad::new(&[], Some(0.25), false);
    let mut result = result(vec![flow(0, 300_000, Time::ZERO, 1.0)]);
    result.on_wire = Some(OnWire { datapath: "udp".into(), machine, ..OnWire::default() });
    let summary = common::summary(&result, &meta("ecmp", 1));
    let written = serde_json::to_value(&summary).unwrap();
    let load = &written["machine_load"];
    assert!(load["bound"].is_null() && load["late_share"].is_null() && load["idle_share"] == 0.25, "{load}");
    assert!(written.get("longest_pause_s").is_none());
    assert!(!summary.warnings().iter().any(|warning| warning.contains("achine-bound")));
    // Earlier results contain `disturbed`, and are still readable.
    let mut old = written;
    old.as_object_mut().unwrap().remove("machine_load");
    old["disturbed"] = true.into();
    let old: Summary = serde_json::from_value(old).unwrap();
    assert_eq!((old.machine_load, old.is_machine_bound()), (None, false));
}

/// In one run a single flow takes most of the time: 1.9 times its completion is the whole, in the others 4 times. The
/// metric of the ranking is that of the scenario, regardless of the metrics of one run.
#[test]
fn the_headline_follows_from_the_scenario() {
    let run = |scheme: &str, seed: u64, gap: u64| {
        let mut meta = meta(scheme, seed);
        meta.flows_wait = true;
        meta.workloads[0].is_job = true;
        let rows = result(vec![flow(0, 300_000, Time::ZERO, 1.0), flow(1, 300_000, Time::from_us(gap), 1.0)]);
        common::summary(&rows, &meta)
    };
    // A flow takes 10 us, its last ACK 4 us more.
    let mut runs: Vec<Summary> = (1..=5).flat_map(|seed| [run("ecmp", seed, 30), run("prime", seed, 26)]).collect();
    runs.push(run("prime", 6, 5));
    runs.push(run("ecmp", 6, 5));
    let comparison = Comparison::new(&runs, &names(&["ecmp", "prime"]), "ecmp");
    assert_eq!(comparison.main_metric, "completion");
    close(comparison.row(ALL, "ecmp", "completion").unwrap().mean, (5.0 * 44.0 + 19.0) / 6.0);
    let text = comparison.to_text(100);
    assert!(text.contains("whole"), "{text}");
    // Without jobs it is the slowdown, even if the flows of a run happen to follow one another.
    let free = |scheme: &str| {
        let flows = vec![flow(0, 1000, Time::ZERO, 1.0), flow(1, 300_000, Time::from_us(90), 1.0)];
        common::summary(&result(flows), &meta(scheme, 1))
    };
    let comparison = Comparison::new(&[free("ecmp"), free("prime")], &names(&["ecmp", "prime"]), "ecmp");
    assert_eq!(comparison.main_metric, "slowdown_p99");
}

/// A bound of 10 us of the mean completion time and this reference, at seeds 1 to 3.
fn limits(reference: f64) -> Limits {
    let row = |seed| LimitRow {
        seed,
        workload: ALL.into(),
        metric: "fct_mean".into(),
        bound: Some(10.0),
        by: Some("max-flow".into()),
        reference: Some(reference),
    };
    let cut = |flows: u64| format!("{flows} of 8 flows have no path: no bound exists");
    Limits {
        rows: (1..=3).map(row).collect(),
        reference: "faster links".into(),
        loose: vec![cut(3), cut(4), "another reason".into()],
        schemes: names(&["ecmp", "prime", "ops"]),
        ..Limits::default()
    }
}

#[test]
fn columns_of_bounds_are_hidden_last() {
    let comparison =
        Comparison::new(&runs(), &names(&["ecmp", "prime", "ops"]), "ecmp").with_limits(Some(&limits(20.0)));
    // The heading of a column has two lines, of which the first is `over` or ends in it.
    let has_bound = |text: &str| {
        text.lines().any(|line| line.split_whitespace().any(|word| word == "bound") && !line.contains(':'))
    };
    let wide = comparison.to_text(200);
    assert!(has_bound(&wide) && !wide.contains("columns hidden"), "{wide}");
    for columns in 60..140 {
        let text = comparison.to_text(columns);
        assert!(has_bound(&text), "{columns}: {text}");
        assert!(!text.contains("over bound or reference"), "{columns}: {text}");
    }
    let narrow = comparison.to_text(60);
    assert!(narrow.contains("columns hidden") && narrow.contains("slowdown_p50"), "{narrow}");
}

#[test]
fn reasons_of_seeds_are_one_line_each_and_a_reference_below_the_bound_is_ruled_out() {
    let comparison = Comparison::new(&runs(), &names(&["ecmp", "prime", "ops"]), "ecmp");
    let text = |reference| comparison.clone().with_limits(Some(&limits(reference))).to_text(1000);
    let above = text(20.0);
    let reasons = "bound: 3 of 8 flows have no path: no bound exists (1 more of other seeds or workloads)\nbound: another reason\n";
    assert!(above.contains(reasons), "{above}");
    assert!(!above.contains("reference below the bound"), "{above}");
    let below = text(9.0);
    assert_contains(&below, &["reference below the bound: fct_mean; no load balancer on this fabric reaches it"]);
}
