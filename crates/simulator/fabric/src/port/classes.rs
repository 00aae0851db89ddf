//! Data classes of one port: a queue each, served strictly or by weighted (deficit) round robin.

use crate::{
    arena::Packets,
    ids::{PacketId, PortId},
    packet::Fifo,
};
use anabranch_backend::Scheduling;

#[derive(Clone, Copy, Debug)]
struct Queue {
    packets: Fifo,
    bytes: u32,
    deficit: i32,
}

/// Queues of every port where there is more than one class, or a rule samples them; else empty.
#[derive(Debug)]
pub(crate) struct ClassQueues {
    is_used: bool,
    scheduling: Scheduling,
    quanta: Vec<i32>,
    classes: usize,
    queues: Vec<Queue>,
    /// Per port the class whose turn it is.
    turn: Vec<u8>,
}

impl ClassQueues {
    pub(crate) fn new(ports: usize, scheduling: Scheduling, quanta: &[i32], is_sampled: bool) -> Self {
        let classes = quanta.len();
        let several = if classes > 1 || is_sampled { ports } else { 0 };
        let empty = Queue { packets: Fifo::EMPTY, bytes: 0, deficit: 0 };
        ClassQueues {
            is_used: several > 0,
            scheduling,
            quanta: quanta.to_vec(),
            classes,
            queues: vec![empty; several * classes],
            turn: vec![0; several],
        }
    }

    #[inline]
    pub(crate) fn are_used(&self) -> bool {
        self.is_used
    }

    pub(crate) fn index(&self, port: PortId, class: u8) -> usize {
        port.at() * self.classes + usize::from(class)
    }

    pub(crate) fn bytes(&self, port: PortId, class: u8) -> u32 {
        self.queues[self.index(port, class)].bytes
    }

    pub(crate) fn last(&self, port: PortId, class: u8) -> PacketId {
        self.queues[self.index(port, class)].packets.last()
    }

    pub(crate) fn of(&self, port: PortId) -> impl Iterator<Item = &Fifo> {
        let first = self.index(port, 0);
        self.queues[first..first + self.classes].iter().map(|queue| &queue.packets)
    }

    /// Adapts a queue's bytes after its last packet was exchanged.
    pub(crate) fn resize(&mut self, port: PortId, class: u8, difference: i64) {
        let index = self.index(port, class);
        let queue = &mut self.queues[index];
        queue.bytes = (i64::from(queue.bytes) + difference) as u32;
    }

    pub(crate) fn push(&mut self, packets: &mut Packets, port: PortId, id: PacketId) {
        let (class, size) = (packets[id].class, packets[id].size);
        let index = self.index(port, class);
        let queue = &mut self.queues[index];
        queue.bytes += u32::from(size);
        queue.packets.push(packets, id);
    }

    /// Returns `true` if a class not in `paused` has a packet.
    pub(crate) fn waits(&self, port: PortId, paused: u8) -> bool {
        let first = self.index(port, 0);
        (0..self.classes).any(|c| paused >> c & 1 == 0 && !self.queues[first + c].packets.is_empty())
    }

    /// Takes the next packet; one of the classes that are not `paused` must have one.
    pub(crate) fn pop(&mut self, packets: &Packets, port: PortId, paused: u8) -> PacketId {
        let first = self.index(port, 0);
        let ready = |c: &usize| paused >> c & 1 == 0 && !self.queues[first + c].packets.is_empty();
        let class = match self.scheduling {
            Scheduling::Strict => (0..self.classes).find(ready),
            Scheduling::Wrr => Some(self.turn(packets, port, paused)),
        };
        let queue = &mut self.queues[first + class.expect("a waiting packet")];
        let id = queue.packets.pop(packets);
        let size = packets[id].size;
        queue.bytes -= u32::from(size);
        queue.deficit -= i32::from(size);
        id
    }

    /// Deficit round robin: a class keeps its turn while it has packets and bytes left; an empty class loses its saved bytes.
    fn turn(&mut self, packets: &Packets, port: PortId, paused: u8) -> usize {
        let first = self.index(port, 0);
        let turn = &mut self.turn[port.at()];
        loop {
            let queue = &mut self.queues[first + *turn as usize];
            let head = queue.packets.first();
            if !head.is_some() {
                queue.deficit = 0;
            } else if paused >> *turn & 1 == 0 && queue.deficit >= i32::from(packets[head].size) {
                return *turn as usize;
            }
            *turn = (*turn + 1) % self.classes as u8;
            let next = &mut self.queues[first + *turn as usize];
            if !next.packets.is_empty() && paused >> *turn & 1 == 0 {
                next.deficit += self.quanta[*turn as usize];
            }
        }
    }

    pub(crate) fn memory(&self) -> usize {
        self.queues.capacity() * size_of::<Queue>() + self.turn.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arena::{Arena, Attribution},
        packet::Packet,
    };

    /// Classes in the order in which a port sends 6 packets of 100 B of each of two.
    fn sent(scheduling: Scheduling, quanta: &[i32], paused: u8) -> Vec<u8> {
        let mut packets = Packets::new(Arena::new(Attribution::default(), None).unwrap());
        let mut queues = ClassQueues::new(3, scheduling, quanta, false);
        let port = PortId(2);
        for class in [1, 0] {
            for _ in 0..6 {
                let packet = Packet { class, size: 100, next: PacketId::NONE.0, ..Packet::default() };
                let id = packets.insert(packet);
                queues.push(&mut packets, port, id);
            }
        }
        assert_eq!((queues.bytes(port, 0), queues.bytes(port, 1)), (600, 600));
        let mut order = Vec::new();
        while queues.waits(port, paused) {
            let id = queues.pop(&packets, port, paused);
            order.push(packets[id].class);
        }
        order
    }

    #[test]
    fn strict_priority_and_weights() {
        assert_eq!(sent(Scheduling::Strict, &[100, 100], 0), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        // Two packets of the first class to one of the second; the turn begins behind class 0.
        assert_eq!(sent(Scheduling::Wrr, &[200, 100], 0), [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn a_paused_class_waits() {
        assert_eq!(sent(Scheduling::Strict, &[100, 100], 0b01), [1; 6]);
        assert_eq!(sent(Scheduling::Wrr, &[200, 100], 0b10), [0; 6]);
    }
}
