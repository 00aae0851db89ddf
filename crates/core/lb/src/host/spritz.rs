//! State machine of Spritz-Scout, Spritz-Spray and the coarse-grained mode (Spritz §IV, Algorithms 1 to 3).

use super::{
    Slots,
    guided::{Blocks, Sampler, Subset, dead_of, limited},
    spritz_scout::SpritzScoutParameters,
};
use crate::{
    Category, Decision, Feedback, FlowInfo, GuidedPaths, HostScheme, Outgoing, Sent, State, Tag, Weights,
    registry::Invalid, state::state,
};
use anabranch_random::{Stream, key};
use anabranch_settings::choices;
use anabranch_units::Time;
use smallvec::SmallVec;
use std::{collections::BTreeMap, sync::Arc};

choices! {
    /// Owner of a buffer of good paths.
    pub enum Buffer {
        /// Each flow has its own.
        Flow = "flow",
        /// All flows between two hosts share one.
        Pair = "pair",
    }
}

choices! {
    /// Flows for which a timeout blocks a path.
    pub enum BlockScope {
        /// All flows of the endpoint to the destination's switch: the list of paths, with its statistics, is that of the
        /// endpoint and the switch (§III), "if a timeout is observed for a given EV entry, it may be marked as
        /// unavailable" (§III-C), and the weights of Algorithms 1 to 3 are global.
        Endpoint = "endpoint",
        /// The flow that timed out.
        Flow = "flow",
    }
}

choices! {
    /// Source that Scout and Spray follow where they differ.
    pub enum Reading {
        /// Algorithms 1 to 3.
        Paper = "paper",
        /// The published simulator. Packets count towards the next exploration while there are good paths. Timeouts block
        /// paths of the buffer alone. Scout has one counter of ECN marks, reset when a path is removed.
        Artifact = "artifact",
    }
}

choices! {
    /// Granularity of the categories of the coarse-grained mode.
    pub enum Categories {
        /// Minimal and non-minimal.
        Minimal = "minimal",
        /// The types of Table I.
        Types = "types",
    }
}

choices! {
    /// Change of the entropy that a switch hashes within a category.
    pub enum Entropy {
        /// With every packet.
        Packet = "packet",
        /// Never within a flow.
        Flow = "flow",
    }
}

choices! {
    /// Packets whose paths a clean acknowledgement returns to the good ones.
    pub enum Acknowledged {
        /// The one that triggered it.
        Own = "own",
        /// All that it covers newly, by its bitmap: where marks are acknowledged at once they share its mark.
        Covered = "covered",
    }
}

/// Differences between the three schemes.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) name: &'static str,
    /// Scout keeps a path in the buffer while it is good; Spray removes it on use.
    pub(crate) scout: bool,
    pub(crate) coarse: Option<(Categories, Entropy)>,
    pub(crate) acknowledged: Acknowledged,
    /// Keys of all three; those that a scheme lacks have no effect.
    pub(crate) of: SpritzScoutParameters,
}

state! {
    /// Good paths in the buffer.
    good_paths: "paths";
    /// First of them; empty: there is none.
    front_tag: "";
    /// Packets since the last that explored.
    unexplored: "packets";
    /// Share of marked ACKs, a moving average.
    marked_share: "";
    /// Marks of the path chosen or reported on, since it was last good; Scout counts them.
    marks: "marks";
    /// Weight of the fastest path in draws.
    fastest_weight: "";
    /// Paths blocked after a timeout.
    blocked_paths: "paths";
}

/// Weight of a new ACK in the share of marked ACKs, and ACKs of a flow before that share takes effect. Ours: not given.
const ECN_RATE_GAIN: f64 = 1.0 / 64.0;
const ECN_RATE_AFTER: u32 = 64;
/// Weight of the minimal path while it is preferred: the artifact's weight for small flows.
const MIN_BIAS: f64 = 100.0;
/// Time without ACKs after which a pair's buffer is emptied. Ours; the artifact: one base round trip.
const BUFFER_RESET: Time = Time::from_us(100);

/// A good path: index in the list << 16 | entropy value, so in order of latency. For a list this equals the tag.
type GoodPath = u32;

/// Good paths; Scout's in order of latency.
#[derive(Debug, Default)]
struct GoodPaths {
    paths: SmallVec<[GoodPath; 9]>,
    last_ack: Time,
    marks: u32,
    flows: u32,
    /// Receiver of the pair; `None` for the buffer of one flow.
    pair: Option<u32>,
}

#[derive(Debug)]
enum Paths {
    List(Arc<GuidedPaths>),
    Categories(Vec<Category>),
}

impl GoodPaths {
    fn remove(&mut self, index: u32) {
        self.paths.retain(|entry| *entry >> 16 != index);
    }
}

impl Paths {
    #[inline]
    fn entry_of(&self, tag: Tag) -> GoodPath {
        match self {
            Paths::List(_) => tag,
            Paths::Categories(all) => {
                let category = Category::of(tag as u8);
                (all.iter().position(|c| *c == category).unwrap_or(0) as u32) << 16
            }
        }
    }

    fn entry(&self, index: u32) -> GoodPath {
        match self {
            Paths::List(list) => list.tag(index),
            Paths::Categories(_) => index << 16,
        }
    }

    fn len(&self) -> u32 {
        match self {
            Paths::List(list) => list.len().max(1),
            Paths::Categories(all) => all.len() as u32,
        }
    }
}

#[derive(Debug)]
struct Connection {
    paths: Paths,
    len: u32,
    /// If the list was limited: the indices kept.
    kept: Vec<u32>,
    sampler: Sampler,
    /// Blocked paths, unless those of the endpoint count.
    own_blocks: Blocks,
    /// Number of the blocks of the endpoint.
    shared_blocks: Option<u32>,
    good: u32,
    packets: u32,
    /// Marks per path, up to the last path marked.
    marks: Vec<u16>,
    acks: u32,
    marked: f64,
    biased: bool,
    /// Weight of path 0 without congestion; `None`: by its latency.
    min_bias: Option<f64>,
    entropy: Tag,
    /// With [`Acknowledged::Covered`].
    sent: Option<Box<Sent>>,
}

#[derive(Debug)]
pub struct Spritz {
    rules: Rules,
    host_key: u64,
    flows: Slots<Connection>,
    buffers: Vec<GoodPaths>,
    free: Vec<u32>,
    /// Buffer of each receiver that has one.
    pairs: BTreeMap<u32, u32>,
    /// Blocked paths of each list of the endpoint.
    blocks: Vec<Blocks>,
    /// Number in `blocks` by the switch of the receiver and, where its list is its own, the receiver.
    lists: BTreeMap<(u32, Option<u32>), u32>,
}

/// Returns the categories of a list, by latency, each with the weight of its paths.
fn categories(list: &GuidedPaths, kind: Categories, weights: Weights) -> Vec<(Category, f64)> {
    let mut found: Vec<(Category, f64)> = Vec::new();
    let Some(longest) = list.steps().last() else { return vec![(Category::Default, 1.0)] };
    let mut begin = 0;
    for step in list.steps() {
        for index in begin..step.end {
            let Some(path) = list.path(index) else { continue };
            let category = match kind {
                Categories::Types => Category::Kind(path.kind),
                Categories::Minimal if path.minimal => Category::Minimal,
                Categories::Minimal => Category::NonMinimal,
            };
            let weight = weights.weight(step, longest);
            match found.iter_mut().find(|(c, _)| *c == category) {
                Some((_, sum)) => *sum += weight,
                None => found.push((category, weight)),
            }
        }
        begin = step.end;
    }
    found
}

pub(crate) fn check(buffer_size: u32, ecn_rate: f64) -> Result<(), Invalid> {
    Invalid::unless((1..=4096).contains(&buffer_size), "buffer_size", buffer_size, "from 1 to 4096")?;
    Invalid::unless((0.0..=1.0).contains(&ecn_rate), "ecn_rate", ecn_rate, "a share from 0 to 1")
}

impl Spritz {
    pub fn new(parameters: impl Into<Rules>, seed: u64, host_key: u64) -> Self {
        let rules = parameters.into();
        Spritz {
            host_key: key(seed, host_key, rules.name),
            rules,
            flows: Slots::new(),
            buffers: Vec::new(),
            free: Vec::new(),
            pairs: BTreeMap::new(),
            blocks: Vec::new(),
            lists: BTreeMap::new(),
        }
    }

    /// Returns the number of the endpoint's blocks for the list of a flow; `None` if the flow has its own.
    fn blocks_of(&mut self, flow: &FlowInfo<'_>) -> Option<u32> {
        if self.rules.of.block_scope == BlockScope::Flow {
            return None;
        }
        let limited = self.rules.of.max_paths > 0 && self.rules.of.subset == Subset::Random;
        let next = self.blocks.len() as u32;
        let number = *self.lists.entry((flow.paths.edge, limited.then_some(flow.dst))).or_insert(next);
        if number == next {
            self.blocks.push(Blocks::default());
        }
        Some(number)
    }

    fn buffer_of(&mut self, now: Time, dst: u32) -> u32 {
        let pair = self.rules.of.buffer == Buffer::Pair;
        if pair && let Some(&number) = self.pairs.get(&dst) {
            let buffer = &mut self.buffers[number as usize];
            if now >= buffer.last_ack + BUFFER_RESET {
                (buffer.marks, buffer.last_ack) = (0, now);
                buffer.paths.clear();
            }
            buffer.flows += 1;
            return number;
        }
        let fresh = GoodPaths { last_ack: now, flows: 1, pair: pair.then_some(dst), ..GoodPaths::default() };
        let number = match self.free.pop() {
            Some(number) => {
                self.buffers[number as usize] = fresh;
                number
            }
            None => {
                self.buffers.push(fresh);
                self.buffers.len() as u32 - 1
            }
        };
        if pair {
            self.pairs.insert(dst, number);
        }
        number
    }
}

impl HostScheme for Spritz {
    fn open(&mut self, now: Time, slot: u32, flow: &FlowInfo<'_>) {
        self.close(slot);
        let rules = self.rules.clone();
        let empty = Arc::new(GuidedPaths::default());
        let all = flow.paths.guided.unwrap_or(&empty);
        // Pairs that share a buffer must share the subset too.
        let mut cut = Stream::keyed(self.host_key, u64::from(flow.dst), "subset");
        let (list, kept) = limited(all, rules.of.max_paths, rules.of.subset, &mut cut);
        let mut stream = Stream::keyed(self.host_key, flow.key, rules.name);
        let small = flow.size < rules.of.small_flow.0;
        let weights = if small { Weights::Uniform } else { rules.of.weights };
        let entropy = stream.bits() as Tag & 0xff_ffff;
        let (paths, mut sampler) = match rules.coarse {
            None => {
                let sampler = Sampler::of(&list, weights, rules.of.block_interval.value(), stream);
                (Paths::List(list), sampler)
            }
            Some((kind, _)) => {
                let all = categories(&list, kind, weights);
                let runs = all.iter().zip(1..).map(|((_, weight), end)| (end, *weight));
                let sampler = Sampler::new(runs, rules.of.block_interval.value(), stream);
                (Paths::Categories(all.iter().map(|(category, _)| *category).collect()), sampler)
            }
        };
        let min_bias = small.then_some(MIN_BIAS);
        sampler.bias(min_bias);
        if rules.coarse.is_none() {
            sampler.set_dead(dead_of(&kept, flow.paths.dead));
        }
        let good = self.buffer_of(now, flow.dst);
        let shared_blocks = self.blocks_of(flow);
        let connection = Connection {
            len: paths.len(),
            paths,
            kept,
            sampler,
            own_blocks: Blocks::default(),
            shared_blocks,
            good,
            packets: 0,
            marks: Vec::new(),
            acks: 0,
            marked: 0.0,
            biased: false,
            min_bias,
            entropy,
            sent: (rules.acknowledged == Acknowledged::Covered).then(Box::default),
        };
        self.flows.put(slot, connection);
    }

    fn close(&mut self, slot: u32) {
        let Some(connection) = self.flows.take(slot) else { return };
        let buffer = &mut self.buffers[connection.good as usize];
        buffer.flows -= 1;
        // A pair's buffer outlives its flows.
        if buffer.flows == 0 && buffer.pair.is_none() {
            self.free.push(connection.good);
        }
    }

    /// Algorithm 1.
    #[inline]
    fn select(&mut self, now: Time, slot: u32, packet: &Outgoing) -> Decision {
        let Some(flow) = self.flows.get(slot) else { return Decision::Send(0) };
        let good = &mut self.buffers[flow.good as usize];
        let blocks = match flow.shared_blocks {
            Some(number) => &mut self.blocks[number as usize],
            None => &mut flow.own_blocks,
        };
        let threshold = self.rules.of.explore_threshold;
        let entry = if threshold > 0 && flow.packets > threshold {
            flow.packets = 0;
            flow.paths.entry(flow.sampler.draw(blocks, now))
        } else {
            if self.rules.of.reading == Reading::Paper || !good.paths.is_empty() {
                flow.packets += 1;
            }
            match good.paths.first().copied() {
                None => flow.paths.entry(flow.sampler.draw(blocks, now)),
                Some(front) => {
                    if !self.rules.scout {
                        good.paths.remove(0);
                    }
                    front
                }
            }
        };
        if let Some(sent) = &mut flow.sent {
            sent.note(packet.psn, entry);
        }
        Decision::Send(match &flow.paths {
            Paths::List(_) => entry,
            Paths::Categories(all) => {
                if matches!(self.rules.coarse, Some((_, Entropy::Packet))) {
                    flow.entropy = flow.sampler.stream.bits() as Tag & 0xff_ffff;
                }
                let code = all.get(entry as usize >> 16).map_or(0, |category| category.code());
                flow.entropy << 8 | Tag::from(code)
            }
        })
    }

    /// Algorithms 2 and 3.
    #[inline]
    fn on_ack(&mut self, now: Time, slot: u32, feedback: &Feedback) {
        let Some(flow) = self.flows.get(slot) else { return };
        let (rules, good) = (&self.rules, &mut self.buffers[flow.good as usize]);
        good.last_ack = now;
        let entry = flow.paths.entry_of(feedback.tag);
        if entry >> 16 >= flow.len {
            return;
        }
        if let Some(sent) = &mut flow.sent {
            let room = rules.of.buffer_size as usize;
            sent.covered(feedback, |entry| {
                if !feedback.ecn && good.paths.len() < room {
                    good.paths.push(entry);
                }
            });
        } else if !feedback.ecn {
            if good.paths.len() < rules.of.buffer_size as usize {
                if !rules.scout {
                    good.paths.push(entry);
                } else if let Err(place) = good.paths.binary_search(&entry) {
                    good.paths.insert(place, entry);
                }
            }
        } else if rules.scout && flow.mark(rules, good, entry) {
            good.remove(entry >> 16);
        }
        flow.note_ack(rules, feedback.ecn);
    }

    fn on_nack(&mut self, _now: Time, slot: u32, tag: Tag) {
        let Some(flow) = self.flows.get(slot) else { return };
        if self.rules.scout {
            let index = flow.paths.entry_of(tag) >> 16;
            flow.remove(&mut self.buffers[flow.good as usize], index);
        }
    }

    fn on_timeout(&mut self, now: Time, slot: u32, tag: Tag) {
        let Some(flow) = self.flows.get(slot) else { return };
        let entry = flow.paths.entry_of(tag);
        let (index, good) = (entry >> 16, &mut self.buffers[flow.good as usize]);
        if self.rules.of.reading == Reading::Paper || good.paths.contains(&entry) {
            let blocks = match flow.shared_blocks {
                Some(number) => &mut self.blocks[number as usize],
                None => &mut flow.own_blocks,
            };
            flow.sampler.block(blocks, now, index);
        }
        if self.rules.scout {
            flow.remove(good, index);
        }
    }

    fn on_paths_changed(&mut self, _now: Time, slot: u32, dead: &[bool]) {
        let Some(flow) = self.flows.get(slot) else { return };
        if let Paths::List(_) = flow.paths {
            let dead = dead_of(&flow.kept, dead);
            let good = &mut self.buffers[flow.good as usize];
            good.paths.retain(|entry| !dead.get(*entry as usize >> 16).copied().unwrap_or(false));
            flow.sampler.set_dead(dead);
        }
    }

    fn state(&self, _now: Time, slot: u32, tag: Option<Tag>) -> State {
        let Some(flow) = self.flows.peek(slot) else { return State::default() };
        let good = &self.buffers[flow.good as usize];
        let blocks = flow.shared_blocks.map_or(&flow.own_blocks, |number| &self.blocks[number as usize]);
        let marks = |tag| flow.marks.get(flow.paths.entry_of(tag) as usize >> 16).copied().unwrap_or(0).into();
        Columns {
            good_paths: good.paths.len() as f64,
            front_tag: good.paths.first().map_or(f64::NAN, |front| f64::from(*front)),
            unexplored: flow.packets.into(),
            marked_share: flow.marked,
            marks: tag.map_or(f64::NAN, marks),
            fastest_weight: flow.sampler.weight(0),
            blocked_paths: blocks.len() as f64,
        }
        .into()
    }
}

impl Connection {
    fn mark(&mut self, rules: &Rules, good: &mut GoodPaths, entry: GoodPath) -> bool {
        if rules.scout && rules.of.reading == Reading::Artifact {
            good.marks += 1;
            let over = good.marks > rules.of.ecn_threshold && good.paths.contains(&entry);
            if over {
                good.marks = 0;
            }
            return over;
        }
        let index = entry as usize >> 16;
        if self.marks.len() <= index {
            self.marks.resize(index + 1, 0);
        }
        let marks = &mut self.marks[index];
        *marks = marks.saturating_add(1);
        let over = u32::from(*marks) > rules.of.ecn_threshold;
        if over {
            *marks = 0;
        }
        over
    }

    fn remove(&mut self, good: &mut GoodPaths, index: u32) {
        if let Some(marks) = self.marks.get_mut(index as usize) {
            *marks = 0;
        }
        good.remove(index);
    }

    #[inline]
    fn note_ack(&mut self, rules: &Rules, ecn: bool) {
        self.acks = self.acks.saturating_add(1);
        self.marked += ECN_RATE_GAIN * (f64::from(u8::from(ecn)) - self.marked);
        let congested = self.acks >= ECN_RATE_AFTER && self.marked > rules.of.ecn_rate;
        if congested != self.biased {
            self.biased = congested;
            self.sampler.bias(if congested { Some(MIN_BIAS) } else { self.min_bias });
        }
    }
}
