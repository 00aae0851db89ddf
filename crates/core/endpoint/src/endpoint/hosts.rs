//! What peers take, by the host that they connected from and in all: places and memory.

use crate::settings::Settings;
use anabranch_units::Time;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

/// The host of an address: of IPv6 the prefix that a single host usually has for itself.
pub(super) fn host_of(at: SocketAddr) -> IpAddr {
    match at.ip().to_canonical() {
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

/// What the peers of a host take.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    peers: usize,
    stored: u64,
    /// None of its peers can make room before this.
    crowded_until: Time,
}

/// What all peers take.
#[derive(Debug)]
pub(super) struct Hosts {
    hosts: BTreeMap<IpAddr, Taken>,
    /// Peers, and bytes of memory for their messages.
    pub(super) peers: usize,
    pub(super) stored: u64,
    max_stored: u64,
    max_peers_per_host: usize,
    crowded_until: Time,
}

/// Peers that could make room are looked for no more often than this.
const CROWDED: Time = Time::from_us(100_000);

impl Hosts {
    pub(super) fn new(settings: &Settings) -> Self {
        Hosts {
            hosts: BTreeMap::new(),
            peers: 0,
            stored: 0,
            max_stored: settings.max_buffered_bytes,
            max_peers_per_host: settings.max_peers_per_address.max(1),
            crowded_until: Time::ZERO,
        }
    }

    /// Returns `true` where a host has as many peers as one may have.
    pub(super) fn is_full(&self, host: Option<IpAddr>) -> bool {
        host.and_then(|host| self.hosts.get(&host)).is_some_and(|taken| taken.peers >= self.max_peers_per_host)
    }

    /// No peer, or none of this host, can make room now: nobody looks again for a while.
    pub(super) fn note_crowded(&mut self, host: Option<IpAddr>, now: Time) {
        match host.and_then(|host| self.hosts.get_mut(&host)) {
            Some(taken) => taken.crowded_until = now + CROWDED,
            None => self.crowded_until = now + CROWDED,
        }
    }

    /// Returns `true` where nobody need look for a peer that can make room.
    pub(super) fn is_crowded(&self, host: Option<IpAddr>, now: Time) -> bool {
        let taken = host.and_then(|host| self.hosts.get(&host));
        now < taken.map_or(self.crowded_until, |taken| taken.crowded_until)
    }

    pub(super) fn enter(&mut self, host: Option<IpAddr>) {
        self.peers += 1;
        if let Some(host) = host {
            self.hosts.entry(host).or_default().peers += 1;
        }
    }

    /// A peer is gone, and the memory that its messages took.
    pub(super) fn leave(&mut self, host: Option<IpAddr>, stored: u64) {
        self.release(host, stored);
        self.peers = self.peers.saturating_sub(1);
        if let Some(host) = host
            && let Some(taken) = self.hosts.get_mut(&host)
        {
            taken.peers = taken.peers.saturating_sub(1);
            if taken.peers == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// Returns `true` where so many bytes more are within the limit over all peers. Senders that have not delivered as much before share half
    /// of it, so that they leave room for those that have.
    pub(super) fn has_memory(&self, bytes: u64, is_earned: bool) -> bool {
        let most = if is_earned { self.max_stored } else { self.max_stored / 2 };
        self.stored + bytes <= most
    }

    /// Returns `true` where so many bytes more are within what one host may take.
    pub(super) fn may_store(&self, host: Option<IpAddr>, bytes: u64) -> bool {
        let taken = host.and_then(|host| self.hosts.get(&host)).map_or(0, |taken| taken.stored);
        taken + bytes <= self.max_stored / 2
    }

    pub(super) fn store(&mut self, host: Option<IpAddr>, bytes: u64) {
        self.stored += bytes;
        if let Some(taken) = host.and_then(|host| self.hosts.get_mut(&host)) {
            taken.stored += bytes;
        }
    }

    pub(super) fn release(&mut self, host: Option<IpAddr>, bytes: u64) {
        self.stored = self.stored.saturating_sub(bytes);
        if let Some(taken) = host.and_then(|host| self.hosts.get_mut(&host)) {
            taken.stored = taken.stored.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_address_or_its_prefix() {
        let host = |at: &str| host_of(at.parse().unwrap()).to_string();
        assert_eq!(host("10.1.2.3:7000"), "10.1.2.3");
        assert_eq!(host("[::ffff:10.1.2.3]:7000"), "10.1.2.3");
        assert_eq!(host("[2001:db8:1:2:3:4:5:6]:7000"), "2001:db8:1:2::");
    }
}
