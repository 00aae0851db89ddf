//! Incast: many hosts send to the same receiver at the same time (specification 12.3).

use super::WorkloadKind;
use crate::{Start, WorkloadError, flow::plain, traffic::Traffic, view::Context};
use anabranch_random::Stream;
use anabranch_settings::{About, Auto, parameters};
use anabranch_units::{Bytes, Time};

pub(crate) const ABOUT: About = About {
    name: "incast",
    summary: "many hosts send to one receiver, or to each of several, at the same time",
    source: "specification 12.3; Spritz §V-C",
    description: "Every sender sends one message to every receiver, all at `start`. Senders and receivers are random \
        distinct hosts, or those listed.",
};

parameters! {
    /// Incast.
    pub struct IncastParameters {
        /// Number of senders; auto: as many as `sender_hosts` lists, or 32.
        senders: Auto<u32> = Auto::Auto, source "specification 12.3: 32 on Dragonfly";
        /// Number of receivers; auto: as many as `receiver_hosts` lists, or 1.
        receivers: Auto<u32> = Auto::Auto, source "specification 12.3";
        /// Bytes per message.
        size: Bytes = Bytes(4 << 20), source "specification 12.3: 4 MiB";
        /// Start time of all messages.
        start: Time = Time::ZERO, source "specification 12.3", Expert;
        /// The senders, by host number; empty: random ones.
        sender_hosts: Vec<u32> = vec![], source "ours", Expert;
        /// The receivers, by host number; empty: random ones.
        receiver_hosts: Vec<u32> = vec![], source "ours", Expert;
        /// Maximum number of flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

fn number(count: Auto<u32>, key: &str, list: &[u32], default: u32) -> Result<u32, WorkloadError> {
    match count {
        Auto::Auto if list.is_empty() => Ok(default),
        Auto::Auto => Ok(list.len() as u32),
        Auto::Value(0) => Err(WorkloadError::of_key(key, "found 0, expected 1 or more")),
        Auto::Value(count) if list.is_empty() || count as usize == list.len() => Ok(count),
        Auto::Value(count) => {
            let listed = list.len();
            Err(WorkloadError::of_key(key, format!("found {count}, but {listed} are listed by host; leave one out")))
        }
    }
}

impl IncastParameters {
    fn numbers(&self) -> Result<(u32, u32), WorkloadError> {
        Ok((
            number(self.senders, "senders", &self.sender_hosts, 32)?,
            number(self.receivers, "receivers", &self.receiver_hosts, 1)?,
        ))
    }
}

impl WorkloadKind for IncastParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        WorkloadError::unless(self.size.0 > 0, "size", self.size, "1B or more")?;
        let (senders, receivers) = self.numbers()?;
        Traffic::check_room(u128::from(senders) * u128::from(receivers), self.max_flows, "senders")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        context.needs_a_pair()?;
        let hosts = context.view.hosts;
        let (senders, receivers) = self.numbers()?;
        context.check_memory(u128::from(senders) * u128::from(receivers), "senders")?;
        let mut taken = vec![false; hosts as usize];
        for (key, list) in [("receiver_hosts", &self.receiver_hosts), ("sender_hosts", &self.sender_hosts)] {
            for &host in list {
                match taken.get_mut(host as usize) {
                    None => {
                        let message = format!("host {host} does not exist; hosts are 0 to {}", hosts - 1);
                        return Err(WorkloadError::of_key(key, message));
                    }
                    Some(true) => {
                        let message = format!("host {host} is named twice, expected distinct senders and receivers");
                        return Err(WorkloadError::of_key(key, message));
                    }
                    Some(free) => *free = true,
                }
            }
        }
        if u64::from(senders) + u64::from(receivers) > u64::from(hosts) {
            let message =
                format!("{senders} senders and {receivers} receivers are more than the {hosts} hosts there are");
            return Err(WorkloadError::of_key("senders", message));
        }
        let mut free: Vec<u32> = (0..hosts).filter(|&host| !taken[host as usize]).collect();
        Stream::keyed(context.seed, context.key(), "workload incast").shuffle(&mut free);
        let mut free = free.into_iter();
        let mut chosen = |list: &[u32], count: u32| match list {
            [] => free.by_ref().take(count as usize).collect::<Vec<u32>>(),
            _ => list.to_vec(),
        };
        let to = chosen(&self.receiver_hosts, receivers);
        let from = chosen(&self.sender_hosts, senders);
        let flow = |src: u32| to.iter().map(move |&dst| plain(src, dst, self.size.0, Start::At(self.start)));
        Ok(Traffic { flows: from.into_iter().flat_map(flow).collect(), ..Traffic::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{assert_refused, of, traffic, view};
    use std::collections::BTreeSet;

    #[test]
    fn every_sender_sends_to_every_receiver() {
        let p = of::<IncastParameters>("senders=5 receivers=3");
        let flows = traffic(&p, &view(16, 4, 1), "").unwrap().flows;
        let from: BTreeSet<u32> = flows.iter().map(|f| f.src).collect();
        let to: BTreeSet<u32> = flows.iter().map(|f| f.dst).collect();
        let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src, f.dst)).collect();
        assert_eq!((from.len(), to.len(), pairs.len(), flows.len()), (5, 3, 15, 15));
        assert!(from.is_disjoint(&to));
    }

    #[test]
    fn host_lists_are_used_in_order() {
        // Spritz: hosts 0-31 send to host 160.
        let p = IncastParameters {
            sender_hosts: (0..32).collect(),
            receiver_hosts: vec![160],
            size: Bytes(4 << 20),
            ..Default::default()
        };
        let flows = traffic(&p, &view(256, 4, 8), "").unwrap().flows;
        assert_eq!(flows.len(), 32);
        assert!(flows.iter().enumerate().all(|(i, f)| (f.src, f.dst) == (i as u32, 160)));
        // The random side excludes the listed one.
        let p = IncastParameters { receiver_hosts: vec![3], senders: Auto::Value(7), ..Default::default() };
        let flows = traffic(&p, &view(8, 4, 1), "").unwrap().flows;
        assert_eq!(flows.iter().map(|f| f.src).collect::<BTreeSet<_>>(), BTreeSet::from([0, 1, 2, 4, 5, 6, 7]));
    }
    #[test]
    fn errors_are_reported() {
        assert_refused::<IncastParameters>(&view(8, 4, 1), "", "incast");
    }
}
