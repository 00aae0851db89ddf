//! The commands `serve` and `send`, as two processes of this machine.

use crate::common::{Folder, assert_contains, code, json, stderr, stdout};
use anabranch_endpoint::{
    header,
    header::{Greeting, Packet},
};
use anabranch_transport::Reply;
use anabranch_units::Time;
use std::{
    io::{BufRead, BufReader},
    net::UdpSocket,
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

fn serve(folder: &Folder, more: &[&str]) -> (Child, String) {
    let arguments = [&["serve", "--at", "127.0.0.1:0", "--once"], more].concat();
    let mut child = folder.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let at = line.strip_prefix("listening at ").and_then(|rest| rest.split(' ').next()).expect(&line).to_string();
    (child, at)
}

#[test]
fn bytes_are_transferred_between_processes() {
    let folder = Folder::new("wire");
    let (child, at) = serve(&folder, &["--format", "json", "--set", "wire.labels=4"]);
    let sent = folder.run(&["send", "--to", &at, "--bytes", "5MB", "--scheme", "prime", "--format", "json"]);
    let server = child.wait_with_output().unwrap();
    assert_eq!((code(&sent), code(&server)), (0, 0), "{}{}", stderr(&sent), stderr(&server));
    let (sent, received) = (json(&sent), json(&server));
    assert_eq!(sent["bytes"].as_u64(), Some(5_000_000));
    assert_eq!((&sent["crc32"], &sent["bytes"]), (&received["crc32"], &received["bytes"]));
    assert_eq!(received["checksums_equal"].as_bool(), Some(true));
    assert!(sent["goodput_bps"].as_f64().unwrap() > 0.0 && sent["base_rtt_ps"].as_u64().unwrap() > 0);
    assert!(sent["path_switches"].as_u64().unwrap() > 1000, "PRIME takes another path with every packet: {sent}");
}

/// A message of 1 MB at 20 Mbit/s takes 0.4 s, and the receiver reports at most the link rate.
#[test]
fn receiver_counts_from_first_packet() {
    let folder = Folder::new("wire-rate");
    for (bytes, rated) in [("1MB", true), ("1kB", false)] {
        let (child, at) = serve(&folder, &["--format", "json", "--set", "wire.labels=4"]);
        let words = format!("send --to {at} --bytes {bytes} --set wire.rate=20Mbps --scheme ecmp --format json");
        let sent = folder.line(&words);
        let server = child.wait_with_output().unwrap();
        assert_eq!((code(&sent), code(&server)), (0, 0), "{}{}", stderr(&sent), stderr(&server));
        let rate = json(&server)["goodput_bps"].as_f64();
        println!("{bytes}: {rate:?}");
        // Both endpoints print the time that the receiver has measured.
        let of = |value: serde_json::Value, took: &str| (value["goodput_bps"].as_f64(), value[took].as_u64());
        assert_eq!(of(json(&sent), "received_in_ps"), of(json(&server), "took_ps"));
        assert_eq!(rate.is_some(), rated, "{}", stdout(&server));
        assert!(rate.is_none_or(|rate| (1e6..22e6).contains(&rate)), "{rate:?}");
    }
}

/// Three digits and a unit, wherever a time is printed; and a note where every packet takes a system call.
#[test]
fn times_are_short_and_single_packets_are_noted() {
    let folder = Folder::new("wire-text");
    let (child, at) = serve(&folder, &["--set", "wire.labels=64"]);
    // Slow packets leave one by one.
    let words = ["send", "--to", &at, "--bytes", "1MB", "--set", "wire.labels=64", "--set", "wire.rate=50Mbps"];
    let sent = folder.run(&words);
    let server = child.wait_with_output().unwrap();
    assert_eq!((code(&sent), code(&server)), (0, 0), "{}{}", stderr(&sent), stderr(&server));
    for text in [stdout(&sent), stdout(&server)] {
        let words: Vec<&str> = text.split_whitespace().collect();
        let times: Vec<&str> = words
            .windows(2)
            .filter(|two| ["ps", "ns", "us", "ms", "s"].contains(&two[1].trim_end_matches(',')))
            .map(|two| two[0])
            .collect();
        assert!(!times.is_empty() && times.iter().all(|time| time.len() <= 4), "{times:?} in {text}");
    }
    // 1 MB at 50 Mbit/s take 160 ms, and the goodput is over the time beside it.
    let line = stdout(&sent).lines().find(|line| line.starts_with("goodput")).unwrap().to_string();
    let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let ["goodput", rate, "Mbit/s", "over", "the", time, "ms", ..] = words[..] else { panic!("{line}") };
    let product = rate.parse::<f64>().unwrap() * time.parse::<f64>().unwrap();
    assert!((product / 8_000.0 - 1.0).abs() < 0.01, "1 MB are 8,000 Mbit/s times ms: {line}");
    let calls = stdout(&sent).lines().find_map(|line| line.strip_prefix("packets per system call").map(str::to_string));
    assert!(calls.is_some_and(|calls| calls.trim().starts_with("1.")), "{}", stdout(&sent));
    assert!(stderr(&sent).contains("GSO") && stderr(&sent).contains("loopback"), "{}", stderr(&sent));
}

/// At 1 Mbit/s a full packet takes 11 ms, after which the BYE leaves; without one the sender waits for ten seconds.
#[test]
fn serve_that_ends_says_bye() {
    let folder = Folder::new("wire-bye");
    for signal in ["TERM", "INT"] {
        let set = ["--set", "wire.rate=1Mbps"];
        let (child, at) = serve(&folder, &set);
        let words = [&["send", "--to", &at], &set[..]].concat();
        let sender = folder.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(1_500));
        anabranch_testkit::send_signal(child.id(), signal);
        let ended = Instant::now();
        let sent = sender.wait_with_output().unwrap();
        assert!(stderr(&sent).contains(&format!("{at} has disconnected")), "{}", stderr(&sent));
        assert!(ended.elapsed() < Duration::from_secs(5), "{:?}", ended.elapsed());
        assert_eq!(code(&child.wait_with_output().unwrap()), 130);
    }
}

#[test]
fn icmp_error_of_mid_transfer_is_named() {
    let folder = Folder::new("wire-icmp");
    let (mut child, at) = serve(&folder, &[]);
    let words = ["send", "--to", &at, "--set", "wire.rate=10Mbps", "--set", "wire.give_up=1s"];
    let sender = folder.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(1));
    child.kill().unwrap();
    let sent = sender.wait_with_output().unwrap();
    child.wait().unwrap();
    assert_contains(
        &stderr(&sent),
        &["acknowledges no data", "nothing more for 1s (wire.give_up)", "(ICMP: Connection refused"],
    );
}

fn key(folder: &Folder, name: &str, digit: &str) -> String {
    let path = folder.0.join(name);
    std::fs::write(&path, digit.repeat(64)).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    format!("wire.key={}", path.display())
}

/// Both peers with the same key; then one with another key, and one with none. Each reports it in one message, and no key is printed.
#[test]
fn peers_with_equal_keys_connect_and_others_are_refused() {
    let folder = Folder::new("wire-key");
    let (one, other) = (key(&folder, "one", "1"), key(&folder, "other", "2"));
    for authenticate in ["auto", "all"] {
        let with = format!("wire.authenticate={authenticate}");
        let (child, at) = serve(&folder, &["--format", "json", "--set", &one, "--set", &with]);
        for (set, words) in [(Some(&other), "another key"), (None, "has a key and this endpoint has none")] {
            let mut arguments = vec!["send", "--to", &at, "--bytes", "1MB"];
            arguments.extend(set.iter().flat_map(|set| ["--set", set]));
            let refused = folder.run(&arguments);
            assert_eq!((code(&refused), stdout(&refused)), (2, String::new()), "{}", stderr(&refused));
            assert!(stderr(&refused).contains(words) && stderr(&refused).contains("wire.key"), "{}", stderr(&refused));
            assert!(!stderr(&refused).contains("2222"));
        }
        let sent = folder.run(&["send", "--to", &at, "--bytes", "1MB", "--set", &one, "--format", "json"]);
        let server = child.wait_with_output().unwrap();
        assert_eq!((code(&sent), code(&server)), (0, 0), "{}{}", stderr(&sent), stderr(&server));
        assert_eq!(json(&sent)["crc32"], json(&server)["crc32"]);
        // At most one message per second, so the second of two may be missing.
        assert!(stderr(&server).contains("refused: 127.0.0.1:"), "{}", stderr(&server));
        assert!(!stdout(&server).contains("1111") && !stderr(&server).contains("1111"));
    }
    std::fs::set_permissions(folder.0.join("one"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    folder.refused(&["send", "--to", "127.0.0.1:9", "--set", &one], &["chmod 600"]);
}

/// Starts a peer that completes the handshake and echoes probes, acknowledges data only with `acknowledges`, and sends none.
/// Returns its address and a handle.
fn without_data(acknowledges: bool) -> (String, mpsc::Sender<()>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (at, (ends, ended)) = (socket.local_addr().unwrap().to_string(), mpsc::channel());
    thread::spawn(move || {
        let (mut buffer, mut out, mut theirs) = ([0; 4096], Vec::new(), 0);
        while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            match Packet::decode(&buffer[..length]) {
                Ok(Packet::Hello { greeting, .. }) => {
                    theirs = greeting.connection;
                    header::welcome(&mut out, theirs, &Greeting { connection: 77, own_nonce: 7, ..greeting });
                }
                Ok(Packet::Probe { probe, .. }) => header::echo(&mut out, theirs, &probe),
                // One label keeps the order.
                Ok(Packet::Data { data, .. }) if acknowledges => {
                    let ack = Reply { psn: data.psn, tag: data.tag, cumulative: data.psn + 1, ..Reply::default() };
                    header::ack(&mut out, theirs, data.stream, &ack, data.transmission, Time::ZERO);
                }
                _ => continue,
            }
            socket.send_to(&out, from).unwrap();
        }
    });
    (at, ends)
}

#[test]
fn unacknowledged_data_differs_from_silent_peer() {
    let folder = Folder::new("wire-deaf");
    let (at, _ends) = without_data(false);
    let sent =
        folder.run(&["send", "--to", &at, "--bytes", "1MB", "--set", "wire.labels=1", "--set", "wire.give_up=500ms"]);
    let message = stderr(&sent);
    assert_eq!((code(&sent), stdout(&sent)), (2, String::new()), "{message}");
    let sound = "Datagrams of 1408 B have replies, so the path passes data";
    assert_contains(
        &message,
        &[&at[..], "is connected but acknowledges no data: 0 B", "500ms", "wire.max_buffered_bytes", sound],
    );
    assert!(!message.contains("no reply"), "{message}");
}

/// The receiver has everything, and nothing of its own comes back.
#[test]
fn missing_confirmation_is_named() {
    let folder = Folder::new("wire-unconfirmed");
    let (at, _ends) = without_data(true);
    let began = std::time::Instant::now();
    let set = ["--set", "wire.labels=1", "--set", "wire.give_up=500ms", "--set", "wire.rate=100Mbps"];
    let sent = folder.run(&[&["send", "--to", &at, "--bytes", "100kB"], &set[..]].concat());
    let message = stderr(&sent);
    assert_eq!((code(&sent), stdout(&sent)), (2, String::new()), "{message}");
    assert_contains(&message, &[&at[..], "acknowledged all 100000 B", "no confirmation for 1s", "path back"]);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

/// A soft limit below the number of sockets is raised to the hard one; a hard limit is named with its remedy.
#[test]
fn limit_of_open_files_is_raised_or_named() {
    let folder = Folder::new("wire-files");
    let serve = |limit: &str| {
        let command = format!(
            "ulimit -{limit} 30; exec timeout -s INT 1 {} serve --at 127.0.0.1:0 --set wire.labels=64",
            env!("CARGO_BIN_EXE_anabranch")
        );
        std::process::Command::new("sh").args(["-c", &command]).current_dir(&folder.0).output().unwrap()
    };
    for (limit, words) in [("Sn", "and the 63 ports after it"), ("n", "raise the limit of open files (ulimit -Hn)")] {
        let output = serve(limit);
        assert_eq!(code(&output) == 2, limit == "n", "{}", stderr(&output));
        let message = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(message.contains(words), "no `{words}` in {message}");
    }
}

/// What depends on the machine: resolvers, interfaces, devices, ports in use.
#[test]
fn invalid_transfers_are_refused_in_one_message() {
    let folder = Folder::new("wire-wrong");
    let unresolved = ["no.such.name.invalid", "cannot be resolved"];
    folder.refused("send --to no.such.name.invalid:7000", &unresolved);
    folder.refused("paths --to no.such.name.invalid:7000", &["cannot be resolved"]);
    folder.refused("serve --at [fe80::1%none]:7000", &["--at", "`none`"]);
    folder.refused("send --to 127.0.0.1:9 --from 192.0.2.1", &["192.0.2.1"]);
    let three = "127.0.0.1:0,127.0.0.2:0,127.0.0.3:0";
    folder.refused(&format!("serve --at {three}"), &["wire.labels", "found 8 for 3 planes", "such as 6"]);
    folder.refused("serve --at 127.0.0.1:7000,[::1]:7000", &["--at", "addresses of one family"]);
    let two = "127.0.0.1:7000,127.0.0.2:7000";
    folder.refused(&format!("send --to {two} --from 127.0.0.1"), &["--from", "found 1 addresses, expected 2"]);
    folder.refused(&format!("send --to {two} --datapath uc"), &["--to", "planes are for --datapath udp"]);
    let stev = "send --to 127.0.0.1:9 --set wire.stev=label-first";
    folder.refused(stev, &["[wire]", "stev", "load_balancer.mrc.fields"]);
    let profile = format!("{stev} --scheme mrc --set load_balancer.mrc.fields=[\"8,0,0xf,0..15\"]");
    folder.refused(&profile, &["load_balancer.mrc", "width init mask min..max"]);
    for command in ["send --to 127.0.0.1:9", "serve --at 127.0.0.1:0"] {
        for datapath in ["rc", "uc"] {
            folder.refused(&format!("{command} --datapath {datapath} --device no-such-device"), &["RDMA"]);
        }
    }
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    folder.refused(&format!("serve --at {at}"), &[&at]);
}
