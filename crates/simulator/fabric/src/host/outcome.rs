//! Records of the hosts and flows of a partition for the results.

use super::flow::SenderFlow;
use crate::measure::Gaps;
use anabranch_backend::FlowOutcome;
use anabranch_outcome::FlowCounters;
use anabranch_transport::Receiver;
use anabranch_units::Time;

pub(crate) const NEVER: u64 = u64::MAX;

/// Returns a time that has come.
pub(crate) fn known(time: u64) -> Option<Time> {
    (time != NEVER).then(|| Time::from_ps(time))
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostCounters {
    pub(crate) probes: u64,
    pub(crate) probe_bytes: u64,
    pub(crate) gaps: Gaps,
    pub(crate) timeouts: u64,
    pub(crate) finished: u64,
}

/// A sender's record of a flow; times in picoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) started: u64,
    pub(crate) first_sent: u64,
    /// Time of the last acknowledgement.
    pub(crate) done: u64,
    pub(crate) metrics: FlowCounters,
}

impl Default for Sent {
    fn default() -> Self {
        Sent { started: NEVER, first_sent: NEVER, done: NEVER, metrics: FlowCounters::default() }
    }
}

impl Sent {
    pub(crate) fn note(&mut self, flow: &SenderFlow) {
        self.metrics.retransmitted_packets = flow.sender.retransmitted();
        self.metrics.path_switches = flow.path_switches();
        self.metrics.max_queue_pairs = u64::from(flow.of.max_pairs);
    }

    pub(crate) fn add_to(&self, (outcome, counters): &mut (FlowOutcome, FlowCounters)) {
        (outcome.started, outcome.first_sent) = (known(self.started), known(self.first_sent));
        outcome.acknowledged = known(self.done);
        counters.merge(&self.metrics);
    }
}

/// A receiver's record of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Time of the last byte, in picoseconds.
    pub(crate) done: u64,
    pub(crate) metrics: FlowCounters,
    pub(crate) received_bytes: u64,
}

impl Default for Received {
    fn default() -> Self {
        Received { done: NEVER, metrics: FlowCounters::default(), received_bytes: 0 }
    }
}

impl Received {
    pub(crate) fn note(&mut self, receiver: &Receiver) {
        self.metrics.out_of_order_packets = receiver.out_of_order();
        self.metrics.out_of_sequence_packets = receiver.out_of_sequence();
        self.metrics.max_reorder_bytes = receiver.max_reorder_bytes();
        self.metrics.refused_packets = receiver.refused();
        self.received_bytes = receiver.received_bytes();
    }

    pub(crate) fn add_to(&self, (outcome, counters): &mut (FlowOutcome, FlowCounters)) {
        outcome.received = known(self.done);
        counters.merge(&self.metrics);
    }
}
