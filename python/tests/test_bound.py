"""Bounds: the linear program of `anabranch bound` against HiGHS, on networks that are described a second time here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anabranch as ab
import pytest

from conftest import wants

pytestmark = wants("scipy")

LEAVES, SPINES, HOSTS = 4, 3, 4
GBPS = 400.0
SCENARIO = f"""
[topology]
kind = "leaf-spine"
leaves = {LEAVES}
spines = {SPINES}
hosts_per_leaf = {HOSTS}
link_rate = "{GBPS:g}Gbps"
link_delay = "1us"
[load_balancer]
scheme = "ops"
"""
UNEVEN = """
[[workload]]
kind = "permutation"
size = "1MB"
scope = "other-leaf"
[[workload]]
name = "few"
kind = "incast"
senders = 3
receivers = 2
size = "700kB"
"""


def bound(path: Path) -> dict[str, Any]:
    words = [sys.executable, "-m", "anabranch", "bound", str(path), "--format", "json"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def by_highs(flows: list[tuple[int, int, float]], rates: dict[tuple[str, str], float]) -> float:
    """Least time in microseconds in which the links between switches carry all bytes, per pair of leaves and link, by HiGHS.

    A variable per source leaf and directed link (bytes that it carries), and the time T; a source's bytes are conserved at every
    switch; a link carries no more than its rate times T."""
    from scipy.optimize import linprog  # type: ignore[import-untyped]

    nodes = [f"leaf{n}" for n in range(LEAVES)] + [f"spine{n}" for n in range(SPINES)]
    links = list(rates)
    columns = LEAVES * len(links) + 1
    demand: dict[tuple[int, int], float] = {}
    for src, dst, size in flows:
        pair = (src // HOSTS, dst // HOSTS)
        if pair[0] != pair[1]:
            demand[pair] = demand.get(pair, 0.0) + size
    equal, right = [], []
    for source in range(LEAVES):
        for node in nodes:
            row = [0.0] * columns
            for number, (start, end) in enumerate(links):
                row[source * len(links) + number] = (end == node) - (start == node)
            absorbed = sum(size for (leaf, to), size in demand.items() if leaf == source and f"leaf{to}" == node)
            sent = sum(size for (leaf, _), size in demand.items() if leaf == source) if node == f"leaf{source}" else 0.0
            equal.append(row)
            right.append((absorbed - sent) / 1e6)
    limits = []
    for number, link in enumerate(links):
        row = [0.0] * columns
        for source in range(LEAVES):
            row[source * len(links) + number] = 1.0
        # 1 Gb/s is 125 bytes a microsecond; bytes count in MB.
        row[-1] = -rates[link] * 125e-6
        limits.append(row)
    objective = [0.0] * (columns - 1) + [1.0]
    found = linprog(objective, A_ub=limits, b_ub=[0.0] * len(limits), A_eq=equal, b_eq=right, method="highs")
    assert found.success, found.message
    return float(found.fun)


@pytest.mark.parametrize("slow", [[], ["leaf0-spine0"], ["leaf0-spine0", "leaf1-spine1", "leaf3-spine0"]])
@pytest.mark.parametrize("workloads", [UNEVEN])
def test_the_linear_program_agrees_with_highs(tmp_path: Path, slow: list[str], workloads: str) -> None:
    fault = f'[[fault]]\nkind = "link-degrade"\nrate = "90Gbps"\nlinks = {json.dumps(slow)}\n' if slow else ""
    path = tmp_path / "network.toml"
    path.write_text(SCENARIO + workloads + fault)
    rows = ab.run(str(path), out=tmp_path / "run", progress=False).flows.polars()
    packets = [-(-size // 4096) for size in rows["size_bytes"]]
    wire = [size + 64 * count for size, count in zip(rows["size_bytes"], packets, strict=True)]
    flows = list(zip(rows["src"], rows["dst"], wire, strict=True))
    rates = {}
    for leaf in range(LEAVES):
        for spine in range(SPINES):
            rate = 90.0 if f"leaf{leaf}-spine{spine}" in slow else GBPS
            rates[f"leaf{leaf}", f"spine{spine}"] = rates[f"spine{spine}", f"leaf{leaf}"] = rate
    expected = by_highs([(int(src), int(dst), float(size)) for src, dst, size in flows], rates)
    found = next(flow for flow in bound(path)["max_flow"] if flow["workload"] == "all")
    # The certificate is below the optimum, by its own gap at most.
    assert found["time_us"] <= expected * (1 + 1e-6)
    assert found["time_us"] >= expected * (1 - 1e-3), (found, expected)
    assert found["gap"] < 1e-3
