"""The report `gaps`: where people and models part, by parts of the items and item by item."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from survey.contracts.expectations import Expectations
from survey.contracts.reports import Argument, Findings, Given, Layout, Picture, Report, Table
from survey.contracts.tables import Column
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.models import Study

from .common import ARGUMENTS, NOTHING, asked_of, cells, columns_of, in_words, with_interval
from .errors import Bounded
from .parting import Gaps, ItemGap, gaps
from .reading import read

MOST_PICTURES = 6
MOST_PARTS = 40
MOST_SAID = 5
COLUMNS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("kind", "text", "model, judge or predictor."),
    Column("division", "text", "How the items are divided; empty for all of them."),
    Column("part", "text", "The part; empty for all of them."),
    Column("answers", "number", "People’s answers.", whole=True),
    Column("items", "number", "Items.", whole=True),
    Column("people_mean", "share", "The mean of people’s answers, by the design."),
    Column("reader_mean", "share", "The mean of the reader’s numbers."),
    *columns_of("gap", "number", "The first less the second."),
    *columns_of("typical_gap", "number", "Root of the mean squared gap over all items, people’s noise taken off."),
    Column("why", "text", "Why figures are missing; empty if none is."),
)
ITEMS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("item", "text", "The item’s name."),
    Column("text", "text", "What it is recognised by."),
    Column("answers", "number", "People’s answers.", whole=True),
    Column("people_mean", "share", "Their mean."),
    Column("reader_number", "share", "The reader’s number."),
    Column("gap", "number", "The first less the second, as measured."),
    Column("shrunk", "number", "The gap with people’s mean drawn towards what is expected of it; empty if unknown."),
    Column("shrunk_low", "number", "Lower end of its 95 % interval."),
    Column("shrunk_high", "number", "Its upper end."),
    Column("said", "text", "The commonest answers with their counts, where there are more than two.", written=True),
)
NOTE = (
    "A gap is people less reader: above 0 people expect more of the event than the reader. Items count by the design. "
    "In brackets: 95 % intervals by person and item."
)
ITEMS_NOTE = (
    "The largest of many gaps are partly chance. Drawn in: people’s mean is drawn towards what the reader’s number "
    "lets one expect, the more so the fewer answers there are. Its 95 % interval holds for items on average."
)


class GapsReport(Report):
    """The gap map: mean gaps with intervals, and the items with the largest gaps."""

    arguments = (*ARGUMENTS, Argument("items", "how many items are listed a reader", default="20", on_pages="20"))
    exported = {"gaps": COLUMNS}

    def make(self, study: Study, given: Given) -> Findings:
        shown = given.whole("items", lowest=0, highest=10_000)
        found = read(study, asked_of(given))
        parted = [(one, gaps(one, reader)) for one in found.found for reader in one.readers]
        missing = [f"{one.event.name}, {of.reader}: {of.why}" for one, of in parted if of.why]
        return Findings(
            title=f"Where people and models part: {study.title}",
            lines=in_words([one.event for one in found.found]),
            tables=[_table(parted), _items_table(parted, shown)],
            pictures=_pictures(parted),
            notes=[*found.notes, *missing],
            data={
                "gaps": [dict(zip((c.name for c in COLUMNS), row, strict=True)) for row in _rows(parted)],
            },
        )


Parted = Sequence[tuple[Expectations, Gaps]]


def _rows(parted: Parted) -> list[list[Any]]:
    return [
        [
            *(one.event.name, of.reader, of.kind, part.division, part.part, part.answers, part.items),
            *(part.people, part.reader),
            *cells(part.gap),
            *(cells(of.typical) if not part.division else [None, None, None]),
            of.why if not part.division else "",
        ]
        for one, of in parted
        for part in of.parts
    ]


def _table(parted: Parted) -> Table:
    layouts = []
    for one, of in parted:
        rows = [
            [
                part.part or "all items",
                with_interval(part.gap, digits=1, percent=True),
                f"{100 * part.people:.0f} %",
                f"{100 * part.reader:.0f} %",
                f"{part.items:,}",
                f"{part.answers:,}",
            ]
            for part in of.parts
        ]
        typical = with_interval(of.typical, digits=1, percent=True)
        note = "" if typical == NOTHING else f"Typical gap of an item, people’s noise taken off: {typical}."
        header = ["part", "gap", "people", "reader", "items", "answers"]
        layouts.append(Layout(header, rows, title=f"{one.event.name}: people and {of.reader}", note=note))
    return Table("gaps", "The gap map", COLUMNS, _rows(parted), note=NOTE, layouts=layouts)


def _items_table(parted: Parted, shown: int) -> Table:
    rows: list[list[Any]] = []
    layouts = []
    verbatim = any(len(one.said) for one, _of in parted)
    for one, of in parted:
        said = _said(one)
        texts = one.items.texts or [""] * len(one.items)
        for item in of.items:
            ends = cells(item.shrunk)
            label = one.items.labels[item.item]
            facts = [one.event.name, of.reader, label, texts[item.item], item.answers, item.people, item.reader]
            rows.append([*facts, item.gap, *ends, said.get(item.item, "")])
        if shown and of.items:
            layouts.append(_items_layout(one, of, texts, said, shown))
    return Table(
        "gap_items",
        "Items on which people and models part most",
        ITEMS,
        rows,
        note=ITEMS_NOTE if layouts else "",
        layouts=layouts or [Layout(["item"], [])],
        verbatim=verbatim,
    )


def _items_layout(one: Expectations, of: Gaps, texts: Sequence[str], said: Mapping[int, str], shown: int) -> Layout:
    header = ["item", "people", "reader", "gap", "drawn in", "answers", *(["said"] if said else [])]
    rest = f"The first {shown} of {len(of.items)} items; gap_items.csv has all." if len(of.items) > shown else ""
    return Layout(
        header,
        [
            [
                " ".join(filter(None, (one.items.labels[item.item], texts[item.item]))),
                f"{100 * item.people:.0f} %",
                f"{100 * item.reader:.0f} %",
                f"{100 * item.gap:+.0f} %",
                _drawn_in(item),
                f"{item.answers:,}",
                *([said.get(item.item, "")] if said else []),
            ]
            for item in of.items[:shown]
        ],
        title=f"{one.event.name}: people and {of.reader}, the items with the largest gaps",
        note=rest,
    )


def _drawn_in(item: ItemGap) -> str:
    return with_interval(item.shrunk, digits=0, percent=True)


def _said(one: Expectations) -> dict[int, str]:
    """The commonest answers of each item with their counts."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for item, words in zip(one.item.tolist(), one.said, strict=False):
        counts[item][words] += 1
    return {
        item: ", ".join(f"{words} ({count})" for words, count in sorted(found.items(), key=_by_count)[:MOST_SAID])
        for item, found in counts.items()
    }


def _by_count(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]


def _pictures(parted: Parted) -> list[Picture]:
    found = []
    for place, (one, of) in enumerate(parted[:MOST_PICTURES], start=1):
        parts = _drawn_parts(of)
        if not any(part.gap.is_defined for part in parts):
            continue
        rows = [ForestRow(part.part or "all items", (_in_points(part.gap),)) for part in parts]
        found.append(_picture(place, f"{one.event.name}: people less {of.reader}", rows))
    return found


def _drawn_parts(of: Gaps) -> list[Any]:
    """All items, then the parts of the first division, the largest gaps first; not more than fit."""
    first = next((part.division for part in of.parts if part.division), "")
    parts = [part for part in of.parts if part.division and part.division == first]
    parts.sort(key=lambda part: -abs(part.gap.value))
    kept = sorted(parts[:MOST_PARTS], key=lambda part: -part.gap.value)
    return [*(part for part in of.parts if not part.division), *kept]


def _picture(place: int, title: str, rows: list[ForestRow]) -> Picture:
    return Picture.of(
        f"gaps_{place}",
        title,
        "The mean gap between people and the reader, of all items and of their parts; right of the dashed line people "
        "expect more. Bars are 95 % intervals.",
        ForestChart(
            title=title, x=Axis("gap in percentage points; above 0 people expect more"), rows=rows, mark_at=0.0
        ),
    )


def _in_points(figure: Bounded) -> Bounded:
    ends = [None if end is None else 100 * end for end in (figure.low, figure.high)]
    return Bounded(100 * figure.value, *ends)
