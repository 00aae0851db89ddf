//! Writes every kind of result directory from invented results, to look at figures and pages after a change:
//! `cargo run -p anabranch-report --example gallery -- DIR`.

#[path = "../tests/common/mod.rs"]
#[allow(dead_code)]
mod common;

use anabranch_report::{Formats, ReportError, report, run_directory, write_comparison, write_run};
use common::{Behaviour, SCHEMES, add_measurements, meta, provenance, run};
use std::path::{Path, PathBuf};

fn compare(dir: &Path, schemes: &[Behaviour], seeds: u64, flows: u32, one_size: bool) -> Result<(), ReportError> {
    let mut summaries = vec![];
    for scheme in schemes {
        for seed in 1..=seeds {
            let mut result = run(scheme, seed, flows, one_size);
            add_measurements(&mut result);
            let dir = run_directory(dir, scheme.name, seed);
            summaries.push(write_run(&dir, &result, &meta(scheme.name, seed), &provenance(), Formats::PARQUET)?);
        }
    }
    let names: Vec<String> = schemes.iter().map(|scheme| scheme.name.to_string()).collect();
    let comparison = write_comparison(dir, &summaries, &names, "ecmp", 2, &provenance())?;
    println!("{}", comparison.to_text());
    println!("{}", report(dir)?.display());
    Ok(())
}

fn main() -> Result<(), ReportError> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/gallery".to_string()));
    compare(&dir.join("comparison"), SCHEMES, 10, 20_000, false)?;
    compare(&dir.join("one-size"), SCHEMES, 1, 128, true)?;
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
    compare(&dir.join("many"), &many, 3, 10_000, false)?;
    let single = dir.join("single");
    let result = run(&SCHEMES[4], 1, 100_000, false);
    write_run(&single, &result, &meta("prime", 1), &provenance(), Formats::BOTH)?;
    println!("{}", report(&single)?.display());
    Ok(())
}
