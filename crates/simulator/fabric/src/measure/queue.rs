//! Account of one port's data queue, updated at every change: both sides of Little's law.

/// Counters of a port, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueAccount {
    /// Integral of waiting data bytes over time.
    pub(crate) area_bytes: u128,
    /// Integral of waiting data packets over time.
    pub(crate) area_packets: u64,
    /// Sum of the waiting times of the data packets that have left.
    pub(crate) waited: u64,
    pub(crate) changed_at: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) sent_packets: u64,
    pub(crate) max_bytes: u32,
    pub(crate) max_packets: u32,
}

impl QueueAccount {
    /// Accounts for the queue since the last change; returns that time span.
    #[inline]
    pub(crate) fn held(&mut self, bytes: u32, packets: u32, now: u64) -> u64 {
        debug_assert!(now >= self.changed_at);
        let span = now - self.changed_at;
        self.changed_at = now;
        if packets != 0 {
            self.area_bytes += u128::from(bytes) * u128::from(span);
            self.area_packets += u64::from(packets) * span;
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of 10 B waits from 5 to 20, another of 30 B from 10 to 40.
    #[test]
    fn littles_law_by_hand() {
        let mut account = QueueAccount::default();
        assert_eq!(account.held(0, 0, 5), 5);
        account.held(10, 1, 10);
        account.held(40, 2, 20);
        account.waited += 20 - 5;
        account.held(30, 1, 40);
        account.waited += 40 - 10;
        assert_eq!(account.area_bytes, 10 * 5 + 40 * 10 + 30 * 20);
        assert_eq!(account.area_packets, 5 + 2 * 10 + 20);
        assert_eq!(account.area_packets, account.waited);
    }
}
