//! Queue pairs of NICs and their memory (Hopper §2, §3.2): contexts of queue pairs, and packets that are early.

use crate::ids::HostId;
use anabranch_transport::NicLimits;

#[derive(Clone, Copy, Debug, Default)]
struct NicUse {
    /// Open queue pairs: of flows that the host sends or receives, and of its probes until their replies.
    pairs: u32,
    max_pairs: u32,
    /// Bytes of early packets, or reserved for them.
    early: u64,
}

/// Use of each NIC of a partition.
#[derive(Clone, Debug)]
pub(crate) struct NicUses {
    limits: Option<NicLimits>,
    /// The flows of a NIC share its memory for early packets.
    pub(crate) is_shared: bool,
    hosts: Vec<NicUse>,
    /// Flows that found no memory for a reordering buffer.
    pub(crate) unbuffered: u64,
}

impl NicUses {
    pub(crate) fn new(limits: Option<NicLimits>, hosts: u32) -> Self {
        let is_shared = limits.is_some_and(|limits| limits.reorder.is_none());
        NicUses { limits, is_shared, hosts: vec![NicUse::default(); hosts as usize], unbuffered: 0 }
    }

    pub(crate) fn open(&mut self, host: HostId, pairs: u32) {
        let nic = &mut self.hosts[host.at()];
        nic.pairs += pairs;
        nic.max_pairs = nic.max_pairs.max(nic.pairs);
    }

    pub(crate) fn close(&mut self, host: HostId, pairs: u32) {
        self.hosts[host.at()].pairs -= pairs;
    }

    pub(crate) fn max_pairs(&self) -> u64 {
        self.hosts.iter().map(|nic| u64::from(nic.max_pairs)).max().unwrap_or(0)
    }

    fn free(&self, host: HostId, limits: &NicLimits) -> u64 {
        let nic = &self.hosts[host.at()];
        limits.memory.saturating_sub(u64::from(nic.pairs) * limits.queue_pair + nic.early)
    }

    /// Returns the early bytes that a flow opened at its receiver may hold; `None`: what is free when a packet arrives.
    pub(crate) fn reserve(&mut self, host: HostId) -> Option<u64> {
        let limits = self.limits?;
        let wanted = limits.reorder?;
        let fits = self.free(host, &limits) >= wanted;
        self.unbuffered += u64::from(!fits);
        self.hosts[host.at()].early += if fits { wanted } else { 0 };
        Some(if fits { wanted } else { 0 })
    }

    pub(crate) fn release(&mut self, host: HostId, reserved: u64) {
        if self.limits.is_some_and(|limits| limits.reorder.is_some()) {
            self.hosts[host.at()].early -= reserved;
        }
    }

    /// Returns the early bytes that a flow with `held` of them may hold now, where flows share the memory.
    pub(crate) fn share(&self, host: HostId, held: u64) -> u64 {
        self.limits.as_ref().map_or(u64::MAX, |limits| held + self.free(host, limits))
    }

    /// Notes that a flow with a share of the memory holds `after` early bytes instead of `before`.
    pub(crate) fn note(&mut self, host: HostId, before: u64, after: u64) {
        let nic = &mut self.hosts[host.at()];
        nic.early = nic.early + after - before;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.hosts.capacity() * size_of::<NicUse>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostId = HostId(1);

    #[test]
    fn queue_pairs_and_early_packets_share_the_memory() {
        // 10,000 B less two queue pairs of 400 B leave 9,200 B, of which another flow holds 2,000.
        let mut nics = NicUses::new(Some(NicLimits { memory: 10_000, reorder: None, queue_pair: 400 }), 2);
        nics.open(HOST, 2);
        nics.note(HOST, 0, 2000);
        assert_eq!((nics.share(HOST, 0), nics.share(HOST, 500), nics.reserve(HOST)), (7200, 7700, None));
        nics.open(HOST, 20);
        assert_eq!(nics.share(HOST, 0), 0, "contexts alone take 8,800 B");
        nics.close(HOST, 20);
        nics.note(HOST, 2000, 0);
        assert_eq!((nics.share(HOST, 0), nics.max_pairs()), (9200, 22));
    }

    /// §2: 0.1 MB for each of the connections of a NIC with 2 MB.
    #[test]
    fn connections_beyond_the_memory_have_no_buffer() {
        let mut nics = NicUses::new(Some(NicLimits { memory: 2_000_000, reorder: Some(100_000), queue_pair: 375 }), 2);
        let buffers: Vec<Option<u64>> = (0..25)
            .map(|_| {
                nics.open(HOST, 1);
                nics.reserve(HOST)
            })
            .collect();
        // 20 x 375 B are taken when the twentieth opens: 19 x 100 kB and 7.5 kB leave 92.5 kB.
        assert_eq!(buffers.iter().filter(|buffer| **buffer == Some(100_000)).count(), 19);
        assert_eq!((nics.unbuffered, nics.is_shared), (6, false));
        nics.release(HOST, 100_000);
        assert_eq!(nics.reserve(HOST), Some(100_000));
    }
}
