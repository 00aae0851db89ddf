"""Topologies. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from .._part import Part


class LinkOverride(Part):
    """Another rate or delay of some links."""

    _table: ClassVar[str] = "topology.link"
    _keys: ClassVar[dict[str, str]] = {
        "class_": "class",
        "delay": "delay",
        "link": "link",
        "rate": "rate",
    }

    class_: str | None = None
    """A class: host, tier0-1, tier1-2, local, global. Takes text, or "" for none. Default from: ours."""

    delay: str | None = None
    """
    The delay; "": as it is. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for none. Default from:
    ours.
    """

    link: str | None = None
    """
    A cable (leaf0-spine3) or one direction of it (leaf0->spine3). Takes text, or "" for none. Default from:
    ours.
    """

    rate: str | None = None
    """
    The rate; "": as it is. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps), or "" for none.
    Default from: ours.
    """


class LeafSpine(Part):
    """Two tiers with any number of leaves, spines and hosts."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "leaf-spine"
    _keys: ClassVar[dict[str, str]] = {
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "hosts_per_leaf": "hosts_per_leaf",
        "leaves": "leaves",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "links_per_spine": "links_per_spine",
        "spines": "spines",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    host_link_delay: str | None = None
    """
    Delay of links to hosts; "": as `link_delay`. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for
    none. Default from: ours.
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    hosts_per_leaf: int | None = None
    """Hosts at each leaf. Takes a whole number, zero or more. Default from: Hopper §4.1.1. Default: 16."""

    leaves: int | None = None
    """Number of leaves. Takes a whole number, zero or more. Default from: Hopper §4.1.1. Default: 8."""

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Hopper §4.1.1. Default:
    "1us".
    """

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: Hopper
    §4.1.1. Default: "100Gbps".
    """

    links_per_spine: int | None = None
    """
    Parallel cables between a leaf and a spine. Takes a whole number, zero or more. Default from: ours.
    Default: 1.
    """

    spines: int | None = None
    """Number of spines. Takes a whole number, zero or more. Default from: Hopper §4.1.1. Default: 8."""

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "0us".
    """


class FatTree(Part):
    """Non-blocking tree of 2 or 3 tiers of switches of one radix."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "fat-tree"
    _keys: ClassVar[dict[str, str]] = {
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "oversubscription": "oversubscription",
        "radix": "radix",
        "switch_latency": "switch_latency",
        "tiers": "tiers",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    host_link_delay: str | None = None
    """
    Delay of links to hosts; "": as `link_delay`. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for
    none. Default from: ours.
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours: the paper's delay
    is lost (specification 5.2). Default: "1us".
    """

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: ours: the
    paper's rates are lost (specification 5.2). Default: "400Gbps".
    """

    oversubscription: int | None = None
    """
    Hosts per uplink of a leaf: 1 is non-blocking, 2 gives every leaf twice as many hosts. Takes a whole
    number, zero or more. Default from: PRIME, Table I; 2: ConWeave's fat trees (specification 17.1). Default:
    1.
    """

    radix: int | None = None
    """
    Ports of a switch, even. Takes a whole number, zero or more. Default from: PRIME, Table I. Default: 16.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "0us".
    """

    tiers: int | None = None
    """
    Tiers of switches: 2 or 3. Takes a whole number, zero or more. Default from: PRIME, Table I. Default: 2.
    """


class Clos(Part):
    """
    Three tiers with any number of pods, leaves, spines and cores, oversubscribed where their numbers say so.
    """

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "clos"
    _keys: ClassVar[dict[str, str]] = {
        "core_link_rate": "core_link_rate",
        "cores": "cores",
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "hosts_per_leaf": "hosts_per_leaf",
        "leaves_per_pod": "leaves_per_pod",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "links_per_core": "links_per_core",
        "links_per_spine": "links_per_spine",
        "pods": "pods",
        "spines_per_pod": "spines_per_pod",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    core_link_rate: str | None = None
    """
    Rate of links to cores; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    cores: int | None = None
    """
    Number of cores: a multiple of `spines_per_pod`; spine j of every pod leads to the same cores. Takes a
    whole number, zero or more. Default from: ours. Default: 16.
    """

    host_link_delay: str | None = None
    """
    Delay of links to hosts; "": as `link_delay`. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for
    none. Default from: ours.
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    hosts_per_leaf: int | None = None
    """
    Hosts at each leaf. Takes a whole number, zero or more. Default from: arXiv 2407.21783, section 3.3.1: a
    rack of two servers with 8 GPUs each. Default: 16.
    """

    leaves_per_pod: int | None = None
    """Leaves of a pod. Takes a whole number, zero or more. Default from: ours. Default: 8."""

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default: "500ns".
    """

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: arXiv
    2407.21783, section 3.3.1. Default: "400Gbps".
    """

    links_per_core: int | None = None
    """
    Parallel cables between a spine and a core. Takes a whole number, zero or more. Default from: ours.
    Default: 1.
    """

    links_per_spine: int | None = None
    """
    Parallel cables between a leaf and a spine of its pod. Takes a whole number, zero or more. Default from:
    ours. Default: 1.
    """

    pods: int | None = None
    """Number of pods. Takes a whole number, zero or more. Default from: ours. Default: 2."""

    spines_per_pod: int | None = None
    """Spines of a pod. Takes a whole number, zero or more. Default from: ours. Default: 16."""

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "500ns".
    """


class RailOptimised(Part):
    """Servers with a NIC per rail: leaf r of a pod connects NIC r of its servers, spines join all leaves."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "rail-optimised"
    _keys: ClassVar[dict[str, str]] = {
        "core_link_rate": "core_link_rate",
        "cores": "cores",
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "links_per_core": "links_per_core",
        "links_per_spine": "links_per_spine",
        "rails": "rails",
        "servers": "servers",
        "servers_per_pod": "servers_per_pod",
        "spines": "spines",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    core_link_rate: str | None = None
    """
    Rate of links to cores; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    cores: int | None = None
    """
    Cores of a third tier: a multiple of `spines`; spine j of every pod leads to the same cores. 0: two tiers.
    Takes a whole number, zero or more. Default from: ours. Default: 0.
    """

    host_link_delay: str | None = None
    """
    Delay of links to hosts; "": as `link_delay`. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for
    none. Default from: ours.
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default: "500ns".
    """

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from:
    RA-11333-001: NDR InfiniBand. Default: "400Gbps".
    """

    links_per_core: int | None = None
    """
    Parallel cables between a spine and a core. Takes a whole number, zero or more. Default from: ours.
    Default: 1.
    """

    links_per_spine: int | None = None
    """
    Parallel cables between a leaf and a spine. Takes a whole number, zero or more. Default from:
    RA-11333-001: 512 cables between 16 leaves and 8 spines. Default: 4.
    """

    rails: int | None = None
    """Rails: NICs of a server. Takes a whole number, zero or more. Default from: RA-11333-001. Default: 8."""

    servers: int | None = None
    """
    Number of servers. Takes a whole number, zero or more. Default from: RA-11333-001: two scalable units.
    Default: 64.
    """

    servers_per_pod: int | None = None
    """
    Servers of a pod (a scalable unit, a segment): hosts at each leaf. The last pod has the rest. Takes a
    whole number, zero or more. Default from: RA-11333-001: a scalable unit has 32 servers. Default: 32.
    """

    spines: int | None = None
    """
    Spines above the leaves of all pods; with `cores`, spines of each pod. Takes a whole number, zero or more.
    Default from: RA-11333-001, table of larger component counts: 8 for two scalable units. Default: 8.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "500ns".
    """


class RailOnly(Part):
    """Servers with a NIC per rail, every rail a network of its own: no links between rails."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "rail-only"
    _keys: ClassVar[dict[str, str]] = {
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "links_per_spine": "links_per_spine",
        "rails": "rails",
        "servers": "servers",
        "servers_per_pod": "servers_per_pod",
        "spines": "spines",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    host_link_delay: str | None = None
    """
    Delay of links to hosts; "": as `link_delay`. Takes a time such as "1us" (ps, ns, us, ms, s), or "" for
    none. Default from: ours.
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours. Default: "500ns".
    """

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: arXiv
    2307.12169. Default: "400Gbps".
    """

    links_per_spine: int | None = None
    """
    Parallel cables between a leaf and a spine of its rail. Takes a whole number, zero or more. Default from:
    ours. Default: 1.
    """

    rails: int | None = None
    """
    Rails: NICs of a server. Takes a whole number, zero or more. Default from: ours: an HGX H100 server has 8
    NICs. Default: 8.
    """

    servers: int | None = None
    """Number of servers. Takes a whole number, zero or more. Default from: ours. Default: 16."""

    servers_per_pod: int | None = None
    """
    Servers of a pod: hosts at each leaf. The last pod has the rest. Takes a whole number, zero or more.
    Default from: ours. Default: 16.
    """

    spines: int | None = None
    """
    Spines of each rail; 0 where there is one pod: the rail is a single switch. Takes a whole number, zero or
    more. Default from: arXiv 2307.12169: rails need no spine up to the radix of a switch. Default: 0.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: ours. Default: "500ns".
    """


class Dragonfly(Part):
    """Fully meshed groups of switches, one global link between any two groups."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "dragonfly"
    _keys: ClassVar[dict[str, str]] = {
        "a": "a",
        "arrangement": "arrangement",
        "global_link_delay": "global_link_delay",
        "global_link_rate": "global_link_rate",
        "groups": "groups",
        "h": "h",
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "link": "link",
        "link_rate": "link_rate",
        "local_link_delay": "local_link_delay",
        "local_link_rate": "local_link_rate",
        "p": "p",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    a: int | None = None
    """
    Switches in each group. Takes a whole number, zero or more. Default from: Spritz §V-A; specification 9.1.
    Default: 8.
    """

    arrangement: Literal["relative", "absolute", "palmtree", "circulant"] | None = None
    """
    Which groups the global ports of a group lead to. Takes one of "relative" "absolute" "palmtree"
    "circulant". Default from: specification 9.1: the wiring of Spritz's artifact. Default: "relative".
    """

    global_link_delay: str | None = None
    """
    Delay of links between groups. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz Table
    I; specification 9.4. Default: "500ns".
    """

    global_link_rate: str | None = None
    """
    Rate of links between groups; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps,
    Tbps), or "" for none. Default from: ours.
    """

    groups: Literal["auto"] | int | None = None
    """
    Number of groups; "auto": as many as there can be, a * h + 1. Takes "auto" or a whole number, zero or
    more. Default from: specification 9.1. Default: "auto".
    """

    h: int | None = None
    """
    Global links of each switch. Takes a whole number, zero or more. Default from: Spritz §V-A; specification
    9.1. Default: 4.
    """

    host_link_delay: str | None = None
    """
    Delay of links to hosts. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: specification 9.5:
    what Spritz Table II follows from. Default: "25ns".
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: Spritz
    §V-A. Default: "400Gbps".
    """

    local_link_delay: str | None = None
    """
    Delay of links inside a group. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz Table
    I; specification 9.4. Default: "25ns".
    """

    local_link_rate: str | None = None
    """
    Rate of links inside a group; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps,
    Tbps), or "" for none. Default from: ours.
    """

    p: int | None = None
    """
    Hosts at each switch. Takes a whole number, zero or more. Default from: Spritz §V-A; specification 9.1.
    Default: 4.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: specification 9.5. Default: "500ns".
    """


class SlimFly(Part):
    """Switches at most two hops apart, over a finite field."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "slim-fly"
    _keys: ClassVar[dict[str, str]] = {
        "global_link_delay": "global_link_delay",
        "global_link_rate": "global_link_rate",
        "host_link_delay": "host_link_delay",
        "host_link_rate": "host_link_rate",
        "link": "link",
        "link_rate": "link_rate",
        "local_link_delay": "local_link_delay",
        "local_link_rate": "local_link_rate",
        "p": "p",
        "q": "q",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    global_link_delay: str | None = None
    """
    Delay of links between groups. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz Table
    I; specification 9.4, 10.3. Default: "500ns".
    """

    global_link_rate: str | None = None
    """
    Rate of links between groups; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps,
    Tbps), or "" for none. Default from: ours.
    """

    host_link_delay: str | None = None
    """
    Delay of links to hosts. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: specification 9.5:
    what Spritz Table II follows from. Default: "25ns".
    """

    host_link_rate: str | None = None
    """
    Rate of links to hosts; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps),
    or "" for none. Default from: ours.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_rate: str | None = None
    """
    Rate of every link. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default from: Spritz
    §V-A. Default: "400Gbps".
    """

    local_link_delay: str | None = None
    """
    Delay of links inside a group. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: Spritz Table
    I; specification 9.4, 10.3. Default: "25ns".
    """

    local_link_rate: str | None = None
    """
    Rate of links inside a group; "": as `link_rate`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps,
    Tbps), or "" for none. Default from: ours.
    """

    p: int | None = None
    """
    Hosts at each switch. Takes a whole number, zero or more. Default from: Spritz §V-A; specification 10.2.
    Default: 7.
    """

    q: int | None = None
    """
    Size of the field, a prime power from 3 to 107: switches in a group. Takes a whole number, zero or more.
    Default from: Spritz §V-A; specification 10.2. Default: 9.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch before it reaches its output port. Takes a time such as "1us" (ps, ns,
    us, ms, s). Default from: specification 9.5. Default: "500ns".
    """


class TopologyFile(Part):
    """A graph from a file: ConWeave's text, htsim's .topo, an adjacency list."""

    _table: ClassVar[str] = "topology"
    _kind: ClassVar[str | None] = "file"
    _keys: ClassVar[dict[str, str]] = {
        "format": "format",
        "hosts_per_switch": "hosts_per_switch",
        "link": "link",
        "link_delay": "link_delay",
        "link_rate": "link_rate",
        "path": "path",
        "switch_latency": "switch_latency",
    }
    _nested: ClassVar[dict[str, str]] = {
        "link": "LinkOverride",
    }

    format: Literal["auto"] | Literal["conweave", "htsim-topo", "adjacency"] | None = None
    """
    Its format; auto: an adjacency list where the name ends in `.adjlist`, else by its content. Takes "auto"
    or one of "conweave" "htsim-topo" "adjacency". Default from: specification 14.2, 14.3. Default: "auto".
    """

    hosts_per_switch: int | None = None
    """
    Hosts at every switch, for `adjacency`. Takes a whole number, zero or more. Default from: ours. Default:
    1.
    """

    link: Sequence[LinkOverride] | None = None
    """"""

    link_delay: str | None = None
    """
    Delay of every link, for `adjacency`. Takes a time such as "1us" (ps, ns, us, ms, s). Default from: ours.
    Default: "1us".
    """

    link_rate: str | None = None
    """
    Rate of every link, for `adjacency`. Takes a rate such as "400Gbps" (bps, Kbps, Mbps, Gbps, Tbps). Default
    from: ours. Default: "400Gbps".
    """

    path: str | None = None
    """
    The file; a relative path is relative to the scenario's folder. Takes text. Default from: specification
    14.2, 14.3.
    """

    switch_latency: str | None = None
    """
    Time a packet spends in a switch; `htsim-topo` files contain it themselves. Takes a time such as "1us"
    (ps, ns, us, ms, s). Default from: ours. Default: "0us".
    """
