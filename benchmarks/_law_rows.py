"""The rows of `sampling_laws.py`: one figure of one case, with what it was before and what it must lie between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = ("case", "figure", "before", "now", "must lie in", "studies")
WIDTHS = (46, 34, 14, 9, 16, 7)


@dataclass(frozen=True)
class Row:
    """One figure of one case over so many simulated studies. `now` is None where it is withheld; `before` is what the
    figure was in the functions of that time, or in those that the case shows to be wrong."""

    case: str
    figure: str
    before: str
    now: float | None
    low: float
    high: float
    studies: int

    @property
    def kept(self) -> bool:
        return self.now is None or self.low <= self.now <= self.high

    @property
    def cells(self) -> tuple[str, ...]:
        now = "withheld" if self.now is None else f"{self.now:.4f}"
        wanted = f"{self.low:.4g} to {self.high:.4g}"
        return self.case, self.figure, self.before or "-", now, wanted, str(self.studies)


def table(rows: Sequence[Row]) -> Iterator[str]:
    yield _line(HEADER)
    yield _line(tuple("-" * width for width in WIDTHS))
    for row in rows:
        yield _line(row.cells) + ("" if row.kept else "  FAILS")


def _line(cells: Sequence[str]) -> str:
    return "  ".join(
        cell.ljust(width) if place < 2 else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    )
