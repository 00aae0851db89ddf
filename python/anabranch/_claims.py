"""Joint search of what a paper leaves open: one setting that carries most of its claims, judged on fresh seeds."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._errors import BrokenError, ScenarioError, needs, one_of, whole
from ._table import Table
from ._tune import _mixed

if TYPE_CHECKING:
    import optuna
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame

OURS = "ours"
"""Choice of a parameter that is left at its value in the claim files, and of a reading that is not taken."""
SETTLED = ("reproduced", "out of reach")
"""Verdicts that need no other setting."""


@dataclass(frozen=True)
class ClaimTrial:
    """A setting of the open parameters, and its verdicts on the seeds of the search."""

    number: int
    setting: dict[str, str]
    """Choices other than ours, by key or reading."""
    reproduced: int
    """Number of claims that are reproduced."""
    verdicts: dict[str, str]
    """Verdict by claim."""


class ClaimSearch:
    """Results of a joint search."""

    def __init__(
        self, paper: str, directory: Path, trials: list[ClaimTrial], claims: list[dict[str, Any]], ours: dict[str, Any],
        best: dict[str, Any], best_number: int,
    ) -> None:  # fmt: skip
        self.paper = paper
        self.directory = directory
        self.trials = trials
        """All trials, in order; the first one is ours."""
        self.claims = claims
        """The claims, as `anabranch reproduce PAPER --list --format json` gives them."""
        self.ours = ours
        """Verdicts under our setting on fresh seeds, by claim."""
        self.best = best
        """Verdicts under the best setting on fresh seeds, by claim."""
        self._best_number = best_number

    @property
    def setting(self) -> dict[str, str]:
        """Choices of the best trial other than ours, by key or reading; empty if no setting beats ours."""
        return self.trials[self._best_number].setting

    @property
    def settings_tried(self) -> int:
        """Number of different settings that were tried, ours excluded."""
        return len({tuple(sorted(trial.setting.items())) for trial in self.trials} - {()})

    @property
    def unreached(self) -> list[str]:
        """Claims that no setting reproduces, on the seeds of the search or on fresh ones."""
        return [name for name in self.ours if not self._reached(name) and SETTLED[0] not in (self.ours[name], self.best[name])]

    def _reached(self, claim: str) -> list[int]:
        return [trial.number for trial in self.trials if trial.verdicts.get(claim) == SETTLED[0]]

    @property
    def table(self) -> Table:
        """A row per claim: verdicts under ours and the best setting on fresh seeds, and in how many trials it was reproduced."""
        meanings = [
            ("claim", "text", "name of the claim"),
            ("says", "text", "the claim in a sentence"),
            ("ours", "text", "verdict under our setting, on fresh seeds"),
            ("best", "text", "verdict under the best setting of the search, on fresh seeds"),
            ("reproduced_in", "integer", "trials in which it was reproduced, on the seeds of the search"),
            ("settings_tried", "integer", "settings tried, ours excluded"),
            ("reached", "text", "yes; no: no setting reproduced it; out of reach: a proven bound rules it out"),
        ]
        says = {claim["claim"]: claim["says"] for claim in self.claims}
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(name for name, *_ in meanings)
        unreached = set(self.unreached)
        for name, ours in self.ours.items():
            reached = "no" if name in unreached else "yes"
            if SETTLED[1] in (ours, self.best[name]) and name in unreached:
                reached = SETTLED[1]
            row = [name, says.get(name, ""), ours, self.best[name], len(self._reached(name)), self.settings_tried, reached]
            writer.writerow(row)
        columns = [(name, kind, "", meaning) for name, kind, meaning in meanings]
        return Table(_native.Table.of_rows(text.getvalue(), columns), "claims")

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)

    def polars(self) -> PolarsFrame:
        """Returns a row per claim as a polars frame."""
        return self.table.polars()

    def pandas(self) -> PandasFrame:
        """Returns a row per claim as a pandas frame."""
        return self.table.pandas()

    def __repr__(self) -> str:
        def count(verdicts: dict[str, Any]) -> int:
            return sum(verdict == SETTLED[0] for verdict in verdicts.values())

        return (
            f"<ClaimSearch: {self.paper}, {len(self.trials)} trials, {self.settings_tried} settings besides ours; best {self.setting}; "
            f"on fresh seeds {count(self.best)} of {len(self.best)} claims reproduced, {count(self.ours)} under ours; "
            f"{len(self.unreached)} reached by no setting>"
        )


def search_claims(
    paper: str,
    *,
    trials: int = 50,
    scale: Literal["quick", "full"] = "quick",
    only: Sequence[str] = (),
    keys: Sequence[str] | None = None,
    search_seed: int = 100_001,
    judge_seed: int = 200_001,
    claims: str | os.PathLike[str] | None = None,
    sampler: Callable[[int], optuna.samplers.BaseSampler] | None = None,
    sampler_seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    threads: int | None = None,
) -> ClaimSearch:
    """
    Searches one setting of all parameters and readings that `paper` leaves open under which most of its claims are reproduced, in
    `trials` trials; the first trial is ours. The choices are those of `[[open]]` and `[[reading]]` in the claim files; `keys`
    names those to search (default: all). `only` restricts the claims to those of these studies.

    Trials run on seeds from `search_seed` on. The best setting and ours are judged on fresh seeds, from `judge_seed` on, so that
    luck in the search does not count. Runs and Optuna's journal are in `out` (else `results/PAPER-search-HASH`); repeating an
    interrupted call continues it.
    """
    try:
        import optuna
    except ImportError:
        raise needs("optuna", "tune") from None
    whole(trials=trials, threads=threads, search_seed=search_seed, judge_seed=judge_seed)
    if scale not in ("quick", "full"):
        raise one_of("scale", scale, ("quick", "full"), "a scale")
    if search_seed == judge_seed:
        raise ScenarioError(f"search_seed and judge_seed are both {search_seed}: the verdicts need seeds apart", place="judge_seed")
    command = _Command(paper, scale, only, claims, threads)
    listed = command.run(["--list"])
    choices = _choices(listed, paper, keys)
    settings = {
        "paper": paper, "scale": scale, "only": sorted(only), "choices": choices, "search_seed": search_seed,
        "sampler_seed": sampler_seed, "claims": str(claims) if claims is not None else None,
    }  # fmt: skip
    identity = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    directory = Path(out) if out is not None else Path("results") / f"{paper}-search-{identity[:8]}"
    study = _open(optuna, directory, settings)
    make = sampler or (lambda seed: optuna.samplers.TPESampler(seed=seed))
    done = {one.number: one for one in study.get_trials(deepcopy=False)}
    found: list[ClaimTrial] = []
    for number in range(trials):
        there = done.get(number)
        if there is None or not there.state.is_finished():
            there = _try(optuna, study, make, sampler_seed, number, there, choices, command, directory, search_seed)
        found.append(
            ClaimTrial(number, there.user_attrs["setting"], int(there.values[0]), there.user_attrs["verdicts"])
        )
    # Ours comes first, so that another setting must be better.
    best = max(found, key=lambda trial: (trial.reproduced, -trial.number))
    judged = [_verdicts(command.judge(directory, trial.setting, choices, judge_seed)) for trial in (found[0], best)]
    return ClaimSearch(paper, directory, found, listed["claims"], judged[0], judged[1], best.number)


def _choices(listed: dict[str, Any], paper: str, keys: Sequence[str] | None) -> dict[str, dict[str, list[str]]]:
    """Returns the choices of each key or reading: settings by the name of the choice."""
    choices: dict[str, dict[str, list[str]]] = {}
    for one in listed["open"]:
        choices[one["key"]] = {OURS: []} | {str(value): [f"{one['key']}={value}"] for value in one["values"]}
    for one in listed["readings"]:
        # Readings that are entries of the studies are judged with every setting.
        if one["set"]:
            choices[one["reading"]] = {OURS: [], "taken": list(one["set"])}
    if keys is not None:
        for key in keys:
            if key not in choices:
                raise one_of("keys", key, choices, "a parameter or reading that the claim files leave open")
        choices = {key: choices[key] for key in choices if key in keys}
    if not choices:
        raise ScenarioError(
            f"the claims of {paper} leave nothing open: no [[open]] or [[reading]] in the claim files", place="paper",
            remedy="add values to try: docs/reference/claims.md",
        )  # fmt: skip
    return choices


def _try(
    optuna: Any, study: Any, make: Callable[[int], Any], sampler_seed: int, number: int, there: Any,
    choices: dict[str, dict[str, list[str]]], command: _Command, directory: Path, seed: int,
) -> Any:  # fmt: skip
    """Runs a trial and reports it."""
    study.sampler = make(_mixed(sampler_seed, number, ""))
    if there is None:
        if number == 0:
            study.enqueue_trial({key: OURS for key in choices})
        trial = study.ask()
    else:
        trial = optuna.trial.Trial(study, there._trial_id)
    taken = {}
    for key, of in choices.items():
        study.sampler = make(_mixed(sampler_seed, number, key))
        choice = trial.suggest_categorical(key, list(of))
        if choice != OURS:
            taken[key] = choice
    verdicts = _verdicts(command.judge(directory, taken, choices, seed))
    trial.set_user_attr("setting", taken)
    trial.set_user_attr("verdicts", verdicts)
    study.tell(trial, float(sum(verdict == SETTLED[0] for verdict in verdicts.values())))
    return study.get_trials(deepcopy=False)[number]


def _verdicts(judged: dict[str, Any]) -> dict[str, str]:
    return {claim["claim"]: claim["verdict"] for claim in judged["claims"]}


def _open(optuna: Any, directory: Path, settings: dict[str, Any]) -> Any:
    from ._tune import _open as open_study

    try:
        return open_study(optuna, directory, ["maximize"], None, settings)
    except ScenarioError as error:
        raise ScenarioError(str(error).replace("tuning", "search"), place="out") from None


class _Command:
    """The command `anabranch reproduce`, whose results are JSON."""

    def __init__(
        self, paper: str, scale: str, only: Sequence[str], claims: str | os.PathLike[str] | None, threads: int | None
    ) -> None:
        self.words = ["reproduce", paper, "--format", "json"]
        if only:
            self.words += ["--only", ",".join(only)]
        if claims is not None:
            self.words += ["--claims", os.fspath(claims)]
        self.scale, self.threads = scale, threads

    def judge(
        self, directory: Path, setting: dict[str, str], choices: dict[str, dict[str, list[str]]], seed: int
    ) -> dict[str, Any]:
        """Runs what a setting lacks and judges every claim."""
        words = ["--scale", self.scale, "--seed", str(seed), "--out", str(directory / "store"), "--progress", "never"]
        for key, choice in setting.items():
            words += [word for change in choices[key][choice] for word in ("--set", change)]
        if self.threads is not None:
            words += ["--threads", str(self.threads)]
        return self.run(words)

    def run(self, words: list[str]) -> dict[str, Any]:
        ran = subprocess.run(
            [sys.executable, "-m", "anabranch", *self.words, *words], capture_output=True, text=True, check=False
        )
        if ran.returncode == 2:
            raise ScenarioError(ran.stderr.strip().removeprefix("error: "), place="paper")
        if ran.returncode == 130:
            raise KeyboardInterrupt
        if ran.returncode not in (0, 3) or not ran.stdout.strip():
            raise BrokenError(ran.stderr.strip() or f"anabranch reproduce ended with exit code {ran.returncode}")
        found: dict[str, Any] = json.loads(ran.stdout)
        return found
