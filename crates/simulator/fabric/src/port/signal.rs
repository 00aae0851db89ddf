//! Signals of the ports of switches in the data packets that carry them (CSIG): a port whose load is higher than the one
//! in the packet writes its own, as the packet leaves. A port that trims writes that.

use super::{NIC, Port, backlog::Backlog};
use crate::{
    ids::{PacketId, PortId},
    packet::{Kind, Packet},
    plan::Plan,
};
use anabranch_backend::CsigSignal;
use anabranch_lb::{LinkLoad, LinkSignal};
use anabranch_topology::{NodeId, NodeKind};

/// The place of a port's link, and where utilisation is its load, how long it was busy: in its present window, the number of which
/// it has, and in the one before.
#[derive(Clone, Copy, Debug)]
struct PortLoad {
    stage: u8,
    is_down: bool,
    window: u64,
    busy: u64,
    last: u64,
}

impl PortLoad {
    /// Returns the load of the last full window, and counts a transmission in the window in which it starts.
    fn share(&mut self, (start, end): (u64, u64), length: u64) -> LinkLoad {
        let window = start / length;
        if window != self.window {
            self.last = if window == self.window + 1 { self.busy } else { 0 };
            (self.window, self.busy) = (window, 0);
        }
        self.busy += end - start;
        LinkLoad::Utilisation(self.last, length)
    }
}

/// Signals of the ports of a partition.
#[derive(Debug)]
pub(super) struct Signals {
    kind: CsigSignal,
    window: u64,
    ports: Vec<PortLoad>,
}

impl Signals {
    /// Creates them; `None` where no packet carries one.
    pub(super) fn new(plan: &Plan<'_>, me: u16) -> Option<Box<Self>> {
        let fabric = &plan.setup.fabric;
        let tier = |node: u32| match plan.topology.node(NodeId(node)).kind {
            NodeKind::Host => None,
            NodeKind::Switch { tier } => Some(tier),
        };
        let load = |link: &u32| {
            let link = &plan.links[*link as usize];
            let (from, to) = (tier(link.from), tier(link.to));
            PortLoad { stage: from.max(to).unwrap_or(0), is_down: to < from, window: 0, busy: 0, last: 0 }
        };
        plan.has_signals().then(|| {
            let ports = plan.links_of(me).iter().map(load).collect();
            Box::new(Signals { kind: fabric.csig, window: fabric.csig_window.ps(), ports })
        })
    }
}

impl Backlog<'_> {
    /// Notes when a packet that carries a signal joins a port, from which its delay counts. Replies have waits there.
    pub(super) fn signal_join(&mut self, id: PacketId, now: u64) {
        let packet = &mut self.packets[id];
        if carries_signal(self.plan, packet) {
            packet.queued_at = now;
        }
    }

    /// Writes the load of a port into a packet that it sends from `start` to `end`.
    pub(super) fn signal_start(&mut self, port: PortId, id: PacketId, start: u64, end: u64) {
        let (Some(signals), Port { flags, .. }) = (&mut self.signals, &self.ports[port.at()]) else { return };
        if flags & NIC != 0 {
            return;
        }
        let (packet, of) = (&mut self.packets[id], &mut signals.ports[port.at()]);
        let load = match signals.kind {
            CsigSignal::Utilisation => of.share((start, end), signals.window),
            // `write` takes it of data alone, of which the time of joining is known.
            _ => LinkLoad::Delay(start.saturating_sub(packet.queued_at)),
        };
        write(self.plan, packet, LinkSignal::new(load, of.stage, of.is_down));
    }

    /// Writes into a packet that a port is about to trim.
    pub(super) fn signal_trim(&mut self, port: PortId, id: PacketId) {
        if let Some(signals) = &self.signals {
            let of = &signals.ports[port.at()];
            write(self.plan, &mut self.packets[id], LinkSignal::new(LinkLoad::Trimmed, of.stage, of.is_down));
        }
    }
}

fn carries_signal(plan: &Plan<'_>, packet: &Packet) -> bool {
    packet.kind == Kind::Data && plan.signalled(packet.balancer)
}

/// Writes a signal into the packet's last word if the packet carries one, and that is lower.
fn write(plan: &Plan<'_>, packet: &mut Packet, signal: LinkSignal) {
    if carries_signal(plan, packet) {
        packet.head.0[4] = u32::from(packet.signal().or_higher(signal).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisation_is_that_of_the_last_full_window() {
        // Windows of 100: 30 + 20 in the first (the second transmission ends in the next one), none in the third.
        let mut load = PortLoad { stage: 1, is_down: false, window: 0, busy: 0, last: 0 };
        let mut at = |start, end| load.share((start, end), 100);
        let [none, half, all] = [0, 50, 100].map(|busy| LinkLoad::Utilisation(busy, 100));
        assert_eq!([at(10, 40), at(90, 110), at(110, 130), at(199, 210)], [none, none, half, half]);
        assert_eq!([at(300, 400), at(400, 410)], [none, all]);
    }
}
