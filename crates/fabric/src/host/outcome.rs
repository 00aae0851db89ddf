//! What a partition keeps of each flow for the results.

use super::SenderFlow;
use anabranch_transport::Receiver;

/// Not yet.
pub(crate) const NEVER: u64 = u64::MAX;

/// A flow as its sender saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) started: u64,
    pub(crate) first_sent: u64,
    /// When the last acknowledgement came.
    pub(crate) done: u64,
    pub(crate) retransmitted: u64,
    pub(crate) path_switches: u64,
}

impl Default for Sent {
    fn default() -> Self {
        Sent { started: NEVER, first_sent: NEVER, done: NEVER, retransmitted: 0, path_switches: 0 }
    }
}

impl Sent {
    pub(crate) fn note(&mut self, flow: &SenderFlow) {
        self.retransmitted = flow.sender.retransmitted();
        self.path_switches = flow.path_switches;
    }
}

/// A flow as its receiver saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// When the last byte came.
    pub(crate) done: u64,
    pub(crate) out_of_order: u64,
    pub(crate) out_of_sequence: u64,
    pub(crate) max_reorder_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Default for Received {
    fn default() -> Self {
        Received { done: NEVER, out_of_order: 0, out_of_sequence: 0, max_reorder_bytes: 0, received_bytes: 0 }
    }
}

impl Received {
    pub(crate) fn note(&mut self, receiver: &Receiver) {
        self.out_of_order = receiver.out_of_order();
        self.out_of_sequence = receiver.out_of_sequence();
        self.max_reorder_bytes = receiver.max_reorder_bytes();
        self.received_bytes = receiver.received_bytes();
    }
}
