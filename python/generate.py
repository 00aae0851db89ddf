"""Writes `anabranch/parts/`: the classes of scenarios, from the JSON Schema of scenarios.

    python python/generate.py            # rewrites them
    python python/generate.py --check    # exit code 1 if they are stale
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "anabranch" / "parts"
HEAD = '''"""{title} Written by `python/generate.py` from the simulator's declarations; do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from .._part import Part
'''
Schema = dict[str, Any]


def class_name(word: str) -> str:
    return "".join(part.capitalize() for part in word.replace("_", "-").split("-"))


def attribute(key: str) -> str:
    name = key.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def annotation(schema: Schema) -> str:
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(annotation(one) for one in schema["anyOf"]))
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


def simple(kind: str) -> str:
    """Drops literals beside a free text, which includes them."""
    parts = split(kind)
    if "str" in parts:
        parts = [part for part in parts if not part.startswith("Literal[")]
    return " | ".join(parts)


def split(kind: str) -> list[str]:
    parts, depth, part = [], 0, ""
    for character in kind:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "|" and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return [*parts, part.strip()]


def wrapped(text: str, indent: str) -> str:
    text = text.replace("\\", "\\\\")
    return textwrap.fill(text, 110, initial_indent=indent, subsequent_indent=indent, break_long_words=False)


def document(text: str, indent: str) -> str:
    if text.endswith('"'):
        text += " "
    one = f'{indent}"""{text}"""'.replace("\\", "\\\\")
    if len(one) <= 110:
        return one + "\n"
    return f'{indent}"""\n{wrapped(text, indent)}\n{indent}"""\n'


def part(name: str, schema: Schema, text: str, *, table: str, kind: str | None = None,
         nested: dict[str, str] | None = None) -> str:
    """Returns a class; `nested` has the classes of tables within it."""
    nested = nested or {}
    properties: Schema = {key: value for key, value in schema["properties"].items() if key != "kind" or kind is None}
    out = f"\n\nclass {name}(Part):\n" + document(text, "    ") + "\n"
    out += f'    _table: ClassVar[str] = {json.dumps(table)}\n'
    if kind is not None:
        out += f'    _kind: ClassVar[str | None] = {json.dumps(kind)}\n'
    keys = {attribute(key): key for key in properties}
    out += "    _keys: ClassVar[dict[str, str]] = {\n"
    out += "".join(f"        {json.dumps(name)}: {json.dumps(key)},\n" for name, key in keys.items()) + "    }\n"
    inner = {attribute(key): value for key, value in nested.items() if key in properties}
    if inner:
        lines = "".join(f"        {json.dumps(key)}: {json.dumps(value)},\n" for key, value in inner.items())
        out += f"    _nested: ClassVar[dict[str, str]] = {{\n{lines}    }}\n"
    for key, value in properties.items():
        if key in nested:
            types = f"Sequence[{nested[key]}]" if value.get("type") == "array" else nested[key]
        else:
            types = simple(annotation(value))
        line = f"    {attribute(key)}: {types} | None = None\n"
        if len(line) > 118 and "Literal[" in line:
            line = line.replace("Literal[", "Literal[\n        ").replace("] | None", ",\n    ] | None").replace('", "', '",\n        "')
        out += "\n" + line
        described = value.get("description", "")
        if "default" in value:
            described = f"{described.rstrip()} Default: {json.dumps(value['default'], ensure_ascii=False)}."
        out += document(described, "    ")
    return out


def file(title: str, classes: list[str]) -> str:
    text = HEAD.format(title=title) + "".join(classes)
    used = [name for name in ("ClassVar", "Literal") if name + "[" in text]
    text = text.replace("from typing import ClassVar, Literal", f"from typing import {', '.join(used)}")
    if "Sequence[" not in text:
        text = text.replace("from collections.abc import Sequence\n", "")
    return text


def files(schema: Schema) -> dict[str, str]:
    top: Schema = schema["properties"]
    names: dict[str, list[str]] = {}
    out: dict[str, str] = {}

    def add(name: str, title: str, classes: list[tuple[str, str]]) -> None:
        names[name] = [class_ for class_, _ in classes]
        out[f"{name}.py"] = file(title, [text for _, text in classes])

    def kind(schema: Schema, suffix: str) -> tuple[str, str, str]:
        word = schema["properties"]["kind"]["enum"][0]
        name = class_name(word) + (suffix if word == "file" else "")
        text = schema["properties"]["kind"].get("description", "")
        return word, name, text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")

    link = top["topology"]["anyOf"][0]["properties"]["link"]["items"]
    classes = [("LinkOverride", part("LinkOverride", link, "Another rate or delay of some links.", table="topology.link"))]
    for one in top["topology"]["anyOf"]:
        word, name, text = kind(one, "Topology")
        name = "TopologyFile" if word == "file" else name
        classes.append((name, part(name, one, text, table="topology", kind=word, nested={"link": "LinkOverride"})))
    add("topology", "Topologies.", classes)

    classes = []
    for one in top["workload"]["items"]["anyOf"]:
        word, name, text = kind(one, "")
        name = "WorkloadFile" if word == "file" else name
        classes.append((name, part(name, one, text, table="workload", kind=word)))
    add("workload", "Workloads.", classes)

    rules = {key: value for key, value in top["fabric"]["properties"].items() if value.get("type") == "object"}
    nested = {key: class_name(key) + "Marking" for key in rules}
    classes = [(nested[key], part(nested[key], rule, f"The marking rule `{key}`.", table=f"fabric.{key}")) for key, rule in rules.items()]
    classes.append(("Fabric", part("Fabric", top["fabric"], top["fabric"]["description"], table="fabric", nested=nested)))
    for key, name in [("servers", "Servers"), ("measure", "Measure"), ("run", "RunOptions"), ("compare", "CompareOptions"), ("wire", "Wire")]:
        classes.append((name, part(name, top[key], top[key]["description"], table=key)))
    classes.append(("Fault", part("Fault", top["fault"]["items"], top["fault"]["description"], table="fault")))
    add("fabric", "The fabric, faults, measurements, and when a run ends.", classes)

    controls: list[tuple[str, str]] = []
    transports: list[tuple[str, str]] = []
    for one in top["transport"]["anyOf"]:
        word = one["properties"]["kind"]["enum"][0]
        nested = {}
        for key, value in one["properties"].items():
            if value.get("type") == "object":
                nested[key] = class_name(key)
                controls.append((nested[key], part(nested[key], value, value["description"], table=f"transport.{key}")))
        name = class_name(word)
        transports.append((name, part(name, one, f"The transport `{word}`.", table="transport", kind=word, nested=nested)))
    add("transport", "Transports and congestion controls.", [*controls, *transports])

    balancers: Schema = top["load_balancer"]["properties"]
    nested, classes = {}, []
    for key, value in balancers.items():
        if value.get("type") == "object":
            nested[key] = class_name(key)
            text = value["description"]
            text = text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
            classes.append((nested[key], part(nested[key], value, text, table=f"load_balancer.{key}", kind=key)))
    text = "A pair of schemes by name, or both sides, with the parameters of any."
    classes.append(("LoadBalancer", part("LoadBalancer", top["load_balancer"], text, table="load_balancer", nested=nested)))
    add("load_balancer", "Load balancers.", classes)

    def words(schema: Schema) -> list[str]:
        return list(schema["enum"])

    aliases = words(balancers["scheme"]["anyOf"][0])
    text = '"""The parts of a scenario. Written by `python/generate.py`; do not edit."""\n\n'
    for name, members in names.items():
        members = sorted(members)
        text += f"from .{name} import (\n" + "".join(f"    {member},\n" for member in members) + ")\n"
    text += f"\nALIASES = {aliases!r}\n\"\"\"Pairs of schemes by name.\"\"\"\n".replace("'", '"')
    text += f"HOST_SCHEMES = {words(balancers['host'])!r}\n".replace("'", '"')
    text += f"SWITCH_SCHEMES = {words(balancers['switch'])!r}\n".replace("'", '"')
    unions = {"TopologyKind": names["topology"][1:], "WorkloadKind": names["workload"], "TransportKind": [t for t, _ in transports]}
    for union, members in unions.items():
        text += f"{union} = {' | '.join(members)}\n"
    everything = sorted({member for members in names.values() for member in members})
    text += "\n__all__ = [\n" + "".join(f'    "{member}",\n' for member in everything) + "]\n"
    out["__init__.py"] = text
    assert len(everything) == sum(map(len, names.values())), "two classes of one name"
    return out


def declared() -> Schema:
    """Returns the schema, from the native module alone: the package may lack the generated classes."""
    spec = importlib.util.find_spec("anabranch")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [path for folder in folders for path in Path(folder).glob("_native*.so")]
    loader = importlib.machinery.ExtensionFileLoader("_native", str(found[0]))
    native = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("_native", loader, origin=str(found[0])))
    loader.exec_module(native)
    schema: Schema = json.loads(native.schema())
    return schema


def main() -> int:
    wanted = files(declared())
    stale = [name for name, text in wanted.items() if not (HERE / name).exists() or (HERE / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{HERE / name} is stale: python python/generate.py" for name in stale))
        return 1 if stale else 0
    HERE.mkdir(exist_ok=True)
    for name in stale:
        (HERE / name).write_text(wanted[name])
    return 0


if __name__ == "__main__":
    sys.exit(main())
