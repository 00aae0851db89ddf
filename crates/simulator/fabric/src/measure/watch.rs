//! Records of the packets of traced flows, and of those that leave over captured links. Packets carry no state for it.

use crate::{
    ids::{PacketId, PortId},
    packet::{Kind, MARKED, NOTIFICATION, Packet, RETRANSMISSION},
};
use anabranch_lb::{CallEvent, Record, ValueState};
use anabranch_outcome::{CapturedPacket, PacketKind, TraceEvent, TraceRow};
use anabranch_units::Time;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Calls of schemes, where they are recorded.
    pub(crate) record: Option<Record>,
    /// One bit per flow; empty where none is traced.
    flows: Vec<u64>,
    rows: Vec<TraceRow>,
    /// Rows whose time is before the end of the window they were written in.
    present: u64,
    limit: u64,
    /// The limit of rows is exceeded: no more are written.
    full: bool,
    /// Per packet of a traced flow: time at which it joined its port, and the bytes that waited there.
    joined: Vec<(u64, u32)>,
    /// Per traced flow, the tag of its last data packet.
    tags: BTreeMap<u32, u32>,
    /// Sorted by port.
    captures: Vec<(PortId, Vec<CapturedPacket>)>,
    max_captured: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub(crate) time: u64,
    pub(crate) link: u32,
    pub(crate) joined: Option<u64>,
    pub(crate) queue: Option<u32>,
}

impl Watch {
    /// Creates the records for these `traced` flows out of `number`, with at most `limit` rows, and for the captured ports.
    pub(crate) fn new(
        traced: &[u32],
        number: usize,
        limit: u64,
        captured: impl Iterator<Item = PortId>,
        max_captured: u64,
    ) -> Self {
        let mut flows = vec![0; if traced.is_empty() { 0 } else { number.div_ceil(64) }];
        for flow in traced {
            flows[*flow as usize / 64] |= 1 << (flow % 64);
        }
        let mut captures: Vec<_> = captured.map(|port| (port, Vec::new())).collect();
        captures.sort_unstable_by_key(|(port, _)| *port);
        Watch { flows, limit, captures, max_captured, ..Watch::default() }
    }

    pub(crate) fn traces(&self) -> bool {
        !self.flows.is_empty()
    }

    pub(crate) fn captured(&self) -> impl Iterator<Item = PortId> {
        self.captures.iter().map(|(port, _)| *port)
    }

    fn is_traced(&self, flow: u32) -> bool {
        let word = self.flows.get(flow as usize / 64).copied().unwrap_or(0);
        word >> (flow % 64) & 1 == 1
    }

    pub(crate) fn follows(&self, packet: &Packet) -> bool {
        self.is_traced(packet.flow) && packet.kind != Kind::Pause && !self.full
    }

    pub(crate) fn joins(&mut self, id: PacketId, now: u64, queue: u32) {
        if self.joined.len() <= id.at() {
            self.joined.resize(id.at() + 1, (0, 0));
        }
        self.joined[id.at()] = (now, queue);
    }

    pub(crate) fn joined(&self, id: PacketId) -> Option<(u64, u32)> {
        self.joined.get(id.at()).copied()
    }

    pub(crate) fn swap(&mut self, a: PacketId, b: PacketId) {
        if self.traces() {
            let least = a.at().max(b.at()) + 1;
            self.joined.resize(self.joined.len().max(least), (0, 0));
            self.joined.swap(a.at(), b.at());
        }
    }

    /// Returns `true` if the data packet has another tag than the previous one of its flow.
    pub(crate) fn changes_path(&mut self, packet: &Packet) -> bool {
        let last = self.tags.insert(packet.flow, packet.tag);
        last.is_some_and(|tag| tag != packet.tag)
    }

    pub(crate) fn note(&mut self, event: TraceEvent, packet: &Packet, at: Spot) {
        let answers = matches!(packet.kind, Kind::Ack | Kind::Nack);
        let numbered = answers || matches!(packet.kind, Kind::Data | Kind::Header);
        self.rows.push(TraceRow {
            time: Time::from_ps(at.time),
            flow_id: packet.flow,
            psn: numbered.then_some(u64::from(packet.psn)),
            packet: kind(packet.kind),
            event,
            link: at.link,
            tag: packet.tag,
            joined: at.joined.map(Time::from_ps),
            queue_bytes: at.queue,
            size_bytes: packet.size,
            acked_below: answers.then(|| packet.answer().cumulative),
            marked: packet.flags & MARKED != 0,
            notification: answers && packet.flags & NOTIFICATION != 0,
            retransmission: !answers && packet.flags & RETRANSMISSION != 0,
        });
        // A reception is written when the packet leaves the last switch; its time may be in a later window.
        self.present += u64::from(event != TraceEvent::Receive);
    }

    /// Records that the state of an entropy value of a followed flow changed, at its sender, whose link is `link`.
    pub(crate) fn note_value(&mut self, flow: &Packet, time: u64, tag: u32, state: ValueState, link: u32) {
        let event = match state {
            ValueState::Good => TraceEvent::ValueGood,
            ValueState::Skipped => TraceEvent::ValueSkipped,
            ValueState::Withdrawn => TraceEvent::ValueWithdrawn,
            ValueState::Denied => TraceEvent::ValueDenied,
        };
        let none = Packet { kind: Kind::Free, tag, size: 0, ..*flow };
        self.note(event, &none, Spot { time, link, joined: None, queue: None });
    }

    /// Records the choice of a switch if it was for this data packet, whose flow has the key `key` at switches.
    pub(crate) fn note_choice(&self, packet: &Packet, key: u64, now: u64, link: u32) {
        if let Some(record) = self.record.as_ref().filter(|_| packet.kind == Kind::Data && self.is_traced(packet.flow))
        {
            let forwarded = CallEvent::Forward(packet.psn.into(), packet.tag, link);
            record.note_forwarded(Time::from_ps(now), (packet.src, packet.dst, key), packet.flow, forwarded);
        }
    }

    /// Keeps no rows after the first window that exceeds the limit.
    pub(crate) fn close_window(&mut self) {
        if let Some(record) = &self.record {
            record.close(self.limit);
        }
        self.full |= self.present > self.limit;
    }

    pub(crate) fn capture(&mut self, port: PortId, packet: &Packet, start: u64) {
        let Ok(index) = self.captures.binary_search_by_key(&port, |(port, _)| *port) else { return };
        let packets = &mut self.captures[index].1;
        // One more than the limit shows that it is exceeded.
        if packets.len() as u64 <= self.max_captured {
            packets.push(captured(packet, start));
        }
    }

    /// Returns the limit of packets per link if a link has exceeded it.
    pub(crate) fn too_many(&self) -> Option<u64> {
        let over = self.captures.iter().any(|(_, packets)| packets.len() as u64 > self.max_captured);
        over.then_some(self.max_captured)
    }

    /// Takes the rows, in arbitrary order.
    pub(crate) fn take_rows(&mut self) -> Vec<TraceRow> {
        std::mem::take(&mut self.rows)
    }

    pub(crate) fn take_capture(&mut self, port: PortId) -> Vec<CapturedPacket> {
        match self.captures.binary_search_by_key(&port, |(port, _)| *port) {
            Ok(index) => std::mem::take(&mut self.captures[index].1),
            Err(_) => Vec::new(),
        }
    }
}

fn kind(kind: Kind) -> PacketKind {
    match kind {
        Kind::Data | Kind::Free => PacketKind::Data,
        Kind::Header => PacketKind::Header,
        Kind::Ack => PacketKind::Ack,
        Kind::Nack => PacketKind::Nack,
        Kind::Probe => PacketKind::Probe,
        Kind::ProbeReply => PacketKind::ProbeReply,
        Kind::SwitchControl => PacketKind::SwitchControl,
        Kind::Grant => PacketKind::Grant,
        Kind::Pause => PacketKind::Pause,
    }
}

fn captured(packet: &Packet, start: u64) -> CapturedPacket {
    let answers = matches!(packet.kind, Kind::Ack | Kind::Nack);
    CapturedPacket {
        time: Time::from_ps(start),
        psn: u64::from(packet.psn),
        acked_below: if answers { packet.answer().cumulative } else { 0 },
        flow_id: packet.flow,
        tag: packet.tag,
        src: packet.src,
        dst: packet.dst,
        size_bytes: packet.size,
        payload_bytes: if answers { 0 } else { packet.payload },
        kind: kind(packet.kind),
        class: packet.class,
        marked: packet.flags & MARKED != 0,
        notification: answers && packet.flags & NOTIFICATION != 0,
        retransmission: !answers && packet.flags & RETRANSMISSION != 0,
        ack_request: !answers && packet.flags & crate::packet::ACK_REQUEST != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(limit: u64) -> Watch {
        Watch::new(&[3, 64], 100, limit, [PortId(7), PortId(2)].into_iter(), 2)
    }

    const SPOT: Spot = Spot { time: 9, link: 1, joined: None, queue: None };

    #[test]
    fn only_traced_flows_are_followed() {
        let watch = watch(10);
        let of = |flow, kind| watch.follows(&Packet { flow, kind, ..Packet::default() });
        assert!(of(3, Kind::Data) && of(64, Kind::Ack));
        assert!(!of(0, Kind::Data) && !of(67, Kind::Data) && !of(3, Kind::Pause));
        assert!(!Watch::default().traces() && !Watch::default().follows(&Packet::default()));
    }

    /// Two sends and a reception: the reception is in the future and does not count.
    #[test]
    fn rows_end_with_window_over_limit() {
        let mut watch = watch(1);
        let packet = Packet { flow: 3, kind: Kind::Data, ..Packet::default() };
        for event in [TraceEvent::Send, TraceEvent::Receive] {
            watch.note(event, &packet, SPOT);
        }
        watch.close_window();
        assert!(watch.follows(&packet));
        watch.note(TraceEvent::Send, &packet, SPOT);
        watch.close_window();
        assert!(!watch.follows(&packet));
        assert_eq!(watch.take_rows().len(), 3);
    }

    #[test]
    fn a_change_of_path_needs_a_path_before_it() {
        let mut watch = watch(10);
        let mut with = |tag| watch.changes_path(&Packet { flow: 3, tag, ..Packet::default() });
        assert_eq!([5, 5, 6, 5].map(&mut with), [false, false, true, true]);
    }

    #[test]
    fn captured_links_have_their_packets_and_a_bound() {
        let mut watch = watch(10);
        for psn in 0..5 {
            watch.capture(PortId(7), &Packet { psn, ..Packet::default() }, u64::from(psn));
            watch.capture(PortId(5), &Packet { psn, ..Packet::default() }, u64::from(psn));
        }
        assert_eq!(watch.too_many(), Some(2));
        let psns: Vec<u64> = watch.take_capture(PortId(7)).iter().map(|packet| packet.psn).collect();
        assert_eq!(psns, [0, 1, 2]);
        assert!(watch.take_capture(PortId(2)).is_empty() && watch.take_capture(PortId(5)).is_empty());
    }
}
