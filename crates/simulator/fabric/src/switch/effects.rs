//! What switch schemes ask for besides a decision: control packets between switches, reordering queues (ConWeave's
//! VOQs, unbounded and outside the switch's buffer), timers.

use crate::{
    event::Event,
    ids::{PacketId, SwitchId},
    packet::{Kind, Packet},
    partition::Partition,
};
use anabranch_lb::{Delivery, Effects, SwitchScheme};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Bytes of a control packet between switches (specification 17.2).
const CONTROL_SIZE: u16 = 64;

/// Packets that wait in reordering queues.
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    /// Per switch, load balancer and number of the queue: packets and the links they came by, in order.
    queues: BTreeMap<(SwitchId, u8, u32), Vec<(PacketId, u32)>>,
    effects: Effects,
    /// Empty vectors to be used again.
    spare: Vec<Vec<(PacketId, u32)>>,
}

impl Partition<'_> {
    /// A data packet is at its last switch; false where it has to wait there.
    pub(super) fn deliver(&mut self, switch: SwitchId, id: PacketId, ingress: u32, now: u64) -> bool {
        let packet = &self.ports.packets[id];
        let (balancer, view, header) = (packet.balancer, self.plan.view(packet), packet.head);
        let mut effects = std::mem::take(&mut self.switches.reordering.effects);
        let scheme = self.switches.schemes.of(switch, balancer);
        let delivery = scheme.deliver(Time::from_ps(now), &view, &header, &mut effects);
        self.apply(switch, balancer, &mut effects, Some(id), now);
        let Reordering { queues, spare, effects: kept } = &mut self.switches.reordering;
        *kept = effects;
        if let Delivery::Hold(number) = delivery {
            let queue = queues.entry((switch, balancer, number));
            queue.or_insert_with(|| spare.pop().unwrap_or_default()).push((id, ingress));
            return false;
        }
        true
    }

    /// A control packet of another switch has reached the leaf it is for.
    pub(super) fn switch_control(&mut self, switch: SwitchId, id: PacketId, now: u64) {
        let packet = self.ports.packets[id];
        self.ports.packets.remove(id);
        self.ports.books.delivered(&packet);
        // The packet it answers went the other way.
        let data = Packet { src: packet.dst, dst: packet.src, kind: Kind::Data, ..packet };
        let view = self.plan.view(&data);
        let mut effects = std::mem::take(&mut self.switches.reordering.effects);
        let scheme = self.switches.schemes.of(switch, packet.balancer);
        scheme.on_control(Time::from_ps(now), &view, &packet.head, &mut effects);
        self.apply(switch, packet.balancer, &mut effects, None, now);
        self.switches.reordering.effects = effects;
    }

    /// A switch scheme is woken.
    pub(crate) fn scheme_timer(&mut self, switch: SwitchId, balancer: u8, number: u32, now: u64) {
        let mut effects = std::mem::take(&mut self.switches.reordering.effects);
        let scheme = self.switches.schemes.of(switch, balancer);
        scheme.on_timer(Time::from_ps(now), number, &mut effects);
        self.apply(switch, balancer, &mut effects, None, now);
        self.switches.reordering.effects = effects;
    }

    /// Does what a scheme asked for and empties the list.
    fn apply(&mut self, switch: SwitchId, balancer: u8, effects: &mut Effects, packet: Option<PacketId>, now: u64) {
        for head in effects.reply.drain(..) {
            let Some(id) = packet else { continue };
            let data = self.ports.packets[id];
            let reply = Packet { head, size: CONTROL_SIZE, ..self.reply(&data, Kind::SwitchControl) };
            self.ports.books.born(&reply);
            let reply = self.ports.packets.insert(reply);
            self.forward(switch, reply, u32::MAX, now);
        }
        let cell = u32::from(self.plan.cell_of(self.plan.hosts + switch.0));
        for (time, number) in effects.wake.drain(..) {
            let event = Event::SchemeTimer { switch, balancer, number };
            self.ports.cells.push(cell, event.at(time.ps().max(now)));
        }
        for number in effects.release.drain(..) {
            let Some(mut queue) = self.switches.reordering.queues.remove(&(switch, balancer, number)) else { continue };
            for (id, ingress) in queue.drain(..) {
                let link = self.plan.host_down[self.ports.packets[id].dst as usize];
                self.ports.join(self.plan.port_of(link), id, now, ingress);
            }
            self.switches.reordering.spare.push(queue);
        }
    }
}
