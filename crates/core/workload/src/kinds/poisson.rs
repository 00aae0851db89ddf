//! Poisson arrivals (specification 2.6): every host starts flows in an independent Poisson process. `load` counts payload
//! bytes. With `load_reference = "network"` it is the load of the uplinks and is divided by the oversubscription.

use super::WorkloadKind;
use crate::{
    Members, Scope, SizeDistribution, Start, WorkloadError,
    flow::plain,
    pairs::{Limit, Parts},
    traffic::Traffic,
    view::Context,
};
use anabranch_random::Stream;
use anabranch_settings::{About, choices, parameters};
use anabranch_units::{Rate, Time};

pub(crate) const ABOUT: About = About {
    name: "poisson",
    summary: "flows of random sizes to random receivers, in a Poisson process per host",
    source: "specification 2.6; Hopper §4.1; ConWeave's traffic generator",
    description: "Every host starts flows in an independent Poisson process; sizes come from a distribution, \
        receivers are uniform among the allowed. The mean gap is mean size / (NIC rate * host load), so the load \
        counts payload bytes. Gaps are rounded to picoseconds.",
};

choices! {
    /// Capacity that the load is a share of.
    pub enum LoadReference {
        /// The NICs.
        Host = "host",
        /// The uplinks: the load of the NICs is this one divided by the oversubscription.
        Network = "network",
    }
}

parameters! {
    /// Poisson arrivals.
    pub struct PoissonParameters {
        /// Flow sizes: a name (`anabranch list workloads`), one size such as "64KiB", or the path of a table.
        sizes: String = "web-search".into(), source "Hopper §4.1, Spritz §V-B";
        /// Payload offered per time, as a share of the capacity.
        load: f64 = 0.5, source "Hopper §4.1: 0.5 and 0.8";
        /// Capacity that the load is a share of.
        load_reference: LoadReference = LoadReference::Host, source "specification 2.6", Expert;
        /// Duration of the arrival processes.
        duration: Time = Time::from_ms(1), source "Spritz §V-B";
        /// Start time of the arrival processes.
        start: Time = Time::ZERO, source "ours", Expert;
        /// Participating hosts: all, or those that neither send nor receive in the workloads listed before.
        hosts: Members = Members::All, source "ours";
        /// Maximum concurrent senders of a receiver, a flow taking size / NIC rate from its start; 0: unlimited.
        max_senders: u32 = 0, source "specification 12.3: 4 for Spritz's web search, whose number is not given", Expert;
        /// Scope of the receivers.
        destinations: Scope = Scope::Any, source "ConWeave's traffic generator", Expert;
        /// Maximum number of expected flows: guards the memory.
        max_flows: u64 = 20_000_000, source "ours: about 2 GB", Expert;
    }
}

impl PoissonParameters {
    /// In picoseconds.
    fn mean_gap(&self, mean_size: f64, rate: Rate, oversubscription: f64) -> f64 {
        let host_load = match self.load_reference {
            LoadReference::Host => self.load,
            LoadReference::Network => self.load / oversubscription,
        };
        mean_size * 8e12 / (rate.0 as f64 * host_load)
    }
}

impl WorkloadKind for PoissonParameters {
    fn check(&self) -> Result<(), WorkloadError> {
        let share = "a share of the capacity such as 0.6, above 0 and at most 2";
        WorkloadError::unless(self.load > 0.0 && self.load <= 2.0, "load", self.load, share)?;
        WorkloadError::unless(self.duration > Time::ZERO, "duration", self.duration, "a time above 0")?;
        let end = self.start.ps().checked_add(self.duration.ps());
        WorkloadError::unless(end.is_some(), "start", self.start, "start and duration within 213 days")
    }

    fn generate(&self, context: &Context<'_>) -> Result<Traffic, WorkloadError> {
        let members = context.members(self.hosts)?;
        let view = context.view;
        let sizes = SizeDistribution::named(&self.sizes, context.read_file).map_err(|e| e.with_key("sizes"))?;
        let parts = Parts::new(view, self.destinations, members);
        parts.check("destinations")?;
        let gaps: Vec<f64> = parts
            .members()
            .iter()
            .map(|&host| self.mean_gap(sizes.mean(), view.nic_rate[host as usize], view.oversubscription))
            .collect();
        let expected: f64 = gaps.iter().map(|gap| self.duration.ps() as f64 / gap).sum();
        context.check_room(expected as u128, self.max_flows, "duration")?;

        let purpose = |what: &str| format!("workload {} {what}", context.name);
        let purposes = (purpose("gaps"), purpose("receivers"), purpose("sizes"));
        let end = self.start + self.duration;
        let mut flows = Vec::with_capacity(expected as usize + 1);
        for (&gap, &src) in gaps.iter().zip(parts.members()) {
            let stream = |purpose| Stream::keyed(context.seed, view.host_key[src as usize], purpose);
            let (mut arrivals, mut receivers, mut drawn) =
                (stream(&purposes.0), stream(&purposes.1), stream(&purposes.2));
            let mut at = self.start;
            loop {
                at = at.saturating_add(Time::from_ps((arrivals.exponential(gap) + 0.5) as u64));
                if at >= end {
                    break;
                }
                // With a limit, receivers are drawn below, when the flows of all hosts are in order.
                let dst = if self.max_senders == 0 { parts.receiver(src, &mut receivers) } else { src };
                flows.push(plain(src, dst, sizes.sample(&mut drawn), Start::At(at)));
            }
        }
        // By start, so that a longer run extends the flows of a shorter one.
        flows.sort_by_key(|flow| match flow.start {
            Start::At(at) => (at, flow.src),
            Start::On(_) => (Time::MAX, flow.src),
        });
        if self.max_senders > 0 {
            let streams = view.host_key.iter().map(|&key| Stream::keyed(context.seed, key, &purposes.1)).collect();
            Limit::new(self.max_senders, &parts, view, streams).draw(&mut flows);
        }
        Ok(Traffic { flows, ..Traffic::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{assert_refused, of, traffic, view};

    fn at(start: Start) -> u64 {
        match start {
            Start::At(time) => time.ps(),
            Start::On(_) => panic!("a trigger"),
        }
    }

    #[test]
    fn the_rate_is_that_of_the_load() {
        // 50 % of the uplinks at 2:1 is 25 Gb/s per host; 40,869.8 B * 8 / 25 Gb/s = 13.0783 us between flows.
        let mut hosts = view(32, 16, 1);
        hosts.oversubscription = 2.0;
        let p = PoissonParameters {
            sizes: "ali-storage".into(),
            load_reference: LoadReference::Network,
            duration: Time::from_ms(20),
            ..Default::default()
        };
        let flows = traffic(&p, &hosts, "").unwrap().flows;
        let expected = 32.0 * 20e-3 / (40_869.8 * 8.0 / 25e9);
        // Poisson: the standard deviation is the root; 3.3 of them are exceeded with probability 0.001.
        assert!((flows.len() as f64 - expected).abs() < 3.3 * expected.sqrt(), "{} {expected}", flows.len());
        // 11.8 % of the receivers of 128 hosts are in the rack; here 15 of 31.
        let inside = flows.iter().filter(|f| f.src / 16 == f.dst / 16).count() as f64;
        let share = 15.0 / 31.0;
        let sd = (flows.len() as f64 * share * (1.0 - share)).sqrt();
        assert!((inside - flows.len() as f64 * share).abs() < 3.3 * sd);
        assert!(flows.iter().all(|f| f.src != f.dst && f.size >= 1));
    }

    #[test]
    fn gaps_are_exponential() {
        let p = of::<PoissonParameters>("sizes=1000B load=0.8 duration=2ms start=7us");
        let flows = traffic(&p, &view(8, 4, 1), "").unwrap().flows;
        // 8000 bits at 80 Gb/s: a mean gap of 100 ns.
        let mut gaps = Vec::new();
        for host in 0..8 {
            let mut before = Time::from_us(7).ps();
            for start in flows.iter().filter(|f| f.src == host).map(|f| at(f.start)) {
                gaps.push((start - before) as f64 / 100_000.0);
                before = start;
            }
        }
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        assert!(n > 150_000.0);
        let cdf = |x: f64| 1.0 - (-x).exp();
        let worst = gaps.iter().enumerate().fold(0.0f64, |worst, (i, &x)| {
            worst.max((cdf(x) - i as f64 / n).abs()).max((cdf(x) - (i + 1) as f64 / n).abs())
        });
        assert!(worst < 1.95 / n.sqrt(), "{worst}");
    }

    #[test]
    fn a_longer_run_has_the_same_flows_and_more() {
        let short = of::<PoissonParameters>("duration=200us");
        let long = of::<PoissonParameters>("duration=400us");
        let hosts = view(64, 8, 2);
        let (short, long) = (traffic(&short, &hosts, "").unwrap().flows, traffic(&long, &hosts, "").unwrap().flows);
        assert!(long.len() > short.len() && !short.is_empty());
        assert_eq!(short[..], long[..short.len()]);
    }

    #[test]
    fn receivers_keep_to_the_scope_and_a_fast_host_sends_more() {
        let mut hosts = view(8, 2, 2);
        hosts.nic_rate[3] = Rate::gbps(400);
        let p = of::<PoissonParameters>("sizes=10kB destinations=other-group duration=5ms");
        let flows = traffic(&p, &hosts, "").unwrap().flows;
        assert!(flows.iter().all(|f| f.src / 4 != f.dst / 4));
        let of = |host| flows.iter().filter(|f| f.src == host).count() as f64;
        // 5 ms / (80,000 bits / 200 Gb/s) = 12,500 against 3,125; 3.3 standard deviations each.
        assert!((of(3) - 12_500.0).abs() < 3.3 * 12_500f64.sqrt());
        assert!((of(2) - 3_125.0).abs() < 3.3 * 3_125f64.sqrt());
    }

    #[test]
    fn a_limit_on_senders_is_kept_and_changes_nothing_else() {
        // Load 1: a receiver has one sender on average, and without a limit sometimes six.
        let p = of::<PoissonParameters>("sizes=100kB load=1.0 duration=500us destinations=other-group");
        let hosts = view(64, 4, 2);
        let free = traffic(&p, &hosts, "").unwrap().flows;
        // 100,000 B at 100 Gb/s are 8 us.
        let max_concurrent_senders = |flows: &[crate::Flow]| {
            let mut most = 0;
            for (number, flow) in flows.iter().enumerate() {
                let active =
                    flows[..=number].iter().filter(|f| f.dst == flow.dst && at(f.start) + 8_000_000 > at(flow.start));
                most = most.max(active.map(|f| f.src).collect::<std::collections::BTreeSet<_>>().len());
            }
            most
        };
        assert!(max_concurrent_senders(&free) > 4);
        for max_senders in [2, 4] {
            let limited = traffic(&PoissonParameters { max_senders, ..p.clone() }, &hosts, "").unwrap().flows;
            assert_eq!(max_concurrent_senders(&limited), max_senders as usize);
            let rest = |flows: &[crate::Flow]| flows.iter().map(|f| (f.src, f.size, f.start)).collect::<Vec<_>>();
            assert_eq!(rest(&limited), rest(&free));
            assert!(limited.iter().all(|f| f.src / 8 != f.dst / 8));
        }
        // A limit that never binds draws the same receivers.
        let wide = traffic(&PoissonParameters { max_senders: 64, ..p }, &hosts, "").unwrap().flows;
        assert_eq!(wide, free);
    }
    #[test]
    fn errors_are_reported() {
        assert_refused::<PoissonParameters>(&view(4, 2, 2), "no table", "poisson");
        assert!(traffic(&PoissonParameters::default(), &view(1, 1, 1), "").unwrap_err().message.contains("needs two"));
    }
}
