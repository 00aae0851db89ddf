"""Every message of the package in one file, `messages.txt`: a line each, after the call that causes it.

`ANABRANCH_RECORD=1` writes it again; read the difference as a newcomer would: what, where, limit, remedy."""

from __future__ import annotations

import ast
import builtins
import os
import re
import traceback
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch import plot

from conftest import wants

pytestmark = wants("pyarrow", "polars", "pandas", "matplotlib", "optuna", "distributed", "dask_jobqueue")

GOLDEN = Path(__file__).parent / "messages.txt"
PACKAGE = Path(ab.__file__).parent

# What the cases use, beside `ab` and `plot`.
SETUP = """
run = ab.run("tiny", progress=False)
ab.run("tiny", progress=False, out="run")
P_ECN = "load_balancer.prime.p_ecn"
def tune(space=None, objective="slowdown.p99", **given):
    return ab.tune("tiny", space if space is not None else {P_ECN: (1, 50)}, objective, trials=2, seeds=1, held_out=1, progress=False, **given)
Path("file").write_text("a file")
Path("wrong.toml").write_text("[topology]\\nkind = \\"fat-tree\\"\\nraidx = 8\\n")
Path("syntax.toml").write_text("kind = fat-tree")
Path("sweep.toml").write_text('[sweep]\\nscenario = "tiny"\\nover = { "workload.0.size" = ["32KiB"] }\\n')
Path("empty").mkdir()
sweep = ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=["ecmp"], seeds=1, out="sweep", progress=False)
"""
# A call per line; `# without LIBRARY` hides a library.
CASES = """
# Scenarios
ab.Scenario("first-rnu")
ab.Scenario("wrong.toml")
ab.Scenario("syntax.toml")
ab.Scenario("missing.toml")
ab.Scenario("empty")
ab.Scenario(3)
ab.Scenario("first-run", seed=2)
ab.Scenario()
ab.Scenario(topology=3)
ab.Scenario(topology=ab.FatTree(radix=7))
ab.Scenario(topology=ab.FatTree(radix=4), workloads=3)
ab.Scenario(topology=ab.FatTree(radix=4), workloads=[3])
ab.FatTree(raidx=8)
ab.FatTree(radix=8).radix = 4
ab.Scenario("first-run").with_(3)
ab.Scenario("first-run").with_({"topology.raidx": 8})
ab.Scenario("first-run").with_({"topology.radix": 7}).check()
ab.Scenario("first-run").with_({"topology.link_delay": 5})
ab.Scenario("first-run").with_({"topology.link_delay": "5 parsec"})
ab.Scenario("first-run").with_({"seed": None})
ab.Scenario("first-run").with_({"seed": 2**64})
ab.Scenario("first-run").with_(scheme="prmie")
ab.Scenario("first-run").with_({"measure.trace_flows": [10_000_000]}).check()
ab.list("schmes")
ab.explain("prmie")
ab.topology("first-run", pair=(0, 0))
ab.topology("first-run", pair=(0, 10_000))
ab.nothing

# Runs and comparisons
ab.run("tiny", threads=0)
ab.run("tiny", progress=3)
ab.run("first-run", out="run")
ab.run("tiny", out="file")
ab.compare("tiny", schemes="ecmp,prime")
ab.compare("tiny", schemes=["emcp"])
ab.compare("tiny", schemes=["ecmp"], seeds=0)
ab.compare("tiny", schemes=["ecmp", "prime"], baseline="prme")
ab.compare("tiny", schemes=["ecmp"], variants=["x"])
ab.compare("tiny", schemes=["ecmp"], variants={"x": {"load_balancer.prime.p_ecm": 8}})
ab.load("empty")
ab.load("nowhere")
run.table("flow")
run.table("series")
run.summary.seed = 3
ab.load("run").write("elsewhere")
run.table("flows").arrow() # without pyarrow
run.table("flows").polars() # without polars
run.table("flows").pandas() # without pandas

# Sweeps
ab.sweep("tiny", {})
ab.sweep("tiny", ["workload.0.size"])
ab.sweep("tiny", {"workload.0.sizee": ["16KiB"]})
ab.sweep("tiny", {"workload.0.size": [16]})
ab.sweep("tiny", {"workload.0.size": []})
ab.sweep("tiny", {"workload.0.size": 16})
ab.sweep("tiny", {"workload.0.size": ["1KiB"], "topology.link_delay": ["1us", "2us"]}, mode="zip")
ab.sweep("tiny", {"workload.0.size": ["1KiB"]}, mode="zap")
ab.sweep("tiny", {"workload.0.size": "1KiB..2000KiB:1KiB", "topology.link_delay": "1ns..2000ns:1ns"})
ab.sweep("tiny", {"topology.link_delay": "5us..1us:1us"})
ab.sweep("tiny", {"topology.link_delay": ["5us", "5us"]})
ab.sweep([], schemes=["ecmp"])
ab.sweep(["tiny"], {"workload.0.size": ["1KiB"]})
ab.sweep("sweep.toml", {"workload.0.size": ["1KiB"]})
ab.sweep("tny", {"workload.0.size": ["1KiB"]})
ab.sweep("tiny", {"workload.0.size": ["1KiB"]}, again="faild")
ab.sweep("tiny", {"workload.0.size": ["1KiB"]}, task=(4, 3))
ab.sweep("tiny", {"workload.0.size": ["1KiB"]}, out="file")
ab.sweep("first-run", {"topology.link_delay": ["1us"]}, out="run")
ab.sweep("first-run", {"topology.link_delay": ["1us"]}, out="sweep")
ab.sweep("tiny", {"workload.0.size": ["1KiB"]}, client=3)
sweep.run("0" * 16)
sweep.rows("flow")
sweep.scan("flow")
sweep.scan() # without polars

# Tuning
tune(3)
tune({})
tune({P_ECN: 3})
tune({P_ECN: []})
tune({P_ECN: ("1us", "2us")})
tune({P_ECN: (5, 1)})
tune({"load_balancer.prime.p_ecm": (1, 50)})
tune(objective=[])
tune(objective="slowdown.p98")
tune(direction="up")
tune(direction=["minimize", "maximize"])
tune(out="run")
tune(out="file")
tune() # without optuna
# Search of claims

# Figures
plot.cdf(run, ax=None).save("figure.jpeg")
plot.cdf([])
plot.cdf(3)
plot.cdf(run) # without matplotlib
plot.cdf(3) # without pyarrow
plot.heatmap(sweep, "fct_mean")
plot.curves(sweep, "fct_maen")
plot.curves(sweep, key="workload.0.siez")
plot.cdf(run, "slowdwon")
plot.slowdown_by_size(run, quantile=1)
plot.slowdown_by_size(run)

# Clusters
ab.slurm(jobs=0)
ab.slurm(jobs=1, memory="4 parsec")
ab.slurm(jobs=1) # without dask_jobqueue
"""
# Raised under conditions that no call above makes; the tests that do.
ELSEWHERE = {
    "_agent.py": "test_agent.py: simulated runs, and a running job",
    "_command.py": "test_dask.py",
    "_dask.py": "test_dask.py",
    "_scheme.py": "test_scheme.py: classes that are no schemes, and their parameters",
    "_slurm.py": "test_slurm.py, with a Slurm and without one",
    "_sweep.py": "test_sweep.py: a store whose files were removed, and one without a finished run",
    "_tune.py": "test_tune.py: a journal of another tuning, unfinished flows, values that are none",
}


def execute(code: str, namespace: dict[str, Any], hidden: str, monkeypatch: pytest.MonkeyPatch) -> BaseException | None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **words: Any) -> Any:
        if hidden and name.partition(".")[0] == hidden:
            raise ImportError(name)
        return real(name, *rest, **words)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", without)
        try:
            exec(code, namespace)
        except Exception as error:
            return error
    return None


def test_all_messages_are_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"ab": ab, "plot": plot, "Path": Path}
    exec(SETUP, namespace)
    lines = ["# Messages of the Python package: after each call its exception, place and remedy (python/tests/test_messages.py)."]
    silent: list[str] = []
    raised: set[tuple[str, int]] = set()
    for case in CASES.strip().splitlines():
        if not case or case.startswith("# "):
            lines.append(case)
            continue
        code, _, hidden = case.partition(" # without ")
        error = execute(code, namespace, hidden, monkeypatch)
        if error is None:
            silent.append(case)
            continue
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == PACKAGE]
        raised.update((Path(frame.filename).name, frame.lineno or 0) for frame in frames)
        message = str(error).replace(str(tmp_path), "DIR").strip().replace("\n", " | ")
        message = re.sub(r"nearest of \d+", "nearest of N", message)
        lines += [f">>> {case}", f"{type(error).__name__}: {message}", ""]
    assert not silent, "these raise nothing"
    text = "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"
    if os.environ.get("ANABRANCH_RECORD"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "read the difference, then ANABRANCH_RECORD=1 python/test python/tests/test_messages.py"
    # Every statement that raises was reached by a case, or is in a file whose other tests reach it.
    for path in sorted(PACKAGE.glob("_*.py")) + [PACKAGE / "plot.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Raise) or node.exc is None or path.name in ELSEWHERE:
                continue
            at = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            assert any((path.name, line) in raised for line in at), f"{path.name}:{node.lineno} has no case in test_messages.py"
