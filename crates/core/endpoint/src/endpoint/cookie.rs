//! Cookies: proof that an initiator receives at its source address, at no cost in memory (RFC 9000, section 8.1).

use crate::{entropy::Secret, header::Cookie};
use anabranch_units::Time;
use std::net::{IpAddr, SocketAddr};

/// Time for which a secret makes cookies; they are valid for the same time after it.
pub(super) const ROTATION: Time = Time::from_us(10_000_000);
/// Time whose RETRYs may leave at once.
const BURST: Time = Time::from_us(100_000);

/// A cookie is bound to these values and its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) from: SocketAddr,
    pub(super) label: u32,
    pub(super) connection: u32,
    pub(super) nonce: u64,
}

#[derive(Debug)]
pub(super) struct Cookies {
    root: Secret,
    /// Between two replies to unknown addresses; `due`: time of the next one if all before it had kept that distance.
    gap: Time,
    due: Time,
}

impl Cookies {
    pub(super) fn new(secret: &Secret, per_second: u32) -> Self {
        let gap = Time::from_ps(1_000_000_000_000 / u64::from(per_second.max(1)));
        Cookies { root: Secret(secret.key("anabranch cookies")), gap, due: Time::ZERO }
    }

    /// Returns `true` if a reply to an unknown address may leave now, and counts it (a token bucket).
    pub(super) fn may_reply(&mut self, now: Time) -> bool {
        if self.due > now + BURST {
            return false;
        }
        self.due = self.due.max(now) + self.gap;
        true
    }

    fn mac(&self, rotation: u64, bound: &Bound) -> blake3::Hash {
        let Bound { from, label, connection, nonce } = bound;
        let key = blake3::keyed_hash(&self.root.0, &rotation.to_be_bytes());
        let mut hasher = blake3::Hasher::new_keyed(key.as_bytes());
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        hasher.update(&ip).update(&from.port().to_be_bytes()).update(&label.to_be_bytes());
        hasher.update(&connection.to_be_bytes()).update(&nonce.to_be_bytes());
        hasher.finalize()
    }

    fn rotation(now: Time) -> u64 {
        // Never zero, so that there is always one before.
        now.ps() / ROTATION.ps() + 1
    }

    pub(super) fn make(&self, now: Time, bound: &Bound) -> Cookie {
        *self.mac(Self::rotation(now), bound).as_bytes()
    }

    /// The comparison takes constant time.
    pub(super) fn is_valid(&self, now: Time, bound: &Bound, cookie: &Cookie) -> bool {
        let rotation = Self::rotation(now);
        *cookie != Cookie::default()
            && (self.mac(rotation, bound) == *cookie || self.mac(rotation - 1, bound) == *cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound() -> Bound {
        Bound { from: "10.0.0.1:7000".parse().unwrap(), label: 3, connection: 5, nonce: 7 }
    }

    #[test]
    fn cookie_is_bound_to_its_fields_and_expires() {
        let cookies = Cookies::new(&Secret::of_seed(1), 10);
        let at = |seconds: u64| Time::from_us(seconds * 1_000_000);
        let cookie = cookies.make(at(15), &bound());
        let valid = |seconds| cookies.is_valid(at(seconds), &bound(), &cookie);
        // Made in the second rotation, from 10 to 20 s, so it is taken until 30 s.
        assert_eq!([15, 19, 20, 29, 30, 3600].map(valid), [true, true, true, true, false, false]);
        let others = [
            Bound { from: "10.0.0.1:7001".parse().unwrap(), ..bound() },
            Bound { from: "10.0.0.2:7000".parse().unwrap(), ..bound() },
            Bound { label: 4, ..bound() },
            Bound { connection: 6, ..bound() },
            Bound { nonce: 8, ..bound() },
        ];
        assert!(others.iter().all(|other| !cookies.is_valid(at(15), other, &cookie)));
        for bit in 0..256 {
            let mut changed = cookie;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!cookies.is_valid(at(15), &bound(), &changed), "bit {bit}");
        }
        assert!(!Cookies::new(&Secret::of_seed(2), 10).is_valid(at(15), &bound(), &cookie), "of another endpoint");
        assert!(!cookies.is_valid(at(15), &bound(), &Cookie::default()));
    }

    #[test]
    fn replies_are_rate_limited() {
        // 1000 per second: 100 at once and one to spare, then one each millisecond.
        let mut cookies = Cookies::new(&Secret::of_seed(1), 1000);
        let now = Time::from_us(5_000_000);
        let count = |cookies: &mut Cookies, now| (0..10_000).take_while(|_| cookies.may_reply(now)).count();
        assert_eq!(count(&mut cookies, now), 101);
        assert_eq!(count(&mut cookies, now + Time::from_us(10_000)), 10);
        assert_eq!(count(&mut cookies, now + Time::from_us(10_000_000)), 101);
    }
}
