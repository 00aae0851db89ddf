//! Hopper's testbed (section 4.2) over RDMA verbs: pairs of devices send one message each, and the next round begins
//! when all have arrived. Started by `tests/soft-roce/rounds`, which documents the arguments. Prints one line of JSON:
//! slowdowns relative to `ideal`, the duration of all rounds, and the schemes' counters.

use anabranch_lb::registry::HostParameters;
use anabranch_settings::Raw;
use anabranch_units::Time;
use anabranch_wire::{
    Label,
    chunks::ChunkSettings,
    transfer::{Conductor, Progress},
    verbs::{Served, VerbsSent, VerbsSettings, perform, serve},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Barrier,
        mpsc::{Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

/// Arguments `key=value`, and pairs (sender, receiver, labels).
struct Words {
    named: BTreeMap<String, String>,
    pairs: Vec<(String, String, Vec<Label>)>,
}

impl Words {
    fn read() -> Self {
        let mut words = Words { named: BTreeMap::new(), pairs: Vec::new() };
        for word in std::env::args().skip(1) {
            let (key, value) = word.split_once('=').expect("words are key=value");
            if key == "pair" {
                let parts: Vec<&str> = value.split(':').collect();
                let labels = parts[2].split(',').map(|label| label.parse().expect("a label")).collect();
                words.pairs.push((parts[0].into(), parts[1].into(), labels));
            } else {
                words.named.insert(key.into(), value.into());
            }
        }
        words
    }

    fn number(&self, key: &str) -> u64 {
        self.named[key].parse().unwrap_or_else(|_| panic!("{key} is a whole number"))
    }
}

/// Reports that its sender's paths are measured, so that the next one measures undisturbed, then waits at the barrier.
struct AtBarrier<'a> {
    measured: Option<Sender<()>>,
    barrier: &'a Barrier,
    began: &'a mut Option<Instant>,
    next: u64,
}

impl Conductor for AtBarrier<'_> {
    fn may_begin(&mut self, _round: u32) -> bool {
        if let Some(measured) = self.measured.take() {
            measured.send(()).expect("somebody waits");
        }
        self.barrier.wait();
        self.began.get_or_insert_with(Instant::now);
        true
    }
    fn fill(&mut self, _round: usize, bytes: &mut [u8]) {
        for byte in bytes {
            self.next = self.next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (self.next >> 56) as u8;
        }
    }
    fn goes_on(&mut self, _progress: &Progress) -> bool {
        true
    }
}

fn main() {
    let words = Words::read();
    let rounds = vec![words.number("bytes"); words.number("rounds") as usize];
    let verbs = |device: &str| VerbsSettings {
        device: Some(device.into()),
        timeout: words.number("timeout") as u8,
        peer_timeout: Duration::from_secs(60),
        ..VerbsSettings::default()
    };
    let barrier = Barrier::new(words.pairs.len());
    let sent: Vec<(VerbsSent, Instant, Instant)> = thread::scope(|scope| {
        let mut senders = Vec::new();
        for (number, (from, to, labels)) in words.pairs.iter().enumerate() {
            let (listens, listening) = channel();
            let to = verbs(to);
            scope.spawn(move || {
                // The control connection does not cross the fabric.
                let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let mut look = |served: Option<&Served>| {
                    if let Some(served) = served {
                        let (ours, theirs, _) = served.outcome.clone().expect("a whole transfer");
                        assert_eq!(ours, theirs, "checksums differ");
                    }
                    true
                };
                serve(at, &to, true, &mut |at, _| listens.send(at).expect("a sender"), &mut look).expect("a receiver");
            });
            let at = listening.recv().expect("a receiver");
            let mut scheme = HostParameters::named(&words.named["scheme"]).expect("a scheme");
            // Of these schemes FlowBender alone has it.
            let _ = scheme.parameters_mut().set("rtt_threshold", &Raw::Float(2.5));
            let mut chunks = ChunkSettings::new(scheme);
            chunks.seed = words.number("seed") * 1000 + number as u64;
            (chunks.labels, chunks.max_queues) = (labels.clone(), labels.len() as u32);
            (chunks.chunk, chunks.probe) = (words.number("chunk") as u32, words.number("probe") as u32);
            chunks.rtt_floor = Time::from_us(words.number("floor_us"));
            let (measured, knows) = channel();
            let (rounds, from, barrier) = (&rounds, verbs(from), &barrier);
            senders.push(scope.spawn(move || {
                let mut began = None;
                let seed = chunks.seed;
                let mut conductor = AtBarrier { measured: Some(measured), barrier, began: &mut began, next: seed };
                let sent = perform(at, rounds, &from, chunks, &mut conductor).expect("a transfer");
                (sent, began.expect("a round"), Instant::now())
            }));
            knows.recv().expect("measured paths");
        }
        senders.into_iter().map(|sender| sender.join().expect("a sender")).collect()
    });
    let ideal = words.number("ideal_us") as f64 * 1e-6;
    let mut slowdowns: Vec<f64> =
        sent.iter().flat_map(|(sent, ..)| &sent.rounds).map(|took| took.as_seconds() / ideal).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    // By linear interpolation, as in reports.
    let quantile = |q: f64| {
        let place = q * (slowdowns.len() - 1) as f64;
        let (below, above) = (slowdowns[place.floor() as usize], slowdowns[place.ceil() as usize]);
        below + place.fract() * (above - below)
    };
    let slowest = |round: usize| sent.iter().map(|(sent, ..)| sent.rounds[round]).max().unwrap_or(Time::ZERO);
    let training: f64 = (0..rounds.len()).map(|round| slowest(round).as_seconds()).sum();
    let all = |of: &dyn Fn(&VerbsSent) -> u64| sent.iter().map(|(sent, ..)| of(sent)).sum::<u64>();
    let milliseconds = |of: &dyn Fn(&VerbsSent) -> Time| {
        sent.iter().map(|(sent, ..)| (of(sent).as_seconds() * 1e4).round() / 10.0).collect::<Vec<_>>()
    };
    let span = sent.iter().map(|sent| sent.2).max().zip(sent.iter().map(|sent| sent.1).min());
    println!(
        "{}",
        json!({
            "scheme": words.named["scheme"],
            "seed": words.number("seed"),
            "mean": slowdowns.iter().sum::<f64>() / slowdowns.len() as f64,
            "p95": quantile(0.95),
            "p99": quantile(0.99),
            "training_s": training,
            "whole_s": span.map(|(last, first)| (last - first).as_secs_f64()),
            "chunks": all(&|sent| sent.counters.chunks),
            "again": all(&|sent| sent.counters.again),
            "given_up": all(&|sent| sent.counters.failed),
            "probes": all(&|sent| sent.counters.probes),
            "path_switches": all(&|sent| sent.counters.path_switches),
            "base_ms": milliseconds(&|sent| sent.base),
            "noise_ms": milliseconds(&|sent| sent.noise),
            "longest_pause_ms": milliseconds(&|sent| sent.longest_pause),
        })
    );
}
