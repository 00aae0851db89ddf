//! Effects that switch schemes request: control packets between switches, reordering queues (ConWeave's VOQs, unbounded
//! and outside the switch's buffer), timers.

use super::{Switches, view};
use crate::{
    context::Ctx,
    event::Event,
    ids::{PacketId, SwitchId},
    packet::{Kind, Packet},
};
use anabranch_lb::{Delivery, Effects, SwitchScheme};
use anabranch_units::Time;
use std::collections::BTreeMap;

/// Bytes of a control packet between switches (specification 17.2).
const CONTROL_SIZE: u16 = 64;

#[derive(Debug, Default)]
pub(crate) struct Reordering {
    /// Per switch, load balancer and queue: packets and the links they came by, in order.
    queues: BTreeMap<(SwitchId, u8, u32), Vec<(PacketId, u32)>>,
    effects: Effects,
    /// Empty vectors for reuse.
    spare: Vec<Vec<(PacketId, u32)>>,
}

impl Switches {
    /// Passes a data packet to the scheme of its last switch; returns `false` where it has to wait there.
    pub(super) fn deliver(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, id: PacketId, ingress: u32) -> bool {
        let packet = &cx.ports[id];
        let (balancer, view, header) = (packet.balancer, view(cx.plan, packet), packet.head);
        let mut effects = std::mem::take(&mut self.reordering.effects);
        let delivery = self.schemes.of(switch, balancer).deliver(Time::from_ps(cx.now), &view, &header, &mut effects);
        self.apply(cx, switch, balancer, effects, Some(id));
        let Delivery::Hold(number) = delivery else { return true };
        let Reordering { queues, spare, .. } = &mut self.reordering;
        cx.ports[id].queued_at = cx.now;
        let queue = queues.entry((switch, balancer, number));
        queue.or_insert_with(|| spare.pop().unwrap_or_default()).push((id, ingress));
        false
    }

    pub(super) fn on_control(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, id: PacketId) {
        let packet = cx.ports.deliver(id);
        cx.ports.remove(id);
        // The packet that it refers to travelled in the opposite direction.
        let data = Packet { src: packet.dst, dst: packet.src, kind: Kind::Data, ..packet };
        let view = view(cx.plan, &data);
        let mut effects = std::mem::take(&mut self.reordering.effects);
        let scheme = self.schemes.of(switch, packet.balancer);
        scheme.on_control(Time::from_ps(cx.now), &view, &packet.head, &mut effects);
        self.apply(cx, switch, packet.balancer, effects, None);
    }

    pub(crate) fn on_timer(&mut self, cx: &mut Ctx<'_>, switch: SwitchId, balancer: u8, number: u32) {
        let mut effects = std::mem::take(&mut self.reordering.effects);
        self.schemes.of(switch, balancer).on_timer(Time::from_ps(cx.now), number, &mut effects);
        self.apply(cx, switch, balancer, effects, None);
    }

    fn apply(
        &mut self,
        cx: &mut Ctx<'_>,
        switch: SwitchId,
        balancer: u8,
        mut effects: Effects,
        packet: Option<PacketId>,
    ) {
        for head in effects.reply.drain(..) {
            let Some(id) = packet else { continue };
            let reply = Packet { head, ..cx.ports[id].reply(Kind::SwitchControl, CONTROL_SIZE) };
            let reply = cx.ports.create(reply);
            self.forward(cx, switch, reply, u32::MAX);
        }
        let cell = u32::from(cx.plan.cell_of(cx.plan.hosts + switch.0));
        for (time, number) in effects.wake.drain(..) {
            let event = Event::SchemeTimer { switch, balancer, number };
            cx.ports.cells.push(cell, event.at(time.ps().max(cx.now)));
        }
        for number in effects.release.drain(..) {
            let Some(mut queue) = self.reordering.queues.remove(&(switch, balancer, number)) else { continue };
            for (id, ingress) in queue.drain(..) {
                let link = cx.plan.down(switch, cx.ports[id].dst);
                cx.ports.note_held(cx.plan.port_of(link), id, cx.now);
                cx.ports.join(cx.plan.port_of(link), id, cx.now, ingress);
            }
            self.reordering.spare.push(queue);
        }
        self.reordering.effects = effects;
    }
}
