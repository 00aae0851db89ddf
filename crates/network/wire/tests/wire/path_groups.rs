//! Labels over the same switches are one path: schemes keep state per path.

use crate::common::{Pair, uet};
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_testkit::set_keys;
use anabranch_units::{Rate, Time};
use anabranch_wire::{WireParameters, memory::Link};

const SPINES: u32 = 6;
/// Forty times slower.
const SLOW: usize = 2;
const MESSAGE: usize = 2_000_000;
const MESSAGES: usize = 3;

fn settings(scheme: &str, labels: u32) -> Settings {
    let wire = WireParameters {
        labels,
        rtt_floor: Time::from_us(10),
        least_timeout: Time::from_us(1_000),
        ..WireParameters::default()
    };
    let mut scheme = HostParameters::named(scheme).unwrap();
    if scheme.name() == "prime" {
        // Packets sent while a queue drains at a tenth of the rate, from the marking threshold and from full; the slow
        // spine has less.
        set_keys(scheme.parameters_mut(), "p_ecn=135 p_nack=540");
    }
    wire.settings(&uet("mtu=1000B window=131072B congestion_control=dctcp"), scheme, Rate::gbps(10), 1).unwrap()
}

/// As unevenly as real hashes; spines without labels are omitted.
fn hashed(labels: u32) -> Vec<Vec<u32>> {
    let mut spines = vec![Vec::new(); SPINES as usize];
    for label in 0..labels {
        // The first labels go to the spines in turn: with as many labels as spines each spine has one.
        let spine = if label < SPINES { label } else { label.wrapping_mul(2_654_435_761) >> 16 & 7 };
        spines[(spine % SPINES) as usize].push(label);
    }
    spines.retain(|labels| !labels.is_empty());
    spines
}

/// Returns the time of three messages over six spines with a slow one, and the datagrams over that. Each spine is a
/// path if `is_grouped`, otherwise each label.
fn run(scheme: &str, labels: u32, is_grouped: bool) -> (Time, u64) {
    let spines = hashed(labels);
    let usual = Link { queue: 60_000, mark_above: 15_000, ..Link::new(Rate::gbps(10), Time::from_us(5)) };
    let paths = if is_grouped { &spines[..] } else { &[] };
    let mut pair = Pair::over(1, &usual, [settings(scheme, labels), settings(scheme, labels)], paths);
    for spine in &spines {
        pair.network.share(0, 1, spine);
    }
    pair.open();
    let slow = spines.get(SLOW).map(|labels| labels[0]);
    if let Some(slow) = slow {
        pair.network.set(0, 1, slow, Link { rate: Rate(250_000_000), ..usual });
    }
    // Equal starts, after the last reply to a HELLO: with another one `ops` may lose other packets.
    pair.network.advance(Time::from_us(20_000));
    let start = pair.network.now();
    for _ in 0..MESSAGES {
        pair.send(0, 0, vec![5u8; MESSAGE]);
    }
    let done = pair.run(start + Time::from_us(2_000_000), &mut |pair| pair.sent[0].len() == MESSAGES);
    assert!(done, "{scheme}, {labels} labels: {:?}", pair.lost);
    (pair.network.now() - start, slow.map_or(0, |slow| pair.network.counted(0, 1, slow).sent))
}

#[test]
fn any_number_of_labels_is_the_same() {
    for about in HostParameters::ALL {
        let (base, over_slow) = run(about.name, SPINES, true);
        println!("{}: {base}, {over_slow} datagrams over the slow spine", about.name);
        for labels in [18, 48, 96] {
            let (took, over_slow) = run(about.name, labels, true);
            let ratio = took.as_seconds() / base.as_seconds();
            println!("{} with {labels} labels: {ratio:.3}, {over_slow} datagrams over the slow spine", about.name);
            assert!((0.95..=1.05).contains(&ratio), "{}: {ratio:.3} with {labels} labels", about.name);
        }
    }
}

#[test]
fn a_penalty_is_of_a_path() {
    // A penalty on one label leaves seven others on the slow spine: a fifth more datagrams cross it, and it takes longer.
    let [grouped, single] = [true, false].map(|is_grouped| run("prime", 48, is_grouped));
    println!("prime, 48 labels: {grouped:?} as six paths, {single:?} as 48");
    assert!(single.0 > grouped.0, "{single:?} {grouped:?}");
    let ratio = single.1 as f64 / grouped.1 as f64;
    assert!(ratio > 1.15, "{ratio:.2}");
}

#[test]
fn called_peer_uses_its_own_paths() {
    let usual = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(1, &usual, [settings("ops", 8), settings("ops", 8)]);
    pair.open();
    let (endpoint, now) = pair.hosts[1].endpoint();
    endpoint.connect_over(now, 0, &[vec![2, 6], vec![5]]);
    pair.run(now + Time::from_us(10_000), &mut |_| false);
    assert!(pair.hosts[1].endpoint().0.round_trip(0).is_some(), "its streams are open before it sends");
    let before = [2, 5, 6].map(|label| pair.network.counted(1, 0, label).bytes);
    let unused = [0, 1, 3, 4, 7].map(|label| pair.network.counted(1, 0, label).bytes);
    pair.send(1, 0, vec![7u8; 100_000]);
    assert!(pair.run(now + Time::from_us(100_000), &mut |pair| pair.sent[1].len() == 1));
    let after = [2, 5, 6].map(|label| pair.network.counted(1, 0, label).bytes);
    assert!(before.iter().zip(after).all(|(before, after)| after > *before + 10_000), "{before:?}, {after:?}");
    let others = [0, 1, 3, 4, 7].map(|label| pair.network.counted(1, 0, label).bytes);
    assert_eq!(others, unused, "labels of no path");
}

/// Labels of no path are those that no switch has shown to reach the peer: a HELLO over one costs its timeout.
#[test]
fn calls_use_labels_of_paths_alone() {
    let usual = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::over(1, &usual, [settings("ops", 8), settings("ops", 8)], &[vec![2, 6], vec![5]]);
    pair.open();
    assert!(pair.network.counted(0, 1, 2).sent > 0);
    let others = [0, 1, 3, 4, 7].map(|label| pair.network.counted(0, 1, label).sent);
    assert_eq!(others, [0; 5]);
}

#[test]
fn fewer_labels_than_spines_are_fewer_paths() {
    for scheme in ["prime", "reps", "hopper", "spritz-scout"] {
        let (took, _) = run(scheme, 4, true);
        assert!(took < Time::from_us(1_000_000), "{scheme}: {took}");
    }
}
