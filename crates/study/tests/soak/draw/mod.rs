//! Draws a valid scenario that is small enough to be run many times.
//!
//! A case grows piece by piece (topology, fabric and transport, load balancer, workloads, faults, measurements, limits). Each
//! piece is drawn until the scenario with it is accepted, so that what a piece may be is known to the readers of scenarios
//! alone, and a case depends on nothing but its seed and its number.

mod fabric;
mod rest;
mod topology;
mod traffic;

use crate::{dice::Dice, draft::Draft};
use anabranch_backend::Setup;
use std::path::Path;

/// Most data packets that a case sends if none is lost.
const MOST_PACKETS: u64 = 6_000;

/// Most flows.
const MOST_FLOWS: usize = 1_500;

/// How often a piece is drawn anew before the case does without it.
const TRIES: u64 = 12;

/// The case of that number; its files, if any, are written to `folder`.
pub(crate) fn case(seed: u64, number: u64, folder: &Path) -> Draft {
    let mut drawing = Drawing { seed, number, folder, draft: Draft::new(1 + number % 1000) };
    drawing.must("topology", topology::draw);
    drawing.may("links", 6, topology::overrides);
    drawing.must("transport", fabric::draw);
    drawing.must("load balancer", fabric::load_balancer);
    drawing.may("parameters", 2, fabric::parameters);
    drawing.must("workload", |dice, draft| traffic::draw(dice, draft, 0));
    for number in 1..3 {
        drawing.may(&format!("workload {number}"), 3, |dice, draft| traffic::draw(dice, draft, number));
    }
    for number in 0..4 {
        drawing.may(&format!("fault {number}"), 3, rest::fault);
    }
    drawing.may("measure", 2, rest::measure);
    drawing.must("run", rest::run);
    drawing.draft
}

struct Drawing<'a> {
    seed: u64,
    number: u64,
    folder: &'a Path,
    draft: Draft,
}

impl Drawing<'_> {
    /// Adds what `piece` draws, once in `times`.
    fn may(&mut self, name: &str, times: u64, piece: impl FnMut(&mut Dice, &Draft) -> Draft) {
        if Dice::new(self.seed, self.number, &format!("soak: is there {name}")).once_in(times) {
            self.must(name, piece);
        }
    }

    /// Adds what `piece` draws, where one of its tries is accepted.
    fn must(&mut self, name: &str, mut piece: impl FnMut(&mut Dice, &Draft) -> Draft) {
        for again in 0..TRIES {
            let mut dice = Dice::new(self.seed, self.number, &format!("soak: {name} {again}"));
            let more = piece(&mut dice, &self.draft);
            if self.accepted(&more) {
                self.draft = more;
                return;
            }
        }
    }

    fn accepted(&self, draft: &Draft) -> bool {
        let mut draft = draft.clone();
        if draft.section("[[workload]]").is_none() {
            draft = draft.with(traffic::least());
        }
        draft.load(self.folder).is_ok_and(|(_, setup)| small(&setup))
    }
}

fn small(setup: &Setup) -> bool {
    let mtu = setup.transport.mtu();
    let packets = setup.flows.flows.iter().map(|flow| flow.size.div_ceil(mtu)).sum::<u64>();
    let samples = match setup.measure.series_links.len() as u64 {
        0 => 0,
        links => links * (setup.limits.time_limit.ps() / setup.measure.series_interval.ps().max(1)),
    };
    setup.topology.hosts <= 100
        && setup.flows.flows.len() <= MOST_FLOWS
        && packets <= MOST_PACKETS
        // The limit of a run comes last, and series end with its flows.
        && samples <= 20_000_000
}
