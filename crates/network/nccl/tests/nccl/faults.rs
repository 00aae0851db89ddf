//! Failures reach both peers within a stated time, and nothing hangs.

use crate::common::{Pair, Shared, settings};
use anabranch_endpoint::{Settings, header::Protection};
use anabranch_units::{Rate, Time};
use anabranch_wire::memory::Link;
use nccl_net_anabranch::{
    Buffer, Connecting,
    abi::Code,
    handle::{Authentication, Handle},
};

fn cut(pair: &Pair) {
    let mut dead = Link::new(Rate::gbps(10), Time::from_us(5));
    dead.cuts.push((Time::ZERO, Time::MAX));
    for label in 0..4 {
        pair.network.set(0, 1, label, dead.clone());
        pair.network.set(1, 0, label, dead.clone());
    }
}

#[test]
fn disconnected_peer_fails_both_waiting_requests() {
    let mut pair = Pair::usual(1);
    let (sender, receiver) = pair.connect(0);
    let (first, memory) = pair.receive(1, receiver, 100_000, 7);
    let sent = pair.send(0, sender, &[5; 100_000], 7).unwrap();
    assert_eq!(pair.finish(0, sent).unwrap().sizes(), [100_000]);
    assert_eq!(pair.finish(1, first).unwrap().sizes(), [100_000]);
    assert_eq!(memory.bytes(), [5; 100_000]);
    let (waits, _) = pair.receive(1, receiver, 8, 7);
    cut(&pair);
    let began = pair.network.now();
    // The sender has nothing in flight, and the receiver waits for no ACK: pings, one per second, detect the failure.
    assert_eq!(pair.finish(1, waits).unwrap_err().code, Code::Remote);
    // Within the timeout (1 s), a second until the ping, and the timeouts that count it.
    assert!(pair.network.now() - began < Time::from_us(4_000_000), "{}", pair.network.now() - began);
    let failure = pair.until("the sender", |pair| pair.nodes[0].send(sender, Shared::of(vec![]), 0, 7).err());
    assert_eq!(failure.code, Code::Remote);
    assert!(failure.report().is_some_and(|reason| reason.contains("1 s")), "{failure}");
    let again = pair.nodes[0].send(sender, Shared::of(vec![]), 0, 7).unwrap_err();
    assert_eq!((again.code, again.report()), (Code::Remote, None), "reported once");
    pair.nodes[0].close_sender(sender).unwrap();
    pair.nodes[1].close_receiver(receiver).unwrap();
    assert!(pair.nodes.iter().all(|node| !node.is_used() && node.requests() == 0));
}

/// A failure whose result a caller drops (a call that closes, the helper thread) is reported by the next call.
#[test]
fn dropped_failures_are_reported_later() {
    let mut pair = Pair::usual(7);
    let ends = [pair.connect(0), pair.connect(0)];
    cut(&pair);
    pair.send(0, ends[0].0, &[], 7).ok();
    let lost = |pair: &mut Pair| pair.nodes[0].send(ends[0].0, Shared::of(vec![]), 0, 7).err();
    let first = pair.until("the timeout", lost);
    // Its result is dropped unlogged, and its sender is closed.
    drop(first);
    pair.nodes[0].close_sender(ends[0].0).unwrap();
    let second = pair.nodes[0].send(ends[1].0, Shared::of(vec![]), 0, 7).unwrap_err();
    assert!(second.report().is_some_and(|reason| reason.contains("timed out")), "{second}");
    assert_eq!(second.report(), None);
}

#[test]
fn an_idle_connection_lives() {
    let mut pair = Pair::usual(2);
    let (sender, receiver) = pair.connect(0);
    let end = pair.network.now() + Time::from_us(30_000_000);
    while pair.network.now() < end {
        pair.step();
    }
    let (request, _) = pair.receive(1, receiver, 8, 0);
    pair.send(0, sender, &[1; 8], 0).unwrap();
    assert_eq!(pair.finish(1, request).unwrap().sizes(), [8]);
}

#[test]
fn a_receive_smaller_than_its_send_is_wrong_at_both_ends() {
    let mut pair = Pair::usual(3);
    let (sender, receiver) = pair.connect(0);
    let (request, _) = pair.receive(1, receiver, 99, 0);
    let failure = pair.send(0, sender, &[1; 100], 0).unwrap_err();
    assert_eq!(failure.code, Code::Usage);
    assert!(failure.message.contains("100 B") && failure.message.contains("99 B"), "{failure}");
    let failure = pair.finish(1, request).unwrap_err();
    assert_eq!(failure.code, Code::Usage);
    assert!(failure.message.contains("100 B"), "{failure}");
}

#[test]
fn handles_that_lead_nowhere() {
    let mut pair = Pair::usual(4);
    let (listener, mut handle) = pair.listen(1);
    handle.payload = 2000;
    let failure = pair.nodes[0].connect(&handle, None, 0, &[]).unwrap_err();
    assert_eq!(failure.code, Code::Usage);
    assert!(failure.message.contains("2000 B") && failure.message.contains("ANABRANCH_MTU"), "{failure}");
    handle.payload = 1000;
    pair.nodes[1].close_listener(listener).unwrap();
    let failure = pair.refused(0, &handle);
    assert_eq!(failure.code, Code::Remote);
    assert!(failure.message.contains("does not listen"), "{failure}");
    assert!(!pair.nodes[0].is_used());
}

#[test]
fn mtu_mismatch_is_reported() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let mut pair = Pair::new(5, &link, [settings(1, 1000, 4), settings(2, 1400, 4)]);
    let (_, mut handle) = pair.listen(1);
    // Pretends that the handle had been right.
    handle.payload = 1000;
    let failure = pair.refused(0, &handle);
    assert_eq!(failure.code, Code::Usage);
    assert!(failure.message.contains("1400 B") && failure.message.contains("1000 B"), "{failure}");
}

#[test]
fn key_mismatch_is_reported() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let of = || [settings(1, 1000, 4), settings(2, 1000, 4)];
    let mut pair: Pair = Pair::authenticated(5, &link, of(), [Protection::Control; 2]);
    let (_, handle) = pair.listen(1);
    let mut refused = |authentication, words: &[&str]| {
        let mut handle = handle;
        handle.authentication = authentication;
        let failure = pair.refused(0, &handle);
        assert_eq!(failure.code, Code::Usage);
        assert!(words.iter().all(|word| failure.message.contains(word)), "{failure}");
    };
    refused(Authentication::Off, &["10.0.0.2:7000", "does not authenticate", "ANABRANCH_AUTHENTICATE"]);
    refused(Authentication::Job([9; 32]), &["10.0.0.2:7000", "another key"]);
    refused(Authentication::File, &["10.0.0.2:7000", "another key"]);
    let mut pair = Pair::new(5, &link, of());
    let (_, handle) = pair.listen(1);
    let handle = Handle { authentication: Authentication::Job([2; 32]), ..handle };
    let failure = pair.nodes[0].connect(&handle, None, 0, &[]).unwrap_err();
    assert!(failure.message.contains("does authenticate packets and this one does not"), "{failure}");
}

#[test]
fn closing_early_fails_the_other_end() {
    let mut pair = Pair::usual(6);
    let (sender, receiver) = pair.connect(0);
    let (waits, _) = pair.receive(1, receiver, 8, 0);
    pair.nodes[0].close_sender(sender).unwrap();
    let failure = pair.finish(1, waits).unwrap_err();
    assert_eq!(failure.code, Code::Remote);
    assert!(failure.message.contains("closed"), "{failure}");
    pair.nodes[1].close_receiver(receiver).unwrap();

    let (sender, receiver) = pair.connect(1);
    pair.receive(0, receiver, 8, 0);
    pair.nodes[0].close_receiver(receiver).unwrap();
    let failure = pair.until("the sender", |pair| pair.nodes[1].send(sender, Shared::of(vec![0; 4 << 20]), 8, 1).err());
    assert_eq!(failure.code, Code::Remote);
    // A sender that closes before the connection is accepted.
    let (listener, handle) = pair.listen(0);
    let mut attempt = None;
    let sender = pair.until("a sender", |pair| match pair.nodes[1].connect(&handle, attempt, 0, &[]).unwrap() {
        Connecting::Wait(id) => {
            attempt = Some(id);
            None
        }
        Connecting::Done(id) => Some(id),
    });
    pair.nodes[1].close_sender(sender).unwrap();
    pair.until("quiet", |pair| pair.nodes[1].is_idle().then_some(()));
    let receiver = pair.until("a receiver", |pair| pair.nodes[0].accept(listener).unwrap());
    let memory = Buffer { memory: Shared::of(vec![]), size: 0, tag: 0 };
    assert_eq!(pair.nodes[0].receive(receiver, vec![memory]).unwrap_err().code, Code::Remote);
}

/// A receiver that has all data may close and leave: the sender receives the number of complete receives, if not every ACK.
#[test]
fn requests_completed_before_a_close_succeed() {
    for seed in 0..20 {
        let mut pair = Pair::usual(seed);
        let (sender, receiver) = pair.connect(0);
        let (received, _) = pair.receive(1, receiver, 50_000, 0);
        let sent = pair.send(0, sender, &[1; 50_000], 0).unwrap();
        pair.finish(1, received).unwrap();
        pair.nodes[1].close_receiver(receiver).unwrap();
        let limit = pair.network.now() + Time::from_us(100_000);
        while !pair.nodes[1].is_idle() && pair.network.now() < limit {
            pair.step();
        }
        pair.nodes[1].leave();
        assert_eq!(pair.finish(0, sent).unwrap().sizes(), [50_000]);
        assert_eq!(pair.nodes[0].send(sender, Shared::of(vec![]), 0, 0).unwrap_err().code, Code::Remote);
        pair.nodes[0].close_sender(sender).unwrap();
    }
}

/// Its line is busy, so that the BYE has to wait.
#[test]
fn a_rank_that_leaves_while_it_sends_disconnects() {
    let link = Link::new(Rate::gbps(10), Time::from_us(5));
    let strict = |seed| Settings { catch_up: Time::ZERO, ..settings(seed, 1000, 4) };
    let mut pair = Pair::new(3, &link, [3, 4].map(strict));
    let (sender, receiver) = pair.connect(1);
    let (waits, _) = pair.receive(0, receiver, 1 << 20, 0);
    pair.send(1, sender, &[1; 1 << 20], 0).unwrap();
    let packets = |pair: &mut Pair| pair.nodes[1].driver().endpoint().0.counters().packets;
    pair.until("data", |pair| {
        let before = packets(pair);
        pair.nodes[1].work().unwrap();
        (packets(pair) > before).then_some(())
    });
    pair.nodes[1].leave();
    // It has gone. Data before the BYE take 1 us a packet, the way 5 us.
    let limit = pair.network.now() + Time::from_us(200);
    let failure = loop {
        pair.nodes[0].work().unwrap();
        match pair.nodes[0].test(waits) {
            Err(failure) => break failure,
            _ => assert!(pair.network.now() < limit, "no BYE"),
        }
        pair.network.advance(limit);
    };
    assert!(failure.message.contains("has disconnected"), "{failure}");
}

#[test]
fn invalid_identifiers_and_too_many_requests_fail() {
    let mut pair = Pair::usual(7);
    let (sender, receiver) = pair.connect(0);
    let requests: Vec<_> = (0..32).map(|_| pair.receive(1, receiver, 8, 0).0).collect();
    let buffer = || Buffer { memory: Shared::of(vec![0; 8]), size: 8, tag: 0 };
    let failure = pair.nodes[1].receive(receiver, vec![buffer()]).unwrap_err();
    assert_eq!(failure.code, Code::Internal);
    assert!(failure.message.contains("32"), "{failure}");
    let failure = pair.nodes[1].receive(receiver, (0..9).map(|_| buffer()).collect()).unwrap_err();
    assert_eq!(failure.code, Code::Internal);
    pair.send(0, sender, &[1; 8], 0).unwrap();
    pair.finish(1, requests[0]).unwrap();
    assert_eq!(pair.nodes[1].test(requests[0]).unwrap_err().code, Code::Internal, "it is gone");
    pair.receive(1, receiver, 8, 0);
    pair.nodes[1].close_receiver(receiver).unwrap();
    assert_eq!(pair.nodes[1].close_receiver(receiver).unwrap_err().code, Code::Internal);
    assert_eq!(pair.nodes[1].test(requests[1]).unwrap_err().code, Code::Internal);
    assert_eq!(pair.nodes[1].accept(receiver).unwrap_err().code, Code::Internal);
    assert_eq!(pair.nodes[1].requests(), 0);
}

#[test]
fn a_stream_is_used_again() {
    let mut pair = Pair::usual(8);
    for round in 0..40u8 {
        let (sender, receiver) = pair.connect(0);
        let (request, memory) = pair.receive(1, receiver, 3000, 0);
        pair.send(0, sender, &[round; 3000], 0).unwrap();
        pair.finish(1, request).unwrap();
        assert_eq!(memory.bytes(), [round; 3000]);
        pair.nodes[0].close_sender(sender).unwrap();
        pair.nodes[1].close_receiver(receiver).unwrap();
        pair.until("quiet", |pair| pair.nodes.iter_mut().all(|node| node.is_idle()).then_some(()));
    }
    // Control and one for data: the first connection's path memory serves all of them.
    let (endpoint, _) = pair.nodes[0].driver().endpoint();
    assert!(endpoint.counters().packets > 40 * 3);
}

/// From now on packets of the first rank pass only if they are this short, at most.
fn shorten(pair: &Pair, largest: usize) {
    let link = Link { largest, ..Link::new(Rate::gbps(10), Time::from_us(5)) };
    (0..4).for_each(|label| pair.network.set(0, 1, label, link.clone()));
}

/// Packets of 1,064 B no longer pass and half of them do: connections of before and new ones go on in fragments.
#[test]
fn full_packets_that_stop_passing_are_fragmented() {
    let mut pair = Pair::usual(12);
    let (sender, receiver) = pair.connect(0);
    let bytes: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
    let transfer = |pair: &mut Pair, sender, receiver| {
        let (request, memory) = pair.receive(1, receiver, bytes.len(), 7);
        let sent = pair.send(0, sender, &bytes, 7).unwrap();
        assert_eq!(pair.finish(1, request).unwrap().sizes(), [bytes.len() as u64]);
        assert_eq!(pair.finish(0, sent).unwrap().sizes(), [bytes.len() as u64]);
        assert!(memory.bytes() == bytes);
    };
    transfer(&mut pair, sender, receiver);
    assert!(!pair.nodes[0].watched()[0].is_fragmented);
    shorten(&pair, 600);
    let began = pair.network.now();
    transfer(&mut pair, sender, receiver);
    assert!(pair.network.now() - began < Time::from_us(500_000), "{}", pair.network.now() - began);
    let (sender, receiver) = pair.connect(0);
    transfer(&mut pair, sender, receiver);
    assert!(pair.nodes[0].watched().iter().all(|of| of.is_fragmented));
}

/// No data packet passes, while pings and other control messages do (84 B): both ranks name the sizes within the timeout (1 s)
/// and the last retransmission.
#[test]
fn data_that_stop_passing_fail_both_ranks() {
    let mut pair = Pair::usual(13);
    let (sender, receiver) = pair.connect(0);
    let (request, _memory) = pair.receive(1, receiver, 300_000, 7);
    shorten(&pair, 126);
    let began = pair.network.now();
    let sent = pair.send(0, sender, &[5; 300_000], 7).unwrap();
    let failures = [pair.finish(0, sent).unwrap_err(), pair.finish(1, request).unwrap_err()];
    for (failure, text) in
        failures.iter().zip(["acknowledged no data for 1 s", "received no acknowledgement from this rank"])
    {
        assert_eq!(failure.code, Code::Remote);
        for word in [text, "datagrams of 28 B", "127 B"] {
            assert!(failure.message.contains(word), "no `{word}` in {failure}");
        }
    }
    assert!(pair.network.now() - began < Time::from_us(2_000_000), "{}", pair.network.now() - began);
}
