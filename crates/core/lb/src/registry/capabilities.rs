//! Capabilities of schemes, by which other crates distinguish them.

use super::Invalid;
use anabranch_settings::Auto;
use anabranch_units::Time;

/// Meaning of the path tags of a host scheme, and their interpretation by a switch scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagKind {
    /// Entropy values that switches hash or ignore.
    Entropy,
    /// Multi-part entropy values: the index of an uplink per tier.
    MultiPart,
    /// Numbers of guided paths ([`crate::GuidedPaths::tag`]) of a Dragonfly or a Slim Fly.
    Guided,
    /// Categories of guided paths ([`crate::Category`]).
    Category,
}

/// Packets that a switch scheme processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketScope {
    /// Those with several equal-cost next hops ([`crate::SwitchScheme::forward`]).
    Choices,
    /// Every data packet at every switch, also without a choice and at the last one.
    EveryHop,
    /// Data at all switches but the last of a Dragonfly or Slim Fly ([`crate::SwitchScheme::guide`]); not control.
    Guided,
}

/// Limits of a scheme's parameters, and the capabilities by which other crates distinguish schemes.
pub trait SchemeCapabilities {
    /// Checks that every value is within its limits.
    ///
    /// # Errors
    /// [`Invalid`] for the first value out of its limits.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// Returns the kind of its tags.
    fn tags(&self) -> TagKind {
        TagKind::Entropy
    }

    /// Returns the packets that a switch scheme processes.
    fn packet_scope(&self) -> PacketScope {
        PacketScope::Choices
    }

    /// Returns `true` if a host scheme's tag is constant per flow, which leaves every choice to the switches.
    fn leaves_choice_to_switches(&self) -> bool {
        false
    }

    /// Returns `true` if a host scheme changes a flow's path at events, not from packet to packet.
    fn keeps_path(&self) -> bool {
        self.leaves_choice_to_switches()
    }

    /// Returns the payload bytes of a host scheme's probes; `None`: it sends none.
    fn probe_payload(&self) -> Option<u32> {
        None
    }

    /// Returns `true` if each probe of a host scheme is a queue pair until its reply.
    fn probes_are_queue_pairs(&self) -> bool {
        true
    }

    /// Returns `true` if a host scheme names no port without space ([`crate::Outgoing::free_ports`]).
    fn heeds_ports(&self) -> bool {
        false
    }

    /// Returns the setting by which a host scheme reads the signals of links ([`crate::LinkSignal`]), `KEY = VALUE`; `None`: it
    /// reads none. Its tags have parts.
    fn reads_signals(&self) -> Option<&'static str> {
        None
    }

    /// Returns `true` if a host scheme reads [`crate::Feedback::selective`] of every transport that selectively acknowledges.
    fn reads_selective(&self) -> bool {
        false
    }

    /// Returns `true` if a host scheme reads [`crate::PathSpace::rates`].
    fn reads_path_rates(&self) -> bool {
        false
    }

    /// Returns `true` if a host scheme uses [`crate::PathSpace::labels`].
    fn profiles_ports(&self) -> bool {
        false
    }

    /// Checks that the values that a host scheme's parameters state lead over paths of a fabric with these uplinks per tier, leaf
    /// first, and planes.
    ///
    /// # Errors
    /// [`Invalid`] for the first value that leads nowhere.
    fn check_paths(&self, _uplinks: &[u32], _planes: u32) -> Result<(), Invalid> {
        Ok(())
    }

    /// Returns what numbers of paths that were set become on these tiers and planes, if that is something else.
    fn fitted(&self, _uplinks: &[u32], _planes: u32) -> Option<String> {
        None
    }

    /// Returns the structured entropy values that a host scheme's parameters state, left-justified, each with its port (from 1) if
    /// it has one; empty: all paths.
    fn stated_values(&self) -> Vec<(u32, Option<u32>)> {
        vec![]
    }

    /// Returns the parameters that have no effect beside the others and such tags of the host, each with the reason.
    fn without_effect(&self, _tags: TagKind) -> Vec<(&'static str, &'static str)> {
        vec![]
    }

    /// Returns the congestion control that is a host scheme's window; `None`: any will do.
    fn own_control(&self) -> Option<&'static str> {
        None
    }

    /// Returns the queue pairs that a host scheme opens per flow, apart from probes.
    fn queue_pairs(&self) -> u32 {
        1
    }

    /// Returns `true` if an agent may spread a host scheme's chunks ([`crate::HostScheme::steer`]).
    fn can_be_steered(&self) -> bool {
        false
    }

    /// Returns `true` if a host scheme holds packets back until a switch begins a new flowlet.
    fn holds_for_flowlets(&self) -> bool {
        false
    }

    /// Returns the pause after which a switch scheme begins a new flowlet; `None`: it has no flowlets.
    fn flowlet_timeout(&self) -> Option<Time> {
        None
    }

    /// Returns the interval of queue snapshots ([`crate::GuidedSwitch::snapshot`]) of a switch scheme; `None`: never.
    fn snapshots(&self) -> Option<Auto<Time>> {
        None
    }

    /// Returns `true` if a switch scheme writes more than the last word of a data packet's header.
    fn fills_header(&self) -> bool {
        false
    }

    /// Returns `true` if a switch scheme writes into a data packet's header.
    fn writes_header(&self) -> bool {
        self.fills_header() || self.packet_scope() != PacketScope::Choices
    }

    /// Returns the maximum paths between leaves of a switch scheme that chooses whole paths; `None`: it chooses by hop.
    fn max_leaf_paths(&self) -> Option<u64> {
        None
    }

    /// Returns `true` if a switch scheme holds packets back, so that round trips exceed the queueing delay.
    fn distorts_round_trips(&self) -> bool {
        false
    }

    /// Returns `true` if hosts are notified of dead paths under this switch scheme.
    fn reports_dead_paths(&self) -> bool {
        true
    }

    /// Returns `true` if the forwarding tables of this switch scheme never change: faults are not detected.
    fn keeps_tables(&self) -> bool {
        false
    }

    /// Returns the switch scheme that replaces this one in an alias on a topology with guided paths.
    fn guided_form(&self) -> Option<&'static str> {
        None
    }
}
