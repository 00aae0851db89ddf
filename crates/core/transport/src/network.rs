//! Properties of the network that a transport needs, and later changes of its base round trip.

use anabranch_units::{Rate, Time};

/// Properties of the network that a transport needs before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Base RTT of the longest path: a full packet and its acknowledgement on the empty network.
    pub base_rtt: Time,
    /// Bandwidth-delay product of that RTT, in bytes on the wire.
    pub bdp: u64,
    /// Time to drain one full data queue at the slowest link between switches.
    pub queue_drain: Time,
    /// `true` if switches trim packets.
    pub trimming: bool,
    /// Rate of a host's port.
    pub nic_rate: Rate,
}

/// Shift of a real network's base round trip since the flows opened, by which measured round trips are corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BaseRttShift {
    longer: Time,
    shorter: Time,
}

impl BaseRttShift {
    /// Creates the shift from the base round trip at opening, `opened`, to `base`.
    pub fn new(opened: Time, base: Time) -> Self {
        BaseRttShift { longer: base.saturating_sub(opened), shorter: opened.saturating_sub(base) }
    }

    /// Returns a measured round trip corrected by the shift.
    #[inline]
    pub fn adjust(self, rtt: Time) -> Time {
        rtt.saturating_add(self.shorter).saturating_sub(self.longer)
    }
}
