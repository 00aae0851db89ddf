//! Estimate of a run's duration before it begins: a warning instead of hours of silence.

use anabranch_backend::Setup;
use anabranch_workload::{Flow, Medium};

/// Packet-hops per second assumed in estimates: the speed of one core in a large fabric.
const SPEED: u64 = 3_000_000;

const LONG: u64 = 600;

/// Number of flows whose paths represent those of all.
const SAMPLES: usize = 64;

/// Estimates the packet-hops of the data of all flows, as far as the time limit lets the NICs send them.
pub(crate) fn hops(setup: &Setup) -> u64 {
    reckon(setup, 0)
}

/// As [`hops`], but returns the packets alone for a run that is short in any case.
fn packet_hops(setup: &Setup) -> u64 {
    reckon(setup, SPEED)
}

/// Estimates the packet-hops; below `enough` packets, returns the packets instead.
fn reckon(setup: &Setup, enough: u64) -> u64 {
    let (mtu, header) = (setup.transport.mtu().max(1), setup.transport.header());
    // Messages over scale-up have no packets.
    let flows = || setup.flows.all_flows().filter(|flow| flow.medium == Medium::Network);
    let of = |flow: &Flow| u128::from(flow.size.div_ceil(mtu));
    let (packets, number) = flows().fold((0u128, 0usize), |(packets, number), flow| (packets + of(&flow), number + 1));
    let time = u128::from(setup.limits.time_limit.ps());
    let bits = u128::from(8 * (mtu + header));
    let hosts = 0..setup.topology.hosts;
    let rate: u128 = hosts.map(|h| u128::from(setup.topology.host_rates(h).0.0)).sum();
    let sent = rate.saturating_mul(time) / (bits * 1_000_000_000_000);
    let packets = packets.min(sent.max(1));
    // Finding the paths of a large fabric takes a while.
    if packets < u128::from(enough) {
        return packets as u64;
    }
    let step = number.div_ceil(SAMPLES).max(1);
    let hops: Vec<usize> =
        flows().step_by(step).map(|flow| setup.topology.base_path(flow.src, flow.dst).len()).collect();
    let total = packets.saturating_mul(hops.iter().sum::<usize>() as u128) / hops.len().max(1) as u128;
    u64::try_from(total).unwrap_or(u64::MAX)
}

pub(crate) fn warning(setup: &Setup) -> Option<String> {
    let hops = packet_hops(setup);
    let seconds = hops / SPEED;
    (seconds >= LONG).then(|| {
        format!(
            "this run has about {:.1e} packet-hops: at {} million per second it takes {}",
            hops as f64,
            SPEED / 1_000_000,
            duration(seconds)
        )
    })
}

fn duration(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(31_557_600, "years"), (86_400, "days"), (3600, "hours"), (60, "minutes")];
    match UNITS.iter().find(|(unit, _)| seconds >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", seconds as f64 / *unit as f64),
        None => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::load;

    fn setup(changes: &[&str]) -> Setup {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_string()).collect();
        load("permutation-128", &changes, None).and_then(|scenario| scenario.setup(1)).unwrap()
    }

    /// 128 flows of 4 GiB in packets of 4096 B are 2^27 packets. Of the 127 other hosts 7 are at the same leaf (two links), the
    /// rest four links away: 3.9 on average.
    #[test]
    fn packets_times_links() {
        let long = setup(&["workload.0.size=4GiB"]);
        let hops = packet_hops(&long) as f64 / f64::from(1 << 27);
        assert!((3.5..=4.0).contains(&hops), "{hops}");
        // 2^27 * 3.9 / 3e6 = 175 s: no warning. 1 TiB is 2^35 packets, 12.4 hours, but a second at 400 Gb/s is 128 * 400e9 /
        // (4160 * 8) = 1.54e9 packets: 33 minutes.
        assert_eq!(warning(&long), None);
        let longer = warning(&setup(&["workload.0.size=1TiB"])).unwrap();
        assert!(longer.contains("minutes") && longer.contains("3 million"), "{longer}");
        let longest = warning(&setup(&["workload.0.size=1TiB", "run.time_limit=100s"])).unwrap();
        assert!(longest.contains("hours"), "{longest}");
    }

    /// Packets of 1 B: 2^23 of them per flow of 8 MiB, 2^30 in all.
    #[test]
    fn small_packets_count() {
        let hops = packet_hops(&setup(&["transport.mtu=1B"])) as f64 / f64::from(1 << 30);
        assert!((3.5..=4.0).contains(&hops), "{hops}");
    }

    #[test]
    fn durations() {
        let of = [59, 60, 5400, 172_800, 315_576_000].map(duration);
        assert_eq!(of, ["59 seconds", "1.0 minutes", "1.5 hours", "2.0 days", "10.0 years"]);
    }
}
