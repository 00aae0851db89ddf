"""Sweeps on Dask: each run is published once, and finished runs are not repeated, when workers fail."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch import _native

import survival
from conftest import wants
from survival import SCHEMES
from test_engines import STUDY, all_done_once, environment

pytestmark = wants("distributed")


@pytest.fixture
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


def starts(directory: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in (directory / "starts.log").read_text().splitlines())


def test_a_worker_killed_in_the_middle(client: Any, tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    killed: list[int] = []

    def kill() -> None:
        survival.wait_for(3, out)
        worker = next(iter(client.scheduler_info()["workers"]))
        (pid,) = client.run(os.getpid, workers=[worker]).values()
        survival.wait_for_work(pid, out)
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    with survival.Watched(out):
        survival.sweep(out, client=client)
    thread.join()
    assert killed
    # One start for each run, and one more for a killed run.
    survival.survived(out, of_the_command, killed, max_killed=1)


CLIENT = f"""
import anabranch as ab, sys
from distributed import Client
with Client(sys.argv[1]) as client:
    ab.sweep({survival.SCENARIO!r}, {survival.OVER!r}, schemes={SCHEMES!r}, seeds={survival.SEEDS}, out=sys.argv[2], client=client)
"""


def test_a_client_killed_and_started_again(client: Any, tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    words = [sys.executable, "-c", CLIENT, client.scheduler.address, str(out)]
    with survival.Watched(out):
        first = subprocess.Popen(words)
        survival.wait_for(3, out)
        assert first.poll() is None, "it is in the middle"
        first.kill()
        first.wait()
        subprocess.run(words, check=True)
    # The workers survive the client and finish their runs.
    survival.survived(out, of_the_command)


def test_the_command_with_the_address_of_a_scheduler(client: Any, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)

    def command(address: str) -> subprocess.CompletedProcess[str]:
        words = ["anabranch", "sweep", "study.toml", "--out", "results/study", "--dask", address]
        return subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True)

    done = command(client.scheduler.address)
    assert done.returncode == 0 and "16 finished" in done.stdout, done.stderr
    all_done_once(tmp_path / "results" / "study")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refused = command(f"tcp://127.0.0.1:{closed.getsockname()[1]}")
    assert refused.returncode == 2 and "no reply from a Dask scheduler" in refused.stderr


def test_a_run_whose_process_died_three_times_is_given_up(client: Any, tmp_path: Path) -> None:
    """Simulates a run that needs too much memory: its claim records three ended processes."""
    out = tmp_path / "sweep"
    # The manifest makes it a store.
    ab.sweep("tiny", {"workload.0.size": ["32KiB"]}, schemes=["ecmp"], out=out)
    run = ab.Scenario("tiny").with_(scheme="ecmp")._native.run_key
    (out / ".claims" / run).write_text("x\n" * 3)
    sweep = ab.sweep("tiny", {"workload.0.size": ["64KiB"]}, schemes=["ecmp", "prime"], out=out, client=client)
    assert list(sweep.failed) == [run] and "killed 3 times" in sweep.failed[run] and sweep.missing == 0


def test_a_run_that_kills_its_worker_is_given_up_and_the_others_are_done(client: Any, tmp_path: Path) -> None:
    """Without a shared store the client counts starts."""
    from distributed.diagnostics.plugin import WorkerPlugin

    class Deadly(WorkerPlugin):
        """Kills every worker, also later ones, that runs PRIME."""

        name = "deadly"

        def setup(self, worker: Any) -> None:
            from anabranch import _native

            real = _native.Store

            class Store:
                def __init__(self, folder: Path) -> None:
                    self.own = real(folder)

                def __getattr__(self, name: str) -> Any:
                    return getattr(self.own, name)

                def run(self, runs: Any, *more: Any) -> Any:
                    if "prime" in runs[0][0]:
                        time.sleep(0.3)
                        os.kill(os.getpid(), signal.SIGKILL)
                    return self.own.run(runs, *more)

            _native.Store = Store  # type: ignore[assignment, misc]

    client.register_plugin(Deadly())
    out = tmp_path / "sweep"
    sweep = ab.sweep("tiny", {"workload.0.size": ["64KiB"]}, schemes=SCHEMES, seeds=1, out=out, client=client, gather=True)
    (run,) = sweep.failed
    # Dask reports a lost worker after four workers with the run in their queue were lost, started or not.
    times = starts(out)[run]
    assert 3 <= times <= 7 and f"lost {times} times" in sweep.failed[run]
    assert sweep.missing == 0 and len(sweep) == 4


def test_rows_come_back_where_no_file_system_is_shared(client: Any, tmp_path: Path) -> None:
    over = {"workload.0.size": ["16KiB", "32KiB", "64KiB"]}
    there = tmp_path / "there"
    done = threading.Event()

    def open_again_and_again() -> None:
        """Other processes read the store meanwhile and remove leftovers."""
        while not done.is_set():
            if (there / "plan.json").exists():
                _native.Store(there).run([], 1, "")

    other = threading.Thread(target=open_again_and_again)
    other.start()
    try:
        gathered = ab.sweep("tiny", over, schemes=SCHEMES, seeds=5, out=there, client=client, gather=True)
    finally:
        done.set()
        other.join()
    here = ab.sweep("tiny", over, schemes=SCHEMES, seeds=5, out=tmp_path / "here")
    assert [row["fingerprint"] for row in gathered._rows()] == [row["fingerprint"] for row in here._rows()]
    assert gathered.missing == 0 and len(gathered.rows()) == len(here.rows())
    assert set(starts(there).values()) == {1} and len(starts(there)) == 60
    assert list((there / ".writing").iterdir()) == []


def test_workers_of_another_version_are_refused(client: Any, tmp_path: Path) -> None:
    def pretend() -> None:
        from anabranch import _native

        _native.COMMIT = "another"

    client.run(pretend, workers=[next(iter(client.scheduler_info()["workers"]))])
    with pytest.raises(ab.ScenarioError, match="another"):
        ab.sweep("tiny", {"workload.0.size": ["64KiB"]}, schemes=["ecmp"], out=tmp_path / "sweep", client=client)
    assert not list(tmp_path.glob("sweep/runs/*"))


def test_workers_without_the_package_are_refused(client: Any, tmp_path: Path) -> None:
    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "anabranch"]:
            del sys.modules[name]
        sys.modules["anabranch"] = None  # type: ignore[assignment]

    client.run(forget)
    with pytest.raises(ab.ScenarioError, match="a Dask worker lacks the package anabranch") as caught:
        ab.sweep("tiny", {"workload.0.size": ["64KiB"]}, schemes=["ecmp"], out=tmp_path / "sweep", client=client)
    assert caught.value.place == "client" and "same wheel" in str(caught.value) and not (tmp_path / "sweep").exists()


def slurm_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **commands: str) -> None:
    """Puts shell lines in place of Slurm's commands, alone on the PATH."""
    for name, lines in commands.items():
        (folder / name).write_text(f"#!/bin/sh\n{lines}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def refused(**words: Any) -> ab.ScenarioError:
    with pytest.raises(ab.ScenarioError) as caught:
        ab.slurm(**{"jobs": 2, "interface": "lo", **words})
    return caught.value


@wants("dask_jobqueue")
def test_slurm_that_is_absent_down_or_refuses_says_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slurm_of(tmp_path, monkeypatch)
    assert str(refused()) == (
        "Slurm is missing on this machine: no command `sbatch` (at slurm)\n"
        "start it on a machine that has Slurm's commands, or use ab.sweep without a client"
    )
    down = "slurm_load_partitions: Unable to contact slurm controller (connect failure)"
    slurm_of(tmp_path, monkeypatch, sbatch="exit 1", sinfo=f"echo '{down}' >&2; exit 1")
    assert str(refused()).splitlines()[0] == f"Slurm refuses: {down} (at slurm)"
    no_account = "echo 'sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified' >&2; exit 1"
    slurm_of(tmp_path, monkeypatch, sbatch=no_account, sinfo="echo batch; echo gpu")
    error = refused(partition="bacth")
    assert (error.place, error.nearest) == ("partition", "batch")
    assert str(error) == "Slurm has no partition `bacth`; there are batch, gpu (at partition)\ndid you mean `batch`?"
    error = refused(partition="batch", account="nobody")
    assert str(error) == (
        "Slurm refuses the jobs: Batch job submission failed: Invalid account or account/partition combination specified (at slurm)"
    )
    assert refused(cores=0).place == "cores" and refused(jobs=0).place == "jobs"
    for memory in ("much", "4"):
        error = refused(memory=memory)
        assert error.place == "memory" and '"4GB"' in str(error)
