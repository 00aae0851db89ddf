"""Extras: each, installed alone into an empty environment, has what its functions import."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import anabranch as ab

from conftest import skips

HERE = Path(__file__).parents[1]
REPOSITORY = HERE.parent
EXTRAS: dict[str, list[str]] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]

START = """
import pathlib
import anabranch as ab
run = ab.run("first-run", out="run", progress=False)
comparison = ab.compare("tiny", ["ecmp", "prime"], seeds=2, progress=False)
over = {"workload.0.size": ["16KiB", "64KiB"], "topology.link_delay": ["500ns", "1us"]}
sweep = ab.sweep("tiny", over, schemes=["ecmp", "prime"], out="sweep", progress=False)
tables = [run.flows, run.links, comparison.table, sweep]
"""
PLOTS = """
import matplotlib
matplotlib.use("Agg")
figures = [
    ab.plot.slowdown_by_size(run, quantile=0.5), ab.plot.cdf([run, comparison]), ab.plot.cdf(run.flows, "fct_rx_ps", tail=True),
    ab.plot.links(comparison), ab.plot.queues(run), ab.plot.compare(comparison), ab.plot.curves(sweep, key="topology.link_delay"),
    ab.plot.heatmap(sweep),
]
for figure in figures:
    figure.save("f.pdf", "f.svg", "f.png", "f.csv")
for style in ["anabranch.paper", "anabranch.slides"]:
    matplotlib.style.use(style)
"""
TUNING = """
tuning = ab.tune("tiny", {"load_balancer.prime.p_ecn": (1, 9), "fabric.ecn_kmin": ["0.1bdp", "0.2bdp"]}, "slowdown.max",
                 trials=3, held_out=1, out="tuned", progress=False)
assert len(tuning.trials) == 3 and tuning.gain and tuning.table and repr(tuning)
"""
POLARS = """
assert all(table.polars().height for table in tables)
"""
PANDAS = """
assert all(len(table.pandas()) for table in tables)
"""
ARROW = """
import pyarrow
assert run.flows.arrow().num_rows == len(run.flows) and pyarrow.table(sweep).num_rows
"""
DASK = """
from distributed import Client
with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    done = ab.sweep("tiny", {"workload.0.size": ["8KiB"]}, schemes=["ecmp"], out="by-dask", client=client, progress=False)
    assert not done.missing and not done.failed
"""
SLURM = """
try:
    ab.slurm(jobs=1)
except ab.ScenarioError as error:
    assert "sbatch" in str(error), error
"""
TRIALS = """
ab.plot.trials(tuning).save("t.png")
"""
AGENT = """
env = ab.Env("tiny", interval="1us")
_, _ = env.reset(seed=1)
done = False
while not done:
    _, _, terminated, truncated, info = env.step(env.action_space.sample())
    done = terminated or truncated
assert info["run"].flows
try:
    ab.live(folder=".")
except ab.ScenarioError as error:
    assert "no process" in str(error), error
"""
PROMISES = {
    "polars": POLARS + "assert sweep.scan().collect().height\n",
    "pandas": PANDAS + ARROW,
    "arrow": ARROW,
    "plot": PLOTS,
    "dask": DASK,
    "slurm": DASK + SLURM,
    "tune": TUNING,
    "agent": AGENT,
    "notebook": POLARS + PLOTS + TUNING + TRIALS + "import ipykernel\n",
    "all": POLARS + PANDAS + ARROW + PLOTS + DASK + SLURM + TUNING + TRIALS + AGENT,
}
uv = shutil.which("uv")


def requirements(extra: str) -> list[str]:
    listed = []
    for requirement in EXTRAS[extra]:
        own = re.fullmatch(r"anabranch\[(.*)\]", requirement)
        listed += [needed for name in own[1].split(",") for needed in requirements(name)] if own else [requirement]
    return listed


@skips(None if uv else "uv is not installed")
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_alone_has_what_its_functions_import(extra: str, tmp_path: Path) -> None:
    assert uv
    environment = tmp_path / "environment"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, environment], check=True)
    python = environment / "bin" / "python"
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements(extra)], check=True)
    (environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages" / "anabranch.pth").write_text(str(HERE))
    done = subprocess.run([python, "-c", START + PROMISES[extra]], cwd=tmp_path, capture_output=True, text=True, env={"PATH": ""})
    assert done.returncode == 0, done.stderr


def test_every_function_that_draws_is_called() -> None:
    drawn = [name for name, of in inspect.getmembers(ab.plot, inspect.isfunction) if of.__module__ == ab.plot.__name__ and name[0] != "_"]
    assert [name for name in drawn if f"ab.plot.{name}(" not in PLOTS + TRIALS] == []


def test_an_installation_in_the_docs_has_what_its_page_draws() -> None:
    """Wherever an extra is named, it is one; README installs what its page and the notebooks need."""
    for page in [REPOSITORY / "README.md", *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("docs/**/*.ipynb")]:
        for names in re.findall(r"pip install [^\n]*\[([a-z,]+)\]", page.read_text()):
            assert set(names.split(",")) <= set(EXTRAS), page
