#!/usr/bin/env python3
"""Writes the prose of the repository into a folder, for the linters that `.ci/prose` calls.

    prose_text.py FOLDER FILE...

`FOLDER/pages` gets pages and the help of the command, `FOLDER/comments` comments of Rust and Python. A file keeps its path and its
line numbers; its name gets `.md` appended. Code and generated text are removed. `FOLDER/textlint.json` is the configuration
of textlint, with the idioms of `idioms.toml` as terms.
"""

import ast
import io
import json
import pathlib
import re
import sys
import tokenize
import tomllib

IDIOMS = tomllib.loads(pathlib.Path("crates/dev/testkit/tests/idioms.toml").read_text())
ALLOWED = [re.compile(allowed["pattern"], re.IGNORECASE) for allowed in IDIOMS["allowed"]]
# Its blocks are prose: the help of the command.
HELP = "docs/reference/commands.md"
# Written by programs from declarations in Rust, whose comments are linted. The changelog keeps what was released.
SKIPPED = re.compile(r"CHANGELOG\.md|docs/SUMMARY\.md|docs/schemes/(?!README).*|docs/reference/(keys|keys-expert|python)\.md|python/anabranch/parts/.*")
FENCE = re.compile(r"\s*(```|~~~)")
GENERATED = re.compile(r"(<!-- reproduce: .*?-->)(.*?)(<!-- end)", re.DOTALL)


def without_code(lines: list[str], help: bool = False) -> list[str]:
    """Blanks blocks of code, and replaces code in a line by a sign. In `help` blocks are prose and options code."""
    prose, block = [], False
    for line in lines:
        if FENCE.match(line):
            block = not block
            prose.append("")
        elif block:
            # A description follows the name of its command.
            prose.append(re.sub(r"^[a-z-]+(?=  )|--?[a-z][-a-z]*( <[^>]+>)?", "`…`", line.strip()) if help else "")
        else:
            prose.append(line)
    # Code may continue on the next line, but not in the next paragraph.
    return re.sub(r"(`+)((?:(?!\1|\n\n).)+)\1", lambda span: "`…`" + "\n" * span[2].count("\n"), "\n".join(prose), flags=re.DOTALL).split("\n")


def page(text: str, name: str) -> list[str]:
    """Returns the lines of a page. A heading ends as a sentence does, so that no word is repeated after it."""
    text = GENERATED.sub(lambda block: block[1] + "\n" * block[2].count("\n") + block[3], text)
    prose = without_code(text.splitlines(), name == HELP)
    prose = ["" if line.startswith("<!--") else line for line in prose]
    # Equal numbers in a row are data, not a repeated word.
    prose = [re.sub(r"(\d) (?=\d)", r"\1, ", line) for line in prose]
    return [f"{line}." if re.match(r"#+ .*\w$", line) else line for line in prose]


def rust(text: str, _name: str) -> list[str]:
    """Returns the comments that begin a line."""
    prose, block = [], []
    for line in [*text.splitlines(), ""]:
        if found := re.fullmatch(r"\s*//[/!]* ?(.*)", line):
            block.append(found[1].strip())
        else:
            prose += [*(without_code(block) if block else []), ""]
            block = []
    return prose


def python(text: str, _name: str) -> list[str]:
    """Returns comments and docstrings, those of attributes too."""
    lines = text.splitlines()
    prose = [""] * len(lines)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first, last = node.lineno - 1, node.end_lineno
            # Lines further in are examples.
            example = " " * (node.col_offset + 4)
            block = ["" if line.startswith(example) or ">>>" in line else line.strip().strip('"') for line in lines[first:last]]
            prose[first:last] = without_code(block)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            prose[token.start[0] - 1] = without_code([token.string.lstrip("#! ")])[0]
    return prose


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    readers = {".md": ("pages", page), ".rs": ("comments", rust), ".py": ("comments", python)}
    for name in sys.argv[2:]:
        if SKIPPED.fullmatch(name):
            continue
        kind, reader = readers[pathlib.Path(name).suffix]
        prose = "\n".join(reader(pathlib.Path(name).read_text(), name))
        for allowed in ALLOWED:
            prose = allowed.sub("`…`", prose)
        target = folder / kind / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(prose.rstrip() + "\n")
    # A pattern with `(?<` in front gets no word boundaries from the rule.
    terms = [[f"(?<!\\w)(?:{idiom['pattern']})", idiom["instead"]] for idiom in IDIOMS["idiom"]]
    # The default terms are brands and words of the web.
    rules = {"terminology": {"terms": terms, "defaultTerms": False, "skip": []}}
    (folder / "textlint.json").write_text(json.dumps({"rules": rules}, indent=2))


main()
