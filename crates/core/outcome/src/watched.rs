//! Traces of flows and captures of links, packet by packet.

use anabranch_lb::{Call, CallEvent};
use anabranch_units::Time;

anabranch_settings::worded! {
/// Kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketKind {
    /// Payload.
    #[default]
    Data = "data",
    /// Header of a trimmed data packet.
    Header = "header",
    /// Acknowledgement.
    Ack = "ack",
    /// Negative acknowledgement.
    Nack = "nack",
    /// Probe of a host scheme for the round trip of a path.
    Probe = "probe",
    /// Reply to a probe.
    ProbeReply = "probe-reply",
    /// Control packet from the last switch of a flow to its first, between their schemes.
    SwitchControl = "switch-control",
    /// Credit of a receiver (RCCC).
    Grant = "grant",
    /// PFC frame: pause or resume.
    Pause = "pause",
}
}

anabranch_settings::worded! {
/// Event of a packet; the variants are in the order in which they occur to one packet at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceEvent {
    /// The packet is the first of its flow with another path tag than the data packet before it.
    PathChange = "path-change",
    /// It was marked at this port.
    Mark = "mark",
    /// Its queue was full and it was trimmed to its header.
    Trim = "trim",
    /// Its transmission began at the NIC of its source host.
    Send = "send",
    /// Its transmission began at a switch.
    #[default]
    Hop = "hop",
    /// It reached its host.
    Receive = "receive",
    /// Its queue or its switch's buffer was full and it was dropped.
    Drop = "drop",
    /// It was lost on a link that is down or loses packets.
    Loss = "loss",
    /// Its switch had no route and dropped it.
    NoRoute = "no-way",
    /// No packet's: the entropy value `tag` became good.
    ValueGood = "value-good",
    /// It is skipped for congestion.
    ValueSkipped = "value-skipped",
    /// It was withdrawn after a loss.
    ValueWithdrawn = "value-withdrawn",
    /// A controller denied it.
    ValueDenied = "value-denied",
}
}

/// An event of a packet of a traced flow. Rows are sorted by their fields in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceRow {
    /// Time of the event.
    pub time: Time,
    /// Number of the flow.
    pub flow_id: u32,
    /// Packet sequence number, for an acknowledgement that of the acknowledged packet; `None` for packets that have none.
    pub psn: Option<u64>,
    /// Kind of the packet.
    pub packet: PacketKind,
    /// The event.
    pub event: TraceEvent,
    /// Index of the event's link, or of the link at its port; for [`TraceEvent::NoRoute`] of any link that leaves the switch.
    pub link: u32,
    /// Path tag.
    pub tag: u32,
    /// Time at which it joined the output port of that link; `None` at a NIC, where data waits in its flow.
    pub joined: Option<Time>,
    /// Bytes that waited there before it in its class (a control packet: among control); for a mark, the bytes that caused it.
    pub queue_bytes: Option<u32>,
    /// Bytes on the wire.
    pub size_bytes: u16,
    /// For an acknowledgement: first PSN not yet received.
    pub acked_below: Option<u64>,
    /// It has an ECN mark; for an acknowledgement: it echoes one.
    pub marked: bool,
    /// For an acknowledgement: it has a congestion notification (RoCE).
    pub notification: bool,
    /// It was sent before.
    pub retransmission: bool,
}

/// A call of a scheme for a traced flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeRow {
    /// Index of the link of the sending host, or of the link that a switch chose.
    pub link: u32,
    /// The call.
    pub call: Call,
}

impl SchemeRow {
    /// Returns `true` if a file has the row: a request for a probe that gave none counts only without another call at its time.
    pub fn is_written(&self, before: Option<&SchemeRow>) -> bool {
        let same = |before: &SchemeRow| (before.call.time, before.call.flow) == (self.call.time, self.call.flow);
        let follows = before.is_some_and(same);
        !matches!(self.call.event, CallEvent::PollProbe(None)) || !follows
    }
}

/// A packet transmitted over a captured link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Start of its transmission.
    pub time: Time,
    /// Packet sequence number, for an acknowledgement that of the acknowledged packet; for a pause frame 1 to pause, 0 to resume.
    pub psn: u64,
    /// For an acknowledgement: first PSN not yet received.
    pub acked_below: u64,
    /// Number of the flow; 0 for pause frames.
    pub flow_id: u32,
    /// Path tag.
    pub tag: u32,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Bytes on the wire.
    pub size_bytes: u16,
    /// Payload bytes of the data packet this is or was.
    pub payload_bytes: u16,
    /// Kind of the packet.
    pub kind: PacketKind,
    /// Data class, for a pause frame the paused one.
    pub class: u8,
    /// ECN mark; for an acknowledgement: it echoes one.
    pub marked: bool,
    /// For an acknowledgement: congestion notification.
    pub notification: bool,
    /// It was sent before.
    pub retransmission: bool,
    /// The sender requests an acknowledgement.
    pub ack_request: bool,
}

/// Packets transmitted over one directed link, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Index into the result's links.
    pub link: u32,
    /// The packets.
    pub packets: Vec<CapturedPacket>,
}

/// Traces and captures of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Events of the packets of traced flows, in canonical order.
    pub trace: Vec<TraceRow>,
    /// The trace reached its maximum number of rows before the end of the run.
    pub trace_cut: bool,
    /// Calls of the schemes of traced flows, on request: by time, those of a host in their order.
    pub schemes: Vec<SchemeRow>,
    /// They reached that number before the end of the run.
    pub schemes_cut: bool,
    /// Captures of links.
    pub captures: Vec<Capture>,
}

impl Watched {
    /// Returns the end of a trace, or of the calls of schemes, that reached its maximum number of rows.
    pub fn cut_at(&self) -> Option<Time> {
        let trace = self.trace.last().filter(|_| self.trace_cut).map(|row| row.time);
        let schemes = self.schemes.last().filter(|_| self.schemes_cut).map(|row| row.call.at());
        trace.into_iter().chain(schemes).min()
    }
}
