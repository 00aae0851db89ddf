use anabranch_units::Time;

/// Parts of a flow's completion time.
///
/// `queue`, `pause`, `timeout`, `nack`, `sender`, `serialisation` and `flight` add up to `fct_rx`; with `start` and
/// `ack` to `fct_ack`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDelays {
    /// From the first start in its workload to its own start, for a flow that waits for others; not part of the
    /// completion time.
    pub predecessor: Time,
    /// From its start to its first packet, while the host's link was busy or paused.
    pub start: Time,
    /// Waiting in queues, of the host and of switches.
    pub queue: Time,
    /// Paused by PFC.
    pub pause: Time,
    /// Waiting for a retransmission timeout.
    pub timeout: Time,
    /// Waiting for the notice of a trimmed or lost packet.
    pub nack: Time,
    /// Held back by the sender: window, pacing, load balancer.
    pub sender: Time,
    /// Sending its own packets, retransmissions included.
    pub serialisation: Time,
    /// Propagation, switch latency and serialisation behind the host, after the last packet had left.
    pub flight: Time,
    /// From the last byte received to the last acknowledgement at the sender; `None`: it did not come.
    pub ack: Option<Time>,
    /// Link whose queue accounts for most of `queue`, an index into the links, and that time; `None`: it never waited.
    pub longest: Option<(u32, Time)>,
}

impl FlowDelays {
    /// Returns the sum of the parts from the first packet sent to the last byte received.
    pub fn transfer(&self) -> Time {
        self.queue + self.pause + self.timeout + self.nack + self.sender + self.serialisation + self.flight
    }
}
