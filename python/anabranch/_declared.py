"""Classes of the tables of a scenario, as the simulator declares them in its JSON Schema."""

from __future__ import annotations

import json
import keyword
from typing import Any, NamedTuple

from . import _native

Schema = dict[str, Any]


class Declared(NamedTuple):
    """Class of a table."""

    name: str
    text: str
    table: str
    kind: str | None
    keys: dict[str, str]
    """Keys by the names of the attributes."""
    values: dict[str, Schema]
    """Schemas by the names of the attributes."""
    nested: dict[str, str]
    """Classes of tables within it, by the names of the attributes."""


def read() -> tuple[list[Declared], dict[str, list[str]]]:
    """Returns the classes, and the names of pairs and sides of load balancers."""
    top: Schema = json.loads(_native.schema())["properties"]
    classes: list[Declared] = []

    def add(name: str, schema: Schema, text: str, table: str, kind: str | None = None, nested: dict[str, str] | None = None) -> str:
        there: Schema = {key: value for key, value in schema["properties"].items() if key != "kind" or kind is None}
        keys = {_attribute(key): key for key in there}
        inner = {_attribute(key): value for key, value in (nested or {}).items() if key in there}
        text = text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
        classes.append(Declared(name, text, table, kind, keys, {_attribute(key): value for key, value in there.items()}, inner))
        return name

    def tables(schema: Schema) -> Schema:
        return {key: value for key, value in schema["properties"].items() if value.get("type") == "object"}

    add("LinkOverride", top["topology"]["anyOf"][0]["properties"]["link"]["items"], "Another rate or delay of some links.", "topology.link")
    kinds = [("topology", one, {"link": "LinkOverride"}) for one in top["topology"]["anyOf"]]
    for table, one, nested in kinds + [("workload", one, {}) for one in top["workload"]["items"]["anyOf"]]:
        kind = one["properties"]["kind"]
        word = kind["enum"][0]
        name = f"{table.capitalize()}File" if word == "file" else _class(word)
        add(name, one, kind.get("description", ""), table, word, nested)

    fabric = top["fabric"]
    rules = {
        key: add(_class(key) + "Marking", rule, f"The marking rule `{key}`.", f"fabric.{key}") for key, rule in tables(fabric).items()
    }
    add("Fabric", fabric, fabric["description"], "fabric", nested=rules)
    for key, name in [("servers", "Servers"), ("measure", "Measure"), ("run", "RunOptions"), ("compare", "CompareOptions"), ("wire", "Wire")]:
        add(name, top[key], top[key]["description"], key)
    add("Fault", top["fault"]["items"], top["fault"]["description"], "fault")

    for one in top["transport"]["anyOf"]:
        word = one["properties"]["kind"]["enum"][0]
        nested = {key: add(_class(key), value, value["description"], f"transport.{key}") for key, value in tables(one).items()}
        add(_class(word), one, f"The transport `{word}`.", "transport", word, nested)

    balancer = top["load_balancer"]
    nested = {
        key: add(_class(key), value, value["description"], f"load_balancer.{key}", key) for key, value in tables(balancer).items()
    }
    text = "A pair of schemes by name, or both sides, with the parameters of any."
    add("LoadBalancer", balancer, text, "load_balancer", nested=nested)

    sides = balancer["properties"]
    names = {
        "ALIASES": list(sides["scheme"]["anyOf"][0]["enum"]),
        "HOST_SCHEMES": list(sides["host"]["enum"]),
        "SWITCH_SCHEMES": list(sides["switch"]["enum"]),
    }
    assert len({one.name for one in classes}) == len(classes), "two classes of one name"
    return classes, names


def document(schema: Schema) -> str:
    """Returns the meaning of a key with its default."""
    text = str(schema.get("description", "")).rstrip()
    return f"{text} Default: {json.dumps(schema['default'], ensure_ascii=False)}." if "default" in schema else text


def _class(word: str) -> str:
    return "".join(part.capitalize() for part in word.replace("_", "-").split("-"))


def _attribute(key: str) -> str:
    name = key.replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name
