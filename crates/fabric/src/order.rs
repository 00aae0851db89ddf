//! The canonical order of events of the same time: kind, then the rank of the entity.
//!
//! Ranks come from stable names and, for links into one node, from a seeded permutation, never from the index
//! of something in memory. Events of one kind, entity and time are told apart by their payload, a flow number.

/// Faults, changes of the forwarding tables, samples.
pub(crate) const PLAN: u32 = 0 << 29;
/// A port works out its transmissions; has no effect that anybody else could have missed.
pub(crate) const SERVICE: u32 = 1 << 29;
/// A pause of a port ends by itself.
pub(crate) const EXPIRY: u32 = 2 << 29;
/// A packet arrives.
pub(crate) const ARRIVAL: u32 = 3 << 29;
/// A switch scheme asked to be woken.
pub(crate) const WAKE: u32 = 4 << 29;
/// A timer of a flow.
pub(crate) const TIMER: u32 = 5 << 29;
/// A trigger is activated, begins or fires; its payload says which.
pub(crate) const ACTIVATE: u32 = 6 << 29;
/// A flow starts.
pub(crate) const START: u32 = 7 << 29;
/// The bits of an [`ACTIVATE`] event's payload that are the trigger's number.
pub(crate) const TRIGGER_NUMBER: u32 = BEGINS - 1;
/// Bit of such a payload: the trigger was activated often enough and begins now.
pub(crate) const BEGINS: u32 = 1 << 30;
/// Bit of such a payload: the trigger's delay is over.
pub(crate) const FIRES: u32 = 1 << 31;
/// Where the kind stands.
pub(crate) const KIND: u32 = 7 << 29;
