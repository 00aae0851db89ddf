"""A notebook with its stored outputs as a page of the book."""

import json
import re


def fenced(text, language):
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall(r"`{3,}", text))])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shown(output):
    """Returns an output as Markdown: a figure or a table where it is one, else its text."""
    data = output.get("data", {})
    if "image/png" in data:
        return f'<img alt="Figure" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    if "text/html" in data:
        # A blank line would end the block of HTML; the book has a style of its own.
        table = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.DOTALL)
        return re.sub(r"\n\s*", " ", table.strip())
    return fenced("".join(output.get("text") or data.get("text/plain", "")), "text")


def page(path):
    """Returns the notebook as Markdown."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else fenced(source, "python"))
        parts += map(shown, cell.get("outputs", []))
    parts.append(f"This page is the notebook [{path.name}]({path.name}).")
    return "\n\n".join(parts) + "\n"
