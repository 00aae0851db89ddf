//! Comparison of two backends on synthetic rows.

use crate::common::{flow, link, meta, provenance, result, unfinish};
use anabranch_outcome::{FlowRow, Measures, RunResult, RunRows};
use anabranch_report::{Agreement, Side, Verdict, metric::Metric};
use anabranch_results::Formats;
use anabranch_units::Time;
use std::path::Path;

fn rows(slowdown: f64, change: impl Fn(&mut FlowRow)) -> RunRows {
    let mut flows = vec![flow(0, 300_000, Time::ZERO, slowdown), flow(1, 300_000, Time::ZERO, slowdown)];
    flows.iter_mut().for_each(change);
    let mut rows = result(flows);
    rows.links = vec![link("leaf0".into(), "spine0".into(), "tier0-1", "up", 0.5, 1e6)];
    rows
}

fn side(dir: &Path, backend: &str, measures: &Measures, runs: &[RunRows]) -> Side {
    let write = |(number, rows): (usize, &RunRows)| {
        let (seed, result) = (number as u64 + 1, RunResult::new(rows.clone(), measures));
        let own = dir.join(backend).join(seed.to_string());
        let written = anabranch_results::write_run(&own, &result, &meta("ecmp", seed), &provenance(), Formats::BOTH);
        (written.unwrap(), own)
    };
    Side { backend: backend.into(), runs: runs.iter().enumerate().map(write).collect() }
}

#[test]
fn ratios_use_complete_runs_and_unknown_counts_stay_null() {
    let dir = anabranch_testkit::folder();
    let whole = |slowdown| rows(slowdown, |_| {});
    let open = rows(9.0, |flow| {
        if flow.flow_id == 1 {
            unfinish(flow)
        }
    });
    let all = side(&dir, "sim", &Measures::ALL, &[whole(2.0), whole(2.0), whole(2.0)]);
    let mut few = Measures::ALL;
    if let Some(links) = &mut few.links {
        links.ecn_marks = false;
    }
    few.counters.dropped = false;
    let other = side(&dir, "other", &few, &[whole(3.0), whole(3.0), open]);
    let sides = [all, other];
    let agreement = Agreement::new(&sides, &["ecmp".to_string()], None).unwrap();
    let row = &agreement.rows[0];
    // 3 over 2 at each of two seeds; at the third a flow did not finish.
    assert_eq!((row.seeds, row.verdict), (2, Verdict::Apart));
    assert!((row.ratio.unwrap() - 1.5).abs() < 1e-5, "{row:?}");
    let is_noted = agreement.notes.iter().any(|note| note.contains("other, seed 3: 1 measured flows"));
    assert!(is_noted, "{:?}", agreement.notes);
    let of = |quantity: &str| {
        let found = agreement.explanations.iter().find(|row| row.quantity == quantity);
        found.unwrap_or_else(|| panic!("{quantity}")).values.clone()
    };
    // In these rows, a queue of 1 MB gives 100,000 marks, and a run has 10 drops.
    assert_eq!(of("marks at a port"), [Some(100_000.0), None]);
    assert_eq!(of("drops"), [Some(10.0), None]);
    assert_eq!(of("share of bytes"), [Some(1.0), Some(1.0)]);
    // A quantity that one backend does not count keeps the value of the other.
    let agreement = Agreement::new(&sides, &["ecmp".to_string()], Metric::read("dropped").ok().as_ref()).unwrap();
    let row = &agreement.rows[0];
    assert_eq!((row.reference, row.value, row.verdict), (Some(10.0), None, Verdict::Missing));
    assert!(agreement.notes.iter().any(|note| note.contains("`other` has no values of")), "{:?}", agreement.notes);
}
