"""Progress of runs, for a callback or a bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from ._errors import ScenarioError


class Progress(NamedTuple):
    """Progress of runs."""

    runs: int
    """Number of runs."""
    runs_done: int
    now_s: float
    """Simulated time of the most advanced run in progress."""
    packet_hops: int
    """Packets sent by ports so far, in the runs in progress."""
    flows_finished: int
    flows: int

    @property
    def share(self) -> float:
        """Share of the work that is done, by runs and flows: 0 to 1."""
        part = self.flows_finished / self.flows if self.flows else 0.0
        return min(1.0, (self.runs_done + part) / self.runs) if self.runs else 1.0


Reporting = bool | Callable[[Progress], object] | None
"""A callback; True for a bar, False for none; None for a bar on a terminal or in a notebook."""


def callback(given: Reporting) -> tuple[Callable[[dict[str, Any]], None] | None, Callable[[], None]]:
    """Returns the callback of the native module, and a function to call at the end."""
    if given is None:
        given = sys.stderr.isatty() or _in_notebook()
    if given is False:
        return None, lambda: None
    if given is True:
        bar = _Bar()
        return (lambda news: bar.show(Progress(**news))), bar.close
    if not callable(given):
        raise ScenarioError(f"progress: found {given!r}, expected a function, True or False", place="progress")
    report = given
    return (lambda news: (report(Progress(**news)), None)[1]), lambda: None


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"


class _Bar:
    """Line that is overwritten; hidden for short work."""

    WIDTH = 24

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.handle: Any = None
        self.written = 0.0
        self.shown = False
        self.notebook = _in_notebook()

    def show(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self.began < 0.5 or now - self.written < 0.1:
            return
        self.written = now
        done = round(self.WIDTH * progress.share)
        left = (now - self.began) * (1 - progress.share) / progress.share if progress.share > 0.01 else None
        words = [f"{progress.runs_done}/{progress.runs} runs"] if progress.runs > 1 else []
        words.append(f"{progress.flows_finished:,}/{progress.flows:,} flows")
        words.append("time left unknown" if left is None else f"{left:.0f} s left")
        line = f"{'█' * done}{'░' * (self.WIDTH - done)} {' | '.join(words)}"
        self.shown = True
        if self.notebook:
            self._show_in_notebook(line)
        else:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()

    def _show_in_notebook(self, line: str) -> None:
        from IPython.display import display

        bundle = {"text/plain": line}
        if self.handle is None:
            self.handle = display(bundle, raw=True, display_id=True)
        else:
            self.handle.update(bundle, raw=True)

    def close(self) -> None:
        if self.shown and not self.notebook:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        elif self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)
