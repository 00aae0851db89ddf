//! NSCC, the sender-based congestion control of Ultra Ethernet (specification 7.6).
//!
//! Without mark and delay the window grows in proportion to the distance from the target delay, or fast where the path
//! is idle. Delay alone grows it slowly, a mark alone has no effect, both shrink it once per RTT by the excess of the
//! average delay. All constants are those of a 100 Gb/s, 12 us network, scaled to the actual one.

use super::{CcAck, CcLoss, ControlCapabilities, Section, Sizes, WindowRule};
use crate::Network;
use anabranch_settings::{About, Auto, SetError, choices, parameters};
use anabranch_units::Time;

pub(super) const ABOUT: About = About::brief(
    "nscc",
    "Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt.",
);

choices! {
    /// Base round trip of a flow.
    pub enum NsccBaseRtt {
        /// That of its pair of hosts, or the smallest round trip of a full packet where one is shorter; the maximum window
        /// falls with it. NACKs do not count: headers overtake data.
        Measured = "measured",
        /// That of the longest pair of the run, for all flows.
        Longest = "longest",
        /// That of the longest pair of the run at first, then as `measured`.
        Moving = "moving",
    }
}

choices! {
    /// Delay above which QuickAdapt may fire without a loss.
    pub enum QuickAdaptDelay {
        /// Four target delays.
        Targets = "targets",
        /// Where switches do not trim, the time to drain a full queue less a base round trip.
        Queue = "queue",
    }
}

parameters! {
    /// NSCC.
    pub struct NsccParameters {
        /// Base round trip of a flow.
        base_rtt: NsccBaseRtt = NsccBaseRtt::Measured, source "Ultra Ethernet's public simulator; longest: Spritz §V-A; moving: UEC 1.0.3, as public briefs have it", Reading;
        /// Target queueing delay in base RTTs. `auto`: 0.75 where switches trim, else 1.
        target_delay: Auto<f64> = Auto::Auto, source "specification 7.6; 1 without trimming as in Ultra Ethernet's public simulator", Expert;
        /// Delay above which QuickAdapt may fire without a loss.
        quick_adapt_delay: QuickAdaptDelay = QuickAdaptDelay::Targets, source "Ultra Ethernet's public simulator; queue: UEC 1.0.3, as public briefs have it, four targets at a limit of 5 BDP", Reading;
        /// Receivers grant credit too (RCCC). Trims at the last hop then leave the window alone.
        receiver_credit: bool = false, source "UEC 1.0.3, as public briefs have it: optional", Expert;
    }
}

impl ControlCapabilities for NsccParameters {
    fn takes_longest_rtt(&self) -> bool {
        self.base_rtt != NsccBaseRtt::Measured
    }

    fn takes_credit(&self) -> bool {
        self.receiver_credit
    }

    fn check(&self) -> Result<(), SetError> {
        Section::of(self).positive("target_delay", self.target_delay.value().unwrap_or(1.0))
    }
}

// Constants of specification 7.6.
/// Gains of the proportional and the fair increase, and of the increase once per RTT.
const PROPORTIONAL: f64 = 4.0;
const FAIR: f64 = 5.0;
const ETA: f64 = 0.15;
/// Strength and minimum factor of a multiplicative decrease.
const GAMMA: f64 = 0.8;
const MAX_DECREASE: f64 = 0.5;
/// Gain of FastIncrease per acknowledged byte, before scaling to the network.
const FAST_INCREASE: f64 = 0.25;
/// Queueing delay from which on a path is not idle for FastIncrease.
const FAST_INCREASE_DELAY: Time = Time::from_us(1);
/// Gain of the average delay.
const DELAY_GAIN: f64 = 0.0125;
/// Delay in targets above which QuickAdapt may fire without a loss.
const QUICK_ADAPT_THRESHOLD: f64 = 4.0;
/// QuickAdapt fires only if less than the maximum window over two to this power was delivered.
const QUICK_ADAPT_GATE: u32 = 3;
/// Full packets after which the increase is applied, at the latest after a base RTT.
const ADJUST_PACKETS: f64 = 8.0;
/// The reference network that the gains are scaled from: 100 Gb/s and 12 us.
const REFERENCE_BDP: f64 = 150_000.0;
const REFERENCE_RTT: f64 = 12e6;
/// Sample of the average delay in base RTTs, where the delay exceeds the target without a mark.
const UNMARKED_SAMPLE: f64 = 0.25;

/// Constants of a run.
#[derive(Clone, Debug)]
pub struct NsccConfig {
    sizes: Sizes,
    target: Time,
    /// Collected growth per acknowledged byte and picosecond below the target.
    alpha: f64,
    /// Collected growth per acknowledged byte.
    fair: f64,
    /// Bytes added once per RTT.
    eta: f64,
    /// Bytes FastIncrease adds per acknowledged byte.
    fast: f64,
    /// Delay sample of a trim: one RTT of the network.
    trim_sample: f64,
    quick_adapt_delay: Time,
    adjust_bytes: f64,
    adjust_period: Time,
    /// The base round trip falls to the smallest sample.
    measures_base: bool,
    bdp: f64,
}

/// State of a flow.
#[derive(Clone, Debug)]
pub struct Nscc {
    cwnd: f64,
    /// Growth collected since the last adjustment, in bytes times bytes of window.
    collected: f64,
    /// Average queueing delay in picoseconds.
    average: f64,
    received: u64,
    achieved: u64,
    /// Bytes in flight at the last QuickAdapt, and those of them delivered since.
    to_ignore: u64,
    ignored: u64,
    /// Consecutive bytes without delay.
    idle: u64,
    base_rtt: Time,
    /// End of the QuickAdapt period; `None` before the first acknowledgement.
    period_end: Option<Time>,
    /// Last adjustment; counting starts with the first acknowledgement (ours).
    adjusted: Option<Time>,
    decreased: Option<Time>,
    fast: bool,
    lossy: bool,
}

impl WindowRule for Nscc {
    type Parameters = NsccParameters;
    type Config = NsccConfig;

    fn config(parameters: &NsccParameters, sizes: Sizes, network: &Network) -> NsccConfig {
        let target = parameters.target_delay.value().unwrap_or(if network.trimming { 0.75 } else { 1.0 });
        let target = super::rule::scaled(network.base_rtt, target).max(Time::from_ps(1));
        // The scaling factors a (bandwidth-delay product) and b (delay).
        let a = network.bdp as f64 / REFERENCE_BDP;
        let b = target.ps() as f64 / REFERENCE_RTT;
        NsccConfig {
            sizes,
            target,
            alpha: PROPORTIONAL * sizes.payload * a * b / target.ps() as f64,
            fair: FAIR * sizes.payload * a,
            eta: ETA * sizes.payload * a,
            fast: FAST_INCREASE * a,
            trim_sample: network.base_rtt.ps() as f64,
            quick_adapt_delay: match parameters.quick_adapt_delay {
                QuickAdaptDelay::Queue if !network.trimming => network.queue_drain.saturating_sub(network.base_rtt),
                _ => super::rule::scaled(target, QUICK_ADAPT_THRESHOLD),
            },
            adjust_bytes: ADJUST_PACKETS * sizes.mtu,
            adjust_period: network.base_rtt,
            measures_base: parameters.base_rtt != NsccBaseRtt::Longest,
            bdp: network.bdp as f64,
        }
    }

    fn new(config: &NsccConfig, base_rtt: Time) -> Self {
        Nscc {
            cwnd: config.sizes.max,
            collected: 0.0,
            average: 0.0,
            received: 0,
            achieved: 0,
            to_ignore: 0,
            ignored: 0,
            idle: 0,
            base_rtt,
            period_end: None,
            adjusted: None,
            decreased: None,
            fast: false,
            lossy: false,
        }
    }

    fn on_ack(&mut self, config: &NsccConfig, ack: &CcAck) {
        self.on_progress(ack.bytes);
        let delay = match ack.rtt {
            Some(rtt) => {
                if rtt < self.base_rtt && config.measures_base && ack.is_full {
                    self.base_rtt = rtt;
                }
                let delay = rtt.saturating_sub(self.base_rtt);
                self.sample(config, delay, ack.ecn);
                delay
            }
            None => Time::from_ps(self.average as u64),
        };
        if self.quick_adapt(config, ack.now, ack.in_flight, ack.ecn, delay) {
            return;
        }
        self.move_window(config, ack, delay);
        self.clamp(config);
        self.adjust(config, ack.now);
    }

    fn on_progress(&mut self, bytes: u64) {
        self.achieved += bytes;
        self.received += bytes;
        self.ignored += bytes;
    }

    fn on_nack(&mut self, config: &NsccConfig, loss: &CcLoss) {
        self.ignored += loss.bytes;
        self.average = DELAY_GAIN * config.trim_sample + (1.0 - DELAY_GAIN) * self.average;
        self.lossy = true;
        if !self.quick_adapt(config, loss.now, loss.in_flight, true, Time::ZERO) {
            self.cwnd -= loss.bytes as f64;
            self.clamp(config);
        }
    }

    /// Takes the lost bytes from the window; QuickAdapt may act on the next signal.
    fn on_timeout(&mut self, config: &NsccConfig, loss: &CcLoss) {
        self.ignored += loss.bytes;
        self.lossy = true;
        self.cwnd -= loss.bytes as f64;
        self.clamp(config);
    }

    fn cwnd(&self) -> f64 {
        self.cwnd
    }
}

impl Nscc {
    fn move_window(&mut self, config: &NsccConfig, ack: &CcAck, delay: Time) {
        let bytes = ack.bytes as f64;
        match (ack.ecn, delay < config.target) {
            (false, true) => {
                if !self.fast_increase(config, ack.bytes, delay) {
                    self.collected += config.alpha * bytes * (config.target - delay).ps() as f64;
                }
            }
            (false, false) => {
                self.end_fast_increase();
                self.collected += config.fair * bytes;
            }
            (true, false) => {
                self.end_fast_increase();
                self.decrease(config, ack.now);
            }
            (true, true) => {}
        }
    }

    fn fast_increase(&mut self, config: &NsccConfig, bytes: u64, delay: Time) -> bool {
        if delay >= FAST_INCREASE_DELAY {
            self.end_fast_increase();
            return false;
        }
        self.idle += bytes;
        self.fast |= self.idle as f64 > self.cwnd;
        if self.fast {
            self.cwnd += config.fast * bytes as f64;
        }
        self.fast
    }

    /// Returns the maximum window: that of the pair, or where the base round trip has fallen its part, which fills the link.
    fn max(&self, config: &NsccConfig) -> f64 {
        if self.base_rtt >= config.adjust_period {
            return config.sizes.max;
        }
        let (rtt, of) = (self.base_rtt.ps() as f64, config.adjust_period.ps() as f64);
        let fills = config.bdp * (rtt / of) + config.sizes.beyond_bdp;
        (config.sizes.max * (rtt / of)).max(fills).min(config.sizes.max)
    }

    fn end_fast_increase(&mut self) {
        (self.idle, self.fast) = (0, false);
    }

    fn decrease(&mut self, config: &NsccConfig, now: Time) {
        let target = config.target.ps() as f64;
        let due = self.decreased.is_none_or(|last| now.saturating_sub(last) > self.base_rtt);
        if self.average > target && due {
            let factor = 1.0 - GAMMA * (self.average - target) / self.average;
            self.cwnd *= factor.max(MAX_DECREASE);
            self.decreased = Some(now);
        }
    }

    /// Applies the collected growth once enough bytes or time have passed, and the base increase once per RTT.
    fn adjust(&mut self, config: &NsccConfig, now: Time) {
        let since = now.saturating_sub(*self.adjusted.get_or_insert(now));
        if self.received as f64 > config.adjust_bytes || since > config.adjust_period {
            self.cwnd += self.collected / self.cwnd;
            if since >= config.adjust_period {
                self.cwnd += config.eta;
                self.adjusted = Some(now);
            }
            (self.collected, self.received) = (0.0, 0);
            self.clamp(config);
        }
    }

    fn sample(&mut self, config: &NsccConfig, delay: Time, ecn: bool) {
        let sample =
            if !ecn && delay > config.target { UNMARKED_SAMPLE * self.base_rtt.ps() as f64 } else { delay.ps() as f64 };
        self.average = DELAY_GAIN * sample + (1.0 - DELAY_GAIN) * self.average;
    }

    /// Returns `true` if the window was set or this signal must be ignored.
    fn quick_adapt(&mut self, config: &NsccConfig, now: Time, in_flight: u64, ecn: bool, delay: Time) -> bool {
        let mut done = false;
        if ecn && self.ignored < self.to_ignore {
            done = true;
        } else if self.period_end.is_none_or(|end| now > end) {
            let cause = self.lossy || delay > config.quick_adapt_delay;
            if self.period_end.is_some() && cause && self.achieved < self.max(config) as u64 >> QUICK_ADAPT_GATE {
                self.cwnd = self.achieved as f64;
                self.clamp(config);
                (self.to_ignore, self.ignored, self.lossy) = (in_flight, 0, false);
                done = true;
            }
            self.achieved = 0;
            self.period_end = Some(now + self.base_rtt + config.target);
        }
        if done {
            (self.collected, self.received) = (0.0, 0);
        }
        done
    }

    fn clamp(&mut self, config: &NsccConfig) {
        self.cwnd = self.cwnd.max(config.sizes.mtu).min(self.max(config));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;

    const BASE: Time = Time::from_us(16);

    /// BDP 300,000 B: a = 2. Target 12 us: b = 1. With a payload of 4000 B: alpha = 4*4000*2/12 us, fi = 40,000,
    /// eta = 1200, `fi_scale` 0.5. Largest window 450,000 B, QuickAdapt below 56,250 B, packets of 4100 B.
    fn flow() -> (NsccConfig, Nscc) {
        let network = Network {
            base_rtt: BASE,
            bdp: 300_000,
            queue_drain: BASE,
            trimming: true,
            nic_rate: Rate::gbps(150),
            ..Network::default()
        };
        let sizes = Sizes { mtu: 4100.0, payload: 4000.0, max: 450_000.0, beyond_bdp: 0.0, trimmed: 100 };
        let config = Nscc::config(&NsccParameters::default(), sizes, &network);
        let mut flow = Nscc::new(&config, BASE);
        flow.cwnd = 100_000.0;
        (config, flow)
    }
    fn ack(now: u64, bytes: u64, ecn: bool, rtt: Option<u64>) -> CcAck {
        let rtt = rtt.map(Time::from_us);
        CcAck {
            now: Time::from_us(now),
            bytes,
            packets: 1,
            psn: 0,
            ecn,
            rtt,
            is_full: true,
            in_flight: 8200,
            path_rtt: None,
        }
    }
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "found {found}, expected {expected}");
    }

    #[test]
    fn constants_scale_with_the_network() {
        let (config, _) = flow();
        assert_eq!((config.target, config.quick_adapt_delay), (Time::from_us(12), Time::from_us(48)));
        near(config.alpha * 12e6, 32_000.0);
        near(config.fair, 40_000.0);
        near(config.eta, 1200.0);
        near(config.fast, 0.5);
        assert_eq!((config.sizes.max as u64 >> QUICK_ADAPT_GATE, config.adjust_bytes), (56_250, 32_800.0));
    }

    #[test]
    fn proportional_increase_is_applied_after_eight_packets() {
        let (config, mut flow) = flow();
        // Delay 6 us, half the target: each 4100 B collect 4100 * 32,000 / 2. The window is constant up to 32,800 B.
        for _ in 0..8 {
            flow.on_ack(&config, &ack(20, 4100, false, Some(22)));
            near(flow.cwnd(), 100_000.0);
        }
        // The ninth: 36,900 * 16,000 / 100,000 = 5904.
        flow.on_ack(&config, &ack(20, 4100, false, Some(22)));
        near(flow.cwnd(), 105_904.0);
        // Just over an RTT after the first acknowledgement: the collected growth and eta.
        flow.on_ack(&config, &ack(37, 4100, false, Some(22)));
        near(flow.cwnd(), 105_904.0 + 4100.0 * 16_000.0 / 105_904.0 + 1200.0);
    }

    #[test]
    fn fair_increase_with_delay_and_no_mark() {
        let (config, mut flow) = flow();
        flow.on_ack(&config, &ack(20, 40_000, false, Some(28)));
        // 40,000 * 40,000 / 100,000 = 16,000.
        near(flow.cwnd(), 116_000.0);
        let (config, mut flow) = self::flow();
        flow.on_ack(&config, &ack(20, 40_000, true, Some(20)));
        near(flow.cwnd(), 100_000.0);
    }

    #[test]
    fn fast_increase_after_a_window_without_delay() {
        let (config, mut flow) = flow();
        // 100,000 B do not exceed the window; they collect 32,000 each and are applied at once (> 8 packets).
        flow.on_ack(&config, &ack(20, 100_000, false, Some(16)));
        near(flow.cwnd(), 132_000.0);
        // 136,100 B in a row exceed it: half of the bytes, nothing collected.
        flow.on_ack(&config, &ack(20, 36_100, false, Some(16)));
        near(flow.cwnd(), 150_050.0);
        flow.on_ack(&config, &ack(20, 4100, false, Some(16)));
        near(flow.cwnd(), 152_100.0);
        // 1 us of delay ends it: 4100 B wait to be applied.
        flow.on_ack(&config, &ack(20, 4100, false, Some(17)));
        near(flow.cwnd(), 152_100.0);
    }

    #[test]
    fn marks_with_delay_shrink_once_per_rtt() {
        let (config, mut flow) = flow();
        flow.average = 24e6;
        // Sample 24 us leaves the average at 24: 1 - 0.8 * 12 / 24 = 0.6.
        flow.on_ack(&config, &ack(20, 4100, true, Some(40)));
        near(flow.cwnd(), 60_000.0);
        flow.on_ack(&config, &ack(36, 4100, true, Some(40)));
        near(flow.cwnd(), 60_000.0);
        // More than a base RTT later; the adjustment that is due as well adds eta: 36,000 + 1200.
        flow.on_ack(&config, &ack(37, 4100, true, Some(40)));
        near(flow.cwnd(), 37_200.0);
        // 1 - 0.8 * (120 - 12) / 120 = 0.28, but never below one half.
        let (config, mut flow) = self::flow();
        flow.average = 120e6;
        flow.on_ack(&config, &ack(20, 4100, true, Some(136)));
        near(flow.cwnd(), 50_000.0);
    }

    #[test]
    fn the_average_follows_its_samples() {
        let (config, mut flow) = flow();
        // Marked, 40 us of delay: 0.0125 * 40 us = 0.5 us.
        flow.on_ack(&config, &ack(20, 4100, true, Some(56)));
        near(flow.average, 0.5e6);
        // Unmarked beyond the target: a quarter of the base RTT, 4 us: 0.05 + 0.49375.
        flow.on_ack(&config, &ack(20, 4100, false, Some(56)));
        near(flow.average, 0.54375e6);
        // A trim: one RTT of 16 us: 0.2 + 0.536953125.
        flow.on_nack(&config, &CcLoss { now: Time::from_us(20), bytes: 4100, in_flight: 0 });
        near(flow.average, 0.736953125e6);
    }

    #[test]
    fn quick_adapt_after_a_trim() {
        let (config, mut flow) = flow();
        let loss = |now| CcLoss { now: Time::from_us(now), bytes: 4100, in_flight: 8200 };
        // Opens the period of 16 + 12 us.
        flow.on_ack(&config, &ack(20, 4100, true, Some(20)));
        flow.on_nack(&config, &loss(30));
        near(flow.cwnd(), 95_900.0);
        flow.on_ack(&config, &ack(40, 20_000, true, Some(20)));
        // At its end nothing happens yet; after it the window is set to the 20,000 + 4100 B delivered.
        flow.on_ack(&config, &ack(48, 4100, true, Some(20)));
        assert!(flow.cwnd() > 95_000.0);
        let mut late = flow.clone();
        flow.on_nack(&config, &loss(49));
        near(flow.cwnd(), 24_100.0);
        // 8200 B in flight then: two more trims are ignored, the third counts.
        flow.on_nack(&config, &loss(50));
        near(flow.cwnd(), 24_100.0);
        flow.on_nack(&config, &loss(50));
        near(flow.cwnd(), 20_000.0);
        // Where more than an eighth of the maximum window was delivered, a trim costs its bytes only.
        late.on_progress(40_000);
        let before = late.cwnd();
        late.on_nack(&config, &loss(49));
        near(late.cwnd(), before - 4100.0);
    }

    #[test]
    fn quick_adapt_after_a_very_long_delay() {
        let (config, mut flow) = flow();
        flow.on_ack(&config, &ack(20, 4100, true, Some(20)));
        // 48 us of delay is not more than four targets.
        let mut other = flow.clone();
        flow.on_ack(&config, &ack(49, 4100, true, Some(65)));
        near(flow.cwnd(), 4100.0);
        other.on_ack(&config, &ack(49, 4100, true, Some(64)));
        assert!(other.cwnd() > 100_000.0);
    }

    /// n equal senders: 1.75 / n BDP arrive in a period of base round trip and target, the gate is 1.5 / 8 BDP. QuickAdapt
    /// fires for 10 senders and more.
    #[test]
    fn quick_adapt_in_an_incast_fires_from_ten_senders_on() {
        let base_rtt = Time::from_us(8);
        let network =
            Network { base_rtt, bdp: 100_000, trimming: true, nic_rate: Rate::gbps(100), ..Network::default() };
        let sizes = Sizes { mtu: 4100.0, payload: 4000.0, max: 150_000.0, beyond_bdp: 0.0, trimmed: 100 };
        let config = Nscc::config(&NsccParameters::default(), sizes, &network);
        for senders in 2..40 {
            let mut flow = Nscc::new(&config, base_rtt);
            flow.on_ack(&config, &ack(0, 1, true, Some(8)));
            let achieved = 175_000 / senders;
            flow.on_progress(achieved);
            flow.on_nack(&config, &CcLoss { now: Time::from_us(15), bytes: 4100, in_flight: 0 });
            let expected = if senders >= 10 { (achieved as f64).max(4100.0) } else { 150_000.0 - 4100.0 };
            near(flow.cwnd(), expected);
        }
    }

    #[test]
    fn base_rtt_moves_from_the_longest_to_the_shortest() {
        let parameters = NsccParameters {
            base_rtt: NsccBaseRtt::Moving,
            quick_adapt_delay: QuickAdaptDelay::Queue,
            ..NsccParameters::default()
        };
        assert!(parameters.takes_longest_rtt());
        // Without trimming a queue of 5 BDP drains in 5 base round trips; less one are four targets.
        let network = Network { base_rtt: BASE, bdp: 300_000, queue_drain: BASE * 5, ..Network::default() };
        let sizes = Sizes { mtu: 4100.0, payload: 4000.0, max: 450_000.0, beyond_bdp: 0.0, trimmed: 100 };
        let config = Nscc::config(&parameters, sizes, &network);
        assert_eq!((config.quick_adapt_delay, config.target), (BASE * 4, BASE));
        let mut flow = Nscc::new(&config, BASE);
        near(flow.max(&config), 450_000.0);
        flow.on_ack(&config, &ack(20, 4100, true, Some(8)));
        assert_eq!(flow.base_rtt, Time::from_us(8));
        near(flow.max(&config), 225_000.0);
    }

    #[test]
    fn a_timeout_takes_its_bytes() {
        let (config, mut flow) = flow();
        flow.on_timeout(&config, &CcLoss { now: Time::from_us(20), bytes: 4100, in_flight: 0 });
        near(flow.cwnd(), 95_900.0);
    }
}
