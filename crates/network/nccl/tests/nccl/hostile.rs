//! A rank that sends arbitrary messages over an accepted connection: no node panics, no byte is written outside of a
//! posted buffer, and other connections go on.

use crate::common::{Shared, TestNode, address, handle, settings};
use anabranch_endpoint::{
    Bytes, Endpoint, SendOptions,
    header::{self, Greeting, Packet, ProbeHeader, Protection},
};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Datapath, Driver, Outbound, To,
    memory::{Link, Memory as Network, MemoryPath},
};
use nccl_net_anabranch::{
    Buffer, Connecting, Node,
    handle::Handle,
    ids::Id,
    message::{Control, End, PieceHeader, PostedBuffer, Refusal},
};

/// Draws mostly small numbers, since those are valid.
fn number(draws: &mut Stream) -> u64 {
    match draws.below(8) {
        0..5 => draws.below(4),
        5 => draws.below(2000),
        6 => u64::from(u32::MAX) - draws.below(3),
        _ => u64::MAX - draws.below(3),
    }
}

/// Draws a message of a stream, valid or not.
fn nonsense(draws: &mut Stream, stream: u32, key: u64) -> Bytes {
    let connection = number(draws) as u32;
    let mut bytes = if stream > 0 {
        let header = PieceHeader {
            connection,
            number: number(draws) as u32,
            index: number(draws) as u32,
            offset: number(draws),
            size: number(draws),
        };
        let body = draws.below(1500).min(number(draws)) as usize;
        [&header.write()[..], &vec![1; body]].concat()
    } else {
        let entry = |draws: &mut Stream| PostedBuffer { size: number(draws), tag: number(draws) as i32, window: None };
        let entries = (0..1 + draws.below(8)).map(|_| entry(draws)).collect();
        let end = if draws.chance(1, 2) { End::Sender } else { End::Receiver };
        let said = match draws.below(8) {
            0 => Control::Connect { connection, key: if draws.chance(3, 4) { key } else { number(draws) } },
            1 => Control::Connected { connection },
            2 => Control::Refused { connection, reason: Refusal::TooMany },
            3 | 4 => Control::Grant { connection, number: number(draws) as u32, entries },
            5 => Control::WrongSize { connection, number: number(draws) as u32, size: number(draws) },
            6 => Control::Close { connection, end, completed: number(draws) as u32 },
            _ => Control::Ping,
        };
        said.write()
    };
    // Sometimes it is truncated, or has a flipped bit.
    match draws.below(16) {
        0 => bytes.truncate(draws.below(bytes.len() as u64) as usize),
        1 => {
            let at = draws.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << draws.below(8);
        }
        _ => {}
    }
    bytes.into()
}

fn step(network: &Network, nodes: &mut [TestNode; 2], hostile: &mut Driver<MemoryPath>) {
    for node in nodes.iter_mut() {
        let _ = node.work();
    }
    let _ = hostile.work();
    while hostile.endpoint().0.poll_event().is_some() {}
    network.advance(network.now() + Time::from_us(20));
}

fn connect(
    network: &Network,
    nodes: &mut [TestNode; 2],
    hostile: &mut Driver<MemoryPath>,
    handle: &Handle,
    listener: Id,
) -> (Id, Id) {
    let (mut attempt, mut sender, mut receiver) = (None, None, None);
    for _ in 0..10_000 {
        if sender.is_none() {
            match nodes[1].connect(handle, attempt, 0, &[]).unwrap() {
                Connecting::Wait(id) => attempt = Some(id),
                Connecting::Done(id) => sender = Some(id),
            }
        }
        receiver = receiver.or(nodes[0].accept(listener).unwrap());
        if let Some(ends) = sender.zip(receiver) {
            return ends;
        }
        step(network, nodes, hostile);
    }
    panic!("no connection")
}

/// Returns the numbers of connections from and to the hostile rank, and of their requests that ended.
fn attack(seed: u64) -> [usize; 3] {
    let network = Network::new(seed, 2, Link::new(Rate::gbps(10), Time::from_us(5)));
    let node = |host: usize| {
        Node::new(Driver::new(Endpoint::new(settings(seed + host as u64, 1000, 2)), network.host(address(host))))
    };
    let mut nodes: [TestNode; 2] = [node(0), node(1)];
    let mut hostile = Driver::new(Endpoint::new(settings(seed + 2, 1000, 2)), network.host(address(2)));
    let mut draws = Stream::keyed(seed, 0, "hostile rank");
    // A listener for the honest rank and one for the hostile rank, and an attempt to connect to the latter.
    let (honest, key) = nodes[0].listen(0).unwrap();
    let (listener, known) = nodes[0].listen(0).unwrap();
    let mut attempt = match nodes[0].connect(&handle(address(2), 5), None, 0, &[]).unwrap() {
        Connecting::Wait(id) => Some(id),
        Connecting::Done(_) => panic!("no peer has replied"),
    };
    let mut senders: Vec<Id> = Vec::new();
    let mut receivers: Vec<Id> = Vec::new();
    let (mut requests, mut ended): (Vec<Id>, usize) = (Vec::new(), 0);
    let peer = hostile.datapath().peer(address(0), &[]).unwrap();
    for _ in 0..60 {
        for _ in 0..draws.below(4) {
            let stream = draws.below(3) as u32;
            let said = nonsense(&mut draws, stream, known);
            let (endpoint, now) = hostile.endpoint();
            endpoint.connect(now, peer);
            // A steering word for a connection and a receive that may exist, and its first piece or another.
            let steering = draws.below(3) << 40 | draws.below(4) << 32 | draws.below(2) << 29 | draws.below(3);
            let _ = endpoint.send_with(now, peer, stream, SendOptions { steering, ..SendOptions::default() }, said);
        }
        step(&network, &mut nodes, &mut hostile);
        if let Some(id) = attempt {
            match nodes[0].connect(&handle(address(2), 5), Some(id), 0, &[]) {
                Ok(Connecting::Wait(_)) => {}
                Ok(Connecting::Done(sender)) => (attempt, _) = (None, senders.push(sender)),
                Err(_) => attempt = None,
            }
        }
        receivers.extend(nodes[0].accept(listener).unwrap());
        for receiver in &receivers {
            let size = draws.below(1200);
            let buffer = Buffer { memory: Shared::of(vec![0; size as usize]), size, tag: draws.below(3) as i32 };
            requests.extend(nodes[0].receive(*receiver, vec![buffer]));
        }
        for sender in &senders {
            let size = draws.below(1200);
            let memory = Shared::of(vec![0; size as usize]);
            requests.extend(nodes[0].send(*sender, memory, size, draws.below(3) as i32).ok().flatten());
        }
        let before = requests.len();
        requests.retain(|request| matches!(nodes[0].test(*request), Ok(None)));
        ended += before - requests.len();
    }
    senders.iter().for_each(|id| nodes[0].close_sender(*id).unwrap());
    receivers.iter().for_each(|id| nodes[0].close_receiver(*id).unwrap());
    nodes[0].close_listener(listener).unwrap();
    assert_eq!(nodes[0].requests(), 0, "seed {seed}");

    let (sender, receiver) = connect(&network, &mut nodes, &mut hostile, &handle(address(0), key), honest);
    let (sent, got) = (Shared::of((0..5000).map(|at| at as u8).collect()), Shared::of(vec![0; 5000]));
    let buffer = Buffer { memory: got.clone(), size: 5000, tag: 0 };
    let request = nodes[0].receive(receiver, vec![buffer]).unwrap();
    let (mut sending, mut done) = (None, false);
    for _ in 0..10_000 {
        sending = sending.or(nodes[1].send(sender, sent.clone(), 5000, 0).unwrap());
        step(&network, &mut nodes, &mut hostile);
        done = nodes[0].test(request).unwrap().is_some();
        if done {
            break;
        }
    }
    assert!(done && got.bytes() == sent.bytes(), "seed {seed}");
    [receivers.len(), senders.len(), ended]
}

#[test]
fn invalid_messages_have_no_effect() {
    let sum = |all: [usize; 3], one: [usize; 3]| std::array::from_fn(|at| all[at] + one[at]);
    let all = (0..300).map(attack).fold([0; 3], sum);
    // Some of the random messages were valid.
    assert!(all.into_iter().all(|count| count > 10), "{all:?}");
}

/// The connection is refused, and every echo names a transmission of its own or none.
#[test]
fn a_refused_rank_states_no_round_trip() {
    let network = Network::new(1, 1, Link::new(Rate::gbps(10), Time::from_us(5)));
    let mut node: TestNode = Node::new(Driver::new(Endpoint::new(settings(1, 1000, 1)), network.host(address(0))));
    let mut path = network.host(address(1));
    let peer = path.peer(address(0), &[]).unwrap();
    // A process that is an hour old.
    let began = Time::from_us(3_600_000_000);
    network.advance(began);
    let greeting = Greeting {
        connection: 7,
        nonce: 5,
        own_nonce: 5,
        protection: Protection::Off,
        mtu: 1000,
        labels: 1,
        planes: 1,
        span: u32::MAX,
        max_message: u64::MAX,
    };
    let connect = Control::Connect { connection: 1, key: 3 }.write();
    let (mut out, mut cookie, mut ours) = (Vec::new(), [0; header::COOKIE_BYTES], 0);
    let (mut echoes, mut refused, mut draws) = (0u32, false, Stream::keyed(1, 0, "echoes"));
    for step in 0..20_000u64 {
        let _ = node.work();
        network.advance(began + Time::from_us(20 * step));
        let mut arrived = Vec::new();
        path.receive(64, &mut |inbound| arrived.push(inbound.bytes.to_vec())).unwrap();
        let mut replies = Vec::new();
        if ours == 0 && step % 100 == 0 {
            header::hello(&mut out, &greeting, &cookie, 1000 + header::DATA_HEADER);
            replies.push(out.clone());
        }
        for bytes in arrived {
            match Packet::decode(&bytes).unwrap() {
                Packet::Retry { cookie: given, .. } => cookie = given,
                Packet::Welcome { greeting, .. } => {
                    ours = greeting.connection;
                    let data = header::Data {
                        payload: connect.len() as u32,
                        length: connect.len() as u64,
                        transmission: 1,
                        ack_request: true,
                        ..header::Data::default()
                    };
                    header::data(&mut out, ours, &data);
                    replies.push([&out[..], &connect].concat());
                }
                Packet::Probe { probe, .. } => {
                    let numbers = [0, u32::MAX, probe.transmission, probe.transmission.wrapping_add(1)];
                    let transmission = numbers[draws.below(4) as usize];
                    let held = Time::from_ns(draws.below(4) * 1_000_000_000);
                    header::echo(&mut out, ours, &ProbeHeader { transmission, held, ..probe });
                    replies.push(out.clone());
                    echoes += 1;
                }
                Packet::Data { payload: Some(payload), .. } => {
                    let said = Control::read(payload).unwrap();
                    refused |= said.iter().any(|of| matches!(of, Control::Refused { .. }));
                }
                _ => {}
            }
        }
        for head in &replies {
            let to = To::Peer(peer);
            path.send(&[Outbound { to, label: 0, ecn: false, class: 0, head, payload: &[], write: None }]).unwrap();
        }
    }
    let (base, noise) = node.driver().endpoint().0.round_trip(0).expect("an open stream");
    // 5 us in each direction, 0.9 us on each link, and polls every 20 us; a request is repeated after 100 us.
    assert!(refused && echoes > 4 && base <= Time::from_us(120) && noise <= Time::from_us(120), "{base}, {noise}");
}
