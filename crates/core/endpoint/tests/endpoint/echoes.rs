//! Peers that make up what echoes and ACKs state: round trips come from local records alone, and memory follows local limits.

use crate::common::{greeting, hello, vouched};
use anabranch_endpoint::{
    Endpoint, Event, Settings,
    header::{self, Greeting, Packet, ProbeHeader},
};
use anabranch_lb::{checks::CountingAllocator, registry::HostParameters};
use anabranch_random::Stream;
use anabranch_transport::Reply;
use anabranch_units::{Rate, Time};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

const PEERS: u32 = 32;
/// Memory of a peer that is sent one short message: what it is and does decides it, not what it states.
const MAX_PER_PEER: i64 = 32 << 10;

/// What a peer makes of the number and the holding time of an echo or ACK, for the true ones.
#[derive(Clone, Copy, Debug)]
enum Lie {
    Numbers,
    Held,
    Both,
    /// Echoes come as late as they may.
    Late,
}

fn lie(lie: Lie, draws: &mut Stream, (number, held): (u32, Time)) -> (u32, Time) {
    let any = draws.bits() as u32;
    let numbers = [0, number, number.wrapping_add(1), number.wrapping_sub(1), u32::MAX, any];
    let longest = Time::from_ns(u64::from(u32::MAX));
    let holds = [Time::ZERO, held, Time::from_ns(u64::from(any)), longest, Time::from_us(10)];
    let mut draw = |count: usize| draws.below(count as u64) as usize;
    match lie {
        Lie::Numbers => (numbers[draw(6)], held),
        Lie::Held => (number, holds[draw(5)]),
        Lie::Both => (numbers[draw(6)], holds[draw(5)]),
        Lie::Late => (number, Time::ZERO),
    }
}

fn sent(endpoint: &mut Endpoint, now: Time) -> Vec<(u32, Vec<u8>)> {
    let (mut out, mut all) = (Vec::new(), Vec::new());
    endpoint.handle_timeout(now);
    while let Some(sent) = endpoint.poll_transmit(now, &mut out) {
        let anabranch_endpoint::To::Peer(peer) = sent.to else { continue };
        all.push((peer, [&out[..], &sent.payload].concat()));
    }
    all
}

/// Returns the live bytes per peer, after each has been sent a message by an endpoint that is an hour old.
fn attack(transport: &str, scheme: HostParameters, of: Lie, seed: u64) -> i64 {
    let mut draws = Stream::keyed(seed, 0, "echoes");
    let transport = crate::common::transport(transport);
    let peer_timeout = Time::from_us(10_000_000);
    let rate = Rate::gbps(400);
    let is_late = matches!(of, Lie::Late);
    let (step, request_timeout) =
        if is_late { (Time::from_us(500), Time::from_us(50_000)) } else { (Time::from_us(10), Time::from_us(100)) };
    let settings = Settings {
        transport,
        scheme,
        rate,
        peer_timeout,
        request_timeout,
        seed,
        calibrations: 4,
        ..Settings::default()
    };
    let mut endpoint = Endpoint::new(settings);
    let before = CountingAllocator::bytes();
    let began = Time::from_us(3_600_000_000);
    let mut now = began;
    let mut out = Vec::new();
    let mut ours = vec![0; PEERS as usize];
    for peer in 0..PEERS {
        let of = greeting(peer, u64::from(peer) + 1);
        let of = Greeting { labels: 8, span: u32::MAX, max_message: u64::MAX, ..of };
        endpoint.handle(now, &vouched(peer, now, &hello(&of, &[0; header::COOKIE_BYTES])));
        endpoint.send(now, peer, 0, vec![9u8; 3000].into()).unwrap();
    }
    let delay = if is_late { Time::from_us(49_000) } else { step };
    let mut due: Vec<(Time, u32, Vec<u8>)> = Vec::new();
    let mut replies = 0;
    for _ in 0..3000 {
        now += step;
        for (peer, bytes) in sent(&mut endpoint, now) {
            match Packet::decode(&bytes).unwrap() {
                Packet::Welcome { greeting, .. } => ours[peer as usize] = greeting.connection,
                Packet::Probe { probe, .. } => {
                    let (transmission, held) = lie(of, &mut draws, (probe.transmission, Time::ZERO));
                    header::echo(&mut out, ours[peer as usize], &ProbeHeader { transmission, held, ..probe });
                    due.push((now + delay, peer, out.clone()));
                }
                Packet::Data { data, .. } => {
                    let (transmission, held) = lie(of, &mut draws, (data.transmission, Time::ZERO));
                    let cumulative = if draws.chance(1, 2) { data.psn + 1 } else { draws.bits() >> 3 };
                    let reply = Reply { psn: data.psn, tag: data.tag, cumulative, ..Reply::default() };
                    header::ack(&mut out, ours[peer as usize], data.stream, &reply, transmission, held);
                    due.push((now + delay, peer, out.clone()));
                }
                _ => {}
            }
        }
        for (_, peer, bytes) in due.extract_if(.., |(at, ..)| *at <= now) {
            endpoint.handle(now, &vouched(peer, now, &bytes));
            replies += 1;
        }
        while let Some(event) = endpoint.poll_event() {
            assert!(!matches!(event, Event::Lost { .. }), "{event:?}");
        }
    }
    let open = (0..PEERS).filter(|peer| endpoint.round_trip(*peer).is_some()).count();
    assert!(replies > PEERS && open > 0, "{of:?}: {replies} replies, {open} open");
    for peer in 0..PEERS {
        if let Some((base, noise)) = endpoint.round_trip(peer) {
            // A probe is repeated after this time, so no echo of the last one is older.
            let max = request_timeout + step;
            assert!(base <= max && noise <= max, "{of:?}: {base} and {noise} at {}", now - began);
        }
    }
    drop(due);
    (CountingAllocator::bytes() - before) / i64::from(PEERS)
}

#[test]
fn no_peer_states_a_round_trip_or_a_size() {
    for transport in ["uet", "roce"] {
        for scheme in HostParameters::ALL {
            for (seed, of) in [Lie::Numbers, Lie::Held, Lie::Both].into_iter().enumerate() {
                let host = HostParameters::named(scheme.name).unwrap();
                let bytes = attack(transport, host, of, seed as u64);
                assert!(bytes < MAX_PER_PEER, "{transport}, {}, {of:?}: {bytes} B per peer", scheme.name);
            }
        }
    }
}

#[test]
fn late_echoes_take_no_memory() {
    for scheme in ["reps", "prime", "hopper"] {
        let host = HostParameters::named(scheme).unwrap();
        let bytes = attack("uet", host, Lie::Late, 7);
        assert!(bytes < MAX_PER_PEER, "{scheme}: {bytes} B per peer");
    }
}
