//! Scale-up networks: rows of the GPUs, and conservation of bytes.

use crate::{ids::FlowId, partition::Partition, plan::Plan, scale_up::Port};
use anabranch_outcome::{Balance, GpuPortStats, GpuRow};
use anabranch_units::Time;

/// Returns a row per GPU; none without servers.
pub(super) fn gpus(plan: &Plan<'_>, partitions: &[Partition<'_>], simulated: Time) -> Vec<GpuRow> {
    let Some(scale_up) = &plan.scale_up else { return Vec::new() };
    let servers = plan.flows.servers.as_ref();
    let stats = |port: &Port| GpuPortStats {
        bytes: port.bytes,
        messages: port.messages,
        utilisation: match simulated.ps() {
            0 => 0.0,
            end => port.busy(end) as f64 / end as f64,
        },
        longest_wait: Time::from_ps(port.longest_wait),
    };
    let row = |gpu: u32| {
        let nic = servers.map_or(gpu, |servers| servers.nic_of(gpu));
        let port = &partitions[usize::from(plan.owner_of_host(nic))].scale_up.gpus[gpu as usize];
        GpuRow {
            gpu,
            server: gpu / scale_up.per_server,
            host: nic,
            rate_bps: scale_up.rate.0,
            egress: stats(&port.egress),
            ingress: stats(&port.ingress),
        }
    };
    (0..scale_up.gpus).map(row).collect()
}

/// Returns the balance of bytes. Those in flight are of flows that have started and are not received.
pub(super) fn balance(plan: &Plan<'_>, partitions: &[Partition<'_>]) -> Balance {
    let mut balance = Balance {
        injected: partitions.iter().map(|partition| partition.scale_up.injected).sum(),
        delivered: partitions.iter().map(|partition| partition.scale_up.delivered).sum(),
        ..Balance::default()
    };
    for (number, flow) in plan.flows.flows.iter().enumerate() {
        if let Some([Some(_), _, None, _]) = times(plan, partitions, FlowId(number as u32)) {
            balance.in_flight += flow.size;
        }
    }
    balance
}

/// Returns start, first byte sent, reception and acknowledgement of a flow over scale-up; `None` for one over the network.
pub(super) fn times(plan: &Plan<'_>, partitions: &[Partition<'_>], flow: FlowId) -> Option<[Option<Time>; 4]> {
    let (_, number) = plan.over_scale_up(flow)?;
    let of = &plan.flow(flow);
    let record = |host: u32| &partitions[usize::from(plan.owner_of_host(host))].scale_up.records[number];
    Some(record(of.src).with_receiver(record(of.dst)))
}

/// Checks that GPUs have received no more than was sent to them, and served no longer than the run.
pub(super) fn check(rows: &[GpuRow]) -> Result<(), String> {
    let sum = |of: fn(&GpuRow) -> u64| rows.iter().map(of).sum::<u64>();
    let (sent, received) = (sum(|row| row.egress.bytes), sum(|row| row.ingress.bytes));
    if received > sent {
        return Err(format!("GPUs have sent {sent} B over scale-up and received {received} B"));
    }
    match rows.iter().find(|row| row.egress.utilisation > 1.0 || row.ingress.utilisation > 1.0) {
        Some(row) => Err(format!("the scale-up port of GPU {} was busy for longer than the run: {row:?}", row.gpu)),
        None => Ok(()),
    }
}
