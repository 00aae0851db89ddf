//! Flows, and the triggers that start them.

use anabranch_units::Time;

/// The largest size in bytes and the latest start in picoseconds of a flow: what a signed number of 64 bits holds, as tables have them.
pub const MAX_NUMBER: u64 = i64::MAX as u64;

/// Number of a trigger in [`crate::FlowSet::triggers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerId(pub u32);

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this time.
    At(Time),
    /// When this trigger fires.
    On(TriggerId),
}

/// One flow (a message). Its number is its index in [`crate::FlowSet::flows`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: u32,
    /// Receiving host; never `src`.
    pub dst: u32,
    /// Payload bytes, at least 1.
    pub size: u64,
    /// When it starts.
    pub start: Start,
    /// Its workload, an index into [`crate::FlowSet::workloads`].
    pub workload: u16,
    /// Its traffic class, an index into the fabric's data classes.
    pub class: u8,
    /// Stable key for random streams, from the workload's name and the flow's number within it.
    pub key: u64,
    /// Its place among all flows as the workloads list them: in a flow file the order of the lines.
    pub listed: u32,
    /// Fired when the sender has the last acknowledgement.
    pub on_sent: Option<TriggerId>,
    /// Fired when the receiver has the last byte.
    pub on_received: Option<TriggerId>,
}

/// What happens when a trigger is activated (htsim's connection-matrix triggers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// The first activation starts all targets; a second one is an error of the input.
    Oneshot,
    /// Each activation starts the next single target; surplus ones are ignored.
    Multishot,
    /// After this many activations all targets start.
    Barrier(u32),
}

/// A trigger: starts flows, and activates other triggers, once others have come far enough.
///
/// Once activated often enough it *begins*, and after [`Trigger::delay`] it *fires*: its targets start and the triggers
/// of [`Trigger::next`] are activated. A `Multishot` begins at each activation and starts one target each time it fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// What an activation does.
    pub kind: TriggerKind,
    /// The flows it starts, by number, in order.
    pub targets: Vec<u32>,
    /// The host that keeps its state; `None`: the sender of its first target.
    pub home: Option<u32>,
    /// Activated once by itself, at this time.
    pub at: Option<Time>,
    /// From its beginning to its firing: a computation.
    pub delay: Time,
    /// The processor of its home that the delay occupies. Those of one host and processor begin one after the other, in
    /// the order of their activations.
    pub cpu: Option<u8>,
    /// The triggers activated when it begins.
    pub begun: Vec<TriggerId>,
    /// The triggers activated when it fires.
    pub next: Vec<TriggerId>,
}

impl Trigger {
    /// A trigger that starts `targets` without delay, at home where its first target is sent.
    pub fn new(kind: TriggerKind, targets: Vec<u32>) -> Self {
        Trigger { kind, targets, home: None, at: None, delay: Time::ZERO, cpu: None, begun: vec![], next: vec![] }
    }
}

/// A named part of the traffic; statistics are kept for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// Its name.
    pub name: String,
    /// Whether its flows count in the statistics.
    pub measured: bool,
    /// The load balancer of its flows, an index into the setup's list.
    pub load_balancer: u16,
}

/// The class of a flow that names none: that of its workload.
pub(crate) const NO_CLASS: u8 = u8::MAX;

/// A flow that nothing waits for. The merge sets class and key.
pub(crate) fn plain(src: u32, dst: u32, size: u64, start: Start) -> Flow {
    Flow { src, dst, size, start, workload: 0, class: NO_CLASS, key: 0, listed: 0, on_sent: None, on_received: None }
}
