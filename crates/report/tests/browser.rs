//! The pages in a real browser: `tests/browser/check.py` over a comparison, several workloads and a single run.

#[allow(dead_code)]
mod common;

use anabranch_report::{Formats, WorkloadMeta, report, run_directory, write_comparison, write_run};
use common::{SCHEMES, add_measurements, meta, provenance, run};
use std::{fs, path::Path, process::Command};

/// Needs Chromium, its driver and Selenium; see the script for the command.
#[test]
#[ignore = "needs chromium, chromium-driver and selenium"]
fn pages_load_whole_in_a_browser() {
    let dir = std::env::temp_dir().join(format!("anabranch-browser-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    let mut pages = vec![];
    for (name, workloads, seeds) in [("comparison", &["web"][..], 3), ("workloads", &["web", "incast"][..], 1)] {
        let dir = dir.join(name);
        let mut summaries = vec![];
        for scheme in SCHEMES {
            for seed in 1..=seeds {
                let (mut result, mut meta) = (run(scheme, seed, 4000, false), meta(scheme.name, seed));
                add_measurements(&mut result);
                let named = |name: &&str| WorkloadMeta { name: name.to_string(), measured: true };
                meta.workloads = workloads.iter().map(named).collect();
                let number = workloads.len() as u16;
                result.flows.iter_mut().for_each(|flow| flow.workload = (flow.flow_id % u32::from(number)) as u16);
                let own = run_directory(&dir, scheme.name, seed);
                summaries.push(write_run(&own, &result, &meta, &provenance(), Formats::PARQUET).unwrap());
            }
        }
        let names: Vec<String> = SCHEMES.iter().map(|scheme| scheme.name.to_string()).collect();
        write_comparison(&dir, &summaries, &names, "ecmp", 2, &provenance()).unwrap();
        pages.push(report(&dir).unwrap());
    }
    let single = dir.join("single");
    write_run(&single, &run(&SCHEMES[4], 1, 4000, false), &meta("prime", 1), &provenance(), Formats::BOTH).unwrap();
    pages.push(report(&single).unwrap());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/check.py");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_string());
    let answer = Command::new(python).arg(script).args(&pages).output().unwrap();
    let said = String::from_utf8_lossy(&answer.stdout).into_owned() + &String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{said}");
    fs::remove_dir_all(dir).unwrap();
}
