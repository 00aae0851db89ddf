//! Paths that are slow from the start: calibration takes them neither for noise nor for the base, and schemes that compare
//! round trips with the base leave them.

use crate::common::{Pair, uet};
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_random::Stream;
use anabranch_settings::Auto;
use anabranch_testkit::set_keys;
use anabranch_units::{Bytes, Rate, Time};
use anabranch_wire::{DatapathKind, WireParameters, memory::Link};

const LABELS: u32 = 16;
const RATE: Rate = Rate(1_000_000_000);
const DELAY: Time = Time::from_us(20);
const FLOOR: Time = Time::from_us(40);
/// Of one chunk over RC queue pairs.
const MESSAGE: usize = 50_000;

fn settings(scheme: &str, is_reliable: bool) -> Settings {
    let mut wire = WireParameters {
        labels: LABELS,
        rtt_floor: FLOOR,
        rtt_window: Time::from_us(20_000),
        ..WireParameters::default()
    };
    if is_reliable {
        (wire.datapath, wire.chunk) = (DatapathKind::Rc, Auto::Value(Bytes(MESSAGE as u64)));
    }
    let mut scheme = HostParameters::named(scheme).unwrap();
    if scheme.name() == "flowbender" {
        set_keys(scheme.parameters_mut(), "variant=rtt rtt_threshold=2.5 range=16 value=next");
    }
    wire.settings(&uet("mtu=1000B"), scheme, RATE, 1).unwrap()
}

/// The labels in `slow` have a tenth of the rate.
fn pair(seed: u64, scheme: &str, is_reliable: bool, slow: &[bool]) -> Pair {
    let usual = Link::new(RATE, DELAY);
    let mut pair = Pair::new(seed, &usual, [settings(scheme, is_reliable), settings(scheme, is_reliable)]);
    if is_reliable {
        pair.network.make_reliable(|_, _, _| {});
    }
    for label in (0..LABELS).filter(|label| slow[*label as usize]) {
        pair.network.set(0, 1, label, Link { rate: Rate(RATE.0 / 10), ..usual.clone() });
    }
    pair.open();
    pair
}

/// Sends messages one after the other; returns how long each took.
fn talk(pair: &mut Pair, messages: usize) -> Vec<Time> {
    let mut took = Vec::new();
    for _ in 0..messages {
        let (sent, began) = (pair.sent[0].len(), pair.network.now());
        pair.send(0, 0, vec![1u8; MESSAGE]);
        assert!(pair.run(began + Time::from_us(1_000_000), &mut |pair| pair.sent[0].len() > sent));
        took.push(pair.network.now() - began);
    }
    took
}

/// The base round trip by arithmetic: a full datagram with its headers, the reply of an unreliable datapath, and the delays.
fn is_base(found: Time, is_reliable: bool) -> bool {
    let of = |bytes: usize| RATE.wire_time(bytes as u64) + DELAY * 2;
    let (least, most) = if is_reliable { (of(MESSAGE), of(MESSAGE + 150)) } else { (of(1000), of(1000 + 300)) };
    (least..most).contains(&found)
}

/// Paths and schemes are drawn: six of sixteen are slow in the mean.
fn is_left(seed: u64) -> Result<(), String> {
    let mut draws = Stream::keyed(seed, 0, "slow paths");
    let slow: Vec<bool> = (0..LABELS).map(|_| draws.chance(2, 5)).collect();
    let [is_reliable, is_hopper] = [1, 1].map(|_| draws.chance(1, 2));
    // Half of the sixteen samples go over paths in turn.
    if !slow[..7].contains(&false) {
        return Ok(());
    }
    let mut pair = pair(seed, if is_hopper { "hopper" } else { "flowbender" }, is_reliable, &slow);
    let (base, noise) = pair.hosts[0].endpoint().0.round_trip(0).unwrap();
    if !is_base(base, is_reliable) || noise != FLOOR {
        return Err(format!("base {base}, noise {noise}"));
    }
    let took = talk(&mut pair, 40);
    let fast = RATE.wire_time(MESSAGE as u64 + 6_000) + DELAY * 4;
    if took[30..].iter().any(|took| *took > fast) { Err(format!("{took:?}")) } else { Ok(()) }
}

#[test]
fn a_slow_path_is_left() {
    anabranch_testkit::try_seeds(0..60, is_left);
}

/// A scheme that stays on a slow path for windows learns nothing of the others.
#[test]
fn the_base_is_that_of_the_shortest_path() {
    for is_reliable in [false, true] {
        let mut pair = pair(1, "ecmp", is_reliable, &[false; LABELS as usize]);
        let base = |pair: &mut Pair| pair.hosts[0].endpoint().0.round_trip(0).unwrap().0;
        let before = base(&mut pair);
        talk(&mut pair, 1);
        let taken = (0..LABELS).max_by_key(|label| pair.network.counted(0, 1, *label).bytes).unwrap();
        let slow = Link { rate: Rate(RATE.0 / 10), ..Link::new(RATE, DELAY) };
        pair.network.set(0, 1, taken, slow.clone());
        talk(&mut pair, 200);
        assert_eq!(base(&mut pair), before, "only label {taken} is slow");
        (0..LABELS).for_each(|label| pair.network.set(0, 1, label, slow.clone()));
        talk(&mut pair, 200);
        assert!(base(&mut pair) > before * 2, "all are slow: {}, {before} before", base(&mut pair));
    }
}
