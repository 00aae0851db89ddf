use super::{Delays, GraphKind};
use anabranch_backend::Setup;
use anabranch_topology::{Guidance, LinkClass, NodeId, Topology};
use anabranch_units::BytesOrBdp;
use anabranch_workload::Start;

/// Fastest width on trees of 128 and of 8,192 hosts.
const BUCKET_BITS: u32 = 12;

/// Network, traffic and window of a stripped loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrippedCase {
    pub graph: GraphKind,
    pub delays: Delays,
    /// Receiver of each host.
    pub to: Vec<u32>,
    /// Payload of each host's flow.
    pub bytes_per_flow: u64,
    /// Payload of a data packet.
    pub payload: u64,
    /// Bytes of a data packet on the wire.
    pub data: u16,
    /// Bytes of an ACK on the wire.
    pub ack: u16,
    /// Picoseconds per byte of every link.
    pub ps_per_byte: u64,
    /// Maximum number of data packets of a flow in flight.
    pub window: u64,
    /// Data packets per ACK.
    pub packets_per_ack: u64,
    /// Bucket width: 2 to this power picoseconds.
    pub bucket_bits: u32,
}

impl StrippedCase {
    /// Returns the case of `setup`, a permutation at time zero with one size over links of one rate; `None` for others.
    pub fn of(setup: &Setup) -> Option<Self> {
        let topology = &setup.topology;
        let hosts = topology.hosts as usize;
        let flows = &setup.flows.flows;
        let mut to = vec![u32::MAX; hosts];
        flows.iter().for_each(|flow| to[flow.src as usize] = flow.dst);
        let bytes_per_flow = flows.first()?.size;
        let alike = |flow: &anabranch_workload::Flow| {
            flow.size == bytes_per_flow && flow.start == Start::At(anabranch_units::Time::ZERO)
        };
        if flows.len() != hosts || to.contains(&u32::MAX) || !flows.iter().all(alike) {
            return None;
        }
        let rate = topology.links.first()?.rate;
        if topology.links.iter().any(|link| link.rate != rate) {
            return None;
        }
        let transport = &setup.transport;
        let data = transport.mtu() + transport.header();
        let bdp = topology.window_bdp(data, transport.ack_size());
        // Line rate without a limit has at least a BDP in flight.
        let window = transport.window().map_or(BytesOrBdp::Bdp(1_000_000), |(window, _)| window);
        let packets_per_ack = transport.packets_per_ack();
        Some(StrippedCase {
            graph: graph(topology)?,
            delays: delays(topology),
            to,
            bytes_per_flow,
            payload: transport.mtu(),
            data: u16::try_from(data).ok()?,
            ack: u16::try_from(transport.ack_size()).ok()?,
            ps_per_byte: rate.wire_time(1).ps(),
            window: window.bytes(bdp).div_ceil(data).max(packets_per_ack),
            packets_per_ack,
            bucket_bits: BUCKET_BITS,
        })
    }
}

fn graph(topology: &Topology) -> Option<GraphKind> {
    let hosts = topology.hosts as usize;
    let per_leaf = topology.links.iter().filter(|l| l.to == topology.edge_switch(0) && l.from.0 < topology.hosts);
    let per_leaf = per_leaf.count();
    if topology.planes > 1 {
        return None;
    }
    let graph = match topology.uplinks[..] {
        [spines] => {
            GraphKind::LeafSpine { leaves: hosts / per_leaf, hosts_per_leaf: per_leaf, spines: spines as usize }
        }
        [half, other] if half == other && half as usize == per_leaf => GraphKind::FatTree { half: per_leaf },
        [] if topology.guidance == Some(Guidance::Dragonfly) => {
            let a = topology.groups.iter().filter(|group| **group == 0).count();
            let global = topology.out_links(NodeId(topology.hosts)).iter();
            let h = global.filter(|link| topology.link(**link).class == LinkClass::Global).count();
            GraphKind::Dragonfly { p: per_leaf, a, h }
        }
        _ => return None,
    };
    (graph.hosts() == hosts).then_some(graph)
}

fn delays(topology: &Topology) -> Delays {
    let of = |class: &dyn Fn(LinkClass) -> bool| {
        topology.links.iter().find(|link| class(link.class)).map_or(0, |link| link.delay.ps())
    };
    let latency = topology.switch_latency.ps();
    let host = of(&|class| class == LinkClass::Host);
    Delays {
        up: host + latency,
        down: host,
        near: of(&|class| matches!(class, LinkClass::Tier { .. } | LinkClass::Local)) + latency,
        far: of(&|class| class == LinkClass::Global) + latency,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{simulator::CASES, stripped};
    use anabranch_scenario::library;

    /// A single packet from each host and its ACK take as many hops as in the simulator.
    #[test]
    fn paths_are_as_long_as_in_the_simulator() {
        let cases = [
            ("permutation-128", "topology.radix=4", "ecmp"),
            ("permutation-1024", "topology.radix=4", "ecmp"),
            ("permutation-roce", "topology.leaves=4", "ecmp"),
            ("spritz-permutation-dragonfly", "topology.a=4", "minimal"),
        ];
        for (scenario, change, scheme) in cases {
            let changes = [change, "workload.0.size=1B", &format!("load_balancer.scheme={scheme}")];
            let changes = changes.map(str::to_string);
            let setup = library::load(scenario, &changes, None).and_then(|s| s.setup(1)).unwrap();
            let expected = anabranch_sim::run(&setup, 1, &mut |_| true).unwrap().packet_hops.unwrap();
            let case = StrippedCase { packets_per_ack: 1, ..StrippedCase::of(&setup).unwrap() };
            assert_eq!(stripped::run(&case).packet_hops, expected, "{scenario}");
        }
    }

    #[test]
    fn every_case_has_a_loop() {
        for case in CASES {
            let setup = case.load().and_then(|scenario| scenario.setup(scenario.seed)).unwrap();
            let stripped = StrippedCase::of(&setup).unwrap_or_else(|| panic!("{}: no loop of this graph", case.name));
            assert_eq!(stripped.graph.hosts(), setup.topology.hosts as usize);
            let delays: u64 = setup.topology.links.iter().map(|link| link.delay.ps()).max().unwrap();
            let far = setup.topology.guidance.is_some();
            let longest = if far { stripped.delays.far } else { stripped.delays.near };
            assert_eq!(longest, delays + setup.topology.switch_latency.ps(), "{}", case.name);
        }
    }
}
