//! Bytes from one endpoint to others over streams, with a checksum of all of them at both ends.
//!
//! [`perform`] does one endpoint's part in a workload of many messages; [`send`] and [`serve`] are the two ends of a single one.

mod perform;

pub use perform::{Conductor, Destination, Order, Plan, Progress, Record, Report, perform};

use crate::{Datapath, Driver, PeerId, WireError};
use anabranch_endpoint::{Counters, Why, header::Protection};
use anabranch_units::Time;
use std::net::SocketAddr;

/// What a message begins with that says what there was in all: what its sender sent, or what its receiver has.
const SENT: u8 = 1;
const RECEIVED: u8 = 2;

/// What was sent or received: how many bytes, and their CRC-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes.
    pub bytes: u64,
    /// CRC-32 of all of them in order.
    pub checksum: u32,
}

/// A summary as a message brings it.
struct Said {
    summary: Summary,
    /// Of what has come, not of what was sent.
    is_answer: bool,
}

impl Summary {
    fn write(self, is_answer: bool) -> Vec<u8> {
        let mut message = vec![if is_answer { RECEIVED } else { SENT }];
        message.extend_from_slice(&self.bytes.to_be_bytes());
        message.extend_from_slice(&self.checksum.to_be_bytes());
        message
    }

    fn read(message: &[u8]) -> Option<Said> {
        let (kind, rest) = message.split_first()?;
        let is_answer = match *kind {
            SENT => false,
            RECEIVED => true,
            _ => return None,
        };
        let (bytes, checksum) = rest.split_first_chunk::<8>()?;
        let checksum = u32::from_be_bytes(checksum.try_into().ok()?);
        Some(Said { summary: Summary { bytes: u64::from_be_bytes(*bytes), checksum }, is_answer })
    }
}

/// Reads any bytes as a message, for fuzzing.
#[doc(hidden)]
pub fn fuzz(bytes: &[u8]) {
    if let Some(Said { summary, is_answer }) = Summary::read(bytes) {
        assert!(bytes.starts_with(&summary.write(is_answer)));
    }
}

/// How a transfer went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// From the first packet to the receiver's word that it has all, packets and what became of them.
    pub record: Record,
    /// Shortest round trip of a full packet before anything was sent.
    pub base_rtt: Time,
    /// What lies this much above it counts as nothing.
    pub noise: Time,
    /// What the sender has counted.
    pub counters: Counters,
    /// The longest time for which it did not run though it wanted to: what came in between was not answered.
    pub longest_pause: Time,
}

/// Bytes that have been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// From whom.
    pub peer: PeerId,
    /// And where that is.
    pub from: Option<SocketAddr>,
    /// What came.
    pub summary: Summary,
    /// What the sender says there was.
    pub sent: Summary,
    /// From the arrival of its first packet to the last.
    pub took: Time,
}

impl Received {
    /// Returns `true` where something came, and it was what the sender says: not so for those who send nothing, or nonsense.
    pub fn is_whole(&self) -> bool {
        self.summary == self.sent && self.summary.bytes > 0
    }
}

/// Why a transfer ends early.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The datapath cannot go on.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Nobody answers.
    #[error("no answer from {0}: does `anabranch serve` run there, on the same ports, and may UDP pass?")]
    Silent(SocketAddr),
    /// It answers, but not to data.
    #[error(
        "{at} is connected, but data are not answered: {acknowledged} B are acknowledged, and nothing more for {patience}. It may be gone, \
         have no memory left for messages (wire.max_buffered_bytes there), or the path drops data"
    )]
    Unanswered {
        /// Where it is.
        at: SocketAddr,
        /// Bytes that it has acknowledged.
        acknowledged: u64,
        /// For how long it was asked (`wire.give_up`).
        patience: Time,
    },
    /// The other end is gone.
    #[error("{at} {why}")]
    Lost {
        /// Where it was.
        at: SocketAddr,
        /// What it did.
        why: String,
    },
    /// It has received something else.
    #[error("{at} received {theirs:?} of {ours:?}")]
    Differs {
        /// Where.
        at: SocketAddr,
        /// What it received.
        theirs: Summary,
        /// What was sent.
        ours: Summary,
    },
    /// Somebody said stop.
    #[error("interrupted")]
    Interrupted,
}

fn lost(at: SocketAddr, why: Why) -> TransferError {
    TransferError::Lost { at, why: reason(why) }
}

/// Bytes of the headers of IPv4 and UDP, which an MTU counts.
const IP_AND_UDP: u32 = 28;

/// What a peer did that is gone or refused.
pub fn reason(why: Why) -> String {
    match why {
        Why::Silent => "has not answered".to_string(),
        Why::Idle => "has said nothing for too long".to_string(),
        Why::Left => "has gone".to_string(),
        Why::Restarted => "has started anew".to_string(),
        Why::Evicted => "was forgotten: others needed its place or memory".to_string(),
        Why::Version { theirs, ours } => {
            format!(
                "speaks version {theirs} of our format, and we speak version {ours}: both ends must be of the same release"
            )
        }
        Why::Key { theirs, ours } => keys(theirs, ours).to_string(),
        Why::Mtu { theirs, ours } => {
            format!("takes packets of {theirs} B of payload, and we send {ours} B: both ends must be told the same")
        }
        Why::LargePackets { full, short } => format!(
            "answers datagrams of {short} B and none of {full} B: the path drops large packets; give both ends a smaller \
             wire.payload, or raise the MTU of the path to {} B",
            full + IP_AND_UDP
        ),
    }
}

/// What keys two endpoints have that refuse each other, as said of the other one.
fn keys(theirs: Protection, ours: Protection) -> &'static str {
    match (theirs, ours) {
        (Protection::Off, _) => "has no key and this endpoint has one: give both the same wire.key",
        (_, Protection::Off) => "has a key and this endpoint has none: give both the same wire.key",
        _ => "has another key than this endpoint: give both the same wire.key",
    }
}

struct Sending<'a> {
    fill: &'a mut dyn FnMut(&mut [u8]),
    look: &'a mut dyn FnMut(Time, u64) -> bool,
}

impl Conductor for Sending<'_> {
    fn fill(&mut self, _order: usize, bytes: &mut [u8]) {
        (self.fill)(bytes);
    }
    fn goes_on(&mut self, progress: &Progress) -> bool {
        !progress.done && (self.look)(progress.now, progress.acknowledged)
    }
}

/// Sends `bytes` bytes, which `fill` makes, to `at`. `look` is told how many have been acknowledged, now and then, and says
/// whether to go on.
///
/// # Errors
/// Where the other end cannot be reached, goes, or has received something else.
pub fn send<D: Datapath>(
    driver: &mut Driver<D>,
    at: SocketAddr,
    bytes: u64,
    fill: &mut dyn FnMut(&mut [u8]),
    look: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<Sent, TransferError> {
    send_over(driver, Destination { at, paths: Vec::new() }, bytes, fill, look)
}

/// The same over the paths of a destination.
///
/// # Errors
/// As [`send`].
pub fn send_over<D: Datapath>(
    driver: &mut Driver<D>,
    to: Destination,
    bytes: u64,
    fill: &mut dyn FnMut(&mut [u8]),
    look: &mut dyn FnMut(Time, u64) -> bool,
) -> Result<Sent, TransferError> {
    let plan =
        Plan { destinations: vec![to], orders: vec![Order { to: 0, bytes, round: 0, after: Time::ZERO, stream: 0 }] };
    let report = perform(driver, &plan, &mut Sending { fill, look })?;
    let record = report.records.into_iter().flatten().next().unwrap_or_default();
    let (base_rtt, noise) = report.round_trips[0];
    Ok(Sent { record, base_rtt, noise, counters: report.counters, longest_pause: report.longest_pause })
}

struct Serving<'a> {
    once: bool,
    stopped: bool,
    look: &'a mut dyn FnMut(Option<&Received>) -> bool,
    refused: &'a mut dyn FnMut(Option<SocketAddr>, &str),
}

impl Conductor for Serving<'_> {
    fn received(&mut self, received: &Received) {
        self.stopped |= !(self.look)(Some(received));
    }
    fn refused(&mut self, at: Option<SocketAddr>, why: &str) {
        (self.refused)(at, why);
    }
    fn goes_on(&mut self, progress: &Progress) -> bool {
        let over = self.stopped || (self.once && progress.served > 0);
        !over && (self.look)(None)
    }
}

/// Receives whatever anybody sends and says what it was, until `look` says stop: it is asked now and then, and told of each
/// transfer that is over; `refused` is told who was turned away, and why. With `once` it ends when the first sender whose transfer is [whole](Received::is_whole) has heard so, or is gone.
///
/// # Errors
/// Those of the datapath.
pub fn serve<D: Datapath>(
    driver: &mut Driver<D>,
    once: bool,
    look: &mut dyn FnMut(Option<&Received>) -> bool,
    refused: &mut dyn FnMut(Option<SocketAddr>, &str),
) -> Result<(), TransferError> {
    perform(driver, &Plan::default(), &mut Serving { once, stopped: false, look, refused }).map(|_| ())
}
