//! Authentication: forged and replayed datagrams are rejected.

use crate::common::vouched;
use anabranch_endpoint::{
    CloseReason, Endpoint, Event, Key, Settings,
    header::{self, Data, Packet, Protection},
};
use anabranch_random::Stream;
use anabranch_transport::Reply;
use anabranch_units::Time;

fn settings(seed: u64, key: Option<&str>, protection: Protection) -> Settings {
    let transport = crate::common::transport("uet");
    Settings {
        transport,
        seed,
        host_key: seed,
        calibrations: 2,
        key: key.map(|key| Key::of(key.as_bytes())),
        protection,
        ..Settings::default()
    }
}

/// Each is the other's peer 0.
struct Two {
    ends: [Endpoint; 2],
    now: Time,
    sent: [Vec<Vec<u8>>; 2],
    events: [Vec<Event>; 2],
}

impl Two {
    fn new(settings: [Settings; 2]) -> Self {
        Two { ends: settings.map(Endpoint::new), now: Time::ZERO, sent: Default::default(), events: Default::default() }
    }

    fn keyed(protection: Protection) -> Self {
        Two::new([1, 2].map(|seed| settings(seed, Some("shared"), protection)))
    }

    /// Datagrams for which `change` returns `false` are lost.
    fn run(&mut self, steps: usize, change: &mut dyn FnMut(usize, &mut Vec<u8>) -> bool) {
        let mut out = Vec::new();
        for _ in 0..steps {
            self.now += Time::from_us(5);
            for from in 0..2 {
                self.ends[from].handle_timeout(self.now);
                while let Some(transmit) = self.ends[from].poll_transmit(self.now, &mut out) {
                    let mut datagram = [&out[..], &transmit.payload].concat();
                    self.sent[from].push(datagram.clone());
                    if change(from, &mut datagram) {
                        self.arrive(1 - from, &datagram);
                    }
                }
                self.events[from].extend(std::iter::from_fn(|| self.ends[from].poll_event()));
            }
        }
    }

    fn arrive(&mut self, at: usize, datagram: &[u8]) {
        self.ends[at].handle(self.now, &vouched(0, self.now, datagram));
        self.events[at].extend(std::iter::from_fn(|| self.ends[at].poll_event()));
    }

    fn received(&self, at: usize) -> Vec<&[u8]> {
        let received = self.events[at].iter().filter_map(|event| match event {
            Event::Received { bytes, .. } => Some(&bytes[..]),
            _ => None,
        });
        received.collect()
    }

    fn lost(&self, at: usize) -> Vec<CloseReason> {
        let reason = |event: &Event| if let Event::Lost { reason, .. } = event { Some(*reason) } else { None };
        self.events[at].iter().filter_map(reason).collect()
    }

    fn connected(protection: Protection) -> Self {
        let mut two = Two::keyed(protection);
        let now = two.now;
        two.ends[0].connect(now, 0);
        two.run(100, &mut |_, _| true);
        assert!(two.ends[0].round_trip(0).is_some());
        two
    }
}

fn is_sealed(datagram: &[u8]) -> bool {
    datagram[2] & 0x80 != 0
}

fn message(bytes: usize, seed: u64) -> Vec<u8> {
    let mut draws = Stream::keyed(seed, 0, "message");
    (0..bytes).map(|_| draws.bits() as u8).collect()
}

/// Messages in both directions, with losses and trimmed packets.
#[test]
fn authenticated_messages_arrive() {
    for protections in [[Protection::Control; 2], [Protection::All; 2], [Protection::Control, Protection::All]] {
        let mut two =
            Two::new([settings(1, Some("shared"), protections[0]), settings(2, Some("shared"), protections[1])]);
        two.ends[0].connect(two.now, 0);
        let messages: Vec<_> = [0, 1, 999, 1000, 40_000].iter().map(|size| message(*size, *size as u64)).collect();
        for message in &messages {
            two.ends[0].send(two.now, 0, 3, message.clone().into()).unwrap();
        }
        let mut draws = Stream::keyed(7, 0, "losses");
        let (mut trimmed, mut greeted) = (0, false);
        two.run(40_000, &mut |from, datagram| {
            assert!(is_sealed(datagram), "{datagram:?}");
            let seal = if protections.contains(&Protection::All) { header::SEAL_ALL } else { header::SEAL };
            greeted |= datagram[1] == 3;
            if from == 0 && datagram[1] == 3 && datagram.len() > 400 && draws.chance(1, 5) {
                datagram.truncate(header::DATA_HEADER + seal);
                trimmed += 1;
            }
            !draws.chance(1, 20)
        });
        assert_eq!(two.received(1), messages, "{protections:?}");
        two.ends[1].send(two.now, 0, 1, messages[4].clone().into()).unwrap();
        two.run(40_000, &mut |_, _| !draws.chance(1, 20));
        assert_eq!(two.received(0), [&messages[4][..]]);
        let counters = two.ends.each_ref().map(Endpoint::counters);
        assert!(trimmed > 0 && greeted && counters[1].trimmed > 0);
        assert!(counters.iter().all(|c| c.forged + c.replayed + c.damaged + c.refused == 0), "{counters:?}");
        let now = two.now;
        two.ends[0].close(0);
        two.run(10, &mut |_, _| true);
        assert!(two.now > now && two.lost(1) == [CloseReason::Closed]);
    }
}

#[test]
fn modified_datagrams_have_no_effect() {
    for protection in [Protection::Control, Protection::All] {
        let mut two = Two::connected(protection);
        two.ends[0].send(two.now, 0, 3, message(5000, 1).into()).unwrap();
        // Both lose their next datagrams; then each of these arrives with each byte changed.
        let before = two.sent.each_ref().map(Vec::len);
        let mut kinds = std::collections::BTreeSet::new();
        two.run(3, &mut |_, _| false);
        two.ends[1].close(0);
        two.run(1, &mut |_, _| false);
        let mut fresh = Two::connected(protection);
        for (from, before) in before.into_iter().enumerate() {
            let mut datagrams = two.sent[from][before..].to_vec();
            datagrams.extend(two.sent[from][..4].iter().cloned());
            for datagram in datagrams {
                kinds.insert(datagram[1]);
                let padded = matches!(datagram[1], 1 | 5);
                let meant = if padded { 116.min(datagram.len()) } else { datagram.len() };
                for at in 0..meant {
                    // Every run sends the same datagrams, so the unchanged one would be valid here.
                    let mut changed = datagram.clone();
                    changed[at] ^= 1 << (at % 8);
                    let held = fresh.ends[1 - from].held();
                    fresh.arrive(1 - from, &changed);
                    assert_eq!(fresh.lost(1 - from), [], "byte {at} of kind {}", datagram[1]);
                    assert_eq!(fresh.received(1 - from), Vec::<&[u8]>::new());
                    assert!(fresh.ends[1 - from].held().0 <= held.0);
                }
            }
        }
        assert!(kinds.contains(&3) && kinds.contains(&1) && kinds.contains(&2) && kinds.contains(&7), "{kinds:?}");
        fresh.ends[0].send(fresh.now, 0, 3, message(5000, 1).into()).unwrap();
        fresh.run(2000, &mut |_, _| true);
        assert_eq!(fresh.received(1), [message(5000, 1)]);
    }
}

/// Neither at the same endpoint nor at one that has restarted.
#[test]
fn replayed_datagrams_have_no_effect() {
    let mut two = Two::connected(Protection::All);
    for stream in 0..3 {
        two.ends[0].send(two.now, 0, stream, message(20_000, 1).into()).unwrap();
    }
    two.run(2000, &mut |_, _| true);
    assert_eq!(two.received(1).len(), 3);
    let recorded = two.sent.clone();
    let events = two.events.each_ref().map(Vec::len);
    for (from, datagrams) in recorded.iter().enumerate() {
        for datagram in datagrams {
            two.arrive(1 - from, datagram);
        }
    }
    assert_eq!(two.events.each_ref().map(Vec::len), events);
    let counters = two.ends.each_ref().map(Endpoint::counters);
    let greetings = recorded.iter().flatten().filter(|datagram| datagram[1] <= 2).count() as u64;
    let all = recorded.iter().map(Vec::len).sum::<usize>() as u64;
    assert!(counters[0].replayed + counters[1].replayed >= all - greetings, "{counters:?} of {all}");
    two.ends[0].send(two.now, 0, 0, message(20_000, 2).into()).unwrap();
    two.run(2000, &mut |_, _| true);
    assert_eq!(two.received(1).len(), 4);

    let mut anew = Two::new([3, 4].map(|seed| settings(seed, Some("shared"), Protection::All)));
    for _ in 0..2 {
        for datagram in &recorded[0] {
            anew.arrive(1, datagram);
            anew.run(1, &mut |_, _| false);
        }
    }
    assert_eq!(anew.received(1), Vec::<&[u8]>::new());
    assert!(anew.ends[1].held().0 == 0 && anew.ends[1].counters().forged > 0);
}

/// The sender has every number of the connection, but no key.
#[test]
fn peers_without_the_key_are_rejected() {
    let mut two = Two::connected(Protection::Control);
    // The connection number is sent in the clear.
    let probe = two.sent[0].iter().find(|datagram| datagram[1] == 5).unwrap();
    let connection = u32::from_be_bytes(probe[4..8].try_into().unwrap());
    let data = Data {
        stream: 1,
        payload: 4,
        length: 4,
        checksum: Some(header::crc32c(b"evil")),
        transmission: 7,
        ack_request: true,
        ..Data::default()
    };
    let ack = Reply {
        psn: 0,
        tag: 0,
        cumulative: 9,
        bitmap: 0,
        offset: 0,
        ecn: true,
        cnp: true,
        nack: false,
        last_hop: false,
    };
    let mut out = Vec::new();
    let before = two.events[1].len();
    header::data(&mut out, connection, &data);
    out.extend_from_slice(b"evil");
    two.arrive(1, &out);
    header::ack(&mut out, connection, 1, &ack, 0, Time::ZERO);
    two.arrive(1, &out);
    header::bye(&mut out, connection, 5, None);
    two.arrive(1, &out);
    assert_eq!((two.events[1].len(), two.ends[1].counters().forged), (before, 3));
    assert_eq!(two.ends[1].held().0, 0);
    // Nor does another endpoint's HELLO reset the connection.
    for key in [None, Some("another")] {
        let mut release_unknown = Endpoint::new(settings(9, key, Protection::Control));
        release_unknown.connect(two.now, 0);
        assert!(release_unknown.poll_transmit(two.now, &mut out).is_some());
        two.arrive(1, &out);
    }
    two.ends[0].send(two.now, 0, 3, message(5000, 1).into()).unwrap();
    two.run(2000, &mut |_, _| true);
    assert_eq!((two.received(1), two.lost(1), two.lost(0)), (vec![&message(5000, 1)[..]], vec![], vec![]));
}

#[test]
fn key_mismatch_is_reported_to_both_endpoints() {
    use Protection::{All, Control, Off};
    let cases = [
        ((Some("a"), Control), (None, Off), CloseReason::Key { theirs: Off, ours: Control }),
        ((None, Off), (Some("a"), All), CloseReason::Key { theirs: All, ours: Off }),
        ((Some("a"), Control), (Some("b"), Control), CloseReason::Key { theirs: Control, ours: Control }),
    ];
    for (caller, called, reason) in cases {
        let mut two = Two::new([settings(1, caller.0, caller.1), settings(2, called.0, called.1)]);
        two.ends[0].connect(two.now, 0);
        two.run(20, &mut |_, _| true);
        assert_eq!(two.lost(0), [reason]);
        let CloseReason::Key { theirs, ours } = reason else { unreachable!() };
        let initial_rtt =
            Event::Refused { peer: Some(0), from: None, reason: CloseReason::Key { theirs: ours, ours: theirs } };
        assert_eq!(two.events[1], [initial_rtt], "once, and the other way round");
        assert_eq!(two.ends[1].held(), (0, 0), "nothing is kept of it");
        assert_eq!(two.ends[1].round_trip(0), None);
    }
    // A refusal that does not repeat the nonce of the HELLO has no effect.
    let mut two = Two::new([settings(1, Some("a"), Control), settings(2, None, Off)]);
    two.ends[0].connect(two.now, 0);
    two.run(20, &mut |from, datagram| {
        if from == 1
            && let Ok(Packet::Welcome { connection, mut greeting }) = Packet::decode(datagram)
        {
            greeting.nonce ^= 1;
            header::welcome(datagram, connection, &greeting);
        }
        true
    });
    assert_eq!(two.lost(0), []);
}

/// Each peer has its own key, like the ranks of NCCL; one calls, or both at once or one after the other.
#[test]
fn each_peer_is_called_with_its_own_key() {
    for both in [0, 1, 2] {
        let mut two =
            Two::new([settings(1, Some("first"), Protection::All), settings(2, Some("second"), Protection::Control)]);
        let keys = ["first", "second"].map(|key| Key::of(key.as_bytes()));
        let call = |two: &mut Two, from: usize| {
            two.ends[from].connect(two.now, 0);
            two.ends[from].set_peer_key(0, keys[1 - from].clone());
        };
        call(&mut two, 0);
        if both == 1 {
            call(&mut two, 1);
        }
        two.run(100, &mut |_, _| true);
        if both == 2 {
            call(&mut two, 1);
        }
        for from in 0..2 {
            two.ends[from].send(two.now, 0, 1, message(20_000, 1).into()).unwrap();
        }
        two.run(2000, &mut |_, _| true);
        for at in 0..2 {
            assert_eq!(two.received(at), [message(20_000, 1)], "{both}");
            assert_eq!((two.lost(at), two.ends[at].counters().forged), (vec![], 0), "{both}");
        }
    }
}

/// It calls by the local key, so the WELCOME must not use the key of its predecessor.
#[test]
fn peer_restarts_with_another_key() {
    let key = |of: &str| Key::of(of.as_bytes());
    for protection in [Protection::Control, Protection::All] {
        let of = |seed, name| settings(seed, Some(name), protection);
        let mut two = Two::new([of(1, "first"), of(2, "second")]);
        two.ends[0].connect(two.now, 0);
        two.ends[0].set_peer_key(0, key("second"));
        two.ends[0].send(two.now, 0, 1, message(20_000, 1).into()).unwrap();
        two.run(2000, &mut |_, _| true);
        assert_eq!(two.received(1), [message(20_000, 1)]);
        two.ends[1] = Endpoint::new(of(3, "third"));
        two.ends[1].connect(two.now, 0);
        two.ends[1].set_peer_key(0, key("first"));
        two.ends[1].send(two.now, 0, 1, message(20_000, 2).into()).unwrap();
        two.run(2000, &mut |_, _| true);
        assert_eq!((two.received(0), two.lost(0)), (vec![&message(20_000, 2)[..]], vec![CloseReason::Restarted]));
        two.ends[0].send(two.now, 0, 1, message(20_000, 3).into()).unwrap();
        two.run(2000, &mut |_, _| true);
        assert_eq!(two.received(1), [message(20_000, 1), message(20_000, 3)]);
        assert_eq!(two.ends.each_ref().map(|end| end.counters().forged), [0, 0]);
    }
}

/// ACKs and the parts of a BYE arrive late, in any order, more than once or changed: what has arrived counts as sent, and no more.
#[test]
fn a_bye_acknowledges_what_has_arrived() {
    for seed in 0..60 {
        let mut draws = Stream::keyed(seed, 0, "bye");
        let key = draws.chance(1, 2).then_some("shared");
        let transport = crate::common::transport(["uet", "roce"][draws.below(2) as usize]);
        let settings = [1, 2].map(|of| {
            let transport = transport.clone();
            Settings { max_streams: 400, transport, ..settings(of, key, Protection::Control) }
        });
        let mut two = Two::new(settings);
        two.ends[0].connect(two.now, 0);
        two.run(100, &mut |_, _| true);
        for stream in 0..[1, 8, 100, 300][draws.below(4) as usize] {
            for number in 0..1 + draws.below(3) {
                two.ends[0].send(two.now, 0, stream, message(draws.below(3000) as usize, number).into()).unwrap();
            }
        }
        // Some streams lose their data; these ACKs are late.
        let (loss, mut late) = (draws.below(3), Vec::new());
        two.run(100 + draws.below(2000) as usize, &mut |from, datagram| {
            let is_late = from == 1 && datagram[1] == 4 && draws.chance(4, 5);
            late.extend(is_late.then(|| datagram.clone()));
            !is_late && (datagram[1] != 3 || u64::from(datagram[15]) % 7 >= loss)
        });
        let before = two.sent[1].len();
        two.ends[1].close(0);
        two.run(100, &mut |from, _| from == 0);
        let byes: Vec<Vec<u8>> = two.sent[1].drain(before..).filter(|datagram| datagram[1] == 7).collect();
        assert!(byes.iter().all(|bye| bye.len() <= two.ends[1].longest_datagram()));
        let again = byes[draws.below(byes.len() as u64) as usize].clone();
        let mut changed = again.clone();
        changed[draws.below(again.len() as u64 - 12) as usize + 12] ^= 1 << draws.below(8);
        two.arrive(0, &changed);
        let mut all = [late, byes, vec![again]].concat();
        while !all.is_empty() {
            two.arrive(0, &all.swap_remove(draws.below(all.len() as u64) as usize));
        }
        let [sent, received] = [0, 1].map(|end| {
            let of = |event: &Event| match event {
                Event::Sent { stream, message, .. } | Event::Received { stream, message, .. } => {
                    Some((*stream, *message))
                }
                _ => None,
            };
            let mut all: Vec<_> = two.events[end].iter().filter_map(of).collect();
            all.sort_unstable();
            all
        });
        assert_eq!((sent, two.lost(0)), (received, vec![CloseReason::Closed]), "seed {seed}");
        assert!(matches!(two.events[0].last(), Some(Event::Lost { .. })), "seed {seed}: the loss is last");
    }
}
