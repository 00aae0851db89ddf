"""Writes TOML, and records the argument of each line."""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from ._errors import ScenarioError


def value(item: Any, place: str = "") -> str:
    """Returns a value as TOML."""
    # Scalars of numpy and similar types.
    if hasattr(item, "item") and not isinstance(item, (str, bytes)):
        item = item.item()
    match item:
        case bool():
            return "true" if item else "false"
        case int():
            # Integers of TOML end at 2^63-1; a larger seed is text.
            return str(item) if item < 2**63 else f'"{item}"'
        case float():
            return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(repr(item), repr(item))
        case str():
            return json.dumps(item, ensure_ascii=False).replace("\x7f", "\\u007f")
        case PathLike():
            return value(fspath(item), place)
        case list() | tuple() | range():
            return "[" + ", ".join(value(one, f"{place}[{i}]") for i, one in enumerate(item)) + "]"
        case dict():
            return "{" + ", ".join(f"{key(name)} = {value(one, place)}" for name, one in item.items()) + "}"
    raise ScenarioError(
        f"found {item!r}, a {type(item).__name__}; values are numbers, text with a unit, true or false, and lists", place=place
    )


def key(name: str) -> str:
    """Returns a key as TOML."""
    plain = name != "" and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if plain else json.dumps(name)


class Writer:
    """Document with the argument of each line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.places: dict[int, str] = {}

    def line(self, text: str, place: str) -> None:
        self.lines.append(text)
        self.places[len(self.lines)] = place

    def table(self, header: str, document: dict[str, Any], place: str) -> None:
        """Writes the table `[header]`, or `[[header]]` if given with brackets."""
        if header:
            self.line(header if header.startswith("[") else f"[{header}]", place)
        name = header.strip("[]")
        inner = {k: v for k, v in document.items() if isinstance(v, dict) or _tables(v)}
        for k, v in document.items():
            if k not in inner:
                self.line(f"{key(k)} = {value(v, f'{place}.{k}' if place else k)}", f"{place}.{k}" if place else k)
        for k, v in inner.items():
            below, where = f"{name}.{key(k)}" if name else key(k), f"{place}.{k}" if place else k
            if isinstance(v, dict):
                self.table(below, v, where)
            else:
                for i, one in enumerate(v):
                    self.table(f"[[{below}]]", one, f"{where}[{i}]")

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def _tables(item: Any) -> bool:
    return isinstance(item, list) and len(item) > 0 and all(isinstance(one, dict) for one in item)
