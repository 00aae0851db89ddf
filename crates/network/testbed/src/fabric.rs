//! The network itself: namespaces, cables, addresses, routes, shaped ports.

use crate::{
    Plan, Role, TestbedError,
    harm::Delays,
    link_program::Harmed,
    plan::{Cable, End},
    port_program::{self, Counted},
    programs::{run, set},
};
use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs::File,
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
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
    /// Packets that found no room.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets cut to their headers.
    pub trims: u64,
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

/// Of a port that was given no other rate.
const OWN_RATE: u64 = u64::MAX;

/// A network of namespaces that stands; dropped, it is taken down.
#[derive(Debug)]
pub struct Fabric {
    plan: Plan,
    /// Before every namespace's name: several may stand in one process.
    prefix: String,
    missing: Missing,
    /// Whether it goes with this value.
    owned: bool,
    /// What delays packets in this process; `None`: processes of their own do.
    pub(crate) delays: Option<Delays>,
    /// What programs counted that others took the place of, by node and neighbour.
    replaced: Mutex<BTreeMap<(usize, usize), Counted>>,
}

/// Ports by name, and what they have counted.
type PortCounts = Vec<(String, PortCount)>;

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
            owned: true,
            delays: Some(Delays::default()),
            replaced: Mutex::default(),
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
    pub(crate) fn of_another(plan: Plan, prefix: String) -> Self {
        Fabric { plan, prefix, missing: Missing::new(), owned: false, delays: None, replaced: Mutex::default() }
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
    fn routes(&self, node: usize, up: &[usize]) -> String {
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
            self.missing.push(format!("marking and trimming: {reason}"));
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
        self.change_port(port_program::OBJECT, node, other, rate, "")
    }

    fn change_port(
        &self,
        object: &[u8],
        node: usize,
        other: usize,
        rate: u64,
        change: &str,
    ) -> Result<(), TestbedError> {
        let (namespace, port, plan) = (self.namespace(node), self.name(other), &self.plan);
        // A program that takes the place of another begins to count at zero.
        let before = port_program::counted(&namespace, port).ok();
        port_program::attach(object, &namespace, port, rate, plan.mtu, &plan.queue, change)?;
        if let Some(before) = before {
            let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
            let sum = replaced.get(&(node, other)).map_or(before, |sum| sum.and(&before));
            replaced.insert((node, other), sum);
        }
        Ok(())
    }

    /// Puts another build of the port program at a port: for tests.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    #[doc(hidden)]
    pub fn replace_program(&self, node: usize, other: usize, rate: u64, object: &[u8]) -> Result<(), TestbedError> {
        self.change_port(object, node, other, rate, "")
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
        let mut per_node: Vec<Vec<(String, PortCount)>> = Vec::with_capacity(self.plan.nodes.len());
        let mut with_programs: Vec<BTreeSet<String>> = Vec::with_capacity(self.plan.nodes.len());
        for node in 0..self.plan.nodes.len() {
            let (mut ports, places) = self.qdiscs(node)?;
            with_programs.push(places);
            let rates = self.rates(node)?;
            let table = self.within(node, || std::fs::read_to_string("/proc/thread-self/net/dev"))?;
            let table = table.map_err(|error| TestbedError::system("reading /proc/thread-self/net/dev", error))?;
            for (port, count) in &mut ports {
                (count.bytes, count.packets) = sent(&table, port).unwrap_or_default();
                count.rate = rates.iter().find(|(of, _)| of == port).map_or(0, |(_, rate)| rate.unwrap_or(OWN_RATE));
            }
            per_node.push(ports);
        }
        let mut counts = Vec::new();
        for (end, other) in self.plan.ports() {
            let mut count = per_node[end.node]
                .iter()
                .find(|(port, _)| port == self.name(other))
                .map_or_else(PortCount::default, |(_, count)| *count);
            if count.rate == OWN_RATE {
                count.rate = end.rate;
            }
            if self.plan.nodes[end.node].role != Role::Host
                && let Some(Counted { marked, trimmed, deepest }) = self.counted(end.node, other)?
            {
                (count.marks, count.trims, count.deepest) = (marked, trimmed, Some(deepest));
            }
            if with_programs[other].contains(self.name(end.node)) {
                let Harmed { lost, damaged, repeated } = self.harmed(end.node, other)?;
                (count.lost, count.corrupted, count.duplicated) = (lost, damaged, repeated);
            }
            counts.push(count);
        }
        Ok(counts)
    }

    /// What the program at a switch's port has counted; `None` where the ports have no program, and nothing is marked or trimmed.
    fn counted(&self, node: usize, other: usize) -> Result<Option<Counted>, TestbedError> {
        let queue = &self.plan.queue;
        if queue.marking.is_none() && !queue.trimming {
            return Ok(None);
        }
        let counted = port_program::counted(&self.namespace(node), self.name(other))?;
        let replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(replaced.get(&(node, other)).map_or(counted, |before| before.and(&counted))))
    }

    /// The ports of a node that are up, and the rate that each was given last, where it is not its own.
    fn rates(&self, node: usize) -> Result<Vec<(String, Option<u64>)>, TestbedError> {
        let text = run("ip", &["-n", &self.namespace(node), "-j", "link", "show", "up"], "")?;
        let links: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        let rate = |link: &serde_json::Value| link["ifalias"].as_str().and_then(|alias| alias.parse().ok());
        Ok(links.iter().filter_map(|link| Some((link["ifname"].as_str()?.to_string(), rate(link)))).collect())
    }

    /// Whether the port of `node` that leads to `other` has a place for programs.
    pub(crate) fn has_programs(&self, node: usize, other: usize) -> Result<bool, TestbedError> {
        Ok(self.qdiscs(node)?.1.contains(self.name(other)))
    }

    /// Drops and backlog of a node's ports, of all its queues together, and the ports that have a place for programs.
    fn qdiscs(&self, node: usize) -> Result<(PortCounts, BTreeSet<String>), TestbedError> {
        let namespace = self.namespace(node);
        let text = run("tc", &["-n", &namespace, "-s", "-j", "qdisc", "show"], "")?;
        let qdiscs: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        let mut ports = PortCounts::new();
        let with_programs = qdiscs.iter().filter(|qdisc| qdisc["kind"].as_str() == Some("clsact"));
        let with_programs = with_programs.filter_map(|qdisc| Some(qdisc["dev"].as_str()?.to_string())).collect();
        for qdisc in &qdiscs {
            let Some(port) = qdisc["dev"].as_str().filter(|_| qdisc["root"].as_bool() == Some(true)) else { continue };
            let number = |key: &str| qdisc[key].as_u64().unwrap_or(0);
            let count = PortCount { drops: number("drops"), backlog: number("backlog"), ..PortCount::default() };
            ports.push((port.to_string(), count));
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
            let change = format!("link set {} down\n", self.name(other.node));
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
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
        let text = run("ip", &["-n", &self.namespace(node), "-j", "link", "show", "up"], "")?;
        let links: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
        Ok(links.iter().filter_map(|link| self.plan.node(link["ifname"].as_str()?).ok()).collect())
    }

    /// Gives both directions of a cable another rate; `None`: its own.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn slow(&self, cable: usize, rate: Option<u64>) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            self.set_rate(end.node, other.node, rate.unwrap_or(end.rate))?;
            // What a port's queue carries can be read back from some kinds of queues alone, so it is noted beside it.
            let alias = rate.map_or_else(String::new, |rate| rate.to_string());
            let change = format!("link set {} alias \"{alias}\"\n", self.name(other.node));
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
    }

    /// Gives the port of `node` that leads to `other` another rate.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn set_rate(&self, node: usize, other: usize, rate: u64) -> Result<(), TestbedError> {
        let (namespace, port) = (self.namespace(node), self.name(other));
        let host = self.plan.nodes[node].role == Role::Host;
        let (burst, text) = (burst(rate, self.plan.mtu), bits(rate));
        let change = if host || !self.plan.queue.trimming {
            let limit = if host { self.plan.queue.limit.max(1_000_000) } else { self.plan.queue.limit };
            format!("qdisc change dev {port} root tbf rate {text} burst {burst} limit {limit}\n")
        } else {
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
        };
        if !host && (self.plan.queue.marking.is_some() || self.plan.queue.trimming) {
            // The virtual queue drains at the port's rate.
            return self.change_port(port_program::OBJECT, node, other, rate, &change);
        }
        run("tc", &["-n", &namespace, "-batch", "-"], &change).map(drop)
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

/// Bytes and packets that left by a port, by the kernel's table of devices.
fn sent(table: &str, port: &str) -> Option<(u64, u64)> {
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
    fn a_burst_is_a_millisecond_or_a_few_packets() {
        assert_eq!(burst(200_000_000, 4180), 25_000);
        assert_eq!(burst(20_000_000, 4180), 15_000);
    }
}
