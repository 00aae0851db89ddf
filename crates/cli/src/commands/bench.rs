//! `bench`.

use crate::{
    arguments::{Bench, Format},
    failure::Failure,
    printing::{count, millions, note, print, print_json, table},
    progress::INTERRUPTED,
};
use anabranch_sim::SimError;
use anabranch_study::bench::{BenchError, CASES, Measured, measure, median};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// `anabranch bench`.
pub(crate) fn bench(arguments: &Bench) -> Result<(), Failure> {
    let cases = if arguments.small { &CASES[..1] } else { CASES };
    let mut all = Vec::new();
    for case in cases {
        note(&format!("measuring {}: the stripped loop and the simulator in turn", case.scenario));
        let interrupted = || INTERRUPTED.load(Ordering::Relaxed);
        let measured = measure(case, arguments.threads.into(), arguments.repetitions.into(), &interrupted);
        all.push(measured.map_err(|error| match error {
            BenchError::Scenario(error) => Failure::Input(error),
            BenchError::Run(SimError::Setup(message)) => Failure::input(message),
            BenchError::Run(error) => Failure::Broken(format!("{}: {error}", case.scenario)),
            BenchError::Interrupted => Failure::Interrupted,
        })?);
    }
    match arguments.format {
        Format::Json => {
            let cases: Vec<Value> = all.iter().map(case_json).collect();
            print_json(&json!({ "threads": arguments.threads, "repetitions": arguments.repetitions, "cases": cases }));
        }
        Format::Table => print(&text(&all)),
    }
    Ok(())
}

fn case_json(m: &Measured) -> Value {
    json!({
        "scenario": m.scenario,
        "hosts": m.hosts,
        "packet_hops": m.packet_hops,
        "fingerprint": format!("{:016x}", m.fingerprint),
        "stripped_packet_hops_per_s": median(&m.stripped),
        "packet_hops_per_s": median(&m.simulator),
        "ratio": m.ratio(),
        "bytes_per_host": m.bytes_per_host,
        "peak_rss_bytes": m.peak_rss_bytes,
        "stripped_all": m.stripped,
        "simulator_all": m.simulator,
    })
}

fn text(all: &[Measured]) -> String {
    let rows: Vec<_> = all
        .iter()
        .map(|m| {
            vec![
                m.scenario.to_string(),
                count(m.hosts.into()),
                millions(median(&m.simulator)),
                millions(median(&m.stripped)),
                format!("{:.0} %", 100.0 * m.ratio()),
                count(m.bytes_per_host),
                m.peak_rss_bytes.map_or("-".into(), |bytes| format!("{:.0}", bytes as f64 / 1e6)),
            ]
        })
        .collect();
    let header = ["scenario", "hosts", "packet-hops/s", "stripped loop", "ratio", "bytes per host", "peak memory (MB)"];
    table(&header, &rows) + "\nMedians. A packet-hop is one packet leaving one port.\n"
}
