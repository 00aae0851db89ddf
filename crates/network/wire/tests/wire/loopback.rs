//! Two endpoints of one machine over UDP, each in its own thread.

use crate::common::{drawn, driver, served, server, uet};
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::transfer::{self, Destination, Received, Sent, TransferError};

fn settings(scheme: &str, mtu: u64) -> Settings {
    let keys = format!("mtu={mtu}B rto_rule=measured min_rto=5ms early_loss=100us congestion_control=dctcp");
    Settings {
        transport: uet(&keys),
        scheme: HostParameters::named(scheme).unwrap(),
        labels: 4,
        rate: Rate::gbps(2),
        rtt_floor: Time::from_us(1_000),
        catch_up: Time::from_us(1_000),
        peer_timeout: Time::from_us(20_000_000),
        ..Settings::default()
    }
}

/// Sends to a server of its own.
fn transfer(ours: Settings, theirs: Settings, bytes: u64) -> (Result<Sent, TransferError>, Vec<Received>) {
    let send = |at: std::net::SocketAddr| {
        transfer::send(&mut driver(ours), &at.into(), bytes, &mut drawn(bytes), &mut |_, _| true)
    };
    served(server(theirs), send)
}

#[test]
fn every_scheme_delivers_all_bytes() {
    for scheme in HostParameters::ALL {
        let bytes = 3_000_001;
        let (sent, received) = transfer(settings(scheme.name, 1400), settings(scheme.name, 1400), bytes);
        let sent = sent.unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
        assert_eq!((sent.record.summary.bytes, received.len()), (bytes, 1), "{}", scheme.name);
        assert_eq!(
            (received[0].summary, received[0].sent),
            (sent.record.summary, sent.record.summary),
            "{}",
            scheme.name
        );
        // 1400 B of payload per packet; none is missing.
        assert!(sent.counters.packets - sent.counters.retransmitted >= bytes / 1400, "{}: {sent:?}", scheme.name);
    }
}

/// Replies leave at once, and not at the next periodic call after 100 ms.
#[test]
fn small_transfer_finishes_without_timers() {
    let took = (0..5).map(|_| {
        let (sent, _) = transfer(settings("reps", 1400), settings("reps", 1400), 10_000);
        let record = sent.unwrap().record;
        record.confirmed.saturating_sub(record.due)
    });
    let shortest = took.min().unwrap();
    assert!(shortest < Time::from_us(50_000), "{shortest:?}");
}

#[test]
fn mtu_mismatch_is_reported() {
    let (sent, received) = transfer(settings("ecmp", 1400), settings("ecmp", 1000), 10);
    let error = sent.unwrap_err().to_string();
    assert!(error.contains("1000 B") && error.contains("1400 B"), "{error}");
    assert!(received.is_empty());
}

#[test]
fn peer_with_fewer_labels_is_reached() {
    let (sent, received) = transfer(
        Settings { labels: 8, ..settings("reps", 1400) },
        Settings { labels: 2, ..settings("reps", 1400) },
        1 << 20,
    );
    assert_eq!(sent.unwrap().record.summary, received[0].summary);
}

/// Pieces of up to 1 MiB with one byte of header, in packets of 1000 B, over labels 1 and 3 of four.
#[test]
fn given_paths_alone_carry_the_packets_of_the_record() {
    let bytes = 300_001;
    let send = |at: std::net::SocketAddr| {
        let to = Destination { paths: vec![vec![1], vec![3]], ..at.into() };
        transfer::send(&mut driver(settings("reps", 1000)), &to, bytes, &mut |_| (), &mut |_, _| true)
    };
    let record = served(server(settings("reps", 1000)), send).0.unwrap().record;
    assert_eq!(record.packets - record.retransmitted, (bytes + 1).div_ceil(1000), "{record:?}");
    assert_eq!(record.per_label.iter().sum::<u64>(), record.packets);
    assert_eq!((record.per_label[0], record.per_label[2]), (0, 0), "{record:?}");
    assert!(record.due <= record.first_sent && record.first_sent <= record.acknowledged);
    assert!(record.acknowledged <= record.confirmed && record.summary.bytes == bytes);
}

#[test]
fn missing_peer_is_reported_in_time() {
    let mut driver = driver(Settings { peer_timeout: Time::from_us(300_000), ..settings("ecmp", 1400) });
    let at = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = transfer::send(&mut driver, &at.into(), 10, &mut |_| (), &mut |_, _| true).unwrap_err();
    assert!(matches!(error, TransferError::NoResponse { at: to, .. } if to == at), "{error}");
    assert!(error.to_string().contains("anabranch serve"));
}
