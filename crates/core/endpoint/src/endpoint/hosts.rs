use crate::{settings::Settings, stream::Stored};
use anabranch_units::Time;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

/// Of IPv6 the prefix that a single host usually has for itself.
pub(super) fn host_of(at: SocketAddr) -> IpAddr {
    match at.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct HostUsage {
    peers: usize,
    /// State of its peers' streams.
    kept: u64,
    stored: u64,
    /// Part of `stored` whose senders have not delivered as many bytes before.
    unearned: u64,
    /// Earliest time at which one of its peers may be evicted.
    crowded_until: Time,
    /// The same, for its messages.
    short_until: Time,
}

#[derive(Debug)]
pub(super) struct Hosts {
    hosts: BTreeMap<IpAddr, HostUsage>,
    /// Number of peers; `stored`: memory of their messages.
    pub(super) peers: usize,
    pub(super) stored: u64,
    kept: u64,
    unearned: u64,
    holders: u64,
    max_stored: u64,
    max_peers: usize,
    max_peers_per_host: usize,
    crowded_until: Time,
}

const CROWDED: Time = Time::from_us(100_000);
const SHORT: Time = Time::from_us(10_000);

impl Hosts {
    pub(super) fn new(settings: &Settings) -> Self {
        Hosts {
            hosts: BTreeMap::new(),
            peers: 0,
            stored: 0,
            kept: 0,
            unearned: 0,
            holders: 0,
            max_stored: settings.max_buffered_bytes,
            max_peers: settings.max_peers,
            max_peers_per_host: settings.max_peers_per_address.max(1),
            crowded_until: Time::ZERO,
        }
    }

    fn of(&self, host: Option<IpAddr>) -> Option<&HostUsage> {
        self.hosts.get(&host?)
    }

    pub(super) fn is_full(&self, host: Option<IpAddr>) -> bool {
        self.of(host).is_some_and(|usage| usage.peers >= self.max_peers_per_host)
    }

    /// Suppresses searches for a while, of this host or of all.
    pub(super) fn note_crowded(&mut self, host: Option<IpAddr>, now: Time) {
        match host.and_then(|host| self.hosts.get_mut(&host)) {
            Some(usage) => usage.crowded_until = now + CROWDED,
            None => self.crowded_until = now + CROWDED,
        }
    }

    pub(super) fn is_crowded(&self, host: Option<IpAddr>, now: Time) -> bool {
        now < self.of(host).map_or(self.crowded_until, |usage| usage.crowded_until)
    }

    pub(super) fn enter(&mut self, host: Option<IpAddr>) {
        self.peers += 1;
        if let Some(host) = host {
            self.hosts.entry(host).or_default().peers += 1;
        }
    }

    /// `kept`: memory of the peer's streams.
    pub(super) fn leave(&mut self, host: Option<IpAddr>, stored: Stored, kept: u64) {
        self.release(host, stored);
        self.peers = self.peers.saturating_sub(1);
        self.kept = self.kept.saturating_sub(kept);
        if let Some(host) = host
            && let Some(usage) = self.hosts.get_mut(&host)
        {
            usage.peers = usage.peers.saturating_sub(1);
            usage.kept = usage.kept.saturating_sub(kept);
            if usage.peers == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Returns the host with the most peers, if they are more than its share and a newcomer of `host` would have no
    /// more than its own.
    pub(super) fn host_over_share_of_peers(&self, host: Option<IpAddr>) -> Option<IpAddr> {
        let newcomer = self.of(host).map_or(0, |usage| usage.peers);
        let hosts = self.hosts.len() + usize::from(newcomer == 0);
        let share = self.max_peers / hosts.max(1);
        let (host, usage) = self.hosts.iter().max_by_key(|(_, usage)| usage.peers)?;
        (newcomer < share && usage.peers > share).then_some(*host)
    }

    /// Counts the state of a new stream; returns `false` if there is no memory for it. Streams take an eighth of all memory
    /// at most, those of one host twice what is left of it then: newcomers always find some.
    pub(super) fn keep(&mut self, host: Option<IpAddr>, bytes: u64) -> bool {
        let Some(left) = (self.max_stored / 8).checked_sub(self.kept + bytes) else { return false };
        if let Some(usage) = host.and_then(|host| self.hosts.get_mut(&host)) {
            if usage.kept + bytes > 2 * left {
                return false;
            }
            usage.kept += bytes;
        }
        self.kept += bytes;
        true
    }

    /// Half of what streams leave is for unearned messages and half for others, so that neither takes what the others need.
    fn half(&self) -> u64 {
        (self.max_stored - self.kept) / 2
    }

    /// Returns `true` if `bytes` more are within the limits of a host, and of all earned messages.
    pub(super) fn may_earn(&self, host: Option<IpAddr>, bytes: u64) -> bool {
        let half = self.half();
        let of_host = self.of(host).map_or(0, |usage| usage.stored);
        self.stored - self.unearned + bytes <= half && of_host + bytes <= half
    }

    /// Returns `true` if memory is allocated only for what has arrived.
    pub(super) fn is_short(&self) -> bool {
        self.unearned > self.half() / 2
    }

    /// Unearned memory of a host is limited to its share or twice what is left then (a dynamic threshold: Choudhury and
    /// Hahne 1998).
    pub(super) fn may_store(&self, host: Option<IpAddr>, bytes: u64) -> bool {
        let Some(left) = self.half().checked_sub(self.unearned + bytes) else { return false };
        let Some(usage) = self.of(host) else { return true };
        usage.stored + bytes <= self.half()
            && (usage.unearned + bytes <= 2 * left || usage.unearned + bytes <= self.share(usage))
    }

    /// Each host that holds unearned memory has the same share, this one included.
    fn share(&self, usage: &HostUsage) -> u64 {
        let holders = self.holders + u64::from(usage.unearned == 0);
        self.half() / holders.max(1)
    }

    /// Returns the host with the most unearned memory, if that is more than its share and `host` is refused `bytes`
    /// within its own.
    pub(super) fn host_over_share(&self, host: Option<IpAddr>, bytes: u64, now: Time) -> Option<IpAddr> {
        let usage = self.of(host)?;
        let share = self.share(usage);
        if now < usage.short_until || usage.unearned + bytes > share {
            return None;
        }
        let (host, of) = self.hosts.iter().max_by_key(|(_, usage)| usage.unearned)?;
        (of.unearned > share).then_some(*host)
    }

    pub(super) fn note_short(&mut self, host: Option<IpAddr>, now: Time) {
        if let Some(usage) = host.and_then(|host| self.hosts.get_mut(&host)) {
            usage.short_until = now + SHORT;
        }
    }

    pub(super) fn store(&mut self, host: Option<IpAddr>, more: Stored) {
        self.stored += more.bytes;
        self.unearned += more.unearned;
        if let Some(usage) = host.and_then(|host| self.hosts.get_mut(&host)) {
            self.holders += u64::from(usage.unearned == 0 && more.unearned > 0);
            usage.stored += more.bytes;
            usage.unearned += more.unearned;
        }
    }

    pub(super) fn release(&mut self, host: Option<IpAddr>, less: Stored) {
        self.stored = self.stored.saturating_sub(less.bytes);
        self.unearned = self.unearned.saturating_sub(less.unearned);
        if let Some(usage) = host.and_then(|host| self.hosts.get_mut(&host)) {
            let held = usage.unearned > 0;
            usage.stored = usage.stored.saturating_sub(less.bytes);
            usage.unearned = usage.unearned.saturating_sub(less.unearned);
            self.holders -= u64::from(held && usage.unearned == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_an_address_or_a_prefix() {
        let host = |at: &str| host_of(at.parse().unwrap()).to_string();
        assert_eq!(host("10.1.2.3:7000"), "10.1.2.3");
        assert_eq!(host("[::ffff:10.1.2.3]:7000"), "10.1.2.3");
        assert_eq!(host("[2001:db8:1:2:3:4:5:6]:7000"), "2001:db8:1:2::");
    }
}
