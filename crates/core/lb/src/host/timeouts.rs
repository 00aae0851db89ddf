//! Reaction to a timeout, which the papers leave open: behind an undetected failure a flow completes only if moved.

use crate::{Tag, hash::EntropySpace};
use anabranch_random::Stream;
use anabranch_settings::choices;

choices! {
    /// Effect of a retransmission timeout on a flow's path.
    pub enum OnTimeout {
        /// None.
        Ignore = "ignore",
        /// The flow moves to another path at random.
        Move = "move",
    }
}

impl OnTimeout {
    /// Returns a random value of `space` other than `tag`, or `tag` if there is no other.
    pub(crate) fn another(space: EntropySpace, stream: &mut Stream, tag: Tag) -> Tag {
        if space.values() < 2 {
            return tag;
        }
        let other = EntropySpace::new(space.values() - 1).draw(stream);
        other + Tag::from(other >= tag)
    }
}
