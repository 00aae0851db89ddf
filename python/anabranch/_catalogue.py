"""What there is, and what each thing does."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from . import _native
from ._scenario import Scenario, scenario as scenario_of


class Entry(NamedTuple):
    """One thing there is."""

    name: str
    sort: str
    """What sort of thing it is, for example `host side`."""
    meaning: str


class Parameter(NamedTuple):
    """A parameter."""

    name: str
    meaning: str
    expected: str
    """Which values it takes."""
    default: Any
    source: str
    """Where the default comes from: a section of a paper, a public source, or "ours"."""


class Part(NamedTuple):
    """Parameters of one table of a scenario."""

    table: str
    meaning: str
    parameters: list[Parameter]


class Explanation:
    """All there is to say of a name; printed, it reads as `anabranch explain` does."""

    def __init__(self, name: str, parts: list[Part], text: str) -> None:
        self.name = name
        self.parts = parts
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


def explain(name: str) -> Explanation:
    """What a scheme, transport, topology, workload, section or key does, with every parameter."""
    given, text = _native.explain(name, 100)
    said = json.loads(given)

    def part(one: dict[str, Any]) -> Part:
        return Part(one["table"], one["meaning"], [Parameter(**parameter) for parameter in one["parameters"]])

    return Explanation(said["name"], [part(one) for one in said["parts"]], text)


def list_(kind: str) -> list[Entry]:
    """All there is of a kind: `schemes`, `topologies`, `transports`, `workloads` or `scenarios`."""
    return [Entry(*entry) for entry in _native.catalogue(kind)]


def topology(scenario: str | os.PathLike[str] | Scenario, pair: tuple[int | str, int | str] | None = None) -> dict[str, Any]:
    """
    A scenario's graph: counts, diameter, path counts by type, as `anabranch topology --format json` has it; with a `pair` of hosts
    the paths between them.
    """
    hosts = None if pair is None else [str(pair[0]), str(pair[1])]
    said: dict[str, Any] = json.loads(_native.topology(scenario_of(scenario)._native, hosts))
    return said
