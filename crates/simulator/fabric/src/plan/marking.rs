//! Explicit congestion notification with RED marking.

/// Marking thresholds in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Marking {
    pub(crate) kmin: u32,
    pub(crate) kmax: u32,
    /// Probability just below `kmax`; it grows linearly from zero at `kmin`.
    pub(crate) pmax: f64,
    /// Bytes of a queue that do not count.
    pub(crate) beyond: u32,
}

impl Marking {
    /// Returns `true` if a packet is marked at `bytes` in its queue; draws a number only between the thresholds.
    pub(crate) fn marks(&self, bytes: u32, stream: impl FnOnce() -> f64) -> bool {
        let bytes = bytes.saturating_sub(self.beyond);
        if bytes <= self.kmin || bytes > self.kmax {
            return bytes > self.kmax;
        }
        let probability = self.pmax * f64::from(bytes - self.kmin) / f64::from(self.kmax - self.kmin);
        stream() < probability
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn red_by_hand() {
        let red = Marking { kmin: 100, kmax: 300, pmax: 0.5, beyond: 0 };
        let never = || unreachable!("nothing to draw");
        assert!(!red.marks(100, never) && red.marks(301, never));
        // Half way: 0.25.
        assert!(red.marks(200, || 0.249) && !red.marks(200, || 0.25));
        assert!(red.marks(300, || 0.499) && !red.marks(300, || 0.5));
        // 200 of the 400 B do not count.
        let beyond = Marking { beyond: 200, ..red };
        assert!(beyond.marks(400, || 0.249) && !beyond.marks(300, never));
    }
}
