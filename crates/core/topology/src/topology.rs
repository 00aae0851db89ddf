use crate::{Guide, Routes, Scale, Summary, graph::Graph, paths, summary};
use anabranch_units::Time;
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

    /// Returns the round trip that windows are sized for: over the longest guided path if there are any (Spritz §V-A), else
    /// the largest base round trip.
    pub fn window_rtt(&self, packet: u64, ack: u64) -> Time {
        match self.guide() {
            Some(guide) => guide.base_rtt(self, packet, ack),
            None => self.max_base_rtt(packet, ack),
        }
    }

    /// Returns the bandwidth-delay product in bytes: NIC rate times [`Topology::window_rtt`].
    pub fn window_bdp(&self, packet: u64, ack: u64) -> u64 {
        self.nic_rate().bytes_in(self.window_rtt(packet, ack))
    }
}
