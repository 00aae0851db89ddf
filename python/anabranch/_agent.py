"""Agents that spread the chunks of connections over labels: in a simulated run, turn by turn, and in running NCCL jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from . import _native
from ._errors import ScenarioError, needs, whole
from ._result import Run
from ._scenario import Scenario, assignments, scenario as scenario_of

try:
    import gymnasium
    import numpy as np
    from numpy.typing import NDArray
except ImportError as _missing:
    raise needs("gymnasium", "agent") from _missing

COLUMNS = ("packets", "bytes", "samples", "round_trip_us", "marks", "losses", "moves")
"""
Last axis of an observation, per connection and label: packets sent and their bytes, round trips measured and their mean (0 where
there is none), marked acknowledgements, packets lost, moves from another label to this one. All but the mean are counts since
the observation before.
"""

Array = NDArray[np.float32]


class Env(gymnasium.Env[Array, Array]):
    """
    A simulated run that an agent steers, with Gymnasium's interface.

    The hosts send by `qp-spray`, in place of the scenario's load balancer. Each `interval` of simulated time the agent sets, per
    connection, the shares of the chunks that go over entropy values 0 to `labels` - 1; a row of zeros means equal shares. The
    observation has a row per connection (`connections`), then per label, of `COLUMNS`. The reward is minus the time that flows
    were open since the last turn, in microseconds, divided by the number of flows: the sum of an episode is minus the mean flow
    completion time. An episode ends with the last flow (`terminated`), or by `run.until`, a stall or the time limit (`truncated`:
    flows that are not complete count up to then).
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, scenario: str | os.PathLike[str] | Scenario, *, interval: str = "100us", labels: int = 8) -> None:
        whole(labels=labels)
        given = scenario_of(scenario).with_(scheme="qp-spray").with_({"measure.flow_rows": "all", "run.skip": "off"})
        if (found := getattr(given.fabric, "flow_keys", "connection")) != "connection":
            raise ScenarioError(
                f'fabric.flow_keys: found "{found}", by which every message hashes to other paths and no label can be learnt',
                place="scenario",
                remedy='take scenario.with_({"fabric.flow_keys": "connection"})',
            )
        self.scenario = given
        """The scenario of the episodes, with `qp-spray`."""
        self._interval = interval
        self.labels = labels
        """Labels of a connection."""
        self._run: _native.Env | None = None
        self._seed = given.seed - 1
        self.connections: list[tuple[str, str]] = []
        """Sender and receiver of each connection."""
        self._begin(given.seed)
        shape = (len(self.connections), labels)
        self.action_space = gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)
        self.observation_space = gymnasium.spaces.Box(0.0, np.inf, (*shape, len(COLUMNS)), np.float32)

    def _begin(self, seed: int) -> None:
        self.close()
        scenario = self.scenario.with_({"seed": seed})
        try:
            run = _native.Env(scenario._native, self._interval, self.labels)
        except ValueError as error:
            raise ScenarioError(f"interval: found {self._interval!r}: {error}", place="interval") from None
        connections, self._flows = run.begins()
        if self.connections and len(connections) != len(self.connections):
            raise ScenarioError(
                f"seed {seed} has {len(connections)} connections, the first one {len(self.connections)}; expected equal numbers",
                place="seed",
            )
        self.connections, self._run, self._begun = connections, run, seed
        self._before = np.zeros((len(connections), self.labels, len(COLUMNS)))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode with this seed of the scenario; without one with that after the last."""
        super().reset(seed=seed)
        whole(0, seed=seed)
        self._seed = self._seed + 1 if seed is None else int(seed)
        if self._run is None or self._begun != self._seed or self._is_under_way:
            self._begin(self._seed)
        self._is_under_way = True
        observation, _, _, _, info = self._turn(None)
        return observation, info

    _is_under_way = False

    def step(self, action: Array) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Sets the shares until the next turn."""
        if self._run is None or not self._is_under_way:
            raise ScenarioError("step: no episode is under way; call reset first", place="step")
        return self._turn(_weights(action, (len(self.connections), self.labels)).tobytes())

    def _turn(self, weights: bytes | None) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        assert self._run is not None
        now, cells, finished, open_time, outcome = self._run.turn(weights)
        counts = np.frombuffer(cells, np.uint64).reshape(self._before.shape).astype(np.float64)
        observation = _since(counts, self._before, 1e6)
        self._before = counts
        info: dict[str, Any] = {"time_us": now / 1e6, "flows_finished": finished, "flows": self._flows}
        if outcome is not None:
            info["run"] = Run(outcome)
            self.close()
        done = finished == self._flows
        return observation, -open_time / 1e6 / self._flows, outcome is not None and done, outcome is not None and not done, info

    def close(self) -> None:
        """Ends the episode."""
        if self._run is not None:
            self._run.close()
        self._run, self._is_under_way = None, False


def _weights(action: object, shape: tuple[int, int]) -> Array:
    weights = np.array(action, np.float32)
    if weights.shape != shape:
        raise ScenarioError(f"action: found shape {weights.shape}, expected {shape}: connections, labels", place="action")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ScenarioError("action: found a weight that is negative or no number, expected 0 or more", place="action")
    weights[weights.sum(axis=1) == 0] = 1
    return weights


def _since(counts: NDArray[np.float64], before: NDArray[np.float64], per_us: float) -> Array:
    change = counts - before
    change[..., 3] /= np.maximum(change[..., 2], 1) * per_us
    return change.astype(np.float32)


@dataclass(frozen=True)
class LiveConnection:
    """A connection of a running process."""

    device: int
    """Number of its device."""
    number: int
    """Its number in the device."""
    peer: str
    """Address of the peer."""
    is_open: bool
    """It has not failed, and the peer has not closed it."""


class Live:
    """
    A running process with the plugin for NCCL, read and steered over its statistics page by one agent at a time. Close it, or
    use it as a context manager.
    """

    def __init__(self, page: Path) -> None:
        try:
            self._page = _native.Page(page)
        except BlockingIOError:
            raise ScenarioError(f"{page}: another agent steers this process; a process has one", place="pid") from None
        self.page = page
        """File of the statistics page."""
        self._before: dict[tuple[int, int], NDArray[np.float64]] = {}
        self.connections: list[LiveConnection] = []
        """Connections of the last reading, one per row."""
        self.pid, self.scheme, self.labels = 0, "", 0
        try:
            self.read()
        except BaseException:
            self.close()
            raise

    def read(self) -> Array:
        """
        Returns an observation as that of `Env`: a row per connection of `connections`, then per label, of `COLUMNS`. `samples` are
        acknowledgements; the mean round trip is over the last 100 to 200 ms that have any.
        """
        self.pid, self.scheme, _, connections, labels, cells = self._page.read()
        self.labels = labels or self.labels
        self.connections = [LiveConnection(*of) for of in connections]
        counts = np.frombuffer(cells, np.uint64).reshape(len(connections), labels, len(COLUMNS)).astype(np.float64)
        rows, seen = [], {}
        for of, now in zip(self.connections, counts, strict=True):
            key = (of.device, of.number)
            row = now - self._before.get(key, np.zeros_like(now))
            row[:, 3] = np.where(row[:, 2] > 0, now[:, 3] / 1e3, 0)
            rows.append(row)
            seen[key] = now
        self._before = seen
        return np.array(rows, np.float32).reshape(counts.shape)

    def steer(self, weights: Array) -> None:
        """
        Sets, per row of `connections` and label, the shares of the chunks from the next one on; a row of zeros means equal shares.
        The process needs the scheme `qp-spray` (`set`). A request takes up to 10 ms and holds about 15 connections.
        """
        rows = _weights(weights, (len(self.connections), self.labels))
        entries = [
            f"{of.device}:{of.number}:" + ",".join(f"{weight:.3g}" for weight in row / row.max())
            for of, row in zip(self.connections, rows, strict=True)
            if of.is_open
        ]
        while entries:
            text = entries.pop()
            while entries and len(text) + len(entries[-1]) < 700:
                text += ";" + entries.pop()
            self._request("steer=" + text)

    def set(self, changes: Mapping[str, Any]) -> None:
        """Sets keys of `load_balancer` in the process: `{"load_balancer.scheme": "qp-spray"}`. Path state starts again."""
        self._request(";".join(assignments(changes)))

    def _request(self, text: str) -> None:
        try:
            self._page.request(text, 3000)
        except ValueError as error:
            raise ScenarioError(f"process {self.pid}: {error}", place="weights" if text.startswith("steer=") else "changes") from None
        except TimeoutError:
            raise ScenarioError(f"process {self.pid} did not respond within 3 s; has it ended?", place="pid") from None

    def close(self) -> None:
        """Leaves the process to its scheme and its last shares."""
        self._page.close()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> Literal[False]:
        self.close()
        return False


def live(pid: int | None = None, *, folder: str | os.PathLike[str] | None = None) -> Live:
    """
    Returns a running process of this user with the plugin for NCCL. `pid` is needed where there are several; `folder` is that of
    the statistics pages (`ANABRANCH_STATS`, else /dev/shm).
    """
    whole(pid=pid)
    variable = os.environ.get("ANABRANCH_STATS", "")
    where = Path(folder if folder is not None else variable if variable not in ("", "off") else "/dev/shm")
    try:
        pages, skipped = _native.pages(where)
    except OSError as error:
        raise ScenarioError(f"{where}: {error.strerror or error}", place="folder") from None
    by_pid = {int(Path(page).name.split("-")[1]): Path(page) for page in pages}
    if pid is None and len(by_pid) == 1:
        return Live(next(iter(by_pid.values())))
    if pid in by_pid:
        return Live(by_pid[pid])
    found = f"processes {', '.join(map(str, sorted(by_pid)))}" if by_pid else "no process with a statistics page"
    also = "".join(f"\nnot read: {path} ({reason})" for path, reason in skipped)
    expected = "expected pid with one of them" if pid is None and by_pid else f"expected {pid}" if pid else "start the job first"
    raise ScenarioError(f"{where}: found {found}; {expected}{also}", place="pid")
