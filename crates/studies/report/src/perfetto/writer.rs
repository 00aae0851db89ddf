use super::messages::{
    COUNTER, CounterDescriptor, DebugAnnotation, IN_ORDER, INSTANT, ProcessDescriptor, SLICE_BEGIN, SLICE_END,
    STATE_CLEARED, Trace, TracePacket, TrackDescriptor, TrackEvent, UNIT_BYTES,
};
use prost::Message;
use std::{io, io::Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(u64);

/// Size of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfettoCounts {
    /// Number of tracks, including those that only group others.
    pub tracks: u64,
    /// Number of slices.
    pub slices: u64,
    /// Number of counter values.
    pub values: u64,
    /// Number of instants.
    pub instants: u64,
}

/// Times are in picoseconds and rounded down to the nanoseconds of the format.
#[derive(Debug)]
pub(super) struct Writer<W> {
    to: W,
    begun: bool,
    pub(super) counts: PerfettoCounts,
}

pub(super) enum Detail {
    Number(u64),
    Real(f64),
    Text(String),
}

fn annotation((name, detail): (&str, Detail)) -> DebugAnnotation {
    let mut annotation = DebugAnnotation { name: Some(name.to_string()), ..DebugAnnotation::default() };
    match detail {
        Detail::Number(number) => annotation.uint_value = Some(number),
        Detail::Real(number) => annotation.double_value = Some(number),
        Detail::Text(text) => annotation.string_value = Some(text),
    }
    annotation
}

fn event_of(kind: i32, track: Track) -> TrackEvent {
    TrackEvent { r#type: Some(kind), track_uuid: Some(track.0), ..TrackEvent::default() }
}

impl<W: Write> Writer<W> {
    pub(super) fn new(to: W) -> Self {
        Writer { to, begun: false, counts: PerfettoCounts::default() }
    }

    pub(super) fn finish(mut self) -> io::Result<PerfettoCounts> {
        self.to.flush()?;
        Ok(self.counts)
    }

    fn packet(&mut self, packet: TracePacket) -> io::Result<()> {
        let flags = (!std::mem::replace(&mut self.begun, true)).then_some(STATE_CLEARED);
        let packet = TracePacket { trusted_packet_sequence_id: Some(1), sequence_flags: flags, ..packet };
        self.to.write_all(&Trace { packet: vec![packet] }.encode_to_vec())
    }

    fn track(&mut self, descriptor: TrackDescriptor) -> io::Result<Track> {
        self.counts.tracks += 1;
        let uuid = self.counts.tracks;
        let descriptor = TrackDescriptor { uuid: Some(uuid), child_ordering: Some(IN_ORDER), ..descriptor };
        self.packet(TracePacket { track_descriptor: Some(descriptor), ..TracePacket::default() })?;
        Ok(Track(uuid))
    }

    pub(super) fn group(&mut self, name: &str) -> io::Result<Track> {
        let process = ProcessDescriptor {
            pid: Some(i32::try_from(self.counts.tracks + 1).unwrap_or(i32::MAX)),
            process_name: Some(name.to_string()),
        };
        self.track(TrackDescriptor { process: Some(process), ..TrackDescriptor::default() })
    }

    /// Siblings appear in the order of their creation.
    pub(super) fn child(&mut self, parent: Track, name: &str) -> io::Result<Track> {
        self.track(self.below(parent, name))
    }

    fn below(&self, parent: Track, name: &str) -> TrackDescriptor {
        TrackDescriptor {
            name: Some(name.to_string()),
            parent_uuid: Some(parent.0),
            sibling_order_rank: i32::try_from(self.counts.tracks).ok(),
            ..TrackDescriptor::default()
        }
    }

    pub(super) fn counter(&mut self, parent: Track, name: &str, unit: &str) -> io::Result<Track> {
        let counter = match unit {
            "bytes" => CounterDescriptor { unit: Some(UNIT_BYTES), unit_name: None },
            unit => CounterDescriptor { unit: None, unit_name: (!unit.is_empty()).then(|| unit.to_string()) },
        };
        self.track(TrackDescriptor { counter: Some(counter), ..self.below(parent, name) })
    }

    fn event(&mut self, time_ps: u64, event: TrackEvent) -> io::Result<()> {
        self.packet(TracePacket { timestamp: Some(time_ps / 1000), track_event: Some(event), ..TracePacket::default() })
    }

    /// The value holds from `time_ps` on.
    pub(super) fn value(&mut self, track: Track, time_ps: u64, value: u64) -> io::Result<()> {
        self.counts.values += 1;
        let counter_value = Some(i64::try_from(value).unwrap_or(i64::MAX));
        self.event(time_ps, TrackEvent { counter_value, ..event_of(COUNTER, track) })
    }

    /// The value holds from `time_ps` on.
    pub(super) fn real(&mut self, track: Track, time_ps: u64, value: f64) -> io::Result<()> {
        self.counts.values += 1;
        self.event(time_ps, TrackEvent { double_counter_value: Some(value), ..event_of(COUNTER, track) })
    }

    /// Slices of a track must nest or follow each other.
    pub(super) fn slice<'d>(
        &mut self,
        track: Track,
        (from, to): (u64, u64),
        name: &str,
        details: impl IntoIterator<Item = (&'d str, Detail)>,
    ) -> io::Result<()> {
        self.counts.slices += 1;
        let begin = TrackEvent {
            name: Some(name.to_string()),
            debug_annotations: details.into_iter().map(annotation).collect(),
            ..event_of(SLICE_BEGIN, track)
        };
        self.event(from, begin)?;
        self.event(to, event_of(SLICE_END, track))
    }

    pub(super) fn instant<const N: usize>(
        &mut self,
        track: Track,
        time_ps: u64,
        name: &str,
        details: [(&str, Detail); N],
    ) -> io::Result<()> {
        self.counts.instants += 1;
        let event = TrackEvent {
            name: Some(name.to_string()),
            debug_annotations: details.map(annotation).to_vec(),
            ..event_of(INSTANT, track)
        };
        self.event(time_ps, event)
    }
}
