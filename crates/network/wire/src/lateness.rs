//! How late an endpoint runs: when what it has to send is due, against when it leaves.

use anabranch_endpoint::Endpoint;
use anabranch_units::Time;

/// What an endpoint has missed because its process was not scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Time with a message of its own that was not acknowledged.
    pub sending: Time,
    /// Time with a message of a peer that was not complete.
    pub receiving: Time,
    /// Time with either.
    pub active: Time,
    /// Of `active`, time in which a packet was due for longer than the pacer makes up for, and had not left.
    pub late: Time,
    /// Of `sending`, time in which a packet was due and whose share of the line nothing makes up for.
    pub lost: Time,
    /// Bytes of all datagrams that left, headers of the network included.
    pub bytes: u64,
}

/// Keeps [`Lateness`] for a driver. It is asked once per round of receiving and sending, not per packet.
#[derive(Debug)]
pub(crate) struct Clerk {
    counted: Lateness,
    /// What the pacer makes up for.
    catch_up: Time,
    overhead: u64,
    /// Until when time is counted, and until when lateness is.
    active_until: Time,
    late_until: Time,
    /// What the endpoint did when it was last seen.
    sending: bool,
    receiving: bool,
    /// When it was last seen with nothing to send.
    empty_at: Time,
}

/// What was due when a round began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// A packet, and whether the pacer makes up for its lateness.
    packet: Option<(Time, bool)>,
    /// A timer.
    timer: Option<Time>,
}

impl Clerk {
    pub(crate) fn new(endpoint: &Endpoint, now: Time) -> Self {
        let settings = endpoint.settings();
        Clerk {
            counted: Lateness::default(),
            catch_up: settings.catch_up,
            overhead: settings.overhead,
            active_until: now,
            late_until: now,
            sending: false,
            receiving: false,
            empty_at: now,
        }
    }

    pub(crate) fn counted(&self) -> Lateness {
        self.counted
    }

    pub(crate) fn note_sent(&mut self, datagrams: usize, bytes: u64) {
        self.counted.bytes += bytes + datagrams as u64 * self.overhead;
    }

    /// The endpoint as it is at `now`: after a round, and before its owner gives it more. While the datapath takes nothing
    /// (`is_blocked`), nothing is due.
    pub(crate) fn see(&mut self, endpoint: &Endpoint, now: Time, is_blocked: bool) {
        self.pass(now);
        (self.sending, self.receiving) = (endpoint.is_sending(), endpoint.is_receiving());
        if is_blocked || endpoint.next_send().is_none_or(|next| next.at > now) {
            self.empty_at = now;
        }
    }

    /// Counts the time since the endpoint was last seen by what it did then.
    fn pass(&mut self, now: Time) {
        let passed = now.saturating_sub(self.active_until);
        self.active_until = self.active_until.max(now);
        let counted = &mut self.counted;
        for (time, does) in [
            (&mut counted.sending, self.sending),
            (&mut counted.receiving, self.receiving),
            (&mut counted.active, self.sending || self.receiving),
        ] {
            if does {
                *time += passed;
            }
        }
    }

    /// What is due at `now`, before anything is received.
    pub(crate) fn due(&self, endpoint: &Endpoint, now: Time) -> Due {
        let next = endpoint.next_send();
        // What its owner gave it later was not due before.
        let packet = next.filter(|next| next.at <= now).map(|next| (next.at.max(self.empty_at), next.catches_up));
        let timer = if packet.is_none() { endpoint.poll_timeout().filter(|at| *at <= now) } else { None };
        Due { packet, timer }
    }

    /// Something is about to be sent at `now`; `arrived` is when the first datagram of this round arrived.
    pub(crate) fn note_round(&mut self, endpoint: &Endpoint, due: Due, arrived: Option<Time>, now: Time) {
        let since = [due.timer, arrived].into_iter().flatten().min();
        // Whatever came while nobody looked was there from then on.
        if !self.sending && !self.receiving && endpoint.is_receiving() {
            let late = arrived.map_or(Time::ZERO, |at| now.saturating_sub(at.max(self.active_until)));
            self.counted.receiving += late;
            self.counted.active += late;
        }
        let sending = self.sending || endpoint.is_sending();
        if !(sending || self.receiving || endpoint.is_receiving()) {
            return;
        }
        let packet = due.packet.or_else(|| {
            let next = endpoint.next_send().filter(|next| next.at <= now)?;
            Some((next.at.max(since?), next.catches_up))
        });
        let Some((at, catches_up)) = packet else { return };
        let waited = now.saturating_sub(at);
        if waited > self.catch_up {
            self.counted.late += now.saturating_sub(at.max(self.late_until));
            self.late_until = now;
        }
        if sending {
            self.counted.lost += if catches_up { waited.saturating_sub(self.catch_up) } else { waited };
        }
    }
}
