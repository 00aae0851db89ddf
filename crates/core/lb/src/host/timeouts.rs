//! What a scheme that keeps its paths does when the retransmission timer runs out. Such a flow behind a cut that nobody has
//! noticed never ends unless something moves it, and the papers of these schemes say nothing of it.

use crate::{Tag, hash::EntropySpace};
use anabranch_random::Stream;
use anabranch_settings::choices;

choices! {
    /// What a retransmission timeout does to a flow's path.
    pub enum OnTimeout {
        /// Nothing.
        Ignore = "ignore",
        /// The flow moves to another path at random.
        Move = "move",
    }
}

impl OnTimeout {
    /// A random value of `space` that is not `tag`; `tag` where there is no other.
    pub(crate) fn another(space: EntropySpace, stream: &mut Stream, tag: Tag) -> Tag {
        if space.values() < 2 {
            return tag;
        }
        // One of the others: draw among one less and leave the present one out.
        let other = EntropySpace::new(space.values() - 1).draw(stream);
        other + Tag::from(other >= tag)
    }
}
