//! Output ports: what waits in them, what leaves when. [`Ports`] is the only way to a port.
//!
//! A port has no event per packet. Which packet starts when follows from what has joined it, so it is worked out only
//! when somebody needs to know: when the next packet joins, when a scheme asks for its length, and at the latest at the
//! end of the window in which the transmission starts, before its packet can arrive anywhere. See [`Ports::advance`].

mod buffer;
mod classes;
mod fault;
mod marking;
mod pause;
mod ports;
mod watch;
mod wire_time;

pub(crate) use buffer::SharedBuffer;
pub use buffer::lossless_problem;
pub(crate) use classes::quanta;
pub(crate) use marking::Marking;
pub(crate) use ports::Ports;

use crate::{event::arrival_order, ids::PacketId, measure::QueueAccount, packet::Fifo};

/// It stands among the ports that have more to send.
pub(crate) const LISTED: u8 = 1;
/// The usual case: one class, no shared buffer, no fault, nothing watched, whole picoseconds per byte.
pub(crate) const PLAIN: u8 = 2;
/// The link is down or loses packets.
pub(crate) const FAULTY: u8 = 4;
/// The port belongs to a host's NIC.
pub(crate) const NIC: u8 = 8;
/// It must be worked out within a window too, by events: its link is too short, or what it does acts on others at once.
pub(crate) const PROMPT: u8 = 16;
/// A service event is pending.
pub(crate) const ARMED: u8 = 32;
/// Its packets are traced or captured.
pub(crate) const WATCHED: u8 = 64;

/// The cell behind a link that leads to another partition.
pub(crate) const REMOTE: u16 = u16::MAX;

/// An output port and the link behind it: a cache line for moving packets, another one for counting.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Port {
    /// End of the last transmission that was worked out, or since when nothing could have started.
    pub(crate) free_at: u64,
    /// Propagation delay, with the latency of the switch behind the link.
    pub(crate) delay: u64,
    /// Picoseconds per byte; 0 where that is no whole number, or other rules hold.
    pub(crate) ps_per_byte: u32,
    /// Canonical order of arrivals over this link.
    pub(crate) order: u32,
    pub(crate) control: Fifo,
    /// Queue of data where there is one data class.
    pub(crate) data: Fifo,
    /// Waiting bytes of all data classes.
    pub(crate) waiting_bytes: u32,
    /// Waiting packets of all data classes.
    pub(crate) waiting_packets: u32,
    pub(crate) control_bytes: u32,
    /// Bytes of the last packet that started.
    pub(crate) sending: u32,
    /// The node behind the link.
    pub(crate) to: u32,
    /// Its cell, or [`REMOTE`].
    pub(crate) to_cell: u16,
    pub(crate) flags: u8,
    /// One bit per data class: paused by the switch behind the link.
    pub(crate) paused: u8,

    pub(crate) account: QueueAccount,
}

const _: () = assert!(size_of::<Port>() == 128);

impl Port {
    pub(crate) fn new(delay: u64, rank: u32, to: u32, to_cell: u16, flags: u8) -> Self {
        Port {
            free_at: 0,
            delay,
            ps_per_byte: 0,
            order: arrival_order(rank),
            control: Fifo::EMPTY,
            data: Fifo::EMPTY,
            waiting_bytes: 0,
            waiting_packets: 0,
            control_bytes: 0,
            sending: 0,
            to,
            to_cell,
            flags,
            paused: 0,
            account: QueueAccount::default(),
        }
    }

    /// Whether a packet waits.
    #[inline]
    pub(crate) fn backlogged(&self) -> bool {
        self.waiting_packets > 0 || !self.control.is_empty()
    }

    /// The first packet of the control queue; there must be one.
    #[inline]
    pub(crate) fn pop_control(&mut self, packets: &crate::packet::Packets) -> PacketId {
        let id = self.control.pop(packets);
        self.control_bytes -= u32::from(packets[id].size);
        id
    }
}
