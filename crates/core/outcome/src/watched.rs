//! What was watched packet by packet: the packets of traced flows, and what left over captured links.

use anabranch_units::Time;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PacketKind {
    /// Payload.
    Data,
    /// What trimming left of a data packet.
    Header,
    /// Acknowledgement.
    Ack,
    /// Negative acknowledgement.
    Nack,
    /// A host scheme's question for the round trip of a path.
    Probe,
    /// The answer to it.
    ProbeReply,
    /// From the last switch of a flow to its first, between their schemes.
    SwitchControl,
    /// PFC: pause, or go on.
    Pause,
}

impl PacketKind {
    /// The word in `trace.csv`.
    pub fn word(self) -> &'static str {
        match self {
            PacketKind::Data => "data",
            PacketKind::Header => "header",
            PacketKind::Ack => "ack",
            PacketKind::Nack => "nack",
            PacketKind::Probe => "probe",
            PacketKind::ProbeReply => "probe-reply",
            PacketKind::SwitchControl => "switch-control",
            PacketKind::Pause => "pause",
        }
    }
}

/// What happened to a packet; the variants stand in the order in which they happen to one packet at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceEvent {
    /// The packet is the first of its flow with another path tag than the data packet before it.
    PathChange,
    /// It was marked, here.
    Mark,
    /// It found its queue full and was cut to its header.
    Trim,
    /// Its transmission began at the NIC of the host it comes from.
    Send,
    /// Its transmission began at a switch.
    Hop,
    /// It reached its host.
    Receive,
    /// It found its queue or its switch's buffer full and was dropped.
    Drop,
    /// It was lost on a link that is down or loses packets.
    Loss,
    /// Its switch knew no way on and dropped it.
    NoWay,
}

impl TraceEvent {
    /// The word in `trace.csv`.
    pub fn word(self) -> &'static str {
        match self {
            TraceEvent::PathChange => "path-change",
            TraceEvent::Mark => "mark",
            TraceEvent::Trim => "trim",
            TraceEvent::Send => "send",
            TraceEvent::Hop => "hop",
            TraceEvent::Receive => "receive",
            TraceEvent::Drop => "drop",
            TraceEvent::Loss => "loss",
            TraceEvent::NoWay => "no-way",
        }
    }
}

/// Something that happened to a packet of a traced flow. Rows are sorted as their fields stand here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceRow {
    /// When.
    pub time: Time,
    /// Number of the flow.
    pub flow_id: u32,
    /// Packet sequence number, of an answer that of the packet it answers; `None` for packets that have none.
    pub psn: Option<u64>,
    /// What kind of packet.
    pub packet: PacketKind,
    /// What happened.
    pub event: TraceEvent,
    /// The directed link it happened on, or at whose port, by its place in the result's links; for
    /// [`TraceEvent::NoWay`] any link that leaves the switch.
    pub link: u32,
    /// Path tag.
    pub tag: u32,
    /// When it joined the port at the beginning of that link; `None` at a NIC, where data waits in its flow.
    pub joined: Option<Time>,
    /// Bytes that waited there before it in its class, or, for a control packet, among control; of a mark, the bytes that
    /// led to it.
    pub queue_bytes: Option<u32>,
    /// Bytes on the wire.
    pub size_bytes: u16,
    /// Of an answer: every PSN below this one has arrived.
    pub acked_below: Option<u64>,
    /// It carries an ECN mark; of an answer: it echoes one.
    pub marked: bool,
    /// Of an answer: it carries a congestion notification (RoCE).
    pub notification: bool,
    /// It was sent before.
    pub retransmission: bool,
}

/// A packet that left over a captured link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket {
    /// When its transmission began.
    pub time: Time,
    /// Packet sequence number, of an answer that of the packet it answers; of a pause frame 1 to pause, 0 to go on.
    pub psn: u64,
    /// Of an answer: every PSN below this one has arrived.
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
    /// What it is.
    pub kind: PacketKind,
    /// Data class, of a pause frame the one that is paused.
    pub class: u8,
    /// ECN mark; of an answer: it echoes one.
    pub marked: bool,
    /// Of an answer: congestion notification.
    pub notification: bool,
    /// It was sent before.
    pub retransmission: bool,
    /// The sender asks for an acknowledgement.
    pub ack_request: bool,
}

/// What left over one directed link, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// The link, by its place in the result's links.
    pub link: u32,
    /// The packets.
    pub packets: Vec<CapturedPacket>,
}

/// What was watched packet by packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// What happened to the packets of traced flows, in canonical order.
    pub trace: Vec<TraceRow>,
    /// The trace ends before the run does: it has as many rows as it may have.
    pub trace_cut: bool,
    /// What left over captured links.
    pub captures: Vec<Capture>,
}
