//! How many packets each link dropped.

use crate::{Plan, PortCount};

/// Packets that each port dropped from one reading of the counters to another, in the order of the scenario's directed links; `None`:
/// not known.
///
/// A switch whose port is down has no route for what was to leave by it. The kernel counts such packets per switch: they are those
/// of the port that was cut where there is one, and of none that can be named where there are several.
pub fn dropped(plan: &Plan, before: &[PortCount], after: &[PortCount]) -> Vec<Option<u64>> {
    let since = |of: fn(&PortCount) -> Option<u64>, port: usize| {
        let before = before.get(port).map_or(Some(0), of);
        Some(of(&after[port])?.saturating_sub(before?))
    };
    let ports: Vec<usize> = plan.ports().map(|(end, _)| end.node).collect();
    let row = |(port, node): (usize, &usize)| {
        let own = since(|count| count.drops, port)?;
        let unrouted = since(|count| Some(count.unrouted), port)?;
        if !after[port].was_cut || unrouted == 0 {
            return Some(own);
        }
        let cut = ports.iter().zip(after).filter(|(of, count)| *of == node && count.was_cut).count();
        (cut == 1).then_some(own + unrouted)
    };
    ports.iter().enumerate().map(row).collect()
}
