from __future__ import annotations

import importlib.util
import os

import pytest

import survival


def wants(*libraries: str) -> pytest.MarkDecorator:
    """Skips a test where a library of an extra is not installed."""
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    return skips(f"not installed: {', '.join(missing)}" if missing else None)


def skips(why: str | None) -> pytest.MarkDecorator:
    """Skips a test if there is a reason, except in continuous integration."""
    return pytest.mark.skipif(why is not None and "ANABRANCH_TEST_ALL" not in os.environ, reason=str(why))


@pytest.fixture(scope="session")
def of_the_command(tmp_path_factory: pytest.TempPathFactory) -> survival.Fingerprints:
    """Fingerprints of the sweep by `anabranch run`, computed once."""
    return survival.of_the_command(tmp_path_factory.mktemp("command"))
