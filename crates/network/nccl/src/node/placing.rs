//! Direct placement of pieces: every packet of a piece carries a steering word, and is copied on arrival, in any order.

use super::parts::{Memory, Receiver, Request};
use crate::{
    ids::{Id, Slots},
    message::{PIECE_HEADER, PieceHeader},
};
use anabranch_endpoint::Placement;
use anabranch_wire::PeerId;
use std::collections::BTreeMap;

/// Steering word: connection (24 bits), lower bits of the receive's number (8), buffer (3), index of the piece in its
/// message, from 1 (29).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steering {
    pub(super) connection: u32,
    pub(super) number: u8,
    pub(super) index: u32,
    pub(super) piece: u64,
}

impl Steering {
    /// Returns the word of a piece; 0: not representable, so that bytes are buffered until the piece is whole.
    pub(super) fn of(header: &PieceHeader, piece: u64) -> u64 {
        let PieceHeader { connection, number, index, offset, .. } = *header;
        let place = offset / piece + 1;
        if connection >> 24 != 0 || index >> 3 != 0 || place >> 29 != 0 || !offset.is_multiple_of(piece) {
            return 0;
        }
        u64::from(connection) << 40 | u64::from(number as u8) << 32 | u64::from(index) << 29 | place
    }

    /// Decodes a word; `None`: the packet has no placement.
    pub(super) fn read(word: u64) -> Option<Self> {
        Some(Steering {
            connection: (word >> 40) as u32,
            number: (word >> 32) as u8,
            index: (word >> 29) as u32 & 7,
            piece: (word & ((1 << 29) - 1)).checked_sub(1)?,
        })
    }
}

pub(super) struct Places<'a, M> {
    pub(super) theirs: &'a BTreeMap<(PeerId, u32), Id>,
    pub(super) receivers: &'a Slots<Receiver>,
    pub(super) requests: &'a mut Slots<Request<M>>,
    pub(super) piece: u64,
    /// Peer, notice, bytes.
    pub(super) written: &'a mut Vec<(PeerId, u32, u64)>,
}

impl<M: Memory> Places<'_, M> {
    /// Returns the memory for bytes of a piece, and the offset in it; `None`: no posted buffer holds them.
    fn find(&mut self, peer: PeerId, word: u64, from: u64, bytes: u64) -> Option<(&mut M, u64)> {
        let Steering { connection, number, index, piece } = Steering::read(word)?;
        let receiver = self.receivers.get(*self.theirs.get(&(peer, connection))?)?;
        let ahead = number.wrapping_sub(receiver.completed as u8);
        let request = *receiver.waiting.get(usize::from(ahead))?;
        let Request::Receive { parts, .. } = self.requests.get_mut(request)? else { return None };
        let buffer = &mut parts.get_mut(index as usize)?.buffer;
        let at = (piece * self.piece).checked_add(from)?;
        (at.checked_add(bytes)? <= buffer.size).then_some((&mut buffer.memory, at))
    }
}

impl<M: Memory> Placement for Places<'_, M> {
    fn head(&mut self, peer: u32, steering: u64, length: u64) -> Option<usize> {
        self.find(peer, steering, 0, length.checked_sub(PIECE_HEADER as u64)?)?;
        Some(PIECE_HEADER)
    }

    fn place(&mut self, peer: u32, steering: u64, from: u64, bytes: &[u8]) {
        // A receiver that has closed meanwhile ignores further bytes.
        if let Some(from) = from.checked_sub(PIECE_HEADER as u64)
            && let Some((memory, at)) = self.find(peer, steering, from, bytes.len() as u64)
        {
            memory.write(at, bytes);
        }
    }

    fn written(&mut self, peer: u32, notice: u32, bytes: u64) {
        self.written.push((peer, notice, bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steering_values_round_trip() {
        // A tebibyte in pieces of 61,408 B: the last piece has index 17,905,022.
        let piece = 15 * 4096 - 32;
        let last = ((1u64 << 40) - 1) / piece;
        let header =
            PieceHeader { connection: 0xff_ffff, number: 0x0102_03ff, index: 7, offset: last * piece, size: 1 << 40 };
        let statement = Steering { connection: 0xff_ffff, number: 0xff, index: 7, piece: last };
        assert_eq!(last, 17_905_022);
        assert_eq!(Steering::read(Steering::of(&header, piece)), Some(statement));
        let first = PieceHeader { connection: 0, number: 0, index: 0, offset: 0, size: 8 };
        assert_ne!(Steering::of(&first, piece), 0, "the first of all says something");
        let silent = [
            PieceHeader { connection: 1 << 24, ..first },
            PieceHeader { index: 8, ..first },
            PieceHeader { offset: 1, ..first },
            PieceHeader { offset: piece << 29, ..first },
        ];
        assert!(silent.iter().all(|header| Steering::of(header, piece) == 0));
        assert_eq!(Steering::read(0), None);
    }
}
