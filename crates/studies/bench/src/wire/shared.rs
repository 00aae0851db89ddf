/// Bytes of a datagram: 4 KiB and our header.
pub(super) const PAYLOAD: u64 = 4096;
pub(super) const DATAGRAM: usize = PAYLOAD as usize + anabranch_endpoint::header::DATA_HEADER;
/// Maximum number of datagrams in flight, which a socket's buffer holds.
pub(super) const MAX_IN_FLIGHT: u64 = 128;

pub(super) fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
