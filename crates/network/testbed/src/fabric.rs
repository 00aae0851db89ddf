//! The network itself: namespaces, cables, addresses, routes, shaped ports.

use crate::{
    Harm, Plan, PortCount, Role, TestbedError,
    counters::{self, Meter, Note},
    delay::Times,
    harm::{self, Harms},
    link_program::Settings,
    net::Net,
    plan::{Cable, End, burst},
    port_program::{self, Speed},
    programs::{run, set},
};
use std::{
    fmt::Write,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

/// Source and destination address, protocol, source and destination port: the packet's own five-tuple.
const FIVE_TUPLE: &str = "55";
/// Bytes of control packets and trimmed headers that a port holds besides data.
const CONTROL_LIMIT: u64 = 100_000;

/// How a message begins that says why ports neither mark nor trim.
const LACKS_PROGRAMS: &str = "marking and trimming";

/// What this machine lacks, and what that means.
pub type Missing = Vec<String>;

/// A network of namespaces that stands; dropped, it is taken down.
#[derive(Debug)]
pub struct Fabric {
    net: Net,
    missing: Missing,
    /// Whether ports were to mark or trim and cannot.
    lacks_programs: bool,
    /// Whether it goes with this value.
    owned: bool,
    harms: Harms,
}

/// Networks that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A rate as tc reads it.
fn bits(rate: u64) -> String {
    format!("{rate}bit")
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
            net: Net { plan, prefix },
            missing: Missing::new(),
            lacks_programs: false,
            owned: true,
            harms: Harms::of_this_process(),
        };
        fabric.join()?;
        // First, since it decides whether ports need queues for trimmed packets.
        fabric.equip()?;
        for node in 0..fabric.net.plan.nodes.len() {
            fabric.configure(node)?;
        }
        Ok(fabric)
    }

    /// A network that another process has built and keeps, seen from its namespaces.
    pub(crate) fn of_another(plan: Plan, prefix: String, missing: Missing) -> Self {
        let lacks_programs = missing.iter().any(|missing| missing.starts_with(LACKS_PROGRAMS));
        Fabric { net: Net { plan, prefix }, missing, lacks_programs, owned: false, harms: Harms::default() }
    }

    /// What begins the names of its namespaces.
    pub(crate) fn prefix(&self) -> &str {
        &self.net.prefix
    }

    /// What it was built by, but for what this machine lacks.
    pub fn plan(&self) -> &Plan {
        &self.net.plan
    }

    /// What this machine lacks.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The name of a node's namespace.
    pub fn namespace(&self, node: usize) -> String {
        self.net.namespace(node)
    }

    pub(crate) fn name(&self, node: usize) -> &str {
        self.net.name(node)
    }

    /// Namespaces, and the cables between them.
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

    /// Addresses, routes, rates and kernel settings of a node.
    fn configure(&mut self, node: usize) -> Result<(), TestbedError> {
        let role = self.net.plan.nodes[node].role;
        let mut network = String::from("link set lo up\n");
        let mut shaping = String::new();
        for (end, other) in self.net.plan.ports().filter(|(end, _)| end.node == node) {
            let port = self.name(other);
            let _ = writeln!(network, "addr add {}/30 dev {port}\nlink set {port} up", end.address);
            if role == Role::Host {
                // Segmentation is done before the fabric, or a run of packets would cross it as one.
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
        let (burst, limit, text) = (burst(rate, self.net.plan.mtu), self.net.plan.queue.limit, bits(rate));
        if host || !self.net.plan.queue.trimming {
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
        let plan = &self.net.plan;
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
        let queue = self.net.plan.queue;
        if !queue.has_programs() {
            return Ok(());
        }
        let ports = self.switch_ports();
        for (number, (node, other, rate)) in ports.iter().enumerate() {
            let equipped = self.replace_program(*node, *other, *rate, port_program::OBJECT);
            // A program whose counts cannot be read is none, so that no figure is unknown; who reads one reads all.
            let Err(error) = equipped.and_then(|()| {
                if number == 0 { counters::counted(&self.net, *node, *other).map(drop) } else { Ok(()) }
            }) else {
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
            self.net.plan.queue = crate::Queue { marking: None, trimming: false, ..queue };
            return Ok(());
        }
        Ok(())
    }

    fn switch_ports(&self) -> Vec<(usize, usize, u64)> {
        let of_switch = |(end, _): &(&End, usize)| self.net.plan.nodes[end.node].role != Role::Host;
        self.net.plan.ports().filter(of_switch).map(|(end, other)| (end.node, other, end.rate)).collect()
    }

    /// Puts another build of the port program at a port: for tests.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    #[doc(hidden)]
    pub fn replace_program(&self, node: usize, other: usize, rate: u64, object: &[u8]) -> Result<(), TestbedError> {
        let (namespace, plan) = (self.namespace(node), &self.net.plan);
        port_program::attach(object, &namespace, self.name(other), rate, plan.mtu, &plan.queue)
    }

    /// Runs `work` in a node's namespace, on a thread of its own. What it opens stays there.
    ///
    /// # Errors
    /// Where the namespace cannot be entered.
    pub fn within<T: Send>(&self, node: usize, work: impl FnOnce() -> T + Send) -> Result<T, TestbedError> {
        self.net.within(node, work)
    }

    /// The counters of every port, in the order of the scenario's directed links.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn counters(&self) -> Result<Vec<PortCount>, TestbedError> {
        counters::read(&self.net, self.lacks_programs)
    }

    /// What reads the bytes and packets of all ports at once.
    pub(crate) fn meter(&self) -> Result<Meter, TestbedError> {
        Meter::open(&self.net)
    }

    /// Makes the link from one node to another do so from now on.
    ///
    /// # Errors
    /// Where no BPF program can be loaded, or a program fails.
    pub fn harm(&self, from: usize, to: usize, harm: Harm) -> Result<(), TestbedError> {
        self.harms.harm(&self.net, from, to, harm)
    }

    /// What a link does to packets, ready to be changed at once.
    pub(crate) fn prepare_harm(&self, from: usize, to: usize) -> Result<Settings, TestbedError> {
        harm::prepare(&self.net, from, to)
    }

    /// Makes a delay ready at a link, by a thread of this process. Returns the interface that packets take for it.
    pub(crate) fn prepare_delay(&self, from: usize, to: usize, times: Arc<Times>) -> Result<u32, TestbedError> {
        self.harms.prepare_delay(&self.net, from, to, times)
    }

    /// Cuts a cable. The switches at its ends take it out of their routes at once; others do not notice, and what they send
    /// that way is lost.
    ///
    /// # Errors
    /// Where a program fails.
    pub fn cut(&self, cable: usize) -> Result<(), TestbedError> {
        let Cable { lower, upper } = &self.net.plan.cables[cable];
        // Both ends are taken down: of a lost carrier alone the kernel hears up to a second later.
        for (end, other) in [(lower, upper), (upper, lower)] {
            let note = Note { was_cut: true, ..counters::note(&self.net, end.node, other.node)? };
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
        let Cable { lower, upper } = &self.net.plan.cables[cable];
        for (end, other) in [(lower, upper), (upper, lower)] {
            let change = format!("link set {} up\n", self.name(other.node));
            run("ip", &["-n", &self.namespace(end.node), "-batch", "-"], &change)?;
        }
        // With the ports, routes had gone.
        for node in [lower.node, upper.node] {
            run("ip", &["-n", &self.namespace(node), "-batch", "-"], &self.routes(node, &self.ports_up(node)?))?;
        }
        self.harms.heal(&self.net, cable)
    }

    /// The ports of a node that are up, by the nodes they lead to.
    fn ports_up(&self, node: usize) -> Result<Vec<usize>, TestbedError> {
        let links = counters::links(&self.net, node)?;
        let up = links.iter().filter(|(_, link)| link.is_up);
        Ok(up.filter_map(|(port, _)| self.net.plan.node(port).ok()).collect())
    }

    /// Gives both directions of a cable another rate; `None`: its own.
    ///
    /// # Errors
    /// Where a program fails.
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
        let has = self.net.plan.nodes[node].role != Role::Host && self.net.plan.queue.has_programs();
        has.then(|| Speed::open(&self.namespace(node), self.name(other), self.net.plan.mtu)).transpose()
    }

    /// What gives a port's queue another rate, for `tc`.
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
        // What cannot be deleted goes with the process.
        let _ = run("ip", &["-force", "-batch", "-"], &batch);
    }
}
