//! Pause frames of PFC and their effect.

use super::{PROMPT, Ports, buffer::BufferRequest};
use crate::{
    event::Event,
    ids::{PortId, SwitchId},
    packet::{Kind, Packet},
};
use anabranch_topology::{LinkId, NodeId};

impl Ports<'_> {
    /// Pauses the sender of an admitted packet if that is due. `passing` bytes leave at once, so the buffer does not
    /// count them.
    pub(super) fn check_pause(&mut self, request: &BufferRequest, passing: u32, now: u64) {
        let Some(shared) = &self.plan.shared else { return };
        let BufferRequest { switch, ingress, class, .. } = *request;
        if !self.queues.buffers.pauses(shared, switch, ingress, class, passing) {
            return;
        }
        if self.queues.buffers.is_calm(switch) {
            self.advance_switch(switch, now);
            if !self.queues.buffers.pauses(shared, switch, ingress, class, passing) {
                return;
            }
            self.make_prompt(switch);
        }
        let already = self.queues.buffers.set_paused(switch, ingress, class, true);
        // A pause that expires is renewed with every packet.
        if !already || self.plan.fabric.pfc_pause.is_some() {
            self.send_pause(ingress, class, true, now);
        }
    }

    pub(super) fn resume(&mut self, ingress: u32, class: u8, now: u64) {
        let switch = SwitchId(self.plan.links[ingress as usize].to - self.plan.hosts);
        self.queues.buffers.set_paused(switch, ingress, class, false);
        if self.queues.buffers.is_calm(switch) {
            self.relax(switch);
        }
        self.send_pause(ingress, class, false, now);
    }

    /// Makes a switch's ports prompt while a sender to it is paused: a departing packet can end the pause at once.
    fn make_prompt(&mut self, switch: SwitchId) {
        let plan = self.plan;
        for link in plan.topology.out_links(NodeId(plan.hosts + switch.0)) {
            let port = plan.port_of(link.0);
            self.port_mut(port).flags |= PROMPT;
            if self.queues.can_send(port) {
                self.arm(port, self.free_at(port));
            }
        }
    }

    /// Lets a switch's ports wait again.
    fn relax(&mut self, switch: SwitchId) {
        let plan = self.plan;
        for link in plan.topology.out_links(NodeId(plan.hosts + switch.0)) {
            if !plan.is_prompt(&plan.links[link.0 as usize]) {
                self.port_mut(plan.port_of(link.0)).flags &= !PROMPT;
            }
        }
    }

    fn send_pause(&mut self, ingress: u32, class: u8, pause: bool, now: u64) {
        let frame = Packet {
            psn: u32::from(pause),
            tag: ingress,
            class,
            size: self.plan.fabric.pfc_frame,
            kind: Kind::Pause,
            ..Packet::default()
        };
        self.pause_frames += u64::from(pause);
        self.resume_frames += u64::from(!pause);
        let id = self.create(frame);
        self.join(self.plan.port_of(LinkId(ingress).reverse().0), id, now, u32::MAX);
    }

    /// Pauses the data of a class from `now` on; the port must have been advanced up to `now`.
    pub(crate) fn pause(&mut self, port: PortId, class: u8, now: u64) {
        self.queues.paused_times.pause(port, class, now);
        self.port_mut(port).paused |= 1 << class;
        self.queues.counters[port.at()].pauses += 1;
        if let Some(pause) = self.plan.fabric.pfc_pause {
            let queue = self.pause_number(port, class);
            self.pause_ends[queue as usize] = now + pause;
            let link = &self.plan.links[self.queues.link(port) as usize];
            let event = Event::PauseEnds { rank: link.rank, queue };
            self.cells.push(u32::from(self.plan.cell_of(link.from)), event.at(now + pause));
        }
    }

    fn pause_number(&self, port: PortId, class: u8) -> u32 {
        port.0 * self.plan.fabric.classes as u32 + u32::from(class)
    }

    /// Returns the port and class of a pause that expires at `now`; `None` where it was renewed.
    pub(crate) fn paused_queue(&self, number: u32, now: u64) -> Option<(PortId, u8)> {
        let classes = self.plan.fabric.classes as u32;
        (self.pause_ends[number as usize] == now).then_some((PortId(number / classes), (number % classes) as u8))
    }

    /// Lifts a pause at `now`; the port, advanced up to then, goes on from there.
    pub(crate) fn unpause(&mut self, port: PortId, class: u8, now: u64) {
        if self.port(port).paused & 1 << class != 0 {
            self.queues.paused_times.resume(port, class, now);
            self.port_mut(port).paused &= !(1 << class);
            self.idle_until(port, now);
        }
    }
}
