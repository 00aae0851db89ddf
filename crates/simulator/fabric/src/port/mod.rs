//! Output ports: their queues and transmissions. [`Ports`] is the only access to a port.
//!
//! A port has no event per packet: the start of each follows from the packets that have joined. A port is advanced
//! lazily: when the next packet joins, when a scheme reads its length, and at the latest at the end of the window in
//! which the transmission starts, before its packet can arrive anywhere. See [`Ports::advance`].

mod backlog;
mod buffer;
mod classes;
mod contest;
mod fault;
mod headers;
mod limits;
mod lists;
mod pause;
mod ports;
mod signal;
mod watch;
mod wire_time;

pub(crate) use ports::Ports;

use crate::{
    arena::Packets,
    event::{Ties, arrival_order},
    ids::PacketId,
    measure::QueueAccount,
    packet::{Fifo, Packet},
    plan::{LinkPlan, Plan},
};
use anabranch_engine::Cells;
use anabranch_topology::NodeId;
use anabranch_units::{Rate, Time};

/// The port is in the list of ports that have more to send.
const LISTED: u8 = 1;
/// One class, which no rule samples, no shared buffer, no fault, nothing watched, whole picoseconds per byte.
const PLAIN: u8 = 2;
/// The same as [`PLAIN`], at a switch with a shared buffer.
const POOLED: u8 = 128;
const FAULTY: u8 = 4;
const NIC: u8 = 8;
/// Must also advance within a window, by events: its link is too short, or its transmissions act on others at once.
const PROMPT: u8 = 16;
/// A service event is pending.
const ARMED: u8 = 32;
/// Its packets are traced or captured, or carry signals.
const WATCHED: u8 = 64;

/// Marker for a link that leads to another partition, in place of a cell.
const REMOTE: u16 = u16::MAX;

/// An output port and the link behind it: a cache line for moving packets, another one for counting.
#[derive(Clone, Debug)]
#[repr(align(128))]
pub(crate) struct Port {
    /// End of the last transmission that was started, or the time up to which the port was idle.
    free_at: u64,
    /// Propagation delay, with the latency of the switch behind the link; in picoseconds.
    delay: u64,
    /// Picoseconds per byte; 0 where that is no integer, or other rules hold.
    ps_per_byte: u32,
    order: u32,
    control: Fifo,
    /// Queue of data where there is one data class.
    data: Fifo,
    pub(crate) waiting_bytes: u32,
    pub(crate) waiting_packets: u32,
    control_bytes: u32,
    /// Bytes of the last packet that started.
    sending: u32,
    to: u32,
    /// Cell of that node, or [`REMOTE`].
    to_cell: u16,
    flags: u8,
    /// Bit per data class: paused by the switch behind the link.
    pub(crate) paused: u8,

    pub(crate) account: QueueAccount,
}

const _: () = assert!(size_of::<Port>() == 128);

impl Port {
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

    #[inline]
    fn backlogged(&self) -> bool {
        self.waiting_packets > 0 || !self.control.is_empty()
    }

    #[inline]
    fn pop_control(&mut self, packets: &Packets) -> PacketId {
        let id = self.control.pop(packets);
        self.control_bytes -= u32::from(packets[id].size);
        id
    }

    /// Returns the wire time of the last packet that started, in picoseconds. The rate is that of its healthy link, for
    /// ports without whole picoseconds per byte.
    fn wire_time(&self, rate: Rate) -> u64 {
        match u64::from(self.ps_per_byte) {
            0 => rate.wire_time(u64::from(self.sending)).ps(),
            time => u64::from(self.sending) * time,
        }
    }

    /// Returns the bytes that are on the wire at `now`, of the packet in transmission those sent so far at `rate`.
    pub(crate) fn sent_until(&self, now: u64, rate: Rate) -> u64 {
        if self.free_at <= now {
            return self.account.sent_bytes;
        }
        // Never too few: the end may have been rounded down by a picosecond.
        let left = 1 + rate.bytes_in(Time::from_ps(self.free_at - now + 1));
        self.account.sent_bytes - left.min(u64::from(self.sending))
    }

    #[inline(always)]
    fn occupy(&mut self, size: u32, end: u64) {
        self.free_at = end;
        self.sending = size;
        self.account.sent_bytes += u64::from(size);
        self.account.sent_packets += 1;
    }

    /// Schedules the arrival of a packet whose transmission ends at `end`; returns `false` if the arrival is in another
    /// partition.
    #[inline(always)]
    fn reach(&self, packet: &mut Packet, id: PacketId, end: u64, salt: u64, ties: &Ties, cells: &mut Cells) -> bool {
        if self.to_cell == REMOTE {
            return false;
        }
        packet.next = self.to;
        let order = self.arrival(salt, ties);
        cells.push(u32::from(self.to_cell), anabranch_engine::Event { time: end + self.delay, order, payload: id.0 });
        true
    }

    /// Returns the order of the arrival of the packet that has just started.
    #[inline(always)]
    fn arrival(&self, salt: u64, ties: &Ties) -> u32 {
        ties.order(self.order, salt, self.account.sent_packets)
    }
}
