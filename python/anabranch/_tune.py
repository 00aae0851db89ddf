"""Tuning: searches parameters with Optuna and judges them on held-out seeds."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from . import _native, _progress
from ._errors import ScenarioError, needs, one_of, whole
from ._result import Run, _load_run
from ._scenario import Scenario, scenario as scenario_of
from ._summary import FlowSummary, Summary, _hints, _Read
from ._table import Table

if TYPE_CHECKING:
    import optuna
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

Space = Mapping[str, "tuple[float, float] | Range | Sequence[Any]"]
"""Keys of the scenario with their ranges: `(low, high)`, a Range, or a list of choices."""
Objective = str | Callable[[Run], float | None]
"""A number of the summary by its dotted name, or a function of a run."""
Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, inclusive; with `unit`, they are quantities such as "10us"."""

    low: float
    high: float
    step: float | None = None
    log: bool = False
    unit: str = ""


@dataclass(frozen=True)
class Trial:
    """Trial of parameters."""

    number: int
    parameters: dict[str, Any]
    state: str
    """`complete`, `pruned` or `failed`."""
    values: tuple[float, ...] | None
    """Objectives, mean over seeds; None if pruned or failed."""
    seeds: int
    """Number of seeds that were run."""
    error: str | None
    """Error of a failed trial."""


@dataclass(frozen=True)
class Gain:
    """Objective of tuned parameters against those of the scenario, on held-out seeds."""

    objective: str
    tuned: float
    """Mean over the held-out seeds."""
    default: float
    difference: float
    """Tuned minus default, mean of the differences per seed."""
    low: float | None
    """Lower limit of its 95 % confidence interval; None with one seed."""
    high: float | None
    seeds: int


class Tuning:
    """Results of tuning."""

    def __init__(
        self, study: optuna.Study, directory: Path, scenario: Scenario, objectives: list[str], gains: dict[int, list[Gain]]
    ) -> None:
        self.study = study
        """Optuna's study, for its own figures."""
        self.directory = directory
        self.scenario = scenario
        self.objectives = objectives
        self.gains = gains
        """Gains by the number of the trial: of the best one, or with several objectives of the Pareto front."""

    @property
    def trials(self) -> list[Trial]:
        """All trials, in order."""
        return [_trial(one) for one in self.study.get_trials(deepcopy=False)]

    @property
    def best(self) -> Trial:
        """Best trial; with several objectives, the first of the Pareto front."""
        if not self.gains:
            raise ScenarioError("no trial is complete, so there is no best one", place="tune")
        return self.trials[next(iter(self.gains))]

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the best trial."""
        return self.best.parameters

    @property
    def tuned(self) -> Scenario:
        """The scenario with the parameters of the best trial."""
        return self.scenario.with_(self.parameters)

    @property
    def gain(self) -> Gain:
        """Gain of the best trial over the scenario's own parameters, on held-out seeds."""
        return self.gains[self.best.number][0]

    @property
    def table(self) -> Table:
        """A row per trial."""
        trials = self.trials
        keys = list(dict.fromkeys(key for trial in trials for key in trial.parameters))
        columns = [("trial", "integer", "", "number of the trial"), ("state", "text", "", "complete, pruned or failed")]
        for key in keys:
            numbers = all(isinstance(t.parameters.get(key, 0), (int, float)) for t in trials)
            columns.append((key, "real" if numbers else "text", "", "value of this key of the scenario"))
        columns += [(name, "real", "", "objective, mean over seeds") for name in self.objectives]
        columns += [("seeds", "integer", "", "seeds that were run"), ("error", "text", "", "why it failed")]
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(name for name, *_ in columns)
        for trial in trials:
            values = trial.values or ("",) * len(self.objectives)
            parameters = (trial.parameters.get(key, "") for key in keys)
            writer.writerow([trial.number, trial.state, *parameters, *values, trial.seeds, trial.error or ""])
        return Table(_native.Table.of_rows(text.getvalue(), columns), "trials")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def polars(self) -> PolarsFrame:
        """Returns a row per trial as a polars frame."""
        return self.table.polars()

    def pandas(self) -> PandasFrame:
        """Returns a row per trial as a pandas frame."""
        return self.table.pandas()

    def __repr__(self) -> str:
        if not self.gains:
            return f"<Tuning: {len(self.trials)} trials, none complete>"
        gain = self.gain
        interval = "" if gain.low is None else f" (95 % interval {gain.low:.4g} to {gain.high:.4g})"
        return (
            f"<Tuning: {len(self.trials)} trials; best {self.parameters}; {gain.objective} {gain.tuned:.4g} against "
            f"{gain.default:.4g}, difference {gain.difference:.4g}{interval} on {gain.seeds} held-out seeds>"
        )


def tune(
    scenario: str | os.PathLike[str] | Scenario,
    space: Space,
    objective: Objective | Sequence[Objective] = "slowdown.p99",
    *,
    direction: Direction | Sequence[Direction] = "minimize",
    seeds: int = 5,
    held_out: int = 10,
    trials: int = 100,
    width: int = 4,
    sampler: Callable[[int], optuna.samplers.BaseSampler] | None = None,
    sampler_seed: int = 1,
    pruner: optuna.pruners.BasePruner | None = None,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    client: Any = None,
    progress: _progress.Reporting = None,
) -> Tuning:
    """
    Searches for the values of some keys with the best `objective` over `seeds` seeds, in `trials` trials. Trials are requested in
    batches of `width`, run side by side, and reported in the order requested, so that the same call gives the same trials on any
    number of threads or Dask workers (`client`). Runs and Optuna's journal are in `out` (else `results/NAME-tune-HASH`); repeating
    an interrupted call continues it.

    A trial may be pruned after each seed (`pruner`; none with several objectives). At the end the best parameters and the
    scenario's own run on `held_out` further seeds, which give the gain.

    `sampler` makes Optuna's sampler from a seed (default: the tree-structured Parzen estimator).
    """
    try:
        import optuna
    except ImportError:
        raise needs("optuna", "tune") from None
    base = scenario_of(scenario)
    whole(threads=threads, seeds=seeds, trials=trials, width=width, held_out=held_out)
    several = not isinstance(objective, str) and isinstance(objective, Sequence)
    objectives: list[Objective] = list(objective) if several else [objective]  # type: ignore[arg-type, list-item]
    directions: list[str] = list(direction) if not isinstance(direction, str) else [direction] * len(objectives)
    _check(base, objectives, directions, space)
    if client is not None:
        from . import _dask

        _dask.check(client)
    named = [one if isinstance(one, str) else getattr(one, "__name__", "objective") for one in objectives]
    settings = {
        "scenario": base.hash, "space": {key: repr(value) for key, value in space.items()}, "objectives": named,
        "directions": directions, "seeds": seeds, "width": width, "sampler_seed": sampler_seed,
    }  # fmt: skip
    identity = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    directory = Path(out) if out is not None else Path("results") / f"{_stem(base.name)}-tune-{identity[:8]}"
    study = _open(optuna, directory, directions, pruner, settings)
    make = sampler or (lambda seed: optuna.samplers.TPESampler(seed=seed))
    report, close = _progress.callback(progress)
    runner = _Runner(base, directory, threads or os.cpu_count() or 1, client, (trials * seeds + 2 * held_out), report)
    try:
        for first in range(0, trials, width):
            numbers = range(first, min(first + width, trials))
            _batch(optuna, study, make, sampler_seed, numbers, space, objectives, seeds, runner, prunes=not several)
        gains = _judge(study, objectives, named, runner, seeds, held_out)
    finally:
        close()
    return Tuning(study, directory, base, named, gains)


def _open(optuna: Any, directory: Path, directions: list[str], pruner: Any, settings: dict[str, Any]) -> Any:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    if (directory / "plan.json").exists() or (directory / "summary.json").exists():
        raise ScenarioError(f"{directory} contains other results; tuning needs a separate directory", place="out")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "journal.log").open("a").close()
    except OSError as error:
        raise ScenarioError(f"the directory {directory} cannot be used for results: {error.strerror}", place="out") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = JournalStorage(JournalFileBackend(str(directory / "journal.log")))
    study = optuna.create_study(
        storage=storage, study_name="anabranch", directions=directions, load_if_exists=True,
        pruner=pruner or optuna.pruners.NopPruner(),
    )  # fmt: skip
    there = study.user_attrs.get("said")
    if there is not None and there != settings:
        changed = [key for key in settings if settings[key] != there.get(key)]
        raise ScenarioError(
            f"{directory} contains the trials of another tuning: {', '.join(changed)} differ", place="out",
            remedy="give another directory, or the same call as before",
        )  # fmt: skip
    if there is None:
        study.set_user_attr("said", settings)
    return study


def _batch(
    optuna: Any, study: Any, make: Callable[[int], Any], sampler_seed: int, numbers: range, space: Space,
    objectives: list[Objective], seeds: int, runner: _Runner, *, prunes: bool,
) -> None:  # fmt: skip
    """Runs `width` trials: requested in order, run seed by seed side by side, reported in order."""
    running, finished = optuna.trial.TrialState.RUNNING, False
    trials: list[Any] = []
    known = {one.number: one for one in study.get_trials(deepcopy=False)}
    for number in numbers:
        there = known.get(number)
        if there is not None and there.state != running:
            # Every decision of this batch was taken before the first result was reported.
            finished = True
            continue
        # A new sampler for every trial and key: its draws depend on earlier trials, not on interruptions.
        study.sampler = make(_mixed(sampler_seed, number, ""))
        trial = study.ask() if there is None else optuna.trial.Trial(study, there._trial_id)
        parameters = {}
        for key, of in space.items():
            study.sampler = make(_mixed(sampler_seed, number, key))
            parameters[key] = _suggest(trial, key, of)
        trials.append((trial, parameters))
    values: dict[int, list[list[float]]] = {trial.number: [] for trial, _ in trials}
    errors: dict[int, str] = {}
    scenarios: dict[int, Scenario] = {}
    for trial, parameters in trials:
        try:
            scenarios[trial.number] = runner.base.with_(parameters)
        except ScenarioError as error:
            errors[trial.number] = str(error)
    pruned: set[int] = {trial.number for trial, _ in trials if "pruned" in trial.user_attrs}
    for step in range(seeds):
        alive = [
            trial for trial, _ in trials
            if trial.number not in errors and not (trial.number in pruned and trial.user_attrs.get("pruned", seeds) < step)
        ]  # fmt: skip
        if not alive:
            break
        wanted = [(scenarios[trial.number], runner.base.seed + step) for trial in alive]
        for trial, found in zip(alive, runner.do(wanted), strict=True):
            if isinstance(found, str):
                errors[trial.number] = found
                continue
            try:
                values[trial.number].append([_value(found, objective) for objective in objectives])
            except ScenarioError as error:
                errors[trial.number] = str(error)
        if not prunes:
            continue
        for trial in alive:
            if trial.number in errors or trial.number in pruned or step == seeds - 1:
                continue
            means = [of[0] for of in values[trial.number]]
            if step not in study.get_trials(deepcopy=False)[trial.number].intermediate_values:
                trial.report(sum(means) / len(means), step)
            if not finished and trial.should_prune():
                trial.set_user_attr("pruned", step)
                pruned.add(trial.number)
    for trial, _ in trials:
        trial.set_user_attr("seeds", len(values[trial.number]))
        if trial.number in errors:
            trial.set_user_attr("error", errors[trial.number])
    for trial, _ in trials:
        number = trial.number
        if number in errors:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        elif number in pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, _means(values[number]))


class _Runner:
    """Executes runs in the store, in this process or on Dask's workers."""

    def __init__(self, base: Scenario, directory: Path, threads: int, client: Any, runs: int, report: Any) -> None:
        self.base, self.directory, self.threads, self.client = base, directory, threads, client
        self.store = _native.Store(directory)
        self.runs, self.done, self.report = runs, 0, report

    def do(self, wanted: list[tuple[Scenario, int]]) -> list[Run | str]:
        """Returns the runs of scenarios with seeds, or the error in place of a failed one."""
        listed = [(f"trial, seed {seed}", scenario.with_({"seed": seed})._native) for scenario, seed in wanted]
        keys = [native.run_key for _, native in listed]
        if self.client is not None:
            from . import _dask

            _native.Store(self.directory).run([], 1, "")
            due = {key: (key, name, native.to_toml()) for key, (name, native) in zip(keys, listed, strict=True)}
            jobs = [job for key, job in due.items() if self.store.state(key) == "missing"]
            _dask.run(self.client, self.directory.absolute(), jobs, "", False, None)
        else:
            self.store.run(listed, self.threads, "", self._tell if self.report else None)
        self.done += len(wanted)
        out: list[Run | str] = []
        for key in keys:
            state = self.store.state(key)
            out.append(_load_run(Path(self.store.place(key))) if state == "finished" else state.removeprefix("failed: "))
        return out

    def _tell(self, news: dict[str, Any]) -> None:
        self.report({**news, "runs": self.runs, "runs_done": min(self.runs, self.done + news["runs_done"])})


def _judge(
    study: Any, objectives: list[Objective], named: list[str], runner: _Runner, seeds: int, held_out: int
) -> dict[int, list[Gain]]:
    """Runs the best parameters and the scenario's own on held-out seeds."""
    if len(objectives) == 1:
        complete = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
        best = [study.best_trial] if complete else []
    else:
        best = sorted(study.best_trials, key=lambda trial: trial.number)
    fresh = range(runner.base.seed + seeds, runner.base.seed + seeds + held_out)
    gains: dict[int, list[Gain]] = {}
    for trial in best:
        tuned = runner.base.with_(_trial(trial).parameters)
        found = runner.do([(one, seed) for seed in fresh for one in (tuned, runner.base)])
        pairs = [(a, b) for a, b in zip(found[::2], found[1::2], strict=True) if not isinstance(a, str) and not isinstance(b, str)]
        gains[trial.number] = [_gain(name, of, pairs) for name, of in zip(named, objectives, strict=True)]
    return gains


def _gain(name: str, objective: Objective, pairs: list[tuple[Run, Run]]) -> Gain:
    values = [(_value(tuned, objective), _value(default, objective)) for tuned, default in pairs]
    if not values:
        raise ScenarioError(f"{name}: no held-out seed gave a value", place="objective")
    mean, low, high = _native.estimate([tuned - default for tuned, default in values])
    tuned, default = (sum(column) / len(values) for column in zip(*values, strict=True))
    return Gain(name, tuned, default, mean, low, high, len(values))


def _value(run: Run, objective: Objective) -> float:
    if not isinstance(objective, str):
        value = objective(run)
    else:
        if (unfinished := run.summary.flows.measured_unfinished) > 0:
            raise ScenarioError(f"{unfinished} measured flows did not finish, so the statistics would be biased")
        value = run.summary.value(objective)
    if value is None or value != value:
        raise ScenarioError(f"the run has no {objective if isinstance(objective, str) else 'value'}")
    return float(value)


def _means(values: list[list[float]]) -> list[float]:
    return [sum(column) / len(column) for column in zip(*values, strict=True)]


def _suggest(trial: Any, key: str, of: Any) -> Any:
    if isinstance(of, tuple):
        of = Range(*of)
    if not isinstance(of, Range):
        return trial.suggest_categorical(key, list(of))
    whole = isinstance(of.low, int) and isinstance(of.high, int) and isinstance(of.step or 1, int)
    if whole:
        value = trial.suggest_int(key, of.low, of.high, step=of.step or 1, log=of.log)
    else:
        value = trial.suggest_float(key, of.low, of.high, step=of.step, log=of.log)
    if not of.unit:
        return value
    if f"unit:{key}" not in trial.user_attrs:
        trial.set_user_attr(f"unit:{key}", of.unit)
    return _quantity(value, of.unit)


def _quantity(value: float, unit: str) -> str:
    # Shares of the BDP are whole millionths, and microseconds whole picoseconds.
    number = str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")
    return number + unit


def _trial(of: Any) -> Trial:
    state = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}.get(of.state.name, of.state.name.lower())

    def plain(key: str, value: Any) -> Any:
        unit = of.user_attrs.get(f"unit:{key}")
        return value if unit is None else _quantity(value, unit)

    parameters = {key: plain(key, value) for key, value in of.params.items()}
    values = tuple(of.values) if state == "complete" else None
    return Trial(of.number, parameters, state, values, of.user_attrs.get("seeds", 0), of.user_attrs.get("error"))


def _mixed(seed: int, number: int, key: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {number} {key}".encode()).digest()[:4], "little")


def _stem(name: str) -> str:
    plain = "".join(c if c.isalnum() else "-" for c in name.lower()).strip("-")
    return "-".join(part for part in plain.split("-") if part)[:40] or "scenario"


def _check(base: Scenario, objectives: list[Objective], directions: list[str], space: Space) -> None:
    such_as = 'for example {"load_balancer.prime.p_ecn": (1, 50)}'
    if not isinstance(space, Mapping):
        raise ScenarioError(f"space: found {space!r}, expected ranges or choices by key", place="space", remedy=such_as)
    if not space:
        raise ScenarioError("space: found no key, expected at least one", place="space", remedy=such_as)
    for key, of in space.items():
        if not isinstance(of, (Range, Sequence)) or isinstance(of, str) or (isinstance(of, tuple) and len(of) != 2):
            raise ScenarioError(f"space: {key}: found {of!r}, expected (low, high), a Range or a list", place=key)
        if not isinstance(of, (tuple, Range)) and len(of) == 0:
            raise ScenarioError(f"space: {key}: found no choice, expected at least one", place=key)
        low_high = of if isinstance(of, tuple) else (of.low, of.high) if isinstance(of, Range) else None
        if low_high is not None and not all(isinstance(end, (int, float)) for end in low_high):
            remedy = 'quantities: Range(1, 50, unit="us"), or a list of choices'
            raise ScenarioError(f"space: {key}: found {of!r}, expected numbers as limits of a range", place=key, remedy=remedy)
        if low_high is not None and low_high[0] > low_high[1]:
            raise ScenarioError(f"space: {key}: found {of!r}, expected the lower limit first", place=key)
        _check_key(base, key, of)
    if not objectives:
        raise ScenarioError("objective: found none, expected at least one", place="objective", remedy="for example slowdown.p99")
    if len(directions) != len(objectives):
        raise ScenarioError(f"direction: {len(directions)} for {len(objectives)} objectives", place="direction")
    for direction in directions:
        if direction not in ("minimize", "maximize"):
            raise one_of("direction", direction, ["minimize", "maximize"], "minimize or maximize")
    for objective in objectives:
        if isinstance(objective, str) and not _is_number(Summary, objective.split(".")):
            near = _native.nearest(objective, _numbers(Summary, ""))
            raise ScenarioError(
                f"objective: the summary has no number `{objective}`", place="objective", nearest=near,
                remedy=f"did you mean `{near}`?" if near else "for example slowdown.p99, fct_us.mean or counters.trimmed",
            )  # fmt: skip


def _check_key(base: Scenario, key: str, of: tuple[float, float] | Range | Sequence[Any]) -> None:
    """Refuses unknown keys and quantities without unit, which every trial would refuse; other values may depend on each other."""
    first = of.low if isinstance(of, Range) else of[0]
    try:
        base.with_({key: _quantity(first, of.unit) if isinstance(of, Range) and of.unit else first})
    except ScenarioError as error:
        if "unknown" in error.message:
            raise
        if "with its unit" in error.message and isinstance(of, (Range, tuple)):
            error.remedy = 'give the range its unit, for example Range(1, 50, unit="us")'
            raise


def _is_number(of: Any, steps: list[str]) -> bool:
    if get_origin(of) is Mapping:
        return len(steps) > 1 and _is_number(FlowSummary, steps[1:])
    if not steps:
        return of in (int, float) or bool({int, float} & set(get_args(of)))
    return isinstance(of, type) and issubclass(of, _Read) and steps[0] in (own := _hints(of)) and _is_number(own[steps[0]], steps[1:])


def _numbers(of: Any, prefix: str) -> list[str]:
    out = []
    for name, hint in _hints(of).items():
        if isinstance(hint, type) and issubclass(hint, _Read):
            out += _numbers(hint, f"{prefix}{name}.")
        elif _is_number(hint, []):
            out.append(prefix + name)
    return out
