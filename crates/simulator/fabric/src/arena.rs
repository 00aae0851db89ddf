//! Packets of a run in one range of addresses that all threads share. A packet that crosses to another thread stays
//! where it is; its id passes on, and with it the right to touch it.

use crate::{
    ids::PacketId,
    measure::Waits,
    packet::{Kind, Packet},
    prefetch::prefetch,
};
use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeSet,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

/// Slots added at once.
const GROWTH: u32 = 64;
/// Free slots that a thread leaves to the others at once, and the number of them that it keeps.
const BUNDLE: usize = 1 << 10;
const MAX_FREE: usize = 1 << 14;
/// Ids below [`PacketId::NONE`], in whole steps of growth.
const MAX_SLOTS: u32 = u32::MAX / GROWTH * GROWTH;

/// Aligned to a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(Packet);

/// Does not cross cache lines.
#[derive(Debug, Default)]
#[repr(align(32))]
struct Place(Waits);

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
        // SAFETY: the layout has a size above zero: there are slots, and a value takes bytes.
        let base = unsafe { alloc(Self::layout(count)) };
        NonNull::new(base.cast::<T>()).map(|base| Reserved(Slots { base, count }))
    }
}

impl<T> Drop for Reserved<T> {
    fn drop(&mut self) {
        #[allow(unsafe_code)]
        // SAFETY: allocated with this layout; the values need no drop.
        unsafe {
            dealloc(self.0.base.as_ptr().cast(), Self::layout(self.0.count));
        }
    }
}

/// Memory of the packets of a run.
#[derive(Debug)]
pub(crate) struct Arena {
    lines: Reserved<Line>,
    /// Per packet, where delays are attributed.
    waits: Option<Reserved<Place>>,
    /// Number of slots in use or free: those below it contain a packet.
    grown: AtomicU32,
    /// Free slots that any thread may take.
    spare: Mutex<Vec<Vec<PacketId>>>,
}

impl Arena {
    /// Reserves as many slots as the system permits; with `attributed` also for the waits of packets.
    ///
    /// # Panics
    /// If there are no addresses for a few packets.
    pub(crate) fn new(attributed: bool) -> Arc<Arena> {
        let mut slots = MAX_SLOTS;
        loop {
            // Where the addresses of a process are limited, the half is left to all else.
            let (lines, other) = (Reserved::new(slots), Reserved::<Line>::new(slots));
            if let (Some(lines), Some(_)) = (lines, other) {
                let waits = attributed.then(|| Reserved::new(slots).expect("fewer bytes than were just released"));
                return Arc::new(Arena { lines, waits, grown: AtomicU32::new(0), spare: Mutex::default() });
            }
            slots /= 2;
            assert!(slots > GROWTH, "out of memory for packets");
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
    waits: Option<Slots<Place>>,
    arena: Arc<Arena>,
    free: Vec<PacketId>,
    /// Slots that this thread has added.
    grown: u32,
}

impl Packets {
    pub(crate) fn new(arena: Arc<Arena>) -> Self {
        let (lines, waits) = (arena.lines.0, arena.waits.as_ref().map(|waits| waits.0));
        Packets { lines, waits, arena, free: Vec::new(), grown: 0 }
    }

    /// Allocates a slot; it still contains the previous packet, but none of its waits.
    #[inline]
    pub(crate) fn place(&mut self) -> PacketId {
        let Some(id) = self.free.pop() else { return self.grow() };
        self.set_waits(id, Waits::default());
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
        for id in (from..from + GROWTH).map(PacketId) {
            #[allow(unsafe_code)]
            // SAFETY: `at` checks the range, and no other thread has been given these slots.
            unsafe {
                self.lines.at(id).write(Line::default());
                if let Some(waits) = self.waits {
                    waits.at(id).write(Place::default());
                }
            }
        }
        self.grown += GROWTH;
        self.free.extend((from + 1..from + GROWTH).rev().map(PacketId));
        PacketId(from)
    }

    /// Leaves free slots to other threads where this one gets more packets than it sends.
    pub(crate) fn share_free(&mut self) {
        while self.free.len() > MAX_FREE {
            let bundle = self.free.drain(..BUNDLE).collect();
            self.arena.spare().push(bundle);
        }
    }

    #[inline]
    pub(crate) fn waits_mut(&mut self, id: PacketId) -> Option<&mut Waits> {
        #[allow(unsafe_code)]
        // SAFETY: as in `index_mut`.
        self.waits.map(|waits| unsafe { &mut (*waits.at(id)).0 })
    }

    #[inline]
    pub(crate) fn waits(&self, id: PacketId) -> Waits {
        #[allow(unsafe_code)]
        // SAFETY: as in `index`.
        self.waits.map_or_else(Waits::default, |waits| unsafe { (*waits.at(id)).0 })
    }

    #[inline]
    pub(crate) fn set_waits(&mut self, id: PacketId, waits: Waits) {
        if let Some(place) = self.waits_mut(id) {
            *place = waits;
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
        let (of_a, of_b) = (self.waits(a), self.waits(b));
        self.set_waits(a, of_b);
        self.set_waits(b, of_a);
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
        let waits = if self.waits.is_some() { size_of::<Place>() } else { 0 };
        self.grown as usize * (size_of::<Line>() + waits) + self.free.capacity() * size_of::<PacketId>()
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

    fn packet(psn: u64) -> Packet {
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
        let arena = Arena::new(true);
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

    #[test]
    #[should_panic]
    fn packets_of_some_threads_are_not_all() {
        let arena = Arena::new(false);
        let (one, _other) = (Packets::new(Arc::clone(&arena)), Packets::new(arena));
        let _ = Packets::live(&[&one]).count();
    }

    #[test]
    fn waits_follow_a_swap() {
        let mut packets = Packets::new(Arena::new(true));
        let (a, b) = (packets.insert(packet(1)), packets.insert(packet(2)));
        packets.waits_mut(a).unwrap().leave(5 << 12, 7);
        packets.swap(a, b);
        assert_eq!((packets[a].psn, packets[b].psn), (2, 1));
        assert_eq!((packets.waits(a), packets.waits(b).order()), (Waits::default(), 7));
        let c = packets.place();
        packets.remove(b);
        assert_eq!((packets.place(), packets.waits(b)), (b, Waits::default()));
        assert_ne!(c, a);
    }
}
