use anabranch_units::{Rate, Serialiser, Time};

/// A line of a fixed rate, which makes up for late polls within a bounded time.
#[derive(Clone, Debug)]
pub(crate) struct Pacer {
    serialiser: Serialiser,
    overhead: u64,
    catch_up: Time,
    free_at: Time,
}

impl Pacer {
    pub(crate) fn new(rate: Rate, overhead: u64, catch_up: Time) -> Self {
        Pacer { serialiser: Serialiser::new(rate), overhead, catch_up, free_at: Time::ZERO }
    }

    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns the earliest time of the next datagram.
    pub(crate) fn occupy(&mut self, now: Time, bytes: usize) -> Time {
        let start = self.free_at.max(now.saturating_sub(self.catch_up));
        self.free_at = start + self.serialiser.serialise(bytes as u64 + self.overhead);
        self.free_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pacer_catches_up_within_bounds() {
        // 1000 B at 8 Gbit/s take 1 us.
        let mut pacer = Pacer::new(Rate::gbps(8), 0, Time::from_us(3));
        assert_eq!(pacer.occupy(Time::from_us(10), 1000), Time::from_us(8), "3 us late at most: from 7 us on");
        // Three packets may leave at once, then one per microsecond.
        let mut sent = 1;
        while pacer.free_at() <= Time::from_us(10) {
            pacer.occupy(Time::from_us(10), 1000);
            sent += 1;
        }
        assert_eq!((sent, pacer.free_at()), (4, Time::from_us(11)));
        let mut strict = Pacer::new(Rate::gbps(8), 0, Time::ZERO);
        assert_eq!(strict.occupy(Time::from_us(10), 1000), Time::from_us(11));
    }
}
