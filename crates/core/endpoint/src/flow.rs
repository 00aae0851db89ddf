//! An open flow at its sender.

use anabranch_lb::{Feedback, HostScheme, Probe, Tag};
use anabranch_transport::{AckOutcome, Reply, Sender, Transport};
use anabranch_units::Time;

/// An open flow at its sender; `of` is what its owner keeps with it.
#[derive(Debug)]
pub struct Flow<T> {
    /// The transport's side.
    pub sender: Sender,
    /// The owner's.
    pub of: T,
    /// Who goes first of flows whose time comes at once; no other open flow of the host has it.
    pub(crate) number: u32,
    pub(crate) scheme_slot: u32,
    /// It stands in its host's round.
    pub(crate) in_round: bool,
    /// It waits among the paced flows of its host.
    pub(crate) paced: bool,
    /// The scheme holds it back until the next acknowledgement.
    pub(crate) waits: bool,
    /// When its next packet could first have gone, but for the NIC's other flows.
    pub(crate) eligible_at: Time,
    /// When its pending timer strikes; [`Time::MAX`]: none.
    timer_at: Time,
    pub(crate) last_tag: Option<Tag>,
    /// When its last packet started; [`Time::MAX`]: none has.
    pub(crate) last_sent: Time,
    pub(crate) path_switches: u64,
}

impl<T> Flow<T> {
    /// A flow that opens at `now`, whose slot with its scheme is `scheme_slot`.
    pub fn new(sender: Sender, number: u32, scheme_slot: u32, now: Time, of: T) -> Self {
        Flow {
            sender,
            of,
            number,
            scheme_slot,
            in_round: false,
            paced: false,
            waits: false,
            eligible_at: now,
            timer_at: Time::MAX,
            last_tag: None,
            last_sent: Time::MAX,
            path_switches: 0,
        }
    }

    /// Its slot with its scheme.
    #[inline]
    pub fn scheme_slot(&self) -> u32 {
        self.scheme_slot
    }

    /// How often a packet went another way than the one before it.
    pub fn path_switches(&self) -> u64 {
        self.path_switches
    }

    /// An answer of its receiver. `path_rtt` is the base round trip over the path of the packet that it answers, where that
    /// is known; `measured` its round trip, where the packet brought a stamp back; `blames` is false where a trimmed packet
    /// says nothing of its path.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn on_answer<S: HostScheme>(
        &mut self,
        transport: &Transport,
        scheme: &mut S,
        now: Time,
        answer: &Reply,
        path_rtt: Option<Time>,
        measured: Option<Time>,
        blames: bool,
    ) -> AckOutcome {
        let heard = self.sender.on_reply(transport, now, answer, path_rtt, measured);
        self.waits = false;
        if heard.trimmed {
            if blames {
                scheme.on_nack(now, self.scheme_slot, answer.tag);
            }
        } else {
            let feedback = Feedback {
                tag: answer.tag,
                ecn: answer.ecn,
                rtt: heard.rtt,
                packets: heard.packets,
                bytes: heard.bytes,
                cumulative: self.sender.cumulative(),
                next_psn: self.sender.next_psn(),
            };
            scheme.on_ack(now, self.scheme_slot, &feedback);
            if heard.lost > 0 {
                scheme.on_nack(now, self.scheme_slot, answer.tag);
            }
        }
        heard
    }

    /// When a timer must strike that does not do so yet. Timers are armed anew lazily: one that strikes too early finds
    /// nothing to do and asks for the next.
    #[inline]
    pub fn arm(&mut self, transport: &Transport, now: Time) -> Option<Time> {
        let wanted = self.sender.deadline(transport)?.max(now);
        (wanted < self.timer_at).then(|| {
            self.timer_at = wanted;
            wanted
        })
    }

    /// Whether a timer that strikes at `now` is the pending one.
    #[inline]
    pub fn awaits(&self, now: Time) -> bool {
        self.timer_at == now
    }

    /// The pending timer strikes: a retransmission timeout, or nothing. Returns how many packets are given up for lost, whose PSNs
    /// `lost` is told.
    pub fn on_timer<S: HostScheme>(
        &mut self,
        transport: &Transport,
        scheme: &mut S,
        now: Time,
        lost: &mut impl FnMut(&mut T, u64),
    ) -> u64 {
        self.timer_at = Time::MAX;
        let mut timeouts = 0;
        if self.sender.deadline(transport).is_some_and(|deadline| deadline <= now) {
            self.waits = false;
            let Flow { sender, of, scheme_slot, .. } = self;
            sender.on_timer(transport, now, &mut |psn, tag| {
                timeouts += 1;
                scheme.on_timeout(now, *scheme_slot, tag);
                lost(of, psn);
            });
        }
        timeouts
    }

    /// The next probe that the scheme wants to send.
    #[inline]
    pub fn poll_probe<S: HostScheme>(&self, scheme: &mut S, now: Time) -> Option<Probe> {
        scheme.poll_probe(now, self.scheme_slot)
    }

    /// A probe over the path `tag` came back; `rtt` is what a full packet would have measured.
    #[inline]
    pub fn on_probe_reply<S: HostScheme>(&self, scheme: &mut S, now: Time, tag: Tag, rtt: Time) {
        scheme.on_probe_reply(now, self.scheme_slot, tag, rtt);
    }

    /// The host has learnt which paths are dead.
    pub fn on_paths_changed<S: HostScheme>(&self, scheme: &mut S, now: Time, dead: &[bool]) {
        scheme.on_paths_changed(now, self.scheme_slot, dead);
    }
}
