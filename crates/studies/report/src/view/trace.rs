//! Journeys of the packets of traced flows: the links taken, the times at each port, the end.

use super::{fabric::Fabric, pack::Pack};
use anabranch_results::{Frame, ReportError};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

const COLUMNS: [&str; 9] =
    ["time_ps", "event", "flow_id", "psn", "packet", "from", "to", "joined_ps", "retransmission"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hop {
    link: u32,
    joined: u64,
    /// Time at which its transmission began.
    left: u64,
    /// Marked (1), trimmed (2) at this port.
    flags: u64,
}

/// End of a journey; the scripts of the page use these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Unknown = 0,
    Received = 1,
    Dropped = 2,
    Lost = 3,
}

#[derive(Clone, Debug, Default)]
struct Journey {
    flow: u64,
    /// Data (0), ACK or NACK (1), other packets (2).
    kind: u64,
    psn: u64,
    retransmission: bool,
    hops: Vec<Hop>,
    /// Flags for the port that the packet is in.
    flags: u64,
    end: End,
    ended: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Trace {
    journeys: Vec<Journey>,
    flows: Vec<u64>,
}

/// A header is what remains of its data packet, so both are one journey.
fn family(packet: &str) -> u64 {
    match packet {
        "data" | "header" => 0,
        "ack" | "nack" => 1,
        _ => 2,
    }
}

impl Trace {
    /// `None` if no packet was traced.
    pub(crate) fn read(dir: &Path, fabric: &Fabric) -> Result<Option<Self>, ReportError> {
        let by_ends = fabric.by_ends();
        let mut trace = Trace::default();
        // Open journeys, by flow, packet and PSN.
        let mut open: HashMap<(u64, String, u64), Vec<usize>> = HashMap::new();
        let wrong =
            |found: String| ReportError::content(&dir.join("trace"), found, "repeat the run; nothing was written");
        let found = Frame::read_parts(dir, "trace", &COLUMNS, &mut |part| {
            let needed = ["time_ps", "event", "flow_id", "packet", "from", "to"];
            if let Some(name) = needed.iter().find(|name| part.missing().iter().any(|missing| missing == *name)) {
                return Err(wrong(format!("the rows have no column `{name}`")));
            }
            let whole = |name: &str, row: usize| part.integers(name).get(row).copied().flatten();
            for row in 0..part.rows() {
                let [event, packet, from, to] =
                    ["event", "packet", "from", "to"].map(|name| part.texts(name)[row].as_str());
                if event == "path-change" || event.starts_with("value-") {
                    continue;
                }
                let (time, flow) =
                    (whole("time_ps", row).unwrap_or_default(), whole("flow_id", row).unwrap_or_default());
                let psn = whole("psn", row).unwrap_or_default();
                let link = by_ends.get(&(from, to)).map(|links| links[0]);
                // Data and ACKs are identified by PSN, probes by the names of their kinds.
                let name = match family(packet) {
                    0 => "data",
                    1 => "ack",
                    _ => packet,
                };
                let travelling = open.entry((flow, name.to_string(), psn)).or_default();
                let Some(link) = link else {
                    match event {
                        "no-way" => {
                            if let Some(journey) = travelling.pop() {
                                trace.journeys[journey].finish(End::Dropped, time);
                            }
                            continue;
                        }
                        _ => return Err(wrong(format!("it speaks of {from}->{to}, which `links` does not name"))),
                    }
                };
                if event == "send" || (event == "hop" && travelling.is_empty()) {
                    travelling.push(trace.journeys.len());
                    trace.journeys.push(Journey {
                        flow,
                        kind: family(packet),
                        psn,
                        retransmission: part.flags("retransmission").get(row).copied().unwrap_or_default(),
                        ..Journey::default()
                    });
                }
                // Of several copies in flight, the one whose position matches is selected.
                let here = travelling.iter().rposition(|&journey| {
                    let last = trace.journeys[journey].hops.last().map(|hop| hop.link);
                    match event {
                        "send" => last.is_none(),
                        "receive" | "loss" => last == Some(link),
                        _ => {
                            last.is_some_and(|last| fabric.links[last as usize].to == fabric.links[link as usize].from)
                        }
                    }
                });
                let Some(place) = here.or(travelling.len().checked_sub(1)) else { continue };
                let journey = &mut trace.journeys[travelling[place]];
                match event {
                    "mark" => journey.flags |= 1,
                    "trim" => journey.flags |= 2,
                    "send" | "hop" => {
                        let joined = whole("joined_ps", row).unwrap_or(time);
                        let flags = std::mem::take(&mut journey.flags);
                        journey.hops.push(Hop { link, joined, left: time, flags });
                    }
                    "receive" | "drop" | "loss" => {
                        let end = match event {
                            "receive" => End::Received,
                            "drop" => End::Dropped,
                            _ => End::Lost,
                        };
                        journey.finish(end, time);
                        travelling.remove(place);
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        trace.journeys.retain(|journey| !journey.hops.is_empty());
        trace.journeys.sort_by_key(|journey| journey.hops[0].joined);
        let flows: BTreeMap<u64, ()> = trace.journeys.iter().map(|journey| (journey.flow, ())).collect();
        trace.flows = flows.into_keys().collect();
        Ok((found && !trace.journeys.is_empty()).then_some(trace))
    }
}

impl Journey {
    fn finish(&mut self, end: End, time: u64) {
        (self.end, self.ended) = (end, time);
    }
}

impl Trace {
    pub(crate) fn pack(&self, pack: &mut Pack, flows: &Frame) -> Value {
        let all = &self.journeys;
        let number = |flow: u64| self.flows.binary_search(&flow).unwrap_or_default() as u64;
        let whole = |name: &str| format!("trace.{name}");
        pack.whole(&whole("flow"), all.iter().map(|journey| number(journey.flow)));
        pack.whole(&whole("kind"), all.iter().map(|journey| journey.kind));
        pack.whole(&whole("psn"), all.iter().map(|journey| journey.psn));
        pack.whole(&whole("again"), all.iter().map(|journey| journey.retransmission.into()));
        pack.whole(&whole("end"), all.iter().map(|journey| journey.end as u64));
        pack.whole(&whole("hops"), all.iter().map(|journey| journey.hops.len() as u64));
        // Times of a journey are close together, so they are relative to its begin and to the hop.
        let begins: Vec<u64> = all.iter().map(|journey| journey.hops[0].joined).collect();
        pack.steps(&whole("begin"), begins.len(), &begins);
        let ended = |journey: &Journey| journey.ended.max(journey.hops[journey.hops.len() - 1].left);
        pack.whole(&whole("took"), all.iter().map(|journey| ended(journey) - journey.hops[0].joined));
        let hops = || all.iter().flat_map(|journey| journey.hops.iter().map(|hop| (hop, journey.hops[0].joined)));
        pack.whole("hop.link", hops().map(|(hop, _)| hop.link.into()));
        pack.whole("hop.joined", hops().map(|(hop, begin)| hop.joined.saturating_sub(begin)));
        pack.whole("hop.waited", hops().map(|(hop, _)| hop.left.saturating_sub(hop.joined)));
        pack.whole("hop.flags", hops().map(|(hop, _)| hop.flags));
        let rows: HashMap<u64, usize> =
            flows.integers("flow_id").iter().zip(0..).filter_map(|(flow, row)| Some(((*flow)?, row))).collect();
        let about = |flow: &u64| {
            let row = rows.get(flow).copied().unwrap_or(usize::MAX);
            let number = |name: &str| flows.integers(name).get(row).copied().flatten();
            json!({
                "flow_id": flow,
                "src": number("src"),
                "dst": number("dst"),
                "size_bytes": number("size_bytes"),
                "slowdown": flows.reals("slowdown").get(row).copied().flatten(),
            })
        };
        json!({ "journeys": all.len(), "flows": self.flows.iter().map(about).collect::<Vec<_>>() })
    }
}
