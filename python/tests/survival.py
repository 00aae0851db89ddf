"""
A sweep of 4 load balancers and 5 seeds, and what must be true of it after any interruption: 20 results, those of `anabranch run`,
each published once and whole, and no run begun again but those that were killed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import anabranch as ab

SCENARIO = "permutation-128"
SIZE = "8MiB"
OVER = {"workload.0.size": [SIZE]}
SCHEMES = ["ecmp", "ops", "prime", "reps"]
SEEDS = 5
RUNS = len(SCHEMES) * SEEDS

Fingerprints = dict[tuple[str, int], str]

SWEEP = f"""
import anabranch as ab, sys
ab.sweep({SCENARIO!r}, {OVER!r}, schemes={SCHEMES!r}, seeds={SEEDS}, out=sys.argv[1], threads=2)
"""
"""Program of a process that runs the sweep; its argument is the store."""


def sweep(out: Path, **more: Any) -> ab.Sweep:
    return ab.sweep(SCENARIO, OVER, schemes=SCHEMES, seeds=SEEDS, out=out, **more)


def process(out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", SWEEP, str(out)])


def of_the_command(folder: Path) -> Fingerprints:
    """Returns the fingerprints of the same 20 runs by `anabranch run`."""

    def one(run: tuple[str, int]) -> str:
        scheme, seed = run
        words = ["--set", f"workload.0.size={SIZE}", "--set", f"load_balancer.scheme={scheme}", "--seed", str(seed)]
        command = [sys.executable, "-m", "anabranch", "run", SCENARIO, *words, "--threads", "1", "--out", f"{scheme}-{seed}", "--format", "json"]
        output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        shutil.rmtree(folder / f"{scheme}-{seed}")
        return str(json.loads(output)["fingerprint"])

    runs = [(scheme, seed) for scheme in SCHEMES for seed in range(1, SEEDS + 1)]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(runs, pool.map(one, runs), strict=True))


def finished(out: Path) -> dict[str, int]:
    """Returns the published runs with the inodes of their directories, which change if a run is published twice."""
    return {path.name: path.stat().st_ino for path in out.glob("runs/*")}


def wait_for(runs: int, out: Path) -> None:
    until = time.monotonic() + 120
    while len(finished(out)) < runs:
        assert time.monotonic() < until
        time.sleep(0.01)


def starts(out: Path) -> dict[str, list[int]]:
    """Returns the processes that started each run, in order, from the log that workers write first."""
    begun = defaultdict(list)
    for line in (out / "starts.log").read_text().splitlines():
        run, _, pid, _ = line.split()
        begun[run].append(int(pid))
    return dict(begun)


def wait_for_work(pid: int, out: Path) -> None:
    """Waits until a process is executing a run."""
    until = time.monotonic() + 60
    while all(pids[-1] != pid or run in finished(out) for run, pids in starts(out).items()):
        assert time.monotonic() < until
        time.sleep(0.002)


class Watched:
    """Checks every visible run while open: it must be complete, and its directory must not change."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.wrong: list[str] = []
        self.seen: dict[str, int] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Watched:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        self._look()
        assert self.wrong == [] or kind is not None, self.wrong

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self._look()

    def _look(self) -> None:
        for run, inode in finished(self.out).items():
            if run not in self.seen:
                self.seen[run] = inode
                self.wrong += half_written(self.out / "runs" / run)
            elif self.seen[run] != inode:
                self.wrong.append(f"{run} was published twice")


def half_written(run: Path) -> list[str]:
    """Returns the defects of a published run."""
    try:
        json.loads((run / "summary.json").read_text())
        json.loads((run / "attempt.json").read_text())
        listed = json.loads((run / "manifest.json").read_text())["files"]
        sizes = {file["name"]: file["bytes"] for file in listed}
        found = {name: (run / name).stat().st_size for name in sizes}
    except (OSError, ValueError, KeyError) as error:
        return [f"{run.name}: {error!r}"]
    tables = {"flows.parquet", "links.parquet", "summary.json"} - set(found)
    return [f"{run.name} has {found} of {sizes}"] if found != sizes or tables else []


def survived(out: Path, reference: Fingerprints, killed: Iterable[int] = (), max_killed: int = 0, disk_full: bool = False) -> None:
    """Checks for 20 results, equal to those of the command; only runs of processes in `killed` were started again."""
    done = ab.load(out)
    assert isinstance(done, ab.Sweep) and done.missing == 0 and done.failed == {} and len(done) == RUNS
    rows = done._rows()
    assert {(row["scheme"], int(row["seed"])): row["fingerprint"] for row in rows} == reference
    begun = starts(out)
    assert set(finished(out)) == set(begun) == {row["run"] for row in rows} and len(begun) == RUNS
    assert list((out / ".writing").iterdir()) == [] and (out / "report.html").exists()
    assert [what for run in begun for what in half_written(out / "runs" / run)] == []
    # A run is restarted once for each process that died executing it.
    assert all(set(pids[:-1]) <= set(killed) for pids in begun.values()), (begun, killed)
    again = sum(map(len, begun.values())) - RUNS
    assert again <= max_killed, begun
    # The end of a process counts as an attempt; on a full disk it cannot be recorded.
    assert all(int(row["attempts"]) == (1 if disk_full else len(begun[row["run"]])) for row in rows)
    sweep(out)
    assert starts(out) == begun
