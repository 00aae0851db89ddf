//! Conservation of packets. Those in flight are counted, not computed by subtraction.

use super::scale_up;
use crate::{
    arena::Packets,
    group_ends::CompleteBytes,
    ids::FlowId,
    measure::{Family, Tally},
    partition::Partition,
    plan::Plan,
};
use anabranch_backend::FlowOutcome;
use anabranch_outcome::{Balance, Conservation};
use anabranch_workload::Medium;

pub(super) fn conservation(plan: &Plan<'_>, partitions: &[Partition<'_>], flows: &[FlowOutcome]) -> Conservation {
    let packets: Vec<&Packets> = partitions.iter().map(|p| &p.cx.ports.queues.packets).collect();
    let trimmed: Tally = partitions.iter().map(|p| p.cx.ports.queues.ledger.trimmed).sum();
    let balance = |family: Family| {
        let ledger =
            |index: usize| -> Tally { partitions.iter().map(|p| p.cx.ports.queues.ledger.of(family)[index]).sum() };
        let (injected, delivered, dropped) = (ledger(0), ledger(1), ledger(2));
        let mut in_flight = Tally::default();
        Packets::live(&packets)
            .filter(|packet| Family::of(packet.kind) == family)
            .for_each(|packet| in_flight.add(packet));
        let trimmed = if family == Family::Data { trimmed } else { Tally::default() };
        let of = |number: fn(&Tally) -> u64| Balance {
            injected: number(&injected),
            delivered: number(&delivered),
            dropped: number(&dropped),
            trimmed: number(&trimmed),
            in_flight: number(&in_flight),
        };
        (of(|t| t.packets), of(|t| t.bytes))
    };
    let (data_packets, data_bytes) = balance(Family::Data);
    let (acks, ack_bytes) = balance(Family::Acks);
    let complete = |(number, flow): (usize, &FlowOutcome)| {
        flow.received?;
        let definition = &plan.flows.flows[number];
        if definition.medium != Medium::Network {
            return None;
        }
        let receiver = &partitions[usize::from(plan.owner_of_host(definition.dst))];
        let size = receiver.cx.shared.simulated_bytes(FlowId(number as u32), definition.size);
        Some((receiver.hosts.received(FlowId(number as u32)).received_bytes, size))
    };
    let complete: Vec<_> = flows.iter().enumerate().filter_map(complete).collect();
    let ended = |of: fn(&CompleteBytes) -> u64| partitions.iter().map(|p| of(&p.cx.ended_bytes)).sum::<u64>();
    Conservation {
        data_packets,
        data_bytes,
        headers: balance(Family::Headers).0,
        acks,
        ack_bytes,
        probes: balance(Family::Probes).0,
        control: balance(Family::Control).0,
        scale_up_bytes: scale_up::balance(plan, partitions),
        unique_bytes: complete.iter().map(|c| c.0).sum::<u64>() + ended(|bytes| bytes.unique),
        flow_bytes: complete.iter().map(|c| c.1).sum::<u64>() + ended(|bytes| bytes.size),
    }
}

/// Checks that no packet or byte was lost or created; fails with the first balance that does not hold.
pub(super) fn check(conservation: &Conservation) -> Result<(), String> {
    let balances = [
        ("data packets", conservation.data_packets),
        ("bytes of data packets", conservation.data_bytes),
        ("headers of trimmed packets", conservation.headers),
        ("acknowledgements", conservation.acks),
        ("bytes of acknowledgements", conservation.ack_bytes),
        ("probes and their replies", conservation.probes),
        ("control packets of switches", conservation.control),
        ("bytes over scale-up", conservation.scale_up_bytes),
    ];
    for (what, balance) in balances {
        if !balance.holds() {
            return Err(format!("conservation of {what}: {balance:?}"));
        }
    }
    if conservation.unique_bytes != conservation.flow_bytes {
        return Err(format!(
            "complete flows of {} B delivered {} unique bytes",
            conservation.flow_bytes, conservation.unique_bytes
        ));
    }
    Ok(())
}
