"""
Anabranch from Python: a packet-level simulator of load balancing in AI-cluster networks.

    import anabranch as ab
    run = ab.run("first-run")
    run.flows.polars()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._catalogue import Entry, Explanation, explain, list_ as list, topology
from ._errors import BrokenError, MissingExtra, ScenarioError, Warning
from ._native import __version__
from ._progress import Progress
from ._result import Comparison, Run, compare, load, run
from ._scenario import Scenario
from ._summary import Summary
from ._sweep import Sweep, sweep
from ._table import Column, Table

__all__ = [
    "BrokenError",
    "Column",
    "Comparison",
    "Decision",
    "Entry",
    "Env",
    "Explanation",
    "Gain",
    "Live",
    "MissingExtra",
    "Progress",
    "Range",
    "Run",
    "Scenario",
    "ScenarioError",
    "Scheme",
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
    "live",
    "load",
    "parameter",
    "parts",
    "plot",
    "run",
    "scheme",
    "slurm",
    "sweep",
    "topology",
    "tune",
]

if TYPE_CHECKING:
    from . import parts as parts, plot as plot
    from ._agent import Env as Env, Live as Live, live as live
    from ._native import Decision as Decision
    from ._scheme import Scheme as Scheme, parameter as parameter, scheme as scheme
    from ._slurm import slurm as slurm
    from ._tune import Gain as Gain, Range as Range, Trial as Trial, Tuning as Tuning, tune as tune
    from .parts import *

    __all__ += parts.__all__
else:
    # Rarely used modules are loaded on first use: the classes of scenarios are half of the package.
    _LATER = {name: "_tune" for name in ("Gain", "Range", "Trial", "Tuning", "tune")} | {"slurm": "_slurm"}
    _LATER |= dict.fromkeys(("Env", "Live", "live"), "_agent")
    _LATER |= dict.fromkeys(("Scheme", "parameter", "scheme"), "_scheme") | {"Decision": "_native"}

    def __getattr__(name):
        if name in ("parts", "plot"):
            return importlib.import_module(f"anabranch.{name}")
        if name in _LATER:
            return getattr(importlib.import_module(f"anabranch.{_LATER[name]}"), name)
        parts = importlib.import_module("anabranch.parts")
        if name not in parts.__all__:
            raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
        return getattr(parts, name)

    def __dir__():
        return sorted({*globals(), *__all__, *importlib.import_module("anabranch.parts").__all__})
