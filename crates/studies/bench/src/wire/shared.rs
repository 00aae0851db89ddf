//! Constants of all methods.

/// Bytes of a datagram: 4 KiB and our header.
pub(super) const PAYLOAD: u64 = 4096;
pub(super) const DATAGRAM: usize = PAYLOAD as usize + anabranch_endpoint::header::DATA_HEADER;
/// Maximum number of datagrams in flight, of our endpoints and of plain sockets: they fit a socket's buffer.
pub(super) const UNDER_WAY: u64 = 128;

/// CPU time of this thread in seconds.
pub(super) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
