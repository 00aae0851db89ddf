//! Several endpoints of one machine run a workload together: rounds with a barrier, over given labels.

use anabranch_endpoint::{Endpoint, Settings};
use anabranch_lb::registry::HostParameters;
use anabranch_random::Stream;
use anabranch_transport::TransportParameters;
use anabranch_units::{Rate, Time};
use anabranch_wire::{
    Driver, WireParameters,
    transfer::{Conductor, Destination, Order, Progress, Received, Report, TransferPlan, perform},
    udp::UdpPath,
};
use std::{
    net::SocketAddr,
    sync::{
        Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

const ENDS: usize = 3;
const ROUNDS: u32 = 3;

#[derive(Default)]
struct Barrier([AtomicU32; ENDS]);

impl Barrier {
    fn all_through(&self, rounds: u32) -> bool {
        self.0.iter().all(|of| of.load(Ordering::SeqCst) >= rounds)
    }
}

struct Member<'a> {
    me: usize,
    barrier: &'a Barrier,
    draws: Stream,
    filled: u64,
    received: &'a Mutex<Vec<Received>>,
}

impl Conductor for Member<'_> {
    fn may_begin(&mut self, round: u32) -> bool {
        self.barrier.all_through(round)
    }
    fn is_over(&mut self, round: u32) {
        self.barrier.0[self.me].store(round + 1, Ordering::SeqCst);
    }
    fn fill(&mut self, order: usize, bytes: &mut [u8]) {
        // Two orders per round, each after every endpoint's previous round.
        assert!(self.barrier.all_through(order as u32 / 2), "order {order} began early");
        self.filled += bytes.len() as u64;
        bytes.iter_mut().for_each(|byte| *byte = self.draws.bits() as u8);
    }
    fn received(&mut self, received: &Received) {
        self.received.lock().unwrap().push(*received);
    }
    fn goes_on(&mut self, progress: &Progress) -> bool {
        assert!(progress.now < Time::from_us(60_000_000), "it takes too long: {progress:?}");
        // An endpoint that leaves first would leave confirmations of others unacknowledged.
        !(progress.done && self.barrier.all_through(ROUNDS) && progress.served == 2 * u64::from(ROUNDS))
    }
}

/// 300,001 B at once, and 100,000 B over another stream 2 ms later.
fn orders() -> Vec<Order> {
    let of_round = |round| {
        let order = |bytes, after, stream| Order { to: 0, bytes, round, after: Time::from_us(after), stream };
        [order(300_001, 0, 0), order(100_000, 2_000, 1)]
    };
    (0..ROUNDS).flat_map(of_round).collect()
}

#[test]
fn rounds_wait_for_each_other_and_every_message_has_a_record() {
    let mut transport = TransportParameters::named("uet").unwrap();
    transport.parameters_mut().set("mtu", &anabranch_settings::Raw::Text("1000B".into())).unwrap();
    let wire = WireParameters { labels: 4, ..WireParameters::default() };
    let settings = |host_key| {
        let scheme = HostParameters::named("reps").unwrap();
        Settings { host_key, ..wire.settings(&transport, scheme, Rate::gbps(1), 1).unwrap() }
    };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let paths: Vec<UdpPath> = (0..ENDS).map(|_| UdpPath::open(any, 4, 8).unwrap()).collect();
    let at: Vec<SocketAddr> = paths.iter().map(UdpPath::at).collect();
    let (barrier, received) = (Barrier::default(), Mutex::default());
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let ends: Vec<_> = paths
            .into_iter()
            .enumerate()
            .map(|(me, path)| {
                let destination = Destination { at: at[(me + 1) % ENDS], paths: vec![vec![1], vec![3]] };
                let plan = TransferPlan { destinations: vec![destination], orders: orders() };
                let draws = Stream::keyed(1, me as u64, "rounds");
                let mut member = Member { me, barrier: &barrier, draws, filled: 0, received: &received };
                let settings = settings(me as u64);
                scope.spawn(move || {
                    let mut driver = Driver::new(Endpoint::new(settings), path);
                    let report = perform(&mut driver, &plan, &mut member).unwrap();
                    assert_eq!(member.filled, u64::from(ROUNDS) * 400_001);
                    report
                })
            })
            .collect();
        ends.into_iter().map(|end| end.join().unwrap()).collect()
    });
    let received = received.into_inner().unwrap();
    assert_eq!(received.len(), ENDS * ROUNDS as usize * 2);
    assert!(received.iter().all(|received| received.summary == received.sent));
    for report in reports {
        assert!(report.round_trips[0].0 > Time::ZERO);
        let mut last = Time::ZERO;
        for (number, (order, record)) in orders().iter().zip(&report.records).enumerate() {
            let record = record.as_ref().expect("it was done");
            assert_eq!(record.summary.bytes, order.bytes);
            // Pieces of up to 1 MiB with one byte of header, in packets of 1000 B.
            assert_eq!(record.packets - record.retransmitted, (order.bytes + 1).div_ceil(1000), "{record:?}");
            assert_eq!(record.per_label.iter().sum::<u64>(), record.packets);
            assert_eq!((record.per_label[0], record.per_label[2]), (0, 0), "labels 1 and 3 alone: {record:?}");
            assert!(record.due <= record.first_sent && record.first_sent <= record.acknowledged);
            assert!(record.acknowledged <= record.confirmed);
            if number % 2 == 0 {
                assert!(record.due >= last, "a round begins after the one before it");
            }
            last = last.max(record.confirmed);
        }
    }
}
