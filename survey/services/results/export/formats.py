"""A table as CSV, JSON Lines and Parquet, written while its rows are read. Imports nothing of models.

CSV has the same bytes as everywhere else. In JSON Lines and Parquet numbers are numbers and times are times; what is
JSON inside a cell is an object in JSON Lines and text in Parquet.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from survey.contracts.tables import Column
from survey.exceptions import HunchError
from survey.figures.csv_lines import csv_line, csv_text

CSV, JSON_LINES, PARQUET = "csv", "jsonl", "parquet"
FORMATS = (CSV, JSON_LINES, PARQUET)
Rows = Sequence[Sequence[Any]]


class TableWriter(ABC):
    """Writes one table into one new file."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self.path = path
        self.columns = columns

    @abstractmethod
    def write(self, rows: Rows) -> None:
        """Add some rows."""

    @abstractmethod
    def close(self) -> None:
        """End the file."""


as_line = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_rows(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Rows as JSON Lines and the API have them: by column, numbers as numbers, and objects where a cell holds JSON."""
    names = [column.name for column in columns]
    in_json = [column.name for column in columns if column.type == "json"]
    for row in rows:
        values: dict[str, Any] = dict(
            zip(names, [int(cell) if cell is True or cell is False else cell for cell in row], strict=True)
        )
        for name in in_json:
            if isinstance(values[name], str):
                values[name] = json.loads(values[name])
        yield values


class CsvWriter(TableWriter):
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        super().__init__(path, columns)
        self._file = path.open("w", encoding="utf-8", newline="")
        self._file.write(csv_line(column.name for column in columns))

    def write(self, rows: Rows) -> None:
        self._file.write(csv_text(rows))

    def close(self) -> None:
        self._file.close()


class JsonLinesWriter(TableWriter):
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        super().__init__(path, columns)
        self._file = path.open("w", encoding="utf-8", newline="")

    def write(self, rows: Rows) -> None:
        self._file.writelines([f"{as_line(row)}\n" for row in json_rows(self.columns, rows)])

    def close(self) -> None:
        self._file.close()


class ParquetWriter(TableWriter):
    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        super().__init__(path, columns)
        import pyarrow as pa
        from pyarrow import parquet

        kinds = {"whole": pa.int64(), "number": pa.float64(), "time": pa.timestamp("us", tz="UTC")}
        self._types = [kinds.get(column.type, pa.string()) for column in columns]
        fields = [
            pa.field(column.name, kind, metadata={"kind": column.kind, "description": column.description})
            for column, kind in zip(columns, self._types, strict=True)
        ]
        self._array, self._errors = pa.array, (pa.ArrowInvalid, pa.ArrowTypeError, ValueError, TypeError)
        self._schema, self._batch = pa.schema(fields), pa.record_batch
        self._writer = parquet.ParquetWriter(path, self._schema, compression="zstd")

    def write(self, rows: Rows) -> None:
        if not rows:
            return
        arrays = []
        for column, kind, values in zip(self.columns, self._types, zip(*rows, strict=True), strict=True):
            try:
                arrays.append(self._array([_typed(value, column.type) for value in values], type=kind))
            except self._errors as exc:
                raise HunchError(
                    f"{self.path.stem}: the column {column.name} is said to be {column.kind!r} and holds something "
                    f"else ({exc}); the instrument's author must correct it. Choose another format"
                    " until then"
                ) from exc
        self._writer.write_batch(self._batch(arrays, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


WRITERS: dict[str, type[TableWriter]] = {CSV: CsvWriter, JSON_LINES: JsonLinesWriter, PARQUET: ParquetWriter}


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _typed(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "whole":
        if isinstance(value, float) and not value.is_integer():
            raise ValueError(f"{value} is not a whole number")
        return int(value)
    if kind == "number":
        return float(value)
    if kind == "time":
        return datetime.fromisoformat(value) if isinstance(value, str) else value
    return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)
