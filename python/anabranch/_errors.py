"""Exceptions and warnings."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class ScenarioError(ValueError):
    """Invalid scenario or argument; the message states what was found and what is allowed."""

    place: str | None
    """Place: `FILE:LINE:COLUMN`, an option, or the argument."""
    remedy: str | None
    """Remedy."""
    nearest: str | None
    """Nearest valid choice."""

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        column: int | None = None,
        remedy: str | None = None,
        nearest: str | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.source = source
        self.line = line
        self.column = column
        self.remedy = remedy
        self.nearest = nearest
        self.place = place
        if place is None and source is not None:
            in_file = line is not None and not source.startswith("--")
            self.place = f"{source}:{line}:{column}" if in_file else source

    def __str__(self) -> str:
        place = f" (at {self.place})" if self.place else ""
        remedy = f"\n{self.remedy}" if self.remedy else ""
        return f"{self.message}{place}{remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_again, (type(self), self.message, self.__dict__))


def _again(kind: type[ScenarioError], message: str, state: dict[str, object]) -> ScenarioError:
    error = kind(message)
    error.__dict__.update(state)
    return error


class BrokenError(RuntimeError):
    """An invariant of the simulator failed; the message has the command that reproduces it."""


class MissingExtra(ImportError):
    """A library is not installed; the message names the extra that installs it."""


class Warning(UserWarning):  # noqa: A001
    """Something to check before a result is trusted."""


def note(message: str) -> None:
    """Warns before a run starts."""
    warnings.warn(message, Warning, stacklevel=2)


def needs(library: str, extra: str) -> MissingExtra:
    """Returns the error for a missing `library`."""
    return MissingExtra(f"{library} is not installed; pip install 'anabranch[{extra}]' brings it", name=library)


def whole(min_value: int = 1, **given: int | None) -> None:
    """Refuses values other than whole numbers of at min_value `min_value`; None is the default."""
    for name, value in given.items():
        # Whole numbers of numpy are accepted.
        if value is not None and (isinstance(value, bool) or not hasattr(value, "__index__") or value < min_value):
            raise ScenarioError(f"{name}: found {value!r}, expected a whole number, {min_value} or more", place=name)


def results_directory(out: str | os.PathLike[str] | None) -> Path | None:
    """Returns the path of a directory for results; refuses a file."""
    if out is not None and Path(out).is_file():
        raise ScenarioError(f"{os.fspath(out)} is a file, expected a directory", place="out")
    return None if out is None else Path(out)


def one_of(name: str, found: object, allowed: Iterable[str], expected: str) -> ScenarioError:
    """Returns the error for a word that is not allowed."""
    from ._native import nearest

    near = nearest(str(found), list(allowed))
    remedy = f"did you mean `{near}`?" if near else None
    return ScenarioError(f"{name}: found {found!r}, expected {expected}", place=name, nearest=near, remedy=remedy)


# The native module names options of the command line; here they become arguments.
_WORDS = [
    (r"--over KEY=A,B,\.\.\. or (--over )?KEY=A\.\.B:STEP", 'over={KEY: [A, B, ...]} or over={KEY: "A..B:STEP"}'),
    (r"--over ([\w.-]+)=(\S*?)(?=:?(?:\s|$))", r'over={"\1": "\2"}'),
    (r"--out DIR", "out=DIR"),
    (r"--paths\b", "pair"),
    (r"--schemes A,B,\.\.\.", "schemes=[A, B, ...]"),
    (r"--zip", 'mode="zip"'),
    (r"--(replace|again)", r"\1=True"),
    (r"--variant\b", "variants"),
    (r"--set\b", "with_"),
    (r"--(over|schemes|seeds?|baseline|threads|out)\b", r"\1"),
]
# The invalid argument by the beginning or end of the message, where nothing else names it.
_BEGINNINGS = {"no scenario `": "scenario", "unknown name `": "name", "the baseline `": "baseline", "unknown kind `": "kind", "pair:": "pair"}
_ENDINGS = {"make a sweep": "over", "there are no scenarios": "scenario"}
# False in the program of the package.
words_of_python = True


def of_command(message: str, *, text: str | None = None, **attributes: Any) -> ScenarioError:
    """Returns the exception for invalid input found by the native module; `text` is the line of its source."""
    error = ScenarioError(message, **attributes)
    if not words_of_python:
        return error
    error.message = _in_python(message)
    error.args = (error.message,)
    error.remedy = _in_python(error.remedy) if error.remedy else None
    error.place = _argument(error, text or "")
    return error


def _in_python(text: str) -> str:
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def _argument(error: ScenarioError, text: str) -> str | None:
    key = text.partition("=")[0].strip()
    flag, _, name = (error.source or "").partition(" ")
    if flag in ("with_", "--set"):
        return key
    if flag.startswith("--"):
        argument = {"--variant": "variants"}.get(flag, flag[2:])
        inner = name or (key if flag == "--over" else "")
        return f'{argument}["{inner}"]' if inner else argument
    if error.place is not None:
        return error.place
    for begin, argument in _BEGINNINGS.items():
        if error.message.startswith(begin):
            return argument
    for end, argument in _ENDINGS.items():
        if error.message.endswith(end):
            return argument
    named = re.match(r"(over|mode|schemes|seeds?|baseline|threads)[:=]", error.message) or re.search(r"\b(out|over|schemes)=", error.remedy or "")
    return named.group(1) if named else None
