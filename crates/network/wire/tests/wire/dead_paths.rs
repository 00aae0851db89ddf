//! With one label cut for good every byte still arrives, and schemes that keep a path leave it at its first timeouts.

use crate::common::{Pair, uet};
use anabranch_endpoint::{CloseReason, Settings};
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{WireParameters, memory::Link};

const LABELS: u32 = 8;
const MESSAGE: usize = 500_000;
/// Round trips take some 12 us.
const MIN_TIMEOUT: Time = Time::from_us(1_000);

fn settings(scheme: &str) -> Settings {
    let wire = WireParameters {
        labels: LABELS,
        rtt_floor: Time::from_us(10),
        least_timeout: MIN_TIMEOUT,
        give_up: Time::from_us(100_000),
        ..WireParameters::default()
    };
    let scheme = HostParameters::named(scheme).unwrap();
    wire.settings(&uet("mtu=1000B congestion_control=dctcp"), scheme, Rate::gbps(10), 1).unwrap()
}

/// Before and after the busiest label was cut: durations of messages, timeouts, retransmissions, probes.
struct Seen {
    before: Time,
    after: Option<Time>,
    timeouts: u64,
    retransmitted: u64,
    probes: u64,
}

fn cut(scheme: &str) -> Seen {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(1, &link, [settings(scheme), settings(scheme)]);
    pair.open();
    let message = |pair: &mut Pair| {
        let (start, sent) = (pair.network.now(), pair.sent[0].len());
        pair.send(0, 0, vec![9u8; MESSAGE]);
        let limit = start + Time::from_us(1_000_000);
        let arrived = pair.run(limit, &mut |pair| pair.sent[0].len() > sent || !pair.lost.is_empty());
        assert!(arrived, "{scheme}: neither arrived nor given up");
        pair.lost.is_empty().then(|| pair.network.now() - start)
    };
    message(&mut pair);
    let before = message(&mut pair).unwrap();
    let used = |label: &u32| pair.network.counted(0, 1, *label).sent;
    let busiest = (0..LABELS).max_by_key(used).unwrap();
    pair.network.set(0, 1, busiest, Link { cuts: vec![(Time::ZERO, Time::MAX)], ..link });
    let after = message(&mut pair);
    let counters = pair.hosts[0].endpoint().0.counters();
    let Seen { timeouts, retransmitted, probes, .. } = Seen {
        before,
        after,
        timeouts: counters.timeouts,
        retransmitted: counters.retransmitted,
        probes: counters.probes,
    };
    if after.is_some() {
        assert!(pair.received[1][&0].iter().all(|bytes| *bytes == vec![9u8; MESSAGE]), "{scheme}");
    } else {
        let silent = |lost: &_| matches!(lost, anabranch_endpoint::Event::Lost { reason: CloseReason::TimedOut, .. });
        assert!(pair.lost.iter().all(silent), "{scheme}: {:?}", pair.lost);
    }
    Seen { before, after, timeouts, retransmitted, probes }
}

#[test]
fn schemes_leave_a_dead_path() {
    for about in HostParameters::ALL {
        let scheme = HostParameters::named(about.name).unwrap();
        let Seen { before, after, timeouts, retransmitted, probes } = cut(about.name);
        let took = after.map_or("given up".to_string(), |after| after.to_string());
        println!("| {} | {before} | {took} | {timeouts} | {retransmitted} | {probes} |", about.name);
        if scheme.capabilities().leaves_choice_to_switches() {
            assert!(after.is_none(), "{}: its tag never changes", about.name);
            continue;
        }
        let after = after.unwrap_or_else(|| panic!("{}: given up", about.name));
        // A scheme that keeps a path leaves it within three timeouts: 1, 2 and 4 ms. One that sprays uses it again and again.
        let most = if scheme.capabilities().keeps_path() { MIN_TIMEOUT * 7 } else { MIN_TIMEOUT * 31 };
        // Hopper uses round trips alone; a timeout is an infinite one.
        let most = if about.name == "hopper" { MIN_TIMEOUT * 2 } else { most };
        assert!(after < before + most, "{}: {after} after the cut, {before} before", about.name);
    }
}

#[test]
fn prime_retries_a_dead_path_rarely() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(1, &link, [settings("prime"), settings("prime")]);
    pair.open();
    let messages = |pair: &mut Pair, count: usize| {
        let (start, sent) = (pair.network.now(), pair.sent[0].len());
        (0..count).for_each(|_| pair.send(0, 0, vec![9u8; MESSAGE]));
        assert!(pair.run(start + Time::from_us(1_000_000), &mut |pair| pair.sent[0].len() == sent + count));
        pair.network.now() - start
    };
    let before = messages(&mut pair, 40);
    pair.network.set(0, 1, 3, Link { cuts: vec![(Time::ZERO, Time::MAX)], ..link });
    let after = messages(&mut pair, 40);
    // 20 MB are 20,000 packets: the cut itself, and one or two retries, each of which costs a timeout that is doubled
    // at most once.
    println!("20 MB: {before} before the cut, {after} with it");
    assert!(after < before + MIN_TIMEOUT * 6, "{after} with a dead path, {before} before");
}
