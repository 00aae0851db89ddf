"""
Measures the cost of the package on one machine: processor time, or instructions (valgrind) where the difference is small.

    python -P python/measure.py [NAME ...]     # import, overhead, frames, sweep, cores, dask
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anabranch as ab


def of_children(*words: str, cwd: str) -> float:
    """Returns the processor time of a command, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def own(call: Callable[[], object]) -> float:
    """Returns the processor time of a call in seconds, all threads."""
    before = time.process_time()
    call()
    return time.process_time() - before


def instructions(*words: str, cwd: str) -> int:
    """Counts the instructions of a command, which other load on the machine does not change."""
    counted = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *words]
    output = subprocess.run(counted, cwd=cwd, check=True, capture_output=True, text=True).stderr
    return int(output.partition("Collected : ")[2].split()[0])


def overhead(folder: str) -> None:
    """Compares a run by the command with one from Python; both write tables."""
    command = [sys.executable, "-m", "anabranch"]
    code = """
import anabranch as ab
ab.run(ab.Scenario('permutation-128').with_({'workload.0.size': '16MiB'}), threads=1, out='python', progress=lambda p: None)
"""
    words = ["run", "permutation-128", "--set", "workload.0.size=16MiB", "--threads", "1", "--out", "command"]
    run = instructions(*command, *words, cwd=folder)
    # The report of the command and the start of the interpreter are subtracted.
    page = instructions(*command, "report", "command", cwd=folder)
    start = instructions(*command, "--version", cwd=folder)
    python = instructions(sys.executable, "-c", code, cwd=folder)
    ours, theirs = python - start, run - page
    print(f"overhead: a run by the command {theirs / 1e6:.0f} million instructions, from Python {ours / 1e6:.0f}: {100 * (ours / theirs - 1):+.1f} %")


def frames(folder: str) -> None:
    """Compares flows as a polars frame with their run and with reading them from Parquet; minimum of several."""
    import polars

    scenario = ab.Scenario("hopper-alicloud").with_({"workload.0.duration": "10ms"})
    runs: list[ab.Run] = []
    seconds, first = [], []
    for turn in range(4):
        seconds.append(own(lambda: runs.append(ab.run(scenario, threads=1, progress=False))))
        first.append(own(lambda: runs[-1].flows.polars()))
    run = runs[-1].write(Path(folder) / "alicloud")
    again = min(own(lambda: run.flows.polars()) for _ in range(5))
    read = min(own(lambda: polars.read_parquet(Path(folder) / "alicloud" / "flows.parquet")) for _ in range(5))
    print(
        f"frames: {len(run.flows):,} flows, run {min(seconds):.1f} s, frame {min(first) * 1e3:.1f} ms ({100 * min(first) / min(seconds):.3f} %), "
        f"again {again * 1e3:.2f} ms, polars reads them from Parquet in {read * 1e3:.1f} ms ({min(first) / read:.2f} times)"
    )


def sweep(folder: str) -> None:
    """Measures a thousand runs of `tiny` with results on disk, then their reuse."""
    def go(name: str, client: object = None) -> None:
        ab.sweep(
            "tiny", {"workload.0.size": "1KiB..250KiB:1KiB"}, schemes=["ecmp", "prime"], seeds=2, out=Path(folder) / name,
            client=client, progress=False,
        )  # fmt: skip

    first, again = own(lambda: go("thousand")), own(lambda: go("thousand"))
    print(f"sweep: {first:.2f} ms of processor time per run, tables and figures included; again {again:.3f} ms")


def cores(folder: str) -> None:
    """Compares eight equal runs on two cores with one, in a sweep and in independent processes; medians of the ratios."""
    eight = ["permutation-1024", "--set", "workload.0.size=8MiB", "--set", "load_balancer.scheme=ecmp", "--threads", "1"]
    code = "import anabranch as ab, sys; ab.sweep('permutation-1024', {'workload.0.size': ['8MiB']}, schemes=['ecmp'], seeds=8, threads=int(sys.argv[2]), out=sys.argv[1], progress=False)"
    turns = iter(range(1000))

    def by_sweep(threads: int) -> None:
        subprocess.run([sys.executable, "-c", code, f"cores{next(turns)}", str(threads)], cwd=folder, check=True)

    def by_processes(at_once: int) -> None:
        for seed in range(1, 9, at_once):
            words = [[sys.executable, "-m", "anabranch", "run", *eight, "--seed", str(seed + more), "--out", f"cores{next(turns)}"] for more in range(at_once)]
            beside = [subprocess.Popen(one, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for one in words]
            assert [process.wait() for process in beside] == [0] * at_once

    def taken(call: Callable[[int], None], cores: int) -> float:
        began = time.monotonic()
        call(cores)
        return time.monotonic() - began

    ratios: dict[str, list[float]] = {"a sweep": [], "plain processes": []}
    for _ in range(5):
        for name, call in [("a sweep", by_sweep), ("plain processes", by_processes)]:
            ratios[name].append(taken(call, 2) / taken(call, 1))
    for name, found in ratios.items():
        print(f"cores: {name} on two of one: {sorted(found)[2]:.3f} ({min(found):.3f} to {max(found):.3f})")


def dask(folder: str) -> None:
    """Measures the runs of `sweep` on two Dask workers, with scheduler and client, without their start."""
    code = """
import sys
import anabranch as ab
from distributed import Client, LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        ab.sweep("tiny", {"workload.0.size": sys.argv[2]}, schemes=["ecmp", "prime"], seeds=2, out=sys.argv[1], client=client, progress=False)
"""
    (Path(folder) / "on_dask.py").write_text(code)
    few, many = (
        of_children(sys.executable, "on_dask.py", f"dask-{last}", f"1KiB..{last}KiB:1KiB", cwd=folder) for last in (2, 250)
    )
    print(f"dask: {(many - few) / 992 * 1e3:.1f} ms of processor time per run")


def start(folder: str) -> None:
    """Measures `import anabranch`."""
    code = "import time; b = time.process_time(); import anabranch; print(time.process_time() - b)"
    taken = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(9)]
    print(f"import: {min(taken) * 1e3:.1f} ms")


if __name__ == "__main__":
    parts = {"import": start, "overhead": overhead, "frames": frames, "sweep": sweep, "cores": cores, "dask": dask}
    chosen = sys.argv[1:] or list(parts)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as place:
        for part in chosen:
            parts[part](place)
