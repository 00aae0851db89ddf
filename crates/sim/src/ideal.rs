//! The flow completion time of a flow alone on the network.

use anabranch_topology::{BasePaths, LinkId, Topology};
use anabranch_transport::uet::UetParameters;
use anabranch_units::Time;
use anabranch_workload::Flow;

/// `(ideal_rx, ideal_ack)` of `flow` on a shortest path: from the first packet sent to the last byte received,
/// and to the arrival of the last acknowledgement. The window is taken to be no limit.
pub(crate) fn ideal(
    topology: &Topology,
    paths: &mut BasePaths,
    transport: &UetParameters,
    flow: &Flow,
) -> (Time, Time) {
    let (mtu, header) = (transport.mtu.0, transport.header.0);
    let packets = flow.size.div_ceil(mtu).max(1);
    let last = flow.size - (packets - 1) * mtu;
    let path = paths.path(topology, flow.src, flow.dst);
    let rx = topology.train_arrival(path, packets - 1, mtu + header, last + header);
    let back: Vec<LinkId> = path.iter().rev().map(|link| link.reverse()).collect();
    let ack = topology.train_arrival(&back, 0, 0, transport.ack_size.0);
    (rx, rx + ack)
}
