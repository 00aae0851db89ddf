//! A switch's shared buffer: dynamic thresholds at the egress, and at the ingress what PFC counts (specification 7.2,
//! conweave-ns3 1.4).

use crate::{
    ids::{PacketId, SwitchId},
    plan::{FabricParameters, LinkPlan, Quirks},
};
use anabranch_topology::{NodeId, Topology};

/// The limits of one switch's buffer, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    /// All of it.
    total: u64,
    /// What all ingresses may hold before they use their headroom.
    ingress_limit: u64,
    /// What all egress queues may hold beyond their minimum.
    egress_limit: u64,
}

/// What every switch of a run shares with the others: thresholds in bytes. `None` in [`Plan`] where ports have limits
/// of their own.
#[derive(Clone, Debug)]
pub(crate) struct SharedBuffer {
    /// Bytes of one switch.
    pub(crate) size: u64,
    /// Per switch.
    pub(crate) pools: Vec<Pool>,
    /// Per directed link into a switch: bytes kept for it beyond the thresholds.
    pub(crate) headroom: Vec<u64>,
    /// What an egress queue holds before it draws on the pool.
    pub(crate) queue_minimum: u32,
    /// What an ingress holds before it draws on the pool.
    ingress_minimum: u64,
    alpha_egress: f64,
    alpha_ingress: f64,
}

/// Queues per port in the reference model; each has a full packet of its own.
const QUEUES: u64 = 8;
/// Bytes less headroom than a port needs that the reference model keeps for a switch's first port, whatever its link.
const FIRST_PORT: u64 = 12_500;

impl SharedBuffer {
    /// The buffers of `topology` whose switches have `size` bytes each, for packets of `full` bytes.
    ///
    /// # Errors
    /// Where headroom and minima leave nothing to share.
    pub(crate) fn new(
        topology: &Topology,
        links: &[LinkPlan],
        fabric: &FabricParameters,
        full: u64,
    ) -> Result<Self, String> {
        let reference = fabric.quirks == Quirks::ConweaveNs3;
        let size = fabric.shared_buffer.0;
        let needed = |link: &LinkPlan| match fabric.pfc_headroom {
            anabranch_settings::Auto::Value(bytes) => bytes.0,
            anabranch_settings::Auto::Auto => {
                2 * link.rate.bytes_in(anabranch_units::Time::from_ps(link.delay)) + 2 * full
            }
        };
        let headroom: Vec<u64> = links.iter().map(needed).collect();
        let mut pools = Vec::new();
        for switch in 0..topology.switches() {
            let node = NodeId(topology.hosts + switch);
            let into: Vec<u64> = topology.out_links(node).iter().map(|l| headroom[l.reverse().0 as usize]).collect();
            let minimum = QUEUES * full * into.len() as u64;
            let kept: u64 = match (reference, fabric.pfc) {
                // The last port's is not counted, and the first one's is a constant.
                (true, _) => FIRST_PORT + 2 * full + into.iter().rev().skip(1).sum::<u64>(),
                (false, true) => into.iter().sum(),
                (false, false) => 0,
            };
            if kept + minimum + full > size {
                let name = &topology.node(node).name;
                return Err(format!(
                    "fabric.shared_buffer: {size} B are too few for {name}: its {} ports need {kept} B of headroom and \
                     {minimum} B of minimum; give {} B or more",
                    into.len(),
                    kept + minimum + full
                ));
            }
            let (ingress_limit, egress_limit) = (size - kept - minimum, size - minimum);
            pools.push(Pool { total: size, ingress_limit, egress_limit });
        }
        Ok(SharedBuffer {
            size,
            pools,
            headroom,
            queue_minimum: if reference { full as u32 + 1 } else { full as u32 },
            ingress_minimum: 2 * full,
            alpha_egress: fabric.buffer_alpha,
            alpha_ingress: fabric.pfc_alpha,
        })
    }
}

/// What one ingress (a link into a switch, per class) holds.
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    bytes: u64,
    headroom: u64,
    /// Its sender has been told to pause.
    paused: bool,
}

/// What a switch's buffer holds: packets that wait in its ports.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bytes: u64,
    /// The part of them that is beyond the queues' minima.
    shared: u64,
}

/// The buffers of a partition's switches as they stand.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    held: Vec<Held>,
    ingress: Vec<Ingress>,
    classes: usize,
    /// Per packet the link by which it came into the switch where it waits; only with PFC.
    came_by: Vec<u32>,
    pfc: bool,
}

/// A packet at a switch, as its buffer sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    pub(crate) switch: SwitchId,
    /// The link by which it came.
    pub(crate) ingress: u32,
    pub(crate) class: u8,
    pub(crate) size: u32,
    /// Bytes of its class that wait in its port without it.
    pub(crate) queue: u32,
}

/// What the admission of a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Drop,
    Admit,
}

impl Buffers {
    /// Empty buffers, for links and classes in these numbers.
    pub(crate) fn new(shared: Option<&SharedBuffer>, links: usize, classes: usize, pfc: bool) -> Self {
        let Some(shared) = shared else { return Buffers::default() };
        let ingresses = if pfc { links * classes } else { 0 };
        Buffers {
            held: vec![Held::default(); shared.pools.len()],
            ingress: vec![Ingress::default(); ingresses],
            classes,
            came_by: Vec::new(),
            pfc,
        }
    }

    /// Whether a packet may join its queue.
    #[inline]
    pub(crate) fn admits(&self, shared: &SharedBuffer, guest: &Guest) -> Admission {
        let (pool, held) = (&shared.pools[guest.switch.at()], self.held[guest.switch.at()]);
        let queue = u64::from(guest.queue.saturating_sub(shared.queue_minimum));
        let size = u64::from(guest.size);
        let free = pool.egress_limit.saturating_sub(held.shared) as f64;
        if (queue + size) as f64 > shared.alpha_egress * free || held.bytes + size > pool.total {
            return Admission::Drop;
        }
        if held.bytes + size > pool.ingress_limit {
            let used = if self.pfc {
                self.ingress[guest.ingress as usize * self.classes + guest.class as usize].headroom
            } else {
                held.bytes - held.bytes.min(pool.ingress_limit)
            };
            if used + size > shared.headroom[guest.ingress as usize] {
                return Admission::Drop;
            }
        }
        Admission::Admit
    }

    /// A packet joins its queue.
    #[inline]
    pub(crate) fn join(&mut self, shared: &SharedBuffer, guest: &Guest, id: PacketId) {
        let held = &mut self.held[guest.switch.at()];
        held.bytes += u64::from(guest.size);
        let beyond = |bytes: u32| u64::from(bytes.saturating_sub(shared.queue_minimum));
        held.shared += beyond(guest.queue + guest.size) - beyond(guest.queue);
        if self.pfc {
            let over = held.bytes > shared.pools[guest.switch.at()].ingress_limit;
            let state = &mut self.ingress[guest.ingress as usize * self.classes + guest.class as usize];
            state.bytes += u64::from(guest.size);
            if over {
                state.headroom += u64::from(guest.size);
            }
            if self.came_by.len() <= id.at() {
                self.came_by.resize(id.at() + 1, u32::MAX);
            }
            self.came_by[id.at()] = guest.ingress;
        }
    }

    /// A packet leaves its queue, where the guest's `queue` bytes then wait. With PFC, returns the link by which it came,
    /// if that one's sender may go on now; the guest's own `ingress` is not looked at.
    #[inline]
    pub(crate) fn leave(&mut self, shared: &SharedBuffer, guest: &Guest, id: PacketId) -> Option<u32> {
        let Guest { switch, class, size, queue: after, .. } = *guest;
        let held = &mut self.held[switch.at()];
        held.bytes -= u64::from(size);
        let beyond = |bytes: u32| u64::from(bytes.saturating_sub(shared.queue_minimum));
        held.shared -= beyond(after + size) - beyond(after);
        if !self.pfc {
            return None;
        }
        let ingress = self.came_by[id.at()];
        let state = &mut self.ingress[ingress as usize * self.classes + class as usize];
        state.bytes -= u64::from(size);
        state.headroom -= state.headroom.min(u64::from(size));
        let resumes = state.paused && self.resumes(shared, switch, ingress, class);
        resumes.then_some(ingress)
    }

    fn threshold(&self, shared: &SharedBuffer, switch: SwitchId, extra: u64) -> f64 {
        let used = self.held[switch.at()].bytes + extra;
        let free = shared.pools[switch.at()].ingress_limit as f64 - used as f64;
        shared.alpha_ingress * free
    }

    /// Whether an ingress is over its threshold; `passing` bytes are there for this moment only.
    #[inline]
    pub(crate) fn pauses(
        &self,
        shared: &SharedBuffer,
        switch: SwitchId,
        ingress: u32,
        class: u8,
        passing: u32,
    ) -> bool {
        let state = &self.ingress[ingress as usize * self.classes + class as usize];
        let used = (state.bytes + u64::from(passing)) as f64 - shared.ingress_minimum as f64;
        state.headroom > 0 || used > self.threshold(shared, switch, u64::from(passing))
    }

    fn resumes(&self, shared: &SharedBuffer, switch: SwitchId, ingress: u32, class: u8) -> bool {
        let state = &self.ingress[ingress as usize * self.classes + class as usize];
        let used = state.bytes as f64 - shared.ingress_minimum as f64;
        // An empty ingress would never be asked again.
        state.headroom == 0 && (used < self.threshold(shared, switch, 16) || state.bytes == 0)
    }

    /// Notes whether the sender behind `ingress` has been told to pause; returns what was noted before.
    pub(crate) fn set_paused(&mut self, ingress: u32, class: u8, paused: bool) -> bool {
        std::mem::replace(&mut self.ingress[ingress as usize * self.classes + class as usize].paused, paused)
    }

    /// The link by which a waiting packet came; only with PFC.
    pub(crate) fn came_by(&self, id: PacketId) -> Option<u32> {
        self.came_by.get(id.at()).copied()
    }

    pub(crate) fn memory(&self) -> usize {
        self.ingress.capacity() * size_of::<Ingress>() + self.came_by.capacity() * 4
    }
}
