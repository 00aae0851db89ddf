use super::{format::*, *};
use crate::event::Sizes;
use anabranch_transport::Reply;
use anabranch_units::Time;
use proptest::prelude::*;

fn holds() -> impl Strategy<Value = Time> {
    any::<u32>().prop_map(|ns| Time::from_ns(u64::from(ns)))
}

/// Fields as in docs/reference/wire.md.
#[test]
fn fields_of_a_retry() {
    let mut out = Vec::new();
    retry(&mut out, 0x0102_0304, 0x1112_1314_1516_1718, &[0xAB; COOKIE_BYTES]);
    assert_eq!(out.len(), 56);
    assert_eq!((out[1], &out[4..8]), (8, &[1, 2, 3, 4][..]));
    assert_eq!(&out[8..12], b"ABCH");
    assert_eq!(&out[12..20], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    assert_eq!(&out[20..52], [0xAB; 32]);
    let check: [u8; 4] = out[52..].try_into().unwrap();
    out[52..].fill(0);
    assert_eq!(crc_fast::crc32_iscsi(&out).to_be_bytes(), check);
}

proptest! {
    #[test]
    fn packets_round_trip(
        numbers in any::<[u32; 5]>(), wide in any::<[u64; 3]>(), psn in 0u64..1 << 62, cumulative in 0u64..1 << 62,
        small in 1u16.., flags in any::<[bool; 4]>(), transmission in any::<u32>(), held in holds(),
    ) {
        let [connection, stream, tag, span, offset] = numbers;
        let mut out = Vec::new();
        let greeting = Greeting {
            connection: tag, nonce: wide[0], own_nonce: wide[2], mtu: span & 0xff_ffff | 1, labels: small, planes: 1 + numbers[4] as u8 % 32, span: span | 1, max_message: wide[1],
            protection: [Protection::Off, Protection::Control, Protection::All][psn as usize % 3],
        };
        let cookie = std::array::from_fn(|at| (wide[at % 3] >> (at % 8)) as u8);
        hello(&mut out, &greeting, &cookie, 1000);
        prop_assert_eq!((Packet::decode(&out), out.len()), (Ok(Packet::Hello { greeting, cookie }), 1000));
        retry(&mut out, connection, wide[0], &cookie);
        prop_assert_eq!(out.len(), RETRY_BYTES);
        prop_assert_eq!(Packet::decode(&out), Ok(Packet::Retry { connection, nonce: wide[0], cookie }));
        welcome(&mut out, connection, &greeting);
        prop_assert_eq!(Packet::decode(&out), Ok(Packet::Welcome { connection, greeting }));

        let index = (wide[2] % (psn + 1)).min(u64::from(u32::MAX)) as u32;
        let payload = vec![tag as u8; usize::from(small % 100)];
        let (checksum, steering) = (flags[3].then(|| crc32c(&payload)), wide[0]);
        let header = Data {
            stream, payload: payload.len() as u32, psn, tag, message: cumulative, length: wide[1] >> 16, index, checksum, steering, transmission,
            fragment: Fragment { index: offset as u8 % (small as u8 % 16 + 1), count: small as u8 % 16 + 1 },
            ack_request: flags[0],
        };
        data(&mut out, connection, &header);
        prop_assert_eq!(out.len(), DATA_HEADER);
        out.extend_from_slice(&payload);
        let read = Packet::Data { connection, data: header, payload: Some(&payload) };
        prop_assert_eq!(Packet::decode(&out), Ok(read));
        if header.payload > 0 {
            let trimmed = Packet::Data { connection, data: header, payload: None };
            prop_assert_eq!(Packet::decode(&out[..DATA_HEADER]), Ok(trimmed));
        }

        let reply = Reply {
            psn, tag, cumulative, bitmap: wide[0], offset, ecn: flags[1], cnp: flags[2], nack: flags[3], last_hop: false,
        };
        ack(&mut out, connection, stream, &reply, transmission, held);
        prop_assert_eq!(out.len(), ACK_BYTES);
        let read = Packet::Ack { connection, stream, ack: reply, transmission, held };
        prop_assert_eq!(Packet::decode(&out), Ok(read));

        let (sent_probe, size) = (ProbeHeader { stream, tag, transmission, ..ProbeHeader::default() }, 500 + small / 2);
        probe(&mut out, connection, &sent_probe, usize::from(size));
        prop_assert_eq!(Packet::decode(&out), Ok(Packet::Probe { connection, probe: sent_probe }));
        let back = ProbeHeader { held, ecn: flags[1], ..sent_probe };
        echo(&mut out, connection, &back);
        prop_assert_eq!((Packet::decode(&out), out.len()), (Ok(Packet::Echo { connection, echo: back }), ECHO_BYTES));
        let stalled = flags[0].then_some(Sizes { passes: u32::from(small), fails: offset & 0xffff });
        let (part, list) = ([offset as u8 % 64, 64], [(stream, psn), (tag, cumulative)].repeat(usize::from(small % 127)));
        bye(&mut out, connection, wide[1], stalled);
        bye_part(&mut out, part, &list);
        let read = Packet::Bye { connection, proof: wide[1], stalled, part, streams: &out[26..] };
        prop_assert_eq!((Packet::decode(&out), bye_list(&out[26..]).collect::<Vec<_>>()), (Ok(read), list));
    }

    /// No input makes the decoder panic.
    #[test]
    fn arbitrary_bytes_are_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 0u8..10, ours in any::<bool>()) {
        if ours && bytes.len() > 1 {
            (bytes[0], bytes[1]) = (VERSION, kind);
        }
        for end in 0..=bytes.len() {
            let _ = Packet::decode(&bytes[..end]);
        }
    }
}

/// Test vectors of RFC 3720, appendix B.4.
#[test]
fn crc32c_is_that_of_iscsi() {
    let ascending: Vec<u8> = (0..32).collect();
    let vectors = [(&[0; 32][..], 0x8a91_36aa), (&[0xff; 32], 0x62a8_ab43), (&ascending, 0x46dd_794e)];
    for (bytes, expected) in vectors {
        assert_eq!(crc32c(bytes), expected);
        let (first, rest) = bytes.split_at(7);
        assert_eq!((crc32c_of(first, rest), crc32c_of(&[], bytes)), (expected, expected));
    }
}

#[test]
fn any_bit_error_is_detected() {
    let payload: Vec<u8> = (0..200u8).collect();
    let data_of = |checksum| Data {
        stream: 1,
        payload: 200,
        psn: 9,
        tag: 3,
        message: 2,
        length: 900,
        index: 1,
        checksum,
        steering: 5,
        transmission: 7,
        fragment: Fragment { index: 2, count: 3 },
        ack_request: true,
    };
    let greeting = Greeting {
        connection: 1,
        nonce: 2,
        own_nonce: 3,
        protection: Protection::Off,
        mtu: 4,
        labels: 5,
        planes: 6,
        span: 6,
        max_message: 7,
    };
    let reply = Reply { psn: 1, tag: 2, cumulative: 3, bitmap: 4, offset: 5, ecn: true, ..Reply::default() };
    let probe_of = ProbeHeader { stream: 1, tag: 2, transmission: 4, held: Time::from_ns(5), ecn: true };
    let mut all = vec![Vec::new(); 8];
    data(&mut all[0], 1, &data_of(Some(crc32c(&payload))));
    all[0].extend_from_slice(&payload);
    hello(&mut all[1], &greeting, &[6; COOKIE_BYTES], 300);
    welcome(&mut all[2], 1, &greeting);
    ack(&mut all[3], 1, 2, &reply, 0, Time::ZERO);
    probe(&mut all[4], 1, &probe_of, PROBE_BYTES);
    echo(&mut all[5], 1, &probe_of);
    bye(&mut all[6], 1, 2, None);
    bye_part(&mut all[6], [0, 1], &[(3, 4), (5, 6)]);
    retry(&mut all[7], 1, 2, &[6; COOKIE_BYTES]);
    let believed = |bytes: &[u8]| Packet::decode(bytes).is_ok() || decode_foreign(bytes).is_some();
    for datagram in &all {
        assert!(believed(datagram));
        let bits = 8 * datagram.len();
        for first in 0..bits {
            for (second, third) in [(first, first), (first / 2, first), (bits - 1, 17), (first + 1, first + 5)] {
                let mut changed = datagram.clone();
                let places = std::collections::BTreeSet::from([first, second % bits, third % bits]);
                places.iter().for_each(|bit| changed[bit / 8] ^= 1 << (bit % 8));
                assert!(!believed(&changed), "{places:?} of {datagram:?}");
            }
        }
    }
    // A header alone, as trimming leaves it, is checked as well.
    let mut trimmed = all[0][..DATA_HEADER].to_vec();
    assert!(believed(&trimmed));
    trimmed[30] ^= 4;
    assert!(!believed(&trimmed));
    data(&mut trimmed, 1, &data_of(None));
    trimmed.extend_from_slice(&[1; 200]);
    assert!(believed(&trimmed));
}

#[test]
fn other_versions_and_kinds_are_refused() {
    let mut out = Vec::new();
    bye(&mut out, 1, 2, None);
    out[0] = 1;
    assert_eq!(Packet::decode(&out), Err(DecodeError::Version(1)));
    out[0] = VERSION;
    out[1] = 9;
    assert_eq!(Packet::decode(&out), Err(DecodeError::Kind(9)));
}
