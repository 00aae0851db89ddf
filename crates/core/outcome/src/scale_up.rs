//! Ports of GPUs to the scale-up networks of their servers.

use anabranch_units::Time;

/// One direction of the port of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuPortStats {
    /// Bytes of the messages that have come to it.
    pub bytes: u64,
    /// Number of these messages.
    pub messages: u64,
    /// Share of the run in which it has served a message.
    pub utilisation: f64,
    /// Longest time for which a message has waited for those before it.
    pub longest_wait: Time,
}

/// The port of a GPU to the scale-up network of its server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuRow {
    /// Number of the GPU.
    pub gpu: u32,
    /// Its server.
    pub server: u32,
    /// Its NIC: a host of the topology.
    pub host: u32,
    /// Rate in bits per second and direction.
    pub rate_bps: u64,
    /// Sending direction.
    pub egress: GpuPortStats,
    /// Receiving direction.
    pub ingress: GpuPortStats,
}
