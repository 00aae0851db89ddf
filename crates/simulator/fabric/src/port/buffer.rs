//! Occupancy of the switches' shared buffers, admission and paused senders.

use crate::{
    ids::{PacketId, SwitchId},
    plan::SharedBuffer,
};

/// Occupancy of one ingress (a link into a switch, per class).
#[derive(Clone, Copy, Debug, Default)]
struct Ingress {
    bytes: u64,
    headroom: u64,
    /// Its sender has received a pause.
    paused: bool,
}

/// Occupancy of a switch's buffer: packets that wait in its ports.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    bytes: u64,
    /// Part of `bytes` beyond the queues' minima.
    shared: u64,
    /// Ingresses, per class, whose senders have received a pause.
    paused: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Buffers {
    held: Vec<Held>,
    ingress: Vec<Ingress>,
    classes: usize,
    /// Per packet, the link by which it came into the switch where it waits; only with PFC.
    came_by: Vec<u32>,
    pfc: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferRequest {
    pub(crate) switch: SwitchId,
    pub(crate) ingress: u32,
    pub(crate) class: u8,
    pub(crate) size: u32,
    /// Bytes of its class that wait in its port, without this packet.
    pub(crate) queue: u32,
}

impl Buffers {
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

    #[inline]
    pub(crate) fn admits(&self, shared: &SharedBuffer, request: &BufferRequest) -> bool {
        let (pool, held) = (&shared.pools[request.switch.at()], self.held[request.switch.at()]);
        let queue = u64::from(request.queue.saturating_sub(shared.queue_minimum));
        let size = u64::from(request.size);
        if held.bytes + size > pool.total {
            return false;
        }
        let Some(alpha) = shared.alpha_egress else { return true };
        let free = pool.egress_limit.saturating_sub(held.shared) as f64;
        if (queue + size) as f64 > alpha * free {
            return false;
        }
        if held.bytes + size > pool.ingress_limit {
            let used = if self.pfc {
                self.ingress[request.ingress as usize * self.classes + request.class as usize].headroom
            } else {
                held.bytes - held.bytes.min(pool.ingress_limit)
            };
            if used + size > shared.headroom[request.ingress as usize] {
                return false;
            }
        }
        true
    }

    /// Returns `true` if no sender to the switch is paused. Then the counters may lag behind: a join can only be
    /// refused, or cause a pause, too early.
    #[inline]
    pub(crate) fn is_calm(&self, switch: SwitchId) -> bool {
        self.held[switch.at()].paused == 0
    }

    /// Returns `true` if a packet that joins counts as headroom of its ingress.
    #[inline]
    pub(crate) fn takes_headroom(&self, shared: &SharedBuffer, request: &BufferRequest) -> bool {
        let bytes = self.held[request.switch.at()].bytes + u64::from(request.size);
        bytes > shared.pools[request.switch.at()].ingress_limit
    }

    #[inline]
    pub(crate) fn join(&mut self, shared: &SharedBuffer, request: &BufferRequest, id: PacketId) {
        let over = self.pfc && self.takes_headroom(shared, request);
        let held = &mut self.held[request.switch.at()];
        held.bytes += u64::from(request.size);
        let beyond = |bytes: u32| u64::from(bytes.saturating_sub(shared.queue_minimum));
        held.shared += beyond(request.queue + request.size) - beyond(request.queue);
        if self.pfc {
            let state = &mut self.ingress[request.ingress as usize * self.classes + request.class as usize];
            state.bytes += u64::from(request.size);
            if over {
                state.headroom += u64::from(request.size);
            }
            if self.came_by.len() <= id.at() {
                self.came_by.resize(id.at() + 1, u32::MAX);
            }
            self.came_by[id.at()] = request.ingress;
        }
    }

    /// Accounts for a packet that leaves its queue, where `request.queue` bytes then wait. With PFC, returns the link
    /// by which it came, if that link's sender may resume now. Ignores `request.ingress`.
    #[inline]
    pub(crate) fn leave(&mut self, shared: &SharedBuffer, request: &BufferRequest, id: PacketId) -> Option<u32> {
        let BufferRequest { switch, class, size, queue: after, .. } = *request;
        let held = &mut self.held[switch.at()];
        held.bytes -= u64::from(size);
        let beyond = |bytes: u32| u64::from(bytes.saturating_sub(shared.queue_minimum));
        held.shared -= beyond(after + size) - beyond(after);
        if !self.pfc {
            return None;
        }
        let ingress = self.came_by[id.at()];
        let state = &mut self.ingress[ingress as usize * self.classes + class as usize];
        debug_assert!(state.paused || state.headroom == 0);
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

    /// Returns `true` if an ingress is over its threshold; `passing` bytes do not stay in the buffer.
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
        // A packet that passes takes no buffer; and from an empty ingress no packet would leave to trigger the resume.
        if state.bytes == 0 && !shared.recorded {
            return false;
        }
        let used = (state.bytes + u64::from(passing)) as f64 - shared.ingress_minimum as f64;
        state.headroom > 0 || used > self.threshold(shared, switch, u64::from(passing))
    }

    fn resumes(&self, shared: &SharedBuffer, switch: SwitchId, ingress: u32, class: u8) -> bool {
        let state = &self.ingress[ingress as usize * self.classes + class as usize];
        let used = state.bytes as f64 - shared.ingress_minimum as f64;
        // An empty ingress would never be checked again.
        state.headroom == 0 && (used < self.threshold(shared, switch, 16) || state.bytes == 0)
    }

    /// Records whether the sender to `switch` behind `ingress` is paused; returns the previous state.
    pub(crate) fn set_paused(&mut self, switch: SwitchId, ingress: u32, class: u8, paused: bool) -> bool {
        let state = &mut self.ingress[ingress as usize * self.classes + class as usize];
        let before = std::mem::replace(&mut state.paused, paused);
        let count = &mut self.held[switch.at()].paused;
        *count = *count - u32::from(before) + u32::from(paused);
        before
    }

    pub(crate) fn came_by(&self, id: PacketId) -> Option<u32> {
        self.came_by.get(id.at()).copied()
    }

    /// Returns its bytes where there are `slots` packets. Ids differ from run to run on several threads, the number of slots
    /// does not.
    pub(crate) fn memory(&self, slots: usize) -> usize {
        self.ingress.capacity() * size_of::<Ingress>() + if self.pfc { slots * 4 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Pool, QUEUES};
    use proptest::prelude::*;

    const FULL: u64 = 1048;

    /// One switch with this much headroom per ingress, and `shared` bytes beside headroom and minima.
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
        /// For any arrivals and departures, at every fan-in: if a paused ingress sends no more than its headroom from
        /// the packet that caused the pause, every packet is admitted.
        #[test]
        fn pfc_never_drops(
            ingresses in 1u64..64, headroom in 3 * FULL..30_000, shared in FULL..400_000,
            steps in prop::collection::vec((any::<u32>(), 1..=FULL as u32, 0u8..8), 100..3000),
        ) {
            let (buffer, mut state) = one_switch(ingresses, headroom, shared);
            // Per ingress, bytes that it may still send; waiting packets: id, ingress, size.
            let mut credit = vec![u64::MAX; ingresses as usize];
            let (mut waiting, mut queue) = (std::collections::VecDeque::new(), 0u32);
            for (id, (draw, size, leave)) in steps.into_iter().enumerate() {
                let ingress = draw % ingresses as u32;
                if credit[ingress as usize] >= u64::from(size) {
                    let request = BufferRequest { switch: SwitchId(0), ingress, class: 0, size, queue };
                    prop_assert!(state.admits(&buffer, &request));
                    state.join(&buffer, &request, PacketId(id as u32));
                    waiting.push_back((PacketId(id as u32), size));
                    queue += size;
                    if state.pauses(&buffer, SwitchId(0), ingress, 0, 0) && !state.set_paused(SwitchId(0), ingress, 0, true) {
                        credit[ingress as usize] = headroom;
                    }
                    if credit[ingress as usize] != u64::MAX {
                        credit[ingress as usize] -= u64::from(size);
                    }
                }
                // The port serves an eighth of what arrives.
                if leave == 0 && let Some((id, size)) = waiting.pop_front() {
                    queue -= size;
                    let request = BufferRequest { switch: SwitchId(0), ingress: u32::MAX, class: 0, size, queue };
                    if let Some(ingress) = state.leave(&buffer, &request, id) {
                        state.set_paused(SwitchId(0), ingress, 0, false);
                        credit[ingress as usize] = u64::MAX;
                    }
                }
            }
        }
    }
}
