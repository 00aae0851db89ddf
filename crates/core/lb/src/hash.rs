//! Hash of equal-cost multi-path forwarding, and the space of entropy values. Frozen: fingerprints depend on it.

use crate::{PacketView, SwitchInfo, Tag};
use anabranch_random::{Stream, key, mix};

/// Hashes source, destination, flow and path tag, keyed by the switch's `seed`. For one flow no two tags share a hash.
#[inline]
pub(crate) fn ecmp_hash(seed: u64, packet: &PacketView) -> u64 {
    let ends = u64::from(packet.src) << 32 | u64::from(packet.dst);
    mix(mix(seed ^ ends) ^ packet.flow ^ (u64::from(packet.tag) << 32 | u64::from(packet.tag)))
}

/// Maps a hash evenly to `0..count` by its upper 32 bits (a multiplication instead of a division).
#[inline]
pub(crate) fn reduce(hash: u64, count: u32) -> u32 {
    (((hash >> 32) * u64::from(count)) >> 32) as u32
}

/// Hash function of a switch, independent of its scheme, so that control packets take the same paths under each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hasher {
    /// [`ecmp_hash`] with this seed.
    Mix(u64),
    /// The hash of the recorded model, seeded with the switch's number there (specification 17.5).
    Murmur3(u32),
}

impl Hasher {
    /// Returns the hash of `switch` in a run with `seed`.
    pub fn of(seed: u64, switch: &SwitchInfo) -> Self {
        switch.murmur3.map_or_else(|| Hasher::Mix(key(seed, switch.key, "ecmp")), Hasher::Murmur3)
    }
}

/// Returns the candidate that plain ECMP selects for a packet.
#[inline]
pub fn ecmp(hasher: &Hasher, packet: &PacketView, count: u32) -> u32 {
    match *hasher {
        Hasher::Mix(seed) => reduce(ecmp_hash(seed, packet), count),
        Hasher::Murmur3(number) => murmur3(number, four_tuple(packet)) % count,
    }
}

/// Addresses and ports as the reference model hashes them. The path tag shifts the source port of the flow's sender.
fn four_tuple(packet: &PacketView) -> [u32; 3] {
    let address = |host: u32| 0x0b00_0001 + (host / 256) * 0x1_0000 + (host % 256) * 0x100;
    let (source, destination) = ((packet.flow as u16).wrapping_add(packet.tag as u16), (packet.flow >> 16) as u16);
    let (from, to) = if packet.control { (destination, source) } else { (source, destination) };
    [address(packet.src), address(packet.dst), u32::from(from) | u32::from(to) << 16]
}

/// Computes MurmurHash3 (32 bits) of three words.
pub(crate) fn murmur3(seed: u32, words: [u32; 3]) -> u32 {
    let mut hash = seed;
    for word in words {
        hash ^= word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    hash ^= 12;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

/// Entropy values that a host may write: `0..values`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntropySpace {
    values: u32,
}

impl EntropySpace {
    /// Creates the space of `values` values; zero counts as one.
    pub(crate) fn new(values: u32) -> Self {
        EntropySpace { values: values.max(1) }
    }
    pub(crate) fn values(self) -> u32 {
        self.values
    }
    #[inline]
    pub(crate) fn draw(self, stream: &mut Stream) -> Tag {
        stream.below(u64::from(self.values)) as Tag
    }
    /// Returns the value after `value`; the last is followed by 0.
    #[inline]
    pub(crate) fn after(self, value: Tag) -> Tag {
        if value + 1 >= self.values { 0 } else { value + 1 }
    }
    /// Returns the number of values, rounded up to a power of two (at most 2^31), for schemes that XOR.
    pub(crate) fn power_of_two(self) -> u32 {
        self.values.min(1 << 31).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(src: u32, dst: u32, flow: u64, tag: Tag) -> PacketView {
        PacketView { src, dst, src_leaf: 0, dst_leaf: 1, flow, tag, bytes: 4160, control: false, marked: false }
    }

    #[test]
    fn every_input_bit_changes_every_output_bit_half_of_the_time() {
        // 2000 trials per pair of bits: standard deviation of the share 0.0112; six of them is 0.067.
        let mut stream = Stream::keyed(1, 1, "avalanche");
        let mut flips = vec![[0u32; 64]; 160];
        const TRIALS: u32 = 2000;
        for _ in 0..TRIALS {
            let (seed, ends, flow, tag) = (stream.bits(), stream.bits(), stream.bits(), stream.bits() as u32);
            let base = packet((ends >> 32) as u32, ends as u32, flow, tag);
            let hash = ecmp_hash(seed, &base);
            for (bit, row) in flips.iter_mut().enumerate() {
                let mut other = base;
                match bit {
                    0..32 => other.src ^= 1 << bit,
                    32..64 => other.dst ^= 1 << (bit - 32),
                    64..128 => other.flow ^= 1 << (bit - 64),
                    _ => other.tag ^= 1 << (bit - 128),
                }
                let changed = hash ^ ecmp_hash(seed, &other);
                for (out, count) in row.iter_mut().enumerate() {
                    *count += (changed >> out & 1) as u32;
                }
            }
        }
        for (bit, row) in flips.iter().enumerate() {
            for (out, &count) in row.iter().enumerate() {
                let share = f64::from(count) / f64::from(TRIALS);
                assert!((share - 0.5).abs() < 0.067, "input bit {bit}, output bit {out}: {share}");
            }
        }
    }

    #[test]
    fn switches_hash_independently_and_evenly() {
        // Joint choice of two switches with 8 next hops each: 64 cells, chi-square with 63 degrees of freedom
        // exceeds 103.4 with probability 0.001.
        let (mut cells, n) = ([0u32; 64], 64_000);
        for tag in 0..n {
            let p = packet(3, 9, 77, tag);
            let at = |seed| ecmp(&Hasher::Mix(seed), &p, 8);
            cells[(at(11) * 8 + at(12)) as usize] += 1;
        }
        let chi: f64 = cells.iter().map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi < 103.4, "{chi}");
    }

    #[test]
    fn reduce_stays_in_range() {
        for count in [2, 3, 7, 64, 1000] {
            assert_eq!(reduce(0, count), 0);
            assert_eq!(reduce(u64::MAX, count), count - 1);
        }
    }

    #[test]
    fn murmur3_of_a_text() {
        // From an independent implementation that yields the published 0xc0363e43 for "Hello, world!" (13 bytes).
        let text = |bytes: &[u8; 12]| [0, 4, 8].map(|i| u32::from_le_bytes(bytes[i..i + 4].try_into().unwrap()));
        assert_eq!(murmur3(0, text(b"Hello, world")), 0x6a72_8c54);
    }

    #[test]
    fn acknowledgements_hash_the_reversed_ports() {
        let data = packet(3, 9, 10_000 | 100 << 16, 0);
        let ack = PacketView { src: 9, dst: 3, control: true, ..data };
        assert_eq!(four_tuple(&data), [0x0b00_0301, 0x0b00_0901, 10_000 | 100 << 16]);
        assert_eq!(four_tuple(&ack), [0x0b00_0901, 0x0b00_0301, 100 | 10_000 << 16]);
        assert_eq!(four_tuple(&packet(300, 9, 10_000, 5))[0], 0x0b00_0001 + 0x1_0000 + 44 * 256);
        assert_eq!(four_tuple(&packet(3, 9, 10_000, 5))[2], 10_005);
    }

    #[test]
    fn entropy_values_wrap() {
        let space = EntropySpace::new(3);
        assert_eq!([0, 1, 2].map(|v| space.after(v)), [1, 2, 0]);
        assert_eq!(space.power_of_two(), 4);
        assert_eq!(EntropySpace::new(0).values(), 1);
        assert_eq!(EntropySpace::new(u32::MAX).power_of_two(), 1 << 31);
    }
}
