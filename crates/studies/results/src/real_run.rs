//! Words about runs of real packets.

use crate::significant_digits_trimmed;
use anabranch_outcome::{LostPeer, MAX_FAULT_LATENESS, MachineLoad, OnWire};
use anabranch_units::Time;
use serde::{Deserialize, Serialize};

/// Maximum number of faults and pairs of hosts that a sentence names.
const NAMED: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultSummary {
    /// Number in the scenario, from 1; null if the fault is from a flow file.
    pub fault: Option<usize>,
    /// Planned time, in seconds.
    pub planned_s: f64,
    /// Time at which the fault took effect, in seconds; null if the run ended before.
    pub took_effect_s: Option<f64>,
}

impl FaultSummary {
    /// `planned` contains numbers and times of the faults in the order of the setup.
    pub fn of(wire: &OnWire, planned: &[(Option<usize>, Time)]) -> Vec<Self> {
        let row = |((number, at), effect): (&(Option<usize>, Time), &Option<Time>)| FaultSummary {
            fault: number.map(|number| number + 1),
            planned_s: at.as_seconds(),
            took_effect_s: effect.map(Time::as_seconds),
        };
        planned.iter().zip(&wire.faults).map(row).collect()
    }

    /// `None` if the fault did not take effect, or within the tolerance.
    fn lateness_ms(&self) -> Option<f64> {
        let late = self.took_effect_s? - self.planned_s;
        (late > MAX_FAULT_LATENESS.as_seconds()).then_some(late * 1e3)
    }

    fn name(&self) -> String {
        self.fault.map_or_else(|| "a fault of the flow file".into(), |number| format!("[[fault]] {number}"))
    }
}

pub(crate) fn in_words(load: &MachineLoad) -> String {
    let percent = |share: Option<f64>, words: fn(String) -> String| {
        share.map(|share| words(format!("{} %", significant_digits_trimmed(share * 100.0, 3))))
    };
    let parts = [
        percent(load.offered_share, |share| format!("hosts offered {share} of the requested rate")),
        percent(load.late_share, |share| format!("endpoints ran late for {share} of their active time")),
        percent(load.idle_share, |share| format!("processors were idle for {share}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(crate) fn late(faults: &[FaultSummary]) -> Option<String> {
    let late: Vec<(&FaultSummary, f64)> =
        faults.iter().filter_map(|fault| Some((fault, fault.lateness_ms()?))).collect();
    let worst = late.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    let name = |(fault, ms): &(&FaultSummary, f64)| {
        format!("{} {:.1} ms late, at {:.4} s", fault.name(), ms, fault.took_effect_s.unwrap_or_default())
    };
    let more = late.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; {more} more, by up to {worst:.1} ms") } else { String::new() };
    let named: Vec<String> = late.iter().take(NAMED).map(name).collect();
    (!late.is_empty()).then(|| {
        format!(
            "Faults took effect more than {} ms late: {}{more}. The machine was busy.",
            MAX_FAULT_LATENESS.as_seconds() * 1e3,
            named.join("; ")
        )
    })
}

pub(crate) fn lost(peers: &[LostPeer]) -> Option<String> {
    let name = |peer: &LostPeer| format!("{} and {} ({})", peer.hosts[0], peer.hosts[1], peer.reason);
    let named: Vec<String> = peers.iter().take(NAMED).map(name).collect();
    let more = peers.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more pairs") } else { String::new() };
    (!peers.is_empty())
        .then(|| format!("Hosts lost each other: {}{more}. Flows between them did not finish.", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_faults_are_named_with_times() {
        let fault = |number, planned_s, took_effect_s| FaultSummary { fault: Some(number), planned_s, took_effect_s };
        let on_time = [fault(1, 0.02, Some(0.0249)), fault(2, 0.5, None)];
        assert_eq!(late(&on_time), None);
        let words = late(&[on_time[0].clone(), fault(2, 0.02, Some(0.285))]).unwrap();
        assert!(words.contains("[[fault]] 2 265.0 ms late, at 0.2850 s") && !words.contains("[[fault]] 1"), "{words}");
    }

    #[test]
    fn lost_hosts_are_named() {
        assert_eq!(lost(&[]), None);
        let peers = [LostPeer { hosts: ["host0".into(), "host5".into()], reason: "has not answered".into() }];
        assert!(lost(&peers).unwrap().contains("host0 and host5 (has not answered)"));
    }
}
