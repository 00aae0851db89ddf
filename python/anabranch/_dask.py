"""Sweeps on the workers of Dask. Dask assigns runs; the store alone records which are finished."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _native
from ._errors import ScenarioError, needs

_VERSION = "(lambda native: (native.__version__, native.COMMIT))(__import__('anabranch._native', fromlist=['COMMIT']))"
# Dask counts the loss of a worker against every run on it; the store counts per run, and aborts a run after three.
_MAX_LOST = 12
# Without a shared store the client counts starts. Dask retries four times before it reports a lost worker.
_MAX_KILLED = 3
_SAME_WHEEL = "install the same wheel of anabranch where the workers start"

Files = dict[str, bytes]


def check(client: Any) -> None:
    """Checks that every worker has this version and commit of the package."""
    if not hasattr(client, "submit") or not hasattr(client, "run"):
        raise ScenarioError(f"client: found {client!r}, expected a distributed.Client", place="client")
    own = (_native.__version__, _native.COMMIT)
    try:
        found = client.run(eval, _VERSION)
    except ImportError as error:
        raise ScenarioError(f"a Dask worker lacks the package anabranch: {error}", place="client", remedy=_SAME_WHEEL) from None
    for worker, theirs in found.items():
        if tuple(theirs) != own:
            message = f"the Dask worker {worker} has anabranch {theirs[0]} ({theirs[1]}), this process {own[0]} ({own[1]})"
            raise ScenarioError(message, place="client", remedy=_SAME_WHEEL)


def work(
    client: Any,
    plan: _native.Plan,
    directory: Path,
    again: str,
    replace: bool,
    task: tuple[int, int] | None,
    gather: bool,
    report: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Executes the missing runs of a store on the workers."""
    check(client)
    directory = directory.absolute()
    plan.prepare(directory, again, replace)
    names = {number: (key, name) for number, key, _, _, _, name in plan.runs()}
    due = plan.due(directory, again, task)
    jobs = [(names[number][0], names[number][1], plan.scenario(number).to_toml()) for number in due]
    run(client, directory, jobs, again, gather, report)


def run(
    client: Any,
    directory: Path,
    jobs: list[tuple[str, str, str]],
    again: str,
    gather: bool,
    report: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Executes runs (hash, name, scenario) on the workers; each worker claims its run in the store."""
    try:
        from distributed import as_completed
    except ImportError:
        raise needs("distributed", "dask") from None
    store = _native.Store(directory)
    place = None if gather else str(directory)
    topic = f"anabranch-{os.getpid()}-{time.monotonic_ns()}"
    begun: Counter[str] = Counter()

    def on_start(event: tuple[float, str]) -> None:
        line = event[1]
        begun[line.split()[0]] += 1
        store.log_start(line)

    def submit(job: tuple[str, str, str], attempt: int) -> Any:
        key, name, toml = job
        words = (place, key, name, toml, again, topic)
        return client.submit(_do, *words, key=f"{topic}-{key}-{attempt}", pure=False)

    if gather:
        client.subscribe_topic(topic, on_start)
    waiting = {submit(job, 0): (job, 0) for job in jobs}
    coming = as_completed(list(waiting))
    done = 0
    try:
        for future in coming:
            job, attempt = waiting.pop(future)
            key, name, _ = job
            if future.status == "finished":
                files = future.result()
                if files is not None:
                    store.adopt(key, list(files.items()), max(begun[key], 1), again == "all")
            else:
                error = future.exception() if future.status == "error" else None
                if not _is_loss(future.status, error):
                    raise _exception(error)
                if begun[key] < _MAX_KILLED and attempt < _MAX_LOST:
                    retry = submit(job, attempt + 1)
                    waiting[retry] = (job, attempt + 1)
                    coming.add(retry)
                    continue
                # The last attempt may have finished before its worker was lost.
                if store.state(key) == "missing":
                    times = begun[key] or attempt + 1
                    store.mark_failed(key, name, f"its worker was lost {times} times, possibly out of memory", times)
            done += 1
            if report is not None:
                report(_news(len(jobs), done))
    except BaseException:
        client.cancel(list(waiting), force=True)
        raise
    finally:
        if gather:
            client.unsubscribe_topic(topic)


def _is_loss(status: str, error: BaseException | None) -> bool:
    """Returns True if the worker was lost, False if the run failed."""
    return status != "error" or error is None or type(error).__name__ in ("KilledWorker", "CommClosedError", "CancelledError")


def _exception(error: BaseException | None) -> BaseException:
    """Returns the cause of a failed run; workers that join later have not been checked."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("anabranch"):
        return ScenarioError(f"a Dask worker lacks the package anabranch: {error}", place="client", remedy=_SAME_WHEEL)
    return error or RuntimeError("a run on a Dask worker ended without a result")


def _news(runs: int, done: int) -> dict[str, Any]:
    return {"runs": runs, "runs_done": done, "now_s": 0.0, "packet_hops": 0, "flows_finished": 0, "flows": 0}


def _do(place: str | None, key: str, name: str, toml: str, again: str, topic: str) -> Files | None:
    """Executes a run on a worker, into the store; returns its files if the store is elsewhere."""
    scenario = _native.Scenario.parse(toml, name, "scenario", "")
    if scenario.run_key != key:
        message = f"{name}: this worker has another anabranch ({_native.__version__}, {_native.COMMIT}) than the client, or other files"
        raise ScenarioError(message, place="client", remedy=_SAME_WHEEL)
    if place is not None:
        _native.Store(place).run([(name, scenario)], 1, again)
        return None
    from distributed import get_worker

    host = re.sub(r"[^0-9A-Za-z]", "_", socket.gethostname())
    get_worker().log_event(topic, f"{key} {host} {os.getpid()} {int(time.time())}")
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        store = _native.Store(folder)
        store.run([(name, scenario)], 1, "")
        found = Path(store.place(key)) if store.state(key) == "finished" else Path(folder, "failed")
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found.rglob("*") if file.is_file()}
