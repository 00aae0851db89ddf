/// Number of local and global links of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathType {
    /// Number of local links.
    pub local: u8,
    /// Number of global links.
    pub global: u8,
}

const fn types<const N: usize>(pairs: [(u8, u8); N]) -> [PathType; N] {
    let mut all = [PathType { local: 0, global: 0 }; N];
    let mut index = 0;
    while index < N {
        all[index] = PathType { local: pairs[index].0, global: pairs[index].1 };
        index += 1;
    }
    all
}

static DRAGONFLY: [PathType; 9] = types([(1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2), (3, 2)]);
static SLIM_FLY: [PathType; 14] = types([
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (0, 1),
    (1, 1),
    (2, 1),
    (3, 1),
    (0, 2),
    (1, 2),
    (2, 2),
    (0, 3),
    (1, 3),
    (0, 4),
]);

static GRAPH: [PathType; 5] = types([(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]);

/// Largest distance between switches of a graph with guided paths.
pub(crate) const MAX_DIAMETER: u32 = 3;

/// Routing rules of source-guided paths in a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guidance {
    /// Up to local, global, local, global, local; by default local, global, local.
    Dragonfly,
    /// Two free hops; by default over the common neighbour of the smallest number. Also of a HyperX.
    SlimFly,
    /// Two free hops in a graph from a file; by default a shortest path, by the port of the smallest number.
    Graph,
}

impl Guidance {
    /// Returns the number of virtual channels that prevent deadlock: the hops of the longest guided path.
    pub fn virtual_channels(self) -> u8 {
        match self {
            Guidance::Dragonfly | Guidance::Graph => 5,
            Guidance::SlimFly => 4,
        }
    }

    /// Returns the bytes of [`crate::Guide`]'s tables that grow faster than the graph.
    pub(crate) fn table_bytes(self, switches: u64, groups: u64) -> u64 {
        match self {
            // 4 bytes each: a gateway per pair of groups, a port per switch and group, and per switch and member of its group.
            Guidance::Dragonfly => 4 * (groups * (groups + switches) + switches * (switches / groups.max(1))),
            // 2 bytes each: a port per pair of switches.
            Guidance::SlimFly | Guidance::Graph => 2 * switches * switches,
        }
    }

    /// Returns the types of guided paths by latency (Spritz, Table I): the categories of the coarse-grained mode.
    pub fn types(self) -> &'static [PathType] {
        match self {
            Guidance::Dragonfly => &DRAGONFLY,
            Guidance::SlimFly => &SLIM_FLY,
            Guidance::Graph => &GRAPH,
        }
    }

    /// Returns the index of a type in [`Guidance::types`]; `None` if it does not occur.
    pub fn category(self, kind: PathType) -> Option<u8> {
        self.types().iter().position(|t| *t == kind).map(|index| index as u8)
    }
}
