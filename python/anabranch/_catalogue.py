"""Catalogue of names, and explanations."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from . import _native
from ._scenario import Scenario, scenario as scenario_of


class Entry(NamedTuple):
    """Entry of a catalogue."""

    name: str
    sort: str
    """Sort of entry, for example `host side`."""
    meaning: str


class Parameter(NamedTuple):
    """Parameter of a scheme, transport, topology, workload or section."""

    name: str
    key: str | None
    """Path for `Scenario.set` and `--set`; `None` where there is none."""
    meaning: str
    expected: str
    """Allowed values."""
    default: Any
    source: str
    """Source of the default: a section of a paper, a public source, or "ours"."""
    level: str
    """`user`, `expert` (a constant of an algorithm) or `reading` (one of a paper); the text shows those of users."""


class Part(NamedTuple):
    """Parameters of one table of a scenario."""

    table: str
    meaning: str
    parameters: list[Parameter]


class Explanation:
    """Explanation of a name. Its text is that of `anabranch explain`."""

    def __init__(self, name: str, parts: list[Part], text: str) -> None:
        self.name = name
        self.parts = parts
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


def explain(name: str) -> Explanation:
    """Explains a scheme, transport, topology, workload, section or key, with every parameter."""
    given, text = _native.explain(name, 100)
    found = json.loads(given)

    def part(one: dict[str, Any]) -> Part:
        return Part(one["table"], one["meaning"], [Parameter(**parameter) for parameter in one["parameters"]])

    return Explanation(found["name"], [part(one) for one in found["parts"]], text)


def list_(kind: str) -> list[Entry]:
    """Lists the entries of a kind: `schemes`, `topologies`, `transports`, `workloads`, `scenarios` or `paper-scenarios`."""
    return [Entry(*entry) for entry in _native.catalogue(kind)]


def topology(scenario: str | os.PathLike[str] | Scenario, pair: tuple[int | str, int | str] | None = None) -> dict[str, Any]:
    """
    Returns a scenario's graph as `anabranch topology --format json` prints it: counts, diameter, path counts by type; and the paths
    of a `pair` of hosts.
    """
    hosts = None if pair is None else [str(pair[0]), str(pair[1])]
    found: dict[str, Any] = json.loads(_native.topology(scenario_of(scenario)._native, hosts))
    return found
