//! Calibration over a reliable datapath, whose probes are writes: the peer sees none.

use crate::common::{at, settings, vouched};
use anabranch_endpoint::{Endpoint, Event, Settings, header};
use anabranch_units::Time;
use proptest::prelude::*;

const LABELS: u32 = 8;

/// Connects while the probes of each label complete after its time, and sends a message then. The datagrams of dead labels are lost.
/// Returns events of caller and listener.
fn connect(idle: Time, times: &[Time], dead: &[bool]) -> (Vec<Event>, Vec<Event>) {
    let of = || Settings {
        is_reliable: true,
        ecn: false,
        labels: LABELS,
        calibrations: 2,
        idle_timeout: idle,
        ..settings()
    };
    let mut ends = [Endpoint::new(of()), Endpoint::new(of())];
    let (mut now, mut out, mut events) = (at(1), Vec::new(), [Vec::new(), Vec::new()]);
    let mut under_way: Vec<(Time, usize, u32, Vec<u8>)> = Vec::new();
    ends[0].connect(now, 0);
    while now < at(200_000) && !events[1].iter().any(|event| matches!(event, Event::Received { .. })) {
        now += at(5);
        for side in 0..2 {
            ends[side].handle_timeout(now);
            while let Some(sent) = ends[side].poll_transmit(now, &mut out) {
                let bytes = [&out[..], &sent.payload].concat();
                if header::is_probe(&bytes) {
                    under_way.push((now + times[sent.label as usize], side, sent.label, bytes));
                } else if !dead[sent.label as usize] {
                    ends[1 - side]
                        .handle(now, &anabranch_endpoint::Arrival { label: sent.label, ..vouched(0, now, &bytes) });
                    ends[side].complete(now, 0, sent.label, &bytes, true);
                } else if header::is_data(&bytes) {
                    ends[side].complete(now, 0, sent.label, &bytes, false);
                }
            }
            for event in std::iter::from_fn(|| ends[side].poll_event()).collect::<Vec<_>>() {
                if let Event::Open { peer, .. } = event {
                    ends[side].send(now, peer, 1, vec![7; 100].into()).unwrap();
                }
                events[side].push(event);
            }
        }
        for (_, side, label, bytes) in under_way.extract_if(.., |(due, ..)| *due <= now) {
            ends[side].complete(now, 0, label, &bytes, !dead[label as usize]);
        }
    }
    let [caller, listener] = events;
    (caller, listener)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Hardware retries for seconds over a path that is slow or dead.
    #[test]
    fn a_listener_waits_for_a_slow_calibration(
        times in prop::collection::vec(1..8_000u64, LABELS as usize),
        dead in prop::collection::vec(prop::bool::weighted(0.3), LABELS as usize),
        idle in 12_000..60_000u64,
    ) {
        prop_assume!(dead.iter().any(|dead| !dead));
        let times: Vec<Time> = times.into_iter().map(at).collect();
        let (caller, listener) = connect(at(idle), &times, &dead);
        prop_assert!(!listener.iter().any(|event| matches!(event, Event::Lost { .. })), "{listener:?}");
        prop_assert!(listener.iter().any(|event| matches!(event, Event::Received { .. })), "{caller:?} {listener:?}");
    }
}
