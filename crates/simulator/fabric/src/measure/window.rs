//! Bytes that the links send between two times known in advance: two samples per port.

use anabranch_units::Time;

/// A packet in transmission counts with the bytes that are on the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Begin and end in picoseconds.
    at: Option<(u64, u64)>,
    /// Bytes sent so far, per port: at the begin and, where the run reaches it, at the end.
    samples: Vec<Vec<u64>>,
}

impl Window {
    pub(crate) fn new(window: Option<(Time, Time)>) -> Self {
        Window { at: window.map(|(from, to)| (from.ps(), to.ps())), samples: Vec::new() }
    }

    /// Returns the time of the next sample; `u64::MAX`: none.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        match (self.at, self.samples.len()) {
            (Some((from, _)), 0) => from,
            (Some((_, to)), 1) => to,
            _ => u64::MAX,
        }
    }

    pub(crate) fn sample(&mut self, sent_bytes: Vec<u64>) {
        self.samples.push(sent_bytes);
    }

    /// Returns the bytes that a port sent in the window; `None` if the run did not reach it. `total` of the whole run
    /// replaces a missing second sample.
    pub(crate) fn sent_bytes(&self, port: usize, total: u64) -> Option<u64> {
        let before = self.samples.first()?[port];
        Some(self.samples.get(1).map_or(total, |sample| sample[port]) - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_samples_give_a_difference() {
        let mut window = Window::new(Some((Time::from_ps(10), Time::from_ps(30))));
        assert_eq!((window.next(), window.sent_bytes(0, 9)), (10, None));
        window.sample(vec![5, 0]);
        // A time limit ended the run before the second sample.
        assert_eq!((window.next(), window.sent_bytes(0, 9)), (30, Some(4)));
        window.sample(vec![7, 3]);
        assert_eq!((window.next(), window.sent_bytes(0, 9), window.sent_bytes(1, 4)), (u64::MAX, Some(2), Some(3)));
        assert_eq!(Window::new(None).next(), u64::MAX);
    }
}
