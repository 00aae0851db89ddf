"""
The parts of a scenario: a class for every kind of topology, workload, transport and scheme, made from the simulator's declarations.
`parts.pyi` has their types.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ._declared import document, read
from ._part import Part


def _made() -> dict[str, Any]:
    classes, names = read()
    made: dict[str, Any] = {}
    for one in classes:
        texts = [f"{name}: {document(schema)}" for name, schema in one.values.items()]
        made[one.name] = type(one.name, (Part,), {
            **dict.fromkeys(one.keys),
            "__module__": __name__,
            "__doc__": "\n\n".join([one.text, *texts]),
            "_table": one.table,
            "_kind": one.kind,
            "_keys": one.keys,
            "_nested": one.nested,
        })  # fmt: skip
    for union, table in [("TopologyKind", "topology"), ("WorkloadKind", "workload"), ("TransportKind", "transport")]:
        names[union] = reduce(or_, (made[one.name] for one in classes if one.table == table))
    return {**made, **names, "__all__": sorted(made)}


globals().update(_made())
