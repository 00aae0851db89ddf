use crate::{Datapath, Kind, Lateness, Outbound, To, WireError, lateness::LatenessMeter};
use anabranch_endpoint::{Arrival, Bytes, Endpoint, NoPlacement, Placement, Transmit, header};
use anabranch_units::Time;
use arrayvec::ArrayVec;

const RECEIVE_BATCH: usize = 64;
const SEND_BATCH: usize = 32;
/// Like `SEND_BATCH`, for runs of datagrams; rounded down to whole runs.
const MAX_SEND_BATCH: usize = 64;
/// Rounds before control returns to the caller.
const MAX_ROUNDS: usize = 16;
/// 212 days; the clock of an endpoint ends after 213.
const CLOCK_END: Time = Time::from_us(212 * 86_400 * 1_000_000);
/// Maximum time of [`Driver::finish`].
const FINISH: Time = Time::from_us(1_000_000);
const EMPTY_TRANSMIT: Transmit =
    Transmit { to: To::Peer(0), label: 0, ecn: false, class: 0, is_single: false, payload: Bytes::new(), write: None };

/// An endpoint with its datapath, whose errors the methods return.
#[derive(Debug)]
pub struct Driver<D> {
    endpoint: Endpoint,
    datapath: D,
    /// All but the first `sent` of `order` are still to be sent. Datagrams that the datapath does not accept stay here,
    /// so that no scheme is called twice.
    batch: Vec<(Transmit, Vec<u8>)>,
    made: usize,
    sent: usize,
    order: [u8; MAX_SEND_BATCH],
    max: usize,
    grouped: bool,
    /// Last clock reading, and the longest interval between readings without sleep.
    read_at: Time,
    longest_pause: Time,
    lateness: LatenessMeter,
}

/// Data first, then by peer, label, mark and class, then in order of creation. Datagrams to addresses keep their order.
fn order_of(datagram: &Transmit, at: usize) -> u64 {
    let Transmit { to, label, ecn, class, payload, .. } = datagram;
    let of_peer = match to {
        To::Peer(peer) => u64::from(*peer) << 21 | u64::from(*label) << 9 | u64::from(*ecn) << 8 | u64::from(*class),
        To::Address(_) => 1 << 53,
    };
    u64::from(payload.is_empty()) << 60 | of_peer << 6 | at as u64
}

impl<D: Datapath> Driver<D> {
    pub fn new(endpoint: Endpoint, datapath: D) -> Self {
        let (read_at, abilities) = (datapath.now(), datapath.abilities());
        let run = abilities.run.min(abilities.largest / endpoint.longest_datagram().max(1)).clamp(1, MAX_SEND_BATCH);
        let unit = match endpoint.settings().run_length as usize {
            1 => run,
            chosen => chosen.min(run),
        };
        let max = if run > 1 { MAX_SEND_BATCH / unit * unit } else { SEND_BATCH };
        Driver {
            lateness: LatenessMeter::new(&endpoint, read_at),
            endpoint,
            datapath,
            batch: Vec::new(),
            made: 0,
            sent: 0,
            order: [0; MAX_SEND_BATCH],
            max,
            grouped: run > 1,
            read_at,
            longest_pause: Time::ZERO,
        }
    }

    pub fn endpoint(&mut self) -> (&mut Endpoint, Time) {
        let now = self.datapath.now();
        self.lateness.see(&self.endpoint, now, self.sent < self.made);
        (&mut self.endpoint, now)
    }

    /// Copies the messages of a stream that borrow the owner's memory, so that the owner may reuse it ([`Endpoint::own`]).
    pub fn own(&mut self, peer: u32, stream: u32) {
        self.endpoint.own(peer, stream);
        self.own_unsent();
    }

    /// Does the same for datagrams of any stream that the datapath has not accepted yet.
    pub fn own_unsent(&mut self) {
        for at in &self.order[self.sent..self.made] {
            let transmit = &mut self.batch[usize::from(*at)].0;
            // What is written from registered memory is withdrawn by the datapath.
            if transmit.write.is_none() {
                transmit.payload = Bytes::copy_from_slice(&transmit.payload);
            }
        }
    }

    pub fn datapath(&mut self) -> &mut D {
        &mut self.datapath
    }

    /// Returns the longest time for which the runnable process was descheduled: between two clock readings at work, or
    /// after its wake-up time. Packets that arrived meanwhile were acknowledged late.
    pub fn longest_pause(&self) -> Time {
        self.longest_pause
    }

    /// Returns the lateness so far.
    pub fn lateness(&self) -> Lateness {
        self.lateness.counted()
    }

    /// Fails before the clock ends: no timer of an endpoint takes effect after that.
    fn read_clock(&mut self) -> Result<Time, WireError> {
        let now = self.datapath.now();
        if now >= CLOCK_END {
            return Err(WireError::ClockEnd);
        }
        self.longest_pause = self.longest_pause.max(now.saturating_sub(self.read_at));
        self.read_at = now;
        Ok(now)
    }

    /// Receives, runs expired timers and sends. Returns the time of the next work, unless a datagram arrives earlier.
    /// Take all events before the next call, which forgets peers that are gone.
    pub fn work(&mut self) -> Result<Option<Time>, WireError> {
        self.rounds(false, &mut NoPlacement)
    }

    /// Does the same with receive buffers of the owner. With `sends_first`, queued data leave before the datapath is polled.
    pub fn work_with_placement(
        &mut self,
        places: &mut dyn Placement,
        sends_first: bool,
    ) -> Result<Option<Time>, WireError> {
        self.rounds(sends_first, places)
    }

    /// Receives what has arrived without sending replies; returns the number of datagrams.
    pub fn receive_with_placement(&mut self, places: &mut dyn Placement) -> Result<usize, WireError> {
        let mut now = self.read_clock()?;
        self.lateness.see(&self.endpoint, now, self.sent < self.made);
        self.receive_at(&mut now, places).map(|(received, _)| received)
    }

    /// Returns the number of datagrams and the arrival time of the first. Raises `now` to the latest arrival, which may
    /// be after the clock was read.
    fn receive_at(&mut self, now: &mut Time, places: &mut dyn Placement) -> Result<(usize, Option<Time>), WireError> {
        let Driver { endpoint, datapath, batch, order, made, sent, .. } = self;
        let mut first: Option<Time> = None;
        let received = datapath.receive(RECEIVE_BATCH, &mut |inbound| {
            let crate::Inbound { peer, from, label, at, ecn, kind, bytes } = inbound;
            *now = at.max(*now);
            first = Some(first.map_or(at, |first| first.min(at)));
            let of = peer.unwrap_or_default();
            match kind {
                Kind::Datagram => {
                    endpoint.handle_with_placement(*now, &Arrival { peer, from, label, at, ecn, bytes }, places);
                }
                Kind::Completed { arrived } => {
                    // A retransmission that has not left would write to memory that the peer has in use again.
                    for at in &order[*sent..*made] {
                        let (transmit, head) = &mut batch[usize::from(*at)];
                        if arrived && transmit.to == To::Peer(of) && header::is_same_data(head, bytes) {
                            head.clear();
                        }
                    }
                    endpoint.complete(*now, of, label, bytes, arrived);
                }
                Kind::Written { notice, bytes } => {
                    endpoint.note_written(*now, of);
                    places.written(of, notice, bytes);
                }
                Kind::Gone => endpoint.lose(of),
            }
        })?;
        while let Some((peer, label, from)) = endpoint.poll_confirmed() {
            datapath.confirm(peer, label, from);
        }
        // Only a sender that has proven its address gets a number.
        endpoint.admit(*now, &mut |from| datapath.admit(from));
        Ok((received, first))
    }

    fn rounds(&mut self, mut sends_first: bool, places: &mut dyn Placement) -> Result<Option<Time>, WireError> {
        if self.sent == self.made {
            while let Some(peer) = self.endpoint.poll_released() {
                self.datapath.release(peer);
            }
        }
        for _ in 0..MAX_ROUNDS {
            let mut now = self.read_clock()?;
            let due = self.lateness.due(&self.endpoint, now);
            let (received, arrived) =
                if std::mem::take(&mut sends_first) { (0, None) } else { self.receive_at(&mut now, places)? };
            self.endpoint.handle_timeout(now);
            self.lateness.note_round(&self.endpoint, due, arrived, now);
            let sent = self.transmit(now)?;
            let blocked = self.sent < self.made;
            self.lateness.see(&self.endpoint, now, blocked);
            // What has arrived since is received after the wait.
            if received < RECEIVE_BATCH && (sent < self.max || blocked) {
                // A full socket gives no signal when it has space again, which is soon.
                let again = blocked.then(|| self.datapath.now() + Time::from_us(20));
                return Ok([again, self.endpoint.poll_timeout()].into_iter().flatten().min());
            }
        }
        Ok(Some(self.datapath.now()))
    }

    /// Sends what waits for the pacer or the datapath, such as BYEs, before its owner drops the driver.
    pub fn finish(&mut self) -> Result<(), WireError> {
        let until = self.datapath.now() + FINISH;
        loop {
            self.work()?;
            let (next, now) = (self.endpoint.next_send(), self.datapath.now());
            if now >= until || (next.is_none() && self.sent == self.made) {
                return Ok(());
            }
            self.wait(next.map_or(now, |next| next.at).clamp(now + FINISH / 100_000, until))?;
        }
    }

    fn transmit(&mut self, now: Time) -> Result<usize, WireError> {
        if self.sent == self.made {
            (self.sent, self.made) = (0, 0);
            while self.made < self.max {
                if self.made == self.batch.len() {
                    self.batch.push((EMPTY_TRANSMIT, Vec::new()));
                }
                let (transmit, head) = &mut self.batch[self.made];
                let Some(made) = self.endpoint.poll_transmit(now, head) else { break };
                *transmit = made;
                self.order[self.made] = self.made as u8;
                self.made += 1;
            }
            if self.grouped {
                // Only the order within a label matters, and datagrams of a label need one system call. Receivers wait
                // for data, so ACKs go last.
                let mut keys = [0; MAX_SEND_BATCH];
                for (at, key) in keys[..self.made].iter_mut().enumerate() {
                    *key = order_of(&self.batch[at].0, at);
                }
                keys[..self.made].sort_unstable();
                for (slot, key) in self.order.iter_mut().zip(&keys[..self.made]) {
                    *slot = (key % MAX_SEND_BATCH as u64) as u8;
                }
            }
        }
        if self.sent == self.made {
            return Ok(0);
        }
        let waiting = &self.order[self.sent..self.made];
        let batch: ArrayVec<Outbound<'_>, MAX_SEND_BATCH> = waiting
            .iter()
            .map(|at| {
                let (Transmit { to, label, ecn, class, payload, write, .. }, head) = &self.batch[usize::from(*at)];
                Outbound { to: *to, label: *label, ecn: *ecn, class: *class, head, payload, write: *write }
            })
            .collect();
        // Single ones leave alone.
        let mut sent = 0;
        let is_single = |at: usize| self.batch[usize::from(waiting[at])].0.is_single;
        while sent < batch.len() {
            let end = (sent + 1..batch.len()).find(|at| is_single(*at - 1) || is_single(*at)).unwrap_or(batch.len());
            let part = &batch[sent..end];
            let accepted = self.datapath.send(part)?;
            sent += accepted;
            if accepted < part.len() {
                break;
            }
        }
        self.lateness.note_sent(sent, batch[..sent].iter().map(|datagram| datagram.size() as u64).sum());
        drop(batch);
        self.order[self.sent..self.sent + sent]
            .iter()
            .for_each(|at| self.batch[usize::from(*at)].0.payload = Bytes::new());
        self.sent += sent;
        Ok(sent)
    }

    /// Waits until there is work or until `until`.
    pub fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.read_clock()?;
        self.datapath.wait(until)?;
        // Only a late wake-up counts as a pause.
        self.read_at = self.datapath.now().min(until.max(self.read_at));
        self.read_clock()?;
        Ok(())
    }
}
