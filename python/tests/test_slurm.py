"""Sweeps on Slurm: jobs that are cancelled are replaced; arrays need no Dask."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
import slurm
import survival

from conftest import skips, wants
from test_engines import STUDY, all_done_once, block, environment

pytestmark = [
    wants("dask_jobqueue", "distributed"),
    skips(slurm.missing()),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("slurm")
    before = dict(os.environ)
    os.environ["PATH"] = slurm.PATH
    os.environ["SLURM_CONF"] = str(slurm.start(folder))
    try:
        yield folder
    finally:
        slurm.stop(folder)
        os.environ.clear()
        os.environ.update(before)


def workers_of(job: str, client: Any) -> list[int]:
    """Returns the processes of a job's workers."""
    names = [name for name, worker in client.cluster.workers.items() if worker.job_id == job]
    found = client.scheduler_info(n_workers=-1)["workers"].items()
    addresses = [address for address, worker in found if any(str(worker["name"]).startswith(name) for name in names)]
    return list(client.run(os.getpid, workers=addresses).values())


def jobs() -> list[str]:
    reply = subprocess.run(["squeue", "-h", "-t", "running", "-o", "%i"], capture_output=True, text=True, check=True)
    return reply.stdout.split()


@pytest.mark.parametrize("cancelled", ["one", "all"])
def test_cancelled_jobs_are_replaced(cancelled: str, cluster: Path, tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    killed: list[int] = []

    def cancel() -> None:
        survival.wait_for(4, out)
        chosen = jobs()[:1] if cancelled == "one" else jobs()
        for job in chosen:
            killed.extend(workers_of(job, client))
        subprocess.run(["scancel", *chosen], check=True)

    client = ab.slurm(
        jobs=2, memory="1GB", interface="lo", prologue=[f"export PYTHONPATH={Path(ab.__file__).parents[1]}"],
        python=sys.executable, local_directory=str(tmp_path), log_directory=str(tmp_path),
    )  # fmt: skip
    try:
        client.wait_for_workers(2, timeout=60)
        thread = threading.Thread(target=cancel)
        thread.start()
        with survival.Watched(out):
            survival.sweep(out, client=client)
        thread.join()
    finally:
        client.close()
        if client.cluster is not None:
            client.cluster.close()
    assert len(killed) == (1 if cancelled == "one" else 2)
    survival.survived(out, of_the_command, killed, max_killed=len(killed))


def test_an_array_does_a_sweep_file(cluster: Path, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "job.sh").write_text("#!/bin/bash\n" + block("bash", "#SBATCH --array"))
    subprocess.run(
        ["sbatch", "--wait", "job.sh"], cwd=tmp_path, env=environment(), check=True, capture_output=True, timeout=300
    )
    all_done_once(tmp_path / "results" / "study")


def test_a_partition_that_is_not_there(cluster: Path) -> None:
    with pytest.raises(ab.ScenarioError) as caught:
        ab.slurm(jobs=1, partition="bacth")
    assert caught.value.nearest == "batch"


def test_jobs_that_slurm_refuses(cluster: Path) -> None:
    with pytest.raises(ab.ScenarioError, match="refuses the jobs: .*not available"):
        ab.slurm(jobs=1, memory="900TB", interface="lo")
