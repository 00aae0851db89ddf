//! Read-only plan that all partitions share: links, routes, flows, limits, faults.

mod buffer;
mod cells;
mod guided;
mod limits;
mod links;
mod nic_ports;
mod pairs;
mod scale_up;
mod tables;
mod transports;

pub(crate) use buffer::SharedBuffer;
pub use buffer::lossless_problem;
#[cfg(test)]
pub(crate) use buffer::{Pool, QUEUES};
pub use cells::shared_cells;
pub(crate) use guided::Guided;
pub(crate) use limits::{Limits, PortLimits, TrimmedShare};
pub(crate) use links::LinkPlan;
pub(crate) use nic_ports::{DownPorts, NicPorts, PortChange};
use pairs::UsedPairs;
pub(crate) use tables::Tables;
pub(crate) use transports::{FlowTransports, TransportId};
pub use transports::{long_window, short_range, short_window};

use crate::{
    event::{MAX_STAGED, Ties},
    ids::{FlowId, HostId, PortId, SwitchId},
};
use anabranch_backend::{CsigSignal, FlowKeys, LoadBalancer, Measure, RunError, Setup, arrivals};
use anabranch_lb::registry::{PacketScope, TagKind, check_header};
use anabranch_topology::{Fault, LinkId, NodeId, Topology};
use anabranch_units::{Rate, Time};
use anabranch_workload::{Flow, FlowSet, GroupTemplate, Medium, Start, TriggerKind};
use cells::CellPlan;
use scale_up::ScaleUpPlan;
use std::ops::Range;
use tables::Stopped;

/// All inputs that determine a run, prepared for the hot path.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) topology: &'a Topology,
    pub(crate) seed: u64,
    pub(crate) hosts: u32,
    pub(crate) links: Vec<LinkPlan>,
    pub(crate) cells: CellPlan,
    /// Per directed link, its port in its partition.
    ports: Vec<u32>,
    /// Per partition, the links of its ports.
    links_of: Vec<Vec<u32>>,
    ports_of_cell: Vec<Range<u32>>,
    /// Switch that each host attaches to, of several planes in the first.
    pub(crate) leaf: Vec<u32>,
    /// Number of planes: ports of a host.
    pub(crate) planes: u32,
    /// Links of the hosts, plane by plane.
    pub(crate) host_up: Vec<u32>,
    host_down: Vec<u32>,
    /// Per balancer: how packets are distributed over the ports of a NIC.
    pub(crate) nic_ports: Vec<NicPorts>,
    /// Changes of ports, in order of time.
    pub(crate) port_changes: Vec<PortChange>,
    /// Bytes of data at a port of a NIC with several above which the flows are not served.
    pub(crate) nic_queue: u32,
    /// No scheme names a port without space, so that a full one does not hold up the others.
    pub(crate) heeds_ports: bool,
    pub(crate) is_guided_or_has_planes: bool,
    /// Per balancer: hosts probe.
    pub(crate) probes: Vec<bool>,
    /// NICs have several ports, or receivers grant credit.
    pub(crate) has_nic_beside: bool,
    /// Per switch, the rate of its fastest link to another switch; zero: it has none.
    pub(crate) fastest: Vec<Rate>,
    /// Propagation delay of the first link between switches, else zero.
    pub(crate) hop_delay: Time,
    pub(crate) tables: Vec<Tables>,
    pub(crate) flows: &'a FlowSet,
    /// Per listed flow.
    flow_keys: Vec<u64>,
    /// Messages of a connection share its key.
    pub(crate) per_connection: bool,
    /// Per listed trigger.
    trigger_home: Vec<u32>,
    pub(crate) trigger_latency: u64,
    /// Scale-up networks; `None` without servers.
    pub(crate) scale_up: Option<ScaleUpPlan>,
    pub(crate) fabric: Limits,
    /// The buffers of the switches, where their ports share them.
    pub(crate) shared: Option<SharedBuffer>,
    pub(crate) ties: Ties,
    pub(crate) transports: FlowTransports,
    pub(crate) data_overhead: u16,
    /// Bytes of a full data packet on the wire.
    pub(crate) wire_mtu: u64,
    pub(crate) ack_size: u16,
    pub(crate) guided: Option<Guided>,
    /// The base round trip of a flow is that of its first path, as the recorded model has it.
    pub(crate) first_path_rtt: bool,
    pub(crate) balancers: &'a [LoadBalancer],
    /// Per balancer: packets on which its switch scheme decides.
    pub(crate) packet_scopes: Vec<PacketScope>,
    /// Per balancer: what its acknowledgements carry in place of a payload. A signal its data packets have too.
    pub(crate) reply_fields: Vec<ReplyField>,
    /// Per balancer: its host scheme leaves the tag unchanged, so that UDP ports stay the same.
    pub(crate) plain_host: Vec<bool>,
    /// Switches identify flows by their UDP ports.
    pub(crate) udp_ports: bool,
    /// The switches use the hash of the recorded runs.
    pub(crate) murmur3: bool,
    pub(crate) link_of_rank: Vec<u32>,
    pub(crate) faults: &'a [Fault],
    /// Times and numbers, in order of time.
    pub(crate) faults_by_time: Vec<(u64, usize)>,
    pub(crate) measure: &'a Measure,
    /// The run ends before this time.
    pub(crate) time_limit: Time,
    /// Picoseconds without progress after which the run stalls; `None`: it cannot.
    pub(crate) stall_span: Option<u64>,
    /// Interval of the cuts at which the steady state may be skipped, in picoseconds; `None`: never.
    pub(crate) skip_interval: Option<u64>,
    /// Begin and end of the window in which the bytes of every link are counted.
    pub(crate) window: Option<(Time, Time)>,
    /// Ports of NICs, and of switches, advance every transmission by an event of its own.
    eager_nics: bool,
    eager_switches: bool,
}

/// Field of an acknowledgement in place of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyField {
    None,
    /// Another entropy value for each.
    Entropy,
    /// The signal of the packet.
    Signal,
}

/// Time at which ports advance their transmissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// On demand: about one event per packet-hop.
    #[default]
    Lazy,
    /// By an event per transmission: two events per packet-hop, the reference for the lazy variant.
    Eager,
}

/// Split of a fabric into cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// A leaf with its hosts, or another switch, is a cell.
    #[default]
    Cells,
    /// All of it is one cell, the reference for many cells.
    One,
}

/// Execution options of a run, which do not affect results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    pub threads: usize,
    /// Time at which ports advance.
    pub timing: Timing,
    /// Split of the fabric into cells.
    pub split: Split,
}

impl How {
    /// Returns the fastest options for `threads` threads.
    pub fn on(threads: usize) -> Self {
        How { threads, timing: Timing::default(), split: Split::default() }
    }
}

impl<'a> Plan<'a> {
    /// Prepares a run; `go_on`, polled from time to time, returns `false` to interrupt it.
    pub(crate) fn new(setup: &'a Setup, how: How, go_on: &mut dyn FnMut() -> bool) -> Result<Self, RunError> {
        let topology = &setup.topology;
        let hosts = topology.hosts;
        let overhead = setup.transport.header();
        let wire_mtu = setup.transport.mtu() + overhead;
        let ack_size = setup.transport.ack_size();
        if wire_mtu > u64::from(u16::MAX) {
            let most = u16::MAX;
            return Err(RunError::Setup(format!(
                "transport.mtu and header make {wire_mtu} B packets; at most {most} B fit"
            )));
        }
        let max_bytes = u64::from(u32::MAX) * setup.transport.mtu();
        let of_groups = setup.flows.templates.iter().flat_map(GroupTemplate::of_ranks);
        if let Some(flow) = setup.flows.flows.iter().chain(of_groups).find(|flow| flow.size > max_bytes) {
            let size = flow.size;
            return Err(RunError::Setup(format!("a flow has {size} B; at most {max_bytes} B, 2^32 - 1 packets, fit")));
        }
        let udp_ports = setup.fabric.flow_keys == FlowKeys::UdpPorts;
        let murmur3 = udp_ports && setup.fabric.recorded;
        if udp_ports && !setup.flows.templates.is_empty() {
            let message =
                "fabric.flow_keys = \"udp-ports\" numbers all flows in advance; give measure.flow_rows = \"all\"";
            return Err(RunError::Setup(message.into()));
        }
        let planes = topology.planes;
        if planes > 1 && (setup.fabric.pfc || setup.fabric.recorded || setup.limits.skip) {
            let (key, reason) = match (setup.fabric.pfc, setup.fabric.recorded) {
                (true, _) => ("fabric.pfc = true", "a pause would stop one port of a NIC; planes lose packets instead"),
                (_, true) => ("fabric.recorded = true", "the recorded model has one port per host"),
                _ => ("run.skip", "rates of single planes are not compared"),
            };
            return Err(RunError::Setup(format!("topology.planes is {planes}; expected 1 with {key}: {reason}")));
        }
        let pairs = UsedPairs::new(setup);
        let (base_rtt, slowest) = (pairs.longest.0, pairs.slowest);
        let bdp = |rate| pairs.port_bdp(rate);
        let fabric =
            Limits::new(&setup.fabric, setup.marking.chosen(&setup.fabric.marking), &bdp, topology, wire_mtu as u32);
        let fabric = fabric.map_err(RunError::Setup)?;
        fabric.check(topology, &pairs.reached(), wire_mtu).map_err(RunError::Setup)?;
        if fabric.pfc && setup.fabric.shared_buffer.0 == 0 {
            let message = "fabric.pfc needs a fabric.shared_buffer, whose occupancy triggers its pauses";
            return Err(RunError::Setup(message.into()));
        }
        let transports = FlowTransports::new(setup, pairs, &fabric).map_err(RunError::Setup)?;
        let links = links::links(topology, setup.seed).map_err(RunError::Setup)?;
        let delays: Vec<u64> = links.iter().map(|link| link.delay).collect();
        let scale_up = ScaleUpPlan::new(&setup.flows, hosts);
        if scale_up.is_some() && setup.flows.flows.len() > MAX_STAGED as usize {
            let flows = setup.flows.flows.len();
            return Err(RunError::Setup(format!("{flows} flows with servers; at most {MAX_STAGED} fit")));
        }
        let triggers = (setup.flows.number_of_triggers() > 0).then_some(setup.limits.trigger_latency);
        let inside = scale_up.as_ref().and_then(ScaleUpPlan::remote_latency);
        let remote = [triggers, inside].into_iter().flatten().min().map(Time::ps);
        let mut load = vec![0u64; hosts as usize];
        for flow in setup.flows.flows.iter().filter(|flow| flow.medium == Medium::Network) {
            for host in [flow.src, flow.dst] {
                load[host as usize] = load[host as usize].saturating_add(flow.size);
            }
        }
        for template in &setup.flows.templates {
            let job = &setup.flows.grouped[template.job as usize];
            for group in 0..job.groups {
                let hosts = job.hosts_of(group);
                for host in 0..job.ranks {
                    let load = &mut load[hosts[host as usize] as usize];
                    *load = load.saturating_add(template.bytes_of_rank(host));
                }
            }
        }
        let one = how.split == Split::One;
        let cells = CellPlan::new(topology, &delays, remote, how.threads, &load, one);
        let mut link_of_rank = vec![0; links.len()];
        links.iter().enumerate().for_each(|(link, plan)| link_of_rank[plan.rank as usize] = link as u32);
        let shared = match setup.fabric.shared_buffer.0 {
            0 => None,
            _ => Some(SharedBuffer::new(topology, &links, &setup.fabric, wire_mtu).map_err(RunError::Setup)?),
        };
        let guided = Guided::new(topology, &setup.load_balancers, setup.fabric.reply_paths).map_err(RunError::Setup)?;
        let trigger_home = trigger_homes(&setup.flows, hosts).map_err(RunError::Setup)?;
        let has_signals = setup.fabric.csig != CsigSignal::Off;
        let field = |b: &LoadBalancer| match b.host.capabilities().tags() {
            _ if has_signals && b.host.capabilities().reads_signals().is_some() => {
                check_header(&b.host, &b.switch).map(|()| ReplyField::Signal)
            }
            TagKind::Entropy if transports.main().fresh_acks() => Ok(ReplyField::Entropy),
            _ => Ok(ReplyField::None),
        };
        let reply_fields: Result<Vec<_>, _> = setup.load_balancers.iter().map(field).collect();
        let reply_fields = reply_fields.map_err(|error| RunError::Setup(error.to_string()))?;
        let mut fastest = vec![Rate(0); topology.switches() as usize];
        for link in links.iter().filter(|link| link.from >= hosts && link.to >= hosts) {
            let rate = &mut fastest[(link.from - hosts) as usize];
            *rate = (*rate).max(link.rate);
        }
        let between = topology.links.iter().find(|link| link.from.0 >= hosts && link.to.0 >= hosts);
        let host_up: Vec<u32> =
            (0..planes).flat_map(|plane| (0..hosts).map(move |h| topology.host_uplink_in(h, plane).0)).collect();
        // Ports of a cell are adjacent.
        let cell_of = |link: u32| cells.of_node[links[link as usize].from as usize];
        let mut by_cell: Vec<u32> = (0..links.len() as u32).collect();
        by_cell.sort_by_key(|&link| (cell_of(link), link));
        let mut links_of = vec![Vec::new(); cells.partitions];
        let mut ports = vec![0; links.len()];
        let mut ports_of_cell = vec![0..0; cells.cells()];
        for link in by_cell {
            let cell = usize::from(cell_of(link));
            let mine: &mut Vec<u32> = &mut links_of[usize::from(cells.owner[cell])];
            let port = mine.len() as u32;
            ports[link as usize] = port;
            let range: &mut Range<u32> = &mut ports_of_cell[cell];
            *range = if range.end == 0 { port } else { range.start }..port + 1;
            mine.push(link);
        }
        let mut faults_by_time: Vec<_> = setup.faults.iter().enumerate().map(|(i, fault)| (fault.at.ps(), i)).collect();
        faults_by_time.sort_unstable();
        let eager = how.timing == Timing::Eager;
        let heeds_rates = setup.load_balancers.iter().any(|b| b.host.capabilities().reads_path_rates());
        let is_static = setup.load_balancers.iter().all(|b| b.switch.capabilities().keeps_tables());
        // A NIC's timers follow from what it sends: if shorter than a window, it cannot wait for the window's end.
        let timeout = transports.max_timeout();
        let per_connection = setup.fabric.flow_keys == FlowKeys::Connection;
        let hasty = transports.min_timeout().is_some_and(|least| least.ps() < cells.lookahead);
        Ok(Plan {
            setup,
            seed: setup.seed,
            hosts,
            leaf: (0..hosts).map(|h| topology.edge_switch(h).0 - hosts).collect(),
            planes,
            host_down: host_up.iter().map(|&l| LinkId(l).reverse().0).collect(),
            nic_ports: setup.load_balancers.iter().map(|b| NicPorts::new(setup.fabric.nic_ports, b, planes)).collect(),
            port_changes: nic_ports::port_changes(topology, &setup.faults),
            is_guided_or_has_planes: guided.is_some() || topology.planes > 1,
            probes: setup.load_balancers.iter().map(|b| b.host.capabilities().probe_payload().is_some()).collect(),
            has_nic_beside: topology.planes > 1 || transports.has_credit(),
            heeds_ports: setup.load_balancers.iter().all(|b| b.host.capabilities().heeds_ports()),
            nic_queue: host_up.iter().map(|up| fabric.at(*up, links[*up as usize].rate).queue).min().unwrap_or(0),
            fastest,
            hop_delay: between.map_or(Time::ZERO, |link| link.delay),
            tables: tables::tables(topology, &setup.faults, (is_static, heeds_rates), go_on)
                .map_err(|Stopped| RunError::Interrupted)?,
            flow_keys: if udp_ports {
                udp_ports_of(&setup.flows, hosts)
            } else if per_connection {
                setup.flows.flows.iter().map(|f| f.connection).collect()
            } else {
                setup.flows.flows.iter().map(|f| f.key).collect()
            },
            per_connection,
            trigger_home,
            trigger_latency: setup.limits.trigger_latency.ps(),
            scale_up,
            flows: &setup.flows,
            eager_switches: eager,
            // The ports of a NIC advance together.
            eager_nics: eager
                || hasty
                || planes > 1 && host_up.iter().any(|&up| links[up as usize].delay < cells.lookahead),
            host_up,
            ties: Ties::new(links.len(), !fabric.arrivals_first),
            fabric,
            transports,
            data_overhead: overhead as u16,
            wire_mtu,
            ack_size: ack_size as u16,
            guided,
            first_path_rtt: setup.fabric.recorded,
            packet_scopes: setup.load_balancers.iter().map(|b| b.switch.capabilities().packet_scope()).collect(),
            reply_fields,
            plain_host: setup
                .load_balancers
                .iter()
                .map(|b| udp_ports && b.host.capabilities().leaves_choice_to_switches())
                .collect(),
            balancers: &setup.load_balancers,
            udp_ports,
            murmur3,
            shared,
            link_of_rank,
            faults: &setup.faults,
            faults_by_time,
            measure: &setup.measure,
            time_limit: setup.limits.time_limit,
            stall_span: setup
                .limits
                .stall_after
                .zip(timeout)
                .map(|(count, timeout)| timeout.ps().saturating_mul(count)),
            // At least a round trip, and 16 packets, so that queues and windows show in the samples.
            skip_interval: setup.limits.skip.then(|| base_rtt.max(slowest.wire_time(16 * wire_mtu)).ps()),
            window: arrivals(setup),
            links,
            cells,
            ports,
            links_of,
            ports_of_cell,
            topology,
        })
    }

    /// Returns `true` if packets carry the signals of links.
    pub(crate) fn has_signals(&self) -> bool {
        self.reply_fields.contains(&ReplyField::Signal)
    }

    /// Returns `true` if the packets of a balancer carry the signals of links.
    pub(crate) fn signalled(&self, balancer: u8) -> bool {
        self.reply_fields[usize::from(balancer)] == ReplyField::Signal
    }

    /// Returns the time of the last fault or change of tables within the run.
    pub(crate) fn last_change(&self) -> u64 {
        let changes = self.faults_by_time.iter().map(|(at, _)| *at).chain(self.tables.iter().map(|tables| tables.from));
        changes.filter(|at| *at < self.time_limit.ps()).max().unwrap_or(0)
    }

    pub(crate) fn links_of(&self, me: u16) -> &[u32] {
        &self.links_of[usize::from(me)]
    }

    #[inline]
    pub(crate) fn ports_of_cell(&self, cell: u32) -> Range<u32> {
        self.ports_of_cell[cell as usize].clone()
    }

    #[inline]
    pub(crate) fn port_of(&self, link: u32) -> PortId {
        PortId(self.ports[link as usize])
    }

    #[inline]
    pub(crate) fn owner_of_link(&self, link: u32) -> u16 {
        self.cells.owner_of(NodeId(self.links[link as usize].from))
    }

    #[inline]
    pub(crate) fn is_eager(&self, link: &LinkPlan) -> bool {
        if link.from < self.hosts { self.eager_nics } else { self.eager_switches }
    }

    /// Returns `true` if the port of a link can never wait for the end of a window.
    pub(crate) fn is_prompt(&self, link: &LinkPlan) -> bool {
        self.is_eager(link) || link.delay < self.cells.lookahead
    }

    /// Returns `true` if a port that cannot wait advances a transmission at its start, since it may act on other ports at once.
    pub(crate) fn is_immediate(&self, link: &LinkPlan) -> bool {
        self.is_eager(link) || self.fabric.pfc && link.from >= self.hosts
    }

    /// Returns what the draws of a link's arrivals follow from.
    pub(crate) fn salt(&self, link: u32) -> u64 {
        anabranch_random::key(self.seed, self.links[link as usize].key, "ties")
    }

    /// Returns the link over which an arrival of this order came.
    #[inline]
    pub(crate) fn link_of(&self, order: u32) -> u32 {
        self.link_of_rank[self.ties.rank(order) as usize]
    }

    #[inline]
    pub(crate) fn owner_of_host(&self, host: u32) -> u16 {
        self.cells.owner_of(NodeId(host))
    }

    #[inline]
    pub(crate) fn cell_of(&self, node: u32) -> u16 {
        self.cells.of_node[node as usize]
    }

    /// Returns the port of a NIC, of several planes that in the first.
    #[inline]
    pub(crate) fn nic(&self, host: HostId) -> PortId {
        self.port_of(self.host_up[host.at()])
    }

    pub(crate) fn nic_in(&self, host: HostId, plane: u32) -> PortId {
        self.port_of(self.host_up[host.at() + (plane * self.hosts) as usize])
    }

    /// Returns the link from a leaf down to a host.
    #[inline]
    pub(crate) fn down(&self, leaf: SwitchId, host: u32) -> u32 {
        self.down_of(leaf.0 / self.topology.plane_switches() * self.hosts + host)
    }

    /// Returns the link down to a host by its number plus `hosts` times the plane.
    #[inline]
    pub(crate) fn down_of(&self, index: u32) -> u32 {
        self.host_down[index as usize]
    }

    /// Returns the expected maximum length of a queue, in bytes, for histograms.
    pub(crate) fn longest_queue(&self) -> u32 {
        match &self.shared {
            // A queue may take half of a shared buffer, but few come near it.
            Some(shared) => (shared.size / 8).min(u64::from(u32::MAX)) as u32,
            None => self.fabric.longest_queue().saturating_mul(self.fabric.classes as u32),
        }
    }

    /// Returns the rate that a flow can reach alone: the minimum over the NICs and the fastest links of their switches.
    pub(crate) fn lone_rate(&self, src: u32, dst: u32) -> Rate {
        let nics = self.nic_rate(src).min(self.nic_rate(dst));
        let (from, to) = (self.leaf[src as usize], self.leaf[dst as usize]);
        let of_planes = |leaf: u32| {
            let copies = self.fastest.iter().skip(leaf as usize).step_by(self.topology.plane_switches() as usize);
            Rate(copies.map(|rate| rate.0).sum())
        };
        if from == to { nics } else { nics.min(of_planes(from)).min(of_planes(to)) }
    }

    /// Returns the rate of a NIC over all its ports.
    pub(crate) fn nic_rate(&self, host: u32) -> Rate {
        self.topology.host_rates(host).0
    }

    #[inline]
    pub(crate) fn flow(&self, flow: FlowId) -> Flow {
        self.flows.flow(flow.0)
    }

    /// Returns the number by which switches hash a flow.
    #[inline]
    pub(crate) fn flow_key(&self, flow: u32) -> u64 {
        match self.flow_keys.get(flow as usize) {
            Some(key) => *key,
            None if self.per_connection => self.flows.connection_key(flow),
            None => self.flows.flow_key(flow),
        }
    }

    #[inline]
    pub(crate) fn home(&self, trigger: u32) -> HostId {
        match self.trigger_home.get(trigger as usize) {
            Some(home) => HostId(*home),
            // Those of templates have a home or a target.
            None => HostId(self.flows.trigger(trigger).home().unwrap_or(0)),
        }
    }

    /// Returns the endpoint whose processors a trigger's delay occupies: a host, with servers a GPU.
    pub(crate) fn endpoint_of(&self, trigger: u32) -> u32 {
        let definition = self.flows.trigger(trigger);
        let of = definition.target(0).map(|first| self.flows.flow(first));
        let of = of.map(|flow| flow.gpus.map_or(flow.src, |gpus| gpus.0));
        definition.home().or(of).unwrap_or(self.home(trigger).0)
    }

    /// Returns the scale-up networks and the number of a flow among those that use them; `None`: it uses the network.
    pub(crate) fn over_scale_up(&self, flow: FlowId) -> Option<(&ScaleUpPlan, usize)> {
        let scale_up = self.scale_up.as_ref()?;
        Some((scale_up, scale_up.number_of(flow.at())?))
    }

    pub(crate) fn balancer_of(&self, flow: &Flow) -> u8 {
        self.flows.workloads[flow.workload as usize].load_balancer as u8
    }
}

/// Returns the UDP ports of every flow as the reference model assigns them (specification 17.1): source below,
/// destination in the upper 16 bits. Sources count from 10,000 per sending host, destinations from 100 per receiving
/// host. Flows of one start are in the order of the flow file.
fn udp_ports_of(flows: &FlowSet, hosts: u32) -> Vec<u64> {
    let (mut source, mut destination) = (vec![10_000u16; hosts as usize], vec![100u16; hosts as usize]);
    let next = |port: &mut u16| {
        let this = *port;
        *port = port.wrapping_add(1);
        u64::from(this)
    };
    let mut order: Vec<usize> = (0..flows.flows.len()).collect();
    order.sort_by_key(|&i| (start_time(flows.flows[i].start).unwrap_or(u64::MAX), flows.flows[i].listed));
    let mut ports = vec![0; order.len()];
    for i in order {
        let flow = &flows.flows[i];
        ports[i] = next(&mut source[flow.src as usize]) | next(&mut destination[flow.dst as usize]) << 16;
    }
    ports
}

/// Returns the host of each trigger's state: its home (with servers the NIC of a GPU), else the sender of its first target. Fails on more triggers than
/// an event can name, a home outside the hosts, or a trigger with neither home nor target.
fn trigger_homes(flows: &FlowSet, hosts: u32) -> Result<Vec<u32>, String> {
    if flows.triggers.len() > MAX_STAGED as usize {
        return Err(format!("{} triggers; at most {MAX_STAGED} fit", flows.triggers.len()));
    }
    let endpoints = flows.servers.as_ref().map_or(hosts, |servers| servers.endpoints(hosts));
    let host_of = |endpoint: u32| flows.servers.as_ref().map_or(endpoint, |servers| servers.nic_of(endpoint));
    let home = |(number, trigger): (usize, &anabranch_workload::Trigger)| match (trigger.home, trigger.targets.first())
    {
        (Some(home), _) if home < endpoints => Ok(host_of(home)),
        (Some(home), _) => {
            Err(format!("trigger {number} is at home at host {home}; hosts are 0 to {}", endpoints.max(1) - 1))
        }
        (None, Some(first)) => Ok(flows.flows[*first as usize].src),
        (None, None) => Err(format!("trigger {number} starts no flow and has no host as its home")),
    };
    flows.triggers.iter().enumerate().map(home).collect()
}

/// Returns the start time of a flow that has one, in picoseconds.
pub(crate) fn start_time(start: Start) -> Option<u64> {
    match start {
        Start::At(time) => Some(time.ps()),
        Start::On(_) => None,
    }
}

/// Returns the activations after which a trigger fires all its targets; `None`: one target per activation.
pub(crate) fn activations(kind: TriggerKind) -> Option<u32> {
    match kind {
        TriggerKind::Oneshot => Some(1),
        TriggerKind::Barrier(count) => Some(count),
        TriggerKind::Multishot => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_one_start_count_their_ports_in_file_order() {
        // Lines of the recorded incast: 16, 33 and 23 to host 0 at once; sorted by source, 23 precedes 33. Recorded
        // destination ports: 100, 101 and, for the last line, 102. A later flow gets the next port.
        let flow = |src, start, listed| Flow {
            src,
            dst: 0,
            gpus: None,
            medium: anabranch_workload::Medium::Network,
            size: 1,
            start: Start::At(Time::from_ns(start)),
            workload: 0,
            class: 0,
            key: 0,
            connection: 0,
            listed,
            on_sent: None,
            on_received: None,
        };
        let list = vec![flow(16, 0, 1), flow(23, 0, 3), flow(33, 0, 2), flow(16, 5, 0)];
        let set = FlowSet { flows: list, ..FlowSet::default() };
        let ports: Vec<(u64, u64)> = udp_ports_of(&set, 40).iter().map(|p| (p & 0xffff, p >> 16)).collect();
        assert_eq!(ports, [(10_000, 100), (10_000, 102), (10_000, 101), (10_001, 103)]);
    }
}
