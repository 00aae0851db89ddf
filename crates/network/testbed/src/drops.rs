//! Drop counts per link.

use crate::{PortCount, TestbedPlan};

/// Returns the packets that each port dropped between two readings of the counters, in the order of the scenario's
/// directed links; `None` if unknown.
///
/// The kernel counts packets without a route per switch. They are attributed to the port that was cut; unknown if there
/// are several.
pub fn dropped(plan: &TestbedPlan, before: &[PortCount], after: &[PortCount]) -> Vec<Option<u64>> {
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
