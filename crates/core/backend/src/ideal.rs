use crate::{IdealFct, Setup};
use anabranch_topology::{BasePaths, LinkId};
use anabranch_units::{Rate, Time};
use anabranch_workload::{Flow, Medium};

/// Returns `(ideal_rx, ideal_ack)` of `flow` alone on a shortest path, with an unlimited window. In the `conweave-ns3`
/// profiles `ideal_ack` follows that model's formula (specification 17.7): base round trip and all bytes at the NIC's
/// rate, one packet too many. With `transmission` both are the bytes of all packets at the rate of the path's slowest link.
/// Over scale-up they are the bytes at the rate and the latency, and the latency back.
pub(crate) fn ideal(setup: &Setup, paths: &mut BasePaths, flow: &Flow) -> (Time, Time) {
    if let (Medium::ScaleUp, Some(servers)) = (flow.medium, &setup.flows.servers) {
        let rx = servers.scale_up_time(flow.size);
        return (rx, rx + servers.scale_up_latency);
    }
    let (topology, transport) = (&setup.topology, &setup.transport);
    let (mtu, header) = (transport.mtu(), transport.header());
    let packets = flow.size.div_ceil(mtu).max(1);
    let last = flow.size - (packets - 1) * mtu;
    let path = paths.path(topology, flow.src, flow.dst);
    if setup.fabric.ideal_fct == IdealFct::Transmission {
        let slowest = path.iter().map(|link| topology.link(*link).rate).min().unwrap_or(Rate(1));
        let time = slowest.wire_time(flow.size + packets * header);
        return (time, time);
    }
    let rx = topology.train_arrival(path, packets - 1, mtu + header, last + header);
    if setup.fabric.ideal_fct == IdealFct::RttAndBytes {
        let rate = topology.link(topology.host_uplink(flow.src)).rate;
        return (rx, topology.rtt(path, mtu, 0) + rate.wire_time(flow.size + packets * header));
    }
    let back: Vec<LinkId> = path.iter().rev().map(|link| link.reverse()).collect();
    let ack = topology.train_arrival(&back, 0, 0, transport.ack_size());
    (rx, rx + ack)
}
