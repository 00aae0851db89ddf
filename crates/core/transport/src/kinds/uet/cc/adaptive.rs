//! QuickAdapt and FastIncrease of DCTCP and SMaRTT (specification 7.4, 7.5). QuickAdapt sets the window after a trim to
//! the bytes delivered in the last period; FastIncrease grows it after a window of bytes without mark or delay.

use super::{CcAck, CcLoss, Sizes};
use anabranch_settings::Never;
use anabranch_units::Time;

#[derive(Clone, Copy, Debug)]
pub(super) struct AdaptiveConfig {
    pub(super) sizes: Sizes,
    pub(super) quick_adapt: bool,
    /// Periods after which losses count again regardless of acknowledged bytes.
    pub(super) patience: Never<f64>,
    pub(super) fast_increase: bool,
    /// Growth per acknowledged byte.
    pub(super) fast_increase_gain: f64,
    /// Measures that delay over the base RTT of the packet's own path, if known.
    pub(super) own_path: bool,
    /// Marks shrink the window only while their average exceeds [`ECN_THRESHOLD`].
    pub(super) ecn_gate: bool,
}

// Constants of specification 7.4.
/// Measurement period of QuickAdapt in base RTTs.
const PERIOD: f64 = 1.5;
/// Maximum queueing delay that counts as none for FastIncrease.
const FAST_INCREASE_DELAY: Time = Time::from_us(1);
/// Average of the marks above which they shrink the window (0.25 to 0.3), and gain of that average, per packet.
const ECN_THRESHOLD: f64 = 0.25;
const EWMA_GAIN: f64 = 0.125;

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    pub(super) cwnd: f64,
    /// Base RTT of the flow's longest path.
    pub(super) base_rtt: Time,
    acked: u64,
    /// Bytes in flight at the last QuickAdapt, and those of them delivered since.
    to_ignore: u64,
    ignored: u64,
    /// Time from which losses count again regardless of acknowledged bytes.
    ignore_until: Time,
    /// End of the period; zero before the first acknowledgement.
    period_end: Time,
    period: Time,
    /// Consecutive bytes without mark or delay, and the number that starts FastIncrease.
    good: u64,
    target_window: f64,
    marks: f64,
    increasing: bool,
    /// A trim or timeout has occurred since the last QuickAdapt.
    lossy: bool,
}

impl Adaptive {
    pub(super) fn new(config: &AdaptiveConfig, base_rtt: Time) -> Self {
        Adaptive {
            cwnd: config.sizes.max,
            base_rtt,
            acked: 0,
            to_ignore: 0,
            ignored: 0,
            ignore_until: Time::MAX,
            period_end: Time::ZERO,
            period: super::rule::scaled(base_rtt, PERIOD),
            good: 0,
            target_window: config.sizes.max,
            marks: 0.0,
            increasing: false,
            lossy: false,
        }
    }

    fn ignoring(&self) -> bool {
        self.ignored < self.to_ignore
    }

    /// Processes an acknowledgement; returns `true` if the main rule must move the window as well.
    #[inline]
    pub(super) fn on_ack(&mut self, config: &AdaptiveConfig, ack: &CcAck) -> bool {
        self.on_progress(ack.bytes);
        if config.ecn_gate {
            for _ in 0..ack.packets {
                self.marks = (1.0 - EWMA_GAIN) * self.marks + if ack.ecn { EWMA_GAIN } else { 0.0 };
            }
        }
        if config.fast_increase {
            self.detect(config, ack);
        }
        if !self.ignoring() {
            self.quick_adapt(config, ack.now, ack.in_flight);
        }
        if ack.ecn && self.ignoring() {
            return false;
        }
        if config.fast_increase && (self.increasing || self.good as f64 > self.target_window) {
            self.increasing = true;
            if !self.ignoring() {
                self.cwnd += config.fast_increase_gain * ack.bytes as f64;
            }
            return false;
        }
        true
    }

    /// Detector of FastIncrease. Without a delay sample an unmarked ACK neither counts nor interrupts (ours).
    fn detect(&mut self, config: &AdaptiveConfig, ack: &CcAck) {
        let base = ack.path_rtt.filter(|_| config.own_path).unwrap_or(self.base_rtt);
        let delay = ack.rtt.map(|rtt| rtt.saturating_sub(base));
        if ack.ecn || delay.is_some_and(|delay| delay > FAST_INCREASE_DELAY) {
            (self.target_window, self.good, self.increasing) = (self.cwnd, 0, false);
        } else if delay.is_some() {
            self.good += ack.bytes;
        }
    }

    #[inline]
    pub(super) fn on_progress(&mut self, bytes: u64) {
        self.acked += bytes;
        if self.ignoring() {
            self.ignored += bytes;
        }
    }

    /// Processes the loss of a packet of `loss.bytes`, of which `credit` bytes were delivered.
    pub(super) fn on_loss(&mut self, config: &AdaptiveConfig, loss: &CcLoss, credit: u64) {
        self.acked += credit;
        if self.ignoring() && loss.now >= self.ignore_until {
            self.to_ignore = 0;
        }
        if !self.ignoring() {
            self.cwnd -= loss.bytes as f64;
            self.clamp(config);
            self.lossy = true;
            self.quick_adapt(config, loss.now, loss.in_flight);
        }
    }

    fn quick_adapt(&mut self, config: &AdaptiveConfig, now: Time, in_flight: u64) {
        if !config.quick_adapt || now < self.period_end {
            return;
        }
        let (achieved, first) = (self.acked, self.period_end == Time::ZERO);
        self.acked = 0;
        self.period_end = now + self.period;
        if self.lossy && !first {
            self.cwnd = achieved as f64;
            self.clamp(config);
            (self.to_ignore, self.ignored, self.lossy) = (in_flight, 0, false);
            let patience = config.patience.value();
            self.ignore_until = patience.map_or(Time::MAX, |periods| now + super::rule::scaled(self.period, periods));
        }
    }

    pub(super) fn may_decrease(&self, config: &AdaptiveConfig) -> bool {
        !config.ecn_gate || self.marks > ECN_THRESHOLD
    }

    pub(super) fn clamp(&mut self, config: &AdaptiveConfig) {
        self.cwnd = self.cwnd.max(config.sizes.mtu).min(config.sizes.max);
    }
}
