//! The network in words, from the rows of its links, and what in it limits flows under every load balancer.

use crate::{
    comparison::Comparison,
    dataset::{Dataset, LinkPoint},
};
use anabranch_results::numbers::{list, significant_digits_trimmed};
use std::collections::{BTreeMap, BTreeSet};

/// Largest ratio of capacities that counts as none: rates that do not divide evenly.
const EVEN: f64 = 1.02;
/// Utilisation from which the links to hosts limit their flows.
const BUSY: f64 = 0.9;
/// Largest ratio to the bound of a scheme that another could not clearly improve on.
const NEAR_BOUND: f64 = 1.1;

/// What limits flows each of which has one path.
const NO_CHOICE: &str = "No packet crossed a link between switches: every flow stayed at its switch or in its server, so no load \
                         balancer had a choice. Links of hosts and congestion control decide.";

pub(super) struct Fabric<'l> {
    links: &'l [LinkPoint],
    /// Commonest rate per tier: other rates are faults, or cables that are slow by the scenario.
    nominal: BTreeMap<&'l str, u64>,
    /// Number of planes: links of a NIC.
    planes: usize,
}

fn plural(stem: &str, count: usize) -> String {
    let word = match stem {
        "sw" | "" => "switch",
        other => other,
    };
    match (count, word.strip_suffix("f"), word.ends_with("ch")) {
        (1, _, _) => format!("1 {word}"),
        (_, Some(leaf), _) => format!("{count} {leaf}ves"),
        (_, _, true) => format!("{count} {word}es"),
        _ => format!("{count} {word}s"),
    }
}

pub(super) fn rate(bps: u64) -> String {
    format!("{} Gb/s", significant_digits_trimmed(bps as f64 / 1e9, 4))
}

impl<'l> Fabric<'l> {
    pub(super) fn of(links: &'l [LinkPoint]) -> Self {
        let mut counts: BTreeMap<&str, BTreeMap<u64, usize>> = BTreeMap::new();
        for link in links {
            *counts.entry(&link.tier).or_default().entry(link.rate_bps).or_default() += 1;
        }
        let commonest = |rates: &BTreeMap<u64, usize>| {
            rates.iter().max_by_key(|(rate, count)| (**count, **rate)).map(|(rate, _)| *rate)
        };
        let nominal = counts.iter().filter_map(|(tier, rates)| Some((*tier, commonest(rates)?))).collect();
        let mut ports: BTreeMap<&str, usize> = BTreeMap::new();
        links.iter().filter(|link| link.is_nic).for_each(|link| *ports.entry(&link.from).or_default() += 1);
        Fabric { links, nominal, planes: ports.into_values().max().unwrap_or(1) }
    }

    /// Returns a name without its number and its plane: `leaf` of `leaf12` and of `p3.leaf12`, `sw` of `sw3.1`.
    fn stem<'n>(&self, name: &'n str) -> &'n str {
        let in_plane = name.split_once('.').filter(|_| self.planes > 1).map_or(name, |(_, name)| name);
        in_plane.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
    }

    fn switches(&self) -> impl Iterator<Item = &'l LinkPoint> {
        self.links.iter().filter(|link| !link.is_nic)
    }

    /// Kinds of switches with their numbers, in the order of the rows.
    fn kinds(&self) -> Vec<(&'l str, usize)> {
        let (mut kinds, mut seen): (Vec<(&str, usize)>, BTreeSet<&str>) = (vec![], BTreeSet::new());
        for name in self.switches().map(|link| link.from.as_str()).filter(|name| seen.insert(name)) {
            match kinds.iter_mut().find(|(kind, _)| *kind == self.stem(name)) {
                Some((_, count)) => *count += 1,
                None => kinds.push((self.stem(name), 1)),
            }
        }
        kinds
    }

    /// Number of parts that the lowest tier of cables between switches makes, where another tier joins them.
    fn pods(&self) -> usize {
        if !self.links.iter().any(|link| &*link.tier == "tier1-2") {
            return 0;
        }
        let mut part: BTreeMap<&str, &str> = BTreeMap::new();
        fn root<'l>(part: &BTreeMap<&'l str, &'l str>, mut name: &'l str) -> &'l str {
            while let Some(above) = part.get(name).filter(|above| **above != name) {
                name = above;
            }
            name
        }
        for link in self.links.iter().filter(|link| &*link.tier == "tier0-1") {
            let (a, b) = (root(&part, &link.from), root(&part, &link.to));
            part.insert(a, b);
            part.entry(b).or_insert(b);
        }
        part.keys().filter(|name| root(&part, name) == **name).count()
    }

    /// Rate downwards over rate upwards of each kind of switch that has both, least and largest, as built.
    fn oversubscription(&self) -> Vec<(&'l str, f64, f64)> {
        let mut capacity: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for link in self.switches() {
            let (down, up) = capacity.entry(&link.from).or_default();
            let nominal = self.nominal[&*link.tier];
            match &*link.group {
                group if group.ends_with(", up") => *up += nominal,
                group if group.ends_with(", down") || group == "switch to host" => *down += nominal,
                _ => {}
            }
        }
        let mut ratios: Vec<(&str, f64, f64)> = vec![];
        for (name, (down, up)) in capacity.into_iter().filter(|(_, (down, up))| *down > 0 && *up > 0) {
            let ratio = down as f64 / up as f64;
            match ratios.iter_mut().find(|(kind, ..)| *kind == self.stem(name)) {
                Some((_, least, most)) => (*least, *most) = (least.min(ratio), most.max(ratio)),
                None => ratios.push((self.stem(name), ratio, ratio)),
            }
        }
        ratios
    }

    /// Numbers of hosts and switches by kind, pods, parallel cables and oversubscription.
    pub(super) fn words(&self) -> String {
        let hosts =
            self.links.iter().filter(|link| link.is_nic).map(|link| link.from.as_str()).collect::<BTreeSet<_>>().len();
        let mut parts = vec![plural("host", hosts)];
        let kinds: Vec<String> = self.kinds().iter().map(|(kind, count)| plural(kind, *count / self.planes)).collect();
        let pods = self.pods() / self.planes;
        let pods = if pods > 1 { format!(" ({pods} pods)") } else { String::new() };
        let planes = if self.planes > 1 { format!("{} planes of ", self.planes) } else { String::new() };
        parts.push(format!("{planes}{}{pods}", list(kinds.iter().map(String::as_str).collect())));
        let parallel = self.links.iter().map(|link| link.parallel).max().unwrap_or(0);
        if parallel > 0 {
            parts.push(format!("up to {} parallel cables", parallel + 1));
        }
        for (kind, least, most) in self.oversubscription().into_iter().filter(|(_, _, most)| *most > EVEN) {
            let kind = plural(kind, 2).split_off(2);
            parts.push(format!("{kind} oversubscribed {}", between(least, most)));
        }
        parts.push(format!("{} directed links", self.links.len()));
        parts.join(", ")
    }

    /// One sentence: what limits the flows, as far as the rows show it.
    pub(super) fn limit(&self, data: &Dataset, comparison: Option<&Comparison>) -> String {
        let mut links = data.schemes.iter().flat_map(|scheme| &scheme.runs).flat_map(|run| &run.links);
        let is_between = |link: &LinkPoint| !link.is_nic && &*link.group != "switch to host";
        if !data.lacks("links", "bytes") && !links.any(|link| is_between(link) && link.whole > 0.0) {
            return NO_CHOICE.to_string();
        }
        if let Some(sentence) = comparison.and_then(near_bound) {
            return sentence;
        }
        let mut reasons = vec![];
        for (kind, least, most) in self.oversubscription().into_iter().filter(|(_, _, most)| *most > EVEN) {
            reasons.push(format!("{} are oversubscribed {}", plural(kind, 2).split_off(2), between(least, most)));
        }
        let cables = |chosen: &dyn Fn(&&LinkPoint) -> bool| {
            let ends = |link: &'l LinkPoint| ((&link.from).min(&link.to), (&link.from).max(&link.to), link.parallel);
            self.links.iter().filter(chosen).map(ends).collect::<BTreeSet<_>>().len()
        };
        let (failed, slow) = (cables(&|link| link.failed()), cables(&|link| link.has_fault() && !link.failed()));
        let built_slow = cables(&|link| link.rate_bps < self.nominal[&*link.tier] && !link.has_fault());
        let fails =
            |count: usize, one: &str, many: &str| format!("{count} cable{}", if count == 1 { one } else { many });
        if failed > 0 {
            reasons.push(fails(failed, " fails", "s fail"));
        }
        if slow > 0 {
            let words: BTreeSet<&str> = self
                .links
                .iter()
                .filter(|link| link.has_fault() && !link.failed())
                .map(|link| link.fault.trim_end_matches(" at 0us"))
                .collect();
            let words = match words.len() {
                1 => format!(" ({})", words.iter().next().unwrap_or(&"")),
                _ => String::new(),
            };
            reasons.push(fails(slow, " is slow or lossy", "s are slow or lossy") + &words);
        }
        if built_slow > 0 {
            reasons.push(fails(built_slow, " is slower than its tier", "s are slower than their tier"));
        }
        let to_hosts = self.links.iter().filter(|link| &*link.group == "switch to host");
        let busiest = to_hosts.filter_map(|link| link.window).reduce(f64::max);
        if let Some(busiest) = busiest.filter(|busiest| *busiest >= BUSY) {
            reasons.push(format!("the busiest receiver's link is full ({:.0} %) while flows start", busiest * 100.0));
        }
        if !reasons.is_empty() {
            // Messages inside servers have no bound.
            let scenario: toml::Table = data.manifest.scenario.parse().unwrap_or_default();
            let bound = match scenario.contains_key("servers") {
                true => "",
                false => " `--bound` computes what no load balancer can beat.",
            };
            let reasons = list(reasons.iter().map(String::as_str).collect());
            return format!("Not the load balancer alone decides: {reasons}.{bound}");
        }
        // What the rows do not show is no reason, and no denial.
        let is_flat = self.links.iter().any(|link| link.group.ends_with(" links"));
        let denied = [
            (!data.lacks("links", "fault")).then_some("slow or down"),
            (!is_flat).then_some("oversubscribed"),
            busiest.map(|_| "full at a receiver"),
        ];
        let denied: Vec<&str> = denied.into_iter().flatten().collect();
        let who = if data.schemes.len() > 1 { "load balancing" } else { "this load balancer" };
        match denied.is_empty() {
            true => String::new(),
            false => format!(
                "Nothing in the network is {}: what flows take beyond their ideal, {who} and congestion control decide{}.",
                denied.join(", or "),
                if is_flat { ", and how the traffic lies on the links between switches" } else { "" }
            ),
        }
    }
}

fn between(least: f64, most: f64) -> String {
    let [least, most] = [least, most].map(|ratio| significant_digits_trimmed(ratio, 3));
    if least == most { format!("{most}:1") } else { format!("{least}:1 to {most}:1") }
}

/// The best scheme beside the bound, where it is known.
fn near_bound(comparison: &Comparison) -> Option<String> {
    let workload = comparison.shown(false).into_iter().next()?;
    let (_, values) = comparison.over_limits(workload).into_iter().find(|(title, _)| title.ends_with("over bound"))?;
    let known = comparison.schemes.iter().zip(values).filter_map(|(scheme, value)| Some((scheme, value?)));
    let (scheme, ratio) = known.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let by = comparison.limits.as_ref().and_then(|limits| limits.by(workload, comparison.bounded_metric(workload)?));
    let by = by.map_or(String::new(), |by| format!(", which {by} sets"));
    let ratio_words = significant_digits_trimmed(ratio, 3);
    Some(match ratio <= NEAR_BOUND {
        true => format!(
            "The network limits: {scheme} is at {ratio_words} of the bound{by}, so no load balancer can do much better."
        ),
        false => format!(
            "The best scheme, {scheme}, is at {ratio_words} of the bound{by}: no more than that factor can be gained by load balancing."
        ),
    })
}
