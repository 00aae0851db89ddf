//! State of an open flow at its sender.

use crate::{
    ids::{FlowId, HostId},
    measure::{Counted, SampledSender, Timeline},
    plan::{Plan, TransportId},
};
use anabranch_endpoint::{Flow, Transports};
use anabranch_transport::Transport;
use anabranch_units::Time;

#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) flow: FlowId,
    pub(crate) transport: TransportId,
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(crate) balancer: u8,
    pub(super) class: u8,
    /// Base round-trip time of its pair of hosts, in picoseconds.
    pub(super) base_rtt: u64,
    /// For schemes whose tags number paths: per run of paths of equal latency, the number after the last and their base round-trip time.
    pub(super) path_rtts: Option<Box<[(u32, Time)]>>,
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
        self.transports.of(flow.transport)
    }
}

impl Sending {
    /// Returns the base round-trip time of the path of a tag, where tags number paths.
    #[inline]
    pub(super) fn path_rtt(&self, tag: u32) -> Option<Time> {
        let known = self.path_rtts.as_ref()?.iter().find(|(end, _)| tag >> 16 < *end)?;
        Some(known.1)
    }
}

pub(crate) type SenderFlow = Flow<Sending>;

pub(crate) fn sample_sender(plan: &Plan<'_>, flow: &SenderFlow, counted: &mut Counted, now: u64) -> SampledSender {
    let (window, rate) = flow.sender.allowed(plan.transports.of(flow.of.transport), Time::from_ps(now));
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
