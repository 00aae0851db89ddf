"""What goes wrong."""

from __future__ import annotations

import warnings


class ScenarioError(ValueError):
    """A mistake in a scenario or an argument: what was found, what is allowed."""

    place: str | None
    """Where: `FILE:LINE:COLUMN`, a flag, or the argument."""
    remedy: str | None
    """What to do about it."""
    nearest: str | None
    """The nearest valid choice."""

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
    """An invariant of the simulator failed, or a simulation stalled: what, and how to see it again."""


class MissingExtra(ImportError):
    """A library that is not installed, and the extra that brings it."""


class Warning(UserWarning):  # noqa: A001
    """Something to check before a result is trusted."""


def note(message: str) -> None:
    """Warns of something to know before a run takes its time."""
    warnings.warn(message, Warning, stacklevel=2)


def needs(library: str, extra: str) -> MissingExtra:
    """What to say where `library` is absent."""
    return MissingExtra(f"{library} is not installed; pip install 'anabranch[{extra}]' brings it", name=library)
