//! NSCC, the network-signal congestion control of Ultra Ethernet as its public simulator has it (specification 7.6).
//!
//! Quadrants by mark and queueing delay: unmarked and below the target grows in proportion to the distance, unmarked
//! and above grows fairly, marked and above shrinks once per RTT by the average delay, marked and below holds.
//! QuickAdapt sets the window to what got through where next to nothing did; FastIncrease grows it on an idle path.

use super::{CcAck, CcLoss, Sizes};
use crate::uet::{Network, Section};
use anabranch_settings::{SetError, parameters};
use anabranch_units::Time;

parameters! {
    /// NSCC.
    pub struct NsccParameters {
        /// Target queueing delay in base RTTs.
        target_delay: f64 = 0.75, source "specification 7.6, with trimming";
        /// Gain of the proportional increase.
        proportional: f64 = 4.0, source "specification 7.6";
        /// Gain of the fair increase.
        fair: f64 = 5.0, source "specification 7.6";
        /// Gain of the increase once per RTT.
        eta: f64 = 0.15, source "specification 7.6";
        /// Strength of the multiplicative decrease.
        gamma: f64 = 0.8, source "specification 7.6";
        /// Least factor of a multiplicative decrease.
        max_decrease: f64 = 0.5, source "specification 7.6";
        /// Gain of FastIncrease per acknowledged byte, before scaling to the network.
        fast_increase: f64 = 0.25, source "specification 7.6";
        /// Largest queueing delay that counts as none for FastIncrease.
        fast_increase_delay: Time = Time::from_us(1), source "specification 7.6";
        /// Gain of the average delay.
        delay_gain: f64 = 0.0125, source "specification 7.6";
        /// Delay in targets above which QuickAdapt may fire without a loss.
        quick_adapt_threshold: f64 = 4.0, source "specification 7.6";
        /// QuickAdapt fires only where less than the largest window over two to this power got through.
        quick_adapt_gate: u32 = 3, source "specification 7.6";
        /// Full packets after which the increase is applied, where a base RTT has not passed before.
        adjust_packets: u32 = 8, source "specification 7.6";
    }
}

impl NsccParameters {
    pub(crate) fn check(&self, section: &Section<'_>) -> Result<(), SetError> {
        section.positive("target_delay", self.target_delay)?;
        for (key, value) in [
            ("proportional", self.proportional),
            ("fair", self.fair),
            ("eta", self.eta),
            ("fast_increase", self.fast_increase),
            ("quick_adapt_threshold", self.quick_adapt_threshold),
        ] {
            section.factor(key, value)?;
        }
        section.share("gamma", self.gamma)?;
        section.share("max_decrease", self.max_decrease)?;
        section.share("delay_gain", self.delay_gain)?;
        section.require("quick_adapt_gate", self.quick_adapt_gate < 32, "a whole number from 0 to 31")?;
        section.require("adjust_packets", self.adjust_packets > 0, "at least 1")
    }
}

/// The reference network that the gains are scaled from: 100 Gb/s and 12 us.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_RTT: f64 = 12e6;

/// The constants of a run; times in picoseconds.
#[derive(Clone, Debug)]
pub struct NsccConfig {
    sizes: Sizes,
    base_rtt: f64,
    target: f64,
    alpha: f64,
    fair: f64,
    eta: f64,
    gamma: f64,
    max_decrease: f64,
    fast_increase: f64,
    fast_increase_delay: f64,
    delay_gain: f64,
    quick_adapt_delay: f64,
    quick_adapt_below: f64,
    quick_adapt_period: Time,
    adjust_bytes: u64,
    adjust_period: Time,
}

impl NsccConfig {
    pub(super) fn new(parameters: &NsccParameters, sizes: Sizes, network: &Network) -> Self {
        let base_rtt = network.base_rtt.ps() as f64;
        let target = base_rtt * parameters.target_delay;
        let a = network.bdp as f64 / REFERENCE_BDP;
        let b = target / REFERENCE_RTT;
        NsccConfig {
            base_rtt,
            target,
            alpha: parameters.proportional * sizes.payload * a * b / target,
            fair: parameters.fair * sizes.payload * a,
            eta: parameters.eta * sizes.payload * a,
            gamma: parameters.gamma,
            max_decrease: parameters.max_decrease,
            fast_increase: parameters.fast_increase * a,
            fast_increase_delay: parameters.fast_increase_delay.ps() as f64,
            delay_gain: parameters.delay_gain,
            quick_adapt_delay: parameters.quick_adapt_threshold * target,
            quick_adapt_below: sizes.max / f64::from(1u32 << parameters.quick_adapt_gate),
            quick_adapt_period: Time::from_ps((base_rtt + target) as u64),
            adjust_bytes: u64::from(parameters.adjust_packets) * sizes.mtu as u64,
            adjust_period: network.base_rtt,
            sizes,
        }
    }
}

/// The state of a flow.
#[derive(Clone, Debug)]
pub struct Nscc {
    cwnd: f64,
    base_rtt: Time,
    average_delay: f64,
    /// Increase gathered since the last adjustment, in square bytes.
    increase: f64,
    /// Bytes acknowledged since then, and when that was.
    since_adjust: u64,
    adjusted_at: Time,
    eta_at: Time,
    decreased_at: Time,
    /// QuickAdapt: bytes through in this period, its end, whether a loss was seen.
    achieved: u64,
    period_end: Time,
    lossy: bool,
    /// Bytes still to come through before marks count again.
    to_ignore: u64,
    /// Bytes in a row without queueing delay.
    fast: f64,
    increasing: bool,
}

impl Nscc {
    pub(super) fn new(config: &NsccConfig, base_rtt: Time) -> Self {
        Nscc {
            cwnd: config.sizes.max,
            base_rtt,
            average_delay: 0.0,
            increase: 0.0,
            since_adjust: 0,
            adjusted_at: Time::ZERO,
            eta_at: Time::ZERO,
            decreased_at: Time::ZERO,
            achieved: 0,
            period_end: Time::ZERO,
            lossy: false,
            to_ignore: 0,
            fast: 0.0,
            increasing: false,
        }
    }

    pub(super) fn on_ack(&mut self, config: &NsccConfig, ack: &CcAck) {
        let ignoring = self.to_ignore > 0;
        self.on_progress(ack.bytes);
        // Without a sample (a retransmission) the delay counts as the average (ours).
        let delay = ack.rtt.map_or(self.average_delay, |rtt| rtt.saturating_sub(self.base_rtt).ps() as f64);
        self.average(config, ack, delay);
        if self.quick_adapt(config, ack.now, ack.in_flight, delay) || (ignoring && ack.ecn) {
            return;
        }
        let bytes = ack.bytes as f64;
        match (ack.ecn, delay >= config.target) {
            (false, true) => self.increase += config.fair * bytes,
            (false, false) => self.grow(config, bytes, delay),
            (true, true) => self.decrease(config, ack.now),
            (true, false) => {}
        }
        if ack.ecn || delay >= config.fast_increase_delay {
            (self.fast, self.increasing) = (0.0, false);
        }
        self.adjust(config, ack);
        self.clamp(config);
    }

    fn average(&mut self, config: &NsccConfig, ack: &CcAck, delay: f64) {
        let sample = if !ack.ecn && delay > config.target { 0.25 * config.base_rtt } else { delay };
        self.average_delay += config.delay_gain * (sample - self.average_delay);
    }

    /// Unmarked and below the target.
    fn grow(&mut self, config: &NsccConfig, bytes: f64, delay: f64) {
        if delay < config.fast_increase_delay {
            self.fast += bytes;
            if self.increasing || self.fast > self.cwnd {
                self.increasing = true;
                self.cwnd += config.fast_increase * bytes;
                return;
            }
        }
        self.increase += config.alpha * bytes * (config.target - delay);
    }

    /// Marked and above the target: once per base RTT, where the average says so too.
    fn decrease(&mut self, config: &NsccConfig, now: Time) {
        if self.average_delay > config.target && now >= self.decreased_at + self.base_rtt {
            self.decreased_at = now;
            let factor = 1.0 - config.gamma * (self.average_delay - config.target) / self.average_delay;
            self.cwnd *= factor.max(config.max_decrease);
        }
    }

    fn adjust(&mut self, config: &NsccConfig, ack: &CcAck) {
        self.since_adjust += ack.bytes;
        if self.since_adjust >= config.adjust_bytes || ack.now >= self.adjusted_at + config.adjust_period {
            self.cwnd += self.increase / self.cwnd;
            (self.increase, self.since_adjust, self.adjusted_at) = (0.0, 0, ack.now);
        }
        if ack.now >= self.eta_at + config.adjust_period {
            self.cwnd += config.eta;
            self.eta_at = ack.now;
        }
    }

    /// Once per period; true where it set the window.
    fn quick_adapt(&mut self, config: &NsccConfig, now: Time, in_flight: u64, delay: f64) -> bool {
        if now < self.period_end {
            return false;
        }
        let (achieved, first) = (self.achieved as f64, self.period_end == Time::ZERO);
        let fire = !first
            && (self.lossy || delay > config.quick_adapt_delay)
            && achieved < config.quick_adapt_below;
        (self.achieved, self.period_end, self.lossy) = (0, now + config.quick_adapt_period, false);
        if fire {
            self.cwnd = achieved;
            self.clamp(config);
            self.to_ignore = in_flight;
            self.increase = 0.0;
        }
        fire
    }

    /// Bytes that got through.
    #[inline]
    pub(super) fn on_progress(&mut self, bytes: u64) {
        self.achieved += bytes;
        self.to_ignore = self.to_ignore.saturating_sub(bytes);
    }

    pub(super) fn on_nack(&mut self, config: &NsccConfig, loss: &CcLoss) {
        self.lossy = true;
        self.average_delay += config.delay_gain * (config.base_rtt - self.average_delay);
        if !self.quick_adapt(config, loss.now, loss.in_flight, self.average_delay) {
            self.lose(config, loss);
        }
    }

    pub(super) fn on_timeout(&mut self, config: &NsccConfig, loss: &CcLoss) {
        self.lossy = true;
        self.lose(config, loss);
    }

    fn lose(&mut self, config: &NsccConfig, loss: &CcLoss) {
        self.cwnd -= loss.bytes as f64;
        self.clamp(config);
    }

    fn clamp(&mut self, config: &NsccConfig) {
        self.cwnd = self.cwnd.max(config.sizes.mtu).min(config.sizes.max);
    }

    #[inline]
    pub(super) fn cwnd(&self) -> f64 {
        self.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;

    const BASE: Time = Time::from_us(8);

    /// BDP 400,000 B at 400 Gb/s: a = 2.6667; target 6 us, b = 0.5.
    fn config() -> NsccConfig {
        let sizes = Sizes { mtu: 4160.0, payload: 4096.0, max: 600_000.0, trimmed: 64 };
        let network =
            Network { base_rtt: BASE, bdp: 400_000, queue_drain: BASE, trimming: true, nic_rate: Rate::gbps(400) };
        NsccConfig::new(&NsccParameters::default(), sizes, &network)
    }
    fn ack(now: u64, bytes: u64, ecn: bool, rtt_us: u64) -> CcAck {
        CcAck { now: Time::from_us(now), bytes, packets: 1, ecn, rtt: Some(Time::from_us(rtt_us)), in_flight: 100_000 }
    }
    /// A flow of 200,000 B window that is past its first period.
    fn flow(config: &NsccConfig) -> Nscc {
        let mut flow = Nscc::new(config, BASE);
        flow.cwnd = 200_000.0;
        (flow.period_end, flow.adjusted_at, flow.eta_at) = (Time::from_us(1000), Time::from_us(100), Time::from_us(100));
        flow
    }

    #[test]
    fn unmarked_and_fast_grows_in_proportion() {
        let config = config();
        let mut flow = flow(&config);
        // Delay 3 us: alpha * n * (6 - 3) us = 4 * 4096 * (8/3) * 0.5 / 6 * 3 * n = 10922.67 n square bytes; applied at
        // once since n is eight packets: n = 33280 B gives 33280 * 10922.67 / 200000 = 1817.5 B.
        flow.on_ack(&config, &ack(101, 33_280, false, 11));
        let expected = 33_280.0 * (4.0 * 4096.0 * (8.0 / 3.0) * 0.5 * 0.5) / 200_000.0;
        assert!((flow.cwnd() - 200_000.0 - expected).abs() < 1e-6, "{}", flow.cwnd());
    }

    #[test]
    fn unmarked_and_slow_grows_fairly() {
        let config = config();
        let mut flow = flow(&config);
        // fi * n / cwnd = 5 * 4096 * (8/3) * 33280 / 200000.
        flow.on_ack(&config, &ack(101, 33_280, false, 16));
        let expected = 5.0 * 4096.0 * (8.0 / 3.0) * 33_280.0 / 200_000.0;
        assert!((flow.cwnd() - 200_000.0 - expected).abs() < 1e-6, "{}", flow.cwnd());
    }

    #[test]
    fn marked_and_slow_shrinks_once_per_rtt_by_the_average() {
        let config = config();
        let mut flow = flow(&config);
        flow.average_delay = 12e6;
        flow.on_ack(&config, &ack(101, 4160, true, 20));
        // The sample of 12 us leaves the average at 12 us: 1 - 0.8 * (12 - 6) / 12 = 0.6.
        assert!((flow.cwnd() - 120_000.0).abs() < 1e-6, "{}", flow.cwnd());
        flow.on_ack(&config, &ack(102, 4160, true, 20));
        assert!((flow.cwnd() - 120_000.0).abs() < 1e-6, "once per RTT");
    }

    #[test]
    fn marked_and_fast_holds() {
        let config = config();
        let mut flow = flow(&config);
        flow.on_ack(&config, &ack(101, 4160, true, 12));
        assert_eq!(flow.cwnd(), 200_000.0);
    }

    #[test]
    fn a_window_without_delay_starts_fast_increase() {
        let config = config();
        let mut flow = flow(&config);
        flow.fast = 200_001.0;
        let before = flow.cwnd();
        flow.on_ack(&config, &ack(101, 4160, false, 8));
        // 0.25 * 8/3 per byte.
        assert!((flow.cwnd() - before - 4160.0 * 0.25 * 8.0 / 3.0).abs() < 1e-6);
        // A delay of 1 us ends it.
        flow.on_ack(&config, &ack(102, 4160, false, 9));
        assert!(!flow.increasing);
    }

    #[test]
    fn quick_adapt_takes_what_got_through() {
        let config = config();
        let mut flow = flow(&config);
        flow.achieved = 20_000;
        flow.lossy = true;
        // 20000 + 4160 B are below 600000 / 8 = 75000 B.
        flow.on_ack(&config, &ack(1001, 4160, false, 10));
        assert_eq!(flow.cwnd(), 24_160.0);
        // Marks are ignored until the 100,000 B in flight are through.
        flow.average_delay = 12e6;
        flow.on_ack(&config, &ack(1010, 4160, true, 20));
        assert_eq!(flow.cwnd(), 24_160.0);
    }

    #[test]
    fn a_trim_takes_its_bytes() {
        let config = config();
        let mut flow = flow(&config);
        flow.on_nack(&config, &CcLoss { now: Time::from_us(101), bytes: 4160, in_flight: 0 });
        assert_eq!(flow.cwnd(), 195_840.0);
    }
}
