//! PRIME against a reference that follows Alg. 1 and 2 literally, with an array of penalties and sets of used paths. It
//! computes in O(P) the paths that may come next; the shuffle chooses among them.

use crate::{
    Feedback, FlowInfo, HostScheme, Tag,
    host::{
        prime::{DecayOn, HistoryOf, NackOnMarked, Prime, PrimeParameters},
        testing::{flow, send},
    },
};
use anabranch_settings::Auto;
use anabranch_units::{PacketsOrBdp, PacketsOrPasses, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;

const BDP: u64 = 20;

fn info(uplinks: &[u32]) -> FlowInfo<'_> {
    FlowInfo { key: 9, connection: 9, bdp_packets: BDP, ..flow(uplinks) }
}

fn packets(number: u64) -> PacketsOrPasses {
    PacketsOrPasses::Packets(PacketsOrBdp::Packets(number))
}

fn ack(tag: Tag) -> Feedback {
    Feedback { tag, ecn: true, packets: 1, bytes: 4096, ..Feedback::default() }
}

/// The reference: part 0 has `width` uplinks, part 1 has `rows` (1 on a 2-tier fat tree).
struct Reference {
    width: usize,
    rows: usize,
    penalty: Vec<u64>,
    /// The penalty is that of a mark.
    by_mark: Vec<bool>,
    dead: Vec<bool>,
    sent: u64,
    row: usize,
    rows_used: BTreeSet<usize>,
    used: BTreeSet<usize>,
}

impl Reference {
    fn new(width: usize, rows: usize) -> Self {
        let paths = width * rows;
        // Before the first packet no pass is running, which equals a completed pass of row 0.
        let used = (0..width).collect();
        Reference {
            width,
            rows,
            penalty: vec![0; paths],
            by_mark: vec![false; paths],
            dead: vec![false; paths],
            sent: 0,
            row: 0,
            rows_used: (0..rows).collect(),
            used,
        }
    }

    fn eligible(&self, heed_history: bool) -> Vec<bool> {
        let live = |p: usize| !self.dead[p];
        let least = (0..self.penalty.len()).filter(|&p| live(p)).map(|p| self.penalty[p]).min().unwrap();
        (0..self.penalty.len()).map(|p| live(p) && (!heed_history || self.penalty[p] == least)).collect()
    }

    fn step(&mut self, path: usize, eligible: &[bool]) {
        let (row, uplink) = (path / self.width, path % self.width);
        let any = |row: usize| (0..self.width).any(|u| eligible[row * self.width + u]);
        let waiting = |s: &Self| (0..s.width).any(|u| eligible[s.row * s.width + u] && !s.used.contains(&u));
        assert!(eligible[path], "path {path} is not eligible");
        if waiting(self) {
            assert_eq!(row, self.row, "the pass of row {} is not through", self.row);
            assert!(!self.used.contains(&uplink), "uplink {uplink} twice in a pass");
        } else {
            if !(0..self.rows).any(|row| any(row) && !self.rows_used.contains(&row)) {
                self.rows_used.clear();
            }
            assert!(!self.rows_used.contains(&row), "row {row} twice in a pass");
            self.rows_used.insert(row);
            self.row = row;
            self.used.clear();
        }
        self.used.insert(uplink);
    }

    fn penalise(&mut self, path: usize, penalty: u64, by_mark: bool) {
        if !self.dead[path] && penalty > self.penalty[path] {
            (self.penalty[path], self.by_mark[path]) = (penalty, by_mark);
        }
    }

    fn decay(&mut self, by: u64) {
        for penalty in &mut self.penalty {
            *penalty = penalty.saturating_sub(by);
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Send,
    /// Feedback for a path: ECN or not, of the most recent packets or of any path.
    Mark(u16),
    Nack(u16),
    Timeout(u16),
    Dead(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        60 => Just(Event::Send),
        20 => any::<u16>().prop_map(Event::Mark),
        14 => any::<u16>().prop_map(Event::Nack),
        4 => any::<u16>().prop_map(Event::Timeout),
        1 => any::<u64>().prop_map(Event::Dead),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn prime_is_algorithm_1(
        (width, rows) in prop_oneof![(2u32..10, Just(1u32)), (1u32..6, 2u32..5)],
        p_ecn in 0u64..12,
        p_nack in 0u64..30,
        p_timeout in prop::option::of(0u64..60),
        keeps_marks: bool,
        decay in 0u32..3,
        history_after in 0u64..30,
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..600),
    ) {
        let parameters = PrimeParameters {
            p_ecn: Auto::Value(packets(p_ecn)),
            p_nack: packets(p_nack),
            p_timeout: p_timeout.map_or(Auto::Auto, |own| Auto::Value(packets(own))),
            nack_on_marked: if keeps_marks { NackOnMarked::Ignore } else { NackOnMarked::Replace },
            decay,
            history_after: PacketsOrBdp::Packets(history_after),
            ..Default::default()
        };
        let p_timeout = p_timeout.map_or(p_nack, |own| own.max(p_nack).max(p_ecn));
        let uplinks = if rows == 1 { vec![width] } else { vec![width, rows] };
        let bits = width.next_power_of_two().trailing_zeros();
        let mut scheme = Prime::new(parameters, seed, 1);
        scheme.open(Time::ZERO, 0, &info(&uplinks));
        let mut reference = Reference::new(width as usize, rows as usize);
        let paths = (width * rows) as usize;
        let tag = |path: usize| (path as u32 % width) | (path as u32 / width) << bits;
        for event in events {
            match event {
                Event::Send => {
                    let eligible = reference.eligible(reference.sent >= history_after);
                    let sent = send(&mut scheme);
                    let path = (0..paths).find(|&p| tag(p) == sent).expect("a path's tag");
                    reference.step(path, &eligible);
                    reference.decay(u64::from(decay));
                    reference.sent += 1;
                }
                Event::Mark(p) => {
                    let p = p as usize % paths;
                    scheme.on_ack(Time::ZERO, 0, &ack(tag(p)));
                    if reference.penalty[p] == 0 {
                        reference.penalise(p, p_ecn, true);
                    }
                }
                Event::Nack(p) => {
                    let p = p as usize % paths;
                    scheme.on_nack(Time::ZERO, 0, tag(p));
                    if !(keeps_marks && reference.by_mark[p] && reference.penalty[p] > 0) {
                        reference.penalise(p, p_nack, false);
                    }
                }
                Event::Timeout(p) => {
                    let p = p as usize % paths;
                    scheme.on_timeout(Time::ZERO, 0, tag(p));
                    reference.penalise(p, p_timeout, false);
                }
                Event::Dead(bits) => {
                    let mut dead: Vec<bool> = (0..paths).map(|p| bits >> (p % 64) & 1 == 1).collect();
                    scheme.on_paths_changed(Time::ZERO, 0, &dead);
                    if dead.iter().all(|&d| d) {
                        dead.fill(false);
                    }
                    for (p, &now_dead) in dead.iter().enumerate() {
                        if now_dead != reference.dead[p] {
                            reference.penalty[p] = 0;
                        }
                    }
                    reference.dead = dead;
                }
            }
        }
    }

    /// With decay_on = generated every candidate is one step of the full round robin over live paths, and its penalty
    /// is read before all penalties decay.
    #[test]
    fn generated_decay_never_sends_a_penalised_path_while_one_is_free(
        width in 2u32..10,
        p_ecn in 1u64..12,
        p_nack in 1u64..30,
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let parameters = PrimeParameters {
            p_ecn: Auto::Value(packets(p_ecn)),
            p_nack: packets(p_nack),
            decay_on: DecayOn::Generated,
            history_after: PacketsOrBdp::Packets(0),
            ..Default::default()
        };
        let mut scheme = Prime::new(parameters, seed, 1);
        scheme.open(Time::ZERO, 0, &info(&[width]));
        // The candidates are those of a flow that gets no feedback.
        let mut oblivious = Prime::new(PrimeParameters::default(), seed, 1);
        oblivious.open(Time::ZERO, 0, &info(&[width]));
        let mut penalty = vec![0u64; width as usize];
        for event in events {
            match event {
                Event::Send | Event::Dead(_) => {
                    let sent = send(&mut scheme);
                    loop {
                        let least = *penalty.iter().min().unwrap();
                        let candidate = send(&mut oblivious);
                        let take = penalty[candidate as usize] == least;
                        penalty.iter_mut().for_each(|p| *p = p.saturating_sub(1));
                        if take {
                            prop_assert_eq!(candidate, sent);
                            break;
                        }
                    }
                }
                Event::Mark(p) => {
                    let p = u32::from(p) % width;
                    scheme.on_ack(Time::ZERO, 0, &ack(p));
                    if penalty[p as usize] == 0 {
                        penalty[p as usize] = p_ecn;
                    }
                }
                Event::Nack(p) | Event::Timeout(p) => {
                    let p = u32::from(p) % width;
                    scheme.on_nack(Time::ZERO, 0, p);
                    penalty[p as usize] = penalty[p as usize].max(p_nack);
                }
            }
        }
    }
    /// With history = part a path is free while none of its values is penalised; where none is free, the one sent has the
    /// smallest largest penalty.
    #[test]
    fn penalties_of_parts_are_those_of_iii_c(
        (width, rows) in (1u32..6, 2u32..5),
        p_ecn in 0u64..12,
        p_nack in 0u64..30,
        decay in 0u32..3,
        walks in any::<bool>(),
        seed in any::<u64>(),
        events in prop::collection::vec(event(), 1..400),
    ) {
        let parameters = PrimeParameters {
            p_ecn: Auto::Value(packets(p_ecn)),
            p_nack: packets(p_nack),
            // A candidate that is stepped over lets penalties decay, which this reference cannot see: none here.
            decay: if walks { 0 } else { decay },
            decay_on: if walks { DecayOn::Generated } else { DecayOn::Sent },
            history: HistoryOf::Part,
            history_after: PacketsOrBdp::Packets(0),
            ..Default::default()
        };
        let (decay, bits) = (u64::from(parameters.decay), width.next_power_of_two().trailing_zeros());
        let mut scheme = Prime::new(parameters, seed, 1);
        let uplinks = [width, rows];
        scheme.open(Time::ZERO, 0, &info(&uplinks));
        let paths = width * rows;
        let tag = |path: u32| (path % width) | (path / width) << bits;
        let (mut low, mut high) = (vec![0u64; width as usize], vec![0u64; rows as usize]);
        let mut dead = vec![false; paths as usize];
        for event in events {
            match event {
                Event::Send => {
                    let sent = send(&mut scheme);
                    let path = (0..paths).find(|&path| tag(path) == sent).expect("a path's tag");
                    let penalty = |path: u32| low[(path % width) as usize].max(high[(path / width) as usize]);
                    let least = (0..paths).filter(|&path| !dead[path as usize]).map(penalty).min().unwrap();
                    prop_assert!(!dead[path as usize]);
                    prop_assert_eq!(penalty(path), least);
                    low.iter_mut().chain(&mut high).for_each(|p| *p = p.saturating_sub(decay));
                }
                Event::Mark(p) => {
                    let p = u32::from(p) % paths;
                    scheme.on_ack(Time::ZERO, 0, &ack(tag(p)));
                    for p in [&mut low[(p % width) as usize], &mut high[(p / width) as usize]] {
                        *p = if *p == 0 { p_ecn } else { *p };
                    }
                }
                Event::Nack(p) | Event::Timeout(p) => {
                    let p = u32::from(p) % paths;
                    scheme.on_nack(Time::ZERO, 0, tag(p));
                    for p in [&mut low[(p % width) as usize], &mut high[(p / width) as usize]] {
                        *p = (*p).max(p_nack);
                    }
                }
                Event::Dead(bits) => {
                    dead = (0..paths).map(|p| bits >> (p % 64) & 1 == 1).collect();
                    scheme.on_paths_changed(Time::ZERO, 0, &dead);
                    if dead.iter().all(|&d| d) {
                        dead.fill(false);
                    }
                }
            }
        }
    }
}
