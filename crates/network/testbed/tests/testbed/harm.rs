//! Impairments of links: shares within binomial bounds, delays by their amounts.

use crate::common::{address, apart, best_of_three, build, plain, plan, socket};
use anabranch_testbed::{Fabric, Harm, PortCount, TestbedError};
use anabranch_testkit::skip;
use std::{
    net::{SocketAddrV4, UdpSocket},
    time::{Duration, Instant},
};

const PACKETS: u32 = 4000;
/// Packets per burst, so that the queue at a port stays far below its limit.
const BATCH: u32 = 20;

struct Two {
    fabric: Fabric,
    here: UdpSocket,
    there: UdpSocket,
    to: SocketAddrV4,
}

fn two() -> Two {
    let fabric = build(plan(1, 1, "500Mbps", 1500, plain()));
    let (here, there) = (socket(&fabric, "host0", 9000), socket(&fabric, "host1", 9000));
    let to = address(&fabric, "host1", 9000);
    let two = Two { fabric, here, there, to };
    // The first packet resolves the neighbours' addresses.
    two.here.send_to(&[0; 100], two.to).unwrap();
    assert_eq!(two.there.recv(&mut [0; 2000]).unwrap(), 100);
    two
}

impl Two {
    /// Impairs the link from leaf 0 to the spine. `false`: the system does not permit it, which skips the test.
    fn harm(&self, harm: Harm) -> bool {
        let (from, to) = self.fabric.plan().port("leaf0->spine0").unwrap();
        match self.fabric.harm(from, to, harm) {
            Ok(()) => true,
            Err(error @ TestbedError::Input(_)) if error.to_string().contains("only root may load") => {
                skip(error, "run as root");
                false
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn count(&self) -> PortCount {
        let plan = self.fabric.plan();
        let at = plan.ports().position(|(end, other)| (end.node, other) == plan.port("leaf0->spine0").unwrap());
        self.fabric.counters().unwrap()[at.unwrap()]
    }

    /// Sends packets that contain their number four times. Returns the packets that arrive.
    fn send(&self) -> Vec<Vec<u8>> {
        let mut arrived = Vec::new();
        let mut buffer = [0; 2000];
        for number in 0..PACKETS {
            self.here.send_to(&number.to_be_bytes().repeat(4), self.to).unwrap();
            if number % BATCH == BATCH - 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        while let Ok(length) = self.there.recv(&mut buffer) {
            arrived.push(buffer[..length].to_vec());
        }
        arrived
    }
}

/// Returns `true` if `count` of `PACKETS` is within five standard deviations of a share.
fn is_share(count: u64, share: f64) -> bool {
    let (mean, variance) = (f64::from(PACKETS) * share, f64::from(PACKETS) * share * (1.0 - share));
    (count as f64 - mean).abs() <= 5.0 * variance.sqrt()
}

#[test]
fn losses_are_as_many_as_they_should_be() {
    apart("harm::losses_are_as_many_as_they_should_be", || {
        let two = two();
        if !two.harm(Harm::Lose(200_000_000)) {
            return;
        }
        let arrived = two.send().len() as u64;
        let count = two.count();
        println!("{arrived} of {PACKETS} arrived, {} lost", count.lost);
        assert!(is_share(count.lost, 0.2), "{count:?}");
        assert_eq!(arrived + count.lost, u64::from(PACKETS));
        // The port does not count packets lost on the link.
        assert_eq!((count.drops, count.corrupted, count.duplicated), (Some(0), 0, 0));
        assert!(two.harm(Harm::Lose(1_000_000_000)));
        assert_eq!(two.send().len(), 0, "all of them");
        assert!(two.harm(Harm::Lose(0)));
        assert_eq!(two.send().len(), PACKETS as usize, "none");
    });
}

#[test]
fn copies_are_as_many_as_they_should_be() {
    apart("harm::copies_are_as_many_as_they_should_be", || {
        let two = two();
        if !two.harm(Harm::Duplicate(100_000_000)) {
            return;
        }
        let mut arrived = two.send();
        let count = two.count();
        assert!(is_share(count.duplicated, 0.1), "{count:?}");
        assert_eq!(arrived.len() as u64, u64::from(PACKETS) + count.duplicated);
        arrived.sort_unstable();
        arrived.dedup();
        assert_eq!(arrived.len(), PACKETS as usize, "every packet, and nothing else");
        assert_eq!((count.lost, count.corrupted), (0, 0));
    });
}

#[test]
fn a_bit_of_as_many_packets_changes_as_should() {
    apart("harm::a_bit_of_as_many_packets_changes_as_should", || {
        let two = two();
        if !two.harm(Harm::Corrupt(300_000_000)) {
            return;
        }
        let arrived = two.send();
        let count = two.count();
        assert!(is_share(count.corrupted, 0.3), "{count:?}");
        // The checksum is offloaded to hardware that does not exist: corrupted packets arrive.
        assert_eq!(arrived.len(), PACKETS as usize);
        let bits = |packet: &Vec<u8>| {
            let words: Vec<u32> =
                packet.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
            // Three of four numbers are intact.
            let right = words.iter().find(|word| words.iter().filter(|other| other == word).count() >= 3).unwrap();
            words.iter().map(|word| (word ^ right).count_ones()).sum::<u32>()
        };
        let damaged: Vec<u32> = arrived.iter().map(bits).filter(|bits| *bits > 0).collect();
        assert_eq!((damaged.len() as u64, damaged.iter().max()), (count.corrupted, Some(&1)));
    });
}

/// One-way times of single packets in milliseconds, sorted.
fn in_flight(two: &Two, packets: u32) -> Vec<f64> {
    let mut times: Vec<f64> = (0..packets)
        .map(|number| {
            let sent = Instant::now();
            two.here.send_to(&number.to_be_bytes(), two.to).unwrap();
            let mut buffer = [0; 100];
            assert_eq!(two.there.recv(&mut buffer).unwrap(), 4);
            assert_eq!(buffer[..4], number.to_be_bytes());
            sent.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_unstable_by(f64::total_cmp);
    times
}

#[test]
fn a_delay_adds_its_amount() {
    apart("harm::a_delay_adds_its_amount", || {
        let two = two();
        let ms = |ms: u64| ms * 1_000_000_000;
        if !two.harm(Harm::Delay(ms(20), 0)) {
            return;
        }
        best_of_three(|| {
            let times = in_flight(&two, 40);
            let (least, middle) = (times[0], times[20]);
            println!("20 ms: {least:.2} ms at least, {middle:.2} in the middle");
            assert!(least >= 20.0, "{times:?}");
            if middle < 22.0 { Ok(()) } else { Err(format!("{times:?}")) }
        });
        // Evenly from 10 to 30 ms: means within 5 standard deviations, 20 / sqrt(12 * 60) = 0.75 each, and what scheduling adds.
        assert!(two.harm(Harm::Delay(ms(20), ms(10))));
        best_of_three(|| {
            let times = in_flight(&two, 60);
            let (least, most, mean) = (times[0], times[59], times.iter().sum::<f64>() / 60.0);
            println!("20 ± 10 ms: {least:.2} to {most:.2} ms, {mean:.2} in the mean");
            assert!(least >= 10.0 && mean > 16.0, "{times:?}");
            if least < 13.0 && most > 27.0 && most < 33.0 && mean < 25.0 { Ok(()) } else { Err(format!("{times:?}")) }
        });
        // All of a train arrive, though they overtake each other, together with losses.
        assert!(two.harm(Harm::Lose(100_000_000)));
        let arrived = two.send().len() as u64;
        assert_eq!(arrived + two.count().lost, u64::from(PACKETS));
        assert!(two.harm(Harm::Lose(0)) && two.harm(Harm::Delay(0, 0)));
        best_of_three(|| {
            let times = in_flight(&two, 20);
            if times[10] < 5.0 { Ok(()) } else { Err(format!("{times:?}")) }
        });
        let spine = two.fabric.plan().node("spine0").unwrap();
        let interfaces =
            two.fabric.within(spine, || std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        assert!(!interfaces.contains("delay"), "{interfaces}");
    });
}

#[test]
fn restored_link_delivers_all_packets() {
    apart("harm::restored_link_delivers_all_packets", || {
        let two = two();
        for harm in [
            Harm::Lose(500_000_000),
            Harm::Corrupt(500_000_000),
            Harm::Duplicate(500_000_000),
            Harm::Delay(5_000_000_000, 0),
        ] {
            if !two.harm(harm) {
                return;
            }
        }
        let cable = two.fabric.plan().cable_named("leaf0-spine0").unwrap();
        two.fabric.slow(cable, Some(400_000_000)).unwrap();
        assert!(two.send().len() < 3500);
        two.fabric.mend(cable).unwrap();
        let before = two.count();
        assert_eq!(two.send().len(), PACKETS as usize);
        let after = two.count();
        assert_eq!((before.lost, before.corrupted, before.duplicated), (after.lost, after.corrupted, after.duplicated));
    });
}
