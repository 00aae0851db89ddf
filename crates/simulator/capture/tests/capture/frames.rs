//! Frames byte by byte, and files block by block.

use anabranch_capture::{Encapsulation, Frame, OUR_PORT, ROCE_PORT, Wire, write};
use anabranch_outcome::{Capture, CapturedPacket, PacketKind};
use anabranch_units::Time;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};

const PACKET: CapturedPacket = CapturedPacket {
    time: Time::ZERO,
    psn: 9,
    acked_below: 10,
    flow_id: 3,
    tag: 7,
    src: 1,
    dst: 0,
    size_bytes: 62,
    payload_bytes: 1000,
    kind: PacketKind::Ack,
    class: 0,
    marked: false,
    notification: true,
    retransmission: false,
    ack_request: false,
};

fn wire(encapsulation: Encapsulation) -> Wire<'static> {
    Wire {
        encapsulation,
        link: "leaf0->host0",
        from: 8,
        to: 9,
        rate_bps: 100_000_000_000,
        ecn: true,
        pause: Some(Time::from_us(5)),
        packets: &|_| 10,
        bytes: &|_| 10_000,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes, invariant CRC included, of Scapy 2.6: `Ether(src='02:00:00:00:00:08',
/// dst='02:00:00:00:00:09')/IP(src='10.0.0.2', dst='10.0.0.1', tos=48<<2, flags='DF', id=0, ttl=64)/UDP(sport=0xC007,
/// dport=4791, chksum=0)/BTH(opcode=17, pkey=0xffff, dqpn=5, psn=9, becn=1)/AETH(syndrome=0x1f, msn=1)`.
#[test]
fn an_acknowledgement_is_what_scapy_builds() {
    let frame = Frame::of(&PACKET, &wire(Encapsulation::Roce));
    let scapy = "020000000009020000000008080045c0003000004000401125fb0a0000020a000001c00712b7001c0000\
                 1100ffff40000005000000091f0000010a383e2a";
    assert_eq!((hex(&frame.head).as_str(), frame.length), (scapy, 62));
}

/// Ports, lengths of IP and UDP, ECN bits, DSCP, content of UDP.
type Parts = ((u16, u16), (u16, u16), u8, u8, Vec<u8>);

fn parts(frame: &Frame) -> Parts {
    // A frame without captured payload has the length in its header.
    let mut whole = frame.head.clone();
    whole.resize(frame.length as usize, 0);
    let sliced = SlicedPacket::from_ethernet(&whole).expect("a frame");
    let Some(NetSlice::Ipv4(ip)) = sliced.net else { panic!("no IPv4") };
    let header = ip.header();
    assert_eq!(header.to_header().calc_header_checksum(), header.header_checksum());
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("no UDP") };
    let lengths = (header.total_len(), udp.length());
    let ports = (udp.source_port(), udp.destination_port());
    (ports, lengths, header.ecn().value(), header.dcp().value(), udp.payload().to_vec())
}

/// 1000 B with 48 B of headers: 1048 = 14 + 20 + 8 + 12 + 988 + 4 and 2 B of padding; the first has the RETH in 16 of the 988.
#[test]
fn a_message_in_segments() {
    let wire = wire(Encapsulation::Roce);
    for (psn, opcode) in [(0, 6), (1, 7), (8, 7), (9, 8)] {
        let packet =
            CapturedPacket { kind: PacketKind::Data, psn, size_bytes: 1048, marked: psn == 8, class: 2, ..PACKET };
        let packet = CapturedPacket { notification: false, ack_request: psn == 9, ..packet };
        let frame = Frame::of(&packet, &wire);
        assert_eq!((frame.head.len(), frame.length), (1048, 1048));
        let (ports, lengths, ecn, dscp, within) = parts(&frame);
        assert_eq!((ports, lengths), ((0xC007, ROCE_PORT), (1032, 1012)));
        assert_eq!((ecn, dscp), (if psn == 8 { 3 } else { 2 }, 16));
        let request = if psn == 9 { 0x80 } else { 0 };
        assert_eq!(within[..12], [opcode, 0, 0xFF, 0xFF, 0, 0, 0, 5, request, 0, 0, psn as u8]);
        assert_eq!(within.len(), 12 + 988 + 4);
        let begin = if psn == 0 { hex(&[0, 0, 0, 3, 0, 0, 0x27, 0x10]) } else { hex(&[0; 8]) };
        assert_eq!(hex(&within[20..28]), begin);
    }
    let one = Wire { packets: &|_| 1, ..wire };
    let only = Frame::of(&CapturedPacket { kind: PacketKind::Data, psn: 0, ..PACKET }, &one);
    assert_eq!((parts(&only).4[0], only.length), (10, 74));
}

#[test]
fn packets_shorter_than_their_headers_are_widened() {
    let wire = wire(Encapsulation::Roce);
    let packets = vec![
        CapturedPacket { size_bytes: 60, ..PACKET },
        CapturedPacket { size_bytes: 49, kind: PacketKind::Data, ..PACKET },
        CapturedPacket { size_bytes: 64, kind: PacketKind::Nack, acked_below: 1 << 24, ..PACKET },
    ];
    let frames: Vec<Frame> = packets.iter().map(|packet| Frame::of(packet, &wire)).collect();
    assert_eq!(frames.iter().map(|frame| frame.length).collect::<Vec<_>>(), [62, 58, 64]);
    // 64 B: the headers take 62, two of padding follow what IP counts.
    let (_, lengths, _, _, nack) = parts(&frames[2]);
    assert_eq!((lengths, frames[2].head.len()), ((48, 28), 64));
    // PSN 2^24 wraps to 0; a packet is missing.
    assert_eq!((nack[0], &nack[9..12], nack[12]), (17, &[0, 0, 0][..], 0x60));
    let capture = Capture { link: 0, packets };
    let written = write(&capture, &wire, &mut Vec::new()).unwrap();
    assert_eq!((written.packets, written.bytes, written.widened, written.widened_by), (3, 184, 2, 11));
}

/// Every field of our own header, as in `docs/how-to/inspect.md`.
#[test]
fn our_header_has_the_fields_of_the_packet() {
    let packet = CapturedPacket {
        psn: 0x1_0203_0405,
        acked_below: 0x0607_0809,
        flow_id: 0x0A0B_0C0D,
        tag: 0x1122_3344,
        size_bytes: 64,
        class: 5,
        marked: true,
        ..PACKET
    };
    let frame = Frame::of(&packet, &wire(Encapsulation::Ours));
    assert_eq!((frame.head.len(), frame.length), (64, 64));
    let (ports, lengths, ecn, dscp, within) = parts(&frame);
    // 0x344 ^ 0x223 ^ 0x011 = 0x176.
    assert_eq!((ports, lengths, ecn, dscp), ((0xF176, OUR_PORT), (50, 30), 0, 48));
    assert_eq!(hex(&within), "020c03e80a0b0c0d112233440203040506070809".to_owned() + "0501");
    let kinds = [PacketKind::Data, PacketKind::Header, PacketKind::Ack, PacketKind::Nack, PacketKind::Probe];
    let kinds = kinds.into_iter().chain([PacketKind::ProbeReply, PacketKind::SwitchControl]);
    for (number, kind) in kinds.enumerate() {
        let frame = Frame::of(&CapturedPacket { kind, size_bytes: 4160, ..packet }, &wire(Encapsulation::Ours));
        assert_eq!(parts(&frame).4[0], number as u8);
        assert_eq!(frame.length, 4160);
        let (_, lengths, ..) = parts(&frame);
        assert_eq!(lengths, (4146, 4126));
    }
}

/// Class 3 for 5 us at 100 Gb/s: 500,000 bits, 976 times 512; then a resume frame; unlimited pauses have the maximum.
#[test]
fn pause_frames_name_class_and_time() {
    let packet = CapturedPacket { kind: PacketKind::Pause, psn: 1, class: 3, size_bytes: 64, ..PACKET };
    let wire = wire(Encapsulation::Roce);
    let frame = |packet: &CapturedPacket, wire: &Wire<'_>| hex(&Frame::of(packet, wire).head);
    let begin = "0180c20000010200000000088808010100080000000000000";
    assert_eq!(frame(&packet, &wire), format!("{:0<128}", format!("{begin}3d0")));
    assert_eq!(frame(&CapturedPacket { psn: 0, ..packet }, &wire), format!("{begin:0<128}"));
    let endless = Wire { pause: None, ..wire };
    assert_eq!(frame(&packet, &endless), format!("{:0<128}", "0180c2000001020000000008880801010008000000000000ffff"));
    // The recorded model's frame of 43 B also fits.
    assert_eq!(Frame::of(&CapturedPacket { size_bytes: 43, ..packet }, &wire).length, 43);
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

/// Type and content of each block between its two equal lengths.
fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
    let mut blocks = vec![];
    while !file.is_empty() {
        let length = word(&file[4..]) as usize;
        assert!(length.is_multiple_of(4) && word(&file[length - 4..]) as usize == length);
        blocks.push((word(file), &file[8..length - 4]));
        file = &file[length..];
    }
    blocks
}

/// Layout of draft-ietf-opsawg-pcapng; pcap-file 2.0 and Wireshark 4.0 parse it identically.
#[test]
fn the_file_has_its_blocks() {
    let data = |ns: u64| CapturedPacket {
        kind: PacketKind::Data,
        size_bytes: 1048,
        time: Time::from_ps(ns * 1000 + 999),
        ..PACKET
    };
    let times = [0, 1, 5_000_000_000, 5_000_000_001];
    let capture = Capture { link: 0, packets: times.map(data).to_vec() };
    let mut bytes = Vec::new();
    write(&capture, &wire(Encapsulation::Roce), &mut bytes).unwrap();
    let blocks = blocks(&bytes);
    assert_eq!(blocks.iter().map(|block| block.0).collect::<Vec<_>>(), [0x0A0D_0D0A, 1, 6, 6, 6, 6]);
    // Byte order, version 1.0, length of the section not given.
    assert!(hex(blocks[0].1).starts_with("4d3c2b1a01000000ffffffffffffffff"));
    // Ethernet without a limit; if_name of 12 B, if_speed, if_tsresol 9, if_fcslen 0, end of options.
    let name: String = hex(b"leaf0->host0");
    let expected =
        format!("010000000000000002000c00{name}0800080000e876481700000009000100090000000d0001000000000000000000");
    assert_eq!(hex(blocks[1].1), expected);
    for (block, time) in blocks[2..].iter().zip(times) {
        let fields: Vec<u32> = block.1.chunks(4).take(5).map(word).collect();
        assert_eq!(fields, [0, (time >> 32) as u32, time as u32, 1048, 1048]);
        assert_eq!(block.1.len(), 20 + 1048);
    }
}
