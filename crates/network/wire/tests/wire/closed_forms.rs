//! Times on an idle network follow from its parameters alone, to the picosecond.

use crate::common::{Pair, uet};
use anabranch_endpoint::{Settings, header};
use anabranch_lb::registry::HostParameters;
use anabranch_testkit::set_keys;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;

/// 10 Gbit/s: 800 ps per byte.
const PS_PER_BYTE: u64 = 800;
const DELAY: Time = Time::from_us(5);
const OVERHEAD: u64 = 42;
const MTU: u64 = 1000;

fn wire(bytes: u64) -> Time {
    Time::from_ps((bytes + OVERHEAD) * PS_PER_BYTE)
}

fn full() -> Time {
    wire(header::DATA_HEADER as u64 + MTU)
}

fn answer() -> Time {
    wire(header::ACK_BYTES as u64)
}

/// Returns endpoints with one acknowledgement per packet.
fn pair(window: u64) -> Pair {
    pair_of(window, 1, HostParameters::named("ecmp").unwrap(), 1, "fixed")
}

fn pair_of(window: u64, ack_every: u32, scheme: HostParameters, run_length: u32, rto_rule: &str) -> Pair {
    let header = header::DATA_HEADER as u64 + OVERHEAD;
    let keys = format!(
        "mtu={MTU}B header={header}B window={}B ack_every={ack_every} congestion_control=none rto_rule={rto_rule} min_rto=1ms",
        window * (MTU + header)
    );
    let settings = Settings {
        transport: uet(&keys),
        scheme,
        run_length,
        rate: Rate::gbps(10),
        overhead: OVERHEAD,
        catch_up: Time::ZERO,
        labels: 4,
        ..Settings::default()
    };
    let mut pair = Pair::new(1, &Link::new(Rate::gbps(10), DELAY), [settings.clone(), settings]);
    pair.open();
    pair
}

#[test]
fn the_base_round_trip_is_that_of_a_full_packet() {
    let mut pair = pair(10);
    // A full packet in one direction, an echo in the other.
    let base = full() + DELAY + wire(header::ECHO_BYTES as u64) + DELAY;
    assert_eq!(pair.hosts[0].endpoint().0.round_trip(0), Some((base, Time::ZERO)), "and nothing spreads");
}

#[test]
fn one_packet() {
    for bytes in [0u64, 1, 999, 1000] {
        let mut pair = pair(10);
        let start = pair.network.now();
        pair.send(0, 0, vec![1u8; bytes as usize]);
        assert!(pair.run(start + Time::from_us(1000), &mut |pair| !pair.sent[0].is_empty()));
        let there = wire(header::DATA_HEADER as u64 + bytes) + DELAY;
        assert_eq!(pair.times[1], [start + there], "{bytes} B");
        assert_eq!(pair.sent[0], [(0, 0, start + there + answer() + DELAY)], "{bytes} B");
    }
}

#[test]
fn a_train() {
    let mut pair = pair(100);
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; 50 * MTU as usize]);
    assert!(pair.run(start + Time::from_us(1000), &mut |pair| !pair.sent[0].is_empty()));
    // The line is never idle, so the fiftieth packet starts after 49 others; links take whole datagrams, as NICs do.
    assert_eq!(pair.times[1], [start + full() * 50 + DELAY]);
    assert_eq!(pair.sent[0], [(0, 0, start + full() * 50 + DELAY + answer() + DELAY)]);
}

#[test]
fn a_window() {
    // A window of 4 packets lasts 4 * 0.8784 us, a round trip 10.8784 us and an acknowledgement: the line idles.
    let mut pair = pair(4);
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; 10 * MTU as usize]);
    assert!(pair.run(start + Time::from_us(1000), &mut |pair| !pair.sent[0].is_empty()));
    let round_trip = full() + DELAY + answer() + DELAY;
    assert!(full() * 4 < round_trip);
    // Packet 9 is the second of the third window.
    let last = round_trip * 2 + full() * 2 + DELAY;
    assert_eq!(pair.times[1], [start + last]);
    assert_eq!(pair.sent[0], [(0, 0, start + last + answer() + DELAY)]);
}

#[test]
fn a_queue() {
    // Twenty packets leave a link of 2 Gbit/s at its rate.
    let mut pair = pair(100);
    for label in 0..4 {
        pair.network.set(0, 1, label, Link::new(Rate::gbps(2), DELAY));
    }
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; 20 * MTU as usize]);
    assert!(pair.run(start + Time::from_us(10_000), &mut |pair| !pair.times[1].is_empty()));
    assert_eq!(pair.times[1], [start + full() * 5 * 20 + DELAY]);
}

/// Returns the duration of a message of 40 packets in chunks of ten, each of which waits for the previous one's ACK.
fn chunks(run_length: u32, rto_rule: &str) -> Time {
    let mut scheme = HostParameters::named("qp-spray").unwrap();
    set_keys(scheme.parameters_mut(), "chunk=10000B outstanding=1");
    // One acknowledgement per four packets does not divide ten.
    let mut pair = pair_of(100, 4, scheme, run_length, rto_rule);
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; 40 * MTU as usize]);
    assert!(pair.run(start + Time::from_us(100_000), &mut |pair| !pair.sent[0].is_empty()));
    assert_eq!(pair.hosts[0].endpoint().0.counters().timeouts, 0);
    pair.sent[0][0].2 - start
}

#[test]
fn end_of_chunk_is_acknowledged_at_once() {
    let chunk = full() * 10 + DELAY + answer() + DELAY;
    assert_eq!(chunks(1, "fixed"), chunk * 4);
    // In runs of five the scheme is not called for packets 9, 19 and 29, so they request no ACK. The receiver acknowledges
    // them a base round trip after the first that waits: no more than four round trips, not a timeout of a millisecond.
    let runs = chunks(5, "measured");
    assert!(runs > chunk * 4 && runs < (chunk + (full() + DELAY * 2 + answer()) * 4) * 4, "{runs}");
}
