//! The sender of a queue pair (specification 7.3, 17.3).

use super::{
    Dcqcn, Recovery, RoceConfig, RoceReply, blocks::Blocks, config::ControlConfig, swift::Swift, tcp_like::TcpLike,
};
use crate::uet::{Acked, Segment};
use anabranch_units::{Rate, Time};
use std::collections::VecDeque;

/// What the sender remembers of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    at: Time,
    tag: u32,
    /// Sent more than once: its round trip says nothing.
    again: bool,
}

/// The congestion control of one queue pair.
#[derive(Clone, Debug)]
enum Control {
    Dcqcn(Dcqcn),
    Swift(Swift),
    TcpLike(TcpLike),
    None,
}

/// The sending side of a flow.
#[derive(Clone, Debug)]
pub struct RoceSender {
    size: u64,
    packets: u64,
    /// Every PSN below is acknowledged.
    una: u64,
    /// The PSN to be sent next, but for those that have arrived.
    nxt: u64,
    /// Every PSN below has been sent.
    highest: u64,
    /// The highest cumulative acknowledgement heard.
    highest_ack: u64,
    /// What has arrived beyond `una`, as far as it is known.
    arrived: Blocks,
    recovering: bool,
    /// Recovery ends when everything below is acknowledged.
    recovery_end: u64,
    next_avail: Time,
    /// When the retransmission timer was last restarted, and how long it runs; `None`: it does not.
    restarted: Time,
    timeout: Option<Time>,
    line_rate: Rate,
    control: Control,
    /// PSN `una + i` is `sent[i]`.
    sent: VecDeque<Sent>,
    retransmitted: u64,
    timeouts: u64,
}

impl RoceSender {
    /// The sender of `size` payload bytes, from `now` on, by a NIC of `line_rate`, over a path of base round trip
    /// `base_rtt`.
    pub fn new(config: &RoceConfig, line_rate: Rate, base_rtt: Time, size: u64, now: Time) -> Self {
        let window_packets = (config.window.min(size) / config.mtu) as f64;
        RoceSender {
            size,
            packets: config.packets(size),
            una: 0,
            nxt: 0,
            highest: 0,
            highest_ack: 0,
            arrived: Blocks::default(),
            recovering: false,
            recovery_end: 0,
            next_avail: now,
            restarted: now,
            timeout: None,
            line_rate,
            control: match &config.control {
                ControlConfig::Dcqcn(_) => Control::Dcqcn(Dcqcn::new(line_rate)),
                ControlConfig::Swift(swift) => Control::Swift(Swift::new(swift, base_rtt, window_packets)),
                ControlConfig::TcpLike(tcp) => Control::TcpLike(TcpLike::new(tcp)),
                ControlConfig::None => Control::None,
            },
            sent: VecDeque::new(),
            retransmitted: 0,
            timeouts: 0,
        }
    }

    /// Payload bytes below a PSN.
    #[inline]
    fn bytes(&self, config: &RoceConfig, psn: u64) -> u64 {
        (psn * config.mtu).min(self.size)
    }

    /// The PSN that would be sent next.
    #[inline]
    fn next(&self, config: &RoceConfig) -> u64 {
        if self.arrived.is_empty() {
            return self.nxt;
        }
        if config.quirks {
            // The reference model skips the first run alone.
            return self.arrived.first().filter(|run| run.0 == self.nxt).map_or(self.nxt, |run| run.1);
        }
        self.arrived.run_at(self.nxt).unwrap_or(self.nxt)
    }

    /// Payload bytes that may be in flight.
    fn window(&self, config: &RoceConfig) -> u64 {
        match &self.control {
            Control::Swift(swift) => swift.window(config.mtu).min(config.window),
            Control::TcpLike(tcp) => tcp.window(config.mtu).min(config.window),
            _ => config.window,
        }
    }

    /// Whether there is something to send and the window allows it; pacing aside.
    #[inline]
    pub fn ready(&self, config: &RoceConfig) -> bool {
        let next = self.next(config);
        if next >= self.packets {
            return false;
        }
        if config.window == u64::MAX && matches!(self.control, Control::Dcqcn(_) | Control::None) {
            return true;
        }
        let window = self.window(config);
        let (acked, next_bytes) = (self.bytes(config, self.highest_ack), self.bytes(config, next));
        if let (Control::TcpLike(tcp), ControlConfig::TcpLike(constants)) = (&self.control, &config.control) {
            let room = (acked + window).saturating_sub(next_bytes);
            // A burst need not be larger than the window, else it would never start.
            let left = (self.size - next_bytes).min(window);
            return room > 0 && tcp.lets_go(constants, config.mtu, room, left);
        }
        // IRN's condition as the reference model has it (specification 17.3).
        let in_flight = self.bytes(config, self.highest).saturating_sub(acked);
        in_flight + config.mtu.min(self.size - next_bytes) < window || acked + window > next_bytes
    }

    /// The next packet may not go before this.
    #[inline]
    pub fn next_avail(&self) -> Time {
        self.next_avail
    }

    /// What would be sent next, whatever window and pacing say.
    #[inline]
    pub fn peek(&self, config: &RoceConfig) -> Option<Segment> {
        let psn = self.next(config);
        let payload = || (self.bytes(config, psn + 1) - self.bytes(config, psn)) as u32;
        (psn < self.packets).then(|| Segment { psn, payload: payload(), retransmission: psn < self.highest })
    }

    /// Sends what [`RoceSender::peek`] shows, at `now` with path tag `tag`.
    ///
    /// # Panics
    /// Where there is nothing to send.
    pub fn send(&mut self, config: &RoceConfig, now: Time, tag: u32) -> Segment {
        let segment = self.peek(config).expect("something to send");
        if let (Control::TcpLike(tcp), ControlConfig::TcpLike(constants)) = (&mut self.control, &config.control) {
            let sent = (segment.psn * config.mtu).min(self.size);
            let acked = (self.highest_ack * config.mtu).min(self.size);
            let room = (acked + tcp.window(config.mtu).min(config.window)).saturating_sub(sent);
            tcp.sent(constants, room, u64::from(segment.payload));
        }
        self.nxt = segment.psn + 1;
        let index = (segment.psn - self.una) as usize;
        if self.sent.len() <= index {
            self.sent.resize(index + 1, Sent { again: true, ..Sent::default() });
        }
        self.sent[index] = Sent { at: now, tag, again: segment.retransmission };
        if segment.retransmission {
            self.retransmitted += 1;
        } else {
            self.highest = segment.psn + 1;
        }
        let wire = u64::from(segment.payload) + config.header;
        self.next_avail = now
            + match &self.control {
                Control::Swift(swift) => swift.pace().max(config.gap(self.line_rate, wire)),
                Control::TcpLike(_) => Time::ZERO,
                _ => config.gap(self.rate(config, now), wire),
            };
        self.restart(config, now);
        segment
    }

    /// The rate at `now`.
    #[inline]
    pub fn rate(&mut self, config: &RoceConfig, now: Time) -> Rate {
        match (&mut self.control, &config.control) {
            (Control::Dcqcn(state), ControlConfig::Dcqcn(constants)) => state.rate(constants, now),
            _ => self.line_rate,
        }
    }

    /// Restarts the retransmission timer.
    #[inline]
    fn restart(&mut self, config: &RoceConfig, now: Time) {
        self.restarted = now;
        self.timeout = match config.recovery {
            Recovery::GoBackN => config.rto,
            _ if self.in_flight_bytes(config) > 3 * config.mtu => Some(config.rto_high),
            _ => Some(config.rto_low),
        };
    }

    #[inline]
    fn in_flight_bytes(&self, config: &RoceConfig) -> u64 {
        self.bytes(config, self.nxt) - self.bytes(config, self.una)
    }

    /// An answer arrived.
    pub fn on_reply(&mut self, config: &RoceConfig, now: Time, reply: &RoceReply) -> Acked {
        let before = self.una;
        let sample = reply.psn.checked_sub(self.una).and_then(|index| self.sent.get(index as usize));
        let rtt = sample.filter(|sent| !sent.again).map(|sent| now - sent.at);
        self.take(config, reply);
        if reply.cnp
            && let (Control::Dcqcn(state), ControlConfig::Dcqcn(constants)) = (&mut self.control, &config.control)
        {
            state.on_notification(constants, now);
        }
        let acked = (self.una - before) as u32;
        self.control_window(config, now, reply, acked, rtt);
        if self.una < self.packets {
            self.recover(config, reply);
        }
        if self.nxt > self.una {
            self.restart(config, now);
        }
        let bytes = self.bytes(config, self.una) - self.bytes(config, before);
        Acked { packets: acked, bytes, rtt, done: self.una == self.packets }
    }

    /// Takes over what the answer says of arrivals.
    fn take(&mut self, config: &RoceConfig, reply: &RoceReply) {
        let before = self.una;
        let cumulative = reply.cumulative.min(self.highest);
        self.highest_ack = self.highest_ack.max(cumulative);
        self.una = self.una.max(cumulative);
        if config.recovery != Recovery::GoBackN {
            if let Some(psn) = reply.sack.filter(|psn| *psn >= self.una && *psn < self.highest) {
                self.arrived.insert(psn);
            }
            if let Some((_, end)) = self.arrived.first().filter(|run| run.0 <= self.una) {
                self.una = self.una.max(end);
            }
            self.arrived.discard_below(self.una);
        }
        self.nxt = self.nxt.max(self.una);
        let gone = ((self.una - before) as usize).min(self.sent.len());
        self.sent.drain(..gone);
        if self.recovering && self.una >= self.recovery_end {
            self.recovering = false;
        }
    }

    fn control_window(&mut self, config: &RoceConfig, now: Time, reply: &RoceReply, acked: u32, rtt: Option<Time>) {
        let most = (config.window.min(self.size.max(config.mtu)) / config.mtu) as f64;
        match (&mut self.control, &config.control) {
            (Control::Swift(state), ControlConfig::Swift(constants)) if acked > 0 => {
                state.on_ack(constants, now, acked, rtt, most.max(1.0));
            }
            (Control::TcpLike(state), ControlConfig::TcpLike(constants)) => {
                if reply.nack {
                    state.on_loss();
                } else if acked > 0 {
                    state.on_ack(constants, acked, reply.cnp, self.una, self.nxt, most);
                }
            }
            _ => {}
        }
    }

    /// Goes back where the answer tells of a hole.
    fn recover(&mut self, config: &RoceConfig, reply: &RoceReply) {
        if config.recovery == Recovery::GoBackN {
            if reply.nack {
                self.nxt = self.una;
            }
        } else if reply.sack.is_some() {
            if !self.recovering {
                self.recovery_end = self.nxt;
                self.nxt = self.una;
                self.recovering = true;
            }
        } else if config.quirks {
            self.recovering = false;
        }
    }

    /// When [`RoceSender::on_timer`] must be called; `None` where nothing is in flight.
    #[inline]
    pub fn deadline(&self, _config: &RoceConfig) -> Option<Time> {
        if self.nxt > self.una { self.timeout.map(|timeout| self.restarted.saturating_add(timeout)) } else { None }
    }

    /// If the timer has run out: goes back to the first packet that is not acknowledged and tells its PSN and tag.
    pub fn on_timer(&mut self, config: &RoceConfig, now: Time, timed_out: &mut impl FnMut(u64, u32)) {
        if self.deadline(config).is_none_or(|deadline| deadline > now) {
            return;
        }
        self.timeouts += 1;
        timed_out(self.una, self.sent.front().map_or(0, |sent| sent.tag));
        match (&mut self.control, &config.control) {
            (Control::Swift(state), ControlConfig::Swift(constants)) => state.on_timeout(constants, now),
            (Control::TcpLike(state), _) => state.on_timeout(),
            _ => {}
        }
        if config.recovery != Recovery::GoBackN {
            self.recovering = true;
            if !config.quirks {
                self.recovery_end = self.nxt;
            }
        }
        self.nxt = self.una;
    }

    /// The first PSN that was never sent.
    pub fn next_psn(&self) -> u64 {
        self.highest
    }
    /// Every PSN below this one is acknowledged.
    pub fn cumulative(&self) -> u64 {
        self.una
    }
    /// Packets sent, since the last step back, and not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.nxt - self.una
    }
    /// Packets sent more than once, counted each time.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }
    /// Timeouts.
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }
    /// Packets in all.
    pub fn packets(&self) -> u64 {
        self.packets
    }
    /// Whether everything is acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.packets
    }
}
