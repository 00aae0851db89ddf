use anabranch_units::Time;

/// Maximum size in bytes and latest start in picoseconds of a flow: the range of the signed 64-bit columns of tables.
pub const MAX_NUMBER: u64 = i64::MAX as u64;

/// Number of a trigger in [`crate::FlowSet::triggers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TriggerId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    At(Time),
    /// At the firing of this trigger.
    On(TriggerId),
}

/// Network that carries a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Medium {
    /// The fabric: NIC to NIC, in packets.
    #[default]
    Network,
    /// The scale-up network of a server: GPU to GPU, as a whole message.
    ScaleUp,
}

/// One flow (a message), numbered as [`crate::FlowSet::flow`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Sending host.
    pub src: u32,
    /// Receiving host; `src` only where two GPUs of a NIC use the scale-up network.
    pub dst: u32,
    /// Sending and receiving GPU, where hosts are NICs of servers.
    pub gpus: Option<(u32, u32)>,
    /// Network that carries it.
    pub medium: Medium,
    /// Payload bytes, at least 1.
    pub size: u64,
    /// Start time or trigger.
    pub start: Start,
    /// Its workload, an index into [`crate::FlowSet::workloads`].
    pub workload: u16,
    /// Its traffic class, an index into the fabric's data classes.
    pub class: u8,
    /// Key for random streams, from the workload's name and the flow's number within it.
    pub key: u64,
    /// Key of its connection: that of the connection's first message. Messages of a job from one rank to another over one
    /// channel are a connection; any other flow is its own.
    pub connection: u64,
    /// Position among all flows as listed; in a flow file the order of the lines.
    pub listed: u32,
    /// Fires when the sender has the last acknowledgement.
    pub on_sent: Option<TriggerId>,
    /// Fires when the receiver has the last byte.
    pub on_received: Option<TriggerId>,
}

/// Effect of an activation (htsim's connection-matrix triggers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerKind {
    /// The first activation starts all targets; a second one is an input error.
    Oneshot,
    /// Each activation starts the next single target; surplus ones are ignored.
    Multishot,
    /// After this many activations all targets start.
    Barrier(u32),
}

/// Starts flows and activates other triggers after a number of activations.
///
/// It then *begins*, and after [`Trigger::delay`] *fires*: its targets start and the triggers of [`Trigger::next`] are
/// activated. A `Multishot` begins at each activation and starts one target each time it fires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Effect of an activation.
    pub kind: TriggerKind,
    /// Numbers of the flows that it starts, in order.
    pub targets: Vec<u32>,
    /// Host of its state, with servers a GPU; `None`: the sender of its first target.
    pub home: Option<u32>,
    /// Time of one activation by itself.
    pub at: Option<Time>,
    /// Time from its beginning to its firing: a computation.
    pub delay: Time,
    /// Processor of its home that the delay occupies, one delay after the other in the order of activations.
    pub cpu: Option<u8>,
    /// Triggers activated when it begins.
    pub begun: Vec<TriggerId>,
    /// Triggers activated when it fires.
    pub next: Vec<TriggerId>,
}

impl Trigger {
    /// Creates a trigger that starts `targets` without delay, at the sender of the first.
    pub fn new(kind: TriggerKind, targets: Vec<u32>) -> Self {
        Trigger { kind, targets, home: None, at: None, delay: Time::ZERO, cpu: None, begun: vec![], next: vec![] }
    }
}

/// A named part of the traffic; statistics are kept for each.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadInfo {
    pub name: String,
    /// `true` if its flows count in the statistics.
    pub measured: bool,
    /// Load balancer of its flows, an index into the setup's list.
    pub load_balancer: u16,
    /// `true` if flows wait for others, or the kind is a job: the completion of the whole counts, not that of a flow.
    pub is_job: bool,
    /// The collective of its flows; `None` for other traffic, and for a part of a split.
    pub collective: Option<CollectiveInfo>,
}

/// A collective as NCCL measures it.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveInfo {
    pub name: &'static str,
    pub ranks: u32,
    /// Bytes of a rank's buffer, as NCCL counts them; `None` where the messages are not those of a buffer.
    pub bytes: Option<u64>,
    /// Number of times that it runs; `None` if the last time is incomplete.
    pub rounds: Option<u32>,
    /// Bus bandwidth over algorithm bandwidth.
    pub bus_factor: f64,
}

/// Class of a flow that has that of its workload.
pub(crate) const NO_CLASS: u8 = u8::MAX;

/// Connection of a flow that has its own, before the merge.
pub(crate) const OWN_CONNECTION: u64 = u64::MAX;

/// The merge sets class, key and connection.
pub(crate) fn plain(src: u32, dst: u32, size: u64, start: Start) -> Flow {
    Flow {
        src,
        dst,
        gpus: None,
        medium: Medium::Network,
        size,
        start,
        workload: 0,
        class: NO_CLASS,
        key: 0,
        connection: OWN_CONNECTION,
        listed: 0,
        on_sent: None,
        on_received: None,
    }
}
