//! What a partition keeps of each flow and port for the results.

use crate::transport::{Receiver, Sender};
use crate::{plan::Plan, port::Port};
use anabranch_units::Time;

/// Not yet.
pub(crate) const NEVER: u64 = u64::MAX;

/// A flow as its sender saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TxOutcome {
    pub(crate) started: u64,
    pub(crate) first_sent: u64,
    /// When the last acknowledgement came.
    pub(crate) done: u64,
    pub(crate) retransmitted: u64,
    pub(crate) path_switches: u64,
}

impl Default for TxOutcome {
    fn default() -> Self {
        TxOutcome { started: NEVER, first_sent: NEVER, done: NEVER, retransmitted: 0, path_switches: 0 }
    }
}

impl TxOutcome {
    pub(crate) fn note(&mut self, sender: &Sender, path_switches: u64) {
        self.retransmitted = sender.retransmitted();
        self.path_switches = path_switches;
    }
}

/// A flow as its receiver saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RxOutcome {
    /// When the last byte came.
    pub(crate) done: u64,
    pub(crate) out_of_order: u64,
    pub(crate) out_of_sequence: u64,
    pub(crate) max_reorder_bytes: u64,
    pub(crate) received_bytes: u64,
}

impl Default for RxOutcome {
    fn default() -> Self {
        RxOutcome { done: NEVER, out_of_order: 0, out_of_sequence: 0, max_reorder_bytes: 0, received_bytes: 0 }
    }
}

impl RxOutcome {
    pub(crate) fn of(receiver: &Receiver) -> Self {
        RxOutcome {
            done: NEVER,
            out_of_order: receiver.out_of_order(),
            out_of_sequence: receiver.out_of_sequence(),
            max_reorder_bytes: receiver.max_reorder_bytes(),
            received_bytes: receiver.received_bytes(),
        }
    }
}

/// The time series of one port.
#[derive(Debug)]
pub(crate) struct PortSamples {
    pub(crate) link: u32,
    pub(crate) samples: Vec<(Time, u64, u64, u64)>,
}

impl PortSamples {
    /// Empty series of the ports of partition `me` that the scenario asks for.
    pub(crate) fn of(plan: &Plan, me: u16) -> Vec<Self> {
        if plan.measure.series_interval == Time::ZERO {
            return Vec::new();
        }
        let mine = |link: &u32| plan.owner[plan.links[*link as usize].from as usize] == me;
        let links = plan.measure.series_links.iter().map(|link| link.0).filter(mine);
        links.map(|link| PortSamples { link, samples: Vec::new() }).collect()
    }

    pub(crate) fn take(&mut self, now: u64, port: &Port) {
        let (bytes, packets) = (u64::from(port.data_bytes), u64::from(port.data_packets));
        self.samples.push((Time::from_ps(now), bytes, packets, port.sent_bytes));
    }
}
