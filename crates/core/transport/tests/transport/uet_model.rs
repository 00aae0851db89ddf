//! The sender against a naive model of the packets in flight, with small windows and wide spans.

use anabranch_random::Stream;
use anabranch_settings::{Parameters, Raw};
use anabranch_transport::{
    AckOutcome, DataArrival, Network, Receiving, Reply, Sending,
    uet::{UetConfig, UetReceiver, UetSender, UetTransport},
};
use anabranch_units::{BytesOrBdp, Rate, Time};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const RTT: Time = Time::from_us(8);
const MTU: u64 = 4096;
const HEADER: u64 = 64;

pub(crate) fn config(control: &str, window_packets: u64, ack_every: u32) -> UetConfig {
    let mut transport = UetTransport::default();
    transport.set("congestion_control", &Raw::Text(control.into())).unwrap();
    transport.uet.window = anabranch_settings::Auto::Value(BytesOrBdp::Bytes(window_packets * (MTU + HEADER)));
    transport.uet.ack_every = ack_every;
    let network = Network {
        base_rtt: RTT,
        bdp: 400_000,
        queue_drain: RTT,
        trimming: true,
        nic_rate: Rate::gbps(400),
        ..Network::default()
    };
    UetConfig::new(&transport, &network)
}

pub(crate) fn sender_of(config: &UetConfig, size: u64) -> UetSender {
    UetSender::new(config, Rate::gbps(400), RTT, size, Time::ZERO)
}

pub(crate) fn is_done(sender: &UetSender) -> bool {
    sender.cumulative() == sender.packets()
}

pub(crate) fn replied(sender: &mut UetSender, config: &UetConfig, now: Time, reply: &Reply) -> AckOutcome {
    sender.on_reply(config, now, reply, None, None)
}

#[derive(Default)]
struct Model {
    flying: BTreeMap<u64, (Time, u32)>,
    lost: BTreeSet<u64>,
    acked: BTreeSet<u64>,
    times_sent: BTreeMap<u64, u32>,
    size: u64,
}

impl Model {
    fn payload(&self, psn: u64) -> u64 {
        (self.size - psn * MTU).min(MTU)
    }
    fn in_flight(&self) -> u64 {
        self.flying.keys().map(|&psn| self.payload(psn) + HEADER).sum()
    }
    fn acknowledge(&mut self, psns: impl Iterator<Item = u64>) -> (u32, u64) {
        let (mut packets, mut bytes) = (0, 0);
        for psn in psns {
            if self.acked.insert(psn) {
                packets += 1;
                bytes += self.payload(psn);
            }
            self.flying.remove(&psn);
            self.lost.remove(&psn);
        }
        (packets, bytes)
    }
}

fn covered(ack: &Reply) -> impl Iterator<Item = u64> {
    let (base, bitmap) = (ack.cumulative + u64::from(ack.offset), ack.bitmap);
    (0..ack.cumulative).chain((0..64).filter(move |bit| bitmap >> bit & 1 == 1).map(move |bit| base + bit))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Every result and deadline against the model, with replies in any order.
    #[test]
    fn the_sender_agrees_with_a_naive_model(
        seed in any::<u64>(), size in 1u64..600_000, window in 1u64..60, ack_every in 1u32..6,
        drop in 0u64..20, trim in 0u64..30, kind in 0usize..4,
    ) {
        let config = config(["dctcp", "smartt", "nscc", "none"][kind], window, ack_every);
        let mut stream = Stream::keyed(seed, 0, "model");
        let (mut sender, mut receiver) = (sender_of(&config, size), UetReceiver::new(&config, size));
        let mut model = Model { size, ..Model::default() };
        let mut data: Vec<(DataArrival, bool)> = vec![];
        let mut answers: Vec<Reply> = vec![];
        let mut now = Time::ZERO;
        let mut steps = 0;
        while !is_done(&sender) {
            steps += 1;
            prop_assert!(steps < 200_000);
            now += Time::from_ns(stream.below(2_000));
            match stream.below(4) {
                0 if sender.ready(&config) => {
                    let tag = stream.below(1 << 20) as u32;
                    let segment = sender.send(&config, now, tag);
                    let psn = segment.psn;
                    prop_assert_eq!(segment.retransmission, model.lost.remove(&psn));
                    prop_assert!(!model.acked.contains(&psn), "sent again though acknowledged");
                    prop_assert_eq!(u64::from(segment.payload), model.payload(psn));
                    prop_assert!(model.flying.insert(psn, (now, tag)).is_none());
                    *model.times_sent.entry(psn).or_default() += 1;
                    prop_assert!(Some(sender.in_flight()) <= sender.allowed(&config, now).0 || model.flying.len() == 1);
                    let arrival = DataArrival {
                        psn, payload: segment.payload, tag, ecn: stream.chance(1, 8), ack_request: !sender.ready(&config),
                    };
                    let roll = stream.below(100);
                    if roll >= drop {
                        data.push((arrival, roll < drop + trim));
                    }
                }
                1 if !data.is_empty() => {
                    let (arrival, trimmed) = data.swap_remove(stream.below(data.len() as u64) as usize);
                    let reply = if trimmed {
                        receiver.on_header(&config, arrival.psn, arrival.tag, arrival.ack_request)
                    } else {
                        receiver.on_data(&config, Time::ZERO, &arrival).0
                    };
                    answers.extend(reply.filter(|_| stream.below(100) >= drop));
                }
                2 if !answers.is_empty() => {
                    let reply = answers.swap_remove(stream.below(answers.len() as u64) as usize);
                    let flying = model.flying.get(&reply.psn).copied();
                    let outcome = replied(&mut sender, &config, now, &reply);
                    let acked = model.acknowledge(covered(&reply));
                    if reply.nack {
                        if model.flying.remove(&reply.psn).is_some() {
                            model.lost.insert(reply.psn);
                        }
                    } else {
                        let once = model.times_sent[&reply.psn] == 1;
                        prop_assert_eq!((outcome.packets, outcome.bytes), acked);
                        match flying {
                            Some((sent, _)) if once => prop_assert_eq!(outcome.rtt, Some(now - sent)),
                            _ => prop_assert!(once || outcome.rtt.is_none(), "Karn"),
                        }
                    }
                }
                _ => {
                    if data.is_empty() && answers.is_empty() && !sender.ready(&config) {
                        now = now.max(sender.deadline(&config).unwrap_or(now));
                    }
                    let due = model.flying.iter().filter(|(_, (sent, _))| *sent + config.rto <= now);
                    let due: Vec<(u64, u32)> = due.map(|(&psn, &(_, tag))| (psn, tag)).collect();
                    let deadline = sender.deadline(&config);
                    prop_assert!(due.is_empty() || deadline.is_some_and(|deadline| deadline <= now), "a late deadline");
                    let mut told = vec![];
                    sender.on_timer(&config, now, &mut |psn, tag| told.push((psn, tag)));
                    prop_assert_eq!(&told, &due);
                    for (psn, _) in due {
                        model.flying.remove(&psn);
                        model.lost.insert(psn);
                    }
                    let oldest = model.flying.values().map(|(sent, _)| *sent + config.rto).min();
                    prop_assert_eq!(sender.deadline(&config), oldest, "exact after a look");
                }
            }
            prop_assert_eq!(sender.in_flight(), model.in_flight());
            prop_assert_eq!(sender.deadline(&config).is_some(), !model.flying.is_empty());
            let oldest = model.flying.values().map(|(sent, _)| *sent + config.rto).min();
            prop_assert!(sender.deadline(&config) <= oldest || oldest.is_none(), "a late deadline");
            prop_assert!((config.mtu + config.header..=config.window).contains(&sender.allowed(&config, now).0.unwrap()));
        }
        prop_assert_eq!(receiver.received_bytes(), size);
        prop_assert_eq!(sender.in_flight(), 0);
    }
}

/// Sends packet after packet on a channel that loses nothing, one RTT per window; returns the timeouts.
fn timeouts_of(config: &UetConfig, packets: u64) -> u64 {
    let mut sender = sender_of(config, packets * MTU);
    let mut receiver = UetReceiver::new(config, packets * MTU);
    let (mut now, mut timeouts) = (Time::ZERO, 0);
    while !is_done(&sender) {
        let mut replies = vec![];
        while sender.ready(config) {
            let segment = sender.send(config, now, 0);
            let arrival = DataArrival {
                psn: segment.psn,
                payload: segment.payload,
                ack_request: !sender.ready(config),
                ..DataArrival::default()
            };
            replies.extend(receiver.on_data(config, Time::ZERO, &arrival).0);
        }
        now += RTT;
        if replies.is_empty() {
            now = sender.deadline(config).expect("something in flight");
            sender.on_timer(config, now, &mut |_, _| timeouts += 1);
        }
        replies.iter().for_each(|ack| {
            replied(&mut sender, config, now, ack);
        });
    }
    timeouts
}

#[test]
fn a_window_smaller_than_what_one_acknowledgement_covers_does_not_stall() {
    for window in 1..10 {
        assert_eq!(timeouts_of(&config("none", window, 8), 100), 0, "window of {window}");
    }
}

#[test]
fn the_span_outgrows_the_window_while_a_packet_is_missing() {
    // Window of 4 packets; packet 0 never arrives, 1 to 999 do, one by one: 3 of 4 slots remain usable.
    let config = config("none", 4, 1);
    let mut sender = sender_of(&config, 1000 * MTU);
    let mut receiver = UetReceiver::new(&config, 1000 * MTU);
    sender.send(&config, Time::ZERO, 77);
    for psn in 1..1000 {
        assert!(sender.ready(&config));
        let segment = sender.send(&config, Time::from_ns(psn), 0);
        let arrival = DataArrival { psn: segment.psn, payload: segment.payload, ..DataArrival::default() };
        let ack = receiver.on_data(&config, Time::ZERO, &arrival).0.expect("every packet is acknowledged");
        let acked = replied(&mut sender, &config, Time::from_ns(psn + 100), &ack);
        assert_eq!((acked.packets, acked.rtt), (1, Some(Time::from_ns(100))));
    }
    assert_eq!((sender.cumulative(), sender.in_flight()), (0, MTU + HEADER));
    assert_eq!(receiver.max_reorder_bytes(), 999 * MTU);
    let mut lost = vec![];
    sender.on_timer(&config, config.rto, &mut |psn, tag| lost.push((psn, tag)));
    assert_eq!(lost, [(0, 77)], "and is remembered with its tag");
    let segment = sender.send(&config, config.rto, 5);
    assert_eq!((segment.psn, segment.retransmission), (0, true));
    let arrival = DataArrival { psn: 0, payload: segment.payload, ..DataArrival::default() };
    let before = receiver.out_of_order();
    let (reply, complete) = receiver.on_data(&config, Time::ZERO, &arrival);
    assert!(complete && receiver.out_of_order() == before);
    let acked = replied(&mut sender, &config, config.rto + RTT, &reply.expect("the flow is complete"));
    assert_eq!((acked.packets, acked.rtt, acked.done), (1, None, true));
}

#[test]
fn acknowledgements_of_unsent_packets_are_ignored() {
    let config = config("dctcp", 8, 4);
    let mut sender = sender_of(&config, 10 * MTU);
    for psn in 0..4 {
        sender.send(&config, Time::ZERO, psn);
    }
    let ack = Reply { offset: 2, bitmap: u64::MAX, psn: 900, ..Reply::default() };
    let acked = replied(&mut sender, &config, RTT, &ack);
    assert_eq!((acked.packets, acked.rtt, sender.in_flight()), (2, None, 2 * (MTU + HEADER)));
    let ack = Reply { cumulative: 500, bitmap: 1, psn: 499, ..Reply::default() };
    assert_eq!(replied(&mut sender, &config, RTT, &ack).packets, 2);
    assert_eq!((sender.cumulative(), sender.in_flight(), is_done(&sender)), (4, 0, false));
    replied(&mut sender, &config, RTT, &Reply { cumulative: 4, psn: 9, nack: true, ..Reply::default() });
    assert_eq!(sender.peek(&config).map(|next| next.psn), Some(4), "packet 9 was not sent yet");
}

#[test]
fn memory_per_flow() {
    println!("sender {} B, receiver {} B", size_of::<UetSender>(), size_of::<UetReceiver>());
    assert!(size_of::<UetSender>() <= 384 && size_of::<UetReceiver>() <= 192);
}
