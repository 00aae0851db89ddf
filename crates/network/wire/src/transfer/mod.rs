//! Transfers of bytes over a stream, with a checksum at sender and receiver.

mod send;
mod serve;

pub use send::{Destination, Record, Sent, connect, send};
pub use serve::{Received, serve};

use crate::{Label, WireError};
use anabranch_endpoint::{CloseReason, Sizes, header::Protection};
use anabranch_units::Time;
use std::net::SocketAddr;

/// First byte of a piece with payload.
const BYTES: u8 = 0;
/// First byte of a summary: of the bytes sent, or received.
const SENT: u8 = 1;
const RECEIVED: u8 = 2;
/// Bit that, set in the number of a data stream, gives the stream of its confirmations.
const CONFIRMATIONS: u32 = 1 << 30;
/// Maximum time between two calls of a caller's `poll`.
const POLL_INTERVAL: Time = Time::from_us(100_000);

/// Length and CRC-32 of the bytes sent or received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub bytes: u64,
    /// CRC-32 of all of them in order.
    pub checksum: u32,
}

struct SummaryMessage {
    summary: Summary,
    /// Time that the receiver has measured ([`Received::took`]); `None`: the sender's total.
    took: Option<Time>,
}

impl Summary {
    fn write(self, took: Option<Time>) -> Vec<u8> {
        let mut message = vec![if took.is_some() { RECEIVED } else { SENT }];
        message.extend_from_slice(&self.bytes.to_be_bytes());
        message.extend_from_slice(&self.checksum.to_be_bytes());
        message.extend(took.map(|took| took.ps().to_be_bytes()).into_iter().flatten());
        message
    }

    fn read(message: &[u8]) -> Option<SummaryMessage> {
        let (kind, rest) = message.split_first()?;
        let (bytes, rest) = rest.split_first_chunk::<8>()?;
        let (checksum, rest) = rest.split_first_chunk::<4>()?;
        let summary = Summary { bytes: u64::from_be_bytes(*bytes), checksum: u32::from_be_bytes(*checksum) };
        let took = match *kind {
            SENT if rest.is_empty() => None,
            RECEIVED => Some(Time::from_ps(u64::from_be_bytes(rest.try_into().ok()?))),
            _ => return None,
        };
        Some(SummaryMessage { summary, took })
    }
}

/// Parses any bytes as a message, for fuzzing.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Some(SummaryMessage { summary, took }) = Summary::read(bytes) {
        assert_eq!(bytes, summary.write(took));
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The datapath failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer does not respond.
    #[error(
        "no reply from {at} for {waited}: check that `anabranch serve` runs there on the same ports and that UDP passes{error}"
    )]
    NoResponse {
        /// Address of the peer.
        at: SocketAddr,
        /// Time waited, with the key that limits it.
        waited: String,
        /// ICMP error, as the end of a sentence.
        error: String,
    },
    /// The peer completed the handshake but does not acknowledge data.
    #[error(
        "{at} is connected but acknowledges no data: {acknowledged} B are acknowledged, nothing more for {timeout} (wire.give_up). {path}"
    )]
    Unacknowledged {
        /// Address of the peer.
        at: SocketAddr,
        /// Bytes acknowledged.
        acknowledged: u64,
        /// Timeout that expired (`wire.give_up`).
        timeout: Time,
        /// What is known of the path.
        path: String,
    },
    /// The receiver has acknowledged everything, and its confirmation does not come.
    #[error(
        "{at} has acknowledged all {acknowledged} B and sent no confirmation for {timeout}: nothing of its own came back, so the path back may \
         drop packets; the output of `serve` there says whether it has all"
    )]
    Unconfirmed {
        /// Address of the peer.
        at: SocketAddr,
        /// Bytes acknowledged.
        acknowledged: u64,
        /// Time waited: twice `wire.give_up`.
        timeout: Time,
    },
    /// The peer is gone.
    #[error("{at} {reason}")]
    Lost {
        /// Address of the peer.
        at: SocketAddr,
        /// Reason, as a predicate of the address.
        reason: String,
    },
    /// The receiver's summary differs from the sender's.
    #[error("{at} received {theirs:?} of {ours:?}")]
    Differs {
        /// Address of the receiver.
        at: SocketAddr,
        /// Summary of the bytes received.
        theirs: Summary,
        /// Summary of the bytes sent.
        ours: Summary,
    },
    /// The caller stopped the transfer.
    #[error("interrupted")]
    Interrupted,
}

fn lost(at: SocketAddr, reason: CloseReason) -> TransferError {
    TransferError::Lost { at, reason: close_reason_text(reason) }
}

/// Returns which labels do not reply, as ports where they are ports from that of `at` on; empty: none any more.
pub fn silent_text(labels: &[Label], at: Option<SocketAddr>) -> String {
    let what = if at.is_some() { "UDP ports" } else { "labels" };
    let first = at.map_or(0, |at| u32::from(at.port()));
    let rows = labels.chunk_by(|label, next| label + 1 == *next);
    let row = |row: &[Label]| match row {
        [one] => (first + one).to_string(),
        _ => format!("{}-{}", first + row[0], first + row[row.len() - 1]),
    };
    match labels {
        [] => format!("all {what} reply now"),
        _ => {
            let rows: Vec<String> = rows.map(row).collect();
            let of = at.map_or_else(String::new, |at| format!(" of {}", at.ip()));
            format!("no reply over {what} {}{of} (firewall or NAT?); the other labels carry all data", rows.join(", "))
        }
    }
}

/// An MTU counts them.
const IP_AND_UDP: u32 = 28;

/// Returns the reason of a loss or refusal as a predicate of the peer.
pub fn close_reason_text(reason: CloseReason) -> String {
    match reason {
        CloseReason::TimedOut => "timed out".to_string(),
        CloseReason::Idle => "was idle for too long".to_string(),
        CloseReason::Closed => "has disconnected".to_string(),
        CloseReason::Restarted => "has restarted".to_string(),
        CloseReason::Evicted => "was evicted: other peers needed its slot or memory".to_string(),
        CloseReason::Version { theirs, ours } => {
            format!(
                "uses version {theirs} of the wire format, this endpoint version {ours}: both need the same release"
            )
        }
        CloseReason::Key { theirs, ours } => keys(theirs, ours).to_string(),
        CloseReason::Mtu { theirs, ours } => {
            format!("has packets of {theirs} B of payload, this endpoint {ours} B: both need the same wire.payload")
        }
        CloseReason::Planes { theirs, ours } => format!(
            "has {theirs} planes, this endpoint {ours}: give `--at` of serve and `--to` of send as many addresses"
        ),
        CloseReason::Stalled(sizes) => format!("acknowledges no data. {}", path_text(sizes, PAYLOAD)),
        CloseReason::Unreceived(sizes) => {
            format!(
                "has disconnected: it received no acknowledgement for its timeout. {}",
                path_here_text(sizes, PAYLOAD)
            )
        }
    }
}

/// Key of the size of packets in a scenario.
pub const PAYLOAD: &str = "wire.payload";

/// Describes the path from a peer that has lost this endpoint, as the peer's probes have shown.
pub fn path_here_text(sizes: Sizes, payload: &str) -> String {
    match sizes {
        Sizes { passes: 0, .. } => "Nothing from this endpoint reached it: the path back to it drops packets".into(),
        Sizes { fails: 0, passes } => format!(
            "Its datagrams of {passes} B had replies, so the path passes data: the memory for messages here may be full \
             (wire.max_buffered_bytes)"
        ),
        sizes => path_text(sizes, payload),
    }
}

/// Describes the path to a peer that acknowledges no data, as probes have shown. `payload`: the key or variable of the size
/// of packets.
pub fn path_text(sizes: Sizes, payload: &str) -> String {
    match sizes {
        Sizes { passes: 0, .. } => {
            "Nothing came back from it, not even replies to small probes: it may have left, or the path to it or back drops packets".into()
        }
        Sizes { fails: 0, passes } => format!(
            "Datagrams of {passes} B have replies, so the path passes data: its memory for messages may be full \
             (wire.max_buffered_bytes there)"
        ),
        sizes => format!("The path drops large packets: {}", fragments_text(sizes, payload)),
    }
}

/// Remedy where [`anabranch_endpoint::Event::EcnDropped`] is reported, as a predicate of the peer.
pub const ECN_TEXT: &str = "is behind a path that drops packets that are ECN-capable (ECT(0)) and passes others: packets to it are not \
                            ECN-capable from now on, and congestion shows as loss alone; let the network pass ECT(0), or set wire.ecn=false at both endpoints";

/// Returns the sizes that pass and that do not, with a remedy.
pub fn fragments_text(Sizes { passes, fails }: Sizes, payload: &str) -> String {
    format!(
        "datagrams of {passes} B have replies and those of {fails} B have none; raise the MTU of the path to {} B, or give both \
         endpoints a smaller {payload}",
        fails + IP_AND_UDP
    )
}

fn keys(theirs: Protection, ours: Protection) -> &'static str {
    match (theirs, ours) {
        (Protection::Off, _) => "has no key and this endpoint has one: give both the same wire.key",
        (_, Protection::Off) => "has a key and this endpoint has none: give both the same wire.key",
        _ => "has another key than this endpoint: give both the same wire.key",
    }
}
