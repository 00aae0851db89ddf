"""Sweeps: many runs in a store on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native, _progress, _toml
from ._errors import ScenarioError, needs, one_of, results_directory, whole
from ._part import _plain
from ._result import Run, _load_run, names, variants_of
from ._scenario import Scenario, scenario as scenario_of
from ._table import Table

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame, LazyFrame

Over = Mapping[str, Iterable[Any] | str]
"""Keys of the scenario, dotted as in `--set`, with their values: a list, or text such as `"0.3..0.9:0.1"`."""


class Sweep:
    """
    Sweep in its store: a row per run (as a table, `polars.DataFrame(sweep)`), every run with its rows, and failures. It is read
    from disk.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        """Directory of the store."""
        self._store = _native.Store(directory)

    @classmethod
    def _in(cls, directory: Path) -> Sweep:
        return cls(directory)

    @property
    def table(self) -> Table:
        """A row per run: keys, load balancer, seed, hash, status, fingerprint, computer, attempts, error, metrics."""
        table = self._store.runs()
        if table is None:
            raise ScenarioError(f"{self.directory} has no sweep", place="directory")
        return Table(table, "runs")

    @property
    def comparison(self) -> Table:
        """A row per point, workload, load balancer and metric: mean over seeds, confidence interval, ratio to the baseline."""
        table = self._store.comparison()
        if table is None:
            raise ScenarioError(f"{self.directory} has no sweep", place="directory")
        return Table(table, "sweep")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def polars(self) -> PolarsFrame:
        """Returns a row per run as a polars frame."""
        return self.table.polars()

    def pandas(self) -> PandasFrame:
        """Returns a row per run as a pandas frame."""
        return self.table.pandas()

    @property
    def keys(self) -> list[str]:
        """Swept keys."""
        columns = [column.name for column in self.table.columns]
        return columns[: columns.index("scheme")]

    def run(self, hash: str) -> Run:
        """Returns a finished run by its hash, the column `run`."""
        state = self._store.state(hash)
        if state != "finished":
            raise ScenarioError(f"the run {hash} is {state}", place="hash")
        return _load_run(Path(self._store.place(hash)))

    def rows(self, table: str = "flows") -> Table:
        """Returns the rows of all finished runs as one table that starts with the keys, `entry` and `run`."""
        parts = []
        for row in self._rows():
            if row["status"] == "finished":
                labels = [(key, row[key]) for key in self.keys] + [("entry", row["scheme"]), ("run", row["run"])]
                parts.append(self.run(row["run"]).table(table)._native.with_labels(labels))
        if not parts:
            raise ScenarioError("no run of the sweep is finished", place="rows")
        return Table(_native.Table.concatenated(parts), table)

    def scan(self, table: str = "flows") -> LazyFrame:
        """Returns them as a lazy polars frame over the store's own file, which exists once every run is done."""
        try:
            import polars
        except ImportError:
            raise needs("polars", "polars") from None
        path = self.directory / f"{table}.parquet"
        if not path.exists():
            raise ScenarioError(f"{path} does not exist yet; it is written once every run is finished or failed", place="table")
        return polars.scan_parquet(path)

    @property
    def failed(self) -> dict[str, str]:
        """Hashes of failed runs, with their errors."""
        out = {}
        for row in self._rows():
            if row["status"] == "failed":
                out[row["run"]] = self._store.state(row["run"]).removeprefix("failed: ")
        return out

    @property
    def missing(self) -> int:
        """Number of runs that are neither finished nor failed."""
        return len({row["run"] for row in self._rows() if row["status"] == "missing"})

    def _rows(self) -> list[dict[str, Any]]:
        import csv
        import io

        text = self._store.runs_csv()
        if text is None:
            raise ScenarioError(f"{self.directory} has no sweep", place="directory")
        return list(csv.DictReader(io.StringIO(text)))

    def __len__(self) -> int:
        return len(self._rows())

    def __repr__(self) -> str:
        rows = self._rows()
        count = {status: sum(row["status"] == status for row in rows) for status in ("finished", "failed", "missing")}
        counts = ", ".join(f"{number} {status}" for status, number in count.items() if number)
        return f"<Sweep over {', '.join(self.keys)}: {counts}; in {self.directory}>"


def sweep(
    scenario: str | os.PathLike[str] | Scenario | Sequence[Scenario] | Mapping[str, Scenario],
    over: Over | None = None,
    *,
    mode: Literal["grid", "zip"] = "grid",
    schemes: Sequence[str] = (),
    variants: Mapping[str, Mapping[str, Any]] | None = None,
    seeds: int | None = None,
    baseline: str | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    task: tuple[int, int] | None = None,
    again: bool | Literal["failed"] = False,
    replace: bool = False,
    client: Any = None,
    gather: bool = False,
    progress: _progress.Reporting = None,
) -> Sweep:
    """
    Runs a scenario over values of some of its keys, a list of scenarios, or a sweep file, with every load balancer
    and seed at each point, into the store `out` (else `results/NAME-sweep-HASH`). Finished runs are reused; a run that fails
    is kept with its error and does not stop the others.

    `threads` threads of this process run whole runs side by side, within the available memory. `task=(k, n)` runs the kth of n
    shares. With `client`, a `distributed.Client`, its workers execute the runs; with `gather` they return rows, for workers without
    a shared file system. `again="failed"` repeats failed runs, `again=True` all runs.
    """
    whole(threads=threads, seeds=seeds)
    if again not in (False, True, "failed"):
        raise one_of("again", again, ["failed"], 'False, True or "failed"')
    if task is not None and not (isinstance(task, Sequence) and len(task) == 2 and 1 <= task[0] <= task[1]):
        raise ScenarioError(f"task: found {task!r}, expected (k, n) with k from 1 to n", place="task")
    plan = _plan(scenario, over, mode, schemes, variants, seeds, baseline)
    directory = results_directory(out) or Path("results") / f"{plan.stem}-sweep-{plan.identity()[:8]}"
    anew = {False: "", True: "all"}.get(again, again) if isinstance(again, bool) else again
    report, close = _progress.callback(progress)
    try:
        if client is not None:
            from . import _dask

            _dask.work(client, plan, directory, str(anew), replace, task, gather, report)
            anew = ""
        plan.execute(directory, threads or os.cpu_count() or 1, str(anew), replace, task, report if client is None else None)
    finally:
        close()
    return Sweep(directory)


def _plan(
    scenario: str | os.PathLike[str] | Scenario | Sequence[Scenario] | Mapping[str, Scenario],
    over: Over | None,
    mode: str,
    schemes: Sequence[str],
    variants: Mapping[str, Mapping[str, Any]] | None,
    seeds: int | None,
    baseline: str | None,
) -> _native.Plan:
    if mode not in ("grid", "zip"):
        raise one_of("mode", mode, ["grid", "zip"], '"grid" or "zip"')
    entries = names(schemes, "schemes"), variants_of(variants), seeds, baseline
    if isinstance(scenario, (str, os.PathLike)) and Path(scenario).is_file():
        plan = _native.Plan.file(Path(scenario), [], None)
        if plan is not None:
            beside = {"over": over, "schemes": schemes, "variants": variants, "seeds": seeds, "baseline": baseline}
            if given := [name for name, value in beside.items() if value]:
                raise ScenarioError(
                    f"{given[0]}: found beside {os.fspath(scenario)}, a sweep file, which defines it",
                    place=given[0],
                    remedy="change the file, or name a scenario instead of a sweep file",
                )
            return plan
    if not isinstance(scenario, (Mapping, Sequence)) or isinstance(scenario, str):
        return _native.Plan.over(scenario_of(scenario)._native, _axes(over or {}), mode == "zip", *entries)
    if over:
        raise ScenarioError("over: found beside a list of scenarios, which defines the sweep", place="over", remedy="give one of both")
    if isinstance(scenario, Mapping):
        listed = [(str(name), scenario_of(one)._native) for name, one in scenario.items()]
    else:
        listed = [(of.name, of._native) for of in map(scenario_of, scenario)]
    return _native.Plan.scenarios(listed, *entries)


def _axes(over: Over) -> list[tuple[str, str | Sequence[str]]]:
    such_as = '{"workload.0.load": "0.3..0.9:0.1"} or {"topology.link_rate": ["100Gbps", "400Gbps"]}'
    if not isinstance(over, Mapping):
        raise ScenarioError(f"over: found {over!r}, expected values by key, such as {such_as}", place="over")
    axes: list[tuple[str, str | Sequence[str]]] = []
    for key, values in over.items():
        place = f'over["{key}"]'
        if not isinstance(key, str) or not isinstance(values, Iterable):
            raise ScenarioError(f"{place}: found {values!r}, expected a list or a range as text, such as {such_as}", place=place)
        listed = values if isinstance(values, str) else [text(value, place) for value in values]
        if not listed:
            raise ScenarioError(f"{place}: found no value, expected at least one", place=place)
        axes.append((key, listed))
    return axes


def text(value: Any, place: str) -> str:
    """Returns a value in the format of `--over`."""
    return value if isinstance(value, str) else _toml.value(_plain(value), place)
