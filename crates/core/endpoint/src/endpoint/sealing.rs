//! What is authenticated: who may be believed, and what leaves with a MAC (docs/reference/wire.md, "Authentication").

use super::{
    Arrival, Endpoint,
    transmit::{Control, NO_PEER, Welcome},
};
use crate::{
    auth::{GreetingKeys, Key, Rejected, Session, Side},
    header::{self, Greeting, Packet, Protection, Sealed},
    peer::Peer,
};

/// What seals a datagram to a peer that is forgotten by the time it leaves.
#[derive(Clone, Debug)]
pub(super) struct LastSeal {
    pub(super) key: crate::auth::PacketKey,
    pub(super) number: u64,
}

impl Endpoint {
    /// A peer is called by this key, which its own settings have, and not by ours.
    pub fn set_peer_key(&mut self, peer: u32, key: Key) {
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        if known.key.as_ref() == Some(&key) {
            return;
        }
        known.key = Some(key);
        known.greeting_keys = None;
        if let (Some(own), Some(session)) = (&self.settings.key, known.session.take()) {
            known.session = Some(Box::new(session.with_peer_key(own, known.key.as_ref())));
        }
    }

    /// What greetings say of us.
    pub(super) fn protection(&self) -> Protection {
        match self.settings.key {
            Some(_) => self.settings.protection.max(Protection::Control),
            None => Protection::Off,
        }
    }

    /// Both ends know each other's nonce and connection number: from now on packets have keys of their own.
    pub(super) fn derive(&mut self, peer: u32, greeting: &Greeting) {
        let protection = self.protection().max(greeting.protection);
        let Some(own) = &self.settings.key else { return };
        let Some(Some(known)) = self.peers.get_mut(peer as usize) else { return };
        known.derive(own, greeting, protection);
    }

    /// The keys of whoever may take a peer's place, where we have one.
    pub(super) fn session_with(&self, here: Side, greeting: &Greeting) -> Option<Box<Session>> {
        let protection = self.protection().max(greeting.protection);
        let there = Side { nonce: greeting.own_nonce, connection: greeting.connection };
        let own = self.settings.key.as_ref()?;
        Some(Box::new(Session::new(own, None, here, there, protection)))
    }

    /// Returns `true` where a packet may be acted on: it is authenticated by a key of its sender's connection, or nobody asks for that. What
    /// may not is counted.
    pub(super) fn is_authentic(
        &mut self,
        arrival: &Arrival<'_>,
        packet: &Packet<'_>,
        sealed: Option<&Sealed<'_>>,
    ) -> bool {
        let Some(own) = &self.settings.key else {
            self.counters.forged += u64::from(sealed.is_some());
            return sealed.is_none();
        };
        let known = arrival.peer.and_then(|peer| self.peers.get_mut(peer as usize)).and_then(Option::as_mut);
        let verdict = match (sealed, packet) {
            (None, _) => Err(Rejected::Forged),
            (Some(sealed), _) if sealed.is_greeting => {
                let fits = match known {
                    Some(known) => known.greeting_keys(own).opens(sealed),
                    None => GreetingKeys::new(own, None).opens(sealed),
                };
                fits.then_some(()).ok_or(Rejected::Forged)
            }
            (Some(sealed), _) => match known.and_then(|known| known.session_of(packet.connection())) {
                Some(session) => session.open(sealed),
                None => Err(Rejected::Forged),
            },
        };
        match verdict {
            Ok(()) => return true,
            Err(Rejected::Forged) => self.counters.forged += 1,
            Err(Rejected::Replayed) => self.counters.replayed += 1,
        }
        false
    }

    /// Seals a control packet, but for what refuses its receiver.
    pub(super) fn seal_control(&mut self, peer: u32, control: &Control, out: &mut Vec<u8>) {
        match control {
            Control::Welcome(Welcome { ours: 0, .. }) | Control::Bye { seal: None, .. } => {}
            Control::Bye { seal: Some(seal), .. } => {
                header::authenticate(out, seal.number, None, |bytes| seal.key.mac(bytes));
            }
            // It has called us by our key.
            Control::Welcome(Welcome { is_for_candidate: true, .. }) => self.seal(NO_PEER, out),
            _ => self.seal(peer, out),
        }
    }

    fn seal(&mut self, peer: u32, out: &mut Vec<u8>) {
        let Some(own) = &self.settings.key else { return };
        let known = self.peers.get_mut(peer as usize).and_then(Option::as_mut);
        if header::is_greeting_datagram(out) {
            let mac = |bytes: &[u8]| match known {
                Some(known) => known.greeting_keys(own).sending().mac(bytes),
                None => GreetingKeys::new(own, None).sending().mac(bytes),
            };
            return header::authenticate(out, 0, None, mac);
        }
        if let Some(session) = known.and_then(|known| known.session.as_mut()) {
            let number = session.number();
            header::authenticate(out, number, None, |bytes| session.headers().mac(bytes));
        }
    }
}

impl Peer {
    /// The keys of greetings, made when they are first needed.
    fn greeting_keys(&mut self, own: &Key) -> &GreetingKeys {
        let key = self.key.as_ref();
        self.greeting_keys.get_or_insert_with(|| Box::new(GreetingKeys::new(own, key)))
    }

    /// The keys of packets with this connection number: of the peer, or of whoever may take its place.
    fn session_of(&mut self, connection: u32) -> Option<&mut Box<Session>> {
        match &mut self.candidate {
            Some(candidate) if candidate.ours == connection => candidate.session.as_mut(),
            _ => self.session.as_mut(),
        }
    }

    fn derive(&mut self, own: &Key, greeting: &Greeting, protection: Protection) {
        let here = Side { nonce: self.nonce, connection: self.ours };
        let there = Side { nonce: greeting.own_nonce, connection: greeting.connection };
        // What is said twice begins nothing anew: numbers would repeat, and the window would forget what has come.
        if self.session.as_ref().is_none_or(|session| session.sides() != [here, there]) {
            self.session = Some(Box::new(Session::new(own, self.key.as_ref(), here, there, protection)));
        }
    }

    /// What seals the last datagram to this peer.
    pub(super) fn last_seal(&mut self) -> Option<Box<LastSeal>> {
        let session = self.session.as_mut()?;
        let number = session.number();
        Some(Box::new(LastSeal { key: session.headers().clone(), number }))
    }
}
