use anabranch_endpoint::{
    Arrival, Endpoint, Event, Settings, To,
    header::{self, COOKIE_BYTES, Cookie, Data, Greeting, Packet, ProbeHeader},
};
use anabranch_transport::TransportParameters;
use anabranch_units::Time;
use std::net::SocketAddr;

pub(crate) const MTU: u32 = 1000;
pub(crate) const FULL: usize = MTU as usize + header::DATA_HEADER;

pub(crate) fn transport(name: &str) -> TransportParameters {
    let mut transport = TransportParameters::named(name).unwrap();
    transport.parameters_mut().set("mtu", &anabranch_settings::Raw::Text(format!("{MTU}B"))).unwrap();
    transport
}

pub(crate) fn settings() -> Settings {
    Settings { transport: transport("uet"), calibrations: 1, labels: 2, ..Settings::default() }
}

pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

pub(crate) fn at(ms: u64) -> Time {
    Time::from_us(ms * 1000)
}

/// A datagram of a peer for which the datapath vouches.
pub(crate) fn vouched(peer: u32, at: Time, bytes: &[u8]) -> Arrival<'_> {
    Arrival { peer: Some(peer), from: None, label: 0, at, ecn: false, bytes }
}

/// A datagram of an address that the datapath does not have.
pub(crate) fn unknown(from: SocketAddr, at: Time, bytes: &[u8]) -> Arrival<'_> {
    Arrival { peer: None, from: Some(from.into()), ..vouched(0, at, bytes) }
}

/// An endpoint and the peers that a datapath would number.
pub(crate) struct Server {
    pub(crate) endpoint: Endpoint,
    pub(crate) numbers: Vec<Option<SocketAddr>>,
    /// Label of what arrives.
    pub(crate) label: u32,
    pub(crate) now: Time,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Self {
        Server { endpoint: Endpoint::new(settings), numbers: Vec::new(), label: 1, now: at(1) }
    }

    pub(crate) fn arrive(&mut self, from: SocketAddr, bytes: &[u8]) {
        let peer = self.numbers.iter().position(|known| *known == Some(from)).map(|at| at as u32);
        let arrival = Arrival { peer, from: Some(from.into()), label: self.label, at: self.now, ecn: false, bytes };
        self.endpoint.handle(self.now, &arrival);
        let numbers = &mut self.numbers;
        self.endpoint.admit(self.now, &mut |from| {
            let free = numbers.iter().position(Option::is_none).unwrap_or_else(|| {
                numbers.push(None);
                numbers.len() - 1
            });
            numbers[free] = Some(from.at);
            Some(free as u32)
        });
    }

    /// Returns what the endpoint then sends.
    pub(crate) fn respond(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<(To, Vec<u8>)> {
        self.arrive(from, bytes);
        self.sent()
    }

    pub(crate) fn sent(&mut self) -> Vec<(To, Vec<u8>)> {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        for _ in 0..100 {
            self.now += Time::from_us(1);
            self.endpoint.handle_timeout(self.now);
            while let Some(sent) = self.endpoint.poll_transmit(self.now, &mut out) {
                all.push((sent.to, [&out[..], &sent.payload].concat()));
            }
        }
        all
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        let events = std::iter::from_fn(|| self.endpoint.poll_event()).collect();
        while let Some(peer) = self.endpoint.poll_released() {
            self.numbers[peer as usize] = None;
        }
        events
    }

    pub(crate) fn cookie(&mut self, from: SocketAddr, greeting: &Greeting) -> Cookie {
        let replies = self.respond(from, &hello(greeting, &[0; COOKIE_BYTES]));
        // ACKs of a timer may precede it.
        let is_other = |packet: &Result<Packet<'_>, _>| !matches!(packet, Ok(Packet::Ack { .. }));
        match replies.iter().map(|(to, bytes)| (to, Packet::decode(bytes))).find(|(_, packet)| is_other(packet)) {
            Some((To::Address(to), Ok(Packet::Retry { connection, nonce, cookie }))) => {
                assert_eq!((to.at, connection, nonce), (from, greeting.connection, greeting.nonce));
                cookie
            }
            other => panic!("no RETRY but {other:?}"),
        }
    }

    /// Returns the connection number, if a WELCOME arrives.
    pub(crate) fn welcome(&mut self, from: SocketAddr, greeting: &Greeting, cookie: &Cookie) -> Option<u32> {
        self.respond(from, &hello(greeting, cookie)).into_iter().find_map(|(_, bytes)| match Packet::decode(&bytes) {
            Ok(Packet::Welcome { connection, greeting: theirs }) if connection == greeting.connection => {
                assert_eq!(theirs.nonce, greeting.nonce);
                Some(theirs.connection)
            }
            _ => None,
        })
    }

    /// The peer has completed the handshake and sent a datagram since.
    pub(crate) fn accept(&mut self, from: SocketAddr, greeting: &Greeting) -> u32 {
        let cookie = self.cookie(from, greeting);
        let ours = self.welcome(from, greeting, &cookie).expect("a WELCOME");
        assert!(self.echoes(from, ours));
        ours
    }

    pub(crate) fn accept_all(&mut self, all: impl IntoIterator<Item = SocketAddr>) -> Vec<(SocketAddr, u32)> {
        (5..).zip(all).map(|(number, from)| (from, self.accept(from, &greeting(number, 6)))).collect()
    }

    pub(crate) fn echoes(&mut self, from: SocketAddr, connection: u32) -> bool {
        let mut out = Vec::new();
        let probe = ProbeHeader { stream: 3, tag: 4, transmission: 4, ..ProbeHeader::default() };
        header::probe(&mut out, connection, &probe, 100);
        self.respond(from, &out).iter().any(|(_, bytes)| matches!(Packet::decode(bytes), Ok(Packet::Echo { .. })))
    }
}

pub(crate) fn greeting(connection: u32, nonce: u64) -> Greeting {
    Greeting {
        connection,
        nonce,
        own_nonce: nonce,
        protection: header::Protection::Off,
        mtu: MTU,
        labels: 2,
        planes: 1,
        span: 128,
        max_message: 10_000,
    }
}

pub(crate) fn hello(greeting: &Greeting, cookie: &Cookie) -> Vec<u8> {
    let mut out = Vec::new();
    header::hello(&mut out, greeting, cookie, FULL);
    out
}

pub(crate) fn data(connection: u32, message: u64, place: (u64, u32), length: u64) -> Vec<u8> {
    data_over(1, connection, message, place, length)
}

/// `place` is PSN, and index in the message.
pub(crate) fn data_over(stream: u32, connection: u32, message: u64, (psn, index): (u64, u32), length: u64) -> Vec<u8> {
    let payload = length.saturating_sub(u64::from(index) * u64::from(MTU)).min(u64::from(MTU)) as u32;
    let header = Data { stream, payload, psn, message, length, index, transmission: 7, ..Data::default() };
    let mut out = Vec::new();
    header::data(&mut out, connection, &header);
    out.resize(out.len() + payload as usize, 1);
    out
}
