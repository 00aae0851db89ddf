//! Time series of ports: samples at multiples of an interval, each of the state before anything happens at that time.
//!
//! There is no event for a sample. A port's state is constant between two of its changes, so the samples in between are
//! written when it changes, and the last ones when the run ends: measuring cannot change a result.

use crate::ids::PortId;
use anabranch_units::Time;

/// What a sample sees of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) waiting_bytes: u32,
    pub(crate) waiting_packets: u32,
    pub(crate) sent_bytes: u64,
}

/// A sample as a row: time, waiting data bytes, waiting data packets, bytes sent so far.
pub(crate) type Row = (Time, u64, u64, u64);

#[derive(Debug)]
struct OfPort {
    port: PortId,
    next: u64,
    rows: Vec<Row>,
}

/// The series of some ports of a partition.
#[derive(Debug, Default)]
pub(crate) struct Series {
    interval: u64,
    /// Sorted by port.
    ports: Vec<OfPort>,
}

impl Series {
    /// Series of these ports; none where `interval` is zero.
    pub(crate) fn new(interval: Time, ports: impl IntoIterator<Item = PortId>) -> Self {
        if interval == Time::ZERO {
            return Series::default();
        }
        let mut ports: Vec<OfPort> = ports.into_iter().map(|port| OfPort { port, next: 0, rows: vec![] }).collect();
        ports.sort_by_key(|of| of.port);
        ports.dedup_by_key(|of| of.port);
        Series { interval: interval.ps(), ports }
    }

    /// The ports there are series of.
    pub(crate) fn ports(&self) -> impl Iterator<Item = PortId> {
        self.ports.iter().map(|of| of.port)
    }

    /// The port has been in this state since its last change and changes at `now`.
    pub(crate) fn held(&mut self, port: PortId, state: Sample, now: u64) {
        let Ok(index) = self.ports.binary_search_by_key(&port, |of| of.port) else { return };
        let of = &mut self.ports[index];
        while of.next <= now {
            let Sample { waiting_bytes, waiting_packets, sent_bytes } = state;
            of.rows.push((Time::from_ps(of.next), u64::from(waiting_bytes), u64::from(waiting_packets), sent_bytes));
            of.next += self.interval;
        }
    }

    /// The rows of a port.
    pub(crate) fn take(&mut self, port: PortId) -> Vec<Row> {
        match self.ports.binary_search_by_key(&port, |of| of.port) {
            Ok(index) => std::mem::take(&mut self.ports[index].rows),
            Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_sees_what_was_there_before() {
        let mut series = Series::new(Time::from_ps(10), [PortId(3)]);
        let state = |waiting_packets, sent_bytes| Sample { waiting_bytes: 7, waiting_packets, sent_bytes };
        series.held(PortId(3), state(0, 0), 4);
        series.held(PortId(3), state(1, 0), 10);
        series.held(PortId(3), state(2, 5), 35);
        series.held(PortId(4), state(9, 9), 99);
        let rows = series.take(PortId(3));
        let short: Vec<_> = rows.iter().map(|row| (row.0.ps(), row.2, row.3)).collect();
        // At 10 the state until then counts, at 20 and 30 the one after it.
        assert_eq!(short, [(0, 0, 0), (10, 1, 0), (20, 2, 5), (30, 2, 5)]);
    }
}
