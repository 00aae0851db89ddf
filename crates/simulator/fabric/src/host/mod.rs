//! Hosts: NICs that serve the flows, senders, receivers, and the host side of the schemes.

mod nic;
mod outcome;
mod probe;
mod receiver;
mod sender;

pub(crate) use outcome::{NEVER, Received, Sent};
pub(crate) use sender::SenderFlow;

use crate::{
    ids::{FlowId, Slot},
    measure::Gaps,
    plan::Plan,
};
use anabranch_backend::LoadBalancer;
use anabranch_endpoint::Balancer;
use anabranch_lb::{HostScheme, SchemeCounters, registry};
use anabranch_topology::{BasePaths, NodeId};
use anabranch_transport::Receiver;
use anabranch_units::Time;
use nic::Nic;
use probe::ProbeCounters;
use slab::Slab;

/// The hosts of a partition and the flows that are open there.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// Per host; empty ones for hosts of other partitions.
    nics: Vec<Nic>,
    /// Schemes per host and load balancer; none for hosts of other partitions.
    schemes: Vec<Vec<Balancer<registry::Host>>>,
    senders: Slab<SenderFlow>,
    /// Per flow.
    sender_of: Vec<Slot>,
    receivers: Slab<Receiver>,
    /// Per flow.
    receiver_of: Vec<Slot>,
    sent: Vec<Sent>,
    received: Vec<Received>,
    base_paths: BasePaths,
    pub(crate) probes: ProbeCounters,
    pub(crate) gaps: Gaps,
    pub(crate) timeouts: u64,
    /// Flows done at their senders.
    pub(crate) finished: u64,
}

impl Hosts {
    /// The hosts of partition `me`.
    pub(crate) fn new(plan: &Plan<'_>, me: u16) -> Self {
        let flows = plan.flows.flows.len();
        let schemes = |host: u32| {
            let key = plan.topology.key(NodeId(host));
            let build = |b: &LoadBalancer| {
                let scheme = b.host.build(plan.seed, key);
                Balancer::new(match &plan.measure.record {
                    Some(record) => record.around(scheme, key),
                    None => scheme,
                })
            };
            if plan.owner_of_host(host) == me { plan.balancers.iter().map(build).collect() } else { vec![] }
        };
        Hosts {
            nics: (0..plan.hosts).map(|_| Nic::default()).collect(),
            schemes: (0..plan.hosts).map(schemes).collect(),
            senders: Slab::new(),
            sender_of: vec![Slot::NONE; flows],
            receivers: Slab::new(),
            receiver_of: vec![Slot::NONE; flows],
            sent: vec![Sent::default(); flows],
            received: vec![Received::default(); flows],
            base_paths: BasePaths::default(),
            probes: ProbeCounters::default(),
            gaps: Gaps::default(),
            timeouts: 0,
            finished: 0,
        }
    }

    /// A flow at its sender, where it is open.
    pub(crate) fn sender(&self, flow: FlowId) -> Option<&SenderFlow> {
        self.senders.get(self.sender_of[flow.at()].at())
    }

    /// A flow at its receiver, where it is open.
    pub(crate) fn receiver(&self, flow: FlowId) -> Option<&Receiver> {
        self.receivers.get(self.receiver_of[flow.at()].at())
    }

    /// Whether a flow has been received whole here.
    pub(crate) fn is_complete(&self, flow: FlowId) -> bool {
        self.receiver_of[flow.at()] == Slot::COMPLETE
    }

    /// Every flow that is open at its sender, in no order that means anything.
    pub(crate) fn open_senders(&self) -> impl Iterator<Item = &SenderFlow> {
        self.senders.iter().map(|(_, flow)| flow)
    }

    /// What the host side of a load balancer has counted.
    pub(crate) fn counters(&self, balancer: usize) -> SchemeCounters {
        let mut sum = SchemeCounters::default();
        self.schemes.iter().filter_map(|host| host.get(balancer)).for_each(|own| sum += own.scheme().counters());
        sum
    }

    /// What is known of a flow at its sender.
    pub(crate) fn sent(&self, flow: FlowId) -> &Sent {
        &self.sent[flow.at()]
    }

    /// What is known of a flow at its receiver.
    pub(crate) fn received(&self, flow: FlowId) -> &Received {
        &self.received[flow.at()]
    }

    /// Open flows leave what they have so far.
    pub(crate) fn note_open_flows(&mut self) {
        for (_, flow) in &self.senders {
            self.sent[flow.of.flow.at()].note(flow);
        }
        for (number, slot) in self.receiver_of.iter().enumerate() {
            if let Some(receiver) = self.receivers.get(slot.at()) {
                self.received[number].note(receiver);
            }
        }
    }

    /// The first open flow, for people: which, where, since when.
    pub(crate) fn open_flow(&self) -> Option<(FlowId, String)> {
        let (_, open) = self.senders.iter().min_by_key(|(_, open)| open.of.flow)?;
        let (flow, src, dst) = (open.of.flow, open.of.src, open.of.dst);
        let started = Time::from_ps(self.sent(flow).started);
        let message = format!(
            "flow {} (host{} to host{}, started at {started}) has {} of {} packets acknowledged and {} B in flight",
            flow.0,
            src.0,
            dst.0,
            open.sender.cumulative(),
            open.sender.packets(),
            open.sender.in_flight(),
        );
        Some((flow, message))
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self, plan: &Plan<'_>) -> usize {
        let window = plan.transport.window_packets().next_power_of_two() as usize;
        let per_flow = size_of::<Sent>() + size_of::<Received>() + 2 * size_of::<Slot>();
        // A sender keeps 16 B per packet of its window, a receiver one bit.
        self.senders.capacity() * (size_of::<SenderFlow>() + 16 * window)
            + self.receivers.capacity() * (size_of::<Receiver>() + window / 8)
            + self.sent.len() * per_flow
            + self.nics.len() * (size_of::<Nic>() + size_of::<Vec<Balancer<registry::Host>>>())
    }
}
