//! RED: a probability that grows linearly between two thresholds of the queue.

use super::rule::{MarkedQueue, MarkingCapabilities, MarkingRule, PortSizes};
use anabranch_settings::{About, parameters};

pub(super) const ABOUT: About = About {
    name: "red",
    summary: "a probability by the queue: none up to ecn_kmin, ecn_pmax at ecn_kmax, 1 above",
    source: "Floyd and Jacobson 1993, by the queue of the moment as DCTCP and DCQCN configure it",
    description: "",
};

parameters! {
    /// RED. Its thresholds are keys of `[fabric]`: `ecn_kmin`, `ecn_kmax` and `ecn_pmax`.
    pub struct RedParameters {}
}

impl MarkingCapabilities for RedParameters {
    fn fabric_keys(&self) -> &'static [&'static str] {
        &["ecn_kmin", "ecn_kmax", "ecn_pmax"]
    }
}

/// Thresholds in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Red {
    /// Bytes up to which no packet is marked.
    pub kmin: u32,
    /// Bytes above which every packet is marked.
    pub kmax: u32,
    /// Probability just below `kmax`; it grows linearly from zero at `kmin`.
    pub pmax: f64,
}

impl MarkingRule for Red {
    type Parameters = RedParameters;
    type State = ();

    fn new(_: &RedParameters, port: &PortSizes) -> Self {
        Red { kmin: port.kmin, kmax: port.kmax, pmax: port.pmax }
    }
    fn floor(&self) -> u32 {
        self.kmin
    }
    fn ceiling(&self) -> Option<u32> {
        Some(self.kmax)
    }
    fn scaled(&self, scale: impl Fn(u32) -> u32) -> Self {
        Red { kmin: scale(self.kmin), kmax: scale(self.kmax), ..*self }
    }
    /// Draws a number only between the thresholds.
    #[inline(always)]
    fn marks(
        &self,
        _: &mut [()],
        _: impl FnOnce() -> (u8, usize),
        queue: &MarkedQueue,
        draw: impl FnOnce() -> f64,
    ) -> bool {
        let bytes = queue.bytes;
        if bytes <= self.kmin || bytes > self.kmax {
            return bytes > self.kmax;
        }
        let probability = self.pmax * f64::from(bytes - self.kmin) / f64::from(self.kmax - self.kmin);
        draw() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_by_hand() {
        let red = Red { kmin: 100, kmax: 300, pmax: 0.5 };
        let marks = |bytes, draw: f64| red.marks(&mut [], || (0, 0), &MarkedQueue { bytes, time: 0 }, || draw);
        let certain = |bytes| {
            let queue = MarkedQueue { bytes, time: 0 };
            red.marks(&mut [], || (0, 0), &queue, || unreachable!("nothing to draw"))
        };
        assert!(!certain(100) && certain(301));
        // Half way: 0.25.
        assert!(marks(200, 0.249) && !marks(200, 0.25));
        assert!(marks(300, 0.499) && !marks(300, 0.5));
    }
}
