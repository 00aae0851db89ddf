//! Point-to-point messages: short ones with their header, long ones after the receiver has called for them.

use super::{
    memory::{Registered, bytes},
    peer::{Header, MessageKind, Short, receive, send},
    program::Block,
    state::{DEPTH, State, is_short},
    work::Ticket,
};
use crate::plugin::{Opaque, Plugin, PluginError};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct SendMessage {
    pub(super) ticket: Ticket,
    pub(super) peer: usize,
    pub(super) tag: u32,
    block: Block,
    pub(super) number: u32,
    /// The receiver waits for it.
    pub(super) is_called: bool,
    /// Of its block, from the first attempt on: the other rank may not be ready for long.
    memory: Option<Registered>,
    request: Option<Opaque>,
}

#[derive(Debug)]
pub(super) struct ReceiveMessage {
    pub(super) ticket: Ticket,
    pub(super) peer: Option<usize>,
    pub(super) tag: u32,
    block: Block,
    /// Sender and number of the long message for it.
    matched: Option<(usize, u32)>,
    /// Of its block, from the first attempt on: the other rank may not be ready for long.
    memory: Option<Registered>,
    request: Option<Opaque>,
}

/// Registers the block of a message once.
fn register(
    plugin: &Arc<Plugin>,
    connection: Opaque,
    block: Block,
    memory: &mut Option<Registered>,
) -> Result<(), PluginError> {
    if memory.is_none() {
        *memory = Some(Registered::new(plugin, connection, vec![block])?);
    }
    Ok(())
}

impl State {
    pub(super) fn send(&mut self, peer: usize, tag: u32, block: Block, ticket: Ticket) {
        let number = self.next_message;
        self.next_message = number.wrapping_add(1);
        let header = Header { kind: MessageKind::Message, what: [0; 3], root: tag, number, bytes: block.len as u64 };
        let data: &[u8] = if is_short(block) { bytes(block) } else { &[] };
        if let Some(to) = &mut self.peers[peer] {
            to.say(header.message(data));
        }
        if is_short(block) {
            // It has been copied.
            self.finished.push(ticket.finish(Ok(0)));
        } else {
            self.sends.push(SendMessage {
                ticket,
                peer,
                tag,
                block,
                number,
                is_called: false,
                memory: None,
                request: None,
            });
        }
    }

    pub(super) fn receive(&mut self, peer: Option<usize>, tag: u32, block: Block, ticket: Ticket) {
        self.receives.push(ReceiveMessage { ticket, peer, tag, block, matched: None, memory: None, request: None });
        for from in peer.map_or(0..self.peers.len(), |peer| peer..peer + 1) {
            let Some(of) = &mut self.peers[from] else { continue };
            if let Some(at) = of.unexpected.iter().position(|short| short.header.root == tag)
                && let Some(short) = of.unexpected.remove(at)
            {
                self.on_message(from, short);
                return;
            }
        }
    }

    /// Gives a message to the oldest receive for it, or keeps it.
    pub(super) fn on_message(&mut self, from: usize, short: Short) {
        let Header { root: tag, number, bytes: size, .. } = short.header;
        let is_for =
            |of: &ReceiveMessage| of.matched.is_none() && of.tag == tag && of.peer.is_none_or(|peer| peer == from);
        let Some(peer) = &mut self.peers[from] else { return };
        let Some(at) = self.receives.iter().position(is_for) else {
            peer.unexpected.push_back(short);
            return;
        };
        let block = self.receives[at].block;
        if block.len as u64 != size {
            let (theirs, ours) = (format!("{size} B"), format!("{} B", block.len));
            self.fail(format!("rank {from} sends {theirs} with tag {tag}, rank {} receives {ours}", self.rank));
        } else if is_short(block) {
            let of = self.receives.remove(at);
            bytes(block).copy_from_slice(short.data());
            peer.give_back(short);
            self.finished.push(of.ticket.finish(Ok(from)));
        } else {
            self.receives[at].matched = Some((from, number));
        }
    }

    /// Sends and receives long messages; returns `true` if there was something to do.
    pub(super) fn messages(&mut self) -> bool {
        if self.sends.is_empty() && self.receives.is_empty() {
            return false;
        }
        self.try_messages().unwrap_or_else(|reason| {
            self.fail(reason);
            true
        })
    }

    #[expect(unsafe_code)]
    fn try_messages(&mut self) -> Result<bool, String> {
        let (plugin, mut moved) = (Arc::clone(&self.plugin), false);
        let lost = |peer: usize, tag: u32| {
            move |reason: String| format!("message with tag {tag}: rank {peer} is lost: {reason}")
        };
        let mut blocked = vec![false; self.peers.len()];
        let mut at = 0;
        while let Some(SendMessage { peer: to, tag, block, is_called, memory, request, .. }) = self.sends.get_mut(at) {
            let lost = lost(*to, *tag);
            let Some(peer) = &self.peers[*to] else { break };
            if let Some(reason) = &peer.failed {
                return Err(lost(reason.clone()));
            }
            let is_done = match request {
                Some(request) => plugin.test(*request).map_err(|error| lost(error.to_string()))?.is_some(),
                None if *is_called && !blocked[*to] => {
                    let sender = peer.lanes[2].sender;
                    // SAFETY: the operation owns the block until it is done, or the connection closed.
                    let sent = register(&plugin, sender, *block, memory)
                        .and_then(|()| unsafe { send(&plugin, sender, block.at, block.len) });
                    *request = sent.map_err(|error| lost(error.to_string()))?;
                    blocked[*to] = request.is_none();
                    moved |= request.is_some();
                    false
                }
                None => false,
            };
            if is_done {
                let SendMessage { ticket, memory, .. } = self.sends.remove(at);
                drop(memory);
                self.finished.push(ticket.finish(Ok(0)));
                moved = true;
            } else {
                at += 1;
            }
        }
        let mut open = vec![0; self.peers.len()];
        let mut at = 0;
        while let Some(ReceiveMessage { matched, peer, tag, block, memory, request, .. }) = self.receives.get_mut(at) {
            let Some((from, number)) = *matched else {
                if let Some(from) = *peer
                    && let Some(reason) = self.peers[from].as_ref().and_then(|peer| peer.failed.clone())
                {
                    return Err(lost(from, *tag)(reason));
                }
                at += 1;
                continue;
            };
            let lost = lost(from, *tag);
            let Some(of) = &mut self.peers[from] else { break };
            open[from] += 1;
            let is_done = match request {
                Some(request) => plugin.test(*request).map_err(|error| lost(error.to_string()))?.is_some(),
                None if open[from] <= DEPTH => {
                    let receiver = of.lanes[2].receiver;
                    // SAFETY: as above.
                    let posted = register(&plugin, receiver, *block, memory)
                        .and_then(|()| unsafe { receive(&plugin, receiver, block.at, block.len) });
                    *request = posted.map_err(|error| lost(error.to_string()))?;
                    if request.is_some() {
                        let header = Header { kind: MessageKind::Go, what: [0; 3], root: 0, number, bytes: 0 };
                        of.say(header.message(&[]));
                        moved = true;
                    }
                    false
                }
                None => false,
            };
            if is_done {
                let ReceiveMessage { ticket, memory, .. } = self.receives.remove(at);
                drop(memory);
                self.finished.push(ticket.finish(Ok(from)));
                moved = true;
            } else {
                at += 1;
            }
        }
        Ok(moved)
    }
}
