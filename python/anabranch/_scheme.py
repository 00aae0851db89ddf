"""Host schemes in Python."""

from __future__ import annotations

import hashlib
import inspect
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from . import _native
from ._errors import ScenarioError, one_of

CALLBACKS = (
    "open",
    "close",
    "select",
    "on_ack",
    "on_loss",
    "on_timeout",
    "on_signal",
    "on_paths_changed",
    "on_rates_changed",
    "on_ports_changed",
    "poll_probe",
    "probe_at",
    "on_probe_reply",
)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a scheme; the scheme's objects have its value."""

    default: Any
    meaning: str
    source: str
    unit: str | None
    low: float | None
    high: float | None
    words: tuple[str, ...]

    def _kind(self) -> str:
        kinds = {bool: "bool", int: "int", float: "float"}
        return self.unit or kinds.get(type(self.default), "words")


def parameter(
    default: bool | float | str,
    meaning: str,
    *,
    source: str,
    unit: Literal["time", "bytes", "rate"] | None = None,
    low: float | None = None,
    high: float | None = None,
    words: Sequence[str] = (),
) -> Any:
    """
    Declares a parameter in the body of a `scheme`. `default` is a number from `low` to `high`, one of `words`, or with a `unit` text
    such as "10us": the scheme gets whole picoseconds, bytes or bits per second. `source` is the section of a paper, or "ours".
    """
    return Parameter(default, meaning, source, unit, low, high, tuple(words))


class Scheme:
    """
    Base of the classes that `scheme` registers: one object per host. Methods and their order are those of `HostScheme` in Rust; times
    are whole picoseconds. `select` returns a tag or a `Decision`.
    """

    _key: tuple[int, int]

    def random(self, purpose: str, flow: int) -> _native.Random:
        """Returns random numbers of this host for a purpose and the key of a flow: the same ones in every run with a seed."""
        return _native.Random(self._key, purpose, flow)

    def select(self, now: int, slot: int, packet: _native.Packet) -> int | _native.Decision:
        """Selects the path of the next packet of the flow in `slot`."""
        raise NotImplementedError


T = TypeVar("T", bound=type[Scheme])


def scheme(
    name: str,
    *,
    source: str = "ours",
    tags: Literal["entropy", "multi-part"] = "entropy",
    probe_bytes: int | None = None,
    keeps_path: bool = False,
    reads: Sequence[Literal["selective", "rates"]] = (),
) -> Callable[[T], T]:
    """
    Registers a class as the host scheme `name` of this process, in place of one before. Runs with it take one thread. It is for
    prototypes: a warning after each run has the time that Python took.
    """
    if tags not in ("entropy", "multi-part"):
        raise one_of("tags", tags, ("entropy", "multi-part"), '"entropy" or "multi-part"')
    for word in reads:
        if word not in ("selective", "rates"):
            raise one_of("reads", word, ("selective", "rates"), '"selective" or "rates"')

    def register(cls: T) -> T:
        if not issubclass(cls, Scheme):
            raise ScenarioError(f"scheme `{name}`: {cls.__name__} is no subclass of Scheme", place=cls.__qualname__)
        for method in vars(cls):
            if method.startswith("on_") and method not in CALLBACKS:
                raise one_of(f"scheme `{name}`: method", method, CALLBACKS, "a callback, " + ", ".join(CALLBACKS))
        methods = [method for method in CALLBACKS if getattr(cls, method, None) is not getattr(Scheme, method, None)]
        if "select" not in methods:
            raise ScenarioError(f"scheme `{name}`: {cls.__name__} has no method `select`", place=cls.__qualname__)
        if "poll_probe" in methods and probe_bytes is None:
            raise ScenarioError(f"scheme `{name}`: `poll_probe` needs the payload of a probe; give probe_bytes", place="probe_bytes")
        declared = {key: value for key in dir(cls) if isinstance(value := getattr(cls, key), Parameter)}
        rows = [_row(name, key, of) for key, of in declared.items()]
        digest = _digest(cls)
        meaning = "Digest of the class: runs of another text are others. Set by the program."
        rows.append(("code", meaning, "ours", "words", digest, None, [digest]))
        summary, _, description = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")
        texts = (" ".join(summary.split()).rstrip("."), source, " ".join(description.split()))
        _native.register_scheme(
            cls, name, texts, rows, methods, tags, probe_bytes, keeps_path, ("selective" in reads, "rates" in reads)
        )
        return cls

    return register


def _row(name: str, key: str, of: Parameter) -> tuple[Any, ...]:
    place = f"scheme `{name}`: parameter `{key}`"
    if of.unit not in (None, "time", "bytes", "rate"):
        raise one_of(f"{place}: unit", of.unit, ("time", "bytes", "rate"), '"time", "bytes" or "rate"')
    if of._kind() == "words" and not of.words:
        raise ScenarioError(f"{place}: found {of.default!r} without `words` or `unit`; expected one of them", place=key)
    if (of.low is None) != (of.high is None):
        raise ScenarioError(f"{place}: found one end of its range; expected `low` and `high`, or neither", place=key)
    numbers = None if of.low is None or of.high is None else (float(of.low), float(of.high))
    return (key, of.meaning, of.source, of._kind(), of.default, numbers, list(of.words))


def _digest(cls: type) -> str:
    """Returns a digest of the text of a class and its bases."""
    texts = []
    for base in cls.__mro__:
        if base in (Scheme, object):
            continue
        try:
            texts.append(inspect.getsource(base))
        except (OSError, TypeError):
            code = (getattr(value, "__code__", None) for value in vars(base).values())
            texts += [re.sub("0x[0-9a-f]+", "", repr((one.co_code, one.co_consts))) for one in code if one]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def raised(name: str, method: str, error: BaseException) -> ScenarioError:
    """Returns the exception of a run whose scheme raised `error`."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else None
    what = traceback.format_exception_only(error)[-1].strip()
    made = ScenarioError(f"scheme `{name}`: {method}: {what}", place=at)
    made.__cause__ = error
    return made
