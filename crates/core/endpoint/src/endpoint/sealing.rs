//! docs/reference/wire.md, "Authentication".

use super::{
    control::{Control, NO_PEER, Welcome},
    datagram::Arrival,
    state::State,
};
use crate::{
    Key,
    auth::{GreetingKeys, Rejected, Session, Side},
    header::{self, Greeting, Packet, Sealed},
};

pub(super) fn set_peer_key(state: &mut State, peer: u32, key: Key) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if known.key.as_ref() == Some(&key) {
        return;
    }
    known.key = Some(key);
    known.greeting_keys = None;
    if let (Some(own), Some(session)) = (&state.settings.key, known.session.take()) {
        known.session = Some(Box::new(session.with_peer_key(own, known.key.as_ref())));
    }
}

pub(super) fn derive(state: &mut State, peer: u32, greeting: &Greeting) {
    let protection = state.protection().max(greeting.protection);
    let Some(own) = &state.settings.key else { return };
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    known.derive(own, greeting, protection);
}

/// `None` if there is no local key.
pub(super) fn session_with(state: &State, here: Side, greeting: &Greeting) -> Option<Box<Session>> {
    let protection = state.protection().max(greeting.protection);
    let there = Side { nonce: greeting.own_nonce, connection: greeting.connection };
    let own = state.settings.key.as_ref()?;
    Some(Box::new(Session::new(own, None, here, there, protection)))
}

/// A key of the connection authenticates the packet, or there is no local key and it has no MAC. Rejected packets are counted.
pub(super) fn is_authentic(
    state: &mut State,
    arrival: &Arrival<'_>,
    packet: &Packet<'_>,
    sealed: Option<&Sealed<'_>>,
) -> bool {
    let Some(own) = &state.settings.key else {
        state.counters.forged += u64::from(sealed.is_some());
        return sealed.is_none();
    };
    let known = arrival.peer.and_then(|peer| state.peers.get_mut(peer as usize)).and_then(Option::as_mut);
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
        Err(Rejected::Forged) => state.counters.forged += 1,
        Err(Rejected::Replayed) => state.counters.replayed += 1,
    }
    false
}

/// Refusals to its receiver are not sealed.
pub(super) fn seal_control(state: &mut State, peer: u32, control: &Control, out: &mut Vec<u8>) {
    match control {
        Control::Welcome(Welcome { ours: 0, .. }) => {}
        Control::Bye(bye) => {
            if let Some(seal) = &bye.seal {
                header::authenticate(out, seal.number, None, |bytes| seal.key.mac(bytes));
            }
        }
        // It has called by the local key.
        Control::Welcome(Welcome { is_for_candidate: true, .. }) => seal(state, NO_PEER, out),
        _ => seal(state, peer, out),
    }
}

fn seal(state: &mut State, peer: u32, out: &mut Vec<u8>) {
    let Some(own) = &state.settings.key else { return };
    let known = state.peers.get_mut(peer as usize).and_then(Option::as_mut);
    if header::is_greeting(out[1]) {
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
