//! PFC: pause frames, what they stop, and the circles in which pauses can wait for each other.

use crate::{
    buffer::Guest,
    order,
    packet::{Kind, Packet},
    partition::Partition,
    plan::Plan,
    port::NIC,
    wires::Wires,
};
use anabranch_engine::Event;
use anabranch_topology::LinkId;
use std::collections::BTreeMap;

/// When the pauses of the ports end, where they end by themselves; empty without PFC.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    until: Vec<u64>,
}

impl Pauses {
    pub(crate) fn new(plan: &Plan) -> Self {
        Pauses { until: vec![0; if plan.fabric.pfc { plan.links.len() * plan.fabric.classes } else { 0 }] }
    }
}

impl Wires {
    /// A packet has been admitted: its sender is paused if that is due. `passing` bytes leave at once and are not in the
    /// buffer's books.
    pub(crate) fn check_pause(&mut self, plan: &Plan, guest: &Guest, passing: u32, now: u64) {
        let Some(shared) = &plan.shared else { return };
        let Guest { switch, ingress, class, .. } = *guest;
        if !self.buffers.pauses(shared, switch, ingress, class, passing) {
            return;
        }
        let already = self.buffers.set_paused(ingress, class, true);
        // A pause that ends by itself is said again with every packet.
        if !already || plan.fabric.pfc_pause.is_some() {
            self.send_pause(plan, ingress, class, true, now);
        }
    }

    /// Tells the sender behind `ingress` to pause or to go on.
    pub(crate) fn send_pause(&mut self, plan: &Plan, ingress: u32, class: u8, pause: bool, now: u64) {
        let frame = Packet {
            psn: u64::from(pause),
            tag: ingress,
            class,
            size: plan.fabric.pfc_frame,
            kind: Kind::Pause,
            ..Packet::default()
        };
        self.totals.pause_frames += u64::from(pause);
        self.born_control.add(&frame);
        let id = self.packets.insert(frame);
        self.enqueue(plan, LinkId(ingress).reverse().0, id, now, u32::MAX);
    }

    /// Lifts a pause of `link` at `now`; the port, worked out up to then, may go on from there.
    fn unpause(&mut self, link: u32, class: u8, now: u64) {
        let port = &mut self.ports[link as usize];
        if port.paused & 1 << class != 0 {
            port.paused &= !(1 << class);
            port.busy_until = port.busy_until.max(now);
        }
    }
}

impl Partition<'_> {
    /// A pause frame has reached the node that sends over the link it speaks of.
    pub(crate) fn pause_arrival(&mut self, id: u32, now: u64) {
        let frame = self.wires.packets[id];
        self.wires.packets.remove(id);
        self.delivered[4].add(&frame);
        let (link, class) = (frame.tag, frame.class);
        self.settle(link, now + 1);
        if frame.psn == 0 {
            self.wires.unpause(link, class, now);
            self.go_on(link, now);
            return;
        }
        self.wires.ports[link as usize].paused |= 1 << class;
        self.wires.counters[link as usize].pauses += 1;
        if let Some(pause) = self.plan.fabric.pfc_pause {
            let index = link * self.plan.fabric.classes as u32 + u32::from(class);
            self.wires.pauses.until[index as usize] = now + pause;
            let order = order::EXPIRY | self.plan.links[link as usize].rank;
            self.wires.wheel.push(Event { time: now + pause, order, payload: index });
        }
    }

    /// A pause ends by itself, unless it was renewed.
    pub(crate) fn pause_expires(&mut self, index: u32, now: u64) {
        if self.wires.pauses.until[index as usize] != now {
            return;
        }
        let classes = self.plan.fabric.classes as u32;
        let link = index / classes;
        self.settle(link, now + 1);
        self.wires.unpause(link, (index % classes) as u8, now);
        self.go_on(link, now);
    }

    /// A port that was paused works on.
    fn go_on(&mut self, link: u32, now: u64) {
        if self.wires.ports[link as usize].flags & NIC != 0 {
            let host = self.plan.links[link as usize].from;
            self.nic_catch_up(host, now);
            self.nic_kick(host, now);
        } else {
            self.wires.serve_now(self.plan, link, now);
        }
    }
}

/// The deadlock detector: a circle of links each of which is paused because of packets that wait for the next.
pub fn deadlock(plan: &Plan, partitions: &[Partition<'_>]) -> Option<String> {
    if !plan.fabric.pfc {
        return None;
    }
    // Link l waits for link m where l is paused and a packet that came by l waits at m, which is paused too.
    let mut waits: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let paused = |link: u32| {
        let owner = plan.owner[plan.links[link as usize].from as usize];
        partitions[owner as usize].wires.ports[link as usize].paused != 0
    };
    for partition in partitions {
        for link in plan.links_of(partition.me).filter(|&l| paused(l) && plan.links[l as usize].from >= plan.hosts) {
            for id in partition.wires.queued(plan, link) {
                if let Some(came_by) = partition.wires.buffers.came_by(id).filter(|&l| l != u32::MAX && paused(l)) {
                    let list = waits.entry(came_by).or_default();
                    if !list.contains(&link) {
                        list.push(link);
                    }
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
