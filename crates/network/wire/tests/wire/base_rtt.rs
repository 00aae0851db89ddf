//! The base round trip of a peer follows the network: it falls at once, and rises when every sample of a window is longer.

use crate::common::Pair;
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;

#[test]
fn base_rtt_follows_a_longer_path_and_back() {
    let settings = Settings {
        scheme: HostParameters::named("hopper").unwrap(),
        labels: 4,
        rtt_floor: Time::from_us(20),
        rtt_window: Time::from_us(10_000),
        ..Settings::default()
    };
    let usual = Link::new(Rate::gbps(10), Time::from_us(50));
    let mut pair = Pair::new(1, &usual, [settings.clone(), settings]);
    pair.open();
    let base = |pair: &mut Pair| pair.hosts[0].endpoint().0.round_trip(0).unwrap().0;
    let before = base(&mut pair);
    // 4 KiB and the acknowledgement take 3.5 us besides the delays.
    assert!(before > Time::from_us(103) && before < Time::from_us(104), "{before}");
    // One after the other, so that nothing is queued.
    let talk = |pair: &mut Pair, for_us: u64| {
        let end = pair.network.now() + Time::from_us(for_us);
        while pair.network.now() < end {
            let sent = pair.sent[0].len();
            pair.send(0, 0, vec![1u8; 4096]);
            let limit = pair.network.now() + Time::from_us(100_000);
            assert!(pair.run(limit, &mut |pair| pair.sent[0].len() > sent));
        }
    };
    let delay = |pair: &Pair, delay| {
        (0..4).for_each(|label| pair.network.set(0, 1, label, Link { delay: Time::from_us(delay), ..usual.clone() }));
    };
    delay(&pair, 150);
    talk(&mut pair, 5_000);
    let near = |found: Time, wanted: Time| found + Time::from_us(1) > wanted && found < wanted + Time::from_us(1);
    assert!(near(base(&mut pair), before), "a window is not over: it may have been a queue");
    talk(&mut pair, 40_000);
    assert!(near(base(&mut pair), before + Time::from_us(100)), "{}", base(&mut pair));
    delay(&pair, 50);
    talk(&mut pair, 1_000);
    assert!(near(base(&mut pair), before), "at once");
}
