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
    Its format; auto: by its content. Takes "auto" or one of "conweave" "htsim-topo" "adjacency". Default
    from: specification 14.2, 14.3. Default: "auto".
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
