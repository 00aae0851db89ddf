//! Host schemes, one per file.

pub(crate) mod bitmap;
pub(crate) mod braid;
pub(crate) mod cast;
pub(crate) mod chunks;
pub(crate) mod co_prime;
pub(crate) mod ecmp;
pub(crate) mod flicr;
pub(crate) mod flowbender;
pub(crate) mod flowlet;
mod guided;
pub(crate) mod hf2t;
mod history;
pub(crate) mod hopper;
pub(crate) mod mixed;
pub(crate) mod mp_ev;
pub(crate) mod mp_rdma;
pub(crate) mod mrc;
pub(crate) mod ops;
pub(crate) mod plb;
pub(crate) mod prime;
pub(crate) mod qp_spray;
mod recycle;
pub(crate) mod reps;
pub(crate) mod round_robin;
mod slots;
mod spritz;
pub(crate) mod spritz_coarse;
pub(crate) mod spritz_scout;
pub(crate) mod spritz_spray;
pub(crate) mod timeouts;

use crate::{FlowInfo, Tag, hash::EntropySpace};
use anabranch_random::Stream;
use anabranch_units::Time;
pub(crate) use slots::Slots;
pub(crate) use timeouts::OnTimeout;

/// Returns `factor` times `time`, rounded down; negative factors give zero. For thresholds in base round trips.
pub(crate) fn times(time: Time, factor: f64) -> Time {
    // Added to a time of the run it stays below its limit.
    Time::from_ps(((time.ps() as f64 * factor) as u64).min(1 << 62))
}

/// Returns the first tag of a flow, which is that of its connection, and the stream of its further draws.
pub(crate) fn first_tag(space: EntropySpace, host_key: u64, flow: &FlowInfo<'_>, purpose: &str) -> (Tag, Stream) {
    let mut of_connection = Stream::keyed(host_key, flow.connection, purpose);
    let tag = space.draw(&mut of_connection);
    let is_first = flow.key == flow.connection;
    (tag, if is_first { of_connection } else { Stream::keyed(host_key, flow.key, purpose) })
}

/// For checks and tests.
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) mod testing {
    use crate::{Decision, Feedback, FlowInfo, GuidedPath, GuidedPaths, HostScheme, Outgoing, PathSpace, Tag};
    use anabranch_units::{Rate, Time};
    use std::sync::Arc;

    /// A flow of 1000 packets with a BDP of 100 packets and a base round trip of 10 us.
    pub fn flow(uplinks: &[u32]) -> FlowInfo<'_> {
        FlowInfo {
            key: 42,
            connection: 42,
            src: 1,
            dst: 2,
            size: 4_096_000,
            packets: 1000,
            bdp_packets: 100,
            base_rtt: Time::from_us(10),
            probe_rtt: Time::from_us(10),
            rate: Rate(400_000_000_000),
            full_packet: 4160,
            early_packets: 0,
            paths: PathSpace { uplinks, ..PathSpace::default() },
        }
    }

    pub(crate) fn packet(psn: u64, eligible_at: Time) -> Outgoing {
        Outgoing { psn, eligible_at, ..Outgoing::first(4096) }
    }

    pub(crate) fn us(time: f64) -> Time {
        Time::from_ps((time * 1e6) as u64)
    }

    pub(crate) fn send_at(scheme: &mut impl HostScheme, now: Time) -> Tag {
        match scheme.select(now, 0, &packet(0, now)) {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn send(scheme: &mut impl HostScheme) -> Tag {
        send_at(scheme, Time::ZERO)
    }

    /// Returns an acknowledgement of the packet with this tag, after 10 us.
    pub fn feedback(tag: Tag, ecn: bool) -> Feedback {
        Feedback { tag, ecn, rtt: Some(Time::from_us(10)), packets: 1, bytes: 4096, ..Feedback::default() }
    }

    pub(crate) fn mark(scheme: &mut impl HostScheme, tag: Tag) {
        scheme.on_ack(Time::ZERO, 0, &feedback(tag, true));
    }

    pub(crate) fn clean(scheme: &mut impl HostScheme, tag: Tag) {
        scheme.on_ack(Time::ZERO, 0, &feedback(tag, false));
    }

    /// Tags of the four paths.
    pub(crate) const FOUR_TAGS: [Tag; 4] = [0x0001, 1 << 16 | 0x0100, 2 << 16 | 0x0101, 3 << 16 | 0x0203];

    /// Four paths of 691.4 (minimal), 1382.8, 1382.8, 1491.0 ns with the values 0x0001, 0x0100, 0x0101, 0x0203.
    pub(crate) fn four_paths() -> Arc<GuidedPaths> {
        let path = |ev, kind, ps| GuidedPath {
            ev,
            kind,
            minimal: kind == 3,
            latency: Time::from_ps(ps),
            propagation: Time::from_ps(ps - 200_000),
            hops: 2,
        };
        let list = [(0x0001, 3, 691_400), (0x0100, 7, 1_382_800), (0x0101, 7, 1_382_800), (0x0203, 8, 1_491_000)];
        Arc::new(GuidedPaths::new(list.map(|(ev, kind, ps)| path(ev, kind, ps))))
    }

    pub(crate) fn guided_flow(paths: &Arc<GuidedPaths>) -> FlowInfo<'_> {
        FlowInfo { paths: PathSpace { guided: Some(paths), ..PathSpace::default() }, ..flow(&[]) }
    }
}

#[cfg(test)]
mod tests {
    use super::times;
    use anabranch_units::Time;

    #[test]
    fn huge_factors_stay_above_large_ones() {
        let (now, base) = (Time::from_ms(10_000), Time::from_us(10));
        let at = [1.0, 1e5, 1e13, 1e300].map(|factor| now + times(base, factor));
        assert!(at.is_sorted() && at[0] == now + base, "{at:?}");
    }
}
