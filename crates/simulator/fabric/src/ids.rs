//! Identifiers of the parts of a fabric: indices with a type of their own.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) struct $name(pub(crate) u32);

        impl $name {
            #[inline]
            pub(crate) fn at(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

ids! {
    /// Host, by its number in the topology.
    HostId;
    /// Switch: its index behind the hosts among the topology's nodes.
    SwitchId;
    /// Flow, by its index in the flow set.
    FlowId;
    /// Output port of this partition.
    PortId;
    /// Packet, in the arena of the run.
    PacketId;
    /// Open flow of this partition, at its sender or receiver.
    Slot;
}

impl PacketId {
    pub(crate) const NONE: PacketId = PacketId(u32::MAX);

    #[inline]
    pub(crate) fn is_some(self) -> bool {
        self != PacketId::NONE
    }
}

impl FlowId {
    /// In a timer of a host: its pacer of credit.
    pub(crate) const PACER: FlowId = FlowId(u32::MAX);
}

impl Slot {
    pub(crate) const NONE: Slot = Slot(u32::MAX);
    pub(crate) const COMPLETE: Slot = Slot(u32::MAX - 1);
}
