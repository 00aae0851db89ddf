//! Packets in fragments, where full packets do not pass, and the state of a search for the size that passes.

use crate::header::{Data, Fragment};
use anabranch_units::Time;

/// Maximum incomplete packets of a peer.
const MAX_INCOMPLETE: usize = 32;

/// Search for the largest datagram that passes to a peer.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) label: u32,
    pub(crate) sent: u32,
    pub(crate) due: Time,
    /// One bit per tag.
    pub(crate) echoed: u16,
}

/// A packet of which fragments have arrived.
#[derive(Debug)]
pub(crate) struct Incomplete {
    data: Data,
    count: u8,
    /// One bit per fragment.
    missing: u16,
    ecn: bool,
    bytes: Vec<u8>,
}

impl Incomplete {
    /// Memory of all incomplete packets of a peer.
    pub(crate) fn memory(mtu: u64) -> u64 {
        MAX_INCOMPLETE as u64 * (mtu + size_of::<Incomplete>() as u64)
    }
}

/// Returns the header of the packet of a fragment.
pub(crate) fn whole(data: &Data, mtu: u64) -> Data {
    let size = data.length.saturating_sub(u64::from(data.index).saturating_mul(mtu)).min(mtu);
    Data { fragment: Fragment::WHOLE, checksum: None, payload: size as u32, ..*data }
}

/// Returns a packet and its mark once all of its fragments have arrived; of incomplete ones the oldest gives way. `Err`: the
/// fragment does not fit its packet.
#[allow(clippy::type_complexity)]
pub(crate) fn assemble(
    incomplete: &mut Vec<Incomplete>,
    data: &Data,
    payload: &[u8],
    ecn: bool,
    mtu: u64,
) -> Result<Option<(Data, Vec<u8>, bool)>, ()> {
    let Fragment { index, count } = data.fragment;
    let whole = whole(data, mtu);
    let (size, fragment) = (u64::from(whole.payload), mtu.div_ceil(u64::from(count)));
    let (from, fragments) = (u64::from(index) * fragment, size.div_ceil(fragment).max(1));
    if u64::from(index) >= fragments || payload.len() as u64 != (size - from).min(fragment) {
        return Err(());
    }
    let is_it = |of: &Incomplete| {
        let name = |data: &Data| (data.stream, data.psn, data.message, data.length, data.index, data.steering);
        name(&of.data) == name(&whole) && of.count == count
    };
    let at = match incomplete.iter().position(is_it) {
        Some(at) => at,
        None => {
            if incomplete.len() == MAX_INCOMPLETE {
                incomplete.remove(0);
            }
            let missing = u16::MAX >> (16 - fragments);
            incomplete.push(Incomplete { data: whole, count, missing, ecn: false, bytes: vec![0; size as usize] });
            incomplete.len() - 1
        }
    };
    let of = &mut incomplete[at];
    of.missing &= !(1 << index);
    of.ecn |= ecn;
    // The last transmission is the one that its ACK names.
    of.data.transmission = data.transmission;
    of.data.ack_request |= data.ack_request;
    if let Some(place) = of.bytes.get_mut(from as usize..from as usize + payload.len()) {
        place.copy_from_slice(payload);
    }
    if of.missing > 0 {
        return Ok(None);
    }
    let Incomplete { data, bytes, ecn, .. } = incomplete.remove(at);
    Ok(Some((data, bytes, ecn)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fragments that never complete take the place of one another, and those that fit no packet are refused.
    #[test]
    fn incomplete_packets_are_bounded() {
        let (mut all, mtu) = (Vec::new(), 1000);
        let data = |psn, index, count| Data {
            stream: 1,
            psn,
            length: 1 << 40,
            index: psn as u32,
            fragment: Fragment { index, count },
            transmission: 7,
            ..Data::default()
        };
        for psn in 0..10_000 {
            assert!(assemble(&mut all, &data(psn, 0, 3), &[1; 334], false, mtu).unwrap().is_none());
        }
        assert_eq!((all.len(), all.capacity() <= 2 * MAX_INCOMPLETE), (MAX_INCOMPLETE, true));
        // The last one is still there: 334 + 334 + 332 B.
        assert!(assemble(&mut all, &data(9_999, 2, 3), &[3; 332], true, mtu).unwrap().is_none());
        let (whole, bytes, ecn) = assemble(&mut all, &data(9_999, 1, 3), &[2; 334], false, mtu).unwrap().unwrap();
        assert_eq!((whole.payload, whole.fragment, ecn), (1000, Fragment::WHOLE, true));
        assert_eq!(bytes, [[1; 334].to_vec(), [2; 334].to_vec(), [3; 332].to_vec()].concat());
        for (index, count, bytes) in [(0, 3, 333), (2, 3, 334), (15, 16, 62)] {
            assert!(assemble(&mut all, &data(5, index, count), &vec![0; bytes], false, mtu).is_err());
        }
    }
}
