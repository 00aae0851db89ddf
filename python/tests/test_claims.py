"""Joint search of claims: seeds apart for search and judgement, ours first, and a budget of a few trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anabranch as ab
import pytest
from anabranch import _claims

from conftest import wants

pytestmark = wants("optuna")

CLAIMS = """
[[study]]
id = "tiny"
scenario = "tiny"
schemes = ["ecmp", "prime"]
seeds = 3

[[claim]]
id = "ahead"
section = "1"
says = "PRIME is ahead of ECMP."
study = "tiny"
metric = "fct_mean"
kind = "change"
a = "prime"
b = "ecmp"
published = "lower"
ours = ["load_balancer.prime.p_ecn"]

[[claim]]
id = "impossible"
section = "1"
says = "PRIME takes no time."
study = "tiny"
metric = "fct_mean"
kind = "value"
a = "prime"
published = { at_most = 0.001 }
ours = ["load_balancer.prime.p_ecn"]
"""
OPEN = """
[[open]]
key = "load_balancer.prime.p_ecn"
values = [2, 40]
why = "a test"
"""


def folder(path: Path, text: str) -> Path:
    (path / "claims" / "prime").mkdir(parents=True)
    (path / "claims" / "prime" / "one.toml").write_text(text)
    return path / "claims"


CHOICES = {"a.x": ["1", "2", "3"], "b.y": ["1", "2"]}
"""Twelve settings: of either key, ours is a further choice."""


class Program:
    """Replaces the program: claim `high` is reproduced with `a.x=3`, `never` under no setting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, choices: dict[str, list[str]] = CHOICES) -> None:
        self.choices = choices
        self.ran: list[tuple[str, ...]] = []
        """Settings of the search, in order."""
        self.interrupted_after: int | None = None
        self.refused: set[str] = set()
        monkeypatch.setattr(_claims._Command, "run", lambda command, words: self.run(words))

    def run(self, words: list[str]) -> dict[str, Any]:
        if words == ["--list"]:
            claims = [{"claim": name, "says": "", "paper": "prime"} for name in ("high", "never")]
            return {"claims": claims, "open": [{"key": key, "values": of} for key, of in self.choices.items()], "readings": []}
        setting = tuple(change for flag, change in zip(words, words[1:], strict=False) if flag == "--set")
        if "--dry-run" not in words and "100001" in words:
            if len(self.ran) == self.interrupted_after:
                self.interrupted_after = None
                raise KeyboardInterrupt
            self.ran.append(setting)
        if self.refused.intersection(setting or ("ours",)):
            raise ab.ScenarioError(f"{setting} is refused", place="paper")
        high = "reproduced" if "a.x=3" in setting else "missed"
        return {"claims": [{"claim": "high", "verdict": high}, {"claim": "never", "verdict": "missed"}]}


def optuna_storage(directory: Path) -> Any:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(directory / "journal.log")))


def optuna_trials(directory: Path) -> list[Any]:
    import optuna

    return optuna.load_study(study_name="anabranch", storage=optuna_storage(directory)).get_trials()


def test_trials_are_different_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, {"a.x": ["1", "3"]})
    # Three trials of one key with three choices: all of them, regardless of what the sampler proposes.
    for seed in range(1, 6):
        program.ran.clear()
        found = ab.search_claims("prime", trials=3, sampler_seed=seed, out=tmp_path / str(seed))
        assert found.trials[0].setting == {}
        assert {trial.setting.get("a.x") for trial in found.trials} == {None, "1", "3"}
        assert [trial.number for trial in found.trials] == [0, 1, 2]
        assert len(program.ran) == 3, "repeated proposals are not run"
        assert found.settings_tried == 2
        assert found.setting == {"a.x": "3"}
        assert found.unreached == ["never"]


def test_the_search_ends_when_all_settings_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    found = ab.search_claims("prime", trials=500, out=tmp_path / "search")
    assert len(found.trials) == len({tuple(sorted(trial.setting.items())) for trial in found.trials}) == 12
    assert len(program.ran) == len(set(program.ran)) == 12


def test_a_sampler_that_repeats_itself_gives_way_to_random_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    class Stubborn(optuna.samplers.RandomSampler):
        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return param_distribution.choices[0]

    program = Program(monkeypatch)
    given: dict[str, Any] = {"trials": 4, "sampler": lambda seed: Stubborn(seed=seed)}
    found = ab.search_claims("prime", **given, out=tmp_path / "search")
    assert len(found.trials) == len(set(program.ran)) == 4
    assert len(optuna_trials(tmp_path / "search")) <= 1 + 3 * (_claims.MAX_REPEATS + 1), "the repeated proposals are bounded"
    # The draws do not depend on interruptions.
    again = Program(monkeypatch)
    for after in (2, 3):
        again.interrupted_after = after
        with pytest.raises(KeyboardInterrupt):
            ab.search_claims("prime", **given, out=tmp_path / "again")
    assert ab.search_claims("prime", **given, out=tmp_path / "again").trials == found.trials
    assert again.ran == program.ran
    other = ab.search_claims("prime", **given, sampler_seed=2, out=tmp_path / "other")
    assert other.trials != found.trials, "they depend on the seed of the sampler"


def test_an_interrupted_search_continues_as_if_it_were_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch)
    whole = ab.search_claims("prime", trials=10, out=tmp_path / "whole")
    parts = Program(monkeypatch)
    for after in (0, 1, 4, 8):
        parts.interrupted_after = after
        with pytest.raises(KeyboardInterrupt):
            ab.search_claims("prime", trials=10, out=tmp_path / "parts")
    assert len(ab.search_claims("prime", trials=9, out=tmp_path / "parts").trials) == 9
    assert ab.search_claims("prime", trials=10, out=tmp_path / "parts").trials == whole.trials
    assert parts.ran == program.ran


def test_repeated_settings_of_an_old_journal_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier versions counted every proposal: for example ours three times."""
    import optuna

    program = Program(monkeypatch)
    ab.search_claims("prime", trials=1, out=tmp_path / "search")
    study = optuna.load_study(study_name="anabranch", storage=optuna_storage(tmp_path / "search"))
    for _ in range(2):
        study.enqueue_trial({key: "ours" for key in CHOICES})
        trial = study.ask()
        for key, of in CHOICES.items():
            trial.suggest_categorical(key, ["ours", *of])
        trial.set_user_attr("setting", {})
        trial.set_user_attr("verdicts", {"high": "missed", "never": "missed"})
        study.tell(trial, 0.0)
    found = ab.search_claims("prime", trials=3, out=tmp_path / "search")
    assert len({tuple(trial.setting.items()) for trial in found.trials}) == len(program.ran) == 3


def test_settings_with_the_same_changes_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading that sets a key to one of its open values."""
    program = Program(monkeypatch, {"a.x": ["3"]})
    listed = program.run(["--list"])
    listed["readings"] = [{"reading": "three", "set": ["a.x=3"]}]
    run = program.run
    monkeypatch.setattr(program, "run", lambda words: listed if words == ["--list"] else run(words))
    found = ab.search_claims("prime", trials=10, out=tmp_path / "search")
    assert len(found.trials) == len(program.ran) == 2
    assert found.settings_tried == 1


def test_a_refused_setting_reproduces_nothing_and_the_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(monkeypatch, {"a.x": ["1", "2", "3"]})
    program.refused = {"a.x=2"}
    for _ in range(2):
        found = ab.search_claims("prime", trials=4, out=tmp_path / "search")
        refused = [trial for trial in found.trials if trial.refused is not None]
        assert [(trial.setting, trial.reproduced, trial.verdicts) for trial in refused] == [({"a.x": "2"}, 0, {})]
        assert "is refused" in str(refused[0].refused)
        assert len(found.trials) == 4
        assert found.settings_tried == 2, "a refused setting says nothing about claims"
        assert "1 refused" in repr(found)
    reasons = [trial.user_attrs["refused"] for trial in optuna_trials(tmp_path / "search") if "refused" in trial.user_attrs]
    assert set(reasons) == {refused[0].refused}
    # Ours must run, and also explains why another setting does not.
    program.refused = {"ours"}
    with pytest.raises(ab.ScenarioError, match="is refused"):
        ab.search_claims("prime", trials=4, out=tmp_path / "ours")
    program.refused = {"a.x=1", "a.x=2", "a.x=3"}
    ab.search_claims("prime", trials=1, out=tmp_path / "later")
    program.refused |= {"ours"}
    with pytest.raises(ab.ScenarioError, match="is refused"):
        ab.search_claims("prime", trials=2, out=tmp_path / "later")
    program.refused = set()
    assert all(trial.refused is None for trial in ab.search_claims("prime", trials=4, out=tmp_path / "later").trials)


def test_the_program_refuses_a_setting_with_its_reason(tmp_path: Path) -> None:
    claims = folder(tmp_path, CLAIMS + OPEN.replace("load_balancer.prime.p_ecn", "topology.radix").replace("2, 40", "7"))
    found = ab.search_claims("prime", trials=2, claims=claims, out=tmp_path / "search")
    assert [trial.setting for trial in found.trials] == [{}, {"topology.radix": "7"}]
    reason = found.trials[1].refused
    assert reason is not None and reason.endswith("an even number from 2 to 1024 is needed, for example 8")
    assert "×" not in reason


def test_what_was_not_searched_is_not_unreached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Program(monkeypatch)
    found = ab.search_claims("prime", trials=1, out=tmp_path / "search")
    assert [row["reached"] for row in found.polars().to_dicts()] == ["not searched", "not searched"]
    assert "only ours was tried" in repr(found)
    more = ab.search_claims("prime", trials=12, out=tmp_path / "search")
    assert [row["reached"] for row in more.polars().to_dicts()] == ["yes", "no"]


def test_a_search_judges_ours_and_the_best_on_fresh_seeds(tmp_path: Path) -> None:
    claims = folder(tmp_path, CLAIMS + OPEN)
    found = ab.search_claims("prime", trials=3, claims=claims, out=tmp_path / "search")
    assert [trial.number for trial in found.trials] == [0, 1, 2]
    assert found.trials[0].setting == {}, "ours comes first"
    assert set(found.ours) == set(found.best) == {"ahead", "impossible"}
    # No flow takes less than a nanosecond under any setting.
    assert "impossible" in found.unreached
    rows = {row["claim"]: row for row in found.polars().to_dicts()}
    assert rows["impossible"]["reached"] == "no"
    assert rows["impossible"]["settings_tried"] == found.settings_tried <= 2
    # The store has runs of both ranges of seeds.
    manifests = [path.read_text() for path in (tmp_path / "search" / "store" / "runs").glob("*/manifest.json")]
    seeds = {seed for text in manifests for seed in (100_001, 200_001) if f"{seed}" in text}
    assert seeds == {100_001, 200_001}
    again = ab.search_claims("prime", trials=3, claims=claims, out=tmp_path / "search")
    assert [trial.setting for trial in again.trials] == [trial.setting for trial in found.trials]
    assert (again.ours, again.best) == (found.ours, found.best)
    with pytest.raises(ab.ScenarioError, match="another search") as other:
        ab.search_claims("prime", trials=3, claims=claims, out=tmp_path / "search", search_seed=5)
    assert other.value.place == "out"


def test_what_cannot_be_searched_is_refused_with_its_place(tmp_path: Path) -> None:
    claims = folder(tmp_path, CLAIMS)
    with pytest.raises(ab.ScenarioError, match="leave nothing open") as nothing:
        ab.search_claims("prime", trials=1, claims=claims, out=tmp_path / "search")
    assert nothing.value.place == "paper"
    with pytest.raises(ab.ScenarioError, match="expected a whole number, 1 or more") as none:
        ab.search_claims("prime", trials=0, claims=claims)
    assert none.value.place == "trials"
    with pytest.raises(ab.ScenarioError, match="seeds apart"):
        ab.search_claims("prime", trials=1, search_seed=7, judge_seed=7)
    for search_seed in (200_000, 199_002, 201_000):
        with pytest.raises(ab.ScenarioError, match="seeds apart, by at least 1000") as near:
            ab.search_claims("prime", trials=1, claims=claims, search_seed=search_seed)
        assert near.value.place == "judge_seed"
    with pytest.raises(ab.ScenarioError, match="did you mean `prime`"):
        ab.search_claims("prme", trials=1)
    with pytest.raises(ab.ScenarioError, match="no study `nosuch`") as study:
        ab.search_claims("prime", trials=1, only=["nosuch"])
    assert study.value.place == "only"


def test_all_papers_are_refused_with_their_names(tmp_path: Path) -> None:
    claims = folder(tmp_path, CLAIMS + OPEN)
    (claims / "hopper").mkdir()
    (claims / "hopper" / "one.toml").write_text(CLAIMS)
    with pytest.raises(ab.ScenarioError, match="expected one of hopper, prime") as papers:
        ab.search_claims("all", trials=1, claims=claims, out=tmp_path / "search")
    assert papers.value.place == "paper"
    assert not (tmp_path / "search").exists()


def test_a_string_is_no_list_of_names(tmp_path: Path) -> None:
    claims = folder(tmp_path, CLAIMS + OPEN)
    given: Any
    for given in ("motivation", 3, [3]):
        with pytest.raises(ab.ScenarioError, match="expected a list of names of studies") as only:
            ab.search_claims("prime", trials=1, only=given, claims=claims, out=tmp_path / "search")
        assert only.value.place == "only"
        with pytest.raises(ab.ScenarioError, match="expected a list of parameters and readings") as keys:
            ab.search_claims("prime", trials=1, keys=given, claims=claims, out=tmp_path / "search")
        assert keys.value.place == "keys"
    with pytest.raises(ab.ScenarioError, match=r"keys: found an empty list") as none:
        ab.search_claims("prime", trials=1, keys=[], claims=claims, out=tmp_path / "search")
    assert none.value.place == "keys"


def test_out_is_a_directory_and_a_sampler_a_sampler(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file")
    for out in ("file", "file/below"):
        with pytest.raises(ab.ScenarioError) as directory:
            ab.search_claims("prime", trials=1, out=tmp_path / out)
        assert directory.value.place == "out"
        assert str(directory.value).count("(at out)") == 1
    sampler: Any
    for sampler in (lambda seed: None, 3):
        with pytest.raises(ab.ScenarioError) as made:
            ab.search_claims("prime", trials=1, sampler=sampler, out=tmp_path / "search")
        assert made.value.place == "sampler"
    assert not (tmp_path / "search").exists()
