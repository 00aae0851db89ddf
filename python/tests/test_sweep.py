"""Sweeps on one machine, with their state on disk."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
import survival

GRID = {"workload.0.size": ["16KiB", "64KiB"], "topology.link_delay": ["500ns", "1us"]}
SCHEMES = ["ecmp", "prime"]


def starts(directory: Path) -> Counter[str]:
    """Returns the number of starts of each run, from the log of all workers."""
    return Counter(line.split()[0] for line in (directory / "starts.log").read_text().splitlines())


def rows(sweep: ab.Sweep) -> list[dict[str, object]]:
    return list(sweep._rows())


def test_a_grid_is_a_row_per_run_and_done_once(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    sweep = ab.sweep("tiny", GRID, schemes=SCHEMES, seeds=2, out=out)
    assert sweep.keys == list(GRID) and len(sweep) == len(sweep.table) == 2 * 2 * 2 * 2
    assert sweep.missing == 0 and sweep.failed == {} and set(starts(out).values()) == {1}
    for row in rows(sweep):
        assert row["status"] == "finished"
        scenario = ab.Scenario("tiny").with_({key: row[key] for key in GRID}, scheme=str(row["scheme"]))
        run = ab.run(scenario, seed=int(str(row["seed"])))
        assert run.fingerprint == row["fingerprint"] == sweep.run(str(row["run"])).fingerprint
    again = ab.sweep("tiny", GRID, schemes=SCHEMES, seeds=3, out=out)
    assert len(again) == 24 and set(starts(out).values()) == {1}, "only what is missing"
    assert len(again.rows("flows")) == 24 * 8
    names = [column.name for column in again.rows("flows").columns]
    assert names[:4] == [*GRID, "entry", "run"]
    assert ab.load(out).keys == list(GRID)


def test_zip_ranges_variants_and_lists_of_scenarios(tmp_path: Path) -> None:
    zipped = ab.sweep(
        "tiny", {"workload.0.size": ["16KiB", "64KiB"], "topology.link_delay": "500ns..1000ns:500ns"}, mode="zip", schemes=["ecmp"], seeds=1,
        variants={"short": {"load_balancer.prime.p_ecn": 8}}, out=tmp_path / "zip",
    )  # fmt: skip
    assert [(row["topology.link_delay"], row["scheme"]) for row in rows(zipped)] == [
        ("500ns", "ecmp"), ("500ns", "short"), ("1000ns", "ecmp"), ("1000ns", "short"),
    ]  # fmt: skip
    small = ab.Scenario("tiny").with_({"workload.0.size": "4KiB"})
    listed = ab.sweep({"small": small, "whole": ab.Scenario("tiny")}, schemes=SCHEMES, seeds=2, out=tmp_path / "list")
    assert listed.keys == ["scenario"] and len(listed) == 8
    more = {"small": small, "whole": ab.Scenario("tiny"), "other": ab.Scenario("tiny").with_({"workload.0.size": "8KiB"})}
    ab.sweep(more, schemes=SCHEMES, seeds=2, out=tmp_path / "list")
    assert len(starts(tmp_path / "list")) == 12 and set(starts(tmp_path / "list").values()) == {1}
    assert (tmp_path / "list" / "report.html").exists()


def test_files_lists_and_tasks_fill_one_store(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text("""
        [sweep]
        scenario = "tiny"
        schemes = ["ecmp", "prime"]
        seeds = 2
        [sweep.over]
        workload.0.size = ["16KiB", "64KiB"]
    """)
    out = tmp_path / "store"

    def command(*words: str) -> str:
        words = (sys.executable, "-m", "anabranch", "sweep", str(file), "--out", str(out), *words)
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout

    assert command("--list").count("missing") == 8
    command("--task", "1/3")
    assert len(starts(out)) == 3
    sweep = ab.sweep(file, out=out, task=(2, 3))
    assert sweep.missing == 2
    sweep = ab.sweep(file, out=out)
    assert sweep.missing == 0 and set(starts(out).values()) == {1}
    # The same options, from Python.
    ab.sweep("tiny", {"workload.0.size": ["16KiB", "64KiB"]}, schemes=SCHEMES, seeds=2, out=out)
    assert sum(starts(out).values()) == 8
    with pytest.raises(ab.ScenarioError, match="found beside"):
        ab.sweep(file, {"workload.0.size": ["1KiB"]}, out=out)


def test_failures_are_kept_and_tried_again_when_asked(tmp_path: Path) -> None:
    # Nothing waits for the flows that a dead switch holds up: the run stalls or counts them, seed by seed alike.
    out = tmp_path / "sweep"
    sweep = ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=SCHEMES, seeds=1, out=out)
    (run, *_) = [row["run"] for row in rows(sweep)]
    # The state of a run that failed on another machine.
    import json
    import shutil

    shutil.rmtree(out / "runs" / str(run))
    (out / "failed" / f"{run}.json").write_text(json.dumps({"name": "x", "error": "it stalled", "attempts": 1, "host": "y"}))
    sweep = ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=SCHEMES, seeds=1, out=out)
    assert sweep.failed == {run: "it stalled"} and "1 failed" in repr(sweep)
    with pytest.raises(ab.ScenarioError, match="it stalled"):
        sweep.run(str(run))
    sweep = ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=SCHEMES, seeds=1, out=out, again="failed")
    assert sweep.failed == {} and starts(out)[str(run)] == 2 and sum(starts(out).values()) == 3


def test_a_sweep_gives_what_the_command_gives(tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    with survival.Watched(out):
        survival.sweep(out)
    survival.survived(out, of_the_command)


def test_killed_and_started_again(tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    with survival.Watched(out):
        first = survival.process(out)
        survival.wait_for(3, out)
        survival.wait_for_work(first.pid, out)
        first.send_signal(signal.SIGKILL)
        first.wait()
        done = survival.finished(out)
        assert survival.process(out).wait() == 0
    # The two runs in progress at the kill are restarted once, finished ones are not.
    survival.survived(out, of_the_command, killed=[first.pid], max_killed=2)
    assert all(len(survival.starts(out)[run]) == 1 for run in done)


def test_two_processes_in_one_directory_do_each_run_once(tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    out = tmp_path / "sweep"
    with survival.Watched(out):
        both = [survival.process(out), survival.process(out)]
        assert [process.wait() for process in both] == [0, 0]
    survival.survived(out, of_the_command)
    assert {pid for pids in survival.starts(out).values() for pid in pids} == {process.pid for process in both}, "both had a share"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system: needs root")
def test_the_disk_is_full_at_the_third_run(tmp_path: Path, of_the_command: survival.Fingerprints) -> None:
    def blocks(path: Path) -> int:
        return sum(one.lstat().st_blocks * 512 for one in path.rglob("*"))

    # Bytes of the plan and of a run.
    small = tmp_path / "small"
    ab.sweep(survival.SCENARIO, survival.OVER, schemes=["ecmp"], seeds=1, out=small)
    run = max(blocks(one) for one in (small / "runs").iterdir())
    plan = (small / "plan.json").stat().st_size * 5 + 4096
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={plan + run * 5 // 2}", "tmpfs", place], capture_output=True)
    if mount.returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        out = place / "sweep"
        with survival.Watched(out):
            with pytest.raises(ab.ScenarioError, match="free space there") as caught:
                survival.sweep(out, threads=1)
            finished = len(survival.finished(out))
            assert 1 <= finished <= 3 and f"{finished} of 20" in str(caught.value)
            assert list((out / ".writing").iterdir()) == []
            subprocess.run(["mount", "-o", "remount,size=64M", place], check=True)
            survival.sweep(out)
        # The full disk ended one run.
        survival.survived(out, of_the_command, killed=[os.getpid()], max_killed=1, disk_full=True)
    finally:
        subprocess.run(["umount", place], check=True)


def test_ctrl_c_ends_a_sweep_and_leaves_what_is_done(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    process = survival.process(out)
    survival.wait_for(1, out)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait() != 0 and time.monotonic() - began < 5
    assert ab.load(out).missing > 0 and list((out / ".writing").iterdir()) == []


def wrong(**given: object) -> ab.ScenarioError:
    arguments: dict[str, object] = {"scenario": "tiny", "over": {"workload.0.size": ["16KiB"]}, "schemes": ["ecmp"], **given}
    with pytest.raises(ab.ScenarioError) as caught:
        ab.sweep(arguments.pop("scenario"), **arguments)  # type: ignore[arg-type]
    return caught.value


def test_mistakes_are_told_before_the_first_run(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    size, delay = "workload.0.size", "topology.link_delay"

    def rejected(place: str, words: str, **given: object) -> ab.ScenarioError:
        """Checks that the error names argument and value in terms of Python and that no partial file remains."""
        error = wrong(out=out, **given)
        assert error.place == place and words in str(error) and "--" not in str(error), str(error)
        assert not out.exists()
        return error

    assert rejected('over["workload.0.sizee"]', "unknown key", over={"workload.0.sizee": ["16KiB"]}).nearest == "size"
    rejected(f'over["{size}"]', "a quantity is written as text with its unit", over={size: [16]})
    rejected("mode", "different numbers of values", over={size: ["1KiB"], delay: ["1us", "2us"]}, mode="zip")
    assert rejected("mode", "expected", mode="zap").nearest == "zip"
    rejected("over", "at most 1000000 make a sweep", over={size: "1KiB..2000KiB:1KiB", delay: "1ns..2000ns:1ns"})
    rejected("over", "nothing to sweep", over={})
    rejected("scenario", "there are no scenarios", scenario=[], over=None)
    rejected(f'over["{size}"]', "found no value", over={size: []})
    rejected(f'over["{size}"]', "expected a list or a range", over={size: 16})
    rejected("over", "must not be above its end", over={delay: "5us..1us:1us"})
    rejected("over", "is given twice", over={delay: ["5us", "5us"]})
    rejected("over", "expected values by key", over=[size])
    assert rejected("schemes", "`emcp`", schemes=["emcp"]).nearest == "ecmp"
    rejected("schemes", "expected a list", schemes="ecmp,prime")
    assert rejected("baseline", "not among", schemes=["ecmp", "prime"], baseline="prme").nearest == "prime"
    # Errors that need the graph of a point.
    rejected('over["topology.radix"]', "an even number", scenario="first-run", over={"topology.radix": [8, 7]})
    rejected('variants["x"]', "unknown key", variants={"x": {"load_balancer.prime.p_ecm": 8}})
    for seeds in (0, -1, "3", 1.5, True):
        rejected("seeds", "expected a whole number, 1 or more", seeds=seeds)
    rejected("threads", "expected a whole number", threads=0)
    rejected("task", "from 1 to n", task=(4, 3))
    assert rejected("again", "expected", again="faild").nearest == "failed"
    assert rejected("scenario", "no such file", scenario="tny").nearest == "tiny"
    rejected("scenario", "expected a name", scenario=3)
    rejected("client", "expected a distributed.Client", client=3)
    rejected("progress", "expected a function", progress=3)


def test_directories_of_something_else_are_refused(tmp_path: Path) -> None:
    import json

    out = tmp_path / "sweep"
    ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=["ecmp"], out=out)

    def rejected(words: str, **given: object) -> None:
        error = wrong(**{"out": out, **given})
        assert error.place == "out" and words in str(error) and "--" not in str(error), str(error)

    rejected("another scenario", scenario="first-run", over={"topology.link_delay": ["1us"]})
    (tmp_path / "file").write_text("")
    rejected("is a file", out=tmp_path / "file")
    plan = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({**plan, "version": "0.0.1"}))
    rejected("by version 0.0.1; this is version")
    assert ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=["ecmp"], out=out, replace=True).missing == 0


def test_a_damaged_plan_is_told_and_written_anew(tmp_path: Path) -> None:
    def sweep(**more: Any) -> ab.Sweep:
        return ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, schemes=["ecmp"], out=tmp_path, **more)

    begun = len(survival.starts(tmp_path)) if sweep().missing == 0 else 0
    plan = tmp_path / "plan.json"
    for text in ["", "{", '{"name": "x"}', "\x00"]:
        plan.write_text(text)
        for call in (sweep, lambda: ab.load(tmp_path).table, lambda: len(ab.load(tmp_path))):
            with pytest.raises(ab.ScenarioError) as caught:
                call()
            assert caught.value.place == str(plan) and "replace=True" in (caught.value.remedy or "")
    assert sweep(replace=True).missing == 0 and len(survival.starts(tmp_path)) == begun, "the runs stay"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system: needs root")
def test_a_read_only_disk_is_told(tmp_path: Path) -> None:
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", tmp_path], capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        for call in (
            lambda: ab.run("tiny", out=tmp_path / "x"),
            lambda: ab.compare("tiny", ["ecmp"], out=tmp_path / "x"),
            lambda: ab.sweep("tiny", {"workload.0.size": ["16KiB"]}, out=tmp_path / "x"),
        ):
            with pytest.raises(ab.ScenarioError, match="Read-only file system") as caught:
                call()
            assert caught.value.place == "out" and "give a directory that can be written with out=DIR" in str(caught.value)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
