//! Traffic classes of connections that share a device and its sockets.

use crate::common::{Shared, address, handle, settings};
use anabranch_endpoint::Endpoint;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Abilities, Datapath, Driver, Inbound, Label, Outbound, PeerId, WireError,
    memory::{Link, Memory as Network, MemoryPath},
};
use nccl_net_anabranch::{Buffer, Connecting, Node};
use std::{cell::RefCell, collections::BTreeMap, net::SocketAddr, rc::Rc};

/// A datapath in memory that counts what is sent: datagrams with payload, and without, by class.
struct Counting(MemoryPath, Rc<RefCell<[BTreeMap<u8, u64>; 2]>>);

impl Datapath for Counting {
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }
    fn now(&self) -> Time {
        self.0.now()
    }
    fn peer(&mut self, at: SocketAddr, labels: &[Label]) -> Result<PeerId, WireError> {
        self.0.peer(at, labels)
    }
    fn peer_at(&self, peer: PeerId) -> Option<SocketAddr> {
        self.0.peer_at(peer)
    }
    fn release(&mut self, peer: PeerId) {
        self.0.release(peer);
    }
    fn send(&mut self, batch: &[Outbound<'_>]) -> Result<usize, WireError> {
        let sent = self.0.send(batch)?;
        for datagram in &batch[..sent] {
            let counts = &mut self.1.borrow_mut()[usize::from(datagram.payload.is_empty())];
            *counts.entry(datagram.class).or_default() += 1;
        }
        Ok(sent)
    }
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Inbound<'_>)) -> Result<usize, WireError> {
        self.0.receive(most, take)
    }
    fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.0.wait(until)
    }
}

#[test]
fn every_connection_has_its_class() {
    let network = Network::new(1, 2, Link::new(Rate::gbps(10), Time::from_us(5)));
    let counts: [Rc<RefCell<_>>; 2] = Default::default();
    let mut nodes = [0, 1].map(|host| {
        let path = Counting(network.host(address(host)), Rc::clone(&counts[host]));
        Node::<_, Shared>::new(Driver::new(Endpoint::new(settings(host as u64, 1000, 2)), path))
    });
    let step = |nodes: &mut [Node<Counting, Shared>; 2]| {
        for node in nodes.iter_mut() {
            node.work().unwrap();
        }
        network.advance(network.now() + Time::from_us(5));
    };
    // Expedited forwarding (46) and AF11 (10), each times four, and none.
    for (class, packets) in [(184, 10), (40, 20), (0, 30)] {
        let (listener, key) = nodes[1].listen(class).unwrap();
        let handle = handle(address(1), key);
        let (mut attempt, mut sender, mut receiver) = (None, None, None);
        while sender.is_none() || receiver.is_none() {
            if sender.is_none() {
                match nodes[0].connect(&handle, attempt, class, &[]).unwrap() {
                    Connecting::Wait(id) => attempt = Some(id),
                    Connecting::Done(id) => sender = Some(id),
                }
            }
            receiver = receiver.or(nodes[1].accept(listener).unwrap());
            step(&mut nodes);
        }
        counts.iter().for_each(|of| of.borrow_mut().iter_mut().for_each(BTreeMap::clear));
        // With the header of 32 B these are whole packets.
        let (size, memory) = (packets * 1000 - 32, Shared::of(vec![0; packets * 1000]));
        let buffer = Buffer { memory: memory.clone(), size: size as u64, tag: 1 };
        let receive = nodes[1].receive(receiver.unwrap(), vec![buffer]).unwrap();
        let (mut send, mut done) = (None, false);
        while !done {
            let from = Shared::of(vec![7; size]);
            send = send.or_else(|| nodes[0].send(sender.unwrap(), from, size as u64, 1).unwrap());
            step(&mut nodes);
            done = send.is_some_and(|send| nodes[0].test(send).unwrap().is_some());
        }
        assert!(nodes[1].test(receive).unwrap().is_some());
        let [sent, answered] = [0, 1].map(|host| counts[host].borrow().clone());
        assert_eq!(sent[0], BTreeMap::from([(class, packets as u64)]), "data of class {class}");
        // A connection without a class leaves the class of ACKs and control messages unchanged.
        let said = if class == 0 { 40 } else { class };
        assert_eq!(answered[1].keys().collect::<Vec<_>>(), [&said], "answers to class {class}");
    }
}
