//! Forwarding tables and the times of their changes.

use anabranch_topology::{Fault, FaultAction, LinkId, Routes, Topology};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) from: u64,
    pub(crate) routes: Arc<Routes>,
    /// Per directed link: known to be dead.
    pub(crate) dead: Vec<bool>,
    pub(crate) any_dead: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped;

/// Returns the tables from the start on and from each time at which a fault is detected. Polls `go_on` between two tables.
pub(crate) fn tables(
    topology: &Topology,
    faults: &[Fault],
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Tables>, Stopped> {
    let mut changes: Vec<(u64, bool, LinkId)> = Vec::new();
    for fault in faults {
        let Some(at) = fault.detect_at else { continue };
        let dead = match fault.action {
            FaultAction::Down => true,
            FaultAction::Up => false,
            _ => continue,
        };
        changes.extend(fault.links.iter().map(|&link| (at.ps(), dead, link)));
    }
    changes.sort_by_key(|&(at, ..)| at);
    let mut dead = vec![false; topology.links.len()];
    let mut tables = Vec::new();
    let mut next = 0;
    loop {
        if !go_on() {
            return Err(Stopped);
        }
        let from = if tables.is_empty() { 0 } else { changes[next].0 };
        while next < changes.len() && changes[next].0 == from {
            dead[changes[next].2.0 as usize] = changes[next].1;
            next += 1;
        }
        let any_dead = dead.contains(&true);
        let routes = if any_dead { Arc::new(Routes::shortest(topology, &dead)) } else { topology.routes() };
        tables.push(Tables { from, routes, dead: dead.clone(), any_dead });
        if next == changes.len() {
            return Ok(tables);
        }
    }
}
