//! Identifiers that NCCL holds: numbers in the form of pointers, so that an invalid one is detected and never
//! dereferenced.
//!
//! They consist of the kind (4 bits), the device (8), a slot in a table (20) and the slot's generation (32), the number
//! of its earlier uses, and are never null.

use std::ffi::c_void;

/// Kind of an object that NCCL refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum IdKind {
    Listener = 1,
    Sender = 2,
    Receiver = 3,
    Request = 4,
    /// One of NCCL's communicators, since version 11.
    Context = 5,
    Memory = 6,
    Attempt = 7,
}

/// A slot of a [`Slots`], with its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    slot: u32,
    generation: u32,
}

const MAX_SLOTS: u32 = 1 << 20;

impl Id {
    /// Encodes the identifier as a pointer for NCCL.
    pub fn pointer(self, kind: IdKind, device: u8) -> *mut c_void {
        self.number(kind, device) as usize as *mut c_void
    }

    pub fn number(self, kind: IdKind, device: u8) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot) << 12 | u64::from(device) << 4 | kind as u64
    }

    /// Decodes device and identifier from a pointer, if it is of that kind.
    pub fn of_pointer(pointer: *mut c_void, kind: IdKind) -> Option<(u8, Id)> {
        Self::of_number(pointer as usize as u64, kind)
    }

    /// Decodes device and identifier from a number, if it is of that kind.
    pub fn of_number(number: u64, kind: IdKind) -> Option<(u8, Id)> {
        let id = Id { slot: (number >> 12) as u32 & (MAX_SLOTS - 1), generation: (number >> 32) as u32 };
        (number & 0xf == kind as u64).then_some(((number >> 4) as u8, id))
    }
}

/// A table whose slots are reused, each time under another [`Id`].
#[derive(Debug)]
pub struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Inserts a value; `None` where the table has a million values already.
    pub fn insert(&mut self, value: T) -> Option<Id> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = u32::try_from(self.places.len()).ok().filter(|slot| *slot < MAX_SLOTS)?;
                self.places.push((0, None));
                slot
            }
        };
        let (generation, place) = &mut self.places[slot as usize];
        *place = Some(value);
        Some(Id { slot, generation: *generation })
    }

    #[inline]
    pub fn get(&self, id: Id) -> Option<&T> {
        self.places.get(id.slot as usize).filter(|(generation, _)| *generation == id.generation)?.1.as_ref()
    }

    /// Returns the value of an identifier, mutably.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> Option<&mut T> {
        self.places.get_mut(id.slot as usize).filter(|(generation, _)| *generation == id.generation)?.1.as_mut()
    }

    /// Removes a value; its identifier is invalid from then on.
    pub fn remove(&mut self, id: Id) -> Option<T> {
        let (generation, place) =
            self.places.get_mut(id.slot as usize).filter(|(generation, _)| *generation == id.generation)?;
        let value = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(value)
    }

    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns `true` if the table has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all values, in the order of their slots.
    pub fn iter(&self) -> impl Iterator<Item = (Id, &T)> {
        self.places.iter().enumerate().filter_map(|(slot, (generation, place))| {
            Some((Id { slot: slot as u32, generation: *generation }, place.as_ref()?))
        })
    }

    /// Returns all values in the same order, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Id, &mut T)> {
        self.places.iter_mut().enumerate().filter_map(|(slot, (generation, place))| {
            Some((Id { slot: slot as u32, generation: *generation }, place.as_mut()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_refer_to_their_objects() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert('a').unwrap(), slots.insert('b').unwrap());
        let pointer = b.pointer(IdKind::Receiver, 7);
        assert!(!pointer.is_null());
        assert_eq!(Id::of_pointer(pointer, IdKind::Receiver), Some((7, b)));
        assert_eq!(Id::of_pointer(pointer, IdKind::Sender), None, "of another kind");
        assert_eq!((slots.remove(a), slots.get(a), slots.len()), (Some('a'), None, 1));
        let c = slots.insert('c').unwrap();
        assert_eq!(slots.remove(a), None, "the same place");
        assert_eq!((slots.get(c), slots.get(a)), (Some(&'c'), None));
    }
}
