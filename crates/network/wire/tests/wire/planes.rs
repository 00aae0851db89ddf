//! Endpoints with an address in each of several planes.

use crate::common::{Pair, drawn, served, uet};
use anabranch_endpoint::{Endpoint, Settings};
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Datapath, Driver, WireError,
    memory::Link,
    transfer::{self, Destination, Received, Sent, TransferError},
    udp::UdpPath,
};
use std::{net::SocketAddr, sync::OnceLock};

const LABELS: u32 = 8;

fn settings(scheme: &str, planes: u32) -> Settings {
    let keys = "mtu=1400B rto_rule=measured min_rto=5ms early_loss=100us congestion_control=dctcp";
    Settings {
        transport: uet(keys),
        scheme: HostParameters::named(scheme).unwrap(),
        labels: LABELS,
        planes,
        rate: Rate::gbps(2),
        rtt_floor: Time::from_us(1_000),
        catch_up: Time::from_us(1_000),
        peer_timeout: Time::from_us(3_000_000),
        ..Settings::default()
    }
}

/// Loopback addresses that end in these numbers, each at a free port.
fn addresses(last: impl IntoIterator<Item = u8>) -> Vec<SocketAddr> {
    last.into_iter().map(|last| SocketAddr::from(([127, 0, 0, last], 0))).collect()
}

/// Sends over `calls` planes to a server with `serves`, each at a loopback address of its own.
fn transfer(scheme: &str, [calls, serves]: [u8; 2], bytes: u64) -> (Result<Sent, TransferError>, Vec<Received>) {
    let planes = OnceLock::new();
    let serve = || {
        let path = UdpPath::open_planes(&addresses(20..20 + serves), LABELS, 8).unwrap();
        planes.set(path.planes().to_vec()).unwrap();
        let first = path.at();
        (Driver::new(Endpoint::new(settings(scheme, serves.into())), path), first)
    };
    served(serve, |at| {
        let path = UdpPath::calling(&addresses(10..10 + calls), LABELS, 8).unwrap();
        let mut driver = Driver::new(Endpoint::new(settings(scheme, calls.into())), path);
        let others = planes.wait()[1..].iter().copied().cycle().take(usize::from(calls) - 1).collect();
        let to = Destination { others, ..at.into() };
        transfer::send(&mut driver, &to, bytes, &mut drawn(bytes), &mut |_, _| true)
    })
}

#[test]
fn every_scheme_delivers_over_two_planes() {
    let bytes = 1_400_000;
    for scheme in HostParameters::ALL {
        let (sent, received) = transfer(scheme.name, [2, 2], bytes);
        let sent = sent.unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
        assert_eq!((received.len(), received[0].summary), (1, sent.record.summary), "{}", scheme.name);
        assert!(sent.silent.is_empty(), "{}: {sent:?}", scheme.name);
        let of = |plane: usize| sent.record.per_label.iter().skip(plane).step_by(2).sum::<u64>();
        println!("{}: {:?}", scheme.name, sent.record.per_label);
        if scheme.name == "mrc" && sent.counters.retransmitted == 0 {
            // The rotation alternates as long as no value is withdrawn.
            assert!(of(0).abs_diff(of(1)) <= 1, "{:?}", sent.record.per_label);
        }
    }
}

#[test]
fn other_numbers_of_planes_are_refused() {
    let (sent, _) = transfer("mrc", [2, 4], 10_000);
    let error = sent.unwrap_err().to_string();
    assert!(error.contains("has 4 planes, this endpoint 2") && error.contains("--to"), "{error}");
    let mut one = UdpPath::open(addresses([30])[0], LABELS, 8).unwrap();
    assert!(matches!(one.peer_in_planes(&addresses([1, 2])), Err(WireError::Planes { theirs: 2, ours: 1 })));
    let error = UdpPath::open_planes(&addresses([31, 32, 33]), LABELS, 8).unwrap_err().to_string();
    assert!(error.contains("found 8 for 3 planes") && error.contains("such as 6"), "{error}");
}

/// Tags need two bits for three planes, of which a fourth does not exist.
#[test]
fn three_planes_take_turns() {
    let usual = Link::new(Rate::gbps(10), Time::from_us(5));
    let of = || Settings { labels: 9, ..settings("mrc", 3) };
    let mut pair = Pair::new(5, &usual, [of(), of()]);
    pair.open();
    let sent = |pair: &Pair, label: u32| pair.network.counted(0, 1, label).sent;
    let before: Vec<u64> = (0..9).map(|label| sent(&pair, label)).collect();
    // 900 packets over nine paths.
    pair.send(0, 0, vec![1u8; 900 * 1400]);
    let limit = pair.network.now() + Time::from_us(1_000_000);
    assert!(pair.run(limit, &mut |pair| pair.sent[0].len() == 1));
    let after: Vec<u64> = (0..9).map(|label| sent(&pair, label) - before[label as usize]).collect();
    assert!(after.iter().all(|packets| (98..=102).contains(packets)), "{after:?}");
}

fn cut(pair: &Pair, plane: u32, link: &Link) {
    for label in (plane..LABELS).step_by(2) {
        pair.network.set(0, 1, label, link.clone());
        pair.network.set(1, 0, label, link.clone());
    }
}

/// A plane without a reply is none: all paths are of the other one, until it replies.
#[test]
fn dead_planes_are_left_out() {
    let usual = Link::new(Rate::gbps(10), Time::from_us(5));
    let dead = Link { cuts: vec![(Time::ZERO, Time::MAX)], ..usual.clone() };
    for (scheme, plane) in [("mrc", 0), ("mrc", 1), ("rr", 1), ("spritz-scout", 0)] {
        let of = || Settings { request_timeout: Time::from_us(1_000), ..settings(scheme, 2) };
        let mut pair = Pair::new(3, &usual, [of(), of()]);
        cut(&pair, plane, &dead);
        let messages = |pair: &mut Pair, count: usize| {
            let (limit, sent) = (pair.network.now() + Time::from_us(10_000_000), pair.sent[0].len());
            (0..count).for_each(|_| pair.send(0, 0, vec![7u8; 1_000_000]));
            assert!(pair.run(limit, &mut |pair| pair.sent[0].len() == sent + count), "{scheme} {plane}");
        };
        messages(&mut pair, 4);
        let counters = pair.hosts[0].endpoint().0.counters();
        assert_eq!((counters.retransmitted, counters.timeouts, pair.silent), (0, 0, 1), "{scheme} {plane}");
        cut(&pair, plane, &usual);
        let later = pair.network.now() + Time::from_us(1_000_000);
        pair.run(later, &mut |_| false);
        let bytes = |pair: &Pair, plane: u32| -> u64 {
            (plane..LABELS).step_by(2).map(|label| pair.network.counted(0, 1, label).bytes).sum()
        };
        let before = [0, 1].map(|plane| bytes(&pair, plane));
        messages(&mut pair, 4);
        let after = [0, 1].map(|plane| bytes(&pair, plane) - before[plane as usize]);
        // Half of 4 MB, of a scheme that keeps no path.
        let least = if scheme == "spritz-scout" { 100_000 } else { 1_800_000 };
        assert!(after.iter().all(|bytes| *bytes > least), "{scheme} {plane}: {after:?}");
    }
}

#[test]
fn plane_that_fails_costs_its_packets() {
    let usual = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(4, &usual, [settings("mrc", 2), settings("mrc", 2)]);
    pair.open();
    pair.send(0, 0, vec![1u8; 4_000_000]);
    pair.run(pair.network.now() + Time::from_us(500), &mut |_| false);
    cut(&pair, 1, &Link { cuts: vec![(Time::ZERO, Time::MAX)], ..usual });
    let limit = pair.network.now() + Time::from_us(5_000_000);
    assert!(pair.run(limit, &mut |pair| pair.sent[0].len() == 1), "{:?}", pair.lost);
    assert!(pair.hosts[0].endpoint().0.counters().retransmitted > 0);
}
