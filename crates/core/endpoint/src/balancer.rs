use anabranch_lb::{FlowInfo, HostScheme};
use anabranch_units::Time;

/// A scheme whose flows have dense, reusable slots.
#[derive(Debug)]
pub struct Balancer<S> {
    scheme: S,
    free: Vec<u32>,
    slots: u32,
}

impl<S: HostScheme> Balancer<S> {
    /// Creates a balancer without flows.
    pub fn new(scheme: S) -> Self {
        Balancer { scheme, free: Vec::new(), slots: 0 }
    }

    #[inline]
    pub fn scheme(&self) -> &S {
        &self.scheme
    }

    /// Returns the scheme for calls that change it.
    #[inline]
    pub fn scheme_mut(&mut self) -> &mut S {
        &mut self.scheme
    }

    /// Opens a flow; returns its slot with the scheme.
    pub fn open(&mut self, now: Time, info: &FlowInfo<'_>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.scheme.open(now, slot, info);
        slot
    }

    /// Closes the flow in `slot`.
    pub fn close(&mut self, slot: u32) {
        self.scheme.close(slot);
        self.free.push(slot);
    }
}
