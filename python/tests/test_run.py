"""Runs: equal to those of the program; progress; interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import anabranch as ab
from anabranch import _native


def command(*words: str, cwd: Path) -> str:
    done = subprocess.run([sys.executable, "-m", "anabranch", *words], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


def same_from_both(name: str, threads: int, changes: dict[str, str], folder: Path) -> None:
    """Checks that fingerprint, summary and rows are equal by the command and from Python."""
    settings = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    words = ["run", name, *settings, "--threads", str(threads), "--out", "there", "--format", "json"]
    printed = json.loads(command(*words, cwd=folder))
    own = ab.run(ab.Scenario(name).with_(changes), threads=threads, out=folder / "here")
    assert own.fingerprint == printed["fingerprint"]
    differing = {"wall_s", "packet_hops_per_s", "peak_rss_bytes"}
    ours = json.loads((folder / "here" / "summary.json").read_text())
    assert {k: v for k, v in ours.items() if k not in differing} == {k: v for k, v in printed.items() if k not in differing}
    for table in ["flows.csv", "links.csv"]:
        assert (folder / "here" / table).read_bytes() == (folder / "there" / table).read_bytes()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["tiny", "incast", "first-run", "permutation-roce"])
def test_the_command_and_python_give_the_same(name: str, threads: int, tmp_path: Path) -> None:
    same_from_both(name, threads, {}, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", [name for name, _ in _native.ready_made()])
def test_the_command_and_python_give_the_same_for_every_ready_made_scenario(name: str, threads: int, tmp_path: Path) -> None:
    """The first microseconds of each, since some take minutes."""
    same_from_both(name, threads, {"run.until": "30us"}, tmp_path)


def test_every_number_of_the_summary_is_typed(tmp_path: Path) -> None:
    run = ab.run("tiny", out=tmp_path / "run")
    given = json.loads((tmp_path / "run" / "summary.json").read_text())

    def covers(typed: object, given: object, place: str) -> None:
        if isinstance(given, dict):
            for key, value in given.items():
                if isinstance(typed, dict):
                    covers(typed[key], value, f"{place}.{key}")
                else:
                    assert hasattr(typed, key), f"{place}.{key} is missing from the typed summary"
                    covers(getattr(typed, key), value, f"{place}.{key}")
        elif not isinstance(given, list):
            assert typed == given, place

    covers(run.summary, given, "summary")
    assert run.summary.value("slowdown.p99") == given["slowdown"]["p99"]
    assert run.summary.value("workloads.permutation.fct_us.mean") == given["workloads"]["permutation"]["fct_us"]["mean"]
    assert run.summary.value("scheme") is None


def test_load_reads_what_the_command_wrote(tmp_path: Path) -> None:
    command("run", "tiny", "--out", "run", cwd=tmp_path)
    command("compare", "tiny", "--schemes", "prime,ecmp", "--seeds", "2", "--out", "comparison", cwd=tmp_path)
    run = ab.load(tmp_path / "run")
    fresh = ab.run("tiny")
    assert run.fingerprint == fresh.fingerprint and run.tables == fresh.tables
    assert run.flows.columns == fresh.flows.columns and len(run.flows) == len(fresh.flows) == 8
    comparison = ab.load(tmp_path / "comparison")
    assert list(comparison.runs) == [("prime", 1), ("prime", 2), ("ecmp", 1), ("ecmp", 2)], "in the order asked for"
    assert len(comparison.rows()) == 4 * 8
    for nothing in [tmp_path / "none", tmp_path]:
        with pytest.raises(ab.ScenarioError, match="has no results"):
            ab.load(nothing)


def test_damaged_results_say_which_file(tmp_path: Path) -> None:
    ab.run("tiny", out=tmp_path)

    def flows() -> object:
        return ab.load(tmp_path).flows

    def summary() -> object:
        return ab.load(tmp_path).summary

    for file, ask in [("flows.parquet", flows), ("summary.json", summary)]:
        whole = (tmp_path / file).read_bytes()
        for damaged in [whole[: len(whole) // 2], b"x"]:
            (tmp_path / file).write_bytes(damaged)
            with pytest.raises(ab.ScenarioError) as caught:
                ask()
            assert caught.value.place == str(tmp_path / file) and "repeat the run" in (caught.value.remedy or "")


def test_compare_pairs_load_balancers() -> None:
    comparison = ab.compare("tiny", ["ecmp", "prime"], seeds=2, variants={"short": {"load_balancer.prime.p_ecn": 8}})
    assert list(comparison.runs) == [(scheme, seed) for scheme in ("ecmp", "prime", "short") for seed in (1, 2)], "as asked for"
    directory = comparison.directory
    assert directory.exists() and not comparison.failed
    del comparison
    assert not directory.exists(), "what is not kept is removed"


def test_progress_is_told_and_exceptions_come_through() -> None:
    reports: list[ab.Progress] = []
    ab.run("permutation-1024", progress=reports.append)
    assert reports and reports[-1].runs_done == 1 and reports[-1].share == 1.0
    assert all(0.0 <= p.share <= 1.0 for p in reports)

    class Mine(Exception):
        pass

    def refuse(progress: ab.Progress) -> None:
        raise Mine("enough")

    with pytest.raises(Mine, match="enough"):
        ab.run("permutation-1024", progress=refuse)


def test_the_gil_is_free_while_it_runs() -> None:
    count = 0
    done = threading.Event()

    def work() -> None:
        nonlocal count
        while not done.is_set():
            count += 1
            time.sleep(0.001)

    thread = threading.Thread(target=work)
    thread.start()
    began = time.monotonic()
    ab.run("permutation-1024", threads=1)
    seconds = time.monotonic() - began
    done.set()
    thread.join()
    # On a busy machine a thread with sleeps of 1 ms gets at least a tenth of its turns.
    assert count > 100 * seconds, f"{count} turns in {seconds:.2f} s"


INTERRUPTED = """
import anabranch as ab, os, signal, sys, threading, time
threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    ab.run(sys.argv[1], threads=1, out="results")
except KeyboardInterrupt:
    print(time.monotonic() - began)
"""


@pytest.mark.parametrize("name", ["permutation-8192", "spritz-40k-dragonfly"])
def test_ctrl_c_ends_a_run_within_a_second(name: str, tmp_path: Path) -> None:
    """The second scenario is still building its graph of 40,000 hosts."""
    words = [sys.executable, "-c", INTERRUPTED, name, "0.6"]
    began = time.monotonic()
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout, done.stderr
    assert float(done.stdout) < 0.6 + 1.0
    assert time.monotonic() - began < 10, "the process does not wait for what was left behind"
    # The lock of an interrupted build remains until its process ends.
    assert [path.name for path in tmp_path.glob("results/*") if path.name != ".lock"] == []


RING = """
name = "ring"
[topology]
kind = "file"
format = "conweave"
path = "ring.topo"
[fabric]
profile = "roce-lossless"
shared_buffer = "256MB"
ecn = false
[transport]
kind = "roce"
congestion_control = "none"
rto = "never"
[load_balancer]
scheme = "ops"
[[workload]]
kind = "file"
format = "csv"
path = "ring.csv"
"""
LOSS = """
[[fault]]
kind = "packet-loss"
fraction = 1.0
loss = 0.3
"""


def write_ring(tmp_path: Path) -> None:
    """Writes four switches in a ring; every host sends across it."""
    ends = [f"{host} {4 + host} 100Gbps 1000ns 0" for host in range(4)] + [f"{4 + i} {4 + (i + 1) % 4} 100Gbps 1000ns 0" for i in range(4)]
    (tmp_path / "ring.topo").write_text("8 4 8\n4 5 6 7\n" + "".join(f"{line}\n" for line in ends))
    flows = [f"{i // 24},{(i // 24 + 2) % 4},2000000,0" for i in range(4 * 24)]
    (tmp_path / "ring.csv").write_text("\n".join(["src,dst,size_bytes,start_ps", *flows, ""]))
    (tmp_path / "ring.toml").write_text(RING + LOSS)


def test_a_deadlock_is_a_status(tmp_path: Path) -> None:
    """A deadlock is a result of the scenario, no exception."""
    write_ring(tmp_path)
    scenario = ab.Scenario.from_toml(RING.replace("256MB", "300kB"), folder=tmp_path)
    run = ab.run(scenario, threads=1, out=tmp_path / "out")
    assert run.summary.status == "deadlock"
    assert len(run.summary.deadlock) == 4
    assert run.summary.flows.unfinished > 0
    assert ab.load(tmp_path / "out").summary.deadlock == run.summary.deadlock
    assert ab.run("tiny").summary.status == "finished"


def test_losses_without_a_timeout_end_as_a_stall(tmp_path: Path) -> None:
    """Without a timeout, packets lost on a ring are never retransmitted. That is no error of the simulator."""
    write_ring(tmp_path)
    result = ab.run(ab.Scenario(tmp_path / "ring.toml"), threads=1, out=tmp_path / "out")
    assert result.summary.status == "stalled"
    assert "dropped" in (result.summary.stall_reason or "")


def test_results_of_others_are_not_replaced(tmp_path: Path) -> None:
    ab.run("tiny", out=tmp_path / "run")
    ab.run("tiny", out=tmp_path / "run")
    size = {"workload.0.size": "8KiB"}
    with pytest.raises(ab.ScenarioError, match="contains runs of another scenario"):
        ab.run(ab.Scenario("tiny").with_(size), out=tmp_path / "run")
    assert ab.run(ab.Scenario("tiny").with_(size), out=tmp_path / "run", replace=True).directory == tmp_path / "run"
    # The same scenario adds to it.
    ab.compare("tiny", ["prime"], seeds=2, out=tmp_path / "comparison")
    assert ab.run("tiny", seed=3, out=tmp_path / "comparison").directory == tmp_path / "comparison"
    assert len(ab.compare("tiny", ["prime"], seeds=3, out=tmp_path / "comparison").runs) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system: needs root")
def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(ab.ScenarioError, match="No space left|cannot be"):
            ab.run("first-run", out=tmp_path / "run")
        left = [path.name for path in (tmp_path / "run").glob("*") if path.is_file()]
        assert "summary.json" not in left and "flows.csv" not in left
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_signals_are_left_as_they_were() -> None:
    before = signal.getsignal(signal.SIGINT)
    ab.run("tiny")
    assert signal.getsignal(signal.SIGINT) is before
