//! `serve` and `send` over RDMA verbs.

use super::wire::{Send, Serve, address, content, find_pairs, goodput, interrupted, print_received, transfer_failure};
use crate::{Failure, Format, count, note, print, print_json, table};
use anabranch_endpoint::Settings;
use anabranch_scenario::Scenario;
use anabranch_units::Time;
use anabranch_wire::{
    verbs,
    verbs::{Served, VerbsSent, VerbsSettings, source_port},
};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};

pub(super) fn settings(device: Option<&str>, peer_timeout: Time) -> VerbsSettings {
    VerbsSettings {
        device: device.map(str::to_string),
        peer_timeout: Duration::from_nanos(peer_timeout.ps() / 1000),
        ..VerbsSettings::default()
    }
}

pub(super) fn serve(arguments: &Serve, peer_timeout: Time) -> Result<(), Failure> {
    let options = &arguments.wire;
    let at = address(&arguments.at, "--at")?;
    let mut on_poll = |served: Option<&Served>| {
        if let Some(served) = served {
            print_served(served, options.format);
        }
        !interrupted()
    };
    let mut listening = |at: SocketAddr, device: &str| note(&format!("listening at {at} with {device}"));
    let settings = settings(options.device.as_deref(), peer_timeout);
    verbs::serve(at, &settings, arguments.once, &mut listening, &mut on_poll)
        .map_err(|error| Failure::input(error.to_string()))?;
    if interrupted() { Err(Failure::Interrupted) } else { Ok(()) }
}

fn print_served(served: &Served, format: Format) {
    let from = served.from;
    let (ours, theirs, took) = match &served.outcome {
        Ok(outcome) => *outcome,
        Err(reason) => {
            note(&format!("transfer from {from} failed: {reason}"));
            return;
        }
    };
    print_received(from, (ours.bytes, ours.checksum), ours == theirs, took, format);
}

pub(super) fn send(arguments: &Send, to: SocketAddr, scenario: &Scenario, settings: &Settings) -> Result<(), Failure> {
    let mut chunks = scenario.wire.chunk_settings(settings).map_err(|error| Failure::input(error.to_string()))?;
    // A path has a queue pair of its own: of the labels that share its switches one suffices.
    let paths = find_pairs(to, &chunks.labels, &scenario.wire)?;
    if !paths.is_empty() {
        chunks.labels = paths.iter().filter_map(|path| Some(chunks.labels[*path.first()? as usize])).collect();
    }
    let verbs = self::settings(arguments.wire.device.as_deref(), settings.peer_timeout);
    let mut on_poll = |_: Time, _: u64| !interrupted();
    let sent = verbs::send(to, arguments.bytes.0, &verbs, chunks, &mut content(scenario.seed), &mut on_poll);
    print_sent(&sent.map_err(transfer_failure)?, to, settings.scheme.name(), arguments.wire.format);
    Ok(())
}

fn print_sent(sent: &VerbsSent, to: SocketAddr, scheme: &str, format: Format) {
    let (rate, text) = goodput(sent.summary.bytes, sent.took);
    let c = sent.counters;
    match format {
        Format::Json => {
            let path = |(label, chunks): &(u32, u64)| json!({ "label": label, "source_port": source_port(*label), "chunks": chunks });
            print_json(&json!({
                "to": to.to_string(),
                "datapath": "rc",
                "scheme": scheme,
                "bytes": sent.summary.bytes,
                "took_ps": sent.took.ps(),
                "goodput_bps": rate,
                "crc32": sent.summary.checksum,
                "checksums_equal": true,
                "base_rtt_ps": sent.base.ps(),
                "probe_rtt_ps": sent.probe.ps(),
                "noise_ps": sent.noise.ps(),
                "chunks": c.chunks,
                "chunks_sent_again": c.again,
                "given_up": c.failed,
                "last_error": sent.last_error,
                "probes": c.probes,
                "path_switches": c.path_switches,
                "queue_pairs": c.queues,
                "relabelled": c.relabelled,
                "stood_ps": c.relabel_time.ps(),
                "paths": sent.by_label.iter().map(path).collect::<Vec<_>>(),
                "longest_pause_ps": sent.longest_pause.ps(),
            }));
        }
        Format::Table => {
            let row = |what: &str, value: String| vec![what.to_string(), value];
            let mut rows = vec![
                row("sent", format!("{} B to {to} in {}", count(sent.summary.bytes), sent.took.rounded())),
                row("goodput", text),
                row("CRC-32 of both peers", format!("{:08x}", sent.summary.checksum)),
                row("scheme", format!("{scheme} over {} queue pairs", c.queues)),
                row(
                    "base round trip",
                    format!(
                        "{} of a chunk, {} of a probe, and {} of noise",
                        sent.base.rounded(),
                        sent.probe.rounded(),
                        sent.noise.rounded()
                    ),
                ),
                row("chunks", format!("{}, {} retransmitted", count(c.chunks), count(c.again))),
                row("path changes", count(c.path_switches)),
                row("probes", count(c.probes)),
                row("labels changed", format!("{}, in {} total", count(c.relabelled), c.relabel_time.rounded())),
            ];
            for (label, chunks) in sent.by_label.iter().filter(|(_, chunks)| *chunks > 0) {
                rows.push(row(&format!("chunks from port {}", source_port(*label)), count(*chunks)));
            }
            if let Some(error) = &sent.last_error {
                rows.push(row("aborted by hardware", format!("{}, last error: {error}", count(c.failed))));
            }
            rows.push(row("longest pause of this process", sent.longest_pause.rounded()));
            print(&table(&["what", "value"], &rows));
        }
    }
}
