//! Transfers over verbs between two threads, with a fake libibverbs built against the real header. Needs a C compiler
//! and Debian's libibverbs-dev.

use crate::common::{drawn, served};
use crate::fake::{with_libraries, with_library, with_variables};
use anabranch_endpoint::Endpoint;
use anabranch_lb::registry::HostParameters;
use anabranch_settings::Auto;
use anabranch_transport::TransportParameters;
use anabranch_units::{Bytes, Rate, Time};
use anabranch_wire::{
    Datapath, DatapathKind, Driver, WireParameters,
    transfer::{self, Received, Sent},
    verbs::{Dimensions, VerbsPath, VerbsSettings},
};
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::mpsc,
    thread,
    time::Duration,
};

const BYTES: u64 = 24_000_000;
const CHUNK: u64 = 250_000;

/// A label has 200 Mbit/s. UC: packets of 1 kB. RC: chunks of 250 kB, which take 10 ms, and the caller's changes.
fn driver(
    datapath: DatapathKind,
    scheme: &str,
    at: Option<SocketAddr>,
    change: impl FnOnce(&mut WireParameters),
) -> Driver<VerbsPath> {
    let mut wire = WireParameters { datapath, ..WireParameters::default() };
    let mut rate = Rate(200_000_000);
    (wire.payload, wire.rtt_floor) = (Auto::Value(Bytes(1000)), Time::from_us(2_000));
    if datapath == DatapathKind::Rc {
        (wire.chunk, wire.calibrations, rate) = (Auto::Value(Bytes(CHUNK)), 4, Rate::gbps(10));
    }
    change(&mut wire);
    let transport = TransportParameters::named("uet").unwrap();
    let settings = wire.settings(&transport, HostParameters::named(scheme).unwrap(), rate, 5).unwrap();
    let (labels, endpoint) = (settings.labels, Endpoint::new(settings));
    let verbs = VerbsSettings {
        gid_index: Some(0),
        is_reliable: datapath == DatapathKind::Rc,
        queue_pairs: wire.queue_pairs,
        peer_timeout: Duration::from_secs(20),
        ..VerbsSettings::default()
    };
    let longest = endpoint.longest_datagram();
    let dimensions = Dimensions { labels, peers: 4, datagram: longest, probe: longest };
    Driver::new(endpoint, VerbsPath::open(at, verbs, dimensions, 5).unwrap())
}

fn server(datapath: DatapathKind, change: impl FnOnce(&mut WireParameters)) -> (Driver<VerbsPath>, SocketAddr) {
    let mut driver = driver(datapath, "ecmp", Some("127.0.0.1:0".parse().unwrap()), change);
    let at = driver.datapath().at().unwrap();
    (driver, at)
}

/// Returns also how often queue pairs changed their labels, and the last error of hardware.
fn transfer(
    datapath: DatapathKind,
    scheme: &str,
    bytes: u64,
    change: impl Fn(&mut WireParameters) + Send + Sync,
) -> (Sent, (u64, Option<String>)) {
    let change = &change;
    let send = |to: SocketAddr| {
        let mut driver = driver(datapath, scheme, None, change);
        driver.datapath().reach(to).unwrap();
        let sent = transfer::send(&mut driver, &to.into(), bytes, &mut drawn(1), &mut |_, _| true);
        (sent.unwrap(), driver.datapath().relabelled())
    };
    let ((sent, pairs), all) = served(move || server(datapath, change), send);
    let received: Received = all[0];
    assert_eq!((received.summary, received.sent), (sent.record.summary, sent.record.summary), "{scheme}");
    assert_eq!(sent.record.summary.bytes, bytes, "{scheme}");
    println!("{scheme}: {:?} {:?} {pairs:?}", sent.record.per_label, sent.counters);
    (sent, pairs)
}

use DatapathKind::{Rc, Uc};

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn rc_transfer_delivers_all_bytes() {
    with_library("verbs::rc_transfer_delivers_all_bytes", "", || {
        let sizes = [BYTES / 4, 1, 250_001, 0];
        for (scheme, bytes) in HostParameters::ALL.iter().map(|about| about.name).zip(sizes.into_iter().cycle()) {
            let (sent, pairs) = transfer(Rc, scheme, bytes, |_| {});
            // A message is a megabyte, its first byte its kind, and the last has the sum.
            let whole = 4 * CHUNK - 1;
            let chunks = bytes / whole * 4 + (bytes % whole + u64::from(bytes % whole > 0)).div_ceil(CHUNK) + 1;
            assert_eq!((sent.counters.packets, sent.counters.retransmitted), (chunks, 0), "{scheme}");
            assert_eq!(pairs, (0, None), "{scheme}");
        }
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn two_queue_pairs_serve_many_labels() {
    with_library("verbs::two_queue_pairs_serve_many_labels", "", many_labels);
}

fn many_labels() {
    let (sent, (relabelled, _)) = transfer(Rc, "ops", BYTES, |wire| {
        (wire.labels, wire.queue_pairs, wire.chunks_under_way) = (20, 2, Auto::Value(2));
    });
    // The library aborts if a queue pair is drained with work outstanding.
    assert!(relabelled > 50 && sent.record.per_label.iter().filter(|packets| **packets > 0).count() > 10);
}

/// With a driver that changes source ports: the library aborts if a queue pair is drained for it.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn the_driver_of_nvidia_changes_ports() {
    with_libraries("verbs::the_driver_of_nvidia_changes_ports", "", "can", many_labels);
}

/// With a driver whose hardware does not support this.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn hardware_that_cannot_change_ports_is_drained() {
    with_libraries("verbs::hardware_that_cannot_change_ports_is_drained", "", "cannot", many_labels);
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn hopper_leaves_a_slow_label() {
    with_library("verbs::hopper_leaves_a_slow_label", "slow", || {
        let (sent, _) = transfer(Rc, "hopper", BYTES, |_| {});
        // After some 28 of 97 chunks the label of one becomes twenty times as slow. One more chunk uses it; two of three use
        // other labels.
        let most = *sent.record.per_label.iter().max().unwrap();
        assert!(sent.counters.path_switches >= 1 && sent.counters.probes >= 2 && most < 90);
    });
}

/// The hardware aborts after 100 ms; what it has not delivered takes other labels, once.
fn leaves_a_label(schemes: &[&str]) {
    for scheme in schemes {
        let (sent, (_, error)) = transfer(Rc, scheme, BYTES, |wire| wire.chunks_under_way = Auto::Value(3));
        if *scheme == "hopper" {
            assert!(sent.counters.timeouts >= 1 && sent.counters.retransmitted >= 1, "{:?}", sent.counters);
            assert_eq!(error.as_deref(), Some("retries exceeded"));
        }
    }
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn dead_label_is_abandoned() {
    with_library("verbs::dead_label_is_abandoned", "dead", || leaves_a_label(&["hopper", "qp-spray", "flowbender"]));
}

/// Half a second after it has died the label carries chunks again.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn a_label_that_comes_back_is_used_again() {
    let variables = [("FAKE_FAULT_MS", "500")];
    with_variables("verbs::a_label_that_comes_back_is_used_again", "dead", &variables, || {
        let (sent, _) = transfer(Rc, "rr", 3 * BYTES, |wire| wire.chunks_under_way = Auto::Value(3));
        // 291 chunks over eight labels in turn, some of them twice, in 1.5 s at most of which one label is dead for a third.
        let least = *sent.record.per_label.iter().min().unwrap();
        assert!(sent.counters.timeouts >= 1 && least > 20, "{:?}", sent.record.per_label);
    });
}

/// Chunks arrive, and the sender learns so from the peer alone: none is retransmitted.
#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn lost_acknowledgements_duplicate_nothing() {
    with_library("verbs::lost_acknowledgements_duplicate_nothing", "deaf", || {
        let (sent, (_, error)) = transfer(Rc, "qp-spray", BYTES, |wire| wire.chunks_under_way = Auto::Value(3));
        assert_eq!(error.as_deref(), Some("retries exceeded"));
        // Chunks behind it on the same queue pair, which never left.
        assert!(sent.counters.retransmitted < 20, "{:?}", sent.counters);
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn uc_transfer_delivers_all_bytes() {
    with_library("verbs::uc_transfer_delivers_all_bytes", "lossy", || {
        for (scheme, bytes) in [("ops", 3_000_000), ("reps", 3_000_000), ("hopper", 3_000_000), ("ecmp", 1)] {
            let (sent, _) = transfer(Uc, scheme, bytes, |_| {});
            let used = sent.record.per_label.iter().filter(|packets| **packets > 0).count();
            if bytes > 1 {
                // Of 3,000 packets one of 53 is lost.
                assert!(sent.counters.retransmitted > 10, "{scheme}: {:?}", sent.counters);
            }
            if scheme == "ops" {
                assert_eq!(used, 8);
            }
        }
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn hopper_leaves_a_slow_unreliable_queue_pair() {
    with_library("verbs::hopper_leaves_a_slow_unreliable_queue_pair", "slow", || {
        let (sent, _) = transfer(Uc, "hopper", BYTES, |_| {});
        // After some 8,000 of 24,000 packets the label that carries them falls from 200 to 10 Mbit/s, at which the rest
        // would take 13 s. Most of the rest uses other labels.
        let most = sent.record.per_label.iter().max().unwrap();
        assert!(sent.counters.path_switches >= 1 && *most < 20_000, "{:?}", sent.record.per_label);
        assert!(sent.record.confirmed - sent.record.due < Time::from_ms(8_000), "{:?}", sent.record);
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn datapath_mismatch_is_reported() {
    with_library("verbs::datapath_mismatch_is_reported", "", || {
        for (here, there, word) in [(Uc, Rc, "rc, this endpoint uc"), (Rc, Uc, "uc, this endpoint rc")] {
            let (mut server, at) = server(here, |_| {});
            let (messages, heard) = mpsc::channel();
            server.datapath().on_error(move |reason| messages.send(reason.to_string()).unwrap());
            thread::scope(|scope| {
                let sender = scope.spawn(move || {
                    let mut driver = driver(there, "hopper", None, |_| {});
                    driver.datapath().reach(at).unwrap_err().to_string()
                });
                while !sender.is_finished() {
                    server.work().unwrap();
                    let until = server.datapath().now() + Time::from_ms(5);
                    server.wait(until).unwrap();
                }
                let message = sender.join().unwrap();
                assert!(message.contains("refused the connection"), "{message}");
                let reason = heard.recv().unwrap();
                assert!(reason.contains(&format!("uses the datapath {word}")), "{reason}");
            });
        }
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn unknown_connections_do_not_affect_peers() {
    with_library("verbs::unknown_connections_do_not_affect_peers", "", || {
        let (_, all) = served(
            || server(Uc, |_| {}),
            |to| {
                // Two callers are silent, one sends another protocol, one a frame of receivers, and one announces datagrams of 4 GB.
                let mut hello = vec![1];
                hello.extend(b"ABCV\x00\x04");
                hello.extend([0; 16]);
                hello.push(3);
                [8, 8, u32::MAX, 0].iter().for_each(|number: &u32| hello.extend(number.to_be_bytes()));
                let message: [&[u8]; 5] = [b"", b"", b"GET / HTTP/1.1\r\n\r\n", &[8], &hello];
                let connections: Vec<TcpStream> = message
                    .iter()
                    .map(|message| {
                        let mut connection = TcpStream::connect(to).unwrap();
                        connection.write_all(message).unwrap();
                        connection
                    })
                    .collect();
                // More than the maximum number of peers at once (four).
                for number in 0..6 {
                    let mut fill = |bytes: &mut [u8]| bytes.fill(number);
                    let mut driver = driver(Uc, "reps", None, |_| {});
                    let sent = transfer::send(&mut driver, &to.into(), 200_000, &mut fill, &mut |_, _| true);
                    assert_eq!(sent.unwrap().record.summary.bytes, 200_000);
                }
                drop(connections);
            },
        );
        assert!(all.len() == 6 && all.iter().all(|received| received.summary == received.sent), "{all:?}");
    });
}
