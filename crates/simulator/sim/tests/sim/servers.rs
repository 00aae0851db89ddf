//! Servers: scale-up networks by hand, PXN as its two flows, rails, conservation, threads.

use crate::common::*;
use anabranch_backend::{RunError, Setup};
use anabranch_outcome::{FlowRow, FlowStatus};
use anabranch_sim::How;
use anabranch_topology::Topology;
use anabranch_units::{Rate, Time};
use anabranch_workload::{
    CrossRail, FlowSet, HostView, Medium, ServerParameters, Start, Trigger, TriggerId, TriggerKind, WorkloadParameters,
};

/// Picoseconds per byte of the scale-up networks here, and their latency.
const BYTE: u64 = 20;
const LATENCY: u64 = 700_000;

fn servers(gpus: u32, nics: u32) -> ServerParameters {
    ServerParameters {
        gpus,
        nics,
        scale_up_rate: Rate::gbps(400),
        scale_up_latency: Time::from_ps(LATENCY),
        cross_rail: CrossRail::Pxn,
    }
}

/// 4 servers of 4 NICs, 2 servers per pod, 2 spines.
fn rails() -> Topology {
    let keys = "servers=4 rails=4 servers_per_pod=2 spines=2 links_per_spine=1 link_delay=1us switch_latency=0us";
    topology("rail-optimised", keys)
}

/// 4 servers of 4 NICs, a switch per rail.
fn rail_only() -> Topology {
    let keys = "servers=4 rails=4 servers_per_pod=4 link_delay=1us switch_latency=0us";
    topology("rail-only", keys)
}

fn routed(mut set: FlowSet, of: &ServerParameters) -> FlowSet {
    of.route(&mut set, u64::MAX).expect("flows");
    set
}

/// Messages (source GPU, destination GPU, bytes, start in picoseconds) on the rail-optimised fabric.
fn messages(list: &[(u32, u32, u64, u64)]) -> Setup {
    setup(rails(), routed(flows(list), &servers(4, 4)), "ops")
}

/// `file` is the content of `0.goal`.
fn made(topology: &Topology, of: &ServerParameters, kind: WorkloadParameters, file: &str) -> FlowSet {
    let gpus = of.endpoints(topology.hosts);
    let view = HostView {
        hosts: gpus,
        leaf_of: (0..gpus).map(|gpu| topology.edge_switch(of.nic_of(gpu)).0).collect(),
        group_of: vec![0; gpus as usize],
        host_key: (0..u64::from(gpus)).collect(),
        nic_rate: vec![Rate::gbps(400); gpus as usize],
        servers: Some(of.clone()),
        ..host_view(topology)
    };
    routed(generated(&view, vec![kind], &[file]), of)
}

fn received(row: &FlowRow, first_sent: u64) -> u64 {
    first_sent + row.fct_rx.expect("received").ps()
}

/// 4000 B take 80 ns at 400 Gb/s: received after 780 ns, acknowledged after 1480 ns.
#[test]
fn a_message_alone_takes_its_bytes_and_the_latency() {
    let result = run(&messages(&[(1, 3, 4000, 50_000)]));
    let [row] = &result.flows[..] else { panic!("one flow") };
    assert_eq!((row.src, row.dst, row.gpus, row.is_scale_up), (1, 3, Some((1, 3)), true));
    assert_eq!((row.start, row.fct_rx), (Some(Time::from_ns(50)), Some(Time::from_ns(780))));
    assert_eq!(row.fct_ack, Some(Time::from_ns(1480)));
    assert_eq!((row.ideal_rx, row.ideal_ack), (Time::from_ns(780), Time::from_ns(1480)));
    assert_eq!(
        (row.status, row.metrics.retransmitted_packets, row.metrics.path_switches),
        (FlowStatus::Finished, None, None)
    );
    assert_eq!(
        (result.simulated, result.packet_hops, result.counters.data_packets),
        (Time::from_ns(1530), Some(0), Some(0))
    );
    assert!(result.links.iter().all(|link| link.bytes == 0));
    let balance = result.conservation.unwrap().scale_up_bytes;
    assert_eq!((balance.injected, balance.delivered, balance.in_flight), (4000, 4000, 0));
    // Busy for 80 of 1530 ns.
    let gpus: Vec<_> = result.gpus.iter().map(|gpu| (gpu.egress.bytes, gpu.ingress.bytes)).collect();
    assert_eq!(gpus[..4], [(0, 0), (4000, 0), (0, 0), (0, 4000)]);
    assert_eq!(result.gpus[1].egress.utilisation, 80.0 / 1530.0);
    assert_eq!((result.gpus.len(), result.gpus[9].server, result.gpus[9].host), (16, 2, 9));
}

/// GPU 0 sends 4000 B to GPU 1 and 2000 B to GPU 2 at once: the second begins when the first has left, after 80 ns, and is
/// received at 80 + 700 + 40 ns.
#[test]
fn messages_leave_a_gpu_in_the_order_of_their_starts() {
    let result = run(&messages(&[(0, 1, 4000, 0), (0, 2, 2000, 0), (0, 3, 100, 10)]));
    let rows = &result.flows;
    assert_eq!(rows.iter().map(|row| row.fct_rx.unwrap().ps() / 1000).collect::<Vec<_>>(), [780, 740, 702]);
    // Acknowledged at 1480, 820 + 700 and (80 + 40 + 702) + 700 ns; the third started 10 ps after the run.
    let acked = [1_480_000, 1_520_000, 1_522_000 - 10];
    assert_eq!(rows.iter().map(|row| row.fct_ack.unwrap().ps()).collect::<Vec<_>>(), acked);
    assert_eq!(result.gpus[0].egress.longest_wait, Time::from_ps(120_000 - 10));
}

/// GPUs 0 and 1 send 4000 B and 2000 B to GPU 2: both first bytes arrive after 700 ns, the second message is served from
/// 780 to 820 ns. With a later start by 10 ns it arrives at 710, and waits too.
#[test]
fn messages_enter_a_gpu_in_the_order_of_their_arrivals() {
    for start in [0, 10_000] {
        let result = run(&messages(&[(0, 2, 4000, 0), (1, 2, 2000, start)]));
        let rows = &result.flows;
        assert_eq!(received(&rows[0], 0), 780_000);
        assert_eq!(received(&rows[1], start), 820_000);
        assert_eq!(rows[1].fct_ack, Some(Time::from_ps(820_000 + LATENCY - start)));
        assert_eq!(result.gpus[2].ingress.longest_wait, Time::from_ps(80_000 - start));
        assert_eq!(result.gpus[2].ingress.messages, 2);
    }
    // An earlier message of a higher number is served first.
    let result = run(&messages(&[(0, 2, 4000, 10_000), (1, 2, 2000, 0)]));
    let of = |src: u32| result.flows.iter().find(|row| row.src == src).unwrap();
    assert_eq!((received(of(1), 0), received(of(0), 10_000)), (740_000, 820_000));
}

/// From GPU 0 (rail 0) to GPU 9 (server 2, rail 1): over scale-up to GPU 1, then as a flow of its own from host 1 to host 9.
#[test]
fn pxn_is_its_two_flows_in_sequence() {
    for size in [1, 4096, 1_000_000] {
        let result = run(&messages(&[(0, 9, size, 3000)]));
        let [inside, network] = &result.flows[..] else { panic!("two flows") };
        assert_eq!((inside.gpus, inside.is_scale_up), (Some((0, 1)), true));
        assert_eq!((network.src, network.dst, network.gpus, network.is_scale_up), (1, 9, Some((1, 9)), false));
        let there = size * BYTE + LATENCY;
        assert_eq!((inside.start, inside.fct_rx), (Some(Time::from_ps(3000)), Some(Time::from_ps(there))));
        assert_eq!(network.start, Some(Time::from_ps(3000 + there)));
        let alone = run(&messages(&[(1, 9, size, 3000 + there)]));
        let row = &alone.flows[0];
        assert_eq!((network.fct_rx, network.fct_ack, network.ideal_rx), (row.fct_rx, row.fct_ack, row.ideal_rx));
        assert_eq!(network.status, FlowStatus::Finished);
        assert_eq!(alone.simulated, result.simulated);
    }
}

/// A message between rails over the network takes four links and no scale-up.
#[test]
fn the_spines_can_carry_messages_between_rails() {
    let of = ServerParameters { cross_rail: CrossRail::Network, ..servers(4, 4) };
    let result = run(&setup(rails(), routed(flows(&[(0, 9, 4096, 0)]), &of), "ops"));
    let [row] = &result.flows[..] else { panic!("one flow") };
    assert_eq!((row.is_scale_up, row.fct_rx), (false, Some(Time::from_ps(4 * (WIRE + DELAY)))));
    assert_eq!(result.conservation.unwrap().scale_up_bytes.injected, 0);
    assert!(result.gpus.iter().all(|gpu| gpu.egress.messages == 0));
}

/// All-to-all of 16 GPUs on a rail-only fabric of 4 servers: a rail carries what its own GPUs exchange and what PXN brings to
/// it, and nothing of another rail.
#[test]
fn rail_only_carries_nothing_between_rails_but_over_scale_up() {
    let (topology, of, size) = (rail_only(), servers(4, 4), 4096);
    let kind = workload("all-to-all", &format!("size={size}B"));
    let result = run(&setup(topology, made(&rail_only(), &of, kind, ""), "ops"));
    assert!(result.flows.iter().all(|row| row.status == FlowStatus::Finished));
    // 16 * 15 messages: 16 * 3 inside, 16 * 3 on their rail, 16 * 9 between rails as two flows.
    let (inside, network): (Vec<&FlowRow>, Vec<&FlowRow>) = result.flows.iter().partition(|row| row.is_scale_up);
    assert_eq!((inside.len(), network.len()), (16 * 3 + 16 * 9, 16 * 3 + 16 * 9));
    assert!(network.iter().all(|row| row.src % 4 == row.dst % 4));
    let scale_up = result.conservation.unwrap().scale_up_bytes;
    assert_eq!((scale_up.injected, scale_up.delivered), (16 * 12 * size, 16 * 12 * size));
    assert!(result.gpus.iter().all(|gpu| gpu.egress.bytes == 12 * size && gpu.ingress.bytes == 12 * size));
    for link in &result.links {
        let rail = |name: &str| name.trim_start_matches(|c: char| c.is_alphabetic()).parse::<u32>().unwrap() % 4;
        assert_eq!(rail(&link.from), rail(&link.to), "{} to {}", link.from, link.to);
        // Every NIC sends and receives 12 packets, and an acknowledgement for each.
        assert_eq!((link.bytes, link.packets), (12 * (4160 + 64), 24), "{} to {}", link.from, link.to);
    }
}

/// n GPUs of a server, S bytes: 2(n-1) steps of S/n at the rate and the latency, to the picosecond.
#[test]
fn ring_allreduce_inside_a_server() {
    for (gpus, size) in [(4, 1 << 20), (4, 4 * 12_345)] {
        let of = servers(gpus, 4);
        let set = made(&rails(), &of, workload("collective", &format!("size={size}B ranks={gpus}")), "");
        let result = run(&setup(rails(), set, "ops"));
        let gpus = u64::from(gpus);
        let step = size / gpus * BYTE + LATENCY;
        let ends = result.flows.iter().map(|row| row.start.unwrap().ps() + row.fct_rx.unwrap().ps());
        // A step on another GPU starts when its own message has arrived: no trigger latency.
        assert_eq!(ends.max(), Some(2 * (gpus - 1) * step));
        assert_eq!(result.flows.len() as u64, gpus * 2 * (gpus - 1));
        assert_eq!(result.packet_hops, Some(0));
        let busy = (2 * (gpus - 1) * (size / gpus) * BYTE) as f64;
        let share = busy / result.simulated.ps() as f64;
        assert!(result.gpus[..4].iter().all(|gpu| gpu.egress.utilisation == share && gpu.ingress.utilisation == share));
    }
}

/// Two GPUs on one NIC use the scale-up network too, and their computations do not wait for each other.
#[test]
fn gpus_that_share_a_nic_are_endpoints_of_their_own() {
    let of = servers(8, 4);
    let mut set = flows(&[(0, 1, 4000, 0), (8, 9, 4000, 0)]);
    let compute = |home: u32, target: Option<u32>| Trigger {
        home: Some(home),
        at: Some(Time::ZERO),
        delay: Time::from_us(5),
        cpu: Some(0),
        ..Trigger::new(TriggerKind::Oneshot, target.into_iter().collect())
    };
    // GPUs 0 and 1 compute at once, each on its own processor 0; GPU 8 computes twice, one after the other.
    set.triggers = vec![compute(1, None), compute(0, Some(0)), compute(8, None), compute(8, Some(1))];
    set.flows[0].start = Start::On(TriggerId(1));
    set.flows[1].start = Start::On(TriggerId(3));
    let result = run(&setup(rails(), routed(set, &of), "ops"));
    let rows = &result.flows;
    assert_eq!((rows[0].src, rows[0].dst, rows[0].gpus), (0, 0, Some((0, 1))));
    assert_eq!((rows[0].start, rows[0].fct_rx), (Some(Time::from_us(5)), Some(Time::from_ns(780))));
    assert_eq!(rows[1].start, Some(Time::from_us(10)));
    assert_eq!((result.gpus.len(), result.gpus[9].host), (32, 4));
}

#[test]
fn threads_cells_and_timing_do_not_matter() {
    for latency in [0, 1, 19_999, 20_000, 333_333, 700_000, 5_000_000] {
        for (topology, gpus, cross_rail) in
            [(rails(), 4, CrossRail::Pxn), (rails(), 8, CrossRail::Network), (rail_only(), 8, CrossRail::Pxn)]
        {
            let of = ServerParameters {
                scale_up_latency: Time::from_ps(latency),
                scale_up_rate: Rate::gbps(900),
                cross_rail,
                ..servers(gpus, 4)
            };
            let setup =
                setup(topology, routed(flows(&random_list(4 * gpus, 300, 60_000, 5_000_000, latency)), &of), "reps");
            let print = |how: How| {
                let result = run_as(&setup, how);
                assert!(result.flows.iter().all(|row| row.status == FlowStatus::Finished));
                (result.fingerprint, result.simulated, result.gpus.clone(), result.conservation)
            };
            for how in modes().chain([How::on(5)]) {
                assert_eq!(print(how), print(How::on(1)), "{how:?}, latency {latency} ps, {gpus} GPUs, {cross_rail:?}");
            }
        }
    }
}

/// Stopped at 750 ns, a message of 4000 B is in flight, one of 1000 B (720 ns) received and one that starts later unknown.
#[test]
fn bytes_in_flight_are_counted_at_the_end() {
    let mut setup = messages(&[(0, 1, 4000, 0), (2, 3, 1000, 0), (1, 2, 500, 800_000)]);
    setup.limits.until_all_done = false;
    setup.limits.time_limit = Time::from_ns(750);
    let result = run(&setup);
    let balance = result.conservation.unwrap().scale_up_bytes;
    assert_eq!((balance.injected, balance.delivered, balance.in_flight), (5000, 1000, 4000));
    assert!(balance.holds());
    let status: Vec<_> = result.flows.iter().map(|row| row.status).collect();
    assert_eq!(status, [FlowStatus::Unfinished, FlowStatus::Received, FlowStatus::NotStarted]);
    // The ingress of GPU 1 has been busy for 50 ns of 80, the egress of GPU 0 for all 80.
    assert_eq!((result.gpus[1].ingress.utilisation, result.gpus[0].egress.utilisation), (50.0 / 750.0, 80.0 / 750.0));
}

#[test]
fn skips_of_the_steady_state_are_refused() {
    let mut setup = messages(&[(0, 1, 4000, 0)]);
    setup.limits.skip = true;
    let error = refused(&setup);
    assert!(matches!(&error, RunError::Refused(r) if r.key == "run.skip" && r.reason.contains("[servers]")), "{error}");
}

/// Flows over the network have the same times whether their hosts are NICs of servers or endpoints.
#[test]
fn servers_do_not_change_flows_on_a_rail() {
    let list: Vec<_> =
        (0..4).flat_map(|rail| [(rail, 8 + rail, 300_000, 0), (4 + rail, 8 + rail, 200_000, 500)]).collect();
    let mut with = setup(rails(), routed(flows(&list), &servers(4, 4)), "ops");
    let without = run(&setup(rails(), flows(&list), "ops"));
    assert!(with.flows.flows.iter().all(|flow| flow.medium == Medium::Network));
    assert_eq!(run(&with).fingerprint, without.fingerprint);
    with.measure.attribution = true;
    assert_eq!(run(&with).fingerprint, without.fingerprint);
    assert!(without.gpus.is_empty() && without.flows.iter().all(|row| row.gpus.is_none()));
    // Where delays are attributed, messages over scale-up have none.
    let mut inside = messages(&[(0, 1, 4000, 0), (0, 4, 4000, 0)]);
    inside.measure.attribution = true;
    let result = run(&inside);
    assert_eq!(result.flows.iter().map(|row| row.delays.is_some()).collect::<Vec<_>>(), [false, true]);
}

/// A packet to a rank on another rail: received, and acknowledged as its sender counts it.
const RECEIVED: u64 = 4096 * BYTE + LATENCY + 2 * (WIRE + DELAY);
const ACKNOWLEDGED: u64 = RECEIVED + 2 * (ACK + DELAY) + 1_000_000;

/// Two ranks on different rails of two servers exchange a packet each: to the relay by scale-up, 4096 B and the latency; over
/// the rail two links; the acknowledgement back to the relay, and a trigger's latency to the sender, which counts it.
#[test]
fn jobs_follow_both_flows_of_a_relayed_message() {
    let of = servers(4, 4);
    let kind = workload("collective", "algorithm=ring-all-gather ranks=2 hosts=[0,5] size=8192B repetitions=2");
    let setup = setup(rails(), made(&rails(), &of, kind, ""), "ops");
    for threads in [1, 2, 3] {
        let result = run_on(&setup, threads);
        let times: Vec<_> = result.jobs.groups.iter().map(|group| (group.completion, group.ideal)).collect();
        assert_eq!(times, vec![(Some(Time::from_ps(ACKNOWLEDGED)), Some(Time::from_ps(ACKNOWLEDGED))); 2]);
        // Rows name NICs: GPUs 0 and 5 have NICs 0 and 5.
        assert_eq!(result.jobs.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 5, 0, 5]);
        assert_eq!(result.jobs.flows.len(), 8, "two flows per message");
    }
}

/// The same message as part of a GOAL schedule; a second one follows when the first is acknowledged.
#[test]
fn goal_schedules_follow_both_flows_of_a_relayed_message() {
    let of = servers(4, 4);
    let kind = workload("file", "path=0.goal hosts=[0,5]");
    let goal = "num_ranks 2\nrank 0 {\na: send 4096b to 1 tag 0\nb: send 4096b to 1 tag 1\nb requires a\n}\n\
                rank 1 {\nrecv 4096b from 0 tag 0\nrecv 4096b from 0 tag 1\n}\n";
    let setup = setup(rails(), made(&rails(), &of, kind, goal), "ops");
    for threads in [1, 2, 3] {
        let result = run_on(&setup, threads);
        let [group] = &result.jobs.groups[..] else { panic!("{} groups", result.jobs.groups.len()) };
        let both = Some(Time::from_ps(2 * ACKNOWLEDGED));
        assert_eq!((group.completion, group.ideal, group.critical_messages), (both, both, Some(2)));
        let steps: Vec<_> = result
            .jobs
            .steps
            .iter()
            .map(|row| [row.start.get(), row.completion.get()].map(|time| time.map(Time::ps)))
            .collect();
        assert_eq!(steps, [[Some(0), Some(RECEIVED)], [Some(ACKNOWLEDGED), Some(RECEIVED)]]);
        assert_eq!(result.jobs.ranks.iter().map(|rank| rank.host).collect::<Vec<_>>(), [0, 5]);
    }
}
