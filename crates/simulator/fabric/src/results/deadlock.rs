//! Deadlock detector: finds a circle of links, each paused because of packets that wait for the next.

use crate::{partition::Partition, plan::Plan};
use anabranch_topology::LinkId;
use std::collections::BTreeMap;

/// Returns the links of a circle that cannot be resolved, if any.
pub(crate) fn deadlock(plan: &Plan, partitions: &[Partition<'_>]) -> Vec<LinkId> {
    if !plan.fabric.pfc {
        return Vec::new();
    }
    let ports = |link: u32| &partitions[usize::from(plan.owner_of_link(link))].cx.ports;
    let paused = |link: u32| ports(link).port(plan.port_of(link)).paused;
    // Link l waits for link m if l is paused and a packet that came by l waits at m; `None`: at a port that is not paused.
    let mut waits: BTreeMap<u32, Vec<Option<u32>>> = BTreeMap::new();
    for link in (0..plan.links.len() as u32).filter(|&link| plan.links[link as usize].from >= plan.hosts) {
        let (queues, stopped) = (&ports(link).queues, paused(link));
        // Control packets come first and are never paused.
        for (place, queue) in queues.of(plan.port_of(link)).enumerate() {
            let at = (place > 0 && stopped & 1 << (place - 1) != 0).then_some(link);
            for came_by in queue.iter(&queues.packets).filter_map(|id| queues.buffers.came_by(id)) {
                if came_by != u32::MAX && plan.links[came_by as usize].from >= plan.hosts && paused(came_by) != 0 {
                    let list = waits.entry(came_by).or_default();
                    if !list.contains(&at) {
                        list.push(at);
                    }
                }
            }
        }
    }
    find_circle(&stuck(waits)).unwrap_or_default().into_iter().map(LinkId).collect()
}

/// Returns the part of `waits` that can never proceed: links whose packets all wait for links that also remain.
fn stuck(mut waits: BTreeMap<u32, Vec<Option<u32>>>) -> BTreeMap<u32, Vec<u32>> {
    loop {
        let stays = |list: &[Option<u32>]| list.iter().all(|at| at.is_some_and(|link| waits.contains_key(&link)));
        let free: Vec<u32> = waits.iter().filter(|(_, list)| !stays(list)).map(|(link, _)| *link).collect();
        if free.is_empty() {
            break;
        }
        free.iter().for_each(|link| drop(waits.remove(link)));
    }
    waits.into_iter().map(|(link, list)| (link, list.into_iter().flatten().collect())).collect()
}

fn find_circle(edges: &BTreeMap<u32, Vec<u32>>) -> Option<Vec<u32>> {
    let mut done: BTreeMap<u32, bool> = BTreeMap::new();
    for &start in edges.keys() {
        let mut path: Vec<(u32, usize)> = vec![(start, 0)];
        if done.contains_key(&start) {
            continue;
        }
        done.insert(start, false);
        while let Some((at, next)) = path.last_mut() {
            let Some(&to) = edges.get(at).and_then(|list| list.get(*next)) else {
                done.insert(*at, true);
                path.pop();
                continue;
            };
            *next += 1;
            match done.get(&to) {
                Some(true) => {}
                Some(false) => {
                    let from = path.iter().position(|(node, _)| *node == to)?;
                    return Some(path[from..].iter().map(|(node, _)| *node).collect());
                }
                None => {
                    done.insert(to, false);
                    path.push((to, 0));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 and 2 wait for each other, but a packet of 2 also waits at a port that proceeds; 3 and 4 cannot proceed.
    #[test]
    fn progressing_pauses_are_no_deadlock() {
        let waits = |more: Option<u32>| {
            [(1, vec![Some(2)]), (2, vec![Some(1), more]), (3, vec![Some(4)]), (4, vec![Some(3)]), (5, vec![Some(1)])]
        };
        assert_eq!(stuck(waits(None).into()).keys().copied().collect::<Vec<_>>(), [3, 4]);
        assert_eq!(stuck(waits(Some(3)).into()).keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        // 7 is paused but waits for no link.
        assert!(stuck([(6, vec![Some(7)])].into()).is_empty());
    }

    #[test]
    fn only_cyclic_waits_are_found() {
        let graph = |edges: &[(u32, u32)]| {
            let mut map: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
            edges.iter().for_each(|&(a, b)| map.entry(a).or_default().push(b));
            map
        };
        assert_eq!(find_circle(&graph(&[(1, 2), (2, 3), (1, 3), (3, 4)])), None);
        assert_eq!(find_circle(&graph(&[(1, 2), (2, 3), (3, 4), (4, 2)])), Some(vec![2, 3, 4]));
        assert_eq!(find_circle(&graph(&[(7, 7)])), Some(vec![7]));
    }
}
