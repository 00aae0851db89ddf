//! DCQCN as NICs implement it ("Mellanox" variant; specification 7.1, 17.3). Its timers are evaluated in order when a
//! notification arrives or a packet is about to be sent: the same bits as a timer that fires every microsecond.

use super::{ControlCapabilities, PairControl, Section, Start};
use anabranch_settings::{About, Auto, Never, SetError, parameters};
use anabranch_units::{Bytes, Rate, Time};

pub(super) const ABOUT: About =
    About::brief("dcqcn", "DCQCN: a rate that falls with congestion notifications and recovers by timers.");

parameters! {
    /// DCQCN.
    pub struct DcqcnParameters {
        /// Gain of the moving average `alpha`.
        g: f64 = 0.00390625, source "specification 17.3: 1/256", Expert;
        /// Interval at which `alpha` is updated.
        alpha_interval: Time = Time::from_us(1), source "specification 17.3", Expert;
        /// Interval at which the rate may be cut.
        decrease_interval: Time = Time::from_us(4), source "specification 17.3", Expert;
        /// Time after the last cut, and between steps, at which the rate is raised.
        rp_timer: Time = Time::from_us(300), source "specification 17.3", Expert;
        /// Bytes sent since the last cut, and between steps, at which the rate is raised as well. With it, the rate is in fast
        /// recovery while timer and counter are, and rises hyperactively once both are past their additive step.
        byte_counter: Never<Bytes> = Never::Never, source "specification 17.3: the recorded model has none; NVIDIA's rpg_byte_reset is 32767 B, DCQCN (SIGCOMM 2015) has 10 MB", Expert;
        /// Steps of fast recovery before the target rises.
        fast_recovery: u32 = 1, source "specification 17.3", Expert;
        /// Additive increase of the target; auto: 1/2500 of the NIC's rate.
        rate_ai: Auto<Rate> = Auto::Auto, source "specification 17.3: 40 Mb/s at 100 Gb/s", Expert;
        /// Hyper increase of the target; auto: 1/1000 of the NIC's rate.
        rate_hai: Auto<Rate> = Auto::Auto, source "specification 17.3: 100 Mb/s at 100 Gb/s", Expert;
        /// Minimum rate; from the NIC's rate on nothing is ever cut.
        min_rate: Rate = Rate(100_000_000), source "specification 17.3", Expert;
        /// If `true`, every cut makes the previous rate the target; otherwise only the first cut after an increase
        /// does.
        clamp_target: bool = false, source "specification 17.3", Reading;
    }
}

impl ControlCapabilities for DcqcnParameters {
    fn check(&self) -> Result<(), SetError> {
        let section = Section::of(self);
        section.require("g", self.g > 0.0 && self.g <= 1.0, "a share above 0 and up to 1")?;
        let (alpha, decrease, rp) = (self.alpha_interval, self.decrease_interval, self.rp_timer);
        for (key, time) in [("alpha_interval", alpha), ("decrease_interval", decrease), ("rp_timer", rp)] {
            section.require(key, time >= Time::from_ns(1), "1ns or more")?;
        }
        let counts = self.byte_counter != Never::Value(Bytes(0));
        section.require("byte_counter", counts, "1B or more, or \"never\"")?;
        section.require("min_rate", self.min_rate.0 > 0, "a rate above zero")
    }
}

/// DCQCN's constants in a run.
#[derive(Clone, Copy, Debug)]
pub struct DcqcnConfig {
    g: f64,
    alpha_interval: u64,
    decrease_interval: u64,
    rp_timer: u64,
    /// `u64::MAX`: there is none.
    byte_counter: u64,
    fast_recovery: u32,
    ai: u64,
    hai: u64,
    min_rate: u64,
    line_rate: u64,
    clamp_target: bool,
}

/// 53 days: such a timer fires in no run, and the sum of two such times does not overflow.
const NEVER: u64 = 1 << 62;

/// Delay of the first cut after its interval, so that `alpha` is updated first.
const AFTER_ALPHA: u64 = 1000;

/// DCQCN of one queue pair. Rates are whole bits per second, truncated after every step.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcqcn {
    rate: u64,
    target: u64,
    alpha: f64,
    /// Next expiry of each timer; `u64::MAX`: stopped.
    next_alpha: u64,
    next_decrease: u64,
    next_increase: u64,
    /// Steps of the timer, and of the byte counter, since the last cut.
    stage: u32,
    byte_stage: u32,
    /// Bytes sent since the last cut or the byte counter's last step.
    bytes: u64,
    /// A notification has arrived since the last update of `alpha` or the last decrease, respectively.
    notified_alpha: bool,
    notified_decrease: bool,
}

impl Dcqcn {
    /// Creates a queue pair that starts at line rate.
    pub fn new(line_rate: Rate) -> Self {
        Dcqcn {
            rate: line_rate.0,
            target: line_rate.0,
            alpha: 1.0,
            next_alpha: u64::MAX,
            next_decrease: u64::MAX,
            next_increase: u64::MAX,
            stage: 0,
            byte_stage: 0,
            bytes: 0,
            notified_alpha: false,
            notified_decrease: false,
        }
    }

    /// Returns the rate at `now`.
    #[inline]
    pub fn rate(&mut self, config: &DcqcnConfig, now: Time) -> Rate {
        self.catch_up(config, now);
        Rate(self.rate)
    }

    #[inline]
    fn catch_up(&mut self, config: &DcqcnConfig, now: Time) {
        while self.next_alpha.min(self.next_decrease).min(self.next_increase) <= now.ps() {
            self.step(config);
        }
    }

    fn step(&mut self, config: &DcqcnConfig) {
        let time = self.next_alpha.min(self.next_decrease).min(self.next_increase);
        if self.next_alpha == time {
            let share = if self.notified_alpha { config.g } else { 0.0 };
            self.alpha = (1.0 - config.g) * self.alpha + share;
            self.notified_alpha = false;
            self.next_alpha += config.alpha_interval;
        } else if self.next_decrease == time {
            self.next_decrease += config.decrease_interval;
            if self.notified_decrease {
                self.decrease(config, time);
            }
        } else {
            self.next_increase += config.rp_timer;
            self.increase(config);
            self.stage += 1;
        }
    }

    fn decrease(&mut self, config: &DcqcnConfig, time: u64) {
        if self.stage != 0 || self.byte_stage != 0 || config.clamp_target {
            self.target = self.rate;
        }
        self.rate = ((self.rate as f64 * (1.0 - self.alpha / 2.0)) as u64).max(config.min_rate);
        (self.stage, self.byte_stage, self.bytes) = (0, 0, 0);
        self.notified_decrease = false;
        self.next_increase = time + config.rp_timer;
    }

    fn increase(&mut self, config: &DcqcnConfig) {
        let (least, most) = match config.byte_counter {
            u64::MAX => (self.stage, self.stage),
            _ => (self.stage.min(self.byte_stage), self.stage.max(self.byte_stage)),
        };
        let more = if most < config.fast_recovery {
            0
        } else if least > config.fast_recovery {
            config.hai
        } else {
            config.ai
        };
        self.target = (self.target + more).min(config.line_rate.max(self.target));
        self.rate = self.rate / 2 + self.target / 2;
    }

    /// Counts `bytes` sent at `now`; each time the counter is full the rate rises. It runs from the first cut on.
    fn count(&mut self, config: &DcqcnConfig, now: Time, bytes: u64) {
        self.catch_up(config, now);
        if self.next_increase == u64::MAX {
            return;
        }
        self.bytes += bytes;
        while self.bytes >= config.byte_counter {
            self.bytes -= config.byte_counter;
            self.increase(config);
            self.byte_stage += 1;
        }
    }
}

impl PairControl for Dcqcn {
    type Parameters = DcqcnParameters;
    type Config = DcqcnConfig;

    fn config(parameters: &DcqcnParameters, line_rate: Rate) -> DcqcnConfig {
        let or = |rate: Auto<Rate>, share: u64| rate.value().map_or(line_rate.0 / share, |rate| rate.0);
        DcqcnConfig {
            g: parameters.g,
            alpha_interval: parameters.alpha_interval.ps().min(NEVER),
            decrease_interval: parameters.decrease_interval.ps().min(NEVER),
            rp_timer: parameters.rp_timer.ps().min(NEVER),
            byte_counter: parameters.byte_counter.value().map_or(u64::MAX, |bytes| bytes.0.max(1)),
            fast_recovery: parameters.fast_recovery,
            ai: or(parameters.rate_ai, 2500),
            hai: or(parameters.rate_hai, 1000),
            min_rate: parameters.min_rate.0.min(line_rate.0),
            line_rate: line_rate.0,
            clamp_target: parameters.clamp_target,
        }
    }

    fn new(_: &DcqcnConfig, start: &Start) -> Self {
        Dcqcn::new(start.line_rate)
    }

    #[inline]
    fn rate(&mut self, config: &DcqcnConfig, now: Time, _: Rate) -> Option<Rate> {
        Some(Dcqcn::rate(self, config, now))
    }

    fn counts_bytes(config: &DcqcnConfig) -> bool {
        config.byte_counter != u64::MAX
    }

    fn on_bytes(&mut self, config: &DcqcnConfig, now: Time, bytes: u64) {
        self.count(config, now, bytes);
    }

    /// The target is the rate before the cuts that have not been recovered from.
    fn restore(&mut self, config: &DcqcnConfig, now: Time) {
        self.catch_up(config, now);
        self.rate = self.rate.max(self.target);
    }

    fn on_notification(&mut self, config: &DcqcnConfig, now: Time) {
        self.catch_up(config, now);
        self.notified_decrease = true;
        if self.next_alpha == u64::MAX {
            self.alpha = 1.0;
            self.notified_alpha = false;
            self.next_alpha = now.ps() + config.alpha_interval;
            self.next_decrease = now.ps() + config.decrease_interval + AFTER_ALPHA;
            self.target = self.rate;
        } else {
            self.notified_alpha = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINE: Rate = Rate(100_000_000_000);

    fn config() -> DcqcnConfig {
        Dcqcn::config(&DcqcnParameters::default(), LINE)
    }
    fn us(time: f64) -> Time {
        Time::from_ps((time * 1e6) as u64)
    }

    /// The longest representable interval must not overflow: such a timer never fires.
    #[test]
    fn timers_of_any_length() {
        for set in [
            (|p| p.alpha_interval = Time::MAX) as fn(&mut DcqcnParameters),
            |p| p.decrease_interval = Time::MAX,
            |p| p.rp_timer = Time::MAX,
        ] {
            let mut parameters = DcqcnParameters::default();
            set(&mut parameters);
            assert_eq!(parameters.check(), Ok(()));
            let (config, mut cc) = (Dcqcn::config(&parameters, LINE), Dcqcn::new(LINE));
            for at in 1..100 {
                cc.on_notification(&config, us(f64::from(at) * 100.0));
            }
            let rate = cc.rate(&config, us(1e6));
            assert!(rate <= LINE, "{rate}");
        }
        let never = |set: fn(&mut DcqcnParameters)| {
            let mut parameters = DcqcnParameters::default();
            set(&mut parameters);
            let (config, mut cc) = (Dcqcn::config(&parameters, LINE), Dcqcn::new(LINE));
            cc.on_notification(&config, us(10.0));
            cc.rate(&config, us(1e6))
        };
        assert_eq!(never(|p| p.decrease_interval = Time::MAX), LINE);
        assert!(never(|p| p.rp_timer = Time::MAX).0 < LINE.0 * 6 / 10);
    }

    #[test]
    fn a_worked_trace() {
        let (config, mut cc) = (config(), Dcqcn::new(LINE));
        cc.on_notification(&config, us(10.0));
        // alpha = 1, then four updates without a notification: (255/256)^4 = 0.984466...; the cut at 14.001 us.
        assert_eq!(cc.rate(&config, us(14.0)), LINE);
        let alpha = (255.0f64 / 256.0) * (255.0 / 256.0) * (255.0 / 256.0) * (255.0 / 256.0);
        let cut = (1e11 * (1.0 - alpha / 2.0)) as u64;
        assert_eq!(cc.rate(&config, us(14.001)).0, cut);
        // No notification, no further cut; 300 us after the cut half of the difference to the target (line rate).
        assert_eq!(cc.rate(&config, us(314.0)).0, cut);
        let recovered = cut / 2 + 50_000_000_000;
        assert_eq!(cc.rate(&config, us(314.001)).0, recovered);
        // The next step raises the target by 40 Mb/s, capped at line rate: again half of what is missing.
        assert_eq!(cc.rate(&config, us(614.001)).0, recovered / 2 + 50_000_000_000);
        // A notification now: the first cut after an increase takes the current rate as target.
        let before = cc.rate(&config, us(700.0)).0;
        cc.on_notification(&config, us(700.0));
        let after = cc.rate(&config, us(704.001)).0;
        assert!(after < before);
        assert_eq!(cc.target, before);
    }

    /// Cut once at 14.001 us, then 1000 B packets: the counter of 4000 B is full with every fourth one.
    #[test]
    fn byte_counter_raises_the_rate() {
        let parameters = DcqcnParameters { byte_counter: Never::Value(Bytes(4000)), ..DcqcnParameters::default() };
        let (config, mut cc) = (Dcqcn::config(&parameters, LINE), Dcqcn::new(LINE));
        cc.on_bytes(&config, us(1.0), 1_000_000);
        cc.on_notification(&config, us(10.0));
        let cut = cc.rate(&config, us(14.001)).0;
        let send = |cc: &mut Dcqcn, packets: u64| (0..packets).for_each(|_| cc.on_bytes(&config, us(15.0), 1000));
        send(&mut cc, 3);
        assert_eq!(cc.rate(&config, us(15.0)).0, cut, "what was sent before the cut does not count");
        // First step: fast recovery, half of the way to the target, which is line rate.
        send(&mut cc, 1);
        let first = cut / 2 + LINE.0 / 2;
        assert_eq!(cc.rate(&config, us(15.0)).0, first);
        // Second step: the counter is past fast recovery (1 step) and the timer is not: additive, and the target is at line rate.
        send(&mut cc, 4);
        let second = first / 2 + LINE.0 / 2;
        assert_eq!(cc.rate(&config, us(15.0)).0, second);
        // A notification: the target becomes the rate, both counters restart.
        cc.on_notification(&config, us(15.0));
        let again = cc.rate(&config, us(18.001)).0;
        assert!(again < second);
        assert_eq!((cc.target, cc.bytes, cc.byte_stage), (second, 0, 0));
        // Additive from the second step on (40 Mb/s), hyper (100 Mb/s) once both have made two.
        send(&mut cc, 4);
        assert_eq!(cc.target, second);
        send(&mut cc, 4);
        assert_eq!(cc.target, second + 40_000_000);
        cc.rate(&config, us(318.001));
        cc.rate(&config, us(618.001));
        assert_eq!((cc.stage, cc.byte_stage, cc.target), (2, 2, second + 3 * 40_000_000), "timer at 0 and 1: additive");
        cc.rate(&config, us(918.001));
        assert_eq!(cc.target, second + 3 * 40_000_000 + 100_000_000);
    }

    #[test]
    fn restored_rate_is_that_before_the_cuts() {
        let (config, mut cc) = (config(), Dcqcn::new(LINE));
        for step in 0..10 {
            cc.on_notification(&config, us(10.0 + 4.0 * f64::from(step)));
        }
        assert!(cc.rate(&config, us(60.0)).0 < LINE.0 / 10, "nine cuts by almost a half");
        cc.restore(&config, us(60.0));
        assert_eq!(cc.rate(&config, us(60.0)), LINE, "none of the cuts was recovered from: the target is line rate");
    }

    #[test]
    fn rate_stays_above_its_minimum() {
        let (config, mut cc) = (config(), Dcqcn::new(LINE));
        for step in 0..1000 {
            cc.on_notification(&config, us(f64::from(step)));
        }
        assert_eq!(cc.rate(&config, us(1001.0)).0, 100_000_000);
    }

    #[test]
    fn alpha_settles_at_the_share_of_notified_intervals() {
        // Fixed point of the moving average: alpha = p when a share p of the intervals has a notification. With one in
        // four the average runs between p * (1-g)^3 / (1 - (1-g)^4) * ... ~ 0.25 +- 2 g.
        let (config, mut cc) = (config(), Dcqcn::new(LINE));
        for step in 0..4000 {
            cc.on_notification(&config, us(f64::from(step) * 4.0 + 0.5));
        }
        assert!((cc.alpha - 0.25).abs() < 2.0 / 256.0, "{}", cc.alpha);
    }

    #[test]
    fn a_steady_flow_settles_where_cuts_and_recoveries_balance() {
        // A notification every 652 us: two increases, 300 and 600 us after a cut. In the fixed point the rate R before
        // a cut recurs: cut to c R with target R, c = 1 - alpha/2; then R1 = (c R + R) / 2, and with the target raised
        // by ai, R2 = (R1 + R + ai) / 2 = R (3 + c) / 4 + ai / 2. R = R2 gives R = 2 ai / (1 - c).
        let (config, mut cc) = (config(), Dcqcn::new(LINE));
        let mut before = 0;
        // The first notification sets the grid of 4 us; the others come 3 us before it.
        cc.on_notification(&config, us(0.3));
        for step in 1..20_000u32 {
            let now = us(f64::from(step) * 652.0 + 1.3);
            before = cc.rate(&config, now).0;
            cc.on_notification(&config, now);
        }
        // alpha at a cut: one of 652 updates since the last adds g, and two more follow before the cut.
        let keep = |n: i32| (255.0f64 / 256.0).powi(n);
        let alpha = (1.0 / 256.0) * keep(2) / (1.0 - keep(652));
        let expected = 2.0 * 40e6 / (alpha / 2.0);
        let error = (before as f64 - expected).abs() / expected;
        assert!(error < 0.02, "{before} against {expected}");
    }

    proptest! {
        /// Rare evaluation gives the same bits as evaluation every 100 ns.
        #[test]
        fn lazy_timers_are_exact(gaps in prop::collection::vec(1u64..400_000, 1..60)) {
            let (config, mut lazy, mut eager) = (config(), Dcqcn::new(LINE), Dcqcn::new(LINE));
            let mut now = 0;
            for gap in gaps {
                let next = now + gap * 1000;
                while now < next {
                    now = (now + 100_000).min(next);
                    eager.rate(&config, Time::from_ps(now));
                }
                lazy.on_notification(&config, Time::from_ps(now));
                eager.on_notification(&config, Time::from_ps(now));
                prop_assert_eq!(&lazy, &eager);
            }
        }
    }
}
