"""What the tests share."""

from __future__ import annotations

import importlib.util
import os

import pytest


def wants(*libraries: str) -> pytest.MarkDecorator:
    """Skips, visibly, where a library of an extra is not installed."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    return skips(f"not installed: {', '.join(missing)}" if missing else None)


def skips(why: str | None) -> pytest.MarkDecorator:
    """Skips, visibly, where there is a reason to; not in continuous integration, where all must be tested."""
    return pytest.mark.skipif(why is not None and "ANABRANCH_TEST_ALL" not in os.environ, reason=str(why))
