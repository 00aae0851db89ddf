//! The network itself: namespaces, cables, addresses, routes, shaped ports.

use crate::{
    Harm, PortCount, Role, TestbedError, TestbedPlan,
    counters::{self, Note},
    harm::Harms,
    net::Net,
    plan::{Cable, End, burst},
    port_program::{self, Speed},
    programs::{run, set},
};
use std::{
    fmt::Write,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
};

/// Hash fields: source and destination address, protocol, source and destination port, of the outer header.
const FIVE_TUPLE: &str = "55";
/// Bytes of control packets and trimmed headers that a port queues in addition to data.
const CONTROL_LIMIT: u64 = 100_000;

/// Prefix of the message that gives the reason why ports neither mark nor trim.
const LACKS_PROGRAMS: &str = "marking and trimming";

/// Features that this machine lacks, each with the consequence.
pub type Missing = Vec<String>;

/// Network of namespaces. Dropping it takes it down.
#[derive(Debug)]
pub struct Fabric {
    pub(crate) net: Net,
    missing: Missing,
    lacks_programs: bool,
    /// `true` if the network ends with this value.
    owned: bool,
    pub(crate) harms: Harms,
}

static MADE: AtomicU32 = AtomicU32::new(0);

fn bits(rate: u64) -> String {
    format!("{rate}bit")
}

impl Fabric {
    /// Builds a network. The caller runs in mount and network namespaces of its own ([`crate::space`]).
    /// Fails if a program is missing or fails. Nothing is left behind.
    pub fn build(plan: TestbedPlan) -> Result<Self, TestbedError> {
        let prefix = format!("f{}-", MADE.fetch_add(1, Ordering::Relaxed));
        // On an early return, the drop takes down the part that exists.
        let mut fabric = Fabric {
            net: Net { plan, prefix },
            missing: Missing::new(),
            lacks_programs: false,
            owned: true,
            harms: Harms::of_this_process(),
        };
        fabric.join()?;
        // First, because it decides if ports need queues for trimmed packets.
        fabric.equip()?;
        for node in 0..fabric.net.plan.nodes.len() {
            fabric.configure(node)?;
        }
        Ok(fabric)
    }

    /// Returns a handle to a network that another process keeps, from inside its namespaces.
    pub(crate) fn of_another(plan: TestbedPlan, prefix: String, missing: Missing) -> Self {
        let lacks_programs = missing.iter().any(|missing| missing.starts_with(LACKS_PROGRAMS));
        Fabric { net: Net { plan, prefix }, missing, lacks_programs, owned: false, harms: Harms::default() }
    }

    /// Returns the plan of the network, without features that this machine lacks.
    pub fn plan(&self) -> &TestbedPlan {
        &self.net.plan
    }

    /// Returns the features that this machine lacks.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    pub fn namespace(&self, node: usize) -> String {
        self.net.namespace(node)
    }

    pub(crate) fn name(&self, node: usize) -> &str {
        self.net.name(node)
    }

    fn join(&self) -> Result<(), TestbedError> {
        let mut batch = String::new();
        for node in 0..self.net.plan.nodes.len() {
            let _ = writeln!(batch, "netns add {}", self.namespace(node));
        }
        for Cable { lower: End { node: lower, .. }, upper: End { node: upper, .. } } in &self.net.plan.cables {
            let (lower, upper) = (*lower, *upper);
            let _ = writeln!(
                batch,
                "link add {} netns {} mtu {mtu} type veth peer name {} netns {} mtu {mtu}",
                self.name(upper),
                self.namespace(lower),
                self.name(lower),
                self.namespace(upper),
                mtu = self.net.plan.mtu
            );
        }
        run("ip", &["-batch", "-"], &batch).map(drop)
    }

    fn configure(&mut self, node: usize) -> Result<(), TestbedError> {
        let role = self.net.plan.nodes[node].role;
        let mut network = String::from("link set lo up\n");
        let mut shaping = String::new();
        for (end, other) in self.net.plan.ports().filter(|(end, _)| end.node == node) {
            let port = self.name(other);
            let _ = writeln!(network, "addr add {}/30 dev {port}\nlink set {port} up", end.address);
            if role == Role::Host {
                // Segmentation precedes the fabric; otherwise a run of packets would cross it as one.
                let _ = writeln!(network, "link set {port} gso_max_segs 1");
            }
            shaping += &self.shaping(port, end.rate, role == Role::Host);
        }
        let all: Vec<usize> = (0..self.net.plan.nodes.len()).collect();
        network += &self.routes(node, &all);
        let namespace = self.namespace(node);
        run("ip", &["-n", &namespace, "-batch", "-"], &network)?;
        run("tc", &["-n", &namespace, "-batch", "-"], &shaping)?;
        let seed = self.net.plan.seed.wrapping_mul(0x9e37_79b9).wrapping_add(node as u64) as u32 | 1;
        let unset = self.within(node, move || {
            let settings = Path::new("/proc/sys/net/ipv4");
            let put = |file: &str, value: &str| {
                set(&settings.join(file), value)
                    .map_err(|error| TestbedError::system(format!("net.ipv4.{file}"), error))
            };
            put("ip_forward", "1")?;
            put("conf/all/rp_filter", "0")?;
            put("conf/default/rp_filter", "0")?;
            // Path discovery needs an ICMP error for every packet whose TTL expires, without a rate limit.
            put("icmp_ratelimit", "0")?;
            put("icmp_ratemask", "0")?;
            set(Path::new("/proc/sys/net/ipv6/conf/all/disable_ipv6"), "1")
                .map_err(|error| TestbedError::system("net.ipv6.conf.all.disable_ipv6", error))?;
            if role == Role::Host {
                return Ok::<bool, TestbedError>(false);
            }
            // ICMP errors carry the address of the ingress port instead of the port that the reply leaves by.
            put("icmp_errors_use_inbound_ifaddr", "1")?;
            // Policy 1 may use a hash of the sending socket, which is drawn at each connect.
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

    /// Returns the `tc` commands that limit a port to its rate. Trimmed headers have a class of their own with priority.
    fn shaping(&self, port: &str, rate: u64, host: bool) -> String {
        let (burst, limit, text) = (burst(rate, self.net.plan.mtu), self.net.plan.queue.limit, bits(rate));
        if host || !self.net.plan.queue.trimming {
            // A host's own queue drops nothing: excess packets wait in the socket.
            let limit = if host { limit.max(1_000_000) } else { limit };
            return format!("qdisc replace dev {port} root handle 1: tbf rate {text} burst {burst} limit {limit}\n");
        }
        // The queue must hold everything that the virtual queue admits.
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

    /// Returns the routes of a node over its ports to `up`: host to leaf, leaf to leaf over all spines, spine to leaf.
    pub(crate) fn routes(&self, node: usize, up: &[usize]) -> String {
        let plan = &self.net.plan;
        let mut routes = String::new();
        let neighbours = |role: Role| plan.all(role).map(|(other, _)| other).filter(|other| up.contains(other));
        match plan.nodes[node].role {
            Role::Host => {
                // An address is in one plane.
                let planes = plan.planes(node).count();
                for (leaf, cable) in neighbours(Role::Leaf).filter_map(|leaf| Some((leaf, plan.cable(node, leaf)?))) {
                    let via = cable.upper.address;
                    if planes == 1 {
                        let _ = writeln!(routes, "route replace default via {via}");
                        continue;
                    }
                    let is_there = |of: &usize| plan.nodes[*of].plane == plan.nodes[leaf].plane;
                    for (number, _) in plan.all(Role::Leaf).enumerate().filter(|(_, (of, _))| is_there(of)) {
                        let _ = writeln!(routes, "route replace 10.{}.0.0/16 via {via}", number + 1);
                    }
                }
            }
            Role::Leaf => {
                let via = |spine| {
                    let address = plan.cable(node, spine).map(|cable| cable.upper.address)?;
                    Some(format!(" nexthop via {address} dev {}", self.name(spine)))
                };
                let hops: String = neighbours(Role::Spine).filter_map(via).collect();
                let others = plan
                    .all(Role::Leaf)
                    .enumerate()
                    .filter(|(_, (leaf, of))| *leaf != node && of.plane == plan.nodes[node].plane && !hops.is_empty());
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

    fn equip(&mut self) -> Result<(), TestbedError> {
        let queue = self.net.plan.queue;
        if !queue.has_programs() {
            return Ok(());
        }
        let ports = self.switch_ports();
        for (number, (node, other, rate)) in ports.iter().enumerate() {
            let equipped = self.replace_program(*node, *other, *rate, port_program::OBJECT);
            // Counters must be readable, so that no figure is unknown; if one is, all are.
            let Err(error) = equipped.and_then(|()| {
                if number == 0 { counters::counted(&self.net, *node, *other).map(drop) } else { Ok(()) }
            }) else {
                continue;
            };
            // A user without the privilege to load programs has a testbed without marking and trimming.
            let reason = match &error {
                TestbedError::Program { message, .. } if message.contains("not permitted") => {
                    "only root may load BPF programs".to_string()
                }
                _ => error.to_string().lines().next().unwrap_or_default().to_string(),
            };
            for (node, other, _) in &ports[..=number] {
                // The last port may have no program yet.
                let _ = port_program::detach(&self.namespace(*node), self.name(*other));
            }
            self.missing.push(format!("{LACKS_PROGRAMS}: {reason}, so that ports do neither; run it as root"));
            self.lacks_programs = true;
            self.net.plan.queue = crate::Queue { marking: None, trimming: false, ..queue };
            return Ok(());
        }
        Ok(())
    }

    fn switch_ports(&self) -> Vec<(usize, usize, u64)> {
        let of_switch = |(end, _): &(&End, usize)| self.net.plan.nodes[end.node].role != Role::Host;
        self.net.plan.ports().filter(of_switch).map(|(end, other)| (end.node, other, end.rate)).collect()
    }

    /// Attaches another build of the port program to a port, for tests.
    #[doc(hidden)]
    pub fn replace_program(&self, node: usize, other: usize, rate: u64, object: &[u8]) -> Result<(), TestbedError> {
        let (namespace, plan) = (self.namespace(node), &self.net.plan);
        port_program::attach(object, &namespace, self.name(other), rate, plan.mtu, &plan.queue)
    }

    /// Runs `work` in a node's namespace, on a thread of its own. Files that it opens remain in that namespace.
    pub fn within<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        self.net.within(node, work)
    }

    /// Returns the counters of every port, in the order of the scenario's directed links.
    pub fn counters(&self) -> Result<Vec<PortCount>, TestbedError> {
        counters::read(&self.net, self.lacks_programs)
    }

    /// Impairs the link from one node to another from now on.
    pub fn harm(&self, from: usize, to: usize, harm: Harm) -> Result<(), TestbedError> {
        self.harms.harm(&self.net, from, to, harm)
    }

    /// Cuts a cable. The two switches at the cable remove it from their routes at once; other switches do not notice,
    /// and their packets over that cable are lost.
    pub fn cut(&self, cable: usize) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.net.plan.cables[cable];
        // Both ports are taken down, because the kernel may notice a lost carrier up to a second later.
        for (end, other) in [(lower, upper), (upper, lower)] {
            let note = Note { was_cut: true, ..counters::note(&self.net, end.node, other.node)? };
            let change = self.down_line(other.node, note);
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
    }

    pub(crate) fn down_line(&self, other: usize, note: Note) -> String {
        format!("link set {} down alias \"{}\"\n", self.name(other), note.write())
    }

    /// Restores a cable and its original rate.
    pub fn mend(&self, cable: usize) -> Result<(), TestbedError> {
        self.restore(cable)?;
        self.slow(cable, None)
    }

    /// Restores a cable, which keeps its last rate.
    pub fn restore(&self, cable: usize) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.net.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            let change = format!("link set {} up\n", self.name(other.node));
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        // The kernel removed the routes when the ports went down.
        for node in [lower.node, upper.node] {
            run("ip", &["-n", &self.namespace(node), "-batch", "-"], &self.routes(node, &self.ports_up(node)?))?;
        }
        self.harms.heal(&self.net, cable)
    }

    fn ports_up(&self, node: usize) -> Result<Vec<usize>, TestbedError> {
        let links = counters::links(&self.net, node)?;
        let up = links.iter().filter(|(_, link)| link.is_up);
        Ok(up.filter_map(|(port, _)| self.net.plan.node(port).ok()).collect())
    }

    /// Sets the rate of both directions of a cable; `None` restores the original rate.
    pub fn slow(&self, cable: usize, rate: Option<u64>) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.net.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            self.set_rate(end.node, other.node, rate.unwrap_or(end.rate))?;
            let note = Note { rate, ..counters::note(&self.net, end.node, other.node)? };
            let change = format!("link set {} alias \"{}\"\n", self.name(other.node), note.write());
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        Ok(())
    }

    /// Sets the rate of the port of `node` that leads to `other`.
    pub fn set_rate(&self, node: usize, other: usize, rate: u64) -> Result<(), TestbedError> {
        if let Some(speed) = self.speed(node, other)? {
            speed.set(rate)?;
        }
        run("tc", &["-n", &self.namespace(node), "-batch", "-"], &self.rate_lines(node, other, rate)).map(drop)
    }

    /// Returns the rate of the virtual queue of a port; `None` if it has none.
    pub(crate) fn speed(&self, node: usize, other: usize) -> Result<Option<Speed>, TestbedError> {
        let has = self.net.plan.nodes[node].role != Role::Host && self.net.plan.queue.has_programs();
        has.then(|| Speed::open(&self.namespace(node), self.name(other), self.net.plan.mtu)).transpose()
    }

    pub(crate) fn rate_lines(&self, node: usize, other: usize, rate: u64) -> String {
        let port = self.name(other);
        let host = self.net.plan.nodes[node].role == Role::Host;
        let (burst, text) = (burst(rate, self.net.plan.mtu), bits(rate));
        if host || !self.net.plan.queue.trimming {
            let limit = if host { self.net.plan.queue.limit.max(1_000_000) } else { self.net.plan.queue.limit };
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
        self.harms.end_delays(&self.net);
        let mut batch = String::new();
        for node in 0..self.net.plan.nodes.len() {
            if self.net.is_there(node) {
                let _ = writeln!(batch, "netns del {}", self.namespace(node));
            }
        }
        // Namespaces that cannot be deleted end with the process.
        let _ = run("ip", &["-force", "-batch", "-"], &batch);
    }
}
