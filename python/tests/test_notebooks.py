"""The notebooks of the documentation run, and are kept without output."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import wants

pytestmark = wants("nbclient", "ipykernel", "polars", "matplotlib", "optuna")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells), "stored output"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-result", "look-inside", "sweep-and-tune"]
