//! Output ports: what waits in them, what leaves when. [`Ports`] is the only way to a port.
//!
//! A port has no event per packet. Which packet starts when follows from what has joined it, so it is worked out only
//! when somebody needs to know: when the next packet joins, when a scheme asks for its length, and at the latest at the
//! end of the window in which the transmission starts, before its packet can arrive anywhere. See [`Ports::advance`].

mod backlog;
mod buffer;
mod classes;
mod fault;
mod lists;
mod pause;
mod ports;
mod watch;
mod wire_time;

pub(crate) use ports::Ports;

use crate::{
    event::arrival_order,
    ids::PacketId,
    measure::QueueAccount,
    packet::{Fifo, Packet, Packets},
    plan::{LinkPlan, Plan},
};
use anabranch_engine::Cells;
use anabranch_topology::NodeId;

/// It stands among the ports that have more to send.
const LISTED: u8 = 1;
/// The usual case: one class, no shared buffer, no fault, nothing watched, whole picoseconds per byte.
const PLAIN: u8 = 2;
/// The same at a switch with a shared buffer.
const POOLED: u8 = 128;
/// The link is down or loses packets.
const FAULTY: u8 = 4;
/// The port belongs to a host's NIC.
const NIC: u8 = 8;
/// It must be worked out within a window too, by events: its link is too short, or what it does acts on others at once.
const PROMPT: u8 = 16;
/// A service event is pending.
const ARMED: u8 = 32;
/// Its packets are traced or captured.
const WATCHED: u8 = 64;

/// The cell behind a link that leads to another partition.
const REMOTE: u16 = u16::MAX;

/// An output port and the link behind it: a cache line for moving packets, another one for counting.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Port {
    /// End of the last transmission that was worked out, or since when nothing could have started.
    free_at: u64,
    /// Propagation delay, with the latency of the switch behind the link.
    delay: u64,
    /// Picoseconds per byte; 0 where that is no whole number, or other rules hold.
    ps_per_byte: u32,
    /// Canonical order of arrivals over this link.
    order: u32,
    control: Fifo,
    /// Queue of data where there is one data class.
    data: Fifo,
    /// Waiting bytes of all data classes.
    pub(crate) waiting_bytes: u32,
    /// Waiting packets of all data classes.
    pub(crate) waiting_packets: u32,
    control_bytes: u32,
    /// Bytes of the last packet that started.
    sending: u32,
    /// The node behind the link.
    to: u32,
    /// Its cell, or [`REMOTE`].
    to_cell: u16,
    flags: u8,
    /// One bit per data class: paused by the switch behind the link.
    pub(crate) paused: u8,

    pub(crate) account: QueueAccount,
}

const _: () = assert!(size_of::<Port>() == 128);

impl Port {
    /// The port of partition `me` that sends over a link.
    fn new(plan: &Plan<'_>, link: &LinkPlan, me: u16) -> Self {
        let nic = link.from < plan.hosts;
        let prompt = plan.is_prompt(link);
        Port {
            free_at: 0,
            delay: link.delay,
            ps_per_byte: 0,
            order: arrival_order(link.rank),
            control: Fifo::EMPTY,
            data: Fifo::EMPTY,
            waiting_bytes: 0,
            waiting_packets: 0,
            control_bytes: 0,
            sending: 0,
            to: link.to,
            to_cell: if plan.cells.owner_of(NodeId(link.to)) == me { plan.cell_of(link.to) } else { REMOTE },
            flags: if nic { NIC } else { 0 } | if prompt { PROMPT } else { 0 },
            paused: 0,
            account: QueueAccount::default(),
        }
    }

    /// Whether a packet waits.
    #[inline]
    fn backlogged(&self) -> bool {
        self.waiting_packets > 0 || !self.control.is_empty()
    }

    /// The first packet of the control queue; there must be one.
    #[inline]
    fn pop_control(&mut self, packets: &Packets) -> PacketId {
        let id = self.control.pop(packets);
        self.control_bytes -= u32::from(packets[id].size);
        id
    }

    /// A packet of `size` bytes is on the wire until `end`.
    #[inline(always)]
    fn occupy(&mut self, size: u32, end: u64) {
        self.free_at = end;
        self.sending = size;
        self.account.sent_bytes += u64::from(size);
        self.account.sent_packets += 1;
    }

    /// A packet whose transmission ends at `end` will arrive; false where that is in another partition, of which nothing is
    /// known here.
    #[inline(always)]
    fn reach(&self, packet: &mut Packet, id: PacketId, end: u64, cells: &mut Cells) -> bool {
        if self.to_cell == REMOTE {
            return false;
        }
        packet.next = self.to;
        let arrival = anabranch_engine::Event { time: end + self.delay, order: self.order, payload: id.0 };
        cells.push(u32::from(self.to_cell), arrival);
        true
    }
}
