//! Path selection of MRC: a rotation over active entropy values, of which congested ones are skipped for a turn and broken
//! ones withdrawn until probes succeed.

mod profile;
mod rotation;

use super::{Slots, mp_ev::PathEncoding, times};
use crate::{
    Decision, Feedback, FlowInfo, HostScheme, Loss, Outgoing, Probe, State, Tag, ValueState,
    registry::{Invalid, SchemeCapabilities, TagKind},
    state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, Auto, OnceOr, RotationOr, choices, parameters};
use anabranch_units::Time;
use profile::Profile;
use rotation::{Path, Rotation, Rules};

pub(crate) const ABOUT: About = About {
    name: "mrc",
    summary: "MRC: rotates over active entropy values, skips congested ones for a turn, withdraws broken ones until probes succeed",
    source: "MRC 1.0 (OCP), as public summaries have it; arXiv 2605.04333",
    description: "A flow has a random subset of the paths, as many of every plane: active ones, in a shuffled rotation, and \
        backups. A marked or trimmed value is skipped once: the packet whose turn it is takes the next one, and the value \
        counts as good again. A value with a loss (a gap, a timeout) is withdrawn; a backup of its plane takes its place, \
        and it returns as a backup after three probes with replies. `min_active` values stay, regardless of losses. Trims at \
        the last hop, round trips and reordering change nothing.",
};

state! {
    /// Entropy values that are good, backups included.
    good_values: "values";
    /// Values that are skipped for congestion.
    skipped_values: "values";
    /// Values withdrawn after losses.
    withdrawn_values: "values";
    /// Values denied by a controller.
    denied_values: "values";
}

choices! {
    /// Kind of the entropy values.
    pub enum MrcValues {
        /// Structured: a field names the uplink of each tier (STEV), and the port where a NIC has several.
        Structured = "structured",
        /// 16 bits that switches hash.
        Hashed = "hashed",
        /// The list of guided paths of a Dragonfly or a Slim Fly, an EXPLICIT profile.
        Guided = "guided",
    }
}

choices! {
    /// Order in which the planes of a NIC take turns.
    pub enum MrcPlanes {
        /// That of the rotation: a plane with fewer good values has a smaller share where the ports do not limit it.
        Rotation = "rotation",
        /// One packet per plane in turn, a cursor for each.
        Equal = "equal",
    }
}

parameters! {
    pub struct MrcParameters {
        /// Kind of the entropy values; switches must read them so.
        values: MrcValues = MrcValues::Structured, source "MRC 1.0: STEV, UDP source ports, SRv6; `guided` is ours", Expert;
        /// Bits of the fields of an entropy value, the first tier (most significant) first; empty: as many as each tier's
        /// uplinks need. Only with `fields` or `explicit`.
        format: Vec<u64> = vec![], source "MRC 1.0: format profile", Expert;
        /// GENERATED profile: a field per tier as "width init mask min..max", such as "8 0 0x1f 0..23"; empty: AUTO, all
        /// paths.
        fields: Vec<String> = vec![], source "MRC 1.0: EV profile", Expert;
        /// EXPLICIT profile: the entropy values, such as "0x00900000"; empty: none.
        explicit: Vec<String> = vec![], source "MRC 1.0: EV profile", Expert;
        /// Values in the rotation of a flow; a multiple of the planes, at most what exists.
        active: u32 = 128, within 1..=32768, source "arXiv 2605.04333: 128 to 256 values, over 100 active";
        /// Further values that replace withdrawn ones of their plane; a multiple of the planes.
        backup: u32 = 32, within 0..=32768, source "ours: the paper gives no number";
        /// Values that are never withdrawn; auto: a quarter of the active ones.
        min_active: Auto<u32> = Auto::Auto, source "MRC 1.0: ev_min_active; a quarter in its examples", Expert;
        /// Time for which a congested value is skipped: one turn, the rest of the rotation, or a time.
        skip: OnceOr<RotationOr<Time>> = OnceOr::Once, source "MRC 1.0: one turn; summaries disagree on the rest", Reading;
        /// A packet makes all skipped values that it passes good again, not only the first.
        restores_all: bool = false, source "MRC 1.0: at most one value per packet", Reading;
        /// Order in which the planes take turns.
        planes: MrcPlanes = MrcPlanes::Rotation, source "arXiv 2605.04333; `equal` is ours", Expert;
        /// Rotations after which the order is shuffled again; 0: never.
        reshuffle: u32 = 16, source "ours; MRC 1.0: now and then", Expert;
        /// Interval of the probes of withdrawn values, in base round trips: one value per flow, in turn.
        probe_interval: f64 = 10.0, within 0.001..=1_000_000.0, source "ours; MRC 1.0 leaves it open", Expert;
        /// Least time after which a probe counts as lost; at least two base round trips.
        probe_timeout: Time = Time::from_us(100), source "ours; MRC 1.0 leaves it open", Expert;
        /// Probes in a row with replies after which a withdrawn value returns.
        probe_successes: u32 = 3, within 1..=255, source "ours; MRC 1.0: enough", Expert;
    }
}

impl SchemeCapabilities for MrcParameters {
    fn check(&self) -> Result<(), Invalid> {
        if let Auto::Value(least) = self.min_active {
            Invalid::unless(least <= self.active, "min_active", least, format!("at most `active`, {}", self.active))?;
        }
        Profile::read(self).map(drop)
    }

    fn tags(&self) -> TagKind {
        match self.values {
            MrcValues::Structured => TagKind::MultiPart,
            MrcValues::Hashed => TagKind::Entropy,
            MrcValues::Guided => TagKind::Guided,
        }
    }

    fn probe_payload(&self) -> Option<u32> {
        Some(PROBE_BYTES)
    }

    /// They are operations of the endpoint, without a connection.
    fn probes_are_queue_pairs(&self) -> bool {
        false
    }

    fn heeds_ports(&self) -> bool {
        true
    }

    fn stated_values(&self) -> Vec<(u32, Option<u32>)> {
        Profile::read(self).map(Profile::into_values).unwrap_or_default()
    }

    fn check_paths(&self, uplinks: &[u32], planes: u32) -> Result<(), Invalid> {
        match self.values {
            MrcValues::Structured => Profile::read(self)?.check(uplinks, planes),
            _ => Ok(()),
        }
    }

    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        let keys = ["format", "fields", "explicit"].map(|key| (key, "values that are hashed or guided"));
        if self.values == MrcValues::Structured { Vec::new() } else { keys.to_vec() }
    }

    fn fitted(&self, uplinks: &[u32], planes: u32) -> Option<String> {
        if self.values != MrcValues::Structured {
            return None;
        }
        let tiers: Vec<u32> =
            Some(planes).filter(|planes| *planes > 1).into_iter().chain(uplinks.iter().copied()).collect();
        let profile = Profile::read(self).ok()?.paths(&tiers, planes);
        // As many of every plane.
        let of_plane = |plane| profile.iter().flatten().filter(|path| *path % planes == plane).count() as u32;
        let least = match &profile {
            Some(_) => (0..planes).map(of_plane).min()?,
            None => uplinks.iter().try_fold(1u32, |paths, uplinks| paths.checked_mul(*uplinks))?,
        };
        let active = self.active.div_ceil(planes).min(least);
        let backup = self.backup.div_ceil(planes).min(least - active);
        let default = MrcParameters::default();
        let notes = [("active", self.active, default.active, active), ("backup", self.backup, default.backup, backup)]
            .map(|(key, set, default, used)| {
                (set != default && set != used * planes).then(|| format!("`{key}` {set} is {}", used * planes))
            });
        let notes: Vec<String> = notes.into_iter().flatten().collect();
        let of =
            if planes > 1 { format!("{least} paths in each of {planes} planes") } else { format!("{least} paths") };
        (!notes.is_empty()).then(|| format!("{}: there are {of}", notes.join(", ")))
    }
}

/// A probe carries no payload of its own.
const PROBE_BYTES: u32 = 64;
/// Hashed entropy values: UDP source ports.
const HASHED: u32 = 1 << 16;

#[derive(Debug)]
struct Probing {
    interval: Time,
    timeout: Time,
    /// Earliest time of the next one.
    next: Time,
    /// The value that is probed, and since when.
    open: Option<(u16, Time)>,
    /// Value from which the search for the next one begins.
    turn: u16,
}

#[derive(Debug)]
struct Flow {
    rotation: Rotation,
    probing: Probing,
}

/// See the module.
#[derive(Debug)]
pub struct Mrc {
    parameters: MrcParameters,
    profile: Profile,
    host_key: u64,
    flows: Slots<Flow>,
}

impl Mrc {
    /// Creates the scheme of one host.
    pub fn new(parameters: MrcParameters, seed: u64, host_key: u64) -> Self {
        let profile = Profile::read(&parameters).unwrap_or_default();
        Mrc { parameters, profile, host_key: key(seed, host_key, "mrc"), flows: Slots::new() }
    }

    /// Returns the paths of a flow, as many of every plane, active ones first, planes interleaved; and the numbers of both.
    fn paths(&self, flow: &FlowInfo<'_>, stream: &mut Stream) -> (Vec<Path>, usize) {
        let planes = flow.paths.planes.max(1);
        let (active, backup) = (self.parameters.active, self.parameters.backup);
        let per_plane = [active, backup].map(|count| count.div_ceil(planes));
        let mut drawn: Vec<Vec<u32>> = Vec::new();
        let encoding = PathEncoding::new(flow.paths.uplinks);
        let list = flow.paths.guided.filter(|_| self.parameters.values == MrcValues::Guided);
        match (self.parameters.values, encoding, list) {
            (MrcValues::Structured, Some(encoding), _) => {
                let all = self.profile.paths(flow.paths.uplinks, planes);
                for plane in 0..planes {
                    let of_plane = |path: &u32| *path % planes == plane;
                    drawn.push(match &all {
                        None => draw(stream, encoding.paths() / planes, per_plane[0] + per_plane[1])
                            .into_iter()
                            .map(|index| index * planes + plane)
                            .collect(),
                        Some(all) => {
                            let mut own: Vec<u32> = all.iter().copied().filter(of_plane).collect();
                            stream.shuffle(&mut own);
                            own
                        }
                    });
                }
            }
            (MrcValues::Hashed, ..) => drawn.push(draw(stream, HASHED, active + backup)),
            (MrcValues::Guided, _, Some(list)) => drawn.push(draw(stream, list.len(), active + backup)),
            _ => {}
        }
        let tag = |path: u32| match (list, encoding) {
            (Some(list), _) => list.tag(path),
            (None, Some(encoding)) if self.parameters.values == MrcValues::Structured => encoding.tag(path as u16),
            _ => path,
        };
        let count = drawn.len().max(1) as u32;
        let least = drawn.iter().map(Vec::len).min().unwrap_or(0);
        let active = least.min(active.div_ceil(count) as usize);
        let backup = (least - active).min(backup.div_ceil(count) as usize);
        let seat = |turn: usize| drawn.iter().enumerate().map(move |(plane, own)| (plane as u8, own[turn]));
        let paths = (0..active + backup).flat_map(seat).map(|(plane, path)| Path::new(tag(path), path, plane));
        (paths.collect(), active * drawn.len())
    }
}

/// Returns `most` different numbers below `count` in random order, all of them if there are no more.
fn draw(stream: &mut Stream, count: u32, most: u32) -> Vec<u32> {
    if most >= count {
        let mut all: Vec<u32> = (0..count).collect();
        stream.shuffle(&mut all);
        return all;
    }
    // Floyd's algorithm, with a shuffle since its order is not uniform.
    let (mut drawn, mut seen) = (Vec::with_capacity(most as usize), vec![0u64; count.div_ceil(64) as usize]);
    for last in count - most..count {
        let mut take = |number: u32| {
            let (word, bit) = (&mut seen[number as usize / 64], 1 << (number % 64));
            let is_new = *word & bit == 0;
            *word |= bit;
            is_new
        };
        let number = stream.below(u64::from(last) + 1) as u32;
        let number = if take(number) { number } else { last };
        take(number);
        drawn.push(number);
    }
    stream.shuffle(&mut drawn);
    drawn
}

impl HostScheme for Mrc {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.flows.take(slot);
        let mut stream = Stream::keyed(self.host_key, flow.key, "mrc");
        let (paths, active) = self.paths(flow, &mut stream);
        if paths.is_empty() {
            return;
        }
        let parameters = &self.parameters;
        let least = parameters.min_active.value().unwrap_or((active as u32).div_ceil(4)).min(active as u32);
        let rules = Rules {
            skip: parameters.skip,
            restores_all: parameters.restores_all,
            by_plane: parameters.planes == MrcPlanes::Equal,
            reshuffle: parameters.reshuffle,
            least,
        };
        let planes = if parameters.values == MrcValues::Structured { flow.paths.planes.max(1) } else { 1 };
        let mut rotation = Rotation::new(paths, active, planes, rules, stream);
        rotation.deny(now, flow.paths.dead);
        let probing = Probing {
            interval: times(flow.base_rtt, parameters.probe_interval).max(Time::from_ps(1)),
            timeout: parameters.probe_timeout.max(flow.probe_rtt.saturating_mul(2)),
            next: Time::ZERO,
            open: None,
            turn: 0,
        };
        self.flows.put(slot, Flow { rotation, probing });
    }

    fn close(&mut self, slot: u32) {
        self.flows.take(slot);
    }

    #[inline]
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        match flow.rotation.select(now, packet.free_ports) {
            Some(tag) => Decision::Send(tag),
            // A port that is busy becomes free; else a probe or a port must return.
            None if flow.rotation.has_usable() && packet.port_free_at > now => Decision::Hold(packet.port_free_at),
            None => Decision::Wait,
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        if feedback.ecn
            && let Some(flow) = self.flows.get(slot)
        {
            flow.rotation.on_congestion(now, feedback.tag);
        }
    }

    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        let Some(flow) = self.flows.get(slot) else { return };
        match cause {
            Loss::Trimmed => flow.rotation.on_congestion(now, tag),
            Loss::Gap => flow.withdraw(now, tag),
            Loss::TrimmedAtLastHop | Loss::Refused => {}
        }
    }

    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        if let Some(flow) = self.flows.get(slot) {
            flow.withdraw(now, tag);
        }
    }

    /// The denylist of a controller.
    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        if let Some(flow) = self.flows.get(slot) {
            flow.rotation.deny(now, dead);
        }
    }

    fn on_ports_changed(&mut self, _now: Time, slot: u32, local: u32, remote: u32) {
        if let Some(flow) = self.flows.get(slot) {
            flow.rotation.mask(local | remote);
        }
    }

    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        let flow = self.flows.get(slot)?;
        let tag = flow.next_probe(now)?;
        Some(Probe { tag, bytes: PROBE_BYTES })
    }

    fn probe_at(&self, slot: u32) -> Time {
        self.flows.peek(slot).map_or(Time::MAX, Flow::probe_at)
    }

    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, ecn: bool) -> bool {
        let Some(flow) = self.flows.get(slot) else { return false };
        let Some(value) = flow.rotation.find(tag) else { return false };
        if flow.probing.open.take_if(|open| open.0 == value).is_none() {
            return false;
        }
        let blocked = !flow.rotation.has_usable();
        if rtt == Time::MAX {
            flow.rotation.on_probe_lost(value);
        } else {
            flow.rotation.on_probe_reply(now, value, ecn, self.parameters.probe_successes);
        }
        blocked && flow.rotation.has_usable()
    }

    fn record_changes(&mut self, slot: u32) {
        if let Some(flow) = self.flows.get(slot) {
            *flow.rotation.changes() = Some(Vec::new());
        }
    }

    fn take_changes(&mut self, slot: u32, each: &mut dyn FnMut(Time, Tag, ValueState)) {
        if let Some(changes) = self.flows.get(slot).and_then(|flow| flow.rotation.changes().as_mut()) {
            changes.drain(..).for_each(|(at, tag, state)| each(at, tag, state));
        }
    }

    fn state(&self, _now: Time, slot: u32, _tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let of = |state| flow.rotation.count(state) as f64;
        Columns {
            good_values: of(ValueState::Good),
            skipped_values: of(ValueState::Skipped),
            withdrawn_values: of(ValueState::Withdrawn),
            denied_values: of(ValueState::Denied),
        }
        .into()
    }
}

impl Flow {
    fn withdraw(&mut self, now: Time, tag: Tag) {
        let had = self.rotation.withdrawn();
        self.rotation.on_loss(now, tag);
        if had == 0 {
            self.probing.next = now;
        }
    }

    fn probe_at(&self) -> Time {
        match self.probing.open {
            Some((_, sent)) => self.probing.next.max(sent.saturating_add(self.probing.timeout)),
            None if self.rotation.withdrawn() == 0 => Time::MAX,
            None => self.probing.next,
        }
    }

    /// Returns the tag of the next withdrawn value to probe, if one is due.
    fn next_probe(&mut self, now: Time) -> Option<Tag> {
        let probing = &mut self.probing;
        if let Some((value, _)) = probing.open.take_if(|(_, sent)| sent.saturating_add(probing.timeout) <= now) {
            self.rotation.on_probe_lost(value);
        }
        if probing.open.is_some() || probing.next > now {
            return None;
        }
        let value = self.rotation.next_withdrawn(probing.turn)?;
        (probing.turn, probing.open) = (value + 1, Some((value, now)));
        probing.next = now.saturating_add(probing.interval);
        Some(self.rotation.tag(value))
    }
}

#[cfg(test)]
mod tests;
