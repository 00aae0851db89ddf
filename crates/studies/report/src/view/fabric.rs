//! Reconstruction of the network from the rows of its links. They contain both nodes, the tier and the direction of
//! every link, which define the topology: no scenario is required, and directories of other versions can be shown.

use anabranch_results::{Frame, ReportError};
use anabranch_units::Time;
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// 0 for a host, 1 for the switches that hosts attach to, and so on.
    pub(crate) height: u32,
    /// Group of a Dragonfly or Slim Fly; a host has the group of its switch.
    pub(crate) group: Option<u32>,
}

/// A directed link, in the order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Index into [`Fabric::classes`].
    pub(crate) class: u32,
    /// Index among the parallel links between the same nodes, from 0.
    pub(crate) parallel: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Time,
    /// `down`, `up`, `100Gbps`, `loses 1 % of packets`.
    pub(crate) what: String,
    pub(crate) links: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Fabric {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    /// Classes of links, such as `host`, `tier0-1`, `local` and `global`, in the order in which they appear.
    pub(crate) classes: Vec<String>,
    pub(crate) faults: Vec<Fault>,
}

impl Fabric {
    /// Returns the node of each host, by its number.
    pub(crate) fn hosts(&self) -> BTreeMap<u64, u64> {
        let number = |name: &str| name.strip_prefix("host")?.parse().ok();
        (0..).zip(&self.nodes).filter_map(|(node, of)| Some((number(&of.name)?, node))).collect()
    }

    pub(crate) fn of(dir: &Path, links: &Frame) -> Result<Self, ReportError> {
        let wrong = |found: String| ReportError::content(dir, found, "repeat the run; nothing was written");
        let needed = ["from", "to", "tier", "direction"];
        if let Some(lacks) = needed.iter().find(|name| links.missing().iter().any(|missing| missing == *name)) {
            return Err(wrong(format!("the rows of `links` have no column `{lacks}`, so there is no network to draw")));
        }
        let [from, to, tier, direction] = needed.map(|name| links.texts(name));
        let mut fabric = Fabric::default();
        let mut numbers: HashMap<&str, u32> = HashMap::new();
        let mut parallel: HashMap<(u32, u32), u32> = HashMap::new();
        let mut faults: BTreeMap<(Time, String), Vec<u32>> = BTreeMap::new();
        for row in 0..links.rows() {
            let heights = heights(&tier[row], &direction[row]).ok_or_else(|| {
                let (from, to, tier, direction) = (&from[row], &to[row], &tier[row], &direction[row]);
                wrong(format!("the link {from}->{to} is of tier `{tier}`, direction `{direction}`, which this version does not know"))
            })?;
            let ends = [(&from[row], heights.0), (&to[row], heights.1)].map(|(name, height)| {
                *numbers.entry(name).or_insert_with(|| {
                    fabric.nodes.push(Node { name: name.clone(), height, group: None });
                    fabric.nodes.len() as u32 - 1
                })
            });
            let class = fabric.classes.iter().position(|class| *class == tier[row]).unwrap_or_else(|| {
                fabric.classes.push(tier[row].clone());
                fabric.classes.len() - 1
            });
            let number = parallel.entry((ends[0], ends[1])).or_default();
            fabric.links.push(Link { from: ends[0], to: ends[1], class: class as u32, parallel: *number });
            *number += 1;
            for event in links.texts("fault").get(row).into_iter().flat_map(|text| text.split("; ")) {
                if let Some((what, at)) = event.rsplit_once(" at ")
                    && let Ok(at) = at.parse()
                {
                    faults.entry((at, what.to_string())).or_default().push(row as u32);
                }
            }
        }
        fabric.faults = faults.into_iter().map(|((at, what), links)| Fault { at, what, links }).collect();
        if fabric.is_grouped() {
            fabric.find_groups();
        }
        Ok(fabric)
    }

    /// Returns `true` if switches form groups rather than tiers.
    pub(crate) fn is_grouped(&self) -> bool {
        self.classes.iter().any(|class| class == "local" || class == "global")
    }

    /// Parallel links are in the order of the rows.
    pub(crate) fn by_ends(&self) -> HashMap<(&str, &str), Vec<u32>> {
        let mut found: HashMap<_, Vec<u32>> = HashMap::new();
        for (number, link) in self.links.iter().enumerate() {
            let [from, to] = [link.from, link.to].map(|node| &*self.nodes[node as usize].name);
            found.entry((from, to)).or_default().push(number as u32);
        }
        found
    }

    /// Finds groups by the names of switches (`sw4.7` is switch 7 of group 4), else by the components that local links connect.
    fn find_groups(&mut self) {
        let named: Vec<Option<u32>> = self.nodes.iter().map(|node| group_in_name(&node.name)).collect();
        let all_named = self.nodes.iter().zip(&named).all(|(node, group)| node.height == 0 || group.is_some());
        let groups = if all_named { named } else { self.joined("local") };
        for (node, group) in self.nodes.iter_mut().zip(groups) {
            node.group = group.filter(|_| node.height > 0);
        }
        for link in 0..self.links.len() {
            let Link { from, to, .. } = self.links[link];
            if self.nodes[from as usize].height == 0 {
                self.nodes[from as usize].group = self.nodes[to as usize].group;
            }
        }
    }

    /// Number of the component of each node in the graph of the links of `class`, in the order of nodes.
    fn joined(&self, class: &str) -> Vec<Option<u32>> {
        let parts = self.parts(|link| self.classes[link.class as usize] == class);
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let mut number = |part: u32| {
            let next = numbers.len() as u32;
            *numbers.entry(part).or_insert(next)
        };
        self.nodes.iter().zip(parts).map(|(node, part)| (node.height > 0).then(|| number(part))).collect()
    }

    /// Lowest node in the component of each node in the graph of the links for which `join` returns `true`.
    pub(crate) fn parts(&self, join: impl Fn(&Link) -> bool) -> Vec<u32> {
        let mut parents: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let root = |parents: &mut Vec<u32>, mut node: u32| {
            while parents[node as usize] != node {
                parents[node as usize] = parents[parents[node as usize] as usize];
                node = parents[node as usize];
            }
            node
        };
        for link in self.links.iter().filter(|link| join(link)) {
            let (a, b) = (root(&mut parents, link.from), root(&mut parents, link.to));
            parents[a.max(b) as usize] = a.min(b);
        }
        (0..self.nodes.len() as u32).map(|node| root(&mut parents, node)).collect()
    }
}

/// Heights of sender and receiver.
fn heights(tier: &str, direction: &str) -> Option<(u32, u32)> {
    let (low, high) = match tier {
        "host" => (0, 1),
        "local" | "global" => return Some((1, 1)),
        _ => {
            let (low, high) = tier.strip_prefix("tier")?.split_once('-')?;
            (low.parse::<u32>().ok()?.checked_add(1)?, high.parse::<u32>().ok()?.checked_add(1)?)
        }
    };
    match direction {
        "up" => Some((low, high)),
        "down" => Some((high, low)),
        _ => None,
    }
}

fn group_in_name(name: &str) -> Option<u32> {
    let (group, number) = name.strip_prefix("sw")?.split_once('.')?;
    number.parse::<u32>().ok()?;
    group.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_tier_and_direction() {
        assert_eq!(heights("host", "up"), Some((0, 1)));
        assert_eq!(heights("host", "down"), Some((1, 0)));
        assert_eq!(heights("tier1-2", "down"), Some((3, 2)));
        assert_eq!(heights("global", "flat"), Some((1, 1)));
        assert_eq!(heights("tier1-2", "sideways"), None);
        assert_eq!(heights("ring", "up"), None);
    }

    #[test]
    fn groups_are_read_from_switch_names() {
        assert_eq!(group_in_name("sw4.7"), Some(4));
        assert_eq!(group_in_name("sw4"), None);
        assert_eq!(group_in_name("host3"), None);
    }
}
