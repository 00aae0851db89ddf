//! Microbenchmark of Spritz (Fig. 5, Table III; construction of specification 12.4): one monitored flow between two groups of
//! a Dragonfly, while all but a few groups queue at their gateway to the destination's group.

use super::{WorkloadKind, adversarial::hosts_by_group};
use crate::{
    Start, WorkloadError,
    flow::plain,
    traffic::{Label, Traffic},
    view::{Context, LowDiameter},
};
use anabranch_random::{Stream, name_key};
use anabranch_settings::{About, Auto, choices, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "microbenchmark",
    summary: "one monitored flow across a Dragonfly whose groups are congested towards its destination, but for a few",
    source: "Spritz §V-B, Fig. 5 and Table III; specification 12.4",
    description: "A flow leads from a host of group S to a host of group D. In every other group but `free_groups` \
        random ones, S among them, all hosts send long flows towards the switch that owns the link to D, so that \
        detours through these groups queue. The long flows begin `lead` earlier; they are a part of their own, \
        named after the workload with `-background`, and are not measured.",
};

choices! {
    /// Destination of the long flows.
    pub enum Background {
        /// The hosts of the gateway. They receive less than the local links deliver: the queues are at the hosts.
        Gateway = "gateway",
        /// Through the gateway: to its hosts and over its other global links, in turn, so the local links into it are
        /// as busy as its outgoing links.
        Through = "through",
        /// The hosts of the gateway, from hosts of other congested groups: queues are before the gateway's global links in
        /// and at its hosts.
        OtherGroups = "other-groups",
    }
}

choices! {
    /// Flows that a workload of this kind generates.
    pub enum Part {
        /// All; the long flows are a part of their own in the results.
        Both = "both",
        /// The monitored flow.
        Monitored = "monitored",
        /// The corresponding long flows, so that they can have a load balancer of their own.
        Background = "background",
    }
}

parameters! {
    /// The microbenchmark of Spritz.
    pub struct MicrobenchmarkParameters {
        /// Bytes of the monitored flow.
        size: Bytes = Bytes(4 << 20), source "Spritz §V-B: 4 MiB";
        /// Bytes of each long flow.
        background_size: Bytes = Bytes(64 << 20), source "ours: outlasts the monitored flow", Expert;
        /// Flows to generate. Two workloads with the same keys and seed, one for each part, are consistent.
        part: Part = Part::Both, source "ours", Expert;
        /// Destination of the long flows.
        background: Background = Background::Through, source "ours: the paper's flows are not published; `gateway` is specification 12.4", Reading;
        /// Long flows that each host sends to its destination.
        flows_per_host: u32 = 1, source "ours: not given", Expert;
        /// Groups without congestion, besides that of the destination.
        free_groups: u32 = 3, source "specification 12.4", Expert;
        /// Seed that draws groups and hosts; auto: that of the run. With a number all seeds of a comparison have the
        /// same flows.
        placement_seed: Auto<u64> = Auto::Auto, source "ours: the paper's groups are not published", Expert;
        /// Time by which the long flows start before the monitored flow.
        lead: Time = Time::from_us(20), source "specification 12.4", Expert;
        /// Group of the monitored flow's sender; auto: a random one.
        source_group: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Group of the monitored flow's receiver; auto: a random one.
        destination_group: Auto<u32> = Auto::Auto, source "ours", Expert;
        /// Start time of the long flows.
        start: Time = Time::ZERO, source "ours", Expert;
    }
}

impl MicrobenchmarkParameters {
    fn groups(&self, groups: u32, stream: &mut Stream) -> Result<(u32, u32, Vec<u32>), WorkloadError> {
        let fits = u64::from(self.free_groups) + 2 <= u64::from(groups);
        let most = format!("at most {}: {groups} groups without those of the two hosts", groups.saturating_sub(2));
        WorkloadError::unless(fits, "free_groups", self.free_groups, &most)?;
        let last = format!("a group from 0 to {}", groups - 1);
        let given = [("source_group", self.source_group), ("destination_group", self.destination_group)];
        for (key, group) in given {
            if let Auto::Value(group) = group {
                WorkloadError::unless(group < groups, key, group, &last)?;
            }
        }
        let [(_, source), (_, destination)] = given;
        if source == destination && source != Auto::Auto {
            let message = "found the group of the sender, expected another one";
            return Err(WorkloadError::of_key("destination_group", message));
        }
        let mut order: Vec<u32> = (0..groups).collect();
        stream.shuffle(&mut order);
        // Given groups leave the random order; the others are its first.
        order.retain(|group| ![source, destination].contains(&Auto::Value(*group)));
        let mut order = order.into_iter();
        let mut take = |given: Auto<u32>| given.value().or_else(|| order.next());
        let (Some(source), Some(destination)) = (take(source), take(destination)) else {
            return Err(WorkloadError::of_key("free_groups", "fewer than two groups"));
        };
        let mut congested: Vec<u32> = order.skip(self.free_groups as usize).chain([source]).collect();
        congested.sort_unstable();
        Ok((source, destination, congested))
    }
}

impl WorkloadKind for MicrobenchmarkParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        WorkloadError::unless(self.background_size.0 > 0, "background_size", self.background_size, "1B or more")?;
        let many = (1..=4096).contains(&self.flows_per_host);
        WorkloadError::unless(many, "flows_per_host", self.flows_per_host, "from 1 to 4096")?;
        let end = self.start.ps().checked_add(self.lead.ps());
        WorkloadError::unless(end.is_some(), "lead", self.lead, "start and lead within 213 days")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let only = "\"dragonfly\"";
        let network: &dyn LowDiameter = context.low_diameter(ABOUT.name, only)?;
        if !network.is_dragonfly() {
            let message = "where groups have several links to each other, expected a [topology] of kind";
            return Err(WorkloadError::of_key("kind", format!("found \"{}\" {message} {only}", ABOUT.name)));
        }
        let view = context.view;
        // Keyed by the kind, not by the name: the two parts must agree.
        let seed = self.placement_seed.value().unwrap_or(context.seed);
        let mut stream = Stream::keyed(seed, name_key(ABOUT.name), "workload microbenchmark");
        let (source, destination, congested) = self.groups(network.groups(), &mut stream)?;
        let hosts = hosts_by_group(view, network.groups());
        let gateway = |group| {
            network.gateway_leaf(group, destination).ok_or_else(|| {
                let message = format!("no link leads from group {group} to group {destination}");
                WorkloadError::of_key("destination_group", message)
            })
        };
        // A sender at the gateway itself would avoid the congestion of its group.
        let gateway_of_source = gateway(source)?;
        let (at_gateway, elsewhere): (Vec<u32>, Vec<u32>) =
            hosts[source as usize].iter().partition(|&&host| view.leaf_of[host as usize] == gateway_of_source);
        let from = stream.pick(&elsewhere).or_else(|| stream.pick(&at_gateway)).copied();
        let to = stream.pick(&hosts[destination as usize]).copied();
        let Some((from, to)) = from.zip(to) else {
            return Err(WorkloadError::of_key("kind", "the topology has groups without hosts"));
        };

        let labels = vec![Label::default(), Label { name: format!("{}-background", context.name), measured: false }];
        let mut traffic = Traffic { labels, ..Traffic::default() };
        if self.part != Part::Background {
            traffic.flows.push(plain(from, to, self.size.0, Start::At(self.start + self.lead)));
        }
        if self.part == Part::Monitored {
            return Ok(traffic);
        }
        for (number, &group) in congested.iter().enumerate() {
            let leaf = gateway(group)?;
            let (mut to, senders): (Vec<u32>, Vec<u32>) =
                hosts[group as usize].iter().partition(|&&host| view.leaf_of[host as usize] == leaf);
            if self.background == Background::Through {
                // For each other global link of the gateway: a host of the remote switch, in a congested group.
                for &other in congested.iter().filter(|&&other| other != group) {
                    if network.gateway_leaf(group, other) == Some(leaf) {
                        let beyond = network.gateway_leaf(other, group);
                        let behind = hosts[other as usize].iter();
                        let mut behind =
                            behind.filter(|&&host| Some(view.leaf_of[host as usize]) == beyond && host != from);
                        to.extend(behind.next());
                    }
                }
            }
            let mut senders = senders;
            if self.background == Background::OtherGroups {
                // Hosts of a group take the other groups in turn: every host sends to one.
                let turns = congested.len() - 1;
                senders.clear();
                for turn in 0..turns {
                    let other = congested[(number + 1 + turn) % congested.len()];
                    senders.extend(hosts[other as usize].iter().skip(turn).step_by(turns));
                }
            }
            // The monitored sender's own link remains free.
            for (&src, &dst) in senders.iter().zip(to.iter().cycle()).filter(|(src, _)| **src != from) {
                let mut flow = plain(src, dst, self.background_size.0, Start::At(self.start));
                flow.workload = u16::from(self.part == Part::Both);
                traffic.flows.extend(std::iter::repeat_n(flow, self.flows_per_host as usize));
            }
        }
        Ok(traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{
        adversarial::tests::low_diameter,
        testing::{of, traffic, view},
    };
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn all_groups_but_the_free_ones_queue_at_their_gateway() {
        // Nine groups of four leaves of two hosts; leaf (d - g - 1) mod 9 mod 4 of group g leads to group d.
        let hosts = low_diameter(9, true);
        let p = MicrobenchmarkParameters { background: Background::Gateway, ..Default::default() };
        let made = traffic(&p, &hosts, "").unwrap();
        let names: Vec<_> = made.labels.iter().map(|label| (label.name.as_str(), label.measured)).collect();
        assert_eq!(names[1], ("test-background", false));
        let monitored = &made.flows[0];
        let (source, destination) = (monitored.src / 8, monitored.dst / 8);
        assert_ne!(source, destination);
        assert_eq!((monitored.size, monitored.start), (4_194_304, Start::At(Time::from_us(20))));
        let gateway = |group: u32| 4 * group + (destination + 9 - group - 1) % 9 % 4;
        assert_ne!(monitored.src / 2, gateway(source));
        // Without D and 3 free groups 5 of 9 are left; in each 6 of 8 hosts send, but for the monitored sender.
        assert_eq!(made.flows.len(), 1 + 5 * 6 - 1);
        let mut onto: BTreeMap<u32, u32> = BTreeMap::new();
        let mut groups = BTreeSet::new();
        for flow in &made.flows[1..] {
            assert_eq!((flow.workload, flow.size, flow.start), (1, 64 << 20, Start::At(Time::ZERO)));
            let group = flow.src / 8;
            groups.insert(group);
            assert!(flow.dst / 2 == gateway(group) && flow.src / 2 != gateway(group) && flow.src != monitored.src);
            *onto.entry(flow.src / 2).or_default() += 1;
        }
        assert!(groups.len() == 5 && groups.contains(&source) && !groups.contains(&destination));
        // Every local link into a gateway carries two flows, one where the monitored one joins.
        assert_eq!(onto.len(), 5 * 3);
        assert!(onto.iter().all(|(&leaf, &flows)| flows == if leaf == monitored.src / 2 { 1 } else { 2 }));
    }

    #[test]
    fn long_flows_may_come_from_other_groups() {
        let p = MicrobenchmarkParameters { background: Background::OtherGroups, ..Default::default() };
        let made = traffic(&p, &low_diameter(9, true), "").unwrap();
        let (monitored, long) = (made.flows[0], &made.flows[1..]);
        let destination = monitored.dst / 8;
        let gateway = |group: u32| 4 * group + (destination + 9 - group - 1) % 9 % 4;
        let groups: BTreeSet<u32> = long.iter().map(|flow| flow.src / 8).collect();
        // Every host of the five congested groups but the monitored one sends once, to the gateway of another.
        let senders: BTreeSet<u32> = long.iter().map(|flow| flow.src).collect();
        assert_eq!((groups.len(), senders.len(), long.len()), (5, 5 * 8 - 1, 5 * 8 - 1));
        assert!(!senders.contains(&monitored.src) && !groups.contains(&destination));
        for flow in long {
            let to = flow.dst / 8;
            assert!(to != flow.src / 8 && groups.contains(&to) && flow.dst / 2 == gateway(to));
        }
        // Eight hosts of each group, two to each of the four others.
        let onto = groups.iter().map(|group| long.iter().filter(|flow| flow.dst / 8 == *group).count());
        assert!(onto.clone().all(|flows| flows == 8 || flows == 7), "{:?}", onto.collect::<Vec<_>>());
    }

    #[test]
    fn long_flows_may_go_through_the_gateway() {
        // All nine groups but D congested: each gateway has its two hosts and one more global link, whose group may be D.
        let p = of::<MicrobenchmarkParameters>("free_groups=0");
        let made = traffic(&p, &low_diameter(9, true), "").unwrap();
        let destination = made.flows[0].dst / 8;
        let mut leave = 0;
        for flow in &made.flows[1..] {
            assert_ne!(flow.dst / 8, destination);
            leave += usize::from(flow.src / 8 != flow.dst / 8);
        }
        // Six senders per group, in turn to two hosts and, where there is one, a third behind the other link.
        assert!(leave > 0 && leave <= 8 * 2, "{leave}");
        assert_eq!(made.flows.len(), 1 + 8 * 6 - 1);
    }

    #[test]
    fn the_parts_are_the_whole() {
        let hosts = low_diameter(9, true);
        let of = |part| traffic(&MicrobenchmarkParameters { part, ..Default::default() }, &hosts, "").unwrap().flows;
        let pairs = |flows: &[crate::Flow]| flows.iter().map(|f| (f.src, f.dst, f.size)).collect::<Vec<_>>();
        let (one, rest) = (pairs(&of(Part::Monitored)), pairs(&of(Part::Background)));
        assert_eq!([one, rest].concat(), pairs(&of(Part::Both)));
    }

    #[test]
    fn the_draw_can_be_held_over_seeds() {
        // Test runs have seed 1.
        let flows = |seed: &str| {
            let kind = of::<MicrobenchmarkParameters>(&format!("placement_seed={seed}"));
            traffic(&kind, &low_diameter(9, true), "")
                .unwrap()
                .flows
                .iter()
                .map(|flow| (flow.src, flow.dst))
                .collect::<Vec<_>>()
        };
        assert_eq!(flows("1"), flows("auto"));
        assert_ne!(flows("2"), flows("auto"));
    }

    #[test]
    fn groups_can_be_given() {
        for seed_free in 0..=7 {
            let p = MicrobenchmarkParameters {
                source_group: Auto::Value(4),
                destination_group: Auto::Value(2),
                free_groups: seed_free,
                ..Default::default()
            };
            let made = traffic(&p, &low_diameter(9, true), "").unwrap();
            assert_eq!((made.flows[0].src / 8, made.flows[0].dst / 8), (4, 2));
            assert_eq!(made.flows.len(), 1 + (8 - seed_free as usize) * 6 - 1);
        }
    }

    #[test]
    fn errors_are_reported() {
        let base = MicrobenchmarkParameters::default;
        let at = |group| Auto::Value(group);
        for (p, hosts, key, part) in [
            (of::<MicrobenchmarkParameters>("size=0B"), low_diameter(9, true), "size", "1B"),
            (
                MicrobenchmarkParameters { lead: Time::MAX, start: Time::from_us(1), ..base() },
                view(4, 2, 1),
                "lead",
                "213",
            ),
            (base(), view(16, 4, 2), "kind", "a [topology] of kind \"dragonfly\""),
            (base(), low_diameter(9, false), "kind", "several links"),
            (base(), low_diameter(4, true), "free_groups", "at most 2"),
            (
                MicrobenchmarkParameters { source_group: at(9), ..base() },
                low_diameter(9, true),
                "source_group",
                "0 to 8",
            ),
            (
                MicrobenchmarkParameters { source_group: at(3), destination_group: at(3), ..base() },
                low_diameter(9, true),
                "destination_group",
                "expected another",
            ),
        ] {
            let error = traffic(&p, &hosts, "").unwrap_err();
            assert_eq!(error.key.as_deref(), Some(key), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
