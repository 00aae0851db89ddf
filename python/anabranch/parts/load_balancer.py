"""Load balancers. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from typing import ClassVar, Literal

from .._part import Part


class Ar(Part):
    """Adaptive routing: the least local queue of all next hops."""

    _table: ClassVar[str] = "load_balancer.ar"
    _kind: ClassVar[str | None] = "ar"
    _keys: ClassVar[dict[str, str]] = {
        "compare": "compare",
        "levels": "levels",
        "refresh": "refresh",
    }

    compare: Literal["levels", "exact"] | None = None
    """
    Comparison of queues. Takes one of "levels" "exact". Default from: ours: PRIME says queue size, no more;
    levels as hardware and Ultra Ethernet's public simulator. Default: "levels".
    """

    levels: list[int] | None = None
    """
    Upper bounds of the levels, in percent of `fabric.queue_limit`; one more level is above the last. No
    effect with `compare = "exact"`. Takes a list, each a whole number, zero or more. Default from: Ultra
    Ethernet's public simulator. Default: [5, 10, 20].
    """

    refresh: str | None = None
    """
    Validity of a port's level after it was read: hardware samples its queues. "0ns" reads it for every
    packet. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours; 100 ns in Ultra Ethernet's
    public simulator. Default: "0us".
    """


class Bitmap(Part):
    """Masked round robin that passes over paths with a penalty count (STrack-like)."""

    _table: ClassVar[str] = "load_balancer.bitmap"
    _kind: ClassVar[str | None] = "bitmap"
    _keys: ClassVar[dict[str, str]] = {
        "ecn": "ecn",
        "nack": "nack",
        "paths": "paths",
        "timeout": "timeout",
    }

    ecn: int | None = None
    """
    Penalty of an ECN mark. Takes a whole number, zero or more. Default from: Ultra Ethernet reference model
    (specification 6.2). Default: 1.
    """

    nack: int | None = None
    """
    Penalty of a NACK. Takes a whole number, zero or more. Default from: Ultra Ethernet reference model
    (specification 6.2). Default: 4.
    """

    paths: int | None = None
    """
    Number of paths (low bits of the entropy value), a power of two. Takes a whole number, zero or more.
    Default from: ours. Default: 64.
    """

    timeout: int | None = None
    """
    Penalty of a timeout. Takes a whole number, zero or more. Default from: Ultra Ethernet reference model
    (specification 6.2). Default: 15.
    """


class CoPrime(Part):
    """PRIME's pseudo-random round robin without its congestion history."""

    _table: ClassVar[str] = "load_balancer.co-prime"
    _kind: ClassVar[str | None] = "co-prime"
    _keys: ClassVar[dict[str, str]] = {
    }


class CoarseGuided(Part):
    """The first two switches hash within a table that the host's VLAN tag selects."""

    _table: ClassVar[str] = "load_balancer.coarse-guided"
    _kind: ClassVar[str | None] = "coarse-guided"
    _keys: ClassVar[dict[str, str]] = {
        "chosen_by": "chosen_by",
    }

    chosen_by: Literal["each-switch", "first-switch"] | None = None
    """
    Switches that choose within a category. Takes one of "each-switch" "first-switch". Default from: Spritz
    §III-D; first-switch: ours. Default: "each-switch".
    """


class Conga(Part):
    """Flowlets take the path whose most congested link is least so, as other leaves report it."""

    _table: ClassVar[str] = "load_balancer.conga"
    _kind: ClassVar[str | None] = "conga"
    _keys: ClassVar[dict[str, str]] = {
        "candidates": "candidates",
        "flowlet_timeout": "flowlet_timeout",
    }

    candidates: int | None = None
    """
    Consecutive paths that a new flowlet compares, from a random first one; 0: all. Takes a whole number, zero
    or more. Default from: specification 4.2: as in Hopper's comparison; CONGA's paper compares all. Default:
    4.
    """

    flowlet_timeout: str | None = None
    """
    A pause longer than this ends a flowlet. Takes a time such as "1us" (ps, ns, us, ms, s). Default from:
    specification 4.2. Default: "100us".
    """


class Conweave(Part):
    """Leaves move running flows off slow paths and put their packets back into order."""

    _table: ClassVar[str] = "load_balancer.conweave"
    _kind: ClassVar[str | None] = "conweave"
    _keys: ClassVar[dict[str, str]] = {
    }


class Drill(Part):
    """The shortest local queue of some random next hops and the best remembered."""

    _table: ClassVar[str] = "load_balancer.drill"
    _kind: ClassVar[str | None] = "drill"
    _keys: ClassVar[dict[str, str]] = {
        "d": "d",
        "m": "m",
    }

    d: int | None = None
    """
    Next hops drawn at random (all different). Takes a whole number, zero or more. Default from: DRILL(2, 1),
    SIGCOMM 2017. Default: 2.
    """

    m: int | None = None
    """
    Next hops remembered from the last decision. Takes a whole number, zero or more. Default from: DRILL(2,
    1), SIGCOMM 2017. Default: 1.
    """


class Ecmp(Part):
    """Hash of flow and tag, with a seed per switch."""

    _table: ClassVar[str] = "load_balancer.ecmp"
    _kind: ClassVar[str | None] = "ecmp"
    _keys: ClassVar[dict[str, str]] = {
        "on_timeout": "on_timeout",
    }

    on_timeout: Literal["ignore", "move"] | None = None
    """
    Effect of a retransmission timeout on the flow's path. Takes one of "ignore" "move". Default from: RFC
    2992: a flow's hash is fixed; move: ours, as Linux' rehash of the flow label. Default: "ignore".
    """


class EvIndex(Part):
    """This tier's part of the multi-part entropy value names the uplink."""

    _table: ClassVar[str] = "load_balancer.ev-index"
    _kind: ClassVar[str | None] = "ev-index"
    _keys: ClassVar[dict[str, str]] = {
        "remap": "remap",
    }

    remap: Literal["mod", "skip", "hash"] | None = None
    """
    Meaning of an index if uplinks have failed. Takes one of "mod" "skip" "hash". Default from: ours
    (specification 5.3). Default: "mod".
    """


class Flicr(Part):
    """One path at a time, drawn by weight, left when a round trip was congested."""

    _table: ClassVar[str] = "load_balancer.flicr"
    _kind: ClassVar[str | None] = "flicr"
    _keys: ClassVar[dict[str, str]] = {
        "on_timeout": "on_timeout",
        "weights": "weights",
    }

    on_timeout: Literal["ignore", "move"] | None = None
    """
    Effect of a retransmission timeout within the grace: none, or another path as after it. Takes one of
    "ignore" "move". Default from: Spritz' artifact (specification 3.6); move: ours, since a dead path answers
    nothing and its grace has no end. Default: "ignore".
    """

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """
    Weights of the paths in draws. Takes one of "uniform" "latency" "propagation". Default from: Spritz §V-A:
    Flicr (w). Default: "latency".
    """


class Flowbender(Part):
    """A flow changes its tag when too many ACKs of a round trip were marked (or late)."""

    _table: ClassVar[str] = "load_balancer.flowbender"
    _kind: ClassVar[str | None] = "flowbender"
    _keys: ClassVar[dict[str, str]] = {
        "chunk": "chunk",
        "first_epoch": "first_epoch",
        "granularity": "granularity",
        "n": "n",
        "outstanding": "outstanding",
        "range": "range",
        "rtt_threshold": "rtt_threshold",
        "t": "t",
        "value": "value",
        "variant": "variant",
    }

    chunk: str | None = None
    """
    Bytes of a chunk, at chunk granularity. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB,
    TiB). Default from: Hopper §4.2: 1 MB and 10 MB. Default: "1MB".
    """

    first_epoch: Literal["first-ack", "round-trip"] | None = None
    """
    End of a flow's first epoch, at packet granularity. Takes one of "first-ack" "round-trip". Default from:
    HERMES artifact (specification 3.1). Default: "first-ack".
    """

    granularity: Literal["packet", "chunk"] | None = None
    """
    Unit of decisions: packets, or chunks as in Hopper's testbed, where a chunk that takes longer than
    `rtt_threshold` times its ideal changes the tag of the next one. Takes one of "packet" "chunk". Default
    from: Hopper §4.2. Default: "packet".
    """

    n: int | None = None
    """
    Consecutive congested epochs that change the tag, at packet granularity. Takes a whole number, zero or
    more. Default from: HERMES artifact (specification 3.1). Default: 1.
    """

    outstanding: int | None = None
    """
    Maximum chunks in flight, at chunk granularity. Takes a whole number, zero or more. Default from: ours:
    not given. Default: 1.
    """

    range: int | None = None
    """
    Number of values of the tag, with `value = "next"` or `"random"`; otherwise of a flow's first value. Takes
    a whole number, zero or more. Default from: FlowBender (specification 3.1). Default: 8.
    """

    rtt_threshold: float | None = None
    """
    Round trip above which an ACK counts as congested in variant rtt, in base round trips. Takes a number.
    Default from: ours: Hopper's own test of congestion (its Table 1); §4.2 says no more than round trips that
    increase. Default: 2.5.
    """

    t: float | None = None
    """
    Share of congested ACKs above which an epoch is congested, at packet granularity. Takes a number. Default
    from: HERMES artifact (specification 3.1); the paper names 0.01 to 0.05. Default: 0.05.
    """

    value: Literal["unbounded", "next", "random"] | None = None
    """
    Next value of the tag. Takes one of "unbounded" "next" "random". Default from: HERMES artifact
    (specification 3.1). Default: "unbounded".
    """

    variant: Literal["ecn", "rtt"] | None = None
    """
    Congestion signal, at packet granularity. Takes one of "ecn" "rtt". Default from: FlowBender; rtt:
    Hopper's testbed. Default: "ecn".
    """


class Flowlet(Part):
    """A new random path after every pause of the sender."""

    _table: ClassVar[str] = "load_balancer.flowlet"
    _kind: ClassVar[str | None] = "flowlet"
    _keys: ClassVar[dict[str, str]] = {
        "entropy_values": "entropy_values",
        "gap": "gap",
    }

    entropy_values: int | None = None
    """
    Number of entropy values. Takes a whole number, zero or more. Default from: ours: the 16 bits of a UDP
    source port. Default: 65536.
    """

    gap: float | None = None
    """
    Pause after which a flow may change its path, in base round trips. Takes a number. Default from: REPS
    artifact (specification 3.3). Default: 0.5.
    """


class Hf2t(Part):
    """Holds a few packets back so that flowlet switches see more flowlets."""

    _table: ClassVar[str] = "load_balancer.hf2t"
    _kind: ClassVar[str | None] = "hf2t"
    _keys: ClassVar[dict[str, str]] = {
        "alpha_max": "alpha_max",
        "alpha_min": "alpha_min",
        "dmax": "dmax",
        "dynamic": "dynamic",
        "fixed_threshold": "fixed_threshold",
        "flowlet_timeout": "flowlet_timeout",
        "gaps": "gaps",
        "l_target": "l_target",
        "max_added_delay": "max_added_delay",
        "max_held": "max_held",
        "on_timeout": "on_timeout",
        "p": "p",
        "refresh": "refresh",
        "threshold": "threshold",
    }

    alpha_max: float | None = None
    """Upper bound of alpha. Takes a number. Default from: specification 11.3. Default: 4.0."""

    alpha_min: float | None = None
    """Lower bound of alpha. Takes a number. Default from: specification 11.3. Default: 0.25."""

    dmax: float | None = None
    """
    Maximum delay of one packet, in flowlet timeouts; 1: unlimited. Takes a number. Default from: ours: no
    bound; with 0.5 (specification 11.3) and a timeout of 100 us only flows below 168 Mb/s are ever held.
    Default: 1.0.
    """

    dynamic: bool | None = None
    """
    Scales alpha with the length of the flowlet; otherwise alpha is 1 ("No Dynamic T"). Takes true or false.
    Default from: HF2T slides. Default: true.
    """

    fixed_threshold: str | None = None
    """
    T with `threshold = "fixed"`. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default:
    "6us".
    """

    flowlet_timeout: str | None = None
    """
    The switches' flowlet timeout F; auto: that of the simulated switches, on a real network one base round
    trip of the flow. With less, no held packet begins a flowlet. Takes "auto" or a time such as "1us" (ps,
    ns, us, ms, s). Default from: specification 11.3: that of the switches. Default: "auto".
    """

    gaps: Literal["wire", "eligible"] | None = None
    """
    Definition of a gap. Takes one of "wire" "eligible". Default from: HF2T slides: the time between adjacent
    packets of a flow. Default: "wire".
    """

    l_target: str | None = None
    """
    Target flowlet length. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    specification 11.3. Default: "64kB".
    """

    max_added_delay: Literal["never"] | float | None = None
    """
    Maximum total delay of a flow: this share of its ideal completion time and one flowlet timeout. Takes
    "never" or a number. Default from: ours: no bound; 0.01 (specification 11.3) allows 2 to 4 holds where the
    slides' numbers need 15 per large flow. Default: "never".
    """

    max_held: Literal["never"] | float | None = None
    """
    Maximum share of a host's packets that are held, over the last `refresh` intervals. A bound ends the
    feedback in which holds shorten the gaps of other packets, T falls with them, and more are held. Takes
    "never" or a number. Default from: ours: no bound; the slides delay "a small number of specific packets",
    by their counts 2.6 %. Default: "never".
    """

    on_timeout: Literal["ignore", "move"] | None = None
    """
    Effect of a retransmission timeout on the flow's tag; with a flowlet switch the pause alone lets it move.
    Takes one of "ignore" "move". Default from: HF2T slides: the host changes no path; move: ours. Default:
    "ignore".
    """

    p: float | None = None
    """Share of the gaps that reach T. Takes a number. Default from: specification 11.3. Default: 0.01."""

    refresh: str | None = None
    """
    Interval at which T is recomputed and older gaps lose half of their weight. Takes a time such as "1us"
    (ps, ns, us, ms, s). Default from: specification 11.3. Default: "1ms".
    """

    threshold: Literal["quantile", "fixed"] | None = None
    """
    Source of T. Takes one of "quantile" "fixed". Default from: ours: how T is computed is not given
    (specification 11.2). Default: "quantile".
    """


class Hopper(Part):
    """Moves a flow to a better path that it has probed when its round trips grow."""

    _table: ClassVar[str] = "load_balancer.hopper"
    _kind: ClassVar[str | None] = "hopper"
    _keys: ClassVar[dict[str, str]] = {
        "alpha": "alpha",
        "candidates": "candidates",
        "chunk": "chunk",
        "consume_on_no_result": "consume_on_no_result",
        "delay": "delay",
        "delta_rtt": "delta_rtt",
        "epoch": "epoch",
        "epoch_rtt": "epoch_rtt",
        "granularity": "granularity",
        "hold_beyond": "hold_beyond",
        "kappa": "kappa",
        "on_timeout": "on_timeout",
        "outstanding": "outstanding",
        "ports": "ports",
        "probe_on_ecn": "probe_on_ecn",
        "probe_size": "probe_size",
        "probe_wait": "probe_wait",
        "probes": "probes",
        "th_cong": "th_cong",
        "th_probe": "th_probe",
        "ttl_probe": "ttl_probe",
        "values": "values",
    }

    alpha: float | None = None
    """
    Weight of the last sample in the moving average; 1: the last sample alone. Takes a number. Default from:
    Hopper Table 1. Default: 1.0.
    """

    candidates: Literal["ttl", "epoch"] | None = None
    """
    Probe results that count. Takes one of "ttl" "epoch". Default from: Hopper Alg. 1 and §1: the two paths
    just probed (specification 2.3, point 1). Default: "epoch".
    """

    chunk: str | None = None
    """
    Bytes of a chunk, at chunk granularity. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB,
    TiB). Default from: Hopper §4.2: 1 MB and 10 MB. Default: "1MB".
    """

    consume_on_no_result: bool | None = None
    """
    Uses up an epoch's chance to move even without a result (Algorithm 1, literally). Takes true or false.
    Default from: specification 2.3, point 1. Default: false.
    """

    delay: Literal["hold", "continue"] | None = None
    """
    Behaviour until the move takes effect, at packet granularity. Takes one of "hold" "continue". Default
    from: specification 2.4. Default: "hold".
    """

    delta_rtt: float | None = None
    """
    Maximum round trip of a new path, as a share of the flow's round trip. Takes a number. Default from:
    Hopper Table 1. Default: 0.8.
    """

    epoch: float | None = None
    """Length of an epoch in round trips. Takes a number. Default from: Hopper §3: one RTT. Default: 1.0."""

    epoch_rtt: Literal["measured", "base"] | None = None
    """
    Round trip that defines an epoch. Takes one of "measured" "base". Default from: Hopper §3 says RTT, Table
    1 says base RTT where it means it (specification 2.3, point 6). Default: "measured".
    """

    granularity: Literal["packet", "chunk"] | None = None
    """
    Unit of decisions: packets, or chunks as in the testbed. Takes one of "packet" "chunk". Default from:
    Hopper §4.1 and §4.2. Default: "packet".
    """

    hold_beyond: Literal["auto"] | int | None = None
    """
    With `delay = "hold"`, at packet granularity: packets that may be in flight without waiting, including the
    new path's first ones; auto: as many as the receiver accepts early (`transport.ooo_window` with `irn-
    extended`, else none). Takes "auto" or a whole number, zero or more. Default from: Hopper §4.1.1: a packet
    that is early by up to 30 is acknowledged normally. Default: "auto".
    """

    kappa: float | None = None
    """
    Delay of the move, as a multiple of the difference of the round trips; at chunk granularity it waits for
    the next chunk. Takes a number. Default from: ours: the paper says proportional (specification 2.4).
    Default: 1.0.
    """

    on_timeout: Literal["ignore", "move"] | None = None
    """
    Effect of a retransmission timeout on the flow's path. Takes one of "ignore" "move". Default from: Hopper
    §3 knows round trips alone; move: ours. Default: "ignore".
    """

    outstanding: int | None = None
    """
    Maximum chunks in flight, at chunk granularity. Takes a whole number, zero or more. Default from: ours:
    not given. Default: 1.
    """

    ports: Literal["random", "profiled"] | None = None
    """
    Entropy values of a flow. Takes one of "random" "profiled". Default from: specification 2.3, point 5.
    Default: "random".
    """

    probe_on_ecn: bool | None = None
    """
    Probes as soon as an ACK of the path is marked as well, before round trips reach `th_probe`. Takes true or
    false. Default from: Hopper §3.1: named as an optimisation, not implemented there. Default: false.
    """

    probe_size: str | None = None
    """
    Payload of a probe, at most a full packet's; auto: 64 B, or at chunk granularity up to 10 kB as fits a
    packet. The header of a data packet is added. Over RC queue pairs `wire.probe` sets it. Takes "auto" or a
    size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: specification 2.3, point 3;
    Hopper §4.2. Default: "auto".
    """

    probe_wait: bool | None = None
    """
    At chunk granularity: a flow that may move begins no chunk before its probes have replies. The wait ends
    early where the replies still out are too late for a move, by `delta_rtt`. Takes true or false. Default
    from: Hopper Alg. 1: PROBEPATHS returns before SWITCHPATH (specification 2.3, point 1). Default: true.
    """

    probes: int | None = None
    """
    Paths probed at a time. Takes a whole number, zero or more. Default from: Hopper §3.2: power of two
    choices. Default: 2.
    """

    th_cong: float | None = None
    """
    Average round trip above which the flow may move. Takes a number. Default from: Hopper Table 1. Default:
    2.5.
    """

    th_probe: float | None = None
    """
    Average round trip above which paths are probed. Takes a number. Default from: Hopper Table 1. Default:
    1.5.
    """

    ttl_probe: float | None = None
    """
    Age at which a probe result expires, in base round trips. Takes a number. Default from: Hopper Table 1.
    Default: 4.0.
    """

    values: int | None = None
    """
    Number of entropy values with `ports = "random"`. Takes a whole number, zero or more. Default from: UDP
    source ports. Default: 65536.
    """


class Letflow(Part):
    """A random path for every flowlet, chosen at the sender's leaf."""

    _table: ClassVar[str] = "load_balancer.letflow"
    _kind: ClassVar[str | None] = "letflow"
    _keys: ClassVar[dict[str, str]] = {
        "flowlet_timeout": "flowlet_timeout",
    }

    flowlet_timeout: str | None = None
    """
    A pause longer than this ends a flowlet. Takes a time such as "1us" (ps, ns, us, ms, s). Default from:
    specification 4.1. Default: "100us".
    """


class Minimal(Part):
    """Static minimal routing on a Dragonfly or a Slim Fly."""

    _table: ClassVar[str] = "load_balancer.minimal"
    _kind: ClassVar[str | None] = "minimal"
    _keys: ClassVar[dict[str, str]] = {
    }


class Mixed(Part):
    """Recycles entropy values that came back clean, else picks by bitmap."""

    _table: ClassVar[str] = "load_balancer.mixed"
    _kind: ClassVar[str | None] = "mixed"
    _keys: ClassVar[dict[str, str]] = {
        "ecn": "ecn",
        "nack": "nack",
        "paths": "paths",
        "queue": "queue",
        "timeout": "timeout",
    }

    ecn: int | None = None
    """
    Penalty of an ECN mark, up to 15. Takes a whole number, zero or more. Default from: Ultra Ethernet
    reference model (specification 6.2). Default: 1.
    """

    nack: int | None = None
    """
    Penalty of a NACK, up to 15. Takes a whole number, zero or more. Default from: Ultra Ethernet reference
    model (specification 6.2). Default: 4.
    """

    paths: int | None = None
    """
    Number of paths of the bitmap, a power of two. Takes a whole number, zero or more. Default from: ours.
    Default: 64.
    """

    queue: int | str | None = None
    """
    Capacity of the queue of entropy values, in packets (rounded up to a power of two). Takes a number of
    packets such as 10, or a multiple of the BDP in packets such as "0.25bdp". Default from: ours: more than a
    window. Default: "2bdp".
    """

    timeout: int | None = None
    """
    Penalty of a timeout, up to 15. Takes a whole number, zero or more. Default from: Ultra Ethernet reference
    model (specification 6.2). Default: 15.
    """


class Ops(Part):
    """A fresh entropy value for every packet, blind to congestion."""

    _table: ClassVar[str] = "load_balancer.ops"
    _kind: ClassVar[str | None] = "ops"
    _keys: ClassVar[dict[str, str]] = {
        "entropy_values": "entropy_values",
        "mode": "mode",
    }

    entropy_values: int | None = None
    """
    Number of entropy values; round-robin-masked rounds it up to a power of two. Takes a whole number, zero or
    more. Default from: ours: the 16 bits of a UDP source port. Default: 65536.
    """

    mode: Literal["random", "round-robin-masked"] | None = None
    """
    Selection of the next entropy value. Takes one of "random" "round-robin-masked". Default from:
    specification 3.4. Default: "random".
    """


class Plb(Part):
    """A flow moves to a random path after congested round trips."""

    _table: ClassVar[str] = "load_balancer.plb"
    _kind: ClassVar[str | None] = "plb"
    _keys: ClassVar[dict[str, str]] = {
        "entropy_values": "entropy_values",
        "k": "k",
        "min_wait": "min_wait",
        "n": "n",
        "timeout_moves": "timeout_moves",
    }

    entropy_values: int | None = None
    """
    Number of entropy values. Takes a whole number, zero or more. Default from: ours: the 16 bits of a UDP
    source port. Default: 65536.
    """

    k: float | None = None
    """
    Share of marked bytes above which a round trip is congested (Linux: 0.5). Takes a number. Default from:
    REPS artifact (specification 3.2). Default: 0.25.
    """

    min_wait: str | None = None
    """
    Minimum time between two moves: one retransmission timeout. Takes a time such as "1us" (ps, ns, us, ms,
    s). Default from: ours: the timeout of specification 7.10. Default: "100us".
    """

    n: int | None = None
    """
    Congested round trips in a row that are tolerated; one more moves the flow. Takes a whole number, zero or
    more. Default from: REPS artifact (specification 3.2). Default: 1.
    """

    timeout_moves: bool | None = None
    """
    Moves the flow at once on a timeout. Takes true or false. Default from: Linux rehashes a flow whose timer
    expires. Default: true.
    """


class Prime(Part):
    """Pseudo-random round robin over all paths, passing over paths with recent congestion."""

    _table: ClassVar[str] = "load_balancer.prime"
    _kind: ClassVar[str | None] = "prime"
    _keys: ClassVar[dict[str, str]] = {
        "decay": "decay",
        "decay_on": "decay_on",
        "history": "history",
        "history_after": "history_after",
        "nack_on_marked": "nack_on_marked",
        "p_ecn": "p_ecn",
        "p_ecn_max": "p_ecn_max",
        "p_ecn_settle": "p_ecn_settle",
        "p_nack": "p_nack",
        "p_timeout": "p_timeout",
        "scope": "scope",
    }

    decay: int | None = None
    """
    Decay of every penalty per packet. Takes a whole number, zero or more. Default from: ours: a queue at line
    rate drains one packet per packet time (PRIME §III-D). Default: 1.
    """

    decay_on: Literal["sent", "generated", "drained"] | None = None
    """
    Event that counts as a packet for the decay. Takes one of "sent" "generated" "drained". Default from:
    PRIME §III-D: "when sending a new packet all penalty values would be updated"; §III-C: "after each MP-EV
    generation". Default: "sent".
    """

    history: Literal["path", "part"] | None = None
    """
    What a penalty belongs to. Takes one of "path" "part". Default from: PRIME §III-D (III-C differs;
    specification 5.4 (c)). Default: "path".
    """

    history_after: int | str | None = None
    """
    Packets sent before the history takes effect. Takes a number of packets such as 10, or a multiple of the
    BDP in packets such as "0.25bdp". Default from: PRIME §III-C. Default: "1bdp".
    """

    nack_on_marked: Literal["replace", "ignore"] | None = None
    """
    Effect of a NACK on a path that a mark has penalised. Takes one of "replace" "ignore". Default from: PRIME
    §III-C (III-D can be read otherwise; specification 5.4 (b)). Default: "replace".
    """

    p_ecn: int | str | None = None
    """
    Penalty of a path after an ECN mark, in packets (or a share of the BDP, or passes over the paths). Below
    one pass it only delays a path inside it: a path at the share r of the healthy rate, one of U, needs U
    (1/r - 1) packets. auto: a path's own, by how often it came up until it was marked again, at least one
    pass. Takes "auto" or a number of packets such as 10, a multiple of the BDP in packets such as "0.25bdp",
    or of the passes over all paths such as "2passes". Default from: ours (specification 5.2); PRIME asks
    p_nack >> p_ecn; auto: ours (specification 5.4 (i)). Default: "0.25bdp".
    """

    p_ecn_max: int | str | None = None
    """
    Limit of p_ecn = "auto". Takes a number of packets such as 10, a multiple of the BDP in packets such as
    "0.25bdp", or of the passes over all paths such as "2passes". Default from: ours: a path at a sixteenth of
    the healthy rate. Default: "16passes".
    """

    p_ecn_settle: int | str | None = None
    """
    Least packets between two changes of a path's p_ecn = "auto": marks that come sooner are of earlier
    packets. Takes a number of packets such as 10, or a multiple of the BDP in packets such as "0.25bdp".
    Default from: ours: one round trip. Default: "1bdp".
    """

    p_nack: int | str | None = None
    """
    Penalty of a path after a NACK, in packets (or a share of the BDP, or passes over the paths). Takes a
    number of packets such as 10, a multiple of the BDP in packets such as "0.25bdp", or of the passes over
    all paths such as "2passes". Default from: ours (specification 5.2). Default: "1bdp".
    """

    p_timeout: int | str | None = None
    """
    Penalty of a path after a timeout, at least that of the others; auto: p_nack, on the wire the packets sent
    in ten times wire.least_timeout. Takes "auto" or a number of packets such as 10, a multiple of the BDP in
    packets such as "0.25bdp", or of the passes over all paths such as "2passes". Default from: specification
    5.4 (g); on the wire ours: a dead path that is tried again costs a timeout there, a tenth of the time at
    most. Default: "auto".
    """

    scope: Literal["flow", "destination", "host"] | None = None
    """
    Scope of one round robin and one congestion history. Takes one of "flow" "destination" "host". Default
    from: ours; specification 5.4 (f). Default: "flow".
    """


class QpSpray(Part):
    """Chunks in turn over a few queue pairs with fixed paths (NCCL)."""

    _table: ClassVar[str] = "load_balancer.qp-spray"
    _kind: ClassVar[str | None] = "qp-spray"
    _keys: ClassVar[dict[str, str]] = {
        "chunk": "chunk",
        "on_timeout": "on_timeout",
        "outstanding": "outstanding",
        "qps": "qps",
        "values": "values",
    }

    chunk: str | None = None
    """
    Bytes per chunk. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Hopper
    §4.2: 1 MB and 10 MB. Default: "1MB".
    """

    on_timeout: Literal["ignore", "move"] | None = None
    """
    Effect of a retransmission timeout: with "move" the queue pair in use gets another port. Takes one of
    "ignore" "move". Default from: NCCL: a queue pair keeps its port, and its error ends the job; move: ours.
    Default: "ignore".
    """

    outstanding: int | None = None
    """
    Maximum chunks in flight. Takes a whole number, zero or more. Default from: NCCL: a channel's buffer of 4
    MiB (NCCL_BUFFSIZE), in slices of 1 MiB; 1: as many as keep the order of one sequence. Default: 4.
    """

    qps: int | None = None
    """
    Queue pairs per flow. Takes a whole number, zero or more. Default from: ours: a usual
    NCCL_IB_QPS_PER_CONNECTION; the library's own default, 1, is ecmp. Default: 4.
    """

    values: int | None = None
    """
    Number of entropy values. Takes a whole number, zero or more. Default from: UDP source ports. Default:
    65536.
    """


class Random(Part):
    """A uniformly random next hop for every packet."""

    _table: ClassVar[str] = "load_balancer.random"
    _kind: ClassVar[str | None] = "random"
    _keys: ClassVar[dict[str, str]] = {
    }


class Reps(Part):
    """Reuses entropy values whose packets came back unmarked."""

    _table: ClassVar[str] = "load_balancer.reps"
    _kind: ClassVar[str | None] = "reps"
    _keys: ClassVar[dict[str, str]] = {
        "buffer": "buffer",
        "entropy_values": "entropy_values",
        "freeze_below": "freeze_below",
        "usable_lifetime": "usable_lifetime",
        "variant": "variant",
        "with_trimming": "with_trimming",
    }

    buffer: int | None = None
    """
    Entries of the circular buffer. Takes a whole number, zero or more. Default from: REPS artifact
    (specification 6.1). Default: 8.
    """

    entropy_values: int | None = None
    """
    Number of entropy values. Takes a whole number, zero or more. Default from: REPS: 2^8 to 2^16. Default:
    65536.
    """

    freeze_below: float | None = None
    """
    Without trimming: a timeout is not attributed to congestion while no round trip exceeds this, in base
    round trips. Takes a number. Default from: REPS artifact (specification 6.1). Default: 1.65.
    """

    usable_lifetime: int | None = None
    """
    Uses of a value that returned unmarked; the packets per ACK where ACKs are coalesced. Takes a whole
    number, zero or more. Default from: REPS artifact (specification 6.1). Default: 1.
    """

    variant: Literal["circular", "legacy"] | None = None
    """
    Version of REPS. Takes one of "circular" "legacy". Default from: specification 6.1. Default: "circular".
    """

    with_trimming: bool | None = None
    """
    Set if switches trim: then every timeout freezes, otherwise one without signs of congestion. Takes true or
    false. Default from: REPS artifact (specification 6.1). Default: true.
    """


class Rr(Part):
    """The next hops in turn, packet by packet."""

    _table: ClassVar[str] = "load_balancer.rr"
    _kind: ClassVar[str | None] = "rr"
    _keys: ClassVar[dict[str, str]] = {
        "entropy_values": "entropy_values",
    }

    entropy_values: int | None = None
    """
    Number of entropy values. Takes a whole number, zero or more. Default from: ours: the 16 bits of a UDP
    source port. Default: 65536.
    """


class SourceGuided(Part):
    """The first two switches of a Dragonfly or a Slim Fly forward by the entropy value."""

    _table: ClassVar[str] = "load_balancer.source-guided"
    _kind: ClassVar[str | None] = "source-guided"
    _keys: ClassVar[dict[str, str]] = {
        "weights": "weights",
    }

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """
    Distribution of the entropy values of hashing host schemes over the paths of a pair. Takes one of
    "uniform" "latency" "propagation". Default from: Spritz §V-A: OPS (u) and OPS (w). Default: "uniform".
    """


class SpritzCoarse(Part):
    """Scout's feedback over categories of paths, tagged by VLAN."""

    _table: ClassVar[str] = "load_balancer.spritz-coarse"
    _kind: ClassVar[str | None] = "spritz-coarse"
    _keys: ClassVar[dict[str, str]] = {
        "block_interval": "block_interval",
        "buffer_size": "buffer_size",
        "categories": "categories",
        "ecn_rate": "ecn_rate",
        "ecn_threshold": "ecn_threshold",
        "entropy": "entropy",
        "explore_threshold": "explore_threshold",
        "weights": "weights",
    }

    block_interval: str | None = None
    """
    Interval of the timer that restores categories blocked by timeouts. Takes "never" or a time such as "1us"
    (ps, ns, us, ms, s). Default from: ours: not given. Default: "1ms".
    """

    buffer_size: int | None = None
    """
    Good categories that are kept. Takes a whole number, zero or more. Default from: Spritz §IV. Default: 8.
    """

    categories: Literal["minimal", "types"] | None = None
    """
    Granularity of the categories. Takes one of "minimal" "types". Default from: Spritz §III-D: path
    categories, and types within them. Default: "types".
    """

    ecn_rate: float | None = None
    """
    Share of marked ACKs above which the fastest category is preferred. Takes a number. Default from: Spritz
    Algorithm 2. Default: 0.9.
    """

    ecn_threshold: int | None = None
    """
    Marks above which a category is no longer good. Takes a whole number, zero or more. Default from: Spritz
    Table II. Default: 8.
    """

    entropy: Literal["packet", "flow"] | None = None
    """
    Change of the entropy that the switch hashes. Takes one of "packet" "flow". Default from: ours: spraying
    within a category. Default: "packet".
    """

    explore_threshold: int | None = None
    """
    Packets after which one explores: the next category is drawn by weight. 0: never. Takes a whole number,
    zero or more. Default from: Spritz Table II. Default: 44.
    """

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """
    Weights of the paths in draws; a category weighs as much as its paths. Takes one of "uniform" "latency"
    "propagation". Default from: Spritz equation 1. Default: "latency".
    """


class SpritzScout(Part):
    """Explores paths by weight and holds to the fastest that is good."""

    _table: ClassVar[str] = "load_balancer.spritz-scout"
    _kind: ClassVar[str | None] = "spritz-scout"
    _keys: ClassVar[dict[str, str]] = {
        "block_interval": "block_interval",
        "block_scope": "block_scope",
        "buffer": "buffer",
        "buffer_size": "buffer_size",
        "ecn_rate": "ecn_rate",
        "ecn_threshold": "ecn_threshold",
        "explore_threshold": "explore_threshold",
        "max_paths": "max_paths",
        "reading": "reading",
        "small_flow": "small_flow",
        "subset": "subset",
        "weights": "weights",
    }

    block_interval: str | None = None
    """
    Interval of the timer that restores all blocked paths. Takes "never" or a time such as "1us" (ps, ns, us,
    ms, s). Default from: ours: not given. Default: "1ms".
    """

    block_scope: Literal["endpoint", "flow"] | None = None
    """
    Flows for which a timeout blocks a path. Takes one of "endpoint" "flow". Default from: Spritz §III-C,
    Algorithms 1 to 3: entries and weights are those of the endpoint. Default: "endpoint".
    """

    buffer: Literal["flow", "pair"] | None = None
    """
    Owner of a buffer of good paths. That of a pair is emptied when a flow opens and no ACK has come for 100
    us. Takes one of "flow" "pair". Default from: Spritz §IV: may be cached between identical connections.
    Default: "flow".
    """

    buffer_size: int | None = None
    """
    Good paths that are kept. Takes a whole number, zero or more. Default from: Spritz §IV; the artifact keeps
    9. Default: 8.
    """

    ecn_rate: float | None = None
    """
    Share of marked ACKs above which the minimal path is preferred. Takes a number. Default from: Spritz
    Algorithm 2. Default: 0.9.
    """

    ecn_threshold: int | None = None
    """
    Marks above which a path is no longer good. Takes a whole number, zero or more. Default from: Spritz Table
    II: about a tenth of a BDP. Default: 8.
    """

    explore_threshold: int | None = None
    """
    Packets after which one explores: the next is drawn by weight. 0: never. Takes a whole number, zero or
    more. Default from: Spritz Table II: about half a BDP. Default: 44.
    """

    max_paths: int | None = None
    """
    Maximum paths kept per destination; 0: all. Takes a whole number, zero or more. Default from: Spritz
    §III-C: a subset where memory is limited. Default: 0.
    """

    reading: Literal["paper", "artifact"] | None = None
    """
    Source of what counts towards an exploration, and of what blocks a path. Takes one of "paper" "artifact".
    Default from: Spritz Algorithms 1 to 3. Default: "paper".
    """

    small_flow: str | None = None
    """
    Flows below this size draw the minimal path with weight 100 and all others with 1. Takes a size such as
    "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Spritz §V-C: identical weights; the
    artifact's scripts: 512KiB. Default: "0B".
    """

    subset: Literal["fastest", "random"] | None = None
    """
    Selection of the paths kept. Takes one of "fastest" "random". Default from: ours: not given. Default:
    "fastest".
    """

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """
    Weights of the paths in draws. Takes one of "uniform" "latency" "propagation". Default from: Spritz
    equation 1; (u) is uniform. Default: "latency".
    """


class SpritzSpray(Part):
    """Recycles paths that came back unmarked, else draws them by weight."""

    _table: ClassVar[str] = "load_balancer.spritz-spray"
    _kind: ClassVar[str | None] = "spritz-spray"
    _keys: ClassVar[dict[str, str]] = {
        "block_interval": "block_interval",
        "block_scope": "block_scope",
        "buffer": "buffer",
        "buffer_size": "buffer_size",
        "ecn_rate": "ecn_rate",
        "explore_threshold": "explore_threshold",
        "max_paths": "max_paths",
        "reading": "reading",
        "small_flow": "small_flow",
        "subset": "subset",
        "weights": "weights",
    }

    block_interval: str | None = None
    """
    Interval of the timer that restores all blocked paths. Takes "never" or a time such as "1us" (ps, ns, us,
    ms, s). Default from: ours: not given. Default: "1ms".
    """

    block_scope: Literal["endpoint", "flow"] | None = None
    """
    Flows for which a timeout blocks a path. Takes one of "endpoint" "flow". Default from: Spritz §III-C,
    Algorithms 1 to 3: entries and weights are those of the endpoint. Default: "endpoint".
    """

    buffer: Literal["flow", "pair"] | None = None
    """
    Owner of a buffer of good paths. That of a pair is emptied when a flow opens and no ACK has come for 100
    us. Takes one of "flow" "pair". Default from: Spritz §IV: may be cached between identical connections.
    Default: "flow".
    """

    buffer_size: int | None = None
    """
    Good paths that are kept. Takes a whole number, zero or more. Default from: Spritz §IV; the artifact keeps
    9. Default: 8.
    """

    ecn_rate: float | None = None
    """
    Share of marked ACKs above which the minimal path is preferred. Takes a number. Default from: Spritz
    Algorithm 3. Default: 0.9.
    """

    explore_threshold: int | None = None
    """
    Packets after which one explores: the next is drawn by weight. 0: never. Takes a whole number, zero or
    more. Default from: Spritz Table II: about half a BDP. Default: 44.
    """

    max_paths: int | None = None
    """
    Maximum paths kept per destination; 0: all. Takes a whole number, zero or more. Default from: Spritz
    §III-C: a subset where memory is limited. Default: 0.
    """

    reading: Literal["paper", "artifact"] | None = None
    """
    Source of what counts towards an exploration, and of what blocks a path. Takes one of "paper" "artifact".
    Default from: Spritz Algorithms 1 to 3. Default: "paper".
    """

    small_flow: str | None = None
    """
    Flows below this size draw the minimal path with weight 100 and all others with 1. Takes a size such as
    "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: Spritz §V-C: identical weights; the
    artifact's scripts: 512KiB. Default: "0B".
    """

    subset: Literal["fastest", "random"] | None = None
    """
    Selection of the paths kept. Takes one of "fastest" "random". Default from: ours: not given. Default:
    "fastest".
    """

    weights: Literal["uniform", "latency", "propagation"] | None = None
    """
    Weights of the paths in draws. Takes one of "uniform" "latency" "propagation". Default from: Spritz
    equation 1; (u) is uniform. Default: "latency".
    """


class Ugal(Part):
    """The minimal path, or a random Valiant path with a shorter queue."""

    _table: ClassVar[str] = "load_balancer.ugal"
    _kind: ClassVar[str | None] = "ugal"
    _keys: ClassVar[dict[str, str]] = {
        "decide": "decide",
        "first_hop": "first_hop",
        "knowledge": "knowledge",
        "snapshot_interval": "snapshot_interval",
    }

    decide: Literal["source", "every-switch"] | None = None
    """
    Switches that may divert a packet. Takes one of "source" "every-switch". Default from: ours; every-switch
    is the artifact's. Default: "source".
    """

    first_hop: Literal["port", "switch"] | None = None
    """
    Draw of the first switch of a Dragonfly for the Valiant path. Takes one of "port" "switch". Default from:
    as valiant. Default: "port".
    """

    knowledge: Literal["local", "global"] | None = None
    """
    Queues that the switch can read. Takes one of "local" "global". Default from: Spritz §V-A: UGAL-L.
    Default: "local".
    """

    snapshot_interval: str | None = None
    """
    Time between two snapshots of all queues for `global`; a snapshot takes effect one interval later. auto:
    the longest delay between two switches, latency included, which is also its lower bound. Takes "auto" or a
    time such as "1us" (ps, ns, us, ms, s). Default from: ours: one link delay. Default: "auto".
    """


class Valiant(Part):
    """Over a random intermediate group (Dragonfly) or switch (Slim Fly), then minimal."""

    _table: ClassVar[str] = "load_balancer.valiant"
    _kind: ClassVar[str | None] = "valiant"
    _keys: ClassVar[dict[str, str]] = {
        "first_hop": "first_hop",
    }

    first_hop: Literal["port", "switch"] | None = None
    """
    Draw of the first switch of a Dragonfly for a packet that leaves its group. Takes one of "port" "switch".
    Default from: Spritz §V-A: direct global links have a higher probability; `switch` is the artifact's.
    Default: "port".
    """


class LoadBalancer(Part):
    """A pair of schemes by name, or both sides, with the parameters of any."""

    _table: ClassVar[str] = "load_balancer"
    _keys: ClassVar[dict[str, str]] = {
        "ar": "ar",
        "bitmap": "bitmap",
        "co_prime": "co-prime",
        "coarse_guided": "coarse-guided",
        "conga": "conga",
        "conweave": "conweave",
        "drill": "drill",
        "ecmp": "ecmp",
        "ev_index": "ev-index",
        "flicr": "flicr",
        "flowbender": "flowbender",
        "flowlet": "flowlet",
        "hf2t": "hf2t",
        "hopper": "hopper",
        "host": "host",
        "letflow": "letflow",
        "minimal": "minimal",
        "mixed": "mixed",
        "ops": "ops",
        "plb": "plb",
        "prime": "prime",
        "qp_spray": "qp-spray",
        "random": "random",
        "reps": "reps",
        "rr": "rr",
        "scheme": "scheme",
        "source_guided": "source-guided",
        "spritz_coarse": "spritz-coarse",
        "spritz_scout": "spritz-scout",
        "spritz_spray": "spritz-spray",
        "switch": "switch",
        "ugal": "ugal",
        "valiant": "valiant",
    }
    _nested: ClassVar[dict[str, str]] = {
        "ar": "Ar",
        "bitmap": "Bitmap",
        "co_prime": "CoPrime",
        "coarse_guided": "CoarseGuided",
        "conga": "Conga",
        "conweave": "Conweave",
        "drill": "Drill",
        "ecmp": "Ecmp",
        "ev_index": "EvIndex",
        "flicr": "Flicr",
        "flowbender": "Flowbender",
        "flowlet": "Flowlet",
        "hf2t": "Hf2t",
        "hopper": "Hopper",
        "letflow": "Letflow",
        "minimal": "Minimal",
        "mixed": "Mixed",
        "ops": "Ops",
        "plb": "Plb",
        "prime": "Prime",
        "qp_spray": "QpSpray",
        "random": "Random",
        "reps": "Reps",
        "rr": "Rr",
        "source_guided": "SourceGuided",
        "spritz_coarse": "SpritzCoarse",
        "spritz_scout": "SpritzScout",
        "spritz_spray": "SpritzSpray",
        "ugal": "Ugal",
        "valiant": "Valiant",
    }

    ar: Ar | None = None
    """adaptive routing: the least local queue of all next hops"""

    bitmap: Bitmap | None = None
    """masked round robin that passes over paths with a penalty count (STrack-like)"""

    co_prime: CoPrime | None = None
    """PRIME's pseudo-random round robin without its congestion history"""

    coarse_guided: CoarseGuided | None = None
    """the first two switches hash within a table that the host's VLAN tag selects"""

    conga: Conga | None = None
    """flowlets take the path whose most congested link is least so, as other leaves report it"""

    conweave: Conweave | None = None
    """leaves move running flows off slow paths and put their packets back into order"""

    drill: Drill | None = None
    """the shortest local queue of some random next hops and the best remembered"""

    ecmp: Ecmp | None = None
    """hash of flow and tag, with a seed per switch"""

    ev_index: EvIndex | None = None
    """this tier's part of the multi-part entropy value names the uplink"""

    flicr: Flicr | None = None
    """one path at a time, drawn by weight, left when a round trip was congested"""

    flowbender: Flowbender | None = None
    """a flow changes its tag when too many ACKs of a round trip were marked (or late)"""

    flowlet: Flowlet | None = None
    """a new random path after every pause of the sender"""

    hf2t: Hf2t | None = None
    """holds a few packets back so that flowlet switches see more flowlets"""

    hopper: Hopper | None = None
    """moves a flow to a better path that it has probed when its round trips grow"""

    host: Literal[
        "ecmp",
        "ops",
        "rr",
        "reps",
        "bitmap",
        "mixed",
        "plb",
        "flowbender",
        "flowlet",
        "co-prime",
        "prime",
        "hopper",
        "hf2t",
        "qp-spray",
        "flicr",
        "spritz-scout",
        "spritz-spray",
        "spritz-coarse",
    ] | None = None
    """A host-side scheme."""

    letflow: Letflow | None = None
    """a random path for every flowlet, chosen at the sender's leaf"""

    minimal: Minimal | None = None
    """static minimal routing on a Dragonfly or a Slim Fly"""

    mixed: Mixed | None = None
    """recycles entropy values that came back clean, else picks by bitmap"""

    ops: Ops | None = None
    """a fresh entropy value for every packet, blind to congestion"""

    plb: Plb | None = None
    """a flow moves to a random path after congested round trips"""

    prime: Prime | None = None
    """pseudo-random round robin over all paths, passing over paths with recent congestion"""

    qp_spray: QpSpray | None = None
    """chunks in turn over a few queue pairs with fixed paths (NCCL)"""

    random: Random | None = None
    """a uniformly random next hop for every packet"""

    reps: Reps | None = None
    """reuses entropy values whose packets came back unmarked"""

    rr: Rr | None = None
    """the next hops in turn, packet by packet"""

    scheme: str | None = None
    """A pair by name, or `host+switch`."""

    source_guided: SourceGuided | None = None
    """the first two switches of a Dragonfly or a Slim Fly forward by the entropy value"""

    spritz_coarse: SpritzCoarse | None = None
    """Scout's feedback over categories of paths, tagged by VLAN"""

    spritz_scout: SpritzScout | None = None
    """explores paths by weight and holds to the fastest that is good"""

    spritz_spray: SpritzSpray | None = None
    """recycles paths that came back unmarked, else draws them by weight"""

    switch: Literal[
        "ecmp",
        "ev-index",
        "ar",
        "drill",
        "letflow",
        "conga",
        "conweave",
        "rr",
        "random",
        "source-guided",
        "coarse-guided",
        "minimal",
        "valiant",
        "ugal",
    ] | None = None
    """A switch-side scheme."""

    ugal: Ugal | None = None
    """the minimal path, or a random Valiant path with a shorter queue"""

    valiant: Valiant | None = None
    """over a random intermediate group (Dragonfly) or switch (Slim Fly), then minimal"""
