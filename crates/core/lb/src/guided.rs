//! Guided paths of Dragonflies and Slim Flies (Spritz §III), and the view of a switch there.

use anabranch_settings::choices;
use anabranch_units::Time;

/// Topology with guided paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuidedTopology {
    /// Groups of fully meshed switches; one global link between two groups counts.
    Dragonfly,
    /// Any two switches are at most two hops apart; or three, in a graph from a file. Two hops are free.
    SlimFly,
}

/// A path of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuidedPath {
    /// The entropy value: EV1, the port of the first switch, in the upper 8 bits, EV2, of the second, in the lower.
    pub ev: u16,
    /// Its type, an index into the path types of the topology (Spritz Table I).
    pub kind: u8,
    /// `true` if it is minimal.
    pub minimal: bool,
    /// Latency with one wire time per hop, as in Spritz' Table I.
    pub latency: Time,
    /// Propagation delay alone.
    pub propagation: Time,
    /// Links between switches.
    pub hops: u8,
}

/// Paths of equal latency in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index after the last of them.
    pub end: u32,
    /// Latency of each path.
    pub latency: Time,
    /// Propagation of each path.
    pub propagation: Time,
    /// Links between switches of each path.
    pub hops: u8,
}

/// An endpoint's list of paths to one switch, fastest first (Spritz §III-C): three bytes per path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidedPaths {
    evs: Vec<u16>,
    /// Path type, with [`MINIMAL`] for minimal paths.
    kinds: Vec<u8>,
    steps: Vec<Step>,
}

const MINIMAL: u8 = 0x80;

/// A category of paths that a tag of the coarse-grained mode selects (Spritz §III-D): a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The default table; an empty VLAN tag.
    Default,
    /// All minimal paths.
    Minimal,
    /// All non-minimal paths.
    NonMinimal,
    /// The paths of one type of Spritz' Table I.
    Kind(u8),
}

impl Category {
    /// Returns its encoding in the low byte of a path tag.
    pub fn code(self) -> u8 {
        match self {
            Category::Default => 0,
            Category::Minimal => 1,
            Category::NonMinimal => 2,
            Category::Kind(kind) => kind.saturating_add(3),
        }
    }

    /// Returns the category in the low byte of a path tag.
    pub fn of(code: u8) -> Self {
        match code {
            0 => Category::Default,
            1 => Category::Minimal,
            2 => Category::NonMinimal,
            kind => Category::Kind(kind - 3),
        }
    }
}

impl GuidedPaths {
    /// The empty list.
    pub const EMPTY: GuidedPaths = GuidedPaths { evs: Vec::new(), kinds: Vec::new(), steps: Vec::new() };

    /// Creates the list of these paths, which must be in order of latency.
    pub fn new(paths: impl IntoIterator<Item = GuidedPath>) -> Self {
        let mut list = GuidedPaths::default();
        for path in paths {
            list.evs.push(path.ev);
            list.kinds.push(path.kind & !MINIMAL | if path.minimal { MINIMAL } else { 0 });
            let end = list.evs.len() as u32;
            let GuidedPath { latency, propagation, hops, .. } = path;
            match list.steps.last_mut() {
                Some(last) if (last.latency, last.propagation, last.hops) == (latency, propagation, hops) => {
                    last.end = end;
                }
                _ => list.steps.push(Step { end, latency, propagation, hops }),
            }
        }
        list.steps.shrink_to_fit();
        list
    }

    /// Returns the number of paths.
    #[inline]
    pub fn len(&self) -> u32 {
        self.evs.len() as u32
    }

    /// Returns `true` if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.evs.is_empty()
    }

    /// Returns the tag of path `index`: upper half its index, which no switch reads, lower half its entropy value.
    #[inline]
    pub fn tag(&self, index: u32) -> crate::Tag {
        index << 16 | u32::from(self.ev(index))
    }

    /// Returns the index in a tag.
    #[inline]
    pub fn index(tag: crate::Tag) -> u32 {
        tag >> 16
    }

    /// Creates the list of `paths` paths of which nothing is known: minimal and equally long.
    pub fn alike(paths: u32) -> Self {
        let us = Time::from_us(1);
        let path = |path| GuidedPath { ev: path as u16, kind: 0, minimal: true, latency: us, propagation: us, hops: 1 };
        GuidedPaths::new((0..paths).map(path))
    }

    /// Returns the entropy value of path `index`; 0 if there is no such path.
    #[inline]
    pub fn ev(&self, index: u32) -> u16 {
        self.evs.get(index as usize).copied().unwrap_or(0)
    }

    /// Returns the paths in runs of equal latency.
    #[inline]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns path `index`, if it exists.
    pub fn path(&self, index: u32) -> Option<GuidedPath> {
        let step = self.steps.iter().find(|step| index < step.end)?;
        let kind = self.kinds[index as usize];
        Some(GuidedPath {
            ev: self.ev(index),
            kind: kind & !MINIMAL,
            minimal: kind & MINIMAL != 0,
            latency: step.latency,
            propagation: step.propagation,
            hops: step.hops,
        })
    }

    /// Returns the delay of path `index` beyond the fastest, with `switch_latency` per switch; `None` if it is missing.
    pub fn detour(&self, index: u32, switch_latency: Time) -> Option<Time> {
        let time = |step: &Step| step.latency + switch_latency * u64::from(step.hops);
        let step = self.steps.iter().find(|step| index < step.end)?;
        Some(time(step).saturating_sub(time(self.steps.first()?)))
    }

    /// Returns `true` if path `index` is in a category; the default table has no paths.
    pub fn belongs(&self, index: u32, category: Category) -> bool {
        let kind = self.kinds.get(index as usize).copied().unwrap_or(0);
        match category {
            Category::Default => false,
            Category::Minimal => kind & MINIMAL != 0,
            Category::NonMinimal => kind & MINIMAL == 0,
            Category::Kind(wanted) => kind & !MINIMAL == wanted,
        }
    }

    /// Returns the list of the paths at these ascending indices.
    #[must_use]
    pub fn subset(&self, indices: &[u32]) -> Self {
        GuidedPaths::new(indices.iter().filter_map(|&index| self.path(index)))
    }
}

choices! {
    /// Weights of the paths of a list in random draws.
    pub enum Weights {
        /// Equal: the (u) variants of Spritz' study.
        Uniform = "uniform",
        /// Longest latency over its own (Spritz, equation 1), times a factor for all but the longest: the (w) variants.
        Latency = "latency",
        /// As `latency`, from propagation alone, as in the artifact of Spritz.
        Propagation = "propagation",
    }
}

/// Factor of every weight that is not 1 (Spritz §V-A).
const WEIGHT_SCALE: f64 = 3.0;

impl Weights {
    /// Returns the weight of the paths of `step` in a list whose slowest step is `longest`.
    #[inline]
    pub fn weight(&self, step: &Step, longest: &Step) -> f64 {
        let (own, most) = match self {
            Weights::Uniform => return 1.0,
            Weights::Latency => (step.latency, longest.latency),
            Weights::Propagation => (step.propagation, longest.propagation),
        };
        if own >= most || own == Time::ZERO { 1.0 } else { most.ps() as f64 / own.ps() as f64 * WEIGHT_SCALE }
    }

    /// Returns the path that a number in [0, 1) selects.
    #[inline]
    pub fn pick(&self, paths: &GuidedPaths, unit: f64) -> u32 {
        let steps = paths.steps();
        let Some(longest) = steps.last() else { return 0 };
        if *self == Weights::Uniform {
            return ((unit * f64::from(longest.end)) as u32).min(longest.end - 1);
        }
        let (mut total, mut begin) = (0.0, 0);
        for step in steps {
            total += self.weight(step, longest) * f64::from(step.end - begin);
            begin = step.end;
        }
        let (mut rest, mut begin) = (unit * total, 0);
        for step in steps {
            let weight = self.weight(step, longest);
            let all = weight * f64::from(step.end - begin);
            if rest < all {
                return (begin + (rest / weight) as u32).min(step.end - 1);
            }
            rest -= all;
            begin = step.end;
        }
        longest.end - 1
    }
}

/// View of a Dragonfly or Slim Fly switch for a data packet before its last switch. Ports are those to other switches.
pub trait GuidedSwitch {
    /// Returns the topology.
    fn topology(&self) -> GuidedTopology;
    /// Returns the number of this switch.
    fn here(&self) -> u32;
    /// Returns the switch of the packet's receiver.
    fn destination(&self) -> u32;
    /// Returns the number of ports of a switch.
    fn ports(&self, switch: u32) -> u32;
    /// Returns the switch at the other side of a port.
    fn peer(&self, switch: u32, port: u32) -> u32;
    /// Returns `true` if the link of a port is local.
    fn is_local(&self, switch: u32, port: u32) -> bool;
    /// Returns the group of a switch.
    fn group(&self, switch: u32) -> u32;
    /// Returns the default port of a switch towards the destination; the switch must not be the destination.
    fn minimal(&self, switch: u32) -> u32;
    /// Returns the port that an entropy value selects at this switch, for a packet that has passed `hop` links, the
    /// last of them local or not (Spritz §III-A and B); the default port if the switch has no role.
    fn named(&self, hop: u8, over_local: bool, ev: u16) -> u32;
    /// Returns the type of a path with these numbers of local and global links ([`GuidedPath::kind`]); `None` if no path has it.
    fn path_type(&self, local: u8, global: u8) -> Option<u8>;
    /// Returns `true` unless a port of this switch, or the default path behind it, is known to be dead.
    fn is_live(&self, _port: u32) -> bool {
        true
    }
    /// Returns the bytes queued at a port of this switch in the classes that matter to the packet.
    fn queue(&mut self, port: u32) -> u64;
    /// Returns the bytes queued at a port of any switch at the last snapshot; 0 without snapshots.
    fn snapshot(&self, switch: u32, port: u32) -> u64;
    /// Returns the guided paths from this switch to the destination, without those reported dead.
    fn paths(&mut self) -> &GuidedPaths;
}
