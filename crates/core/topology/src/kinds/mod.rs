//! Kinds of topology that a scenario can name. To add one, write a file and a line in the list below.

mod clos;
mod dragonfly;
mod fat_tree;
mod file;
mod grouped;
mod hyperx;
mod kind;
mod leaf_spine;
mod pods;
mod rail_only;
mod rail_optimised;
mod slim_fly;

pub use clos::ClosParameters;
pub use dragonfly::{Arrangement, DragonflyParameters};
pub use fat_tree::FatTreeParameters;
pub use file::{FileFormat, FileParameters};
pub use hyperx::HyperxParameters;
pub use kind::Scale;
pub(crate) use kind::{Kind, moving, short};
pub use leaf_spine::LeafSpineParameters;
pub use rail_only::RailOnlyParameters;
pub use rail_optimised::RailOptimisedParameters;
pub use slim_fly::SlimFlyParameters;

use crate::{Topology, TopologyError};
use anabranch_settings::registry;

registry! {
    /// A kind of topology with its parameters.
    pub enum TopologyParameters("kind of topology"): pub(crate) dyn Kind in self {
        leaf_spine LeafSpine LeafSpineParameters,
        fat_tree FatTree FatTreeParameters,
        clos Clos ClosParameters,
        rail_optimised RailOptimised RailOptimisedParameters,
        rail_only RailOnly RailOnlyParameters,
        dragonfly Dragonfly DragonflyParameters,
        slim_fly SlimFly SlimFlyParameters,
        hyperx Hyperx HyperxParameters,
        file File FileParameters,
    }
}

impl TopologyParameters {
    /// Returns the size of what [`TopologyParameters::build`] makes; `None` for a file and for refused sizes.
    pub fn scale(&self) -> Option<Scale> {
        self.capabilities().scale()
    }

    /// Builds the topology. `read_file` returns the text of a file that the parameters name.
    ///
    /// # Errors
    /// Returns [`TopologyError`] for an impossible topology, and for a file that cannot be read or describes one.
    pub fn build(&self, read_file: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Topology, TopologyError> {
        self.capabilities().build(read_file).map(Topology::from)
    }
}
