//! Waits of a packet in queues, and of queues in pauses, where delays are attributed.

use crate::ids::PortId;

/// Waits of a packet since it left its sender. In the reply of a complete flow: when the flow was complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Time in queues, pauses included, in picoseconds.
    waited: u64,
    /// Part of it while its class was paused; in a queue: less the pauses of the queue before it joined, wrapping.
    paused: u64,
    /// Longest wait in one queue, in units of 4096 ps, in the upper half. Lower half: order of the arrivals over that
    /// queue's link, or [`COMPLETE`]. Of equal waits, that with the largest order.
    longest: u64,
}

// With a place of 32 bytes, a line of the processor's cache has those of two packets.
const _: () = assert!(size_of::<Waits>() == 24);

/// Bits of the time that [`Waits::longest`] omits.
const FINE: u32 = 12;

/// Marker of a reply of a complete flow; no order of arrivals has this value.
const COMPLETE: u32 = u32::MAX;

impl Waits {
    /// Returns the waits of a reply of a flow that was complete at `time`.
    pub(crate) fn complete(time: u64) -> Self {
        Waits { waited: time, longest: u64::from(COMPLETE), ..Waits::default() }
    }

    pub(crate) fn completed_at(&self) -> Option<u64> {
        (self.order() == COMPLETE).then_some(self.waited)
    }

    /// Notes that it has left a queue after `hop`; `order` is that of the arrivals over the queue's link.
    #[inline(always)]
    pub(crate) fn leave(&mut self, hop: u64, order: u32) {
        self.waited += hop;
        // 32 bits reach to 17 s.
        self.longest = self.longest.max(hop >> FINE << 32 | u64::from(order));
    }

    /// Notes that it joins a queue that has been paused for `paused`.
    #[inline]
    pub(crate) fn join(&mut self, paused: u64) {
        self.paused = self.paused.wrapping_sub(paused);
    }

    /// Notes that it has left a queue that has been paused for `paused`.
    #[inline]
    pub(crate) fn resume(&mut self, paused: u64) {
        self.paused = self.paused.wrapping_add(paused);
    }

    pub(crate) fn paused(&self) -> u64 {
        self.paused
    }

    /// Time in queues without the pauses.
    pub(crate) fn queued(&self) -> u64 {
        self.waited - self.paused
    }

    /// Order of the arrivals over the link whose queue held it longest.
    pub(crate) fn order(&self) -> u32 {
        self.longest as u32
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

    /// Returns `true` if there has been a pause.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Joins at 10, paused from 15 to 18, leaves at 30: 20 waited, 3 of them paused; then 5 at another link.
    #[test]
    fn waits_are_split_by_hand() {
        let (mut waits, mut times, port) = (Waits::default(), PausedTimes::new(2, 1), PortId(1));
        waits.join(times.before(port, 0, 10));
        times.pause(port, 0, 15);
        times.pause(port, 0, 16);
        assert_eq!(times.before(port, 0, 17), 2);
        times.resume(port, 0, 18);
        waits.leave(20, 7);
        waits.resume(times.before(port, 0, 30));
        waits.leave(5 << 12, 9);
        assert_eq!((waits.queued(), waits.paused(), waits.order()), (17 + (5 << 12), 3, 9));
        assert_eq!((waits.completed_at(), Waits::complete(40).completed_at()), (None, Some(40)));
    }
}
