//! State of an open flow at its sender.

use crate::{
    ids::{FlowId, HostId},
    measure::{Counted, SampledSender, Timeline},
    plan::Plan,
};
use anabranch_endpoint::{Flow, Transports};
use anabranch_lb::GuidedPaths;
use anabranch_transport::Transport;
use anabranch_units::Time;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) flow: FlowId,
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(crate) balancer: u8,
    pub(super) class: u8,
    /// Base round-trip time of its pair of hosts, in picoseconds.
    pub(super) base_rtt: u64,
    /// Path list that its tags index, for guided schemes.
    pub(super) paths: Option<Arc<GuidedPaths>>,
    pub(super) shortest_rtt: Time,
    /// Queue pairs open now: those of the scheme, and one per probe without a reply; the most so far.
    pub(super) pairs: u32,
    pub(super) max_pairs: u32,
    /// Index among the flows with time series; `u32::MAX`: none.
    pub(super) watch: u32,
    /// Where delays are attributed.
    pub(super) timeline: Option<Box<Timeline>>,
}

impl Transports<Sending> for Plan<'_> {
    #[inline]
    fn of<'a>(&'a self, flow: &'a Sending) -> &'a Transport {
        self.transport_of(flow.flow.0)
    }
}

pub(crate) type SenderFlow = Flow<Sending>;

pub(crate) fn sample_sender(plan: &Plan<'_>, flow: &SenderFlow, counted: &mut Counted, now: u64) -> SampledSender {
    let (window, rate) = flow.sender.allowed(plan.transport_of(flow.of.flow.0), Time::from_ps(now));
    SampledSender {
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
