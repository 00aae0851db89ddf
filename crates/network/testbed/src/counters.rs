//! Counters and state of ports, read from the kernel's tables and from programs at the ports.

use crate::{
    Role, TestbedError,
    link_program::{self, Harmed},
    net::Net,
    plan::End,
    port_program::{self, Counted},
    programs,
};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{Read, Seek},
};

/// Counters of a port since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCount {
    /// Current rate in bits per second; 0 if the port is down.
    pub rate: u64,
    /// Bytes that left, with Ethernet headers.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that arrived and did not leave, because the queue was full or the port was down. `None` if unknown:
    /// without a program, packets queued at a port that is cut are not counted.
    pub drops: Option<u64>,
    /// Packets for which the node of this port had no route.
    pub unrouted: u64,
    /// `true` if the port has ever been cut.
    pub was_cut: bool,
    /// Packets marked; `None` if the plan requires marking or trimming and this machine lacks it.
    pub marks: Option<u64>,
    /// Packets trimmed to their headers; `None` as with `marks`.
    pub trims: Option<u64>,
    /// Packets that left and that the link lost.
    pub lost: u64,
    /// Packets that left and that the link corrupted.
    pub corrupted: u64,
    /// Packets that left and that the link delivered twice.
    pub duplicated: u64,
    /// Maximum queue length that an arriving packet found, in bytes; `None` if the port neither marks nor trims.
    pub deepest: Option<u64>,
    /// Bytes in the queue now.
    pub backlog: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    drops: u64,
    waiting_bytes: u64,
    waiting_packets: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) is_up: bool,
    pub(crate) note: Note,
}

/// State stored in a port's alias, since the kernel keeps neither value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// Rate that was set last, if it differs from the original. Only some kinds of queue allow reading their rate back.
    pub(crate) rate: Option<u64>,
    pub(crate) was_cut: bool,
}

impl Note {
    pub(crate) const CUT: &str = "cut";

    fn parse(alias: &str) -> Self {
        let words = || alias.split_whitespace();
        Note { rate: words().find_map(|word| word.parse().ok()), was_cut: words().any(|word| word == Note::CUT) }
    }

    pub(crate) fn write(self) -> String {
        let cut = self.was_cut.then(|| Note::CUT.to_string());
        self.rate.map(|rate| rate.to_string()).into_iter().chain(cut).collect::<Vec<_>>().join(" ")
    }
}

/// See [`crate::Fabric::counters`]. `lacks_programs`: the plan requires marking or trimming and this machine lacks it.
pub(crate) fn read(net: &Net, lacks_programs: bool) -> Result<Vec<PortCount>, TestbedError> {
    let nodes: Vec<NodeCount> =
        (0..net.plan.nodes.len()).map(|node| node_count(net, node)).collect::<Result<_, _>>()?;
    net.plan.ports().map(|(end, other)| port_count(net, end, other, &nodes, lacks_programs)).collect()
}

fn node_count(net: &Net, node: usize) -> Result<NodeCount, TestbedError> {
    let (queues, with_programs) = qdiscs(net, node)?;
    let read = |file: &str| {
        let path = format!("/proc/thread-self/net/{file}");
        std::fs::read_to_string(&path).map_err(|error| TestbedError::system(format!("reading {path}"), error))
    };
    let (devices, statistics) = net.within(node, || Ok::<_, TestbedError>((read("dev")?, read("netstat")?)))??;
    let unrouted = statistic(&statistics, "IpExt", "InNoRoutes").unwrap_or(0);
    Ok(NodeCount { queues, with_programs, links: links(net, node)?, devices, unrouted })
}

fn port_count(
    net: &Net,
    end: &End,
    other: usize,
    nodes: &[NodeCount],
    lacks_programs: bool,
) -> Result<PortCount, TestbedError> {
    let (own, port) = (&nodes[end.node], net.name(other));
    let queues = own.queues.get(port).copied().unwrap_or_default();
    let link = own.links.get(port).copied().unwrap_or_default();
    let (bytes, packets) = sent(&own.devices, port).unwrap_or_default();
    let counted = if net.plan.nodes[end.node].role == Role::Host { None } else { counted(net, end.node, other)? };
    // The kernel empties the queue of a port that goes down without counting; the port's program has counted the arrivals.
    let of_cut = counted.map(|of| of.offered.saturating_sub(packets + queues.waiting_packets));
    let harmed = match nodes[other].with_programs.contains(net.name(end.node)) {
        true => link_program::harmed(&net.namespace(other), net.name(end.node))?,
        false => Harmed::default(),
    };
    let lacks = lacks_programs && net.plan.nodes[end.node].role != Role::Host;
    let count = |of: fn(Counted) -> u64| if lacks { None } else { Some(counted.map_or(0, of)) };
    Ok(PortCount {
        rate: if link.is_up { link.note.rate.unwrap_or(end.rate) } else { 0 },
        bytes,
        packets,
        drops: if link.note.was_cut { of_cut } else { Some(queues.drops) },
        unrouted: own.unrouted,
        was_cut: link.note.was_cut,
        marks: count(|of| of.marked),
        trims: count(|of| of.trimmed),
        lost: harmed.lost,
        corrupted: harmed.damaged,
        duplicated: harmed.repeated,
        deepest: counted.map(|of| of.deepest),
        backlog: queues.waiting_bytes,
    })
}

/// Returns the counters of a switch's port; `None`: ports have no program because nothing is marked or trimmed.
pub(crate) fn counted(net: &Net, node: usize, other: usize) -> Result<Option<Counted>, TestbedError> {
    if !net.plan.queue.has_programs() {
        return Ok(None);
    }
    port_program::counted(&net.namespace(node), net.name(other)).map(Some)
}

pub(crate) fn links(net: &Net, node: usize) -> Result<BTreeMap<String, Link>, TestbedError> {
    let links = programs::json("ip", &["-n", &net.namespace(node), "-j", "link", "show"])?;
    let link = |link: &serde_json::Value| {
        let is_up = link["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP"));
        let note = Note::parse(link["ifalias"].as_str().unwrap_or_default());
        Some((link["ifname"].as_str()?.to_string(), Link { is_up, note }))
    };
    Ok(links.iter().filter_map(link).collect())
}

pub(crate) fn note(net: &Net, node: usize, other: usize) -> Result<Note, TestbedError> {
    Ok(links(net, node)?.get(net.name(other)).copied().unwrap_or_default().note)
}

pub(crate) fn has_programs(net: &Net, node: usize, other: usize) -> Result<bool, TestbedError> {
    Ok(qdiscs(net, node)?.1.contains(net.name(other)))
}

/// Returns the root queues of the ports of a node, and the ports with the `clsact` queueing discipline, which programs need.
fn qdiscs(net: &Net, node: usize) -> Result<(BTreeMap<String, Queues>, BTreeSet<String>), TestbedError> {
    let qdiscs = programs::json("tc", &["-n", &net.namespace(node), "-s", "-j", "qdisc", "show"])?;
    let with_programs = qdiscs.iter().filter(|qdisc| qdisc["kind"].as_str() == Some("clsact"));
    let with_programs = with_programs.filter_map(|qdisc| Some(qdisc["dev"].as_str()?.to_string())).collect();
    let mut ports = BTreeMap::new();
    for qdisc in &qdiscs {
        let Some(port) = qdisc["dev"].as_str().filter(|_| qdisc["root"].as_bool() == Some(true)) else { continue };
        let [drops, waiting_bytes, waiting_packets] =
            ["drops", "backlog", "qlen"].map(|key| qdisc[key].as_u64().unwrap_or(0));
        ports.insert(port.to_string(), Queues { drops, waiting_bytes, waiting_packets });
    }
    Ok((ports, with_programs))
}

/// Reads the bytes sent by all ports in a fraction of a millisecond, without starting a program.
#[derive(Debug)]
pub(crate) struct Meter {
    tables: Vec<File>,
    ports: Vec<(usize, String)>,
}

impl Meter {
    pub(crate) fn open(net: &Net) -> Result<Self, TestbedError> {
        let table = "/proc/thread-self/net/dev";
        let failed = |error| TestbedError::system(format!("opening {table}"), error);
        // A table that was opened in a namespace remains that namespace's.
        let open = |node| net.within(node, || File::open(table))?.map_err(failed);
        let tables = (0..net.plan.nodes.len()).map(open).collect::<Result<_, _>>()?;
        let port = |(end, other): (&End, usize)| (end.node, net.name(other).to_string());
        Ok(Meter { tables, ports: net.plan.ports().map(port).collect() })
    }

    /// Returns the bytes and packets that left by each port, in the order of the scenario's directed links.
    pub(crate) fn read(&self) -> Result<Vec<(u64, u64)>, TestbedError> {
        let read = |mut table: &File| {
            let mut text = String::new();
            table.rewind().and_then(|()| table.read_to_string(&mut text)).map(|_| text)
        };
        let texts: Result<Vec<String>, _> = self.tables.iter().map(read).collect();
        let texts = texts.map_err(|error| TestbedError::system("reading the table of devices", error))?;
        Ok(self.ports.iter().map(|(node, port)| sent(&texts[*node], port).unwrap_or_default()).collect())
    }
}

struct NodeCount {
    queues: BTreeMap<String, Queues>,
    with_programs: BTreeSet<String>,
    links: BTreeMap<String, Link>,
    devices: String,
    unrouted: u64,
}

/// Returns a counter of /proc/net/netstat, which has a line of names and a line of numbers for each protocol.
fn statistic(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, numbers) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(numbers).find(|(of, _)| *of == name)?.1.parse().ok()
}

fn sent(table: &str, port: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(port)?.strip_prefix(':'))?;
    let mut columns = line.split_whitespace().skip(8);
    Some((columns.next()?.parse().ok()?, columns.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_devices_is_read_by_column() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n\
                     \x20   lo:       0       0    0    0    0     0          0         0        0       0\n\
                     spine1:     1 2 0 0 0 0 0 0 4194 17 0 0 0 0 0 0\nspine10: 1 2 0 0 0 0 0 0 5 6 0 0 0 0 0 0\n";
        assert_eq!(sent(table, "spine1"), Some((4194, 17)));
        assert_eq!(sent(table, "spine10"), Some((5, 6)));
        assert_eq!(sent(table, "spine2"), None);
    }

    #[test]
    fn statistics_are_read_by_name() {
        let table = "TcpExt: A InNoRoutes\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets\nIpExt: 17 4194\n";
        assert_eq!(statistic(table, "IpExt", "InNoRoutes"), Some(17));
        assert_eq!((statistic(table, "IpExt", "OutOctets"), statistic(table, "Ip", "InNoRoutes")), (None, None));
    }

    #[test]
    fn an_alias_keeps_rate_and_cut() {
        for note in [(None, false), (None, true), (Some(20_000_000), false), (Some(20_000_000), true)] {
            let note = Note { rate: note.0, was_cut: note.1 };
            assert_eq!(Note::parse(&note.write()), note);
        }
    }
}
