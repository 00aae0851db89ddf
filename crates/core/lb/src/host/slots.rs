//! State per flow, indexed by the dense slots of [`crate::HostScheme`].

#[derive(Debug)]
pub(crate) struct Slots<T>(Vec<Option<T>>);

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Slots(Vec::new())
    }
    pub(crate) fn put(&mut self, slot: u32, value: T) {
        let index = slot as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(value);
    }
    /// Returns the value in `slot`; `None` if it is empty, so late feedback is no error.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32) -> Option<&mut T> {
        self.0.get_mut(slot as usize)?.as_mut()
    }
    pub(crate) fn peek(&self, slot: u32) -> Option<&T> {
        self.0.get(slot as usize)?.as_ref()
    }
    pub(crate) fn take(&mut self, slot: u32) -> Option<T> {
        self.0.get_mut(slot as usize)?.take()
    }
}
