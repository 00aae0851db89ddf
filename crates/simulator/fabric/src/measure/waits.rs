//! Waits of a packet in queues, and pauses of queues, where delays are attributed.

use crate::ids::PortId;

/// Waits of a packet since it left its sender, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Time in queues, pauses included.
    pub(crate) waited: u64,
    /// Part of it while its class was paused.
    pub(crate) paused: u64,
    /// Order of the arrivals over the link whose queue held it longest; of equal waits, the first.
    pub(crate) order: u32,
}

impl Waits {
    /// Time in queues without the pauses.
    pub(crate) fn queued(&self) -> u64 {
        self.waited - self.paused
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Paused {
    /// Start of the present pause; [`u64::MAX`]: none.
    since: u64,
    /// Duration of all earlier ones.
    total: u64,
}

/// Durations of the pauses of every port and class.
#[derive(Debug)]
pub(crate) struct PausedTimes {
    classes: usize,
    paused: Vec<Paused>,
    any: bool,
}

impl PausedTimes {
    /// Creates the durations of this many ports; zero: nothing is recorded.
    pub(crate) fn new(ports: usize, classes: usize) -> Self {
        PausedTimes { classes, paused: vec![Paused { since: u64::MAX, total: 0 }; ports * classes], any: false }
    }

    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    pub(crate) fn pause(&mut self, port: PortId, class: u8, now: u64) {
        if let Some(paused) = self.paused.get_mut(port.at() * self.classes + usize::from(class)) {
            paused.since = paused.since.min(now);
            self.any = true;
        }
    }

    pub(crate) fn resume(&mut self, port: PortId, class: u8, now: u64) {
        if let Some(paused) = self.paused.get_mut(port.at() * self.classes + usize::from(class)) {
            paused.total += now.saturating_sub(paused.since);
            paused.since = u64::MAX;
        }
    }

    /// Duration of all pauses up to `now`, no earlier than the last change.
    #[inline]
    pub(crate) fn before(&self, port: PortId, class: u8, now: u64) -> u64 {
        if !self.any {
            return 0;
        }
        let paused = self.paused.get(port.at() * self.classes + usize::from(class));
        paused.map_or(0, |paused| paused.total + now.saturating_sub(paused.since))
    }
}
