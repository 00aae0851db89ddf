//! A NIC: a port that is fed by flows. Path, window and pacing are those of the very moment at which a transmission
//! starts.

use super::{Hosts, Sent, sender::Sending};
use crate::{
    ids::{HostId, PacketId, PortId, Slot},
    measure::{FlowLooks, Gaps},
    packet::{ACK_REQUEST, Kind, Packet, RETRANSMISSION},
    partition::Partition,
    plan::Plan,
    port::Ports,
};
use anabranch_endpoint::{Balancer, Departure, Line, Nic as Turns};
use anabranch_lb::registry;
use anabranch_units::Time;

/// A host's NIC.
#[derive(Debug)]
pub(crate) struct Nic {
    /// Whose turn it is.
    pub(super) turns: Turns,
    /// Time of the earliest pending service event, where the NIC needs any.
    armed_at: u64,
}

impl Default for Nic {
    fn default() -> Self {
        Nic { turns: Turns::default(), armed_at: u64::MAX }
    }
}

impl Nic {
    #[inline]
    fn paced_until(&self) -> Option<u64> {
        self.turns.paced_until().map(Time::ps)
    }
}

/// The port of a NIC, as the flows see it.
struct NicLine<'a, 'p> {
    plan: &'a Plan<'p>,
    ports: &'a mut Ports<'p>,
    port: PortId,
    /// Data classes that are paused, a bit each.
    paused: u8,
    schemes: &'a mut [Balancer<registry::Host>],
    gaps: &'a mut Gaps,
    sent: &'a mut [Sent],
    watched: &'a mut [FlowLooks],
}

impl Line<Sending> for NicLine<'_, '_> {
    type Scheme = registry::Host;

    #[inline]
    fn scheme(&mut self, flow: &Sending) -> &mut registry::Host {
        self.schemes[usize::from(flow.balancer)].scheme_mut()
    }

    #[inline]
    fn is_paused(&self, flow: &Sending) -> bool {
        self.paused >> flow.class & 1 == 1
    }

    #[inline]
    fn tag(&self, flow: &Sending, tag: u32) -> u32 {
        if self.plan.plain_host[usize::from(flow.balancer)] { 0 } else { tag }
    }

    #[inline]
    fn start(&mut self, flow: &mut Sending, departure: &Departure, start: Time) -> Time {
        let (next, start) = (departure.segment, start.ps());
        if let Some(looks) = self.watched.get_mut(flow.watch as usize) {
            looks.counted.sent(departure.tag);
        }
        if let Some(gap) = departure.gap {
            self.gaps.note(gap.ps(), flow.base_rtt);
        }
        if next.psn == 0 && !next.retransmission {
            self.sent[flow.flow.at()].first_sent = start;
        }
        let again = if next.retransmission { RETRANSMISSION } else { 0 };
        let id = self.ports.packets.place();
        let packet = &mut self.ports.packets[id];
        *packet = Packet {
            queued_at: 0,
            psn: next.psn,
            head: Default::default(),
            flow: flow.flow.0,
            tag: departure.tag,
            src: flow.src.0,
            dst: flow.dst.0,
            next: PacketId::NONE.0,
            size: next.payload as u16 + self.plan.data_overhead,
            payload: next.payload as u16,
            kind: Kind::Data,
            class: flow.class,
            flags: again | if departure.ack_request { ACK_REQUEST } else { 0 },
            balancer: flow.balancer,
        };
        self.ports.books.born(packet);
        self.ports.start(self.port, id, start);
        Time::from_ps(self.ports.free_at(self.port))
    }

    #[inline]
    fn has_urgent(&self) -> bool {
        self.ports.can_send(self.port)
    }
}

impl Partition<'_> {
    /// Works out what the NIC of `host` started to send at or before `until`.
    #[inline]
    pub(crate) fn advance_nic(&mut self, host: HostId, until: u64) {
        let port = self.plan.nic(host);
        loop {
            let start = self.ports.free_at(port);
            if start > until {
                return;
            }
            if self.start_next(host, port, start, until) {
                continue;
            }
            // Nothing may go: the NIC stands idle until pacing lets the next flow send.
            match self.hosts.nics[host.at()].paced_until() {
                Some(time) if time <= until => self.ports.idle_until(port, time),
                _ => return,
            }
        }
    }

    /// After something changed at `now` (the NIC having been worked out): an idle NIC starts at once.
    #[inline]
    pub(crate) fn wake_nic(&mut self, host: HostId, now: u64) {
        let port = self.plan.nic(host);
        if self.ports.free_at(port) <= self.ports.before(now) {
            self.start_next(host, port, now, now);
        }
        self.list_nic(host, port);
    }

    /// When the NIC can start to send next, as things stand; `None`: there is nothing.
    #[inline]
    pub(crate) fn nic_starts(&self, host: HostId, port: PortId) -> Option<u64> {
        let nic = &self.hosts.nics[host.at()];
        let (free_at, paused) = (self.ports.free_at(port), self.ports.paused(port));
        let round = nic.turns.round();
        let unpaused = |slot: &u32| paused >> self.hosts.senders[*slot as usize].of.class & 1 == 0;
        let waits = !round.is_empty() && (paused == 0 || round.iter().any(unpaused));
        if waits || self.ports.can_send(port) { Some(free_at) } else { nic.paced_until().map(|time| time.max(free_at)) }
    }

    /// Sees to it that the NIC is worked out in time.
    #[inline]
    pub(crate) fn list_nic(&mut self, host: HostId, port: PortId) {
        let Some(start) = self.nic_starts(host, port) else { return };
        self.ports.list(port);
        if self.ports.is_prompt(port) {
            self.arm_nic(host, port, start);
        }
    }

    /// Asks for a service event no later than the NIC needs one.
    #[cold]
    pub(crate) fn arm_nic(&mut self, host: HostId, port: PortId, start: u64) {
        let time = self.ports.service_time(port, start);
        let nic = &mut self.hosts.nics[host.at()];
        if time < nic.armed_at && time < self.ports.cells.window_end() {
            nic.armed_at = time;
            self.ports.ask_for_service(port, time);
        }
    }

    /// A service event of a NIC.
    pub(crate) fn serve_nic(&mut self, host: HostId, now: u64) {
        let nic = &mut self.hosts.nics[host.at()];
        if nic.armed_at <= now {
            nic.armed_at = u64::MAX;
        }
        self.advance_nic(host, self.ports.before(now));
        self.list_nic(host, self.plan.nic(host));
    }

    /// The NIC starts at `start` what is due: control first, then probes, then the flows in turn. A flow that is alone
    /// goes on with what may start by `until`. False where nothing may go.
    #[inline]
    fn start_next(&mut self, host: HostId, port: PortId, start: u64, until: u64) -> bool {
        let (plan, time) = (self.plan, Time::from_ps(start));
        let Hosts { nics, schemes, senders, gaps, sent, .. } = &mut self.hosts;
        let turns = &mut nics[host.at()].turns;
        turns.promote(senders, &plan.transport, time);
        if let Some(id) = self.ports.take(port, start) {
            let packet = &mut self.ports.packets[id];
            if packet.kind == Kind::Probe {
                packet.head.set_wide(0, start);
            }
            self.ports.start(port, id, start);
            return true;
        }
        let paused = self.ports.paused(port);
        let (schemes, watched) = (&mut schemes[host.at()], &mut self.series.flows[..]);
        let mut line = NicLine { plan, ports: &mut self.ports, port, paused, schemes, gaps, sent, watched };
        let Some(slot) = turns.serve(senders, &plan.transport, &mut line, time, Time::from_ps(until)) else {
            return false;
        };
        self.arm_timer(Slot(slot));
        true
    }
}
