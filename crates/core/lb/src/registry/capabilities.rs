//! What schemes tell of themselves, by which the rest of the house tells them apart.

use super::Invalid;
use anabranch_settings::Auto;
use anabranch_units::Time;

/// What the path tags of a host scheme mean, and how a switch scheme reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Entropy values that switches hash, or leave alone.
    Entropy,
    /// Multi-part entropy values: the index of an uplink per tier.
    MultiPart,
    /// Numbers of guided paths ([`crate::GuidedPaths::tag`]) of a Dragonfly or a Slim Fly.
    Guided,
    /// Categories of guided paths ([`crate::Category`]).
    Category,
}

/// Which packets a switch scheme is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// Those that have several equal-cost next hops ([`crate::SwitchScheme::forward`]).
    Choices,
    /// Every data packet at every switch, also where there is no choice and at the last one.
    EveryHop,
    /// Data at every switch but the last of a Dragonfly or a Slim Fly, with all its ports ([`crate::SwitchScheme::guide`]);
    /// control packets take the default tables.
    Guided,
}

/// What a scheme tells of itself: the limits of its parameters, and its capabilities, by which the rest of the house tells
/// schemes apart. Every method has a default; a scheme writes those that differ.
pub trait Check {
    /// Whether every value is within its limits.
    ///
    /// # Errors
    /// [`Invalid`] names the first that is not.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// What its tags are.
    fn tags(&self) -> TagKind {
        TagKind::Entropy
    }

    /// Of a switch scheme: which packets it is asked about.
    fn sees(&self) -> Sees {
        Sees::Choices
    }

    /// Of a host scheme: whether it leaves every choice of a path to the switches, its tag being the flow's alone.
    fn leaves_choice(&self) -> bool {
        false
    }

    /// Of a host scheme: whether a flow keeps its path until something happens, instead of changing it from packet to packet.
    fn keeps_path(&self) -> bool {
        self.leaves_choice()
    }

    /// Of a host scheme: payload bytes of its probes; `None`: it sends none.
    fn probe_payload(&self) -> Option<u32> {
        None
    }

    /// Of a switch scheme: how often it wants to know the queues of all ports ([`crate::GuidedSwitch::snapshot`]); `None`: never.
    fn snapshots(&self) -> Option<Auto<Time>> {
        None
    }

    /// Of a switch scheme that chooses whole paths at the sender's leaf: the most paths between two leaves that it can
    /// number; `None`: it chooses hop by hop, on any topology.
    fn most_leaf_paths(&self) -> Option<u64> {
        None
    }

    /// Of a switch scheme: whether it holds packets back, so that round trips tell more than what queues there are.
    fn distorts_round_trips(&self) -> bool {
        false
    }

    /// Of a switch scheme: whether hosts are told which paths are dead.
    fn tells_dead_paths(&self) -> bool {
        true
    }

    /// Of a switch scheme: the one that stands in for it where an alias names it and the topology has guided paths, more
    /// than those that its own candidates lie on.
    fn guided_form(&self) -> Option<&'static str> {
        None
    }
}
