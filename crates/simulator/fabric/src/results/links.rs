//! Results of the links: one row per directed link, and the check of Little's law on every queue.

use crate::{partition::Partition, plan::Plan, port::Port};
use anabranch_outcome::{LinkRow, QueueStats, UplinkCount};
use anabranch_topology::{FaultAction, LinkId, NodeId, NodeKind};
use anabranch_units::{Rate, Time};

/// Returns a row per directed link; fails if Little's law does not hold for a queue.
pub(super) fn links(plan: &Plan<'_>, partitions: &mut [Partition<'_>], end: Time) -> Result<Vec<LinkRow>, String> {
    let mut rows = Vec::with_capacity(plan.links.len());
    for (index, link) in plan.links.iter().enumerate() {
        let number = index as u32;
        let (ports, id) = (&mut partitions[usize::from(plan.owner_of_link(number))].cx.ports, plan.port_of(number));
        ports.queues.finish_accounts(id, end.ps());
        let (port, queues) = (ports.port(id), &ports.queues);
        let counters = queues.counters(id);
        let account = &port.account;
        let still = queues.of(id).flat_map(|queue| queue.iter(&queues.packets)).map(|id| &queues.packets[id]);
        let still = still.filter(|packet| !packet.is_control());
        let waited = account.waited + still.map(|packet| account.changed_at - packet.queued_at).sum::<u64>();
        if waited != account.area_packets {
            let name = plan.topology.link_name(LinkId(number));
            return Err(format!(
                "Little's law on {name}: the queue's length integrates to {} packet-ps, its packets waited {waited} ps",
                account.area_packets
            ));
        }
        let total = end.ps().max(1);
        let occupancy = queues.histograms.occupancy(id, total);
        let p99_bytes = queues.histograms.quantile_bytes(id, total, 0.99, account.max_bytes);
        let p99_packets = quantile_packets(&occupancy, total)
            .unwrap_or_else(|| p99_bytes.div_ceil(plan.wire_mtu).min(u64::from(account.max_packets)));
        rows.push(LinkRow {
            from: plan.topology.node(NodeId(link.from)).name.clone(),
            to: plan.topology.node(NodeId(link.to)).name.clone(),
            parallel: plan.topology.parallel(LinkId(number)),
            tier: plan.topology.links[index].class.name(),
            direction: direction(plan, index),
            rate_bps: link.rate.0,
            bytes: account.sent_bytes,
            packets: account.sent_packets,
            utilisation: utilisation(plan, number, port, total),
            queue: QueueStats {
                mean_bytes: Some(account.area_bytes as f64 / total as f64),
                p99_bytes: Some(p99_bytes),
                max_bytes: Some(u64::from(account.max_bytes)),
                mean_packets: Some(account.area_packets as f64 / total as f64),
                p99_packets: Some(p99_packets),
                max_packets: Some(u64::from(account.max_packets)),
                occupancy,
            },
            ecn_marks: Some(counters.marked),
            trims: Some(counters.trimmed),
            drops: Some(counters.dropped),
            pauses: Some(counters.pauses),
        });
    }
    Ok(rows)
}

/// Returns the bits that a link sent in `total` picoseconds over those that its rates, which faults change, allow.
fn utilisation(plan: &Plan<'_>, link: u32, port: &Port, total: u64) -> f64 {
    let (mut from, mut rate, mut could) = (0, plan.links[link as usize].rate, 0.0);
    let mut changes: Vec<(u64, Rate)> = vec![];
    for fault in plan.setup.faults.iter().filter(|fault| fault.links.contains(&LinkId(link))) {
        if let FaultAction::Degrade(new) = fault.action {
            changes.push((fault.at.ps().min(total), new));
        }
    }
    changes.sort_by_key(|change| change.0);
    let has_changed = !changes.is_empty();
    for (at, new) in changes.into_iter().chain([(total, Rate(0))]) {
        could += rate.0 as f64 * Time::from_ps(at - from).as_seconds();
        // The last rate stays, that of the packet in transmission.
        (from, rate) = (at, if at < total { new } else { rate });
    }
    let share = port.sent_until(total, rate) as f64 * 8.0 / could;
    // A packet that is in transmission when the rate falls ends at the old rate.
    if has_changed { share.min(1.0) } else { share }
}

/// Returns the bytes that each link sent in the requested window; `None` where the run did not reach it.
pub(super) fn window_bytes(plan: &Plan<'_>, partitions: &[Partition<'_>], end: Time) -> Option<Vec<u64>> {
    let of_link = |link: u32| {
        let partition = &partitions[usize::from(plan.owner_of_link(link))];
        let port = plan.port_of(link);
        let port_state = partition.cx.ports.port(port);
        partition.window.sent_bytes(port.at(), port_state.sent_until(end.ps(), plan.links[link as usize].rate))
    };
    (0..plan.links.len() as u32).map(of_link).collect()
}

fn quantile_packets(occupancy: &[(u64, u64)], total: u64) -> Option<u64> {
    let mut left = (total as f64 * 0.99) as u64;
    for &(packets, span) in occupancy {
        if left <= span {
            return Some(packets);
        }
        left -= span;
    }
    occupancy.last().map(|&(packets, _)| packets)
}

fn direction(plan: &Plan<'_>, link: usize) -> &'static str {
    let height = |node: u32| match plan.topology.node(NodeId(node)).kind {
        NodeKind::Host => 0,
        NodeKind::Switch { tier } => 1 + u32::from(tier),
    };
    match height(plan.links[link].from).cmp(&height(plan.links[link].to)) {
        std::cmp::Ordering::Less => "up",
        std::cmp::Ordering::Greater => "down",
        std::cmp::Ordering::Equal => "flat",
    }
}

pub(super) fn uplink_counts(plan: &Plan<'_>, partitions: &[Partition<'_>]) -> Vec<UplinkCount> {
    let counts = partitions.iter().filter_map(|p| p.switches.uplink_counts.as_ref()).flatten();
    let mut counts: Vec<_> = counts.map(|(&key, &packets)| (key, packets)).collect();
    counts.sort_unstable();
    let name = |node: u32| plan.topology.node(NodeId(node)).name.clone();
    let row = |((flow_id, number), packets): ((u32, u32), u64)| {
        let link = &plan.links[number as usize];
        let parallel = plan.topology.parallel(LinkId(number));
        UplinkCount { flow_id, from: name(link.from), to: name(link.to), parallel, packets }
    };
    counts.into_iter().map(row).collect()
}

/// Returns the port of a switch at which the most bytes of trimmed headers and control packets wait, and these.
pub(super) fn most_control(plan: &Plan<'_>, partitions: &[Partition<'_>]) -> Option<(String, u64)> {
    let of_switches = (0..plan.links.len() as u32).filter(|&link| plan.links[link as usize].from >= plan.hosts);
    let bytes =
        |link: u32| partitions[usize::from(plan.owner_of_link(link))].cx.ports.queues.control_bytes(plan.port_of(link));
    let (most, link) = of_switches.map(|link| (bytes(link), std::cmp::Reverse(link))).max()?;
    (most > 0).then(|| (plan.topology.link_name(LinkId(link.0)), most))
}
