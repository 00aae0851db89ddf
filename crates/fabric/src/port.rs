//! An output port and the link behind it: two cache lines, the first for moving packets, the second for counting.

use crate::packet::NONE;

/// A service event is pending.
pub(crate) const ARMED: u8 = 1;
/// The link leads to another partition.
pub(crate) const BOUNDARY: u8 = 2;
/// The link is down or loses packets.
pub(crate) const FAULTY: u8 = 4;
/// The port belongs to a host's NIC.
pub(crate) const NIC: u8 = 8;

/// From here on `ps_per_byte` is the number of a table of wire times in whole nanoseconds.
pub(crate) const CUT: u32 = 1 << 31;

/// An output port with its queues and its link.
///
/// A port has no event per packet. Which packet starts when is worked out when somebody needs to know: when a
/// packet joins (`catch_up`), or by a service event at the latest one link delay after the earliest transmission
/// not yet worked out, which is before its packet can arrive anywhere.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Port {
    /// End of the last transmission that was worked out.
    pub(crate) busy_until: u64,
    /// Propagation delay, with the latency of the switch behind the link.
    pub(crate) delay: u64,
    /// Picoseconds per byte; 0 where they are no whole number; from [`CUT`] on the number of a table of wire times.
    pub(crate) ps_per_byte: u32,
    /// Canonical order of arrivals over this link.
    pub(crate) order: u32,
    pub(crate) control_head: u32,
    pub(crate) control_tail: u32,
    /// Queue of data where there is one data class.
    pub(crate) data_head: u32,
    pub(crate) data_tail: u32,
    /// Waiting bytes of all data classes.
    pub(crate) data_bytes: u32,
    /// Waiting packets of all data classes.
    pub(crate) data_packets: u32,
    pub(crate) control_bytes: u32,
    /// Bytes of the last packet that started.
    pub(crate) sending: u32,
    /// The node behind the link.
    pub(crate) to: u32,
    pub(crate) flags: u8,
    /// One bit per data class: paused by the switch behind the link.
    pub(crate) paused: u8,

    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    /// Integral of waiting data bytes over time.
    pub(crate) area_bytes: u128,
    /// Integral of waiting data packets over time.
    pub(crate) area_packets: u64,
    /// Sum of the waiting times of data packets.
    pub(crate) waited: u64,
    /// When the data queue last changed.
    pub(crate) changed_at: u64,
    pub(crate) max_bytes: u32,
    pub(crate) max_packets: u32,
}

const _: () = assert!(size_of::<Port>() == 128);

impl Port {
    pub(crate) fn new(delay: u64, ps_per_byte: u32, order: u32, to: u32, flags: u8) -> Self {
        Port {
            busy_until: 0,
            delay,
            ps_per_byte,
            order,
            control_head: NONE,
            control_tail: NONE,
            data_head: NONE,
            data_tail: NONE,
            data_bytes: 0,
            data_packets: 0,
            control_bytes: 0,
            sending: 0,
            to,
            flags,
            paused: 0,
            sent_bytes: 0,
            sent_packets: 0,
            area_bytes: 0,
            area_packets: 0,
            waited: 0,
            changed_at: 0,
            max_bytes: 0,
            max_packets: 0,
        }
    }

    /// Whether a packet waits.
    #[inline]
    pub(crate) fn backlogged(&self) -> bool {
        self.data_packets > 0 || self.control_head != NONE
    }

    /// Brings the integrals of the data queue up to `now`; returns the time since the last change.
    #[inline]
    pub(crate) fn account(&mut self, now: u64) -> u64 {
        let span = now - self.changed_at;
        self.changed_at = now;
        self.area_bytes += u128::from(self.data_bytes) * u128::from(span);
        self.area_packets += u64::from(self.data_packets) * span;
        span
    }
}

/// Events of a port that are rare enough to be kept apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PortCounters {
    pub(crate) marked: u64,
    pub(crate) trimmed: u64,
    pub(crate) dropped: u64,
    /// Pause frames received for the data of this port.
    pub(crate) pauses: u64,
}
