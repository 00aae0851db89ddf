//! Transfers over verbs between two threads, with a fake libibverbs built against the real header. Needs a C compiler
//! and Debian's libibverbs-dev.

use crate::common::{drawn, served};
use crate::fake::{with_libraries, with_library};
use anabranch_endpoint::Endpoint;
use anabranch_lb::registry::HostParameters;
use anabranch_settings::Auto;
use anabranch_transport::TransportParameters;
use anabranch_units::{Bytes, Rate};
use anabranch_wire::{
    Datapath, DatapathKind, Driver, WireParameters,
    chunks::ChunkSettings,
    transfer::{self, Received, Sent},
    verbs::{Served, UcPath, VerbsSent, VerbsSettings, send, serve},
};
use std::{
    io::Write,
    net::{SocketAddr, TcpStream},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const BYTES: u64 = 24_000_000;

fn settings() -> VerbsSettings {
    VerbsSettings { gid_index: Some(0), peer_timeout: Duration::from_secs(20), ..VerbsSettings::default() }
}

fn transfer(scheme: &str, bytes: u64, change: impl FnOnce(&mut ChunkSettings)) -> (VerbsSent, Served) {
    let (messages, heard) = mpsc::channel();
    let (listens, listening) = mpsc::channel();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let at: SocketAddr = "127.0.0.1:0".parse().unwrap();
            let mut at_last = |at: SocketAddr, device: &str| {
                assert_eq!(device, "fake0");
                listens.send(at).unwrap();
            };
            let mut look = |served: Option<&Served>| {
                if let Some(served) = served {
                    messages.send(served.clone()).unwrap();
                }
                !stop.load(Ordering::Relaxed)
            };
            serve(at, &settings(), true, &mut at_last, &mut look).unwrap();
        });
        let to = listening.recv().unwrap();
        let mut chunks = ChunkSettings::new(HostParameters::named(scheme).unwrap());
        (chunks.chunk, chunks.probe) = (250_000, 10_000);
        chunks.rtt_floor = anabranch_units::Time::from_us(300);
        change(&mut chunks);
        let sent = send(to, bytes, &settings(), chunks, &mut drawn(1), &mut |_, _| true);
        stop.store(sent.is_err(), Ordering::Relaxed);
        let sent = sent.unwrap();
        let served = heard.recv_timeout(Duration::from_secs(10)).unwrap();
        stop.store(true, Ordering::Relaxed);
        (sent, served)
    })
}

fn check(scheme: &str, sent: &VerbsSent, served: &Served, bytes: u64) {
    let (ours, theirs, _) = served.outcome.clone().unwrap();
    assert_eq!((ours, ours), (theirs, sent.summary), "{scheme}");
    assert_eq!(ours.bytes, bytes, "{scheme}");
    assert_eq!(sent.by_label.iter().map(|(_, chunks)| chunks).sum::<u64>(), sent.counters.chunks, "{scheme}");
    println!("{scheme}: {sent:?}");
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn rc_transfer_delivers_all_bytes() {
    with_library("verbs::rc_transfer_delivers_all_bytes", "", || {
        let sizes = [BYTES / 4, 1, 250_001, 0];
        for (scheme, bytes) in HostParameters::ALL.iter().map(|about| about.name).zip(sizes.into_iter().cycle()) {
            let (sent, served) = transfer(scheme, bytes, |_| {});
            check(scheme, &sent, &served, bytes);
            // Messages have sixteen chunks, and all but those of the last message have the maximum size.
            assert_eq!(sent.counters.chunks, bytes.div_ceil(250_000), "{scheme}");
            assert_eq!((sent.counters.queues, sent.counters.relabelled, sent.counters.failed), (8, 0, 0), "{scheme}");
        }
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn two_queue_pairs_serve_many_labels() {
    with_library("verbs::two_queue_pairs_serve_many_labels", "", many_labels);
}

fn many_labels() {
    let (sent, served) = transfer("ops", BYTES, |chunks| {
        (chunks.labels, chunks.max_queues, chunks.window) = ((1..=20).collect(), 2, 2);
    });
    check("ops", &sent, &served, BYTES);
    // The library aborts if a queue pair is drained with work outstanding.
    assert!(sent.counters.queues == 2 && sent.counters.relabelled > 50, "{:?}", sent.counters);
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
        let (sent, served) = transfer("hopper", BYTES, |_| {});
        check("hopper", &sent, &served, BYTES);
        // After some 28 of 96 chunks the label of one becomes twenty times as slow. One more chunk uses it
        // (`hopper_leaves_a_slow_path_after_one_chunk` in chunks.rs); two of three use other labels.
        let most = sent.by_label.iter().map(|(_, chunks)| *chunks).max().unwrap();
        assert!(sent.counters.path_switches >= 1 && sent.counters.probes >= 2, "{:?}", sent.counters);
        assert!(most < 90, "{:?}", sent.by_label);
    });
}

/// Packets of 1 kB, 200 Mbit/s, eight labels.
fn uc_driver(scheme: &str, at: Option<SocketAddr>) -> Driver<UcPath> {
    let mut wire = WireParameters { datapath: DatapathKind::Uc, ..WireParameters::default() };
    (wire.payload, wire.rtt_floor) = (Auto::Value(Bytes(1000)), anabranch_units::Time::from_us(2_000));
    let transport = TransportParameters::named("uet").unwrap();
    let settings = wire.settings(&transport, HostParameters::named(scheme).unwrap(), Rate(200_000_000), 5).unwrap();
    let labels = settings.labels;
    let endpoint = Endpoint::new(settings);
    let path = UcPath::open(at, self::settings(), (labels, 4), endpoint.longest_datagram(), 5).unwrap();
    Driver::new(endpoint, path)
}

fn uc_server() -> (Driver<UcPath>, SocketAddr) {
    let mut driver = uc_driver("ecmp", Some("127.0.0.1:0".parse().unwrap()));
    let at = driver.datapath().at().unwrap();
    (driver, at)
}

fn uc_transfer(scheme: &str, bytes: u64) -> (Sent, Received) {
    let send = |to: SocketAddr| {
        transfer::send(&mut uc_driver(scheme, None), &to.into(), bytes, &mut drawn(1), &mut |_, _| true)
    };
    let (sent, all) = served(uc_server, send);
    (sent.unwrap(), all[0])
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn uc_transfer_delivers_all_bytes() {
    with_library("verbs::uc_transfer_delivers_all_bytes", "lossy", || {
        for (scheme, bytes) in [("ops", 3_000_000), ("reps", 3_000_000), ("hopper", 3_000_000), ("ecmp", 1)] {
            let (sent, received) = uc_transfer(scheme, bytes);
            assert_eq!((received.summary, received.sent), (sent.record.summary, sent.record.summary), "{scheme}");
            assert_eq!(sent.record.summary.bytes, bytes);
            let used = sent.record.per_label.iter().filter(|packets| **packets > 0).count();
            println!("{scheme}: {:?} {:?}", sent.record.per_label, sent.counters);
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
        let (sent, received) = uc_transfer("hopper", 24_000_000);
        assert_eq!((received.summary, received.sent), (sent.record.summary, sent.record.summary));
        println!("{:?} {:?}", sent.record.per_label, sent.counters);
        // After some 8,000 of 24,000 packets the label that carries them falls from 200 to 10 Mbit/s, at which the rest
        // would take 13 s. Most of the rest uses other labels.
        let most = sent.record.per_label.iter().max().unwrap();
        assert!(sent.counters.path_switches >= 1 && *most < 20_000, "{:?}", sent.record.per_label);
        assert!(sent.record.confirmed - sent.record.due < anabranch_units::Time::from_ms(8_000), "{:?}", sent.record);
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn datapath_mismatch_is_reported() {
    with_library("verbs::datapath_mismatch_is_reported", "", || {
        let mut uc = uc_driver("ecmp", Some("127.0.0.1:0".parse().unwrap()));
        let at = uc.datapath().at().unwrap();
        let (messages, heard) = mpsc::channel();
        uc.datapath().on_error(move |reason| messages.send(reason.to_string()).unwrap());
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                let chunks = ChunkSettings::new(HostParameters::named("hopper").unwrap());
                send(at, 1, &settings(), chunks, &mut |_| {}, &mut |_, _| true).unwrap_err().to_string()
            });
            while !sender.is_finished() {
                uc.work().unwrap();
                let until = uc.datapath().now() + anabranch_units::Time::from_ms(5);
                uc.wait(until).unwrap();
            }
            let message = sender.join().unwrap();
            assert!(message.contains("refused the connection"), "{message}");
            let reason = heard.recv().unwrap();
            assert!(reason.contains("uses the datapath rc, this endpoint uc"), "{reason}");
        });
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn unknown_connections_do_not_affect_peers() {
    with_library("verbs::unknown_connections_do_not_affect_peers", "", || {
        let (_, all) = served(uc_server, |to| {
            // Two callers are silent, one sends another protocol, one a frame of receivers, and one announces datagrams of 4 GB.
            let mut hello = vec![9];
            hello.extend(b"ABCV\x00\x01");
            hello.extend([0; 16]);
            hello.push(3);
            hello.extend(8u32.to_be_bytes());
            hello.extend(u32::MAX.to_be_bytes());
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
                let sent =
                    transfer::send(&mut uc_driver("reps", None), &to.into(), 200_000, &mut fill, &mut |_, _| true);
                assert_eq!(sent.unwrap().record.summary.bytes, 200_000);
            }
            drop(connections);
        });
        assert!(all.len() == 6 && all.iter().all(|received| received.summary == received.sent), "{all:?}");
    });
}

#[test]
#[ignore = "needs cc and libibverbs-dev"]
fn dead_label_is_abandoned() {
    with_library("verbs::dead_label_is_abandoned", "dead", || {
        for scheme in ["hopper", "qp-spray", "flowbender"] {
            let (sent, served) = transfer(scheme, BYTES, |chunks| chunks.window = 3);
            check(scheme, &sent, &served, BYTES);
            if scheme == "hopper" {
                assert!(sent.counters.failed >= 1 && sent.counters.again >= 1, "{:?}", sent.counters);
                assert_eq!(sent.last_error.as_deref(), Some("retries exceeded"));
            }
        }
    });
}
