//! Looks of the time series at what a partition holds.

use crate::{
    host::SenderFlow,
    ids::{FlowId, PortId},
    measure::{
        BalancerLook, BalancerLooks, Counted, FlowLooks, PortLook, ReceiverLook, SenderLook, Series, Spread,
        series_bytes,
    },
    partition::{Failure, Partition},
    plan::Plan,
};
use anabranch_topology::{NodeId, NodeKind};
use anabranch_units::Time;
use std::sync::atomic::Ordering;

/// The series of partition `me` that the scenario asks for.
pub(crate) fn series(plan: &Plan<'_>, me: u16) -> Series {
    let measure = plan.measure;
    let asked = !measure.series_links.is_empty() || !measure.series_flows.is_empty() || measure.series_scheme;
    let mut series = Series::new(if asked { measure.series_interval.ps() } else { 0 });
    let mine = measure.series_links.iter().filter(|link| plan.owner_of_link(link.0) == me);
    series.ports = mine.map(|link| (plan.port_of(link.0), Vec::new())).collect();
    series.ports.sort_by_key(|port| port.0);
    series.ports.dedup_by_key(|port| port.0);
    series.flows = measure.series_flows.iter().map(|&flow| FlowLooks { flow, ..FlowLooks::default() }).collect();
    if measure.series_scheme {
        let switches = (plan.hosts..plan.topology.nodes.len() as u32).map(NodeId);
        let mine = switches.filter(|&switch| plan.cells.owner_of(switch) == me);
        series.balancers = Some(Box::new(BalancerLooks {
            done: vec![BalancerLook::default(); plan.balancers.len()],
            uplinks: mine.map(|switch| uplinks(plan, switch)).filter(|uplinks| uplinks.len() > 1).collect(),
            ..BalancerLooks::default()
        }));
    }
    series
}

/// What is wrong with the memory that series take up to `end`.
pub(crate) fn check_memory(plan: &Plan<'_>, partitions: &[Partition<'_>], end: u64) -> Result<(), String> {
    let last: u64 = partitions.iter().map(|partition| partition.series.last_bytes(end)).fold(0, u64::saturating_add);
    let held = plan.series_held.load(Ordering::Relaxed).saturating_add(last);
    too_much(plan, held, end).map_or(Ok(()), Err)
}

fn too_much(plan: &Plan<'_>, held: u64, now: u64) -> Option<String> {
    let limit = plan.measure.series_memory.filter(|limit| held > *limit)?;
    Some(format!(
        "measure.series_interval: found {}: at {} the time series of this run take more than {:.1} MB, which is what \
         `memory_limit` of [run] leaves them; take a larger interval, fewer links or flows, or end the run earlier (`run.until`)",
        plan.measure.series_interval,
        Time::from_ps(now),
        limit as f64 / 1e6
    ))
}

/// The ports of a switch that lead to switches no lower than itself.
fn uplinks(plan: &Plan<'_>, switch: NodeId) -> Vec<(PortId, u64)> {
    let tier = |node: NodeId| match plan.topology.node(node).kind {
        NodeKind::Host => None,
        NodeKind::Switch { tier } => Some(tier),
    };
    let links = plan.topology.out_links(switch).iter();
    let up = links.filter(|link| tier(plan.topology.link(**link).to) >= tier(switch));
    up.map(|link| (plan.port_of(link.0), 0)).collect()
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What there is of a watched flow at its sender.
fn sender_look(plan: &Plan<'_>, flow: &SenderFlow, counted: &mut Counted, now: u64) -> SenderLook {
    let (window, rate) = flow.sender.allowed(&plan.transport, Time::from_ps(now));
    SenderLook {
        sent_packets: counted.sent,
        in_flight: flow.sender.in_flight(),
        window,
        rate: rate.map(|rate| rate.0),
        retransmitted: flow.sender.retransmitted(),
        marked: counted.marked,
        trimmed: counted.trimmed,
        tag: counted.tag,
        path_switches: flow.path_switches(),
        paths: std::mem::take(&mut counted.tags).len() as u64,
    }
}

impl Partition<'_> {
    /// The next look: everything before its time has been handled, nothing happens from then to before `start`.
    pub(crate) fn look(&mut self, start: u64) {
        let now = self.series.next();
        // All times of the look before have passed.
        self.hold_series(self.series.last_bytes(now), now);
        let number = self.series.look(start);
        for index in 0..self.series.ports.len() {
            let look = self.port_look(self.series.ports[index].0);
            self.series.ports[index].1.push(look);
        }
        for index in 0..self.series.flows.len() {
            self.look_at_flow(index, number, now);
        }
        if let Some(mut balancers) = self.series.balancers.take() {
            self.look_at_balancers(&mut balancers, now);
            self.series.balancers = Some(balancers);
        }
        let open = self.series.flows.iter().filter(|of| of.sender.last().is_some_and(|look| look.0 == number)).count();
        let balancers = self.series.balancers.as_ref().map_or(0, |balancers| balancers.done.len());
        self.series.bytes_per_time = series_bytes(self.series.ports.len() as u64, open as u64, balancers as u64);
    }

    /// Ends the run where the series of all partitions take more memory than they may.
    fn hold_series(&mut self, bytes: u64, now: u64) {
        let held = self.plan.series_held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if let Some(message) = too_much(self.plan, held, now) {
            self.failure.get_or_insert(Failure::Input(message));
        }
    }

    fn port_look(&self, id: PortId) -> PortLook {
        let (port, counters) = (self.ports.port(id), self.ports.counters(id));
        PortLook {
            waiting_bytes: port.waiting_bytes,
            waiting_packets: port.waiting_packets,
            sent_bytes: port.account.sent_bytes,
            sent_packets: port.account.sent_packets,
            marked: narrow(counters.marked),
            trimmed: narrow(counters.trimmed),
            dropped: narrow(counters.dropped),
            pauses: narrow(counters.pauses),
            paused: port.paused,
        }
    }

    fn look_at_flow(&mut self, index: usize, number: u32, now: u64) {
        let flow = FlowId(self.series.flows[index].flow);
        let looks = &mut self.series.flows[index];
        if let Some(flow) = self.hosts.sender(flow) {
            looks.sender.push((number, sender_look(self.plan, flow, &mut looks.counted, now)));
        }
        if let Some(receiver) = self.hosts.receiver(flow) {
            let look =
                ReceiverLook { received_bytes: receiver.received_bytes(), out_of_order: receiver.out_of_order() };
            looks.receives(number, look);
        } else if self.hosts.is_complete(flow) {
            looks.closed.get_or_insert(number);
        }
    }

    /// A flow has got its last acknowledgement.
    pub(crate) fn last_look(&mut self, flow: &SenderFlow, now: u64) {
        if let Some(looks) = self.series.flows.get_mut(flow.of.watch as usize) {
            looks.last = Some((now, sender_look(self.plan, flow, &mut looks.counted, now)));
        }
        if let Some(balancers) = &mut self.series.balancers {
            let done = &mut balancers.done[usize::from(flow.of.balancer)];
            done.finished += 1;
            done.retransmitted += flow.sender.retransmitted();
            done.path_switches += flow.path_switches();
        }
    }

    fn look_at_balancers(&self, balancers: &mut BalancerLooks, now: u64) {
        let mut looks = balancers.done.clone();
        for flow in self.hosts.open_senders() {
            let look = &mut looks[usize::from(flow.of.balancer)];
            look.open += 1;
            look.in_flight += flow.sender.in_flight();
            look.window += flow.sender.allowed(&self.plan.transport, Time::from_ps(now)).0.unwrap_or(0);
            look.retransmitted += flow.sender.retransmitted();
            look.path_switches += flow.path_switches();
        }
        for (balancer, look) in looks.iter_mut().enumerate() {
            look.counters += self.hosts.counters(balancer);
            look.counters += self.switches.counters(balancer);
        }
        balancers.looks.push(looks);
        let mut spread = Spread::default();
        for uplinks in &mut balancers.uplinks {
            let (mut busiest, mut all) = (0, 0);
            for (port, before) in uplinks.iter_mut() {
                let sent = self.ports.port(*port).account.sent_bytes;
                let bytes = sent - std::mem::replace(before, sent);
                busiest = bytes.max(busiest);
                all += bytes;
            }
            spread.busiest += busiest;
            spread.mean += all / uplinks.len() as u64;
        }
        balancers.spread.push(spread);
    }
}

impl FlowLooks {
    /// A look at the receiver, kept where it is new.
    fn receives(&mut self, number: u32, look: ReceiverLook) {
        if self.receiver.last().is_none_or(|last| last.1 != look) {
            self.receiver.push((number, look));
        }
    }
}
