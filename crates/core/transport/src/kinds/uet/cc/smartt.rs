//! SMaRTT (specification 7.5): ECN and delay together, with QuickAdapt and FastIncrease; the congestion control of
//! REPS. Unmarked acknowledgements grow the window fairly and, if fast, by the distance from the target delay as well.
//! Marked ones shrink it in proportion to its size and, if slow, by that distance as well.

use super::{
    CcAck, CcLoss, ControlCapabilities, Section, Sizes, WindowRule,
    adaptive::{Adaptive, AdaptiveConfig},
};
use crate::Network;
use anabranch_settings::{About, Never, SetError, parameters};
use anabranch_units::Time;

pub(super) const ABOUT: About =
    About::brief("smartt", "SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease.");

parameters! {
    /// SMaRTT.
    pub struct SmarttParameters {
        /// Target round trip in base RTTs.
        target_rtt: f64 = 1.5, source "specification 7.4";
        /// Fair increase: share of a BDP that a window of unmarked acknowledgements adds.
        fair_increase: f64 = 0.02, source "specification 7.4: tuned artifact; 0.006 in the paper";
        /// Fair decrease: bytes per acknowledged byte at a window of one BDP.
        fair_decrease: f64 = 0.5, source "specification 7.4: tuned artifact; 0.8 in the paper";
        /// Gain of the increase in proportion to the distance from the target.
        multiplicative_increase: f64 = 2.0, source "specification 7.4";
        /// Gain of the decrease in proportion to the distance from the target.
        multiplicative_decrease: f64 = 1.0, source "specification 7.4: tuned artifact; 2 in the paper";
        /// Enables QuickAdapt after trims and timeouts.
        quick_adapt: bool = true, source "specification 7.5";
        /// Measurement period of QuickAdapt in base RTTs.
        quick_adapt_period: f64 = 1.5, source "specification 7.4";
        /// Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have been
        /// acknowledged. On a path that delivers only trimmed packets none are. On real networks 10.
        quick_adapt_patience: Never<f64> = Never::Never, source "ours: the sources wait for ever";
        /// Enables FastIncrease on an idle path.
        fast_increase: bool = true, source "specification 7.5";
        /// Bytes that FastIncrease adds per acknowledged byte.
        fast_increase_gain: f64 = 1.0, source "specification 7.4: tuned artifact; 2 in the paper";
        /// Maximum queueing delay that counts as none for FastIncrease.
        fast_increase_delay: Time = Time::from_us(1), source "specification 7.4";
        /// Lets marks shrink the window only while their average exceeds `ecn_threshold`.
        ecn_gate: bool = true, source "specification 7.4: on by default in the REPS artifact";
        /// Average of the marks above which they shrink the window.
        ecn_threshold: f64 = 0.25, source "specification 7.4: 0.25 to 0.3";
        /// Gain of that average, per packet.
        ewma_gain: f64 = 0.125, source "specification 7.4";
    }
}

impl ControlCapabilities for SmarttParameters {
    fn check(&self) -> Result<(), SetError> {
        let section = Section::of(self);
        section.require("target_rtt", self.target_rtt.is_finite() && self.target_rtt >= 1.0, "a number, 1 or more")?;
        section.factor("fair_increase", self.fair_increase)?;
        section.factor("fair_decrease", self.fair_decrease)?;
        section.factor("multiplicative_increase", self.multiplicative_increase)?;
        section.factor("multiplicative_decrease", self.multiplicative_decrease)?;
        section.positive("quick_adapt_period", self.quick_adapt_period)?;
        if let Never::Value(periods) = self.quick_adapt_patience {
            section.positive("quick_adapt_patience", periods)?;
        }
        section.factor("fast_increase_gain", self.fast_increase_gain)?;
        section.share("ecn_threshold", self.ecn_threshold)?;
        section.share("ewma_gain", self.ewma_gain)
    }
}

/// Constants of a run.
#[derive(Clone, Debug)]
pub struct SmarttConfig {
    adaptive: AdaptiveConfig,
    bdp: f64,
    target_rtt: f64,
    fair_increase: f64,
    fair_decrease: f64,
    multiplicative_increase: f64,
    multiplicative_decrease: f64,
}

impl SmarttConfig {
    pub(super) fn new(parameters: &SmarttParameters, sizes: Sizes, network: &Network) -> Self {
        SmarttConfig {
            bdp: (network.bdp as f64).max(sizes.mtu),
            target_rtt: parameters.target_rtt,
            fair_increase: parameters.fair_increase,
            fair_decrease: parameters.fair_decrease,
            multiplicative_increase: parameters.multiplicative_increase,
            multiplicative_decrease: parameters.multiplicative_decrease,
            adaptive: AdaptiveConfig {
                sizes,
                quick_adapt: parameters.quick_adapt,
                period: parameters.quick_adapt_period,
                patience: parameters.quick_adapt_patience,
                fast_increase: parameters.fast_increase,
                fast_increase_gain: parameters.fast_increase_gain,
                fast_increase_delay: parameters.fast_increase_delay,
                own_path: false,
                ewma_gain: parameters.ewma_gain,
                ecn_gate: parameters.ecn_gate.then_some(parameters.ecn_threshold),
            },
        }
    }
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Smartt(Adaptive);

impl WindowRule for Smartt {
    type Parameters = SmarttParameters;
    type Config = SmarttConfig;

    fn config(parameters: &SmarttParameters, sizes: Sizes, network: &Network) -> SmarttConfig {
        SmarttConfig::new(parameters, sizes, network)
    }

    fn new(config: &SmarttConfig, base_rtt: Time) -> Self {
        Smartt(Adaptive::new(&config.adaptive, base_rtt))
    }

    #[inline]
    fn on_ack(&mut self, config: &SmarttConfig, ack: &CcAck) {
        if self.0.on_ack(&config.adaptive, ack) {
            self.0.cwnd += self.change(config, ack);
        }
        self.0.clamp(&config.adaptive);
    }

    #[inline]
    fn on_progress(&mut self, bytes: u64) {
        self.0.on_progress(bytes);
    }

    fn on_nack(&mut self, config: &SmarttConfig, loss: &CcLoss) {
        self.0.on_loss(&config.adaptive, loss, config.adaptive.sizes.trimmed);
    }

    /// Counts as a trim without a delivered header (ours; the sources leave timeouts open).
    fn on_timeout(&mut self, config: &SmarttConfig, loss: &CcLoss) {
        self.0.on_loss(&config.adaptive, loss, 0);
    }

    #[inline]
    fn cwnd(&self) -> f64 {
        self.0.cwnd
    }
}

impl Smartt {
    /// Returns the main rule's change of the window. Without a delay sample the delay counts as on target (ours).
    fn change(&self, config: &SmarttConfig, ack: &CcAck) -> f64 {
        let (bytes, cwnd) = (ack.bytes as f64, self.0.cwnd);
        let target = self.0.base_rtt.ps() as f64 * config.target_rtt;
        let rtt = ack.rtt.map_or(target, |rtt| rtt.ps() as f64);
        let away = (rtt - target) / rtt;
        if !ack.ecn {
            let fair = bytes / cwnd * config.fair_increase * config.bdp;
            let near = -away * config.multiplicative_increase * bytes * config.adaptive.sizes.mtu / cwnd;
            return fair + near.max(0.0).min(bytes);
        }
        if !self.0.may_decrease(&config.adaptive) {
            return 0.0;
        }
        let fair = cwnd / config.bdp * config.fair_decrease * bytes;
        if away > 0.0 { -(config.multiplicative_decrease * away * bytes + fair).min(bytes) } else { -fair }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;

    const SIZES: Sizes = Sizes { mtu: 4000.0, payload: 3936.0, max: 600_000.0, beyond_bdp: 0.0, trimmed: 64 };
    const BASE: Time = Time::from_us(8);

    fn config() -> SmarttConfig {
        let network = Network {
            base_rtt: BASE,
            bdp: 400_000,
            queue_drain: BASE,
            trimming: true,
            nic_rate: Rate::gbps(400),
            ..Network::default()
        };
        let parameters =
            SmarttParameters { quick_adapt: false, fast_increase: false, ecn_gate: false, ..Default::default() };
        SmarttConfig::new(&parameters, SIZES, &network)
    }
    fn changed(ecn: bool, rtt_us: u64) -> f64 {
        let config = config();
        let mut flow = Smartt::new(&config, BASE);
        flow.0.cwnd = 200_000.0;
        let rtt = Some(Time::from_us(rtt_us));
        flow.on_ack(
            &config,
            &CcAck {
                now: Time::from_us(50),
                bytes: 4000,
                packets: 1,
                ecn,
                rtt,
                is_full: true,
                in_flight: 0,
                path_rtt: None,
            },
        );
        flow.cwnd() - 200_000.0
    }
    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} {b}");
    }

    #[test]
    fn the_four_cases() {
        // Target: 12 us. Fair increase: 4000/200000 * 0.02 * 400000 = 160 B.
        // Unmarked at 8 us: (12-8)/8 * 2 * 4000 * 4000 / 200000 = 80 B on top.
        near(changed(false, 8), 240.0);
        near(changed(false, 16), 160.0);
        // Marked at 8 us: 200000/400000 * 0.5 * 4000 = 1000 B.
        near(changed(true, 8), -1000.0);
        // Marked at 16 us: (16-12)/16 * 1 * 4000 = 1000 B on top.
        near(changed(true, 16), -2000.0);
        near(changed(true, 1000), -4000.0);
    }
}
