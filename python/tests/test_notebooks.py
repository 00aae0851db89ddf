"""The notebooks of the documentation run, and the outputs stored in them are those of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import wants

pytestmark = wants("nbclient", "ipykernel", "polars", "matplotlib", "optuna")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
MAX_BYTES = 400_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_those_of_a_run(path: Path, tmp_path: Path) -> None:
    import nbformat

    from notebooks import executed, words

    stored = nbformat.read(path, as_version=4)
    nbformat.validate(stored)
    assert words(executed(path, tmp_path)) == words(stored), "python python/notebooks.py stores the outputs"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tables_and_figures_are_stored(path: Path) -> None:
    import nbformat

    outputs = [output for cell in nbformat.read(path, as_version=4).cells for output in cell.get("outputs", [])]
    assert {output.output_type for output in outputs} <= {"stream", "display_data", "execute_result"}, "an error is stored"
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    assert kinds.count("image/png") >= 2
    assert kinds.count("text/html") >= 2, "tables"
    assert path.stat().st_size < MAX_BYTES
    assert "/tmp" not in path.read_text()


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-result", "look-inside", "sweep-and-tune"]
