"""Transports and congestion controls. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from typing import ClassVar, Literal

from .._part import Part


class Dctcp(Part):
    """DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."""

    _table: ClassVar[str] = "transport.dctcp"
    _keys: ClassVar[dict[str, str]] = {
        "decrease": "decrease",
        "ecn_gate": "ecn_gate",
        "fast_increase": "fast_increase",
        "fast_increase_base": "fast_increase_base",
        "fast_increase_gain": "fast_increase_gain",
        "increase": "increase",
        "quick_adapt": "quick_adapt",
        "quick_adapt_patience": "quick_adapt_patience",
    }

    decrease: float | None = None
    """
    Part of the bytes acknowledged with a mark by which the window shrinks. Takes a number. Default from:
    MPRDMA; specification 7.4. Default: 0.5.
    """

    ecn_gate: bool | None = None
    """
    Lets marks shrink the window only while their average exceeds 0.25. Takes true or false. Default from:
    ours: plain MPRDMA; on in the REPS artifact (specification 7.4). Default: false.
    """

    fast_increase: bool | None = None
    """
    Enables FastIncrease on an idle path. Takes true or false. Default from: Spritz §IV-C. Default: true.
    """

    fast_increase_base: Literal["longest", "own"] | None = None
    """
    Base RTT from which FastIncrease measures the queueing delay. Takes one of "longest" "own". Default from:
    Spritz §V-A: the same control for all schemes, reckoned from the longest path; `own` is ours
    (specification 7.4). Default: "longest".
    """

    fast_increase_gain: float | None = None
    """
    Bytes that FastIncrease adds per acknowledged byte. Takes a number. Default from: specification 7.4: 1 in
    the tuned artifact, 2 in the first version of SMaRTT. Default: 1.0.
    """

    increase: float | None = None
    """
    Packets by which a window of clean acknowledgements grows the window. Takes a number. Default from:
    MPRDMA; specification 7.4. Default: 1.0.
    """

    quick_adapt: bool | None = None
    """
    Enables QuickAdapt after trims and timeouts. Takes true or false. Default from: Spritz §IV-C. Default:
    true.
    """

    quick_adapt_patience: Literal["never"] | float | None = None
    """
    Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have
    been acknowledged. On a path that delivers only trimmed packets none are. On real networks 10. Takes
    "never" or a number. Default from: ours: the sources wait for ever. Default: "never".
    """


class Nscc(Part):
    """Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt."""

    _table: ClassVar[str] = "transport.nscc"
    _keys: ClassVar[dict[str, str]] = {
        "base_rtt": "base_rtt",
        "target_delay": "target_delay",
    }

    base_rtt: Literal["measured", "longest"] | None = None
    """
    Base round trip of a flow. Takes one of "measured" "longest". Default from: Ultra Ethernet's public
    simulator; longest: Spritz §V-A. Default: "measured".
    """

    target_delay: Literal["auto"] | float | None = None
    """
    Target queueing delay in base RTTs. `auto`: 0.75 where switches trim, else 1. Takes "auto" or a number.
    Default from: specification 7.6; 1 without trimming as in Ultra Ethernet's public simulator. Default:
    "auto".
    """


class Smartt(Part):
    """SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."""

    _table: ClassVar[str] = "transport.smartt"
    _keys: ClassVar[dict[str, str]] = {
        "quick_adapt_patience": "quick_adapt_patience",
    }

    quick_adapt_patience: Literal["never"] | float | None = None
    """
    Periods after QuickAdapt from which on losses count again, even if fewer bytes than were in flight have
    been acknowledged. On a path that delivers only trimmed packets none are. On real networks 10. Takes
    "never" or a number. Default from: ours: the sources wait for ever. Default: "never".
    """


class Dcqcn(Part):
    """DCQCN: a rate that falls with congestion notifications and recovers by timers."""

    _table: ClassVar[str] = "transport.dcqcn"
    _keys: ClassVar[dict[str, str]] = {
        "alpha_interval": "alpha_interval",
        "byte_counter": "byte_counter",
        "clamp_target": "clamp_target",
        "decrease_interval": "decrease_interval",
        "fast_recovery": "fast_recovery",
        "g": "g",
        "min_rate": "min_rate",
        "rate_ai": "rate_ai",
        "rate_hai": "rate_hai",
        "rp_timer": "rp_timer",
    }

    alpha_interval: str | None = None
    """
    Interval at which `alpha` is updated. Takes a time such as "1us" (ps, ns, us, ms, s). Default from:
    specification 17.3. Default: "1us".
    """

    byte_counter: str | None = None
    """
    Bytes sent since the last cut, and between steps, at which the rate is raised as well. With it, the rate
    is in fast recovery while timer and counter are, and rises hyperactively once both are past their additive
    step. Takes "never" or a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    specification 17.3: the recorded model has none; NVIDIA's rpg_byte_reset is 32767 B, DCQCN (SIGCOMM 2015)
    has 10 MB. Default: "never".
    """

    clamp_target: bool | None = None
    """
    If `true`, every cut makes the previous rate the target; otherwise only the first cut after an increase
    does. Takes true or false. Default from: specification 17.3. Default: false.
    """

    decrease_interval: str | None = None
    """
    Interval at which the rate may be cut. Takes a time such as "1us" (ps, ns, us, ms, s). Default from:
    specification 17.3. Default: "4us".
    """

    fast_recovery: int | None = None
    """
    Steps of fast recovery before the target rises. Takes a whole number, zero or more. Default from:
    specification 17.3. Default: 1.
    """

    g: float | None = None
    """
    Gain of the moving average `alpha`. Takes a number. Default from: specification 17.3: 1/256. Default:
    0.00390625.
    """

    min_rate: str | None = None
    """
    Minimum rate; from the NIC's rate on nothing is ever cut. Takes a rate such as "400Gbps" (bps, Kbps, Mbps,
    Gbps, Tbps). Default from: specification 17.3. Default: "100Mbps".
    """

    rate_ai: str | None = None
    """
    Additive increase of the target; auto: 1/2500 of the NIC's rate. Takes "auto" or a rate such as "400Gbps"
    (bps, Kbps, Mbps, Gbps, Tbps). Default from: specification 17.3: 40 Mb/s at 100 Gb/s. Default: "auto".
    """

    rate_hai: str | None = None
    """
    Hyper increase of the target; auto: 1/1000 of the NIC's rate. Takes "auto" or a rate such as "400Gbps"
    (bps, Kbps, Mbps, Gbps, Tbps). Default from: specification 17.3: 100 Mb/s at 100 Gb/s. Default: "auto".
    """

    rp_timer: str | None = None
    """
    Time after the last cut, and between steps, at which the rate is raised. Takes a time such as "1us" (ps,
    ns, us, ms, s). Default from: specification 17.3. Default: "300us".
    """


class Uet(Part):
    """The transport `uet`."""

    _table: ClassVar[str] = "transport"
    _kind: ClassVar[str | None] = "uet"
    _keys: ClassVar[dict[str, str]] = {
        "ack_delay": "ack_delay",
        "ack_ecn": "ack_ecn",
        "ack_entropy": "ack_entropy",
        "ack_every": "ack_every",
        "ack_on_filled_hole": "ack_on_filled_hole",
        "ack_on_mark": "ack_on_mark",
        "ack_size": "ack_size",
        "congestion_control": "congestion_control",
        "dctcp": "dctcp",
        "early_loss": "early_loss",
        "header": "header",
        "last_hop_trims": "last_hop_trims",
        "min_rto": "min_rto",
        "mtu": "mtu",
        "nscc": "nscc",
        "rto": "rto",
        "rto_rule": "rto_rule",
        "smartt": "smartt",
        "window": "window",
    }
    _nested: ClassVar[dict[str, str]] = {
        "dctcp": "Dctcp",
        "nscc": "Nscc",
        "smartt": "Smartt",
    }

    ack_delay: str | None = None
    """
    Time after which an arrival is acknowledged although fewer than `ack_every` packets have arrived; auto:
    the base round trip. A sender whose window shrinks below what is in flight waits for it. Takes "auto" or a
    time such as "1us" (ps, ns, us, ms, s). Default from: ours; specification 7.10. Default: "auto".
    """

    ack_ecn: Literal["own", "any"] | None = None
    """
    Meaning of the ECN bit of an acknowledgement. Takes one of "own" "any". Default from: specification 7.10.
    Default: "own".
    """

    ack_entropy: Literal["echo", "fresh"] | None = None
    """
    Entropy value by which an acknowledgement is hashed on the return path; switches that read multi-part
    values or guide packets do not hash it. Takes one of "echo" "fresh". Default from: specification 4:
    control packets by the hash of their flow; `fresh` is ours. Default: "echo".
    """

    ack_every: int | None = None
    """
    Data packets per acknowledgement; 1 acknowledges every packet. A packet after which the sender is blocked
    requests one at once. Takes a whole number, zero or more. Default from: specification 7.10; 16 KiB of
    packets in Ultra Ethernet's public simulator. Default: 4.
    """

    ack_on_filled_hole: Literal["requested", "every"] | None = None
    """
    Packets that close a hole in the sequence and are acknowledged at once. Takes one of "requested" "every".
    Default from: specification 7.10, after Ultra Ethernet's public simulator. Default: "requested".
    """

    ack_on_mark: Literal["change", "every"] | None = None
    """
    Marked packets that are acknowledged at once. Takes one of "change" "every". Default from: specification
    7.10; every one in Ultra Ethernet's public simulator. Default: "change".
    """

    ack_size: str | None = None
    """
    Bytes of an acknowledgement (ACK or NACK) on the wire. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB,
    GB, GiB, TB, TiB). Default from: specification 1. Default: "64B".
    """

    congestion_control: Literal["dctcp", "smartt", "nscc", "none"] | None = None
    """
    Congestion control that sets the window. Takes one of "dctcp" "smartt" "nscc" "none". Default from: ours:
    PRIME does not name it (specification 5.4); Spritz uses dctcp. Default: "nscc".
    """

    dctcp: Dctcp | None = None
    """DCTCP as in MPRDMA, with QuickAdapt and FastIncrease."""

    early_loss: str | None = None
    """
    Reordering window: a packet is lost once one of the same tag, sent this much later, is acknowledged. For
    networks without trimming that keep the packets of a tag in order. `never`: only NACKs and timeouts signal
    losses. Takes "never" or a time such as "1us" (ps, ns, us, ms, s). Default from: ours, after RFC 8985
    (RACK), per path; specification 7.10 knows NACKs and timeouts. Default: "never".
    """

    header: str | None = None
    """
    Header bytes of a data packet. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB).
    Default from: specification 9.4: 4160 B on the wire. Default: "64B".
    """

    last_hop_trims: Literal["blame", "ignore"] | None = None
    """
    Feedback to the load balancer on a packet trimmed at its last hop. Takes one of "blame" "ignore". Default
    from: PRIME III-C and Spritz Alg. 2: every NACK counts; `ignore` is ours. Default: "blame".
    """

    min_rto: str | None = None
    """
    Minimum of an automatic timeout. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours; 100
    us on Dragonfly and Slim Fly (specification 7.10). Default: "0us".
    """

    mtu: str | None = None
    """
    Payload bytes of a full packet. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB).
    Default from: Spritz Table II; specification 9.4: 4160 B on the wire. Default: "4KiB".
    """

    nscc: Nscc | None = None
    """Network-signal congestion control of Ultra Ethernet: a target queueing delay, ECN and QuickAdapt."""

    rto: str | None = None
    """
    Retransmission timeout. `auto`: 15 us and six times the drain time of a full data queue, at least two base
    round trips of the pair of hosts, `min_rto`, and the longest time that a reply can take where nothing is
    dropped. Takes "auto" or a time such as "1us" (ps, ns, us, ms, s). Default from: specification 7.10; the
    bounds are ours. Default: "auto".
    """

    rto_rule: Literal["fixed", "measured"] | None = None
    """
    Source of the timeout; the minimum of a measured one is `rto`. Takes one of "fixed" "measured". Default
    from: specification 7.10; measured: RFC 6298, for real networks. Default: "fixed".
    """

    smartt: Smartt | None = None
    """SMaRTT: moves the window by ECN and delay, with QuickAdapt and FastIncrease."""

    window: str | None = None
    """
    Initial and maximum window in bytes on the wire; at least one packet. Auto: 1.5 BDP, at least one BDP and
    `ack_every` packets, and where the BDP has fewer than 16 packets one more per link of the path. Where that
    would overflow the queue of an empty slower port: what fits, with fewer packets per acknowledgement if
    need be. Takes "auto" or a size such as "64KiB" or a multiple of the BDP such as "1.5bdp". Default from:
    Spritz §V: 1.5 BDP; the bounds are ours. Default: "auto".
    """


class Roce(Part):
    """The transport `roce`."""

    _table: ClassVar[str] = "transport"
    _kind: ClassVar[str | None] = "roce"
    _keys: ClassVar[dict[str, str]] = {
        "ack_size": "ack_size",
        "congestion_control": "congestion_control",
        "dcqcn": "dcqcn",
        "early_ack": "early_ack",
        "header": "header",
        "mtu": "mtu",
        "nic_memory": "nic_memory",
        "ooo_window": "ooo_window",
        "qp_memory": "qp_memory",
        "rate_on_path_change": "rate_on_path_change",
        "recorded": "recorded",
        "recovery": "recovery",
        "reorder_memory": "reorder_memory",
        "rto": "rto",
        "rto_high": "rto_high",
        "rto_low": "rto_low",
        "window": "window",
    }
    _nested: ClassVar[dict[str, str]] = {
        "dcqcn": "Dcqcn",
    }

    ack_size: str | None = None
    """
    Bytes of an acknowledgement (ACK, NACK) on the wire. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB,
    GiB, TB, TiB). Default from: specification 17.2. Default: "60B".
    """

    congestion_control: Literal["dcqcn", "swift", "tcp-like", "none"] | None = None
    """
    Congestion control that sets rate or window. Takes one of "dcqcn" "swift" "tcp-like" "none". Default from:
    Hopper §4.1.1; specification 17.3. Default: "dcqcn".
    """

    dcqcn: Dcqcn | None = None
    """DCQCN: a rate that falls with congestion notifications and recovers by timers."""

    early_ack: Literal["selective", "cumulative"] | None = None
    """
    Acknowledgement of a packet that is early within `ooo_window`, with `irn-extended`. Takes one of
    "selective" "cumulative". Default from: Hopper §4.1.1: such a packet is acknowledged normally. Default:
    "selective".
    """

    header: str | None = None
    """
    Header bytes of a data packet. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB).
    Default from: specification 17.2. Default: "48B".
    """

    mtu: str | None = None
    """
    Payload bytes of a full packet. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB).
    Default from: specification 17.2. Default: "1kB".
    """

    nic_memory: str | None = None
    """
    Memory of a NIC for its queue pairs and for packets that are early. Queue pairs come first and are opened
    even where they do not fit (`max_queue_pairs` counts them); an early packet that does not fit is refused
    by a NACK and counted (`refused_packets`). Go-back-N keeps no early packet. Takes "never" or a size such
    as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Hopper §2: about 2 MB on a ConnectX-5.
    Default: "never".
    """

    ooo_window: int | None = None
    """
    Packets that may be early without a NACK, with `irn-extended`. Takes a whole number, zero or more. Default
    from: Hopper §4.1.1. Default: 30.
    """

    qp_memory: str | None = None
    """
    Bytes of `nic_memory` that a queue pair occupies at each endpoint. A probe is a queue pair of its sender
    until its reply. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Kalia
    et al., NSDI 2019 (Hopper's reference 16); Hopper §3.2. Default: "375B".
    """

    rate_on_path_change: Literal["keep", "fresh", "restore"] | None = None
    """
    Effect of a change of the path tag on a flow's rate (DCQCN) or window (Swift). With "fresh" every path is
    a queue pair of its own that starts at line rate; with "restore" the flow returns to the rate before the
    last cuts. With both, notifications of the previous path are ignored. Meant for schemes whose hosts move
    flows (moves of switches are not seen); they disable congestion control under packet spraying. Takes one
    of "keep" "fresh" "restore". Default from: ours: Hopper's simulations build on ConWeave's, where a flow is
    one queue pair; section 3.3 ("starts using the corresponding QP") reads as fresh. Default: "keep".
    """

    recorded: bool | None = None
    """
    Peculiarities of the recorded ConWeave runs, which the `conweave-ns3` profiles set. The time between two
    packets of a flow is truncated to whole nanoseconds. IRN retransmits all packets not reported as received,
    even those in flight. Recovery restarts with every packet that fills a hole and ends with a plain ACK.
    Takes true or false. Default from: specification 17.2, 17.3. Default: false.
    """

    recovery: Literal["irn", "irn-extended", "go-back-n"] | None = None
    """
    Loss recovery. Takes one of "irn" "irn-extended" "go-back-n". Default from: Hopper §4.1.1; specification
    7.3. Default: "irn".
    """

    reorder_memory: str | None = None
    """
    Maximum bytes of early packets per connection. With `nic_memory` each connection reserves them when it
    opens, and one that finds them taken accepts no early packet; without it, connections share what is free.
    Takes "never" or a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Hopper §2: a
    buffer of one BDP takes 0.1 MB per connection. Default: "never".
    """

    rto: str | None = None
    """
    Retransmission timeout of go-back-N. Auto: 4 ms, at least the base round trip of the pair of hosts and the
    drain time of a full queue. A shorter one than the base round trip is lengthened to that. Takes "auto" or
    "never" or a time such as "1us" (ps, ns, us, ms, s). Default from: specification 17.3; the minimum is
    ours. Default: "auto".
    """

    rto_high: str | None = None
    """
    Retransmission timeout of IRN with more in flight. Auto: 320 us; minimum as for `rto`. Takes "auto" or a
    time such as "1us" (ps, ns, us, ms, s). Default from: specification 17.3; the minimum is ours. Default:
    "auto".
    """

    rto_low: str | None = None
    """
    Retransmission timeout of IRN with up to three packets in flight. Auto: 100 us; minimum as for `rto`.
    Takes "auto" or a time such as "1us" (ps, ns, us, ms, s). Default from: specification 17.3; the minimum is
    ours. Default: "auto".
    """

    window: str | None = None
    """
    Maximum payload bytes in flight; auto: one BDP with IRN and `tcp-like`, unlimited with go-back-N. Where
    the BDP has fewer than 16 packets one packet more per link of the path: acknowledgements wait for packets
    on the wire. Takes "auto" or a size such as "64KiB" or a multiple of the BDP such as "1.5bdp". Default
    from: specification 7.3: the BDP cap of IRN; the packets per link are ours. Default: "auto".
    """
