//! What switch schemes ask for besides a decision: control packets between switches, reordering queues (ConWeave's
//! VOQs, unbounded and outside the switch's buffer), timers.

use crate::{
    order,
    packet::{Kind, Packet},
    partition::Partition,
    switch::scheme_index,
};
use anabranch_engine::Event;
use anabranch_lb::{Delivery, Effects, SwitchScheme};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Bytes of a control packet between switches (conweave-ns3 1.2).
const CONTROL_SIZE: u16 = 64;
/// Bits of a timer's number; the load balancer stands above them.
const NUMBER_BITS: u32 = 26;

/// Packets that wait in reordering queues.
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    /// Per switch, load balancer and number of the queue: packets and the links they came by, in order.
    queues: BTreeMap<(u32, u8, u32), Vec<(u32, u32)>>,
    effects: Effects,
    /// Empty vectors to be used again.
    spare: Vec<Vec<(u32, u32)>>,
}

impl Partition<'_> {
    /// A data packet is at its last switch; false where it has to wait there.
    pub(crate) fn deliver(&mut self, switch: u32, id: u32, ingress: u32, now: u64) -> bool {
        let packet = &self.wires.packets[id];
        let (balancer, view, header) = (packet.balancer, packet.view(self.plan), packet.head);
        let mut effects = std::mem::take(&mut self.reordering.effects);
        let scheme = self.switches.scheme(scheme_index(self.plan, switch, balancer));
        let delivery = scheme.deliver(Time::from_ps(now), &view, &header, &mut effects);
        self.apply(switch, balancer, &mut effects, Some(id), now);
        self.reordering.effects = effects;
        if let Delivery::Hold(number) = delivery {
            let Reordering { queues, spare, .. } = &mut self.reordering;
            let queue = queues.entry((switch, balancer, number));
            queue.or_insert_with(|| spare.pop().unwrap_or_default()).push((id, ingress));
            return false;
        }
        true
    }

    /// A word of another switch has reached the leaf it is for.
    pub(crate) fn switch_control(&mut self, switch: u32, id: u32, now: u64) {
        let packet = self.wires.packets[id];
        self.wires.packets.remove(id);
        self.delivered[4].add(&packet);
        // The packet it answers went the other way.
        let data = Packet { src: packet.dst, dst: packet.src, kind: Kind::Data, ..packet };
        let view = data.view(self.plan);
        let mut effects = std::mem::take(&mut self.reordering.effects);
        let scheme = self.switches.scheme(scheme_index(self.plan, switch, packet.balancer));
        scheme.on_control(Time::from_ps(now), &view, &packet.head, &mut effects);
        self.apply(switch, packet.balancer, &mut effects, None, now);
        self.reordering.effects = effects;
    }

    /// A switch scheme is woken.
    pub(crate) fn switch_timer(&mut self, switch: u32, payload: u32, now: u64) {
        let (balancer, number) = ((payload >> NUMBER_BITS) as u8, payload & ((1 << NUMBER_BITS) - 1));
        let mut effects = std::mem::take(&mut self.reordering.effects);
        let scheme = self.switches.scheme(scheme_index(self.plan, switch, balancer));
        scheme.on_timer(Time::from_ps(now), number, &mut effects);
        self.apply(switch, balancer, &mut effects, None, now);
        self.reordering.effects = effects;
    }

    /// Does what a scheme asked for and empties the list.
    fn apply(&mut self, switch: u32, balancer: u8, effects: &mut Effects, packet: Option<u32>, now: u64) {
        for head in effects.reply.drain(..) {
            let Some(id) = packet else { continue };
            let data = self.wires.packets[id];
            let reply = Packet { head, size: CONTROL_SIZE, ..self.reply(&data, Kind::SwitchControl) };
            self.injected[4].add(&reply);
            let reply = self.wires.packets.insert(reply);
            self.switch_arrival(switch, reply, u32::MAX, now);
        }
        for (time, number) in effects.wake.drain(..) {
            debug_assert!(number >> NUMBER_BITS == 0);
            let payload = u32::from(balancer) << NUMBER_BITS | number;
            self.wires.wheel.push(Event { time: time.ps().max(now), order: order::WAKE | switch, payload });
        }
        for number in effects.release.drain(..) {
            let Some(mut queue) = self.reordering.queues.remove(&(switch, balancer, number)) else { continue };
            for (id, ingress) in queue.drain(..) {
                let link = self.plan.host_down[self.wires.packets[id].dst as usize];
                self.wires.enqueue(self.plan, link, id, now, ingress);
            }
            self.reordering.spare.push(queue);
        }
    }
}
