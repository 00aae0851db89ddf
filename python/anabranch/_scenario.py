"""Scenarios."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _toml
from ._errors import ScenarioError
from ._native import Scenario as Native
from ._part import Part, _plain

if TYPE_CHECKING:
    from . import parts

_KEYWORDS = "an anabranch.Scenario of keywords"


class Scenario:
    """
    Checked, immutable description of a run: graph, fabric, transport, load balancer, traffic, faults.

    `Scenario("first-run")` is a ready-made scenario, `Scenario("study.toml")` a file; `Scenario.from_toml` parses text. Keywords
    give the parts one by one, as classes (`anabranch.FatTree(radix=16)`) or as dictionaries with the keys of a file.
    """

    _native: Native

    def __init__(
        self,
        source: str | os.PathLike[str] | Scenario | None = None,
        /,
        *,
        name: str | None = None,
        seed: int | None = None,
        topology: parts.TopologyKind | Mapping[str, Any] | None = None,
        servers: parts.Servers | Mapping[str, Any] | None = None,
        fabric: parts.Fabric | Mapping[str, Any] | None = None,
        transport: parts.TransportKind | Mapping[str, Any] | None = None,
        load_balancer: Part | Mapping[str, Any] | str | None = None,
        workloads: Sequence[parts.WorkloadKind | Mapping[str, Any]] | None = None,
        faults: Sequence[parts.Fault | Mapping[str, Any]] | None = None,
        measure: parts.Measure | Mapping[str, Any] | None = None,
        run: parts.RunOptions | Mapping[str, Any] | None = None,
        compare: parts.CompareOptions | Mapping[str, Any] | None = None,
        wire: parts.Wire | Mapping[str, Any] | None = None,
    ) -> None:
        given = {
            "name": name, "seed": seed, "topology": topology, "servers": servers, "fabric": fabric, "transport": transport,
            "load_balancer": load_balancer, "workloads": workloads, "faults": faults, "measure": measure, "run": run,
            "compare": compare, "wire": wire,
        }  # fmt: skip
        given = {key: value for key, value in given.items() if value is not None}
        if source is None:
            self._native = _of_keywords(given)
            return
        if given:
            raise ScenarioError(
                f"a scenario is named and {', '.join(given)} given beside it",
                place=next(iter(given)),
                remedy=f"change it with .with_({{...}}), for example Scenario({source!r}).with_({{'seed': 2}})",
            )
        if not isinstance(source, (str, os.PathLike, Scenario)):
            raise ScenarioError(f"scenario: found {source!r}, expected a name, a file or a Scenario", place="scenario")
        self._native = source._native if isinstance(source, Scenario) else Native.load(os.fspath(source), [], None)

    @classmethod
    def _of(cls, native: Native) -> Scenario:
        self = cls.__new__(cls)
        self._native = native
        return self

    @classmethod
    def from_toml(cls, text: str, *, folder: str | os.PathLike[str] = "", name: str = "scenario") -> Scenario:
        """Parses TOML; relative paths in it are relative to `folder`. `name` is the name of a scenario without one."""
        return cls._of(Native.parse(text, name, name, Path(folder)))

    def with_(self, changes: Mapping[str, Any] | None = None, /, *, scheme: str | None = None) -> Scenario:
        """
        Returns a copy with other values of some keys, dotted as in `--set`: `.with_({"topology.radix": 8})`. `scheme` is short for
        the key `load_balancer.scheme`.
        """
        if not isinstance(changes, Mapping | None):
            raise ScenarioError(f'with_: found {changes!r}, expected values by key, such as {{"topology.radix": 8}}', place="with_")
        changes = dict(changes or {})
        if scheme is not None:
            changes["load_balancer.scheme"] = scheme
        return Scenario._of(self._native.changed("with_", assignments(changes)))

    def to_toml(self) -> str:
        """Returns the scenario file with every default; it parses to the same scenario."""
        return self._native.to_toml()

    def check(self) -> list[str]:
        """Refuses what a run would refuse, without running. Returns warnings about the results."""
        return self._native.check()

    @property
    def hash(self) -> str:
        """16 hexadecimal digits over all that a run depends on, contents of files included."""
        return self._native.hash

    @property
    def name(self) -> str:
        """Name in tables and reports."""
        return self._native.name

    @property
    def seed(self) -> int:
        """Random seed."""
        return self._native.seed

    @property
    def scheme(self) -> str:
        """Name of its load balancer."""
        return self._native.scheme

    def keywords(self) -> dict[str, Any]:
        """Returns its parts with every default: `Scenario(**scenario.keywords())` is the same scenario."""
        import tomllib

        from . import parts

        document = tomllib.loads(self.to_toml())
        out: dict[str, Any] = {"name": document["name"], "seed": int(document["seed"])}
        for key, kinds in [("topology", _kinds("topology")), ("transport", _kinds("transport"))]:
            out[key] = kinds[document[key]["kind"]]._from_document(document[key])
        if "servers" in document:
            out["servers"] = parts.Servers._from_document(document["servers"])
        out["fabric"] = parts.Fabric._from_document(document["fabric"])
        out["load_balancer"] = parts.LoadBalancer._from_document(document["load_balancer"])
        workloads = _kinds("workload")
        out["workloads"] = [workloads[one["kind"]]._from_document(one) for one in document["workload"]]
        if "fault" in document:
            out["faults"] = [parts.Fault._from_document(one) for one in document["fault"]]
        out["measure"] = parts.Measure._from_document(document["measure"])
        out["run"] = parts.RunOptions._from_document(document["run"])
        if "compare" in document:
            out["compare"] = parts.CompareOptions._from_document(document["compare"])
        if "wire" in document:
            out["wire"] = parts.Wire._from_document(document["wire"])
        return out

    @property
    def topology(self) -> parts.TopologyKind:
        """The graph."""
        kind: parts.TopologyKind = self.keywords()["topology"]
        return kind

    @property
    def fabric(self) -> parts.Fabric:
        """Switches and NICs."""
        fabric: parts.Fabric = self.keywords()["fabric"]
        return fabric

    @property
    def transport(self) -> parts.TransportKind:
        """Senders and receivers."""
        kind: parts.TransportKind = self.keywords()["transport"]
        return kind

    @property
    def load_balancer(self) -> parts.LoadBalancer:
        """Load balancer: how packets are spread over the paths."""
        balancer: parts.LoadBalancer = self.keywords()["load_balancer"]
        return balancer

    @property
    def workloads(self) -> list[parts.WorkloadKind]:
        """Traffic: senders, receivers, sizes and times."""
        workloads: list[parts.WorkloadKind] = self.keywords()["workloads"]
        return workloads

    @property
    def faults(self) -> list[parts.Fault]:
        """Faults and their times."""
        faults: list[parts.Fault] = self.keywords().get("faults", [])
        return faults

    def __repr__(self) -> str:
        return f"<Scenario {self.name!r}, {self.scheme}, seed {self.seed}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scenario) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __reduce__(self) -> tuple[object, ...]:
        return (Scenario.from_toml, (self.to_toml(),))


def scenario(of: str | os.PathLike[str] | Scenario) -> Scenario:
    """Returns a scenario from a name, a file or a Scenario."""
    return of if isinstance(of, Scenario) else Scenario(of)


def assignments(changes: Mapping[str, Any]) -> list[str]:
    """Returns changes in the format of `--set`."""
    return [f"{key}={_toml.value(_plain(value), key)}" for key, value in changes.items()]


def _kinds(members: str) -> dict[str, type[Part]]:
    from . import parts

    found = [getattr(parts, name) for name in parts.__all__]
    return {kind._kind: kind for kind in found if kind._table == members and kind._kind is not None}


def _balancer(of: Any) -> dict[str, Any]:
    """Returns a load balancer from a name, one scheme with its parameters, or a whole part."""
    if isinstance(of, str):
        return {"scheme": of}
    if isinstance(of, Part) and of._table.startswith("load_balancer."):
        from . import parts

        name = of._kind or ""
        side = "scheme" if name in parts.ALIASES else "host" if name in parts.HOST_SCHEMES else "switch"
        return {side: name, name: of._document()}
    return dict(_plain(of))


def _of_keywords(given: dict[str, Any]) -> Native:
    document: dict[str, Any] = {key: given[key] for key in ("name", "seed") if key in given}
    for key in (
        "topology", "servers", "fabric", "transport", "load_balancer", "workloads", "faults", "measure", "run", "compare", "wire",
    ):  # fmt: skip
        if key not in given:
            continue
        value = given[key]
        _expect(key, value)
        if key == "load_balancer":
            document[key] = _balancer(value)
        elif key in ("workloads", "faults"):
            document[key[:-1]] = [dict(_plain(one)) for one in value]
        else:
            document[key] = dict(_plain(value))
    writer = _toml.Writer()
    writer.table("", document, "")
    try:
        return Native.parse(writer.text(), _KEYWORDS, "scenario", Path(""))
    except ScenarioError as error:
        if error.source == _KEYWORDS:
            place = writer.places.get(error.line or 0) if error.line else None
            error.place = _argument(place) if place else None
        raise error from None


def _argument(place: str) -> str:
    """Returns the argument of a key."""
    for key in ("workload", "fault"):
        if place.startswith(f"{key}["):
            return f"{key}s{place[len(key):]}"
    return place


def _expect(key: str, value: Any) -> None:
    """Refuses parts of another kind before they are written."""
    one = {"workloads": "workload", "faults": "fault"}.get(key, key)
    if one != key and (isinstance(value, (str, Mapping, Part)) or not isinstance(value, Sequence)):
        raise ScenarioError(f"{key}: found {value!r}, expected a list", place=key, remedy=f"write {key}=[...]")
    for index, item in enumerate(value if one != key else [value]):
        place = f"{key}[{index}]" if one != key else key
        if isinstance(item, Part):
            wrong = item._table.split(".")[0] != one
        else:
            wrong = not isinstance(item, Mapping) and not (key == "load_balancer" and isinstance(item, str))
        if wrong:
            from . import parts

            kinds = [name for name in parts.__all__ if getattr(parts, name)._table.split(".")[0] == one]
            raise ScenarioError(f"{place}: found {item!r}, expected one of {', '.join(kinds)}, or a dictionary", place=place)
