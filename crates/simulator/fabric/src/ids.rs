//! Identifiers of the parts of a fabric: indices with a type of their own.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            /// Returns the identifier as an index.
            #[inline]
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// A host, by its number in the topology.
    HostId;
    /// A switch: its index behind the hosts among the topology's nodes.
    SwitchId;
    /// A flow, by its index in the flow set.
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

    /// Returns `true` if this identifies a packet.
    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self != PacketId::NONE
    }
}

impl Slot {
    /// The flow is not open.
    pub(crate) const NONE: Slot = Slot(u32::MAX);
    /// The flow's receiver has all bytes.
    pub(crate) const COMPLETE: Slot = Slot(u32::MAX - 1);
}
