//! Draws a valid scenario that is small enough to run many times.
//!
//! A case grows piece by piece, and depends on its seed, number and restrictions only. Each piece is redrawn until the
//! readers of scenarios, which alone define what is valid, accept it.

mod fabric;
mod rest;
mod topology;
mod traffic;
mod unknown;

use super::{Dice, Draft, Restrictions, restrictions::TopologyChoice};
use anabranch_backend::Setup;
use anabranch_scenario::SIMULATOR;
use anabranch_scenario::ScenarioError;
use anabranch_topology::Topology;
use std::path::Path;

/// Maximum number of data packets of a case without losses; more on a large topology that is given.
const MAX_PACKETS: u64 = 6_000;

/// Maximum number of flows; more on a large topology that is given.
const MAX_FLOWS: u64 = 1_500;

const MAX_HOSTS: u64 = 100;

const MAX_SAMPLES: u64 = 20_000_000;

/// Number of tries to draw a piece before the case omits it.
const TRIES: u64 = 12;

/// Number of tries to draw a topology and a transport that suit a given load balancer.
const TRIES_TOGETHER: u64 = 100;

/// Returns a case, whose files are written to `folder`, or the last refusal if nothing suits the restrictions.
pub(super) fn case(seed: u64, number: u64, only: &Restrictions, folder: &Path) -> Result<Draft, ScenarioError> {
    let given = matches!(only.topology, TopologyChoice::Given { .. });
    let mut drawing = Drawing { seed, number, folder, given, draft: Draft::new(seed_of(seed, number)) };
    let topology = drawing.base(only)?;
    drawing.may("parameters", 2, fabric::parameters);
    if drawing.must("workload", TRIES, |dice, draft| traffic::draw(dice, draft, 0)).is_err() {
        drawing.draft = drawing.draft.with(traffic::minimal());
    }
    for number in 1..3 {
        drawing.may(&format!("workload {number}"), 3, |dice, draft| traffic::draw(dice, draft, number));
    }
    for number in 0..4 {
        drawing.may(&format!("fault {number}"), 3, |dice, draft| rest::fault(dice, draft, &topology));
    }
    drawing.may("measure", 2, |dice, draft| rest::measure(dice, draft, &topology));
    drawing.may("captures", 4, |dice, draft| rest::captures(dice, draft, &topology));
    drawing.must("run", TRIES, rest::run)?;
    Ok(drawing.draft)
}

/// Seed of a case's scenario, now and then one of 64 random bits: half of those exceed 2^63-1, the largest number in TOML.
fn seed_of(seed: u64, number: u64) -> u64 {
    let mut dice = Dice::new(seed, number, "soak: seed");
    if !dice.once_in(8) {
        return dice.number(1, 1000);
    }
    let half = dice.number(0, i64::MAX as u64);
    if dice.once_in(2) { half | 1 << 63 } else { half }
}

struct Drawing<'a> {
    seed: u64,
    number: u64,
    folder: &'a Path,
    /// The topology is given by the user, and may be large.
    given: bool,
    draft: Draft,
}

impl Drawing<'_> {
    fn base(&mut self, only: &Restrictions) -> Result<Topology, ScenarioError> {
        if only.schemes.is_empty() {
            self.must("topology", TRIES, |dice, draft| topology::draw(dice, draft, &only.topology))?;
            // If none is accepted, the defaults apply.
            let _ = self.must("transport", TRIES, fabric::draw);
            let _ = self.must("load balancer", TRIES, |dice, draft| fabric::load_balancer(dice, draft, &[]));
        } else {
            self.must("topology, transport, load balancer", TRIES_TOGETHER, |dice, draft| {
                let draft = topology::draw(dice, draft, &only.topology);
                let draft = fabric::draw(dice, &draft);
                fabric::load_balancer(dice, &draft, &only.schemes)
            })?;
        }
        if !self.given {
            self.may("links", 6, topology::overrides);
        }
        self.may("servers", 4, topology::servers);
        self.accepted(&self.draft)
    }

    fn may(&mut self, name: &str, times: u64, piece: impl FnMut(&mut Dice, &Draft) -> Draft) {
        if Dice::new(self.seed, self.number, &format!("soak: is there {name}")).once_in(times) {
            let _ = self.must(name, TRIES, piece);
        }
    }

    /// Adds a drawn piece if a try is accepted; else returns the last refusal.
    fn must(
        &mut self,
        name: &str,
        tries: u64,
        mut piece: impl FnMut(&mut Dice, &Draft) -> Draft,
    ) -> Result<(), ScenarioError> {
        let mut refused = Ok(());
        for again in 0..tries {
            let mut dice = Dice::new(self.seed, self.number, &format!("soak: {name} {again}"));
            let more = piece(&mut dice, &self.draft);
            match self.accepted(&more) {
                Ok(_) => {
                    self.draft = more;
                    return Ok(());
                }
                Err(error) => refused = Err(error),
            }
        }
        refused
    }

    fn accepted(&self, draft: &Draft) -> Result<Topology, ScenarioError> {
        let mut draft = draft.clone();
        if draft.section("[[workload]]").is_none() {
            draft = draft.with(traffic::minimal());
        }
        let (scenario, setup) = draft.load(self.folder)?;
        if !small(&setup, self.given) {
            return Err(ScenarioError::new("the scenario is too large to run many times"));
        }
        scenario.check(&setup, &SIMULATOR)?;
        Ok(setup.topology)
    }
}

fn small(setup: &Setup, given: bool) -> bool {
    let hosts = u64::from(setup.topology.hosts);
    let mtu = setup.transport.mtu();
    let packets = setup.flows.all_flows().map(|flow| flow.size.div_ceil(mtu)).sum::<u64>();
    let samples = match setup.measure.series_links.len() as u64 {
        0 => 0,
        links => links * (setup.limits.time_limit.ps() / setup.measure.series_interval.ps().max(1)),
    };
    let (max_flows, max_packets) = match given {
        true => (MAX_FLOWS.max(2 * hosts), MAX_PACKETS.max(8 * hosts)),
        false => (MAX_FLOWS, MAX_PACKETS),
    };
    (given || hosts <= MAX_HOSTS)
        && setup.flows.number_of_flows() as u64 <= max_flows
        && packets <= max_packets
                // Limits of the run are drawn last, and series end with its flows.
        && samples <= MAX_SAMPLES
}
