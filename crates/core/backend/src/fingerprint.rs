use anabranch_outcome::{FlowRow, LinkRow, UnlistedFlows};
use anabranch_random::mix;
use anabranch_units::Time;

/// Hash of words in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(pub(crate) u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Hash(0x616E_6162_7261_6E63) // "anabranc"
    }

    pub(crate) fn add(&mut self, word: u64) {
        self.0 = mix(self.0 ^ mix(word.wrapping_add(0x9E37_79B9_7F4A_7C15)));
    }

    pub(crate) fn flow(&mut self, flow: &FlowRow) {
        let known = |count: Option<u64>| count.unwrap_or(u64::MAX);
        let time = |time: Option<Time>| known(time.map(Time::ps));
        for word in [
            u64::from(flow.src),
            u64::from(flow.dst),
            flow.size_bytes,
            time(flow.start),
            time(flow.fct_rx),
            time(flow.fct_ack),
        ] {
            self.add(word);
        }
        flow.metrics.fingerprint_words().into_iter().map(known).for_each(|word| self.add(word));
    }
}

/// Hashes the integers of flows and links in canonical order; wall time, memory and event counts are excluded.
pub(crate) fn fingerprint(flows: &[FlowRow], unlisted: &[UnlistedFlows], links: &[LinkRow]) -> u64 {
    let mut state = Hash::new();
    let known = |count: Option<u64>| count.unwrap_or(u64::MAX);
    flows.iter().for_each(|flow| state.flow(flow));
    unlisted.iter().for_each(|flows| state.add(flows.hash));
    let mut add = |word: u64| state.add(word);
    for link in links {
        let queue = &link.queue;
        [link.bytes, link.packets].into_iter().for_each(&mut add);
        let counts = [queue.max_bytes, queue.max_packets, link.ecn_marks, link.trims, link.drops];
        counts.into_iter().map(known).for_each(&mut add);
    }
    state.0
}
