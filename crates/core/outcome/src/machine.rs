//! Load of the machine in a run of real packets.

use anabranch_units::Time;
use serde::{Deserialize, Serialize};

/// A run whose hosts offered a smaller share of the requested rate is machine-bound.
pub const MIN_OFFERED_SHARE: f64 = 0.95;
/// A run whose endpoints ran late for a larger share of their active time is machine-bound.
pub const MAX_LATE_SHARE: f64 = 0.02;

/// Scheduling losses of one endpoint's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointLoad {
    /// Time with a message of its own that was not acknowledged.
    pub sending: Time,
    /// Time with a message of a peer that was not complete.
    pub receiving: Time,
    /// Time with either.
    pub active: Time,
    /// Of `active`, time in which a packet was overdue for longer than the pacer compensates.
    pub late: Time,
    /// Of `sending`, time for which a packet was overdue without later compensation.
    pub lost: Time,
    /// Bytes that it sent.
    pub offered_bytes: u64,
    /// Bytes sent by its host's port.
    pub achieved_bytes: u64,
}

/// Load of the machine; `None`: not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// `true` if the results reflect the machine rather than the load balancer; `None`: partly measured, and that part
    /// was not bound.
    #[serde(rename = "bound")]
    pub is_bound: Option<bool>,
    /// `offered_bps` over `asked_bps`.
    pub offered_share: Option<f64>,
    /// Share of their active time for which endpoints ran late: the maximum of senders and receivers, so that the
    /// senders of an incast do not hide its receiver.
    pub late_share: Option<f64>,
    /// Share of the time of all processors in which they were idle.
    pub idle_share: Option<f64>,
    /// Mean rate per sending host that transport and pacing requested while data was available.
    pub asked_bps: Option<f64>,
    /// Mean rate at which the endpoints sent.
    pub offered_bps: Option<f64>,
    /// Mean rate at which the ports of their hosts sent.
    pub achieved_bps: Option<f64>,
}

impl MachineLoad {
    /// Sums up `endpoints`; `is_complete`: they include all senders and receivers.
    pub fn new(endpoints: &[EndpointLoad], idle_share: Option<f64>, is_complete: bool) -> Self {
        let sum = |of: &dyn Fn(&EndpointLoad) -> Time, counts: &dyn Fn(&EndpointLoad) -> bool| -> f64 {
            endpoints.iter().filter(|endpoint| counts(endpoint)).map(|endpoint| of(endpoint).as_seconds()).sum()
        };
        let sends = |endpoint: &EndpointLoad| endpoint.sending > Time::ZERO;
        let receives = |endpoint: &EndpointLoad| endpoint.receiving > Time::ZERO;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let sending = sum(&|endpoint| endpoint.sending, &sends);
        let lost = sum(&|endpoint| endpoint.lost, &sends).min(sending);
        let rate = |of: fn(&EndpointLoad) -> u64, seconds: f64| {
            let bytes: u64 = endpoints.iter().filter(|endpoint| sends(endpoint)).map(of).sum();
            share(bytes as f64 * 8.0, seconds)
        };
        let late = |counts: &dyn Fn(&EndpointLoad) -> bool| {
            share(sum(&|endpoint| endpoint.late, counts), sum(&|endpoint| endpoint.active, counts))
        };
        let offered_share = share(sending - lost, sending);
        let late_share = [late(&sends), late(&receives)].into_iter().flatten().max_by(f64::total_cmp);
        let is_over = |(offered, late)| offered < MIN_OFFERED_SHARE || late > MAX_LATE_SHARE;
        let is_over = offered_share.zip(late_share).map(is_over);
        MachineLoad {
            asked_bps: rate(|endpoint| endpoint.offered_bytes, sending - lost),
            offered_bps: rate(|endpoint| endpoint.offered_bytes, sending),
            achieved_bps: rate(|endpoint| endpoint.achieved_bytes, sending),
            offered_share,
            late_share,
            idle_share,
            is_bound: is_over.filter(|over| *over || is_complete),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(sending_ms: u64, receiving_ms: u64, late_ms: u64, lost_ms: u64) -> EndpointLoad {
        let ms = |ms: u64| Time::from_us(1000 * ms);
        let active = ms(sending_ms.max(receiving_ms));
        let offered_bytes = 1000 * sending_ms;
        EndpointLoad {
            sending: ms(sending_ms),
            receiving: ms(receiving_ms),
            active,
            late: ms(late_ms),
            lost: ms(lost_ms),
            offered_bytes,
            achieved_bytes: offered_bytes,
        }
    }

    #[test]
    fn unmeasured_is_unknown() {
        assert_eq!(MachineLoad::new(&[], None, true), MachineLoad::default());
        let quiet = [endpoint(100, 0, 0, 0)];
        assert_eq!(MachineLoad::new(&quiet, None, true).is_bound, Some(false));
        assert_eq!(MachineLoad::new(&quiet, None, false).is_bound, None);
        assert_eq!(MachineLoad::new(&[endpoint(100, 0, 3, 2)], None, false).is_bound, Some(true));
    }

    #[test]
    fn thresholds_are_those_of_the_definition() {
        let bound = |late, lost| MachineLoad::new(&[endpoint(1000, 0, late, lost)], None, true).is_bound;
        assert_eq!(
            [bound(20, 0), bound(21, 0), bound(0, 50), bound(0, 51)].map(Option::unwrap),
            [false, true, false, true]
        );
    }

    #[test]
    fn rates_are_per_sending_host() {
        // 1000 B per ms are 8 Mbit/s; a fifth of the time is lost, so 10 were requested.
        let load = MachineLoad::new(
            &[endpoint(100, 0, 0, 20), endpoint(100, 0, 0, 20), endpoint(0, 100, 0, 0)],
            Some(0.5),
            true,
        );
        let close = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-6 * expected;
        assert!(
            close(load.offered_bps, 8e6) && close(load.asked_bps, 1e7) && close(load.achieved_bps, 8e6),
            "{load:?}"
        );
        assert!(close(load.offered_share, 0.8) && load.idle_share == Some(0.5));
    }

    #[test]
    fn the_receiver_of_an_incast_counts_like_its_senders() {
        let mut endpoints = vec![endpoint(100, 0, 0, 0); 15];
        endpoints.push(endpoint(0, 100, 5, 0));
        let load = MachineLoad::new(&endpoints, None, true);
        assert!((load.late_share.unwrap() - 0.05).abs() < 1e-9);
        assert_eq!(load.is_bound, Some(true));
    }
}
