//! State per flow, indexed by the dense slots of [`crate::HostScheme`].

/// A slab: the value in a slot keeps its index until it is taken.
#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<Option<T>>);

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Slots(Vec::new())
    }
    /// Puts `value` into `slot`, replacing what was there.
    pub(crate) fn put(&mut self, slot: u32, value: T) {
        let index = slot as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(value);
    }
    /// The value in `slot`; `None` if it is empty, so that late feedback is no error.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32) -> Option<&mut T> {
        self.0.get_mut(slot as usize)?.as_mut()
    }
    /// Empties `slot`.
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        self.0.get_mut(slot as usize)?.take()
    }
    /// All values, in the order of slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }
    /// Bytes of the slots themselves.
    pub(crate) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Option<T>>()
    }
}
