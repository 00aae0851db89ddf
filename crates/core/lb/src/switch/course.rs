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

impl SwitchHeader {
    /// Returns what guided schemes wrote in 3 and 16 bits: the role of the next switch and the entropy value. A reply has
    /// no space for the header of a data packet.
    pub fn course(&self) -> (u8, u16) {
        let course = Course::of(self);
        let role = match course.hop() {
            0 => 0,
            1 => 1 + u8::from(course.over_local()) + 2 * u8::from(course.ev().is_some()),
            _ => DONE,
        };
        (role, course.ev().unwrap_or(0))
    }

    /// Returns the header of a packet with this role and entropy value.
    pub fn of_course((role, ev): (u8, u16)) -> Self {
        let mut course = Course(0);
        match role {
            0 => {}
            1..DONE => {
                let bits = role - 1;
                course.0 = 1 | if bits & 1 != 0 { OVER_LOCAL } else { 0 };
                if bits & 2 != 0 {
                    course.set_ev(ev);
                }
            }
            _ => course.0 = 2,
        }
        let mut header = SwitchHeader::default();
        header.0[WORD] = course.0;
        header
    }
}

/// Role of all switches after the second: the default table.
const DONE: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_carries_roles_in_three_bits() {
        for hop in 0..2u32 {
            for bits in [0, OVER_LOCAL, GUIDED, OVER_LOCAL | GUIDED] {
                if hop == 0 && bits != 0 {
                    continue;
                }
                let mut header = SwitchHeader::default();
                header.0[WORD] = hop | bits | if bits & GUIDED != 0 { 0x0a0b << 16 } else { 0 };
                let (role, ev) = header.course();
                assert!(role < 8);
                assert_eq!(SwitchHeader::of_course((role, ev)), header, "{hop} {bits:x}");
            }
        }
        let mut third = SwitchHeader::default();
        third.0[WORD] = 3 | OVER_LOCAL | GUIDED | 7 << 16;
        assert_eq!(Course::of(&SwitchHeader::of_course(third.course())).hop(), 2);
    }
}
