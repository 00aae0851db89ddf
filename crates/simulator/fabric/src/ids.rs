//! What the parts of a fabric are named by: an index with a type of its own.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// As an index.
            #[inline]
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A host, as the topology numbers them.
    HostId;
    /// A switch: its place behind the hosts among the topology's nodes.
    SwitchId;
    /// A flow, by its place in the flow set.
    FlowId;
    /// An output port of this partition.
    PortId;
    /// A packet of this partition.
    PacketId;
    /// An open flow of this partition, at its sender or at its receiver.
    Slot;
}

impl PacketId {
    /// No packet.
    pub(crate) const NONE: PacketId = PacketId(u32::MAX);

    /// Whether it is one.
    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self != PacketId::NONE
    }
}

impl Slot {
    /// The flow is not open.
    pub(crate) const NONE: Slot = Slot(u32::MAX);
    /// The flow's receiver has had everything.
    pub(crate) const COMPLETE: Slot = Slot(u32::MAX - 1);
}
