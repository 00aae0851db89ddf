//! Senders with unproven addresses: an endpoint keeps no state, replies with no more bytes than they sent, and none of
//! them ends, resets or starves a proven peer.

use crate::common::{MTU, Server, address, at, data, greeting, hello, settings, unknown};
use anabranch_endpoint::{
    Arrival, CloseReason, Event, Secret, Settings, To,
    header::{self, COOKIE_BYTES, Greeting, Packet, ProbeHeader},
};
use anabranch_transport::Reply;
use anabranch_units::Time;
use proptest::prelude::*;
use std::net::SocketAddr;

#[test]
fn hello_without_cookie_receives_a_retry_and_keeps_no_state() {
    let mut server = Server::new(settings());
    for number in 0..5000u32 {
        server.now += at(1);
        let from = address((number % 250) as u8, 1000 + (number % 60_000) as u16);
        let replies = server.respond(from, &hello(&greeting(number, 7), &[0; COOKIE_BYTES]));
        let [(To::Address(to), reply)] = &replies[..] else { panic!("{replies:?}") };
        assert!(to.at == from && matches!(Packet::decode(reply), Ok(Packet::Retry { .. })) && reply.len() < 100);
    }
    assert_eq!((server.endpoint.held(), server.numbers.len(), server.events()), ((0, 0), 0, vec![]));
    // Nor does a cookie of another secret, address, nonce or label help.
    let (from, ours) = (address(1, 7000), greeting(5, 6));
    let cookie = server.cookie(from, &ours);
    let mut other = Server::new(Settings { secret: Secret::of_seed(2), ..settings() });
    other.now = server.now;
    assert_eq!(other.welcome(from, &ours, &cookie), None);
    assert_eq!(server.welcome(address(1, 7001), &ours, &cookie), None);
    assert_eq!(server.welcome(from, &greeting(5, 7), &cookie), None);
    assert!(server.welcome(from, &ours, &cookie).is_some());
    let cookie = server.cookie(address(2, 7000), &ours);
    server.now += at(20_000);
    assert_eq!(server.welcome(address(2, 7000), &ours, &cookie), None);
}

#[test]
fn replies_to_unknown_addresses_are_rate_limited() {
    let mut server = Server::new(Settings { max_retries: 1000, ..settings() });
    let mut replies = 0;
    // 100,000 HELLOs in a second.
    for number in 0..100_000u32 {
        let from = address(1, number as u16);
        let bytes = hello(&greeting(number, 7), &[0; COOKIE_BYTES]);
        server.endpoint.handle(server.now, &unknown(from, server.now, &bytes));
        server.now += Time::from_us(10);
        if number % 100 == 0 {
            let mut out = Vec::new();
            while server.endpoint.poll_transmit(server.now, &mut out).is_some() {
                replies += 1;
            }
        }
    }
    // And those of the initial burst.
    assert!((1000..=1110).contains(&replies), "{replies}");
    let counters = server.endpoint.counters();
    assert_eq!(counters.retries + counters.retries_suppressed, 100_000);
}

#[test]
fn retries_beyond_the_queue_count_as_suppressed() {
    let mut server = Server::new(settings());
    // Nothing is sent in between: 256 replies may wait.
    for number in 0..1000u32 {
        server.arrive(address(1, number as u16), &hello(&greeting(number, 7), &[0; COOKIE_BYTES]));
    }
    let counters = server.endpoint.counters();
    assert_eq!((counters.retries, counters.retries_suppressed), (256, 744));
    assert_eq!(server.sent().len(), 256);
}

#[test]
fn hello_flood_leaves_retries_for_others() {
    let mut server = Server::new(settings());
    let (mut out, mut hellos_sent, mut retries_received) = (Vec::new(), 0, 0);
    for number in 0..30_000u32 {
        server.now += Time::from_us(100);
        let mut greet = |from, nonce| {
            let bytes = hello(&greeting(number, nonce), &[0; COOKIE_BYTES]);
            server.endpoint.handle(server.now, &unknown(from, server.now, &bytes));
        };
        greet(address((number % 250) as u8, (number % 60_000) as u16), 7);
        // At no fixed interval.
        let honest = address(251, 7000);
        if number >= 10_000 && number % 97 == 0 {
            hellos_sent += 1;
            greet(honest, 8);
        }
        while let Some(sent) = server.endpoint.poll_transmit(server.now, &mut out) {
            server.now += Time::from_us(1);
            retries_received += u32::from(sent.to == To::Address(honest.into()));
        }
    }
    assert_eq!((hellos_sent, retries_received), (206, 206));
}

#[test]
fn forged_or_replayed_hello_has_no_effect() {
    let mut server = Server::new(settings());
    let (from, theirs) = (address(1, 7000), greeting(5, 6));
    let old = greeting(90, 91);
    let cookie = server.cookie(from, &old);
    let recorded = hello(&old, &cookie);
    let ours = server.accept(from, &theirs);
    for forged in 0..1000u64 {
        server.respond(from, &hello(&greeting(1, forged), &[0; COOKIE_BYTES]));
        server.respond(from, &hello(&greeting(1, forged), &[forged as u8 | 1; COOKIE_BYTES]));
        // The WELCOME goes to the peer, which ignores it.
        server.respond(from, &recorded);
    }
    assert!(server.echoes(from, ours));
    assert_eq!(server.events(), []);
}

#[test]
fn restarted_peer_replaces_the_old_one_after_the_welcome() {
    let mut server = Server::new(settings());
    let from = address(1, 7000);
    let ours = server.accept(from, &greeting(5, 6));
    let anew = greeting(8, 9);
    let cookie = server.cookie(from, &anew);
    let next = server.welcome(from, &anew, &cookie).expect("a WELCOME");
    assert!(next != ours && server.echoes(from, ours), "the old one is still there");
    assert_eq!(server.events(), []);
    assert!(server.echoes(from, next) && !server.echoes(from, ours));
    assert_eq!(server.events(), [Event::Lost { peer: 0, reason: CloseReason::Restarted }]);
    let cookie = server.cookie(from, &anew);
    assert_eq!(server.welcome(from, &anew, &cookie), Some(next));
    assert!(server.echoes(from, next));
}

#[test]
fn bye_needs_the_nonce_of_the_handshake() {
    let mut server = Server::new(settings());
    let from = address(1, 7000);
    let ours = server.accept(from, &greeting(5, 6));
    let mut out = Vec::new();
    for guess in (0..100).filter(|guess| *guess != 6) {
        header::bye(&mut out, ours, guess, None);
        server.respond(from, &out);
    }
    header::bye(&mut out, ours.wrapping_add(1), 6, None);
    server.respond(from, &out);
    // The BYE of version 1.
    server.respond(from, &[&[1, 7, 0, 0], &ours.to_be_bytes()[..]].concat());
    assert!(server.echoes(from, ours) && server.events().is_empty());
    header::bye(&mut out, ours, 6, None);
    server.respond(from, &out);
    assert_eq!(server.events(), [Event::Lost { peer: 0, reason: CloseReason::Closed }]);
}

#[test]
fn memory_is_allocated_as_bytes_arrive() {
    let mut server = Server::new(settings());
    let ours = server.accept(address(1, 7000), &greeting(5, 6));
    let length = 16 << 20;
    let packets = u64::from(length as u32).div_ceil(u64::from(MTU));
    // The last packet of the first message within the span, then as many messages as packets.
    let bytes = data(ours, 0, (4000, 4000), length);
    server.respond(address(1, 7000), &bytes);
    let (held, _) = server.endpoint.held();
    assert!(held < 2048, "{held} B for a packet of {}", bytes.len());
    let mut server = Server::new(settings());
    let ours = server.accept(address(1, 7000), &greeting(5, 6));
    for message in 0..11u64 {
        server.respond(address(1, 7000), &data(ours, message, (message + 300, 0), length));
    }
    let (held, _) = server.endpoint.held();
    // The memory for the beginning of each message within the limit.
    assert!(held <= 11 * (64 + 17) * 1024, "{held} B");
    assert!(packets > 4096);
}

/// Memory of a message is allocated at once only up to the bytes that its sender has delivered; else it grows with the
/// bytes received.
#[test]
fn senders_with_earned_credit_allocate_whole_messages() {
    const MIB: u64 = 1 << 20;
    let (from, mut server) = (address(1, 7000), Server::new(settings()));
    let ours = server.accept(from, &greeting(5, 6));
    let begins = |server: &mut Server, message: u64, psn: u64, length: u64| {
        let before = server.endpoint.held().0;
        server.respond(from, &data(ours, message, (psn, 0), length));
        server.endpoint.held().0 - before
    };
    // Nothing is delivered yet: the first packet has 64 KiB and sixteen times the bytes received, with 256 B for the message.
    assert_eq!(begins(&mut server, 0, 0, MIB), 65_536 + 16_000 + 256);
    let packets = MIB.div_ceil(u64::from(MTU));
    for packet in 1..packets {
        server.respond(from, &data(ours, 0, (packet, packet as u32), MIB));
    }
    assert!(matches!(&server.events()[..], [Event::Received { bytes, .. }] if bytes.len() as u64 == MIB));
    assert_eq!(server.endpoint.held().0, 0);
    assert_eq!(begins(&mut server, 2, 2 * packets, MIB + 1), 65_536 + 16_000 + 256);
    let held = server.endpoint.held().0;
    // Memory that is held already is subtracted.
    assert_eq!(begins(&mut server, 1, packets, MIB - held), MIB - held + 256);
    assert_eq!(begins(&mut server, 4, 4 * packets, 200_000), 65_536 + 16_000 + 256);
}

const LIMIT: u64 = 4 << 20;

fn narrow() -> Settings {
    Settings { max_buffered_bytes: LIMIT, max_message: 1 << 19, max_held: 1 << 20, ..settings() }
}

#[test]
fn senders_with_earned_credit_keep_memory_beside_others() {
    let mut server = Server::new(narrow());
    let deliver = |server: &mut Server, from: SocketAddr, ours: u32, message: u64| {
        for packet in 0..200u32 {
            let psn = 200 * message + u64::from(packet);
            server.respond(from, &data(ours, message, (psn, packet), 200_000));
        }
        let received = server.events().iter().filter(|event| matches!(event, Event::Received { .. })).count();
        assert_eq!(received, 1, "message {message}");
    };
    let honest = address(200, 7000);
    let ours = server.accept(honest, &greeting(5, 6));
    deliver(&mut server, honest, ours, 0);
    let others = server.accept_all((0..40).map(|host| address(host, 7000)));
    for round in 0..400u64 {
        for &(from, ours) in &others {
            server.respond(from, &data(ours, 0, (round + 1, round as u32 + 1), 1 << 19));
        }
    }
    let (held, dropped) = (server.endpoint.held().0, server.endpoint.counters().no_capacity);
    assert!(dropped > 0 && (LIMIT / 4..=LIMIT / 2).contains(&held), "{held} B, {dropped}");
    for message in 1..5 {
        deliver(&mut server, honest, ours, message);
    }
    assert_eq!(server.endpoint.counters().no_capacity, dropped);
}

/// Returned memory holds another message, with any earlier content and any order of packets; it counts like other memory.
#[test]
fn recycled_memory_holds_another_message() {
    const LENGTH: u64 = 100_000;
    let packets = LENGTH / u64::from(MTU);
    let (from, mut server) = (address(1, 7000), Server::new(settings()));
    let ours = server.accept(from, &greeting(5, 6));
    let mut receive = |message: u64, order: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        for (count, packet) in order.enumerate() {
            let psn = message * packets + packet;
            server.respond(from, &data(ours, message, (psn, packet as u32), LENGTH));
            let min_rtt = if count as u64 + 1 == packets { LENGTH } else { (count as u64 + 1) * u64::from(MTU) };
            assert!(server.endpoint.held().0 >= min_rtt, "{count}");
        }
        let events = server.events();
        let [Event::Received { bytes, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!((server.endpoint.held().0, bytes.len() as u64), (0, LENGTH));
        assert!(bytes.iter().all(|byte| *byte == 1));
        let mut used = bytes.clone();
        used.fill(0xee);
        server.endpoint.recycle(used);
        bytes.clone()
    };
    receive(0, &mut (0..packets));
    receive(1, &mut (0..packets).rev());
    receive(2, &mut (0..packets).map(|at| at * 37 % packets));
    // No byte of the earlier content remains.
    let first = 3 * packets;
    for packet in (0..60).rev() {
        server.respond(from, &data(ours, 3, (first + packet, packet as u32), 59_001));
    }
    let events = server.events();
    let [Event::Received { bytes, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(bytes.len() == 59_001 && bytes.iter().all(|byte| *byte == 1));
}

#[test]
fn memory_of_all_peers_stays_within_the_limit() {
    let mut server = Server::new(narrow());
    let peers = server.accept_all((0..40).map(|number| address((number / 10) as u8, 7000 + number)));
    let mut most_of_first = 0;
    for round in 0..400u64 {
        for (number, &(from, ours)) in peers.iter().enumerate() {
            if number < 10 || round >= 200 {
                server.respond(from, &data(ours, 0, (round + 1, round as u32 + 1), 1 << 19));
            }
            let (held, _) = server.endpoint.held();
            assert!(held <= LIMIT, "{held} B");
        }
        if round < 200 {
            most_of_first = server.endpoint.held().0;
        }
    }
    assert!((LIMIT / 4..=LIMIT / 2).contains(&most_of_first), "{most_of_first} B of one address");
    assert!(server.endpoint.counters().no_capacity > 0);
    let (honest, mut got) = (address(200, 7000), false);
    for _ in 0..100 {
        server.now += at(3000);
        let ours = server.accept(honest, &greeting(5, server.now.ps()));
        server.events();
        for packet in 0..525u32 {
            server.respond(honest, &data(ours, 0, (u64::from(packet), packet), 1 << 19));
        }
        got = server
            .events()
            .iter()
            .any(|event| matches!(event, Event::Received { bytes, .. } if bytes.len() == 1 << 19));
        if got {
            break;
        }
    }
    assert!(got && server.endpoint.counters().evicted > 0);
}

/// The packet that causes the eviction of a stalled peer is stored, not dropped.
#[test]
fn eviction_makes_space_for_the_packet_at_hand() {
    let mut server = Server::new(narrow());
    let peers = server.accept_all((0..10).map(|number| address(1, 7000 + number)));
    // They hold all memory of their address.
    for packet in 0..300u64 {
        for &(from, ours) in &peers {
            server.respond(from, &data(ours, 0, (packet, packet as u32), 1 << 19));
        }
    }
    let before = server.endpoint.counters();
    assert!(before.no_capacity > 0 && before.evicted == 0, "{before:?}");
    server.now += at(3000);
    let newcomer = address(1, 8000);
    let ours = server.accept(newcomer, &greeting(50, 6));
    for packet in 0..500u64 {
        server.respond(newcomer, &data(ours, 0, (packet, packet as u32), 1 << 19));
        if server.endpoint.counters().evicted > 0 {
            break;
        }
    }
    let after = server.endpoint.counters();
    assert_eq!((after.evicted, after.no_capacity), (1, before.no_capacity));
}

#[test]
fn unproven_peers_are_evicted_first() {
    let mut server = Server::new(Settings { max_peers: 20, max_peers_per_address: 8, ..settings() });
    let honest = address(9, 7000);
    let ours = server.accept(honest, &greeting(5, 6));
    let greet = |server: &mut Server, host: u8, port: u16| {
        let of = greeting(u32::from(port), 6);
        let cookie = server.cookie(address(host, port), &of);
        server.welcome(address(host, port), &of, &cookie).is_some()
    };
    // One address may have eight places.
    let welcome = (0..100).filter(|port| greet(&mut server, 1, 1000 + port)).count();
    assert_eq!(welcome, 8);
    let welcome = (0..100).filter(|host| greet(&mut server, 10 + host, 1000)).count();
    assert_eq!(welcome, 11, "20 places, of which the first has one and the second eight");
    assert!(!greet(&mut server, 200, 1000), "all are new");
    server.now += at(1000);
    let welcome = (0..5).filter(|host| greet(&mut server, 200 + host, 1000)).count();
    assert_eq!((welcome, server.endpoint.counters().evicted), (5, 5));
    assert!(server.echoes(honest, ours), "whoever has sent stays");
    let mut server = Server::new(Settings { idle_timeout: at(60_000), ..settings() });
    assert!(greet(&mut server, 1, 1000));
    server.now += at(31_000);
    server.sent();
    assert_eq!(server.events(), [Event::Lost { peer: 0, reason: CloseReason::Idle }]);
}

#[test]
fn one_peer_leaves_queue_space_for_acks_to_others() {
    let mut server = Server::new(settings());
    let (greedy, honest) = (address(1, 7000), address(2, 7000));
    let (one, two) = (server.accept(greedy, &greeting(5, 6)), server.accept(honest, &greeting(5, 6)));
    let mut out = Vec::new();
    let probe = ProbeHeader { stream: 3, tag: 4, transmission: 4, ..ProbeHeader::default() };
    for (peer, from, ours, count) in [(0, greedy, one, 5000), (1, honest, two, 100)] {
        header::probe(&mut out, ours, &probe, 100);
        for _ in 0..count {
            let arrival = Arrival { peer: Some(peer), ..unknown(from, server.now, &out) };
            server.endpoint.handle(server.now, &arrival);
        }
    }
    assert_eq!(server.endpoint.counters().control_dropped, 5000 - 1024);
    let mut echoed = [0; 2];
    while let Some(next) = server.endpoint.poll_timeout().filter(|_| echoed[1] < 100) {
        server.now = server.now.max(next);
        if let Some(sent) = server.endpoint.poll_transmit(server.now, &mut out) {
            let To::Peer(peer) = sent.to else { panic!("{sent:?}") };
            echoed[peer as usize] += 1;
        }
    }
    assert_eq!(echoed[1], 100);
}

/// Returns one datagram of every kind with the connection number `ours`.
fn every_kind(ours: u32) -> Vec<Vec<u8>> {
    let probe = ProbeHeader { stream: 3, tag: 4, transmission: 4, ..ProbeHeader::default() };
    let ack = Reply { psn: 1, tag: 2, cumulative: 1, ..Reply::default() };
    let written = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let of_another_size = Greeting { mtu: 64, ..greeting(5, 6) };
    // Version 1, cut to several lengths.
    let mut decode_foreign = written(&|out| header::hello(out, &greeting(5, 6), &[0; COOKIE_BYTES], 200));
    decode_foreign[0] = 1;
    decode_foreign[52..].fill(0);
    vec![
        written(&|out| header::hello(out, &greeting(5, 6), &[0; COOKIE_BYTES], 0)),
        written(&|out| header::hello(out, &greeting(5, 7), &[1; COOKIE_BYTES], 0)),
        written(&|out| header::hello(out, &of_another_size, &[0; COOKIE_BYTES], 0)),
        decode_foreign[..52].to_vec(),
        decode_foreign[..64].to_vec(),
        decode_foreign,
        written(&|out| header::welcome(out, ours, &greeting(5, 6))),
        written(&|out| header::retry(out, ours, 6, &[1; COOKIE_BYTES])),
        data(ours, 0, (0, 0), 1),
        data(ours, 0, (0, 0), 0),
        data(ours, 1, (900, 0), 400)[..header::DATA_HEADER].to_vec(),
        written(&|out| header::ack(out, ours, 1, &ack, 0, Time::ZERO)),
        written(&|out| header::probe(out, ours, &probe, 0)),
        written(&|out| header::echo(out, ours, &probe)),
        written(&|out| header::bye(out, ours, 6, None)),
        written(&|out| header::bye(out, ours, 7, None)),
    ]
}

#[test]
fn no_reply_is_longer_than_its_request() {
    let count = every_kind(0).len();
    let mut replied = 0;
    for kind in 0..count {
        for is_peer in [true, false] {
            let mut server = Server::new(settings());
            let ours = if is_peer { server.accept(address(1, 7000), &greeting(5, 6)) } else { 77 };
            let bytes = &every_kind(ours)[kind];
            // An ACK of a timer comes after later requests: in all, replies are no longer than requests.
            let (mut received, mut sent) = (0, 0);
            // With up to 39 bytes cut off.
            for cut in 0..bytes.len().min(40) {
                let bytes = &bytes[..bytes.len() - cut];
                let replies = server.respond(address(1, 7000), bytes);
                let length: usize = replies.iter().map(|(_, reply)| reply.len()).sum();
                (received, sent) = (received + bytes.len(), sent + length);
                assert!(sent <= received, "{length} B for {bytes:?}");
                replied += replies.len();
            }
        }
    }
    assert!(replied > 8, "{replied}");
    let mut server = Server::new(settings());
    let of = greeting(5, 6);
    let cookie = server.cookie(address(1, 7000), &of);
    let mut out = Vec::new();
    header::hello(&mut out, &of, &cookie, 0);
    let replies = server.respond(address(1, 7000), &out);
    assert!(replies.len() == 1 && replies[0].1.len() <= out.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Arbitrary datagrams by senders that have seen no local one.
    #[test]
    fn off_path_senders_have_no_effect(
        packets in prop::collection::vec((any::<u32>(), 0usize..16, any::<u16>(), any::<[u8; 3]>()), 1..60), forged in any::<bool>(),
    ) {
        let mut server = Server::new(settings());
        let honest = address(1, 7000);
        let ours = server.accept(honest, &greeting(0x1234_5678, 0x1234_5678_9abc_def0));
        let before = server.endpoint.held();
        for (guess, kind, port, [at, mask, cut]) in packets {
            let guess = if guess == ours { 0 } else { guess };
            let mut bytes = every_kind(guess)[kind].clone();
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= mask;
            bytes.truncate(bytes.len() - usize::from(cut) % 3 * bytes.len() / 4);
            server.respond(if forged { honest } else { address(2, port) }, &bytes);
        }
        prop_assert!(server.echoes(honest, ours));
        prop_assert_eq!(server.endpoint.held(), before);
        let others = server.events().into_iter().filter(|event| !matches!(event, Event::Refused { .. })).count();
        prop_assert_eq!(others, 0);
    }
}

/// It lists no stream that has not sent data, so it is never longer than what has arrived.
#[test]
fn a_bye_states_what_has_arrived() {
    for length in [0, 1000, 5000] {
        let mut server = Server::new(settings());
        let from = address(2, 3000);
        let ours = server.accept(from, &greeting(9, 5));
        server.sent();
        if length > 0 {
            server.arrive(from, &data(ours, 0, (0, 0), length));
        }
        server.endpoint.close(0);
        let [(_, bye)] = &server.sent()[..] else { panic!("not one datagram") };
        let Ok(Packet::Bye { streams, part: [0, 1], .. }) = Packet::decode(bye) else { panic!("{bye:?}") };
        let expected = if length > 0 { vec![(1, 1)] } else { Vec::new() };
        assert_eq!(header::bye_list(streams).collect::<Vec<_>>(), expected);
    }
}

/// In a plane that it has not sent in yet a peer is known by its connection number, and from then on by its address there too.
#[test]
fn address_in_another_plane_is_the_first_to_send() {
    let of = |planes| Greeting { planes, ..greeting(5, 6) };
    let mut server = Server::new(Settings { planes: 2, ..settings() });
    // It greets over label 1, in the second plane.
    let (first, second, other) = (address(1, 7000), address(2, 7000), address(3, 7000));
    let cookie = server.cookie(second, &of(2));
    let ours = server.welcome(second, &of(2), &cookie).expect("a WELCOME");
    assert!(server.echoes(second, ours) && !server.echoes(other, ours), "its address in this plane is known");
    server.label = 0;
    assert!(!server.echoes(first, ours ^ 1), "another connection");
    assert!(server.echoes(first, ours));
    assert!(!server.echoes(other, ours) && server.echoes(first, ours));
    // Other numbers of planes are refused.
    let replies = server.respond(other, &hello(&of(1), &[0; header::COOKIE_BYTES]));
    let is_refusal = |bytes: &[u8]| matches!(Packet::decode(bytes), Ok(Packet::Welcome { greeting, .. }) if (greeting.connection, greeting.planes) == (0, 2));
    assert!(replies.iter().any(|(_, bytes)| is_refusal(bytes)), "{replies:?}");
}
