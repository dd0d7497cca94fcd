"""The table next to a ranking: a few rows whose loss would change the first place, and each two neighbours."""

from collections.abc import Callable, Sequence
from typing import Any

from bandit.fragility import Fragile, Fragility, in_words
from survey.figures import Column, Table, TableView

UPPER_BOUND = (
    "How few rows carry the ranking: without these, the one behind would be ahead. Each set was found by influence and "
    "confirmed by computing the ranking again without it. It is an upper bound: a smaller set may exist."
)
MAX_SENTENCES = 4
"""Rankings up to which each has a sentence; of more the first has one, and the table has all."""


def columns(unit: str) -> tuple[Column, ...]:
    """The file's columns; `unit`: what is lost, in words, such as pairs."""
    return (
        Column("ranking", "text", "Which ranking, where the report has several."),
        Column("place", "text", "first: what changes the first place. neighbours: the two follow one another."),
        Column("ahead", "text", "Who is ahead."),
        Column("behind", "text", "Who would be ahead without the rows."),
        Column("lead", "number", "By how much, in the unit of the scores.", digits=4),
        Column("lost", "number", f"So many {unit} are enough; empty where no such set was found.", whole=True),
        Column("share", "share", "Of all.", digits=2),
        Column("lead_without", "number", "The lead without them: below 0.", heading="lead without them", digits=4),
        Column("rows", "text", "Which they are, the most telling first, separated by semicolons."),
    )


def fragile_table(
    fragilities: Sequence[tuple[str, Fragility]],
    names: Sequence[str],
    *,
    unit: str = "judgements",
    label: Callable[[int], str] = str,
    labels: Sequence[Callable[[int], str]] = (),
    name: str = "fragility",
) -> Table:
    """
    Args:
        fragilities: rankings of the same names, each with its title; an empty title if there is only one.
        unit: what a row is, in the plural.
        label: a row's name, by its place. labels: the same for each ranking, where these have rows of their own.
        name: the file's name.
    """
    rows: list[list[Any]] = []
    for (title, fragility), label_of in zip(fragilities, labels or [label] * len(fragilities), strict=True):
        first = [] if fragility.first is None else [("first", fragility.first)]
        for place, fragile in [*first, *(("neighbours", pair) for pair in fragility.neighbours)]:
            rows.append(_row(title, place, fragile, names, label_of))
    sentences = [
        f"{title}: {sentence}" if title else sentence
        for title, fragility in (fragilities if len(fragilities) <= MAX_SENTENCES else fragilities[:1])
        for sentence in in_words(fragility, names, unit=unit)
    ]
    return Table(
        name,
        "How few rows carry the ranking",
        columns(unit),
        rows,
        note=UPPER_BOUND,
        views=[
            TableView(
                ["ranking", "ahead", "behind", "lead", "lost", "share", "lead_without"],
                where={"place": "neighbours"},
                note=" ".join(sentences) if sentences else "There is one name: nothing to rank it with.",
            )
        ],
    )


def _row(title: str, place: str, fragile: Fragile, names: Sequence[str], label: Callable[[int], str]) -> list[Any]:
    lost = "" if fragile.rows is None else "; ".join(label(int(row)) for row in fragile.rows)
    facts = [title, place, names[fragile.ahead], names[fragile.behind]]
    return [*facts, fragile.margin, fragile.count, fragile.share, fragile.margin_after, lost]
