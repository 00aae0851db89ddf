//! Packets of a run in one range of addresses that all threads share. A packet that crosses to another thread stays
//! where it is; its id passes on, and with it the right to touch it.

use crate::{
    ids::PacketId,
    measure::Waits,
    packet::{Kind, Packet},
    plan::Plan,
    prefetch::prefetch,
};
use anabranch_units::Bytes;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    collections::BTreeSet,
    fmt,
    panic::resume_unwind,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

/// Slots added at once.
const GROWTH: u32 = 64;
/// Free slots that a thread leaves to the others at once, and the number of them that it keeps.
const BUNDLE: usize = 1 << 10;
const MAX_FREE: usize = 1 << 14;
/// Bytes that a packet under way takes: its slot, events, and its places in windows and bitmaps of sender and receiver.
const SLOT: u64 = 2 * size_of::<Line>() as u64;
const MIN_SLOTS: u32 = 1 << 10;
/// Ids below [`PacketId::NONE`], in whole steps of growth.
const MAX_SLOTS: u32 = u32::MAX / GROWTH * GROWTH;

/// Aligned to a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(Packet);

/// Waits of a data packet that do not fit into it. Does not cross cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Beside {
    /// See [`Waits`]; while the packet is in a queue, less the pauses of the queue before it joined, wrapping.
    paused: u64,
    /// Where the header of a switch scheme takes the words of the packet: all waits, and the longest in one queue.
    waited: u64,
    longest: u64,
    /// Credit that the sender requests in the packet.
    demand: u64,
}

/// Where the packets of a run note their waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    None,
    /// In the first words of the header.
    Packet,
    /// A switch scheme needs all words of the header.
    Beside,
}

/// What the packets of a run note of their waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attribution {
    waits: Place,
    /// Queues can be paused.
    pauses: bool,
    /// Receivers grant credit.
    credit: bool,
}

impl Attribution {
    pub(crate) fn new(plan: &Plan<'_>) -> Self {
        let wide = plan.balancers.iter().any(|balancer| balancer.switch.capabilities().fills_header());
        let waits = match (plan.measure.attribution, wide) {
            (false, _) => Place::None,
            (true, false) => Place::Packet,
            (true, true) => Place::Beside,
        };
        Attribution { waits, pauses: plan.fabric.pfc, credit: plan.transports.has_credit() }
    }

    fn beside(self) -> bool {
        self.credit || self.waits == Place::Beside || self.waits == Place::Packet && self.pauses
    }
}

/// Range of addresses for `count` values, which take memory when they are first written.
#[derive(Debug)]
struct Slots<T> {
    base: NonNull<T>,
    count: u32,
}

impl<T> Clone for Slots<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slots<T> {}

#[allow(unsafe_code)]
// SAFETY: a slot is touched by one thread at a time: the one whose `Packets` got its id from `place` or in a message.
// Messages pass through a mutex and free slots through another, which order the accesses.
unsafe impl<T> Send for Slots<T> {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl<T> Sync for Slots<T> {}

impl<T> Slots<T> {
    #[inline]
    fn at(self, id: PacketId) -> *mut T {
        assert!(id.0 < self.count);
        self.base.as_ptr().wrapping_add(id.at())
    }
}

/// Slots that are released with it.
#[derive(Debug)]
struct Reserved<T>(Slots<T>);

impl<T> Reserved<T> {
    fn layout(count: u32) -> Layout {
        const { assert!(size_of::<T>() > 0 && !std::mem::needs_drop::<T>()) };
        Layout::array::<T>(count as usize).expect("fewer bytes than addresses")
    }

    /// Returns `None` where the system refuses that number of addresses.
    fn new(count: u32) -> Option<Self> {
        #[allow(unsafe_code)]
        // SAFETY: the layout has a size above zero: there are slots, and a value takes bytes. The system's own allocator
        // returns null where a program's may end the process.
        let base = unsafe { System.alloc(Self::layout(count)) };
        NonNull::new(base.cast::<T>()).map(|base| Reserved(Slots { base, count }))
    }
}

impl<T> Drop for Reserved<T> {
    fn drop(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: allocated with this layout; the values need no drop.
        unsafe {
            System.dealloc(self.0.base.as_ptr().cast(), Self::layout(self.0.count));
        }
    }
}

/// More packets were under way than there is memory for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooManyPackets(u32);

impl fmt::Display for TooManyPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = Bytes(u64::from(self.0) * SLOT).rounded();
        write!(
            f,
            "run.memory_limit: more than {} packets are under way at once, which take {held} of memory, all that \
             the memory limit leaves for them (`memory_limit` of [run], else this machine, its control group or `ulimit -v`)",
            self.0
        )
    }
}

/// Memory of the packets of a run.
#[derive(Debug)]
pub(crate) struct Arena {
    lines: Reserved<Line>,
    attribution: Attribution,
    /// Per packet, where the attribution needs it.
    beside: Option<Reserved<Beside>>,
    /// Number of slots in use or free: those below it contain a packet.
    grown: AtomicU32,
    /// Maximum of the bytes of these and of the time series.
    limit: u64,
    /// Bytes that the time series hold.
    series: AtomicU64,
    /// Free slots that any thread may take.
    spare: Mutex<Vec<Vec<PacketId>>>,
}

impl Arena {
    /// Reserves as many slots as the system permits, and no more than `limit` bytes of memory hold.
    /// Fails if there are no addresses for a few packets.
    pub(crate) fn new(attribution: Attribution, limit: Option<u64>) -> Result<Arc<Arena>, String> {
        let limit = limit.unwrap_or(u64::MAX).max(u64::from(MIN_SLOTS) * SLOT);
        let mut slots = u32::try_from(limit / SLOT).unwrap_or(MAX_SLOTS).min(MAX_SLOTS) / GROWTH * GROWTH;
        loop {
            // Where the addresses of a process are limited, the half is left to all else.
            let (lines, other) = (Reserved::new(slots), Reserved::<Line>::new(slots));
            let beside = attribution.beside().then(|| Reserved::new(slots));
            if let (Some(lines), Some(_)) = (lines, other)
                && beside.as_ref().is_none_or(Option::is_some)
            {
                let (beside, grown, series) = (beside.flatten(), AtomicU32::new(0), AtomicU64::new(0));
                let spare = Mutex::default();
                return Ok(Arc::new(Arena { lines, attribution, beside, grown, limit, series, spare }));
            }
            slots = slots / 2 / GROWTH * GROWTH;
            if slots < MIN_SLOTS {
                let needed = Bytes(2 * u64::from(MIN_SLOTS) * size_of::<Line>() as u64).rounded();
                return Err(format!(
                    "packets need at least {needed} of addresses, and the system gives no more (`ulimit -v`)"
                ));
            }
        }
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Vec<PacketId>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Packets of one thread: those whose ids it got from [`Packets::place`] or in a message, until it removes them or sends them
/// to another.
#[derive(Debug)]
pub(crate) struct Packets {
    lines: Slots<Line>,
    attribution: Attribution,
    beside: Option<Slots<Beside>>,
    arena: Arc<Arena>,
    free: Vec<PacketId>,
    /// Slots that this thread has added.
    grown: u32,
}

impl Packets {
    pub(crate) fn new(arena: Arc<Arena>) -> Self {
        let (lines, beside) = (arena.lines.0, arena.beside.as_ref().map(|beside| beside.0));
        Packets { lines, attribution: arena.attribution, beside, arena, free: Vec::new(), grown: 0 }
    }

    /// Allocates a slot; it still contains the previous packet, but nothing beside it.
    #[inline]
    pub(crate) fn place(&mut self) -> PacketId {
        let Some(id) = self.free.pop() else { return self.grow() };
        if let Some(beside) = self.beside_mut(id) {
            *beside = Beside::default();
        }
        id
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> PacketId {
        let spare = self.arena.spare().pop();
        if let Some(bundle) = spare {
            self.free = bundle;
            return self.place();
        }
        let from = self.arena.grown.fetch_add(GROWTH, Relaxed);
        let held = (u64::from(from) + u64::from(GROWTH)) * SLOT + self.arena.series.load(Relaxed);
        if from >= self.lines.count || held > self.arena.limit {
            // Not a failed invariant: no message of a panic.
            resume_unwind(Box::new(TooManyPackets(from)));
        }
        for id in (from..from + GROWTH).map(PacketId) {
            #[allow(unsafe_code)]
            // SAFETY: `at` checks the range, and no other thread has been given these slots.
            unsafe {
                self.lines.at(id).write(Line::default());
                if let Some(beside) = self.beside {
                    beside.at(id).write(Beside::default());
                }
            }
        }
        self.grown += GROWTH;
        self.free.extend((from + 1..from + GROWTH).rev().map(PacketId));
        PacketId(from)
    }

    /// Adds bytes of the time series; returns the limit where they and the packets exceed it.
    pub(crate) fn hold_series(&self, bytes: u64) -> Option<u64> {
        let Arena { grown, limit, series, .. } = &*self.arena;
        let held = series.fetch_add(bytes, Relaxed).saturating_add(bytes);
        (u64::from(grown.load(Relaxed)) * SLOT + held > *limit).then_some(*limit)
    }

    /// Leaves free slots to other threads where this one gets more packets than it sends.
    pub(crate) fn share_free(&mut self) {
        while self.free.len() > MAX_FREE {
            let bundle = self.free.drain(..BUNDLE).collect();
            self.arena.spare().push(bundle);
        }
    }

    #[inline]
    fn beside_mut(&mut self, id: PacketId) -> Option<&mut Beside> {
        #[allow(unsafe_code)]
        // SAFETY: as in `index_mut`.
        self.beside.map(|beside| unsafe { &mut *beside.at(id) })
    }

    #[inline]
    fn beside(&self, id: PacketId) -> Beside {
        #[allow(unsafe_code)]
        // SAFETY: as in `index`.
        self.beside.map_or_else(Beside::default, |beside| unsafe { *beside.at(id) })
    }

    /// Stores the credit that the sender of a data packet requests.
    pub(crate) fn set_demand(&mut self, id: PacketId, demand: u64) {
        if let Some(beside) = self.beside_mut(id) {
            beside.demand = demand;
        }
    }

    /// Returns the credit that the sender of a data packet, or of its header, requests.
    pub(crate) fn demand(&self, id: PacketId) -> u64 {
        self.beside(id).demand
    }

    /// Notes that a packet has left a queue after `hop`; `order` is that of the arrivals over the queue's link.
    #[inline(always)]
    pub(crate) fn leave(&mut self, id: PacketId, hop: u64, order: u32) {
        match self.attribution.waits {
            Place::Packet => {}
            Place::Beside => return self.leave_beside(id, hop, order),
            Place::None => return,
        }
        let packet = &mut self[id];
        if packet.kind != Kind::Data {
            return;
        }
        let (waited, longest) = (packet.head.wide(0), packet.head.wide(1));
        packet.held_by = if hop > longest { order } else { packet.held_by };
        packet.head.set_wide(0, waited + hop);
        packet.head.set_wide(1, longest.max(hop));
    }

    #[cold]
    fn leave_beside(&mut self, id: PacketId, hop: u64, order: u32) {
        let is_data = self[id].kind == Kind::Data;
        let Some(beside) = self.beside_mut(id).filter(|_| is_data) else { return };
        beside.waited += hop;
        if hop > beside.longest {
            beside.longest = hop;
            self[id].held_by = order;
        }
    }

    /// Notes that a packet joins a queue that has been paused for `paused`.
    #[inline]
    pub(crate) fn join(&mut self, id: PacketId, paused: u64) {
        if let Some(beside) = self.beside_mut(id) {
            beside.paused = beside.paused.wrapping_sub(paused);
        }
    }

    /// Notes that a packet has left a queue that has been paused for `paused`.
    #[inline]
    pub(crate) fn resume(&mut self, id: PacketId, paused: u64) {
        if let Some(beside) = self.beside_mut(id) {
            beside.paused = beside.paused.wrapping_add(paused);
        }
    }

    /// Returns the waits of a data packet; none where delays are not attributed.
    #[inline]
    pub(crate) fn waits(&self, id: PacketId) -> Waits {
        let waited = self.waited(id);
        waited.map_or_else(Waits::default, |waited| Waits {
            waited,
            paused: self.beside(id).paused,
            order: self[id].held_by,
        })
    }

    #[inline]
    fn waited(&self, id: PacketId) -> Option<u64> {
        match self.attribution.waits {
            Place::Packet => Some(self[id].head.wide(0)),
            Place::Beside => Some(self.beside(id).waited),
            Place::None => None,
        }
    }

    /// Returns the waits of the data packet that a packet is a reply to.
    #[inline]
    pub(crate) fn reply_waits(&self, id: PacketId) -> Waits {
        let packet = &self[id];
        Waits { waited: packet.queued_at, paused: self.beside(id).paused, order: packet.held_by }
    }

    /// Lets the reply in the slot of a data packet have its waits, or the time at which it completed its flow.
    #[inline]
    pub(crate) fn hand_over(&self, id: PacketId, reply: &mut Packet) {
        if let Some(waited) = self.waited(id) {
            let packet = &self[id];
            reply.set_reply_waits(packet.completed_at().unwrap_or(waited), packet.held_by);
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, id: PacketId) {
        if id.is_some() {
            prefetch(self.lines.base.as_ptr().wrapping_add(id.at()));
        }
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: PacketId) {
        self[id].kind = Kind::Free;
        self.free.push(id);
    }

    pub(crate) fn swap(&mut self, a: PacketId, b: PacketId) {
        (self[a], self[b]) = (self[b], self[a]);
        let swapped = (self.beside(b), self.beside(a));
        for (id, other) in [(a, swapped.0), (b, swapped.1)] {
            if let Some(beside) = self.beside_mut(id) {
                *beside = other;
            }
        }
    }

    /// Returns the packets of all threads, which `all` are.
    ///
    /// # Panics
    /// If the arena has packets of other threads.
    pub(crate) fn live<'p>(all: &[&'p Packets]) -> impl Iterator<Item = &'p Packet> + use<'p> {
        let (first, owners): (_, BTreeSet<_>) =
            (all[0], all.iter().map(|packets| std::ptr::from_ref(*packets)).collect());
        assert!(all.iter().all(|packets| Arc::ptr_eq(&packets.arena, &first.arena)));
        assert_eq!(owners.len(), Arc::strong_count(&first.arena));
        let (lines, grown) = (first.lines, first.arena.grown.load(Relaxed));
        #[allow(unsafe_code)]
        // SAFETY: slots below `grown` have been written, and all that could write there are borrowed while the packets are.
        let packets = (0..grown).map(move |index| unsafe { &(*lines.at(PacketId(index))).0 });
        packets.filter(|packet| packet.kind != Kind::Free)
    }

    /// Returns the number of slots of all threads.
    pub(crate) fn slots(&self) -> usize {
        self.arena.grown.load(Relaxed) as usize
    }

    /// Returns the bytes of the slots that this thread has added.
    pub(crate) fn bytes(&self) -> usize {
        let beside = if self.beside.is_some() { size_of::<Beside>() } else { 0 };
        self.grown as usize * (size_of::<Line>() + beside) + self.free.capacity() * size_of::<PacketId>()
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        #[allow(unsafe_code)]
        // SAFETY: `at` checks the range; ids come from `grow`, which has written the slot. Only the owner has the id.
        unsafe {
            &(*self.lines.at(id)).0
        }
    }
}
impl std::ops::IndexMut<PacketId> for Packets {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        #[allow(unsafe_code)]
        // SAFETY: as in `index`; `self` is borrowed mutably, so no other reference to one of its packets exists.
        unsafe {
            &mut (*self.lines.at(id)).0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ids::PortId, measure::PausedTimes};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn packet(psn: u32) -> Packet {
        Packet { psn, kind: Kind::Data, ..Packet::default() }
    }

    impl Packets {
        pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
            let id = self.place();
            self[id] = packet;
            id
        }
    }

    /// One thread sends, the other receives and removes: the slots come back, so the memory stays that of the packets that
    /// are under way and of the slots that a thread keeps.
    #[test]
    fn slots_return_to_the_thread_that_sends() {
        let arena = Arena::new(Attribution { waits: Place::Beside, pauses: true, credit: false }, None).unwrap();
        let (mut sender, mut receiver) = (Packets::new(Arc::clone(&arena)), Packets::new(arena));
        for round in 0..100 {
            let sent: Vec<PacketId> = (0..2_000).map(|psn| sender.insert(packet(round * 2_000 + psn))).collect();
            let (first, last) = (sent[0], sent[1_999]);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert_eq!((receiver[first].psn, receiver[last].psn), (round * 2_000, round * 2_000 + 1_999));
                    assert_eq!(Packets::live(&[&sender, &receiver]).count(), 2_000);
                    sent.into_iter().for_each(|id| receiver.remove(id));
                    receiver.share_free();
                });
            });
        }
        assert_eq!(Packets::live(&[&sender, &receiver]).count(), 0);
        let slots = sender.grown + receiver.grown;
        assert!(slots as usize <= MAX_FREE + BUNDLE + 2 * 2_000, "{slots}");
    }

    /// 128 B each: of 4,096 packets' memory, series that hold a quarter leave 3,072, and as many packets leave them no more.
    #[test]
    fn packets_and_series_share_the_limit() {
        let mut packets = Packets::new(Arena::new(Attribution::default(), Some(4096 * 128)).unwrap());
        assert_eq!(packets.hold_series(1024 * 128), None);
        (0..3072).for_each(|psn| _ = packets.insert(packet(psn)));
        assert_eq!(packets.hold_series(128), Some(4096 * 128));
        let more = AssertUnwindSafe(|| (0..64).for_each(|psn| _ = packets.insert(packet(psn))));
        assert!(catch_unwind(more).unwrap_err().is::<TooManyPackets>());
    }

    #[test]
    #[should_panic]
    fn packets_of_some_threads_are_not_all() {
        let arena = Arena::new(Attribution::default(), None).unwrap();
        let (one, _other) = (Packets::new(Arc::clone(&arena)), Packets::new(arena));
        let _ = Packets::live(&[&one]).count();
    }

    #[test]
    fn waits_follow_a_swap() {
        for place in [Place::Packet, Place::Beside] {
            let mut packets =
                Packets::new(Arena::new(Attribution { waits: place, pauses: true, credit: false }, None).unwrap());
            let (a, b) = (packets.insert(packet(1)), packets.insert(packet(2)));
            packets.leave(a, 5, 7);
            packets.resume(a, 3);
            packets.swap(a, b);
            assert_eq!((packets[a].psn, packets[b].psn), (2, 1));
            let waits = Waits { waited: 5, paused: 3, order: 7 };
            assert_eq!((packets.waits(a), packets.waits(b)), (Waits::default(), waits), "{place:?}");
            let c = packets.place();
            packets.remove(b);
            assert_eq!((packets.insert(packet(3)), packets.waits(b)), (b, Waits::default()));
            assert_ne!(c, a);
        }
    }

    /// Joins at 10, paused from 15 to 18, leaves at 30: 20 waited, 3 of them paused; then 5, and 20 again: the first holds.
    #[test]
    fn waits_are_split_by_hand() {
        for waits in [Place::Packet, Place::Beside] {
            let mut packets =
                Packets::new(Arena::new(Attribution { waits, pauses: true, credit: false }, None).unwrap());
            let (mut times, port) = (PausedTimes::new(2, 1), PortId(1));
            let id = packets.insert(packet(1));
            packets.join(id, times.before(port, 0, 10));
            times.pause(port, 0, 15);
            times.pause(port, 0, 16);
            assert_eq!(times.before(port, 0, 17), 2);
            times.resume(port, 0, 18);
            packets.leave(id, 20, 7);
            packets.resume(id, times.before(port, 0, 30));
            packets.leave(id, 5, 9);
            packets.leave(id, 20, 11);
            let waits = packets.waits(id);
            assert_eq!((waits.queued(), waits.paused, waits.order), (42, 3, 7));
            let mut reply = Packet { kind: Kind::Ack, ..packet(1) };
            packets.hand_over(id, &mut reply);
            packets[id] = reply;
            assert_eq!((packets.reply_waits(id), packets[id].completed_at()), (waits, None));
            packets[id].complete(40);
            packets.hand_over(id, &mut reply);
            assert_eq!(reply.completed_at(), Some(40));
        }
    }

    /// A probe has its time of sending where data has its waits.
    #[test]
    fn probes_have_no_waits() {
        let mut packets =
            Packets::new(Arena::new(Attribution { waits: Place::Packet, ..Attribution::default() }, None).unwrap());
        let mut probe = Packet { kind: Kind::Probe, ..packet(1) };
        probe.head.set_wide(0, 77);
        let id = packets.insert(probe);
        packets.leave(id, 20, 7);
        assert_eq!((packets[id].head.wide(0), packets[id].held_by), (77, 0));
    }
}
