//! Writes every kind of result directory from synthetic results, for visual inspection of figures and pages after a change:
//! `cargo run -p anabranch-report --example gallery -- DIR`.

#[path = "../tests/report/common/mod.rs"]
#[allow(dead_code)]
mod common;

use anabranch_outcome::RunRows;
use anabranch_report::report;
use anabranch_results::{Formats, LinkFault, ReportError, RunMeta, WorkloadMeta};
use anabranch_units::Time;
use common::{Behaviour, SCHEMES, add_measurements, meta, run};
use std::path::{Path, PathBuf};

/// `change` may alter each run, and returns `false` to omit it.
fn compare(
    dir: &Path,
    schemes: &[Behaviour],
    seeds: u64,
    flows: u32,
    one_size: bool,
    change: impl Fn(&mut RunRows, &mut RunMeta) -> bool,
) -> Result<(), ReportError> {
    let mut runs = vec![];
    for scheme in schemes {
        for seed in 1..=seeds {
            let (mut result, mut meta) = (run(scheme, seed, flows, one_size), meta(scheme.name, seed));
            add_measurements(&mut result);
            if change(&mut result, &mut meta) {
                runs.push((result, meta));
            }
        }
    }
    let (_, comparison) = common::write_compared(dir, runs, "ecmp");
    println!("{}", comparison.to_text(80));
    println!("{}", report(dir)?.display());
    Ok(())
}

/// Assigns every tenth flow to a second workload and takes a cable down.
fn several(result: &mut RunRows, meta: &mut RunMeta) -> bool {
    meta.workloads = ["web-search", "incast"]
        .map(|name| WorkloadMeta { name: name.to_string(), measured: true, ..WorkloadMeta::default() })
        .to_vec();
    result.flows.iter_mut().step_by(10).for_each(|flow| flow.workload = 1);
    let fault = |from: &str, to: &str| LinkFault {
        from: from.to_string(),
        to: to.to_string(),
        parallel: 0,
        at: Time::from_us(20),
        what: LinkFault::DOWN.to_string(),
    };
    meta.faults = vec![fault("leaf3", "spine5"), fault("spine5", "leaf3")];
    true
}

fn main() -> Result<(), ReportError> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/gallery".to_string()));
    compare(&dir.join("comparison"), SCHEMES, 10, 20_000, false, |_, _| true)?;
    compare(&dir.join("workloads"), SCHEMES, 5, 20_000, false, several)?;
    let tie = [("ecmp", 2.4), ("ops", 0.4), ("reps", 0.4), ("prime", 0.4)];
    let tie = tie.map(|(name, excess)| Behaviour { name, excess, uneven: 0.1 });
    compare(&dir.join("interrupted"), &tie, 5, 5000, false, |_, meta| meta.scheme != "prime" || meta.seed < 5)?;
    compare(&dir.join("one-size"), SCHEMES, 1, 128, true, |_, _| true)?;
    let many: Vec<Behaviour> = (0..16)
        .map(|i| Behaviour {
            name: [
                "ecmp",
                "rps",
                "ops",
                "letflow",
                "conga",
                "drill",
                "conweave",
                "hopper",
                "hf2t+letflow",
                "reps",
                "flowlet",
                "prime",
                "co-prime",
                "spritz-spray-w",
                "ugal-l",
                "ar",
            ][i],
            excess: 0.3 + 0.15 * i as f64,
            uneven: 0.05 * i as f64,
        })
        .collect();
    compare(&dir.join("many"), &many, 3, 10_000, false, |_, _| true)?;
    let single = dir.join("single");
    let result = run(&SCHEMES[4], 1, 100_000, false);
    common::write_run(&single, &result, &meta("prime", 1), Formats::BOTH);
    println!("{}", report(&single)?.display());
    Ok(())
}
