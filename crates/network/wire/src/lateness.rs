use anabranch_endpoint::Endpoint;
use anabranch_units::Time;

/// Time that an endpoint lost because its process was not scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// Time with at least one own message unacknowledged.
    pub sending: Time,
    /// Time with at least one incomplete message of a peer.
    pub receiving: Time,
    /// Time with either.
    pub active: Time,
    /// Of `active`, time with a packet overdue by more than the pacer catches up.
    pub late: Time,
    /// Of `sending`, time with a due packet whose share of the line rate is lost.
    pub lost: Time,
    /// Bytes of all datagrams sent, network headers included.
    pub bytes: u64,
}

/// Accounts [`Lateness`] once per round of receiving and sending.
#[derive(Debug)]
pub(crate) struct LatenessMeter {
    counted: Lateness,
    catch_up: Time,
    overhead: u64,
    active_until: Time,
    late_until: Time,
    /// At the last call of `see`.
    sending: bool,
    receiving: bool,
    empty_at: Time,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Due {
    /// With `true` if the pacer catches up on its lateness.
    packet: Option<(Time, bool)>,
    timer: Option<Time>,
}

impl LatenessMeter {
    pub(crate) fn new(endpoint: &Endpoint, now: Time) -> Self {
        let settings = endpoint.settings();
        LatenessMeter {
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

    /// Records the endpoint's state after a round, before its owner queues more. Nothing is due while the datapath
    /// accepts nothing (`is_blocked`).
    pub(crate) fn see(&mut self, endpoint: &Endpoint, now: Time, is_blocked: bool) {
        self.pass(now);
        (self.sending, self.receiving) = (endpoint.is_sending(), endpoint.is_receiving());
        if is_blocked || endpoint.next_send().is_none_or(|next| next.at > now) {
            self.empty_at = now;
        }
    }

    /// Counts the time since the last call by the state at that call.
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

    /// `now` is before anything is received.
    pub(crate) fn due(&self, endpoint: &Endpoint, now: Time) -> Due {
        let next = endpoint.next_send();
        // Packets queued after `empty_at` were not due before it.
        let packet = next.filter(|next| next.at <= now).map(|next| (next.at.max(self.empty_at), next.catches_up));
        let timer = if packet.is_none() { endpoint.poll_timeout().filter(|at| *at <= now) } else { None };
        Due { packet, timer }
    }

    pub(crate) fn note_round(&mut self, endpoint: &Endpoint, due: Due, arrived: Option<Time>, now: Time) {
        let since = [due.timer, arrived].into_iter().flatten().min();
        // A message that arrived while the process was descheduled counts from its arrival.
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
