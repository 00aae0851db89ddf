"""Tuning: equal trials on every executor, the minimum of a known function, gains on held-out seeds."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab

from conftest import wants

pytestmark = wants("optuna")

KEY = "load_balancer.prime.p_ecn"
BASE = ab.Scenario("tiny").with_({KEY: 5})


def parameter(run: ab.Run) -> float:
    """Returns `p_ecn` of a run, from its manifest."""
    assert run.directory is not None
    manifest = json.loads((run.directory / "manifest.json").read_text())
    return float(tomllib.loads(manifest["scenario"])["load_balancer"]["prime"]["p_ecn"])


def bowl(run: ab.Run) -> float:
    """Known function with minimum 0 at 23."""
    return (parameter(run) - 23.0) ** 2


def trials(tuning: ab.Tuning) -> list[Any]:
    return [(trial.parameters, trial.state, trial.values) for trial in tuning.trials]


def test_the_minimum_of_a_known_function_is_found(tmp_path: Path) -> None:
    # Optuna's own sampler finds 23 of 1 to 50 within 40 trials of this seed, called directly.
    tuning = ab.tune(BASE, {KEY: (1, 50)}, bowl, seeds=1, trials=40, held_out=1, out=tmp_path / "tune", progress=False)
    assert abs(tuning.parameters[KEY] - 23) <= 2, tuning
    assert tuning.gain.tuned == (tuning.parameters[KEY] - 23) ** 2


def test_the_same_call_gives_the_same_trials_on_any_number_of_threads(tmp_path: Path) -> None:
    def tune(name: str, threads: int, budget: int = 12) -> ab.Tuning:
        return ab.tune(
            BASE, {KEY: (1, 50), "fabric.ecn_kmin": ["0.1bdp", "0.2bdp"]}, bowl, seeds=2, trials=budget, width=4, held_out=2,
            threads=threads, out=tmp_path / name, progress=False,
        )  # fmt: skip

    one = tune("one", 1)
    assert trials(one) == trials(tune("two", 2)) == trials(tune("four", 4))
    # Stopped after a batch, and within one; only the journal has the progress.
    tune("resumed", 2, budget=4)
    lines = (tmp_path / "one" / "journal.log").read_text().splitlines(keepends=True)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "journal.log").write_text("".join(lines[: len(lines) * 6 // 10]))
    for name in ("resumed", "inside"):
        assert trials(tune(name, 2)) == trials(one), name
    assert trials(tune("one", 2)) == trials(one), "all is done"


@wants("distributed")
def test_the_same_call_gives_the_same_trials_on_any_number_of_dask_workers(tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    def tune(name: str, client: Any) -> ab.Tuning:
        return ab.tune(
            BASE, {KEY: (1, 50), "fabric.ecn_kmin": ["0.1bdp", "0.2bdp"]}, bowl, seeds=2, trials=8, width=4, held_out=2,
            client=client, out=tmp_path / name, progress=False,
        )  # fmt: skip

    local = tune("local", None)
    for workers in (1, 2, 4):
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            tuning = tune(f"{workers}-workers", client)
        assert trials(tuning) == trials(local) and tuning.gain == local.gain, workers
        starts = (tmp_path / f"{workers}-workers" / "starts.log").read_text().splitlines()
        assert {int(line.split()[2]) for line in starts}.isdisjoint({os.getpid()}), "the workers did the runs"
        assert len({line.split()[0] for line in starts}) == len(starts)


def test_killed_and_called_again(tmp_path: Path) -> None:
    code = f"""
import anabranch as ab, sys
ab.tune("permutation-128", {{"{KEY}": (1, 50)}}, "fct_us.max", seeds=2, trials=4, width=2, held_out=1, out=sys.argv[1], progress=False)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "killed")])
    while len(list((tmp_path / "killed").glob("runs/*"))) < 3:
        assert process.poll() is None
    process.kill()
    process.wait()
    for name in ("killed", "whole"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=True)

    def of(name: str) -> list[Any]:
        return trials(
            ab.tune("permutation-128", {KEY: (1, 50)}, "fct_us.max", seeds=2, trials=4, width=2, held_out=1, out=tmp_path / name, progress=False)
        )

    assert of("killed") == of("whole")


def test_gains_are_those_of_seeds_that_tuning_has_not_seen(tmp_path: Path) -> None:
    out = tmp_path / "tune"
    tuning = ab.tune("incast", {KEY: (1, 50)}, "fct_us.mean", seeds=2, trials=4, width=2, held_out=3, out=out, progress=False)
    gain = tuning.gain
    assert gain.seeds == 3
    tuned, default = [
        [ab.run(scenario.with_({"seed": seed})).summary.fct_us.mean or 0.0 for seed in (3, 4, 5)]
        for scenario in (tuning.tuned, tuning.scenario)
    ]
    differences = [a - b for a, b in zip(tuned, default, strict=True)]
    mean = sum(differences) / 3
    deviation = math.sqrt(sum((d - mean) ** 2 for d in differences) / 2)
    # The two-sided 95 % point of Student's t with two degrees of freedom.
    half = 4.302652729911275 * deviation / math.sqrt(3)
    assert gain.difference == pytest.approx(mean) and gain.tuned == pytest.approx(sum(tuned) / 3)
    assert gain.low == pytest.approx(mean - half) and gain.high == pytest.approx(mean + half)
    names = [column.name for column in tuning.table.columns]
    assert names == ["trial", "state", KEY, "fct_us.mean", "seeds", "error"] and len(tuning.table) == 4


def test_several_objectives_and_quantities(tmp_path: Path) -> None:
    tuning = ab.tune(
        BASE, {KEY: (1, 50), "topology.link_delay": ab.Range(1, 5, unit="us"), "fabric.ecn_kmin": ab.Range(0.05, 0.2, log=True, unit="bdp")},
        ["fct_us.mean", bowl], seeds=1, trials=8, held_out=1,
        out=tmp_path / "tune", progress=False,
    )  # fmt: skip
    assert [gain.objective for gain in next(iter(tuning.gains.values()))] == ["fct_us.mean", "bowl"]
    complete = [trial for trial in tuning.trials if trial.values is not None]
    for number in tuning.gains:
        own = tuning.trials[number].values
        assert own is not None
        assert not any(all(o <= v for o, v in zip(t.values or (), own, strict=True)) and t.values != own for t in complete)
    assert len(complete) == 8
    assert tuning.trials[0].parameters["topology.link_delay"].endswith("us") and tuning.trials[0].parameters["fabric.ecn_kmin"].endswith("bdp")


def test_pruning_stops_by_seeds(tmp_path: Path) -> None:
    import optuna

    pruner = optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=0)
    tuning = ab.tune(BASE, {KEY: (1, 50)}, bowl, seeds=3, trials=20, held_out=1, pruner=pruner, out=tmp_path / "tune", progress=False)
    states = {trial.state for trial in tuning.trials}
    assert states == {"complete", "pruned"}
    assert all(trial.seeds == (3 if trial.state == "complete" else 1) for trial in tuning.trials if trial.number > 7)


def test_trials_that_cannot_be_run_fail_and_the_others_go_on(tmp_path: Path) -> None:
    space = {"topology.radix": [8, 7], KEY: (1, 50)}
    tuning = ab.tune("first-run", space, "slowdown.p99", seeds=1, trials=6, held_out=1, out=tmp_path / "tune", progress=False)
    failed = [trial for trial in tuning.trials if trial.state == "failed"]
    assert failed and all(trial.parameters["topology.radix"] == 7 and "radix" in (trial.error or "") for trial in failed)
    assert tuning.parameters["topology.radix"] == 8
    # Unfinished flows bias a statistic.
    cut = ab.Scenario("first-run").with_({"run.until": "20us"})
    tuning = ab.tune(cut, {KEY: (1, 50)}, seeds=1, trials=2, width=2, held_out=1, out=tmp_path / "cut", progress=False)
    assert [trial.state for trial in tuning.trials] == ["failed", "failed"] and "did not finish" in (tuning.trials[0].error or "")
    with pytest.raises(ab.ScenarioError, match="no trial is complete"):
        tuning.best


def test_mistakes_are_told_before_the_first_run(tmp_path: Path) -> None:
    def wrong(*, space: Any = {KEY: (1, 50)}, objective: Any = "slowdown.p99", **given: Any) -> ab.ScenarioError:
        with pytest.raises(ab.ScenarioError) as caught:
            ab.tune(BASE, space, objective, out=tmp_path / "tune", progress=False, **given)
        assert not (tmp_path / "tune").exists()
        return caught.value

    assert wrong(objective="slowdown.p998").nearest == "slowdown.p99"
    assert wrong(objective="scheme").place == "objective"
    assert wrong(direction="minimise").nearest == "minimize"
    assert wrong(space={KEY: ("1us", "2us")}).place == KEY
    assert wrong(space={KEY: (50, 1)}).place == KEY
    assert wrong(space={}).place == "space"
    assert wrong(space=3).place == "space" and wrong(space={KEY: 3}).place == KEY
    assert wrong(trials=0).place == "trials" and wrong(held_out=-1).place == "held_out"
    assert wrong(objective=[]).place == "objective"
    # Errors that every trial would have are raised at once.
    assert wrong(space={"load_balancer.prime.p_ecm": (1, 50)}).nearest == "p_ecn"
    error = wrong(space={"topology.link_delay": (1, 5)})
    assert error.place == "topology.link_delay" and 'unit="us"' in str(error)
    ab.tune(BASE, {KEY: (1, 50)}, bowl, seeds=1, trials=1, held_out=1, out=tmp_path / "one", progress=False)
    with pytest.raises(ab.ScenarioError, match="another tuning"):
        ab.tune(BASE, {KEY: (1, 40)}, bowl, seeds=1, trials=1, held_out=1, out=tmp_path / "one", progress=False)
