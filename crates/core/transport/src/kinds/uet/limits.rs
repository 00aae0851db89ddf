//! Limits of a sender beside its window: unacknowledged PSNs, and credit of its receiver (RCCC).

use super::UetConfig;

/// Limits of a sender that has any.
#[derive(Clone, Debug)]
pub(super) struct SendLimits {
    max_psn_range: u64,
    pub(super) credit: Option<Credit>,
    /// The queue pair is in error.
    pub(super) has_failed: bool,
}

impl SendLimits {
    pub(super) fn new(config: &UetConfig) -> Option<Box<Self>> {
        let credit = config.takes_credit.then(|| Credit::new(config.window));
        let any = credit.is_some() || config.max_psn_range != u64::MAX;
        any.then(|| Box::new(SendLimits { max_psn_range: config.max_psn_range, credit, has_failed: false }))
    }

    /// Creates the limits of a sender that sends nothing more.
    pub(super) fn failed() -> Box<Self> {
        Box::new(SendLimits { max_psn_range: 0, credit: None, has_failed: true })
    }

    /// Returns `true` if a packet may leave: a lost one, or the one `span` PSNs beyond the first unacknowledged.
    pub(super) fn allow(&self, is_lost: bool, span: u64) -> bool {
        (is_lost || span < self.max_psn_range) && !self.has_failed && !self.is_starved()
    }

    /// Returns `true` if it waits for credit.
    pub(super) fn is_starved(&self) -> bool {
        self.credit.as_ref().is_some_and(|credit| credit.left <= 0)
    }
}

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

    pub(super) fn spend(&mut self, bytes: u64) {
        self.left -= bytes as i64;
    }

    /// The first reply ends the first window, and what is left of it.
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
