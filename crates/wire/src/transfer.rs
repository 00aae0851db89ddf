//! Bytes from one endpoint to another over a stream, with a checksum of all of them at both ends.

use crate::{Datapath, Driver, Label, PeerId, WireError};
use anabranch_endpoint::{Counters, Event, SendError, Why};
use anabranch_units::Time;
use std::{collections::BTreeMap, net::SocketAddr};

/// The stream that transfers use, there and back.
const STREAM: u32 = 0;
/// Bytes of a message.
const CHUNK: usize = 1 << 20;
/// What a message begins with: bytes, or what there was in all.
const BYTES: u8 = 0;
const SUMMARY: u8 = 1;
/// How long nothing need happen before somebody looks whether to go on.
const LOOK: Time = Time::from_us(100_000);

/// What was sent or received: how many bytes, and their CRC-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes.
    pub bytes: u64,
    /// CRC-32 of all of them in order.
    pub checksum: u32,
}

impl Summary {
    fn write(self) -> Vec<u8> {
        let mut message = vec![SUMMARY];
        message.extend_from_slice(&self.bytes.to_be_bytes());
        message.extend_from_slice(&self.checksum.to_be_bytes());
        message
    }

    fn read(message: &[u8]) -> Option<Self> {
        let (bytes, checksum) = message.strip_prefix(&[SUMMARY])?.split_first_chunk::<8>()?;
        let checksum = u32::from_be_bytes(checksum.try_into().ok()?);
        Some(Summary { bytes: u64::from_be_bytes(*bytes), checksum })
    }
}

/// How a transfer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// What was sent, and received, which is the same.
    pub summary: Summary,
    /// From the first packet to the receiver's word that it has all.
    pub took: Time,
    /// Shortest round trip of a full packet before anything was sent.
    pub base_rtt: Time,
    /// What lies this much above it counts as nothing.
    pub noise: Time,
    /// What the sender has counted.
    pub counters: Counters,
    /// The longest time between two looks at the network: what it did in between was not answered.
    pub longest_pause: Time,
}

/// A transfer that has been received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// From whom.
    pub peer: PeerId,
    /// What came.
    pub summary: Summary,
    /// What the sender says there was.
    pub sent: Summary,
    /// From the first message to the last.
    pub took: Time,
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
    let why = match why {
        Why::Silent => return TransferError::Silent(at),
        Why::Idle => "has said nothing for too long".to_string(),
        Why::Left => "has gone".to_string(),
        Why::Restarted => "has started anew".to_string(),
        Why::Corrupt => "sent a message with a wrong checksum".to_string(),
        Why::Mtu { theirs, ours } => {
            format!("takes packets of {theirs} B of payload, and we send {ours} B: both ends must be told the same")
        }
    };
    TransferError::Lost { at, why }
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
    let labels: Vec<Label> = (0..driver.datapath().abilities().labels).collect();
    let peer = driver.datapath().peer(at, &labels)?;
    let (endpoint, now) = driver.endpoint();
    endpoint.connect(now, peer);
    let chunk = (CHUNK as u64).min(endpoint.settings().most_message - 1) as usize;
    let (mut hasher, mut made, mut acknowledged) = (crc32fast::Hasher::new(), 0u64, 0u64);
    let mut waiting: Option<Vec<u8>> = None;
    let (mut began, mut base_rtt, mut noise) = (None, Time::ZERO, Time::ZERO);
    let (mut last, mut longest_pause, mut looked) = (now, Time::ZERO, now);
    let mut summary = None;
    loop {
        let next = driver.work()?;
        let (endpoint, now) = driver.endpoint();
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Open { base_rtt: base, noise: floor, .. } => {
                    (base_rtt, noise) = (base, floor);
                    began = Some(now);
                }
                Event::Sent { message, .. } => {
                    acknowledged = ((u64::from(message) + 1) * chunk as u64).min(bytes);
                }
                Event::Received { bytes: message, .. } => {
                    let (theirs, ours) = (Summary::read(&message).unwrap_or_default(), summary.unwrap_or_default());
                    if theirs != ours {
                        return Err(TransferError::Differs { at, theirs, ours });
                    }
                    let took = now.saturating_sub(began.unwrap_or(now));
                    let counters = endpoint.counters();
                    endpoint.close(peer);
                    driver.work()?;
                    return Ok(Sent { summary: ours, took, base_rtt, noise, counters, longest_pause });
                }
                Event::Lost { why, .. } => return Err(lost(at, why)),
            }
        }
        let mut full = began.is_none();
        while !full && summary.is_none() {
            let message = waiting.take().unwrap_or_else(|| {
                if made == bytes {
                    return Summary { bytes, checksum: hasher.clone().finalize() }.write();
                }
                let size = (bytes - made).min(chunk as u64) as usize;
                let mut message = vec![BYTES; size + 1];
                fill(&mut message[1..]);
                hasher.update(&message[1..]);
                made += size as u64;
                message
            });
            match endpoint.send(now, peer, STREAM, message.clone().into()) {
                Ok(_) => summary = Summary::read(&message),
                Err(SendError::Full) => {
                    waiting = Some(message);
                    full = true;
                }
                Err(SendError::NoPeer) => return Err(lost(at, Why::Left)),
                Err(SendError::TooLarge(most)) => {
                    let why = format!("takes messages of {most} B at most, and ours have {}", message.len());
                    return Err(TransferError::Lost { at, why });
                }
            }
        }
        if began.is_some() {
            longest_pause = longest_pause.max(now.saturating_sub(last));
        }
        if now.saturating_sub(looked) >= LOOK {
            looked = now;
            if !look(now, acknowledged) {
                endpoint.close(peer);
                driver.work()?;
                return Err(TransferError::Interrupted);
            }
        }
        // What has just been queued may leave at once.
        let until = if full || summary.is_some() { next.unwrap_or(now + LOOK) } else { now };
        driver.wait(until.min(now + LOOK))?;
        last = driver.datapath().now().max(last);
    }
}

/// What has come from a peer so far.
#[derive(Debug)]
struct Coming {
    hasher: crc32fast::Hasher,
    bytes: u64,
    since: Time,
}

/// Receives whatever anybody sends and says what it was, until `look` says stop: it is asked now and then, and told of each
/// transfer that is over. With `once` it ends when the first sender has heard that its bytes are there, or is gone.
///
/// # Errors
/// Those of the datapath.
pub fn serve<D: Datapath>(
    driver: &mut Driver<D>,
    once: bool,
    look: &mut dyn FnMut(&D, Option<&Received>) -> bool,
) -> Result<(), WireError> {
    let mut served = None;
    let mut coming: BTreeMap<PeerId, Coming> = BTreeMap::new();
    loop {
        let next = driver.work()?;
        let (endpoint, now) = driver.endpoint();
        let (mut over, mut heard) = (Vec::new(), false);
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Received { peer, bytes, .. } => {
                    let fresh = || Coming { hasher: crc32fast::Hasher::new(), bytes: 0, since: now };
                    let coming_in = coming.entry(peer).or_insert_with(fresh);
                    if let Some(sent) = Summary::read(&bytes) {
                        let Coming { hasher, bytes, since } = std::mem::replace(coming_in, fresh());
                        let summary = Summary { bytes, checksum: hasher.finalize() };
                        over.push(Received { peer, summary, sent, took: now.saturating_sub(since) });
                        // Who is gone by now need not hear of it.
                        let _ = endpoint.send(now, peer, STREAM, summary.write().into());
                        served.get_or_insert(peer);
                    } else if let Some((_, bytes)) = bytes.split_first() {
                        coming_in.hasher.update(bytes);
                        coming_in.bytes += bytes.len() as u64;
                    }
                }
                Event::Lost { peer, .. } => {
                    coming.remove(&peer);
                    heard |= served == Some(peer);
                }
                Event::Sent { peer, .. } => heard |= served == Some(peer),
                Event::Open { .. } => {}
            }
        }
        let answered = !over.is_empty();
        for received in &over {
            if !look(driver.datapath(), Some(received)) {
                return Ok(());
            }
        }
        if once && heard {
            return Ok(());
        }
        if !answered {
            driver.wait(next.unwrap_or(now + LOOK).min(now + LOOK))?;
            if !look(driver.datapath(), None) {
                return Ok(());
            }
        }
    }
}
