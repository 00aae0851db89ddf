"""Host schemes in Python: the choices of their twins in Rust, record against record; errors."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch import _native

MS = 10**9


class Entropy(ab.Scheme):
    entropy_values = ab.parameter(65536, "Number of entropy values.", source="ours", low=1, high=2**32 - 1)

    flows: dict[int, Any]

    def __init__(self) -> None:
        self.flows = {}

    def close(self, slot: int) -> None:
        self.flows.pop(slot, None)


@ab.scheme("py-rr")
class RoundRobin(Entropy):
    """Entropy values in turn, from a random start."""

    def open(self, now: int, slot: int, flow: _native.Flow) -> None:
        self.flows[slot] = self.random("rr", flow.key).below(self.entropy_values)

    def select(self, now: int, slot: int, packet: _native.Packet) -> int:
        tag = int(self.flows[slot])
        self.flows[slot] = (tag + 1) % self.entropy_values
        return tag


@ab.scheme("py-reps", source="specification 6.1")
class Reps(Entropy):
    """Reuses entropy values whose packets came back unmarked."""

    buffer = ab.parameter(8, "Entries of the circular buffer.", source="REPS artifact", low=1, high=2**15)

    def open(self, now: int, slot: int, flow: _native.Flow) -> None:
        self.flows[slot] = Buffer(self.random("reps", flow.key), flow.bdp_packets, self.buffer)

    def select(self, now: int, slot: int, packet: _native.Packet) -> int:
        flow = self.flows[slot]
        tag = flow.select()
        return int(flow.random.below(self.entropy_values) if tag is None else tag)

    def on_ack(self, now: int, slot: int, feedback: _native.Feedback) -> None:
        if flow := self.flows.get(slot):
            flow.thaw(now)
            if not feedback.ecn:
                flow.keep(feedback.tag)

    def on_loss(self, now: int, slot: int, tag: int, cause: str) -> None:
        if cause != "refused" and (flow := self.flows.get(slot)):
            flow.thaw(now)

    def on_timeout(self, now: int, slot: int, tag: int) -> None:
        flow = self.flows.get(slot)
        if flow and flow.explore == 0 and flow.frozen_until is None:
            flow.frozen_until = now + 10 * MS


class Buffer:
    """The circular buffer of a flow: tag and whether it is fresh per entry."""

    def __init__(self, random: _native.Random, bdp: int, size: int) -> None:
        self.random, self.bdp, self.size = random, bdp, size
        self.explore, self.frozen_until = 0, None
        self.empty()

    frozen_until: int | None

    def empty(self) -> None:
        self.entries: list[tuple[int, bool]] = [(0, False)] * self.size
        self.head = self.count = self.fresh = self.at = 0

    def take(self, at: int) -> int:
        tag, fresh = self.entries[at]
        self.entries[at] = (tag, False)
        self.fresh -= fresh
        return tag

    def select(self) -> int | None:
        if self.explore:
            self.explore -= 1
            return None
        if self.frozen_until is not None and self.count:
            at = self.at
            self.at = 0 if at + 1 >= self.count else at + 1
            return self.take(at)
        return self.take((self.head - self.fresh) % self.size) if self.fresh else None

    def keep(self, tag: int) -> None:
        self.fresh += not self.entries[self.head][1]
        self.entries[self.head] = (tag, True)
        self.head = (self.head + 1) % self.size
        self.count = min(self.count + 1, self.size)

    def thaw(self, now: int) -> None:
        if self.frozen_until is not None and now >= self.frozen_until:
            self.frozen_until = None
            self.empty()
            self.explore = self.bdp


def drawn(seed: int) -> ab.Scenario:
    """A small scenario with losses, marks and timeouts."""
    dice = random.Random(seed)
    base, transport = dice.choice([("tiny", "uet"), ("tiny", "roce"), ("incast", "uet")])
    changes = {"workload.0.size": dice.choice(["60kB", "300kB"]), "transport.kind": transport, "seed": seed}
    if transport == "uet":
        changes["fabric.trimming"] = dice.choice([True, False])
    if base == "tiny" and dice.random() < 0.7:
        changes["fault"] = [{"kind": "packet-loss", "at": "2us", "links": ["leaf0->spine0"], "loss": 0.05}]
    return ab.Scenario(base).with_({**changes, "measure.trace_flows": ["*"], "measure.trace_scheme": True})


@pytest.mark.parametrize("twin, scheme", [("rr-host", "py-rr"), ("reps", "py-reps")])
def test_a_scheme_chooses_as_its_twin_in_rust(twin: str, scheme: str) -> None:
    for seed in range(1, 9):
        scenario = drawn(seed)
        rust, python = quiet(scenario.with_(scheme=twin)), quiet(scenario.with_(scheme=scheme))
        assert rust.fingerprint == python.fingerprint, seed
        ours = rust.table("scheme_" + twin.removesuffix("-host")).polars()
        theirs = python.table("scheme_" + scheme.replace("-", "_")).polars()
        columns = [name for name in theirs.columns if name in ours.columns]
        assert ours.select(columns).equals(theirs.select(columns)) and len(ours) > 100, seed


def quiet(scenario: ab.Scenario) -> ab.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ab.Warning)
        return ab.run(scenario)


def test_it_is_explained_compared_and_says_what_python_took(tmp_path: Path) -> None:
    assert "Entries of the circular buffer" in str(ab.explain("py-reps"))
    with pytest.warns(ab.Warning, match=r"in Python took \d+\.\d+ s of \d+\.\d+ s, in \d+ calls on one thread"):
        compared = ab.compare("tiny", schemes=["py-rr", "rr-host"], seeds=2, out=tmp_path / "compared")
    means = {row["scheme"]: row["mean"] for row in compared.table.polars().iter_rows(named=True) if row["metric"] == "fct_mean"}
    assert means["py-rr"] == means["rr-host"]
    few = ab.Scenario("tiny").with_({"load_balancer.py-rr.entropy_values": 2, "measure.trace_flows": [0]}, scheme="py-rr")
    assert set(quiet(few).table("trace").polars()["tag"]) == {0, 1}
    with pytest.raises(ab.ScenarioError, match="from 1 to 32768"):
        ab.Scenario("tiny").with_({"load_balancer.py-reps.buffer": 0})


def test_an_error_ends_the_run_with_its_place() -> None:
    @ab.scheme("py-broken")
    class Broken(ab.Scheme):
        """Raises at the third acknowledgement."""

        def __init__(self) -> None:
            self.acks = 0

        def select(self, now: int, slot: int, packet: _native.Packet) -> int:
            return 0

        def on_ack(self, now: int, slot: int, feedback: _native.Feedback) -> None:
            self.acks += 1
            1 // (3 - self.acks)

    with pytest.raises(ab.ScenarioError, match=r"scheme `py-broken`: on_ack: ZeroDivisionError") as found:
        ab.run(ab.Scenario("tiny").with_(scheme="py-broken"))
    assert isinstance(found.value.__cause__, ZeroDivisionError)
    assert found.value.place is not None and found.value.place.startswith(__file__)

    @ab.scheme("py-broken")
    class Wrong(ab.Scheme):
        """Forgets to return, in place of the other."""

        def select(self, now: int, slot: int, packet: _native.Packet) -> int:
            return None  # type: ignore[return-value]

    with pytest.raises(ab.ScenarioError, match="select: TypeError: select: found None, expected a tag"):
        ab.run(ab.Scenario("tiny").with_(scheme="py-broken"))
    assert ab.run("tiny").fingerprint == ab.run("tiny").fingerprint


def test_mistakes_are_told_when_it_is_registered() -> None:
    with pytest.raises(ab.ScenarioError, match="did you mean `on_ack`"):

        @ab.scheme("py-mistyped")
        class Mistyped(RoundRobin):
            """Has a mistyped callback."""

            def on_akc(self) -> None: ...

    for name, body, match in [
        ("reps", {}, "the name is one of anabranch"),
        ("py-source", {"x": ab.parameter(1, "A number.", source="")}, "has no source"),
        ("py-unit", {"wait_us": ab.parameter(1, "A number.", source="ours")}, "without a unit"),
        ("py-range", {"x": ab.parameter(0, "A number.", source="ours", low=1, high=2)}, "from 1 to 2"),
        ("py-words", {"x": ab.parameter("a", "A word.", source="ours")}, "without `words` or `unit`"),
    ]:
        made = type("Made", (RoundRobin,), {"__doc__": "Summary.", **body})
        with pytest.raises(ab.ScenarioError, match=match):
            ab.scheme(name)(made)
    half = {"x": ab.parameter(1, "A number.", source="ours", low=1)}
    unknown = {"x": ab.parameter(1, "A number.", source="ours", unit="parsec")}  # type: ignore[arg-type]
    for base, more, words, match in [
        (RoundRobin, half, {}, "one end of its range"),
        (RoundRobin, unknown, {}, "unit: found"),
        (RoundRobin, {"poll_probe": lambda self: None}, {}, "give probe_bytes"),
        (ab.Scheme, {}, {}, "has no method `select`"),
        (object, {}, {}, "no subclass of Scheme"),
        (RoundRobin, {}, {"tags": "label"}, "tags: found"),
        (RoundRobin, {}, {"reads": ["marks"]}, "reads: found"),
    ]:
        made = type("Made", (base,), {"__doc__": "Summary.", **more})
        with pytest.raises(ab.ScenarioError, match=match):
            ab.scheme("py-wrong", **words)(made)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        ab.Scheme.select(ab.Scheme.__new__(ab.Scheme), 0, 0, None)  # type: ignore[arg-type]
