//! Credit of a sender (RCCC): what its receiver has granted and it has not sent yet.

/// Credit in bytes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// Below zero by part of a packet at most.
    left: i64,
    /// Granted since the start.
    granted: u64,
    /// No reply has arrived: the credit is the first window.
    is_speculative: bool,
}

impl Credit {
    pub(super) fn new(window: u64) -> Self {
        Credit { left: window as i64, granted: 0, is_speculative: true }
    }

    /// Creates the credit of a sender that sends nothing more.
    pub(super) fn none() -> Self {
        Credit { left: i64::MIN / 2, granted: 0, is_speculative: false }
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.left > 0
    }

    #[inline]
    pub(super) fn spend(&mut self, bytes: u64) {
        self.left -= bytes as i64;
    }

    /// The first reply ends the first window, whatever is left of it.
    pub(super) fn end_speculation(&mut self) {
        if std::mem::take(&mut self.is_speculative) {
            self.left = self.left.min(0);
        }
    }

    /// Lets one packet leave that requests credit.
    pub(super) fn allow_packet(&mut self) {
        self.left = self.left.max(1);
    }

    pub(super) fn grant(&mut self, granted: u64, window: u64) {
        self.end_speculation();
        let new = granted.saturating_sub(self.granted);
        self.left = (self.left + new as i64).min(window as i64);
        self.granted += new;
    }

    /// Returns the bytes since the start that it requests to have `wanted` of them; `active` senders share the NIC.
    pub(super) fn demand(&self, wanted: u64, packet: u64, active: u32) -> u64 {
        let missing = (wanted as i64 - self.left).max(0) as u64 / u64::from(active.max(1));
        self.granted + if self.is_speculative { missing.max(packet) } else { missing }
    }
}
