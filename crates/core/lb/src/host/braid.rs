//! `braid`: deterministic shares of paths that are learnt from marks, relative to the marks of the whole flow. Where early
//! packets count as lost a flow keeps a path instead. Ours; docs/schemes/braid.md, docs/evidence/matrix.md.

mod spread;
mod sticky;

use super::{Slots, mp_ev::PathEncoding};
use crate::{
    Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, Loss, Outgoing, Probe, State, Tag,
    registry::{Invalid, SchemeCapabilities, TagKind},
    state::{ps, state},
};
use anabranch_random::{Stream, key};
use anabranch_settings::{About, choices, parameters};
use anabranch_units::{Rate, Time};
use spread::{Path, Rules, Spread};
use std::collections::BTreeMap;
use sticky::{Shared, Sticky};

pub(crate) const ABOUT: About = About {
    name: "braid",
    summary: "deterministic shares of paths, learnt from marks relative to the flow's own; one path at a time where order matters",
    source: "ours",
    description: "Packets take turns over all paths of a flow; each path has a share in (0, 1] of a full turn, times its prior. A mark \
        lowers the share of its path by how much it exceeds the flow's mean, once per round trip; shares grow back. Paths that came \
        back clean are used again at once while others are marked. A path whose packets stay without a reply is blocked and probed. \
        Planes stay equal; one whose port returns waits three round trips, twice as long each further time. \
        Where the receiver takes fewer than `early` packets early, a flow keeps the path with the least open bytes of its host, and \
        moves between flights.",
};

state! {
    /// Share of a turn of the path chosen or reported on; with a path kept, none.
    share: "";
    /// Mean of the flow's marks over about 16 acknowledgements.
    mark_share: "";
    /// Smoothed round trip.
    round_trip_ps: "ps";
    /// Paths that are blocked since they gave no reply.
    blocked_paths: "paths";
}

choices! {
    /// Paths that entropy values name.
    pub enum BraidValues {
        /// An uplink per tier.
        Structured = "structured",
        /// The paths of a guided list.
        Guided = "guided",
    }
}

choices! {
    /// Whether the capacities of paths are known.
    pub enum BraidCapacities {
        /// All count as equal.
        Unknown = "unknown",
        /// As the topology has them, and as degradations that were detected leave them.
        Known = "known",
    }
}

parameters! {
    pub struct BraidParameters {
        /// Paths that entropy values name; switches must read them so.
        values: BraidValues = BraidValues::Structured, source "ours", Expert;
        /// Maximum paths of a flow: all shortest ones first, then random ones.
        active: u32 = 256, within 1..=4096, source "ours: as many as MRC's largest", Expert;
        /// Capacities of paths: where packets are spread, known ones are shares of turns, on top of which shares are learnt.
        capacities: BraidCapacities = BraidCapacities::Unknown, source "ours", Expert;
        /// Share of the packets on the shortest paths of a guided list that has others.
        shortest: f64 = 0.35, within 0.0..=1.0, source "ours", Expert;
        /// Fall of a share for a mark beyond the flow's own share of marks, 0: shares stay.
        fall: f64 = 0.5, within 0.0..=1.0, source "ours", Expert;
        /// Growth of a share for an acknowledgement without a mark, less after falls.
        growth: f64 = 0.1, within 0.0..=1.0, source "ours", Expert;
        /// Round trips in which a share grows back by itself, more after falls.
        recovery: f64 = 8.0, within 1.0..=1_000_000.0, source "ours", Expert;
        /// Weight of a trim, as a mark.
        trim: f64 = 0.75, within 0.0..=1.0, source "ours: its queue may have been filled by a burst", Expert;
        /// Factor of a share for a timeout on a path that still replies.
        timeout: f64 = 0.25, within 0.0..=1.0, source "ours", Expert;
        /// Clean tags that are kept for use at once; 0: none.
        reuse: u32 = 8, within 0..=64, source "REPS: a buffer of 8", Expert;
        /// Packets on such tags before one takes its turn.
        reuse_run: u32 = 44, within 1..=65535, source "ours", Expert;
        /// Round trips without a reply after which a path is blocked; 0: never.
        silence: f64 = 3.0, within 0.0..=1_000_000.0, source "ours", Expert;
        /// Round trips for which it is blocked at first; twice as long each further time.
        block: f64 = 64.0, within 1.0..=1_000_000.0, source "ours", Expert;
        /// Early packets that a receiver must take without a NACK for packets to be spread; 0: they always are.
        early: u32 = 8, source "ours", Expert;
        /// Round trip, in base round trips, above which a flow that keeps its path may move.
        move_above: f64 = 2.5, within 1.0..=1_000_000.0, source "ours; Hopper's th_cong", Expert;
        /// Round trip of the other path, as a share of its own, below which it moves.
        move_below: f64 = 0.6, within 0.0..=1.0, source "ours; Hopper's delta_rtt is 0.8", Expert;
    }
}

impl SchemeCapabilities for BraidParameters {
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn tags(&self) -> TagKind {
        match self.values {
            BraidValues::Structured => TagKind::MultiPart,
            BraidValues::Guided => TagKind::Guided,
        }
    }

    fn probe_payload(&self) -> Option<u32> {
        Some(PROBE_BYTES)
    }

    fn probes_are_queue_pairs(&self) -> bool {
        false
    }

    fn heeds_ports(&self) -> bool {
        true
    }

    fn reads_path_rates(&self) -> bool {
        self.capacities == BraidCapacities::Known
    }
}

/// A probe carries no payload of its own.
const PROBE_BYTES: u32 = 64;

#[derive(Debug)]
enum Way {
    Spread(Spread),
    Sticky(Sticky),
}

/// See the module.
#[derive(Debug)]
pub struct Braid {
    parameters: BraidParameters,
    rules: Rules,
    host_key: u64,
    flows: Slots<Way>,
    /// What flows that keep their path share, by the switch of their receiver for guided paths.
    shared: BTreeMap<u32, Shared>,
}

impl Braid {
    /// Creates the scheme of one host.
    pub fn new(parameters: BraidParameters, seed: u64, host_key: u64) -> Self {
        let rules = Rules::new(&parameters);
        Braid {
            parameters,
            rules,
            host_key: key(seed, host_key, "braid"),
            flows: Slots::new(),
            shared: BTreeMap::new(),
        }
    }

    /// Returns the paths of a flow in the order of their numbers, and of how many planes they are.
    fn paths(&self, flow: &FlowInfo<'_>, stream: &mut Stream) -> (Vec<Path>, u32) {
        let most = self.parameters.active;
        if self.parameters.values == BraidValues::Guided {
            let Some(list) = flow.paths.guided else { return (Vec::new(), 1) };
            let is_short = |index| list.path(index).is_some_and(|path| path.minimal);
            let (mut kept, mut others): (Vec<u32>, Vec<u32>) = (0..list.len()).partition(|index| is_short(*index));
            kept.truncate(most as usize);
            stream.shuffle(&mut others);
            others.truncate(most as usize - kept.len());
            let shortest = kept.len();
            kept.append(&mut others);
            let group = |place: usize| u8::from(place >= shortest);
            let mut paths: Vec<Path> = kept
                .iter()
                .enumerate()
                .map(|(place, &index)| Path::new(list.tag(index), index, group(place)))
                .collect();
            paths.sort_unstable_by_key(Path::number);
            return (paths, 1);
        }
        let Some(encoding) = PathEncoding::new(flow.paths.uplinks) else { return (Vec::new(), 1) };
        let planes = flow.paths.planes.max(1);
        let mut numbers: Vec<u32> = (0..encoding.paths()).collect();
        if numbers.len() > most as usize {
            stream.shuffle(&mut numbers);
            // As many of every plane.
            let mut room = vec![(most / planes).max(1); planes as usize];
            numbers.retain(|number| {
                let left = &mut room[(number % planes) as usize];
                *left > 0 && std::mem::replace(left, *left - 1) > 0
            });
            numbers.sort_unstable();
        }
        let group = |number: u32| if planes > 1 { (number % planes) as u8 } else { 0 };
        (
            numbers.into_iter().map(|number| Path::new(encoding.tag(number as u16), number, group(number))).collect(),
            planes,
        )
    }

    fn spread(&mut self, slot: u32) -> Option<&mut Spread> {
        match self.flows.get(slot)? {
            Way::Spread(spread) => Some(spread),
            Way::Sticky(_) => None,
        }
    }
}

impl HostScheme for Braid {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.close(slot);
        let mut stream = Stream::keyed(self.host_key, flow.key, "braid");
        let (paths, planes) = self.paths(flow, &mut stream);
        if paths.is_empty() {
            return;
        }
        let is_guided = self.parameters.values == BraidValues::Guided;
        let way = if flow.early_packets >= u64::from(self.parameters.early) {
            let priors = match paths.iter().filter(|path| path.group() == 0).count() {
                short if is_guided && short > 0 && short < paths.len() => {
                    vec![self.parameters.shortest as f32, 1.0 - self.parameters.shortest as f32]
                }
                _ => vec![1.0; if is_guided { 2 } else { planes as usize }],
            };
            Way::Spread(Spread::new(paths, priors, flow, self.rules, stream))
        } else {
            let shared = self.shared.entry(if is_guided { flow.paths.edge } else { 0 }).or_default();
            Way::Sticky(Sticky::new(now, paths, flow, &self.parameters, shared, stream))
        };
        self.flows.put(slot, way);
        self.on_paths_changed(now, slot, flow.paths.dead);
        self.on_rates_changed(now, slot, flow.paths.rates);
    }

    fn close(&mut self, slot: u32) {
        if let Some(Way::Sticky(mut sticky)) = self.flows.take(slot)
            && let Some(shared) = self.shared.get_mut(&sticky.shared())
        {
            sticky.leave(shared);
        }
    }

    #[inline]
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        match self.flows.get(slot) {
            None => Decision::Send(0),
            Some(Way::Spread(spread)) => match spread.select(now, packet) {
                Some(tag) => Decision::Send(tag),
                None if packet.port_free_at > now && spread.has_usable() => Decision::Hold(packet.port_free_at),
                None => Decision::Wait,
            },
            Some(Way::Sticky(sticky)) => {
                let shared = self.shared.entry(sticky.shared()).or_default();
                sticky.select(now, packet, shared)
            }
        }
    }

    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        match self.flows.get(slot) {
            Some(Way::Spread(spread)) => spread.on_ack(now, feedback),
            Some(Way::Sticky(sticky)) => {
                let shared = self.shared.entry(sticky.shared()).or_default();
                sticky.on_ack(now, feedback, shared);
            }
            None => {}
        }
    }

    fn on_loss(&mut self, now: Time, slot: u32, tag: Tag, cause: Loss) {
        if let Some(spread) = self.spread(slot) {
            match cause {
                Loss::Trimmed => spread.on_trim(now, tag),
                // The receiver has replied, but not about this packet: its path may be broken.
                Loss::Gap | Loss::TrimmedAtLastHop | Loss::Refused => {}
            }
        }
    }

    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        match self.flows.get(slot) {
            Some(Way::Spread(spread)) => spread.on_timeout(now, tag),
            Some(Way::Sticky(sticky)) => sticky.on_timeout(),
            None => {}
        }
    }

    fn on_paths_changed(&mut self, now: Time, slot: u32, dead: &[bool]) {
        match self.flows.get(slot) {
            Some(Way::Spread(spread)) => spread.set_dead(now, dead),
            Some(Way::Sticky(sticky)) => sticky.set_dead(dead),
            None => {}
        }
    }

    fn on_rates_changed(&mut self, _now: Time, slot: u32, rates: &[Rate]) {
        if let Some(spread) = self.spread(slot) {
            spread.set_capacities(rates);
        }
    }

    fn on_ports_changed(&mut self, now: Time, slot: u32, local: u32, remote: u32) {
        match self.flows.get(slot) {
            Some(Way::Spread(spread)) => spread.mask(now, local | remote),
            Some(Way::Sticky(sticky)) => sticky.mask(local | remote),
            None => {}
        }
    }

    fn poll_probe(&mut self, now: Time, slot: u32) -> Option<Probe> {
        let tag = self.spread(slot)?.poll_probe(now)?;
        Some(Probe { tag, bytes: PROBE_BYTES })
    }

    fn probe_at(&self, slot: u32) -> Time {
        match self.flows.peek(slot) {
            Some(Way::Spread(spread)) => spread.probe_at(),
            _ => Time::MAX,
        }
    }

    fn on_probe_reply(&mut self, now: Time, slot: u32, tag: Tag, rtt: Time, _ecn: bool) -> bool {
        self.spread(slot).is_some_and(|spread| rtt < Time::MAX && spread.on_probe_reply(now, tag))
    }

    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        match self.flows.peek(slot) {
            Some(Way::Spread(spread)) => spread.state(tag),
            Some(Way::Sticky(sticky)) => {
                let (share, mark_share, blocked_paths) = (f64::NAN, f64::NAN, f64::NAN);
                Columns { share, mark_share, round_trip_ps: ps(sticky.round_trip()), blocked_paths }.into()
            }
            None => State::default(),
        }
    }
}

/// Returns the number of the path in a tag.
fn number_of(encoding: Option<&PathEncoding>, tag: Tag) -> Option<u32> {
    match encoding {
        Some(encoding) => encoding.path(tag).map(u32::from),
        None => Some(GuidedPaths::index(tag)),
    }
}

#[cfg(test)]
mod tests;
