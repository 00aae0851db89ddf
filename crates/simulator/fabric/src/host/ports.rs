//! NICs with a port per plane: every port has a clock and queues of its own. A port sends what waits in its queues first;
//! the flows are served while a port is free and no queue is full. A packet whose port is busy waits in that port's queue.

use super::nic::{NicEgress, Nics};
use crate::{
    context::Ctx,
    ids::{HostId, PacketId, PortId, Slot},
    packet::{Kind, Packet},
    paths::dead_paths,
    plan::{NicPorts, PortChange},
};
use anabranch_topology::LinkId;
use anabranch_units::Time;

/// Ports of a host that are of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usable {
    /// Those not known to be down here, one bit each.
    pub(super) local: u32,
    /// Next port in turn.
    next: u32,
}

impl Usable {
    /// Returns the first port of `ports`, which has one, in turn.
    fn in_turn(self, ports: u32) -> u32 {
        let behind = ports & (u32::MAX << self.next);
        if behind != 0 { behind.trailing_zeros() } else { ports.trailing_zeros() }
    }
}

/// What a NIC does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The port of this plane sends what waits in its queues.
    Queued(u32),
    /// The flows are served.
    Flows,
}

impl Nics {
    fn usable(&self, cx: &Ctx<'_>, host: HostId) -> Usable {
        let all = (1u32 << cx.plan.planes) - 1;
        Usable { local: all & !self.down[0][host.at()].ports(), next: self.nics[host.at()].next_port }
    }

    /// Returns the time of the next transmission, and its kind.
    fn next(&self, cx: &Ctx<'_>, host: HostId) -> Option<(u64, Next)> {
        let usable = self.usable(cx, host).local;
        let (mut queued, mut free_at, mut is_full) = (None, u64::MAX, false);
        for plane in 0..cx.plan.planes {
            let port = cx.plan.nic_in(host, plane);
            let time = cx.ports.free_at(port);
            if cx.ports.queues.can_send(port) {
                queued = queued.into_iter().chain([(time, plane)]).min();
                is_full |= cx.ports.port(port).waiting_bytes >= cx.plan.nic_queue;
            } else if usable >> plane & 1 == 1 {
                free_at = free_at.min(time);
            }
        }
        let turns = &self.nics[host.at()].turns;
        let ready = if turns.ready() != 0 { Some(0) } else { turns.paced_until().map(Time::ps) };
        let flows =
            ready.filter(|_| free_at < u64::MAX && (!is_full || cx.plan.heeds_ports)).map(|time| time.max(free_at));
        let queued = queued.map(|(time, plane)| (time, Next::Queued(plane)));
        queued.into_iter().chain(flows.map(|time| (time, Next::Flows))).min_by_key(|next| next.0)
    }

    /// Returns the time of the next transmission in the present state.
    pub(super) fn next_start(&self, cx: &Ctx<'_>, host: HostId) -> Option<u64> {
        self.next(cx, host).map(|next| next.0)
    }

    /// Marks the ports without anything to send as idle up to `time`.
    fn idle_until(&self, cx: &mut Ctx<'_>, host: HostId, time: u64) {
        for plane in 0..cx.plan.planes {
            let port = cx.plan.nic_in(host, plane);
            if !cx.ports.queues.can_send(port) {
                cx.ports.idle_until(port, time);
            }
        }
    }

    /// Starts every transmission that is due at or before `until`, in order of time.
    #[inline(never)]
    pub(super) fn advance_ports(&mut self, cx: &mut Ctx<'_>, host: HostId, until: u64) {
        while let Some((start, next)) = self.next(cx, host).filter(|next| next.0 <= until) {
            match next {
                Next::Queued(plane) => {
                    let port = cx.plan.nic_in(host, plane);
                    let Some(id) = cx.ports.queues.take(port, start) else { return };
                    let packet = &mut cx.ports[id];
                    if packet.kind == Kind::Probe {
                        packet.head.set_wide(0, start);
                    }
                    cx.ports.start(port, id, start);
                    // Its queue may have been full until now.
                    self.idle_until(cx, host, start);
                }
                Next::Flows => {
                    self.idle_until(cx, host, start);
                    self.serve_flows(cx, host, start);
                }
            }
        }
    }

    /// Serves the flows after an event at the present time.
    #[inline(never)]
    pub(super) fn wake_ports(&mut self, cx: &mut Ctx<'_>, host: HostId) {
        let now = cx.now;
        self.idle_until(cx, host, now);
        self.advance_ports(cx, host, now);
    }

    /// Lets the flow whose turn it is send a packet at `start`, when a port is free.
    fn serve_flows(&mut self, cx: &mut Ctx<'_>, host: HostId, start: u64) {
        let (plan, time, usable) = (cx.plan, Time::from_ps(start), self.usable(cx, host));
        let free = (0..plan.planes).filter(|plane| {
            let port = plan.nic_in(host, *plane);
            cx.ports.free_at(port) <= start && !cx.ports.queues.can_send(port)
        });
        let free = free.fold(0, |free, plane| free | 1 << plane) & usable.local;
        // A port has space while one packet at most waits for it.
        let has_room = |plane: &u32| cx.ports.port(plan.nic_in(host, *plane)).waiting_bytes < 2 * plan.wire_mtu as u32;
        let room = (0..plan.planes).filter(has_room).fold(0, |room, plane| room | 1 << plane) & usable.local;
        let is_full = |plane: &u32| usable.local & !room >> plane & 1 == 1;
        let full = (0..plan.planes).filter(is_full).map(|plane| cx.ports.free_at(plan.nic_in(host, plane)));
        let next_room = Time::from_ps(full.filter(|time| *time > start).min().unwrap_or(0));
        let Nics { nics, schemes, flows, sent, counters, down, .. } = self;
        let nic = &mut nics[host.at()];
        nic.turns.promote(flows, plan, time);
        let schemes = &mut schemes[host.at()];
        let mut ports = NicPortsNow { usable, room, next_room, remote: &down[1], next: &mut nic.next_port };
        let (port, sharing_credit, request, gaps, ports) =
            (plan.nic(host), nic.sharing_credit, 0, &mut counters.gaps, Some(&mut ports));
        let mut line = NicEgress { cx, port, paused: 0, sharing_credit, request, schemes, gaps, sent, free, ports };
        if let Some(slot) = nic.turns.serve(flows, plan, &mut line, time, time) {
            self.arm_timer(cx, Slot(slot));
        }
    }

    /// Returns the port by which a reply leaves: that of the plane by which its packet came, if there is one.
    #[cold]
    pub(super) fn port_of_reply(&mut self, cx: &Ctx<'_>, host: HostId, reply: &Packet) -> PortId {
        let plan = cx.plan;
        let came = (cx.arrival != u32::MAX).then(|| plan.topology.plane_of(LinkId(plan.link_of(cx.arrival))));
        plan.nic_in(host, self.plane_of_own(cx, host, reply, came))
    }

    /// Returns the plane by which a control packet, or a probe, leaves: `named` unless a port of it is known to be down.
    pub(super) fn plane_of_own(&mut self, cx: &Ctx<'_>, host: HostId, packet: &Packet, named: Option<u32>) -> u32 {
        let usable = self.usable(cx, host);
        let named = named.or_else(|| named_plane(cx, packet, usable.local));
        let allowed = allowed(usable.local, self.down[1][packet.dst as usize].ports());
        match named.filter(|plane| allowed >> plane & 1 == 1) {
            Some(plane) => plane,
            // Without any port it is lost on the one that it would take.
            None if allowed == 0 => named.unwrap_or(0),
            None => {
                let plane = usable.in_turn(allowed);
                self.nics[host.at()].next_port = (plane + 1) % cx.plan.planes;
                plane
            }
        }
    }

    /// Applies the changes of ports at `time`, up to which all NICs have been advanced, and notifies the schemes.
    pub(crate) fn on_ports_changed(&mut self, cx: &mut Ctx<'_>, time: u64, changes: &[PortChange]) {
        let plan = cx.plan;
        for change in changes {
            self.down[usize::from(change.is_remote)][change.host as usize].change(change);
            if !change.is_remote && plan.owner_of_host(change.host) == cx.me {
                self.idle_until(cx, HostId(change.host), time);
            }
        }
        let is_concerned = |flow: &super::SenderFlow| {
            let end = |change: &PortChange| if change.is_remote { flow.of.dst.0 } else { flow.of.src.0 };
            changes.iter().any(|change| end(change) == change.host)
        };
        let concerned = self.flows.iter().filter(|(_, flow)| is_concerned(flow));
        let mut open: Vec<_> = concerned.map(|(slot, flow)| (flow.of.flow, slot)).collect();
        open.sort_unstable();
        for (_, slot) in open {
            self.idle_until(cx, self.flows[slot].of.src, time);
            self.tell_ports(cx, Slot(slot as u32), time);
            let flow = &mut self.flows[slot];
            let (host, transport) = (flow.of.src, plan.transports.of(flow.of.transport));
            self.nics[host.at()].turns.enter(slot as u32, flow, transport, Time::from_ps(time));
        }
    }

    /// Passes the ports that are down, and the paths that are dead with them, to the scheme of a flow.
    pub(super) fn tell_ports(&mut self, cx: &Ctx<'_>, slot: Slot, time: u64) {
        let flow = &mut self.flows[slot.at()];
        let (src, dst, time) = (flow.of.src, flow.of.dst, Time::from_ps(time));
        let [local, remote] = [(0, src), (1, dst)].map(|(end, host)| self.down[end][host.at()].ports());
        let dead = dead_paths(cx.plan, cx.tables, flow.of.balancer, src.0, dst.0, local | remote);
        let scheme = self.schemes[src.at()][usize::from(flow.of.balancer)].scheme_mut();
        flow.on_ports_changed(scheme, time, local, remote);
        flow.on_paths_changed(scheme, time, &dead);
    }

    /// Returns `true` if a flow waits at a host whose ports are all down.
    pub(crate) fn any_without_port(&self, planes: u32) -> bool {
        let all = (1u32 << planes) - 1;
        planes > 1 && self.flows.iter().any(|(_, flow)| self.down[0][flow.of.src.at()].ports() == all)
    }

    /// Returns the ports that are down at the ends of a flow, as far as the sender has been notified.
    pub(super) fn down_between(&self, src: u32, dst: u32) -> u32 {
        self.down[0][src as usize].ports() | self.down[1][dst as usize].ports()
    }
}

/// Ports of a NIC that serves its flows.
#[derive(Debug)]
pub(super) struct NicPortsNow<'a> {
    usable: Usable,
    /// Those that have space for a packet, one bit each, and the earliest time at which another has.
    pub(super) room: u32,
    pub(super) next_room: Time,
    remote: &'a [crate::plan::DownPorts],
    next: &'a mut u32,
}

impl NicEgress<'_, '_> {
    /// Starts a data packet at its port, or queues it there while the port is busy. Returns the earliest time at which a port
    /// is free after `start`, since every packet chooses again; and the end of the packet's transmission, or of a queued one
    /// `start`.
    pub(super) fn start_in_plane(&mut self, id: PacketId, start: u64) -> (u64, u64) {
        let cx = &mut *self.cx;
        let (plan, Some(ports)) = (cx.plan, &mut self.ports) else { unreachable!("a NIC of several ports") };
        let packet = &cx.ports[id];
        let host = HostId(packet.src);
        let allowed = allowed(ports.usable.local, ports.remote[packet.dst as usize].ports());
        let named = named_plane(cx, packet, allowed).filter(|plane| allowed >> plane & 1 == 1);
        let plane = named.unwrap_or_else(|| {
            let free = allowed & self.free;
            let plane = ports.usable.in_turn(if free != 0 { free } else { allowed });
            *ports.next = (plane + 1) % plan.planes;
            plane
        });
        let port = plan.nic_in(host, plane);
        let end = if self.free >> plane & 1 == 1 {
            cx.ports.start(port, id, start);
            cx.ports.free_at(port)
        } else {
            cx.ports.queue(port, id, start);
            start
        };
        let usable = (0..plan.planes).filter(|plane| ports.usable.local >> plane & 1 == 1);
        let next = usable.map(|plane| cx.ports.free_at(plan.nic_in(host, plane))).min().unwrap_or(start).max(start + 1);
        (next, end)
    }
}

/// Returns the ports of sender and receiver, or where none is left, those of the sender.
fn allowed(local: u32, remote: u32) -> u32 {
    if local & !remote != 0 { local & !remote } else { local }
}

/// Returns the plane that a packet's entropy value names, a hashed one among those of `ports`; `None`: it names none.
fn named_plane(cx: &Ctx<'_>, packet: &Packet, ports: u32) -> Option<u32> {
    match cx.plan.nic_ports[usize::from(packet.balancer)] {
        NicPorts::Free => None,
        NicPorts::Part(planes) => Some((packet.tag & (planes.next_power_of_two() - 1)) % planes),
        NicPorts::Hash if ports == 0 => None,
        NicPorts::Hash => {
            let key = anabranch_random::key(cx.plan.flow_key(packet.flow), u64::from(packet.tag), "nic port");
            let number = ((key >> 32) * u64::from(ports.count_ones())) >> 32;
            let mut left = ports;
            (0..number).for_each(|_| left &= left - 1);
            Some(left.trailing_zeros())
        }
    }
}

/// Schedules an event for every NIC of a partition at the times at which ports change, so that it goes on.
pub(crate) fn wake_at_changes(cx: &mut Ctx<'_>) {
    let plan = cx.plan;
    let mut times: Vec<u64> = plan.port_changes.iter().map(|change| change.at).collect();
    times.dedup();
    let hosts = || (0..plan.hosts).filter(|host| plan.owner_of_host(*host) == cx.me).map(HostId);
    let events: Vec<_> = hosts().flat_map(|host| times.iter().map(move |time| (host, *time))).collect();
    for (host, time) in events {
        cx.ports.ask_for_service(plan.nic(host), time);
    }
}
