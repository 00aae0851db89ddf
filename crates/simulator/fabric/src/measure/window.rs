//! What the links send between two moments that are known beforehand: two looks at each port, no work in between.

use anabranch_units::Time;

/// The looks of a partition. A packet counts where its transmission starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Begin and end, where a window was asked for.
    at: Option<(u64, u64)>,
    /// Bytes sent so far, per port: at the begin and, where the run came so far, at the end.
    looks: Vec<Vec<u64>>,
}

impl Window {
    /// Of the window asked for, if any.
    pub(crate) fn new(window: Option<(Time, Time)>) -> Self {
        Window { at: window.map(|(from, to)| (from.ps(), to.ps())), looks: Vec::new() }
    }

    /// When the next look is due; `u64::MAX`: none is.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        match (self.at, self.looks.len()) {
            (Some((from, _)), 0) => from,
            (Some((_, to)), 1) => to,
            _ => u64::MAX,
        }
    }

    /// A look at what every port has sent before now.
    pub(crate) fn look(&mut self, sent_bytes: Vec<u64>) {
        self.looks.push(sent_bytes);
    }

    /// What a port sent in the window; `total` is what it sent in the whole run, which ends with the window where there was
    /// no second look. `None` where the run did not come to the window.
    pub(crate) fn sent_bytes(&self, port: usize, total: u64) -> Option<u64> {
        let before = self.looks.first()?[port];
        Some(self.looks.get(1).map_or(total, |look| look[port]) - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_looks_and_a_difference() {
        let mut window = Window::new(Some((Time::from_ps(10), Time::from_ps(30))));
        assert_eq!((window.next(), window.sent_bytes(0, 9)), (10, None));
        window.look(vec![5, 0]);
        // A time limit struck before the second look.
        assert_eq!((window.next(), window.sent_bytes(0, 9)), (30, Some(4)));
        window.look(vec![7, 3]);
        assert_eq!((window.next(), window.sent_bytes(0, 9), window.sent_bytes(1, 4)), (u64::MAX, Some(2), Some(3)));
        assert_eq!(Window::new(None).next(), u64::MAX);
    }
}
