//! A hostile peer: an endpoint neither panics nor exceeds its limits, and continues to serve others.

use crate::common::{MTU, greeting, hello, vouched};
use anabranch_endpoint::{
    CloseReason, Endpoint, Event, Placed, Placement, Settings,
    header::{self, COOKIE_BYTES, Cookie, Data, Greeting, Packet, ProbeHeader},
};
use anabranch_random::Stream;
use anabranch_transport::Reply;
use anabranch_units::Time;
use proptest::prelude::*;

const NO_COOKIE: Cookie = [0; COOKIE_BYTES];

fn settings(transport: &str) -> Settings {
    let transport = crate::common::transport(transport);
    Settings {
        transport,
        calibrations: 1,
        span: 128,
        max_message: 10_000,
        max_held: 50_000,
        max_streams: 3,
        max_peers: 2,
        ..Settings::default()
    }
}

fn sent(endpoint: &mut Endpoint, now: &mut Time) -> Vec<Vec<u8>> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    for _ in 0..200 {
        *now += Time::from_us(2);
        endpoint.handle_timeout(*now);
        match endpoint.poll_transmit(*now, &mut out) {
            Some(sent) => all.push([&out[..], &sent.payload].concat()),
            None => break,
        }
    }
    all
}

/// Returns an endpoint with an open stream to peer 0, and the connection number for datagrams of peer 0.
fn accepted(transport: &str) -> (Endpoint, u32, Time) {
    let (mut endpoint, mut now, mut out) = (Endpoint::new(settings(transport)), Time::ZERO, Vec::new());
    endpoint.handle(now, &vouched(0, now, &hello(&greeting(77, 5), &NO_COOKIE)));
    let welcome = sent(&mut endpoint, &mut now);
    let Ok(Packet::Welcome { connection: 77, greeting }) = Packet::decode(&welcome[0]) else {
        panic!("no welcome: {welcome:?}")
    };
    let ours = greeting.connection;
    endpoint.send(now, 0, 0, vec![9u8; 10_000].into()).unwrap();
    for question in sent(&mut endpoint, &mut now) {
        let Ok(Packet::Probe { probe, .. }) = Packet::decode(&question) else { panic!("no probe") };
        header::echo(&mut out, ours, &probe);
        endpoint.handle(now, &vouched(0, now, &out));
    }
    assert!(endpoint.round_trip(0).is_some());
    (endpoint, ours, now)
}

struct Places(Vec<u8>);

const HEAD: usize = 32;

impl Placement for Places {
    fn head(&mut self, _peer: u32, steering: u64, length: u64) -> Option<usize> {
        (steering == 1 && length <= self.0.len() as u64).then_some(HEAD)
    }
    fn place(&mut self, _peer: u32, _steering: u64, from: u64, bytes: &[u8]) {
        self.0[from as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

fn number(draws: &mut Stream) -> u64 {
    match draws.below(6) {
        0 => draws.below(4),
        1 => draws.below(20),
        2 => draws.below(300),
        3 => u64::from(u32::MAX) - draws.below(2),
        4 => draws.bits(),
        _ => (1 << draws.below(64)) - draws.below(2),
    }
}

fn hostile(draws: &mut Stream, ours: u32, out: &mut Vec<u8>) {
    let time = |draws: &mut Stream| Time::from_ps(number(draws));
    match draws.below(5) {
        0 | 1 => {
            let length = match draws.below(3) {
                0 => draws.below(12_000),
                _ => number(draws),
            };
            let index = number(draws).min(draws.below(12)) as u32;
            let fitting = length.saturating_sub(u64::from(index) * u64::from(MTU)).min(u64::from(MTU)) as u32;
            let data = Data {
                stream: draws.below(5) as u32,
                payload: if draws.chance(3, 4) { fitting } else { number(draws) as u32 & 0xffff },
                psn: number(draws),
                tag: number(draws) as u32,
                message: number(draws),
                length,
                index,
                steering: draws.below(3),
                transmission: 7,
                ack_request: draws.chance(1, 2),
                ..Data::default()
            };
            header::data(out, ours, &data);
            if draws.chance(2, 3) {
                out.resize(out.len() + data.payload as usize, 1);
            }
        }
        2 => {
            let ack = Reply {
                psn: number(draws),
                tag: number(draws) as u32,
                cumulative: number(draws),
                bitmap: number(draws),
                offset: number(draws) as u32,
                ecn: draws.chance(1, 2),
                cnp: draws.chance(1, 2),
                nack: draws.chance(1, 2),
                last_hop: false,
            };
            let (transmission, held) = (number(draws) as u32, time(draws));
            header::ack(out, ours, draws.below(3) as u32, &ack, transmission, held);
        }
        3 => {
            let (stream, tag) = (number(draws) as u32, number(draws) as u32);
            let probe = ProbeHeader {
                stream,
                tag,
                transmission: number(draws) as u32,
                held: time(draws),
                ecn: number(draws).is_multiple_of(2),
            };
            if draws.chance(1, 2) { header::probe(out, ours, &probe, 30) } else { header::echo(out, ours, &probe) }
        }
        _ => {
            out.clear();
            out.extend_from_slice(&[header::VERSION, draws.below(10) as u8, 0, 0]);
            out.extend_from_slice(&ours.to_be_bytes());
            let more = draws.below(80);
            out.extend((0..more).map(|_| draws.bits() as u8));
            // A hostile sender can compute the check of a header.
            let sizes = [None, None, None, Some(64), Some(56), Some(28), Some(28), Some(20)];
            let size = sizes.get(usize::from(out[1])).copied().flatten().filter(|size| *size <= out.len());
            if let Some(size) = size {
                out[8..12].fill(0);
                let check = header::crc32c(&out[..size]);
                out[8..12].copy_from_slice(&check.to_be_bytes());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn arbitrary_datagrams_are_handled(seed in any::<u64>(), roce in any::<bool>()) {
        let mut draws = Stream::keyed(seed, 0, "hostile");
        let (mut endpoint, ours, mut now) = accepted(if roce { "roce" } else { "uet" });
        let mut out = Vec::new();
        let mut places = Places(vec![0; 8000]);
        for _ in 0..200 {
            hostile(&mut draws, ours, &mut out);
            endpoint.handle_with_placement(now, &vouched(0, now, &out), &mut places);
            now += Time::from_us(draws.below(50));
            sent(&mut endpoint, &mut now);
            let (bytes, packets) = endpoint.held();
            // 50,000 B from the peer and 10,000 B on their path to it; three streams of 128 packets, and ACKs.
            prop_assert!(bytes <= 60_000 && packets <= 3 * 128 + 300, "{} B, {} packets", bytes, packets);
            while let Some(event) = endpoint.poll_event() {
                if matches!(event, Event::Lost { .. }) {
                    return Ok(());
                }
            }
        }
        let of = Greeting { labels: 1, span: 1, max_message: 1, ..greeting(3, 1) };
        endpoint.handle(now, &vouched(1, now, &hello(&of, &NO_COOKIE)));
        let mut welcome = false;
        for _ in 0..100 {
            let acks = sent(&mut endpoint, &mut now);
            welcome |= acks.iter().any(|out| matches!(Packet::decode(out), Ok(Packet::Welcome { connection: 3, .. })));
            now += Time::from_us(10);
        }
        prop_assert!(welcome);
    }
}

#[test]
fn peer_with_another_mtu_is_notified() {
    let (mut endpoint, mut now) = (Endpoint::new(settings("uet")), Time::ZERO);
    let of = Greeting { mtu: 4096, ..greeting(77, 5) };
    endpoint.handle(now, &vouched(0, now, &hello(&of, &NO_COOKIE)));
    let acks = sent(&mut endpoint, &mut now);
    let Ok(Packet::Welcome { greeting, .. }) = Packet::decode(&acks[0]) else { panic!("no welcome") };
    assert_eq!((greeting.connection, greeting.mtu, endpoint.counters().refused), (0, MTU, 1));
}

/// From version 2 on greetings have the CRC32C of the datagram at offset 52.
fn check(greeting: &mut [u8]) {
    greeting[52..56].fill(0);
    let check = header::crc32c(greeting);
    greeting[52..56].copy_from_slice(&check.to_be_bytes());
}

#[test]
fn peer_with_another_version_is_notified() {
    // Every version keeps the first sixteen bytes, the nonce and the check.
    let (mut endpoint, mut now) = (Endpoint::new(settings("uet")), Time::ZERO);
    let mut out = hello(&greeting(77, 5), &NO_COOKIE);
    out[0] = header::VERSION + 1;
    out[60..].fill(0xff);
    check(&mut out);
    endpoint.handle(now, &vouched(0, now, &out));
    let acks = sent(&mut endpoint, &mut now);
    let Ok(Packet::Welcome { connection: 77, greeting }) = Packet::decode(&acks[0]) else { panic!("no welcome") };
    assert_eq!((greeting.connection, greeting.nonce), (0, 5), "a refusal without a connection");
    assert!(acks.len() == 1 && acks[0].len() < out.len() && endpoint.counters().refused == 1);

    let reason = CloseReason::Version { theirs: header::VERSION + 1, ours: header::VERSION };
    assert_eq!(endpoint.poll_event(), Some(Event::Refused { peer: Some(0), from: None, reason }), "both ends say so");

    // The refusal must come from the called peer and carry the local nonce.
    endpoint.connect(now, 1);
    let hello = sent(&mut endpoint, &mut now).remove(0);
    let Ok(Packet::Hello { greeting, .. }) = Packet::decode(&hello) else { panic!("no hello") };
    let mut reply = |peer, nonce| {
        let refused = Greeting { connection: 0, nonce, ..greeting };
        header::welcome(&mut out, greeting.connection, &refused);
        // Version 1 ends after the labels.
        out[0] = 1;
        out.truncate(52);
        endpoint.handle(now, &vouched(peer, now, &out));
        std::iter::from_fn(|| endpoint.poll_event()).collect::<Vec<_>>()
    };
    assert_eq!((reply(2, greeting.nonce), reply(1, greeting.nonce ^ 1)), (vec![], vec![]));
    let reason = CloseReason::Version { theirs: 1, ours: header::VERSION };
    assert_eq!(reply(1, greeting.nonce), [Event::Lost { peer: 1, reason }]);
}

/// A damaged payload is dropped and retransmitted; without a CRC32C it is undetected.
#[test]
fn damaged_payload_counts_as_lost() {
    let contents = [7u8; 300];
    let mut changed = contents;
    changed[299] ^= 1;
    for (is_checked, steering) in [(true, 0), (true, 1), (false, 0)] {
        let (mut endpoint, ours, now) = accepted("uet");
        let mut places = Places(vec![0; 4000]);
        while endpoint.poll_event().is_some() {}
        let data = Data {
            stream: 1,
            payload: 300,
            length: 300,
            checksum: is_checked.then(|| header::crc32c(&contents)),
            steering,
            transmission: 7,
            ack_request: true,
            ..Data::default()
        };
        let mut come = |payload: &[u8]| {
            let mut out = Vec::new();
            header::data(&mut out, ours, &data);
            out.extend_from_slice(payload);
            endpoint.handle_with_placement(now, &vouched(0, now, &out), &mut places);
            let events: Vec<Event> = std::iter::from_fn(|| endpoint.poll_event()).collect();
            (events.len(), events.iter().any(|event| matches!(event, Event::Received { .. })))
        };
        assert_eq!(come(&changed), if is_checked { (0, false) } else { (1, true) });
        assert_eq!(come(&contents), if is_checked { (1, true) } else { (0, false) });
        assert_eq!(endpoint.counters().damaged, u64::from(is_checked));
        assert_eq!(endpoint.counters().refused, 0);
        if steering == 1 {
            assert_eq!(places.0[HEAD..300], contents[HEAD..], "not a byte of the damaged one");
        }
    }
}

/// Packets with steering value 1 are placed in any order and any number of times; the head is reported on completion.
/// Other messages are kept.
#[test]
fn messages_are_placed_directly() {
    let contents: Vec<u8> = (0..3500u32).map(|at| (at % 251) as u8).collect();
    for (steering, is_placed) in [(1, true), (2, false), (0, false)] {
        let (mut endpoint, ours, now) = accepted("uet");
        let (mut places, mut out) = (Places(vec![0; 4000]), Vec::new());
        while endpoint.poll_event().is_some() {}
        let before = endpoint.held().0;
        for index in [3u32, 1, 1, 0, 3, 2] {
            let payload = contents.chunks(MTU as usize).nth(index as usize).unwrap();
            let data = Data {
                stream: 1,
                payload: payload.len() as u32,
                psn: u64::from(index),
                length: 3500,
                index,
                steering,
                transmission: 7,
                ..Data::default()
            };
            header::data(&mut out, ours, &data);
            out.extend_from_slice(payload);
            assert_eq!(endpoint.poll_event(), None, "packet 2 is the last to come");
            endpoint.handle_with_placement(now, &vouched(0, now, &out), &mut places);
            // The bytes that it keeps, and the overhead of every message.
            let held = endpoint.held().0 - before;
            let max = 256 + if is_placed { HEAD as u64 } else { 3500 };
            assert!((HEAD as u64..=max).contains(&held), "{held}");
        }
        let (bytes, placed) = match is_placed {
            true => (&contents[..HEAD], Some(Placed { steering, bytes: 3500 - HEAD as u64 })),
            false => (&contents[..], None),
        };
        let event = endpoint.poll_event().unwrap();
        let Event::Received { began, .. } = event else { panic!("{event:?}") };
        assert_eq!(event, Event::Received { peer: 0, stream: 1, message: 0, bytes: bytes.to_vec(), placed, began });
        assert_eq!(began, now);
        assert_eq!(endpoint.held().0, before);
        let expected = if is_placed { &contents[HEAD..] } else { &[0; 3500 - HEAD] };
        assert_eq!(places.0[HEAD..3500], *expected);
    }
}

#[test]
fn superseded_acks_are_merged() {
    let (mut endpoint, ours, mut now) = accepted("uet");
    let mut ack = |now: &mut Time, packets: &[(u64, u32)]| {
        let mut out = Vec::new();
        for &(psn, tag) in packets {
            let index = psn as u32;
            let data = Data {
                stream: 1,
                payload: MTU,
                psn,
                tag,
                length: 10_000,
                index,
                transmission: 7,
                ack_request: true,
                ..Data::default()
            };
            header::data(&mut out, ours, &data);
            out.resize(out.len() + MTU as usize, 1);
            endpoint.handle(*now, &vouched(0, *now, &out));
        }
        let acks = sent(&mut endpoint, now);
        let ack = |out: &Vec<u8>| match Packet::decode(out) {
            Ok(Packet::Ack { ack, .. }) => Some((ack.psn, ack.cumulative)),
            _ => None,
        };
        acks.iter().filter_map(ack).collect::<Vec<_>>()
    };
    // Three packets of one path at once and in order: the last ACK covers the others.
    assert_eq!(ack(&mut now, &[(0, 7), (1, 7), (2, 7)]), [(2, 3)]);
    // Each path has its own ACK, and behind a missing packet every ACK differs.
    assert_eq!(ack(&mut now, &[(3, 7), (4, 8)]), [(3, 4), (4, 5)]);
    assert_eq!(ack(&mut now, &[(6, 8), (7, 8)]), [(6, 5), (7, 5)]);
}
