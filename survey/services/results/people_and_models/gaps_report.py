"""The report `gaps`: where people and models part, by parts of the items and item by item."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from survey.contracts.expectations import Expectations
from survey.contracts.reports import Argument, Picture, Report, ReportArguments, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.words import points
from survey.models import Study

from .common import ARGUMENTS, asked_of, figure_column, in_words
from .gaps import Gaps, gaps
from .load import read

MAX_PICTURES = 32
MAX_PARTS = 40
MAX_SAID = 5
COLUMNS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("kind", "text", "model, judge or predictor."),
    Column("division", "text", "How the items are divided; empty for all of them."),
    Column("part", "text", "The part; empty for all of them."),
    Column("answers", "number", "People’s answers.", whole=True),
    Column("items", "number", "Items.", whole=True),
    Column("people_mean", "share", "The mean of people’s answers, by the design.", heading="people", digits=0),
    Column("reader_mean", "share", "The mean of the reader’s numbers.", heading="reader", digits=0),
    figure_column("gap", "number", "The first less the second.", style="points"),
    figure_column(
        "typical_gap",
        "number",
        "Root of the mean squared gap over all items, people’s noise taken off.",
        style="points",
    ),
    Column("why", "text", "Why figures are missing; empty if none is."),
)
ITEMS = (
    Column("event", "text", "What people and the reader both speak about."),
    Column("reader", "text", "The model, judge or predictor."),
    Column("item", "text", "The item’s name."),
    Column("text", "text", "What it is recognised by."),
    Column("answers", "number", "People’s answers.", whole=True),
    Column("people_mean", "share", "Their mean.", heading="people", digits=0),
    Column("reader_number", "share", "The reader’s number.", heading="reader", digits=0),
    Column("gap", "number", "The first less the second, as measured.", style="points", digits=0, signed=True),
    FigureColumn(
        "shrunk",
        "number",
        "The gap with people’s mean drawn towards what is expected of it; empty if unknown.",
        heading="drawn in",
        style="points",
        digits=0,
    ),
    Column("said", "text", "The commonest answers with their counts, where there are more than two.", written=True),
)
NOTE = (
    "A gap is people less reader: above 0 people expect more of the event than the reader. Items count by the design. "
    "Intervals are by person and item."
)
ITEMS_NOTE = (
    "The largest of many gaps are partly chance. Drawn in: people’s mean is drawn towards what the reader’s number "
    "lets one expect, the more so the fewer answers there are. Its 95 % interval holds for items on average."
)


class GapsReport(Report):
    """The gap map: mean gaps with intervals, and the items with the largest gaps."""

    arguments = (
        *ARGUMENTS,
        Argument(
            "items", "with the largest gaps, of each model or judge", default="20", on_pages="20", label="Items listed"
        ),
    )
    exported = {"gaps": COLUMNS}

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        most_shown = arguments.whole("items", lowest=0, highest=10_000)
        reading = read(study, asked_of(arguments))
        parted = [
            (expectations, gaps(expectations, reader))
            for expectations in reading.found
            for reader in expectations.readers
        ]
        missing = [f"{expectations.event.name}, {of.reader}: {of.why}" for expectations, of in parted if of.why]
        table = _table(parted)
        return ReportResult(
            title=f"Where people and models part: {study.title}",
            headline=next(filter(None, (_headline(own.event.name, of) for own, of in parted)), ""),
            lines=in_words([expectations.event for expectations in reading.found]),
            tables=[table, _items_table(parted, most_shown)],
            pictures=_pictures(parted),
            notes=[*reading.notes, *missing],
            data={"gaps": table.records()},
        )


def _headline(event: str, of: Gaps) -> str:
    """The gap over all items in words; empty if it is not known."""
    gap = next((part.gap for part in of.parts if not part.division), Figure())
    if gap.value is None:
        return ""
    way = "more" if gap.value > 0 else "less"
    size = f"{points(abs(gap.value))} {way} than" if points(gap.value) != points(0.0) else "just as much as"
    interval = f" (gap {gap.times(100, 'points').in_words(1)})" if gap.interval else ""
    chance = "; the interval holds 0, so that this may be chance" if gap.interval and gap.holds(0) else ""
    return f"People expect the event “{event}” {size} {of.reader} does{interval}{chance}."


Parted = Sequence[tuple[Expectations, Gaps]]


def _table(parted: Parted) -> Table:
    rows = [
        {
            "event": own_gaps.event.name,
            "reader": of.reader,
            "kind": of.kind,
            "division": part.division,
            "part": part.part,
            "answers": part.answers,
            "items": part.items,
            "people_mean": part.people,
            "reader_mean": part.reader,
            "gap": part.gap,
            "typical_gap": None if part.division else of.typical,
            "why": "" if part.division else of.why,
        }
        for own_gaps, of in parted
        for part in of.parts
    ]
    views = [
        TableView(
            ["division", "part", "gap", "typical_gap", "people_mean", "reader_mean", "items", "answers"],
            title=f"{own_gaps.event.name}: people and {of.reader}",
            where={"event": own_gaps.event.name, "reader": of.reader},
            note="The first row is all items.",
        )
        for own_gaps, of in parted
    ]
    return Table("gaps", "The gap map", COLUMNS, rows, note=NOTE, views=views)


def _items_table(parted: Parted, most: int) -> Table:
    rows: list[dict[str, Any]] = []
    views = []
    for expectations, of in parted:
        said = _said(expectations)
        texts = expectations.items.texts or [""] * len(expectations.items)
        rows += [
            {
                "event": expectations.event.name,
                "reader": of.reader,
                "item": expectations.items.labels[item.item],
                "text": texts[item.item],
                "answers": item.answers,
                "people_mean": item.people,
                "reader_number": item.reader,
                "gap": item.gap,
                "shrunk": item.shrunk,
                "said": said.get(item.item, ""),
            }
            for item in of.items
        ]
        if most and of.items:
            view = TableView(
                ["item", "text", "people_mean", "reader_number", "gap", "shrunk", "answers", "said"],
                title=f"{expectations.event.name}: people and {of.reader}, the items with the largest gaps",
                where={"event": expectations.event.name, "reader": of.reader},
                most=most,
            )
            views.append(view)
    return Table(
        "gap_items",
        "Items on which people and models part most",
        ITEMS,
        rows,
        note=ITEMS_NOTE if views else "",
        views=views or [TableView(rows=[])],
        verbatim=any(len(gap.said) for gap, _of in parted),
    )


def _said(expectations: Expectations) -> dict[int, str]:
    """The commonest answers of each item with their counts."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for item, words in zip(expectations.item.tolist(), expectations.said, strict=False):
        counts[item][words] += 1
    return {
        item: ", ".join(f"{words} ({count})" for words, count in sorted(item_counts.items(), key=_by_count)[:MAX_SAID])
        for item, item_counts in counts.items()
    }


def _by_count(entry: tuple[str, int]) -> tuple[int, str]:
    return -entry[1], entry[0]


def _pictures(parted: Parted) -> list[Picture]:
    """One of each reader; those of an event side by side, on the same axis."""
    pictures = []
    drawn = [(place, own.event.name, of.reader, _drawn_parts(of)) for place, (own, of) in enumerate(parted, start=1)]
    for place, event, reader, parts in drawn[:MAX_PICTURES]:
        if not any(part.gap.is_defined for part in parts):
            continue
        rows = [ForestRow(part.part or "all items", (part.gap.times(100),)) for part in parts]
        same_axis = [end for _place, other, _reader, own in drawn if other == event for end in _ends(own)]
        pictures.append(_picture(place, event, reader, rows, same_axis))
    return pictures


def _ends(parts: Sequence[Any]) -> list[float]:
    """The lowest and the highest number of these gaps, in percentage points."""
    gaps = [part.gap.times(100) for part in parts]
    numbers = [number for gap in gaps for number in (gap.value, *(gap.interval or ())) if number is not None]
    return [min(numbers), max(numbers)] if numbers else []


def _drawn_parts(of: Gaps) -> list[Any]:
    """All items, then the parts of the first division, the largest gaps first; not more than fit."""
    first = next((part.division for part in of.parts if part.division), "")
    parts = [part for part in of.parts if part.division and part.division == first]
    parts.sort(key=lambda part: -abs(part.gap.number))
    largest = sorted(parts[:MAX_PARTS], key=lambda part: -part.gap.number)
    return [*(part for part in of.parts if not part.division), *largest]


def _picture(place: int, event: str, reader: str, rows: Sequence[ForestRow], same_axis: Sequence[float]) -> Picture:
    title = f"{event}: people less {reader}"
    return Picture.of(
        f"gaps_{place}",
        title,
        "The mean gap between people and the reader, of all items and of their parts; right of the dashed line people "
        "expect more. Bars are 95 % intervals.",
        ForestChart(
            title=title,
            x=Axis("gap in percentage points; above 0 people expect more", includes=same_axis),
            rows=rows,
            mark_at=0.0,
        ),
        beside=f"The event “{event}”: people less each model or predictor",
    )
