//! Figures and sentences about schemes some of whose flows did not finish: it must not improve what is shown.

use crate::{
    common,
    common::{flow, meta, result, unfinish},
};
use anabranch_outcome::{FlowDelays, FlowRow, RunRows};
use anabranch_report::report;
use anabranch_results::Formats;
use anabranch_testkit::{folder, rows};
use anabranch_units::Time;
use std::fs;

/// Ten flows of 300 kB and ten of 3 MB with slowdowns of 1.1 to 3.0. Under ecmp the last four are open.
fn flows(scheme: &str) -> RunRows {
    let us = Time::from_us;
    let delays = FlowDelays { serialisation: us(6), flight: us(4), ack: Some(us(4)), ..FlowDelays::default() };
    let mut flows: Vec<FlowRow> = (0..20)
        .map(|id| {
            let size = if id % 2 == 0 { 300_000 } else { 3_000_000 };
            FlowRow { delays: Some(delays), ..flow(id, size, Time::ZERO, 1.1 + 0.1 * f64::from(id)) }
        })
        .collect();
    if scheme == "ecmp" {
        flows[16..].iter_mut().for_each(unfinish);
    }
    result(flows)
}

#[test]
fn unfinished_flows_do_not_flatter_a_figure() {
    let dir = folder();
    let runs = |scheme| (1..=3).map(move |seed| (flows(scheme), meta(scheme, seed)));
    common::write_compared(&dir, ["ecmp", "prime"].into_iter().flat_map(runs), "prime");
    let page = fs::read_to_string(report(&dir).unwrap()).unwrap().replace("&#x27;", "'");
    // Position 19 s of 20 flows: the sixteenth, with a slowdown of 2.6, is the last one known, at the share 15 / 19.
    let shown = rows(&fs::read_to_string(dir.join("figures/slowdown_cdf.csv")).unwrap());
    let last = |scheme: &str| {
        let own = shown.iter().filter(|row| row["scheme"] == scheme);
        let points = own.map(|row| (row["share"].parse::<f64>().unwrap(), row["slowdown"].parse::<f64>().unwrap()));
        points.fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
    };
    assert_eq!(last("prime").0, 1.0);
    let (share, slowdown) = last("ecmp");
    assert!((0.78..=15.0 / 19.0).contains(&share) && (2.5..=2.6).contains(&slowdown), "{share} {slowdown}");
    // At the same share both have the same slowdown: the flows that finished are the same.
    for row in shown.iter().filter(|row| row["scheme"] == "ecmp") {
        let other = shown.iter().find(|other| other["scheme"] == "prime" && other["share"] == row["share"]).unwrap();
        let [own, other] = [row, other].map(|row| row["slowdown"].parse::<f64>().unwrap());
        assert!((own - other).abs() < 1e-9, "{row:?} {other}");
    }
    for words in [
        "ecmp · p99 not reached",
        "a curve ends at the share that finished",
        "!: of finished flows alone, too good",
        // Three seeds of four flows.
        "12 flows did not finish and are not among these.",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // A single run: the median of 1.1 to 2.6 is 1.85, and four flows are above every share of the others.
    let single = folder();
    common::write_run(&single, &flows("ecmp"), &meta("ecmp", 1), Formats::PARQUET);
    let page = fs::read_to_string(report(&single).unwrap()).unwrap();
    let words = "4 of the 20 flows that count did not finish. Half of the others took at most 1.85 times";
    assert!(page.contains(words), "{words}");
}
