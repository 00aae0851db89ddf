"""The fabric, faults, measurements, and when a run ends. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from .._part import Part


class PiMarking(Part):
    """The marking rule `pi`."""

    _table: ClassVar[str] = "fabric.pi"
    _keys: ClassVar[dict[str, str]] = {
        "integral": "integral",
        "interval": "interval",
        "proportional": "proportional",
        "reference": "reference",
    }

    integral: float | None = None
    """
    Change of the probability per BDP of distance to the reference and per round trip. Takes a number, from 0
    to 1000. Default from: RFC 9332, appendix A: alpha = 0.1 Tupdate / RTT_max^2. Default: 0.1.
    """

    interval: str | None = None
    """
    Time between samples of the queue; auto: a third of the round trip of a BDP at the link's rate. Takes
    "auto" or a time such as "1us" (ps, ns, us, ms, s), from 1ns to 1s. Default from: RFC 9332, appendix A:
    RTT_max / 3. Default: "auto".
    """

    proportional: float | None = None
    """
    Change of the probability per BDP by which the queue has grown. Takes a number, from 0 to 1000. Default
    from: RFC 9332, appendix A: beta = 0.3 / RTT_max. Default: 0.3.
    """

    reference: str | None = None
    """
    Bytes of the queue in the steady state. Takes a size such as "64KiB" or a multiple of the BDP such as
    "1.5bdp". Default from: ours: the default of ecn_kmin. Default: "0.2bdp".
    """


class Fabric(Part):
    """Switches and NICs: buffers, marking, trimming, classes."""

    _table: ClassVar[str] = "fabric"
    _keys: ClassVar[dict[str, str]] = {
        "buffer_alpha": "buffer_alpha",
        "class_weights": "class_weights",
        "classes": "classes",
        "control_limit": "control_limit",
        "ecn": "ecn",
        "ecn_kmax": "ecn_kmax",
        "ecn_kmin": "ecn_kmin",
        "ecn_mark_at": "ecn_mark_at",
        "ecn_pmax": "ecn_pmax",
        "fct_kind": "fct_kind",
        "flow_keys": "flow_keys",
        "ideal_fct": "ideal_fct",
        "marking": "marking",
        "pfc": "pfc",
        "pfc_alpha": "pfc_alpha",
        "pfc_headroom": "pfc_headroom",
        "pfc_pause": "pfc_pause",
        "pi": "pi",
        "profile": "profile",
        "queue_limit": "queue_limit",
        "recorded": "recorded",
        "reply_paths": "reply_paths",
        "scheduling": "scheduling",
        "shared_buffer": "shared_buffer",
        "slowed_limits": "slowed_limits",
        "trim": "trim",
        "trimmed_class": "trimmed_class",
        "trimming": "trimming",
    }
    _nested: ClassVar[dict[str, str]] = {
        "pi": "PiMarking",
    }

    buffer_alpha: float | None = None
    """
    Maximum of a queue of a shared buffer, as a multiple of the free buffer; further packets are dropped. With
    PFC it has no effect (except for `recorded = true`): ingresses are paused before the buffer is full. Takes
    a number, from 0.000001 to 1000000. Default from: specification 7.2: dynamic threshold, egress alpha 1.
    Default: 1.0.
    """

    class_weights: list[int] | None = None
    """
    Weights of the data classes under `wrr`; empty: equal weights. Takes a list, each a whole number, zero or
    more. Default from: PRIME section IV-A2. Default: [].
    """

    classes: Sequence[str] | None = None
    """
    Names of the data classes, highest priority first. Takes a list, each text. Default from: ours. Default:
    ["data"].
    """

    control_limit: str | None = None
    """
    Maximum bytes of control packets of a port, and of trimmed headers that have no class of their own;
    further ones are dropped. Takes a size such as "64KiB" or a multiple of the BDP such as "1.5bdp". Default
    from: specification 7.7 (htsim): twice the data queue. Default: "2bdp".
    """

    ecn: bool | None = None
    """
    Enables ECN marking by switches. Takes true or false. Default from: PRIME section III-B. Default: true.
    """

    ecn_kmax: str | None = None
    """
    RED: bytes in the queue above which every packet is marked. Takes a size such as "64KiB" or a multiple of
    the BDP such as "1.5bdp". Default from: ours: the paper's value is lost; same share as REPS and Spritz.
    Default: "0.8bdp".
    """

    ecn_kmin: str | None = None
    """
    RED: bytes in the queue above which packets may be marked. Takes a size such as "64KiB" or a multiple of
    the BDP such as "1.5bdp". Default from: ours: the paper's value is lost; same share as REPS and Spritz.
    Default: "0.2bdp".
    """

    ecn_mark_at: Literal["dequeue", "enqueue"] | None = None
    """
    Queue operation at which a packet is marked. Takes one of "dequeue" "enqueue". Default from: PRIME section
    III-B. Default: "dequeue".
    """

    ecn_pmax: float | None = None
    """
    RED: marking probability just below `ecn_kmax`; it grows linearly from zero at `ecn_kmin`. Takes a number,
    from 0 to 1. Default from: specification 7.7 (htsim): linear to 1. Default: 1.0.
    """

    fct_kind: Literal["rx", "ack"] | None = None
    """
    Flow completion time in the statistics. Takes one of "rx" "ack". Default from: PRIME section IV: first
    packet sent to last packet received; specification 1: `ack` in the other profiles. Default: "rx".
    """

    flow_keys: Literal["connection", "stable", "udp-ports"] | None = None
    """
    Identification of flows by switches. Takes one of "connection" "stable" "udp-ports". Default from: NCCL: a
    queue pair per connection; stable: Spritz' artifact, a flow per message; specification 17.1 and 17.5 for
    the recorded model. Default: "connection".
    """

    ideal_fct: Literal["lone-flow", "rtt-and-bytes", "transmission"] | None = None
    """
    Definition of a flow's ideal completion time, the divisor of its slowdown. Takes one of "lone-flow" "rtt-
    and-bytes" "transmission". Default from: specification 1; 17.7 for the recorded model; transmission: ours,
    a reading of PRIME's undefined ideal. Default: "lone-flow".
    """

    marking: Literal["red", "pi"] | None = None
    """
    Rule by which packets are marked. Takes one of "red" "pi". Default from: specification 7.7 (htsim).
    Default: "red".
    """

    pfc: bool | None = None
    """
    Lets a switch pause its upstream neighbours before it would drop (PFC); needs a shared buffer. Takes true
    or false. Default from: specification 7.2. Default: false.
    """

    pfc_alpha: float | None = None
    """
    An ingress (port and class) is paused when it exceeds this multiple of the free buffer. Takes a number,
    from 0.000001 to 1000000. Default from: specification 7.2: ingress alpha 1/16. Default: 0.0625.
    """

    pfc_headroom: str | None = None
    """
    Reserved buffer per ingress and class for packets that arrive after the pause was sent; auto: the maximum,
    which is twice rate times delay of its link, three full packets and a pause frame. Less is refused unless
    `recorded = true`; there auto is a full packet and the frame less. Takes "auto" or a size such as "4MiB"
    (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: ours, so that nothing is dropped; specification 7.2
    and 17.4 for the recorded model. Default: "auto".
    """

    pfc_pause: str | None = None
    """
    Duration of a pause. A finite pause is refreshed by every packet that arrives above the threshold and
    expires by itself, which loses packets and is refused unless `recorded = true`; with "never" it lasts
    until the resume frame. Takes "never" or a time such as "1us" (ps, ns, us, ms, s). Default from: ours: a
    switch refreshes its pauses in time. Default: "never".
    """

    pi: PiMarking | None = None
    """a probability that a controller moves until the queue is at a reference"""

    profile: Literal[
        "uet-lossy",
        "spritz",
        "roce-irn",
        "roce-lossless",
        "conweave-ns3-irn",
        "conweave-ns3-lossless",
    ] | None = None
    """A set of defaults."""

    queue_limit: str | None = None
    """
    Maximum data bytes of a class of a port; a packet that would exceed it is trimmed, or dropped without
    trimming. Takes a size such as "64KiB" or a multiple of the BDP such as "1.5bdp". Default from: PRIME
    section IV: packets get trimmed if the queue exceeds one BDP. Default: "1bdp".
    """

    recorded: bool | None = None
    """
    Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. Wire times are
    truncated to whole nanoseconds. Arrivals precede simultaneous departures. A base round trip is a payload
    out and propagation back. With `flow_keys = "udp-ports"` equal-cost forwarding is MurmurHash3 of the
    ports. Marking counts the bytes beyond the minimum of a queue. One port's headroom is not counted, and the
    egress threshold also applies with PFC. Pause frames have 43 B and are queued. Takes true or false.
    Default from: specification 17.1 to 17.5. Default: false.
    """

    reply_paths: Literal["default", "scheme"] | None = None
    """
    Paths of acknowledgements, and of replies to probes, on Dragonflies and Slim Flies. Takes one of "default"
    "scheme". Default from: ours (specification 8.1): the artifact's replies are minimal; scheme: Spritz §IV.
    Default: "default".
    """

    scheduling: Literal["strict", "wrr"] | None = None
    """
    Scheduling of the data classes of a port and a NIC. Takes one of "strict" "wrr". Default from: PRIME
    section IV-A2. Default: "strict".
    """

    shared_buffer: str | None = None
    """
    Packet memory in bytes shared by the ports of a switch; 0: every port has a `queue_limit` of its own. With
    a shared buffer `queue_limit` has no effect and trimming is off. Takes a size such as "4MiB" (B, kB, KiB,
    MB, MiB, GB, GiB, TB, TiB). Default from: specification 7.2: 9 MiB in the RoCE profiles. Default: "0B".
    """

    slowed_limits: Literal["keep", "scale"] | None = None
    """
    Limits of the queue before a link that a `link-degrade` fault has slowed. Takes one of "keep" "scale".
    Default from: ours: PRIME gives thresholds in the BDP of the topology; scale: htsim. Default: "keep".
    """

    trim: Literal["arrival", "coin"] | None = None
    """
    Packet that is trimmed. Takes one of "arrival" "coin". Default from: specification 7.7: Spritz's prose;
    the coin is htsim's. Default: "arrival".
    """

    trimmed_class: Literal["control"] | float | None = None
    """
    Class of trimmed headers. A share: beside data that waits they have this part of the rate, and precede it
    while they have less; `queue_limit` is their limit too. control: they always precede data, so that enough
    of them starve it. Takes "control" or a number, from 0.001 to 0.5. Default from: UEC 1.0.3: a class with a
    minimum of bandwidth, 25 % recommended, at most 50 %; control: htsim. Default: 0.25.
    """

    trimming: bool | None = None
    """
    Trims a packet that arrives at a full queue to its header. Takes true or false. Default from: PRIME
    section IV. Default: true.
    """


class Servers(Part):
    """Servers: GPUs, NICs and the scale-up network between the GPUs."""

    _table: ClassVar[str] = "servers"
    _keys: ClassVar[dict[str, str]] = {
        "cross_rail": "cross_rail",
        "gpus": "gpus",
        "nics": "nics",
        "scale_up_latency": "scale_up_latency",
        "scale_up_rate": "scale_up_rate",
    }

    cross_rail: Literal["pxn", "network"] | None = None
    """
    Path of messages between GPUs of different servers and rails. Takes one of "pxn" "network". Default from:
    NCCL 2.12: PXN. Default: "pxn".
    """

    gpus: int | None = None
    """
    GPUs of a server. GPU g is in server g / gpus. Takes a whole number, from 1 to 65536. Default from: NVIDIA
    DGX H100 (RA-11333-001). Default: 8.
    """

    nics: int | None = None
    """
    NICs of a server, a divisor of `gpus`. NIC r of server s is host s * nics + r of the topology and is on
    rail r. Takes a whole number, from 1 to 65536. Default from: NVIDIA DGX H100 (RA-11333-001). Default: 8.
    """

    scale_up_latency: str | None = None
    """
    Time from the first byte sent to the first byte received between two GPUs of a server, and of an
    acknowledgement back. Takes a time such as "1us" (ps, ns, us, ms, s), from 0us to 1s. Default from: ours.
    Default: "1us".
    """

    scale_up_rate: str | None = None
    """
    Rate of the port of a GPU to the scale-up network, in each direction. Takes a rate such as "400Gbps" (bps,
    Kbps, Mbps, Gbps, Tbps), from 1Mbps to 1000Tbps. Default from: NVLink 4: 900 GB/s of a GPU in both
    directions together. Default: "3.6Tbps".
    """


class Measure(Part):
    """Optional measurements."""

    _table: ClassVar[str] = "measure"
    _keys: ClassVar[dict[str, str]] = {
        "attribution": "attribution",
        "flow_rows": "flow_rows",
        "occupancy": "occupancy",
        "series_flows": "series_flows",
        "series_interval": "series_interval",
        "series_links": "series_links",
        "series_scheme": "series_scheme",
        "trace_flows": "trace_flows",
        "trace_limit": "trace_limit",
        "uplink_counts": "uplink_counts",
    }

    attribution: Literal["auto"] | bool | None = None
    """
    Attributes each flow's completion time to queues, pauses, timeouts, notices of loss, its sender, its own
    packets and the flight; auto: in simulations of up to 100,000 flows that skip nothing. Takes "auto" or
    true or false. Default from: ours: it takes 1 to 2 % more instructions per packet-hop, and 250 B per flow.
    Default: "auto".
    """

    flow_rows: Literal["all", "without-jobs"] | None = None
    """
    Flows with rows in the results: all, or without-jobs: groups of collectives, all-to-alls and training
    steps are made as they start and forgotten as they end, so that memory does not grow with their number.
    Rows per group, rank and step remain. `check` names jobs that keep rows of their flows: with [servers], a
    split_share, sizes or an order of their own for each group, and GOAL schedules. Simulations only. Takes
    one of "all" "without-jobs". Default from: ours. Default: "all".
    """

    occupancy: bool | None = None
    """
    Records, per port, the time at each number of waiting packets. Takes true or false. Default from: ours.
    Default: false.
    """

    series_flows: Sequence[object] | None = None
    """
    Flows that are sampled, named as in trace_flows. Takes a list, each the number of a flow, "first:10", the
    name of a workload, "NAME:10", or "host3->host9" (names may be patterns). Default from: ours. Default: [].
    """

    series_interval: str | None = None
    """
    Interval of the samples of all time series. Takes a time such as "1us" (ps, ns, us, ms, s). Default from:
    ours. Default: "1us".
    """

    series_links: Sequence[str] | None = None
    """
    Links whose ports are sampled: a cable (leaf0-spine3), one direction of it (leaf0->spine3), a pattern
    (leaf0-*, leaf*->spine3) or a class (host, tier0-1, local, global). Takes a list, each text. Default from:
    ours. Default: [].
    """

    series_scheme: bool | None = None
    """
    Records a time series per load balancer: its flows, and the balance of the uplinks. Takes true or false.
    Default from: ours. Default: false.
    """

    trace_flows: Sequence[object] | None = None
    """
    Flows whose every packet is traced: a number ("17" or 17), the first N of all ("first:10"), those of a
    workload ("web"), the first N of it ("web:10"), or those between hosts ("host3->host9"); names may be
    patterns ("host3->*"). Takes a list, each the number of a flow, "first:10", the name of a workload,
    "NAME:10", or "host3->host9" (names may be patterns). Default from: ours. Default: [].
    """

    trace_limit: int | None = None
    """
    Maximum number of rows of a trace; later rows are omitted with a warning. A row takes about 100 B of
    memory. Takes a whole number, zero or more. Default from: ours. Default: 1000000.
    """

    uplink_counts: bool | None = None
    """
    Counts the packets of each flow on each uplink. Takes true or false. Default from: ours. Default: false.
    """


class RunOptions(Part):
    """End of a run, and flows in the statistics."""

    _table: ClassVar[str] = "run"
    _keys: ClassVar[dict[str, str]] = {
        "memory_limit": "memory_limit",
        "skip": "skip",
        "stall_after": "stall_after",
        "time_limit": "time_limit",
        "trigger_latency": "trigger_latency",
        "until": "until",
        "warmup": "warmup",
    }

    memory_limit: str | None = None
    """
    Maximum estimated memory of a run, checked before it is built; auto: the memory available to a process.
    Results do not depend on it. Takes "auto" or a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB,
    TiB). Default from: ours. Default: "auto".
    """

    skip: Literal["off", "steady"] | None = None
    """
    Skips the steady state: where the rates of all open flows agree over three spans and no start or change is
    due, all flows are shortened by their rates times the same jump. The results are times of flows, about 1 %
    off, without a fingerprint. Simulations only. Takes one of "off" "steady". Default from: ours: skipped
    runs are for estimates, not for results to be quoted. Default: "off".
    """

    stall_after: Literal["never"] | int | None = None
    """
    Timeouts without a received byte after which a run without pending starts, triggers, computations, faults
    or changes of tables ends with status `stalled`; "never": at `time_limit`. Simulations only; real
    transfers end by their own timeouts. Takes "never" or a whole number, zero or more. Default from: ours:
    five doublings of a timeout. Default: 50.
    """

    time_limit: str | None = None
    """
    Maximum simulated time. A run that reaches it ends with status `time-limit` and names the unfinished
    flows. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours: far beyond the ready-made
    scenarios, so that it ends only runs whose flows cannot finish. Default: "1s".
    """

    trigger_latency: str | None = None
    """
    Time for a trigger or a barrier to reach another host. Takes a time such as "1us" (ps, ns, us, ms, s).
    Default from: ours: a link's delay; remote effects must take some time. Default: "1us".
    """

    until: str | None = None
    """
    End condition: all flows done, or a time. Takes "all-flows-done" or a time such as "1us" (ps, ns, us, ms,
    s). Default from: ours. Default: "all-flows-done".
    """

    warmup: str | None = None
    """
    Flows that start within this time of the first flow run, but are not in the statistics. Takes a time such
    as "1us" (ps, ns, us, ms, s). Default from: ours. Default: "0us".
    """


class CompareOptions(Part):
    """Defaults of `anabranch compare` for arguments that are not given."""

    _table: ClassVar[str] = "compare"
    _keys: ClassVar[dict[str, str]] = {
        "baseline": "baseline",
        "schemes": "schemes",
        "seeds": "seeds",
    }

    baseline: str | None = None
    """
    Load balancer that the others are compared with; empty: the first. Takes text, or "" for none. Default
    from: ours.
    """

    schemes: Sequence[str] | None = None
    """Load balancers to compare. Takes a list, each text. Default from: ours. Default: []."""

    seeds: int | None = None
    """
    Number of seeds, counting up from the scenario's. Takes a whole number, zero or more. Default from: ours.
    Default: 1.
    """


class Wire(Part):
    """Settings of real networks only; simulations do not read them."""

    _table: ClassVar[str] = "wire"
    _keys: ClassVar[dict[str, str]] = {
        "authenticate": "authenticate",
        "calibrations": "calibrations",
        "catch_up": "catch_up",
        "checksum": "checksum",
        "chunk": "chunk",
        "chunks_under_way": "chunks_under_way",
        "datapath": "datapath",
        "early_loss": "early_loss",
        "ecn": "ecn",
        "find_labels": "find_labels",
        "give_up": "give_up",
        "idle_timeout": "idle_timeout",
        "key": "key",
        "labels": "labels",
        "least_timeout": "least_timeout",
        "max_buffered_bytes": "max_buffered_bytes",
        "max_peers_per_address": "max_peers_per_address",
        "max_retries": "max_retries",
        "on_timeout": "on_timeout",
        "payload": "payload",
        "probe": "probe",
        "queue_pairs": "queue_pairs",
        "rate": "rate",
        "real_time": "real_time",
        "rtt_floor": "rtt_floor",
        "rtt_window": "rtt_window",
        "run_length": "run_length",
        "trimming": "trimming",
    }

    authenticate: Literal["auto", "off", "control", "all"] | None = None
    """
    What is authenticated by the key: nothing, headers and control packets, or payloads as well; auto: headers
    and control packets where there is a key. The stronger setting of the two peers applies. Takes one of
    "auto" "off" "control" "all". Default from: ours. Default: "auto".
    """

    calibrations: int | None = None
    """
    Full packets that measure the base round trip of a peer when it connects. Takes a whole number, from 1 to
    1000. Default from: ours. Default: 16.
    """

    catch_up: str | None = None
    """
    How much time the pacer makes up for when the process had to wait for its turn. Takes a time such as "1us"
    (ps, ns, us, ms, s), from 0us to 86400s. Default from: ours: what other processes take without a real-time
    class. Default: "1ms".
    """

    checksum: Literal["auto"] | bool | None = None
    """
    Whether the payload of each packet carries a CRC32C, as each header does; a packet that does not fit it
    counts as lost. auto: over UDP, not over queue pairs, whose hardware has one of its own. Takes "auto" or
    true or false. Default from: ours: 16 bits miss one damaged packet of 65,536. Default: "auto".
    """

    chunk: str | None = None
    """
    With rc: bytes of a chunk, for which a scheme chooses once. Takes a size such as "4MiB" (B, kB, KiB, MB,
    MiB, GB, GiB, TB, TiB), from 1B to 30MB. Default from: Hopper §4.2: 1 MB and 10 MB. Default: "1MB".
    """

    chunks_under_way: int | None = None
    """
    With rc: maximum number of chunks in flight. Takes a whole number, from 1 to 64. Default from: ours: not
    given. Default: 1.
    """

    datapath: Literal["udp", "rc", "uc"] | None = None
    """
    Transport of packets: UDP sockets, reliable (rc) or unreliable (uc) queue pairs of an RDMA device; "verbs"
    is an alias of "rc" until the next version. Takes one of "udp" "rc" "uc". Default from: ours. Default:
    "udp".
    """

    early_loss: str | None = None
    """
    Instead of transport.early_loss: a packet counts as lost once one of its tag that left at least this much
    later has arrived. Takes "never" or a time such as "1us" (ps, ns, us, ms, s), from 0us to 86400s. Default
    from: ours: packets of a label keep their order but for what a machine's several queues do. Default:
    "100us".
    """

    ecn: bool | None = None
    """
    Whether data packets may be marked; the ports of a testbed then mark according to [fabric]. Takes true or
    false. Default from: ours. Default: true.
    """

    find_labels: Literal["all", "paths"] | None = None
    """
    What a path is to schemes: each label, or all labels that were found to lead over the same switches (over
    IPv4: `send` by every datapath, the NCCL plugin, testbeds). With rc each path has one queue pair. Takes
    one of "all" "paths". Default from: ours. Default: "all".
    """

    give_up: str | None = None
    """
    Time after which a peer that owes a reply and sends nothing, or acknowledges nothing new, has timed out.
    Takes a time such as "1us" (ps, ns, us, ms, s), from 1us to 86400s. Default from: ours. Default: "10s".
    """

    idle_timeout: str | None = None
    """
    Time after which a peer that sends nothing at all is removed. Takes a time such as "1us" (ps, ns, us, ms,
    s), from 1us to 86400s. Default from: ours. Default: "60s".
    """

    key: str | None = None
    """
    A file with the key that both peers share: 64 hexadecimal digits or more, readable by its owner alone.
    Packets are authenticated by it; "": none. Takes text, or "" for none. Default from: ours: hosts of a
    network that trust each other need none.
    """

    labels: int | None = None
    """
    Labels: as many consecutive UDP ports of the endpoint that is called, each of which is a path to the
    network. Takes a whole number, from 1 to 256. Default from: ours. Default: 8.
    """

    least_timeout: str | None = None
    """
    Least timeout of the transport, which follows the measured round trips. Takes a time such as "1us" (ps,
    ns, us, ms, s), from 1us to 86400s. Default from: ours: processes may wait for their turn so long.
    Default: "10ms".
    """

    max_buffered_bytes: str | None = None
    """
    Bytes of memory that messages of all peers may take before they are complete; those from one source
    address may take half of it. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB), from
    64MiB to 1TiB. Default from: ours. Default: "128MiB".
    """

    max_peers_per_address: int | None = None
    """
    Peers that may have connected from one source address; of IPv6 from one prefix of 64 bits. Takes a whole
    number, from 1 to 65536. Default from: ours. Default: 256.
    """

    max_retries: int | None = None
    """
    Replies per second to addresses that have not shown that they receive there (RETRY); more HELLOs get none.
    Takes a whole number, from 1 to 1000000. Default from: ours: 16 Mbit/s. Default: 20000.
    """

    on_timeout: Literal["move", "scheme"] | None = None
    """
    Effect of a timeout on a scheme that keeps its path: it leaves the path as dead, or its own on_timeout
    decides. Takes one of "move" "scheme". Default from: ours: a timeout is a round trip without end; who
    knows round trips alone would stand still on a dead path. Default: "move".
    """

    payload: str | None = None
    """
    Payload bytes of a full packet, the same at both peers; auto: transport.mtu. Takes "auto" or a size such
    as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: ours. Default: "auto".
    """

    probe: str | None = None
    """
    With rc: bytes of a probe, instead of the scheme's `probe_size`. Takes a size such as "4MiB" (B, kB, KiB,
    MB, MiB, GB, GiB, TB, TiB), from 1B to 30MB. Default from: Hopper §4.2. Default: "10kB".
    """

    queue_pairs: int | None = None
    """
    With rc: number of queue pairs. If there are fewer than labels, idle ones change their labels. Takes a
    whole number, from 1 to 64. Default from: ours. Default: 8.
    """

    rate: str | None = None
    """
    Rate at which packets leave a host; auto: the rate of the scenario's host links. Takes "auto" or a rate
    such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps), from 100Kbps to 1.6Tbps. Default from: ours. Default:
    "auto".
    """

    real_time: bool | None = None
    """
    Whether the endpoints of a testbed run in the real-time class (SCHED_RR), where that is allowed. Takes
    true or false. Default from: ours: without it they stand still for 12 to 26 ms on a loaded machine.
    Default: true.
    """

    rtt_floor: str | None = None
    """
    Least noise floor of round trips: what exceeds the shortest by up to this counts as nothing. Takes a time
    such as "1us" (ps, ns, us, ms, s), from 0us to 100ms. Default from: ours: scheduling of an idle machine;
    docs/reference/wire.md. Default: "200us".
    """

    rtt_window: str | None = None
    """
    The base round trip rises to the shortest one of this time, where all were longer; a shorter one counts at
    once. Takes a time such as "1us" (ps, ns, us, ms, s), from 1us to 86400s. Default from: BBR (ACM Queue
    2016): the minimum of ten seconds. Default: "10s".
    """

    run_length: int | None = None
    """
    Packets in a row that carry the label chosen for the first of them, so that they leave and arrive together
    (GSO, GRO). Schemes choose once per run; a retransmitted packet begins a new one. Takes a whole number,
    from 1 to 64. Default from: ours. Default: 1.
    """

    trimming: bool | None = None
    """
    Whether the ports of a testbed trim instead of dropping. Takes true or false. Default from: ours: no
    switch that one can buy trims our header. Default: false.
    """


class Fault(Part):
    """Faults of links and switches, with their times."""

    _table: ClassVar[str] = "fault"
    _keys: ClassVar[dict[str, str]] = {
        "affects": "affects",
        "at": "at",
        "corruption": "corruption",
        "count": "count",
        "delay": "delay",
        "detect_after": "detect_after",
        "directed": "directed",
        "down_for": "down_for",
        "duplication": "duplication",
        "factor": "factor",
        "flaps": "flaps",
        "fraction": "fraction",
        "jitter": "jitter",
        "kind": "kind",
        "links": "links",
        "loss": "loss",
        "period": "period",
        "rate": "rate",
        "switches": "switches",
    }

    affects: Literal["all", "data"] | None = None
    """
    Which packets are affected. Takes one of "all" "data". Default from: specification 12.6. Default: "all".
    """

    at: str | None = None
    """
    When it happens. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz §V-D: from the
    start. Default: "0us".
    """

    corruption: float | None = None
    """
    Share of packets of which a bit changes, for packet-corruption. Takes a number. Default from: ours.
    Default: 0.0.
    """

    count: int | None = None
    """
    Their number, instead of a share. Takes a whole number, zero or more. Default from: PRIME §IV-A2: 2.
    Default: 0.
    """

    delay: str | None = None
    """
    How much later packets arrive, for packet-delay. Takes a time such as "1us" (ps, ns, us, ms, s). Default
    from: ours. Default: "0us".
    """

    detect_after: str | None = None
    """
    Time until the forwarding tables are updated (link-down, link-up, link-flap, switch-down). Takes "never"
    or a time such as "1us" (ps, ns, us, ms, s). Default from: PRIME §IV-A2: transient and steady phase.
    Default: "never".
    """

    directed: bool | None = None
    """
    Whether `fraction` and `count` choose single directions rather than cables. Takes true or false. Default
    from: specification 12.6. Default: false.
    """

    down_for: str | None = None
    """
    How long links stay down each time, for link-flap: less than the period. Takes a time such as "1us" (ps,
    ns, us, ms, s). Default from: ours. Default: "0us".
    """

    duplication: float | None = None
    """
    Share of packets that arrive twice, for packet-duplication. Takes a number. Default from: ours. Default:
    0.0.
    """

    factor: float | None = None
    """
    New rate as a share of the old one, for link-degrade. Takes a number. Default from: PRIME §IV-A2. Default:
    0.0.
    """

    flaps: int | None = None
    """
    How often links go down, for link-flap. Takes a whole number, zero or more. Default from: ours. Default:
    0.
    """

    fraction: float | None = None
    """
    Share of the switch-to-switch cables (with `directed`, of the directed links), chosen at random. Takes a
    number. Default from: Spritz §V-D: 0.02. Default: 0.0.
    """

    jitter: str | None = None
    """
    How far single packets deviate from the delay at most, evenly spread, for packet-delay; they may overtake
    each other. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default: "0us".
    """

    kind: Literal[
        "link-down",
        "link-up",
        "link-degrade",
        "switch-down",
        "packet-loss",
        "link-flap",
        "packet-corruption",
        "packet-duplication",
        "packet-delay",
    ] | None = None
    """
    What happens. Takes one of "link-down" "link-up" "link-degrade" "switch-down" "packet-loss" "link-flap"
    "packet-corruption" "packet-duplication" "packet-delay". Default from: specification 12.6. Default: "link-
    down".
    """

    links: Sequence[str] | None = None
    """
    Links by name: a cable (leaf0-spine3) or one direction of it (leaf0->spine3). Takes a list, each text.
    Default from: ours. Default: [].
    """

    loss: float | None = None
    """Share of packets lost, for packet-loss. Takes a number. Default from: ours. Default: 0.0."""

    period: str | None = None
    """
    Time from one failure to the next, for link-flap. Takes a time such as "1us" (ps, ns, us, ms, s). Default
    from: ours. Default: "0us".
    """

    rate: str | None = None
    """
    New rate, for link-degrade. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps), or "" for none.
    Default from: PRIME §IV-A2.
    """

    switches: Sequence[str] | None = None
    """Switches by name, for switch-down. Takes a list, each text. Default from: ours. Default: []."""
