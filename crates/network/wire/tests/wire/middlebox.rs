//! A NAT that maps the port of each label, and drops those of closed ports, between two endpoints of one machine.

use crate::common::{driver, served, server, uet};
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::transfer::{self, Sent};
use std::{
    io::ErrorKind,
    net::{SocketAddr, UdpSocket},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

const LABELS: u16 = 8;

fn settings() -> Settings {
    Settings {
        transport: uet("mtu=1400B rto_rule=measured min_rto=5ms"),
        scheme: HostParameters::named("ops").unwrap(),
        labels: LABELS.into(),
        rate: Rate::gbps(1),
        rtt_floor: Time::from_us(1_000),
        catch_up: Time::from_us(1_000),
        ..Settings::default()
    }
}

fn socket(port: u16) -> Option<UdpSocket> {
    let socket = UdpSocket::bind(("127.0.0.1", port)).ok()?;
    socket.set_nonblocking(true).unwrap();
    Some(socket)
}

/// Passes datagrams between its consecutive ports and those of `to`, from a port of its own for each, while `is_open`.
fn relay(front: &[UdpSocket], to: SocketAddr, is_open: &(dyn Fn(usize) -> bool + Sync), stop: &AtomicBool) {
    let back: Vec<UdpSocket> = front.iter().map(|_| socket(0).unwrap()).collect();
    let mut callers: Vec<Option<SocketAddr>> = vec![None; front.len()];
    let mut bytes = [0; 2000];
    while !stop.load(Ordering::Relaxed) {
        let mut is_idle = true;
        let mut pass = |from: &UdpSocket| match from.recv_from(&mut bytes) {
            Ok((size, at)) => Some((bytes[..size].to_vec(), at)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => None,
            Err(error) => panic!("{error}"),
        };
        for label in 0..front.len() {
            if let Some((datagram, at)) = pass(&front[label]) {
                is_idle = false;
                callers[label] = Some(at);
                if is_open(label) {
                    back[label].send_to(&datagram, SocketAddr::new(to.ip(), to.port() + label as u16)).unwrap();
                }
            }
            if let Some(((datagram, _), caller)) = pass(&back[label]).zip(callers[label]) {
                is_idle = false;
                front[label].send_to(&datagram, caller).unwrap();
            }
        }
        if is_idle {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Sends bytes through the relay.
fn send(bytes: u64, is_open: &(dyn Fn(usize) -> bool + Sync)) -> Sent {
    let fronts = (30_000u16..60_000).step_by(LABELS.into());
    let open = |first: u16| (first..first + LABELS).map(socket).collect::<Option<Vec<_>>>();
    let front = fronts.into_iter().find_map(open).unwrap();
    let at = front[0].local_addr().unwrap();
    let stop = AtomicBool::new(false);
    let send = |to| {
        std::thread::scope(|scope| {
            let (stop, front) = (&stop, &front);
            scope.spawn(move || relay(front, to, is_open, stop));
            let sent = transfer::send(&mut driver(settings()), &at.into(), bytes, &mut |_| (), &mut |_, _| true);
            stop.store(true, Ordering::Relaxed);
            sent.unwrap()
        })
    };
    served(server(settings()), send).0
}

/// The server stores the port of the handshake, and finds those of other labels by the connection number.
#[test]
fn labels_pass_a_nat_that_maps_ports() {
    let sent = send(2_000_000, &|_| true);
    let record = sent.record;
    assert!(record.per_label.len() == LABELS.into() && record.per_label.iter().all(|count| *count > 50), "{record:?}");
    assert!(record.retransmitted < record.packets / 10, "{record:?}");
}

/// Streams wait for eight rounds of probes, and go over the ports that are open.
#[test]
fn closed_ports_carry_nothing() {
    for open in [&[0usize][..], &[5], &[1, 2, 6]] {
        let Sent { record, silent, .. } = send(2_000_000, &|label| open.contains(&label));
        let is_open = |label: &u32| open.contains(&(*label as usize));
        assert!(silent.iter().all(|label| !is_open(label)) && silent.len() == LABELS as usize - open.len());
        let used: Vec<usize> = (0..record.per_label.len()).filter(|label| record.per_label[*label] > 0).collect();
        assert_eq!(used, open, "{record:?}");
        // 16 ms at 1 Gb/s; the relay and both endpoints share the machine's processors.
        assert!(record.confirmed.saturating_sub(record.due) < Time::from_us(3_000_000), "{record:?}");
    }
}

#[test]
fn silent_ports_are_named() {
    let text = |labels: &[u32], at: Option<&str>| transfer::silent_text(labels, at.map(|at| at.parse().unwrap()));
    let ports = text(&[1, 2, 3, 7], Some("10.0.0.2:7000"));
    assert!(ports.contains("UDP ports 7001-7003, 7007 of 10.0.0.2 (firewall or NAT?)"), "{ports}");
    assert!(text(&[4], None).contains("labels 4 ("), "{}", text(&[4], None));
    assert_eq!(text(&[], None), "all labels reply now");
}

#[test]
fn ports_that_open_later_are_used() {
    // Streams open after 150 ms; 40 MB take longer than the rest.
    let began = Instant::now();
    let is_open = |label: usize| label == 0 || began.elapsed() > Duration::from_millis(350);
    let sent = send(40_000_000, &is_open);
    assert!(sent.silent.is_empty() && sent.record.per_label.iter().all(|count| *count > 0), "{sent:?}");
}
