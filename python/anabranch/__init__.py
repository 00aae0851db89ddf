"""
Anabranch from Python: a packet-level simulator of load balancing in AI-cluster networks.

    import anabranch as ab
    run = ab.run("first-run")
    run.flows.polars()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import parts
from ._catalogue import Entry, Explanation, explain, list_ as list, topology
from ._errors import BrokenError, MissingExtra, ScenarioError, Warning
from ._native import __version__
from ._progress import Progress
from ._result import Comparison, Run, compare, load, run
from ._scenario import Scenario
from ._summary import Summary
from ._sweep import Sweep, sweep
from ._table import Column, Table
from .parts import *

__all__ = [
    "BrokenError",
    "Column",
    "Comparison",
    "Entry",
    "Explanation",
    "Gain",
    "MissingExtra",
    "Progress",
    "Range",
    "Run",
    "Scenario",
    "ScenarioError",
    "Summary",
    "Sweep",
    "Table",
    "Trial",
    "Tuning",
    "Warning",
    "__version__",
    "compare",
    "explain",
    "list",
    "load",
    "parts",
    "plot",
    "run",
    "slurm",
    "sweep",
    "topology",
    "tune",
]
__all__ += parts.__all__

if TYPE_CHECKING:
    from . import plot as plot
    from ._slurm import slurm as slurm
    from ._tune import Gain as Gain, Range as Range, Trial as Trial, Tuning as Tuning, tune as tune
else:
    # What few need is loaded when it is asked for.
    _LATER = {name: "_tune" for name in ("Gain", "Range", "Trial", "Tuning", "tune")} | {"slurm": "_slurm", "plot": "plot"}

    def __getattr__(name):
        if name not in _LATER:
            raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
        module = importlib.import_module(f"anabranch.{_LATER[name]}")
        return module if name == "plot" else getattr(module, name)
