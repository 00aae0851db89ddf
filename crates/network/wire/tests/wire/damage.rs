//! Bit errors between two kernels, past valid UDP checksums: a relay damages datagrams and forwards them.

use crate::common::{drawn, driver, served, server, uet};
use anabranch_endpoint::{Checksum, Key, Settings, header::Protection};
use anabranch_random::Stream;
use anabranch_units::{Rate, Time};
use anabranch_wire::transfer;
use std::{
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

const LABELS: u16 = 3;
const BYTES: u64 = 3_000_000;

fn settings(seed: u64, checksum: Checksum, protection: Protection) -> Settings {
    Settings {
        transport: uet("mtu=1300B rto_rule=measured min_rto=10ms"),
        seed,
        labels: u32::from(LABELS),
        rate: Rate::gbps(1),
        rtt_floor: Time::from_us(1_000),
        catch_up: Time::from_us(1_000),
        peer_timeout: Time::from_us(20_000_000),
        checksum,
        key: (protection > Protection::Off).then(|| Key::of(b"a key of both")),
        protection,
        ..Settings::default()
    }
}

fn sockets(ip: &str) -> Vec<UdpSocket> {
    let bind = |port| {
        let socket = UdpSocket::bind((ip, port)).ok()?;
        socket.set_nonblocking(true).unwrap();
        Some(socket)
    };
    for _ in 0..100 {
        let first = bind(0).unwrap();
        let port = first.local_addr().unwrap().port();
        let rest: Vec<_> = (1..LABELS).map_while(|label| bind(port.checked_add(label)?)).collect();
        if rest.len() + 1 == usize::from(LABELS) {
            return std::iter::once(first).chain(rest).collect();
        }
    }
    panic!("no ports in a row")
}

/// Damages one of fifty datagrams and counts them.
fn relay(here: &[UdpSocket], there: &[UdpSocket], to: SocketAddr, stop: &AtomicBool, damaged: &AtomicU64) {
    let mut draws = Stream::keyed(1, 0, "relay");
    let (mut callers, mut bytes) = (vec![None; here.len()], vec![0; 1 << 16]);
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for label in 0..here.len() {
            let far = SocketAddr::new(to.ip(), to.port() + label as u16);
            for (from, back) in [(&here[label], false), (&there[label], true)] {
                while let Ok((size, at)) = from.recv_from(&mut bytes) {
                    idle = false;
                    let datagram = &mut bytes[..size];
                    if draws.chance(1, 50) {
                        for _ in 0..1 + draws.below(3) {
                            datagram[draws.below(size as u64) as usize] ^= 1 << draws.below(8);
                        }
                        damaged.fetch_add(1, Ordering::Relaxed);
                    }
                    if back {
                        let _ = callers[label].map(|caller| here[label].send_to(datagram, caller));
                    } else {
                        callers[label] = Some(at);
                        let _ = there[label].send_to(datagram, far);
                    }
                }
            }
        }
        if idle {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Returns `true` if all bytes arrived intact, and the number of damaged datagrams.
fn through_the_relay(ip: &str, checksum: Checksum, protection: Protection) -> (bool, u64) {
    let (stop, damaged) = (AtomicBool::new(false), AtomicU64::new(0));
    let send = |to| {
        std::thread::scope(|scope| {
            let (here, there) = (sockets(ip), sockets(ip));
            let at = here[0].local_addr().unwrap();
            let (stop, damaged) = (&stop, &damaged);
            scope.spawn(move || relay(&here, &there, to, stop, damaged));
            let mut driver = driver(settings(1, checksum, protection));
            let sent = transfer::send(&mut driver, &at.into(), BYTES, &mut drawn(BYTES), &mut |_, _| true);
            stop.store(true, Ordering::Relaxed);
            sent
        })
    };
    let (sent, all) = served(server(settings(2, checksum, protection)), send);
    let equal = sent.is_ok() && all.len() == 1 && all[0].summary == all[0].sent && all[0].summary.bytes == BYTES;
    (equal, damaged.load(Ordering::Relaxed))
}

#[test]
fn corruption_missed_by_the_udp_checksum_is_detected() {
    let own = "127.0.0.1";
    for (ip, checksum, protection) in [
        (own, Checksum::Always, Protection::Off),
        (own, Checksum::Always, Protection::Control),
        (own, Checksum::Always, Protection::All),
        (own, Checksum::BetweenHosts, Protection::Control),
        ("127.0.0.2", Checksum::BetweenHosts, Protection::Off),
    ] {
        let (equal, damaged) = through_the_relay(ip, checksum, protection);
        assert!(equal && damaged > 20, "{ip}, {checksum:?}, {protection:?}: {damaged} damaged");
    }
    // Without the checksum it is not, which shows that the relay works.
    for checksum in [Checksum::Never, Checksum::BetweenHosts] {
        let (equal, damaged) = through_the_relay(own, checksum, Protection::Off);
        assert!(!equal && damaged > 20, "{checksum:?}: {damaged} damaged");
    }
}
