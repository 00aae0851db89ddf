"""Tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _native
from ._errors import needs

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from polars import DataFrame as PolarsFrame
    from pyarrow import Table as ArrowTable


class Column(NamedTuple):
    """Column of a table."""

    name: str
    kind: str
    """`integer`, `real`, `text` or `boolean`."""
    unit: str
    """Unit; empty if there is none."""
    meaning: str


class Table:
    """
    Rows with named columns, each with its unit and meaning. Libraries with the Arrow PyCapsule interface read it without
    a copy: `polars.DataFrame(table)`, `pyarrow.table(table)`, `duckdb`, ...; `.polars()`, `.pandas()`, `.arrow()` for short.
    """

    def __init__(self, native: _native.Table, name: str = "table") -> None:
        self._native = native
        self.name = name
        """Name of the table."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __len__(self) -> int:
        return len(self._native)

    @property
    def columns(self) -> list[Column]:
        """Name, kind, unit and meaning of each column."""
        return [Column(*column) for column in self._native.columns()]

    def arrow(self) -> ArrowTable:
        """Returns a pyarrow table that shares the memory."""
        try:
            import pyarrow
        except ImportError:
            raise needs("pyarrow", "arrow") from None
        return pyarrow.table(self)

    def polars(self) -> PolarsFrame:
        """Returns a polars frame; numbers share the memory."""
        try:
            import polars
        except ImportError:
            raise needs("polars", "polars") from None
        return polars.DataFrame(self)

    def pandas(self) -> PandasFrame:
        """Returns a pandas frame with Arrow types that shares the memory."""
        try:
            import pandas
        except ImportError:
            raise needs("pandas", "pandas") from None
        return self.arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        return f"<Table {self.name}: {len(self):,} rows; {names}>"
