//! A path that drops large packets is distinguished from one that drops all, and no reply is longer than its request.

use crate::common::{MTU, at, unknown, vouched};
use anabranch_endpoint::{Arrival, CloseReason, Endpoint, Event, Settings, Sizes, header};
use anabranch_units::Time;
use std::net::SocketAddr;

/// A full datagram without a key.
const FULL: u32 = MTU + header::DATA_HEADER as u32;

fn settings() -> Settings {
    let transport = crate::common::transport("uet");
    Settings { transport, calibrations: 1, labels: 4, ..Settings::default() }
}

/// Calls a server until `until`. `passes` forwards a datagram by its time, label and size; `admits`: the server has a
/// number for the client. Returns the client's events and their times.
fn call(until: Time, admits: bool, passes: &dyn Fn(Time, u32, usize) -> bool) -> Vec<(Time, Event)> {
    let (mut client, mut server) = (Endpoint::new(settings()), Endpoint::new(settings()));
    let (mut now, mut out, mut events) = (at(1), Vec::new(), Vec::new());
    let from = SocketAddr::from(([10, 0, 0, 1], 7000));
    client.connect(now, 0);
    // No reply is longer than the longest request.
    let (mut asked, mut is_known) = (Vec::<usize>::new(), false);
    while now < until {
        now += Time::from_us(500);
        client.handle_timeout(now);
        let mut there = Vec::new();
        while let Some(sent) = client.poll_transmit(now, &mut out) {
            if passes(now, sent.label, out.len()) {
                there.push((sent.label, out.clone()));
            }
            now += Time::from_us(20);
        }
        for (label, bytes) in there {
            asked.push(bytes.len());
            let peer = is_known.then_some(0);
            server.handle(now, &Arrival { peer, label, ..unknown(from, now, &bytes) });
            server.admit(now, &mut |_| {
                is_known |= admits;
                admits.then_some(0)
            });
        }
        server.handle_timeout(now);
        while let Some(sent) = server.poll_transmit(now, &mut out) {
            assert!(asked.iter().any(|asked| *asked >= out.len()), "{} B answer {asked:?}", out.len());
            let bytes = out.clone();
            client.handle(now, &Arrival { label: sent.label, ..vouched(0, now, &bytes) });
            now += Time::from_us(20);
        }
        asked.clear();
        events.extend(std::iter::from_fn(|| client.poll_event()).map(|event| (now, event)));
    }
    events
}

fn lost(events: &[(Time, Event)]) -> Option<(Time, CloseReason)> {
    events.iter().find_map(|(at, event)| match event {
        Event::Lost { reason, .. } => Some((*at, *reason)),
        _ => None,
    })
}

/// Of datagrams with a whole packet, a half, a third of it and so on, the largest that passes is used.
#[test]
fn path_that_drops_large_packets_has_smaller_ones() {
    for (largest, passes) in [(1063, 64 + 500), (600, 64 + 500), (563, 64 + 334), (200, 64 + 125), (127, 64 + 63)] {
        let events = call(at(5_000), true, &|_, _, bytes| bytes <= largest);
        assert_eq!(lost(&events), None, "{largest}");
        let sizes = Sizes { passes, fails: FULL };
        assert_eq!(events[0].1, Event::Fragmented { peer: 0, sizes });
        assert!(matches!(events[1].1, Event::Open { .. }), "{events:?}");
        // Seven full HELLOs of 50 ms each, a short one that receives a reply, a second, and three probes of each size.
        assert!(events[1].0 > at(1_500) && events[1].0 < at(1_800), "{events:?}");
    }
}

/// The smallest fragment has 63 B and a header of 64 B: what passes is named, a probe of 28 B.
#[test]
fn path_that_drops_every_fragment_is_named() {
    let (when, reason) = lost(&call(at(14_000), true, &|_, _, bytes| bytes < 127)).expect("lost");
    assert_eq!(reason, CloseReason::Stalled(Sizes { passes: 28, fails: 127 }));
    assert!(when > at(11_350) && when < at(12_500), "{when}");
}

#[test]
fn path_that_drops_everything_times_out() {
    let (when, reason) = lost(&call(at(12_000), true, &|_, _, _| false)).expect("lost");
    assert_eq!(reason, CloseReason::TimedOut);
    assert!(when > at(10_000), "{when}");
}

#[test]
fn late_server_is_connected() {
    for began in [300, 340, 345, 350, 355, 360, 400, 740, 3_000] {
        let events = call(at(5_000), true, &|now, _, _| now >= at(began));
        assert_eq!(lost(&events), None, "from {began} ms on");
        assert!(events.iter().any(|(_, event)| matches!(event, Event::Open { .. })), "{events:?}");
    }
}

#[test]
fn labels_that_drop_everything_are_ignored() {
    // One of four labels forwards everything.
    let events = call(at(5_000), true, &|_, label, _| label == 2);
    assert!(lost(&events).is_none_or(|(_, reason)| !matches!(reason, CloseReason::Stalled(_))), "{events:?}");
}

#[test]
fn full_server_is_not_reported_as_path_mtu_loss() {
    let (_, reason) = lost(&call(at(12_000), false, &|_, _, _| true)).expect("lost");
    assert_eq!(reason, CloseReason::TimedOut);
}
