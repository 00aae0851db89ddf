//! The pages in a browser: `tests/browser/check.py` over reports, `tests/browser/view.py` over fabric views.

use crate::{
    common,
    common::{Behaviour, SCHEMES, add_measurements, meta, run},
};
use anabranch_outcome::{PortSample, PortSeries, RunRows, TraceEvent, TraceRow};
use anabranch_random::Stream;
use anabranch_report::{report, write_view};
use anabranch_results::{
    Axis, Formats, Inputs, LinkFault, OutputFile, Plan, PlannedRun, WorkloadMeta, store_directory, write_plan,
};
use anabranch_units::Time;
use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn file(path: &std::path::Path) -> OutputFile {
    OutputFile::new(path, true, &Inputs::default()).unwrap()
}

fn passes(script: &str, arguments: &[&Path]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser").join(script);
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let message = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    print!("{message}");
}

/// Requires Chromium, its driver and Selenium; see the script for the command.
#[test]
#[ignore = "needs chromium, chromium-driver and selenium"]
fn pages_load_in_a_browser() {
    let dir = anabranch_testkit::folder();
    let mut pages = vec![];
    for (name, workloads, seeds) in [("comparison", &["web"][..], 3), ("workloads", &["web", "incast"][..], 1)] {
        let dir = dir.join(name);
        let mut runs = vec![];
        for scheme in SCHEMES {
            for seed in 1..=seeds {
                let (mut result, mut meta) = (run(scheme, seed, 4000, false), meta(scheme.name, seed));
                add_measurements(&mut result);
                let named =
                    |name: &&str| WorkloadMeta { name: name.to_string(), measured: true, ..WorkloadMeta::default() };
                meta.workloads = workloads.iter().map(named).collect();
                let number = workloads.len() as u16;
                result.flows.iter_mut().for_each(|flow| flow.workload = (flow.flow_id % u32::from(number)) as u16);
                runs.push((result, meta));
            }
        }
        common::write_compared(&dir, runs, "ecmp");
        pages.push(report(&dir).unwrap());
    }
    let single = dir.join("single");
    common::write_run(&single, &run(&SCHEMES[4], 1, 4000, false), &meta("prime", 1), Formats::BOTH);
    pages.push(report(&single).unwrap());
    pages.push(sweep(&dir.join("sweep")));
    passes("check.py", &pages.iter().map(PathBuf::as_path).collect::<Vec<_>>());
}

fn sweep(dir: &Path) -> PathBuf {
    let axis = |key: &str, values: &[&str], numbers: &[f64]| Axis {
        key: key.to_string(),
        values: values.iter().map(ToString::to_string).collect(),
        numbers: numbers.to_vec(),
        ..Axis::default()
    };
    let mut plan = Plan {
        name: "Web search on a 128-host leaf-spine".to_string(),
        axes: vec![
            axis("workload.0.load", &["0.3", "0.6", "0.9"], &[0.3, 0.6, 0.9]),
            axis("topology.link_rate", &["100Gbps", "400Gbps"], &[1e11, 4e11]),
        ],
        entries: SCHEMES.iter().map(|scheme| scheme.name.to_string()).collect(),
        baseline: "ecmp".to_string(),
        seeds: vec![1, 2],
        ..Plan::default()
    };
    for point in 0..plan.points() {
        for (entry, scheme) in SCHEMES.iter().enumerate() {
            for seed in 1..=2 {
                let hash = format!("{point}{entry}{seed}");
                let worse = Behaviour { excess: scheme.excess * (1.0 + 0.2 * point as f64), ..*scheme };
                let result = run(&worse, seed, 400, false);
                let own = store_directory(dir, &hash);
                common::write_run(&own, &result, &meta(scheme.name, seed), Formats::PARQUET);
                plan.runs.push(PlannedRun { point, entry, seed, backend: 0, run: hash });
            }
        }
    }
    write_plan(&plan, dir).unwrap();
    report(dir).unwrap()
}

fn add_series(result: &mut RunRows, seed: u64) {
    let mut stream = Stream::keyed(seed, 0, "series");
    for link in &result.links {
        let mut sent = 0;
        let samples = (0..40).map(|i| {
            let queue = stream.below(200_000);
            let row = PortSample {
                time: Time::from_us(i),
                queue_bytes: queue,
                queue_packets: queue / 4160,
                sent_bytes: sent,
                ..PortSample::default()
            };
            sent += stream.below(50_000);
            row
        });
        result.series.push(PortSeries { from: link.from.clone(), to: link.to.clone(), samples: samples.collect() });
    }
}

/// Adds packets of flow 3 from host 0 to host 40, round-robin over eight spines; every seventh is dropped at the spine.
fn add_trace(result: &mut RunRows) {
    let number = |from: &str, to: &str| result.links.iter().position(|link| link.from == from && link.to == to);
    let mut rows = vec![];
    for psn in 0..60 {
        let spine = format!("spine{}", psn % 8);
        let route = [("host0", "leaf0"), ("leaf0", &*spine), (&*spine, "leaf5"), ("leaf5", "host40")];
        for (hop, (from, to)) in route.into_iter().enumerate() {
            let link = number(from, to).unwrap() as u32;
            let joined = Time::from_ns(500 * psn + 1200 * hop as u64);
            let mut row = TraceRow {
                time: joined + Time::from_ns(if hop == 0 { 0 } else { 100 }),
                flow_id: 3,
                psn: Some(psn),
                event: if hop == 0 { TraceEvent::Send } else { TraceEvent::Hop },
                link,
                tag: psn as u32,
                joined: (hop > 0).then_some(joined),
                size_bytes: 4160,
                ..TraceRow::default()
            };
            if hop == 2 && psn % 7 == 6 {
                row.event = TraceEvent::Drop;
                rows.push(row);
                break;
            }
            if hop == 1 && psn % 5 == 0 {
                rows.push(TraceRow { event: TraceEvent::Mark, ..row });
            }
            rows.push(row);
            if hop == 3 {
                let time = row.time + Time::from_ns(1100);
                rows.push(TraceRow { event: TraceEvent::Receive, time, joined: None, ..row });
            }
        }
    }
    rows.sort();
    result.watched.trace = rows;
}

#[test]
#[ignore = "needs chromium, chromium-driver and selenium"]
fn views_play_in_a_browser_and_show_the_rows() {
    let dir = anabranch_testkit::folder();
    let mut runs = vec![];
    for (number, scheme) in SCHEMES[..2].iter().enumerate() {
        let (mut result, mut meta) = (run(scheme, 1, 400, false), meta(scheme.name, 1));
        result.simulated = Time::from_us(40);
        add_series(&mut result, number as u64);
        add_trace(&mut result);
        let faults = [(10, LinkFault::DOWN), (30, "up")];
        meta.faults = faults.map(|(at, what)| common::fault("leaf2", "spine1", Time::from_us(at), what)).to_vec();
        runs.push(dir.join(scheme.name));
        common::write_run(&runs[number], &result, &meta, Formats::BOTH);
    }
    let (both, one) = (dir.join("both.html"), dir.join("one.html"));
    write_view(&runs, &file(&both)).unwrap();
    write_view(&runs[..1], &file(&one)).unwrap();
    passes("view.py", &[&both, &runs[0], &runs[1]]);
    passes("view.py", &[&one, &runs[0]]);
    let (plain, still) = (dir.join("plain"), dir.join("still.html"));
    common::write_run(&plain, &run(&SCHEMES[2], 1, 400, false), &meta("hopper", 1), Formats::BOTH);
    write_view(std::slice::from_ref(&plain), &file(&still)).unwrap();
    passes("view.py", &[&still, &plain]);
}
