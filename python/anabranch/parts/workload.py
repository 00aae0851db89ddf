"""Workloads. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from typing import ClassVar, Literal

from .._part import Part


class Poisson(Part):
    """Flows of random sizes to random receivers, in a Poisson process per host."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "poisson"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "destinations": "destinations",
        "duration": "duration",
        "hosts": "hosts",
        "load": "load",
        "load_balancer": "load_balancer",
        "load_reference": "load_reference",
        "max_flows": "max_flows",
        "max_senders": "max_senders",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "sizes": "sizes",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    destinations: Literal["any", "other-leaf", "other-group"] | None = None
    """
    Scope of the receivers. Takes one of "any" "other-leaf" "other-group". Default from: ConWeave's traffic
    generator. Default: "any".
    """

    duration: str | None = None
    """
    Duration of the arrival processes. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz
    §V-B. Default: "1ms".
    """

    hosts: Literal["all", "rest"] | None = None
    """
    Participating hosts: all, or those that neither send nor receive in the workloads listed before. Takes one
    of "all" "rest". Default from: ours. Default: "all".
    """

    load: float | None = None
    """
    Payload offered per time, as a share of the capacity. Takes a number. Default from: Hopper §4.1: 0.5 and
    0.8. Default: 0.5.
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    load_reference: Literal["host", "network"] | None = None
    """
    Capacity that the load is a share of. Takes one of "host" "network". Default from: specification 2.6.
    Default: "host".
    """

    max_flows: int | None = None
    """
    Maximum number of expected flows: guards the memory. Takes a whole number, zero or more. Default from:
    ours: about 2 GB. Default: 20000000.
    """

    max_senders: int | None = None
    """
    Maximum concurrent senders of a receiver, a flow taking size / NIC rate from its start; 0: unlimited.
    Takes a whole number, zero or more. Default from: specification 12.3: 4 for Spritz's web search, whose
    number is not given. Default: 0.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    sizes: str | None = None
    """
    Flow sizes: a name (`anabranch list workloads`), one size such as "64KiB", or the path of a table. Takes
    text. Default from: Hopper §4.1, Spritz §V-B. Default: "web-search".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the arrival processes. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "0us".
    """


class Permutation(Part):
    """Every host sends one message to another one, and receives one."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "permutation"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "hosts": "hosts",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "rounds": "rounds",
        "scope": "scope",
        "size": "size",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    hosts: Literal["all", "rest"] | None = None
    """
    Participating hosts: all, or those that neither send nor receive in the workloads listed before. Takes one
    of "all" "rest". Default from: ours; specification 12.3, 12.5: bystanders and backgrounds. Default: "all".
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    rounds: int | None = None
    """
    Number of consecutive permutations. Takes a whole number, zero or more. Default from: ours. Default: 1.
    """

    scope: Literal["any", "other-leaf", "other-group"] | None = None
    """
    Scope of the receivers. Takes one of "any" "other-leaf" "other-group". Default from: ours. Default: "any".
    """

    size: str | None = None
    """
    Bytes per message. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    ours; Spritz §V-B has 4 MiB for the monitored flow and the incast. Default: "4MiB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the first round. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "0us".
    """


class Incast(Part):
    """Many hosts send to one receiver, or to each of several, at the same time."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "incast"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "receiver_hosts": "receiver_hosts",
        "receivers": "receivers",
        "sender_hosts": "sender_hosts",
        "senders": "senders",
        "size": "size",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    receiver_hosts: list[int] | None = None
    """
    The receivers, by host number; empty: random ones. Takes a list, each a whole number, zero or more.
    Default from: ours. Default: [].
    """

    receivers: Literal["auto"] | int | None = None
    """
    Number of receivers; auto: as many as `receiver_hosts` lists, or 1. Takes "auto" or a whole number, zero
    or more. Default from: specification 12.3. Default: "auto".
    """

    sender_hosts: list[int] | None = None
    """
    The senders, by host number; empty: random ones. Takes a list, each a whole number, zero or more. Default
    from: ours. Default: [].
    """

    senders: Literal["auto"] | int | None = None
    """
    Number of senders; auto: as many as `sender_hosts` lists, or 32. Takes "auto" or a whole number, zero or
    more. Default from: specification 12.3: 32 on Dragonfly. Default: "auto".
    """

    size: str | None = None
    """
    Bytes per message. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    specification 12.3: 4 MiB. Default: "4MiB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of all messages. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: specification
    12.3. Default: "0us".
    """


class Adversarial(Part):
    """Pairs of hosts whose default paths share single links of a Dragonfly or a Slim Fly."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "adversarial"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "load_balancer": "load_balancer",
        "measured": "measured",
        "name": "name",
        "offset": "offset",
        "overlap": "overlap",
        "size": "size",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    offset: int | None = None
    """
    Dragonfly: distance in groups from sender to receiver; no effect on Slim Fly. Takes a whole number, zero
    or more. Default from: specification 12.3: adv_i5. Default: 5.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    size: str | None = None
    """
    Bytes per message. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    ours; Spritz §V-B has 4 MiB for the monitored flow and the incast. Default: "4MiB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of all messages. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: specification
    12.3. Default: "0us".
    """


class Microbenchmark(Part):
    """
    One monitored flow across a Dragonfly whose groups are congested towards its destination, but for a few.
    """

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "microbenchmark"
    _keys: ClassVar[dict[str, str]] = {
        "background": "background",
        "background_size": "background_size",
        "class_": "class",
        "congestion_control": "congestion_control",
        "destination_group": "destination_group",
        "flows_per_host": "flows_per_host",
        "free_groups": "free_groups",
        "lead": "lead",
        "load_balancer": "load_balancer",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "part": "part",
        "placement_seed": "placement_seed",
        "size": "size",
        "source_group": "source_group",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    background: Literal["gateway", "through"] | None = None
    """
    Destination of the long flows. Takes one of "gateway" "through". Default from: ours: the paper's flows are
    not published; `gateway` is specification 12.4. Default: "through".
    """

    background_size: str | None = None
    """
    Bytes of each long flow. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default
    from: ours: outlasts the monitored flow. Default: "64MiB".
    """

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    destination_group: Literal["auto"] | int | None = None
    """
    Group of the monitored flow's receiver; auto: a random one. Takes "auto" or a whole number, zero or more.
    Default from: ours. Default: "auto".
    """

    flows_per_host: int | None = None
    """
    Long flows that each host sends to its destination. Takes a whole number, zero or more. Default from:
    ours: not given. Default: 1.
    """

    free_groups: int | None = None
    """
    Groups without congestion, besides that of the destination. Takes a whole number, zero or more. Default
    from: specification 12.4. Default: 3.
    """

    lead: str | None = None
    """
    Time by which the long flows start before the monitored flow. Takes a time such as "1us" (ps, ns, us, ms,
    s). Default from: specification 12.4. Default: "20us".
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    part: Literal["both", "monitored", "background"] | None = None
    """
    Flows to generate. Two workloads with the same keys and seed, one for each part, are consistent. Takes one
    of "both" "monitored" "background". Default from: ours. Default: "both".
    """

    placement_seed: Literal["auto"] | int | None = None
    """
    Seed that draws groups and hosts; auto: that of the run. With a number all seeds of a comparison have the
    same flows. Takes "auto" or a whole number, zero or more. Default from: ours: the paper's groups are not
    published. Default: "auto".
    """

    size: str | None = None
    """
    Bytes of the monitored flow. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default
    from: Spritz §V-B: 4 MiB. Default: "4MiB".
    """

    source_group: Literal["auto"] | int | None = None
    """
    Group of the monitored flow's sender; auto: a random one. Takes "auto" or a whole number, zero or more.
    Default from: ours. Default: "auto".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the long flows. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default:
    "0us".
    """


class AllToAll(Part):
    """Every rank sends one message to every other, with a window of messages outstanding."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "all-to-all"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "name": "name",
        "order": "order",
        "overlap": "overlap",
        "parallel": "parallel",
        "placement": "placement",
        "ranks": "ranks",
        "size": "size",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    order: Literal["shifted", "random"] | None = None
    """
    Order in which a rank serves the others. Takes one of "shifted" "random". Default from: specification
    12.5. Default: "shifted".
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    parallel: int | None = None
    """
    Maximum outstanding messages of a rank; 0: unlimited. Takes a whole number, zero or more. Default from:
    ours; Spritz: 4. Default: 0.
    """

    placement: str | None = None
    """
    Placement of ranks on hosts. Takes "packed", "random", "strided", "across-racks", "rail" or the path of a
    file with the hosts of each group. Default from: ours; Spritz: random. Default: "packed".
    """

    ranks: Literal["all"] | int | None = None
    """
    Number of participating hosts. Takes "all" or a number of hosts, 2 or more. Default from: ours; Spritz:
    128. Default: "all".
    """

    size: str | None = None
    """
    Bytes per message. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from:
    ours. Default: "1MiB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the first messages. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "0us".
    """


class Collective(Part):
    """AllReduce, all-gather, reduce-scatter, all-to-all or a pipeline, message by message, in groups."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "collective"
    _keys: ClassVar[dict[str, str]] = {
        "algorithm": "algorithm",
        "channels": "channels",
        "chunks": "chunks",
        "class_": "class",
        "compute": "compute",
        "concurrent": "concurrent",
        "congestion_control": "congestion_control",
        "gap": "gap",
        "groups": "groups",
        "hosts": "hosts",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "message_size": "message_size",
        "name": "name",
        "order": "order",
        "overlap": "overlap",
        "parallel": "parallel",
        "placement": "placement",
        "ranks": "ranks",
        "repetitions": "repetitions",
        "server_ranks": "server_ranks",
        "size": "size",
        "skew": "skew",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
        "steps": "steps",
        "trigger": "trigger",
    }

    algorithm: Literal[
        "ring-allreduce",
        "recursive-doubling",
        "halving-doubling",
        "ring-all-gather",
        "ring-reduce-scatter",
        "all-to-all",
        "tree",
        "double-binary-tree",
        "hierarchical",
        "expert-all-to-all",
        "pipeline",
        "ring",
    ] | None = None
    """
    The schedule of messages ("ring" is short for "ring-allreduce"). Takes one of "ring-allreduce",
    "recursive-doubling", "halving-doubling", "ring-all-gather", "ring-reduce-scatter", "all-to-all", "tree",
    "double-binary-tree", "hierarchical", "expert-all-to-all", "pipeline", or "ring" for "ring-allreduce".
    Default from: specification 12.5; Spritz §V-B. Default: "ring-allreduce".
    """

    channels: int | None = None
    """
    Parallel copies of the schedule, each with its share of the vector. Takes a whole number, zero or more.
    Default from: ours. Default: 1.
    """

    chunks: Literal["auto"] | int | None = None
    """
    Trees: chunks of the vector that follow each other, at most two outstanding per link; pipeline:
    microbatches. auto: 1 in trees, 8 in a pipeline. Takes "auto" or a whole number, zero or more. Default
    from: ours; GPipe (Huang et al. 2019): microbatches. Default: "auto".
    """

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    compute: str | None = None
    """
    Computation of every rank at the begin of a repetition, before its first message. Takes a time such as
    "1us" (ps, ns, us, ms, s). Default from: ours. Default: "0us".
    """

    concurrent: Literal["auto"] | int | None = None
    """
    Groups that run at a time; when one ends, the next starts on its hosts. auto: all. Takes "auto" or a whole
    number, zero or more. Default from: ours. Default: "auto".
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    gap: str | None = None
    """
    Time between the end of a repetition and the begin of the next, per rank. Takes a time such as "1us" (ps,
    ns, us, ms, s). Default from: ours. Default: "0us".
    """

    groups: int | None = None
    """
    Number of groups, each of which runs the collective. Takes a whole number, zero or more. Default from:
    ours. Default: 1.
    """

    hosts: list[int] | str | None = None
    """
    Hosts on which groups may run. Takes "all", "rest", a list of hosts, or a slice such as "0..64" or
    "0..64:2" (every second one). Default from: ours. Default: "all".
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    message_size: str | None = None
    """
    Bytes of every message instead; auto: derived from `size`, rounded up. Takes "auto" or a size such as
    "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: ours; Spritz: 4 MiB. Default: "auto".
    """

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    order: Literal["shifted", "random"] | None = None
    """
    All-to-all: order in which a rank serves the others. Takes one of "shifted" "random". Default from:
    specification 12.5; Spritz's files: random. Default: "shifted".
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    parallel: int | None = None
    """
    All-to-all: maximum outstanding messages of a rank; 0: unlimited. Takes a whole number, zero or more.
    Default from: ours; Spritz: 4. Default: 0.
    """

    placement: str | None = None
    """
    Placement of ranks on hosts: packed (consecutive), random, strided (groups in turn), across-racks (the
    first hosts of all racks, then the second ones), rail (GPUs of one number in consecutive servers), or a
    file with the hosts of each group in a line. Takes "packed", "random", "strided", "across-racks", "rail"
    or the path of a file with the hosts of each group. Default from: ours; Spritz: random. Default: "packed".
    """

    ranks: Literal["all"] | int | None = None
    """
    Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time.
    Takes "all" or a number of hosts, 2 or more. Default from: ours; Spritz: 128. Default: "all".
    """

    repetitions: int | None = None
    """
    Number of times that every group runs the collective. Takes a whole number, zero or more. Default from:
    ours. Default: 1.
    """

    server_ranks: Literal["auto"] | int | None = None
    """
    Hierarchical: ranks of a group in one server; auto: those that [servers] and the placement put there.
    Takes "auto" or a whole number, zero or more. Default from: ours. Default: "auto".
    """

    size: str | None = None
    """
    Bytes of the vector of every rank. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB).
    Default from: ours. Default: "64MiB".
    """

    skew: float | None = None
    """
    Expert-all-to-all: Zipf exponent of the popularity of experts; 0: all are equally popular. Takes a number.
    Default from: ours. Default: 0.0.
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the first messages. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "0us".
    """

    steps: Literal["auto"] | int | None = None
    """
    Steps in sequence; auto: those of the algorithm. More steps repeat it. Takes "auto" or a whole number,
    zero or more. Default from: specification 12.5; Spritz's files: 255 for a ring of 128. Default: "auto".
    """

    trigger: Literal["auto"] | Literal["received", "acknowledged"] | None = None
    """
    Event that the next message waits for; auto: received, in an all-to-all acknowledged. Takes "auto" or one
    of "received" "acknowledged". Default from: specification 12.5; Spritz's files: acknowledged for the ring.
    Default: "auto".
    """


class TrainingRounds(Part):
    """Rounds of an AllReduce with a barrier after each."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "training-rounds"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "compute": "compute",
        "concurrent": "concurrent",
        "congestion_control": "congestion_control",
        "exchange": "exchange",
        "gap": "gap",
        "groups": "groups",
        "hosts": "hosts",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "placement": "placement",
        "ranks": "ranks",
        "rounds": "rounds",
        "sizes": "sizes",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    compute: str | None = None
    """
    Computation of every rank at the begin of a round, before its first message. Takes a time such as "1us"
    (ps, ns, us, ms, s). Default from: ours. Default: "0us".
    """

    concurrent: Literal["auto"] | int | None = None
    """
    Groups that run at a time; when one ends, the next starts on its hosts. auto: all. Takes "auto" or a whole
    number, zero or more. Default from: ours. Default: "auto".
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    exchange: Literal["direct", "ring", "pairs"] | None = None
    """
    Senders and receivers of a round. Takes one of "direct" "ring" "pairs". Default from: Hopper 4.2: each
    sender transmits data to its corresponding receiver. Default: "pairs".
    """

    gap: str | None = None
    """
    Time between the end of a round and the begin of the next. Takes a time such as "1us" (ps, ns, us, ms, s).
    Default from: ours. Default: "0us".
    """

    groups: int | None = None
    """
    Number of groups, each of which trains by itself. Takes a whole number, zero or more. Default from: ours.
    Default: 1.
    """

    hosts: list[int] | str | None = None
    """
    Hosts on which groups may run. Takes "all", "rest", a list of hosts, or a slice such as "0..64" or
    "0..64:2" (every second one). Default from: ours. Default: "all".
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    placement: str | None = None
    """
    Placement of ranks on hosts, as in `collective`. Takes "packed", "random", "strided", "across-racks",
    "rail" or the path of a file with the hosts of each group. Default from: Hopper 4.2: senders and receivers
    in different racks. Default: "across-racks".
    """

    ranks: Literal["all"] | int | None = None
    """
    Number of participating hosts of a group; all: the hosts, divided among the groups that run at a time.
    Takes "all" or a number of hosts, 2 or more. Default from: Hopper 4.2: all four clients, and their
    receivers. Default: 8.
    """

    rounds: int | None = None
    """
    Number of rounds. Takes a whole number, zero or more. Default from: ours: 51 rounds of four messages are
    the 204 flows of Hopper 4.2. Default: 51.
    """

    sizes: str | None = None
    """
    Message sizes: a name (`anabranch list workloads`), one size such as "100MB", or the path of a table.
    Takes text. Default from: ours: the sizes of GPT-3's messages are not given. Default: "100MB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the first round. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "0us".
    """


class TrainingStep(Part):
    """Steps of training with data, tensor and pipeline parallelism together."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "training-step"
    _keys: ClassVar[dict[str, str]] = {
        "activations": "activations",
        "backward": "backward",
        "buckets": "buckets",
        "class_": "class",
        "concurrent": "concurrent",
        "congestion_control": "congestion_control",
        "dp": "dp",
        "forward": "forward",
        "fused_layers": "fused_layers",
        "gap": "gap",
        "gradients": "gradients",
        "groups": "groups",
        "hosts": "hosts",
        "layers": "layers",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "microbatches": "microbatches",
        "name": "name",
        "overlap": "overlap",
        "placement": "placement",
        "pp": "pp",
        "ranks": "ranks",
        "repetitions": "repetitions",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
        "tp": "tp",
    }

    activations: str | None = None
    """
    Bytes of the activations of a microbatch between two layers: batch x sequence x hidden size x bytes per
    value. Takes a size such as "4MiB" (B, kB, KiB, MB, MiB, GB, GiB, TB, TiB). Default from: ours. Default:
    "4MiB".
    """

    backward: str | None = None
    """
    Backward computation; auto: twice the forward one. Takes "auto" or a time such as "1us" (ps, ns, us, ms,
    s). Default from: Narayanan et al. 2021, section 2.2. Default: "auto".
    """

    buckets: int | None = None
    """
    Parts of the gradients that are reduced one after the other, each when its layers have computed; 1: at the
    end. Takes a whole number, zero or more. Default from: ours. Default: 1.
    """

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    concurrent: Literal["auto"] | int | None = None
    """
    Groups that run at a time; when one ends, the next starts on its hosts. auto: all. Takes "auto" or a whole
    number, zero or more. Default from: ours. Default: "auto".
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    dp: int | None = None
    """
    Replicas of the model (data parallelism). Takes a whole number, zero or more. Default from: ours. Default:
    2.
    """

    forward: str | None = None
    """
    Forward computation of a layer and microbatch on each of its ranks. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "50us".
    """

    fused_layers: int | None = None
    """
    Layers of a stage that compute, and reduce their activations, together: fewer messages of the same bytes.
    Takes a whole number, zero or more. Default from: ours. Default: 1.
    """

    gap: str | None = None
    """
    Time between the end of a step and the begin of the next, per rank. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "0us".
    """

    gradients: str | None = None
    """
    Bytes of the gradients of a layer, over all its `tp` ranks. Takes a size such as "4MiB" (B, kB, KiB, MB,
    MiB, GB, GiB, TB, TiB). Default from: ours. Default: "32MiB".
    """

    groups: int | None = None
    """
    Number of groups, each of which trains a model of its own. Takes a whole number, zero or more. Default
    from: ours. Default: 1.
    """

    hosts: list[int] | str | None = None
    """
    Hosts on which groups may run. Takes "all", "rest", a list of hosts, or a slice such as "0..64" or
    "0..64:2" (every second one). Default from: ours. Default: "all".
    """

    layers: int | None = None
    """
    Layers of the model; a multiple of `pp`. Takes a whole number, zero or more. Default from: ours. Default:
    8.
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    microbatches: int | None = None
    """
    Microbatches of a replica per step. Takes a whole number, zero or more. Default from: ours. Default: 4.
    """

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    placement: str | None = None
    """
    Placement of ranks on hosts, as in `collective`. Takes "packed", "random", "strided", "across-racks",
    "rail" or the path of a file with the hosts of each group. Default from: ours. Default: "packed".
    """

    pp: int | None = None
    """
    Stages of consecutive layers (pipeline parallelism). Takes a whole number, zero or more. Default from:
    ours. Default: 2.
    """

    ranks: Literal["all"] | int | None = None
    """
    Number of participating hosts of a group: dp x tp x pp; all: the hosts, divided among the groups. Takes
    "all" or a number of hosts, 2 or more. Default from: ours. Default: "all".
    """

    repetitions: int | None = None
    """Number of steps. Takes a whole number, zero or more. Default from: ours. Default: 1."""

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the first step. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default:
    "0us".
    """

    tp: int | None = None
    """
    Ranks that share each layer (tensor parallelism). Takes a whole number, zero or more. Default from: ours.
    Default: 2.
    """


class WorkloadFile(Part):
    """The flows of a file: CSV, ConWeave's, htsim's or GOAL."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "file"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "congestion_control": "congestion_control",
        "format": "format",
        "groups": "groups",
        "hosts": "hosts",
        "load_balancer": "load_balancer",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "path": "path",
        "placement": "placement",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start_at": "start_at",
        "start_unit": "start_unit",
    }

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    format: Literal["auto"] | Literal["csv", "conweave", "htsim-cm", "goal"] | None = None
    """
    Format of the file; auto: by its extension, `.csv`, `.cm` or `.goal`. Takes "auto" or one of "csv"
    "conweave" "htsim-cm" "goal". Default from: ours. Default: "auto".
    """

    groups: int | None = None
    """
    GOAL: number of groups, each of which runs the schedule. Takes a whole number, zero or more. Default from:
    ours. Default: 1.
    """

    hosts: list[int] | str | None = None
    """
    GOAL: hosts on which ranks may run. Takes "all", "rest", a list of hosts, or a slice such as "0..64" or
    "0..64:2" (every second one). Default from: ours. Default: "all".
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    path: str | None = None
    """
    The file; a relative path is relative to the scenario's folder. Takes text. Default from: no default: must
    be given.
    """

    placement: str | None = None
    """
    GOAL: placement of ranks on hosts, as in `collective`. Takes "packed", "random", "strided", "across-
    racks", "rail" or the path of a file with the hosts of each group. Default from: ours. Default: "packed".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start_at: str | None = None
    """
    Start of the flows: as in the file, or the first at this time; auto: ConWeave's at zero, others as in the
    file. Takes "auto", "file" or a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default:
    "auto".
    """

    start_unit: Literal["auto"] | Literal["ps", "ns", "us", "ms", "s"] | None = None
    """
    Unit of start times; auto: seconds in ConWeave's files, nanoseconds in GOAL schedules, picoseconds in the
    others. Takes "auto" or one of "ps" "ns" "us" "ms" "s". Default from: specification 14.1, 14.3, 14.5.
    Default: "auto".
    """


class Nccl(Part):
    """A collective of real processes over NCCL's network plugin: on testbeds alone."""

    _table: ClassVar[str] = "workload"
    _kind: ClassVar[str | None] = "nccl"
    _keys: ClassVar[dict[str, str]] = {
        "abi": "abi",
        "channels": "channels",
        "class_": "class",
        "collective": "collective",
        "congestion_control": "congestion_control",
        "element": "element",
        "hosts": "hosts",
        "load_balancer": "load_balancer",
        "max_flows": "max_flows",
        "measured": "measured",
        "name": "name",
        "overlap": "overlap",
        "ranks": "ranks",
        "rounds": "rounds",
        "size": "size",
        "split_class": "split_class",
        "split_load_balancer": "split_load_balancer",
        "split_name": "split_name",
        "split_share": "split_share",
        "start": "start",
    }

    abi: Literal["auto"] | Literal["v8", "v9", "v10", "v11", "v12"] | None = None
    """
    Version of NCCL's interface; auto: the newest that the plugin supports. Takes "auto" or one of "v8" "v9"
    "v10" "v11" "v12". Default from: ours. Default: "auto".
    """

    channels: int | None = None
    """
    Channels, each with a share of the buffer and its own connections. Takes a whole number, zero or more.
    Default from: ours. Default: 2.
    """

    class_: str | None = None
    """
    Traffic class of the flows. Default: the fabric's first. Takes text, or "" for none. Default from: ours.
    """

    collective: Literal["ring", "tree", "reduce-scatter", "all-gather", "all-to-all", "pairs"] | None = None
    """
    The collective: ring and tree are all-reduces; in pairs each rank sends to the next. Takes one of "ring"
    "tree" "reduce-scatter" "all-gather" "all-to-all" "pairs". Default from: ours. Default: "ring".
    """

    congestion_control: str | None = None
    """
    Congestion control of the flows, with the parameters of its table in `[transport]`. Default: that of the
    transport. Takes text, or "" for none. Default from: ours: Spritz Table III monitors one flow beside a
    background whose control the text does not give.
    """

    element: Literal["float", "int"] | None = None
    """Element type of buffers. Takes one of "float" "int". Default from: ours. Default: "float"."""

    hosts: list[int] | None = None
    """
    Host of each rank, by number; empty: ring neighbours are below different leaves. Takes a list, each a
    whole number, zero or more. Default from: ours. Default: [].
    """

    load_balancer: str | None = None
    """
    Load balancer of the flows. Default: that of the scenario. Takes text, or "" for none. Default from: ours.
    """

    max_flows: int | None = None
    """
    Maximum number of flows: guards the memory. Takes a whole number, zero or more. Default from: ours: about
    2 GB. Default: 20000000.
    """

    measured: bool | None = None
    """Includes the flows in the statistics. Takes true or false. Default from: ours. Default: true."""

    name: str | None = None
    """
    Name in the results; random draws are keyed by it. Default: the kind, numbered from the second one on.
    Takes text, or "" for none. Default from: ours.
    """

    overlap: bool | None = None
    """
    Jobs: shares hosts with an earlier job without a warning. Takes true or false. Default from: ours.
    Default: false.
    """

    ranks: Literal["all"] | int | None = None
    """
    Number of ranks, each a process at a host. Takes "all" or a number of hosts, 2 or more. Default from:
    ours. Default: "all".
    """

    rounds: int | None = None
    """
    Measured rounds, after one warm-up round. Takes a whole number, zero or more. Default from: ours. Default:
    5.
    """

    size: str | None = None
    """
    Bytes of each rank's buffer: whole words of 4 B, at most 4GiB. Takes a size such as "4MiB" (B, kB, KiB,
    MB, MiB, GB, GiB, TB, TiB). Default from: ours. Default: "4MiB".
    """

    split_class: str | None = None
    """
    Traffic class of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_load_balancer: str | None = None
    """
    Load balancer of the second workload. Default: that of the first. Takes text, or "" for none. Default
    from: ours.
    """

    split_name: str | None = None
    """
    Name of the second workload. Default: the first one's with `-split`. Takes text, or "" for none. Default
    from: ours.
    """

    split_share: float | None = None
    """
    Share of the flows (0 to 1, chosen at random) that becomes a second workload with its own class and load
    balancer. Takes a number. Default from: PRIME §IV-A2: mixed traffic. Default: 0.0.
    """

    start: str | None = None
    """
    Start time of the ranks. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default:
    "0us".
    """
