"""Writes `docs/reference/python.md` from the signatures and docstrings of the package.

    python python/reference.py            # rewrites it
    python python/reference.py --check    # exit code 1 if it is stale
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "anabranch"
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
CHAPTERS = {
    "Scenarios": [("_scenario", ["Scenario"])],
    "Runs and comparisons": [("_result", ["run", "load", "compare", "Run", "Comparison"])],
    "Summaries": [("_summary", ["Summary", "FlowSummary", "GroupSummary", "Distribution", "FlowCounts", "Counters", "Conservation", "Balance", "Queues", "ScaleUp"])],
    "Tables": [("_table", ["Table", "Column"])],
    "Sweeps": [("_sweep", ["sweep", "Sweep"]), ("_slurm", ["slurm"])],
    "Tuning": [("_tune", ["tune", "Range", "Tuning", "Trial", "Gain"])],
    "Schemes": [("_scheme", ["scheme", "Scheme", "parameter"])],
    "Agents": [("_agent", ["Env", "live", "Live", "LiveConnection"])],
    "Figures": [
        ("plot", ["slowdown_by_size", "cdf", "links", "queues", "compare", "curves", "heatmap", "trials", "Figure"]),
    ],
    "Catalogue": [("_catalogue", ["list_", "explain", "topology", "Entry", "Explanation", "Part", "Parameter"])],
    "Progress": [("_progress", ["Progress"])],
    "Errors": [("_errors", ["ScenarioError", "BrokenError", "MissingExtra", "Warning"])],
}
HEAD = """# The Python package, name by name

Written by `python/reference.py`; do not edit. Guides: [Use Python](../how-to/python.md), [sweeps](../how-to/sweeps.md#from-python),
[tuning](../how-to/tuning.md). `ab` is `anabranch`.
"""


def paragraph(node: ast.AST) -> str:
    text = ast.get_docstring(node) if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def signature(name: str, function: ast.FunctionDef) -> str:
    """Returns a signature with types, without `self`."""
    arguments = ast.parse(ast.unparse(function.args).join(["def f(", "): ..."])).body[0]
    assert isinstance(arguments, ast.FunctionDef)
    given = arguments.args
    for positional in (given.posonlyargs, given.args):
        if positional and positional[0].arg in ("self", "cls"):
            del positional[0]
            break
    # `a: int=1` becomes `a: int = 1`.
    words = [re.sub(r"(:.*)=([^=]*)$", r"\1 = \2", word.strip()) for word in split(ast.unparse(given))]
    result = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
    line = f"{name}({', '.join(words)}){result}"
    if len(line) > 110:
        line = f"{name}(\n" + "".join(f"    {word},\n" for word in words) + f"){result}"
    return line


def fenced(text: str) -> str:
    return f"```text\n{text}\n```" if "\n" in text else f"`{text}`"


def split(arguments: str) -> list[str]:
    """Splits at commas outside brackets and strings."""
    parts, depth, quote = [""], 0, ""
    for letter in arguments:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "[({":
            depth += 1
        elif letter in "])}":
            depth -= 1
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part for part in parts if part.strip()]


def fields(body: list[ast.stmt]) -> list[tuple[str, str, str]]:
    """Returns name, type and meaning of attributes."""
    found = []
    for statement, after in zip(body, [*body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if not name.startswith("_"):
                type_ = ast.unparse(kind)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]) if not name.startswith("_"):
                type_ = ""
            case _:
                continue
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                meaning = " ".join(text.split())
            case _:
                meaning = ""
        if type_ or meaning:
            found.append((name, type_, meaning))
    return found


def rows(table: list[tuple[str, str, str]]) -> str:
    """Returns a list of the attributes; those that their names explain come last, by their types."""
    text, plain = "", dict[str, list[str]]()
    for name, kind, meaning in table:
        if meaning:
            text += f"- `{name}`{f' (`{kind}`)' if kind else ''}: {meaning}\n"
        else:
            plain.setdefault(kind, []).append(f"`{name}`")
    text += "".join(f"- {', '.join(names)}{f' (`{kind}`)' if kind else ''}\n" for kind, names in plain.items())
    return text + "\n"


def of_class(name: str, node: ast.ClassDef) -> str:
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    maker = next((one for one in functions if one.name == "__init__"), None)
    bases = [base for base in map(ast.unparse, node.bases) if not base.startswith("_") and base != "NamedTuple"]
    text = f"### {name}\n\n" + (f"A `{bases[0]}`. " if bases else "") + paragraph(node) + "\n\n"
    # The others are made by functions.
    if maker is not None and name == "ab.Scenario":
        text += fenced(signature(name, maker)) + "\n\n"
    table = fields(node.body) + (fields(maker.body) if maker is not None else [])
    methods = ""
    for one in functions:
        if one.name.startswith("_"):
            continue
        if any(isinstance(mark, ast.Name) and mark.id == "property" for mark in one.decorator_list):
            table.append((one.name, ast.unparse(one.returns) if one.returns else "", paragraph(one)))
        else:
            methods += f"{fenced(signature('.' + one.name, one))}\n\n{paragraph(one)}\n\n"
    return text + (rows(table) if table else "") + methods


def page() -> str:
    text = HEAD
    exported = exports()
    for chapter, modules in CHAPTERS.items():
        text += f"\n## {chapter}\n\n"
        for module, names in modules:
            tree = ast.parse((PACKAGE / f"{module}.py").read_text())
            there = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
            for name in names:
                node = there[name]
                full = f"ab.plot.{name}" if module == "plot" else name.rstrip("_")
                full = f"ab.{full}" if full in exported else full
                if isinstance(node, ast.ClassDef):
                    text += of_class(full, node)
                else:
                    text += f"### {full}\n\n{fenced(signature(full, node))}\n\n{paragraph(node)}\n\n"
        if chapter == "Scenarios":
            text += parts()
    return text.rstrip() + "\n"


def exports() -> set[str]:
    """Returns the public names of the package."""
    for node in ast.parse((PACKAGE / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    raise ValueError("no __all__")


def parts() -> str:
    """Lists the classes of `parts.pyi`; their arguments are the keys of keys.md."""
    text = "### Parts\n\nTheir arguments are the keys of [keys.md](keys.md), with the words of `anabranch explain` as documentation "
    text += "(`help(ab.FatTree)`); `.replace(...)` gives the same with other values. There are "
    found = [node for node in ast.parse((PACKAGE / "parts.pyi").read_text()).body if isinstance(node, ast.ClassDef)]
    return text + ", ".join(f"`ab.{node.name}`" for node in found if not node.name.startswith("_")) + ".\n\n"


def main() -> int:
    wanted = page()
    if "--check" in sys.argv[1:]:
        fresh = PAGE.exists() and PAGE.read_text() == wanted
        if not fresh:
            print(f"{PAGE} is stale: python python/reference.py")
        return 0 if fresh else 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
