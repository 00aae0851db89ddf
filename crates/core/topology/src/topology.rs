use crate::{
    Guide, LinkId, LinkOverride, NodeId, Routes, Scale, Summary, TopologyError, adversarial, graph::Graph, overrides,
    paths, select, summary,
};
use anabranch_units::{Rate, Time};
use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

/// A fabric: its graph, and tables that are computed on first use.
#[derive(Clone, Debug)]
pub struct Topology {
    graph: Graph,
    /// Takes longer to compute than the graph on a large Slim Fly.
    guide: OnceLock<Option<Arc<Guide>>>,
    routes: OnceLock<Arc<Routes>>,
    /// Largest base round trips by the bytes of a packet and its ACK.
    round_trips: Arc<Mutex<BTreeMap<(u64, u64), Time>>>,
}

impl From<Graph> for Topology {
    fn from(graph: Graph) -> Self {
        Topology { graph, guide: OnceLock::new(), routes: OnceLock::new(), round_trips: Arc::default() }
    }
}

impl Deref for Topology {
    type Target = Graph;

    #[inline]
    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl DerefMut for Topology {
    fn deref_mut(&mut self) -> &mut Graph {
        self.round_trips = Arc::default();
        &mut self.graph
    }
}

impl Topology {
    /// Returns its size.
    pub fn scale(&self) -> Scale {
        Scale::of(self)
    }

    /// Returns the forwarding tables of the intact graph.
    pub fn routes(&self) -> Arc<Routes> {
        self.routes.get_or_init(|| Arc::new(Routes::shortest(self, &[]))).clone()
    }

    /// Returns the tables of source-guided routing; `None` if the topology has none.
    pub fn guide(&self) -> Option<Arc<Guide>> {
        self.guide.get_or_init(|| self.guidance.map(|guidance| Arc::new(Guide::new(self, guidance)))).clone()
    }

    /// Returns counts, distances and path counts, for data packets of `data` and ACKs of `ack` bytes on the wire.
    pub fn summary(&self, data: u64, ack: u64) -> Summary {
        summary::summary(self, self.guide().as_deref(), self.max_base_rtt(data, ack), data, ack)
    }

    /// Returns the rate of the links from leaves down to hosts over their rate upwards; 1 if there is no tier above.
    pub fn oversubscription(&self) -> f64 {
        summary::oversubscription(self)
    }

    /// Applies an override; returns the number of directed links that it changed.
    ///
    /// # Errors
    /// Returns [`TopologyError`] for an unknown link or class, both or none of them, nothing to change, a rate or delay out
    /// of range.
    pub fn apply(&mut self, change: &LinkOverride) -> Result<usize, TopologyError> {
        overrides::apply(self, change)
    }

    /// Returns the directed links that `what` selects, ascending: a name as for [`Graph::link_named`], a class (`host`,
    /// `tier0-1`, `local`, `global`), or a pattern with `*` and `?` over cables (`leaf0-spine*`: both directions) or directed
    /// links (`leaf*->spine0`).
    ///
    /// # Errors
    /// Returns a [`TopologyError`] with the existing links and the nearest name if nothing matches.
    pub fn links_like(&self, what: &str) -> Result<Vec<LinkId>, TopologyError> {
        select::links_like(self, what)
    }

    /// Returns the hosts whose names match `pattern`, ascending.
    ///
    /// # Errors
    /// Returns a [`TopologyError`] with the nearest name if there is no such host.
    pub fn hosts_like(&self, pattern: &str) -> Result<Vec<u32>, TopologyError> {
        select::hosts_like(self, pattern)
    }

    /// Returns pairs (source, destination) of hosts that load single links when all traffic takes default paths; empty if the
    /// topology has no guided paths.
    ///
    /// The cables between switches are taken in random order, each in both directions, u to v. Unused hosts of v receive from
    /// unused hosts of different neighbours of u, in random order, whose default path to v leads through u. A host and a pair
    /// of switches are used once. With p hosts per switch, at most p flows load a direction of a cable.
    pub fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)> {
        self.guide().map_or_else(Vec::new, |guide| adversarial::adversarial_pairs(self, &guide, seed))
    }

    /// Returns the hops between two switches on the intact network; `u32::MAX` if there is no path.
    pub fn switch_distance(&self, from: NodeId, to: NodeId) -> u32 {
        paths::switch_distance(self, from, to)
    }

    /// Returns the path of a packet on an empty network, host links included: the first of the shortest paths between two
    /// hosts. In topologies with guided paths it is the fastest, possibly of more hops, so that no path that a source can
    /// choose beats it.
    pub fn base_path(&self, src: u32, dst: u32) -> Vec<LinkId> {
        paths::base_path(self, src, dst)
    }

    /// Returns the number of paths of `routes`, each parallel cable counted, to a switch with hosts; at most `u64::MAX`.
    pub fn shortest_paths(&self, routes: &Routes, from: NodeId, to: NodeId) -> u64 {
        paths::shortest_paths(self, routes, from, to)
    }

    /// Returns at most `most` shortest paths between two hosts, in port order.
    pub fn paths(&self, routes: &Routes, src: u32, dst: u32, most: usize) -> Vec<Vec<LinkId>> {
        paths::paths(self, routes, src, dst, most)
    }

    /// Returns `true` for each path by multi-part entropy value between two edge switches that leads over a `dead` directed
    /// link. Index: part 0 + U0 * part 1, over as many tiers as the path climbs; empty if there is no choice.
    pub fn dead_paths(&self, from: NodeId, to: NodeId, dead: &[bool]) -> Vec<bool> {
        paths::dead_paths(self, from, to, dead)
    }

    /// Returns per path, numbered as by [`Topology::dead_paths`], the rate of its slowest link; links of rate 0 are dead. Empty as
    /// there.
    pub fn path_rates(&self, from: NodeId, to: NodeId, rate: &impl Fn(LinkId) -> Rate) -> Vec<Rate> {
        paths::path_rates(self, from, to, rate)
    }

    /// Returns the round trip of a packet of `data` bytes and its ACK of `ack` bytes.
    pub fn base_rtt(&self, src: u32, dst: u32, data: u64, ack: u64) -> Time {
        self.rtt(&self.base_path(src, dst), data, ack)
    }

    /// Returns the largest round trip between two hosts, over any of their shortest paths. In topologies with guided paths:
    /// over default paths, which are as long if links of a class are alike, with the slowest host links.
    pub fn max_base_rtt(&self, data: u64, ack: u64) -> Time {
        let known = self.round_trips.lock().unwrap_or_else(PoisonError::into_inner).get(&(data, ack)).copied();
        known.unwrap_or_else(|| {
            let largest = match self.guide() {
                Some(guide) => guide.default_rtt(self, data, ack),
                None => paths::max_base_rtt(self, &self.routes(), data, ack),
            };
            self.round_trips.lock().unwrap_or_else(PoisonError::into_inner).insert((data, ack), largest);
            largest
        })
    }

    /// Returns the bandwidth-delay product in bytes: NIC rate times the largest base round trip.
    pub fn bdp(&self, data: u64, ack: u64) -> u64 {
        self.nic_rate().bytes_in(self.max_base_rtt(data, ack))
    }

    /// Returns [`Guide::base_rtt`]; `None` if the topology has no guided paths.
    pub fn guided_base_rtt(&self, packet: u64, ack: u64) -> Option<Time> {
        Some(self.guide()?.base_rtt(self, packet, ack))
    }

    /// Returns the round trip that windows are sized for: over the longest guided path if there are any (Spritz §V-A), else
    /// the largest base round trip.
    pub fn window_rtt(&self, packet: u64, ack: u64) -> Time {
        self.guided_base_rtt(packet, ack).unwrap_or_else(|| self.max_base_rtt(packet, ack))
    }

    /// Returns the bandwidth-delay product in bytes: NIC rate times [`Topology::window_rtt`].
    pub fn window_bdp(&self, packet: u64, ack: u64) -> u64 {
        self.nic_rate().bytes_in(self.window_rtt(packet, ack))
    }
}
