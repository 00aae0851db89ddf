//! DCTCP as in MPRDMA, with QuickAdapt and FastIncrease: the congestion control of Spritz (Spritz §IV-C and V;
//! specification 7.4). A window of clean acknowledgements adds one packet; a marked acknowledgement takes half of its
//! bytes, a trim the trimmed packet.

use super::{
    CcAck, CcLoss, ControlCapabilities, Section, Sizes, WindowRule,
    adaptive::{Adaptive, AdaptiveConfig},
};
use crate::Network;
use anabranch_settings::{About, Never, SetError, choices, parameters};
use anabranch_units::Time;

pub(super) const ABOUT: About = About::brief("dctcp", "DCTCP as in MPRDMA, with QuickAdapt and FastIncrease.");

choices! {
    /// Base RTT that FastIncrease subtracts from a round trip.
    pub enum FastIncreaseBase {
        /// That of the topology's longest path, for every scheme: on a short path some queueing counts as none.
        Longest = "longest",
        /// That of the packet's own path, if the sender has it (Spritz, Flicr); otherwise as `longest`, so schemes are
        /// no longer under one rule.
        Own = "own",
    }
}

parameters! {
    /// DCTCP as in MPRDMA with QuickAdapt and FastIncrease.
    pub struct DctcpParameters {
        /// Packets by which a window of clean acknowledgements grows the window.
        increase: f64 = 1.0, source "MPRDMA; specification 7.4", Expert;
        /// Part of the bytes acknowledged with a mark by which the window shrinks.
        decrease: f64 = 0.5, source "MPRDMA; specification 7.4", Expert;
        /// Enables QuickAdapt after trims and timeouts.
        quick_adapt: bool = true, source "Spritz §IV-C", Expert;
        /// Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have been
        /// acknowledged. On a path that delivers only trimmed packets none are. On real networks 10.
        quick_adapt_patience: Never<f64> = Never::Never, source "ours: the sources wait for ever", Expert;
        /// Enables FastIncrease on an idle path.
        fast_increase: bool = true, source "Spritz §IV-C", Expert;
        /// Bytes that FastIncrease adds per acknowledged byte.
        fast_increase_gain: f64 = 1.0, source "specification 7.4: 1 in the tuned artifact, 2 in the first version of SMaRTT", Reading;
        /// Base RTT from which FastIncrease measures the queueing delay.
        fast_increase_base: FastIncreaseBase = FastIncreaseBase::Longest, source "Spritz §V-A: the same control for all schemes, reckoned from the longest path; `own` is ours (specification 7.4)", Reading;
        /// Packets by which an acknowledged packet may lag behind the newest; each that lags further takes a packet from the
        /// window.
        late: Never<u64> = Never::Never, source "MP-RDMA §3.3: 32", Expert;
        /// Lets marks shrink the window only while their average exceeds 0.25.
        ecn_gate: bool = false, source "ours: plain MPRDMA; on in the REPS artifact (specification 7.4)", Reading;
    }
}

impl ControlCapabilities for DctcpParameters {
    fn check(&self) -> Result<(), SetError> {
        let section = Section::of(self);
        section.factor("increase", self.increase)?;
        section.share("decrease", self.decrease)?;
        section.positive("quick_adapt_patience", self.quick_adapt_patience.value().unwrap_or(1.0))?;
        section.factor("fast_increase_gain", self.fast_increase_gain)
    }
}

/// Constants of a run.
#[derive(Clone, Debug)]
pub struct DctcpConfig {
    adaptive: AdaptiveConfig,
    /// Bytes by which a window of clean acknowledgements grows the window.
    increase: f64,
    decrease: f64,
    late: u64,
    mtu: f64,
}

/// State of a flow, and the newest PSN acknowledged.
#[derive(Clone, Debug)]
pub struct Dctcp(Adaptive, u64);

impl WindowRule for Dctcp {
    type Parameters = DctcpParameters;
    type Config = DctcpConfig;

    fn config(parameters: &DctcpParameters, sizes: Sizes, _: &Network) -> DctcpConfig {
        DctcpConfig {
            increase: parameters.increase * sizes.mtu,
            decrease: parameters.decrease,
            late: parameters.late.value().unwrap_or(u64::MAX),
            mtu: sizes.mtu,
            adaptive: AdaptiveConfig {
                sizes,
                quick_adapt: parameters.quick_adapt,
                patience: parameters.quick_adapt_patience,
                fast_increase: parameters.fast_increase,
                fast_increase_gain: parameters.fast_increase_gain,
                own_path: parameters.fast_increase_base == FastIncreaseBase::Own,
                ecn_gate: parameters.ecn_gate,
            },
        }
    }

    fn new(config: &DctcpConfig, base_rtt: Time) -> Self {
        Dctcp(Adaptive::new(&config.adaptive, base_rtt), 0)
    }

    #[inline]
    fn on_ack(&mut self, config: &DctcpConfig, ack: &CcAck) {
        if self.0.on_ack(&config.adaptive, ack) {
            let bytes = ack.bytes as f64;
            if !ack.ecn {
                self.0.cwnd += bytes / self.0.cwnd * config.increase;
            } else if self.0.may_decrease(&config.adaptive) {
                self.0.cwnd -= config.decrease * bytes;
            }
            self.1 = self.1.max(ack.psn);
            if self.1 - ack.psn > config.late {
                self.0.cwnd -= config.mtu;
            }
        }
        self.0.clamp(&config.adaptive);
    }

    #[inline]
    fn on_progress(&mut self, bytes: u64) {
        self.0.on_progress(bytes);
    }

    fn on_nack(&mut self, config: &DctcpConfig, loss: &CcLoss) {
        self.0.on_loss(&config.adaptive, loss, config.adaptive.sizes.trimmed);
    }

    /// Counts as a trim without a delivered header (ours; the sources leave timeouts open).
    fn on_timeout(&mut self, config: &DctcpConfig, loss: &CcLoss) {
        self.0.on_loss(&config.adaptive, loss, 0);
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.0.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { mtu: 4160.0, payload: 4096.0, max: 416_000.0, beyond_bdp: 0.0, trimmed: 64 };
    const BASE: Time = Time::from_us(10);

    fn plain() -> DctcpParameters {
        DctcpParameters { quick_adapt: false, fast_increase: false, ..Default::default() }
    }
    fn ack(now: u64, packets: u32, ecn: bool, rtt: Option<u64>) -> CcAck {
        let rtt = rtt.map(Time::from_us);
        let bytes = 4160 * u64::from(packets);
        CcAck { now: Time::from_us(now), bytes, packets, ecn, rtt, in_flight: 83_200, ..CcAck::default() }
    }
    fn loss(now: u64) -> CcLoss {
        CcLoss { now: Time::from_us(now), bytes: 4160, in_flight: 8320 }
    }
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "found {found}, expected {expected}");
    }

    #[test]
    fn the_mprdma_rule() {
        let config = Dctcp::config(&plain(), SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        near(flow.cwnd(), 416_000.0);
        // A mark takes half a packet: 416,000 - 2080 = 413,920.
        flow.on_ack(&config, &ack(10, 1, true, Some(10)));
        near(flow.cwnd(), 413_920.0);
        // A clean one adds 4160 * 4160 / 413,920 = 41.80904...
        flow.on_ack(&config, &ack(10, 1, false, Some(10)));
        near(flow.cwnd(), 413_920.0 + 17_305_600.0 / 413_920.0);
        // Four packets with a marked acknowledgement take two packets.
        let before = flow.cwnd();
        flow.on_ack(&config, &ack(10, 4, true, Some(10)));
        near(flow.cwnd(), before - 8320.0);
        // Never below one packet: 400 marked packets would take 832,000 B.
        flow.on_ack(&config, &ack(10, 400, true, None));
        near(flow.cwnd(), 4160.0);
        // Never above the largest window: at one packet each clean one adds a packet.
        flow.on_ack(&config, &ack(10, 1, false, None));
        near(flow.cwnd(), 8320.0);
        flow.on_ack(&config, &ack(10, 1000, false, None));
        near(flow.cwnd(), 416_000.0);
    }

    /// With `late = 2` an acknowledgement of 5 after that of 8 takes a packet besides its own rule, one of 6 does not.
    #[test]
    fn late_packets_take_one_from_the_window() {
        let config = Dctcp::config(&DctcpParameters { late: Never::Value(2), ..plain() }, SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        let mut acked = |psn| {
            flow.on_ack(&config, &CcAck { psn, ..ack(10, 1, true, None) });
            flow.cwnd()
        };
        near(acked(8), 413_920.0);
        near(acked(6), 411_840.0);
        near(acked(5), 411_840.0 - 2080.0 - 4160.0);
    }

    #[test]
    fn quick_adapt_sets_the_window_to_delivered_bytes() {
        let config =
            Dctcp::config(&DctcpParameters { fast_increase: false, ..Default::default() }, SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        // The first acknowledgement opens a period of 15 us, to t = 25 us, with an empty count.
        flow.on_ack(&config, &ack(10, 1, true, None));
        near(flow.cwnd(), 413_920.0);
        flow.on_nack(&config, &loss(12));
        near(flow.cwnd(), 409_760.0);
        flow.on_ack(&config, &ack(20, 10, true, None));
        near(flow.cwnd(), 388_960.0);
        // At its end: 64 + 41,600 + 4160 (this one) = 45,824 B were delivered. 83,200 B are in flight, so the mark of
        // this same acknowledgement is already ignored.
        flow.on_ack(&config, &ack(25, 1, true, None));
        near(flow.cwnd(), 45_824.0);
        // 19 packets: 79,040 of 83,200 B delivered, marks and trims have no effect.
        flow.on_ack(&config, &ack(30, 19, true, None));
        flow.on_nack(&config, &loss(31));
        near(flow.cwnd(), 45_824.0);
        // A clean one still counts (and is the last one ignored): 45,824 + 4160^2 / 45,824.
        flow.on_ack(&config, &ack(32, 1, false, None));
        let grown = 45_824.0 + 17_305_600.0 / 45_824.0;
        near(flow.cwnd(), grown);
        // All delivered: a mark takes half a packet again.
        flow.on_ack(&config, &ack(33, 1, true, None));
        near(flow.cwnd(), grown - 2080.0);
        // No further trim counted, so the period that ends at 40 us adapts nothing.
        flow.on_ack(&config, &ack(41, 1, true, None));
        near(flow.cwnd(), grown - 4160.0);
    }

    #[test]
    fn a_trim_after_the_period_adapts_at_once() {
        let config =
            Dctcp::config(&DctcpParameters { fast_increase: false, ..Default::default() }, SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        flow.on_ack(&config, &ack(10, 1, true, None));
        flow.on_progress(20_800);
        // 20,800 + 64 B; a timeout would give 20,800.
        let mut other = flow.clone();
        flow.on_nack(&config, &loss(25));
        near(flow.cwnd(), 20_864.0);
        other.on_timeout(&config, &loss(25));
        near(other.cwnd(), 20_800.0);
    }

    #[test]
    fn fast_increase_after_a_window_of_good_bytes() {
        let parameters = DctcpParameters { quick_adapt: false, ..Default::default() };
        let config = Dctcp::config(&parameters, SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        // 192 marked packets take 96 packets: 416,000 - 399,360 = 16,640 B, four packets. The detector stores
        // the window before each mark's decrease, 16,640 B after one more mark that the clamp does not affect.
        flow.on_ack(&config, &ack(10, 192, true, None));
        near(flow.cwnd(), 16_640.0);
        flow.on_ack(&config, &ack(10, 1, true, None));
        near(flow.cwnd(), 14_560.0);
        // Target 16,640: four good packets (16,640 B) do not exceed it, the fifth does. Until then MPRDMA grows.
        let mut expected = 14_560.0;
        for _ in 0..4 {
            flow.on_ack(&config, &ack(11, 1, false, Some(11)));
            expected += 17_305_600.0 / expected;
            near(flow.cwnd(), expected);
        }
        for _ in 0..3 {
            flow.on_ack(&config, &ack(11, 1, false, Some(10)));
            expected += 4160.0;
            near(flow.cwnd(), expected);
        }
        // No sample: FastIncrease continues. More than 1 us of delay ends it.
        flow.on_ack(&config, &ack(11, 1, false, None));
        expected += 4160.0;
        near(flow.cwnd(), expected);
        flow.on_ack(&config, &ack(11, 1, false, Some(12)));
        expected += 17_305_600.0 / expected;
        near(flow.cwnd(), expected);
        flow.on_ack(&config, &ack(11, 1, false, Some(10)));
        expected += 17_305_600.0 / expected;
        near(flow.cwnd(), expected);
    }

    #[test]
    fn the_gate_waits_for_many_marks() {
        let parameters = DctcpParameters { ecn_gate: true, ..plain() };
        let config = Dctcp::config(&parameters, SIZES, &Network::default());
        let mut flow = Dctcp::new(&config, BASE);
        // Averages after 1, 2, 3 marks: 0.125, 0.234375, 0.330078: the third exceeds 0.25.
        for expected in [416_000.0, 416_000.0, 413_920.0] {
            flow.on_ack(&config, &ack(10, 1, true, None));
            near(flow.cwnd(), expected);
        }
        let mut flow = Dctcp::new(&config, BASE);
        flow.on_ack(&config, &ack(10, 3, true, None));
        near(flow.cwnd(), 416_000.0 - 6240.0);
    }

    #[test]
    fn a_short_path_is_not_idle_while_it_queues() {
        // The longest base RTT is 10 us, that of the packet's own path 7. A round trip of 9.5 us has queued for 2.5 us:
        // too long for FastIncrease by its own path, none at all by the longest. 101 packets are more than the window of 100.
        let grows = |base| {
            let parameters = DctcpParameters { increase: 0.0, fast_increase_base: base, ..Default::default() };
            let config = Dctcp::config(&parameters, SIZES, &Network::default());
            let mut flow = Dctcp::new(&config, BASE);
            flow.on_nack(&config, &loss(1));
            let before = flow.cwnd();
            for _ in 0..102 {
                let rtt = Some(Time::from_ns(9500));
                flow.on_ack(&config, &CcAck { rtt, path_rtt: Some(Time::from_us(7)), ..ack(2, 1, false, None) });
            }
            flow.cwnd() > before
        };
        assert!(grows(FastIncreaseBase::Longest) && !grows(FastIncreaseBase::Own));
    }
}
