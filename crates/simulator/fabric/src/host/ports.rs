//! NICs with a port per plane: every port has a clock and queues of its own. A port sends what waits in its queues first;
//! the flows are served while a port is free and no queue is full. A packet whose port is busy waits in that port's queue.

use super::nic::Nics;
use crate::{
    context::Ctx,
    ids::{HostId, PacketId, PortId, Slot},
    packet::{Kind, Packet},
    paths::{dead_paths, path_rates},
    plan::{DownPorts, NicPorts, Plan, PortChange},
};
use anabranch_lb::HostScheme;
use anabranch_topology::LinkId;
use anabranch_units::Time;

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
        Usable { local: all & !self.beside.down[0][host.at()].ports(), next: self.beside.next_port[host.at()] }
    }

    /// Returns how many ports of a NIC are up, and how many it has.
    pub(super) fn ports_up(&self, cx: &Ctx<'_>, host: HostId) -> (u32, u32) {
        let planes = cx.plan.planes;
        (if planes > 1 { self.usable(cx, host).local.count_ones() } else { 1 }, planes)
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
    pub(super) fn idle_until(&self, cx: &mut Ctx<'_>, host: HostId, time: u64) {
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
                    self.start_next(cx, host, cx.plan.nic(host), start, start);
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

    /// Notes the ports of a NIC that serves its flows, and how many of these take credit.
    #[cold]
    pub(super) fn note_beside(&mut self, cx: &Ctx<'_>, host: HostId, start: u64) {
        let sharing = self.nics[host.at()].sharing_credit;
        let ports = (cx.plan.planes > 1).then(|| self.ports_now(cx, host, start));
        let beside = &mut self.beside;
        (beside.ports, beside.sharing_credit) = (ports, sharing);
        (beside.room, beside.next_room) = ports.map_or((u32::MAX, Time::ZERO), |ports| (ports.room, ports.next_room));
    }

    /// Returns the ports of a NIC that may start a packet at `start`.
    fn ports_now(&self, cx: &Ctx<'_>, host: HostId, start: u64) -> PortsNow {
        let (plan, usable) = (cx.plan, self.usable(cx, host));
        let ports = |holds: &dyn Fn(PortId) -> bool| {
            let those = (0..plan.planes).filter(|plane| holds(plan.nic_in(host, *plane)));
            those.fold(0, |ports, plane| ports | 1 << plane) & usable.local
        };
        let free = ports(&|port| cx.ports.free_at(port) <= start && !cx.ports.queues.can_send(port));
        // A port has space while one packet at most waits for it.
        let room = ports(&|port| cx.ports.port(port).waiting_bytes < 2 * plan.wire_mtu as u32);
        let is_full = |plane: &u32| usable.local & !room >> plane & 1 == 1;
        let full = (0..plan.planes).filter(is_full).map(|plane| cx.ports.free_at(plan.nic_in(host, plane)));
        let next_room = Time::from_ps(full.filter(|time| *time > start).min().unwrap_or(0));
        PortsNow { usable, free, room, next_room }
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
        let allowed = allowed(usable.local, self.beside.down[1][packet.dst as usize].ports());
        match named.filter(|plane| allowed >> plane & 1 == 1) {
            Some(plane) => plane,
            // Without any port it is lost on the one that it would take.
            None if allowed == 0 => named.unwrap_or(0),
            None => {
                let plane = usable.in_turn(allowed);
                self.beside.next_port[host.at()] = (plane + 1) % cx.plan.planes;
                plane
            }
        }
    }

    /// Applies the changes of ports at `time`, up to which all NICs have been advanced, and notifies the schemes.
    pub(crate) fn on_ports_changed(&mut self, cx: &mut Ctx<'_>, time: u64, changes: &[PortChange]) {
        let plan = cx.plan;
        for change in changes {
            self.beside.down[usize::from(change.is_remote)][change.host as usize].change(change);
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
            self.resume_at(cx, Slot(slot as u32), time);
        }
    }

    /// Passes the ports that are down, and the paths that are dead with them, to the scheme of a flow.
    pub(super) fn tell_ports(&mut self, cx: &Ctx<'_>, slot: Slot, time: u64) {
        let flow = &mut self.flows[slot.at()];
        let (src, dst, time) = (flow.of.src, flow.of.dst, Time::from_ps(time));
        let [local, remote] = [(0, src), (1, dst)].map(|(end, host)| self.beside.down[end][host.at()].ports());
        let dead = dead_paths(cx.plan, cx.tables, flow.of.balancer, src.0, dst.0, local | remote);
        let scheme = self.schemes[src.at()][usize::from(flow.of.balancer)].scheme_mut();
        flow.on_ports_changed(scheme, time, local, remote);
        flow.on_paths_changed(scheme, time, &dead);
        let rates = path_rates(cx.plan, cx.tables, flow.of.balancer, (src.0, dst.0), &dead);
        if !rates.is_empty() {
            scheme.on_rates_changed(time, flow.scheme_slot(), &rates);
        }
    }

    /// Returns `true` if a flow waits at a host whose ports are all down.
    pub(crate) fn any_without_port(&self, planes: u32) -> bool {
        let all = (1u32 << planes) - 1;
        planes > 1 && self.flows.iter().any(|(_, flow)| self.beside.down[0][flow.of.src.at()].ports() == all)
    }

    /// Returns the ports that are down at the ends of a flow, as far as the sender has been notified.
    pub(super) fn down_between(&self, src: u32, dst: u32) -> u32 {
        self.beside.down[0][src as usize].ports() | self.beside.down[1][dst as usize].ports()
    }
}

/// Ports of a NIC that serves its flows, one bit each.
#[derive(Clone, Copy, Debug)]
struct PortsNow {
    usable: Usable,
    /// Those that can start a packet.
    free: u32,
    /// Those that have space for one, and the earliest time at which another has.
    room: u32,
    next_room: Time,
}

/// What NICs with several ports, or whose flows take credit, have in addition.
#[derive(Debug)]
pub(super) struct Beside {
    /// Per host, its ports that are down as it has detected, and as its peers have been notified.
    down: [Vec<DownPorts>; 2],
    /// Per host, the next port in turn.
    next_port: Vec<u32>,
    /// Of the NIC that serves its flows: its ports, where there are several.
    ports: Option<PortsNow>,
    /// Those that have space for a packet, one bit each, and the earliest time at which another has.
    pub(super) room: u32,
    pub(super) next_room: Time,
    /// Its open flows that take credit, and the bytes that the next packet requests.
    pub(super) sharing_credit: u32,
    pub(super) request: u64,
}

impl Beside {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let hosts = if plan.planes > 1 { plan.hosts as usize } else { 0 };
        Beside {
            down: [0; 2].map(|_| vec![DownPorts::default(); hosts]),
            next_port: vec![0; hosts],
            ports: None,
            room: u32::MAX,
            next_room: Time::ZERO,
            sharing_credit: 0,
            request: 0,
        }
    }
}

/// Starts a packet of such a NIC. Returns the earliest start of the next one, and the end of the packet's transmission.
#[inline(never)]
pub(super) fn start_beside(
    cx: &mut Ctx<'_>,
    beside: &mut Beside,
    port: PortId,
    id: PacketId,
    start: u64,
) -> (u64, u64) {
    if beside.sharing_credit > 0 {
        cx.ports.queues.packets.set_demand(id, beside.request);
    }
    if let Some(ports) = beside.ports {
        return start_in_plane(cx, beside, ports, id, start);
    }
    cx.ports.start(port, id, start);
    let end = cx.ports.free_at(port);
    (end, end)
}

/// Starts a data packet at its port, or queues it there while the port is busy. Returns the earliest time at which a port is
/// free after `start`, since every packet chooses again; and the end of the packet's transmission, or of a queued one `start`.
fn start_in_plane(cx: &mut Ctx<'_>, beside: &mut Beside, ports: PortsNow, id: PacketId, start: u64) -> (u64, u64) {
    let (plan, packet) = (cx.plan, &cx.ports[id]);
    let host = HostId(packet.src);
    let allowed = allowed(ports.usable.local, beside.down[1][packet.dst as usize].ports());
    let named = named_plane(cx, packet, allowed).filter(|plane| allowed >> plane & 1 == 1);
    let plane = named.unwrap_or_else(|| {
        let free = allowed & ports.free;
        let plane = ports.usable.in_turn(if free != 0 { free } else { allowed });
        beside.next_port[host.at()] = (plane + 1) % plan.planes;
        plane
    });
    let port = plan.nic_in(host, plane);
    let end = if ports.free >> plane & 1 == 1 {
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
