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
        /// Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have been
        /// acknowledged. On a path that delivers only trimmed packets none are. On real networks 10.
        quick_adapt_patience: Never<f64> = Never::Never, source "ours: the sources wait for ever", Expert;
    }
}

// Constants of specification 7.4, as tuned in the artifact.
/// Target round trip in base RTTs.
const TARGET_RTT: f64 = 1.5;
/// Fair increase: share of a BDP that a window of unmarked acknowledgements adds; 0.006 in the paper.
const FAIR_INCREASE: f64 = 0.02;
/// Fair decrease: bytes per acknowledged byte at a window of one BDP; 0.8 in the paper.
const FAIR_DECREASE: f64 = 0.5;
/// Gains of the changes in proportion to the distance from the target; the decrease's is 2 in the paper.
const MULTIPLICATIVE_INCREASE: f64 = 2.0;
const MULTIPLICATIVE_DECREASE: f64 = 1.0;
/// Bytes that FastIncrease adds per acknowledged byte; 2 in the paper.
const FAST_INCREASE_GAIN: f64 = 1.0;

impl ControlCapabilities for SmarttParameters {
    fn check(&self) -> Result<(), SetError> {
        Section::of(self).positive("quick_adapt_patience", self.quick_adapt_patience.value().unwrap_or(1.0))
    }
}

/// Constants of a run.
#[derive(Clone, Debug)]
pub struct SmarttConfig {
    adaptive: AdaptiveConfig,
    bdp: f64,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Smartt(Adaptive);

impl WindowRule for Smartt {
    type Parameters = SmarttParameters;
    type Config = SmarttConfig;

    fn config(parameters: &SmarttParameters, sizes: Sizes, network: &Network) -> SmarttConfig {
        SmarttConfig {
            bdp: (network.bdp as f64).max(sizes.mtu),
            adaptive: AdaptiveConfig {
                sizes,
                quick_adapt: true,
                patience: parameters.quick_adapt_patience,
                fast_increase: true,
                fast_increase_gain: FAST_INCREASE_GAIN,
                own_path: false,
                // On by default in the REPS artifact.
                ecn_gate: true,
            },
        }
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
        let target = self.0.base_rtt.ps() as f64 * TARGET_RTT;
        let rtt = ack.rtt.map_or(target, |rtt| rtt.ps() as f64);
        let away = (rtt - target) / rtt;
        if !ack.ecn {
            let fair = bytes / cwnd * FAIR_INCREASE * config.bdp;
            let near = -away * MULTIPLICATIVE_INCREASE * bytes * config.adaptive.sizes.mtu / cwnd;
            return fair + near.max(0.0).min(bytes);
        }
        if !self.0.may_decrease(&config.adaptive) {
            return 0.0;
        }
        let fair = cwnd / config.bdp * FAIR_DECREASE * bytes;
        if away > 0.0 { -(MULTIPLICATIVE_DECREASE * away * bytes + fair).min(bytes) } else { -fair }
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
        let mut config = Smartt::config(&SmarttParameters::default(), SIZES, &network);
        // The main rule alone.
        let adaptive = &mut config.adaptive;
        (adaptive.quick_adapt, adaptive.fast_increase, adaptive.ecn_gate) = (false, false, false);
        config
    }
    fn changed(ecn: bool, rtt_us: u64) -> f64 {
        let config = config();
        let mut flow = Smartt::new(&config, BASE);
        flow.0.cwnd = 200_000.0;
        let rtt = Some(Time::from_us(rtt_us));
        flow.on_ack(&config, &CcAck { now: Time::from_us(50), bytes: 4000, packets: 1, ecn, rtt, ..CcAck::default() });
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
