//! Header of Dragonfly and Slim Fly switches in a packet: the hops it has passed and the entropy value that guides it.

use crate::{GuidedSwitch, SwitchHeader};

/// Header word used here; hosts use others in probes.
const WORD: usize = 4;
const OVER_LOCAL: u32 = 1 << 8;
const GUIDED: u32 = 1 << 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Course(u32);

impl Course {
    #[inline]
    pub(crate) fn of(header: &SwitchHeader) -> Self {
        Course(header.0[WORD])
    }

    #[inline]
    pub(crate) fn hop(self) -> u8 {
        self.0 as u8
    }

    /// Returns `true` if the last of them was local.
    #[inline]
    pub(crate) fn over_local(self) -> bool {
        self.0 & OVER_LOCAL != 0
    }

    #[inline]
    pub(crate) fn ev(self) -> Option<u16> {
        (self.0 & GUIDED != 0).then_some((self.0 >> 16) as u16)
    }

    #[inline]
    pub(crate) fn set_ev(&mut self, ev: u16) {
        self.0 = self.0 & 0xffff | GUIDED | u32::from(ev) << 16;
    }

    #[inline]
    pub(crate) fn clear_ev(&mut self) {
        self.0 &= 0xffff & !GUIDED;
    }

    #[inline]
    pub(crate) fn port<G: GuidedSwitch>(self, at: &G) -> u32 {
        match self.ev() {
            Some(ev) => at.named(self.hop(), self.over_local(), ev),
            None => at.minimal(at.here()),
        }
    }

    #[inline]
    pub(crate) fn leave<G: GuidedSwitch>(mut self, at: &G, port: u32, header: &mut SwitchHeader) -> u32 {
        let local = if at.is_local(at.here(), port) { OVER_LOCAL } else { 0 };
        self.0 = self.0 & !(OVER_LOCAL | 0xff) | u32::from(self.hop().saturating_add(1)) | local;
        header.0[WORD] = self.0;
        port
    }
}
