//! What stands between an endpoint and its datapath.

use crate::{Datapath, Lateness, Outbound, To, WireError, lateness::Clerk};
use anabranch_endpoint::{Arrival, Bytes, Endpoint, Nowhere, Place, Transmit};
use anabranch_units::Time;
use arrayvec::ArrayVec;

/// Datagrams that are taken from a datapath before others are sent.
const RECEIVED_AT_ONCE: usize = 64;
/// Datagrams that are handed to a datapath at once.
const SENT_AT_ONCE: usize = 32;
/// The same where datagrams of a label leave in runs, as far as these are whole.
const MOST_AT_ONCE: usize = 64;
/// Rounds of receiving and sending before the owner hears of what has happened.
const ROUNDS_AT_ONCE: usize = 16;
/// What a place for a datagram holds that none has used yet.
const NOTHING: Transmit = Transmit { to: To::Peer(0), label: 0, ecn: false, class: 0, payload: Bytes::new() };

/// An endpoint with the datapath that carries its packets.
#[derive(Debug)]
pub struct Driver<D> {
    endpoint: Endpoint,
    datapath: D,
    /// Datagrams that the endpoint has made, header by header, of which all but the first `sent` of `order` have still to go. Whatever the datapath does not take
    /// stays here, so that no scheme is asked twice.
    batch: Vec<(Transmit, Vec<u8>)>,
    made: usize,
    sent: usize,
    /// In which order the datagrams go, and how many there may be.
    order: [u8; MOST_AT_ONCE],
    most: usize,
    /// Whether those of a label leave together.
    grouped: bool,
    /// When it last looked at the clock, and the longest time for which it did not, though it did not sleep.
    looked: Time,
    longest_pause: Time,
    lateness: Clerk,
}

/// Where the datagram at this place goes among those that leave at once: data first, then by peer, label, mark and class, then as they were
/// made. What goes to addresses keeps its order.
fn order_of(datagram: &Transmit, at: usize) -> u64 {
    let Transmit { to, label, ecn, class, payload } = datagram;
    let of_peer = match to {
        To::Peer(peer) => u64::from(*peer) << 21 | u64::from(*label) << 9 | u64::from(*ecn) << 8 | u64::from(*class),
        To::Address(_) => 1 << 53,
    };
    u64::from(payload.is_empty()) << 60 | of_peer << 6 | at as u64
}

impl<D: Datapath> Driver<D> {
    /// An endpoint on a datapath.
    pub fn new(endpoint: Endpoint, datapath: D) -> Self {
        let (looked, abilities) = (datapath.now(), datapath.abilities());
        let run = abilities.run.min(abilities.largest / endpoint.longest_datagram().max(1)).clamp(1, MOST_AT_ONCE);
        // Whole runs, whether the endpoint makes them or the datapath finds them.
        let unit = match endpoint.settings().run_length as usize {
            1 => run,
            chosen => chosen.min(run),
        };
        let most = if run > 1 { MOST_AT_ONCE / unit * unit } else { SENT_AT_ONCE };
        Driver {
            lateness: Clerk::new(&endpoint, looked),
            endpoint,
            datapath,
            batch: Vec::new(),
            made: 0,
            sent: 0,
            order: [0; MOST_AT_ONCE],
            most,
            grouped: run > 1,
            looked,
            longest_pause: Time::ZERO,
        }
    }

    /// The endpoint, and the time: to connect, to send, to take events.
    pub fn endpoint(&mut self) -> (&mut Endpoint, Time) {
        let now = self.datapath.now();
        self.lateness.see(&self.endpoint, now, self.sent < self.made);
        (&mut self.endpoint, now)
    }

    /// Messages of a stream that lie with their owner and have still to go, or to go again, are copied: the owner wants the memory
    /// back ([`Endpoint::own`]).
    pub fn own(&mut self, peer: u32, stream: u32) {
        self.endpoint.own(peer, stream);
        self.own_unsent();
    }

    /// The same for datagrams that the datapath has not taken yet, whatever becomes of their streams.
    pub fn own_unsent(&mut self) {
        for at in &self.order[self.sent..self.made] {
            let payload = &mut self.batch[usize::from(*at)].0.payload;
            *payload = Bytes::copy_from_slice(payload);
        }
    }

    /// The datapath.
    pub fn datapath(&mut self) -> &mut D {
        &mut self.datapath
    }

    /// The longest time for which this process did not run though it wanted to, as far as its own looks at the clock tell: between
    /// two of them at work, or after the time at which it wanted to be woken. What came in between was not answered.
    pub fn longest_pause(&self) -> Time {
        self.longest_pause
    }

    /// How late it has run so far.
    pub fn lateness(&self) -> Lateness {
        self.lateness.counted()
    }

    fn look(&mut self) -> Time {
        let now = self.datapath.now();
        self.longest_pause = self.longest_pause.max(now.saturating_sub(self.looked));
        self.looked = now;
        now
    }

    /// Does what there is to do now: takes what has arrived, strikes timers, sends what may go. Returns when there is
    /// something to do next, unless something arrives; `None`: never. Take all events before calling it again: peers that are
    /// gone are forgotten then.
    ///
    /// # Errors
    /// Those of the datapath.
    pub fn work(&mut self) -> Result<Option<Time>, WireError> {
        self.rounds(false, &mut Nowhere)
    }

    /// The same for an owner who has places for messages. Where `sends_first`, what has to go goes before anybody looks for what has
    /// arrived: for whoever has just asked for it.
    ///
    /// # Errors
    /// Those of the datapath.
    pub fn work_placing(&mut self, places: &mut dyn Place, sends_first: bool) -> Result<Option<Time>, WireError> {
        self.rounds(sends_first, places)
    }

    /// Takes what has arrived, and leaves answers to the next call: for whoever waits for just that. Returns how many datagrams
    /// there were.
    ///
    /// # Errors
    /// Those of the datapath.
    pub fn receive_placing(&mut self, places: &mut dyn Place) -> Result<usize, WireError> {
        let mut now = self.look();
        self.lateness.see(&self.endpoint, now, self.sent < self.made);
        self.receive_at(&mut now, places).map(|(received, _)| received)
    }

    /// Takes what has arrived, and when the first of it did; `now` is when that was at the latest, since it may have come after the
    /// clock was looked at.
    fn receive_at(&mut self, now: &mut Time, places: &mut dyn Place) -> Result<(usize, Option<Time>), WireError> {
        let Driver { endpoint, datapath, .. } = self;
        let mut first: Option<Time> = None;
        let received = datapath.receive(RECEIVED_AT_ONCE, &mut |inbound| {
            let crate::Inbound { peer, from, label, at, ecn, bytes, .. } = inbound;
            *now = at.max(*now);
            first = Some(first.map_or(at, |first| first.min(at)));
            endpoint.handle_placing(*now, &Arrival { peer, from, label, at, ecn, bytes }, places);
        })?;
        // Who has shown where it receives gets a number; others never do.
        endpoint.admit(*now, &mut |at| datapath.peer(at, &[]).ok());
        Ok((received, first))
    }

    fn rounds(&mut self, mut sends_first: bool, places: &mut dyn Place) -> Result<Option<Time>, WireError> {
        if self.sent == self.made {
            while let Some(peer) = self.endpoint.poll_gone() {
                self.datapath.release(peer);
            }
        }
        for _ in 0..ROUNDS_AT_ONCE {
            let mut now = self.look();
            let due = self.lateness.due(&self.endpoint, now);
            let (received, arrived) =
                if std::mem::take(&mut sends_first) { (0, None) } else { self.receive_at(&mut now, places)? };
            self.endpoint.handle_timeout(now);
            self.lateness.note_round(&self.endpoint, due, arrived, now);
            let sent = self.transmit(now)?;
            let blocked = self.sent < self.made;
            self.lateness.see(&self.endpoint, now, blocked);
            // What has come since is seen by whoever waits.
            if received < RECEIVED_AT_ONCE && (sent < self.most || blocked) {
                // A full socket says nothing when it is free again, and is so soon.
                let again = blocked.then(|| self.datapath.now() + Time::from_us(20));
                return Ok([again, self.endpoint.poll_timeout()].into_iter().flatten().min());
            }
        }
        Ok(Some(self.datapath.now()))
    }

    /// Sends what may go at `now`; returns how many datagrams went.
    fn transmit(&mut self, now: Time) -> Result<usize, WireError> {
        if self.sent == self.made {
            (self.sent, self.made) = (0, 0);
            while self.made < self.most {
                if self.made == self.batch.len() {
                    self.batch.push((NOTHING, Vec::new()));
                }
                let (transmit, head) = &mut self.batch[self.made];
                let Some(made) = self.endpoint.poll_transmit(now, head) else { break };
                *transmit = made;
                self.order[self.made] = self.made as u8;
                self.made += 1;
            }
            if self.grouped {
                // What leaves at once has no order but that of each label, and those of a label need one system call. Somebody
                // waits for data; answers can wait for so long.
                let mut keys = [0; MOST_AT_ONCE];
                for (at, key) in keys[..self.made].iter_mut().enumerate() {
                    *key = order_of(&self.batch[at].0, at);
                }
                keys[..self.made].sort_unstable();
                for (place, key) in self.order.iter_mut().zip(&keys[..self.made]) {
                    *place = (key % MOST_AT_ONCE as u64) as u8;
                }
            }
        }
        if self.sent == self.made {
            return Ok(0);
        }
        let waiting = &self.order[self.sent..self.made];
        let batch: ArrayVec<Outbound<'_>, MOST_AT_ONCE> = waiting
            .iter()
            .map(|at| {
                let (Transmit { to, label, ecn, class, payload }, head) = &self.batch[usize::from(*at)];
                Outbound { to: *to, label: *label, ecn: *ecn, class: *class, head, payload }
            })
            .collect();
        let sent = self.datapath.send(&batch)?;
        self.lateness.note_sent(sent, batch[..sent].iter().map(|datagram| datagram.size() as u64).sum());
        drop(batch);
        // What has gone holds no message.
        self.order[self.sent..self.sent + sent]
            .iter()
            .for_each(|at| self.batch[usize::from(*at)].0.payload = Bytes::new());
        self.sent += sent;
        Ok(sent)
    }

    /// Waits until there is something to do, `until` at the latest.
    ///
    /// # Errors
    /// Those of the datapath.
    pub fn wait(&mut self, until: Time) -> Result<(), WireError> {
        self.look();
        self.datapath.wait(until)?;
        // Who is woken late has not slept of his own will.
        self.looked = self.datapath.now().min(until.max(self.looked));
        self.look();
        Ok(())
    }
}
