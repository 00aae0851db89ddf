//! Dragonfly: groups of fully meshed switches, one global link between any two groups.
//!
//! Link j of switch i of a group is the group's global port k = i*h + j. An arrangement specifies the group that a port leads to,
//! and the port there. In a smaller Dragonfly the ports beyond the number of other groups are unused.

use super::grouped::{self, Cabling, MAX_SWITCHES};
use super::kind::{Kind, Scale, counts, few_cables, not_too_many, positive};
use crate::{Guidance, TopologyError, graph::Graph};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "dragonfly",
    summary: "fully meshed groups of switches, one global link between any two groups",
    source: "Spritz §V-A; specification 9.1",
    description: "",
};

choices! {
    /// Which groups the global ports of a group lead to.
    pub enum Arrangement {
        /// Port k leads to group g + k + 1.
        Relative = "relative",
        /// Port k leads to the k-th other group in the order of their numbers.
        Absolute = "absolute",
        /// Port k leads to group g - k - 1.
        Palmtree = "palmtree",
        /// Ports lead to groups g + 1, g - 1, g + 2, g - 2 and so on.
        Circulant = "circulant",
    }
}

parameters! {
    /// Dragonfly: groups of `a` fully meshed switches with `p` hosts and `h` global links each, one link between any two
    /// groups.
    pub struct DragonflyParameters {
        /// Hosts at each switch.
        p: u64 = 4, source "Spritz §V-A; specification 9.1";
        /// Switches in each group.
        a: u64 = 8, source "Spritz §V-A; specification 9.1";
        /// Global links of each switch.
        h: u64 = 4, source "Spritz §V-A; specification 9.1";
        /// Number of groups; "auto": as many as there can be, a * h + 1.
        groups: Auto<u64> = Auto::Auto, source "specification 9.1";
        /// Which groups the global ports of a group lead to.
        arrangement: Arrangement = Arrangement::Relative, source "specification 9.1: the wiring of Spritz's artifact", Expert;
        /// Rate of every link.
        link_rate: Rate = Rate::gbps(400), source "Spritz §V-A";
        /// Rate of links to hosts; "": as `link_rate`.
        host_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links inside a group; "": as `link_rate`.
        local_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Rate of links between groups; "": as `link_rate`.
        global_link_rate: Option<Rate> = None, source "ours", Expert;
        /// Delay of links to hosts.
        host_link_delay: Time = Time::from_ns(25), source "specification 9.5: what Spritz Table II follows from", Expert;
        /// Delay of links inside a group.
        local_link_delay: Time = Time::from_ns(25), source "Spritz Table I; specification 9.4", Expert;
        /// Delay of links between groups.
        global_link_delay: Time = Time::from_ns(500), source "Spritz Table I; specification 9.4", Expert;
        /// Time a packet spends in a switch before it reaches its output port.
        switch_latency: Time = Time::from_ns(500), source "specification 9.5", Expert;
    }
}

impl Arrangement {
    /// Returns the group and its port that port `k` of `group` leads to, of `groups` groups. `k` is below `groups` - 1.
    fn other_end(self, groups: u32, group: u32, k: u32) -> (u32, u32) {
        let opposite = groups - 2 - k;
        match self {
            Arrangement::Relative => ((group + k + 1) % groups, opposite),
            Arrangement::Palmtree => ((group + groups - k - 1) % groups, opposite),
            Arrangement::Absolute => {
                let other = if k < group { k } else { k + 1 };
                (other, if group < other { group } else { group - 1 })
            }
            Arrangement::Circulant => {
                let away = k / 2 + 1;
                let other = if k.is_multiple_of(2) { group + away } else { group + groups - away };
                // With an even number of groups the last port's offset is its own opposite.
                (other % groups, if k ^ 1 < groups - 1 { k ^ 1 } else { k })
            }
        }
    }
}

struct Shape {
    p: u32,
    a: u32,
    h: u32,
    groups: u32,
    hosts: u64,
    switches: u64,
    cables: u64,
}

impl Shape {
    fn scale(&self) -> Scale {
        let Shape { groups, hosts, switches, cables, .. } = *self;
        let guide_bytes = Guidance::Dragonfly.table_bytes(switches, groups.into());
        Scale { hosts, switches, leaves: switches, cables: hosts + cables, guide_bytes }
    }
}

impl DragonflyParameters {
    fn shape(&self) -> Result<Shape, TopologyError> {
        counts(&[("p", self.p), ("a", self.a), ("h", self.h)])?;
        let (a, most) = (self.a, self.a * self.h + 1);
        let (groups, key) = match self.groups {
            Auto::Auto => (most, "a"),
            Auto::Value(groups) => (groups, "groups"),
        };
        positive("groups", groups)?;
        if groups > most {
            let message = format!(
                "`groups` is {groups}; {a} switches with {} global links each reach {} other groups, so at most {most} \
                 are allowed",
                self.h,
                most - 1
            );
            return Err(TopologyError::at("groups", message));
        }
        let switches = groups.saturating_mul(a);
        if switches > MAX_SWITCHES {
            let message = format!("`{key}` makes {switches} switches; at most {MAX_SWITCHES} are allowed");
            return Err(TopologyError::at(key, message));
        }
        let hosts = not_too_many("p", switches * self.p)?.into();
        let cables = switches * (a - 1) / 2 + groups * (groups - 1) / 2;
        few_cables("a", cables)?;
        let [p, a, h, groups] = [self.p, a, self.h, groups].map(|count| count as u32);
        Ok(Shape { p, a, h, groups, hosts, switches, cables })
    }
}

impl Kind for DragonflyParameters {
    fn scale(&self) -> Option<Scale> {
        Some(self.shape().ok()?.scale())
    }

    fn build(&self, _: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Graph, TopologyError> {
        let Shape { p, a, h, groups, cables, .. } = self.shape()?;
        let cabling = Cabling::checked(
            self.link_rate,
            [self.host_link_rate, self.local_link_rate, self.global_link_rate],
            [self.host_link_delay, self.local_link_delay, self.global_link_delay],
            self.switch_latency,
        )?;
        let mut edges = Vec::with_capacity(cables as usize);
        for group in 0..groups {
            let switch = |i: u32| group * a + i;
            edges.extend((0..a).flat_map(|i| (i + 1..a).map(move |j| (switch(i), switch(j)))));
            for k in 0..groups - 1 {
                let (other, port) = self.arrangement.other_end(groups, group, k);
                if group < other {
                    edges.push((switch(k / h), other * a + port / h));
                }
            }
        }
        grouped::build(groups, a, p, edges, &cabling, Guidance::Dragonfly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arrangement; 4] =
        [Arrangement::Relative, Arrangement::Absolute, Arrangement::Palmtree, Arrangement::Circulant];

    /// Both groups of a link agree on it, and every group is reached by one port.
    #[test]
    fn arrangements_are_involutions() {
        for arrangement in ALL {
            for groups in 1..=40 {
                for group in 0..groups {
                    let ends: Vec<_> = (0..groups - 1).map(|k| arrangement.other_end(groups, group, k)).collect();
                    for (k, (other, port)) in ends.iter().enumerate() {
                        assert!(*port < groups - 1);
                        let back = arrangement.other_end(groups, *other, *port);
                        assert_eq!(back, (group, k as u32), "{arrangement:?}, {groups} groups");
                    }
                    let mut others: Vec<u32> = ends.iter().map(|e| e.0).collect();
                    others.sort_unstable();
                    assert!(others.into_iter().eq((0..groups).filter(|g| *g != group)));
                }
            }
        }
    }

    /// Specification 9.1, of 33 groups: the neighbours of group 5 by each rule.
    #[test]
    fn arrangements_by_hand() {
        let to = |arrangement: Arrangement, k| arrangement.other_end(33, 5, k).0;
        assert_eq!([0, 1, 26, 27, 31].map(|k| to(Arrangement::Relative, k)), [6, 7, 32, 0, 4]);
        assert_eq!([0, 4, 5, 31].map(|k| to(Arrangement::Absolute, k)), [0, 4, 6, 32]);
        assert_eq!([0, 4, 5, 31].map(|k| to(Arrangement::Palmtree, k)), [4, 0, 32, 6]);
        assert_eq!([0, 1, 2, 3, 11].map(|k| to(Arrangement::Circulant, k)), [6, 4, 7, 3, 32]);
    }
}
