//! Pacer of a receiving NIC that grants credit to its senders (RCCC of Ultra Ethernet, after EQDS).

use anabranch_units::{Rate, Time};
use std::collections::VecDeque;

/// Packets per grant.
const PACKETS: u64 = 4;
/// Share of the NIC's rate that is granted, in percent.
const PERCENT: u64 = 99;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    None,
    Active,
    Idle,
}

/// A sender as its receiver's pacer has it; all in bytes on the wire since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreditSource {
    granted: u64,
    target: u64,
    /// Bytes beyond its target that it is granted while no sender requests any.
    ahead: u64,
    turn: Turn,
}

impl CreditSource {
    /// Creates a sender with a window of `ahead` bytes.
    pub fn new(ahead: u64) -> Self {
        CreditSource { ahead, ..CreditSource::default() }
    }

    /// Returns the bytes granted since its start.
    pub fn granted(&self) -> u64 {
        self.granted
    }
}

/// Pacer of a NIC: senders in turn, one grant at a time, at 99 % of its rate.
#[derive(Clone, Debug)]
pub struct CreditPacer {
    rate: Rate,
    quantum: u64,
    free_at: Time,
    active: VecDeque<u32>,
    idle: VecDeque<u32>,
}

impl CreditPacer {
    /// Creates the pacer of a NIC of `rate` for full packets of `packet` bytes.
    pub fn new(rate: Rate, packet: u64) -> Self {
        let (active, idle) = (VecDeque::new(), VecDeque::new());
        CreditPacer { rate, quantum: PACKETS * packet, free_at: Time::ZERO, active, idle }
    }

    /// Notes that the sender `number` requests credit up to `target`.
    pub fn request(&mut self, number: u32, source: &mut CreditSource, target: u64) {
        source.target = source.target.max(target);
        let turn = if source.target > source.granted { Turn::Active } else { Turn::Idle };
        if source.turn == Turn::Active || source.turn == turn {
            return;
        }
        if source.turn == Turn::Idle {
            self.idle.retain(|other| *other != number);
        }
        source.turn = turn;
        let list = if turn == Turn::Active { &mut self.active } else { &mut self.idle };
        list.push_back(number);
    }

    /// Notes that a packet of `bytes` of the sender was trimmed: it will be sent once more.
    pub fn on_trimmed(&mut self, number: u32, source: &mut CreditSource, bytes: u64) {
        self.request(number, source, source.target.max(source.granted) + bytes);
    }

    /// Removes a sender.
    pub fn remove(&mut self, number: u32) {
        self.active.retain(|other| *other != number);
        self.idle.retain(|other| *other != number);
    }

    /// Returns the time of the next grant; `None`: no sender may have one.
    pub fn due(&self, now: Time) -> Option<Time> {
        (!self.active.is_empty() || !self.idle.is_empty()).then(|| self.free_at.max(now))
    }

    /// Returns the sender that has a grant now, whose state `of` returns, and all bytes granted to it so far; of the ports of
    /// the NIC, the first of `up` are up, the second is their number.
    pub fn grant<'a>(
        &mut self,
        now: Time,
        up: (u32, u32),
        of: impl FnOnce(u32) -> &'a mut CreditSource,
    ) -> Option<(u32, u64)> {
        let is_active = !self.active.is_empty();
        let number = self.active.pop_front().or_else(|| self.idle.pop_front())?;
        let source = of(number);
        let limit = source.target + if is_active { 0 } else { source.ahead };
        let bytes = limit.saturating_sub(source.granted).min(self.quantum);
        source.granted += bytes;
        source.turn = Turn::None;
        if source.granted < source.target {
            source.turn = Turn::Active;
            self.active.push_back(number);
        } else if source.granted < source.target + source.ahead {
            source.turn = Turn::Idle;
            self.idle.push_back(number);
        }
        let wire = self.rate.wire_time(bytes * 100 * u64::from(up.1));
        self.free_at = now.max(self.free_at) + wire / (PERCENT * u64::from(up.0.max(1)));
        Some((number, source.granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UP: (u32, u32) = (1, 1);

    /// Senders with endless demand at 400 Gb/s, packets of 4160 B: 0.99 of the rate in all, each within a grant of its part.
    #[test]
    fn grants_are_99_percent_in_equal_parts() {
        for senders in [1u64, 2, 7, 64] {
            let mut pacer = CreditPacer::new(Rate::gbps(400), 4160);
            let mut sources = vec![CreditSource::new(1 << 20); senders as usize];
            for (number, source) in sources.iter_mut().enumerate() {
                pacer.request(number as u32, source, 1 << 40);
            }
            let end = Time::from_us(1000);
            let mut now = Time::ZERO;
            while now < end {
                pacer.grant(now, UP, |number| &mut sources[number as usize]).expect("demand");
                now = pacer.due(now).expect("demand");
            }
            // 1 ms at 400 Gb/s are 50,000,000 B.
            let sum: u64 = sources.iter().map(CreditSource::granted).sum();
            assert!((49_500_000..49_500_000 + 4 * 4160).contains(&sum), "{sum}");
            for source in &sources {
                assert!(source.granted().abs_diff(sum / senders) <= 4 * 4160, "{} of {sum}", source.granted());
            }
        }
    }

    #[test]
    fn grants_end_at_the_target_and_a_window_beyond_it() {
        let mut pacer = CreditPacer::new(Rate::gbps(400), 1000);
        let mut sources = [CreditSource::new(6000), CreditSource::new(6000)];
        let next = |pacer: &mut CreditPacer, sources: &mut [CreditSource; 2]| {
            pacer.grant(Time::ZERO, UP, |number| &mut sources[number as usize])
        };
        pacer.request(0, &mut sources[0], 5000);
        pacer.request(1, &mut sources[1], 9000);
        // In turn, 4 packets at a time, never beyond a target while another waits.
        let order: Vec<_> = (0..5).map(|_| next(&mut pacer, &mut sources).unwrap()).collect();
        assert_eq!(order, [(0, 4000), (1, 4000), (0, 5000), (1, 8000), (1, 9000)]);
        // Without demand: up to a window ahead, which demand precedes.
        assert_eq!(next(&mut pacer, &mut sources), Some((0, 9000)));
        pacer.on_trimmed(1, &mut sources[1], 1000);
        assert_eq!([(); 3].map(|()| next(&mut pacer, &mut sources).unwrap()), [(1, 10_000), (0, 11_000), (1, 14_000)]);
        pacer.request(0, &mut sources[0], 11_500);
        pacer.remove(1);
        assert_eq!(next(&mut pacer, &mut sources), Some((0, 11_500)));
        assert!(pacer.due(Time::ZERO).is_some());
        pacer.remove(0);
        assert_eq!(pacer.due(Time::ZERO), None);
    }
}
