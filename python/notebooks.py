"""Runs the notebooks of the documentation and stores their outputs.

    python python/notebooks.py            # runs all of them and stores what they show
    python python/notebooks.py --check    # exit code 1 if what they show has changed

Figures are stored, but not compared: their bytes differ between versions of matplotlib.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def executed(path: Path, folder: Path) -> Any:
    """Returns the notebook with the outputs of a run in `folder`, without anything that changes from run to run."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    notebook.metadata.language_info = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_progress(output)]
    return notebook


def is_progress(output: Any) -> bool:
    """Returns `True` for what shows how far a call is, empty at its end."""
    return bool(output.get("name") == "stderr" or output.get("data") == {"text/plain": ""})


def words(notebook: Any) -> list[list[str]]:
    """Returns words and numbers of the outputs per cell: how libraries frame tables differs between their versions."""

    def text(output: Any) -> str:
        return str(output.get("text") or output.get("data", {}).get("text/plain", ""))

    texts = ["\n".join(map(text, cell.get("outputs", []))) for cell in notebook.cells]
    return [re.findall(r"[\w.+-]+", text) for text in texts]


def main() -> int:
    stale = []
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = executed(path, Path(folder))
        if "--check" not in sys.argv[1:]:
            nbformat.write(notebook, path)
        elif words(notebook) != words(nbformat.read(path, as_version=4)):
            stale.append(path.name)
    if stale:
        print(f"stale outputs: {', '.join(stale)}; python python/notebooks.py stores them", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
