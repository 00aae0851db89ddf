"""Base class of the parts of a scenario."""

from __future__ import annotations

from typing import Any, ClassVar, Self, dataclass_transform

from . import _native
from ._errors import ScenarioError


@dataclass_transform(kw_only_default=True)
class Part:
    """Table of a scenario. Omitted keys have the simulator's defaults, which `anabranch.explain` lists."""

    _table: ClassVar[str] = ""
    _kind: ClassVar[str | None] = None
    _keys: ClassVar[dict[str, str]] = {}
    _nested: ClassVar[dict[str, str]] = {}

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            self._check_name(name)
            if value is not None:
                object.__setattr__(self, name, value)

    def _check_name(self, name: str) -> None:
        if name in self._keys:
            return
        nearest = _native.nearest(name, list(self._keys))
        raise ScenarioError(
            f"{type(self).__name__} has no argument `{name}`; there are {', '.join(self._keys) or 'none'}",
            place=f"{self._table}.{name}",
            remedy=f"did you mean `{nearest}`?" if nearest else None,
            nearest=nearest,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} does not change; `.replace({name}=...)` gives another one")

    def replace(self, **values: Any) -> Self:
        """Returns a copy with other values; None removes a value."""
        return type(self)(**{**self.__dict__, **values})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({given})"

    def _document(self) -> dict[str, Any]:
        """Returns the TOML document: keys to values, parts as dictionaries."""
        own: dict[str, Any] = {}
        if self._kind is not None and "." not in self._table:
            own["kind"] = self._kind
        for name, value in self.__dict__.items():
            own[self._keys[name]] = _plain(value)
        return own

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> Self:
        """Creates a part from a TOML document."""
        from . import parts

        names = {key: name for name, key in cls._keys.items()}
        values: dict[str, Any] = {}
        for key, value in document.items():
            if key == "kind" and key not in names:
                continue
            name = names.get(key, key)
            if inner := cls._nested.get(name):
                kind: type[Part] = getattr(parts, inner)
                value = [kind._from_document(one) for one in value] if isinstance(value, list) else kind._from_document(value)
            values[name] = value
        return cls(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value._document()
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value
