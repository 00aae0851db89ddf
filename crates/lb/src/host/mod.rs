//! Host schemes, one per file.

pub mod bitmap;
pub mod chunks;
pub mod co_prime;
pub mod ecmp;
pub mod flowbender;
pub mod flowlet;
pub mod hf2t;
mod history;
pub mod hopper;
pub mod mixed;
pub mod mp_ev;
pub mod ops;
pub mod plb;
pub mod prime;
pub mod qp_spray;
mod recycle;
pub mod reps;
pub mod round_robin;
mod slots;

use anabranch_units::Time;
pub(crate) use slots::Slots;

/// `factor` times `time`, rounded down; negative factors give zero. For thresholds given in base round trips.
pub(crate) fn times(time: Time, factor: f64) -> Time {
    Time::from_ps((time.ps() as f64 * factor) as u64)
}

/// What the tests of the schemes share.
#[cfg(test)]
pub(crate) mod testing {
    use crate::{Decision, Feedback, FlowInfo, HostScheme, Outgoing, PathSpace, Tag};
    use anabranch_units::{Rate, Time};

    /// A flow of 1000 packets with a BDP of 100 packets and a base round trip of 10 us.
    pub(crate) fn flow(uplinks: &[u32]) -> FlowInfo<'_> {
        FlowInfo {
            key: 42,
            src: 1,
            dst: 2,
            size: 4_096_000,
            packets: 1000,
            bdp_packets: 100,
            base_rtt: Time::from_us(10),
            rate: Rate(400_000_000_000),
            full_packet: 4160,
            paths: PathSpace { uplinks, dead: &[] },
        }
    }

    /// The tag of the next packet of slot 0 at `now`.
    pub(crate) fn send_at(scheme: &mut impl HostScheme, now: Time) -> Tag {
        match scheme.select(now, 0, &Outgoing { psn: 0, bytes: 4096, retransmission: false, eligible_at: now }) {
            Decision::Send(tag) => tag,
            other => panic!("{other:?}"),
        }
    }

    /// The tag of the next packet of slot 0 at time 0.
    pub(crate) fn send(scheme: &mut impl HostScheme) -> Tag {
        send_at(scheme, Time::ZERO)
    }

    /// An acknowledgement of one packet.
    pub(crate) fn feedback(tag: Tag, ecn: bool) -> Feedback {
        Feedback { tag, ecn, rtt: Some(Time::from_us(10)), packets: 1, bytes: 4096, cumulative: 0, next_psn: 0 }
    }

    /// Gives slot 0 an ECN-marked acknowledgement.
    pub(crate) fn mark(scheme: &mut impl HostScheme, tag: Tag) {
        scheme.on_ack(Time::ZERO, 0, &feedback(tag, true));
    }

    /// Gives slot 0 a clean acknowledgement.
    pub(crate) fn clean(scheme: &mut impl HostScheme, tag: Tag) {
        scheme.on_ack(Time::ZERO, 0, &feedback(tag, false));
    }
}
