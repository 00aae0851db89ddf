#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StrippedResult {
    /// Packets that left a port.
    pub packet_hops: u64,
    /// Data packets that reached their host.
    pub delivered: u64,
    /// Packets above the marking threshold.
    pub marked: u64,
    /// Simulated time of the last arrival, in picoseconds.
    pub end_ps: u64,
    /// Longest time from sending a packet to its ACK, in picoseconds.
    pub longest_rtt_ps: u64,
    /// Wall time of the loop.
    pub wall_seconds: f64,
}
