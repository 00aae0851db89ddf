//! Adversarial pairs on Dragonfly and Slim Fly (specification 12.3): flows whose default paths share single links, so
//! minimal routing uses a small part of the network.

use super::WorkloadKind;
use crate::{
    HostView, Start, WorkloadError,
    flow::plain,
    traffic::Traffic,
    view::{Context, LowDiameter},
};
use anabranch_settings::{About, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "adversarial",
    summary: "pairs of hosts whose default paths share single links of a Dragonfly or a Slim Fly",
    source: "specification 12.3; Spritz §V-B; Kim et al. 2008; Besta and Hoefler 2014",
    description: "Dragonfly: host i of group g sends to host i of group g + `offset`, so that all flows of a group share \
        one global link. Slim Fly: hosts of up to p neighbours of a switch u send to the hosts of its neighbour v over u, \
        for every link from u to v in random order, until no host is left. Other topologies have no such pattern.",
};

parameters! {
    /// Adversarial traffic.
    pub struct AdversarialParameters {
        /// Bytes per message.
        size: Bytes = Bytes(4 << 20), source "ours; Spritz §V-B has 4 MiB for the monitored flow and the incast";
        /// Dragonfly: distance in groups from sender to receiver; no effect on Slim Fly.
        offset: u32 = 5, source "specification 12.3: adv_i5", Expert;
        /// Start time of all messages.
        start: Time = Time::ZERO, source "specification 12.3", Expert;
    }
}

pub(crate) fn hosts_by_group(view: &HostView, groups: u32) -> Vec<Vec<u32>> {
    let mut hosts = vec![Vec::new(); groups as usize];
    for (host, &group) in (0..).zip(&view.group_of) {
        if let Some(own) = hosts.get_mut(group as usize) {
            own.push(host);
        }
    }
    hosts
}

impl AdversarialParameters {
    /// Pairs host i of every group with host i of the group `offset` further.
    fn shifted(&self, view: &HostView, groups: u32) -> Result<Vec<(u32, u32)>, WorkloadError> {
        if groups == 0 || self.offset.is_multiple_of(groups) {
            let message = format!("found {}, which leads back to the sender's own group", self.offset);
            return Err(WorkloadError::of_key("offset", format!("{message}, expected no multiple of {groups}")));
        }
        let hosts = hosts_by_group(view, groups);
        let further = |group: usize| (group as u64 + u64::from(self.offset)) % u64::from(groups);
        let pairs = |(group, own): (usize, &Vec<u32>)| {
            let to = hosts[further(group) as usize].iter().copied();
            own.iter().copied().zip(to).collect::<Vec<_>>()
        };
        Ok(hosts.iter().enumerate().flat_map(pairs).collect())
    }
}

impl WorkloadKind for AdversarialParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let network: &dyn LowDiameter = context.low_diameter(ABOUT.name, "\"dragonfly\" or \"slim-fly\"")?;
        context.needs_a_pair()?;
        let pairs = match network.is_dragonfly() {
            true => self.shifted(context.view, network.groups())?,
            false => network.adversarial_pairs(context.seed),
        };
        if pairs.is_empty() {
            return Err(WorkloadError::of_key(
                "kind",
                "no two default paths of this topology share a link at their end",
            ));
        }
        let flow = |(src, dst)| plain(src, dst, self.size.0, Start::At(self.start));
        Ok(Traffic { flows: pairs.into_iter().map(flow).collect(), ..Traffic::default() })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kinds::testing::{of, traffic, view};
    use std::sync::Arc;

    /// Groups of four leaves of two hosts; the link from group g to d is owned by leaf (d - g - 1) mod 4 of g.
    #[derive(Debug)]
    struct Fake {
        groups: u32,
        dragonfly: bool,
    }

    impl LowDiameter for Fake {
        fn is_dragonfly(&self) -> bool {
            self.dragonfly
        }
        fn groups(&self) -> u32 {
            self.groups
        }
        fn adversarial_pairs(&self, seed: u64) -> Vec<(u32, u32)> {
            vec![(0, 5), (7, seed as u32)]
        }
        fn gateway_leaf(&self, from: u32, to: u32) -> Option<u32> {
            (from != to).then(|| 4 * from + (to + self.groups - from - 1) % self.groups % 4)
        }
    }

    pub(crate) fn low_diameter(groups: u32, dragonfly: bool) -> HostView {
        HostView { low_diameter: Some(Arc::new(Fake { groups, dragonfly })), ..view(8 * groups, 2, 4) }
    }

    #[test]
    fn a_group_of_a_dragonfly_sends_to_the_one_five_further() {
        let p = of::<AdversarialParameters>("start=2us");
        let flows = traffic(&p, &low_diameter(7, true), "").unwrap().flows;
        // Groups of 8 hosts: host h to (h + 5 * 8) mod 56, all 56 hosts.
        assert_eq!(flows.len(), 56);
        for (host, flow) in (0..).zip(&flows) {
            assert_eq!((flow.src, flow.dst), (host, (host + 40) % 56));
            assert_eq!((flow.size, flow.start), (4_194_304, Start::At(Time::from_us(2))));
        }
    }

    #[test]
    fn pairs_of_a_slim_fly_are_those_of_the_topology() {
        let flows = traffic(&AdversarialParameters::default(), &low_diameter(2, false), "").unwrap().flows;
        assert_eq!(flows.iter().map(|f| (f.src, f.dst)).collect::<Vec<_>>(), [(0, 5), (7, 1)]);
    }

    #[test]
    fn errors_are_reported() {
        let base = AdversarialParameters::default;
        for (p, hosts, key, part) in [
            (of::<AdversarialParameters>("size=0B"), low_diameter(7, true), "size", "1B or more"),
            (base(), view(16, 4, 2), "kind", "\"dragonfly\" or \"slim-fly\""),
            (base(), low_diameter(5, true), "offset", "found 5, which leads back"),
            (of::<AdversarialParameters>("offset=0"), low_diameter(7, true), "offset", "no multiple of 7"),
        ] {
            let error = traffic(&p, &hosts, "").unwrap_err();
            assert_eq!(error.key.as_deref(), Some(key), "{error}");
            assert!(error.message.contains(part), "{error}");
        }
    }
}
