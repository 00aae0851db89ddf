//! The lateness of an endpoint follows from the time for which it was descheduled, to the picosecond.

use crate::common::{Pair, uet};
use anabranch_endpoint::Settings;
use anabranch_lb::registry::HostParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{Lateness, memory::Link};

const CATCH_UP: Time = Time::from_us(100);

/// Limited only by the pacer: 1 Gbit/s over a line of 10, windows of 16 MB, ACKs of every packet.
fn pair() -> Pair {
    let settings = Settings {
        transport: uet("mtu=1000B window=16MiB ack_every=1 congestion_control=none"),
        scheme: HostParameters::named("ecmp").unwrap(),
        rate: Rate::gbps(1),
        catch_up: CATCH_UP,
        labels: 1,
        ..Settings::default()
    };
    let mut pair = Pair::new(1, &Link::new(Rate::gbps(10), Time::from_us(5)), [settings.clone(), settings]);
    pair.open();
    pair
}

fn lateness(pair: &Pair, host: usize) -> Lateness {
    pair.hosts[host].lateness()
}

/// The process of `stalled` is descheduled until `until`.
fn stall(pair: &mut Pair, stalled: usize, until: Time) {
    while pair.network.now() < until {
        let mut next = until;
        for (host, driver) in pair.hosts.iter_mut().enumerate().filter(|(host, _)| *host != stalled) {
            next = driver.work().unwrap().map_or(next, |time| time.min(next));
            while driver.endpoint().0.poll_event().is_some() {}
            let _ = host;
        }
        pair.network.advance(next);
    }
}

fn done(pair: &mut Pair) {
    let until = pair.network.now() + Time::from_us(1_000_000);
    assert!(pair.run(until, &mut |pair| !pair.sent[0].is_empty()));
}

#[test]
fn scheduled_process_is_never_late() {
    let mut pair = pair();
    let start = pair.network.now();
    pair.send(0, 0, vec![1u8; 1_000_000]);
    done(&mut pair);
    let took = pair.network.now() - start;
    let (sender, receiver) = (lateness(&pair, 0), lateness(&pair, 1));
    assert_eq!((sender.late, sender.lost, receiver.late), (Time::ZERO, Time::ZERO, Time::ZERO));
    assert_eq!((sender.sending, sender.active, sender.receiving), (took, took, Time::ZERO));
    assert!(receiver.receiving > Time::from_us(7_900) && receiver.receiving < took, "{receiver:?}");
    assert!(sender.bytes > 1_000_000 && sender.bytes < 1_300_000, "{sender:?}");
}

#[test]
fn a_stalled_sender_is_late_for_as_long() {
    for stalled_us in [50, 99, 300, 5_000] {
        let mut pair = pair();
        pair.send(0, 0, vec![1u8; 1_000_000]);
        let before = pair.network.now() + Time::from_us(1_000);
        assert!(!pair.run(before, &mut |_| false), "8 ms at 1 Gbit/s");
        let due = pair.hosts[0].endpoint().0.next_send().unwrap().at;
        let until = due + Time::from_us(stalled_us);
        stall(&mut pair, 0, until);
        assert_eq!(pair.network.now(), until);
        done(&mut pair);
        let counted = lateness(&pair, 0);
        let stalled = Time::from_us(stalled_us);
        let expected = if stalled > CATCH_UP { (stalled, stalled - CATCH_UP) } else { (Time::ZERO, Time::ZERO) };
        assert_eq!((counted.late, counted.lost), expected, "{stalled_us} us");
        assert_eq!(lateness(&pair, 1).late, Time::ZERO, "the receiver was not stalled");
    }
}

#[test]
fn a_stalled_receiver_is_late_from_the_first_packet_on() {
    let mut pair = pair();
    pair.send(0, 0, vec![1u8; 1_000_000]);
    let before = pair.network.now() + Time::from_us(1_000);
    assert!(!pair.run(before, &mut |_| false));
    let first = pair.network.next_arrival().unwrap();
    let until = first + Time::from_us(2_000);
    stall(&mut pair, 1, until);
    done(&mut pair);
    let counted = lateness(&pair, 1);
    // The next arrival may be an ACK at the sender, up to a packet's time before the first datagram that waits.
    let packet = Time::from_us(10);
    assert!(counted.late <= Time::from_us(2_000) && counted.late > Time::from_us(2_000) - packet, "{counted:?}");
    assert_eq!(counted.lost, Time::ZERO, "it sends nothing of its own");
    assert_eq!(lateness(&pair, 0).late, Time::ZERO, "the window was open all the time");
}

#[test]
fn without_messages_nothing_is_late() {
    let mut pair = pair();
    let until = pair.network.now() + Time::from_us(3_000);
    stall(&mut pair, 0, until);
    assert!(!pair.run(until + Time::from_us(500), &mut |_| false));
    assert_eq!((lateness(&pair, 0).active, lateness(&pair, 0).late), (Time::ZERO, Time::ZERO));
}
