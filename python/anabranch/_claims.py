"""Joint search of what a paper leaves open: one setting that carries most of its claims, judged on fresh seeds."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _native
from ._errors import BrokenError, ScenarioError, needs, one_of, results_directory, whole
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
NOT_SEARCHED = "not searched"
SEEDS_APART = 1000
"""Least distance between the first seeds of search and judgement: no study has as many seeds."""
MAX_REPEATS = 10
"""Consecutive proposals of known settings after which untried ones are drawn at random."""

Choices = dict[str, dict[str, list[str]]]
"""Changes by choice, by key or reading."""


@dataclass(frozen=True)
class ClaimTrial:
    """A setting of the open parameters, and its verdicts on the seeds of the search."""

    number: int
    """Number of the trial, from 0; proposals of the sampler that repeat a setting have none."""
    setting: dict[str, str]
    """Choices other than ours, by key or reading."""
    reproduced: int
    """Number of claims that are reproduced."""
    verdicts: dict[str, str]
    """Verdict by claim; empty if the setting is refused."""
    refused: str | None = None
    """Reason why the program refuses the setting; None if it was run."""


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
        """Number of different settings that were tried, ours and refused ones excluded."""
        return sum(bool(trial.setting) and trial.refused is None for trial in self.trials)

    @property
    def unreached(self) -> list[str]:
        """Claims that no setting that was tried reproduces, ours included, on the seeds of the search or on fresh ones."""
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
            ("settings_tried", "integer", "settings tried, ours and refused ones excluded"),
            (
                "reached", "text",
                "yes; no: no setting that was tried reproduced it; not searched: ours does not reproduce it and no other was "
                "tried; out of reach: a proven bound rules it out",
            ),
        ]
        says = {claim["claim"]: claim["says"] for claim in self.claims}
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(name for name, *_ in meanings)
        unreached = set(self.unreached)
        for name, ours in self.ours.items():
            reached = "yes"
            if name in unreached:
                reached = "no" if self.settings_tried else NOT_SEARCHED
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

        refused = sum(trial.refused is not None for trial in self.trials)
        return (
            f"<ClaimSearch: {self.paper}, {len(self.trials)} trials, {self.settings_tried} settings besides ours"
            f"{f', {refused} refused' if refused else ''}; best {self.setting}; "
            f"on fresh seeds {count(self.best)} of {len(self.best)} claims reproduced, {count(self.ours)} under ours; "
            f"{len(self.unreached)} reached by no setting{'' if self.settings_tried else ' (only ours was tried)'}>"
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
    Searches one setting of all parameters and readings that `paper` leaves open under which most of its claims are reproduced. The
    choices are those of `[[open]]` and `[[reading]]` in the claim files; `keys` names those to search (default: all). `only`
    restricts the claims to those of these studies.

    `trials` is the number of different settings to try; the first one is ours. A proposal of the sampler that repeats a setting
    is not run and does not count. After 10 such proposals in a row an untried setting is drawn at random. The search ends early
    once all settings are tried. A setting that the program refuses counts as a trial without reproduced claims; its reason is
    in `ClaimTrial.refused`.

    Trials run on seeds from `search_seed` on. The best setting and ours are judged on fresh seeds, from `judge_seed` on, so that
    luck in the search does not count; the two are at least 1000 apart. Runs and Optuna's journal are in `out` (else
    `results/PAPER-search-HASH`); repeating an interrupted call continues it.

    `sampler` makes Optuna's sampler from a seed (default: the tree-structured Parzen estimator).
    """
    try:
        import optuna
    except ImportError:
        raise needs("optuna", "tune") from None
    whole(trials=trials, threads=threads, search_seed=search_seed, judge_seed=judge_seed)
    if scale not in ("quick", "full"):
        raise one_of("scale", scale, ("quick", "full"), "a scale")
    if abs(search_seed - judge_seed) < SEEDS_APART:
        raise ScenarioError(
            f"search_seed is {search_seed} and judge_seed {judge_seed}: the verdicts need seeds apart, by at least {SEEDS_APART}",
            place="judge_seed",
        )  # fmt: skip
    only = _names("only", only, "names of studies")
    if keys is not None:
        keys = _names("keys", keys, "parameters and readings")
        if not keys:
            raise ScenarioError(
                "keys: found an empty list, expected at least one parameter or reading", place="keys",
                remedy="without keys, all are searched",
            )  # fmt: skip
    make = _maker(optuna, sampler)
    results_directory(out)
    command = _Command(paper, scale, only, claims, threads)
    listed = command.run(["--list"])
    if paper == "all":
        papers = ", ".join(dict.fromkeys(claim["paper"] for claim in listed["claims"]))
        raise ScenarioError(f"paper: found 'all', expected one of {papers}", place="paper", remedy="search each paper on its own")
    choices = _choices(listed, paper, keys)
    settings = {
        "paper": paper, "scale": scale, "only": sorted(only), "choices": choices, "search_seed": search_seed,
        "sampler_seed": sampler_seed, "claims": str(claims) if claims is not None else None,
    }  # fmt: skip
    identity = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
    directory = Path(out) if out is not None else Path("results") / f"{paper}-search-{identity[:8]}"
    study = _open(optuna, directory, settings)
    search = _Search(optuna, study, make, sampler_seed, choices, command, directory, search_seed)
    found = search.trials(trials)
    # Ours comes first, so that another setting must be better.
    best = max(found, key=lambda trial: (trial.reproduced, -trial.number))
    judged = [_verdicts(command.judge(directory, trial.setting, choices, judge_seed)) for trial in (found[0], best)]
    return ClaimSearch(paper, directory, found, listed["claims"], judged[0], judged[1], best.number)


def _names(name: str, given: Iterable[str], of: str) -> list[str]:
    """Returns a list of names; refuses a string, which is a sequence of letters."""
    if isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        names = list(given)
        if all(isinstance(one, str) for one in names):
            return names
    remedy = f"write {name}=[{given!r}]" if isinstance(given, str) else None
    raise ScenarioError(f"{name}: found {given!r}, expected a list of {of}", place=name, remedy=remedy)


def _maker(
    optuna: Any, sampler: Callable[[int], optuna.samplers.BaseSampler] | None
) -> Callable[[int], optuna.samplers.BaseSampler]:
    """Returns the function that makes a sampler from a seed; refuses one that makes none."""
    make = sampler if sampler is not None else lambda seed: optuna.samplers.TPESampler(seed=seed)

    def checked(seed: int) -> Any:
        made = make(seed)
        if not isinstance(made, optuna.samplers.BaseSampler):
            raise ScenarioError(f"sampler: the function returned {made!r}, expected a sampler of Optuna", place="sampler")
        return made

    if not callable(make):
        raise ScenarioError(
            f"sampler: found {make!r}, expected a function that makes a sampler from a seed", place="sampler",
            remedy="for example sampler=lambda seed: optuna.samplers.RandomSampler(seed=seed)",
        )  # fmt: skip
    checked(0)
    return checked


def _choices(listed: dict[str, Any], paper: str, keys: Sequence[str] | None) -> Choices:
    """Returns the choices of each key or reading: settings by the name of the choice."""
    choices: Choices = {}
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


def _changes(setting: dict[str, str], choices: Choices) -> dict[str, str]:
    """Returns the values that a setting changes, by key; of two for the same key the last one counts, as on the command line."""
    words = [change.partition("=") for key in choices for change in choices[key][setting.get(key, OURS)]]
    return {key: value for key, _, value in words}


class _Search:
    """Trials of a search, in Optuna's journal."""

    def __init__(
        self, optuna: Any, study: Any, make: Callable[[int], Any], sampler_seed: int, choices: Choices, command: _Command,
        directory: Path, seed: int,
    ) -> None:  # fmt: skip
        self.optuna, self.study, self.make, self.sampler_seed = optuna, study, make, sampler_seed
        self.choices, self.command, self.directory, self.seed = choices, command, directory, seed
        # Trials of Optuna by the changes of their settings: of settings with the same changes, the first one.
        self.tried: dict[frozenset[tuple[str, str]], Any] = {}
        # Numbers of the combinations of choices that were proposed.
        self.proposed: set[int] = set()
        self.combinations = math.prod(len(of) for of in choices.values())

    def trials(self, wanted: int) -> list[ClaimTrial]:
        """
        Returns the trials of `wanted` different settings, or of all there are. Trials of Optuna that repeat a setting are
        skipped, also in journals of earlier versions, which count them.
        """
        done = {one.number: one for one in self.study.get_trials(deepcopy=False)}
        found: list[ClaimTrial] = []
        number = repeats = 0
        while len(found) < wanted and len(self.proposed) < self.combinations:
            there = done.get(number)
            if there is None or not there.state.is_finished():
                there = self._try(number, there, at_random=repeats >= MAX_REPEATS)
            number += 1
            known = there.user_attrs
            self.proposed.add(self._combination(known["setting"]))
            changes = frozenset(_changes(known["setting"], self.choices).items())
            if changes in self.tried:
                repeats += 1
                continue
            repeats = 0
            self.tried[changes] = there
            verdicts, refused = known["verdicts"], known.get("refused")
            found.append(ClaimTrial(len(found), known["setting"], int(there.values[0]), verdicts, refused))
        return found

    def _try(self, number: int, there: Any, *, at_random: bool) -> Any:
        """Runs a trial and reports it; a known setting is reported with the known result."""
        optuna, study = self.optuna, self.study
        study.sampler = self.make(_mixed(self.sampler_seed, number, ""))
        if there is None and (number == 0 or at_random):
            study.enqueue_trial({key: OURS for key in self.choices} if number == 0 else self._untried(number))
        if there is None or there.state == optuna.trial.TrialState.WAITING:
            trial = study.ask()
        else:
            trial = optuna.trial.Trial(study, there._trial_id)
        setting = {}
        for key, of in self.choices.items():
            study.sampler = self.make(_mixed(self.sampler_seed, number, key))
            choice = trial.suggest_categorical(key, list(of))
            if choice != OURS:
                setting[key] = choice
        before = self.tried.get(frozenset(_changes(setting, self.choices).items()))
        if before is not None:
            verdicts, refused = before.user_attrs["verdicts"], before.user_attrs.get("refused")
        else:
            verdicts, refused = self._judge(setting)
        trial.set_user_attr("setting", setting)
        trial.set_user_attr("verdicts", verdicts)
        if refused is not None:
            trial.set_user_attr("refused", refused)
        study.tell(trial, float(sum(verdict == SETTLED[0] for verdict in verdicts.values())))
        return study.get_trials(deepcopy=False)[number]

    def _judge(self, setting: dict[str, str]) -> tuple[dict[str, str], str | None]:
        """Returns verdicts, or the reason why the program refuses the setting."""
        try:
            return _verdicts(self.command.judge(self.directory, setting, self.choices, self.seed)), None
        except ScenarioError as error:
            if not setting:
                raise
            # If ours is refused as well, the cause is not the setting.
            self.command.judge(self.directory, {}, self.choices, self.seed, dry_run=True)
            return {}, error.message

    def _combination(self, setting: dict[str, str]) -> int:
        number = 0
        for key, of in self.choices.items():
            number = number * len(of) + list(of).index(setting.get(key, OURS))
        return number

    def _untried(self, number: int) -> dict[str, str]:
        """Returns a combination of choices that was not proposed, at random; the same one whenever the trial is repeated."""
        drawn = _mixed(self.sampler_seed, number, "untried") % (self.combinations - len(self.proposed))
        for proposed in sorted(self.proposed):
            drawn += proposed <= drawn
        chosen = {}
        for key, of in reversed(self.choices.items()):
            drawn, choice = divmod(drawn, len(of))
            chosen[key] = list(of)[choice]
        return chosen


def _verdicts(judged: dict[str, Any]) -> dict[str, str]:
    return {claim["claim"]: claim["verdict"] for claim in judged["claims"]}


def _open(optuna: Any, directory: Path, settings: dict[str, Any]) -> Any:
    from ._tune import _open as open_study

    try:
        return open_study(optuna, directory, ["maximize"], None, settings)
    except ScenarioError as error:
        message = error.message.replace("another tuning", "another search").replace("tuning needs", "a search needs")
        raise ScenarioError(message, place="out", remedy=error.remedy) from None


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
        self, directory: Path, setting: dict[str, str], choices: Choices, seed: int, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Runs what a setting lacks and judges every claim; with `dry_run`, only checks the setting."""
        words = ["--scale", self.scale, "--seed", str(seed), "--out", str(directory / "store"), "--progress", "never"]
        words += ["--dry-run"] if dry_run else []
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
            raise _refusal(ran.stderr)
        if ran.returncode == 130:
            raise KeyboardInterrupt
        if ran.returncode not in (0, 3) or not ran.stdout.strip():
            raise BrokenError(ran.stderr.strip() or f"anabranch reproduce ended with exit code {ran.returncode}")
        found: dict[str, Any] = json.loads(ran.stdout)
        return found


def _refusal(text: str) -> ScenarioError:
    """Returns the exception for a command that was refused: its message without the drawing of the place, and the remedy."""
    lines = [line.strip() for line in text.splitlines()]
    message = next((line.removeprefix("× ") for line in lines if line.startswith("× ")), text.strip().removeprefix("error: "))
    remedy = next((line.removeprefix("help: ") for line in lines if line.startswith("help: ")), None)
    return ScenarioError(message, place="only" if message.startswith("no study ") else "paper", remedy=remedy)
