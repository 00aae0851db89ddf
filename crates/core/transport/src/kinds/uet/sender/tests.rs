use super::*;
use crate::{
    DataArrival, Network, Receiving,
    uet::{RtoRule, UetReceiver, UetTransport, cc::CcParameters},
};
use anabranch_settings::{Auto, Named, Raw};
use anabranch_units::{BytesOrBdp, Rate};

fn of_stream(config: &UetConfig) -> UetSender {
    Sending::of_stream(config, Rate::gbps(400), Time::from_us(10), Time::ZERO, 0)
}

fn config() -> UetConfig {
    let mut transport = UetTransport::default();
    (transport.uet.rto, transport.uet.rto_rule) = (Auto::Value(Time::from_us(120)), RtoRule::Measured);
    let network = Network { base_rtt: Time::from_us(10), bdp: 50_000, nic_rate: Rate::gbps(40), ..Network::default() };
    UetConfig::new(&transport, &network)
}

#[test]
fn later_packet_of_the_same_tag_reveals_a_loss() {
    for (after, lost) in [(Time::from_us(20), 1), (Time::from_us(21), 0)] {
        let config = UetConfig { early_loss: Some(after), ..config() };
        let mut sender = of_stream(&config);
        sender.append(&config, 9);
        // Packets 0 to 4 at 0, 10, 20, 30, 40 us, tags in turn.
        for psn in 0..5 {
            sender.send(&config, Time::from_us(10 * psn), 1 + psn as u32 % 2);
        }
        // Of the packets before 2 only packet 0 has its tag; it left 20 us earlier.
        let ack = Reply { bitmap: 0b100, psn: 2, tag: 1, ..Reply::default() };
        let acked = sender.on_reply(&config, Time::from_us(50), &ack, None, None);
        assert_eq!((acked.packets, acked.lost), (1, lost));
        let next = sender.peek(&config).unwrap();
        assert_eq!((next.psn, next.retransmission), if lost == 1 { (0, true) } else { (5, false) });
        // The ACK of a retransmission does not reveal other losses: they may have been sent before or after.
        sender.send(&config, Time::from_us(60), 2);
        let ack = Reply { cumulative: 1, bitmap: 0b10, tag: 2, ..Reply::default() };
        assert_eq!(sender.on_reply(&config, Time::from_us(70), &ack, None, None).lost, 0);
    }
}

#[test]
fn tail_loss_probe_reveals_losses() {
    let config = UetConfig { rto: Time::from_us(1000), ..config() };
    let mut sender = of_stream(&config);
    sender.append(&config, 4);
    for psn in 0..4 {
        sender.send(&config, Time::from_us(psn), 10 + psn as u32);
    }
    let stamped = |us| Some(Time::from_us(us));
    // Packet 0 took 100 us; packets 1, 2 and the ACK of 3 are lost. Two round trips after the last packet was sent:
    let ack = Reply { cumulative: 1, ..Reply::default() };
    sender.on_reply(&config, Time::from_us(100), &ack, None, stamped(100));
    assert_eq!(sender.deadline(&config), Some(Time::from_us(3 + 2 * 100)));
    let mut lost = Vec::new();
    sender.on_timer(&config, Time::from_us(203), &mut |psn, tag| lost.push((psn, tag)));
    let segment = sender.send(&config, Time::from_us(203), 9);
    assert_eq!((segment.psn, segment.retransmission, &lost[..]), (3, true, &[][..]));
    assert_eq!(sender.deadline(&config), Some(Time::from_us(1000)), "the timeout of packets 1 and 2, about");
    let ack = Reply { cumulative: 1, bitmap: 0b100, psn: 3, tag: 9, ..Reply::default() };
    sender.on_reply(&config, Time::from_us(303), &ack, None, stamped(100));
    sender.on_timer(&config, sender.deadline(&config).unwrap().max(Time::from_us(303)), &mut |psn, tag| {
        lost.push((psn, tag));
    });
    assert_eq!(lost, [(1, 11), (2, 12)]);
    assert_eq!(sender.peek(&config).map(|segment| segment.psn), Some(1));
}

#[test]
fn later_packet_of_any_tag_reveals_losses() {
    // One base round trip, 10 us. Packets 0 to 5 leave at 0, 4, 8, ... us, each over a path of its own.
    let config = UetConfig { rack: Some(Time::from_us(10)), ..config() };
    let mut sender = of_stream(&config);
    sender.append(&config, 9);
    for psn in 0..6 {
        sender.send(&config, Time::from_us(4 * psn), 10 + psn as u32);
    }
    let gaps = |sender: &UetSender| {
        let mut tags = Vec::new();
        sender.last_lost(2, &mut |tag| tags.push(tag));
        tags
    };
    // Packet 2 left 8 us after packet 0: nothing is known. Packet 4 left 12 us after packet 1, and 16 after packet 0.
    let ack = |psn: u64, bitmap| Reply { bitmap, psn, tag: 10 + psn as u32, ..Reply::default() };
    assert_eq!(sender.on_reply(&config, Time::from_us(20), &ack(2, 0b100), None, None).lost, 0);
    assert_eq!(sender.on_reply(&config, Time::from_us(28), &ack(4, 0b1_0000), None, None).lost, 2);
    assert_eq!(gaps(&sender), [10, 11]);
    // Again at 30 us, before packet 6. Its acknowledgement reveals packets 3 and 5, not the two that left with it.
    for tag in [20, 21, 22] {
        sender.send(&config, Time::from_us(30), tag);
    }
    let ack = Reply { bitmap: 0b100_0000, psn: 6, tag: 22, ..Reply::default() };
    assert_eq!(sender.on_reply(&config, Time::from_us(40), &ack, None, None).lost, 2);
    assert_eq!(gaps(&sender), [13, 15]);
}

#[test]
fn a_measured_timeout_follows_round_trips_and_backs_off() {
    let config = config();
    let mut sender = of_stream(&config);
    sender.append(&config, 5);
    let ack = |psn: u64| Reply { cumulative: psn + 1, psn, ..Reply::default() };
    let us = |sender: &UetSender, from: u64| (sender.deadline(&config).unwrap() - Time::from_us(from)).as_us();
    sender.send(&config, Time::ZERO, 0);
    assert_eq!(us(&sender, 0), 120.0, "before anything is measured: the least");
    // 100 us: deviation 50, timeout 100 + 4 * 50. The same again: 37.5, 250.
    sender.on_reply(&config, Time::from_us(100), &ack(0), None, None);
    sender.send(&config, Time::from_us(100), 0);
    assert_eq!(us(&sender, 100), 300.0);
    sender.on_reply(&config, Time::from_us(200), &ack(1), None, None);
    sender.send(&config, Time::from_us(200), 0);
    assert_eq!(us(&sender, 200), 250.0);
    let mut lost = Vec::new();
    sender.on_timer(&config, Time::from_us(450), &mut |psn, _| lost.push(psn));
    sender.send(&config, Time::from_us(450), 0);
    assert_eq!((us(&sender, 450), &lost[..]), (500.0, &[2][..]));
    sender.on_timer(&config, Time::from_us(950), &mut |psn, _| lost.push(psn));
    sender.send(&config, Time::from_us(950), 0);
    assert_eq!(us(&sender, 950), 1000.0);
    // A retransmission yields no sample by itself, but a timestamp does: 20 us; smoothed 90, deviation 48.125.
    let stamped = Some(Time::from_us(20));
    sender.on_reply(&config, Time::from_us(970), &ack(2), None, stamped);
    sender.send(&config, Time::from_us(970), 0);
    assert_eq!(us(&sender, 970), 90.0 + 4.0 * 48.125);
}

/// T = 1.024 us * 2^8. MRC: 7 T + 2 T + 4 T + 8 T = 21 T = 5.505024 ms to the error. UEC: T, 2 T, 4 T, ... up to 8 s.
#[test]
fn timeouts_double_up_to_an_error() {
    let t = Time::from_ns(262_144);
    for (linear, last, times) in [(7, Some(3), &[1, 1, 1, 1, 1, 1, 1, 2, 4, 8][..]), (1, None, &[1, 2, 4, 8, 16])] {
        let config = UetConfig { rto: t, doubling: Some((linear, last)), measures_rto: false, ..config() };
        let mut sender = of_stream(&config);
        sender.append(&config, 2);
        let mut now = Time::ZERO;
        for times in times {
            sender.send(&config, now, 0);
            assert_eq!(sender.deadline(&config), Some(now + t * *times));
            now += t * *times;
            sender.on_timer(&config, now, &mut |_, _| ());
        }
        assert_eq!((sender.is_failed(), sender.ready(&config)), (last.is_some(), last.is_none()));
        if last.is_some() {
            assert_eq!((now, sender.deadline(&config)), (Time::from_ns(5_505_024), None));
            continue;
        }
        // 2^15 T are 8.6 s.
        let later = [14, 15, 40].map(|timeouts| config.backed_off(timeouts).unwrap());
        assert_eq!(later, [t * (1 << 14), Time::from_ms(8000), Time::from_ms(8000)]);
        // An acknowledgement ends the row.
        sender.send(&config, now, 0);
        sender.on_reply(&config, now, &Reply { cumulative: 1, ..Reply::default() }, None, None);
        sender.send(&config, now, 0);
        assert_eq!(sender.deadline(&config), Some(now + t));
    }
}

/// 800 Gb/s and 4262 B: 42.62 ns per packet. A receiver 10 us away misses PSN 2000 once. Returns how long after it the
/// sender stops for more than a packet, and for how long.
fn stop_after_a_loss(early_loss: Option<Time>) -> Option<(Time, Time)> {
    let (per_packet, rtt, lost) = (Time::from_ps(42_620), Time::from_us(10), 2000);
    let mut transport = UetTransport::default();
    transport.uet.congestion_control = Named::of(&CcParameters::named("none").unwrap());
    transport.uet.window = Auto::Value(BytesOrBdp::Bytes(1 << 30));
    let config = UetConfig {
        header: 166,
        window: 1 << 30,
        rto: Time::from_ns(262_144),
        measures_rto: false,
        max_psn_range: 1024,
        early_loss,
        cc: UetConfig::new(&transport, &Network::default()).cc,
        ..config()
    };
    let (mut sender, mut receiver) = (of_stream(&config), UetReceiver::of_stream(&config, 0));
    sender.append(&config, 40_000);
    let (mut replies, mut now, mut last, mut stop) = (VecDeque::new(), Time::ZERO, Time::ZERO, None);
    while sender.cumulative() < 30_000 {
        while replies.front().is_some_and(|(at, _)| *at <= now) {
            let reply = replies.pop_front().unwrap().1;
            sender.on_reply(&config, now, &reply, None, None);
        }
        if sender.deadline(&config).is_some_and(|deadline| deadline <= now) {
            sender.on_timer(&config, now, &mut |_, _| ());
        }
        if sender.ready(&config) {
            let segment = sender.send(&config, now, 7);
            assert!(segment.psn < sender.cumulative() + 1024);
            if now - last > per_packet {
                stop = stop.or(Some((last + per_packet - per_packet * lost, now - last - per_packet)));
            }
            last = now;
            let request = segment.retransmission || !sender.ready(&config);
            let data = DataArrival { psn: segment.psn, payload: 4096, tag: 7, ecn: false, ack_request: request };
            if segment.psn != lost || segment.retransmission {
                replies.extend(receiver.on_data(&config, now, &data).0.map(|reply| (now + rtt, reply)));
            }
        }
        now += per_packet;
    }
    stop
}

#[test]
fn psn_range_stops_the_sender_until_a_loss_is_found() {
    let (after, idle) = stop_after_a_loss(None).expect("a stop");
    // 1024 packets take 43.6 us; then it waits for the timeout.
    let within = |time: Time, us: f64| (time.as_us() - us).abs() < 0.1;
    assert!(within(after, 43.64) && within(idle, 262.14 - 43.64), "{after} {idle}");
    // A later packet of the tag reveals the loss two round trips after it: 30 us of packets in all.
    assert_eq!(stop_after_a_loss(Some(Time::from_us(10))), None);
}

#[test]
fn credit_limits_what_leaves() {
    let full = 4160;
    let mut transport = UetTransport::default();
    transport.cc.parameters_mut("nscc").unwrap().set("receiver_credit", &Raw::Bool(true)).unwrap();
    transport.uet.window = Auto::Value(BytesOrBdp::Bytes(10 * full));
    let network = Network { base_rtt: Time::from_us(10), bdp: 50_000, ..Network::default() };
    let config = UetConfig::new(&transport, &network);
    let mut sender = of_stream(&config);
    sender.append(&config, 100);
    let burst = |sender: &mut UetSender| {
        let count = std::iter::from_fn(|| sender.ready(&config).then(|| sender.send(&config, Time::ZERO, 0))).count();
        (count as u64, sender.demand(&config, 1) / full)
    };
    // The first window, then what is granted; of a window, what is missing is requested.
    assert_eq!(burst(&mut sender), (10, 10));
    let mut reply = Reply { cumulative: 4, psn: 3, ..Reply::default() };
    sender.on_reply(&config, Time::ZERO, &reply, None, None);
    assert_eq!(burst(&mut sender), (0, 10));
    sender.on_grant(&config, 4 * full);
    assert_eq!(burst(&mut sender), (4, 14));
    assert_eq!(sender.demand(&config, 5) / full, 6, "four other senders share the NIC");
    // A grant that another has overtaken has no effect.
    sender.on_grant(&config, 3 * full);
    assert_eq!(burst(&mut sender), (0, 14));
    // A trim at the last hop leaves the window alone, another one does not.
    for (last_hop, changes) in [(true, false), (false, true)] {
        (reply.psn, reply.nack, reply.last_hop) = (5 + u64::from(changes), true, last_hop);
        let before = sender.cc.cwnd();
        sender.on_reply(&config, Time::ZERO, &reply, None, None);
        assert_eq!((sender.cc.cwnd() < before, sender.lost), (changes, 1 + u32::from(changes)));
    }
    // All grants are lost: a timeout later one packet requests more.
    reply = Reply { cumulative: 14, psn: 13, ..Reply::default() };
    sender.on_reply(&config, Time::ZERO, &reply, None, None);
    let deadline = sender.deadline(&config).expect("a sender without credit");
    assert_eq!(deadline, config.rto);
    sender.on_timer(&config, deadline, &mut |_, _| ());
    assert_eq!(burst(&mut sender).0, 1);
}

#[test]
fn a_window_that_is_lost_doubles_the_timeout_once() {
    let config = config();
    let mut sender = of_stream(&config);
    sender.append(&config, 3);
    for at in 0..3 {
        sender.send(&config, Time::from_us(at), 0);
    }
    // Each packet times out by itself, 120 us after it left; then 240 us apply to the retransmissions.
    for at in 120..123 {
        let mut lost = 0;
        sender.on_timer(&config, Time::from_us(at), &mut |_, _| lost += 1);
        assert_eq!(lost, if at == 120 { 1 } else { 0 }, "the others have the doubled timeout");
    }
    let mut lost = 0;
    sender.on_timer(&config, Time::from_us(242), &mut |_, _| lost += 1);
    assert_eq!(lost, 2);
    sender.send(&config, Time::from_us(250), 0);
    assert_eq!(sender.deadline(&config).unwrap(), Time::from_us(250 + 240));
}
