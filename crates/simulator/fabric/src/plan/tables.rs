//! Forwarding tables and the times of their changes.

use anabranch_topology::{Fault, FaultAction, LinkId, Routes, Topology};
use anabranch_units::Rate;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) from: u64,
    pub(crate) routes: Arc<Routes>,
    /// Per directed link: known to be dead.
    pub(crate) dead: Vec<bool>,
    pub(crate) any_dead: bool,
    /// Per directed link: a controller denies the paths over it. Empty: none.
    pub(crate) denied: Vec<bool>,
    /// Per directed link: rate, as far as degradations were detected. Empty: no scheme reads it.
    pub(crate) rates: Vec<Rate>,
    /// Only rates have changed.
    pub(crate) same_paths: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// Returns the tables from the start on and from each time at which a fault is detected, or a controller denies paths. With
/// `is_static` no fault is detected; degradations are with `heeds_rates` alone. Polls `go_on` between two tables.
pub(crate) fn tables(
    topology: &Topology,
    faults: &[Fault],
    (is_static, heeds_rates): (bool, bool),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Tables>, Stopped> {
    let mut changes: Vec<(u64, FaultAction, LinkId)> = Vec::new();
    for fault in faults {
        let at = match fault.action {
            FaultAction::Down | FaultAction::Up if !is_static => fault.detect_at,
            FaultAction::Degrade(_) if heeds_rates => fault.detect_at,
            FaultAction::Deny | FaultAction::Allow => Some(fault.at),
            _ => None,
        };
        let Some(at) = at else { continue };
        changes.extend(fault.links.iter().map(|&link| (at.ps(), fault.action, link)));
    }
    changes.sort_by_key(|&(at, ..)| at);
    let (mut dead, mut denied) = (vec![false; topology.links.len()], vec![false; topology.links.len()]);
    let rate = |link: &anabranch_topology::Link| link.rate;
    let mut rates: Vec<Rate> = if heeds_rates { topology.links.iter().map(rate).collect() } else { vec![] };
    let mut tables: Vec<Tables> = Vec::new();
    let mut next = 0;
    loop {
        if !go_on() {
            return Err(Stopped);
        }
        let from = if tables.is_empty() { 0 } else { changes[next].0 };
        let mut same_paths = !tables.is_empty();
        while next < changes.len() && changes[next].0 == from {
            let (_, action, link) = changes[next];
            same_paths &= matches!(action, FaultAction::Degrade(_));
            match action {
                FaultAction::Degrade(rate) => rates[link.0 as usize] = rate,
                FaultAction::Deny | FaultAction::Allow => denied[link.0 as usize] = action == FaultAction::Deny,
                _ => dead[link.0 as usize] = action == FaultAction::Down,
            }
            next += 1;
        }
        let any_dead = dead.contains(&true);
        let routes = if any_dead { Arc::new(Routes::shortest(topology, &dead)) } else { topology.routes() };
        let denied = if denied.contains(&true) { denied.clone() } else { vec![] };
        let rates = rates.clone();
        tables.push(Tables { from, routes, dead: dead.clone(), any_dead, denied, rates, same_paths });
        if next == changes.len() {
            return Ok(tables);
        }
    }
}
