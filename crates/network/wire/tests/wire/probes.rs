//! Probes have the size that their scheme requests, which gets the round trip that a full packet would have measured.

use crate::common::{Pair, uet};
use anabranch_endpoint::{
    Key, Settings,
    header::{self, Protection},
};
use anabranch_lb::{CallEvent, Record, registry::HostParameters};
use anabranch_testkit::set_keys;
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;

/// 10 Gbit/s: 800 ps per byte.
const PS_PER_BYTE: u64 = 800;
const OVERHEAD: u64 = 42;
const MTU: u64 = 1000;
const DELAY: Time = Time::from_us(5);
const MESSAGES: usize = 20;

/// A probe after every acknowledgement.
fn settings(probe_size: &str) -> Settings {
    let mut scheme = HostParameters::named("hopper").unwrap();
    let keys = format!("th_probe=0.0 th_cong=1000.0 ttl_probe=0.0 epoch=0.0 probe_size={probe_size}");
    set_keys(scheme.parameters_mut(), &keys);
    Settings {
        transport: uet(&format!("mtu={MTU}B header={}B", header::DATA_HEADER as u64 + OVERHEAD)),
        scheme,
        rate: Rate::gbps(10),
        overhead: OVERHEAD,
        catch_up: Time::ZERO,
        labels: 4,
        ..Settings::default()
    }
}

/// Sends one-packet messages. Returns the probes sent, their bytes on the wire, the scheme's round trips, and the base
/// round trip.
fn probes(settings: &Settings) -> (u64, u64, Vec<Time>, Time) {
    let record = Record::default();
    let mut pair = Pair::new(1, &Link::new(Rate::gbps(10), DELAY), [settings.clone(), settings.clone()]);
    pair.hosts[0].endpoint().0.record(&record);
    pair.open();
    for message in 1..=MESSAGES {
        pair.send(0, 0, vec![1u8; MTU as usize]);
        let limit = pair.network.now() + Time::from_us(1_000);
        assert!(pair.run(limit, &mut |pair| pair.sent[0].len() == message));
        let echoed = pair.network.now() + Time::from_us(100);
        pair.run(echoed, &mut |_| false);
    }
    let messages = record.take().into_iter().filter_map(|call| match call.event {
        CallEvent::ProbeReply(_, rtt, ..) => Some(rtt),
        _ => None,
    });
    let (messages, endpoint) = (messages.collect(), pair.hosts[0].endpoint().0);
    let (counters, base) = (endpoint.counters(), endpoint.round_trip(0).unwrap().0);
    (counters.probes, counters.probe_bytes, messages, base)
}

fn wire(bytes: u64) -> u64 {
    (bytes + OVERHEAD) * PS_PER_BYTE
}

#[test]
fn probes_have_the_requested_size() {
    let header = header::DATA_HEADER as u64;
    let base = Time::from_ps(wire(header + MTU) + wire(header::ECHO_BYTES as u64)) + DELAY * 2;
    for (size, payload) in [("auto", 64), ("1B", 1), ("500B", 500), ("10kB", MTU)] {
        let (sent, bytes, messages, found) = probes(&settings(size));
        assert!(sent >= 2 * MESSAGES as u64 - 2, "{size}: {sent} probes");
        assert_eq!(bytes, sent * (header + payload + OVERHEAD), "{size}");
        assert_eq!((messages.len() as u64, found), (sent, base), "{size}");
        // Two probes leave at once: the second waits for the first, and so may its echo.
        let longest = base + Time::from_ps(wire(header + payload).max(wire(header::ECHO_BYTES as u64)));
        assert!(messages.iter().all(|rtt| (base..=longest).contains(rtt)), "{size}: {messages:?}, base {base}");
        assert!(messages.contains(&base), "{size}: {messages:?}, base {base}");
    }
}

#[test]
fn an_authenticated_probe_is_as_short_as_its_mac_allows() {
    let key = Key::of(b"a key of both");
    let settings = Settings { key: Some(key), protection: Protection::All, ..settings("1B") };
    let (sent, bytes, messages, base) = probes(&settings);
    assert_eq!(bytes, sent * (header::MAX_HEADER as u64 + 1 + OVERHEAD));
    assert!(sent > 0 && messages.len() as u64 == sent && messages.contains(&base), "{messages:?}, base {base}");
}
