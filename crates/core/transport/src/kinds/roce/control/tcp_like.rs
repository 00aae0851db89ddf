//! A TCP-like sender for the gap study of HF2T (specification 7.9). It models only the gaps between packets.

use super::{ControlCapabilities, DelayedAcks, PairControl, PairReply, Start};
use anabranch_settings::{About, parameters};
use anabranch_units::{Rate, Time};

pub(super) const ABOUT: About = About::brief(
    "tcp-like",
    "A TCP-like sender: slow start, DCTCP's rule, bursts of segmentation offload, delayed acknowledgements.",
);

parameters! {
    /// A TCP-like sender has no parameters.
    pub struct TcpLikeParameters {
    }
}

/// Initial window in packets (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;
/// Maximum bytes released back to back: segmentation offload (specification 7.9).
const BURST: u64 = 64_000;
/// A new burst waits until it may be this share of the window. Ours: Linux' `tcp_tso_win_divisor` of 3.
const BURST_SHARE: f64 = 1.0 / 3.0;
/// Gain of DCTCP's share of marks (DCTCP, SIGCOMM 2010).
const G: f64 = 0.0625;
/// Delayed acknowledgements (specification 7.9).
const DELAYED_ACKS: DelayedAcks = DelayedAcks { every: 2, wait: Time::from_us(500) };

impl ControlCapabilities for TcpLikeParameters {
    fn requires_go_back_n(&self) -> bool {
        true
    }
}

/// State of one flow.
#[derive(Clone, Debug)]
pub struct TcpLike {
    /// Window in packets.
    cwnd: f64,
    threshold: f64,
    /// DCTCP: share of marks, and packets acknowledged and marked in the current window, which ends at this PSN.
    share: f64,
    acked: u32,
    marked: u32,
    window_end: u64,
    /// Payload bytes of the current burst not yet sent.
    burst_left: u64,
}

impl TcpLike {
    pub(crate) fn new() -> Self {
        TcpLike {
            cwnd: INITIAL_WINDOW,
            threshold: f64::MAX,
            share: 0.0,
            acked: 0,
            marked: 0,
            window_end: 0,
            burst_left: 0,
        }
    }

    pub(crate) fn on_ack(&mut self, packets: u32, marked: bool, una: u64, nxt: u64, most: f64) {
        self.acked += packets;
        self.marked += if marked { packets } else { 0 };
        if una >= self.window_end {
            let share = f64::from(self.marked) / f64::from(self.acked.max(1));
            self.share += G * (share - self.share);
            if self.marked > 0 {
                self.cwnd = (self.cwnd * (1.0 - self.share / 2.0)).max(1.0);
                self.threshold = self.cwnd;
            }
            (self.acked, self.marked, self.window_end) = (0, 0, nxt);
        }
        if marked && self.threshold == f64::MAX {
            self.threshold = self.cwnd;
        }
        let acked = f64::from(packets);
        self.cwnd += if self.cwnd < self.threshold { acked } else { acked / self.cwnd };
        self.cwnd = self.cwnd.min(most.max(1.0));
    }

    pub(crate) fn on_loss(&mut self) {
        self.threshold = (self.cwnd / 2.0).max(2.0);
        self.cwnd = self.threshold;
        self.burst_left = 0;
    }
}

impl PairControl for TcpLike {
    const WINDOW: bool = true;
    const BURSTS: bool = true;
    const PER_PATH: bool = false;
    type Parameters = TcpLikeParameters;
    type Config = ();

    fn config(_: &TcpLikeParameters, _: Rate) {}

    fn new((): &(), _: &Start) -> Self {
        TcpLike::new()
    }

    fn rate(&mut self, (): &(), _: Time, _: Rate) -> Option<Rate> {
        None
    }

    fn on_reply(&mut self, (): &(), reply: &PairReply) {
        let PairReply { packets, marked, nack, una, next, largest, .. } = *reply;
        if nack {
            self.on_loss();
        } else if packets > 0 {
            self.on_ack(packets, marked, una, next, largest);
        }
    }

    fn on_timeout(&mut self, (): &(), _: Time) {
        self.on_loss();
        self.cwnd = 1.0;
    }

    fn window(&self, mtu: u64) -> u64 {
        (self.cwnd * mtu as f64) as u64
    }

    fn may_send(&self, (): &(), mtu: u64, room: u64, left: u64) -> bool {
        let wanted = (self.cwnd * mtu as f64 * BURST_SHARE) as u64;
        self.burst_left > 0 || room >= wanted.min(BURST).min(left)
    }

    fn in_burst(&self) -> bool {
        self.burst_left > 0
    }

    fn on_sent(&mut self, (): &(), room: u64, bytes: u64) {
        if self.burst_left == 0 {
            self.burst_left = room.min(BURST);
        }
        self.burst_left = self.burst_left.saturating_sub(bytes);
    }

    fn delayed_acks((): &()) -> Option<DelayedAcks> {
        Some(DELAYED_ACKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_wait_for_a_third_of_the_window() {
        let mut tcp = TcpLike::new();
        tcp.cwnd = 90.0;
        // A third of 90 packets of 1000 B.
        assert!(!tcp.may_send(&(), 1000, 29_000, 1 << 20) && tcp.may_send(&(), 1000, 30_000, 1 << 20));
        // The rest of a flow is sent at once if it fits.
        assert!(tcp.may_send(&(), 1000, 2000, 1500));
        tcp.on_sent(&(), 30_000, 1000);
        assert!(tcp.may_send(&(), 1000, 1000, 1 << 20), "the burst goes on");
        (0..29).for_each(|_| tcp.on_sent(&(), 1000, 1000));
        assert!(!tcp.may_send(&(), 1000, 1000, 1 << 20), "and ends");
    }

    #[test]
    fn slow_start_doubles_and_marks_end_it() {
        let mut tcp = TcpLike::new();
        tcp.on_ack(10, false, 10, 20, 1e6);
        assert_eq!(tcp.cwnd, 20.0);
        // A whole window marked: the share becomes 1/16, the window falls by 1/32, then grows by a packet per window.
        tcp.on_ack(20, true, 30, 50, 1e6);
        assert!((tcp.cwnd - (20.0 * 31.0 / 32.0 + 20.0 / (20.0 * 31.0 / 32.0))).abs() < 1e-9, "{}", tcp.cwnd);
    }
}
