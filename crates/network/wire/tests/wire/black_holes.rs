//! A path that stops passing large datagrams while small ones pass: transfers go on in fragments, or end at both endpoints
//! with the sizes that pass and that do not.

use crate::common::{Pair, uet};
use anabranch_endpoint::{CloseReason, Event, Settings, Sizes};
use anabranch_lb::registry::HostParameters;
use anabranch_random::Stream;
use anabranch_testkit::try_seeds;
use anabranch_units::{Rate, Time};
use anabranch_wire::{WireParameters, memory::Link};

const HEADER: u64 = 64;
const LABELS: u32 = 4;
const GIVE_UP: Time = Time::from_ms(1_000);

fn settings(scheme: &str, mtu: u64) -> Settings {
    let wire = WireParameters {
        labels: LABELS,
        rtt_floor: Time::from_us(10),
        least_timeout: Time::from_ms(1),
        give_up: GIVE_UP,
        ..WireParameters::default()
    };
    let scheme = HostParameters::named(scheme).unwrap();
    wire.settings(&uet(&format!("mtu={mtu}B")), scheme, Rate::gbps(10), 1).unwrap()
}

/// A pair of which a message has been transferred, before the links from `from` drop what is larger than `largest`, or
/// what is ECN-capable.
fn black_hole(scheme: &str, mtu: u64, from: &[u32], (largest, drops_ecn): (u64, bool)) -> Pair {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(1, &link, [settings(scheme, mtu), settings(scheme, mtu)]);
    pair.open();
    for host in [0, 1] {
        pair.send(host, 0, vec![1u8; 100_000]);
    }
    let limit = pair.network.now() + Time::from_ms(500);
    assert!(pair.run(limit, &mut |pair| pair.sent.iter().all(|sent| sent.len() == 1)), "{scheme}");
    for host in from {
        for label in 0..LABELS {
            pair.network.set(*host, 1 - host, label, Link { largest: largest as usize, drops_ecn, ..link.clone() });
        }
    }
    pair
}

/// Of 1, 2, 3, 4, 6, 8, 12 or 16 fragments the fewest that pass.
fn passes(mtu: u64, largest: u64) -> u64 {
    let fragments = [1, 2, 3, 4, 6, 8, 12, 16].into_iter().map(|fragments: u64| HEADER + mtu.div_ceil(fragments));
    fragments.into_iter().find(|size| *size <= largest).unwrap()
}

/// With any size of packets, limit, direction and scheme everything arrives within a second.
#[test]
fn transfers_go_on_in_fragments() {
    try_seeds(0..60, |seed| {
        let mut draws = Stream::keyed(seed, 0, "black holes");
        let scheme = HostParameters::ALL[draws.below(HostParameters::ALL.len() as u64) as usize].name;
        let mtu: u64 = [500, 1_000, 1_408, 8_888][draws.below(4) as usize];
        let least = HEADER + mtu.div_ceil(16);
        let largest = least + draws.below(HEADER + mtu - least);
        let from: &[u32] = [&[0][..], &[1], &[0, 1]][draws.below(3) as usize];
        let drops_ecn = draws.chance(1, 4);
        let mut pair = black_hole(scheme, mtu, from, (largest, drops_ecn));
        // Short messages pass all the time, in streams of their own and among the long ones.
        let messages: Vec<Vec<u8>> = (0..8u8)
            .map(|number| vec![number; if number % 2 == 0 { 1 } else { draws.below(60_000) as usize }])
            .collect();
        for host in [0, 1] {
            for message in &messages {
                pair.send(host, 0, message.clone());
                pair.send(host, 1, vec![7u8; 9]);
            }
        }
        let (began, what) = (pair.network.now(), format!("{scheme}, {mtu} B, at most {largest} B from {from:?}"));
        let done = |pair: &Pair| pair.sent.iter().all(|sent| sent.len() == 17) || !pair.lost.is_empty();
        let arrived = pair.run(began + Time::from_ms(1_000), &mut { done });
        if !arrived || !pair.lost.is_empty() {
            return Err(format!("{what}: {:?} after {}", pair.lost, pair.network.now() - began));
        }
        for host in [0, 1u32] {
            let received = &pair.received[1 - host as usize];
            if received[&0][1..] != messages[..] || received[&1] != vec![vec![7u8; 9]; 8] {
                return Err(format!("{what}: other bytes"));
            }
            let found = pair.hosts[host as usize].endpoint().0.fragmented(0);
            let sizes = Sizes { passes: passes(mtu, largest) as u32, fails: (HEADER + mtu) as u32 };
            if found != from.contains(&host).then_some(sizes) {
                return Err(format!("{what}: host {host} found {found:?}"));
            }
            if pair.drops_ecn[host as usize] != usize::from(drops_ecn && from.contains(&host)) {
                return Err(format!("{what}: {:?} reports of ECN", pair.drops_ecn));
            }
        }
        Ok(())
    });
}

/// From the least rate on, at one endpoint or both, nothing slow is taken for dropped: no fragments, no silent labels, no loss.
#[test]
fn slow_endpoints_are_no_black_holes() {
    try_seeds(0..60, |seed| {
        let mut draws = Stream::keyed(seed, 0, "slow endpoints");
        let scheme = HostParameters::ALL[draws.below(HostParameters::ALL.len() as u64) as usize].name;
        let mtu: u64 = [500, 1_408, 4_096, 8_888][draws.below(4) as usize];
        let mut draw = |at: usize| if at == 0 { 100_000 } else { 100_000 * 10u64.pow(draws.below(5) as u32) };
        let rates = [draw(usize::from(seed % 2 > 0)), draw(usize::from(seed % 3 > 0))].map(Rate);
        let slow = rates.map(|rate| Settings { rate, peer_timeout: Time::from_ms(10_000), ..settings(scheme, mtu) });
        let link = Link::new(Rate::gbps(10), Time::from_us(5 + draws.below(20_000)));
        let mut pair = Pair::new(1, &link, slow);
        pair.send(0, 0, vec![1u8; 10_000]);
        let what = format!("{scheme}, {mtu} B, {rates:?}");
        let done = |pair: &Pair| pair.sent[0].len() == 1 || !pair.lost.is_empty();
        let mut arrived = pair.run(Time::from_ms(30_000), &mut { done });
        if arrived && pair.lost.is_empty() {
            for host in [0, 1] {
                pair.send(host, 1, vec![2u8; 10_000]);
            }
            let done = |pair: &Pair| (pair.sent[0].len(), pair.sent[1].len()) == (2, 1) || !pair.lost.is_empty();
            arrived = pair.run(Time::from_ms(60_000), &mut { done });
        }
        let found = [0, 1].map(|host: usize| pair.hosts[host].endpoint().0.fragmented(0));
        if !arrived || !pair.lost.is_empty() || found != [None; 2] || pair.drops_ecn != [0; 2] || pair.silent > 0 {
            let (lost, ecn, silent) = (&pair.lost, pair.drops_ecn, pair.silent);
            return Err(format!(
                "{what}: lost {lost:?}, {found:?}, ECN {ecn:?}, {silent} reports of silent labels, {arrived}"
            ));
        }
        Ok(())
    });
}

/// A probe of 28 B passes, the smallest fragment (64 + 63 B) does not: both endpoints end within the timeout, with both
/// sizes, although short messages pass in both directions all the time.
#[test]
fn unpassable_path_ends_the_connection_at_both_endpoints() {
    let mut pair = black_hole("reps", 1_000, &[0], (126, false));
    pair.send(0, 0, vec![5u8; 10_000]);
    let began = pair.network.now();
    while pair.lost.len() < 2 {
        for host in [0, 1] {
            let (endpoint, now) = pair.hosts[host].endpoint();
            let _ = endpoint.send(now, 0, 1, vec![1u8; 4].into());
        }
        let step = pair.network.now() + Time::from_ms(10);
        pair.run(step, &mut |_| false);
        assert!(pair.network.now() < began + GIVE_UP * 2, "{:?}", pair.lost);
    }
    let sizes = Sizes { passes: 28, fails: 127 };
    let reason = |event: &Event| if let Event::Lost { reason, .. } = event { Some(*reason) } else { None };
    let reasons: Vec<_> = pair.lost.iter().filter_map(reason).collect();
    assert_eq!(reasons, [CloseReason::Stalled(sizes), CloseReason::Unreceived(sizes)]);
    // The timeout begins with the first packet that times out, and expires with a later one.
    assert!(pair.network.now() - began < GIVE_UP + GIVE_UP / 2, "{}", pair.network.now() - began);
}

/// A box that drops ECT(0) passes the handshake and probes, which are not ECN-capable.
#[test]
fn paths_that_drop_ecn_are_used_without_it() {
    for scheme in ["reps", "prime", "ecmp"] {
        let mut pair = black_hole(scheme, 1_000, &[0], (u64::MAX >> 1, true));
        pair.send(0, 0, vec![5u8; 100_000]);
        let limit = pair.network.now() + Time::from_ms(500);
        assert!(pair.run(limit, &mut |pair| pair.sent[0].len() == 2), "{scheme}: {:?}", pair.lost);
        assert_eq!((pair.drops_ecn, pair.hosts[0].endpoint().0.fragmented(0)), ([1, 0], None), "{scheme}");
    }
}
