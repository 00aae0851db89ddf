//! Counters for observers. No decision depends on them.

use anabranch_lb::StateColumn;
use anabranch_units::Time;
use std::collections::VecDeque;

/// Statistics of round trips cover the last whole window and the current one.
const WINDOW: Time = Time::from_us(100_000);
/// Eight steps per power of two, in units of 64 ns up to 17 s: bounds are 12.5 % apart at most.
const STEPS: usize = 8;
const BUCKETS: usize = STEPS + 25 * STEPS;

/// Columns of a scheme's state with their values.
pub type SchemeState = Vec<(&'static StateColumn, Option<f64>)>;

/// Counters of a path of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Data packets sent over it, retransmissions included.
    pub packets: u64,
    /// Their bytes, headers of this crate included.
    pub bytes: u64,
    /// Retransmissions among these packets.
    pub retransmitted: u64,
    pub acks: u64,
    /// ACKs that report a marked packet.
    pub marks: u64,
    /// Packets over it that were declared lost, or arrived trimmed.
    pub losses: u64,
    /// Number of times that the stream's packets switched to it from another path.
    pub moves: u64,
    /// Shortest round trip; zero: none yet.
    pub min_rtt: Time,
    /// Mean round trip of the last 100 to 200 ms with any samples.
    pub mean_rtt: Time,
    /// 99th percentile of these round trips, as the upper bound of its bucket.
    pub p99: Time,
    /// Time of the last packet sent over it; zero: never.
    pub used_at: Time,
    /// No reply has come over it: it carries nothing but probes.
    pub is_silent: bool,
}

#[derive(Clone, Debug)]
struct Window {
    sum: u128,
    count: u64,
    longest: Time,
    buckets: [u16; BUCKETS],
}

impl Default for Window {
    fn default() -> Self {
        Window { sum: 0, count: 0, longest: Time::ZERO, buckets: [0; BUCKETS] }
    }
}

fn bucket(rtt: Time) -> usize {
    let value = (rtt.ps() / 64_000) as usize;
    if value < STEPS {
        return value;
    }
    let power = value.ilog2() as usize;
    ((power - 2) * STEPS + (value >> (power - 3)) % STEPS).min(BUCKETS - 1)
}

fn upper_bound(bucket: usize) -> Time {
    let steps = if bucket < STEPS {
        bucket as u64 + 1
    } else {
        (STEPS as u64 + (bucket % STEPS) as u64 + 1) << (bucket / STEPS - 1)
    };
    Time::from_ps(steps * 64_000)
}

#[derive(Clone, Debug, Default)]
struct Path {
    counts: PathCounts,
    began: Time,
    windows: [Window; 2],
}

impl Path {
    fn note_round_trip(&mut self, now: Time, rtt: Time) {
        if now.saturating_sub(self.began) >= WINDOW {
            self.began = now;
            self.windows.swap(0, 1);
            self.windows[0] = Window::default();
        }
        let window = &mut self.windows[0];
        window.sum += u128::from(rtt.ps());
        window.count += 1;
        window.longest = window.longest.max(rtt);
        let count = &mut window.buckets[bucket(rtt)];
        *count = count.saturating_add(1);
        let min_rtt = &mut self.counts.min_rtt;
        *min_rtt = if *min_rtt == Time::ZERO { rtt } else { rtt.min(*min_rtt) };
    }

    fn counts(&self) -> PathCounts {
        let [now, before] = &self.windows;
        let count = now.count + before.count;
        if count == 0 {
            return self.counts;
        }
        let mean_rtt = Time::from_ps(((now.sum + before.sum) / u128::from(count)) as u64);
        let of = |at: usize| u64::from(now.buckets[at]) + u64::from(before.buckets[at]);
        let all: u64 = (0..BUCKETS).map(of).sum();
        let (mut above, mut p99) = (0, Time::ZERO);
        for at in (0..BUCKETS).rev() {
            above += of(at);
            if above * 100 > all {
                p99 = upper_bound(at).min(now.longest.max(before.longest));
                break;
            }
        }
        PathCounts { mean_rtt, p99, ..self.counts }
    }
}

#[derive(Debug)]
pub(crate) struct Watched {
    paths: Vec<Path>,
    last: Option<u32>,
    /// Of the packets sent from the PSN `first` on.
    sent: VecDeque<u16>,
    first: u64,
}

impl Watched {
    pub(crate) fn new(labels: u32, first: u64) -> Self {
        Watched { paths: vec![Path::default(); labels as usize], last: None, sent: VecDeque::new(), first }
    }

    pub(crate) fn note_sent(&mut self, now: Time, psn: u64, label: u32, bytes: usize, again: bool) {
        let Some(path) = self.paths.get_mut(label as usize) else { return };
        path.counts.packets += 1;
        path.counts.bytes += bytes as u64;
        path.counts.retransmitted += u64::from(again);
        path.counts.moves += u64::from(self.last.is_some_and(|last| last != label));
        path.counts.used_at = now;
        self.last = Some(label);
        let Some(at) = psn.checked_sub(self.first) else { return };
        if at as usize >= self.sent.len() {
            self.sent.resize(at as usize + 1, label as u16);
        }
        self.sent[at as usize] = label as u16;
    }

    pub(crate) fn note_ack(&mut self, now: Time, label: u32, marked: bool, lost: u64, rtt: Option<Time>) {
        let Some(path) = self.paths.get_mut(label as usize) else { return };
        path.counts.acks += 1;
        path.counts.marks += u64::from(marked);
        path.counts.losses += lost;
        if let Some(rtt) = rtt {
            path.note_round_trip(now, rtt);
        }
    }

    pub(crate) fn note_received(&mut self, cumulative: u64) {
        while self.first < cumulative && self.sent.pop_front().is_some() {
            self.first += 1;
        }
    }

    pub(crate) fn note_timeout(&mut self, psn: u64) {
        let label = psn.checked_sub(self.first).and_then(|at| self.sent.get(at as usize));
        if let Some(path) = label.and_then(|label| self.paths.get_mut(usize::from(*label))) {
            path.counts.losses += 1;
        }
    }

    pub(crate) fn counts(&self) -> impl Iterator<Item = PathCounts> {
        self.paths.iter().map(Path::counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_bound_round_trips_within_an_eighth() {
        for ns in (0..20_000).chain((1..2_000).map(|step| step * 7_777_777)) {
            let rtt = Time::from_ns(ns);
            let at = bucket(rtt);
            assert!(at < BUCKETS && rtt < upper_bound(at), "{ns} ns");
            // Eight steps of 64 ns, then an eighth of the power of two below.
            assert!(upper_bound(at) - rtt <= Time::from_ns(64.max(ns / 8)), "{ns} ns: {}", upper_bound(at));
        }
        assert_eq!((bucket(Time::from_ns(512)), upper_bound(8)), (8, Time::from_ns(576)));
    }

    #[test]
    fn counters_attribute_packets_to_paths() {
        let us = Time::from_us;
        let mut watched = Watched::new(2, 0);
        // Packets 0, 1 over label 1; 2, then 0 again, over label 0.
        watched.note_sent(us(1), 0, 1, 100, false);
        watched.note_sent(us(2), 1, 1, 100, false);
        watched.note_sent(us(3), 2, 0, 50, false);
        watched.note_timeout(0);
        watched.note_sent(us(4), 0, 0, 100, true);
        watched.note_timeout(0);
        // 98 round trips of 10 us, two of 100 us: the mean is 11.8 us, and 2 of 100 are longer than 10 us.
        for number in 0..100u64 {
            let rtt = if number % 50 == 49 { us(100) } else { us(10) };
            watched.note_ack(us(10 + number), 1, number < 3, 0, Some(rtt));
        }
        let counts: Vec<PathCounts> = watched.counts().collect();
        let [zero, one] = counts[..] else { panic!("two labels") };
        assert_eq!((zero.packets, zero.bytes, zero.retransmitted, zero.moves, zero.losses), (2, 150, 1, 1, 1));
        assert_eq!((one.packets, one.moves, one.losses, one.acks, one.marks), (2, 0, 1, 100, 3));
        assert_eq!((one.min_rtt, one.mean_rtt, one.p99), (us(10), Time::from_ns(11_800), us(100)));
        assert_eq!((zero.used_at, one.used_at), (us(4), us(2)));
        // A whole window later only the minimum is left of earlier round trips.
        for step in 1..=3 {
            watched.note_ack(us(step * 100_000 + 200), 1, false, 0, Some(us(20)));
        }
        let one = watched.counts().nth(1).unwrap();
        assert_eq!((one.min_rtt, one.mean_rtt, one.p99), (us(10), us(20), us(20)));
        // Timeouts of acknowledged packets are ignored.
        watched.note_received(2);
        watched.note_timeout(0);
        watched.note_timeout(2);
        assert_eq!(watched.counts().map(|path| path.losses).collect::<Vec<_>>(), [2, 1]);
    }
}
