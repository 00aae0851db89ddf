//! What a transport must know of the network before a run, and what it learns of it later.

use anabranch_units::{Rate, Time};

/// What the transport must know of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Base RTT, the largest of the topology: a full packet out and an acknowledgement back on the empty network.
    pub base_rtt: Time,
    /// Bandwidth-delay product of that RTT, in bytes on the wire.
    pub bdp: u64,
    /// Time to drain one full data queue at the slowest link between switches.
    pub queue_drain: Time,
    /// Whether switches trim packets.
    pub trimming: bool,
    /// Rate of a host's port.
    pub nic_rate: Rate,
}

/// By how much a real network's base round trip is another than flows were told when they opened. What they hear of round trips is
/// told as if it were not, so that what lies above the base stays what it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    longer: Time,
    shorter: Time,
}

impl Moved {
    /// Flows were told `told`, and it is `base`.
    pub fn new(told: Time, base: Time) -> Self {
        Moved { longer: base.saturating_sub(told), shorter: told.saturating_sub(base) }
    }

    /// A round trip as flows are to hear of it.
    #[inline]
    pub fn told(self, rtt: Time) -> Time {
        rtt.saturating_add(self.shorter).saturating_sub(self.longer)
    }
}
