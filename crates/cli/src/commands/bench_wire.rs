//! `bench --wire`.

use super::bench::Bench;
use crate::{
    arguments::Format,
    failure::Failure,
    printing::{note, print, print_json, table, width, wrapped},
};
use anabranch_bench::wire::{Carried, SendMethod, WireResult, measure};
use anabranch_scenario::machine::{COMMIT, VERSION, machine};
use serde_json::{Value, json};

/// Bytes of each measurement.
const BYTES: u64 = 128 << 20;

pub(crate) fn bench(arguments: &Bench) -> Result<(), Failure> {
    let measured = measure(arguments.repetitions.into(), BYTES, &mut |what| note(what));
    let measured = measured.map_err(|error| Failure::Broken(error.to_string()))?;
    match arguments.format {
        Format::Json => print_json(&json(&measured, arguments.repetitions)),
        Format::Table => print(&text(&measured)),
    }
    Ok(())
}

fn json(measured: &WireResult, repetitions: u16) -> Value {
    let of = |method: SendMethod| {
        let runs: Vec<&Carried> = measured.carried.iter().flatten().filter(|run| run.method == method).collect();
        let all = |value: &dyn Fn(&Carried) -> f64| runs.iter().map(|run| value(run)).collect::<Vec<_>>();
        json!({
            "name": method.name(),
            "goodput_bps_per_cpu": measured.bytes_per_cpu_second(method).map(|bytes| 8.0 * bytes),
            "all_bps_per_cpu": all(&|run| 8.0 * run.bytes_per_cpu_second()),
            "all_goodput_bps": all(&|run| 8.0 * run.bytes as f64 / run.seconds),
        })
    };
    let ratios = measured.ratios.iter().map(
        |ratio| json!({ "of": ratio.of.name(), "to": ratio.to.name(), "target": ratio.target, "median": ratio.median }),
    );
    let costs = measured.per_packet.iter().map(|cost| {
        let (part, target) = (cost.part.name(), cost.part.target());
        json!({ "scheme": cost.scheme, "part": part, "ns_per_packet": cost.nanoseconds, "target_ns": target })
    });
    json!({
        "version": VERSION,
        "commit": COMMIT,
        "machine": machine(),
        "repetitions": repetitions,
        "ways": SendMethod::ALL.iter().map(|method| of(*method)).collect::<Vec<_>>(),
        "ratios": ratios.collect::<Vec<_>>(),
        "per_packet": costs.collect::<Vec<_>>(),
    })
}

fn text(measured: &WireResult) -> String {
    let methods = SendMethod::ALL.iter().map(|method| {
        let gigabits = measured.bytes_per_cpu_second(*method).map(|bytes| format!("{:.1}", 8.0 * bytes / 1e9));
        vec![method.name().to_string(), gigabits.unwrap_or_else(|| "not installed".into())]
    });
    let ratios = measured.ratios.iter().map(|ratio| {
        let median = ratio.median.map_or_else(|| "-".into(), |median| format!("{median:.2}"));
        vec![format!("{} : {}", ratio.of.name(), ratio.to.name()), median, format!("{:.2}", ratio.target)]
    });
    let costs = measured.per_packet.iter().map(|cost| {
        let (part, target) = (cost.part.name(), cost.part.target());
        vec![cost.scheme.to_string(), part.into(), format!("{:.0}", cost.nanoseconds), format!("{target:.0}")]
    });
    let legend = "Medians over the loopback interface, packets of 4 KiB. Goodput per second of CPU time counts both peers; ratios are \
                  within one repetition. Costs per packet are in memory, of CPU time.";
    let parts = [
        table(&["sender", "Gbit per CPU second"], &methods.collect::<Vec<_>>()),
        table(&["ratio", "median", "target, at least"], &ratios.collect::<Vec<_>>()),
        table(&["scheme", "part", "ns per packet", "target, at most"], &costs.collect::<Vec<_>>()),
        wrapped(legend, width()) + "\n",
    ];
    parts.join("\n")
}
