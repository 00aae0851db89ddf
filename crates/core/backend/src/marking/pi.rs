//! PI: a probability that a proportional-integral controller moves until the queue is at a reference.
//!
//! p(k) = p(k-1) + alpha (q(k) - reference) + beta (q(k) - q(k-1)) for samples q of the queue, from 0 to 1: the difference
//! equation of Hollot et al. with a = alpha + beta and b = beta. Every packet is marked with it, linearly, as RFC 9332
//! does for scalable senders. A packet before or behind which no byte waits is not marked (ours).

use super::rule::{MarkedQueue, MarkingCapabilities, MarkingRule, PortSizes};
use anabranch_settings::{About, Auto, parameters};
use anabranch_units::{BytesOrBdp, Time};

pub(super) const ABOUT: About = About {
    name: "pi",
    summary: "a probability that a controller moves until the queue is at a reference",
    source: "Hollot et al., INFOCOM 2001; for data centres Zhu et al., CoNEXT 2016; gains of RFC 9332, appendix A",
    description: "A proportional-integral controller samples the queue of each data class of a port and moves its marking \
        probability by the distance to `reference` and by the growth since the last sample. In the steady state the queue is \
        at the reference for any number of flows, where the queue of RED grows with them.",
};

parameters! {
    /// A proportional-integral controller.
    pub struct PiParameters {
        /// Bytes of the queue in the steady state.
        reference: BytesOrBdp = BytesOrBdp::Bdp(200_000), source "ours: the default of ecn_kmin";
        /// Time between samples of the queue; auto: a third of the round trip of a BDP at the link's rate.
        interval: Auto<Time> = Auto::Auto, within Time::from_ns(1)..=Time::from_ms(1000), source "RFC 9332, appendix A: RTT_max / 3";
        /// Change of the probability per BDP of distance to the reference and per round trip.
        integral: f64 = 0.1, within 0.0..=1000.0, source "RFC 9332, appendix A: alpha = 0.1 Tupdate / RTT_max^2";
        /// Change of the probability per BDP by which the queue has grown.
        proportional: f64 = 0.3, within 0.0..=1000.0, source "RFC 9332, appendix A: beta = 0.3 / RTT_max";
    }
}

impl MarkingCapabilities for PiParameters {}

/// Constants of a port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pi {
    reference: u32,
    bdp: u32,
    /// Picoseconds.
    interval: u64,
    /// Per BDP and sample.
    alpha: f64,
    /// Per BDP.
    beta: f64,
}

/// State of the controller of a data class of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PiState {
    probability: f64,
    /// Bytes at the last sample.
    queue: u32,
    /// Time of the last sample in picoseconds.
    sampled_at: u64,
}

impl MarkingRule for Pi {
    type Parameters = PiParameters;
    type State = PiState;
    const IS_SAMPLED: bool = true;

    fn new(parameters: &PiParameters, port: &PortSizes) -> Self {
        let round_trip = port.rate.wire_time(port.bdp).ps().max(3);
        let interval = parameters.interval.value().map_or(round_trip / 3, |interval| interval.ps().max(1));
        Pi {
            reference: port.bytes(parameters.reference),
            bdp: port.bytes(BytesOrBdp::Bdp(1_000_000)).max(1),
            interval,
            alpha: parameters.integral * interval as f64 / round_trip as f64,
            beta: parameters.proportional,
        }
    }
    fn floor(&self) -> u32 {
        0
    }
    fn ceiling(&self) -> Option<u32> {
        None
    }
    fn scaled(&self, scale: impl Fn(u32) -> u32) -> Self {
        Pi { reference: scale(self.reference), bdp: scale(self.bdp).max(1), ..*self }
    }
    /// Applies all samples since the last change at once: after the first the queue does not grow, and the sum is linear.
    fn held(&self, state: &mut PiState, bytes: u32, time: u64) {
        let samples = time.saturating_sub(state.sampled_at) / self.interval;
        if samples == 0 {
            return;
        }
        let bdps = |from: u32| (f64::from(bytes) - f64::from(from)) / f64::from(self.bdp);
        let step = self.alpha * bdps(self.reference);
        let first = (state.probability + step + self.beta * bdps(state.queue)).clamp(0.0, 1.0);
        let probability = (first + (samples - 1) as f64 * step).clamp(0.0, 1.0);
        *state = PiState { probability, queue: bytes, sampled_at: state.sampled_at + samples * self.interval };
    }
    fn marks(
        &self,
        states: &mut [PiState],
        at: impl FnOnce() -> (u8, usize),
        queue: &MarkedQueue,
        draw: impl FnOnce() -> f64,
    ) -> bool {
        let state = &mut states[at().1];
        self.held(state, queue.bytes, queue.time);
        state.probability >= 1.0 || state.probability > 0.0 && draw() < state.probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_units::Rate;

    /// A BDP of 12,000 B at 8 Gb/s is a round trip of 12 us, and its third 4 us. alpha = 0.6 * 4 / 12 = 0.2 and beta = 0.5 per
    /// BDP; the reference is 3,000 B, a quarter.
    #[test]
    fn the_difference_equation_by_hand() {
        let parameters = PiParameters {
            reference: BytesOrBdp::Bdp(250_000),
            integral: 0.6,
            proportional: 0.5,
            ..PiParameters::default()
        };
        let sizes = PortSizes { bdp: 12_000, rate: Rate::gbps(8), kmin: 0, kmax: 0, pmax: 1.0 };
        let pi = Pi::new(&parameters, &sizes);
        let mut state = PiState::default();
        let mut after = |bytes, us: u64| {
            pi.held(&mut state, bytes, us * 1_000_000);
            state.probability
        };
        let is = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}, expected {expected}");
        // No sample before 4 us.
        is(after(9000, 3), 0.0);
        // At 4 us: 0.2 * (9 - 3) / 12 + 0.5 * 9 / 12 = 0.1 + 0.375.
        is(after(9000, 5), 0.475);
        // At 8 us: 0.475 + 0.2 * (6 - 3) / 12 + 0.5 * (6 - 9) / 12 = 0.475 + 0.05 - 0.125.
        is(after(6000, 9), 0.4);
        // At 12, 16 and 20 us with an empty queue: 0.4 - 0.05 - 0.25, then -0.05 twice.
        is(after(0, 21), 0.0);
        // At 24, 28 and 32 us: 0.2 * 24 / 12 + 0.5 * 27 / 12 is beyond 1 and cut.
        is(after(27_000, 33), 1.0);
        // At 36 us: 1 + 0.2 * (3 - 3) / 12 + 0.5 * (3 - 27) / 12 = 0; at the reference it stays.
        is(after(3000, 39), 0.0);
        is(after(6000, 41), 0.05 + 0.125);
        is(after(3000, 4001), 0.05);
        let queue = MarkedQueue { bytes: 1, time: 0 };
        assert!([0.0499, 0.0501].map(|draw| pi.marks(&mut [state], || (0, 0), &queue, || draw)) == [true, false]);
    }
}
