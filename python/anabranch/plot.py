"""
Figures with matplotlib. Each function takes results or frames and, if wanted, the `Axes` to draw into; it gives the figure with the
rows that it shows, and both can be saved.

    figure = ab.plot.cdf({"ecmp": run, "prime": other})
    figure.save("cdf.pdf", "cdf.csv")

`matplotlib.style.use("anabranch.paper")` suits one column of a paper, `"anabranch.slides"` slides.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import ScenarioError, needs
from ._native import line_styles, nearest
from ._native import slowdown_by_size as native_slowdown_by_size
from ._result import Comparison, Run
from ._sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as MatplotlibFigure

    from ._tune import Tuning

Results = Any
"""A Run, a Comparison, a frame or table with the columns of a run's table, several of them in a list, or by name in a dictionary."""


class Figure:
    """Figure with the rows that it shows."""

    def __init__(self, axes: Axes, rows: list[dict[str, Any]]) -> None:
        self.axes = axes
        self.rows = rows
        """A dictionary per point."""

    @property
    def figure(self) -> MatplotlibFigure:
        """Matplotlib figure of the axes."""
        figure = self.axes.get_figure(root=True)
        assert figure is not None
        return figure

    def save(self, *paths: str | os.PathLike[str]) -> None:
        """Saves it in the format of each path's suffix: `.pdf`, `.svg`, `.png`, or its rows as `.csv`."""
        for path in map(Path, paths):
            if path.suffix == ".csv":
                with path.open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(self.rows[0]) if self.rows else [], lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(self.rows)
            elif path.suffix in (".pdf", ".svg", ".png"):
                # A date would make equal figures differ.
                metadata = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}.get(path.suffix)
                self.figure.savefig(path, metadata=metadata)
            else:
                raise ScenarioError(f"{path}: found the ending {path.suffix!r}, expected .pdf, .svg, .png or .csv", place="paths")


def slowdown_by_size(results: Results, *, quantile: float = 0.99, ax: Axes | None = None) -> Figure:
    """
    Plots a quantile of the slowdown over the flow size, in the bins of the report's figure: the mean over seeds, with its 95 %
    confidence interval as a band. A bin is shown where every seed has enough flows for the quantile: 10 for a median, 100 for a
    99th percentile. Flows that did not finish are not among them, and the label of such a result ends in `!`.
    """
    import numpy as np

    if not 0 <= quantile < 1:
        raise ScenarioError(f"quantile: found {quantile}, expected 0 or more and less than 1", place="quantile")
    listed = []
    for label, scheme, seeds in _by_seed(results, "flows", ["size_bytes", "slowdown"], counted=True):
        finished = [~np.isnan(seed["slowdown"]) for seed in seeds]
        kept = [{name: column[known] for name, column in seed.items()} for seed, known in zip(seeds, finished, strict=True)]
        listed.append((label if all(known.all() for known in finished) else f"{label} !", scheme, kept))
    flows = [[(seed["size_bytes"].astype("<u8").tobytes(), seed["slowdown"].astype("<f8").tobytes()) for seed in seeds] for *_, seeds in listed]
    points = native_slowdown_by_size(flows, quantile)
    if all(slowdown is None for of in points for *_, slowdown, _ in of):
        least = max(10, math.ceil(1 / (1 - quantile) - 1e-6))
        found = f"no size has the {least} flows of every seed that the {_percent(quantile)} needs"
        remedy = "run more or longer, or choose a lower quantile; the median, 0.5, needs 10"
        raise ScenarioError(f"quantile: {found}; {remedy}", place="quantile", remedy=remedy)
    axes = _axes(ax)
    rows: list[dict[str, Any]] = []
    for (label, _, seeds), style, of in zip(listed, _styles([scheme for _, scheme, _ in listed]), points, strict=True):
        own: list[dict[str, Any]] = [
            {
                "label": label, "size_from_bytes": low, "size_to_bytes": high, "size_median_bytes": middle, "flows": count,
                "quantile": quantile, "slowdown": slowdown, "ci95_low": interval and interval[0], "ci95_high": interval and interval[1],
                "seeds": len(seeds),
            }
            for (low, high, middle), count, slowdown, interval in of
        ]  # fmt: skip
        rows += own
        shown = [row for row in own if row["slowdown"] is not None]
        axes.plot([row["size_median_bytes"] for row in shown], [row["slowdown"] for row in shown], label=label, **style)
        band = [row for row in shown if row["ci95_low"] is not None]
        at, low, high = ([row[name] for row in band] for name in ("size_median_bytes", "ci95_low", "ci95_high"))
        axes.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel="flow size", ylabel=f"slowdown, {_percent(quantile)}")
    _size_ticks(axes.xaxis)
    _plain_ticks(axes.yaxis)
    _legend(axes)
    return Figure(axes, rows)


def cdf(results: Results, column: str = "slowdown", *, tail: bool = False, ax: Axes | None = None) -> Figure:
    """
    Plots the share of flows at or below each value of a column of `flows`; with `tail`, the share above it, with a logarithmic
    axis. Shares are of all flows that count: a curve ends below 1 where some did not finish, and the legend has their share.
    """
    import numpy as np

    axes, rows = _axes(ax), []
    scale, name = (1e6, f"{column[:-3]} (us)") if column.endswith("_ps") else (1, column)
    for label, style, columns in _labelled(results, "flows", [column], counted=True):
        finished = columns[column][~np.isnan(columns[column])]
        values, counts = np.unique(finished, return_counts=True)
        every = max(len(columns[column]), 1)
        shown = 1.0 - np.cumsum(counts) / every if tail else np.cumsum(counts) / every
        unfinished = 100 * (1 - len(finished) / every)
        axes.step(values / scale, shown, where="post", label=f"{label} ({unfinished:.2g} % unfinished)" if unfinished else label, **style)
        rows += [{"label": label, column: float(v), "share": float(s)} for v, s in zip(values, shown, strict=True)]
    axes.set(xscale="log", xlabel=name.replace("_", " "), ylabel="share of flows above" if tail else "share of flows")
    if tail:
        axes.set_yscale("log")
        _plain_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, 1.02)
    _plain_ticks(axes.xaxis)
    _legend(axes)
    return Figure(axes, rows)


_EVEN_SPLIT = "bytes_over_even_split"


def links(results: Results, column: str | None = None, *, tier: str | None = None, ax: Axes | None = None) -> Figure:
    """
    Plots the sorted values of a column of `links`, which show how evenly load is spread. Links to hosts are excluded unless `tier` names them.

    By default that is the `utilisation` of one result. Several differ in length, and a utilisation is over the length of its own
    run: they are compared by `bytes_over_even_split`, which is 1 where all links of a tier and direction carry the same.
    """
    import numpy as np

    several = _number_of(results) > 1
    column = column or (_EVEN_SPLIT if several else "utilisation")
    own = ["direction", "bytes"] if column == _EVEN_SPLIT else [column]
    listed = list(_by_seed(results, "links", list(dict.fromkeys(["from", "to", "tier", *own]))))
    axes, rows = _axes(ax), []
    for (label, _, seeds), style in zip(listed, _styles([scheme for _, scheme, _ in listed], markers=False), strict=True):
        found = []
        for seed in seeds:
            values = _over_even_split(seed) if column == _EVEN_SPLIT else seed[column].astype(float)
            chosen = seed["tier"] == tier if tier else seed["tier"] != "host"
            found += list(zip(values[chosen], seed["from"][chosen], seed["to"][chosen], strict=True))
        found.sort(key=lambda link: -link[0])
        axes.plot(np.arange(1, len(found) + 1), [value for value, *_ in found], label=label, **style)
        rows += [{"label": label, "rank": rank, "from": a, "to": b, column: float(v)} for rank, (v, a, b) in enumerate(found, 1)]
    name = column.replace("_", " ")
    axes.set(xlabel=f"link, by {name}", ylabel=f"{name}{_of_own_run(column, several)}")
    axes.set_ylim(bottom=0)
    _legend(axes)
    return Figure(axes, rows)


def queues(results: Results, column: str | None = None, *, ax: Axes | None = None) -> Figure:
    """
    Plots the share of switch ports whose queue is at or below each length: by default the 99th percentile over time of one result,
    and the maximum of several, since their percentiles and means are over runs of different lengths.
    """
    import numpy as np

    several = _number_of(results) > 1
    column = column or ("queue_max_bytes" if several else "queue_p99_bytes")
    axes, rows = _axes(ax), []
    for label, style, columns in _labelled(results, "links", ["tier", "direction", column]):
        switch = ~((columns["tier"] == "host") & (columns["direction"] == "up"))
        values = np.sort(columns[column][switch].astype(float))
        share = np.arange(1, len(values) + 1) / max(len(values), 1)
        axes.step(values / 1024, share, where="post", label=label, **style)
        rows += [{"label": label, column: float(v), "share": float(s)} for v, s in zip(values, share, strict=True)]
    name = f"{column.removesuffix('_bytes').replace('_', ' ')} (KiB)"
    axes.set(xlabel=f"{name}{_of_own_run(column, several)}", ylabel="share of switch ports", ylim=(0, 1.02))
    axes.set_xlim(left=0)
    _legend(axes)
    return Figure(axes, rows)


def compare(comparison: Comparison | Any, metric: str | None = None, *, workload: str = "all", ax: Axes | None = None) -> Figure:
    """Plots a metric of a comparison: a bar per load balancer, with its 95 % confidence interval for several seeds."""
    table = comparison.table if isinstance(comparison, Comparison) else comparison
    metric = metric or (comparison.main_metric if isinstance(comparison, Comparison) else "slowdown_p99")
    every = _rows(table, ["workload", "scheme", "metric", "unit", "mean", "ci95_low", "ci95_high"])
    rows = [row for row in every if row["metric"] == metric and row["workload"] == workload and row["mean"] is not None]
    if not rows:
        _no_such("metric", metric, {row["metric"] for row in every})
    axes = _axes(ax)
    for place, (row, style) in enumerate(zip(rows, _styles([str(row["scheme"]) for row in rows]), strict=True)):
        axes.bar(place, row["mean"], width=0.7, color=style["color"])
        if row["ci95_low"] is not None:
            below, above = row["mean"] - row["ci95_low"], row["ci95_high"] - row["mean"]
            axes.errorbar(place, row["mean"], [[below], [above]], color="black", capsize=3, linewidth=1)
    longest = max(len(str(row["scheme"])) for row in rows)
    axes.set_xticks(range(len(rows)), [row["scheme"] for row in rows], rotation=30 if longest * len(rows) > 40 else 0)
    unit = f" ({rows[0]['unit']})" if rows[0]["unit"] else ""
    axes.set(ylabel=f"{metric.replace('_', ' ')}{unit}")
    # A wide interval means uncertainty, not that a metric may be negative.
    if all(row["mean"] >= 0 for row in rows):
        axes.set_ylim(bottom=0)
    axes.grid(visible=False, axis="x")
    return Figure(axes, rows)


def curves(sweep: Sweep | Any, metric: str = "slowdown_p99", *, key: str | None = None, ax: Axes | None = None) -> Figure:
    """
    Plots a metric over a key of a sweep (the first): a line per load balancer and values of the other keys, mean over seeds, with
    its 95 % confidence interval as a band.
    """
    table, (key,) = _swept(sweep, key, 1)
    names = _table(table).column_names
    others = [name for name in names[: names.index("workload")] if name != key]
    every = _rows(table, [key, *others, "workload", "scheme", "metric", "unit", "mean", "ci95_low", "ci95_high"])
    rows = [row for row in every if row["metric"] == metric and row["workload"] == "all" and row["mean"] is not None]
    if not rows:
        _no_such("metric", metric, {row["metric"] for row in every})
    axes = _axes(ax)
    values = list(dict.fromkeys(row[key] for row in rows))
    numbers = _numbers(values)
    places = dict(zip(values, numbers if numbers is not None else range(len(values)), strict=True))
    varied = [other for other in others if len({row[other] for row in rows}) > 1]

    def label(row: dict[str, Any]) -> str:
        return ", ".join([row["scheme"], *(f"{_short(other)} = {row[other]}" for other in varied)])

    drawn = list(dict.fromkeys(map(label, rows)))
    for name, style in zip(drawn, _styles(drawn), strict=True):
        own = sorted((row for row in rows if label(row) == name), key=lambda row: places[row[key]])
        at = [places[row[key]] for row in own]
        axes.plot(at, [row["mean"] for row in own], label=name, **style)
        if all(row["ci95_low"] is not None for row in own):
            low, high = [row["ci95_low"] for row in own], [row["ci95_high"] for row in own]
            axes.fill_between(at, low, high, color=style["color"], alpha=0.2, linewidth=0)
    if numbers is None:
        axes.set_xticks(range(len(values)), values)
    unit = f" ({rows[0]['unit']})" if rows[0]["unit"] else ""
    axes.set(xlabel=_short(key), ylabel=f"{metric.replace('_', ' ')}{unit}")
    _legend(axes)
    return Figure(axes, rows)


def trials(tuning: Tuning, *, ax: Axes | None = None) -> Figure:
    """Plots the objective of every trial in order, with the best so far as a line."""
    better = max if tuning.study.direction.name == "MAXIMIZE" else min
    axes, rows, best = _axes(ax), [], None
    for trial in tuning.trials:
        if trial.values is None:
            continue
        best = trial.values[0] if best is None else better(best, trial.values[0])
        rows.append({"trial": trial.number, "value": trial.values[0], "best": best, **trial.parameters})
    axes.plot([row["trial"] for row in rows], [row["value"] for row in rows], "o", alpha=0.6, label="trial")
    axes.step([row["trial"] for row in rows], [row["best"] for row in rows], where="post", label="best so far")
    axes.set(xlabel="trial", ylabel=tuning.objectives[0].replace("_", " "))
    _legend(axes)
    return Figure(axes, rows)


def heatmap(
    sweep: Sweep | Any, metric: str = "slowdown_p99", *, scheme: str | None = None, keys: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:  # fmt: skip
    """Plots a metric over two keys of a sweep, for one load balancer."""
    table, both = _swept(sweep, list(keys) if keys else None, 2)
    every = _rows(table, [*both, "workload", "scheme", "metric", "unit", "mean"])
    schemes = list(dict.fromkeys(row["scheme"] for row in every))
    scheme = scheme or schemes[0]
    if scheme not in schemes:
        _no_such("scheme", scheme, set(schemes))
    rows = [row for row in every if row["metric"] == metric and row["workload"] == "all" and row["scheme"] == scheme]
    if not rows:
        _no_such("metric", metric, {row["metric"] for row in every})
    down, across = (_sorted(list(dict.fromkeys(row[key] for row in rows))) for key in both)
    cells = [[float("nan")] * len(across) for _ in down]
    for row in rows:
        if row["mean"] is not None:
            cells[down.index(row[both[0]])][across.index(row[both[1]])] = row["mean"]
    axes = _axes(ax)
    image = axes.imshow(cells, origin="lower", aspect="auto")
    axes.set_xticks(range(len(across)), across)
    axes.set_yticks(range(len(down)), down)
    axes.set(xlabel=_short(both[1]), ylabel=_short(both[0]))
    axes.grid(visible=False)
    low, high = image.get_clim()
    for i, line in enumerate(cells):
        for j, value in enumerate(line):
            if value == value:
                bright = high > low and (value - low) / (high - low) > 0.6
                axes.text(j, i, f"{value:.3g}", ha="center", va="center", color="black" if bright else "white")
    unit = f" ({rows[0]['unit']})" if rows[0]["unit"] else ""
    bar = axes.figure.colorbar(image, ax=axes)
    bar.set_label(f"{metric.replace('_', ' ')}{unit}, {scheme}")
    return Figure(axes, [{key: row[key] for key in (*both, "scheme", "metric", "mean")} for row in rows])


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise needs("matplotlib", "plot") from None
    return pyplot.subplots()[1]


def _legend(axes: Axes) -> None:
    """Places the legend beside few lines, and above the axes where it would hide some."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines, figure = len(axes.get_legend_handles_labels()[0]), axes.figure
    if lines > 4 and figure.axes == [axes] and isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        # As wide as the figure; the width of the axes is too narrow.
        figure.legend(loc="outside upper center", ncols=2)
    elif lines > 4:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=2, borderaxespad=0)
    elif lines > 1:
        axes.legend()


def _short(key: str) -> str:
    return key.rsplit(".", 1)[-1].replace("_", " ")


def _percent(quantile: float) -> str:
    return "median" if quantile == 0.5 else f"{100 * quantile:g}th percentile"


def _plain_ticks(axis: Any) -> None:
    """Labels a logarithmic axis `2` and `1000` instead of powers of ten, with numbers between the powers for small ranges."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    low, high = sorted(axis.get_view_interval())
    if low < 1e-4 or high >= 1e5:
        return
    axis.set_major_formatter("{x:g}")
    if high / low < 4:
        axis.set_major_locator(MaxNLocator(5))
        axis.set_minor_locator(NullLocator())
    elif high / low < 100:
        axis.set_minor_locator(LogLocator(subs=(2, 3, 5) if high / low < 15 else (2, 5)))
        axis.set_minor_formatter("{x:g}")


def _size_ticks(axis: Any) -> None:
    """Labels sizes `10 kB` instead of `10^4`."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    def name(bytes: float, _: object) -> str:
        power = min(int(math.log10(max(bytes, 1)) + 1e-9) // 3, 4)
        return f"{bytes / 1000**power:g} {('B', 'kB', 'MB', 'GB', 'TB')[power]}"

    axis.set_major_formatter(FuncFormatter(name))
    axis.set_minor_formatter(NullFormatter())


def _styles(schemes: list[str], *, markers: bool = True) -> list[dict[str, Any]]:
    """Returns colour, dashes and marker of lines: those that the reports give these schemes."""

    def style(colour: str, dash: str, marker: int) -> dict[str, Any]:
        line = {"color": colour, "linestyle": (0, tuple(map(float, dash.split()))) if dash else "-"}
        return {**line, "marker": "os^D"[marker]} if markers else line

    return [style(*found) for found in line_styles(schemes)]


def _over_even_split(links: dict[str, Any]) -> Any:
    """Returns the bytes of each link over the mean of its tier and direction."""
    import numpy as np

    share = np.zeros(len(links["bytes"]))
    groups = list(zip(links["tier"], links["direction"], strict=True))
    for group in set(groups):
        own = np.array([one == group for one in groups])
        carried = links["bytes"][own].astype(float)
        share[own] = carried / carried.mean() if carried.any() else 0.0
    return share


def _of_own_run(column: str, several: bool) -> str:
    """Returns what an axis adds where values of several results are over runs of different lengths."""
    averaged = column == "utilisation" or column.startswith(("queue_mean", "queue_p99"))
    return ", each over its own run" if several and averaged else ""


def _number_of(results: Results) -> int:
    """Returns the number of results by their labels."""
    listed = list(results.values()) if isinstance(results, Mapping) else results if isinstance(results, (list, tuple)) else [results]
    return sum(len({scheme for scheme, _ in one.runs}) if isinstance(one, Comparison) else 1 for one in listed)


def _by_seed(
    results: Results, table: str, columns: list[str], *, counted: bool = False
) -> Iterable[tuple[str, str, list[dict[str, Any]]]]:
    """
    Returns the label of each result, its scheme, and columns per seed as arrays; with `counted` of the measured flows only, where
    NaN is a flow that did not finish.
    """
    if isinstance(results, Mapping):
        listed = [(str(label), one) for label, one in results.items()]
    elif isinstance(results, (list, tuple)):
        listed = [("", one) for one in results]
    else:
        listed = [("", results)]
    if not listed:
        raise ScenarioError("results: found none, expected at least one", place="results")
    for label, one in listed:
        if isinstance(one, Comparison):
            for scheme in dict.fromkeys(scheme for scheme, _ in one.runs):
                parts = [_arrays(run.table(table), columns, counted) for (name, _), run in one.runs.items() if name == scheme]
                yield f"{label} {scheme}".strip(), scheme, parts
        elif isinstance(one, Run):
            scheme = f"{one.summary.scheme}"
            yield label or scheme, scheme, [_arrays(one.table(table), columns, counted)]
        else:
            yield label, label, [_arrays(one, columns, counted)]


def _labelled(
    results: Results, table: str, columns: list[str], *, counted: bool = False
) -> Iterable[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Returns label, style and columns of each result, its seeds pooled."""
    import numpy as np

    listed = list(_by_seed(results, table, columns, counted=counted))
    for (label, _, parts), style in zip(listed, _styles([scheme for _, scheme, _ in listed], markers=False), strict=True):
        yield label, style, {column: np.concatenate([part[column] for part in parts]) for column in columns}


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise needs("pyarrow", "plot") from None
    return pyarrow


def _table(data: Any) -> Any:
    pyarrow = _pyarrow()
    if isinstance(data, pyarrow.Table):
        return data
    if hasattr(data, "__arrow_c_stream__"):
        return pyarrow.table(data)
    kind = type(data).__name__
    raise ScenarioError(f"results: found {kind}, expected a result, a frame or a table", place="results")


def _arrays(data: Any, columns: list[str], counted: bool) -> dict[str, Any]:
    pyarrow = _pyarrow()
    import numpy as np

    table = _table(data)
    for column in columns:
        if column not in table.column_names:
            _no_such("column", column, set(table.column_names))
    if counted and "measured" in table.column_names:
        table = table.filter(table["measured"])
    table = table.select(columns)

    def array(column: str) -> Any:
        cells = table[column].combine_chunks()
        numeric = pyarrow.types.is_integer(cells.type) or pyarrow.types.is_floating(cells.type)
        return cells.to_numpy(zero_copy_only=False) if numeric else np.array(cells.to_pylist(), dtype=object)

    return {column: array(column) for column in columns}


def _rows(data: Any, columns: list[str]) -> list[dict[str, Any]]:
    table = _table(data)
    for column in columns:
        if column not in table.column_names:
            _no_such("column", column, set(table.column_names))
    rows: list[dict[str, Any]] = table.select(columns).to_pylist()
    return rows


def _no_such(what: str, found: str, known: set[str]) -> None:
    near = nearest(found, sorted(known))
    remedy = f"did you mean `{near}`?" if near else None
    raise ScenarioError(f"unknown {what} `{found}`; allowed are {', '.join(sorted(known))}", place=what, nearest=near, remedy=remedy)


def _swept(sweep: Sweep | Any, wanted: str | list[str] | None, number: int) -> tuple[Any, list[str]]:
    """Returns the rows of `sweep.csv` and the keys of the axes."""
    table = sweep.comparison if isinstance(sweep, Sweep) else sweep
    names = _table(table).column_names
    keys = names[: names.index("workload")] if "workload" in names else []
    chosen = [wanted] if isinstance(wanted, str) else wanted or keys[:number]
    for key in chosen:
        if key not in keys:
            _no_such("key", key, set(keys))
    if len(chosen) != number:
        raise ScenarioError(f"keys: expected {number} to draw over; the sweep has {', '.join(keys) or 'none'}", place="keys")
    return table, list(chosen)


def _numbers(values: list[Any]) -> list[float] | None:
    try:
        return [float(value) for value in values]
    except ValueError:
        return None


def _sorted(values: list[Any]) -> list[Any]:
    numbers = _numbers(values)
    return values if numbers is None else [value for _, value in sorted(zip(numbers, values, strict=True))]
