//! Wireshark's dissector (`tools/anabranch.lua`) decodes the header. Needs `tshark`.

use anabranch_endpoint::header::{self, Data, Greeting, ProbeHeader, Protection};
use anabranch_transport::Reply;
use anabranch_units::Time;
use std::{fs, path::Path, process::Command};

/// Classic format of libpcap, link type raw IPv4.
fn capture(datagrams: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut put = |number: u32| file.extend_from_slice(&number.to_le_bytes());
    // Magic, version 2.4, UTC, exact, longest packet, link type 101.
    [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 101].into_iter().for_each(&mut put);
    for datagram in datagrams {
        let size = 28 + datagram.len() as u16;
        let mut packet = vec![0x45, 2, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&size.to_be_bytes());
        let sum: u32 = packet.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        for number in [40_001u16, 7_003, size - 20, 0] {
            packet.extend_from_slice(&number.to_be_bytes());
        }
        packet.extend_from_slice(datagram);
        for number in [1, 0, packet.len() as u32, packet.len() as u32] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&packet);
    }
    file
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

#[test]
#[ignore = "slow: needs tshark"]
fn wireshark_reads_every_kind() {
    let greeting = Greeting {
        connection: 0x11,
        nonce: 0x0123_4567_89ab_cdef,
        own_nonce: 0x1122_3344_5566_7788,
        protection: Protection::Off,
        mtu: 1400,
        labels: 8,
        planes: 2,
        span: 4096,
        max_message: 1 << 24,
    };
    let data = Data {
        stream: 5,
        payload: 100,
        psn: (1 << 40) + 7,
        tag: 0xabcd,
        message: 3,
        length: 100_000,
        index: 70_000,
        checksum: Some(0xfeed),
        transmission: 7,
        ack_request: true,
        ..Data::default()
    };
    let answer = Reply {
        psn: 8,
        tag: 2,
        cumulative: 6,
        bitmap: 0b101,
        offset: 1,
        ecn: true,
        cnp: false,
        nack: true,
        last_hop: false,
    };
    let probe = ProbeHeader { stream: 5, tag: 9, transmission: 4, held: Time::from_ns(80), ecn: true };
    let full = written(|out| {
        header::data(out, 0x22, &data);
        out.extend_from_slice(&[7; 100]);
    });
    let mut sealed = full[..header::DATA_HEADER].to_vec();
    sealed[2] |= 0xc0;
    let datagrams = [
        written(|out| header::hello(out, &greeting, &[0; header::COOKIE_BYTES], 1456)),
        written(|out| header::welcome(out, 0x22, &greeting)),
        full.clone(),
        full[..header::DATA_HEADER].to_vec(),
        written(|out| header::data(out, 0x22, &Data { checksum: None, steering: 0x0102_0304_0506_0708, ..data })),
        written(|out| header::ack(out, 0x22, 5, &answer, 7, Time::from_ns(55))),
        written(|out| header::probe(out, 0x22, &probe, 500)),
        written(|out| header::echo(out, 0x22, &probe)),
        written(|out| {
            header::bye(out, 0x22, 0x0123_4567_89ab_cdef, None);
            header::bye_part(out, [0, 1], &[(5, 70_000)]);
        }),
        written(|out| header::retry(out, 0x22, 0x0123_4567_89ab_cdef, &[0xc0; header::COOKIE_BYTES])),
        // Number, payload MAC and header MAC between header and payload.
        [&sealed[..], &[0, 0, 0, 0, 0, 0, 1, 2], &[0xaa; 12], &[0xbb; 12], &[7; 100]].concat(),
        b"version 2 this is not".to_vec(),
    ];
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = dir.join("dissector.pcap");
    fs::write(&file, capture(&datagrams)).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tools/anabranch.lua");
    let fields = [
        "kind",
        "connection",
        "mtu",
        "held",
        "nonce",
        "labels",
        "stream",
        "payload_size",
        "index",
        "psn",
        "tag",
        "message",
        "length",
        "transmission",
        "cumulative",
        "bitmap",
        "offset",
        "ecn",
        "nack",
        "checksum",
        "steering",
        "number",
        "payload_mac",
        "mac",
    ];
    let fields = fields.iter().flat_map(|field| ["-e".to_string(), format!("anabranch.{field}")]);
    let output = Command::new("tshark")
        .arg("-X")
        .arg(format!("lua_script:{}", script.display()))
        .args(["-E", "separator=,", "-T", "fields"])
        .args(fields)
        .args(["-e", "_ws.col.Protocol", "-r"])
        .arg(&file)
        .output()
        .expect("tshark, Debian's package of this name, is needed for this check");
    let message = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !errors.contains("Lua"), "{errors}");
    let lines: Vec<&str> = message.lines().collect();
    let greeted = |kind: u8, to: &str| format!("{kind},{to},1400,,0x0123456789abcdef,8,,,,,,,,,,,,,,,,Anabranch");
    let of_data =
        |more| format!("3,0x00000022,,,,,5,100,70000,1099511627783,0x0000abcd,3,100000,7,,,,,,{more},Anabranch");
    let wanted = [
        greeted(1, "0x00000000"),
        greeted(2, "0x00000022"),
        of_data("0x0000feed,0x0000000000000000"),
        of_data("0x0000feed,0x0000000000000000"),
        of_data(",0x0102030405060708"),
        "4,0x00000022,,55,,,5,,,8,0x00000002,,,7,6,0x0000000000000005,1,1,1,,,Anabranch".into(),
        "5,0x00000022,,,,,5,,,,0x00000009,,,4,,,,,,,,Anabranch".into(),
        "6,0x00000022,,80,,,5,,,,0x00000009,,,4,,,,,,,,Anabranch".into(),
        "7,0x00000022,,,,,5,,,,,,,,70000,,,,,,,Anabranch".into(),
        "8,0x00000022,,,0x0123456789abcdef,,,,,,,,,,,,,,,,,Anabranch".into(),
        ",,,,,,,,,,,,,,,,,,,,,UDP".to_string(),
    ];
    let mut wanted = wanted.map(|line| line.replace(",Anabranch", ",,,,Anabranch").replace(",UDP", ",,,,UDP")).to_vec();
    let macs = format!(",258,{},{},Anabranch", "aa".repeat(12), "bb".repeat(12));
    wanted.insert(10, wanted[2].replace(",,,,Anabranch", &macs));
    assert_eq!(lines, wanted);
}
