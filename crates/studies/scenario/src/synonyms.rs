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
];

/// Returns the synonym of a word in lower case with `-`.
pub fn synonym(word: &str) -> Option<&'static Synonym> {
    SYNONYMS.iter().find(|synonym| synonym.words.contains(&word))
}
