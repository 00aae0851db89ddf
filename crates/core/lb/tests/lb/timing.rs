//! Cost of a decision, printed: `cargo test --release -p anabranch-lb timing:: -- --ignored --nocapture`.

use anabranch_lb::{
    Decision, Feedback, FlowInfo, HostScheme, Outgoing, PathSpace, Tag,
    registry::{Host, HostParameters},
};
use anabranch_units::{Rate, Time};
use std::{hint::black_box, time::Instant};

const PACKETS: u64 = 10_000_000;

fn open(name: &str, uplinks: &[u32]) -> Host {
    let mut host = HostParameters::named(name).unwrap().build(1, 1);
    let paths = PathSpace { uplinks, ..PathSpace::default() };
    let (size, packets, bdp_packets, base_rtt) = (1 << 30, 1 << 18, 100, Time::from_us(8));
    host.open(
        Time::ZERO,
        0,
        &FlowInfo {
            key: 1,
            connection: 1,
            src: 0,
            dst: 1,
            size,
            packets,
            bdp_packets,
            base_rtt,
            probe_rtt: base_rtt,
            rate: Rate(400_000_000_000),
            full_packet: 4160,
            early_packets: 0,
            paths,
        },
    );
    host
}

/// Nanoseconds per packet; `feedback` is called for every packet with its number and tag.
fn time(host: &mut Host, packets: u64, mut feedback: impl FnMut(&mut Host, u64, Tag)) -> f64 {
    let start = Instant::now();
    for psn in 0..packets {
        if let Decision::Send(tag) = host.select(
            Time::ZERO,
            0,
            black_box(&Outgoing { psn, bytes: 4096, retransmission: false, eligible_at: Time::ZERO }),
        ) {
            feedback(host, psn, black_box(tag));
        }
    }
    start.elapsed().as_nanos() as f64 / packets as f64
}

fn ack(host: &mut Host, psn: u64, tag: Tag, ecn: bool) {
    let feedback = Feedback {
        tag,
        ecn,
        rtt: Some(Time::from_us(8)),
        packets: 1,
        bytes: 4096,
        cumulative: psn.saturating_sub(100),
        next_psn: psn + 1,
    };
    host.on_ack(Time::ZERO, 0, &feedback);
}

#[test]
#[ignore = "a measurement, not a check"]
fn decisions() {
    for about in HostParameters::ALL {
        let mut host = open(about.name, &[64]);
        let select = time(&mut host, PACKETS, |_, _, _| ());
        let mut host = open(about.name, &[64]);
        let acked = time(&mut host, PACKETS, |host, psn, tag| ack(host, psn, tag, false));
        println!("{:<12} select {select:5.1} ns, with a clean ACK each {acked:5.1} ns", about.name);
    }
    for uplinks in [&[8u32][..], &[64], &[8, 8], &[64, 64]] {
        let clean = time(&mut open("prime", uplinks), PACKETS, |_, _, _| ());
        let some = time(&mut open("prime", uplinks), PACKETS, |host, psn, tag| ack(host, psn, tag, psn % 8 == 0));
        let many = time(&mut open("prime", uplinks), PACKETS, |host, psn, tag| {
            ack(host, psn, tag, true);
            if psn % 2 == 0 {
                host.on_nack(Time::ZERO, 0, tag);
            }
        });
        // All but one path kept penalised: the walk must not grow with the number of paths.
        let paths: u32 = uplinks.iter().product();
        let mut host = open("prime", uplinks);
        time(&mut host, 100, |_, _, _| ());
        let mut nanoseconds = 0.0;
        for _ in 0..200 {
            (1..paths).for_each(|tag| host.on_nack(Time::ZERO, 0, tag));
            nanoseconds += time(&mut host, 99, |_, _, _| ());
        }
        println!(
            "prime {uplinks:?}: no feedback {clean:.1} ns, 1/8 marked {some:.1} ns, all marked and half NACKed \
             {many:.1} ns, one path free {:.1} ns",
            nanoseconds / 200.0
        );
    }
}
