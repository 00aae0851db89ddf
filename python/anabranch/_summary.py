"""`summary.json` with types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self, dataclass_transform, get_args, get_origin, get_type_hints


# No dataclasses: they import `inspect`, which takes half of the import time of the package.
@dataclass_transform(frozen_default=True, kw_only_default=True)
class _Read:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} does not change")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in _hints(type(self)))

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in _hints(type(self)))
        return f"{type(self).__name__}({values})"

    @classmethod
    def read(cls, given: dict[str, Any]) -> Self:
        """Reads JSON; missing values have their defaults."""
        hints = _hints(cls)
        return cls(**{name: _value(hints[name], given[name]) for name in hints if name in given})


_HINTS: dict[type, dict[str, Any]] = {}


def _hints(cls: type) -> dict[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = get_type_hints(cls)
    return _HINTS[cls]


def _value(hint: Any, given: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, _Read):
        return hint.read(given)
    if get_origin(hint) is Mapping and isinstance(given, dict):
        inner = get_args(hint)[1]
        return {key: _value(inner, value) for key, value in given.items()}
    reads = [arm for arm in get_args(hint) if isinstance(arm, type) and issubclass(arm, _Read)]
    if reads and isinstance(given, dict):  # `Conservation | None`
        return reads[0].read(given)
    if get_origin(hint) is Sequence and isinstance(given, list):
        return [_value(get_args(hint)[0], value) for value in given]
    return given


class Distribution(_Read):
    """Mean, quantiles (linear between order statistics) and maximum of a set of values; None if it is empty."""

    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


class FlowCounts(_Read):
    """Number of flows, by how they ended."""

    total: int = 0
    finished: int = 0
    unfinished: int = 0
    measured: int = 0
    measured_unfinished: int = 0


class SizeRange(_Read):
    """Minimum and maximum flow size, in bytes."""

    min: int | None = None
    max: int | None = None


class FlowTotals(_Read):
    """Totals or maxima over the measured finished flows; None where not measured."""

    retransmitted_packets: int | None = None
    out_of_order_packets: int | None = None
    max_reorder_bytes: int | None = None
    path_switches: int | None = None
    out_of_sequence_packets: int | None = None
    refused_packets: int | None = None
    max_queue_pairs: int | None = None


class GroupSummary(_Read):
    """Statistics of the groups of a job, a value per group and repetition."""

    total: int = 0
    """Groups times repetitions."""
    complete: int = 0
    """Those that all ranks have ended; the statistics are over them."""
    completion_us: Distribution = Distribution()
    slowdown: Distribution = Distribution()
    """Completion time over that of the same job alone on an idle network."""
    exposed_us: Distribution = Distribution()
    """Completion time without computation."""
    bus_bandwidth_bps: float | None = None
    """Median bus bandwidth by NCCL's definition; None where NCCL defines none."""


class FlowSummary(_Read):
    """Statistics of a set of flows, over the measured finished ones."""

    flows: FlowCounts = FlowCounts()
    fct_kind: str = "rx"
    """Completion time of the statistics: `rx` or `ack`."""
    fct_us: Distribution = Distribution()
    nic_wait_us: Distribution = Distribution()
    """Time from the start to the first packet sent, which a completion time of kind `rx` omits."""
    slowdown: Distribution = Distribution()
    slowdown_p99_small: float | None = None
    """99th percentile of the slowdown of flows up to 100 kB; None where there are none, or all are."""
    slowdown_p99_large: float | None = None
    """99th percentile of the slowdown of flows of 10 MB or more; None where there are none, or all are."""
    fct_ratio_max: float | None = None
    """Maximum completion time over the maximum ideal one; None if a flow did not finish."""
    completion_us: float | None = None
    """Time from the first start to the last acknowledgement; None if a flow did not finish."""
    size_bytes: SizeRange = SizeRange()
    metrics: FlowTotals = FlowTotals()
    measured: bool = True
    is_job: bool | None = None
    """True if `completion_us` is the result: a collective, or flows that wait for others."""
    groups: GroupSummary | None = None
    """Groups of a job; None for other traffic."""


class Counters(_Read):
    """Totals of a run; None where not measured."""

    data_packets: int | None = None
    acks: int | None = None
    ecn_marked: int | None = None
    trimmed: int | None = None
    dropped: int | None = None
    retransmitted: int | None = None
    timeouts: int | None = None
    out_of_order: int | None = None
    pfc_pauses: int | None = None
    pfc_resumes: int | None = None
    flowlets: int | None = None
    path_switches: int | None = None
    probes: int | None = None
    probe_bytes: int | None = None
    created_flowlets: int | None = None
    added_delay_ns: int | None = None
    hold_timeouts_ns: int | None = None
    reroutes: int | None = None
    reordered_packets: int | None = None
    max_queue_pairs: int | None = None
    refused_packets: int | None = None
    unbuffered_flows: int | None = None
    gaps: int | None = None
    gaps_1_rtt: int | None = None
    gaps_2_rtt: int | None = None
    gaps_3_rtt: int | None = None
    packets_per_ack: float | None = None


class Balance(_Read):
    """One line of the conservation check: injected = delivered + dropped + trimmed + in flight."""

    injected: int = 0
    delivered: int = 0
    dropped: int = 0
    trimmed: int = 0
    in_flight: int = 0


class Conservation(_Read):
    """The conservation check of a run."""

    holds: bool = True
    data_packets: Balance = Balance()
    data_bytes: Balance = Balance()
    headers: Balance = Balance()
    acks: Balance = Balance()
    ack_bytes: Balance = Balance()
    probes: Balance = Balance()
    control: Balance = Balance()
    scale_up_bytes: Balance = Balance()
    unique_bytes: int = 0
    flow_bytes: int = 0


class Queues(_Read):
    """Queued data at the switches' ports; None where not measured."""

    max_bytes: int | None = None
    p99_bytes: int | None = None
    mean_bytes: float | None = None


class ScaleUp(_Read):
    """Use of the scale-up networks of servers."""

    bytes: int = 0
    messages: int = 0
    utilisation_mean: float = 0.0
    """Of the ports of all GPUs, both directions."""
    utilisation_max: float = 0.0


class OfferedLoad(_Read):
    """Links that are offered more than they can carry."""

    links: str = ""
    load: float = 0.0


class Summary(FlowSummary):
    """Summary of a run, as in `summary.json`."""

    scenario: str = ""
    scheme: str = ""
    seed: int = 0
    threads: int = 0
    backend: str = "sim"
    """Backend: `sim`, `testbed`."""
    fingerprint: str | None = None
    """16 hexadecimal digits over the integers of flows and links; None for real packets."""
    simulated_s: float = 0.0
    wall_s: float = 0.0
    events: int | None = None
    packet_hops: int | None = None
    packet_hops_per_s: float | None = None
    peak_rss_bytes: int | None = None
    workloads: Mapping[str, FlowSummary] = MappingProxyType({})
    counters: Counters = Counters()
    conservation: Conservation | None = None
    """None if it was not checked."""
    queues: Queues = Queues()
    scale_up: ScaleUp | None = None
    """None without servers."""
    version: str = ""
    commit: str = ""
    time_limit_struck: bool = False
    interrupted: bool = False
    status: str | None = None
    """Status: `finished`, `time-limit`, `interrupted`, `deadlock`, `stalled`, `lost-peers` or `skipped`."""
    deadlock: Sequence[str] = ()
    """Links of a cycle of PFC pauses that cannot resolve; empty if there is none."""
    last_progress_s: float | None = None
    """Time of the last received byte in seconds, of a stalled run; `None` elsewhere."""
    stall_reason: str | None = None
    """Why no event was pending, of a run that stalled so; `None` elsewhere."""
    ideal_note: str | None = None
    """Why ideal times, and so slowdowns, are not exact; `None` where they are."""
    unfinished_named: Sequence[str] = ()
    warmup_s: float = 0.0
    flows_wait: bool = False
    bytes_per_host: int | None = None
    arrivals_from_s: float | None = None
    arrivals_to_s: float | None = None
    window_from_s: float | None = None
    window_to_s: float | None = None
    trace_cut_s: float | None = None
    offered_load: Sequence[OfferedLoad] = ()

    def value(self, name: str) -> float | None:
        """Returns a number by its dotted name: `slowdown.p99`, `fct_us.mean`, `counters.trimmed`, `workloads.web.slowdown.p99`."""
        found: Any = self
        for step in name.split("."):
            found = found.get(step) if isinstance(found, Mapping) else getattr(found, step, None)
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            return None
        return float(found)
