//! Words of the field that are no names here, and the names that they lead to.

/// A word that people search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synonym {
    /// The word and its other forms, in lower case with `-`.
    pub words: &'static [&'static str],
    /// What it is here.
    pub meaning: &'static str,
    /// Names that `explain` finds.
    pub see: &'static [&'static str],
}

/// All synonyms.
pub const SYNONYMS: &[Synonym] = &[
    Synonym {
        words: &["allreduce", "all-reduce", "allgather", "reduce-scatter", "ring"],
        meaning: "A workload of kind `collective`; its key `algorithm` selects the schedule.",
        see: &["collective", "workload.algorithm", "training-rounds", "nccl"],
    },
    Synonym {
        words: &["data-parallel", "tensor-parallel", "pipeline-parallel", "megatron", "llm", "training"],
        meaning: "A workload of kind `training-step`: data, tensor and pipeline parallelism by a few numbers.",
        see: &["training-step", "training-rounds", "collective"],
    },
    Synonym {
        words: &["moe", "mixture-of-experts", "expert-parallel", "experts"],
        meaning: "A workload of kind `collective` with `algorithm = \"expert-all-to-all\"`; `skew` makes experts popular.",
        see: &["collective", "workload.algorithm", "workload.skew"],
    },
    Synonym {
        words: &["alltoall", "a2a", "shuffle"],
        meaning: "A workload of kind `all-to-all`, or a `collective` with that algorithm.",
        see: &["all-to-all", "collective"],
    },
    Synonym {
        words: &["oversubscription", "oversubscribed", "blocking", "taper"],
        meaning: "Capacity from hosts to a leaf over capacity of its uplinks. A fat tree has a key for it; in a leaf-spine it follows from `hosts_per_leaf`, `spines` and the rates. `anabranch topology --hosts N --tiers N --oversubscription X` proposes what can be built.",
        see: &["topology.oversubscription", "topology.hosts_per_leaf", "topology.spines", "workload.load_reference"],
    },
    Synonym {
        words: &["incast", "fan-in", "many-to-one"],
        meaning: "A workload of kind `incast`: many senders, few receivers.",
        see: &["incast", "testbed-incast"],
    },
    Synonym {
        words: &["bdp", "bandwidth-delay-product", "rtt", "base-rtt"],
        meaning: "Bandwidth-delay product: rate of a host's link times base RTT. `anabranch topology SCENARIO` prints both. Sizes can be given in it, for example window = \"1.5bdp\".",
        see: &["transport.window", "fabric.ecn_kmin", "fabric.ecn_kmax"],
    },
    Synonym {
        words: &["fct", "jct", "flow-completion-time", "completion-time", "latency", "makespan"],
        meaning: "Completion time of flows. `fct_kind` states what feeds the statistics: the last packet received (rx) or the last acknowledgement (ack). `completion` is the time of the whole workload.",
        see: &["fct_mean", "fct_p99", "slowdown_p99", "completion", "fct_rx_ps", "fct_ack_ps", "fct_kind"],
    },
    Synonym {
        words: &["spray", "spraying", "packet-spraying", "multipath"],
        meaning: "Sending the packets of a flow over many paths: a load balancer.",
        see: &["ops", "rps", "rr", "prime", "reps", "spritz-spray", "qp-spray"],
    },
    Synonym {
        words: &["load", "offered-load", "utilisation", "utilization"],
        meaning: "Payload offered per time, as a share of the capacity: a key of workloads of kind `poisson`. Links report their utilisation.",
        see: &["workload.load", "workload.load_reference", "utilisation", "offered_load"],
    },
    Synonym {
        words: &["nvlink", "scale-up", "pxn", "rail", "gpu", "nic", "server"],
        meaning: "Servers with several GPUs and NICs, and a scale-up network between the GPUs: the section [servers]. NIC i of every server is on rail i.",
        see: &["servers", "servers.cross_rail", "servers.scale_up_rate", "rail-optimised", "rail-only", "rail-moe"],
    },
    Synonym {
        words: &["plane", "planes", "multi-plane", "multiplane", "dual-plane", "nic-port"],
        meaning: "One of several fabrics without a common switch; every host has a port in each, and a flow uses all of them.",
        see: &["topology.planes", "fabric.nic_ports", "fault.port_detect", "mrc"],
    },
    Synonym {
        words: &["stev", "structured-entropy-value", "srv6", "ev-profile", "multipath-reliable-connection"],
        meaning: "MRC: entropy values with a field per tier, kept in profiles; congested ones are skipped for a turn, broken ones withdrawn and probed.",
        see: &["mrc", "ev-index", "load_balancer.mrc.format", "uet-1.0.3", "fault.kind"],
    },
    Synonym {
        words: &[
            "path-deny",
            "path-allow",
            "link-down",
            "link-up",
            "link-flap",
            "link-degrade",
            "switch-down",
            "port-down",
        ],
        meaning: "Kinds of `[[fault]]`: links and switches that fail and return, slow down, or are denied to hosts.",
        see: &["fault.kind", "fault.links", "fault.detect_after"],
    },
    Synonym {
        words: &["by-ev", "free-port"],
        meaning: "Which port of a NIC with planes a packet takes: the one that its entropy value names, or the next free one.",
        see: &["fabric.nic_ports", "topology.planes"],
    },
    Synonym {
        words: &["stalled", "stall"],
        meaning: "How a run ends whose open flows can never finish: exit code 4, with the results until then.",
        see: &["run.stall_after", "fault.detect_after"],
    },
    Synonym {
        words: &["rccc", "receiver-credit", "credit", "credits"],
        meaning: "Congestion control by the receiver: it grants its senders what its ports can take.",
        see: &["transport.congestion_control", "nscc", "mark_last_hop_trims"],
    },
    Synonym {
        words: &["hosts", "nodes", "endpoints", "scale"],
        meaning: "The number of hosts follows from the topology: radix and tiers of a fat tree, leaves times hosts_per_leaf of a leaf-spine. `anabranch topology --hosts N --tiers N` proposes keys.",
        see: &["topology.radix", "topology.hosts_per_leaf", "topology.leaves", "workload.ranks", "workload.hosts"],
    },
    Synonym {
        words: &["loss", "drop", "drops", "packet-loss"],
        meaning: "Lost packets: full queues without trimming or PFC, and faults of kind `packet-loss`.",
        see: &["dropped", "fault.loss", "fabric.trimming"],
    },
    Synonym {
        words: &["failure", "failures", "link-failure", "broken-link"],
        meaning: "Links and switches that fail: `[[fault]]`.",
        see: &["fault", "fault.kind", "fault.detect_after"],
    },
    Synonym {
        words: &["reordering", "ooo", "out-of-order"],
        meaning: "Packets that overtake each other.",
        see: &["out_of_order_share", "out_of_order_packets", "max_reorder_bytes"],
    },
    Synonym {
        words: &["ecn", "ecn-mark", "ecn-marks", "mark", "marks", "marking"],
        meaning: "Explicit congestion notification: a port marks packets when its queue is long, and the receiver tells the sender.",
        see: &["fabric.ecn_kmin", "fabric.ecn_kmax", "fabric.marking", "ecn_marked", "ecn_marks"],
    },
    Synonym {
        words: &[
            "ideal",
            "ideal-time",
            "ideals",
            "times-the-ideal",
            "slowdown",
            "fct-slowdown",
            "mean-slowdown",
            "over-ideal",
        ],
        meaning: "Ideal: the completion time of the same flow alone on the network, over all its paths at once. Slowdown: the completion time over it, 1 at best.",
        see: &["slowdown_p99", "fct_ratio_max", "ideal_rx_ps", "fabric.ideal_fct"],
    },
    Synonym {
        words: &["entropy-value", "ev", "entropy", "tag"],
        meaning: "The part of a packet's tag that switches hash to choose a next hop. A host scheme writes it.",
        see: &["ev-index", "prime", "reps", "load_balancer.reps.entropy_values"],
    },
    Synonym {
        words: &["queue-pair", "qp", "connection"],
        meaning: "Send and receive queue of one RDMA connection; switches hash its UDP source port.",
        see: &["qp-spray", "cast", "max_queue_pairs", "transport"],
    },
    Synonym {
        words: &["percentile", "quantile", "median", "p50", "p95", "p99", "99th-percentile", "mean", "max"],
        meaning: "Statistics over flows or ports: at most so many per cent are at or below a percentile; the median is the 50th. A 99th percentile of fewer than 300 flows is little more than the slowest one.",
        see: &["slowdown_p99", "slowdown_p50", "fct_mean", "slowdown_max"],
    },
    Synonym {
        words: &["asymmetric", "asymmetry", "degraded", "slow-cable", "slow-cables"],
        meaning: "A fabric whose paths differ: cables that are slow, lossy or down, or rates of single links.",
        see: &["fault", "fault.rate", "topology.link", "first-run"],
    },
    Synonym {
        words: &[
            "95-%-confidence-interval",
            "confidence-interval",
            "95-%-ci",
            "95-%-interval",
            "ci",
            "interval",
            "half",
        ],
        meaning: "Range that holds the mean over all seeds in 95 of 100 experiments, by Student's t over the seeds that were run.",
        see: &["ci95_low", "ci95_high", "compare.seeds"],
    },
    Synonym {
        words: &["change", "better", "worse", "significant", "n.s.", "p-value", "verdict"],
        meaning: "Difference of a scheme to the baseline on the same seeds, tested: coloured or starred where chance explains it in less than 5 of 100 experiments, after Holm's correction.",
        see: &["significant", "p_holm", "ratio_to_baseline", "compare.baseline"],
    },
    Synonym {
        words: &["group", "groups", "letter", "letters"],
        meaning: "Letters in a table of schemes: those that share one do not differ significantly. In jobs.csv: a group of ranks.",
        see: &["group", "p_holm"],
    },
    Synonym {
        words: &["over-bound", "bound", "over-reference", "over-bound-or-reference"],
        meaning: "`--bound` computes what no load balancer can beat on this network (bound), and times on a fabric without contention (reference); columns show the mean over it.",
        see: &["over_bound", "over_reference"],
    },
    Synonym {
        words: &[
            "bytes-over-even-split",
            "even-split",
            "share-of-flows",
            "share-of-flows-above",
            "share-of-flows-at-or-below",
            "share-of-flows-above-(tail)",
        ],
        meaning: "Bytes of a link over the mean of the links of its tier and direction, 1 if the load is even. Shares of flows are cumulative distributions: of all flows that count, so many are at or below a value, or above it.",
        see: &["bytes", "utilisation", "slowdown_p99"],
    },
    Synonym {
        words: &[
            "port",
            "links",
            "link",
            "tier",
            "links-of-a-switch",
            "links-busiest-first",
            "sending-switches",
            "switch-to-host",
            "host-to-switch",
            "up",
            "down",
        ],
        meaning: "A link is directed: from one node to another. Its port is the queue at its sender. `tier0-1` joins leaves and spines, up is towards the spines.",
        see: &["utilisation", "queue_mean_bytes", "topology.link_rate", "tier"],
    },
    Synonym {
        words: &[
            "waiting-time",
            "waiting",
            "queue-mean",
            "waiting-data-per-port",
            "mean-of-ports",
            "max-(worst-port)",
            "largest-switch-queue",
            "queue",
        ],
        meaning: "Time or bytes of data packets in queues of switch ports. By Little's law the waiting time of all packets is the integral of the queue.",
        see: &["queue_mean_bytes", "queue_p99_bytes", "queue_max_bytes", "max_queue"],
    },
    Synonym {
        words: &[
            "conserved",
            "injected",
            "delivered",
            "in-flight",
            "of",
            "counted",
            "simulated",
            "flows-finished",
            "finished",
        ],
        meaning: "Every packet that was injected is delivered, dropped, trimmed or in flight where the run ended; a run in which that fails ends with an error. Flows that count are the measured ones of the run.",
        see: &["flows.finished", "flows.total", "simulated_s"],
    },
    Synonym {
        words: &["scheme", "load-balancer", "schemes", "per-flow", "path-changes"],
        meaning: "How the packets of a flow are spread over paths: by the host, which writes a tag, and by switches, which choose ports. A path change is a packet with another tag than the one before.",
        see: &["load_balancer", "path_switches", "prime"],
    },
    Synonym {
        words: &[
            "us", "ns", "ps", "\u{b5}s", "ms", "kib", "mib", "kb", "mb", "gb/s", "gbit/s", "mbit/s", "kbit/s",
            "packets", "frames", "unit", "units",
        ],
        meaning: "Units: 1 us is 1,000 ns and 1,000,000 ps; kB and MB are powers of 1,000, KiB and MiB of 1,024; Gb/s counts bits.",
        see: &["fct_mean", "bytes"],
    },
];

/// Returns the synonym of a word in lower case with `-`.
pub fn synonym(word: &str) -> Option<&'static Synonym> {
    SYNONYMS.iter().find(|synonym| synonym.words.contains(&word))
}
