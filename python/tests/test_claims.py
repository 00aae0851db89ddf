"""Joint search of claims: seeds apart for search and judgement, ours first, and a budget of a few trials."""

from __future__ import annotations

from pathlib import Path

import anabranch as ab
import pytest

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
    with pytest.raises(ab.ScenarioError, match="did you mean `prime`"):
        ab.search_claims("prme", trials=1)
