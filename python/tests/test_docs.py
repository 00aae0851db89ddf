"""Executes every Python block of the documentation, page by page."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import wants

ROOT = Path(__file__).parents[2]
PAGES = {
    "docs/how-to/allreduce-groups.md": ["polars"],
    "docs/how-to/figures.md": ["matplotlib"],
    "docs/how-to/inspect.md": ["pandas"],
    "docs/how-to/python.md": ["polars", "pyarrow", "matplotlib"],
    "docs/reference/results.md": ["pandas", "polars", "duckdb"],
    "docs/how-to/sweeps.md": ["polars", "matplotlib", "distributed"],
    "docs/tutorials/own-scheme.md": [],
    "docs/tutorials/python-study.md": ["polars", "matplotlib"],
    "docs/how-to/tuning.md": ["polars", "optuna", "matplotlib"],
    "docs/how-to/agents.md": ["gymnasium"],
}

# Pages whose blocks need several ranks, with the test that makes the same calls.
RANKS = {"docs/how-to/torch.md": "test_torch.py"}

# Commands whose results the blocks of a page read.
BEFORE = {
    "docs/how-to/inspect.md": ["""anabranch run tiny --set 'measure.trace_flows=[3, "first:2"]' --out results/traced"""],
    "docs/reference/results.md": ["anabranch run tiny --out results/tiny", "anabranch compare tiny --schemes ecmp,prime --out results/compare"],
}


@pytest.mark.parametrize("page", [pytest.param(page, marks=wants(*libraries)) for page, libraries in PAGES.items()])
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "matplotlib" in PAGES[page]:
        import matplotlib

        matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text()
    for command in BEFORE.get(page, []):
        subprocess.run([sys.executable, "-m", *shlex.split(command)], check=True, capture_output=True)
    blocks = [(match.start(), match.group(1)) for match in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S)]
    assert blocks, "a page without blocks stands here for nothing"
    names: dict[str, object] = {"__name__": "page"}
    for start, block in blocks:
        # Errors name the line of the page.
        line = text[:start].count("\n") + 1
        exec(compile("\n" * line + block, str(ROOT / page), "exec"), names)


def test_no_page_is_forgotten() -> None:
    with_blocks = [path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if "```python\n" in path.read_text()]
    assert sorted(with_blocks) == sorted([*PAGES, *RANKS])
