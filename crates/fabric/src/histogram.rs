//! How long each port's data queue had each length.

use crate::{plan::Plan, prefetch::prefetch};

/// Bins of the histogram over bytes that every run keeps: up to the queue limit in equal steps, then one more.
const BINS: usize = 64;

/// Time-weighted histograms of all ports. Time with an empty queue is not recorded; it is the rest.
#[derive(Debug)]
pub(crate) struct QueueHistograms {
    /// Bytes per bin, as a right shift.
    shift: u32,
    bytes: Vec<u64>,
    /// Per port and number of packets, where the scenario asks for it.
    packets: Vec<Vec<u64>>,
}

impl QueueHistograms {
    pub(crate) fn new(plan: &Plan, ports: usize) -> Self {
        let limit = match &plan.shared {
            // A queue may take half of a shared buffer, but most never come near it.
            Some(shared) => (shared.size / 8).min(u64::from(u32::MAX)) as u32,
            None => plan.fabric.queue_limit.saturating_mul(plan.fabric.classes as u32),
        };
        let shift = u32::BITS - (limit / (BINS as u32 - 1)).leading_zeros();
        let packets = if plan.measure.occupancy { vec![Vec::new(); ports] } else { Vec::new() };
        QueueHistograms { shift, bytes: vec![0; ports * BINS], packets }
    }

    /// The queue of `link` held `bytes` in `packets` for `span`.
    #[inline]
    pub(crate) fn record(&mut self, link: u32, bytes: u32, packets: u32, span: u64) {
        if bytes > 0 {
            let bin = ((bytes - 1) >> self.shift).min(BINS as u32 - 1);
            self.bytes[link as usize * BINS + bin as usize] += span;
            if !self.packets.is_empty() {
                self.record_packets(link, packets, span);
            }
        }
    }

    /// Asks the processor to fetch the bins of short queues.
    #[inline]
    pub(crate) fn prefetch(&self, link: u32) {
        prefetch(&self.bytes[link as usize * BINS]);
    }

    #[cold]
    fn record_packets(&mut self, link: u32, packets: u32, span: u64) {
        let histogram = &mut self.packets[link as usize];
        if histogram.len() <= packets as usize {
            histogram.resize(packets as usize + 1, 0);
        }
        histogram[packets as usize] += span;
    }

    /// The length in bytes (upper edge of its bin, at most `max`) that the queue did not exceed for `share` of `total`.
    pub(crate) fn quantile_bytes(&self, link: u32, total: u64, share: f64, max: u32) -> u64 {
        let bins = &self.bytes[link as usize * BINS..][..BINS];
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

    /// (packets, picoseconds), where it was asked for; the empty queue first.
    pub(crate) fn occupancy(&self, link: u32, total: u64) -> Vec<(u64, u64)> {
        let Some(histogram) = self.packets.get(link as usize) else { return Vec::new() };
        let empty = total.saturating_sub(histogram.iter().sum());
        let waiting = histogram.iter().enumerate().filter(|(_, span)| **span > 0);
        std::iter::once((0, empty)).chain(waiting.map(|(n, span)| (n as u64, *span))).collect()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.capacity() * 8 + self.packets.iter().map(|p| p.capacity() * 8).sum::<usize>()
    }
}
