//! Pairs of senders and receivers in different parts (leaves, groups).

mod limit;

pub(crate) use limit::Limit;

use crate::{HostView, WorkloadError};
use anabranch_random::Stream;
use anabranch_settings::choices;

choices! {
    /// Scope of a flow's receiver.
    pub enum Scope {
        /// Any other host.
        Any = "any",
        /// A host below another leaf.
        OtherLeaf = "other-leaf",
        /// A host in another group.
        OtherGroup = "other-group",
    }
}

pub(crate) struct Parts {
    members: Vec<u32>,
    order: Vec<u32>,
    /// Of each participating host, numbered from 0; undefined for the others.
    part_of: Vec<u32>,
    begin: Vec<u32>,
}

impl Parts {
    pub(crate) fn new(view: &HostView, scope: Scope, members: Vec<u32>) -> Self {
        let label = |host: u32| match scope {
            Scope::Any => host,
            Scope::OtherLeaf => view.leaf_of[host as usize],
            Scope::OtherGroup => view.group_of[host as usize],
        };
        let mut order = members.clone();
        order.sort_by_key(|&host| label(host));
        let (mut part_of, mut begin) = (vec![0; view.hosts as usize], Vec::new());
        for (place, &host) in order.iter().enumerate() {
            if place == 0 || label(host) != label(order[place - 1]) {
                begin.push(place as u32);
            }
            part_of[host as usize] = begin.len() as u32 - 1;
        }
        begin.push(order.len() as u32);
        Parts { members, order, part_of, begin }
    }

    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Returns `true` if a flow is within the scope.
    pub(crate) fn apart(&self, src: u32, dst: u32) -> bool {
        self.part_of[src as usize] != self.part_of[dst as usize]
    }

    /// Every host needs a possible receiver.
    pub(crate) fn check(&self, key: &str) -> Result<(), WorkloadError> {
        if self.begin.len() <= 2 {
            return Err(WorkloadError::of_key(key, "all hosts are in one leaf or group, expected at least two"));
        }
        Ok(())
    }

    /// Draws uniformly; [`Parts::check`] has passed.
    pub(crate) fn receiver(&self, src: u32, stream: &mut Stream) -> u32 {
        let part = self.part_of[src as usize] as usize;
        let (begin, end) = (self.begin[part], self.begin[part + 1]);
        let drawn = stream.below(self.order.len() as u64 - u64::from(end - begin)) as u32;
        self.order[if drawn < begin { drawn } else { drawn + (end - begin) } as usize]
    }

    /// Checks that a permutation into other parts exists: no part may contain more than half of the hosts (Hall's theorem).
    pub(crate) fn check_permutation(&self, key: &str) -> Result<(), WorkloadError> {
        self.check(key)?;
        let largest = self.begin.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let hosts = self.order.len() as u32;
        if largest > hosts / 2 {
            let message = format!("no such permutation exists: {largest} of {hosts} hosts are in one leaf or group");
            return Err(WorkloadError::of_key(key, format!("{message}, expected at most half of them")));
        }
        Ok(())
    }

    /// Draws a permutation (member i sends to entry i) into other parts; [`Parts::check_permutation`] has passed.
    ///
    /// Where every host is its own part, shuffles until one fits: about one in e does, and the draw is uniform. Otherwise a
    /// shuffle is repaired by random swaps of two receivers, then mixed by random swaps of two and rotations of three that
    /// keep to the scope; the uniform distribution is the fixed point of that walk. (Swaps alone do not reach every
    /// permutation: with three leaves, those that send all of a leaf to the next.)
    pub(crate) fn permutation(&self, stream: &mut Stream) -> Vec<u32> {
        let hosts = self.members.len() as u32;
        let mut to = self.members.clone();
        let apart = |member: u32, dst: u32| self.apart(self.members[member as usize], dst);
        stream.shuffle(&mut to);
        if self.begin.len() == self.order.len() + 1 {
            for _ in 0..SHUFFLES {
                if (0..hosts).all(|member| apart(member, to[member as usize])) {
                    return to;
                }
                stream.shuffle(&mut to);
            }
        }
        for member in 0..hosts {
            if !apart(member, to[member as usize]) {
                let other = self.partner(member, &to, stream);
                to.swap(member as usize, other as usize);
            }
        }
        for step in 0..MIXING * u64::from(hosts) {
            let [a, b, c] = [(); 3].map(|()| stream.below(u64::from(hosts)) as u32);
            let (to_a, to_b, to_c) = (to[a as usize], to[b as usize], to[c as usize]);
            if step % 2 == 0 {
                if apart(a, to_b) && apart(b, to_a) {
                    to.swap(a as usize, b as usize);
                }
            } else if a != b && b != c && c != a && apart(a, to_b) && apart(b, to_c) && apart(c, to_a) {
                (to[a as usize], to[b as usize], to[c as usize]) = (to_b, to_c, to_a);
            }
        }
        to
    }

    /// Returns a member to swap receivers with, after which neither sends within its part. One exists: with L the hosts of
    /// the part, at most L - 1 hosts outside send into it, and n - L >= L are outside.
    fn partner(&self, member: u32, to: &[u32], stream: &mut Stream) -> u32 {
        let hosts = self.members.len() as u32;
        let apart = |member: u32, dst: u32| self.apart(self.members[member as usize], dst);
        let fits = |other: u32| apart(member, to[other as usize]) && apart(other, to[member as usize]);
        for _ in 0..TRIES {
            let other = stream.below(u64::from(hosts)) as u32;
            if fits(other) {
                return other;
            }
        }
        let from = stream.below(u64::from(hosts)) as u32;
        (0..hosts).map(|step| (from + step) % hosts).find(|&other| fits(other)).unwrap_or(member)
    }
}

/// All of them fail with probability 2e-20.
const SHUFFLES: u32 = 100;
/// Swaps and rotations proposed per host.
const MIXING: u64 = 10;
/// Random candidates before an exhaustive search.
const TRIES: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::view;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn permutations_are_uniform() {
        // Six hosts, two to a leaf. By brute force over all 720 orders, those that leave every leaf are the cells.
        let parts = Parts::new(&view(6, 2, 1), Scope::OtherLeaf, (0..6).collect());
        let mut valid = Vec::new();
        let mut orders = vec![vec![]];
        for _ in 0..6 {
            orders = orders
                .iter()
                .flat_map(|o: &Vec<u32>| {
                    (0..6).filter(|x| !o.contains(x)).map(|x| [o.as_slice(), &[x]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        for order in orders {
            if order.iter().enumerate().all(|(i, &to)| i / 2 != to as usize / 2) {
                valid.push(order);
            }
        }
        // 80: two pairs of receivers for each leaf, by inclusion and exclusion.
        assert_eq!(valid.len(), 80);
        let mut stream = Stream::keyed(3, 0, "uniform");
        let mut count: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let draws = 40_000;
        for _ in 0..draws {
            *count.entry(parts.permutation(&mut stream)).or_default() += 1;
        }
        assert!(count.keys().all(|order| valid.contains(order)));
        let expected = f64::from(draws) / 80.0;
        let of = |order: &Vec<u32>| f64::from(count.get(order).copied().unwrap_or(0));
        let chi: f64 = valid.iter().map(|order| (of(order) - expected).powi(2) / expected).sum();
        // 79 degrees of freedom: 123.6 is exceeded with probability 0.001.
        assert!(chi < 123.6, "{chi}");
    }

    #[test]
    fn receivers_are_uniform_over_the_allowed() {
        let parts = Parts::new(&view(6, 2, 1), Scope::OtherLeaf, (0..6).collect());
        let mut stream = Stream::keyed(3, 0, "receivers");
        let mut count = [0.0; 6];
        for _ in 0..40_000 {
            count[parts.receiver(2, &mut stream) as usize] += 1.0;
        }
        assert_eq!((count[2], count[3]), (0.0, 0.0));
        // 3 degrees of freedom: 16.27 is exceeded with probability 0.001.
        let chi: f64 = [0, 1, 4, 5].iter().map(|&i| (count[i] - 10_000.0f64).powi(2) / 10_000.0).sum();
        assert!(chi < 16.27, "{count:?}");
    }

    proptest! {
        #[test]
        fn permutations_honour_their_scope(leaf_of in prop::collection::vec(0u32..6, 2..60), seed: u64) {
            let hosts = leaf_of.len() as u32;
            let mut view = view(hosts, 1, 1);
            view.leaf_of = leaf_of.clone();
            for scope in [Scope::Any, Scope::OtherLeaf] {
                let parts = Parts::new(&view, scope, (0..hosts).collect());
                let largest = match scope {
                    Scope::Any => 1,
                    _ => (0..6).map(|l| leaf_of.iter().filter(|&&x| x == l).count()).max().unwrap(),
                };
                prop_assert_eq!(parts.check_permutation("scope").is_ok(), 2 * largest <= hosts as usize);
                if 2 * largest > hosts as usize {
                    continue;
                }
                let to = parts.permutation(&mut Stream::keyed(seed, 0, "test"));
                let mut sorted = to.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..hosts).collect::<Vec<_>>());
                for (src, &dst) in to.iter().enumerate() {
                    prop_assert_ne!(src, dst as usize);
                    prop_assert!(scope == Scope::Any || leaf_of[src] != leaf_of[dst as usize]);
                }
            }
        }
    }
}
