//! The deadlock detector: a circle of links each of which is paused because of packets that wait for the next.

use crate::{partition::Partition, plan::Plan};
use anabranch_topology::LinkId;
use std::collections::BTreeMap;

/// A circle of paused links, for people.
pub(crate) fn deadlock(plan: &Plan, partitions: &[Partition<'_>]) -> Option<String> {
    if !plan.fabric.pfc {
        return None;
    }
    // Link l waits for link m where l is paused and a packet that came by l waits at m, which is paused too.
    let mut waits: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let ports = |link: u32| &partitions[usize::from(plan.owner_of_link(link))].ports;
    let paused = |link: u32| ports(link).paused(plan.port_of(link)) != 0;
    let switches = (0..plan.links.len() as u32).filter(|&link| plan.links[link as usize].from >= plan.hosts);
    for link in switches.filter(|&link| paused(link)) {
        let ports = ports(link);
        for id in ports.queues(plan.port_of(link)).flat_map(|queue| queue.iter(&ports.packets)) {
            if let Some(came_by) = ports.came_by(id).filter(|&l| l != u32::MAX && paused(l)) {
                let list = waits.entry(came_by).or_default();
                if !list.contains(&link) {
                    list.push(link);
                }
            }
        }
    }
    let circle = find_circle(&waits)?;
    let names: Vec<String> = circle.iter().map(|&l| plan.topology.link_name(LinkId(l))).collect();
    Some(format!("PFC deadlock: {} wait for each other in a circle", names.join(", ")))
}

/// A circle in a graph given by its edges.
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

    #[test]
    fn circles_are_found_and_only_they() {
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
