//! Theorem 1 of PRIME. The public text has lost it but for its content: "balancing the traffic in the uplinks, prevent
//! downlinks to be overloaded" (§III-D). As it is stated and proved in specification 5.3:
//!
//! Let every flow spread its packets by the permutation round robin of Alg. 2. After `n_f` packets of each flow f, a link
//! at which W values of the multi-part value lead to one of its P paths has between the sums of `floor(n_f` / w) and of
//! `ceil(n_f` / w) of the flows that cross its tier towards it, w = `U_0` for an uplink or downlink of a leaf, `U_0` `U_1` for
//! one of the tier above. So no downlink has more than an even share and a packet per flow, at any time.

use crate::host::mp_ev::{Generator, PathEncoding};
use anabranch_random::Stream;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A link, by its tier and what it joins: leaf and first switch, or that switch's index, core and group of leaves.
type Link = (u32, u32, u32, u32);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn balanced_uplinks_do_not_overload_downlinks(
        (low, high) in prop_oneof![(1u32..9, Just(1u32)), (1u32..5, 2u32..5)],
        flows in prop::collection::vec((0u32..6, 0u32..6, 0u64..200), 1..30),
        seed in any::<u64>(),
    ) {
        // Six leaves; on three tiers two of them form a group with its own switches above.
        let three = high > 1;
        prop_assume!(low * high > 1);
        let uplinks: &[u32] = if three { &[low, high] } else { &[low] };
        let shape = PathEncoding::new(uplinks).expect("a choice");
        let mut packets: BTreeMap<Link, u64> = BTreeMap::new();
        let mut bounds: BTreeMap<Link, (u64, u64)> = BTreeMap::new();
        for (number, &(from, to, count)) in flows.iter().enumerate() {
            if from == to || three && from / 2 == to / 2 {
                continue;
            }
            // Of each flow: up from its leaf, (up and down at the core,) down to the other leaf.
            let links = |first: u32, core: u32| {
                let ends = [(0, from, first, 0), (3, to, first, 0)];
                let above = [(1, from / 2, first, core), (2, to / 2, first, core)];
                ends.into_iter().chain(above.into_iter().filter(|_| three))
            };
            for first in 0..low {
                for core in 0..high {
                    for link in links(first, core) {
                        let share = u64::from(if link.0 % 3 == 0 { low } else { low * high });
                        let once = link.0 % 3 != 0 || core == 0;
                        let bound = bounds.entry(link).or_default();
                        if once {
                            *bound = (bound.0 + count / share, bound.1 + count.div_ceil(share));
                        }
                    }
                }
            }
            let mut generator = Generator::new(shape, Stream::keyed(seed, number as u64, "theorem"));
            for _ in 0..count {
                let path = u32::from(generator.generate().expect("a path").path);
                links(path % low, path / low).for_each(|link| *packets.entry(link).or_default() += 1);
            }
        }
        for (link, (least, most)) in bounds {
            let found = packets.get(&link).copied().unwrap_or(0);
            prop_assert!((least..=most).contains(&found), "{:?}: {} of {} to {}", link, found, least, most);
        }
    }
}
