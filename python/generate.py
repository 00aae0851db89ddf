"""Writes `anabranch/parts.pyi`: the types of the classes of scenarios, for editors and type checkers.

    python python/generate.py            # rewrites it
    python python/generate.py --check    # exit code 1 if it is stale

The classes themselves are made at import (`anabranch/parts.py`), with the same names and keys (`anabranch/_declared.py`).
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

from anabranch._declared import Declared, Schema, document, read

FILE = Path(__file__).parent / "anabranch" / "parts.pyi"
HEAD = '''"""The parts of a scenario. Written by `python/generate.py` from the simulator's declarations; do not edit."""

from collections.abc import Sequence
from typing import Literal

from ._part import Part

'''


def annotation(schema: Schema) -> str:
    if "anyOf" in schema:
        kinds = list(dict.fromkeys(annotation(one) for one in schema["anyOf"]))
        # A free text includes literals.
        return " | ".join(kind for kind in kinds if "str" not in kinds or not kind.startswith("Literal["))
    if "enum" in schema:
        return f"Literal[{', '.join(json.dumps(word) for word in schema['enum'])}]"
    match schema.get("type"):
        case "string":
            return "str"
        case "integer":
            return "int"
        case "number":
            return "float"
        case "boolean":
            return "bool"
        case "array":
            inner = annotation(schema["items"])
            # A str is a sequence of str too.
            return f"list[{inner}]" if inner in ("int", "float", "bool") else f"Sequence[{inner}]"
        case _:
            return "object"


def brief(schema: Schema) -> str:
    """Returns the meaning in one sentence, and the default; `help` and `explain` have the rest."""
    meaning, *_ = schema.get("description", "").split(". ")
    default = document(schema).rpartition(" Default: ")
    text = f"{meaning.rstrip('.')}. Default: {default[2]}" if "default" in schema else f"{meaning.rstrip('.')}."
    return text.replace("\\", "\\\\").replace('"""', "'''") + (" " if text.endswith('"') else "")


def lines(one: Declared) -> dict[str, str]:
    """Returns the attributes of a class with their text."""
    out = {}
    for name, schema in one.values.items():
        types = annotation(schema)
        if name in one.nested:
            types = f"Sequence[{one.nested[name]}]" if schema.get("type") == "array" else one.nested[name]
        out[name] = f"    {name}: {types} | None = None\n" + (f'    """{brief(schema)}"""\n' if "description" in schema else "")
    return out


def stub() -> str:
    classes, names = read()
    text = HEAD
    for name in names:
        text += f"{name}: list[str]\n"
    for table in ("topology", "workload", "transport"):
        members = " | ".join(one.name for one in classes if one.table == table)
        text += f"{table.capitalize()}Kind = {members}\n"
    text += "\n__all__ = [\n" + textwrap.fill(", ".join(f'"{name}"' for name in sorted(one.name for one in classes)), 110,
                                              initial_indent="    ", subsequent_indent="    ") + ",\n]\n"
    # Attributes of all classes of a table are those of a base, which only the stub has.
    shared: dict[str, dict[str, str]] = {}
    for table in ("topology", "workload"):
        first, *others = [lines(one) for one in classes if one.table == table]
        shared[table] = {name: line for name, line in first.items() if all(other.get(name) == line for other in others)}
        text += f"\nclass _{table.capitalize()}(Part):\n" + "".join(shared[table].values())
    for one in classes:
        own = [line for name, line in lines(one).items() if name not in shared.get(one.table, {})]
        base = f"_{one.table.capitalize()}" if one.table in shared else "Part"
        text += f'\nclass {one.name}({base}):\n    """{one.text}"""\n\n' + "".join(own)
    return text


def main() -> int:
    wanted = stub()
    if "--check" in sys.argv[1:]:
        fresh = FILE.exists() and FILE.read_text() == wanted
        if not fresh:
            print(f"{FILE} is stale: python python/generate.py")
        return 0 if fresh else 1
    FILE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
