//! Closed forms, and schemes that leave a path that has become slow or dead.

use crate::memory_chunks::{ChunkLink, MemoryChunks, RELABEL};
use anabranch_lb::registry::HostParameters;
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use anabranch_wire::chunks::{ChunkCounters, ChunkDriver, ChunkEvent, ChunkPath, ChunkSettings, Message, read_notice};
use std::collections::BTreeSet;

/// 1 ms at 800 Mbit/s, which is 10 ns per byte.
const CHUNK: u64 = 100_000;
/// Takes 10 us.
const PROBE: u32 = 1_000;
const RATE: Rate = Rate(800_000_000);
const DELAY: Time = Time::from_us(20);

struct Bench {
    driver: ChunkDriver<MemoryChunks>,
    bytes: u64,
    opened: Option<(Time, Time, Time)>,
    sent: Vec<(u64, Time)>,
    lost: bool,
}

/// Its paths are `usual` unless they are set.
fn bench_over(
    usual: ChunkLink,
    depth: usize,
    scheme: &str,
    bytes: u64,
    change: impl FnOnce(&mut ChunkSettings),
) -> Bench {
    let mut settings = ChunkSettings::new(HostParameters::named(scheme).unwrap());
    settings.probe_to = bytes.max(CHUNK);
    (settings.chunk, settings.probe) = (CHUNK as u32, PROBE);
    change(&mut settings);
    settings.configure_scheme().unwrap();
    let mut draws = Stream::keyed(7, bytes, "bytes");
    let mut memory = vec![0; bytes.max(CHUNK) as usize];
    memory.chunks_mut(8).for_each(|word| word.copy_from_slice(&draws.bits().to_le_bytes()[..word.len()]));
    let room = bytes.max(CHUNK) as usize + settings.probe as usize;
    let path = MemoryChunks::new(settings.seed, usual, depth, memory, room);
    let driver = ChunkDriver::new(path, settings);
    Bench { driver, bytes, opened: None, sent: Vec::new(), lost: false }
}

/// Paths without faults, whose queues take sixteen chunks.
fn bench(scheme: &str, bytes: u64, change: impl FnOnce(&mut ChunkSettings)) -> Bench {
    bench_over(usual(), 16, scheme, bytes, change)
}

fn usual() -> ChunkLink {
    ChunkLink::new(RATE, DELAY)
}

/// Cut for the whole test.
fn dead() -> ChunkLink {
    ChunkLink { cuts: vec![(Time::ZERO, Time::from_ms(1_000_000))], ..usual() }
}

impl Bench {
    /// Works until `done`, a minute of virtual time at most.
    fn run(&mut self, done: &mut dyn FnMut(&mut Bench) -> bool) {
        let limit = Time::from_ms(60_000);
        loop {
            let next = self.driver.work().unwrap();
            let now = self.driver.path().now();
            while let Some(event) = self.driver.poll_event() {
                match event {
                    ChunkEvent::Open { base, probe, noise } => self.opened = Some((base, probe, noise)),
                    ChunkEvent::Sent { message } => self.sent.push((message, now)),
                    ChunkEvent::Lost => self.lost = true,
                }
            }
            if done(self) {
                return;
            }
            assert!(now < limit, "nothing happens any more: {:?}", self.driver.counters());
            self.driver.wait(next.unwrap_or(limit).min(limit)).unwrap();
        }
    }

    fn open(&mut self) -> (Time, Time, Time) {
        self.run(&mut |bench| bench.opened.is_some() || bench.lost);
        self.opened.unwrap()
    }

    fn send(&mut self) -> Time {
        self.begin();
        let start = self.driver.path().now();
        self.run(&mut |bench| !bench.sent.is_empty());
        self.sent[0].1 - start
    }

    fn begin(&mut self) {
        assert!(self.driver.send(Message { number: 0, from: 0, to: 0, bytes: self.bytes }));
    }

    /// Every byte is in place, and no notice arrived twice unless its chunk was retransmitted.
    fn check(&mut self) {
        let counters = self.driver.counters();
        let bytes = self.bytes as usize;
        let path = self.driver.path();
        assert!(path.received[..bytes] == path.memory[..bytes], "bytes differ");
        let messages = &path.notices;
        let different: BTreeSet<u32> = messages.iter().copied().collect();
        assert_eq!(different.len() as u64, counters.chunks - counters.again);
        assert!((messages.len() - different.len()) as u64 <= counters.again);
        assert!(different.iter().all(|notice| read_notice(*notice).0 == 0));
    }

    fn counters(&self) -> ChunkCounters {
        self.driver.counters()
    }
}

#[test]
fn one_chunk() {
    for bytes in [1, 999, CHUNK] {
        let mut bench = bench("ecmp", bytes, |_| {});
        // A chunk takes 1 ms and the delay, a probe 10 us and the delay.
        let base = (Time::from_ms(1) + DELAY, Time::from_us(10) + DELAY, Time::ZERO);
        assert_eq!(bench.open(), base);
        assert_eq!(bench.send(), Time::from_ns(10 * bytes) + DELAY, "{bytes} B at 10 ns each");
        bench.check();
    }
}

#[test]
fn a_window_of_chunks() {
    // Ten chunks over one path: one at a time, each takes its round trip; two under way keep the path busy.
    let took = |window| {
        let mut bench = bench("ecmp", 10 * CHUNK, |settings| settings.window = window);
        bench.open();
        let took = bench.send();
        bench.check();
        took
    };
    assert_eq!(took(1), (Time::from_ms(1) + DELAY) * 10);
    assert_eq!(took(2), Time::from_ms(10) + DELAY);
}

#[test]
fn chunks_that_wait_for_each_other_are_no_congestion() {
    // Four chunks under way on one path take four times as long as one, as they would without any queue.
    let mut bench = bench("hopper", 64 * CHUNK, |settings| settings.window = 4);
    bench.open();
    assert_eq!(bench.send(), Time::from_ms(64) + DELAY);
    assert_eq!((bench.counters().probes, bench.counters().path_switches), (0, 0));
    bench.check();
}

#[test]
fn a_full_queue_makes_no_scheme_choose_twice() {
    // Four chunks may be under way, and a queue takes one. `rr` moves to the next label with every choice, so all
    // labels carry the same number.
    let mut bench = bench_over(usual(), 1, "rr", 16 * CHUNK, |settings| {
        (settings.window, settings.labels) = (4, vec![5, 6]);
    });
    bench.open();
    let took = bench.send();
    let by_label: Vec<_> = bench.driver.by_label().collect();
    assert_eq!(by_label, [(5, 8), (6, 8)]);
    // Two paths with eight chunks each, one at a time.
    assert_eq!(took, (Time::from_ms(1) + DELAY) * 8);
    bench.check();
}

#[test]
fn queue_pairs_in_turn() {
    let mut bench = bench("qp-spray", 64 * CHUNK, |_| {});
    bench.open();
    assert_eq!(bench.send(), (Time::from_ms(1) + DELAY) * 64, "one chunk under way");
    // Four queue pairs with random labels out of eight: sixteen chunks each.
    let used: Vec<u64> = bench.driver.by_label().map(|(_, chunks)| chunks).filter(|chunks| *chunks > 0).collect();
    assert!(used.iter().all(|chunks| chunks % 16 == 0) && used.iter().sum::<u64>() == 64, "{used:?}");
    bench.check();
}

fn favourite(bench: &Bench) -> (u32, u64) {
    bench.driver.by_label().max_by_key(|(_, chunks)| *chunks).unwrap()
}

#[test]
fn hopper_leaves_a_slow_path_after_one_chunk() {
    let mut bench = bench("hopper", 64 * CHUNK, |_| {});
    let (base, probe, _) = bench.open();
    let start = bench.driver.path().now();
    bench.begin();
    bench.run(&mut |bench| bench.counters().chunks == 11);
    assert_eq!(bench.counters().probes, 0, "nothing is congested");
    let (slow, before) = favourite(&bench);
    assert_eq!(before, 11, "and nothing moves");
    // The twelfth chunk takes more than 2.5 base round trips at a tenth of the rate. Two other paths are probed at
    // once, and the thirteenth chunk waits for the replies: it takes one of them.
    bench.driver.path().set(slow, ChunkLink::new(Rate(RATE.0 / 10), DELAY));
    bench.run(&mut |bench| !bench.sent.is_empty());
    let counters = bench.counters();
    let by_label: Vec<_> = bench.driver.by_label().collect();
    let on_slow = by_label.iter().find(|(label, _)| *label == slow).unwrap().1;
    assert_eq!(on_slow, 12, "{by_label:?}");
    assert_eq!((counters.probes, counters.path_switches), (2, 1), "{by_label:?}");
    // The new path uses the queue pair of its probe.
    assert_eq!((counters.relabelled, counters.queues), (0, 8));
    // Sixty-three chunks took the base round trip, one ten times the serialisation time; the probes' round trip follows.
    let slow_chunk = Time::from_ms(10) + DELAY;
    let (took, chunks) = (bench.sent[0].1 - start, base * 63 + slow_chunk + probe);
    // The second probe may follow the first, which takes 10 us.
    assert!(took >= chunks && took <= chunks + Time::from_us(20), "{took}");
    bench.check();
}

#[test]
fn hopper_stays_where_all_paths_are_slow() {
    // With a delay of 1 us a probe takes 11 us at full rate and 101 us at a tenth of it, 9.2 times as long. A chunk
    // takes 10.0 times as long, and 9.2 is not below 80 % of that.
    let delay = Time::from_us(1);
    let mut bench = bench_over(ChunkLink::new(RATE, delay), 16, "hopper", 32 * CHUNK, |_| {});
    bench.open();
    for label in 1..=8 {
        bench.driver.path().set(label, ChunkLink::new(Rate(RATE.0 / 10), delay));
    }
    bench.send();
    let counters = bench.counters();
    assert!(counters.probes >= 2 && counters.path_switches == 0, "{counters:?}");
    bench.check();
}

#[test]
fn flowbender_goes_on_until_it_is_fast() {
    // After a chunk above 2.5 base round trips the next one uses the next label. Two of eight labels are slow.
    let mut bench = bench("flowbender", 32 * CHUNK, |_| {});
    bench.open();
    bench.begin();
    bench.run(&mut |bench| bench.counters().chunks == 5);
    let (first, _) = favourite(&bench);
    let second = if first == 8 { 1 } else { first + 1 };
    for label in [first, second] {
        bench.driver.path().set(label, ChunkLink::new(Rate(RATE.0 / 10), DELAY));
    }
    bench.run(&mut |bench| !bench.sent.is_empty());
    let chunks = |label: u32| bench.driver.by_label().find(|(known, _)| *known == label).unwrap().1;
    // The fifth chunk was under way at the old rate; the sixth is slow on the same label, the seventh on the next one.
    assert_eq!((chunks(first), chunks(second), bench.counters().path_switches), (6, 1, 2));
    bench.check();
}

#[test]
fn few_queues_are_relabelled_when_idle() {
    // Queues have the labels of the latest posts.
    for scheme in ["ops", "hopper", "qp-spray"] {
        let jitter = ChunkLink { jitter: Time::from_ms(1), ..usual() };
        let mut bench = bench_over(jitter, 16, scheme, 100 * CHUNK, |settings| {
            (settings.labels, settings.max_queues, settings.window) = ((1..=64).collect(), 3, 2);
        });
        bench.open();
        bench.send();
        let counters = bench.counters();
        assert_eq!(counters.queues, 3, "{scheme}");
        // Sixty-four labels were measured, sixty-one over relabelled queues.
        assert!(counters.relabelled >= 61, "{scheme}: {counters:?}");
        assert_eq!(counters.relabel_time, RELABEL * counters.relabelled, "{scheme}");
        bench.check();
    }
}

#[test]
fn dead_path_is_abandoned() {
    let chosen = |scheme: &HostParameters| !scheme.capabilities().leaves_choice_to_switches();
    for scheme in HostParameters::each().into_iter().filter(chosen) {
        let scheme = scheme.name();
        for far in [false, true] {
            let mut bench = bench(scheme, 64 * CHUNK, |settings| settings.window = 3);
            bench.open();
            bench.begin();
            bench.run(&mut |bench| bench.counters().chunks == 6);
            let (label, _) = favourite(&bench);
            bench.driver.path().set(label, ChunkLink { far, ..dead() });
            bench.run(&mut |bench| !bench.sent.is_empty() || bench.lost);
            let counters = bench.counters();
            assert!(!bench.lost && counters.failed >= 1 && counters.again == counters.failed, "{scheme}: {counters:?}");
            bench.check();
        }
    }
}

#[test]
fn a_short_cut_costs_time_alone() {
    // For 100 ms from 3 ms on, less than the hardware's retry time: the third chunk is retransmitted.
    let mut bench = bench("ecmp", 8 * CHUNK, |_| {});
    bench.open();
    let start = bench.driver.path().now();
    let (from, mended) = (start + Time::from_ms(3), start + Time::from_ms(103));
    for label in 1..=8 {
        let cut = ChunkLink { cuts: vec![(from, mended)], ..usual() };
        bench.driver.path().set(label, cut);
    }
    // Two chunks and 960 us of the third are sent at 3 ms; the third is sent from its start after the cut.
    assert_eq!(bench.send(), Time::from_ms(103) + Time::from_ms(1) + DELAY + (Time::from_ms(1) + DELAY) * 5);
    assert_eq!(bench.counters().failed, 0);
    bench.check();
}

#[test]
fn a_peer_without_a_path_is_lost() {
    let mut bench = bench_over(dead(), 16, "hopper", CHUNK, |_| {});
    bench.run(&mut |bench| bench.lost);
    assert_eq!(bench.counters().failed, 8, "each label was tried");
    // A chunk is sent eight times.
    let mut bench = self::bench("ecmp", 4 * CHUNK, |_| {});
    bench.open();
    for label in 1..=8 {
        bench.driver.path().set(label, dead());
    }
    bench.begin();
    bench.run(&mut |bench| bench.lost);
    assert_eq!(bench.counters().failed, 8);
}

#[test]
fn noise_is_measured_and_ignored() {
    // Late by up to 1 ms, as long as they take: without a noise floor this counts as congestion now and then.
    let jitter = ChunkLink { jitter: Time::from_ms(1), ..usual() };
    let probes = |calibrations| {
        let mut bench = bench_over(jitter.clone(), 16, "hopper", 200 * CHUNK, |settings| {
            (settings.calibrations, settings.chunk_calibrations) = (calibrations, calibrations);
        });
        let (.., noise) = bench.open();
        bench.send();
        bench.check();
        (noise, bench.counters().probes)
    };
    assert_eq!(probes(1).0, Time::ZERO, "one sample has no spread");
    let (noise, probes) = probes(32);
    assert!(noise > Time::from_us(700) && noise < Time::from_ms(1), "{noise}");
    // The base is 1.02 ms and at least 0.7 ms of noise, times 1.5: above 2.58 ms, and no chunk takes longer than 2.02 ms.
    assert_eq!(probes, 0);
}
