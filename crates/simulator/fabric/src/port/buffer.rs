//! A switch's shared buffer: dynamic thresholds at the egress, and at the ingress what PFC counts (specification 7.2,
//! specification 17.4).
//!
//! **With PFC nothing is dropped**, whatever the fan-in (the reference model's peculiarities apart). Let L be what all
//! ingresses may hold before they use their headroom, and H what the switch holds. A packet that joins while H > L is
//! counted as headroom of its ingress (per class), its sender is told to pause, and is not told to go on before all of
//! that headroom is free again. So the headroom in use of an ingress is at most that packet and what arrives before the
//! pause takes effect: [`least_headroom`]. Since every packet that joined after H last was L or less is counted there,
//! H <= L + the sum of all headroom, which is the whole buffer less the minimum of the queues. For this to hold the egress
//! threshold must not act, pause frames must not wait behind other control packets, and pauses must not end by themselves.

use crate::{
    ids::{PacketId, SwitchId},
    plan::LinkPlan,
};
use anabranch_backend::{BufferRules, FabricParameters};
use anabranch_settings::{Auto, Never};
use anabranch_topology::{LinkId, NodeId, Topology};
use anabranch_units::Time;

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
    /// `None`: no threshold at the egress, since PFC keeps the buffer from overflowing.
    alpha_egress: Option<f64>,
    alpha_ingress: f64,
    /// Whether the peculiarities of the reference model are followed.
    pub(crate) recorded: bool,
}

/// Queues per port in the reference model; each has a full packet of its own.
const QUEUES: u64 = 8;
/// Bytes less headroom than a port needs that the reference model keeps for a switch's first port, whatever its link.
const FIRST_PORT: u64 = 12_500;

/// Bytes of one class that can join a switch over `link` from the packet on that makes it pause its sender, that packet
/// included, for packets of `full` bytes and pause frames of `frame` bytes: the frame waits for a packet that is being
/// sent, travels, finds another packet being sent, and what is on the link arrives.
pub(crate) fn least_headroom(topology: &Topology, link: LinkId, full: u64, frame: u64) -> u64 {
    let delay = |link: LinkId| {
        let to_switch = topology.link(link).to.0 >= topology.hosts;
        topology.link(link).delay + if to_switch { topology.switch_latency } else { Time::ZERO }
    };
    let back = topology.link(link.reverse()).rate;
    let until_paused = back.wire_time(full) + back.wire_time(frame) + delay(link.reverse()) + delay(link);
    // Rounded up: the trigger, the packet that the pause finds on its way out, and a picosecond's worth.
    topology.link(link).rate.bytes_in(until_paused) + 2 * full + 1
}

/// What would make a fabric with PFC lose packets, where anything does: key, what is wrong with it, and the remedy.
pub fn lossless_problem(
    topology: &Topology,
    fabric: &FabricParameters,
    full: u64,
) -> Option<(&'static str, String, String)> {
    if !fabric.pfc || fabric.buffer_rules == BufferRules::Recorded {
        return None;
    }
    if let Never::Value(pause) = fabric.pfc_pause {
        let message =
            format!("a pause of {pause} ends by itself while the buffer may still be full, and packets are lost");
        let help = "give pfc_pause = \"never\", or the profile conweave-ns3-lossless, whose pauses end";
        return Some(("pfc_pause", message, help.into()));
    }
    let Auto::Value(given) = fabric.pfc_headroom else { return None };
    let into_switches =
        (0..topology.links.len() as u32).map(LinkId).filter(|l| topology.link(*l).to.0 >= topology.hosts);
    let (least, link) = into_switches.map(|l| (least_headroom(topology, l, full, fabric.pfc_frame.0), l)).max()?;
    (given.0 < least).then(|| {
        let name = topology.link_name(link);
        let message = format!(
            "{given} do not hold what still arrives over {name} after a pause was sent ({least}B): packets are lost"
        );
        ("pfc_headroom", message, format!("give pfc_headroom = \"auto\", or {least}B or more"))
    })
}

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
        let recorded = fabric.buffer_rules == BufferRules::Recorded;
        if let Some((key, message, help)) = lossless_problem(topology, fabric, full) {
            return Err(format!("fabric.{key}: {message}; {help}"));
        }
        let size = fabric.shared_buffer.0;
        let needed = |(number, link): (u32, &LinkPlan)| match fabric.pfc_headroom {
            Auto::Value(bytes) => bytes.0,
            Auto::Auto if recorded => 2 * link.rate.bytes_in(Time::from_ps(link.delay)) + 2 * full,
            Auto::Auto => least_headroom(topology, LinkId(number), full, fabric.pfc_frame.0),
        };
        let headroom: Vec<u64> = (0..).zip(links).map(needed).collect();
        let mut pools = Vec::new();
        for switch in 0..topology.switches() {
            let node = NodeId(topology.hosts + switch);
            let into: Vec<u64> = topology.out_links(node).iter().map(|l| headroom[l.reverse().0 as usize]).collect();
            let minimum = QUEUES * full * into.len() as u64;
            let kept: u64 = match (recorded, fabric.pfc) {
                // The last port's is not counted, and the first one's is a constant.
                (true, _) => FIRST_PORT + 2 * full + into.iter().rev().skip(1).sum::<u64>(),
                // Every class has its own pauses.
                (false, true) => into.iter().sum::<u64>() * fabric.classes.len().max(1) as u64,
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
            queue_minimum: if recorded { full as u32 + 1 } else { full as u32 },
            ingress_minimum: 2 * full,
            alpha_egress: (recorded || !fabric.pfc).then_some(fabric.buffer_alpha),
            alpha_ingress: fabric.pfc_alpha,
            recorded,
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
        if held.bytes + size > pool.total {
            return Admission::Drop;
        }
        let Some(alpha) = shared.alpha_egress else { return Admission::Admit };
        let free = pool.egress_limit.saturating_sub(held.shared) as f64;
        if (queue + size) as f64 > alpha * free {
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
        // A packet that passes takes no room; and nothing of an ingress that holds nothing leaves, to say that it may go on.
        if state.bytes == 0 && !shared.recorded {
            return false;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FULL: u64 = 1048;

    /// One switch with so many ingresses, each with this much headroom, and `shared` bytes beside headroom and minima.
    fn one_switch(ingresses: u64, headroom: u64, shared: u64) -> (SharedBuffer, Buffers) {
        let (kept, minimum) = (ingresses * headroom, ingresses * QUEUES * FULL);
        let total = kept + minimum + shared;
        let pool = Pool { total, ingress_limit: shared, egress_limit: total - minimum };
        let buffer = SharedBuffer {
            size: total,
            pools: vec![pool],
            headroom: vec![headroom; ingresses as usize],
            queue_minimum: FULL as u32,
            ingress_minimum: 2 * FULL,
            alpha_egress: None,
            alpha_ingress: 0.0625,
            recorded: false,
        };
        let ingress = vec![Ingress::default(); ingresses as usize];
        let state = Buffers { held: vec![Held::default()], ingress, classes: 1, came_by: vec![], pfc: true };
        (buffer, state)
    }

    proptest! {
        /// Whatever sends and whatever leaves, at every fan-in: as long as a paused ingress sends no more than its headroom
        /// from the packet on that had it paused, every packet finds room.
        #[test]
        fn with_pfc_every_packet_finds_room(
            ingresses in 1u64..64, headroom in 3 * FULL..30_000, shared in FULL..400_000,
            steps in prop::collection::vec((any::<u32>(), 1..=FULL as u32, 0u8..8), 100..3000),
        ) {
            let (buffer, mut state) = one_switch(ingresses, headroom, shared);
            // Per ingress what it may still send; the packets that wait: id, ingress, size.
            let mut credit = vec![u64::MAX; ingresses as usize];
            let (mut waiting, mut queue) = (std::collections::VecDeque::new(), 0u32);
            for (id, (draw, size, leave)) in steps.into_iter().enumerate() {
                let ingress = draw % ingresses as u32;
                if credit[ingress as usize] >= u64::from(size) {
                    let guest = Guest { switch: SwitchId(0), ingress, class: 0, size, queue };
                    prop_assert_eq!(state.admits(&buffer, &guest), Admission::Admit);
                    state.join(&buffer, &guest, PacketId(id as u32));
                    waiting.push_back((PacketId(id as u32), size));
                    queue += size;
                    if state.pauses(&buffer, SwitchId(0), ingress, 0, 0) && !state.set_paused(ingress, 0, true) {
                        credit[ingress as usize] = headroom;
                    }
                    if credit[ingress as usize] != u64::MAX {
                        credit[ingress as usize] -= u64::from(size);
                    }
                }
                // The port serves an eighth of what arrives.
                if leave == 0 && let Some((id, size)) = waiting.pop_front() {
                    queue -= size;
                    let guest = Guest { switch: SwitchId(0), ingress: u32::MAX, class: 0, size, queue };
                    if let Some(ingress) = state.leave(&buffer, &guest, id) {
                        state.set_paused(ingress, 0, false);
                        credit[ingress as usize] = u64::MAX;
                    }
                }
            }
        }
    }
}
