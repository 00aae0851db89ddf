//! Peers at a few addresses begin messages that never end: a sender from another address still gets memory and a place.

use crate::common::{Server, address, at, data_over, greeting, settings, unknown};
use anabranch_endpoint::{Arrival, Endpoint, Event, Secret, Settings, To};
use anabranch_units::Time;
use std::net::SocketAddr;

/// Packets per second of all attackers together.
const RATE: u64 = 3000;
/// The same when they fill a quarter of the link.
const FAST: u64 = 30_000;
const STREAMS: u64 = 64;
const SERVED: ([u8; 4], u16) = ([10, 0, 1, 1], 7000);

/// Peers send single packets of messages of 16 MiB, in turn.
struct Attack {
    peers: Vec<(SocketAddr, u32)>,
    /// They connect again after an eviction, or after `renewed`.
    returns: bool,
    renewed: Option<Time>,
    connected: Vec<Time>,
    rate: u64,
    sent: u64,
    began: Time,
}

impl Attack {
    fn begin(server: &mut Server, hosts: u8, per_host: u16) -> Self {
        let from = |number| address((number % u32::from(hosts)) as u8, 2000 + number as u16);
        let peers = server.accept_all((0..u32::from(hosts) * u32::from(per_host)).map(from));
        let connected = vec![server.now; peers.len()];
        Attack { peers, returns: false, renewed: None, connected, rate: RATE, sent: 0, began: server.now }
    }

    fn work(&mut self, server: &mut Server) {
        while self.began + Time::from_ps(self.sent * (1_000_000_000_000 / self.rate)) <= server.now {
            let at = self.sent as usize % self.peers.len();
            let round = self.sent / self.peers.len() as u64;
            let is_old = self.renewed.is_some_and(|max| server.now.saturating_sub(self.connected[at]) > max);
            let (from, _) = self.peers[at];
            if self.returns && (is_old || !server.numbers.contains(&Some(from))) {
                let of = greeting(self.sent as u32 + 1, self.sent + 7);
                let cookie = server.cookie(from, &of);
                if let Some(ours) = server.welcome(from, &of, &cookie) {
                    self.peers[at].1 = ours;
                    self.connected[at] = server.now;
                }
            }
            let (from, ours) = self.peers[at];
            let psn = round / STREAMS;
            let bytes = data_over((round % STREAMS) as u32, ours, 0, (psn, psn as u32), 16 << 20);
            server.arrive(from, &bytes);
            self.sent += 1;
        }
    }
}

/// Returns the time of a message from a new address; `None`: more than a minute.
fn transfer(server: &mut Server, mut attack: Option<&mut Attack>, host: u8, bytes: usize) -> Option<Time> {
    let from = address(host, 7000);
    let mut client =
        Endpoint::new(Settings { secret: Secret::of_seed(u64::from(host)), host_key: u64::from(host), ..settings() });
    let began = server.now;
    client.connect(began, 0);
    client.send(began, 0, 1, vec![1; bytes].into()).unwrap();
    let (mut out, mut received) = (Vec::new(), false);
    while !received && server.now < began + at(60_000) {
        server.now += Time::from_us(20);
        if let Some(attack) = &mut attack {
            attack.work(server);
        }
        let now = server.now;
        client.handle_timeout(now);
        while let Some(sent) = client.poll_transmit(now, &mut out) {
            server.arrive(from, &[&out[..], &sent.payload].concat());
        }
        server.endpoint.handle_timeout(now);
        while let Some(sent) = server.endpoint.poll_transmit(now, &mut out) {
            let to = match sent.to {
                To::Address(to) => Some(to.at),
                To::Peer(peer) => server.numbers[peer as usize],
            };
            if to == Some(from) {
                let served = unknown(SERVED.into(), now, &out);
                client.handle(now, &Arrival { peer: Some(0), ..served });
            }
        }
        for event in server.events() {
            received |= matches!(event, Event::Received { bytes: got, .. } if got.len() == bytes);
        }
        if let Some(lost) = std::iter::from_fn(|| client.poll_event()).find(|event| matches!(event, Event::Lost { .. }))
        {
            println!("{lost:?} after {}", server.now.saturating_sub(began));
            return None;
        }
    }
    received.then(|| server.now.saturating_sub(began))
}

fn waits(server: &mut Server, attack: &mut Attack, ms: u64) {
    let until = server.now + at(ms);
    while server.now < until {
        server.now += Time::from_us(300);
        attack.work(server);
        server.sent();
        server.events();
    }
}

/// First messages of several sizes take at most twice the time that they take alone, plus a second.
fn are_served(hosts: u8, per_host: u16, adapt: impl Fn(&mut Attack)) {
    let sizes = [10_000, 1 << 20, 3 << 20];
    let alone = sizes.map(|bytes| transfer(&mut Server::new(settings()), None, 200, bytes).expect("alone"));
    let mut server = Server::new(settings());
    let mut attack = Attack::begin(&mut server, hosts, per_host);
    adapt(&mut attack);
    let mut max_held = 0;
    for (round, host) in (200..206u8).enumerate() {
        waits(&mut server, &mut attack, 1500);
        let (size, alone) = (sizes[round % sizes.len()], alone[round % sizes.len()]);
        let took = transfer(&mut server, Some(&mut attack), host, size);
        let held = server.endpoint.held().0;
        println!("{hosts} hosts, {size} B: alone {alone}, beside them {took:?}; {held} B held");
        assert!(took.is_some_and(|took| took <= alone + alone + at(1000)), "{size} B: {took:?}, alone {alone}");
        assert!(held <= settings().max_buffered_bytes);
        max_held = max_held.max(held);
    }
    assert!(max_held > settings().max_buffered_bytes / 4, "no attack: {max_held} B");
}

#[test]
fn one_address_with_many_peers_leaves_memory_for_others() {
    are_served(1, 250, |_| {});
}

#[test]
fn two_addresses_with_many_peers_leave_memory_for_others() {
    are_served(2, 256, |_| {});
}

#[test]
fn sixteen_addresses_with_all_slots_leave_memory_and_slots_for_others() {
    are_served(16, 64, |_| {});
}

#[test]
fn fast_attackers_leave_memory_for_others() {
    are_served(2, 256, |attack| attack.rate = FAST);
    are_served(16, 60, |attack| attack.rate = FAST);
}

#[test]
fn peers_that_return_when_they_are_evicted_leave_memory_for_others() {
    are_served(2, 256, |attack| attack.returns = true);
    are_served(16, 60, |attack| (attack.returns, attack.rate) = (true, FAST));
}

/// No attacking peer holds memory for long enough to count as stalled.
#[test]
fn peers_that_reconnect_leave_memory_for_others() {
    are_served(4, 64, |attack| (attack.returns, attack.renewed) = (true, Some(at(240))));
}

/// Each address takes all that it gets before the next one arrives.
#[test]
fn addresses_over_their_share_are_evicted() {
    let mut server = Server::new(settings());
    for host in 0..16u8 {
        let dropped = server.endpoint.counters().no_capacity;
        let peers = server.accept_all((0..8).map(|port| address(host, 2000 + port)));
        'all: for index in 0..1000u32 {
            // More of them would exceed a peer's own limit.
            for stream in 0..4 {
                for &(from, ours) in &peers {
                    server.arrive(from, &data_over(stream, ours, 0, (u64::from(index), index), 16 << 20));
                    if server.endpoint.counters().no_capacity > dropped + 1000 {
                        break 'all;
                    }
                }
            }
        }
        while !server.sent().is_empty() {}
    }
    let (held, max) = (server.endpoint.held().0, settings().max_buffered_bytes / 2);
    // The state of up to 512 streams counts as well.
    assert!(held > max - (1 << 18) && held <= max, "{held} B");
    assert_eq!(server.endpoint.counters().evicted, 0, "nothing was held for long");
    // A packet gets memory at once, a message its share: one in seventeen.
    let alone = transfer(&mut Server::new(settings()), None, 200, 3 << 20).expect("alone");
    let began = server.now;
    let took = transfer(&mut server, None, 200, 3 << 20).expect("beside them");
    assert!(took <= alone + alone + at(1000), "{took}, alone {alone}");
    assert!(server.endpoint.counters().evicted > 0);
    assert!(server.endpoint.counters().evicted < 60 && server.now > began);
}

/// Attackers that have delivered as many bytes as they announce take their memory at once; others continue.
#[test]
fn senders_with_earned_credit_leave_memory_for_newcomers() {
    let mut server = Server::new(settings());
    let alone = transfer(&mut Server::new(settings()), None, 200, 1 << 20).expect("alone");
    let length = 1u64 << 20;
    let packets = length.div_ceil(1000);
    let mut number = 0;
    for host in 0..2u8 {
        for port in 0..80u16 {
            number += 1;
            let from = address(host, 2000 + port);
            let ours = server.accept(from, &greeting(number, 6));
            for index in 0..packets {
                server.arrive(from, &data_over(0, ours, 0, (index, index as u32), length));
            }
            while !server.sent().is_empty() {}
            server.events();
            server.arrive(from, &data_over(0, ours, 1, (packets, 0), length));
        }
    }
    let (held, max) = (server.endpoint.held().0, settings().max_buffered_bytes);
    assert!(held > max / 2 && held <= max, "{held} B");
    for host in 200..203 {
        let took = transfer(&mut server, None, host, 1 << 20).expect("beside them");
        assert!(took <= alone + alone + at(1000), "{took}, alone {alone}");
    }
    assert_eq!(server.endpoint.counters().evicted, 0);
}
