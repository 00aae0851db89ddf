//! Swift (specification 7.8; SIGCOMM 2020): a window that follows delay. Below one packet the window becomes a pace.

use super::{ControlCapabilities, PairControl, PairReply, Section, Start};
use anabranch_settings::{About, Auto, SetError, parameters};
use anabranch_units::{Rate, Time};

pub(super) const ABOUT: About = About::brief("swift", "Swift: a window that follows delay.");

parameters! {
    /// Swift.
    pub struct SwiftParameters {
        /// Packets by which the window grows per round trip below the target.
        ai: f64 = 1.0, source "specification 7.8";
        /// Strength of the decrease above the target.
        beta: f64 = 0.8, source "specification 7.8";
        /// Maximum share that one decrease, or a timeout, takes away.
        max_mdf: f64 = 0.5, source "specification 7.8";
        /// Target delay above the base round trip, independent of the window; auto: a quarter of the base round trip.
        target_queueing: Auto<Time> = Auto::Auto, source "ours: stands for Swift's allowance per hop, which is not given";
        /// Maximum part of the target that depends on the window, in base round trips.
        fs_range: f64 = 5.0, source "specification 7.8";
        /// Window in packets at which that part is largest.
        fs_min_cwnd: f64 = 0.1, source "specification 7.8";
        /// Window in packets from which on that part is zero.
        fs_max_cwnd: f64 = 100.0, source "specification 7.8";
        /// Minimum window in packets.
        min_cwnd: f64 = 0.001, source "ours";
    }
}

impl ControlCapabilities for SwiftParameters {
    fn check(&self) -> Result<(), SetError> {
        let expected = "a number above 0 (max_mdf below 1, fs_max_cwnd above fs_min_cwnd, min_cwnd up to 1)";
        let fits = [
            ("ai", self.ai > 0.0),
            ("beta", self.beta > 0.0),
            ("max_mdf", self.max_mdf > 0.0 && self.max_mdf < 1.0),
            ("fs_range", self.fs_range >= 0.0),
            ("fs_min_cwnd", self.fs_min_cwnd > 0.0),
            ("fs_max_cwnd", self.fs_max_cwnd > self.fs_min_cwnd),
            ("min_cwnd", self.min_cwnd > 0.0 && self.min_cwnd <= 1.0),
        ];
        fits.into_iter().try_for_each(|(key, fits)| Section::of(self).require(key, fits, expected))
    }

    fn is_delay_based(&self) -> bool {
        true
    }
}

/// Swift's constants in a run.
#[derive(Clone, Debug)]
pub struct SwiftConfig {
    parameters: SwiftParameters,
    /// Factor and offset of the window-dependent part of the target.
    alpha: f64,
    offset: f64,
}

impl SwiftConfig {
    pub(crate) fn new(parameters: &SwiftParameters) -> Self {
        let inverse = |cwnd: f64| 1.0 / cwnd.sqrt();
        let alpha = parameters.fs_range / (inverse(parameters.fs_min_cwnd) - inverse(parameters.fs_max_cwnd));
        SwiftConfig { parameters: parameters.clone(), alpha, offset: alpha * inverse(parameters.fs_max_cwnd) }
    }
}

/// Swift of one queue pair.
#[derive(Clone, Debug)]
pub struct Swift {
    /// Window in packets.
    cwnd: f64,
    /// Window before the decreases since it last grew.
    before: f64,
    base: f64,
    queueing: f64,
    last_decrease: Time,
    rtt: Time,
}

impl Swift {
    pub(crate) fn new(config: &SwiftConfig, base_rtt: Time, window_packets: f64) -> Self {
        let base = base_rtt.ps() as f64;
        let queueing = match config.parameters.target_queueing {
            Auto::Value(time) => time.ps() as f64,
            Auto::Auto => base / 4.0,
        };
        let cwnd = window_packets.max(1.0);
        Swift { cwnd, before: cwnd, base, queueing, last_decrease: Time::ZERO, rtt: base_rtt }
    }

    pub(crate) fn target(&self, config: &SwiftConfig) -> f64 {
        let scaling = (config.alpha / self.cwnd.sqrt() - config.offset).clamp(0.0, config.parameters.fs_range);
        self.base + self.queueing + scaling * self.base
    }

    pub(crate) fn on_ack(&mut self, config: &SwiftConfig, now: Time, packets: u32, rtt: Option<Time>, largest: f64) {
        if let Some(rtt) = rtt {
            self.rtt = rtt;
        }
        let (delay, target) = (self.rtt.ps() as f64, self.target(config));
        let p = &config.parameters;
        if delay < target {
            let acked = f64::from(packets);
            self.cwnd += if self.cwnd >= 1.0 { p.ai / self.cwnd * acked } else { p.ai * acked };
            self.before = self.cwnd.min(largest);
        } else if now.saturating_sub(self.last_decrease) >= self.rtt {
            self.cwnd *= (1.0 - p.beta * (delay - target) / delay).max(1.0 - p.max_mdf);
            self.last_decrease = now;
        }
        self.cwnd = self.cwnd.clamp(p.min_cwnd, largest);
    }

    pub(crate) fn pace(&self) -> Time {
        if self.cwnd >= 1.0 { Time::ZERO } else { Time::from_ps((self.rtt.ps() as f64 / self.cwnd) as u64) }
    }
}

impl PairControl for Swift {
    const WINDOW: bool = true;
    type Parameters = SwiftParameters;
    type Config = SwiftConfig;

    fn config(parameters: &SwiftParameters, _: Rate) -> SwiftConfig {
        SwiftConfig::new(parameters)
    }

    fn new(config: &SwiftConfig, start: &Start) -> Self {
        Swift::new(config, start.base_rtt, start.window_packets)
    }

    fn min_gap(&self) -> Time {
        self.pace()
    }

    fn on_reply(&mut self, config: &SwiftConfig, reply: &PairReply) {
        if reply.packets > 0 {
            self.on_ack(config, reply.now, reply.packets, reply.rtt, reply.largest.max(1.0));
        }
    }

    fn window(&self, mtu: u64) -> u64 {
        (self.cwnd.max(1.0) * mtu as f64) as u64
    }

    fn restore(&mut self, _: &SwiftConfig, _: Time) {
        self.cwnd = self.cwnd.max(self.before);
    }

    fn on_timeout(&mut self, config: &SwiftConfig, now: Time) {
        self.cwnd = (self.cwnd * (1.0 - config.parameters.max_mdf)).max(config.parameters.min_cwnd);
        self.last_decrease = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flow over a link of 100 packets per base round trip: the excess is the queue.
    #[test]
    fn settles_at_the_target_delay() {
        let config = SwiftConfig::new(&SwiftParameters::default());
        let base = Time::from_us(8);
        let mut swift = Swift::new(&config, base, 100.0);
        let mut now = Time::ZERO;
        let mut last = Time::ZERO;
        for _ in 0..200_000 {
            // Fluid: the round trip is the window over the rate, at least the base.
            let rtt = Time::from_ps(((swift.cwnd / 100.0).max(1.0) * 8e6) as u64);
            now += Time::from_ps((rtt.ps() as f64 / swift.cwnd) as u64);
            swift.on_ack(&config, now, 1, Some(rtt), 1e9);
            last = rtt;
        }
        // Target at a window above 100 packets: base and a quarter.
        let target = 10e6;
        assert!((last.ps() as f64 - target).abs() / target < 0.02, "{last}");
    }

    #[test]
    fn a_window_below_one_is_a_pace() {
        let config = SwiftConfig::new(&SwiftParameters::default());
        let mut swift = Swift::new(&config, Time::from_us(8), 1.0);
        swift.on_timeout(&config, Time::ZERO);
        // Half a packet per round trip of 8 us: one every 16 us.
        assert_eq!((swift.window(1000), swift.pace()), (1000, Time::from_us(16)));
        // At fs_min_cwnd the target is base + base/4 + 5 base = 50 us.
        swift.cwnd = 0.1;
        assert!((swift.target(&config) - 50e6).abs() < 1.0);
    }
}
