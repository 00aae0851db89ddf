use anabranch_units::{BytesOrBdp, Rate};

/// Sizes by which a rule resolves its parameters for the port of a link.
#[derive(Clone, Copy, Debug)]
pub struct PortSizes {
    /// Bandwidth-delay product in bytes.
    pub bdp: u64,
    pub rate: Rate,
    /// `ecn_kmin` in bytes.
    pub kmin: u32,
    /// `ecn_kmax` in bytes.
    pub kmax: u32,
    /// `ecn_pmax`.
    pub pmax: f64,
}

impl PortSizes {
    /// Returns a size in bytes, cut at 32 bits.
    pub fn bytes(&self, size: BytesOrBdp) -> u32 {
        u32::try_from(size.bytes(self.bdp)).unwrap_or(u32::MAX)
    }
}

/// Queue of a data class at the moment at which a packet joins it or leaves it.
#[derive(Clone, Copy, Debug)]
pub struct MarkedQueue {
    /// Bytes of the class before the packet that joins, or behind the one that leaves.
    pub bytes: u32,
    /// Time in picoseconds.
    pub time: u64,
}

/// Properties of a rule that follow from its parameters.
pub trait MarkingCapabilities {
    /// Returns the keys of `[fabric]` that it alone reads.
    fn fabric_keys(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A marking rule with the constants of a port.
pub trait MarkingRule: Copy {
    type Parameters;
    /// Its state at a data class of a port.
    type State: Clone + Default;
    /// The fabric calls [`MarkingRule::held`].
    const IS_SAMPLED: bool = false;

    fn new(parameters: &Self::Parameters, port: &PortSizes) -> Self;
    /// Returns the bytes up to which no packet is marked.
    fn floor(&self) -> u32;
    /// Returns the bytes above which every packet is marked, if there are such.
    fn ceiling(&self) -> Option<u32>;
    /// Returns the rule of a slowed link, with all bytes scaled.
    #[must_use]
    fn scaled(&self, scale: impl Fn(u32) -> u32) -> Self;
    /// Notes that the queue held `bytes` up to `time`, and changes then.
    fn held(&self, _state: &mut Self::State, _bytes: u32, _time: u64) {}
    /// Returns `true` if the packet is marked. `at` returns its data class and the index of its queue's state, `draw` a random
    /// number from 0 to 1.
    fn marks(
        &self,
        states: &mut [Self::State],
        at: impl FnOnce() -> (u8, usize),
        queue: &MarkedQueue,
        draw: impl FnOnce() -> f64,
    ) -> bool;
}
