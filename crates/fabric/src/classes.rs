//! Several data classes in one port: a queue each, served strictly or by weighted (deficit) round robin.

use crate::{
    packet::{Arena, NONE},
    parameters::Scheduling,
    plan::Plan,
};

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    bytes: u32,
    /// Bytes the class may still send in its turn.
    deficit: i32,
}

/// The data queues of every port, where there is more than one class; empty otherwise.
#[derive(Debug)]
pub(crate) struct ClassQueues {
    classes: usize,
    queues: Vec<Queue>,
    /// Per port the class whose turn it is.
    turn: Vec<u8>,
}

impl ClassQueues {
    pub(crate) fn new(plan: &Plan, ports: usize) -> Self {
        let classes = plan.fabric.classes;
        let several = if classes > 1 { ports } else { 0 };
        let empty = Queue { head: NONE, tail: NONE, bytes: 0, deficit: 0 };
        ClassQueues { classes, queues: vec![empty; several * classes], turn: vec![0; several] }
    }

    /// Whether there is more than one class.
    pub(crate) fn several(&self) -> bool {
        self.classes > 1
    }

    fn queue(&mut self, link: u32, class: u8) -> &mut Queue {
        &mut self.queues[link as usize * self.classes + class as usize]
    }

    pub(crate) fn bytes(&self, link: u32, class: u8) -> u32 {
        self.queues[link as usize * self.classes + class as usize].bytes
    }

    pub(crate) fn last(&self, link: u32, class: u8) -> u32 {
        self.queues[link as usize * self.classes + class as usize].tail
    }

    pub(crate) fn heads(&self, link: u32) -> impl Iterator<Item = u32> {
        let first = link as usize * self.classes;
        self.queues[first..first + self.classes].iter().map(|q| q.head)
    }

    pub(crate) fn resize(&mut self, link: u32, class: u8, difference: i64) {
        let queue = self.queue(link, class);
        queue.bytes = (i64::from(queue.bytes) + difference) as u32;
    }

    pub(crate) fn push(&mut self, packets: &mut Arena, link: u32, class: u8, id: u32, size: u32) {
        let queue = self.queue(link, class);
        queue.bytes += size;
        let tail = std::mem::replace(&mut queue.tail, id);
        if tail == NONE {
            queue.head = id;
        } else {
            packets[tail].next = id;
        }
    }

    /// Whether a class that is not in `paused` has a packet.
    pub(crate) fn waits(&self, link: u32, paused: u8) -> bool {
        let first = link as usize * self.classes;
        (0..self.classes).any(|c| paused >> c & 1 == 0 && self.queues[first + c].head != NONE)
    }

    /// Takes the packet whose turn it is; one of the classes that are not `paused` must have one.
    pub(crate) fn pop(&mut self, plan: &Plan, packets: &Arena, link: u32, paused: u8) -> u32 {
        let first = link as usize * self.classes;
        let ready = |c: &usize| paused >> c & 1 == 0 && self.queues[first + c].head != NONE;
        let class = match plan.fabric.scheduling {
            Scheduling::Strict => (0..self.classes).find(ready),
            Scheduling::Wrr => Some(self.turn(plan, packets, link, paused)),
        };
        let queue = &mut self.queues[first + class.expect("a waiting packet")];
        let id = queue.head;
        let size = packets[id].size;
        queue.bytes -= u32::from(size);
        queue.deficit -= i32::from(size);
        queue.head = packets[id].next;
        if queue.head == NONE {
            queue.tail = NONE;
        }
        id
    }

    /// Deficit round robin: a class keeps its turn while it has packets and bytes left; an empty class loses what
    /// it saved.
    fn turn(&mut self, plan: &Plan, packets: &Arena, link: u32, paused: u8) -> usize {
        let first = link as usize * self.classes;
        let turn = &mut self.turn[link as usize];
        loop {
            let queue = &mut self.queues[first + *turn as usize];
            if queue.head == NONE {
                queue.deficit = 0;
            } else if paused >> *turn & 1 == 0 && queue.deficit >= i32::from(packets[queue.head].size) {
                return *turn as usize;
            }
            *turn = (*turn + 1) % self.classes as u8;
            let next = &mut self.queues[first + *turn as usize];
            if next.head != NONE && paused >> *turn & 1 == 0 {
                next.deficit += plan.fabric.quanta[*turn as usize];
            }
        }
    }

    pub(crate) fn bytes_held(&self) -> usize {
        self.queues.capacity() * size_of::<Queue>() + self.turn.capacity()
    }
}

/// Bytes that each class may send in one turn, in proportion to the weights; the smallest is one full packet, so
/// that every turn sends.
pub(crate) fn quanta(weights: &[u64], full_packet: u32) -> Vec<i32> {
    let least = u128::from(weights.iter().copied().min().unwrap_or(1).max(1));
    let scaled = |weight: u64| u128::from(weight) * u128::from(full_packet) / least;
    weights.iter().map(|&weight| scaled(weight).min(i32::MAX as u128 / 2) as i32).collect()
}
