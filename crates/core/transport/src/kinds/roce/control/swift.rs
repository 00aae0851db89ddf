//! Swift (specification 7.8; SIGCOMM 2020): a window that follows delay. Below one packet the window becomes a pace.

use super::{ControlCapabilities, PairControl, PairReply, Start};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(super) const ABOUT: About = About::brief("swift", "Swift: a window that follows delay.");

parameters! {
    /// Swift has no parameters: its constants are those of specification 7.8.
    pub struct SwiftParameters {
    }
}

/// Packets by which the window grows per round trip below the target.
const INCREASE: f64 = 1.0;
/// Strength of the decrease above the target.
const BETA: f64 = 0.8;
/// Maximum share that one decrease, or a timeout, takes away.
const MAX_DECREASE: f64 = 0.5;
/// Part of the base round trip that the target adds for queueing. Ours, in place of Swift's allowance per hop.
const QUEUEING: f64 = 0.25;
/// Maximum part of the target that depends on the window, in base round trips.
const FS_RANGE: f64 = 5.0;
/// Windows in packets at which that part is largest, and from which on it is zero.
const FS_MIN_CWND: f64 = 0.1;
const FS_MAX_CWND: f64 = 100.0;
/// Minimum window in packets. Ours.
const MIN_CWND: f64 = 0.001;

impl ControlCapabilities for SwiftParameters {
    fn is_delay_based(&self) -> bool {
        true
    }
}

/// Swift's constants in a run: factor and offset of the window-dependent part of the target.
#[derive(Clone, Debug)]
pub struct SwiftConfig {
    alpha: f64,
    offset: f64,
}

/// Swift of one queue pair.
#[derive(Clone, Debug)]
pub struct Swift {
    /// Window in packets.
    cwnd: f64,
    /// Window before the decreases since it last grew.
    before: f64,
    base: f64,
    last_decrease: Time,
    rtt: Time,
}

impl Swift {
    pub(crate) fn new(base_rtt: Time, window_packets: f64) -> Self {
        let cwnd = window_packets.max(1.0);
        Swift { cwnd, before: cwnd, base: base_rtt.ps() as f64, last_decrease: Time::ZERO, rtt: base_rtt }
    }

    pub(crate) fn target(&self, config: &SwiftConfig) -> f64 {
        let scaling = (config.alpha / self.cwnd.sqrt() - config.offset).clamp(0.0, FS_RANGE);
        self.base + QUEUEING * self.base + scaling * self.base
    }

    pub(crate) fn on_ack(&mut self, config: &SwiftConfig, now: Time, packets: u32, rtt: Option<Time>, largest: f64) {
        if let Some(rtt) = rtt {
            self.rtt = rtt;
        }
        let (delay, target) = (self.rtt.ps() as f64, self.target(config));
        if delay < target {
            let acked = f64::from(packets);
            self.cwnd += if self.cwnd >= 1.0 { INCREASE / self.cwnd * acked } else { INCREASE * acked };
            self.before = self.cwnd.min(largest);
        } else if now.saturating_sub(self.last_decrease) >= self.rtt {
            self.cwnd *= (1.0 - BETA * (delay - target) / delay).max(1.0 - MAX_DECREASE);
            self.last_decrease = now;
        }
        self.cwnd = self.cwnd.clamp(MIN_CWND, largest);
    }
}

impl PairControl for Swift {
    const WINDOW: bool = true;
    type Parameters = SwiftParameters;
    type Config = SwiftConfig;

    fn config(_: &SwiftParameters, _: Rate) -> SwiftConfig {
        let inverse = |cwnd: f64| 1.0 / cwnd.sqrt();
        let alpha = FS_RANGE / (inverse(FS_MIN_CWND) - inverse(FS_MAX_CWND));
        SwiftConfig { alpha, offset: alpha * inverse(FS_MAX_CWND) }
    }

    fn new(_: &SwiftConfig, start: &Start) -> Self {
        Swift::new(start.base_rtt, start.window_packets)
    }

    fn min_gap(&self) -> Time {
        if self.cwnd >= 1.0 { Time::ZERO } else { Time::from_ps((self.rtt.ps() as f64 / self.cwnd) as u64) }
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

    fn on_timeout(&mut self, _: &SwiftConfig, now: Time) {
        self.cwnd = (self.cwnd * (1.0 - MAX_DECREASE)).max(MIN_CWND);
        self.last_decrease = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One flow over a link of 100 packets per base round trip: the excess is the queue.
    #[test]
    fn settles_at_the_target_delay() {
        let config = Swift::config(&SwiftParameters::default(), Rate(0));
        let base = Time::from_us(8);
        let mut swift = Swift::new(base, 100.0);
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
        let config = Swift::config(&SwiftParameters::default(), Rate(0));
        let mut swift = Swift::new(Time::from_us(8), 1.0);
        swift.on_timeout(&config, Time::ZERO);
        // Half a packet per round trip of 8 us: one every 16 us.
        assert_eq!((swift.window(1000), swift.min_gap()), (1000, Time::from_us(16)));
        // At fs_min_cwnd the target is base + base/4 + 5 base = 50 us.
        swift.cwnd = 0.1;
        assert!((swift.target(&config) - 50e6).abs() < 1.0);
    }
}
