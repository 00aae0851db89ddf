"""Runs and comparisons, new or from a directory."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import _native, _progress
from ._errors import ScenarioError, results_directory, whole
from ._scenario import Scenario, assignments, scenario as scenario_of
from ._summary import Counters, Summary
from ._table import Table


class Run:
    """Results of a run: `summary`, and tables with a row per flow, per link, and per further measurement."""

    def __init__(self, native: _native.Outcome | _native.Loaded, directory: Path | None = None) -> None:
        self._native = native
        self.directory = directory
        """Directory of the results; None if they are in memory only."""
        self._summary: Summary | None = None

    @property
    def summary(self) -> Summary:
        """Statistics of the run."""
        if self._summary is None:
            self._summary = Summary.read(json.loads(self._native.summary()))
        return self._summary

    @property
    def fingerprint(self) -> str | None:
        """16 hexadecimal digits over the results: equal for any number of threads, on any machine."""
        return self.summary.fingerprint

    @property
    def counters(self) -> Counters:
        """Totals."""
        return self.summary.counters

    @property
    def tables(self) -> list[str]:
        """Names of its tables."""
        return self._native.tables()

    def table(self, name: str) -> Table:
        """Returns a table by the name of its file."""
        native = self._native.table(name)
        if native is None:
            nearest = _native.nearest(name, self.tables)
            raise ScenarioError(
                f"the run has no table `{name}`; it has {', '.join(self.tables)}",
                place="table",
                nearest=nearest,
                remedy=_HOW_TO_MEASURE.get(name) or (f"did you mean `{nearest}`?" if nearest else None),
            )
        return Table(native, name)

    @property
    def flows(self) -> Table:
        """A row per flow."""
        return self.table("flows")

    @property
    def links(self) -> Table:
        """A row per directed link, with the queue of its port."""
        return self.table("links")

    @property
    def jobs(self) -> Table:
        """A row per job, group and repetition: completion, slowdown, bus bandwidth, who was last. Only with jobs."""
        return self.table("jobs")

    @property
    def job_ranks(self) -> Table:
        """A row per job, group, repetition and rank. Only with jobs."""
        return self.table("job_ranks")

    @property
    def job_steps(self) -> Table:
        """A row per job, group, repetition and step: its messages, start, end and completion, which flow was last. Only with jobs."""
        return self.table("job_steps")

    @property
    def job_flows(self) -> Table:
        """Group, repetition, step and ranks of each flow of a job. Only with jobs."""
        return self.table("job_flows")

    @property
    def gpus(self) -> Table:
        """A row per GPU with its port to the scale-up network, if the scenario has `servers`."""
        return self.table("gpus")

    @property
    def series(self) -> Table:
        """Time series of ports, of the links in `measure.series_links`."""
        return self.table("series")

    @property
    def uplinks(self) -> Table:
        """Packets of each flow on each uplink, if `measure.uplink_counts` is true."""
        return self.table("uplinks")

    @property
    def occupancy(self) -> Table:
        """Time at each queue length in packets, if `measure.occupancy` is true."""
        return self.table("occupancy")

    def write(self, directory: str | os.PathLike[str]) -> Run:
        """Writes the results to a directory, as the program does: tables as CSV and Parquet, summary, manifest."""
        if isinstance(self._native, _native.Loaded):
            raise ScenarioError(f"the results are already in {self.directory}", place="directory")
        self._native.write(Path(directory))
        self.directory = Path(directory)
        return self

    def __repr__(self) -> str:
        s = self.summary
        done = f"{s.flows.finished:,} of {s.flows.total:,} flows"
        p99 = "" if s.slowdown.p99 is None else f", slowdown p99 {s.slowdown.p99:.3f}"
        return f"<Run {s.scenario!r}, {s.scheme}, seed {s.seed}: {done}{p99}, fingerprint {s.fingerprint}>"


_HOW_TO_MEASURE = {
    "gpus": "give the scenario servers",
    "series": 'ask for it: .with_({"measure.series_links": ["leaf*"]})',
    "series_flows": 'ask for it: .with_({"measure.series_flows": ["first:10"]})',
    "series_scheme": 'ask for it: .with_({"measure.series_scheme": True})',
    "uplinks": 'ask for it: .with_({"measure.uplink_counts": True})',
    "occupancy": 'ask for it: .with_({"measure.occupancy": True})',
    "trace": 'ask for it: .with_({"measure.trace_flows": ["first:1"]})',
}


class Comparison:
    """Comparison of load balancers and variants on the same flows."""

    def __init__(self, native: _native.Comparison, directory: Path, temporary: Any = None) -> None:
        self._native = native
        self.directory = directory
        """Directory of the results."""
        # Removed with the last reference.
        self._temporary = temporary

    @property
    def table(self) -> Table:
        """A row per load balancer and metric: mean over seeds, confidence interval, ratio to the baseline, significance."""
        return Table(self._native.table(), "comparison")

    @property
    def main_metric(self) -> str:
        """Most informative metric of the scenario."""
        return self._native.main_metric()

    @property
    def failed(self) -> dict[str, str]:
        """Failed runs, with their errors."""
        return dict(self._native.failed)

    @property
    def runs(self) -> dict[tuple[str, int], Run]:
        """Runs by load balancer (or variant) and seed, in the order requested."""
        plan = json.loads((self.directory / "plan.json").read_text())
        found = {}
        for of in sorted(plan["runs"], key=lambda of: (of["entry"], of["seed"])):
            directory = self.directory / "runs" / of["run"]
            if (directory / "summary.json").exists():
                run = _load_run(directory)
                run._temporary = self._temporary  # type: ignore[attr-defined]
                found[(plan["entries"][of["entry"]], of["seed"])] = run
        return found

    def rows(self, table: str = "flows") -> Table:
        """Rows of all runs, with their load balancer in the column `entry`; every table has a column with the seed."""
        parts = [run.table(table)._native.with_labels([("entry", entry)]) for (entry, _), run in self.runs.items()]
        return Table(_native.Table.concatenated(parts), table)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs.values())

    def __repr__(self) -> str:
        names = ", ".join(self._native.entries())
        return f"<Comparison of {names} in {self.directory}>"


def run(
    scenario: str | os.PathLike[str] | Scenario,
    *,
    seed: int | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    replace: bool = False,
    progress: _progress.Reporting = None,
) -> Run:
    """
    Runs a scenario. Results are kept in memory; with `out` they are also written there, as by `anabranch run`.

    `threads` splits the run; by default, as many as the fabric can use. Results do not depend on it. `progress` is a callback,
    True for a bar or False for none. Ctrl-C raises KeyboardInterrupt, and nothing is kept.
    """
    of = scenario_of(scenario)
    whole(0, seed=seed)
    whole(threads=threads)
    directory = results_directory(out)
    if seed is not None:
        of = of.with_({"seed": seed})
    report, close = _progress.callback(progress)
    try:
        outcome = _native.run(of._native, threads or 0, directory, replace, report)
    finally:
        close()
    return Run(outcome, directory)


def compare(
    scenario: str | os.PathLike[str] | Scenario,
    schemes: Sequence[str] = (),
    *,
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    seeds: int | None = None,
    baseline: str | None = None,
    threads: int | None = None,
    out: str | os.PathLike[str] | None = None,
    again: bool = False,
    replace: bool = False,
    progress: _progress.Reporting = None,
) -> Comparison:
    """
    Compares load balancers on the same flows, over `seeds` seeds, as `anabranch compare` does. `variants` are the scenario with other
    settings: `{"short": {"load_balancer.prime.p_ecn": 8}}`. With `out`, finished runs there are reused; without it results
    are in a temporary directory, removed with the object.
    """
    import tempfile

    of = scenario_of(scenario)
    whole(threads=threads, seeds=seeds)
    temporary = tempfile.TemporaryDirectory(prefix="anabranch-") if out is None else None
    directory = results_directory(out) or Path(temporary.name)  # type: ignore[union-attr]
    report, close = _progress.callback(progress)
    try:
        native = _native.compare(
            of._native, directory, names(schemes, "schemes"), variants_of(variants), seeds, baseline,
            threads or os.cpu_count() or 1, again, replace, report,
        )  # fmt: skip
    finally:
        close()
    return Comparison(native, directory, temporary)


def load(directory: str | os.PathLike[str]) -> Any:
    """
    Loads the results in a directory: a Run, a Comparison or a Sweep.
    """
    path = Path(directory)
    plan = path / "plan.json"
    if plan.exists() and not _is_comparison(plan):
        from ._sweep import Sweep

        return Sweep._in(path)
    if (path / "summary.json").exists():
        return _load_run(path)
    if (path / "runs").is_dir() or (path / "manifest.json").exists():
        return Comparison(_native.Comparison.read(path), path)
    missing = "" if path.exists() else "; there is no such directory"
    raise ScenarioError(f"{path} has no results of anabranch{missing}", place="directory")


def _is_comparison(plan: Path) -> bool:
    """Returns True for a plan without keys. The reader of sweeps reports a damaged one."""
    try:
        return bool(json.loads(plan.read_text())["axes"] == [])
    except (ValueError, KeyError, TypeError):
        return False


def _load_run(path: Path) -> Run:
    return Run(_native.load(path), path)


def names(given: Sequence[str], argument: str) -> list[str]:
    """Checks for a list of names; a single string is a common error."""
    if isinstance(given, str):
        listed = [part.strip() for part in given.split(",")]
        raise ScenarioError(f"{argument}: found {given!r}, expected a list", place=argument, remedy=f"write {argument}={listed!r}")
    return [str(name) for name in given]


def variants_of(variants: Mapping[str, Mapping[str, Any]] | None) -> list[str]:
    """Returns variants in the format of `--variant`."""
    if not isinstance(variants, Mapping | None) or not all(isinstance(of, Mapping) for of in (variants or {}).values()):
        expected = '{"short": {"load_balancer.prime.p_ecn": 8}}'
        raise ScenarioError(f"variants: found {variants!r}, expected changes by name, such as {expected}", place="variants")
    return [f"{name}={';'.join(assignments(changes))}" for name, changes in (variants or {}).items()]
