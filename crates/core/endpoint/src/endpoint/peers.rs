//! Peers: greetings, the base round trip, the opening of streams, and loss.

use super::{
    control::{Control, Welcome},
    cookie::Bound,
    datagram::{Arrival, Source, To},
    hosts::host_of,
    sealing, sizes,
    state::{CALIBRATION, LABELS, MAX_REPLIES, Newcomer, STREAM_PACKETS, State, Timer, resolve},
};
use crate::{
    Flow, Settings,
    auth::Side,
    event::{CloseReason, Event, Sizes},
    header::{self, Cookie, Greeting, Protection},
    peer::{Candidate, Peer, Phase},
    stream::Outgoing,
    watched::Watched,
};
use anabranch_lb::{FlowInfo, GuidedPaths, HostScheme, PathSpace, registry::TagKind};
use anabranch_random::Stream;
use anabranch_transport::{BaseRttShift, Sender};
use anabranch_units::Time;
use std::{cmp::Reverse, net::IpAddr, sync::Arc};

/// Age at which a peer that has sent nothing since its handshake may be evicted.
const UNPROVEN: Time = Time::from_us(1_000_000);
/// Idle time after which it is dropped in any case.
const HANDSHAKE_TIMEOUT: Time = Time::from_us(10_000_000);
/// Interval of HELLOs to a peer that does not see the calibration probes.
const REPEATED_HELLO: Time = Time::from_us(HANDSHAKE_TIMEOUT.ps() / 4_000_000);
/// Time without progress after which a peer is evicted for its messages while memory is short; `RELIEF_INTERVAL`: interval
/// of this check.
const STALLED: Time = Time::from_us(2_000_000);
const RELIEF_INTERVAL: Time = Time::from_us(100_000);
/// The same where its host holds more than its share, and another one less.
const STALLED_OVER_SHARE: Time = Time::from_us(250_000);

/// One of this many HELLOs without a reply is short.
const SHORT_HELLO_PERIOD: u32 = 8;
/// Time from the first RETRY on after which HELLOs are short: full ones with its cookie may not pass.
const FULL_TIMEOUT: Time = Time::from_us(1_000_000);

/// Rounds of probes after which streams open without labels that have not replied: 163 ms with a base round trip of 250 us.
const SWEEPS: u32 = 8;
const MIN_SWEEP_INTERVAL: Time = Time::from_us(1_000);
/// Exponent, to base two, of the longest time between later rounds, in request timeouts.
const MAX_BACKOFF: u32 = 8;

const REFUSAL_INTERVAL: Time = Time::from_us(1_000_000);

/// `host` is `None` for a peer that the local endpoint calls.
pub(super) fn make_peer(state: &mut State, peer: u32, phase: Phase, host: Option<IpAddr>, now: Time) -> bool {
    if !ensure_slot(state, host, now) {
        return false;
    }
    let at = peer as usize;
    if state.peers.len() <= at {
        state.peers.resize_with(at + 1, || None);
        state.transports.resize_with(at + 1, || None);
    }
    let (ours, nonce) = (state.entropy.bits() as u32, state.entropy.bits());
    let mut made = Peer::new(phase, ours, nonce, now);
    (made.host, made.planes) = (host, state.settings.planes);
    state.peers[at] = Some(made);
    state.connections.insert(ours, peer);
    state.hosts.enter(host);
    schedule_idle_check(state, now);
    true
}

/// Evicts a peer if need be.
fn ensure_slot(state: &mut State, host: Option<IpAddr>, now: Time) -> bool {
    let is_full = state.hosts.is_full(host);
    if !is_full && state.hosts.peers < state.settings.max_peers {
        return true;
    }
    // `None`: the limit of all peers is reached.
    let short = host.filter(|_| is_full);
    if state.hosts.is_crowded(short, now) {
        return false;
    }
    let is_evictable = |known: &&Peer| {
        let is_unproven = !known.is_proven && known.phase == Phase::Greeted;
        is_unproven && now.saturating_sub(known.made_at) >= UNPROVEN && (!is_full || known.host == host)
    };
    let known = state.peers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
    let oldest = known.filter(|(_, known)| is_evictable(known)).min_by_key(|(_, known)| known.made_at);
    let oldest = oldest.map(|(at, _)| at as u32);
    let Some(peer) = oldest.or_else(|| if is_full { None } else { idle_over_share(state, host, now) }) else {
        state.hosts.note_crowded(short, now);
        return false;
    };
    state.counters.evicted += 1;
    lose(state, peer, CloseReason::Evicted);
    true
}

/// Returns the peer to evict of a host above its share, if a newcomer's host would have no more than its own: of those
/// that have never delivered anything, the one idle for longest.
fn idle_over_share(state: &State, host: Option<IpAddr>, now: Time) -> Option<u32> {
    let over = state.hosts.host_over_share_of_peers(host)?;
    let is_evictable = |known: &&Peer| {
        let is_useless = known.delivered == 0 && known.phase == Phase::Greeted;
        known.host == Some(over) && is_useless && now.saturating_sub(known.made_at) >= UNPROVEN
    };
    let known = state.peers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
    known
        .filter(|(_, known)| is_evictable(known))
        .min_by_key(|(_, known)| known.last_received_at)
        .map(|(at, _)| at as u32)
}

/// If `host` has no more than its share with `bytes` more, evicts stalled peers of hosts above theirs, those with the
/// most memory first. Else evicts the peer stalled for longest. Returns `true` if there is memory afterwards.
pub(super) fn evict_for_memory(state: &mut State, now: Time, host: Option<IpAddr>, bytes: u64) -> bool {
    while let Some(over) = state.hosts.host_over_share(host, bytes, now) {
        let of_host = |known: &&Peer| known.host == Some(over) && known.stored.unearned > 0;
        let is_stalled = |known: &&Peer| now.saturating_sub(known.stored_since) >= STALLED_OVER_SHARE;
        let known = state.peers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
        let stalled = known.filter(|(_, known)| of_host(known) && is_stalled(known));
        let Some((peer, _)) = stalled.max_by_key(|(_, known)| known.stored.unearned) else {
            state.hosts.note_short(host, now);
            break;
        };
        state.counters.evicted += 1;
        lose(state, peer as u32, CloseReason::Evicted);
        if state.hosts.may_store(host, bytes) {
            return true;
        }
    }
    if now.saturating_sub(state.last_eviction_at) >= RELIEF_INTERVAL {
        state.last_eviction_at = now;
        let known = state.peers.iter().enumerate().filter_map(|(at, known)| Some((at, known.as_ref()?)));
        let is_stalled = |known: &Peer| now.saturating_sub(known.stored_since) >= STALLED;
        let stalled = known.filter(|(_, known)| known.stored.bytes > 0 && is_stalled(known));
        if let Some((peer, _)) = stalled.min_by_key(|(_, known)| known.stored_since) {
            state.counters.evicted += 1;
            lose(state, peer as u32, CloseReason::Evicted);
            return state.hosts.may_store(host, bytes);
        }
    }
    false
}

fn schedule_idle_check(state: &mut State, now: Time) {
    if !state.has_idle_check && state.settings.idle_timeout != Time::MAX {
        state.has_idle_check = true;
        let at = now + (state.settings.idle_timeout / 4).max(Time::from_us(1));
        state.timers.push(Reverse((at, Timer::Idle)));
    }
}

/// A peer that owes a reply has a limit of its own.
pub(super) fn close_idle_peers(state: &mut State, now: Time) {
    state.has_idle_check = false;
    for peer in 0..state.peers.len() as u32 {
        let idle = |known: &Peer| {
            let is_unproven = !known.is_proven && known.phase == Phase::Greeted;
            let max = if is_unproven { HANDSHAKE_TIMEOUT } else { state.settings.idle_timeout };
            known.awaiting_since.is_none()
                && now.saturating_sub(known.last_received_at) >= max.min(state.settings.idle_timeout)
        };
        if state.peer(peer).is_some_and(idle) {
            lose(state, peer, CloseReason::Idle);
        }
    }
    if state.peers.iter().any(Option::is_some) {
        schedule_idle_check(state, now);
    }
}

pub(super) fn lose(state: &mut State, peer: u32, reason: CloseReason) {
    if state.peer(peer).is_some() {
        forget(state, peer);
        state.events.push_back(Event::Lost { peer, reason });
    }
}

/// Forgets a peer and sends it a BYE.
pub(super) fn leave(state: &mut State, peer: u32, stalled: Option<Sizes>) {
    let longest = state.longest_datagram_to(peer);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let (byes, label) = (Control::byes(known, stalled, longest), known.last_label);
    forget(state, peer);
    byes.into_iter().for_each(|bye| state.send_control(peer, label, bye));
}

fn forget(state: &mut State, peer: u32) {
    let Some(known) = state.peers.get_mut(peer as usize).and_then(Option::take) else { return };
    if state.connections.get(&known.ours) == Some(&peer) {
        state.connections.remove(&known.ours);
    }
    for slot in known.streams.values() {
        let flow = state.flows.remove(*slot as usize);
        state.balancer.close(flow.scheme_slot());
        state.nic.leave(*slot, &flow);
        state.counters.path_switches += flow.path_switches();
        state.unacknowledged -= flow.of.messages();
    }
    state.unacknowledged -= known.waiting.iter().map(|outgoing| outgoing.messages()).sum::<usize>();
    state.hosts.leave(known.host, known.stored, known.kept);
    state.transports[peer as usize] = None;
    state.control.retain(|(of, ..)| *of != peer);
    state.fragments.retain(|(transmit, _)| transmit.to != To::Peer(peer));
    state.released.insert(peer);
}

pub(super) fn send_request(state: &mut State, peer: u32, now: Time) {
    let (labels, full) = (state.settings.labels, state.longest_datagram_to(peer));
    let timer_at = now + state.settings.request_timeout + state.pace(1, full, now);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let required = state.settings.calibrations.max(1) as usize;
    let measures_full = known.samples.len() < required;
    let size = if measures_full { full } else { known.probe_base.datagram };
    let is_short = known.hellos.only_short || known.requests_sent % SHORT_HELLO_PERIOD == SHORT_HELLO_PERIOD - 1;
    known.hellos.is_short = known.phase == Phase::Greeting && is_short;
    let request = match known.phase {
        Phase::Greeting => Control::Hello { is_short: known.hellos.is_short },
        Phase::Calibrating => Control::Probe { stream: CALIBRATION, tag: known.requests_sent, size, ecn: false },
        Phase::Greeted | Phase::Open => return,
    };
    let label = if known.phase == Phase::Greeting {
        let number = if known.hellos.is_short { SHORT_HELLO_PERIOD } else { 1 };
        known.greeting_label(known.requests_sent / number, labels)
    } else {
        known.calibration_label(required)
    };
    (known.requests_sent, known.requested_over) = (known.requests_sent.wrapping_add(1), label);
    if known.phase == Phase::Greeting {
        known.hellos.sent_at = now;
    }
    // A cookie is valid for the label on which it arrived.
    known.cookie = None;
    known.awaiting_since.get_or_insert(now);
    arm_request(state, peer, timer_at);
    state.send_control(peer, label, request);
    greet_again(state, peer, now);
}

/// Probes over reliable queue pairs are writes, of which the peer learns nothing: it is greeted again before it drops this caller.
fn greet_again(state: &mut State, peer: u32, now: Time) {
    let is_reliable = state.settings.is_reliable;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let every = REPEATED_HELLO.min(state.settings.idle_timeout / 4);
    if is_reliable && known.phase == Phase::Calibrating && now.saturating_sub(known.hellos.sent_at) >= every {
        known.hellos.sent_at = now;
        known.hellos.repeated = known.hellos.repeated.wrapping_add(1);
        // Over paths that have replied.
        let (paths, turn) = (known.paths.len() as u32, known.hellos.repeated);
        let label = known.label(turn % paths, turn / paths);
        state.send_control(peer, label, Control::Hello { is_short: true });
    }
}

/// Measures the round trip before anything is sent.
pub(super) fn begin_calibration(state: &mut State, peer: u32, label: u32, now: Time) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    (known.phase, known.requests_sent, known.sweeps) = (Phase::Calibrating, 0, 0);
    known.set_paths();
    let only_short = known.hellos.only_short;
    sweep(state, peer, now);
    if only_short { sizes::search_first(state, peer, label, now) } else { send_request(state, peer, now) }
}

/// Schedules the next round of probes. Intervals double from four round trips to the request timeout, and beyond that once
/// streams are open.
fn arm_sweep(state: &mut State, peer: u32, now: Time) {
    let Some(known) = state.peer(peer) else { return };
    let (max, silent) = (state.settings.request_timeout, known.silent_labels().len());
    let shortest = known.samples.iter().min().map_or(max, |(rtt, _)| *rtt);
    let early = (shortest * 4).max(MIN_SWEEP_INTERVAL) * (1 << known.sweeps.min(SWEEPS) >> 1);
    let interval = if known.phase == Phase::Open {
        max * (1 << known.sweeps.saturating_sub(SWEEPS).min(MAX_BACKOFF))
    } else {
        early.min(max)
    };
    let at = known.swept_at + interval + state.pace(silent, silent * header::ECHO_BYTES, now);
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        known.timer_at = at;
    }
    state.timers.push(Reverse((at, Timer::Peer { peer })));
}

/// Probes the labels over which no reply has come.
pub(super) fn sweep(state: &mut State, peer: u32, now: Time) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let silent = known.silent_labels();
    known.timer_at = Time::MAX;
    if silent.is_empty() {
        return;
    }
    (known.swept_at, known.sweeps) = (now, known.sweeps.saturating_add(1));
    arm_sweep(state, peer, now);
    for label in silent {
        state.send_control(peer, label, Control::Probe { stream: LABELS, tag: label, size: 0, ecn: false });
    }
}

/// A reply has come over a label.
pub(super) fn on_answer(state: &mut State, now: Time, peer: u32, label: u32) {
    let required = state.settings.calibrations.max(1) as usize;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if !known.note_answer(label) {
        return;
    }
    match known.phase {
        Phase::Calibrating => {
            known.set_paths();
            if known.is_measured(required) && known.silent_labels().is_empty() {
                open(state, peer, now);
            }
        }
        // Others may follow.
        Phase::Open => {
            known.timer_at = known.timer_at.min(now + state.settings.request_timeout);
            state.timers.push(Reverse((known.timer_at, Timer::Peer { peer })));
        }
        Phase::Greeted | Phase::Greeting => {}
    }
}

/// Gives open streams the labels that have replied since, and probes the others.
fn use_answered(state: &mut State, peer: u32, now: Time) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    let before = std::mem::take(&mut known.paths);
    known.set_paths();
    if known.paths != before {
        let labels = known.silent_labels();
        state.events.push_back(Event::Silent { peer, labels });
        reopen_streams(state, peer, now);
    }
    sweep(state, peer, now);
}

pub(super) fn reopen_streams(state: &mut State, peer: u32, now: Time) {
    let slots: Vec<u32> = state.peer(peer).map_or(Vec::new(), |known| known.streams.values().copied().collect());
    for slot in slots {
        state.balancer.close(state.flows[slot as usize].scheme_slot());
        reopen(state, now, slot);
    }
}

/// Opens a stream's slot with the scheme again.
pub(super) fn reopen(state: &mut State, now: Time, slot: u32) {
    let Outgoing { peer, stream, .. } = state.flows[slot as usize].of;
    let scheme_slot = open_with_scheme(state, peer, stream, now);
    let flow = &mut state.flows[slot as usize];
    (flow.scheme_slot, flow.waits, flow.of.run_left) = (scheme_slot, false, 0);
    state.offer(slot, now);
}

pub(super) fn peer_timer(state: &mut State, peer: u32, at: Time, now: Time) {
    let Some(known) = state.peer(peer).filter(|known| known.timer_at == at) else { return };
    if known.phase == Phase::Open {
        return use_answered(state, peer, now);
    }
    if known.phase == Phase::Calibrating && known.is_measured(state.settings.calibrations.max(1) as usize) {
        if known.sweeps >= SWEEPS {
            return open(state, peer, now);
        }
        return sweep(state, peer, now);
    }
    let is_over = |since: Time| now.saturating_sub(since) >= FULL_TIMEOUT.min(state.settings.peer_timeout);
    let only_short = known.phase == Phase::Greeting && known.hellos.reply_at.is_some_and(is_over);
    let is_silent = known.awaiting_since.is_some_and(|since| now.saturating_sub(since) > state.settings.peer_timeout);
    if is_silent && known.phase == Phase::Greeting {
        return lose(state, peer, CloseReason::TimedOut);
    }
    greet_again(state, peer, now);
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    known.hellos.only_short |= only_short;
    if known.phase == Phase::Calibrating {
        let (since, label) = (*known.stalled_since.get_or_insert(now), known.next_label());
        let goes_on = known.search.is_some() || sizes::note_stall(state, peer, since, label, is_silent, now);
        // A search sends the next request at its end.
        if !goes_on || state.peer(peer).is_none_or(|known| known.search.is_some()) {
            return;
        }
        if state.settings.is_reliable {
            return arm_request(state, peer, now + state.settings.request_timeout);
        }
    }
    send_request(state, peer, now);
}

/// Repeats a calibration probe that a reliable datapath has lost.
pub(super) fn repeat_request(state: &mut State, peer: u32, now: Time) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if known.phase == Phase::Calibrating {
        known.stalled_since.get_or_insert(now);
        send_request(state, peer, now);
    }
}

fn arm_request(state: &mut State, peer: u32, at: Time) {
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        known.timer_at = at;
        state.timers.push(Reverse((at, Timer::Peer { peer })));
    }
}

/// The datapath vouches for the address, or the HELLO carries a valid cookie.
fn is_verified(state: &State, now: Time, arrival: &Arrival<'_>, greeting: &Greeting, cookie: &Cookie) -> bool {
    arrival.from.is_none_or(|from| state.cookies.is_valid(now, &bound(from, arrival, greeting), cookie))
}

fn bound(from: Source, arrival: &Arrival<'_>, greeting: &Greeting) -> Bound {
    Bound { from: from.at, label: arrival.label, connection: greeting.connection, nonce: greeting.nonce }
}

/// Returns `false` if too many replies to non-peers have left or wait.
fn reply_to(state: &mut State, now: Time, arrival: &Arrival<'_>, control: Control) -> bool {
    let to = arrival.from.map(To::Address).or(arrival.peer.map(To::Peer));
    let Some(to) = to.filter(|_| state.cookies.may_reply(now)) else { return false };
    state.reply(to, arrival.label, control)
}

pub(super) fn on_hello(state: &mut State, now: Time, arrival: &Arrival<'_>, greeting: &Greeting, cookie: &Cookie) {
    if let Some(reason) = mismatch(state, greeting) {
        // The WELCOME carries the local values; the initiator closes the connection.
        state.counters.refused += 1;
        state.release_unknown(arrival.peer);
        report_refusal(state, now, arrival, reason);
        reply_to(state, now, arrival, Control::Welcome(Welcome::refusing(greeting)));
        return;
    }
    if !is_verified(state, now, arrival, greeting, cookie) {
        state.release_unknown(arrival.peer);
        return retry(state, now, arrival, greeting);
    }
    match (arrival.peer, arrival.from) {
        (Some(peer), from) => greeted(state, now, peer, from, arrival.label, greeting),
        (None, Some(from)) => {
            let is_new = state.newcomers.iter().all(|newcomer| newcomer.from.at != from.at);
            if is_new && state.newcomers.len() < MAX_REPLIES {
                state.newcomers.push_back(Newcomer { from, label: arrival.label, greeting: *greeting });
            }
        }
        (None, None) => state.counters.unknown_peers += 1,
    }
}

/// Returns what both endpoints must have alike, and have not.
fn mismatch(state: &State, greeting: &Greeting) -> Option<CloseReason> {
    let (mtu, planes) = (state.settings.mtu() as u32, state.settings.planes as u8);
    match () {
        () if greeting.mtu != mtu => Some(CloseReason::Mtu { theirs: greeting.mtu, ours: mtu }),
        () if greeting.planes != planes => Some(CloseReason::Planes { theirs: greeting.planes, ours: planes }),
        () => None,
    }
}

/// Keeps no state.
fn retry(state: &mut State, now: Time, arrival: &Arrival<'_>, greeting: &Greeting) {
    let Some(from) = arrival.from else { return };
    let cookie = state.cookies.make(now, &bound(from, arrival, greeting));
    let retry = Control::Retry { connection: greeting.connection, nonce: greeting.nonce, cookie };
    if reply_to(state, now, arrival, retry) {
        state.counters.retries += 1;
    } else {
        state.counters.retries_suppressed += 1;
    }
}

pub(super) fn admit(state: &mut State, now: Time, number: &mut dyn FnMut(Source) -> Option<u32>) {
    while let Some(Newcomer { from, label, greeting }) = state.newcomers.pop_front() {
        // No number is taken if there is no place.
        let peer = if ensure_slot(state, Some(host_of(from.at)), now) { number(from) } else { None };
        match peer {
            Some(peer) => greeted(state, now, peer, Some(from), label, &greeting),
            None => state.counters.unknown_peers += 1,
        }
    }
}

/// Handles a verified HELLO.
fn greeted(state: &mut State, now: Time, peer: u32, from: Option<Source>, label: u32, greeting: &Greeting) {
    if state.peer(peer).is_none() && !make_peer(state, peer, Phase::Greeted, from.map(|from| host_of(from.at)), now) {
        state.counters.unknown_peers += 1;
        return state.release_unknown(Some(peer));
    }
    let Settings { span, labels, .. } = state.settings;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    known.note_address(label, from);
    let is_known = known.their_nonce == Some(greeting.nonce) && known.theirs == greeting.connection;
    // A peer that the local endpoint calls may call as well.
    let is_first_greeting = known.their_nonce.is_none()
        && (matches!(known.phase, Phase::Greeted | Phase::Greeting) || known.theirs == greeting.connection);
    let is_for_candidate = !is_known && !is_first_greeting;
    let (ours, own_nonce) = if !is_for_candidate {
        known.their_nonce = Some(greeting.nonce);
        known.last_received_at = now;
        known.apply_greeting(greeting, span, labels);
        let numbers = (known.ours, known.nonce);
        sealing::derive(state, peer, greeting);
        numbers
    } else {
        // The peer at this address stays until the newcomer has received the WELCOME.
        let same = known.candidate.as_ref().filter(|of| of.greeting.nonce == greeting.nonce);
        match same.map(|of| (of.ours, of.nonce)) {
            Some(numbers) => numbers,
            None => {
                let (ours, nonce) = (state.entropy.bits() as u32, state.entropy.bits());
                let session = sealing::session_with(state, Side { nonce, connection: ours }, greeting);
                if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
                    known.candidate = Some(Box::new(Candidate { ours, nonce, greeting: *greeting, session }));
                }
                (ours, nonce)
            }
        }
    };
    let welcome = Welcome { ours, own_nonce, is_for_candidate, ..Welcome::refusing(greeting) };
    state.send_control(peer, label, Control::Welcome(welcome));
}

/// Replaces a peer that has restarted by its candidate; returns `false` if there is no such candidate.
pub(super) fn promote(state: &mut State, now: Time, peer: u32, connection: u32) -> bool {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return false };
    let (host, ips) = (known.host, std::mem::take(&mut known.ips));
    let Some(candidate) = known.candidate.take_if(|of| of.ours == connection) else { return false };
    lose(state, peer, CloseReason::Restarted);
    if !make_peer(state, peer, Phase::Greeted, host, now) {
        return false;
    }
    let Settings { span, labels, .. } = state.settings;
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        let Candidate { ours, nonce, greeting, session } = *candidate;
        state.connections.remove(&known.ours);
        state.connections.insert(ours, peer);
        (known.ours, known.nonce, known.session, known.ips) = (ours, nonce, session, ips);
        (known.their_nonce, known.is_proven) = (Some(greeting.nonce), true);
        known.apply_greeting(&greeting, span, labels);
    }
    true
}

pub(super) fn on_retry(state: &mut State, arrival: &Arrival<'_>, connection: u32, nonce: u64, cookie: &Cookie) {
    let is_pending = |known: &Peer| {
        known.phase == Phase::Greeting && (known.ours, known.nonce) == (connection, nonce) && known.cookie.is_none()
    };
    let Some(peer) = arrival.peer.filter(|peer| state.peer(*peer).is_some_and(is_pending)) else {
        state.counters.unknown_peers += 1;
        return state.release_unknown(arrival.peer);
    };
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        known.cookie = Some((*cookie, arrival.label));
        known.hellos.reply_at.get_or_insert(arrival.at);
    }
    let is_short = state.peer(peer).is_some_and(|known| known.hellos.only_short);
    state.send_control(peer, arrival.label, Control::Hello { is_short });
}

/// The MAC does not match the local key, or there is no local key.
pub(super) fn refuse_key(state: &mut State, now: Time, arrival: &Arrival<'_>, greeting: &Greeting) {
    let reason = CloseReason::Key { theirs: greeting.protection, ours: state.protection() };
    report_refusal(state, now, arrival, reason);
    state.release_unknown(arrival.peer);
    reply_to(state, now, arrival, Control::Welcome(Welcome::refusing(greeting)));
}

/// A flood fills no log.
fn report_refusal(state: &mut State, now: Time, arrival: &Arrival<'_>, reason: CloseReason) {
    if now >= state.next_refusal_report_at {
        state.next_refusal_report_at = now + REFUSAL_INTERVAL;
        state.events.push_back(Event::Refused { peer: arrival.peer, from: arrival.from.map(|from| from.at), reason });
    }
}

/// A HELLO of another version gets the local version as a reply; a peer that replies with another one is lost.
pub(super) fn on_foreign(
    state: &mut State,
    now: Time,
    arrival: &Arrival<'_>,
    decode_foreign: &header::ForeignGreeting,
) {
    let ours = header::VERSION;
    if decode_foreign.hello {
        if arrival.bytes.len() < header::GREETING_BYTES {
            // The reply would be longer.
            return state.release_unknown(arrival.peer);
        }
        let (to, nonce) = (decode_foreign.connection, decode_foreign.nonce);
        state.release_unknown(arrival.peer);
        report_refusal(state, now, arrival, CloseReason::Version { theirs: decode_foreign.version, ours });
        let welcome = Welcome { to, ours: 0, nonce, own_nonce: 0, is_for_candidate: false };
        reply_to(state, now, arrival, Control::Welcome(welcome));
        return;
    }
    let is_pending = |known: &Peer| {
        known.phase == Phase::Greeting && (known.ours, known.nonce) == (decode_foreign.to, decode_foreign.nonce)
    };
    let peer = arrival.peer.or_else(|| arrival.from?.reply_of);
    match peer.filter(|peer| state.peer(*peer).is_some_and(is_pending)) {
        Some(peer) => lose(state, peer, CloseReason::Version { theirs: decode_foreign.version, ours }),
        None => state.release_unknown(arrival.peer),
    }
}

/// The sender of the refusal has the HELLO's connection number and nonce.
pub(super) fn on_refused(state: &mut State, peer: Option<u32>, connection: u32, greeting: &Greeting) {
    let is_pending =
        |known: &Peer| known.phase == Phase::Greeting && (known.ours, known.nonce) == (connection, greeting.nonce);
    let Some(peer) = peer.filter(|peer| state.peer(*peer).is_some_and(is_pending)) else {
        state.counters.unknown_peers += 1;
        return state.release_unknown(peer);
    };
    let (ours, theirs) = (state.protection(), greeting.protection);
    if let Some(reason) = mismatch(state, greeting) {
        lose(state, peer, reason);
    } else if ours > Protection::Off || theirs > Protection::Off {
        lose(state, peer, CloseReason::Key { theirs, ours });
    } else {
        state.counters.refused += 1;
    }
}

pub(super) fn on_welcome(state: &mut State, now: Time, peer: u32, greeting: &Greeting, label: u32) {
    let Settings { span, labels, .. } = state.settings;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if known.phase != Phase::Greeting || known.nonce != greeting.nonce {
        return;
    }
    known.apply_greeting(greeting, span, labels);
    known.their_nonce = Some(greeting.own_nonce);
    known.note_answer(label);
    sealing::derive(state, peer, greeting);
    begin_calibration(state, peer, label, now);
}

/// First full packets, then probes as the scheme sends them.
pub(super) fn on_calibration(state: &mut State, now: Time, peer: u32, rtt: Time) {
    let required = state.settings.calibrations.max(1) as usize;
    match state.peer(peer).map(|known| known.phase) {
        Some(Phase::Calibrating) => {}
        // Of a path that is tried.
        Some(Phase::Open) => return note_round_trip(state, now, peer, rtt),
        _ => return,
    }
    let (full, probe) = (state.longest_datagram_to(peer), state.probe_datagram());
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    known.stalled_since = None;
    if known.samples.len() < required {
        known.samples.push((rtt, known.requested_over));
        known.probe_base.datagram = probe.filter(|probe| *probe < full).unwrap_or(0);
    } else {
        known.probe_samples.push(rtt);
    }
    if !known.is_measured(required) {
        return send_request(state, peer, now);
    }
    if known.silent_labels().is_empty() {
        return open(state, peer, now);
    }
    arm_sweep(state, peer, now);
}

fn open(state: &mut State, peer: u32, now: Time) {
    let floor = state.settings.rtt_floor;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    known.calibrate(floor);
    known.phase = Phase::Open;
    known.timer_at = Time::MAX;
    let silent = known.silent_labels();
    (known.samples, known.probe_samples) = (Vec::new(), Vec::new());
    let (base_rtt, noise) = (known.base_rtt, known.noise);
    state.transports[peer as usize] = Some(resolve(&state.settings, base_rtt + noise));
    state.events.push_back(Event::Open { peer, base_rtt, noise });
    if !silent.is_empty() {
        state.events.push_back(Event::Silent { peer, labels: silent });
        sweep(state, peer, now);
    }
    open_waiting(state, peer, now);
}

/// If the base round trip changes, streams receive round trips as if it had not.
pub(super) fn note_round_trip(state: &mut State, now: Time, peer: u32, rtt: Time) {
    let window = state.settings.rtt_window;
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if !known.note_round_trip(now, rtt, window) {
        if known.begin_check(now, window) {
            let label = known.next_label();
            known.requests_sent = known.requests_sent.wrapping_add(1);
            let size = state.longest_datagram_to(peer);
            state.send_control(peer, label, Control::Probe { stream: CALIBRATION, tag: 0, size, ecn: false });
        }
        return;
    }
    let base = known.base_rtt + known.noise;
    let mut transport = resolve(&state.settings, base);
    transport.set_base_rtt_shift(BaseRttShift::new(known.initial_rtt, base));
    state.transports[peer as usize] = Some(transport);
}

pub(super) fn open_waiting(state: &mut State, peer: u32, now: Time) {
    let Some(Some(known)) = state.peers.get_mut(peer as usize) else { return };
    if state.transports[peer as usize].is_none() {
        return;
    }
    let (connection, base_rtt) = (known.theirs, known.initial_rtt);
    let mut opened = Vec::new();
    for mut outgoing in std::mem::take(&mut known.waiting) {
        outgoing.connection = connection;
        outgoing.watched = state.watches.then(|| Box::new(Watched::new(state.settings.labels, state.first.psn)));
        let stream = outgoing.stream;
        let scheme_slot = open_with_scheme(state, peer, stream, now);
        let Some(transport) = &state.transports[peer as usize] else { return };
        let sender = Sender::of_stream(transport, state.settings.rate, base_rtt, now, state.first.psn);
        let slot = state.flows.insert(Flow::new(sender, state.opened, scheme_slot, now, outgoing)) as u32;
        state.opened = state.opened.wrapping_add(1);
        opened.push((stream, slot));
    }
    if let Some(Some(known)) = state.peers.get_mut(peer as usize) {
        known.streams.extend(opened.iter().copied());
    }
    for (_, slot) in opened {
        state.offer(slot, now);
    }
}

/// Returns the connection number of a stream for its scheme.
pub(super) fn stream_key(seed: u64, peer: u32, stream: u32) -> u64 {
    Stream::keyed(seed, u64::from(peer) << 32 | u64::from(stream), "stream").bits()
}

/// Spreads the chunks of a stream over labels by these weights; `None`: the peer is unknown yet, `Some(false)`: the scheme decides
/// alone.
pub(super) fn steer(state: &mut State, peer: u32, stream: u32, weights: &[f32]) -> Option<bool> {
    let known = state.peer(peer)?;
    let paths = known.paths.len() as u32;
    // Labels of paths with fewer of them come several times.
    let tags = paths * known.paths.iter().map(Vec::len).max().unwrap_or(1) as u32;
    let labels: Vec<usize> = (0..tags).map(|tag| known.label(tag % paths, tag / paths) as usize).collect();
    let share = |label: &usize| {
        let weight = weights.get(*label).copied().unwrap_or(0.0);
        weight / labels.iter().filter(|other| *other == label).count() as f32
    };
    let by_tag: Vec<f32> = labels.iter().map(share).collect();
    let key = stream_key(state.settings.seed, peer, stream);
    Some(state.tags == TagKind::Entropy && state.balancer.scheme_mut().steer(key, &by_tag))
}

/// Returns the slot of the stream. The peer's round trip is known.
pub(super) fn open_with_scheme(state: &mut State, peer: u32, stream: u32, now: Time) -> u32 {
    let settings = &state.settings;
    let transport = state.transports[peer as usize].as_ref().unwrap_or(&state.transport);
    let known = state.peers.get(peer as usize).and_then(Option::as_ref);
    let base_rtt = known.map_or(Time::ZERO, |known| known.initial_rtt);
    let (paths, planes) = known.map_or((1, 1), |known| (known.paths.len() as u32, known.live_planes));
    let uplinks = [planes, paths / planes];
    let guided = (state.tags == TagKind::Guided).then(|| {
        let made = state.guided.entry(paths);
        made.or_insert_with(|| Arc::new(GuidedPaths::alike(paths))).clone()
    });
    let reads_rates = settings.scheme.capabilities().reads_path_rates();
    let rates = known.filter(|_| reads_rates).map_or(Vec::new(), Peer::rates);
    let mtu = settings.mtu();
    let full = mtu + header::DATA_HEADER as u64 + settings.overhead;
    let key = stream_key(settings.seed, peer, stream);
    let info = FlowInfo {
        key,
        connection: key,
        src: 0,
        dst: peer.wrapping_add(1),
        size: mtu * STREAM_PACKETS,
        packets: STREAM_PACKETS,
        bdp_packets: settings.rate.bytes_in(base_rtt).div_ceil(full).clamp(1, u64::from(settings.span)),
        base_rtt,
        probe_rtt: base_rtt,
        rate: settings.rate,
        full_packet: full as u32,
        early_packets: transport.early_packets(),
        paths: PathSpace {
            uplinks: &uplinks[usize::from(planes == 1)..],
            planes,
            guided: guided.as_ref(),
            edge: peer.wrapping_add(1),
            rates: &rates,
            ..PathSpace::default()
        },
    };
    state.balancer.open(now, &info)
}
