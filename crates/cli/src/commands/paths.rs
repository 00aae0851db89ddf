//! `paths`: routes of UDP port pairs, discovered by TTL.

use crate::{Failure, Format, count, note, print, print_json, table};
use anabranch_wire::{
    paths::{Hop, LabelPath, PathError, PathRequest, address, describe, discover, groups},
    resolve,
};
use clap::Args;
use serde_json::json;
use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

#[derive(Debug, Args)]
pub(crate) struct Paths {
    /// Address and first port of the peer; nothing needs to listen there
    #[arg(long, value_name = "ADDR")]
    to: String,
    /// Local port [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    from: u16,
    /// Number of labels: label i goes from the local port to the i-th port of the peer
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4096))]
    labels: u16,
    /// Maximum number of hops
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    hops: u8,
    /// Timeout per reply in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    patience: u64,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Failure::input(error.to_string())
    }
}

fn microseconds(hop: &Hop) -> f64 {
    hop.round_trip.as_secs_f64() * 1e6
}

pub(crate) fn paths(arguments: &Paths) -> Result<(), Failure> {
    let all = resolve(&arguments.to).map_err(|wrong| Failure::input(format!("--to: {wrong}")))?;
    let found = all.into_iter().find(SocketAddr::is_ipv4);
    let wrong = || {
        let found = &arguments.to;
        Failure::input(format!("--to: found `{found}`, expected an IPv4 address and a port, for example 10.0.0.2:7000"))
    };
    let asked = PathRequest {
        to: address(found.ok_or_else(wrong)?)?,
        port: arguments.from,
        labels: arguments.labels,
        hops: arguments.hops,
        timeout: Duration::from_millis(arguments.patience),
    };
    let labels = discover(&asked)?;
    // Labels with the same switches share a path.
    let mut paths: BTreeMap<Vec<Option<_>>, Vec<&LabelPath>> = BTreeMap::new();
    labels.iter().for_each(|label| paths.entry(label.switches()).or_default().push(label));
    if arguments.format == Format::Json {
        print_json(&answer(&labels, &paths));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = paths.iter().map(|(switches, of)| row(switches, of)).collect();
    print(&table(&["switches", "labels", "RTT to last switch (us)", "RTT to destination (us)", "which"], &rows));
    if labels.iter().all(|label| !label.hops.iter().flatten().any(|hop| hop.is_last)) {
        note("the destination did not reply: a program listens on its ports, or ICMP is filtered");
    }
    let groups = groups(&labels);
    if !groups.unknown.is_empty() {
        note(&describe(&groups, labels.len(), &asked.to.ip().to_string()));
    }
    if paths.keys().all(|switches| switches.iter().all(Option::is_none)) {
        note("no switch replied: switches must route and their ICMP replies must return");
    }
    Ok(())
}

/// Shortest round trip to a hop, over the labels of a path.
fn shortest<'a>(of: &[&'a LabelPath], wanted: impl Fn(&'a LabelPath) -> Option<Hop>) -> Option<f64> {
    of.iter().filter_map(|label| wanted(label)).map(|hop| microseconds(&hop)).min_by(f64::total_cmp)
}

fn to_last_switch(label: &LabelPath) -> Option<Hop> {
    label.hops.iter().flatten().copied().rfind(|hop| !hop.is_last)
}

fn to_end(label: &LabelPath) -> Option<Hop> {
    label.hops.iter().flatten().copied().find(|hop| hop.is_last)
}

fn row(switches: &[Option<std::net::Ipv4Addr>], of: &[&LabelPath]) -> Vec<String> {
    let switch = |at: &Option<std::net::Ipv4Addr>| at.map_or_else(|| "*".to_string(), |at| at.to_string());
    let time = |time: Option<f64>| time.map_or_else(|| "-".to_string(), |us| format!("{us:.0}"));
    let mut which: Vec<String> = of.iter().take(8).map(|label| label.label.to_string()).collect();
    if of.len() > which.len() {
        which.push("...".into());
    }
    vec![
        switches.iter().map(switch).collect::<Vec<_>>().join(" "),
        count(of.len() as u64),
        time(shortest(of, to_last_switch)),
        time(shortest(of, to_end)),
        which.join(", "),
    ]
}

fn answer(
    labels: &[LabelPath],
    paths: &BTreeMap<Vec<Option<std::net::Ipv4Addr>>, Vec<&LabelPath>>,
) -> serde_json::Value {
    let hop = |hop: &Option<Hop>| {
        hop.map(|hop| json!({ "at": hop.at, "round_trip_us": microseconds(&hop), "is_end": hop.is_last }))
    };
    let label = |path: &LabelPath| {
        json!({
            "label": path.label,
            "source_port": path.source,
            "destination_port": path.destination,
            "hops": path.hops.iter().map(hop).collect::<Vec<_>>(),
        })
    };
    let path = |(switches, of): (&Vec<Option<std::net::Ipv4Addr>>, &Vec<&LabelPath>)| {
        json!({
            "switches": switches,
            "labels": of.iter().map(|label| label.label).collect::<Vec<_>>(),
            "to_last_switch_us": shortest(of, to_last_switch),
            "to_end_us": shortest(of, to_end),
        })
    };
    json!({
        "paths": paths.iter().map(path).collect::<Vec<_>>(),
        "labels": labels.iter().map(label).collect::<Vec<_>>(),
    })
}
