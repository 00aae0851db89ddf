//! The kinds of topology a scenario can name.

mod dragonfly;
mod fat_tree;
mod file;
mod grouped;
mod leaf_spine;
mod slim_fly;

pub use dragonfly::{Arrangement, DragonflyParameters};
pub use fat_tree::FatTreeParameters;
pub use file::{FileFormat, FileParameters};
pub use leaf_spine::LeafSpineParameters;
pub use slim_fly::SlimFlyParameters;

use crate::{Topology, TopologyError};
use anabranch_settings::{Parameters, nearest};
use anabranch_units::{Rate, Time};

/// What the registry says about a kind of topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// Its name in a scenario.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

macro_rules! kinds {
    ($($variant:ident $parameters:ident $name:literal, $summary:literal, $source:literal;)+) => {
        /// All kinds.
        pub const TOPOLOGY_KINDS: &[KindInfo] =
            &[$(KindInfo { name: $name, summary: $summary, source: $source },)+];

        /// A kind with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum TopologyParameters {
            $(#[doc = $summary] $variant($parameters),)+
        }

        impl TopologyParameters {
            /// The kind of this name, with its defaults.
            ///
            /// # Errors
            /// No such kind; the message has all names and the nearest.
            pub fn named(kind: &str) -> Result<Self, TopologyError> {
                match kind {
                    $($name => Ok(Self::$variant($parameters::default())),)+
                    _ => {
                        let names = [$($name),+];
                        let hint = nearest(kind, names).map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default();
                        let message = format!("unknown kind `{kind}`; allowed are {}{hint}", names.join(", "));
                        Err(TopologyError::at("kind", message))
                    }
                }
            }

            /// Its name.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant(_) => $name,)+ }
            }

            /// Its parameters.
            pub fn parameters(&self) -> &dyn Parameters {
                match self { $(Self::$variant(p) => p,)+ }
            }

            /// Its parameters, to be set.
            pub fn parameters_mut(&mut self) -> &mut dyn Parameters {
                match self { $(Self::$variant(p) => p,)+ }
            }

            /// How large [`TopologyParameters::build`] makes it; `None` for a file and for sizes that are refused.
            pub fn scale(&self) -> Option<Scale> {
                match self { $(Self::$variant(p) => p.scale(),)+ }
            }

            /// Builds it. `read_file` gives the text of a file that the parameters name.
            ///
            /// # Errors
            /// An impossible topology, or a file that cannot be read or describes one.
            pub fn build(&self, read_file: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Topology, TopologyError> {
                match self { $(Self::$variant(p) => p.build(read_file),)+ }
            }
        }
    };
}

kinds! {
    LeafSpine LeafSpineParameters "leaf-spine", "two tiers with any number of leaves, spines and hosts", "specification 10.6";
    FatTree FatTreeParameters "fat-tree", "non-blocking tree of 2 or 3 tiers of switches of one radix", "PRIME, Table I; specification 10.6";
    Dragonfly DragonflyParameters "dragonfly", "fully meshed groups of switches, one global link between any two groups", "Spritz §V-A; specification 9.1";
    SlimFly SlimFlyParameters "slim-fly", "switches at most two hops apart, over a finite field", "Spritz §V-A; specification 10";
    File FileParameters "file", "a graph from a file: ConWeave's text, htsim's .topo, an adjacency list", "specification 14.2, 14.3";
}

/// How large a topology is, known before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Hosts.
    pub hosts: u64,
    /// Switches.
    pub switches: u64,
    /// Switches with hosts: forwarding tables have an entry for each.
    pub leaves: u64,
    /// Cables, those of hosts among them.
    pub cables: u64,
    /// Bytes of the tables of source-guided routing.
    pub guide_bytes: u64,
}

impl Scale {
    /// Entries of the forwarding tables.
    pub fn table_entries(&self) -> u64 {
        self.switches.saturating_mul(self.leaves)
    }
}

impl Topology {
    /// How large it is.
    pub fn scale(&self) -> Scale {
        let groups = self.groups.iter().max().map_or(0, |last| u64::from(*last) + 1);
        Scale {
            hosts: self.hosts.into(),
            switches: self.switches().into(),
            leaves: self.edge_switches().len() as u64,
            cables: self.links.len() as u64 / 2,
            guide_bytes: self.guidance.map_or(0, |guidance| guidance.table_bytes(self.switches().into(), groups)),
        }
    }
}

/// Refuses a size of zero.
pub(crate) fn positive(key: &str, value: u64) -> Result<(), TopologyError> {
    if value == 0 { Err(TopologyError::at(key, format!("`{key}` is 0; at least 1 is needed"))) } else { Ok(()) }
}

/// Refuses rates below 1 Mb/s.
pub(crate) fn moving(key: &str, rate: Rate) -> Result<Rate, TopologyError> {
    if rate.0 < 1_000_000 {
        return Err(TopologyError::at(key, format!("`{key}` is {rate}; at least 1Mbps is needed")));
    }
    Ok(rate)
}

/// Refuses delays above a second.
pub(crate) fn short(key: &str, delay: Time) -> Result<Time, TopologyError> {
    if delay > Time::from_ms(1000) {
        return Err(TopologyError::at(key, format!("`{key}` is {delay}; at most 1s is allowed")));
    }
    Ok(delay)
}

/// Refuses more hosts than the simulator can name.
pub(crate) fn not_too_many(key: &str, hosts: u64) -> Result<u32, TopologyError> {
    if hosts > crate::build::MAX_HOSTS {
        let most = crate::build::MAX_HOSTS;
        return Err(TopologyError::at(key, format!("`{key}` makes {hosts} hosts; at most {most} are allowed")));
    }
    Ok(hosts as u32)
}
