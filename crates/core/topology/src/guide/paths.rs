use super::Guide;
use crate::{
    LinkId, NodeId,
    graph::Graph,
    guidance::{Guidance, PathType},
};
use anabranch_units::Time;

/// Maximum number of links between switches on a guided path.
const MAX_HOPS: usize = 5;

/// A path that an entropy value names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuidedPath {
    /// The entropy value: switch-facing port of the first switch, and of the second; 0 if unused.
    pub ev: [u16; 2],
    /// Number of its local and global links.
    pub kind: PathType,
    /// It is minimal: on Dragonfly the default path, on Slim Fly as short as the default path.
    pub minimal: bool,
    /// Latency as in Spritz's Table I: propagation and one wire time per hop, without switches and host links.
    pub latency: Time,
    /// Propagation alone.
    pub propagation: Time,
    links: [LinkId; MAX_HOPS],
}

impl GuidedPath {
    /// Returns its links, from switch to switch.
    pub fn links(&self) -> &[LinkId] {
        &self.links[..usize::from(self.kind.local + self.kind.global)]
    }
}

impl Guide {
    /// Returns the guided paths between two switches for packets of `packet` bytes on the wire, by latency, then entropy
    /// value. A switch has one path to itself, without links.
    pub fn paths(&self, graph: &Graph, from: NodeId, to: NodeId, packet: u64) -> Vec<GuidedPath> {
        let mut paths = Vec::new();
        let (from, to) = (self.number(from), self.number(to));
        let default = self.default_hops(from, to);
        self.visit(from, to, &mut |ev, ports| {
            let mut links = [LinkId(0); MAX_HOPS];
            let (mut latency, mut propagation) = (Time::ZERO, Time::ZERO);
            for (slot, port) in links.iter_mut().zip(ports) {
                *slot = self.link[*port as usize];
                let link = graph.link(*slot);
                propagation += link.delay;
                latency += link.delay + link.rate.wire_time(packet);
            }
            let kind = self.kind(ports);
            let minimal = match self.guidance {
                // No other path has at most one global link and as few hops.
                Guidance::Dragonfly => ports.len() <= default && kind.global <= 1,
                Guidance::SlimFly | Guidance::Graph => ports.len() == default,
            };
            paths.push(GuidedPath { ev, kind, minimal, latency, propagation, links });
        });
        paths.sort_unstable_by_key(|path| (path.latency, path.ev));
        paths
    }

    pub(super) fn kind(&self, ports: &[u32]) -> PathType {
        let local = ports.iter().filter(|port| self.local[**port as usize]).count() as u8;
        PathType { local, global: ports.len() as u8 - local }
    }

    fn default_hops(&self, from: u32, to: u32) -> usize {
        let mut path = Path::default();
        self.finish(&mut path, from, to);
        path.len
    }

    /// Calls `found` with the entropy value and the ports of every guided path, by entropy value.
    pub(super) fn visit(&self, from: u32, to: u32, found: &mut dyn FnMut([u16; 2], &[u32])) {
        if from == to {
            return found([0, 0], &[]);
        }
        let same_group = self.group[from as usize] == self.group[to as usize];
        for (ev1, first) in (0..).zip(self.ports(from)) {
            let (second, local) = (self.to[first as usize], self.local[first as usize]);
            let guided_on = match self.guidance {
                Guidance::Dragonfly if same_group && !local => continue,
                Guidance::Dragonfly => local && !same_group,
                Guidance::SlimFly | Guidance::Graph => second != to,
            };
            if !guided_on {
                self.complete(&[first], from, to, [ev1, 0], found);
                continue;
            }
            for (ev2, next) in (0..).zip(self.ports(second)) {
                // On Dragonfly the second hop is a global link.
                if self.guidance != Guidance::Dragonfly || !self.local[next as usize] {
                    self.complete(&[first, next], from, to, [ev1, ev2], found);
                }
            }
        }
    }

    /// Follows the default table after the chosen hops; skips a path that visits a switch twice.
    fn complete(&self, chosen: &[u32], from: u32, to: u32, ev: [u16; 2], found: &mut dyn FnMut([u16; 2], &[u32])) {
        let mut path = Path::default();
        chosen.iter().for_each(|port| path.push(*port));
        self.finish(&mut path, self.to[chosen[chosen.len() - 1] as usize], to);
        let ports = path.ports();
        let met = |place: usize| self.to[ports[place] as usize];
        let simple = (0..ports.len()).all(|i| met(i) != from && (0..i).all(|j| met(i) != met(j)));
        if simple {
            found(ev, ports);
        }
    }

    fn finish(&self, path: &mut Path, mut at: u32, to: u32) {
        while at != to {
            let port = self.default_port(at, to);
            path.push(port);
            at = self.to[port as usize];
        }
    }

    pub(super) fn default_path(&self, from: u32, to: u32, found: &mut dyn FnMut(&[u32])) {
        let mut path = Path::default();
        self.finish(&mut path, from, to);
        found(path.ports());
    }
}

#[derive(Default)]
struct Path {
    ports: [u32; MAX_HOPS],
    len: usize,
}

impl Path {
    fn push(&mut self, port: u32) {
        self.ports[self.len] = port;
        self.len += 1;
    }
    fn ports(&self) -> &[u32] {
        &self.ports[..self.len]
    }
}
