//! Routes of packets through the graphs of the stripped loop, computed at each hop.

#[derive(Clone, Copy, Default)]
pub(super) struct Packet {
    pub(super) sent_at: u64,
    pub(super) flow: u32,
    pub(super) from: u16,
    pub(super) to: u16,
    /// Routing state: see [`Routing::start`].
    pub(super) via: u16,
    pub(super) size: u16,
    /// Packets that it acknowledges; zero for data.
    pub(super) acknowledges: u16,
    pub(super) hop: u8,
    pub(super) marked: bool,
}

/// Delays of a graph's links in picoseconds, each including the latency of the switch that it leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// From a host to its switch.
    pub up: u64,
    /// From a switch to its host.
    pub down: u64,
    /// Between switches; in a Dragonfly, within a group.
    pub near: u64,
    /// Between the groups of a Dragonfly.
    pub far: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphKind {
    /// Two tiers.
    LeafSpine { leaves: usize, hosts_per_leaf: usize, spines: usize },
    /// A non-blocking fat tree of three tiers.
    FatTree {
        /// Number of ports up, and of ports down.
        half: usize,
    },
    /// A Dragonfly of maximum size with the relative arrangement, under minimal routing.
    Dragonfly {
        /// Hosts at each switch.
        p: usize,
        /// Switches in each group.
        a: usize,
        /// Global links of each switch.
        h: usize,
    },
}

impl GraphKind {
    pub fn hosts(self) -> usize {
        match self {
            GraphKind::LeafSpine { leaves, hosts_per_leaf, .. } => leaves * hosts_per_leaf,
            GraphKind::FatTree { half } => 2 * half * half * half,
            GraphKind::Dragonfly { p, a, h } => p * a * (a * h + 1),
        }
    }
}

/// Routing. Ports `0..hosts` belong to hosts, the next as many lead down to them.
pub(super) trait Routing {
    fn hosts(&self) -> usize;
    fn ports(&self) -> usize;
    /// Number of paths from which a sender draws one per packet.
    fn choices(&self) -> u64;
    /// Routing state of a packet when it leaves its host: the drawn path, or the switch it reaches.
    fn start(&self, from: usize, choice: u64) -> u16;
    /// Output port at the switch a packet has reached, and its delay; `None` at its host.
    fn next(&self, packet: &mut Packet) -> Option<(usize, u64)>;
}

pub(super) struct LeafSpine {
    pub(super) leaves: usize,
    pub(super) hosts_per_leaf: usize,
    pub(super) spines: usize,
    pub(super) delays: Delays,
}

impl Routing for LeafSpine {
    fn hosts(&self) -> usize {
        self.leaves * self.hosts_per_leaf
    }
    fn ports(&self) -> usize {
        2 * self.hosts() + 2 * self.leaves * self.spines
    }
    fn choices(&self) -> u64 {
        self.spines as u64
    }
    fn start(&self, _: usize, choice: u64) -> u16 {
        choice as u16
    }
    #[inline]
    fn next(&self, packet: &mut Packet) -> Option<(usize, u64)> {
        let (from, to, spine) = (packet.from as usize, packet.to as usize, packet.via as usize);
        let up = 2 * self.hosts();
        Some(match packet.hop {
            1 => (up + from / self.hosts_per_leaf * self.spines + spine, self.delays.near),
            2 => (up + (self.leaves * self.spines) + spine * self.leaves + to / self.hosts_per_leaf, self.delays.near),
            3 => (self.hosts() + to, self.delays.down),
            _ => return None,
        })
    }
}

pub(super) struct FatTree {
    pub(super) half: usize,
    pub(super) delays: Delays,
}

impl Routing for FatTree {
    fn hosts(&self) -> usize {
        2 * self.half * self.half * self.half
    }
    fn ports(&self) -> usize {
        // Hosts up and down, leaves up, aggregation switches up, cores down, aggregation switches down.
        6 * self.hosts()
    }
    fn choices(&self) -> u64 {
        (self.half * self.half) as u64
    }
    fn start(&self, _: usize, choice: u64) -> u16 {
        choice as u16
    }
    #[inline]
    fn next(&self, packet: &mut Packet) -> Option<(usize, u64)> {
        let (half, hosts) = (self.half, self.hosts());
        let (from, to, core) = (packet.from as usize, packet.to as usize, packet.via as usize);
        let (leaf, to_leaf, aggregation) = (from / half, to / half, core / half);
        // A packet within its pod turns at the aggregation switch.
        let turned = if packet.hop > 1 && leaf / half == to_leaf / half { 2 } else { 0 };
        Some(match packet.hop + turned {
            1 => (2 * hosts + leaf * half + aggregation, self.delays.near),
            2 => (3 * hosts + leaf / half * half * half + core, self.delays.near),
            3 => (4 * hosts + core * 2 * half + to_leaf / half, self.delays.near),
            4 => (5 * hosts + (to_leaf / half * half + aggregation) * half + to_leaf % half, self.delays.near),
            5 => (hosts + to, self.delays.down),
            _ => return None,
        })
    }
}

pub(super) struct Dragonfly {
    pub(super) p: usize,
    pub(super) a: usize,
    pub(super) h: usize,
    pub(super) delays: Delays,
}

/// Value in place of a switch: the packet is on the link to its host.
const HOME: u16 = u16::MAX;

impl Dragonfly {
    fn groups(&self) -> usize {
        self.a * self.h + 1
    }
}

impl Routing for Dragonfly {
    fn hosts(&self) -> usize {
        self.p * self.a * self.groups()
    }
    fn ports(&self) -> usize {
        2 * self.hosts() + self.groups() * self.a * (self.a + self.h)
    }
    fn choices(&self) -> u64 {
        1
    }
    fn start(&self, from: usize, _: u64) -> u16 {
        (from / self.p) as u16
    }
    #[inline]
    fn next(&self, packet: &mut Packet) -> Option<(usize, u64)> {
        if packet.via == HOME {
            return None;
        }
        let (a, h, groups) = (self.a, self.h, self.groups());
        let (here, there) = (packet.via as usize, packet.to as usize / self.p);
        let local = 2 * self.hosts() + here * (a + h);
        if here == there {
            packet.via = HOME;
            return Some((self.hosts() + packet.to as usize, self.delays.down));
        }
        let (group, target) = (here / a, there / a);
        if group == target {
            packet.via = there as u16;
            return Some((local + there % a, self.delays.near));
        }
        // Port k of a group leads to port `groups` - 2 - k of the group k + 1 further.
        let k = (target + groups - group - 1) % groups;
        let gateway = group * a + k / h;
        if gateway != here {
            packet.via = gateway as u16;
            return Some((local + gateway % a, self.delays.near));
        }
        packet.via = (target * a + (groups - 2 - k) / h) as u16;
        Some((local + a + k % h, self.delays.far))
    }
}
