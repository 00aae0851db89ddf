//! `[[fault]]`: links and switches that fail, recover, flap, slow down, or harm packets, at any time.

use crate::{
    LinkId, NodeId, TopologyError,
    graph::Graph,
    kinds::moving,
    select::{is_like, links_like},
};
use anabranch_random::{Stream, name_key};
use anabranch_settings::{Never, choices, parameters};
use anabranch_units::{Rate, Time};

choices! {
    /// What happens.
    pub enum FaultKind {
        /// Links lose every packet that starts while they are down.
        LinkDown = "link-down",
        /// Links come back, at their current rate.
        LinkUp = "link-up",
        /// Links change their rate.
        LinkDegrade = "link-degrade",
        /// All links of switches go down.
        SwitchDown = "switch-down",
        /// Links lose packets at random.
        PacketLoss = "packet-loss",
        /// Links go down and come back, again and again.
        LinkFlap = "link-flap",
        /// Links change a bit of packets at random. On a testbed.
        PacketCorruption = "packet-corruption",
        /// Links deliver packets twice at random. On a testbed.
        PacketDuplication = "packet-duplication",
        /// Links deliver packets later. On a testbed.
        PacketDelay = "packet-delay",
        /// A controller denies the paths over links to all hosts; the links themselves work as before.
        PathDeny = "path-deny",
        /// It allows them again.
        PathAllow = "path-allow",
    }
}

choices! {
    /// Which packets a fault affects.
    pub enum Affects {
        /// Every packet.
        All = "all",
        /// Data packets only: headers of trimmed packets and acknowledgements pass.
        Data = "data",
    }
}

parameters! {
    /// A fault. Links are chosen by `links`, `fraction` or `count` (switch-to-switch links), switches by `switches`.
    pub struct FaultParameters {
        /// When it happens.
        at: Time = Time::ZERO, source "Spritz §V-D: from the start";
        /// What happens.
        kind: FaultKind = FaultKind::LinkDown, source "specification 12.6";
        /// Links: a cable (leaf0-spine3), one direction of it (leaf0->spine3), a pattern (host*-p1.*) or a class (host).
        links: Vec<String> = vec![], source "ours";
        /// Switches by name or pattern (p1.*), for switch-down.
        switches: Vec<String> = vec![], source "ours";
        /// Share of the switch-to-switch cables (with `directed`, of the directed links), chosen at random.
        fraction: f64 = 0.0, source "Spritz §V-D: 0.02";
        /// Their number, instead of a share.
        count: u64 = 0, source "PRIME §IV-A2: 2";
        /// Whether `fraction` and `count` choose single directions rather than cables.
        directed: bool = false, source "specification 12.6", Expert;
        /// Which packets are affected.
        affects: Affects = Affects::All, source "specification 12.6", Expert;
        /// Time until the forwarding tables are updated (link-down, link-up, link-flap, switch-down), or schemes that read the
        /// rates of paths receive the new one (link-degrade).
        detect_after: Never<Time> = Never::Never, source "PRIME §IV-A2: transient and steady phase";
        /// Time until a NIC with a port per plane detects that the link of a port is down, and sends nothing there, or up again.
        port_detect: Never<Time> = Never::Value(Time::ZERO), source "ours", Expert;
        /// Time from then on until its peers have been notified, and send nothing to that port.
        peer_detect: Never<Time> = Never::Value(Time::ZERO), source "MRC 1.0 (OCP), as public summaries have it: a message at once", Expert;
        /// New rate, for link-degrade.
        rate: Option<Rate> = None, source "PRIME §IV-A2";
        /// New rate as a share of the old one, for link-degrade.
        factor: f64 = 0.0, source "PRIME §IV-A2", Expert;
        /// Share of packets lost, for packet-loss.
        loss: f64 = 0.0, source "ours";
        /// Time from one failure to the next, for link-flap.
        period: Time = Time::ZERO, source "ours", Expert;
        /// How long links stay down each time, for link-flap: less than the period.
        down_for: Time = Time::ZERO, source "ours", Expert;
        /// How often links go down, for link-flap.
        flaps: u64 = 0, source "ours", Expert;
        /// Share of packets of which a bit changes, for packet-corruption.
        corruption: f64 = 0.0, source "ours", Expert;
        /// Share of packets that arrive twice, for packet-duplication.
        duplication: f64 = 0.0, source "ours", Expert;
        /// How much later packets arrive, for packet-delay.
        delay: Time = Time::ZERO, source "ours", Expert;
        /// How far single packets deviate from the delay at most, evenly spread, for packet-delay; they may overtake each other.
        jitter: Time = Time::ZERO, source "ours", Expert;
    }
}

/// Effect of a fault on its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// They go down.
    Down,
    /// They come up again.
    Up,
    /// Hosts must not use paths over them.
    Deny,
    /// Hosts may use them again.
    Allow,
    /// They get this rate.
    Degrade(Rate),
    /// They lose packets at random.
    Loss {
        /// Packets lost out of 10^9.
        per_billion: u64,
    },
    /// They change a bit of packets at random.
    Corrupt {
        /// Packets changed out of 10^9.
        per_billion: u64,
    },
    /// They deliver packets twice at random.
    Duplicate {
        /// Packets repeated out of 10^9.
        per_billion: u64,
    },
    /// They deliver packets later.
    Delay {
        /// By this time,
        delay: Time,
        /// more or less by up to this time.
        jitter: Time,
    },
}

impl FaultAction {
    /// Returns the kind of an action that only testbeds support, else `None`.
    pub fn real_only(&self) -> Option<FaultKind> {
        match self {
            FaultAction::Corrupt { .. } => Some(FaultKind::PacketCorruption),
            FaultAction::Duplicate { .. } => Some(FaultKind::PacketDuplication),
            FaultAction::Delay { .. } => Some(FaultKind::PacketDelay),
            FaultAction::Down
            | FaultAction::Up
            | FaultAction::Deny
            | FaultAction::Allow
            | FaultAction::Degrade(_)
            | FaultAction::Loss { .. } => None,
        }
    }
}

impl Fault {
    /// Returns the dotted key of this fault in the scenario.
    pub fn key(&self, key: &str) -> String {
        self.number.map_or_else(|| format!("fault.{key}"), |number| format!("fault[{number}].{key}"))
    }
}

/// Maximum number of failures of one `link-flap`.
const MAX_FLAPS: u64 = 10_000;
/// Maximum delay and jitter of a link.
const MAX_DELAY: Time = Time::from_us(10_000_000);

/// A fault resolved to links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Time at which it takes effect.
    pub at: Time,
    /// Its effect.
    pub action: FaultAction,
    /// Directed links, ascending.
    pub links: Vec<LinkId>,
    /// Its number in the scenario; `None` for one of a flow file.
    pub number: Option<usize>,
    /// Only data packets are affected.
    pub data_only: bool,
    /// Time at which the forwarding tables change; `None`: never.
    pub detect_at: Option<Time>,
    /// Times at which NICs detect changes of their own ports, with several planes, and of their peers'; `None`: never.
    pub port_detect_at: [Option<Time>; 2],
}

impl FaultParameters {
    /// Resolves names and random choices, a function of the topology, the seed and the fault's number `index`. A degradation
    /// by `factor` of links with several rates gives several faults.
    ///
    /// # Errors
    /// Returns [`TopologyError`] for unknown names, contradictory or missing keys, and values out of range.
    pub fn resolve(&self, topology: &Graph, index: usize, seed: u64) -> Result<Vec<Fault>, TopologyError> {
        let mut links = self.links(topology, index, seed)?;
        links.sort_unstable();
        links.dedup();
        self.check_keys()?;
        let noticed =
            matches!(self.kind, FaultKind::LinkDown | FaultKind::LinkUp | FaultKind::LinkFlap | FaultKind::SwitchDown);
        if self.detect_after != Never::Never && !noticed && self.kind != FaultKind::LinkDegrade {
            let message = "`detect_after` goes with link-down, link-up, link-flap, switch-down and link-degrade; other faults leave the tables as they are";
            return Err(TopologyError::at("detect_after", message));
        }
        let at_once = Never::Value(Time::ZERO);
        let of_ports = [("port_detect", self.port_detect), ("peer_detect", self.peer_detect)];
        if let Some((key, _)) = of_ports.into_iter().find(|(_, after)| *after != at_once)
            && (!noticed || topology.planes == 1)
        {
            let message = format!(
                "`{key}` goes with link-down, link-up, link-flap and switch-down on several planes: a single port is used whatever happens"
            );
            return Err(TopologyError::at(key, message));
        }
        let fault = |at, action, links| Fault {
            at,
            action,
            links,
            number: Some(index),
            data_only: self.affects == Affects::Data,
            detect_at: self.detect_after.value().map(|after| at.saturating_add(after)),
            port_detect_at: self.ports_detected(at),
        };
        let action = match self.kind {
            FaultKind::LinkDown | FaultKind::SwitchDown => FaultAction::Down,
            FaultKind::LinkUp => FaultAction::Up,
            FaultKind::PathDeny => FaultAction::Deny,
            FaultKind::PathAllow => FaultAction::Allow,
            FaultKind::PacketLoss => FaultAction::Loss { per_billion: per_billion("loss", self.loss, "packet-loss")? },
            FaultKind::PacketCorruption => {
                FaultAction::Corrupt { per_billion: per_billion("corruption", self.corruption, "packet-corruption")? }
            }
            FaultKind::PacketDuplication => FaultAction::Duplicate {
                per_billion: per_billion("duplication", self.duplication, "packet-duplication")?,
            },
            FaultKind::PacketDelay => self.delay()?,
            FaultKind::LinkFlap => {
                self.check_flap()?;
                let begins = (0..self.flaps).map(|flap| self.at + Time::from_ps(self.period.ps() * flap));
                let changes = begins.flat_map(|at| [(at, FaultAction::Down), (at + self.down_for, FaultAction::Up)]);
                return Ok(changes.map(|(at, action)| fault(at, action, links.clone())).collect());
            }
            FaultKind::LinkDegrade => {
                let by_rate = self.degrade(topology, links)?;
                return Ok(by_rate
                    .into_iter()
                    .map(|(rate, links)| fault(self.at, FaultAction::Degrade(rate), links))
                    .collect());
            }
        };
        Ok(vec![fault(self.at, action, links)])
    }

    fn ports_detected(&self, at: Time) -> [Option<Time>; 2] {
        let own = self.port_detect.value().map(|after| at.saturating_add(after));
        [own, own.zip(self.peer_detect.value()).map(|(own, after)| own.saturating_add(after))]
    }

    /// Refuses keys that this kind of fault would silently ignore.
    fn check_keys(&self) -> Result<(), TopologyError> {
        let keys = [
            ("rate", self.rate.is_some(), FaultKind::LinkDegrade, "link-degrade"),
            ("factor", self.factor != 0.0, FaultKind::LinkDegrade, "link-degrade"),
            ("loss", self.loss != 0.0, FaultKind::PacketLoss, "packet-loss"),
            ("period", self.period != Time::ZERO, FaultKind::LinkFlap, "link-flap"),
            ("down_for", self.down_for != Time::ZERO, FaultKind::LinkFlap, "link-flap"),
            ("flaps", self.flaps != 0, FaultKind::LinkFlap, "link-flap"),
            ("corruption", self.corruption != 0.0, FaultKind::PacketCorruption, "packet-corruption"),
            ("duplication", self.duplication != 0.0, FaultKind::PacketDuplication, "packet-duplication"),
            ("delay", self.delay != Time::ZERO, FaultKind::PacketDelay, "packet-delay"),
            ("jitter", self.jitter != Time::ZERO, FaultKind::PacketDelay, "packet-delay"),
        ];
        match keys.into_iter().find(|(_, given, kind, _)| *given && *kind != self.kind) {
            Some((key, .., word)) => Err(TopologyError::at(key, format!("`{key}` goes with kind = \"{word}\" only"))),
            None => Ok(()),
        }
    }

    /// Returns how often the forwarding tables change.
    pub fn table_changes(&self) -> u64 {
        let changes = if self.kind == FaultKind::LinkFlap { 2 * self.flaps.min(MAX_FLAPS) } else { 1 };
        self.detect_after.value().map_or(0, |_| changes)
    }

    fn check_flap(&self) -> Result<(), TopologyError> {
        if !(1..=MAX_FLAPS).contains(&self.flaps) {
            let message = format!("`flaps` is {}; link-flap needs from 1 to {MAX_FLAPS}", self.flaps);
            return Err(TopologyError::at("flaps", message));
        }
        if self.period == Time::ZERO {
            return Err(TopologyError::at("period", "link-flap needs `period`, the time from one failure to the next"));
        }
        if self.down_for == Time::ZERO || self.down_for >= self.period {
            let (found, period) = (self.down_for, self.period);
            let message = format!("`down_for` is {found}; link-flap needs a time above 0 and below `period`, {period}");
            return Err(TopologyError::at("down_for", message));
        }
        let last = self.period.ps().checked_mul(self.flaps).and_then(|all| all.checked_add(self.at.ps()));
        if last.is_none() {
            return Err(TopologyError::at("period", "the last failure is later than any run can last"));
        }
        Ok(())
    }

    fn delay(&self) -> Result<FaultAction, TopologyError> {
        if self.delay == Time::ZERO || self.delay > MAX_DELAY {
            let message = format!("`delay` is {}; packet-delay needs a time above 0, at most {MAX_DELAY}", self.delay);
            return Err(TopologyError::at("delay", message));
        }
        if self.jitter > self.delay {
            let message = format!("`jitter` is {}; it is `delay`, {}, at most", self.jitter, self.delay);
            return Err(TopologyError::at("jitter", message));
        }
        Ok(FaultAction::Delay { delay: self.delay, jitter: self.jitter })
    }

    fn degrade(&self, topology: &Graph, links: Vec<LinkId>) -> Result<Vec<(Rate, Vec<LinkId>)>, TopologyError> {
        if let Some(rate) = self.rate {
            if self.factor != 0.0 {
                return Err(TopologyError::at("factor", "give `rate` or `factor`, not both"));
            }
            return Ok(vec![(moving("rate", rate)?, links)]);
        }
        if !(self.factor > 0.0 && self.factor <= 1.0) {
            let message = "link-degrade needs `rate`, or `factor` above 0 and at most 1";
            return Err(TopologyError::at("factor", message));
        }
        let mut by_rate = std::collections::BTreeMap::new();
        for link in links {
            by_rate.entry(topology.link(link).rate).or_insert_with(Vec::new).push(link);
        }
        let slower = |rate: Rate| Rate((rate.0 as f64 * self.factor).round() as u64);
        by_rate.into_iter().map(|(rate, links)| Ok((moving("factor", slower(rate))?, links))).collect()
    }

    fn links(&self, topology: &Graph, index: usize, seed: u64) -> Result<Vec<LinkId>, TopologyError> {
        let given = [!self.links.is_empty(), !self.switches.is_empty(), self.fraction != 0.0, self.count != 0];
        if given.iter().filter(|g| **g).count() != 1 {
            let allowed =
                if self.kind == FaultKind::SwitchDown { "`switches`" } else { "`links`, `fraction`, `count`" };
            return Err(TopologyError::new(format!("a fault needs exactly one of {allowed}")));
        }
        if self.switches.is_empty() == (self.kind == FaultKind::SwitchDown) {
            return Err(TopologyError::at("switches", "`switches` goes with kind = \"switch-down\", and only with it"));
        }
        if !self.links.is_empty() {
            let found: Result<Vec<_>, _> = self.links.iter().map(|name| links_like(topology, name)).collect();
            return Ok(found.map_err(|e| TopologyError::at("links", e.message))?.concat());
        }
        if !self.switches.is_empty() {
            return self.links_of_switches(topology);
        }
        let between = |l: &LinkId| {
            let link = topology.link(*l);
            link.from.0 >= topology.hosts && link.to.0 >= topology.hosts && (self.directed || l.0.is_multiple_of(2))
        };
        let mut pool: Vec<LinkId> = topology.link_ids().filter(between).collect();
        let wanted = self.wanted(pool.len())?;
        let mut stream = Stream::keyed(seed, name_key("fault").wrapping_add(index as u64), "links");
        for chosen in 0..wanted {
            let other = chosen + stream.below((pool.len() - chosen) as u64) as usize;
            pool.swap(chosen, other);
        }
        pool.truncate(wanted);
        Ok(if self.directed { pool } else { pool.into_iter().flat_map(|l| [l, l.reverse()]).collect() })
    }

    fn wanted(&self, pool: usize) -> Result<usize, TopologyError> {
        if self.count != 0 {
            return match usize::try_from(self.count) {
                Ok(count) if count <= pool => Ok(count),
                _ => {
                    let message = format!("`count` is {}; there are {pool} links between switches", self.count);
                    Err(TopologyError::at("count", message))
                }
            };
        }
        if !(0.0..=1.0).contains(&self.fraction) {
            let message = format!("`fraction` is {}; a share from 0 to 1 is needed", self.fraction);
            return Err(TopologyError::at("fraction", message));
        }
        Ok((self.fraction * pool as f64).round() as usize)
    }

    fn links_of_switches(&self, topology: &Graph) -> Result<Vec<LinkId>, TopologyError> {
        let mut links = Vec::new();
        let is_switch_like = |node: &NodeId, name: &str| is_like(&topology.node(*node).name, name);
        let switches = || (topology.hosts..topology.nodes.len() as u32).map(NodeId);
        for name in &self.switches {
            if name.contains(['*', '?']) && switches().any(|node| is_switch_like(&node, name)) {
                let found = switches().filter(|node| is_switch_like(node, name));
                links.extend(found.flat_map(|node| topology.out_links(node)).flat_map(|l| [*l, l.reverse()]));
                continue;
            }
            let node = topology.node_named(name).map_err(|e| TopologyError::at("switches", e.message))?;
            if node.0 < topology.hosts {
                let first = &topology.node(NodeId(topology.hosts)).name;
                let message = format!("`{name}` is a host; switches are named like `{first}`");
                return Err(TopologyError::at("switches", message));
            }
            links.extend(topology.out_links(node).iter().flat_map(|l| [*l, l.reverse()]));
        }
        Ok(links)
    }
}

fn per_billion(key: &'static str, share: f64, kind: &str) -> Result<u64, TopologyError> {
    if !(share > 0.0 && share <= 1.0) {
        return Err(TopologyError::at(key, format!("`{key}` is {share}; {kind} needs a share above 0, at most 1")));
    }
    match (share * 1e9).round() as u64 {
        0 => Err(TopologyError::at(key, format!("`{key}` is {share}; at least 1e-9 is needed"))),
        per_billion => Ok(per_billion),
    }
}
