"""Agents: rewards by the rows of the run, equal shares as qp-spray, bad input, and a running plugin."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import anabranch as ab

from conftest import wants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

pytestmark = wants("gymnasium", "numpy", "polars")

TRAINING = ab.Scenario("hopper-testbed-small").with_({"fabric.flow_keys": "connection", "workload.0.rounds": 2})


def episode(env: ab.Env, seed: int, act: object) -> tuple[list[float], dict[str, object]]:
    import numpy as np

    observation, info = env.reset(seed=seed)
    rewards, done = [], False
    while not done:
        action = act(observation) if callable(act) else np.ones((len(env.connections), env.labels), np.float32)
        observation, reward, terminated, truncated, info = env.step(action)
        assert observation in env.observation_space
        rewards.append(reward)
        done = terminated or truncated
    return rewards, info


def test_rewards_add_up_to_the_mean_completion_time() -> None:
    env = ab.Env(TRAINING, interval="7ms")
    for seed in (1, 2):
        rewards, info = episode(env, seed, None)
        run = info["run"]
        assert isinstance(run, ab.Run)
        # A sum of some hundred rewards has their rounding errors.
        assert sum(rewards) == pytest.approx(-run.flows.polars()["fct_rx_ps"].mean() / 1e6, rel=1e-9)  # type: ignore[operator]
        assert info["flows_finished"] == info["flows"] == 8


def test_the_interval_of_equal_shares_does_not_affect_the_run() -> None:
    runs = [episode(ab.Env(TRAINING, interval=interval, labels=6), 3, None)[1]["run"] for interval in ("1ms", "30ms", "10s")]
    assert len({run.fingerprint for run in runs if isinstance(run, ab.Run)}) == 1


def test_chunks_take_the_shares_of_the_agent() -> None:
    """One label of eight carries all; counts of observations add up to the packets of the rows."""
    import numpy as np

    env = ab.Env(TRAINING, interval="50ms")
    weights = np.zeros((4, 8), np.float32)
    sent = np.zeros((4, 8, 7), np.float32)

    def act(observation: NDArray[np.float32]) -> NDArray[np.float32]:
        nonlocal sent
        sent = sent + observation
        weights[:, 5] = 1
        return weights

    _, info = episode(env, 1, act)
    run = info["run"]
    assert isinstance(run, ab.Run)
    assert sent[:, [0, 1, 2, 3, 4, 6, 7], 0].sum() == 0 and (sent[..., 6] == 0).all()
    rows = run.flows.polars()
    # The observation of the last turn is not seen by `act`.
    assert 0.95 < sent[..., 1].sum() / int(rows["size_bytes"].sum()) < 1.05


def test_bad_input_is_refused() -> None:
    import numpy as np

    for scenario, arguments, words in [
        ("hopper-testbed-small", {}, 'fabric.flow_keys: found "stable"'),
        (TRAINING, {"labels": 0}, "labels: found 0"),
        (TRAINING, {"interval": "soon"}, "interval: found 'soon'"),
        (TRAINING, {"interval": "0us"}, "interval: found '0us'"),
    ]:
        with pytest.raises(ab.ScenarioError) as raised:
            ab.Env(scenario, **arguments)  # type: ignore[arg-type]
        assert words in str(raised.value)
    env = ab.Env(TRAINING)
    with pytest.raises(ab.ScenarioError, match="call reset first"):
        env.step(np.ones((4, 8), np.float32))
    env.reset()
    for action, words in [(np.ones((4, 7)), "found shape"), (-np.ones((4, 8)), "negative"), (np.full((4, 8), np.nan), "no number")]:
        with pytest.raises(ab.ScenarioError, match=words):
            env.step(action.astype(np.float32))
    env.close()


def test_a_process_is_read_and_steered_by_one_agent(tmp_path: Path) -> None:
    """Two ranks on loopback; the sender's chunks go over one label as the agent decides."""
    import numpy as np

    program = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target")) / "fast" / "anabranch"
    settings = {"STATS": str(tmp_path), "IFNAME": "=lo", "RATE": "1Gbps", "SCHEME": "qp-spray", "PATHS": "4", "SET": "load_balancer.qp-spray.chunk=64kB"}
    job = subprocess.Popen(
        [program, "collective", "pairs", "--ranks", "2", "--channels", "1", "--bytes", "1MB", "--rounds", "100000"],
        env={**os.environ, **{f"ANABRANCH_{name}": value for name, value in settings.items()}},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        end = time.monotonic() + 60
        pids: list[int] = []
        while len(pids) < 2 and time.monotonic() < end:
            assert job.poll() is None, job.stderr.read() if job.stderr else ""
            pids = [int(path.name.split("-")[1]) for path in tmp_path.glob("anabranch-*")]
            time.sleep(0.1)
        with pytest.raises(ab.ScenarioError, match="expected pid with one of them"):
            ab.live(folder=tmp_path)
        with ab.live(pids[0], folder=tmp_path) as live:
            with pytest.raises(ab.ScenarioError, match="another agent steers this process"):
                ab.live(pids[0], folder=tmp_path)
            while not live.read().sum() and time.monotonic() < end:
                time.sleep(0.05)
            assert live.labels == 4 and live.scheme == "qp-spray" and live.connections[0].is_open
            with pytest.raises(ab.ScenarioError, match="found shape"):
                live.steer(np.ones((1, 3), np.float32))
            weights = np.zeros((len(live.connections), 4), np.float32)
            weights[:, 2] = 1
            live.steer(weights)
            # Chunks that had begun, and retransmissions.
            time.sleep(0.5)
            live.read()
            time.sleep(0.5)
            sent = live.read()[..., 0].sum(axis=0)
            assert sent[2] > 0 and sent[[0, 1, 3]].sum() == 0, sent
            live.set({"load_balancer.scheme": "ecmp"})
            with pytest.raises(ab.ScenarioError, match="chooses paths alone"):
                live.steer(weights)
        ab.live(pids[0], folder=tmp_path).close()
    finally:
        job.kill()
        job.wait()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ab.ScenarioError, match="no process"):
        ab.live(folder=tmp_path / "empty")
