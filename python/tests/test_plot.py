"""Figures: drawn from results and frames, saved with their rows."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch._native import command

from conftest import wants

pytestmark = wants("matplotlib", "pyarrow", "polars")


@pytest.fixture(autouse=True)
def closed() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.fixture(scope="module")
def comparison() -> ab.Comparison:
    return ab.compare("tiny", ["ecmp", "prime"], seeds=2)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> ab.Sweep:
    over = {"workload.0.size": ["16KiB", "64KiB"], "topology.link_delay": ["500ns", "1us", "2us"]}
    return ab.sweep("tiny", over, schemes=["ecmp", "prime"], seeds=2, out=tmp_path_factory.mktemp("plot") / "sweep")


def test_every_kind_is_drawn_and_saved(comparison: ab.Comparison, sweep: ab.Sweep, tmp_path: Path) -> None:
    run = ab.run("first-run")
    figures = {
        "size": ab.plot.slowdown_by_size({"prime": run}, quantile=0.5),
        "cdf": ab.plot.cdf(comparison),
        "tail": ab.plot.cdf([run, comparison.runs[("ecmp", 1)]], "fct_rx_ps", tail=True),
        "links": ab.plot.links(run),
        "queues": ab.plot.queues({"a": run, "b": run.links.polars()}),
        "compare": ab.plot.compare(comparison),
        "curves": ab.plot.curves(sweep, key="topology.link_delay"),
        "heatmap": ab.plot.heatmap(sweep, scheme="prime"),
    }
    for name, figure in figures.items():
        paths = [tmp_path / f"{name}.{kind}" for kind in ("pdf", "svg", "png", "csv")]
        figure.save(*paths)
        assert all(path.stat().st_size > 50 for path in paths), name
        with paths[-1].open() as file:
            assert len(list(csv.DictReader(file))) == len(figure.rows) > 0
    with pytest.raises(ab.ScenarioError, match="expected .pdf"):
        figures["cdf"].save("figure.jpeg")


def test_rows_say_what_the_frames_say(comparison: ab.Comparison, sweep: ab.Sweep) -> None:
    import polars as pl

    run = ab.run("first-run")
    assert ab.plot.cdf(run).rows[-1]["share"] == pytest.approx(1.0)
    links = ab.plot.links(run).rows
    assert len(links) == run.links.polars().filter(pl.col("tier").cast(pl.String) != "host").height
    cells = ab.plot.heatmap(sweep, "fct_mean", scheme="prime").rows
    frame = sweep.polars().with_columns(pl.col("scheme").cast(pl.String))
    for cell in cells:
        own = frame.filter(pl.col("scheme") == "prime", *(pl.col(key).cast(pl.String) == cell[key] for key in sweep.keys))
        assert cell["mean"] == pytest.approx(own["fct_mean"].mean())


def test_sizes_are_the_bins_of_the_report(tmp_path: Path) -> None:
    fabric = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\n"
    sizes = [f"[[workload]]\nkind = 'permutation'\nname = '{size}'\nsize = '{size}KiB'\n" for size in (16, 64, 256)]
    scenario = tmp_path / "sizes.toml"
    scenario.write_text(f"name = 'three sizes'\n{fabric}{''.join(sizes)}")
    comparison = ab.compare(scenario, ["ecmp", "prime"], seeds=2, out=tmp_path / "report")
    assert command(["anabranch", "report", str(tmp_path / "report"), "--all-flows"]) == 0
    with (tmp_path / "report" / "figures" / "slowdown_by_size.csv").open() as file:
        reported = list(csv.DictReader(file))
    rows = ab.plot.slowdown_by_size(comparison, quantile=0.5).rows
    assert len(rows) == len(reported) > 2
    for row, other in zip(rows, reported, strict=True):
        assert row["label"] == other["scheme"]
        for column in ("size_from_bytes", "size_to_bytes", "size_median_bytes", "flows", "seeds"):
            assert row[column] == int(other[column]), column
        numbers = {"slowdown": "slowdown_p50", "ci95_low": "slowdown_p50_ci95_low", "ci95_high": "slowdown_p50_ci95_high"}
        for column, name in numbers.items():
            assert row[column] == (pytest.approx(float(other[name])) if other[name] else None), column
    with pytest.raises(ab.ScenarioError, match="no size has the 100000 flows of every seed"):
        ab.plot.slowdown_by_size(comparison, quantile=0.99999)
    with pytest.raises(ab.ScenarioError, match="found 1.5, expected 0 or more and less than 1"):
        ab.plot.slowdown_by_size(comparison, quantile=1.5)


def test_runs_of_different_lengths_compare_by_what_needs_no_window() -> None:
    import polars as pl

    runs = {scheme: ab.run(ab.Scenario("first-run").with_(scheme=scheme)) for scheme in ("ecmp", "prime")}
    assert runs["ecmp"].summary.simulated_s > 2 * runs["prime"].summary.simulated_s
    figure = ab.plot.links(runs)
    assert "even split" in figure.axes.get_ylabel()
    # Leaves send as much to spines under both: the mean over the links of a direction is the even split.
    for label, run in runs.items():
        rows = [row for row in figure.rows if row["label"] == label]
        assert len(rows) == run.links.polars().filter(pl.col("tier").cast(pl.String) != "host").height
        up = [row["bytes_over_even_split"] for row in rows if row["from"].startswith("leaf")]
        assert sum(up) / len(up) == pytest.approx(1.0)
        links = run.links.polars().with_columns(pl.col("from", "to").cast(pl.String))
        one = next(row for row in rows if row["from"] == "leaf3")
        of = links.filter(pl.col("from").str.starts_with("leaf"), pl.col("to").str.starts_with("spine"))
        own = of.filter(pl.col("from") == one["from"], pl.col("to") == one["to"])["bytes"].item()
        assert one["bytes_over_even_split"] == pytest.approx(own / of["bytes"].mean())
    assert ab.plot.links(runs, "utilisation").axes.get_ylabel() == "utilisation, each over its own run"
    assert ab.plot.links(runs["ecmp"]).axes.get_ylabel() == "utilisation"
    assert ab.plot.queues(runs).axes.get_xlabel() == "queue max (KiB)"
    assert ab.plot.queues(runs, "queue_p99_bytes").axes.get_xlabel().endswith("each over its own run")


def test_flows_that_did_not_finish_count() -> None:
    import polars as pl

    flows = pl.DataFrame({"size_bytes": [1000] * 20, "slowdown": [1.0 + i / 10 for i in range(15)] + [None] * 5, "measured": [True] * 20})
    figure = ab.plot.cdf({"ecmp": flows, "prime": flows.drop_nulls()})
    # 15 of 20 flows finished.
    last = {row["label"]: row["share"] for row in figure.rows}
    assert last == {"ecmp": pytest.approx(0.75), "prime": pytest.approx(1.0)}
    assert [line.get_label() for line in figure.axes.get_lines()] == ["ecmp (25 % unfinished)", "prime"]
    with_mark = ab.plot.slowdown_by_size({"ecmp": flows, "prime": flows.drop_nulls()}, quantile=0.5)
    assert {row["label"]: row["flows"] for row in with_mark.rows} == {"ecmp !": 15, "prime": 15}


def test_colour_belongs_to_the_scheme(comparison: ab.Comparison, sweep: ab.Sweep) -> None:
    from matplotlib.colors import to_hex

    # As in crates/studies/report/src/figures/palette.rs.
    prime, ecmp = "#0072b2", "#222222"

    def colours(figure: ab.plot.Figure) -> list[str]:
        return [to_hex(line.get_color()) for line in figure.axes.get_lines()]

    assert colours(ab.plot.cdf(comparison)) == [ecmp, prime]
    assert colours(ab.plot.cdf({"mine": comparison.runs[("prime", 1)]})) == [prime]
    assert [to_hex(bar.get_facecolor()) for bar in ab.plot.compare(comparison).axes.patches] == [ecmp, prime]
    lines = ab.plot.curves(sweep, key="workload.0.size").axes.get_lines()
    # No two lines of a figure share a colour; one of each scheme has the scheme's own.
    assert len({to_hex(line.get_color()) for line in lines}) == len(lines) == 6
    assert {ecmp, prime} < {to_hex(line.get_color()) for line in lines}


def test_a_legend_of_many_lines_does_not_press_the_axes(sweep: ab.Sweep) -> None:
    import matplotlib.style

    with matplotlib.style.context("anabranch.paper"):
        axes = ab.plot.curves(sweep, key="workload.0.size").axes
        axes.figure.canvas.draw()
        assert len(axes.get_lines()) > 4 and axes.get_position().width > 0.75, "of the figure's width"


def test_axes_and_styles() -> None:
    import matplotlib.style
    from matplotlib import pyplot

    for style, width in [("anabranch.paper", 3.31), ("anabranch.slides", 9.6)]:
        with matplotlib.style.context(style):
            figure, axes = pyplot.subplots()
            assert figure.get_size_inches()[0] == width
            assert ab.plot.cdf(ab.run("tiny"), ax=axes).axes is axes


def test_mistakes(comparison: ab.Comparison, sweep: ab.Sweep) -> None:
    def nearest(call: Any) -> str | None:
        with pytest.raises(ab.ScenarioError) as caught:
            call()
        return caught.value.nearest

    assert nearest(lambda: ab.plot.compare(comparison, "slowdwon_p99")) == "slowdown_p99"
    assert nearest(lambda: ab.plot.cdf(comparison, "slowdow")) == "slowdown"
    assert nearest(lambda: ab.plot.heatmap(sweep, scheme="prme")) == "prime"
    assert nearest(lambda: ab.plot.curves(sweep, key="topology.link_dela")) == "topology.link_delay"
    nearest(lambda: ab.plot.cdf(3))
