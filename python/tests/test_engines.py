"""Other engines: the blocks of docs/how-to/slurm.md run a small study, each run once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import anabranch as ab

from conftest import skips

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "slurm.md").read_text()
STUDY = """
[sweep]
scenario = "tiny"
schemes = ["ecmp", "prime"]
seeds = 4
[sweep.over]
workload.0.size = ["16KiB", "64KiB"]
"""


def block(language: str, begin: str) -> str:
    """Returns the block of a language with this beginning."""
    found = re.search(rf"^```{language}\n({re.escape(begin)}.*?)^```", PAGE, re.M | re.S)
    assert found, begin
    return found.group(1)


def environment() -> dict[str, str]:
    """Returns an environment in which `anabranch` is the command of this package."""
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def all_done_once(store: Path) -> None:
    sweep = ab.load(store)
    assert isinstance(sweep, ab.Sweep) and sweep.missing == 0 and sweep.failed == {} and len(sweep) == 16
    starts = Counter(line.split()[0] for line in (store / "starts.log").read_text().splitlines())
    assert len(starts) == 16 and set(starts.values()) == {1}
    assert (store / "report.html").exists()


def test_a_shell_loop(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    subprocess.run(["bash", "-ec", block("bash", "for k in")], cwd=tmp_path, env=environment(), check=True, capture_output=True)
    all_done_once(tmp_path / "results" / "study")


def has(command: str) -> bool:
    return shutil.which(command, path=environment()["PATH"]) is not None


@skips(None if has("snakemake") else "not installed: snakemake")
def test_snakemake(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "Snakefile").write_text(block("snakemake", "rule study"))
    done = subprocess.run(["snakemake", "--cores", "2"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    all_done_once(tmp_path / "results" / "study")


@pytest.mark.skipif(not has("nextflow"), reason="not installed: nextflow (PyPI has a launcher only, which fetches it from nextflow.io)")
def test_nextflow(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "main.nf").write_text(block("nextflow", "process share"))
    done = subprocess.run(["nextflow", "run", "main.nf"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    all_done_once(tmp_path / "results" / "study")
