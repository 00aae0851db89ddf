//! temporary
#![allow(missing_docs)]
use crate::uet::{Acked, DataArrival, Network, Segment};
use anabranch_settings::{SetError, choices, parameters};
use anabranch_units::{Bytes, Rate, Time};
use std::collections::VecDeque;
choices! { /// x
pub enum Recovery { /// a
Irn = "irn", /// c
IrnExtended = "irn-extended", /// b
GoBackN = "go-back-n", } }
choices! { /// x
pub enum Cc { /// a
Dcqcn = "dcqcn", /// b
None = "none", } }
parameters! { /// x
pub struct RoceParameters { /// m
mtu: Bytes = Bytes(1000), source "x"; /// m
header: Bytes = Bytes(48), source "x"; /// m
ack_size: Bytes = Bytes(60), source "x"; /// m
recovery: Recovery = Recovery::Irn, source "x"; /// m
reference: bool = false, source "x"; /// m
congestion_control: Cc = Cc::Dcqcn, source "x"; } }
parameters! { /// x
pub struct DcqcnParameters { } }
parameters! { /// x
pub struct SwiftParameters { } }
parameters! { /// x
pub struct TcpLikeParameters { } }
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RoceTransport {
    pub roce: RoceParameters,
    pub dcqcn: DcqcnParameters,
    pub swift: SwiftParameters,
    pub tcp_like: TcpLikeParameters,
}
impl RoceTransport {
    pub fn lossless() -> Self {
        let mut t = Self::default();
        t.roce.recovery = Recovery::GoBackN;
        t
    }
    pub fn irn() -> Self {
        Self::default()
    }
    pub fn conweave(lossless: bool) -> Self {
        let mut t = if lossless { Self::lossless() } else { Self::irn() };
        t.roce.reference = true;
        t
    }
    pub fn check(&self) -> Result<(), SetError> {
        Ok(())
    }
}
#[derive(Clone, Debug)]
pub struct RoceConfig {
    pub mtu: u64,
    pub header: u64,
    cap: u64,
    irn: bool,
    extended: bool,
    reference: bool,
    cc: bool,
    rto: Option<u64>,
    line: Rate,
}
impl RoceConfig {
    pub fn new(t: &RoceTransport, n: &Network) -> Self {
        let irn = t.roce.recovery != Recovery::GoBackN;
        RoceConfig {
            mtu: t.roce.mtu.0,
            header: t.roce.header.0,
            cap: if irn { n.bdp } else { u64::MAX / 2 },
            irn,
            extended: t.roce.recovery == Recovery::IrnExtended,
            reference: t.roce.reference,
            cc: t.roce.congestion_control == Cc::Dcqcn,
            rto: if irn || t.roce.reference { None } else { Some(4_000_000_000) },
            line: n.nic_rate,
        }
    }
    pub fn packets(&self, size: u64) -> u64 {
        size.div_ceil(self.mtu)
    }
}

#[derive(Clone, Debug, Default)]
struct Blocks(Vec<(u64, u64)>);
impl Blocks {
    fn insert(&mut self, psn: u64) {
        let i = self.0.partition_point(|b| b.1 < psn);
        if i < self.0.len() && self.0[i].0 <= psn + 1 {
            let b = &mut self.0[i];
            b.0 = b.0.min(psn);
            b.1 = b.1.max(psn + 1);
            if i + 1 < self.0.len() && self.0[i].1 >= self.0[i + 1].0 {
                self.0[i].1 = self.0[i].1.max(self.0[i + 1].1);
                self.0.remove(i + 1);
            }
        } else {
            self.0.insert(i, (psn, psn + 1));
        }
    }
    fn contains(&self, psn: u64) -> bool {
        let i = self.0.partition_point(|b| b.1 <= psn);
        i < self.0.len() && self.0[i].0 <= psn
    }
    fn discard(&mut self, upto: u64) {
        while let Some(b) = self.0.first_mut() {
            if b.1 <= upto {
                self.0.remove(0);
            } else {
                b.0 = b.0.max(upto);
                break;
            }
        }
    }
}

#[derive(Clone, Debug)]
struct Dcqcn {
    rate: u64,
    target: u64,
    alpha: f64,
    on: bool,
    stage: u32,
    a: bool,
    d: bool,
    next_alpha: u64,
    next_dec: u64,
    next_inc: u64,
}
impl Dcqcn {
    fn catch_up(&mut self, now: u64, line: u64) {
        if !self.on {
            return;
        }
        loop {
            let t = self.next_alpha.min(self.next_dec).min(self.next_inc);
            if t > now {
                return;
            }
            if self.next_alpha == t {
                let g = 0.00390625;
                self.alpha = if self.a {
                    (1.0 - g) * self.alpha + g
                } else if v() == 1 {
                    self.alpha
                } else {
                    (1.0 - g) * self.alpha
                };
                self.a = false;
                self.next_alpha += if v() == 11 { 2_000_000 } else { 1_000_000 };
            } else if self.next_dec == t {
                self.next_dec += 4_000_000;
                if self.d {
                    if self.stage != 0 {
                        self.target = self.rate;
                    }
                    self.rate = ((self.rate as f64
                        * (1.0 - if v() == 14 { self.alpha * 0.75 } else { self.alpha / 2.0 }))
                        as u64)
                        .max(100_000_000);
                    self.stage = 0;
                    self.d = false;
                    self.next_inc = t + 300_000_000;
                }
            } else {
                self.next_inc += 300_000_000;
                match self.stage {
                    0 => {}
                    1 => self.target = (self.target + 40_000_000 * (line / 100_000_000_000).max(1)).min(line),
                    _ => self.target = (self.target + 100_000_000 * (line / 100_000_000_000).max(1)).min(line),
                }
                self.rate = self.rate / 2 + self.target / 2;
                self.stage += 1;
                if v() == 13 {
                    self.alpha = 1.0;
                }
            }
        }
    }
    fn cnp(&mut self, now: u64, line: u64) {
        self.catch_up(now, line);
        self.a = true;
        self.d = true;
        if !self.on {
            self.on = true;
            self.alpha = 1.0;
            self.a = false;
            self.next_alpha = now + 1_000_000;
            self.next_dec = now + 4_001_000;
            self.target = self.rate;
        }
    }
}

#[derive(Clone, Debug)]
pub struct RoceSender {
    size: u64,
    packets: u64,
    una: u64,
    nxt: u64,
    highest_ack: u64,
    max_sent: u64,
    sacked: Blocks,
    recovery: bool,
    recovery_seq: u64,
    next_avail: u64,
    restarted: u64,
    rto: u64,
    sent: VecDeque<(u64, u32, bool)>,
    cc: Dcqcn,
    retransmitted: u64,
    timeouts: u64,
}
impl RoceSender {
    pub fn new(config: &RoceConfig, line_rate: Rate, _base_rtt: Time, size: u64, now: Time) -> Self {
        RoceSender {
            size,
            packets: config.packets(size),
            una: 0,
            nxt: 0,
            highest_ack: 0,
            max_sent: 0,
            sacked: Blocks::default(),
            recovery: false,
            recovery_seq: 0,
            next_avail: now.ps(),
            restarted: 0,
            rto: 0,
            sent: VecDeque::new(),
            cc: Dcqcn {
                rate: line_rate.0,
                target: line_rate.0,
                alpha: 1.0,
                on: false,
                stage: 0,
                a: false,
                d: false,
                next_alpha: u64::MAX,
                next_dec: u64::MAX,
                next_inc: u64::MAX,
            },
            retransmitted: 0,
            timeouts: 0,
        }
    }
    fn bytes(&self, config: &RoceConfig, psn: u64) -> u64 {
        (psn * config.mtu).min(self.size)
    }
    fn next(&self, config: &RoceConfig) -> u64 {
        let mut n = self.nxt;
        if config.irn && !self.sacked.0.is_empty() {
            if config.reference {
                let b = self.sacked.0[0];
                if b.0 == n {
                    n = b.1;
                }
            } else {
                for b in &self.sacked.0 {
                    if b.0 <= n && n < b.1 {
                        n = b.1;
                    }
                }
            }
        }
        n
    }
    pub fn ready(&self, config: &RoceConfig) -> bool {
        let n = self.next(config);
        if n >= self.packets {
            return false;
        }
        if !config.irn {
            return true;
        }
        let ack = self.bytes(config, self.highest_ack);
        let nb = self.bytes(config, n);
        let fly = self.bytes(config, self.max_sent).saturating_sub(ack);
        fly + config.mtu.min(self.size - nb) < config.cap || ack + config.cap > nb
    }
    pub fn next_avail(&self) -> Time {
        Time::from_ps(self.next_avail)
    }
    pub fn peek(&self, config: &RoceConfig) -> Option<Segment> {
        let psn = self.next(config);
        (psn < self.packets).then(|| Segment {
            psn,
            payload: (self.bytes(config, psn + 1) - self.bytes(config, psn)) as u32,
            retransmission: psn < self.max_sent,
        })
    }
    pub fn send(&mut self, config: &RoceConfig, now: Time, tag: u32) -> Segment {
        let s = self.peek(config).expect("something");
        self.nxt = s.psn + 1;
        let i = (s.psn - self.una) as usize;
        while self.sent.len() <= i {
            self.sent.push_back((0, 0, true));
        }
        self.sent[i] = (now.ps(), tag, s.retransmission);
        if s.retransmission {
            self.retransmitted += 1;
        } else {
            self.max_sent = s.psn + 1;
        }
        if config.cc {
            self.cc.catch_up(now.ps(), config.line.0);
        }
        let wire = u64::from(s.payload) + config.header;
        let rate = Rate(self.cc.rate);
        let gap = if config.reference { rate.wire_time_in_ns(wire) } else { rate.wire_time(wire) };
        self.next_avail = (now + gap).ps();
        self.restart(config, now.ps());
        s
    }
    fn restart(&mut self, config: &RoceConfig, now: u64) {
        self.restarted = now;
        let fly = self.bytes(config, self.nxt) - self.bytes(config, self.una);
        self.rto = if !config.irn {
            config.rto.unwrap_or(u64::MAX)
        } else if fly > 3 * config.mtu {
            320_000_000
        } else {
            100_000_000
        };
    }
    pub fn on_reply(&mut self, config: &RoceConfig, now: Time, r: &RoceReply) -> Acked {
        let before = self.una;
        let rtt = (r.psn >= self.una)
            .then(|| self.sent.get((r.psn - self.una) as usize).copied())
            .flatten()
            .filter(|s| !s.2)
            .map(|s| Time::from_ps(now.ps() - s.0));
        let cum = r.cumulative.min(self.max_sent);
        self.highest_ack = self.highest_ack.max(cum);
        self.una = self.una.max(cum);
        if config.irn {
            if let Some(s) = r.sack
                && s >= self.una
            {
                self.sacked.insert(s);
            }
            if let Some(b) = self.sacked.0.first()
                && b.0 <= self.una
            {
                self.una = self.una.max(b.1);
            }
            self.sacked.discard(self.una);
        }
        self.nxt = self.nxt.max(self.una);
        self.max_sent = self.max_sent.max(self.una);
        let n = (self.una - before).min(self.sent.len() as u64);
        self.sent.drain(..n as usize);
        if self.recovery && self.una >= self.recovery_seq {
            self.recovery = false;
        }
        if r.cnp && config.cc {
            self.cc.cnp(now.ps(), config.line.0);
        }
        if config.irn {
            if r.sack.is_some() {
                if !self.recovery && self.una < self.packets {
                    self.recovery_seq = self.nxt;
                    self.nxt = self.una;
                    self.recovery = true;
                }
            } else if config.reference {
                self.recovery = false;
            }
        } else if r.nack {
            self.nxt = self.una;
        }
        if self.nxt > self.una {
            self.restart(config, now.ps());
        }
        Acked {
            packets: (self.una - before) as u32,
            bytes: self.bytes(config, self.una) - self.bytes(config, before),
            rtt,
            done: self.una == self.packets,
        }
    }
    pub fn deadline(&self, _: &RoceConfig) -> Option<Time> {
        (self.nxt > self.una && self.rto != u64::MAX).then(|| Time::from_ps(self.restarted + self.rto))
    }
    pub fn on_timer(&mut self, config: &RoceConfig, now: Time, t: &mut impl FnMut(u64, u32)) {
        if self.deadline(config).is_none_or(|d| d > now) {
            return;
        }
        self.timeouts += 1;
        t(self.una, self.sent.front().map_or(0, |s| s.1));
        if config.irn {
            self.recovery = true;
            if !config.reference {
                self.recovery_seq = self.nxt;
            }
        }
        self.nxt = self.una;
    }
    pub fn next_psn(&self) -> u64 {
        self.max_sent
    }
    pub fn cumulative(&self) -> u64 {
        self.una
    }
    pub fn in_flight(&self) -> u64 {
        self.nxt - self.una
    }
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted
    }
    pub fn packets(&self) -> u64 {
        self.packets
    }
    pub fn is_done(&self) -> bool {
        self.una == self.packets
    }
}
#[derive(Clone, Copy, Debug)]
pub struct RoceReply {
    pub cumulative: u64,
    pub sack: Option<u64>,
    pub nack: bool,
    pub psn: u64,
    pub tag: u32,
    pub cnp: bool,
}
pub struct RoceReceived {
    pub reply: Option<RoceReply>,
    pub complete: bool,
}
#[derive(Clone, Debug)]
pub struct RoceReceiver {
    size: u64,
    packets: u64,
    expected: u64,
    blocks: Blocks,
    nack_until: u64,
    last_nack: u64,
    ooo: u64,
    oos: u64,
    follow: u64,
    bytes: u64,
    beyond: u64,
    max_beyond: u64,
}
impl RoceReceiver {
    pub fn new(c: &RoceConfig, size: u64) -> Self {
        RoceReceiver {
            size,
            packets: c.packets(size),
            expected: 0,
            blocks: Blocks::default(),
            nack_until: 0,
            last_nack: u64::MAX,
            ooo: 0,
            oos: 0,
            follow: 0,
            bytes: 0,
            beyond: 0,
            max_beyond: 0,
        }
    }
    pub fn on_data(&mut self, c: &RoceConfig, now: Time, a: &DataArrival) -> RoceReceived {
        let done = self.expected == self.packets;
        self.ooo += u64::from(a.psn != self.expected);
        self.oos += u64::from(a.psn != self.follow);
        self.follow = a.psn + 1;
        let mut cnp = a.ecn;
        let (mut sack, mut nack, mut silent) = (None, false, false);
        let interval = 4_000_000;
        if a.psn == self.expected {
            self.expected += 1;
            self.bytes += u64::from(a.payload);
            if let Some(b) = self.blocks.0.first()
                && b.0 <= self.expected
            {
                let from = self.expected;
                self.expected = b.1;
                let n = (self.expected * c.mtu).min(self.size) - (from * c.mtu).min(self.size);
                self.beyond -= n;
            }
            self.blocks.discard(self.expected);
            if c.irn && !self.blocks.0.is_empty() && !c.extended {
                nack = true;
                if c.reference {
                    sack = Some(a.psn);
                }
            }
        } else if a.psn > self.expected {
            if c.irn {
                let inside = c.extended && a.psn < self.expected + 30;
                if self.blocks.contains(a.psn) && now.ps() < self.nack_until {
                    silent = !inside;
                } else {
                    if !self.blocks.contains(a.psn) {
                        self.bytes += u64::from(a.payload);
                        self.beyond += u64::from(a.payload);
                        self.max_beyond = self.max_beyond.max(self.beyond);
                    }
                    self.blocks.insert(a.psn);
                    if !inside {
                        self.nack_until = now.ps() + interval;
                        cnp = true;
                        nack = true;
                        sack = Some(a.psn);
                    }
                }
            } else if now.ps() >= self.nack_until || self.last_nack != self.expected {
                self.nack_until = now.ps() + interval;
                self.last_nack = self.expected;
                nack = true;
                cnp = true;
            } else {
                silent = true;
            }
        } else if c.irn && !self.blocks.0.is_empty() && !c.extended {
            nack = true;
            if c.reference {
                sack = Some(a.psn);
            }
        }
        let reply =
            (!silent).then_some(RoceReply { cumulative: self.expected, sack, nack, psn: a.psn, tag: a.tag, cnp });
        RoceReceived { reply, complete: !done && self.expected == self.packets }
    }
    pub fn deadline(&self) -> Option<Time> {
        None
    }
    pub fn on_timer(&mut self, _: &RoceConfig, _: Time) -> Option<RoceReply> {
        None
    }
    pub fn out_of_order(&self) -> u64 {
        self.ooo
    }
    pub fn out_of_sequence(&self) -> u64 {
        self.oos
    }
    pub fn max_reorder_bytes(&self) -> u64 {
        self.max_beyond
    }
    pub fn received_bytes(&self) -> u64 {
        self.bytes
    }
}
pub fn final_reply(c: &RoceConfig, size: u64, a: &DataArrival) -> RoceReply {
    RoceReply { cumulative: c.packets(size), sack: None, nack: false, psn: a.psn, tag: a.tag, cnp: a.ecn }
}

pub fn v() -> u32 {
    static V: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *V.get_or_init(|| std::env::var("VV").ok().and_then(|v| v.parse().ok()).unwrap_or(0))
}
