"""Sweeps on the workers of Dask. Dask only says who runs what: what is done is known from the store alone."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _native
from ._errors import ScenarioError, needs

_ASK = "(lambda native: (native.__version__, native.COMMIT))(__import__('anabranch._native', fromlist=['COMMIT']))"
# Dask blames every run that was on a worker when it died; the store counts for each run by itself and gives up after three.
_MOST_LOST = 12

Files = dict[str, bytes]


def check(client: Any) -> None:
    """Whether every worker has this very package."""
    own = (_native.__version__, _native.COMMIT)
    remedy = "install the same wheel of anabranch where the workers start"
    try:
        found = client.run(eval, _ASK)
    except ImportError as error:
        raise ScenarioError(f"a Dask worker lacks the package anabranch: {error}", place="client", remedy=remedy) from None
    for worker, theirs in found.items():
        if tuple(theirs) != own:
            message = f"the Dask worker {worker} has anabranch {theirs[0]} ({theirs[1]}), this process {own[0]} ({own[1]})"
            raise ScenarioError(message, place="client", remedy=remedy)


def work(
    client: Any,
    plan: _native.Plan,
    directory: Path,
    again: str,
    replace: bool,
    task: tuple[int, int] | None,
    gather: bool,
    told: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Does on the workers what the store lacks."""
    directory = directory.absolute()
    plan.prepare(directory, again, replace)
    names = {number: (key, name) for number, key, _, _, _, name in plan.runs()}
    due = plan.due(directory, again, task)
    jobs = [(names[number][0], names[number][1], plan.scenario(number).to_toml()) for number in due]
    run(client, directory, jobs, again, gather, told)


def run(
    client: Any,
    directory: Path,
    jobs: list[tuple[str, str, str]],
    again: str,
    gather: bool,
    told: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Does runs (hash, name, scenario) on the workers, each claimed in the store by whoever does it."""
    try:
        from distributed import as_completed
    except ImportError:
        raise needs("distributed", "dask") from None
    check(client)
    place = None if gather else str(directory)

    def submit(job: tuple[str, str, str], attempt: int) -> Any:
        key, name, toml = job
        return client.submit(_do, place, key, name, toml, again, key=f"anabranch-{key}-{attempt}-{os.getpid()}", pure=False)

    waiting = {submit(job, 0): (job, 0) for job in jobs}
    coming = as_completed(list(waiting))
    done = 0
    try:
        for future in coming:
            job, attempt = waiting.pop(future)
            if future.status == "finished":
                files = future.result()
                if files is not None:
                    _keep(directory, job[0], files)
                done += 1
                if told is not None:
                    told(_news(len(jobs), done))
                continue
            error = future.exception() if future.status == "error" else None
            lost = future.status != "error" or type(error).__name__ in ("KilledWorker", "CommClosedError", "CancelledError")
            if not lost and error is not None:
                raise error
            if attempt >= _MOST_LOST:
                raise ScenarioError(f"{job[1]}: its worker was lost {attempt + 1} times", place="client")
            again_ = submit(job, attempt + 1)
            waiting[again_] = (job, attempt + 1)
            coming.add(again_)
    except BaseException:
        client.cancel(list(waiting), force=True)
        raise


def _news(runs: int, done: int) -> dict[str, Any]:
    return {"runs": runs, "runs_done": done, "now_s": 0.0, "packet_hops": 0, "flows_finished": 0, "flows": 0}


def _do(place: str | None, key: str, name: str, toml: str, again: str) -> Files | None:
    """On a worker: does a run into the store, or sends its files back where the store is elsewhere."""
    scenario = _native.Scenario.parse(toml, name, "scenario", "")
    if scenario.run_key != key:
        raise ScenarioError(f"{name}: the worker reads another scenario: {scenario.run_key} instead of {key}", place="client")
    if place is not None:
        _native.Store(place).run([(name, scenario)], 1, again)
        return None
    with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
        store = _native.Store(folder)
        store.run([(name, scenario)], 1, "")
        found = Path(store.place(key)) if store.standing(key) == "finished" else Path(folder, "failed")
        return {file.relative_to(folder).as_posix(): file.read_bytes() for file in found.rglob("*") if file.is_file()}


def _keep(directory: Path, key: str, files: Files) -> None:
    """Puts what a worker sent in place, whole or not at all."""
    aside = Path(tempfile.mkdtemp(prefix=f"{key}-gathered-", dir=directory / ".writing"))
    try:
        for name, content in files.items():
            path = aside / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for kind in ("runs", "failed"):
            for source in (aside / kind).glob("*"):
                target = directory / kind / source.name
                if target.exists() and target.is_dir():
                    shutil.rmtree(target)
                source.replace(target)
        if (directory / "runs" / key).exists():
            (directory / "failed" / f"{key}.json").unlink(missing_ok=True)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
