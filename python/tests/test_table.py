"""Tables: the same cells in every library, in the memory that Rust filled."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab

from conftest import wants

INSIDE = {
    "measure.series_links": ["leaf0-*"],
    "measure.series_flows": ["first:4"],
    "measure.series_scheme": True,
    "measure.uplink_counts": True,
    "measure.occupancy": True,
    "measure.trace_flows": ["first:2"],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ab.Run:
    """Returns a run with all measurements and unfinished flows, so with empty cells."""
    scenario = ab.Scenario(
        name="tables",
        topology=ab.FatTree(tiers=2, radix=8),
        load_balancer="prime",
        workloads=[ab.Poisson(sizes="web-search", load=0.5, duration="200us")],
        run=ab.RunOptions(until="150us"),
    ).with_(INSIDE)
    return ab.run(scenario, out=tmp_path_factory.mktemp("tables") / "run")


def test_there_are_all_tables(run: ab.Run) -> None:
    assert {"flows", "links", "series", "series_flows", "series_scheme", "uplinks", "occupancy", "trace"} <= set(run.tables)


@wants("polars", "pandas", "pyarrow")
def test_frames_equal_the_parquet_files_cell_by_cell(run: ab.Run) -> None:
    import pandas
    import polars
    import pyarrow.parquet

    assert run.directory is not None
    nulls = 0
    for name in run.tables:
        table = run.table(name)
        file = pyarrow.parquet.read_table(run.directory / f"{name}.parquet")
        rows = file.to_pylist()
        assert table.arrow().to_pylist() == rows, name
        assert table.polars().to_dicts() == rows, name
        frame = table.pandas()
        ours = [
            {key: None if value is pandas.NA else value for key, value in row.items()} for row in frame.to_dict("records")
        ]
        assert ours == rows, name
        assert polars.read_parquet(run.directory / f"{name}.parquet").shape == table.polars().shape
        nulls += sum(column.null_count for column in file.columns)
    assert nulls > 0, "the test sees empty cells"


@wants("polars", "pandas", "pyarrow")
def test_all_see_the_memory_that_rust_filled(run: ab.Run) -> None:
    for column in ["size_bytes", "fct_rx_ps", "slowdown"]:
        own = run.flows._native.addresses(column)
        assert len(own) == 1 and own == run.flows._native.addresses(column), "built once"
        arrow = run.flows.arrow()[column].chunk(0)
        assert arrow.buffers()[1].address == own[0]
        # polars exports its memory without a copy.
        series = run.flows.polars()[column].to_arrow()
        assert series.buffers()[1].address == own[0]
        pandas = run.flows.pandas()[column].array.__arrow_array__()
        pandas = pandas.chunk(0) if hasattr(pandas, "chunk") else pandas
        assert pandas.buffers()[1].address == own[0]


@wants("pyarrow")
def test_units_meanings_and_types_travel(run: ab.Run) -> None:
    import pyarrow as pa

    schema = pa.schema(run.flows)
    size = schema.field("size_bytes")
    assert size.metadata == {b"unit": b"bytes", b"meaning": b"payload"} and size.type == pa.int64() and not size.nullable
    assert schema.field("fct_rx_ps").nullable and schema.field("fct_rx_ps").metadata[b"unit"] == b"ps"
    assert pa.types.is_dictionary(schema.field("scheme").type)
    for name in run.tables:
        for field in pa.schema(run.table(name)):
            assert field.metadata[b"meaning"], f"{name}.{field.name}"
            # A seed has 64 bits; differences of seeds are not needed.
            assert field.name == "seed" or not pa.types.is_unsigned_integer(field.type), "a difference must not wrap"
    column = next(column for column in run.flows.columns if column.name == "size_bytes")
    assert column == ("size_bytes", "integer", "bytes", "payload")


@wants("polars")
def test_the_summary_follows_from_the_frame(run: ab.Run) -> None:
    import polars as pl

    counted = run.flows.polars().filter(pl.col("measured") & pl.col("slowdown").is_not_null())
    slowdown = counted["slowdown"]
    summary = run.summary
    assert summary.flows.measured == len(counted) and summary.flows.total == len(run.flows)

    def equal(found: Any, expected: float | None) -> None:
        assert expected is not None and math.isclose(found, expected, rel_tol=1e-12)

    equal(slowdown.mean(), summary.slowdown.mean)
    for quantile, value in [(0.5, summary.slowdown.p50), (0.95, summary.slowdown.p95), (0.99, summary.slowdown.p99)]:
        equal(slowdown.quantile(quantile, "linear"), value)
    equal(slowdown.max(), summary.slowdown.max)
    equal((counted["fct_rx_ps"] / 1e6).mean(), summary.fct_us.mean)
    links = run.links.polars()
    assert links["drops"].sum() == summary.counters.dropped and links["trims"].sum() == summary.counters.trimmed


@wants("polars")
def test_rows_from_memory_and_from_disk_are_the_same(run: ab.Run) -> None:
    assert run.directory is not None
    loaded = ab.load(run.directory)
    for name in run.tables:
        assert loaded.table(name).polars().equals(run.table(name).polars()), name
        assert loaded.table(name).columns == run.table(name).columns
    for file in Path(run.directory).glob("*.parquet"):
        file.unlink()
    from_csv = ab.load(run.directory)
    assert from_csv.flows.polars().equals(run.flows.polars()), "CSV has every digit"


def test_a_table_that_is_not_there_says_how_to_get_it() -> None:
    run = ab.run("tiny")
    with pytest.raises(ab.ScenarioError, match="measure.series_links"):
        run.series
    with pytest.raises(ab.ScenarioError) as caught:
        run.table("flow")
    assert caught.value.nearest == "flows"
