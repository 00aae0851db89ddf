//! The network itself: namespaces, cables, addresses, routes, shaped ports.

use crate::{
    Plan, Role, TestbedError,
    harm::Delays,
    link_program::Harmed,
    plan::{Cable, End},
    port_program::{self, Counted, Speed},
    programs::{run, set},
};
use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs::File,
    io::{Read, Seek},
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

/// Where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";
/// Least burst of a port in bytes: what it sends at once after a rest.
const LEAST_BURST: u64 = 15_000;
/// Bytes of an Ethernet header, which shaping counts.
const ETHERNET: u64 = 14;
/// Source and destination address, protocol, source and destination port: the packet's own five-tuple.
const FIVE_TUPLE: &str = "55";
/// Bytes of control packets and trimmed headers that a port holds besides data.
const CONTROL_LIMIT: u64 = 100_000;

/// How a message begins that says why ports neither mark nor trim.
const LACKS_PROGRAMS: &str = "marking and trimming";

/// What this machine lacks, and what that means.
pub type Missing = Vec<String>;

/// What a port has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCount {
    /// Bits per second that it sends at now; 0: it is down.
    pub rate: u64,
    /// Bytes that left, with Ethernet headers.
    pub bytes: u64,
    /// Packets that left.
    pub packets: u64,
    /// Packets that came to the port and did not leave it: they found no room, or the port was down. `None`: not known, since
    /// what waits in a port that is cut goes uncounted where it has no program.
    pub drops: Option<u64>,
    /// Packets for which the node of this port had no route.
    pub unrouted: u64,
    /// Whether it has ever been cut.
    pub was_cut: bool,
    /// Packets marked; `None`: it was to mark or trim, and this machine cannot.
    pub marks: Option<u64>,
    /// Packets cut to their headers; `None` as with `marks`.
    pub trims: Option<u64>,
    /// Packets that left and that the link lost, changed, or delivered twice.
    pub lost: u64,
    /// See `lost`.
    pub corrupted: u64,
    /// See `lost`.
    pub duplicated: u64,
    /// Longest queue that an arriving packet found, bytes; `None` where the port neither marks nor trims.
    pub deepest: Option<u64>,
    /// Bytes that wait now.
    pub backlog: u64,
}

/// A network of namespaces that stands; dropped, it is taken down.
#[derive(Debug)]
pub struct Fabric {
    plan: Plan,
    /// Before every namespace's name: several may stand in one process.
    prefix: String,
    missing: Missing,
    /// Whether ports were to mark or trim and cannot.
    lacks_programs: bool,
    /// Whether it goes with this value.
    owned: bool,
    /// What delays packets in this process; `None`: processes of their own do.
    pub(crate) delays: Option<Delays>,
}

/// Queues of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Queues {
    drops: u64,
    waiting_bytes: u64,
    waiting_packets: u64,
}

/// A port as its node has it.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    is_up: bool,
    note: Note,
}

/// What a port's alias says: the kernel keeps neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The rate that it was given last, where it is not its own. What a queue carries can be read back from some kinds alone.
    pub(crate) rate: Option<u64>,
    /// Whether it has ever been cut.
    pub(crate) was_cut: bool,
}

impl Note {
    /// The word for a port that has been cut.
    pub(crate) const CUT: &str = "cut";

    fn parse(alias: &str) -> Self {
        let words = || alias.split_whitespace();
        Note { rate: words().find_map(|word| word.parse().ok()), was_cut: words().any(|word| word == Note::CUT) }
    }

    fn write(self) -> String {
        let cut = self.was_cut.then(|| Note::CUT.to_string());
        self.rate.map(|rate| rate.to_string()).into_iter().chain(cut).collect::<Vec<_>>().join(" ")
    }
}

/// Networks that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A rate as tc reads it.
fn bits(rate: u64) -> String {
    format!("{rate}bit")
}

/// Bytes that a port may send at once after a rest: a millisecond, so that a late timer costs nothing.
pub(crate) fn burst(rate: u64, mtu: u32) -> u64 {
    LEAST_BURST.max(rate / 8000).max(u64::from(mtu) + 2 * ETHERNET)
}

impl Fabric {
    /// Builds a network. The caller lives in mount and network namespaces of its own ([`crate::space`]).
    ///
    /// # Errors
    /// Where a program is missing or fails. Nothing is left behind.
    pub fn build(plan: Plan) -> Result<Self, TestbedError> {
        let prefix = format!("f{}-", MADE.fetch_add(1, Ordering::Relaxed));
        // Dropped on an early return, it takes down what there is.
        let mut fabric = Fabric {
            plan,
            prefix,
            missing: Missing::new(),
            lacks_programs: false,
            owned: true,
            delays: Some(Delays::default()),
        };
        fabric.join()?;
        // First, since it decides whether ports need queues for trimmed packets.
        fabric.equip()?;
        for node in 0..fabric.plan.nodes.len() {
            fabric.configure(node)?;
        }
        Ok(fabric)
    }

    /// A network that another process has built and keeps, seen from its namespaces.
    pub(crate) fn of_another(plan: Plan, prefix: String, missing: Missing) -> Self {
        let lacks_programs = missing.iter().any(|missing| missing.starts_with(LACKS_PROGRAMS));
        Fabric { plan, prefix, missing, lacks_programs, owned: false, delays: None }
    }

    /// What begins the names of its namespaces.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What it was built by, but for what this machine lacks.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What this machine lacks.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The name of a node's namespace.
    pub fn namespace(&self, node: usize) -> String {
        format!("{}{}", self.prefix, self.plan.nodes[node].name)
    }

    pub(crate) fn name(&self, node: usize) -> &str {
        &self.plan.nodes[node].name
    }

    /// Namespaces, and the cables between them.
    fn join(&self) -> Result<(), TestbedError> {
        let mut batch = String::new();
        for node in 0..self.plan.nodes.len() {
            let _ = writeln!(batch, "netns add {}", self.namespace(node));
        }
        for Cable { lower: End { node: lower, .. }, upper: End { node: upper, .. } } in &self.plan.cables {
            let (lower, upper) = (*lower, *upper);
            let _ = writeln!(
                batch,
                "link add {} netns {} mtu {mtu} type veth peer name {} netns {} mtu {mtu}",
                self.name(upper),
                self.namespace(lower),
                self.name(lower),
                self.namespace(upper),
                mtu = self.plan.mtu
            );
        }
        run("ip", &["-batch", "-"], &batch).map(drop)
    }

    /// Addresses, routes, rates and kernel settings of a node.
    fn configure(&mut self, node: usize) -> Result<(), TestbedError> {
        let role = self.plan.nodes[node].role;
        let mut network = String::from("link set lo up\n");
        let mut shaping = String::new();
        for (end, other) in self.plan.ports().filter(|(end, _)| end.node == node) {
            let port = self.name(other);
            let _ = writeln!(network, "addr add {}/30 dev {port}\nlink set {port} up", end.address);
            if role == Role::Host {
                // Segmentation is done before the fabric, or a run of packets would cross it as one.
                let _ = writeln!(network, "link set {port} gso_max_segs 1");
            }
            shaping += &self.shaping(port, end.rate, role == Role::Host);
        }
        let all: Vec<usize> = (0..self.plan.nodes.len()).collect();
        network += &self.routes(node, &all);
        let namespace = self.namespace(node);
        run("ip", &["-n", &namespace, "-batch", "-"], &network)?;
        run("tc", &["-n", &namespace, "-batch", "-"], &shaping)?;
        let seed = self.plan.seed.wrapping_mul(0x9e37_79b9).wrapping_add(node as u64) as u32 | 1;
        let unset = self.within(node, move || {
            let settings = Path::new("/proc/sys/net/ipv4");
            let put = |file: &str, value: &str| {
                set(&settings.join(file), value)
                    .map_err(|error| TestbedError::system(format!("net.ipv4.{file}"), error))
            };
            put("ip_forward", "1")?;
            put("conf/all/rp_filter", "0")?;
            put("conf/default/rp_filter", "0")?;
            // Every packet that ends on its way is told of: paths are found that way.
            put("icmp_ratelimit", "0")?;
            put("icmp_ratemask", "0")?;
            set(Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6"), "1")
                .map_err(|error| TestbedError::system("net.ipv6.conf.all.disable_ipv6", error))?;
            if role == Role::Host {
                return Ok(false);
            }
            // Who says that a packet has ended says where it came in, and not where the answer happens to leave.
            put("icmp_errors_use_inbound_ifaddr", "1")?;
            // The packet's own five-tuple; the usual policies trust a hash of the sending socket, drawn at each connect.
            put("fib_multipath_hash_policy", "3")?;
            put("fib_multipath_hash_fields", FIVE_TUPLE)?;
            put("fib_multipath_hash_seed", &seed.to_string())?;
            Ok(!settings.join("fib_multipath_hash_seed").exists())
        })??;
        let message = "a seed for the switches' hashes (net.ipv4.fib_multipath_hash_seed, Linux 6.11): \
                       paths differ from one start to the next";
        if unset && !self.missing.iter().any(|missing| missing == message) {
            self.missing.push(message.into());
        }
        Ok(())
    }

    /// What limits a port to its rate. Trimmed headers need a class of their own that goes first.
    fn shaping(&self, port: &str, rate: u64, host: bool) -> String {
        let (burst, limit, text) = (burst(rate, self.plan.mtu), self.plan.queue.limit, bits(rate));
        if host || !self.plan.queue.trimming {
            // A host's own queue drops nothing: what it does not send yet waits in its socket.
            let limit = if host { limit.max(1_000_000) } else { limit };
            return format!("qdisc replace dev {port} root handle 1: tbf rate {text} burst {burst} limit {limit}\n");
        }
        // What the virtual queue lets pass must find room.
        let limit = limit + burst;
        let class = |id: &str, priority: u8| {
            format!(
                "class add dev {port} parent 1:1 classid 1:{id} htb rate 1mbit ceil {text} prio {priority} burst {burst} cburst {burst}\n"
            )
        };
        format!(
            "qdisc replace dev {port} root handle 1: htb default 20\n\
             class add dev {port} parent 1: classid 1:1 htb rate {text} ceil {text} burst {burst} cburst {burst}\n\
             {}{}qdisc add dev {port} parent 1:10 handle 10: bfifo limit {CONTROL_LIMIT}\n\
             qdisc add dev {port} parent 1:20 handle 20: bfifo limit {limit}\n",
            class("10", 0),
            class("20", 1),
        )
    }

    /// The routes of a node over its ports to `up`: a host's lead to its leaf, a leaf's to other leaves over all spines, a
    /// spine's to each leaf.
    pub(crate) fn routes(&self, node: usize, up: &[usize]) -> String {
        let plan = &self.plan;
        let mut routes = String::new();
        let ways = |role: Role| plan.all(role).map(|(other, _)| other).filter(|other| up.contains(other));
        match plan.nodes[node].role {
            Role::Host => {
                let leaf = ways(Role::Leaf).find_map(|leaf| plan.cable(node, leaf));
                if let Some(cable) = leaf {
                    let _ = writeln!(routes, "route replace default via {}", cable.upper.address);
                }
            }
            Role::Leaf => {
                let via = |spine| {
                    let address = plan.cable(node, spine).map(|cable| cable.upper.address)?;
                    Some(format!(" nexthop via {address} dev {}", self.name(spine)))
                };
                let hops: String = ways(Role::Spine).filter_map(via).collect();
                let others =
                    plan.all(Role::Leaf).enumerate().filter(|(_, (leaf, _))| *leaf != node && !hops.is_empty());
                others.for_each(|(number, _)| routes += &format!("route replace 10.{}.0.0/16{hops}\n", number + 1));
            }
            Role::Spine => {
                for (number, (leaf, _)) in plan.all(Role::Leaf).enumerate().filter(|(_, (leaf, _))| up.contains(leaf)) {
                    if let Some(cable) = plan.cable(leaf, node) {
                        let (via, dev) = (cable.lower.address, self.name(leaf));
                        let _ = writeln!(routes, "route replace 10.{}.0.0/16 via {via} dev {dev}", number + 1);
                    }
                }
            }
        }
        routes
    }

    /// The program that marks and trims, on every port of a switch, where the plan asks for it.
    fn equip(&mut self) -> Result<(), TestbedError> {
        let queue = self.plan.queue;
        if queue.marking.is_none() && !queue.trimming {
            return Ok(());
        }
        let ports = self.switch_ports();
        for (number, (node, other, rate)) in ports.iter().enumerate() {
            let equipped = self.equip_port(*node, *other, *rate);
            // A program whose counts cannot be read is none, so that no figure is unknown; who reads one reads all.
            let Err(error) =
                equipped.and_then(|()| if number == 0 { self.counted(*node, *other).map(drop) } else { Ok(()) })
            else {
                continue;
            };
            // A user who may not load programs has a testbed without.
            let reason = match &error {
                TestbedError::Program { said, .. } if said.contains("not permitted") => {
                    "only root may load BPF programs".to_string()
                }
                _ => error.to_string().lines().next().unwrap_or_default().to_string(),
            };
            for (node, other, _) in &ports[..=number] {
                // The last one may not have got so far.
                let _ = port_program::detach(&self.namespace(*node), self.name(*other));
            }
            self.missing.push(format!("{LACKS_PROGRAMS}: {reason}, so that ports do neither; run it as root"));
            self.lacks_programs = true;
            self.plan.queue = crate::Queue { marking: None, trimming: false, ..queue };
            return Ok(());
        }
        Ok(())
    }

    fn switch_ports(&self) -> Vec<(usize, usize, u64)> {
        let of_switch = |(end, _): &(&End, usize)| self.plan.nodes[end.node].role != Role::Host;
        self.plan.ports().filter(of_switch).map(|(end, other)| (end.node, other, end.rate)).collect()
    }

    fn equip_port(&self, node: usize, other: usize, rate: u64) -> Result<(), TestbedError> {
        self.replace_program(node, other, rate, port_program::OBJECT)
    }

    /// Puts another build of the port program at a port: for tests.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    #[doc(hidden)]
    pub fn replace_program(&self, node: usize, other: usize, rate: u64, object: &[u8]) -> Result<(), TestbedError> {
        let (namespace, plan) = (self.namespace(node), &self.plan);
        port_program::attach(object, &namespace, self.name(other), rate, plan.mtu, &plan.queue)
    }

    /// Runs `work` in a node's namespace, on a thread of its own. What it opens stays there.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    pub fn within<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        let namespace = self.namespace(node);
        std::thread::scope(|scope| {
            let entered = scope.spawn(move || enter(&namespace).map(|()| work())).join();
            entered.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// The counters of every port, in the order of the scenario's directed links.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn counters(&self) -> Result<Vec<PortCount>, TestbedError> {
        let nodes: Vec<NodeCount> =
            (0..self.plan.nodes.len()).map(|node| self.node_count(node)).collect::<Result<_, _>>()?;
        self.plan.ports().map(|(end, other)| self.port_count(end, other, &nodes)).collect()
    }

    /// What reads the bytes and packets of all ports at once.
    ///
    /// # Errors
    /// Where a namespace cannot be entered.
    pub(crate) fn meter(&self) -> Result<Meter, TestbedError> {
        let table = "/proc/thread-self/net/dev";
        let failed = |error| TestbedError::system(format!("opening {table}"), error);
        // A table that was opened in a namespace stays that namespace's.
        let open = |node| self.within(node, || File::open(table))?.map_err(failed);
        let tables = (0..self.plan.nodes.len()).map(open).collect::<Result<_, _>>()?;
        let port = |(end, other): (&End, usize)| (end.node, self.name(other).to_string());
        Ok(Meter { tables, ports: self.plan.ports().map(port).collect() })
    }

    fn node_count(&self, node: usize) -> Result<NodeCount, TestbedError> {
        let (queues, with_programs) = self.qdiscs(node)?;
        let read = |file: &str| {
            let path = format!("/proc/thread-self/net/{file}");
            std::fs::read_to_string(&path).map_err(|error| TestbedError::system(format!("reading {path}"), error))
        };
        let (devices, statistics) = self.within(node, || Ok::<_, TestbedError>((read("dev")?, read("netstat")?)))??;
        let unrouted = statistic(&statistics, "IpExt", "InNoRoutes").unwrap_or(0);
        Ok(NodeCount { queues, with_programs, links: self.links(node)?, devices, unrouted })
    }

    fn port_count(&self, end: &End, other: usize, nodes: &[NodeCount]) -> Result<PortCount, TestbedError> {
        let (own, port) = (&nodes[end.node], self.name(other));
        let queues = own.queues.get(port).copied().unwrap_or_default();
        let link = own.links.get(port).copied().unwrap_or_default();
        let (bytes, packets) = sent(&own.devices, port).unwrap_or_default();
        let counted = if self.plan.nodes[end.node].role == Role::Host { None } else { self.counted(end.node, other)? };
        // The kernel empties the queue of a port that goes down without a count; its program has seen what came.
        let of_cut = counted.map(|of| of.offered.saturating_sub(packets + queues.waiting_packets));
        let harmed = match nodes[other].with_programs.contains(self.name(end.node)) {
            true => self.harmed(end.node, other)?,
            false => Harmed::default(),
        };
        let lacks = self.lacks_programs && self.plan.nodes[end.node].role != Role::Host;
        let count = |of: fn(Counted) -> u64| if lacks { None } else { Some(counted.map_or(0, of)) };
        Ok(PortCount {
            rate: if link.is_up { link.note.rate.unwrap_or(end.rate) } else { 0 },
            bytes,
            packets,
            drops: if link.note.was_cut { of_cut } else { Some(queues.drops) },
            unrouted: own.unrouted,
            was_cut: link.note.was_cut,
            marks: count(|of| of.marked),
            trims: count(|of| of.trimmed),
            lost: harmed.lost,
            corrupted: harmed.damaged,
            duplicated: harmed.repeated,
            deepest: counted.map(|of| of.deepest),
            backlog: queues.waiting_bytes,
        })
    }

    /// What the program at a switch's port has counted; `None` where the ports have no program, and nothing is marked or trimmed.
    fn counted(&self, node: usize, other: usize) -> Result<Option<Counted>, TestbedError> {
        if !self.has_port_programs() {
            return Ok(None);
        }
        port_program::counted(&self.namespace(node), self.name(other)).map(Some)
    }

    /// Whether the ports of switches have programs.
    fn has_port_programs(&self) -> bool {
        self.plan.queue.marking.is_some() || self.plan.queue.trimming
    }

    /// The ports of a node by name.
    fn links(&self, node: usize) -> Result<BTreeMap<String, Link>, TestbedError> {
        let text = run("ip", &["-n", &self.namespace(node), "-j", "link", "show"], "")?;
        let links: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        let link = |link: &serde_json::Value| {
            let is_up = link["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP"));
            let note = Note::parse(link["ifalias"].as_str().unwrap_or_default());
            Some((link["ifname"].as_str()?.to_string(), Link { is_up, note }))
        };
        Ok(links.iter().filter_map(link).collect())
    }

    /// What is noted at the port of `node` that leads to `other`.
    fn note(&self, node: usize, other: usize) -> Result<Note, TestbedError> {
        Ok(self.links(node)?.get(self.name(other)).copied().unwrap_or_default().note)
    }

    /// Whether the port of `node` that leads to `other` has a place for programs.
    pub(crate) fn has_programs(&self, node: usize, other: usize) -> Result<bool, TestbedError> {
        Ok(self.qdiscs(node)?.1.contains(self.name(other)))
    }

    /// All queues of each port of a node together, and the ports that have a place for programs.
    fn qdiscs(&self, node: usize) -> Result<(BTreeMap<String, Queues>, BTreeSet<String>), TestbedError> {
        let namespace = self.namespace(node);
        let text = run("tc", &["-n", &namespace, "-s", "-j", "qdisc", "show"], "")?;
        let qdiscs: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        let with_programs = qdiscs.iter().filter(|qdisc| qdisc["kind"].as_str() == Some("clsact"));
        let with_programs = with_programs.filter_map(|qdisc| Some(qdisc["dev"].as_str()?.to_string())).collect();
        let mut ports = BTreeMap::new();
        for qdisc in &qdiscs {
            let Some(port) = qdisc["dev"].as_str().filter(|_| qdisc["root"].as_bool() == Some(true)) else { continue };
            let [drops, waiting_bytes, waiting_packets] =
                ["drops", "backlog", "qlen"].map(|key| qdisc[key].as_u64().unwrap_or(0));
            ports.insert(port.to_string(), Queues { drops, waiting_bytes, waiting_packets });
        }
        Ok((ports, with_programs))
    }

    /// Cuts a cable. The switches at its ends take it out of their routes at once; others do not notice, and what they send
    /// that way is lost.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn cut(&self, cable: usize) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.plan.cables[cable];
        // Both ends are taken down: of a lost carrier alone the kernel hears up to a second later.
        for (end, other) in [(lower, upper), (upper, lower)] {
            let note = Note { was_cut: true, ..self.note(end.node, other.node)? };
            let change = self.down_line(other.node, note);
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
    }

    /// What takes down the port that leads to a node, for `ip`.
    pub(crate) fn down_line(&self, other: usize, note: Note) -> String {
        format!("link set {} down alias \"{}\"\n", self.name(other), note.write())
    }

    /// Mends a cable and gives it its rate back.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn mend(&self, cable: usize) -> Result<(), TestbedError> {
        self.restore(cable)?;
        self.slow(cable, None)
    }

    /// Mends a cable, which keeps the rate that it was given last.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn restore(&self, cable: usize) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            let change = format!("link set {} up\n", self.name(other.node));
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        // With the ports, routes had gone.
        for node in [lower.node, upper.node] {
            run("ip", &["-n", &self.namespace(node), "-batch", "-"], &self.routes(node, &self.ports_up(node)?))?;
        }
        self.heal(cable)
    }

    /// The ports of a node that are up, by the nodes they lead to.
    fn ports_up(&self, node: usize) -> Result<Vec<usize>, TestbedError> {
        let links = self.links(node)?;
        let up = links.iter().filter(|(_, link)| link.is_up);
        Ok(up.filter_map(|(port, _)| self.plan.node(port).ok()).collect())
    }

    /// Gives both directions of a cable another rate; `None`: its own.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn slow(&self, cable: usize, rate: Option<u64>) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            self.set_rate(end.node, other.node, rate.unwrap_or(end.rate))?;
            let note = Note { rate, ..self.note(end.node, other.node)? };
            let change = format!("link set {} alias \"{}\"\n", self.name(other.node), note.write());
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
    }

    /// Gives the port of `node` that leads to `other` another rate.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn set_rate(&self, node: usize, other: usize, rate: u64) -> Result<(), TestbedError> {
        if let Some(speed) = self.speed(node, other)? {
            speed.set(rate)?;
        }
        run("tc", &["-n", &self.namespace(node), "-batch", "-"], &self.rate_lines(node, other, rate)).map(drop)
    }

    /// The rate of the virtual queue of a port; `None`: it has none.
    pub(crate) fn speed(&self, node: usize, other: usize) -> Result<Option<Speed>, TestbedError> {
        let has = self.plan.nodes[node].role != Role::Host && self.has_port_programs();
        has.then(|| Speed::open(&self.namespace(node), self.name(other), self.plan.mtu)).transpose()
    }

    /// What gives a port's queue another rate, for `tc`.
    pub(crate) fn rate_lines(&self, node: usize, other: usize, rate: u64) -> String {
        let port = self.name(other);
        let host = self.plan.nodes[node].role == Role::Host;
        let (burst, text) = (burst(rate, self.plan.mtu), bits(rate));
        if host || !self.plan.queue.trimming {
            let limit = if host { self.plan.queue.limit.max(1_000_000) } else { self.plan.queue.limit };
            return format!("qdisc change dev {port} root tbf rate {text} burst {burst} limit {limit}\n");
        }
        let class = |parent: &str, id: &str, least: &str| {
            format!(
                "class change dev {port} parent {parent} classid 1:{id} htb rate {least} ceil {text} burst {burst} cburst {burst}"
            )
        };
        format!(
            "{}\n{} prio 0\n{} prio 1\n",
            class("1:", "1", &text),
            class("1:1", "10", "1mbit"),
            class("1:1", "20", "1mbit")
        )
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        self.end_delays();
        let mut batch = String::new();
        for node in 0..self.plan.nodes.len() {
            if Path::new(NAMESPACES).join(self.namespace(node)).exists() {
                let _ = writeln!(batch, "netns del {}", self.namespace(node));
            }
        }
        // What cannot be deleted goes with the process.
        let _ = run("ip", &["-force", "-batch", "-"], &batch);
    }
}

/// Moves the calling thread into a namespace.
///
/// # Errors
/// Where there is none of that name.
pub(crate) fn enter(namespace: &str) -> Result<(), TestbedError> {
    let path = Path::new(NAMESPACES).join(namespace);
    let failed = |source| TestbedError::system(format!("entering the namespace {}", path.display()), source);
    let file = File::open(&path).map_err(failed)?;
    setns(&file, CloneFlags::CLONE_NEWNET).map_err(|error| failed(error.into()))
}

/// Reads what all ports have sent within a fraction of a millisecond, with no program to start.
#[derive(Debug)]
pub(crate) struct Meter {
    tables: Vec<File>,
    ports: Vec<(usize, String)>,
}

impl Meter {
    /// Bytes and packets that left by each port, in the order of the scenario's directed links.
    pub(crate) fn read(&self) -> Result<Vec<(u64, u64)>, TestbedError> {
        let read = |mut table: &File| {
            let mut text = String::new();
            table.rewind().and_then(|()| table.read_to_string(&mut text)).map(|_| text)
        };
        let texts: Result<Vec<String>, _> = self.tables.iter().map(read).collect();
        let texts = texts.map_err(|error| TestbedError::system("reading the table of devices", error))?;
        Ok(self.ports.iter().map(|(node, port)| sent(&texts[*node], port).unwrap_or_default()).collect())
    }
}

/// What a node has counted.
struct NodeCount {
    queues: BTreeMap<String, Queues>,
    with_programs: BTreeSet<String>,
    links: BTreeMap<String, Link>,
    /// The kernel's table of devices.
    devices: String,
    unrouted: u64,
}

/// A figure of /proc/net/netstat: a line of names and one of numbers for each protocol.
fn statistic(table: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'));
    let (names, numbers) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    names.zip(numbers).find(|(of, _)| *of == name)?.1.parse().ok()
}

/// Bytes and packets that left by a port, by the kernel's table of devices.
pub(crate) fn sent(table: &str, port: &str) -> Option<(u64, u64)> {
    let line = table.lines().find_map(|line| line.trim().strip_prefix(port)?.strip_prefix(':'))?;
    let mut columns = line.split_whitespace().skip(8);
    Some((columns.next()?.parse().ok()?, columns.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_devices_is_read_by_column() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n\
                     \x20   lo:       0       0    0    0    0     0          0         0        0       0\n\
                     spine1:     1 2 0 0 0 0 0 0 4194 17 0 0 0 0 0 0\nspine10: 1 2 0 0 0 0 0 0 5 6 0 0 0 0 0 0\n";
        assert_eq!(sent(table, "spine1"), Some((4194, 17)));
        assert_eq!(sent(table, "spine10"), Some((5, 6)));
        assert_eq!(sent(table, "spine2"), None);
    }

    #[test]
    fn statistics_are_read_by_name() {
        let table = "TcpExt: A InNoRoutes\nTcpExt: 1 2\nIpExt: InNoRoutes InOctets\nIpExt: 17 4194\n";
        assert_eq!(statistic(table, "IpExt", "InNoRoutes"), Some(17));
        assert_eq!((statistic(table, "IpExt", "OutOctets"), statistic(table, "Ip", "InNoRoutes")), (None, None));
    }

    #[test]
    fn an_alias_keeps_rate_and_cut() {
        for note in [(None, false), (None, true), (Some(20_000_000), false), (Some(20_000_000), true)] {
            let note = Note { rate: note.0, was_cut: note.1 };
            assert_eq!(Note::parse(&note.write()), note);
        }
    }

    #[test]
    fn a_burst_is_a_millisecond_or_a_few_packets() {
        assert_eq!(burst(200_000_000, 4180), 25_000);
        assert_eq!(burst(20_000_000, 4180), 15_000);
    }
}
