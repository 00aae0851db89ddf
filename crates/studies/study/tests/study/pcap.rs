//! `run --pcap`: the files agree with the rows of the links, and with Wireshark (slow, needs `tshark`).

use anabranch_results::{Inputs, OutputDir};
use anabranch_scenario::{SIMULATOR, Scenario, ScenarioError, Tree};
use anabranch_study::{Captured, Captures, Permission, RunError, Single};
use anabranch_testkit::folder;
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// An incast over two spines, which marks, trims, drops or pauses.
const INCAST: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 3
spines = 2
hosts_per_leaf = 4
link_rate = "100Gbps"
[[workload]]
kind = "incast"
senders = 8
receivers = 1
size = "100kB"
[[workload]]
kind = "permutation"
size = "30001B"
scope = "other-leaf"
"#;

/// Name, the rest of the scenario, and the maximum number of bytes by which a frame exceeds its packet. RoCEv2 takes 62 B for
/// an acknowledgement and 58 for data, where the model has 60 and, with the last byte of a flow, 49.
const CASES: &[(&str, &str, u64)] = &[
    ("uet", "[load_balancer]\nscheme = \"prime\"\n", 0),
    (
        "lossless",
        "[fabric]\nprofile = \"roce-lossless\"\nshared_buffer = \"400kB\"\n[transport]\nkind = \"roce\"\n[load_balancer]\nscheme = \"hopper\"\n",
        9,
    ),
    (
        "irn",
        "[fabric]\nprofile = \"roce-irn\"\nshared_buffer = \"400kB\"\n[transport]\nkind = \"roce\"\nheader = \"57B\"\nack_size = \"62B\"\n[load_balancer]\n\
         scheme = \"conweave\"\n",
        0,
    ),
];

fn read(texts: &[String], replace: bool) -> Result<Captures, ScenarioError> {
    let nowhere = OutputDir::open(Path::new("no-such-directory")).unwrap();
    Captures::read(texts, replace, &Inputs::default(), &nowhere)
}

/// A NIC, an uplink, and about the receiver of the incast the port that marks and one that sends pauses.
fn links(rest: &str) -> [String; 4] {
    let setup = scenario(rest).setup(1).unwrap();
    let receiver = setup.flows.flows.iter().find(|flow| flow.workload == 0).unwrap().dst;
    let leaf = receiver / 4;
    [
        "host0->leaf0".into(),
        "leaf0->spine1".into(),
        format!("leaf{leaf}->host{receiver}"),
        format!("leaf{leaf}->spine0"),
    ]
}

fn scenario(rest: &str) -> Scenario {
    let text = format!("{INCAST}{rest}");
    Scenario::read(Tree::parse("test.toml", &text).unwrap(), "test", Path::new(".")).unwrap()
}

fn flag(link: &str, dir: &Path) -> String {
    format!("{link}={}", dir.join(format!("{link}.pcapng")).display())
}

fn run(rest: &str, dir: &Path, captures: &Captures, threads: usize) -> Result<Vec<Captured>, RunError> {
    let scenario = scenario(rest);
    let single = Single::new(&scenario, &SIMULATOR, &dir.join("results"), Permission::default())?;
    let ran = single.execute(&scenario, &SIMULATOR, threads, captures, &|_| {}, &mut |_| true);
    ran.map(|(_, captured, _)| captured)
}

fn capture(rest: &str, dir: &Path, threads: usize) -> Vec<Captured> {
    let flags: Vec<String> = links(rest).iter().map(|link| flag(link, dir)).collect();
    run(rest, dir, &read(&flags, false).unwrap(), threads).unwrap()
}

/// Packets and bytes of a link in `links.csv`.
fn row(dir: &Path, link: &str) -> (u64, u64) {
    let mut reader = csv::Reader::from_path(dir.join("results/links.csv")).unwrap();
    let rows = reader.deserialize::<BTreeMap<String, String>>().map(Result::unwrap);
    let found: Vec<(u64, u64)> = rows
        .filter(|row| format!("{}->{}", row["from"], row["to"]) == link)
        .map(|row| (row["packets"].parse().unwrap(), row["bytes"].parse().unwrap()))
        .collect();
    found[0]
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

/// Timestamp in nanoseconds, length and bytes of every packet of a file.
fn packets(file: &Path) -> Vec<(u64, u32, Vec<u8>)> {
    let bytes = fs::read(file).unwrap();
    let (mut at, mut found) = (0, vec![]);
    while at < bytes.len() {
        let length = word(&bytes[at + 4..]) as usize;
        if word(&bytes[at..]) == 6 {
            let field = |number: usize| word(&bytes[at + 8 + 4 * number..]);
            let head = bytes[at + 28..at + 28 + field(3) as usize].to_vec();
            found.push((u64::from(field(1)) << 32 | u64::from(field(2)), field(4), head));
        }
        at += length;
    }
    found
}

/// Computes the CRC of Ethernet, bit by bit, over eight bytes of ones and `bytes`.
fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    let feed = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), step);
    !bytes.iter().fold([0xFF; 8].iter().fold(u32::MAX, feed), feed)
}

/// Returns the kind of a frame, after all checks of it.
fn kind_of(frame: &[u8], length: u32) -> String {
    if frame[12..14] == [0x88, 0x08] {
        assert_eq!((&frame[..6], &frame[14..16]), (&[1, 0x80, 0xC2, 0, 0, 1][..], &[1, 1][..]));
        return "pause".into();
    }
    let mut whole = frame.to_vec();
    whole.resize(length as usize, 0);
    let sliced = SlicedPacket::from_ethernet(&whole).unwrap();
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (&sliced.net, &sliced.transport) else {
        panic!("neither IPv4 nor UDP: {sliced:?}")
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    assert_eq!(usize::from(udp.length()) + 20, usize::from(header.total_len));
    let ecn = header.ecn.value();
    let within = udp.payload();
    if udp.destination_port() != 4791 {
        assert_eq!((udp.destination_port(), within[21]), (0xEFFF, 1));
        return format!("ours {} ecn {ecn}", within[0]);
    }
    let (inner, icrc) = (usize::from(header.total_len) - 4, 14 + usize::from(header.total_len) - 4);
    let mut masked = whole[14..14 + inner].to_vec();
    for place in [1, 8, 10, 11, 26, 27, 32] {
        masked[place] = 0xFF;
    }
    assert_eq!(crc(&masked).to_le_bytes(), whole[icrc..icrc + 4], "invariant CRC");
    match within[0] {
        17 => format!("ack {:02x} becn {}", within[12], within[4] >> 6 & 1),
        opcode @ (6 | 7 | 8 | 10) => format!("write {opcode} ecn {ecn}"),
        other => panic!("opcode {other}"),
    }
}

#[test]
fn files_match_rows() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, rest, wider) in CASES {
        let dir = folder();
        for captured in capture(rest, &dir, 1) {
            let (packets_sent, bytes_sent) = row(&dir, &captured.link);
            let found = packets(&captured.file);
            assert_eq!(found.len() as u64, packets_sent, "{name}, {}", captured.link);
            let bytes: u64 = found.iter().map(|packet| u64::from(packet.1)).sum();
            assert_eq!(bytes, bytes_sent + captured.written.widened_by, "{name}, {}", captured.link);
            assert!(captured.written.widened_by <= wider * captured.written.widened, "{:?}", captured.written);
            assert_eq!((captured.written.packets, captured.written.bytes), (packets_sent, bytes));
            assert!(found.is_sorted_by_key(|packet| packet.0) && packets_sent > 10);
            seen.extend(found.iter().map(|(_, length, frame)| format!("{name}: {}", kind_of(frame, *length))));
        }
        let again = folder();
        for (captured, link) in capture(rest, &again, 2).iter().zip(links(rest)) {
            let first = fs::read(dir.join(format!("{link}.pcapng"))).unwrap();
            assert!(fs::read(&captured.file).unwrap() == first, "{name}, {link}");
        }
    }
    for kind in [
        "uet: ours 0 ecn 2",
        "uet: ours 0 ecn 3",
        "uet: ours 1 ecn 0",
        "uet: ours 2 ecn 0",
        "uet: ours 3 ecn 0",
        "lossless: write 6 ecn 2",
        "lossless: write 7 ecn 2",
        "lossless: write 8 ecn 2",
        "lossless: write 10 ecn 2",
        "lossless: ack 1f becn 0",
        "lossless: pause",
        "irn: write 7 ecn 3",
        "irn: ack 1f becn 1",
        "irn: ack 60 becn 1",
        "irn: ours 6 ecn 0",
    ] {
        assert!(seen.contains(kind), "no {kind} in {seen:#?}");
    }
}

#[test]
fn unwritable_captures_are_refused() {
    let dir = folder();
    let there = dir.join("there.pcapng");
    fs::write(&there, "mine").unwrap();
    let refused = |flags: &[String], words: &[&str]| {
        let captures = read(flags, false);
        let error = match captures.map(|captures| run(CASES[0].1, &dir, &captures, 1)) {
            Err(error) | Ok(Err(RunError::Scenario(error))) => error,
            other => panic!("accepted: {other:?}"),
        };
        let text = format!("{error} {}", error.remedy().unwrap_or_default());
        words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in: {text}"));
        let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["there.pcapng"]);
    };
    refused(&["leaf0-".into()], &["expected LINK=FILE", "quotes"]);
    refused(&[flag("leaf0->spin1", &dir)], &["no link `leaf0->spin1`", "did you mean `leaf0-spine1`?"]);
    refused(&[flag("leaf0-spine1", &dir)], &["two directions", "leaf0->spine1 or spine1->leaf0"]);
    let twice = [flag("leaf0->spine1", &dir), flag("leaf0->spine1", &dir)];
    refused(&twice, &["is given twice"]);
    refused(&[format!("leaf0->spine1={}", there.display())], &["this file exists", "--replace"]);
    refused(&[format!("leaf0->spine1={}", dir.display())], &["is a directory"]);
    refused(&[format!("leaf0->spine1={}", dir.join("no/where.pcapng").display())], &["there is no directory"]);
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    let captures = read(&[format!("leaf0->spine1={}", there.display())], true).unwrap();
    run(CASES[0].1, &dir, &captures, 1).unwrap();
    assert_eq!(packets(&there).len() as u64, row(&dir, "leaf0->spine1").0);
}

fn tshark(file: &Path, arguments: &[&str]) -> Vec<String> {
    let output = Command::new("tshark").arg("-r").arg(file).args(arguments).output();
    let output = output.expect("tshark, Debian's package of this name, is needed for this check");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_string).collect()
}

#[test]
#[ignore = "slow: needs tshark"]
fn wireshark_agrees() {
    for (name, rest, _) in CASES {
        let dir = folder();
        for captured in capture(rest, &dir, 1) {
            let file = &captured.file;
            let told = tshark(file, &[]);
            assert!(!told.iter().any(|line| line.contains("Malformed") || line.contains("Invalid")), "{told:#?}");
            let columns =
                "frame.len frame.protocols _ws.malformed _ws.short _ws.expert.severity ip.checksum.status udp.dstport";
            let mut arguments = vec!["-o", "ip.check_checksum:TRUE", "-T", "fields"];
            columns.split(' ').for_each(|column| arguments.extend(["-e", column]));
            let (mut bytes, mut known) = (0, 0);
            let lines = tshark(file, &arguments);
            for line in &lines {
                let cells: Vec<&str> = line.split('\t').collect();
                let [length, protocols, malformed, short, expert, checksum, port] = cells[..] else { panic!("{line}") };
                bytes += length.parse::<u64>().unwrap();
                // Severities: a chat is 0x200000 and a note 0x400000; warnings and errors are above.
                let severe =
                    expert.split(',').filter_map(|s| s.parse::<u64>().ok()).any(|severity| severity > 0x40_0000);
                assert!(malformed.is_empty() && short.is_empty() && !severe, "{name}, {}: {line}", captured.link);
                let understood = protocols.contains("infiniband") || protocols.contains("macc");
                // Good is 1; a pause frame has no IP.
                assert!(checksum == "1" || protocols.contains("macc"), "{name}, {}: {line}", captured.link);
                assert!(understood || port == "61439", "{name}, {}: {line}", captured.link);
                known += u64::from(understood);
            }
            let (packets, bytes_sent) = row(&dir, &captured.link);
            assert_eq!((lines.len() as u64, bytes), (packets, bytes_sent + captured.written.widened_by));
            assert!(if *name == "uet" { known == 0 } else { known > 10 });
            println!("{name}, {}: {packets} packets, {bytes} bytes, {known} read as RoCEv2 or PFC", captured.link);
        }
    }
}
