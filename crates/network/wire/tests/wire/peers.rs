//! Peers come and go: idle peers are removed, and their slots become free.

use crate::common::{Pair, address};
use anabranch_endpoint::{CloseReason, Endpoint, Event, Settings};
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Datapath, Driver,
    memory::{Link, Memory, run},
    udp::UdpPath,
};
use std::net::{SocketAddr, UdpSocket};

fn settings() -> Settings {
    Settings {
        scheme: HostParameters::named("ecmp").unwrap(),
        labels: 2,
        idle_timeout: Time::from_us(100_000),
        ..Settings::default()
    }
}

fn pair() -> Pair {
    let settings = settings();
    let mut pair = Pair::new(1, &Link::new(Rate::gbps(10), Time::from_us(5)), [settings.clone(), settings]);
    pair.open();
    pair
}

#[test]
fn idle_peer_is_removed_and_its_number_reused() {
    let mut pair = pair();
    pair.send(0, 0, vec![1u8; 10]);
    let start = pair.network.now();
    assert!(pair.run(start + Time::from_us(10_000), &mut |pair| !pair.sent[0].is_empty()));
    // Without a BYE, with nothing unacknowledged.
    let mut rest = pair.hosts.split_off(1);
    let mut lost = Vec::new();
    let limit = start + Time::from_us(300_000);
    run(&pair.network, &mut rest, limit, &mut |hosts| {
        let (endpoint, now) = hosts[0].endpoint();
        lost.extend(std::iter::from_fn(|| endpoint.poll_event()).map(|event| (event, now - start)));
        false
    })
    .unwrap();
    let silent = |(event, at): &(Event, Time)| {
        // The endpoint checks every quarter of the timeout.
        let within = *at >= Time::from_us(99_000) && *at <= Time::from_us(126_000);
        matches!(event, Event::Lost { reason: CloseReason::Idle, .. }) && within
    };
    assert!(lost.iter().filter(|lost| silent(lost)).count() == 1, "{lost:?}");
    assert_eq!(rest[0].endpoint().0.held(), (0, 0), "nothing is kept of it, not even a timer");
    let mut other = Driver::new(Endpoint::new(settings()), pair.network.host(address(3)));
    assert_eq!(rest[0].datapath().peer(address(3), &[]).unwrap(), 0);
    let peer = other.datapath().peer(address(2), &[]).unwrap();
    let (endpoint, now) = other.endpoint();
    endpoint.connect(now, peer);
    let mut hosts = vec![other, rest.pop().unwrap()];
    let open = |hosts: &mut [Driver<_>]| hosts[0].endpoint().0.round_trip(peer).is_some();
    let limit = pair.network.now() + Time::from_us(10_000);
    assert!(run(&pair.network, &mut hosts, limit, &mut { open }).unwrap());
}

#[test]
fn a_peer_in_conversation_stays() {
    let mut pair = pair();
    for _ in 0..10 {
        let now = pair.network.now();
        pair.run(now + Time::from_us(60_000), &mut |_| false);
        pair.send(0, 0, vec![1u8; 10]);
    }
    let now = pair.network.now();
    pair.run(now + Time::from_us(10_000), &mut |_| false);
    assert_eq!((pair.sent[0].len(), pair.lost.len()), (10, 0));
}

#[test]
fn unknown_peers_take_no_slot() {
    // Fifty unknown senders of malformed greetings precede the two peers.
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let driver = |seed| Driver::new(Endpoint::new(Settings { seed, ..settings() }), UdpPath::open(any, 2, 2).unwrap());
    let (mut server, mut client) = (driver(1), driver(2));
    let at = server.datapath().at();
    for _ in 0..50 {
        let connection = UdpSocket::bind(any).unwrap();
        connection.send_to(b"who is there?", at).unwrap();
        let until = server.datapath().now() + Time::from_us(1_000_000);
        server.wait(until).unwrap();
        server.work().unwrap();
    }
    let peer = client.datapath().peer(at, &[]).unwrap();
    let (endpoint, now) = client.endpoint();
    endpoint.connect(now, peer);
    let limit = client.datapath().now() + Time::from_us(10_000_000);
    while client.endpoint().0.round_trip(peer).is_none() {
        assert!(client.datapath().now() < limit, "no place left: {:?}", server.endpoint().0.counters());
        server.work().unwrap();
        client.work().unwrap();
    }
    assert_eq!(server.endpoint().0.counters().refused, 50);
}

/// The clock of an endpoint has 64 bits of picoseconds, 213 days; a driver ends before that with a message.
#[test]
fn a_clock_that_ends_is_an_error() {
    let day = 86_400_000_000;
    let network = Memory::new(1, 1, Link::new(Rate::gbps(10), Time::from_us(1)));
    let mut host = Driver::new(Endpoint::new(Settings::default()), network.host(address(1)));
    network.advance(Time::from_us(211 * day));
    host.work().unwrap();
    network.advance(Time::from_us(212 * day));
    let error = host.work().unwrap_err().to_string();
    assert!(error.contains("212 days") && error.contains("restart"), "{error}");
}
