//! Histograms of the data queue of each port: time spent at each length.

use crate::{ids::PortId, prefetch::prefetch};

/// Bins of the byte histogram: equal steps up to a limit, then one more.
const BINS: usize = 64;

/// Time-weighted histograms in picoseconds. Time with an empty queue is the remainder.
#[derive(Debug)]
pub(crate) struct Histograms {
    /// Bytes per bin, as a right shift.
    shift: u32,
    /// [`BINS`] per port. Allocated as zeros: the system maps only pages that are written.
    bytes: Vec<u64>,
    /// Per port and number of packets, where requested.
    packets: Vec<Vec<u64>>,
}

impl Histograms {
    /// Creates histograms of queues of at most `limit` bytes; with `occupancy` also by packets.
    pub(crate) fn new(ports: usize, limit: u32, occupancy: bool) -> Self {
        let shift = u32::BITS - (limit / (BINS as u32 - 1)).leading_zeros();
        let packets = if occupancy { vec![Vec::new(); ports] } else { Vec::new() };
        Histograms { shift, bytes: vec![0; BINS * ports], packets }
    }

    /// Records that the queue of a port held `bytes` in `packets` for `span`.
    #[inline]
    pub(crate) fn record(&mut self, port: PortId, bytes: u32, packets: u32, span: u64) {
        if bytes > 0 {
            let bin = ((bytes - 1) >> self.shift).min(BINS as u32 - 1);
            self.bytes[port.at() * BINS + bin as usize] += span;
            if !self.packets.is_empty() {
                self.record_packets(port, packets, span);
            }
        }
    }

    /// Prefetches the bin of a port that holds `bytes`.
    #[inline]
    pub(crate) fn prefetch(&self, port: PortId, bytes: u32) {
        if bytes > 0 {
            let bin = ((bytes - 1) >> self.shift).min(BINS as u32 - 1);
            prefetch(self.bytes.as_ptr().wrapping_add(port.at() * BINS + bin as usize));
        }
    }

    #[cold]
    fn record_packets(&mut self, port: PortId, packets: u32, span: u64) {
        let histogram = &mut self.packets[port.at()];
        if histogram.len() <= packets as usize {
            histogram.resize(packets as usize + 1, 0);
        }
        histogram[packets as usize] += span;
    }

    /// Returns the length in bytes (upper edge of its bin, at most `max`) not exceeded for `share` of `total`.
    pub(crate) fn quantile_bytes(&self, port: PortId, total: u64, share: f64, max: u32) -> u64 {
        let bins = &self.bytes[port.at() * BINS..][..BINS];
        let mut left = (total as f64 * share) as u64;
        let empty = total.saturating_sub(bins.iter().sum());
        if left <= empty {
            return 0;
        }
        left -= empty;
        for (bin, &span) in bins.iter().enumerate() {
            if left <= span {
                return ((bin as u64 + 1) << self.shift).min(u64::from(max));
            }
            left -= span;
        }
        u64::from(max)
    }

    /// Returns (packets, picoseconds) pairs, the empty queue first; empty where not requested.
    pub(crate) fn occupancy(&self, port: PortId, total: u64) -> Vec<(u64, u64)> {
        let Some(histogram) = self.packets.get(port.at()) else { return Vec::new() };
        let empty = total.saturating_sub(histogram.iter().sum());
        let waiting = histogram.iter().enumerate().filter(|(_, span)| **span > 0);
        std::iter::once((0, empty)).chain(waiting.map(|(n, span)| (n as u64, *span))).collect()
    }

    /// Returns the bytes of memory held, as far as they have been written.
    pub(crate) fn memory(&self) -> usize {
        let written = self.bytes.chunks(BINS).filter(|bins| bins.iter().any(|&span| span > 0)).count();
        written * BINS * 8 + self.packets.iter().map(|p| p.capacity() * 8).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 63 bins of 16 B and one for the rest; 60 % of the time empty, 30 % with 10 B, 10 % with 100 B.
    #[test]
    fn quantiles_are_upper_edges_of_bins() {
        let mut histograms = Histograms::new(2, 1_000, true);
        let port = PortId(1);
        histograms.record(port, 10, 1, 300);
        histograms.record(port, 100, 2, 100);
        histograms.record(port, 0, 0, 50);
        let quantile = |share| histograms.quantile_bytes(port, 1_000, share, 100);
        assert_eq!((quantile(0.5), quantile(0.6), quantile(0.9)), (0, 0, 16));
        // (100 - 1) / 16 = 6: up to 112 B, but the queue never held more than 100.
        assert_eq!(quantile(0.99), 100);
        assert_eq!(histograms.occupancy(port, 1_000), [(0, 600), (1, 300), (2, 100)]);
    }
}
