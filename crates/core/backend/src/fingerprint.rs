use anabranch_outcome::{FlowRow, LinkRow};
use anabranch_random::mix;
use anabranch_units::Time;

/// Hashes the integers of flows and links in canonical order; wall time, memory and event counts are excluded.
pub(crate) fn fingerprint(flows: &[FlowRow], links: &[LinkRow]) -> u64 {
    let mut state = 0x616E_6162_7261_6E63; // "anabranc"
    let mut add = |word: u64| state = mix(state ^ mix(word.wrapping_add(0x9E37_79B9_7F4A_7C15)));
    let known = |count: Option<u64>| count.unwrap_or(u64::MAX);
    let time = |time: Option<Time>| known(time.map(Time::ps));
    for flow in flows {
        for word in [
            u64::from(flow.src),
            u64::from(flow.dst),
            flow.size_bytes,
            time(flow.start),
            time(flow.fct_rx),
            time(flow.fct_ack),
        ] {
            add(word);
        }
        flow.metrics.fingerprint_words().into_iter().map(known).for_each(&mut add);
    }
    for link in links {
        let queue = &link.queue;
        [link.bytes, link.packets].into_iter().for_each(&mut add);
        let counts = [queue.max_bytes, queue.max_packets, link.ecn_marks, link.trims, link.drops];
        counts.into_iter().map(known).for_each(&mut add);
    }
    state
}
