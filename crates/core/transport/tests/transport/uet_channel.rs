//! Sender and receiver over a channel that drops, trims, delays and reorders, with a virtual clock.

use crate::uet_model::{RTT, config, is_done, replied, sender_of};
use anabranch_random::Stream;
use anabranch_transport::{
    DataArrival, Receiving, Reply, Sending,
    uet::{UetConfig, UetReceiver},
};
use anabranch_units::Time;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
enum Event {
    Data(DataArrival),
    Header(DataArrival),
    Reply(Reply),
}

fn transfer(
    config: &UetConfig,
    size: u64,
    seed: u64,
    drop: u64,
    trim: u64,
    spread_us: u64,
) -> Result<(), TestCaseError> {
    // Without drops, the longest time to a reply: nothing may time out.
    let spread = Time::from_us(spread_us);
    let longest_reply = RTT + spread + config.ack_delay;
    let rto = if drop == 0 { longest_reply + Time::from_ps(1) } else { config.rto };
    let config = &UetConfig { rto, ..config.clone() };
    let mut stream = Stream::keyed(seed, 0, "channel");
    let mut sender = sender_of(config, size);
    let mut receiver = UetReceiver::new(config, size);
    let mut events: BTreeMap<(Time, u64), Event> = BTreeMap::new();
    let (mut now, mut number, mut complete, mut timeouts) = (Time::ZERO, 0u64, false, 0);
    let (mut seen, mut bytes) = (BTreeSet::new(), 0u64);
    let window = config.window;
    for step in 0.. {
        prop_assert!(step < 2_000_000, "no end: {} of {}", sender.cumulative(), sender.packets());
        let push = |time, event, events: &mut BTreeMap<_, _>, number: &mut u64| {
            *number += 1;
            events.insert((time, *number), event);
        };
        while sender.ready(config) {
            let (before, tag) = (sender.in_flight(), stream.below(16) as u32);
            let shown = sender.peek(config).expect("ready");
            let segment = sender.send(config, now, tag);
            prop_assert_eq!(segment, shown);
            prop_assert!(
                before == 0 || sender.in_flight() <= sender.allowed(config, now).0.unwrap().min(window),
                "window"
            );
            let time = now + RTT / 2 + Time::from_ps(stream.below(spread_us * 1_000_000 + 1));
            let (psn, payload) = (segment.psn, segment.payload);
            let (roll, ecn) = (stream.below(100), stream.chance(1, 10));
            let packet = DataArrival { psn, payload, tag, ecn, ack_request: !sender.ready(config) };
            match roll {
                roll if roll < drop => {}
                roll if roll < drop + trim => push(time, Event::Header(packet), &mut events, &mut number),
                _ => push(time, Event::Data(packet), &mut events, &mut number),
            }
        }
        if is_done(&sender) {
            break;
        }
        let deadline = sender.deadline(config);
        let held = receiver.deadline();
        let next = events.first_key_value().map(|(key, _)| key.0);
        let Some(time) = [deadline, held, next].into_iter().flatten().min() else {
            return Err(TestCaseError::fail("nothing pending, not done"));
        };
        now = now.max(time);
        if held == Some(time) {
            let ack = receiver.on_timer(config, now).expect("an acknowledgement is due");
            if stream.below(100) >= drop {
                push(now + RTT / 2, Event::Reply(ack), &mut events, &mut number);
            }
            continue;
        }
        if next.is_none_or(|next| deadline.is_some_and(|deadline| deadline < next)) {
            sender.on_timer(config, now, &mut |_, tag| {
                timeouts += 1;
                assert!(tag < 16);
            });
            continue;
        }
        let (_, event) = events.pop_first().expect("an event");
        let back = now + RTT / 2;
        let lossy = stream.below(100) < drop;
        match event {
            Event::Data(packet) => {
                let DataArrival { psn, payload, .. } = packet;
                let (reply, completes) = receiver.on_data(config, now, &packet);
                bytes += if seen.insert(psn) { u64::from(payload) } else { 0 };
                prop_assert_eq!(receiver.received_bytes(), bytes);
                prop_assert!(!(completes && complete), "completed twice");
                complete |= completes;
                prop_assert_eq!(complete, seen.len() as u64 == sender.packets());
                if let Some(ack) = reply {
                    for bit in 0..64 {
                        let psn = ack.cumulative + u64::from(ack.offset) + bit;
                        if ack.bitmap >> bit & 1 == 1 {
                            prop_assert!(seen.contains(&psn));
                        } else if psn <= ack.psn {
                            prop_assert!(!seen.contains(&psn) || psn < ack.cumulative);
                        }
                    }
                    let missing = (0..).find(|psn| !seen.contains(psn)).unwrap();
                    prop_assert_eq!(ack.cumulative, missing);
                    if !lossy {
                        push(back, Event::Reply(ack), &mut events, &mut number);
                    }
                }
            }
            Event::Header(DataArrival { psn, tag, ack_request, .. }) => {
                let nack = receiver.on_header(config, psn, tag, ack_request).unwrap();
                if !lossy {
                    push(back, Event::Reply(nack), &mut events, &mut number);
                }
            }
            Event::Reply(reply) => {
                let cumulative = sender.cumulative();
                let acked = replied(&mut sender, config, now, &reply);
                prop_assert!(sender.cumulative() >= cumulative);
                prop_assert!(acked.rtt.is_none_or(|rtt| rtt >= RTT));
                prop_assert_eq!(acked.done, is_done(&sender));
            }
        }
    }
    prop_assert!(complete && bytes == size && receiver.received_bytes() == size);
    prop_assert_eq!(sender.in_flight(), 0);
    prop_assert!(drop > 0 || timeouts == 0, "nothing was dropped, and {timeouts} timeouts");
    prop_assert!(sender.deadline(config).is_none() && !sender.ready(config));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every flow completes, delivers each byte once, respects its window, and ends with nothing in flight.
    #[test]
    fn every_flow_completes(
        seed in any::<u64>(), size in 1u64..2_000_000, window in 1u64..200, ack_every in 1u32..9,
        drop in prop_oneof![Just(0u64), 1u64..30], trim in 0u64..40, spread in prop_oneof![0u64..20, 20u64..60], kind in 0usize..4,
    ) {
        let config = config(["dctcp", "smartt", "nscc", "none"][kind], window, ack_every);
        transfer(&config, size, seed, drop, trim, spread)?;
    }
}

fn full(psn: u64, ecn: bool) -> DataArrival {
    DataArrival { psn, payload: 4096, tag: 7, ecn, ack_request: false }
}

#[test]
fn acknowledgements_are_coalesced() {
    // In order, unmarked: one ACK per four packets, and the last packet's at once.
    for (packets, acks) in [(1u64, 1), (3, 1), (4, 1), (5, 2), (8, 2), (101, 26)] {
        let config = config("none", 64, 4);
        let mut receiver = UetReceiver::new(&config, packets * 4096);
        let count =
            (0..packets).filter(|&psn| receiver.on_data(&config, Time::ZERO, &full(psn, false)).0.is_some()).count();
        assert_eq!(count, acks, "{packets} packets");
    }
}

#[test]
fn urgent_packets_are_acknowledged_at_once() {
    let config = config("none", 64, 4);
    let mut receiver = UetReceiver::new(&config, 100 * 4096);
    let mut replies = |psn, ecn| receiver.on_data(&config, Time::ZERO, &full(psn, ecn)).0;
    assert_eq!(replies(0, false), None);
    assert!(replies(1, true).is_some(), "the mark changes");
    assert!(replies(2, false).is_some(), "and changes back");
    assert_eq!(replies(4, false), None, "a hole opens");
    assert_eq!(replies(3, false), None, "the hole is filled and no ACK was requested");
    let again = replies(3, false).expect("a duplicate");
    assert_eq!((again.cumulative, again.psn, again.tag), (5, 3, 7));
    let asking = DataArrival { ack_request: true, ..full(5, false) };
    assert!(receiver.on_data(&config, Time::ZERO, &asking).0.is_some(), "the sender cannot go on");
}

#[test]
fn reordering_is_measured() {
    let config = config("none", 64, 100);
    let mut receiver = UetReceiver::new(&config, 5 * 4096);
    for psn in [0, 3, 2, 1, 4] {
        receiver.on_data(&config, Time::ZERO, &full(psn, false));
    }
    // Not the lowest missing: 3 and 2. Not the last one plus one: 3, 2, 1 and 4.
    assert_eq!((receiver.out_of_order(), receiver.out_of_sequence()), (2, 4));
    assert_eq!(receiver.max_reorder_bytes(), 2 * 4096);
}

#[test]
fn lost_packets_go_first_and_acknowledged_ones_are_not_retransmitted() {
    let config = config("none", 4, 1);
    let mut sender = sender_of(&config, 10 * 4096);
    for psn in 0..4 {
        assert_eq!(sender.send(&config, Time::from_us(psn), 9).psn, psn);
    }
    assert!(!sender.ready(&config), "the window is full");
    let now = Time::from_us(10);
    for _ in 0..2 {
        replied(&mut sender, &config, now, &Reply { psn: 2, tag: 9, nack: true, ..Reply::default() });
        assert_eq!(sender.in_flight(), 3 * 4160, "also if said twice");
    }
    assert_eq!(sender.peek(&config).map(|s| (s.psn, s.retransmission)), Some((2, true)));
    let ack = Reply { bitmap: 0b100, psn: 2, tag: 9, ..Reply::default() };
    let acked = replied(&mut sender, &config, now, &ack);
    assert_eq!((acked.packets, acked.rtt), (1, Some(Time::from_us(8))));
    assert_eq!(sender.peek(&config).map(|s| (s.psn, s.retransmission)), Some((4, false)));
}

#[test]
fn timeouts_are_exact() {
    let config = config("none", 4, 1);
    let mut sender = sender_of(&config, 10 * 4096);
    for psn in 0..3 {
        sender.send(&config, Time::from_us(psn), psn as u32);
    }
    assert_eq!(sender.deadline(&config), Some(config.rto));
    let mut lost = vec![];
    sender.on_timer(&config, config.rto + Time::from_us(1), &mut |psn, tag| lost.push((psn, tag)));
    assert_eq!(lost, [(0, 0), (1, 1)]);
    assert_eq!(sender.deadline(&config), Some(config.rto + Time::from_us(2)));
    assert_eq!(sender.in_flight(), 4160);
}
