"""The parts of a scenario. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from collections.abc import Sequence
from typing import Literal

from ._part import Part

ALIASES: list[str]
HOST_SCHEMES: list[str]
SWITCH_SCHEMES: list[str]
TopologyKind = LeafSpine | FatTree | Clos | RailOptimised | RailOnly | Dragonfly | SlimFly | Hyperx | TopologyFile
WorkloadKind = Poisson | Permutation | Incast | Adversarial | Microbenchmark | AllToAll | Collective | TrainingRounds | TrainingStep | WorkloadFile | Nccl
TransportKind = Uet | Roce

__all__ = [
    "Adversarial", "AllToAll", "Ar", "Bitmap", "Braid", "Cast", "Clos", "CoPrime", "CoarseGuided",
    "Collective", "CompareOptions", "Conga", "Conweave", "Dcqcn", "Dctcp", "Dragonfly", "Drill", "Ecmp",
    "EvIndex", "Fabric", "FatTree", "Fault", "Flicr", "Flowbender", "Flowlet", "Hf2t", "Hopper", "Hyperx",
    "Incast", "LeafSpine", "Letflow", "LinkOverride", "LoadBalancer", "Measure", "Microbenchmark", "Minimal",
    "Mixed", "MpRdma", "Mrc", "Nccl", "Nscc", "Ops", "Permutation", "PiMarking", "Plb", "Poisson", "Prime",
    "QpSpray", "RailOnly", "RailOptimised", "Random", "Reps", "Roce", "Rr", "RunOptions", "Servers",
    "SlimFly", "Smartt", "SourceGuided", "SpritzCoarse", "SpritzScout", "SpritzSpray", "TopologyFile",
    "TrainingRounds", "TrainingStep", "Uet", "Ugal", "Valiant", "Wire", "WorkloadFile",
]

class _Topology(Part):
    link: Sequence[LinkOverride] | None = None

class _Workload(Part):
    class_: str | None = None
    """Traffic class of the flows."""
    congestion_control: str | None = None
    """Congestion control of the flows, with the parameters of its table in `[transport]`."""
    load_balancer: str | None = None
    """Load balancer of the flows."""
    measured: bool | None = None
    """Includes the flows in the statistics. Default: true."""
    name: str | None = None
    """Name in the results; random draws are keyed by it."""
    overlap: bool | None = None
    """Jobs: shares hosts with an earlier job without a warning. Default: false."""
    split_class: str | None = None
    """Traffic class of the second workload."""
    split_load_balancer: str | None = None
    """Load balancer of the second workload."""
    split_name: str | None = None
    """Name of the second workload."""
    split_share: float | None = None
    """Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load balancer. Default: 0.0."""

class LinkOverride(Part):
    """Another rate or delay of some links."""

    class_: str | None = None
    """A class: host, tier0-1, tier1-2, local, global."""
    delay: str | None = None
    """The delay; "": as it is."""
    link: str | None = None
    """A cable (leaf0-spine3) or one direction of it (leaf0->spine3)."""
    rate: str | None = None
    """The rate; "": as it is."""

class LeafSpine(_Topology):
    """Two tiers with any number of leaves, spines and hosts."""

    host_link_delay: str | None = None
    """Delay of links to hosts; "": as `link_delay`."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    hosts_per_leaf: int | None = None
    """Hosts at each leaf. Default: 16."""
    leaves: int | None = None
    """Number of leaves. Default: 8."""
    link_delay: str | None = None
    """Delay of every link. Default: "1us"."""
    link_rate: str | None = None
    """Rate of every link, of several planes over all of them. Default: "100Gbps"."""
    links_per_spine: int | None = None
    """Parallel cables between a leaf and a spine. Default: 1."""
    planes: int | None = None
    """Planes: fabrics of this shape side by side, over which every host has its rate in equal parts. Default: 1."""
    spines: int | None = None
    """Number of spines. Default: 8."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "0us"."""

class FatTree(_Topology):
    """Non-blocking tree of 2 or 3 tiers of switches of one radix."""

    host_link_delay: str | None = None
    """Delay of links to hosts; "": as `link_delay`."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    link_delay: str | None = None
    """Delay of every link. Default: "1us"."""
    link_rate: str | None = None
    """Rate of every link, of several planes over all of them. Default: "400Gbps"."""
    oversubscription: int | None = None
    """Hosts per uplink of a leaf: 1 is non-blocking, 2 gives every leaf twice as many hosts. Default: 1."""
    planes: int | None = None
    """Planes: fabrics of this shape side by side, over which every host has its rate in equal parts. Default: 1."""
    radix: int | None = None
    """Ports of a switch, even. Default: 16."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "0us"."""
    tiers: int | None = None
    """Tiers of switches: 2 or 3. Default: 2."""

class Clos(_Topology):
    """Three tiers with any number of pods, leaves, spines and cores, oversubscribed or not."""

    core_link_rate: str | None = None
    """Rate of links to cores; "": as `link_rate`."""
    cores: int | None = None
    """Number of cores: a multiple of `spines_per_pod`; spine j of every pod leads to the same cores. Default: 16."""
    host_link_delay: str | None = None
    """Delay of links to hosts; "": as `link_delay`."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    hosts_per_leaf: int | None = None
    """Hosts at each leaf. Default: 16."""
    leaves_per_pod: int | None = None
    """Leaves of a pod. Default: 8."""
    link_delay: str | None = None
    """Delay of every link. Default: "500ns"."""
    link_rate: str | None = None
    """Rate of every link, of several planes over all of them. Default: "400Gbps"."""
    links_per_core: int | None = None
    """Parallel cables between a spine and a core. Default: 1."""
    links_per_spine: int | None = None
    """Parallel cables between a leaf and a spine of its pod. Default: 1."""
    planes: int | None = None
    """Planes: fabrics of this shape side by side, over which every host has its rate in equal parts. Default: 1."""
    pods: int | None = None
    """Number of pods. Default: 2."""
    spines_per_pod: int | None = None
    """Spines of a pod. Default: 16."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class RailOptimised(_Topology):
    """Servers with a NIC per rail: leaf r of a pod connects NIC r of its servers, spines join all leaves."""

    core_link_rate: str | None = None
    """Rate of links to cores; "": as `link_rate`."""
    cores: int | None = None
    """Cores of a third tier: a multiple of `spines`; spine j of every pod leads to the same cores. Default: 0."""
    host_link_delay: str | None = None
    """Delay of links to hosts; "": as `link_delay`."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    link_delay: str | None = None
    """Delay of every link. Default: "500ns"."""
    link_rate: str | None = None
    """Rate of every link, of several planes over all of them. Default: "400Gbps"."""
    links_per_core: int | None = None
    """Parallel cables between a spine and a core. Default: 1."""
    links_per_spine: int | None = None
    """Parallel cables between a leaf and a spine. Default: 4."""
    planes: int | None = None
    """Planes: fabrics of this shape side by side, over which every host has its rate in equal parts. Default: 1."""
    rails: int | None = None
    """Rails: NICs of a server. Default: 8."""
    servers: int | None = None
    """Number of servers. Default: 64."""
    servers_per_pod: int | None = None
    """Servers of a pod (a scalable unit, a segment): hosts at each leaf. Default: 32."""
    spines: int | None = None
    """Spines above the leaves of all pods; with `cores`, spines of each pod. Default: 8."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class RailOnly(_Topology):
    """Servers with a NIC per rail, every rail a network of its own: no links between rails."""

    host_link_delay: str | None = None
    """Delay of links to hosts; "": as `link_delay`."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    link_delay: str | None = None
    """Delay of every link. Default: "500ns"."""
    link_rate: str | None = None
    """Rate of every link, of several planes over all of them. Default: "400Gbps"."""
    links_per_spine: int | None = None
    """Parallel cables between a leaf and a spine of its rail. Default: 1."""
    planes: int | None = None
    """Planes: fabrics of this shape side by side, over which every host has its rate in equal parts. Default: 1."""
    rails: int | None = None
    """Rails: NICs of a server. Default: 8."""
    servers: int | None = None
    """Number of servers. Default: 16."""
    servers_per_pod: int | None = None
    """Servers of a pod: hosts at each leaf. Default: 16."""
    spines: int | None = None
    """Spines of each rail; 0 where there is one pod: the rail is a single switch. Default: 0."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class Dragonfly(_Topology):
    """Fully meshed groups of switches, one global link between any two groups."""

    a: int | None = None
    """Switches in each group. Default: 8."""
    arrangement: Literal["relative", "absolute", "palmtree", "circulant"] | None = None
    """Which groups the global ports of a group lead to. Default: "relative"."""
    global_link_delay: str | None = None
    """Delay of links between groups. Default: "500ns"."""
    global_link_rate: str | None = None
    """Rate of links between groups; "": as `link_rate`."""
    groups: Literal["auto"] | int | None = None
    """Number of groups; "auto": as many as there can be, a * h + 1. Default: "auto"."""
    h: int | None = None
    """Global links of each switch. Default: 4."""
    host_link_delay: str | None = None
    """Delay of links to hosts. Default: "25ns"."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    link_rate: str | None = None
    """Rate of every link. Default: "400Gbps"."""
    local_link_delay: str | None = None
    """Delay of links inside a group. Default: "25ns"."""
    local_link_rate: str | None = None
    """Rate of links inside a group; "": as `link_rate`."""
    p: int | None = None
    """Hosts at each switch. Default: 4."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class SlimFly(_Topology):
    """Switches at most two hops apart, over a finite field."""

    global_link_delay: str | None = None
    """Delay of links between groups. Default: "500ns"."""
    global_link_rate: str | None = None
    """Rate of links between groups; "": as `link_rate`."""
    host_link_delay: str | None = None
    """Delay of links to hosts. Default: "25ns"."""
    host_link_rate: str | None = None
    """Rate of links to hosts; "": as `link_rate`."""
    link_rate: str | None = None
    """Rate of every link. Default: "400Gbps"."""
    local_link_delay: str | None = None
    """Delay of links inside a group. Default: "25ns"."""
    local_link_rate: str | None = None
    """Rate of links inside a group; "": as `link_rate`."""
    p: int | None = None
    """Hosts at each switch. Default: 7."""
    q: int | None = None
    """Size of the field, a prime power from 3 to 107: switches in a group. Default: 9."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class Hyperx(_Topology):
    """HyperX of two dimensions, every switch linked to all of its row and its column."""

    columns: int | None = None
    """Switches of a row. Default: 8."""
    global_link_delay: str | None = None
    """Delay of links within a column. Default: "500ns"."""
    global_link_rate: str | None = None
    """Rate of links within a column."""
    host_link_delay: str | None = None
    """Delay of host links. Default: "25ns"."""
    host_link_rate: str | None = None
    """Rate of host links."""
    link_rate: str | None = None
    """Rate of the links that have none of their own. Default: "400Gbps"."""
    local_link_delay: str | None = None
    """Delay of links within a row. Default: "25ns"."""
    local_link_rate: str | None = None
    """Rate of links within a row."""
    p: int | None = None
    """Hosts at every switch. Default: 8."""
    rows: int | None = None
    """Rows, the groups. Default: 8."""
    switch_latency: str | None = None
    """Time a packet spends in a switch before it reaches its output port. Default: "500ns"."""

class TopologyFile(_Topology):
    """A graph from a file: ConWeave's text, htsim's .topo, an adjacency list."""

    format: Literal["auto"] | Literal["conweave", "htsim-topo", "adjacency"] | None = None
    """Its format; auto: an adjacency list where the name ends in `.adjlist`, else by its content. Default: "auto"."""
    guided: bool | None = None
    """Paths by two free hops and a table, which Spritz and `prime-guided` need, for `adjacency`: no two switches are more than three links apart. Default: false."""
    hosts_per_switch: int | None = None
    """Hosts at every switch, for `adjacency`. Default: 1."""
    link_delay: str | None = None
    """Delay of every link, for `adjacency`. Default: "1us"."""
    link_rate: str | None = None
    """Rate of every link, for `adjacency`. Default: "400Gbps"."""
    path: str | None = None
    """The file; a relative path is relative to the scenario's folder."""
    switch_latency: str | None = None
    """Time a packet spends in a switch; `htsim-topo` files contain it themselves. Default: "0us"."""

class Poisson(_Workload):
    """Flows of random sizes to random receivers, in a Poisson process per host."""

    destinations: Literal["any", "other-leaf", "other-group"] | None = None
    """Scope of the receivers. Default: "any"."""
    duration: str | None = None
    """Duration of the arrival processes. Default: "1ms"."""
    hosts: Literal["all", "rest"] | None = None
    """Participating hosts: all, or those that neither send nor receive in the workloads listed before. Default: "all"."""
    load: float | None = None
    """Payload offered per time, as a share of the capacity. Default: 0.5."""
    load_reference: Literal["host", "network"] | None = None
    """Capacity that the load is a share of. Default: "host"."""
    max_flows: int | None = None
    """Maximum number of expected flows: guards the memory. Default: 20000000."""
    max_senders: int | None = None
    """Maximum concurrent senders of a receiver, a flow taking size / NIC rate from its start; 0: unlimited. Default: 0."""
    sizes: str | None = None
    """Flow sizes: a name (`anabranch list workloads`), one size such as "64KiB", or the path of a table. Default: "web-search"."""
    start: str | None = None
    """Start time of the arrival processes. Default: "0us"."""

class Permutation(_Workload):
    """Every host sends one message to another one, and receives one."""

    hosts: Literal["all", "rest"] | None = None
    """Participating hosts: all, or those that neither send nor receive in the workloads listed before. Default: "all"."""
    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    rounds: int | None = None
    """Number of consecutive permutations. Default: 1."""
    scope: Literal["any", "other-leaf", "other-group"] | None = None
    """Scope of the receivers. Default: "any"."""
    size: str | None = None
    """Bytes per message. Default: "4MiB"."""
    start: str | None = None
    """Start time of the first round. Default: "0us"."""

class Incast(_Workload):
    """Many hosts send to one receiver, or to each of several, at the same time."""

    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    receiver_hosts: list[int] | None = None
    """The receivers, by host number; empty: random ones. Default: []."""
    receivers: Literal["auto"] | int | None = None
    """Number of receivers; auto: as many as `receiver_hosts` lists, or 1. Default: "auto"."""
    sender_hosts: list[int] | None = None
    """The senders, by host number; empty: random ones. Default: []."""
    senders: Literal["auto"] | int | None = None
    """Number of senders; auto: as many as `sender_hosts` lists, or 32. Default: "auto"."""
    size: str | None = None
    """Bytes per message. Default: "4MiB"."""
    start: str | None = None
    """Start time of all messages. Default: "0us"."""

class Adversarial(_Workload):
    """Pairs of hosts whose default paths share single links of a Dragonfly or a Slim Fly."""

    offset: int | None = None
    """Dragonfly: distance in groups from sender to receiver; no effect on Slim Fly. Default: 5."""
    size: str | None = None
    """Bytes per message. Default: "4MiB"."""
    start: str | None = None
    """Start time of all messages. Default: "0us"."""

class Microbenchmark(_Workload):
    """One monitored flow across a Dragonfly whose groups are congested towards its destination, but for a few."""

    background: Literal["gateway", "through", "other-groups"] | None = None
    """Destination of the long flows. Default: "through"."""
    background_size: str | None = None
    """Bytes of each long flow. Default: "64MiB"."""
    destination_group: Literal["auto"] | int | None = None
    """Group of the monitored flow's receiver; auto: a random one. Default: "auto"."""
    flows_per_host: int | None = None
    """Long flows that each host sends to its destination. Default: 1."""
    free_groups: int | None = None
    """Groups without congestion, besides that of the destination. Default: 3."""
    lead: str | None = None
    """Time by which the long flows start before the monitored flow. Default: "20us"."""
    part: Literal["both", "monitored", "background"] | None = None
    """Flows to generate. Default: "both"."""
    placement_seed: Literal["auto"] | int | None = None
    """Seed that draws groups and hosts; auto: that of the run. Default: "auto"."""
    size: str | None = None
    """Bytes of the monitored flow. Default: "4MiB"."""
    source_group: Literal["auto"] | int | None = None
    """Group of the monitored flow's sender; auto: a random one. Default: "auto"."""
    start: str | None = None
    """Start time of the long flows. Default: "0us"."""

class AllToAll(_Workload):
    """Every rank sends one message to every other, with a window of messages outstanding."""

    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    order: Literal["shifted", "random"] | None = None
    """Order in which a rank serves the others. Default: "shifted"."""
    parallel: int | None = None
    """Maximum outstanding messages of a rank; 0: unlimited. Default: 0."""
    placement: str | None = None
    """Placement of ranks on hosts. Default: "packed"."""
    ranks: Literal["all"] | int | None = None
    """Number of participating hosts. Default: "all"."""
    size: str | None = None
    """Bytes per message. Default: "1MiB"."""
    start: str | None = None
    """Start time of the first messages. Default: "0us"."""

class Collective(_Workload):
    """AllReduce, all-gather, reduce-scatter, all-to-all or a pipeline, message by message, in groups."""

    algorithm: Literal["ring-allreduce", "recursive-doubling", "halving-doubling", "ring-all-gather", "ring-reduce-scatter", "all-to-all", "tree", "double-binary-tree", "hierarchical", "expert-all-to-all", "pipeline", "ring"] | None = None
    """The schedule of messages ("ring" is short for "ring-allreduce"). Default: "ring-allreduce"."""
    channels: int | None = None
    """Parallel copies of the schedule, each with its share of the vector. Default: 1."""
    chunks: Literal["auto"] | int | None = None
    """Trees: chunks of the vector that follow each other, at most two outstanding per link; pipeline: microbatches. Default: "auto"."""
    compute: str | None = None
    """Computation of every rank at the begin of a repetition, before its first message. Default: "0us"."""
    concurrent: Literal["auto"] | int | None = None
    """Groups that run at a time; when one ends, the next starts on its hosts. Default: "auto"."""
    gap: str | None = None
    """Time between the end of a repetition and the begin of the next, per rank. Default: "0us"."""
    groups: int | None = None
    """Number of groups, each of which runs the collective. Default: 1."""
    hosts: list[int] | str | None = None
    """Hosts on which groups may run. Default: "all"."""
    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    message_size: str | None = None
    """Bytes of every message instead; auto: derived from `size`, rounded up. Default: "auto"."""
    order: Literal["shifted", "random"] | None = None
    """All-to-all: order in which a rank serves the others. Default: "shifted"."""
    parallel: int | None = None
    """All-to-all: maximum outstanding messages of a rank; 0: unlimited. Default: 0."""
    placement: str | None = None
    """Placement of ranks on hosts: packed (consecutive), random, strided (groups in turn), across-racks (the first hosts of all racks, then the second ones), rail (GPUs of one number in consecutive servers), or a file with the hosts of each group in a line. Default: "packed"."""
    ranks: Literal["all"] | int | None = None
    """Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time. Default: "all"."""
    repetitions: int | None = None
    """Number of times that every group runs the collective. Default: 1."""
    server_ranks: Literal["auto"] | int | None = None
    """Hierarchical: ranks of a group in one server; auto: those that [servers] and the placement put there. Default: "auto"."""
    size: str | None = None
    """Bytes of the vector of every rank. Default: "64MiB"."""
    skew: float | None = None
    """Expert-all-to-all: Zipf exponent of the popularity of experts; 0: all are equally popular. Default: 0.0."""
    start: str | None = None
    """Start time of the first messages. Default: "0us"."""
    steps: Literal["auto"] | int | None = None
    """Steps in sequence; auto: those of the algorithm. Default: "auto"."""
    trigger: Literal["auto"] | Literal["received", "acknowledged"] | None = None
    """Event that the next message waits for; auto: received, in an all-to-all acknowledged. Default: "auto"."""

class TrainingRounds(_Workload):
    """Rounds of an AllReduce with a barrier after each."""

    compute: str | None = None
    """Computation of every rank at the begin of a round, before its first message. Default: "0us"."""
    concurrent: Literal["auto"] | int | None = None
    """Groups that run at a time; when one ends, the next starts on its hosts. Default: "auto"."""
    exchange: Literal["direct", "ring", "pairs"] | None = None
    """Senders and receivers of a round. Default: "pairs"."""
    gap: str | None = None
    """Time between the end of a round and the begin of the next. Default: "0us"."""
    groups: int | None = None
    """Number of groups, each of which trains by itself. Default: 1."""
    hosts: list[int] | str | None = None
    """Hosts on which groups may run. Default: "all"."""
    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    placement: str | None = None
    """Placement of ranks on hosts, as in `collective`. Default: "across-racks"."""
    ranks: Literal["all"] | int | None = None
    """Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time. Default: 8."""
    rounds: int | None = None
    """Number of rounds. Default: 51."""
    sizes: str | None = None
    """Message sizes: a name (`anabranch list workloads`), one size such as "100MB", or the path of a table. Default: "100MB"."""
    start: str | None = None
    """Start time of the first round. Default: "0us"."""

class TrainingStep(_Workload):
    """Steps of training with data, tensor and pipeline parallelism together."""

    activations: str | None = None
    """Bytes of the activations of a microbatch between two layers: batch x sequence x hidden size x bytes per value. Default: "4MiB"."""
    backward: str | None = None
    """Backward computation; auto: twice the forward one. Default: "auto"."""
    buckets: int | None = None
    """Parts of the gradients that are reduced one after the other, each when its layers have computed; 1: at the end. Default: 1."""
    concurrent: Literal["auto"] | int | None = None
    """Groups that run at a time; when one ends, the next starts on its hosts. Default: "auto"."""
    dp: int | None = None
    """Replicas of the model (data parallelism). Default: 2."""
    forward: str | None = None
    """Forward computation of a layer and microbatch on each of its ranks. Default: "50us"."""
    fused_layers: int | None = None
    """Layers of a stage that compute, and reduce their activations, together: fewer messages of the same bytes. Default: 1."""
    gap: str | None = None
    """Time between the end of a step and the begin of the next, per rank. Default: "0us"."""
    gradients: str | None = None
    """Bytes of the gradients of a layer, over all its `tp` ranks. Default: "32MiB"."""
    groups: int | None = None
    """Number of groups, each of which trains a model of its own. Default: 1."""
    hosts: list[int] | str | None = None
    """Hosts on which groups may run. Default: "all"."""
    layers: int | None = None
    """Layers of the model; a multiple of `pp`. Default: 8."""
    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    microbatches: int | None = None
    """Microbatches of a replica per step. Default: 4."""
    placement: str | None = None
    """Placement of ranks on hosts, as in `collective`. Default: "packed"."""
    pp: int | None = None
    """Stages of consecutive layers (pipeline parallelism). Default: 2."""
    ranks: Literal["all"] | int | None = None
    """Number of participating hosts of a group: dp x tp x pp; all: the hosts, divided among the groups. Default: "all"."""
    repetitions: int | None = None
    """Number of steps. Default: 1."""
    start: str | None = None
    """Start time of the first step. Default: "0us"."""
    tp: int | None = None
    """Ranks that share each layer (tensor parallelism). Default: 2."""

class WorkloadFile(_Workload):
    """The flows of a file: CSV, ConWeave's, htsim's or GOAL."""

    format: Literal["auto"] | Literal["csv", "conweave", "htsim-cm", "goal"] | None = None
    """Format of the file; auto: by its extension, `.csv`, `.cm` or `.goal`. Default: "auto"."""
    groups: int | None = None
    """GOAL: number of groups, each of which runs the schedule. Default: 1."""
    hosts: list[int] | str | None = None
    """GOAL: hosts on which ranks may run. Default: "all"."""
    path: str | None = None
    """The file; a relative path is relative to the scenario's folder."""
    placement: str | None = None
    """GOAL: placement of ranks on hosts, as in `collective`. Default: "packed"."""
    start_at: str | None = None
    """Start of the flows: as in the file, or the first at this time; auto: ConWeave's at zero, others as in the file. Default: "auto"."""
    start_unit: Literal["auto"] | Literal["ps", "ns", "us", "ms", "s"] | None = None
    """Unit of start times; auto: seconds in ConWeave's files, nanoseconds in GOAL schedules, picoseconds in the others. Default: "auto"."""

class Nccl(_Workload):
    """A collective of real processes over NCCL's network plugin: on testbeds alone."""

    abi: Literal["auto"] | Literal["v8", "v9", "v10", "v11", "v12"] | None = None
    """Version of NCCL's interface; auto: the newest that the plugin supports. Default: "auto"."""
    channels: int | None = None
    """Channels, each with a share of the buffer and its own connections. Default: 2."""
    collective: Literal["ring", "tree", "reduce-scatter", "all-gather", "all-to-all", "pairs"] | None = None
    """The collective: ring and tree are all-reduces; in pairs each rank sends to the next. Default: "ring"."""
    element: Literal["float", "int"] | None = None
    """Element type of buffers. Default: "float"."""
    hosts: list[int] | None = None
    """Host of each rank, by number; empty: ring neighbours are below different leaves. Default: []."""
    max_flows: int | None = None
    """Maximum number of flows: guards the memory. Default: 20000000."""
    ranks: Literal["all"] | int | None = None
    """Number of ranks, each a process at a host. Default: "all"."""
    rounds: int | None = None
    """Measured rounds, after one warm-up round. Default: 5."""
    size: str | None = None
    """Bytes of each rank's buffer: whole words of 4 B, at most 4GiB. Default: "4MiB"."""
    start: str | None = None
    """Start time of the ranks. Default: "0us"."""

class PiMarking(Part):
    """The marking rule `pi`."""

    integral: float | None = None
    """Change of the probability per BDP of distance to the reference and per round trip. Default: 0.1."""
    interval: str | None = None
    """Time between samples of the queue; auto: a third of the round trip of a BDP at the link's rate. Default: "auto"."""
    proportional: float | None = None
    """Change of the probability per BDP by which the queue has grown. Default: 0.3."""
    reference: str | None = None
    """Bytes of the queue in the steady state. Default: "0.2bdp"."""

class Fabric(Part):
    """Switches and NICs: buffers, marking, trimming, classes."""

    buffer_alpha: float | None = None
    """Maximum of a queue of a shared buffer, as a multiple of the free buffer; further packets are dropped. Default: 1.0."""
    class_weights: list[int] | None = None
    """Weights of the data classes under `wrr`; empty: equal weights. Default: []."""
    classes: Sequence[str] | None = None
    """Names of the data classes, highest priority first. Default: ["data"]."""
    control_limit: str | None = None
    """Maximum bytes of control packets of a port, and of trimmed headers that have no class of their own; further ones are dropped. Default: "2bdp"."""
    csig: Literal["off", "utilisation", "delay"] | None = None
    """Load of links in data packets (CSIG). Default: "off"."""
    csig_window: str | None = None
    """Window of `csig = "utilisation"`. Default: "10us"."""
    ecn: bool | None = None
    """Enables ECN marking by switches. Default: true."""
    ecn_by_tier: list[bool] | None = None
    """`ecn` by tier; without `ecn` nothing is marked. Default: []."""
    ecn_kmax: str | None = None
    """RED: bytes in the queue above which every packet is marked. Default: "0.8bdp"."""
    ecn_kmax_by_tier: Sequence[str] | None = None
    """`ecn_kmax` by tier. Default: []."""
    ecn_kmin: str | None = None
    """RED: bytes in the queue above which packets may be marked. Default: "0.2bdp"."""
    ecn_kmin_by_tier: Sequence[str] | None = None
    """`ecn_kmin` by tier. Default: []."""
    ecn_mark_at: Literal["dequeue", "enqueue"] | None = None
    """Queue operation at which a packet is marked. Default: "dequeue"."""
    ecn_pmax: float | None = None
    """RED: marking probability just below `ecn_kmax`; it grows linearly from zero at `ecn_kmin`. Default: 1.0."""
    fct_kind: Literal["rx", "ack"] | None = None
    """Flow completion time in the statistics. Default: "rx"."""
    flow_keys: Literal["connection", "stable", "udp-ports"] | None = None
    """Identification of flows by switches. Default: "connection"."""
    ideal_fct: Literal["lone-flow", "rtt-and-bytes", "transmission"] | None = None
    """Definition of a flow's ideal completion time, the divisor of its slowdown. Default: "lone-flow"."""
    mark_last_hop_trims: bool | None = None
    """Headers of packets trimmed at a port to a host are marked as such, as by a DSCP per egress port. Default: true."""
    marking: Literal["red", "pi"] | None = None
    """Rule by which packets are marked. Default: "red"."""
    nic_ports: Literal["auto", "by-ev", "free-port"] | None = None
    """Distribution of packets over the ports of a NIC with one per plane. Default: "auto"."""
    pfc: bool | None = None
    """Lets a switch pause its upstream neighbours before it would drop (PFC); needs a shared buffer. Default: false."""
    pfc_alpha: float | None = None
    """An ingress (port and class) is paused when it exceeds this multiple of the free buffer. Default: 0.0625."""
    pfc_headroom: str | None = None
    """Reserved buffer per ingress and class for packets that arrive after the pause was sent; auto: the maximum, which is twice rate times delay of its link, three full packets and a pause frame. Default: "auto"."""
    pfc_pause: str | None = None
    """Duration of a pause. Default: "never"."""
    pi: PiMarking | None = None
    """a probability that a controller moves until the queue is at a reference."""
    profile: Literal["uet-lossy", "spritz", "mrc", "uet-1.0.3", "roce-irn", "roce-lossless", "conweave-ns3-irn", "conweave-ns3-lossless"] | None = None
    """A set of defaults."""
    queue_limit: str | None = None
    """Maximum data bytes of a class of a port; a packet that would exceed it is trimmed, or dropped without trimming. Default: "1bdp"."""
    queue_limit_by_tier: Sequence[str] | None = None
    """`queue_limit` by tier: of ports to hosts, of the ports of leaves to switches, of those of the second tier, and so on; the last one also of all higher tiers. Default: []."""
    recorded: bool | None = None
    """Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. Default: false."""
    reply_paths: Literal["default", "scheme"] | None = None
    """Paths of acknowledgements, and of replies to probes, on Dragonflies and Slim Flies. Default: "default"."""
    scheduling: Literal["strict", "wrr"] | None = None
    """Scheduling of the data classes of a port and a NIC. Default: "strict"."""
    shared_buffer: str | None = None
    """Packet memory in bytes shared by the ports of a switch; 0: every port has a `queue_limit` of its own. Default: "0B"."""
    slowed_limits: Literal["keep", "scale"] | None = None
    """Limits of the queue before a link that a `link-degrade` fault has slowed. Default: "keep"."""
    trim: Literal["arrival", "coin"] | None = None
    """Packet that is trimmed. Default: "arrival"."""
    trimmed_class: Literal["control"] | float | None = None
    """Class of trimmed headers. Default: 0.25."""
    trimmed_limit: str | None = None
    """Maximum bytes of trimmed headers that wait for their share at a port; auto: its `queue_limit`. Default: "auto"."""
    trimming: bool | None = None
    """Trims a packet that arrives at a full queue to its header. Default: true."""

class Servers(Part):
    """Servers: GPUs, NICs and the scale-up network between the GPUs."""

    cross_rail: Literal["pxn", "network"] | None = None
    """Path of messages between GPUs of different servers and rails. Default: "pxn"."""
    gpus: int | None = None
    """GPUs of a server. Default: 8."""
    nics: int | None = None
    """NICs of a server, a divisor of `gpus`. Default: 8."""
    scale_up_latency: str | None = None
    """Time from the first byte sent to the first byte received between two GPUs of a server, and of an acknowledgement back. Default: "1us"."""
    scale_up_rate: str | None = None
    """Rate of the port of a GPU to the scale-up network, in each direction. Default: "3.6Tbps"."""

class Measure(Part):
    """Optional measurements."""

    attribution: Literal["auto"] | bool | None = None
    """Attributes each flow's completion time to queues, pauses, timeouts, notices of loss, its sender, its own packets and the flight; auto: in simulations of up to 100,000 flows that skip nothing. Default: "auto"."""
    flow_rows: Literal["all", "without-jobs"] | None = None
    """Flows with rows in the results: all, or without-jobs: groups of collectives, all-to-alls and training steps are made as they start and forgotten as they end, so that memory does not grow with their number. Default: "all"."""
    occupancy: bool | None = None
    """Records, per port, the time at each number of waiting packets. Default: false."""
    series_flows: Sequence[object] | None = None
    """Flows that are sampled, named as in trace_flows. Default: []."""
    series_interval: str | None = None
    """Interval of the samples of all time series. Default: "1us"."""
    series_links: Sequence[str] | None = None
    """Links whose ports are sampled: a cable (leaf0-spine3), one direction of it (leaf0->spine3), a pattern (leaf0-*, leaf*->spine3) or a class (host, tier0-1, local, global). Default: []."""
    series_scheme: bool | None = None
    """Records a time series per load balancer: its flows, and the balance of the uplinks. Default: false."""
    trace_flows: Sequence[object] | None = None
    """Flows whose every packet is traced: a number ("17" or 17), the first N of all ("first:10"), those of a workload ("web"), the first N of it ("web:10"), or those between hosts ("host3->host9"); names may be patterns ("host3->*"). Default: []."""
    trace_limit: int | None = None
    """Maximum number of rows of a trace, and of the calls of schemes; later rows are omitted with a warning. Default: 1000000."""
    trace_scheme: bool | None = None
    """Records for the flows of `trace_flows` each call of their schemes, and what these knew after it, in `scheme_NAME.csv` and `.parquet`: a scheme's page lists its columns. Default: false."""
    uplink_counts: bool | None = None
    """Counts the packets of each flow on each uplink. Default: false."""

class RunOptions(Part):
    """End of a run, and flows in the statistics."""

    memory_limit: str | None = None
    """Maximum estimated memory of a run, checked before it is built; auto: the memory available to a process. Default: "auto"."""
    skip: Literal["off", "steady"] | None = None
    """Skips the steady state: where the rates of all open flows agree over three spans and no start or change is due, all flows are shortened by their rates times the same jump. Default: "off"."""
    stall_after: Literal["never"] | int | None = None
    """Timeouts without a received byte after which a run without pending starts, triggers, computations, faults or changes of tables ends with status `stalled`; "never": at `time_limit`. Default: 50."""
    time_limit: str | None = None
    """Maximum simulated time. Default: "1s"."""
    trigger_latency: str | None = None
    """Time for a trigger or a barrier to reach another host. Default: "1us"."""
    until: str | None = None
    """End condition: all flows done, or a time. Default: "all-flows-done"."""
    warmup: str | None = None
    """Flows that start within this time of the first flow run, but are not in the statistics. Default: "0us"."""

class CompareOptions(Part):
    """Defaults of `anabranch compare` for arguments that are not given."""

    baseline: str | None = None
    """Load balancer that the others are compared with; empty: the first."""
    schemes: Sequence[str] | None = None
    """Load balancers to compare. Default: []."""
    seeds: int | None = None
    """Number of seeds, counting up from the scenario's. Default: 1."""

class Wire(Part):
    """Settings of real networks only; simulations do not read them."""

    authenticate: Literal["auto", "off", "control", "all"] | None = None
    """What is authenticated by the key: nothing, headers and control packets, or payloads as well; auto: headers and control packets where there is a key. Default: "auto"."""
    calibrations: int | None = None
    """Full packets that measure the base round trip of a peer when it connects. Default: 16."""
    catch_up: str | None = None
    """How much time the pacer makes up for when the process had to wait for its turn. Default: "1ms"."""
    checksum: Literal["auto"] | bool | None = None
    """Whether the payload of each packet carries a CRC32C, as each header does; a packet that does not fit it counts as lost. Default: "auto"."""
    chunk: str | None = None
    """With rc: bytes of a chunk, for which a scheme chooses once. Default: "auto"."""
    chunks_under_way: Literal["auto"] | int | None = None
    """With rc: maximum number of chunks in flight of a stream. Default: "auto"."""
    datapath: Literal["udp", "rc", "uc"] | None = None
    """Transport of packets: UDP sockets, reliable (rc) or unreliable (uc) queue pairs of an RDMA device. Default: "udp"."""
    early_loss: str | None = None
    """Instead of transport.early_loss: a packet counts as lost once one of its tag that left at least this much later has arrived. Default: "100us"."""
    ecn: bool | None = None
    """Whether data packets may be marked; the ports of a testbed then mark according to [fabric]. Default: true."""
    find_labels: Literal["all", "paths"] | None = None
    """What a path is to schemes: each label, or all labels that were found to lead over the same switches (over IPv4: `send` by every datapath, the NCCL plugin, testbeds). Default: "all"."""
    give_up: str | None = None
    """Time after which a peer that owes a reply and sends nothing, or acknowledges nothing new, has timed out. Default: "10s"."""
    idle_timeout: str | None = None
    """Time after which a peer that sends nothing at all is removed. Default: "60s"."""
    key: str | None = None
    """A file with the key that both peers share: 64 hexadecimal digits or more, readable by its owner alone."""
    labels: int | None = None
    """Labels: as many consecutive UDP ports of the endpoint that is called, each of which is a path to the network. Default: 8."""
    least_timeout: str | None = None
    """Least timeout of the transport, which follows the measured round trips. Default: "10ms"."""
    max_buffered_bytes: str | None = None
    """Bytes of memory that messages of all peers may take before they are complete; those from one source address may take half of it. Default: "128MiB"."""
    max_peers_per_address: int | None = None
    """Peers that may have connected from one source address; of IPv6 from one prefix of 64 bits. Default: 256."""
    max_retries: int | None = None
    """Replies per second to addresses that have not shown that they receive there (RETRY); more HELLOs get none. Default: 20000."""
    on_timeout: Literal["move", "scheme"] | None = None
    """Effect of a timeout on a scheme that keeps its path: it leaves the path as dead, or its own on_timeout decides. Default: "move"."""
    payload: str | None = None
    """Payload bytes of a full packet, the same at both peers; auto: transport.mtu. Default: "auto"."""
    probe: str | None = None
    """With rc: bytes of a probe, instead of the scheme's `probe_size`. Default: "10kB"."""
    queue_pairs: int | None = None
    """With rc: number of queue pairs. Default: 8."""
    rate: str | None = None
    """Rate at which packets leave a host; auto: the rate of the scenario's host links. Default: "auto"."""
    real_time: bool | None = None
    """Whether the endpoints of a testbed run in the real-time class (SCHED_RR), where that is allowed. Default: true."""
    rtt_floor: str | None = None
    """Least noise floor of round trips: what exceeds the shortest by up to this counts as nothing. Default: "200us"."""
    rtt_window: str | None = None
    """The base round trip rises to the shortest one of this time, where all were longer; a shorter one counts at once. Default: "10s"."""
    run_length: int | None = None
    """Packets in a row that carry the label chosen for the first of them, so that they leave and arrive together (GSO, GRO). Default: 1."""
    stev: Literal["off", "label-first", "port-first"] | None = None
    """Structured entropy values (STEV) that packets of `send` over UDP carry, those of the scheme's profile: which half is in the IPv6 flow label, and which in the UDP source port. Default: "off"."""
    trimming: bool | None = None
    """Whether the ports of a testbed trim instead of dropping. Default: false."""

class Fault(Part):
    """Faults of links and switches, with their times."""

    affects: Literal["all", "data"] | None = None
    """Which packets are affected. Default: "all"."""
    at: str | None = None
    """When it happens. Default: "0us"."""
    corruption: float | None = None
    """Share of packets of which a bit changes, for packet-corruption. Default: 0.0."""
    count: int | None = None
    """Their number, instead of a share. Default: 0."""
    delay: str | None = None
    """How much later packets arrive, for packet-delay. Default: "0us"."""
    detect_after: str | None = None
    """Time until the forwarding tables are updated (link-down, link-up, link-flap, switch-down), or schemes that read the rates of paths receive the new one (link-degrade). Default: "never"."""
    directed: bool | None = None
    """Whether `fraction` and `count` choose single directions rather than cables. Default: false."""
    down_for: str | None = None
    """How long links stay down each time, for link-flap: less than the period. Default: "0us"."""
    duplication: float | None = None
    """Share of packets that arrive twice, for packet-duplication. Default: 0.0."""
    factor: float | None = None
    """New rate as a share of the old one, for link-degrade. Default: 0.0."""
    flaps: int | None = None
    """How often links go down, for link-flap. Default: 0."""
    fraction: float | None = None
    """Share of the switch-to-switch cables (with `directed`, of the directed links), chosen at random. Default: 0.0."""
    jitter: str | None = None
    """How far single packets deviate from the delay at most, evenly spread, for packet-delay; they may overtake each other. Default: "0us"."""
    kind: Literal["link-down", "link-up", "link-degrade", "switch-down", "packet-loss", "link-flap", "packet-corruption", "packet-duplication", "packet-delay", "path-deny", "path-allow"] | None = None
    """What happens. Default: "link-down"."""
    links: Sequence[str] | None = None
    """Links: a cable (leaf0-spine3), one direction of it (leaf0->spine3), a pattern (host*-p1.*) or a class (host). Default: []."""
    loss: float | None = None
    """Share of packets lost, for packet-loss. Default: 0.0."""
    peer_detect: str | None = None
    """Time from then on until its peers have been notified, and send nothing to that port. Default: "0us"."""
    period: str | None = None
    """Time from one failure to the next, for link-flap. Default: "0us"."""
    port_detect: str | None = None
    """Time until a NIC with a port per plane detects that the link of a port is down, and sends nothing there, or up again. Default: "0us"."""
    rate: str | None = None
    """New rate, for link-degrade."""
    switches: Sequence[str] | None = None
    """Switches by name or pattern (p1.*), for switch-down. Default: []."""

class Dctcp(Part):
    """DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."""

    decrease: float | None = None
    """Part of the bytes acknowledged with a mark by which the window shrinks. Default: 0.5."""
    ecn_gate: bool | None = None
    """Lets marks shrink the window only while their average exceeds 0.25. Default: false."""
    fast_increase: bool | None = None
    """Enables FastIncrease on an idle path. Default: true."""
    fast_increase_base: Literal["longest", "own"] | None = None
    """Base RTT from which FastIncrease measures the queueing delay. Default: "longest"."""
    fast_increase_gain: float | None = None
    """Bytes that FastIncrease adds per acknowledged byte. Default: 1.0."""
    increase: float | None = None
    """Packets by which a window of clean acknowledgements grows the window. Default: 1.0."""
    late: Literal["never"] | int | None = None
    """Packets by which an acknowledged packet may lag behind the newest; each that lags further takes a packet from the window. Default: "never"."""
    quick_adapt: bool | None = None
    """Enables QuickAdapt after trims and timeouts. Default: true."""
    quick_adapt_patience: Literal["never"] | float | None = None
    """Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have been acknowledged. Default: "never"."""

class Nscc(Part):
    """Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt."""

    base_rtt: Literal["measured", "longest", "moving"] | None = None
    """Base round trip of a flow. Default: "measured"."""
    quick_adapt_delay: Literal["targets", "queue"] | None = None
    """Delay above which QuickAdapt may fire without a loss. Default: "targets"."""
    receiver_credit: bool | None = None
    """Receivers grant credit too (RCCC). Default: false."""
    target_delay: Literal["auto"] | float | None = None
    """Target queueing delay in base RTTs. Default: "auto"."""

class Smartt(Part):
    """SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."""

    quick_adapt_patience: Literal["never"] | float | None = None
    """Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have been acknowledged. Default: "never"."""

class Uet(Part):
    """The transport `uet`."""

    ack_delay: str | None = None
    """Time after which an arrival is acknowledged although fewer than `ack_every` packets have arrived; auto: the base round trip. Default: "auto"."""
    ack_ecn: Literal["own", "any"] | None = None
    """Meaning of the ECN bit of an acknowledgement. Default: "own"."""
    ack_entropy: Literal["echo", "fresh"] | None = None
    """Entropy value by which an acknowledgement is hashed on the return path; switches that read multi-part values or guide packets do not hash it. Default: "echo"."""
    ack_every: int | None = None
    """Data packets per acknowledgement; 1 acknowledges every packet. Default: 4."""
    ack_on_filled_hole: Literal["requested", "every"] | None = None
    """Packets that close a hole in the sequence and are acknowledged at once. Default: "requested"."""
    ack_on_mark: Literal["change", "every"] | None = None
    """Marked packets that are acknowledged at once. Default: "change"."""
    ack_size: str | None = None
    """Bytes of an acknowledgement (ACK or NACK) on the wire. Default: "64B"."""
    congestion_control: Literal["dctcp", "smartt", "nscc", "none", "rccc"] | None = None
    """Congestion control that sets the window. Default: "nscc"."""
    dctcp: Dctcp | None = None
    """DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."""
    early_loss: str | None = None
    """Reordering window: a packet is lost once one of the same tag, sent this much later, is acknowledged. Default: "never"."""
    header: str | None = None
    """Header bytes of a data packet. Default: "64B"."""
    last_hop_trims: Literal["blame", "ignore"] | None = None
    """Feedback to the load balancer on a packet trimmed at its last hop. Default: "blame"."""
    max_psn_range: Literal["never"] | int | None = None
    """Maximum of unacknowledged PSNs: no packet is sent this many PSNs or more beyond the first unacknowledged one. Default: "never"."""
    min_rto: str | None = None
    """Minimum of an automatic timeout. Default: "0us"."""
    mtu: str | None = None
    """Payload bytes of a full packet. Default: "4KiB"."""
    nscc: Nscc | None = None
    """Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt."""
    rack: Literal["never"] | float | None = None
    """Reordering window over all entropy values, in base round trips: a packet is lost once one sent this much later, over any path, is acknowledged. Default: "never"."""
    rto: str | None = None
    """Retransmission timeout. Default: "auto"."""
    rto_linear: int | None = None
    """Timeouts in a row of `rto` each before they double (`rto_rule = "doubling"`). Default: 1."""
    rto_max_exponent: Literal["never"] | int | None = None
    """Doublings after which the next timeout is an error of the queue pair: its sender stops for good, and its flow never ends (`rto_rule = "doubling"`). Default: "never"."""
    rto_rule: Literal["fixed", "measured", "doubling"] | None = None
    """Source of the timeout; the minimum of a measured one is `rto`. Default: "fixed"."""
    smartt: Smartt | None = None
    """SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."""
    window: str | None = None
    """Initial and maximum window in bytes on the wire; at least one packet. Default: "auto"."""

class Dcqcn(Part):
    """DCQCN: a rate that falls with congestion notifications and recovers by timers."""

    alpha_interval: str | None = None
    """Interval at which `alpha` is updated. Default: "1us"."""
    byte_counter: str | None = None
    """Bytes sent since the last cut, and between steps, at which the rate is raised as well. Default: "never"."""
    clamp_target: bool | None = None
    """If `true`, every cut makes the previous rate the target; otherwise only the first cut after an increase does. Default: false."""
    decrease_interval: str | None = None
    """Interval at which the rate may be cut. Default: "4us"."""
    fast_recovery: int | None = None
    """Steps of fast recovery before the target rises. Default: 1."""
    g: float | None = None
    """Gain of the moving average `alpha`. Default: 0.00390625."""
    min_rate: str | None = None
    """Minimum rate; from the NIC's rate on nothing is ever cut. Default: "100Mbps"."""
    rate_ai: str | None = None
    """Additive increase of the target; auto: 1/2500 of the NIC's rate. Default: "auto"."""
    rate_hai: str | None = None
    """Hyper increase of the target; auto: 1/1000 of the NIC's rate. Default: "auto"."""
    rp_timer: str | None = None
    """Time after the last cut, and between steps, at which the rate is raised. Default: "300us"."""

class Roce(Part):
    """The transport `roce`."""

    ack_size: str | None = None
    """Bytes of an acknowledgement (ACK, NACK) on the wire. Default: "60B"."""
    congestion_control: Literal["dcqcn", "swift", "tcp-like", "none"] | None = None
    """Congestion control that sets rate or window. Default: "dcqcn"."""
    dcqcn: Dcqcn | None = None
    """DCQCN: a rate that falls with congestion notifications and recovers by timers."""
    early_ack: Literal["selective", "cumulative"] | None = None
    """Acknowledgement of a packet that is early within `ooo_window`, with `irn-extended`. Default: "selective"."""
    header: str | None = None
    """Header bytes of a data packet. Default: "48B"."""
    mtu: str | None = None
    """Payload bytes of a full packet. Default: "1kB"."""
    nic_memory: str | None = None
    """Memory of a NIC for its queue pairs and for packets that are early. Default: "never"."""
    ooo_window: int | None = None
    """Packets that may be early without a NACK, with `irn-extended`. Default: 30."""
    qp_memory: str | None = None
    """Bytes of `nic_memory` that a queue pair occupies at each endpoint. Default: "375B"."""
    rate_on_path_change: Literal["keep", "fresh", "restore"] | None = None
    """Effect of a change of the path tag on a flow's rate (DCQCN) or window (Swift). Default: "keep"."""
    recorded: bool | None = None
    """Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. Default: false."""
    recovery: Literal["irn", "irn-extended", "go-back-n"] | None = None
    """Loss recovery. Default: "irn"."""
    reorder_memory: str | None = None
    """Maximum bytes of early packets per connection. Default: "never"."""
    rto: str | None = None
    """Retransmission timeout of go-back-N. Default: "auto"."""
    rto_high: str | None = None
    """Retransmission timeout of IRN with more in flight. Default: "auto"."""
    rto_low: str | None = None
    """Retransmission timeout of IRN with up to three packets in flight. Default: "auto"."""
    window: str | None = None
    """Maximum payload bytes in flight; auto: one BDP with IRN and `tcp-like`, unlimited with go-back-N. Default: "auto"."""

class Ar(Part):
    """Adaptive routing: the least local queue of all next hops."""

    compare: Literal["levels", "exact"] | None = None
    """Comparison of queues. Default: "levels"."""
    levels: list[int] | None = None
    """Upper bounds of the levels, in percent of `fabric.queue_limit`; one more level is above the last. Default: [5, 10, 20]."""
    refresh: str | None = None
    """Validity of a port's level after it was read: hardware samples its queues. Default: "0us"."""

class Bitmap(Part):
    """Masked round robin that passes over paths with a penalty count (STrack-like)."""

    ecn: int | None = None
    """Penalty of an ECN mark. Default: 1."""
    nack: int | None = None
    """Penalty of a NACK. Default: 4."""
    paths: int | None = None
    """Number of paths (low bits of the entropy value), a power of two. Default: 64."""
    timeout: int | None = None
    """Penalty of a timeout. Default: 15."""

class Braid(Part):
    """Deterministic shares of paths, learnt from marks relative to the flow's own; one path at a time where order matters."""

    active: int | None = None
    """Maximum paths of a flow: all shortest ones first, then random ones. Default: 256."""
    block: float | None = None
    """Round trips for which it is blocked at first; twice as long each further time. Default: 64.0."""
    capacities: Literal["unknown", "known"] | None = None
    """Capacities of paths: where packets are spread, known ones are shares of turns, on top of which shares are learnt. Default: "unknown"."""
    early: int | None = None
    """Early packets that a receiver must take without a NACK for packets to be spread; 0: they always are. Default: 8."""
    fall: float | None = None
    """Fall of a share for a mark beyond the flow's own share of marks, 0: shares stay. Default: 0.5."""
    growth: float | None = None
    """Growth of a share for an acknowledgement without a mark, less after falls. Default: 0.1."""
    move_above: float | None = None
    """Round trip, in base round trips, above which a flow that keeps its path may move. Default: 2.5."""
    move_below: float | None = None
    """Round trip of the other path, as a share of its own, below which it moves. Default: 0.6."""
    recovery: float | None = None
    """Round trips in which a share grows back by itself, more after falls. Default: 8.0."""
    reuse: int | None = None
    """Clean tags that are kept for use at once; 0: none. Default: 8."""
    reuse_run: int | None = None
    """Packets on such tags before one takes its turn. Default: 44."""
    shortest: float | None = None
    """Share of the packets on the shortest paths of a guided list that has others. Default: 0.35."""
    silence: float | None = None
    """Round trips without a reply after which a path is blocked; 0: never. Default: 3.0."""
    timeout: float | None = None
    """Factor of a share for a timeout on a path that still replies. Default: 0.25."""
    trim: float | None = None
    """Weight of a trim, as a mark. Default: 0.75."""
    values: Literal["structured", "guided"] | None = None
    """Paths that entropy values name; switches must read them so. Default: "structured"."""

class Cast(Part):
    """Chunks over a few queue pairs with fixed paths, more over those with short round trips (RCCL)."""

    chunk: str | None = None
    """Bytes per chunk. Default: "1MB"."""
    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout: with "move" the queue pair in use gets another port. Default: "ignore"."""
    outstanding: int | None = None
    """Maximum chunks in flight. Default: 4."""
    qps: int | None = None
    """Queue pairs per flow. Default: 4."""
    reset_interval: str | None = None
    """Time after which the means restart. Default: "60s"."""
    rtt_weight: float | None = None
    """Weight of a new sample in the moving average; 0: the mean of all samples. Default: 0.0."""
    update_interval: str | None = None
    """Least time between two changes of the weights. Default: "50us"."""
    values: int | None = None
    """Number of entropy values. Default: 65536."""

class CoPrime(Part):
    """PRIME's pseudo-random round robin without its congestion history."""


class CoarseGuided(Part):
    """The first two switches hash within a table that the host's VLAN tag selects."""

    chosen_by: Literal["each-switch", "first-switch"] | None = None
    """Switches that choose within a category. Default: "each-switch"."""

class Conga(Part):
    """Flowlets take the path whose most congested link is least so, as other leaves report it."""

    candidates: int | None = None
    """Consecutive paths that a new flowlet compares, from a random first one; 0: all. Default: 4."""
    flowlet_timeout: str | None = None
    """A pause longer than this ends a flowlet. Default: "100us"."""

class Conweave(Part):
    """Leaves move running flows off slow paths and put their packets back into order."""


class Drill(Part):
    """The shortest local queue of some random next hops and the best remembered."""

    d: int | None = None
    """Next hops drawn at random (all different). Default: 2."""
    m: int | None = None
    """Next hops remembered from the last decision. Default: 1."""

class Ecmp(Part):
    """Hash of flow and tag, with a seed per switch."""

    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout on the flow's path. Default: "ignore"."""

class EvIndex(Part):
    """This tier's part of the multi-part entropy value names the uplink."""

    remap: Literal["mod", "skip", "hash", "static"] | None = None
    """Meaning of an index if uplinks have failed. Default: "mod"."""

class Flicr(Part):
    """One path at a time, drawn by weight, left when a round trip was congested."""

    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout within the grace: none, or another path as after it. Default: "ignore"."""
    weights: Literal["uniform", "latency", "propagation"] | None = None
    """Weights of the paths in draws. Default: "latency"."""

class Flowbender(Part):
    """A flow changes its tag when too many ACKs of a round trip were marked (or late)."""

    chunk: str | None = None
    """Bytes of a chunk, at chunk granularity. Default: "1MB"."""
    first_epoch: Literal["first-ack", "round-trip"] | None = None
    """End of a flow's first epoch, at packet granularity. Default: "first-ack"."""
    granularity: Literal["packet", "chunk"] | None = None
    """Unit of decisions: packets, or chunks as in Hopper's testbed, where a chunk that takes longer than `rtt_threshold` times its ideal changes the tag of the next one. Default: "packet"."""
    n: int | None = None
    """Consecutive congested epochs that change the tag, at packet granularity. Default: 1."""
    outstanding: int | None = None
    """Maximum chunks in flight, at chunk granularity. Default: 1."""
    range: int | None = None
    """Number of values of the tag, with `value = "next"` or `"random"`; otherwise of a flow's first value. Default: 8."""
    rtt_threshold: float | None = None
    """Round trip above which an ACK counts as congested in variant rtt, in base round trips. Default: 2.5."""
    t: float | None = None
    """Share of congested ACKs above which an epoch is congested, at packet granularity. Default: 0.05."""
    value: Literal["unbounded", "next", "random"] | None = None
    """Next value of the tag. Default: "unbounded"."""
    variant: Literal["ecn", "rtt"] | None = None
    """Congestion signal, at packet granularity. Default: "ecn"."""

class Flowlet(Part):
    """A new random path after every pause of the sender."""

    entropy_values: int | None = None
    """Number of entropy values. Default: 65536."""
    gap: float | None = None
    """Pause after which a flow may change its path, in base round trips. Default: 0.5."""

class Hf2t(Part):
    """Holds a few packets back so that flowlet switches see more flowlets."""

    alpha_max: float | None = None
    """Upper bound of alpha. Default: 4.0."""
    alpha_min: float | None = None
    """Lower bound of alpha. Default: 0.25."""
    dmax: float | None = None
    """Maximum delay of one packet, in flowlet timeouts; 1: unlimited. Default: 1.0."""
    dynamic: bool | None = None
    """Scales alpha with the length of the flowlet; otherwise alpha is 1 ("No Dynamic T"). Default: true."""
    fixed_threshold: str | None = None
    """T with `threshold = "fixed"`. Default: "6us"."""
    flowlet_timeout: str | None = None
    """The switches' flowlet timeout F; auto: that of the simulated switches, on a real network one base round trip of the flow. Default: "auto"."""
    gaps: Literal["wire", "eligible"] | None = None
    """Definition of a gap. Default: "wire"."""
    l_target: str | None = None
    """Target flowlet length. Default: "64kB"."""
    max_added_delay: Literal["never"] | float | None = None
    """Maximum total delay of a flow: this share of its ideal completion time and one flowlet timeout. Default: "never"."""
    max_held: Literal["never"] | float | None = None
    """Maximum share of a host's packets that are held, over the last `refresh` intervals. Default: "never"."""
    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout on the flow's tag; with a flowlet switch the pause alone lets it move. Default: "ignore"."""
    p: float | None = None
    """Share of the gaps that reach T. Default: 0.01."""
    refresh: str | None = None
    """Interval at which T is recomputed and older gaps lose half of their weight. Default: "1ms"."""
    threshold: Literal["quantile", "fixed"] | None = None
    """Source of T. Default: "quantile"."""

class Hopper(Part):
    """Moves a flow to a better path that it has probed when its round trips grow."""

    alpha: float | None = None
    """Weight of the last sample in the moving average; 1: the last sample alone. Default: 1.0."""
    candidates: Literal["ttl", "epoch"] | None = None
    """Probe results that count. Default: "epoch"."""
    chunk: str | None = None
    """Bytes of a chunk, at chunk granularity. Default: "1MB"."""
    consume_on_no_result: bool | None = None
    """Uses up an epoch's chance to move even without a result (Algorithm 1, literally). Default: false."""
    delay: Literal["hold", "continue"] | None = None
    """Behaviour until the move takes effect, at packet granularity. Default: "hold"."""
    delta_rtt: float | None = None
    """Maximum round trip of a new path, as a share of the flow's round trip. Default: 0.8."""
    epoch: float | None = None
    """Length of an epoch in round trips. Default: 1.0."""
    epoch_rtt: Literal["measured", "base"] | None = None
    """Round trip that defines an epoch. Default: "measured"."""
    granularity: Literal["packet", "chunk"] | None = None
    """Unit of decisions: packets, or chunks as in the testbed. Default: "packet"."""
    hold_beyond: Literal["auto"] | int | None = None
    """With `delay = "hold"`, at packet granularity: packets that may be in flight without waiting, including the new path's first ones; auto: as many as the receiver accepts early (`transport.ooo_window` with `irn-extended`, else none). Default: "auto"."""
    kappa: float | None = None
    """Delay of the move, as a multiple of the difference of the round trips; at chunk granularity it waits for the next chunk. Default: 1.0."""
    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout on the flow's path. Default: "ignore"."""
    outstanding: int | None = None
    """Maximum chunks in flight, at chunk granularity. Default: 1."""
    ports: Literal["random", "profiled"] | None = None
    """Entropy values of a flow. Default: "random"."""
    probe: Literal["packet", "data"] | None = None
    """What measures another path. Default: "packet"."""
    probe_on_ecn: bool | None = None
    """Probes as soon as an ACK of the path is marked as well, before round trips reach `th_probe`. Default: false."""
    probe_size: str | None = None
    """Payload of a probe, at most a full packet's; auto: 64 B, or at chunk granularity up to 10 kB as fits a packet. Default: "auto"."""
    probe_wait: bool | None = None
    """At chunk granularity: a flow that may move begins no chunk before its probes have replies. Default: true."""
    probes: int | None = None
    """Paths probed at a time. Default: 2."""
    th_cong: float | None = None
    """Average round trip above which the flow may move. Default: 2.5."""
    th_probe: float | None = None
    """Average round trip above which paths are probed. Default: 1.5."""
    ttl_probe: float | None = None
    """Age at which a probe result expires, in base round trips. Default: 4.0."""
    values: int | None = None
    """Number of entropy values with `ports = "random"`. Default: 65536."""

class Letflow(Part):
    """A random path for every flowlet, chosen at the sender's leaf."""

    flowlet_timeout: str | None = None
    """A pause longer than this ends a flowlet. Default: "100us"."""

class Minimal(Part):
    """Static minimal routing on a Dragonfly or a Slim Fly."""


class Mixed(Part):
    """Recycles entropy values that came back clean, else picks by bitmap."""

    ecn: int | None = None
    """Penalty of an ECN mark, up to 15. Default: 1."""
    nack: int | None = None
    """Penalty of a NACK, up to 15. Default: 4."""
    paths: int | None = None
    """Number of paths of the bitmap, a power of two. Default: 64."""
    queue: int | str | None = None
    """Capacity of the queue of entropy values, in packets (rounded up to a power of two). Default: "2bdp"."""
    timeout: int | None = None
    """Penalty of a timeout, up to 15. Default: 15."""

class MpRdma(Part):
    """Each acknowledgement sends a packet on its own path, unless that is late or congested."""

    entropy_values: int | None = None
    """Number of entropy values. Default: 65536."""
    explore: float | None = None
    """Share of the packets that explore a random path. Default: 0.01."""
    late: int | None = None
    """Packets by which an acknowledged packet may lag behind the newest before its path is left. Default: 32."""

class Mrc(Part):
    """MRC: rotates over active entropy values, skips congested ones for a turn, withdraws broken ones until probes succeed."""

    active: int | None = None
    """Values in the rotation of a flow; a multiple of the planes, at most what exists. Default: 128."""
    backup: int | None = None
    """Further values that replace withdrawn ones of their plane; a multiple of the planes. Default: 32."""
    explicit: Sequence[str] | None = None
    """EXPLICIT profile: the entropy values, such as "0x00900000"; empty: none. Default: []."""
    fields: Sequence[str] | None = None
    """GENERATED profile: a field per tier as "width init mask min..max", such as "8 0 0x1f 0..23"; empty: AUTO, all paths. Default: []."""
    format: list[int] | None = None
    """Bits of the fields of an entropy value, the first tier (most significant) first; empty: as many as each tier's uplinks need. Default: []."""
    min_active: Literal["auto"] | int | None = None
    """Values that are never withdrawn; auto: a quarter of the active ones. Default: "auto"."""
    planes: Literal["rotation", "equal"] | None = None
    """Order in which the planes take turns. Default: "rotation"."""
    probe_interval: float | None = None
    """Interval of the probes of withdrawn values, in base round trips: one value per flow, in turn. Default: 10.0."""
    probe_successes: int | None = None
    """Probes in a row with replies after which a withdrawn value returns. Default: 3."""
    probe_timeout: str | None = None
    """Least time after which a probe counts as lost; at least two base round trips. Default: "100us"."""
    reshuffle: int | None = None
    """Rotations after which the order is shuffled again; 0: never. Default: 16."""
    restores_all: bool | None = None
    """A packet makes all skipped values that it passes good again, not only the first. Default: false."""
    skip: str | None = None
    """Time for which a congested value is skipped: one turn, the rest of the rotation, or a time. Default: "once"."""
    values: Literal["structured", "hashed", "guided"] | None = None
    """Kind of the entropy values; switches must read them so. Default: "structured"."""

class Ops(Part):
    """A fresh entropy value for every packet, blind to congestion."""

    entropy_values: int | None = None
    """Number of entropy values; round-robin-masked rounds it up to a power of two. Default: 65536."""
    mode: Literal["random", "round-robin-masked"] | None = None
    """Selection of the next entropy value. Default: "random"."""

class Plb(Part):
    """A flow moves to a random path after congested round trips."""

    entropy_values: int | None = None
    """Number of entropy values. Default: 65536."""
    k: float | None = None
    """Share of marked bytes above which a round trip is congested (Linux: 0.5). Default: 0.25."""
    min_wait: str | None = None
    """Minimum time between two moves: one retransmission timeout. Default: "100us"."""
    n: int | None = None
    """Congested round trips in a row that are tolerated; one more moves the flow. Default: 1."""
    timeout_moves: bool | None = None
    """Moves the flow at once on a timeout. Default: true."""

class Prime(Part):
    """Pseudo-random round robin over all paths, passing over paths with recent congestion."""

    csig_least: Literal["auto"] | float | None = None
    """With `signal = "csig"`: least load of a link that penalises its paths, a delay in base round trips (a BDP at the flow's rate) or a utilisation, above 1 none; auto: 1, which no full queue of a BDP before a healthy link exceeds, or a utilisation of 0.98. Default: "auto"."""
    decay: int | None = None
    """Decay of every penalty per packet. Default: 1."""
    decay_on: Literal["sent", "generated", "drained"] | None = None
    """Event that counts as a packet for the decay. Default: "sent"."""
    history: Literal["path", "part"] | None = None
    """What a penalty belongs to. Default: "path"."""
    history_after: int | str | None = None
    """Packets sent before the history takes effect. Default: "1bdp"."""
    nack_on_marked: Literal["replace", "ignore"] | None = None
    """Effect of a NACK on a path that a mark has penalised. Default: "replace"."""
    p_ecn: Literal["auto"] | int | str | None = None
    """Penalty of a path after an ECN mark, in packets (or a share of the BDP, or passes over the paths). Default: "0.25bdp"."""
    p_ecn_max: int | str | None = None
    """Limit of p_ecn = "auto". Default: "16passes"."""
    p_ecn_settle: int | str | None = None
    """Least packets between two changes of a path's p_ecn = "auto": marks that come sooner are of earlier packets. Default: "1bdp"."""
    p_nack: int | str | None = None
    """Penalty of a path after a NACK, in packets (or a share of the BDP, or passes over the paths). Default: "1bdp"."""
    p_timeout: Literal["auto"] | int | str | None = None
    """Penalty of a path after a timeout, at least that of the others; auto: p_nack, on the wire the packets sent in ten times wire.least_timeout. Default: "auto"."""
    scope: Literal["flow", "destination", "host"] | None = None
    """Scope of one round robin and one congestion history. Default: "flow"."""
    signal: Literal["ecn", "csig"] | None = None
    """Sign of congestion. Default: "ecn"."""
    values: Literal["structured", "guided"] | None = None
    """Paths that entropy values name; switches must read them so. Default: "structured"."""

class QpSpray(Part):
    """Chunks in turn over a few queue pairs with fixed paths (NCCL)."""

    chunk: str | None = None
    """Bytes per chunk. Default: "1MB"."""
    on_timeout: Literal["ignore", "move"] | None = None
    """Effect of a retransmission timeout: with "move" the queue pair in use gets another port. Default: "ignore"."""
    outstanding: int | None = None
    """Maximum chunks in flight. Default: 4."""
    qps: int | None = None
    """Queue pairs per flow. Default: 4."""
    values: int | None = None
    """Number of entropy values. Default: 65536."""

class Random(Part):
    """A uniformly random next hop for every packet."""


class Reps(Part):
    """Reuses entropy values whose packets came back unmarked."""

    buffer: int | None = None
    """Entries of the circular buffer. Default: 8."""
    entropy_values: int | None = None
    """Number of entropy values. Default: 65536."""
    freeze_below: float | None = None
    """Without trimming: a timeout is not attributed to congestion while no round trip exceeds this, in base round trips. Default: 1.65."""
    usable_lifetime: int | None = None
    """Uses of a value that returned unmarked; the packets per ACK where ACKs are coalesced. Default: 1."""
    variant: Literal["circular", "legacy"] | None = None
    """Version of REPS. Default: "circular"."""
    with_trimming: bool | None = None
    """Set if switches trim: then every timeout freezes, otherwise one without signs of congestion. Default: true."""

class Rr(Part):
    """The next hops in turn, packet by packet."""

    entropy_values: int | None = None
    """Number of entropy values. Default: 65536."""

class SourceGuided(Part):
    """The first two switches of a Dragonfly or a Slim Fly forward by the entropy value."""

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """Distribution of the entropy values of hashing host schemes over the paths of a pair. Default: "uniform"."""

class SpritzCoarse(Part):
    """Scout's feedback over categories of paths, tagged by VLAN."""

    block_interval: str | None = None
    """Interval of the timer that restores categories blocked by timeouts. Default: "1ms"."""
    buffer_size: int | None = None
    """Good categories that are kept. Default: 8."""
    categories: Literal["minimal", "types"] | None = None
    """Granularity of the categories. Default: "types"."""
    ecn_rate: float | None = None
    """Share of marked ACKs above which the fastest category is preferred. Default: 0.9."""
    ecn_threshold: int | None = None
    """Marks above which a category is no longer good. Default: 8."""
    entropy: Literal["packet", "flow"] | None = None
    """Change of the entropy that the switch hashes. Default: "packet"."""
    explore_threshold: int | None = None
    """Packets after which one explores: the next category is drawn by weight. Default: 44."""
    weights: Literal["uniform", "latency", "propagation"] | None = None
    """Weights of the paths in draws; a category weighs as much as its paths. Default: "latency"."""

class SpritzScout(Part):
    """Explores paths by weight and holds to the fastest that is good."""

    block_interval: str | None = None
    """Interval of the timer that restores all blocked paths. Default: "1ms"."""
    block_scope: Literal["endpoint", "flow"] | None = None
    """Flows for which a timeout blocks a path. Default: "endpoint"."""
    buffer: Literal["flow", "pair"] | None = None
    """Owner of a buffer of good paths. Default: "flow"."""
    buffer_size: int | None = None
    """Good paths that are kept. Default: 8."""
    ecn_rate: float | None = None
    """Share of marked ACKs above which the minimal path is preferred. Default: 0.9."""
    ecn_threshold: int | None = None
    """Marks above which a path is no longer good. Default: 8."""
    explore_threshold: int | None = None
    """Packets after which one explores: the next is drawn by weight. Default: 44."""
    max_paths: int | None = None
    """Maximum paths kept per destination; 0: all. Default: 0."""
    reading: Literal["paper", "artifact"] | None = None
    """Source of what counts towards an exploration, and of what blocks a path. Default: "paper"."""
    small_flow: str | None = None
    """Flows below this size draw the minimal path with weight 100 and all others with 1. Default: "0B"."""
    subset: Literal["fastest", "random"] | None = None
    """Selection of the paths kept. Default: "fastest"."""
    weights: Literal["uniform", "latency", "propagation"] | None = None
    """Weights of the paths in draws. Default: "latency"."""

class SpritzSpray(Part):
    """Recycles paths that came back unmarked, else draws them by weight."""

    acknowledged: Literal["own", "covered"] | None = None
    """Packets whose paths a clean acknowledgement returns to the good ones. Default: "own"."""
    block_interval: str | None = None
    """Interval of the timer that restores all blocked paths. Default: "1ms"."""
    block_scope: Literal["endpoint", "flow"] | None = None
    """Flows for which a timeout blocks a path. Default: "endpoint"."""
    buffer: Literal["flow", "pair"] | None = None
    """Owner of a buffer of good paths. Default: "flow"."""
    buffer_size: int | None = None
    """Good paths that are kept. Default: 8."""
    ecn_rate: float | None = None
    """Share of marked ACKs above which the minimal path is preferred. Default: 0.9."""
    explore_threshold: int | None = None
    """Packets after which one explores: the next is drawn by weight. Default: 44."""
    max_paths: int | None = None
    """Maximum paths kept per destination; 0: all. Default: 0."""
    reading: Literal["paper", "artifact"] | None = None
    """Source of what counts towards an exploration, and of what blocks a path. Default: "paper"."""
    small_flow: str | None = None
    """Flows below this size draw the minimal path with weight 100 and all others with 1. Default: "0B"."""
    subset: Literal["fastest", "random"] | None = None
    """Selection of the paths kept. Default: "fastest"."""
    weights: Literal["uniform", "latency", "propagation"] | None = None
    """Weights of the paths in draws. Default: "latency"."""

class Ugal(Part):
    """The minimal path, or a random Valiant path with a shorter queue."""

    decide: Literal["source", "every-switch"] | None = None
    """Switches that may divert a packet. Default: "source"."""
    first_hop: Literal["port", "switch"] | None = None
    """Draw of the first switch of a Dragonfly for the Valiant path. Default: "port"."""
    knowledge: Literal["local", "global"] | None = None
    """Queues that the switch can read. Default: "local"."""
    snapshot_interval: str | None = None
    """Time between two snapshots of all queues for `global`; a snapshot takes effect one interval later. Default: "auto"."""

class Valiant(Part):
    """Over a random intermediate group (Dragonfly) or switch (Slim Fly), then minimal."""

    first_hop: Literal["port", "switch"] | None = None
    """Draw of the first switch of a Dragonfly for a packet that leaves its group. Default: "port"."""

class LoadBalancer(Part):
    """A pair of schemes by name, or both sides, with the parameters of any."""

    ar: Ar | None = None
    """adaptive routing: the least local queue of all next hops."""
    bitmap: Bitmap | None = None
    """masked round robin that passes over paths with a penalty count (STrack-like)."""
    braid: Braid | None = None
    """deterministic shares of paths, learnt from marks relative to the flow's own; one path at a time where order matters."""
    cast: Cast | None = None
    """chunks over a few queue pairs with fixed paths, more over those with short round trips (RCCL)."""
    co_prime: CoPrime | None = None
    """PRIME's pseudo-random round robin without its congestion history."""
    coarse_guided: CoarseGuided | None = None
    """the first two switches hash within a table that the host's VLAN tag selects."""
    conga: Conga | None = None
    """flowlets take the path whose most congested link is least so, as other leaves report it."""
    conweave: Conweave | None = None
    """leaves move running flows off slow paths and put their packets back into order."""
    drill: Drill | None = None
    """the shortest local queue of some random next hops and the best remembered."""
    ecmp: Ecmp | None = None
    """hash of flow and tag, with a seed per switch."""
    ev_index: EvIndex | None = None
    """this tier's part of the multi-part entropy value names the uplink."""
    flicr: Flicr | None = None
    """one path at a time, drawn by weight, left when a round trip was congested."""
    flowbender: Flowbender | None = None
    """a flow changes its tag when too many ACKs of a round trip were marked (or late)."""
    flowlet: Flowlet | None = None
    """a new random path after every pause of the sender."""
    hf2t: Hf2t | None = None
    """holds a few packets back so that flowlet switches see more flowlets."""
    hopper: Hopper | None = None
    """moves a flow to a better path that it has probed when its round trips grow."""
    host: Literal["ecmp", "ops", "rr", "reps", "bitmap", "mixed", "plb", "flowbender", "flowlet", "co-prime", "prime", "hopper", "hf2t", "qp-spray", "flicr", "mrc", "mp-rdma", "braid", "cast", "spritz-scout", "spritz-spray", "spritz-coarse"] | None = None
    """A host-side scheme."""
    letflow: Letflow | None = None
    """a random path for every flowlet, chosen at the sender's leaf."""
    minimal: Minimal | None = None
    """static minimal routing on a Dragonfly or a Slim Fly."""
    mixed: Mixed | None = None
    """recycles entropy values that came back clean, else picks by bitmap."""
    mp_rdma: MpRdma | None = None
    """each acknowledgement sends a packet on its own path, unless that is late or congested."""
    mrc: Mrc | None = None
    """MRC: rotates over active entropy values, skips congested ones for a turn, withdraws broken ones until probes succeed."""
    ops: Ops | None = None
    """a fresh entropy value for every packet, blind to congestion."""
    plb: Plb | None = None
    """a flow moves to a random path after congested round trips."""
    prime: Prime | None = None
    """pseudo-random round robin over all paths, passing over paths with recent congestion."""
    qp_spray: QpSpray | None = None
    """chunks in turn over a few queue pairs with fixed paths (NCCL)."""
    random: Random | None = None
    """a uniformly random next hop for every packet."""
    reps: Reps | None = None
    """reuses entropy values whose packets came back unmarked."""
    rr: Rr | None = None
    """the next hops in turn, packet by packet."""
    scheme: str | None = None
    """A pair by name, or `host+switch`."""
    source_guided: SourceGuided | None = None
    """the first two switches of a Dragonfly or a Slim Fly forward by the entropy value."""
    spritz_coarse: SpritzCoarse | None = None
    """Scout's feedback over categories of paths, tagged by VLAN."""
    spritz_scout: SpritzScout | None = None
    """explores paths by weight and holds to the fastest that is good."""
    spritz_spray: SpritzSpray | None = None
    """recycles paths that came back unmarked, else draws them by weight."""
    switch: Literal["ecmp", "ev-index", "ar", "drill", "letflow", "conga", "conweave", "rr", "random", "source-guided", "coarse-guided", "minimal", "valiant", "ugal"] | None = None
    """A switch-side scheme."""
    ugal: Ugal | None = None
    """the minimal path, or a random Valiant path with a shorter queue."""
    valiant: Valiant | None = None
    """over a random intermediate group (Dragonfly) or switch (Slim Fly), then minimal."""
