use anabranch_lb::{Feedback, HostScheme, Loss, Probe, Tag};
use anabranch_transport::{AckOutcome, Reply, Sender, Transport};
use anabranch_units::Time;

/// An open flow at its sender; `of` is the state that its owner keeps with it.
#[derive(Debug)]
pub struct Flow<T> {
    /// State of the transport.
    pub sender: Sender,
    /// State of the owner.
    pub of: T,
    /// Rank among flows that become ready at the same time; unique among the open flows of the host.
    pub(crate) number: u32,
    pub(crate) scheme_slot: u32,
    pub(crate) class: u8,
    pub(crate) in_round: bool,
    pub(crate) paced: bool,
    /// The scheme holds it until the next ACK.
    pub(crate) waits: bool,
    /// Earliest time at which its next packet could have left, apart from the NIC's other flows.
    pub(crate) eligible_at: Time,
    /// Time until which the scheme last held it.
    pub(crate) held_until: Time,
    /// [`Time::MAX`]: none is pending.
    timer_at: Time,
    /// Time of the scheme's next probe, as last returned.
    probe_at: Time,
    pub(crate) last_tag: Option<Tag>,
    /// [`Time::MAX`]: none has started.
    pub(crate) last_sent: Time,
    pub(crate) path_switches: u64,
}

impl<T> Flow<T> {
    /// Creates a flow that opens at `now`, whose slot with its scheme is `scheme_slot`.
    pub fn new(sender: Sender, number: u32, scheme_slot: u32, now: Time, of: T) -> Self {
        Flow {
            sender,
            of,
            number,
            scheme_slot,
            class: 0,
            in_round: false,
            paced: false,
            waits: false,
            eligible_at: now,
            held_until: Time::ZERO,
            timer_at: Time::MAX,
            probe_at: Time::MAX,
            last_tag: None,
            last_sent: Time::MAX,
            path_switches: 0,
        }
    }

    /// Puts the flow into a class of its NIC, the first one otherwise.
    #[must_use]
    pub fn in_class(self, class: u8) -> Self {
        Flow { class, ..self }
    }

    #[inline]
    pub fn scheme_slot(&self) -> u32 {
        self.scheme_slot
    }

    /// Returns the number of packets that took another path than the one before them.
    pub fn path_switches(&self) -> u64 {
        self.path_switches
    }

    /// Handles an ACK. `path_rtt` is the base round trip over the acknowledged packet's path, if known; `measured` its round
    /// trip, if its time stamp returned; `trim` is the cause of a trimmed packet, `None` if its scheme must not receive it.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    pub fn on_ack<S: HostScheme>(
        &mut self,
        transport: &Transport,
        scheme: &mut S,
        now: Time,
        ack: &Reply,
        path_rtt: Option<Time>,
        measured: Option<Time>,
        trim: Option<Loss>,
    ) -> AckOutcome {
        let outcome = self.sender.on_reply(transport, now, ack, path_rtt, measured);
        self.waits = false;
        if outcome.trimmed {
            if let Some(cause) = trim {
                scheme.on_loss(now, self.scheme_slot, ack.tag, cause);
            }
        } else {
            let feedback = Feedback {
                tag: ack.tag,
                ecn: ack.ecn,
                rtt: outcome.rtt,
                psn: ack.psn,
                packets: outcome.packets,
                bytes: outcome.bytes,
                cumulative: self.sender.cumulative(),
                next_psn: self.sender.next_psn(),
                selective: outcome.selective,
                selective_from: outcome.selective_from,
            };
            scheme.on_ack(now, self.scheme_slot, &feedback);
            if outcome.lost > 0 {
                self.sender.last_lost(outcome.lost, &mut |tag| scheme.on_loss(now, self.scheme_slot, tag, Loss::Gap));
            }
            if outcome.refused {
                scheme.on_loss(now, self.scheme_slot, ack.tag, Loss::Refused);
            }
        }
        outcome
    }

    /// Returns the time of a timer to arm; `None` if the pending one suffices. One that fires too early has no effect,
    /// and the next is armed after it.
    #[inline]
    pub fn arm(&mut self, transport: &Transport, now: Time) -> Option<Time> {
        let deadline = self.sender.deadline(transport).unwrap_or(Time::MAX).min(self.probe_at).max(now);
        (deadline < self.timer_at).then(|| {
            self.timer_at = deadline;
            deadline
        })
    }

    /// Returns `true` if a timer that fires at `now` is the pending one.
    #[inline]
    pub fn awaits(&self, now: Time) -> bool {
        self.timer_at == now
    }

    /// Handles the pending timer; returns the number of packets declared lost, whose PSNs `lost` receives.
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

    /// Returns the next probe that the scheme requests.
    #[inline]
    pub fn poll_probe<S: HostScheme>(&mut self, scheme: &mut S, now: Time) -> Option<Probe> {
        let probe = scheme.poll_probe(now, self.scheme_slot);
        if probe.is_none() {
            self.probe_at = scheme.probe_at(self.scheme_slot);
        }
        probe
    }

    /// Handles the echo of a probe over the path `tag`; `rtt` is the round trip that a full packet would have measured, `ecn`
    /// its mark.
    /// Returns `true` if the scheme holds the flow no longer: the caller offers it to the NIC again.
    #[inline]
    pub fn on_probe_reply<S: HostScheme>(&mut self, scheme: &mut S, now: Time, tag: Tag, rtt: Time, ecn: bool) -> bool {
        let ends_wait = scheme.on_probe_reply(now, self.scheme_slot, tag, rtt, ecn);
        if ends_wait {
            self.waits = false;
            // Its entry among the paced flows stays; that time has no effect.
            if self.paced && self.held_until > now {
                (self.paced, self.held_until) = (false, now);
            }
        }
        ends_wait
    }

    /// Returns `true` if the scheme holds the flow, and no acknowledgement or timeout is to come.
    pub fn is_without_path(&self) -> bool {
        self.waits && self.sender.in_flight() == 0
    }

    /// Passes the dead paths to the scheme. Returns `true` if it held the flow without anything in flight: it is held no longer.
    pub fn on_paths_changed<S: HostScheme>(&mut self, scheme: &mut S, now: Time, dead: &[bool]) -> bool {
        scheme.on_paths_changed(now, self.scheme_slot, dead);
        let ends_wait = self.is_without_path();
        self.waits &= !ends_wait;
        ends_wait
    }

    /// Passes the ports that are down, of sender and receiver, to the scheme, which holds the flow no longer.
    pub fn on_ports_changed<S: HostScheme>(&mut self, scheme: &mut S, now: Time, local: u32, remote: u32) {
        self.waits = false;
        scheme.on_ports_changed(now, self.scheme_slot, local, remote);
    }
}
