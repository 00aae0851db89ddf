//! The network of namespaces: reachability, paths over switches, rates, and effects of faults.

use crate::common::{address, apart, best_of_three, build, plain, plan, socket};
use anabranch_testbed::{Fabric, Marking, Queue, Role};
use anabranch_testkit::skip;
use anabranch_wire::{
    paths::{self, LabelPath, PathRequest},
    verbs::port_pairs,
};
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::{Duration, Instant},
};

/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: u64 = 42;

fn packets(fabric: &Fabric) -> BTreeMap<String, anabranch_testbed::PortCount> {
    let plan = fabric.plan();
    let name = |(end, other): (&anabranch_testbed::End, usize)| {
        format!("{}->{}", plan.nodes[end.node].name, plan.nodes[other].name)
    };
    plan.ports().map(name).zip(fabric.counters().unwrap()).collect()
}

/// Receives datagrams until none arrives for half a second. Returns their sizes.
fn receive_all(socket: &UdpSocket) -> Vec<usize> {
    let mut buffer = vec![0; 70_000];
    std::iter::from_fn(|| socket.recv(&mut buffer).ok()).collect()
}

#[test]
fn datagrams_cross_one_spine_and_are_counted_to_the_byte() {
    apart("namespaces::datagrams_cross_one_spine_and_are_counted_to_the_byte", || {
        let fabric = build(plan(2, 2, "100Mbps", 4180, plain()));
        let (here, there) = (socket(&fabric, "host0", 9000), socket(&fabric, "host3", 9000));
        let before = packets(&fabric);
        for _ in 0..100 {
            here.send_to(&[7; 1000], address(&fabric, "host3", 9000)).unwrap();
        }
        assert_eq!(receive_all(&there), vec![1000; 100]);
        let after = packets(&fabric);
        let grown = |port: &str| {
            let (before, after) = (before[port], after[port]);
            (after.packets - before.packets, after.bytes - before.bytes)
        };
        // Address resolution adds one or two packets of 42 B for new neighbours.
        let carried = |port: &str| grown(port).1 / (1000 + HEADERS);
        assert_eq!((carried("host0->leaf0"), carried("leaf1->host3"), carried("leaf1->host2")), (100, 100, 0));
        let mut spines = [carried("leaf0->spine0"), carried("leaf0->spine1")];
        assert_eq!([carried("spine0->leaf1"), carried("spine1->leaf1")], spines);
        spines.sort_unstable();
        assert_eq!(spines, [0, 100], "one five-tuple, one path");
    });
}

/// Returns the name of the spine that each traced path to `to` leads over.
fn spines(fabric: &Fabric, found: &[LabelPath], to: Ipv4Addr) -> Vec<String> {
    let plan = fabric.plan();
    let spine_at = |at: Ipv4Addr| {
        let upper = plan.cables.iter().find(|cable| cable.upper.address == at).map(|cable| cable.upper.node);
        upper.filter(|node| plan.nodes[*node].role == Role::Spine).map(|node| plan.nodes[node].name.clone())
    };
    let spine = |path: &LabelPath| {
        assert_eq!(path.hops.len(), 4, "leaf, spine, leaf, host: {path:?}");
        assert!(path.hops.iter().all(Option::is_some), "{path:?}");
        let last = path.hops[3].unwrap();
        assert_eq!((last.at, last.is_last), (to, true));
        spine_at(path.hops[1].unwrap().at).unwrap()
    };
    found.iter().map(spine).collect()
}

/// Sends a datagram with each source and destination port from `host0` to `host1`, each of another size. Returns the bytes per
/// spine: those counted, and those expected from `map`, the spine of each.
fn sent_over_spines(
    fabric: &Fabric,
    ports: &[(u16, u16)],
    map: &[String],
) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let (mut by_counters, mut by_map) = (BTreeMap::new(), BTreeMap::<String, u64>::new());
    let before = packets(fabric);
    for (label, ((from, to), spine)) in ports.iter().zip(map).enumerate() {
        let size = 100 + label * 8;
        socket(fabric, "host0", *from).send_to(&vec![1; size], address(fabric, "host1", *to)).unwrap();
        *by_map.entry(spine.clone()).or_default() += size as u64 + HEADERS;
    }
    std::thread::sleep(Duration::from_millis(300));
    for (port, count) in packets(fabric) {
        if let Some(spine) = port.strip_prefix("leaf0->spine") {
            by_counters.insert(format!("spine{spine}"), count.bytes - before[&port].bytes);
        }
    }
    (by_counters, by_map)
}

#[test]
fn discovered_paths_match_counters_and_repeat() {
    apart("namespaces::discovered_paths_match_counters_and_repeat", || {
        const PORTS: u16 = 256;
        let mut maps = Vec::new();
        for start in 0..3 {
            let fabric = build(plan(6, 1, "200Mbps", 4180, plain()));
            let to = address(&fabric, "host1", 7000);
            let request = PathRequest { to, port: 30_000, labels: PORTS, hops: 6, timeout: Duration::from_millis(500) };
            let host = fabric.plan().node("host0").unwrap();
            let found = fabric.within(host, || paths::discover(&request)).unwrap().unwrap();
            let map = spines(&fabric, &found, *to.ip());
            if start == 0 {
                let ports: Vec<(u16, u16)> = (0..PORTS).map(|label| (30_000, 7000 + label)).collect();
                let (by_counters, by_map) = sent_over_spines(&fabric, &ports, &map);
                assert_eq!(by_counters, by_map, "bytes, of packets whose sizes tell them apart");
                // Six spines, 256 ports: 42.7 each, and five standard deviations (5.96 each) around it.
                let counts = |spine: &String| map.iter().filter(|other| *other == spine).count();
                assert!(by_map.keys().all(|spine| (13..=72).contains(&counts(spine))), "{by_map:?}");
            }
            if !fabric.missing().is_empty() {
                skip(format!("missing: {}", fabric.missing().join("; ")), "install a kernel from Linux 6.11 on");
                return;
            }
            maps.push(map);
        }
        assert!(maps.windows(2).all(|pair| pair[0] == pair[1]), "one map");
    });
}

/// Linux' default: an ICMP error per second and destination, six at once. Of 24 labels over three spines some spines have more than
/// six, and both leaves have all.
#[test]
fn labels_are_grouped_where_switches_limit_replies() {
    apart("namespaces::labels_are_grouped_where_switches_limit_replies", || {
        let fabric = build(plan(3, 1, "200Mbps", 4180, plain()));
        let (to, host) = (address(&fabric, "host1", 7000), fabric.plan().node("host0").unwrap());
        let request = PathRequest { to, port: 30_000, labels: 24, hops: 6, timeout: Duration::from_millis(200) };
        let map = spines(&fabric, &fabric.within(host, || paths::discover(&request)).unwrap().unwrap(), *to.ip());
        for (node, of) in fabric.plan().nodes.iter().enumerate().filter(|(_, of)| of.role != Role::Host) {
            let limit = || {
                let put = |key: &str, value: &str| std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value);
                put("icmp_ratelimit", "1000").and(put("icmp_ratemask", "6168"))
            };
            fabric.within(node, limit).unwrap().unwrap_or_else(|error| panic!("{}: {error}", of.name));
        }
        let groups = paths::groups(&fabric.within(host, || paths::discover(&request)).unwrap().unwrap());
        let labels: usize = groups.paths.iter().map(Vec::len).sum();
        assert_eq!(labels, 24, "none is left out: {groups:?}");
        for group in &groups.paths {
            assert!(group.iter().all(|label| map[*label as usize] == map[group[0] as usize]), "{group:?}");
        }
        // Each spine replies to six at once, and to one more each second of fifteen.
        assert!(groups.unknown.is_empty() && groups.paths.len() == 3, "{groups:?}");
    });
}

/// Packets of queue pairs have one destination port, and their flow labels choose the source ports.
#[test]
fn queue_pairs_are_traced_to_their_spines() {
    apart("namespaces::queue_pairs_are_traced_to_their_spines", || {
        let fabric = build(plan(3, 1, "200Mbps", 4180, plain()));
        let to = *address(&fabric, "host1", 0).ip();
        let pairs = port_pairs(1..=32);
        let host = fabric.plan().node("host0").unwrap();
        let timeout = Duration::from_millis(500);
        let found = fabric.within(host, || paths::discover_pairs(to, &pairs, 6, timeout)).unwrap().unwrap();
        let map = spines(&fabric, &found, to);
        let (by_counters, by_map) = sent_over_spines(&fabric, &pairs, &map);
        assert_eq!(by_counters, by_map, "bytes, of packets whose sizes tell them apart");
        // That 32 labels miss one of three spines has a chance of 3 (2/3)^32, 7 in a million.
        let groups = paths::groups(&found).paths;
        assert_eq!(groups.len(), 3, "{groups:?}");
        for group in groups {
            let spine = &map[group[0] as usize];
            assert!(group.iter().all(|label| map[*label as usize] == *spine), "{group:?}");
        }
    });
}

/// Sends datagrams of `size` bytes at `rate` bits per second (with headers) for a time, from a source port.
fn stream(socket: &UdpSocket, to: SocketAddrV4, size: usize, rate: f64, time: Duration) -> u64 {
    let gap = (size as u64 + HEADERS) as f64 * 8.0 / rate;
    let (began, mut sent) = (Instant::now(), 0u64);
    let payload = vec![3; size];
    while began.elapsed() < time {
        if began.elapsed().as_secs_f64() < sent as f64 * gap {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        socket.send_to(&payload, to).unwrap();
        sent += 1;
    }
    sent
}

#[test]
fn link_carries_its_rate_and_the_degraded_one() {
    apart("namespaces::link_carries_its_rate_and_the_degraded_one", || {
        let fabric = build(plan(1, 1, "50Mbps", 4180, plain()));
        let (here, there) = (socket(&fabric, "host0", 9000), socket(&fabric, "host1", 9000));
        let to = address(&fabric, "host1", 9000);
        let goodput = |rate: f64| -> f64 {
            std::thread::scope(|scope| {
                let (here, time) = (&here, Duration::from_millis(600));
                let sender = scope.spawn(move || stream(here, to, 1400, 2.0 * rate, time));
                let mut arrivals = Vec::new();
                let mut buffer = [0; 2000];
                while let Ok(bytes) = there.recv(&mut buffer) {
                    arrivals.push((Instant::now(), bytes as u64 + HEADERS));
                }
                sender.join().unwrap();
                // From a fifth of the arrivals to the last one, which excludes the burst.
                let from = arrivals.len() / 5;
                let bytes: u64 = arrivals[from + 1..].iter().map(|(_, bytes)| bytes).sum();
                let last = arrivals.last().unwrap().0;
                bytes as f64 * 8.0 / last.duration_since(arrivals[from].0).as_secs_f64()
            })
        };
        let cable = fabric.plan().cable_named("leaf0-spine0").unwrap();
        let within = |rate: f64| {
            best_of_three(|| {
                let seen = goodput(rate) / rate;
                if (0.9..1.1).contains(&seen) { Ok(()) } else { Err(format!("{seen} of {rate}")) }
            });
        };
        within(50e6);
        fabric.slow(cable, Some(5_000_000)).unwrap();
        within(5e6);
        fabric.mend(cable).unwrap();
        within(50e6);
    });
}

#[test]
fn a_cut_near_the_sender_is_noticed_and_one_beyond_is_not() {
    apart("namespaces::a_cut_near_the_sender_is_noticed_and_one_beyond_is_not", || {
        let fabric = build(plan(2, 1, "100Mbps", 4180, plain()));
        let there = socket(&fabric, "host1", 9000);
        let to = address(&fabric, "host1", 9000);
        let senders: Vec<UdpSocket> = (0..32).map(|n| socket(&fabric, "host0", 20_000 + n)).collect();
        let arrived = || {
            senders.iter().for_each(|socket| assert_eq!(socket.send_to(b"?", to).unwrap(), 1));
            receive_all(&there).len()
        };
        assert_eq!(arrived(), 32);
        let plan = fabric.plan();
        let (near, far) = (plan.cable_named("leaf0-spine1").unwrap(), plan.cable_named("leaf1-spine1").unwrap());
        fabric.cut(near).unwrap();
        assert_eq!(arrived(), 32, "the sender's leaf takes the other spine");
        fabric.mend(near).unwrap();
        assert_eq!(arrived(), 32);
        fabric.cut(far).unwrap();
        let some = arrived();
        assert!((1..32).contains(&some), "what hashes to the cut spine is lost, the rest arrives: {some}");
        fabric.mend(far).unwrap();
        assert_eq!(arrived(), 32);
        // A failed switch is adjacent to both leaves.
        [near, far].into_iter().for_each(|cable| fabric.cut(cable).unwrap());
        assert_eq!(arrived(), 32);
    });
}

/// Builds a network with a marking or trimming queue; `None` if programs cannot be loaded.
fn equipped(rate: &str, queue: Queue) -> Option<Fabric> {
    let fabric = build(plan(1, 1, rate, 4180, queue));
    let programs = fabric.missing().iter().find(|missing| missing.contains("marking"));
    match programs {
        Some(missing) => {
            skip(format!("missing: {missing}"), "run as root");
            None
        }
        None => Some(fabric),
    }
}

/// Opens a socket whose datagrams may be marked (ECT).
fn capable(fabric: &Fabric, host: &str) -> UdpSocket {
    let socket = socket(fabric, host, 9000);
    nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::Ipv4Tos, &2).unwrap();
    socket
}

#[test]
fn a_port_marks_only_above_its_threshold() {
    apart("namespaces::a_port_marks_only_above_its_threshold", || {
        let marking = Some(Marking { min: 40_000, max: 80_000, probability: 1.0 });
        let Some(fabric) = equipped("50Mbps", Queue { limit: 200_000, marking, trimming: false }) else { return };
        let (here, there) = (capable(&fabric, "host0"), socket(&fabric, "host1", 9000));
        let to = address(&fabric, "host1", 9000);
        let drain = || {
            std::thread::sleep(Duration::from_millis(100));
            receive_all(&there).len() as u64
        };
        // Slower than the host's own link of 50 Mbit/s, so that no queue builds at the switches.
        let cable = fabric.plan().cable_named("leaf0-spine0").unwrap();
        let sent = stream(&here, to, 1400, 20e6, Duration::from_millis(400));
        assert_eq!(drain(), sent);
        let quiet = packets(&fabric)["leaf0->spine0"];
        assert!(quiet.deepest < Some(40_000) && quiet.marks == Some(0), "{quiet:?}");
        fabric.slow(cable, Some(10_000_000)).unwrap();
        let sent = stream(&here, to, 1400, 20e6, Duration::from_millis(400));
        let arrived = drain();
        let busy = packets(&fabric)["leaf0->spine0"];
        // 20 Mbit/s on 10 Mbit/s for 0.4 s: 500 kB of excess, of which the queue holds 200 kB.
        assert!(busy.marks > Some(0) && busy.deepest > Some(80_000), "{busy:?}");
        assert!(busy.marks <= Some(arrived) && arrived < sent, "{busy:?}, {arrived} of {sent}");
        assert_eq!(busy.drops, Some(sent - arrived));
        fabric.slow(cable, Some(30_000_000)).unwrap();
        let after = packets(&fabric)["leaf0->spine0"];
        assert_eq!((after.marks, after.deepest), (busy.marks, busy.deepest));
    });
}

#[test]
fn trimmed_overload_loses_no_packets() {
    apart("namespaces::trimmed_overload_loses_no_packets", || {
        let queue = Queue { limit: 150_000, marking: None, trimming: true };
        let Some(fabric) = equipped("60Mbps", queue) else { return };
        let cable = fabric.plan().cable_named("leaf0-spine0").unwrap();
        fabric.slow(cable, Some(40_000_000)).unwrap();
        let (here, there) = (socket(&fabric, "host0", 9000), socket(&fabric, "host1", 9000));
        let to = address(&fabric, "host1", 9000);
        let (sent, arrived) = std::thread::scope(|scope| {
            // 1.5 times the rate of the link.
            let sender = scope.spawn(|| stream(&here, to, 1400, 60e6, Duration::from_secs(1)));
            let arrived = receive_all(&there);
            (sender.join().unwrap(), arrived)
        });
        assert_eq!(arrived.len() as u64, sent, "all of them, whole or cut");
        let trimmed = arrived.iter().filter(|bytes| **bytes == 96).count() as u64;
        let port = packets(&fabric)["leaf0->spine0"];
        assert_eq!((port.trims, port.drops), (Some(trimmed), Some(0)));
        // A third is excess; 150 kB of queue and the burst hold 120 packets of 5,200.
        let share = trimmed as f64 / sent as f64;
        assert!((0.15..0.4).contains(&share), "{trimmed} of {sent}");
        assert_eq!(arrived.iter().filter(|bytes| **bytes == 1400).count() as u64, sent - trimmed);
    });
}
