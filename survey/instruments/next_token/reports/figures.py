"""Tables, figures and JSON of guesses: the same for a study and for a file of guesses."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from survey.contracts.reports import Findings, Layout, Picture, Table
from survey.contracts.tables import Column
from survey.instruments.next_token.analysis import guesses as analysis
from survey.instruments.next_token.analysis.guesses import GuessTable
from survey.services.results.expectations.errors import Bounded

from . import charts

PEOPLE = "people"
FIGURES = (
    Column("who", "text", "people, the name of a model, or people less a model."),
    Column("asked", "number", "Guesses: for a model, those at positions that it has read.", whole=True),
    Column("right", "number", "Right ones among them, without weights.", whole=True),
    Column("share", "0 to 1", "Right guesses over guesses, design-weighted; for a difference, people less the model."),
    Column("low", "number", "Lower end of its 95 % interval, by person and passage."),
    Column("high", "number", "Upper end."),
    Column("perplexity", "number", "Of a model at these positions; empty for people."),
    Column("perplexity_low", "number", "Lower end of its 95 % interval."),
    Column("perplexity_high", "number", "Upper end."),
)
PARTS = (
    Column("division", "text", "What the guesses are divided by."),
    Column("part", "text", "The part."),
    Column("who", "text", "people, or the name of a model on the same positions."),
    Column("asked", "number", "Guesses.", whole=True),
    Column("share", "0 to 1", "Right guesses over guesses, design-weighted."),
    Column("low", "number", "Lower end of its 95 % interval, by person and passage."),
    Column("high", "number", "Upper end."),
)
BY_PERSON = (
    Column("person", "text", "Pseudonym, or the name in the file."),
    Column("asked", "number", "Guesses; only people with 50 or more are listed.", whole=True),
    Column("right", "number", "Right ones among them.", whole=True),
    Column("share", "0 to 1", "Their share."),
    Column("who", "text", "A model on the same positions; empty where there is none."),
    Column("share_of_model", "0 to 1", "The model's share of right guesses there."),
)
ENSEMBLE = (
    Column("who", "text", "The most frequent guess, the mean person, their difference, or a model."),
    Column("positions", "number", "Positions that five or more people guessed.", whole=True),
    Column("share", "0 to 1", "Of these positions, those at which it is the true token."),
    Column("low", "number", "Lower end of its 95 % interval, by passage and person."),
    Column("high", "number", "Upper end."),
)
LINE_OF_MODEL = "a line is a model on all of these positions"


def findings(table: GuessTable, *, title: str, notes: Sequence[str] = (), characters: bool = False) -> Findings:
    """
    table: one guess or more. characters: the tokens are characters, so that figures are in bits a character too.
    """
    own = analysis.share(table)
    together = analysis.ensemble(table)
    listed = analysis.by_person(table)
    said = [
        f"{own.n:,} guesses by {len(table.people):,} people in {len(table.passages):,} passages, "
        f"{_percent(own.figure)} right"
    ]
    if table.given:
        said.append(f"{table.given:,} tokens that nobody can type were shown and not asked for")
    more = list(notes)
    bits = _bits(table, own) if characters else {}
    if bits:
        said += _bits_in_words(bits)
    if any(np.isinf(model.surprisal).any() for model in table.models):
        more.append("an infinite perplexity: the model gave some true token no chance at all")
    if together is None:
        more.append(f"no position was guessed by {analysis.LEAST_OF_ENSEMBLE} people, so there is no ensemble")
    if not listed:
        more.append(f"nobody has {analysis.LEAST_OF_PERSON} guesses, so there is no table by person")
    first = _figures(table)
    parts = _parts(table)
    people = _people(table, listed)
    crowd = _together(table, together)
    tables = [
        Table("next_token", "Right guesses", FIGURES, first, layouts=[_shown_figures(first)]),
        Table("next_token_parts", "Where people are right", PARTS, parts, layouts=_shown_parts(parts)),
        Table(
            "next_token_people",
            "By person",
            BY_PERSON,
            people,
            layouts=[_shown_people(table, listed)],
            verbatim=True,  # What single people did is for those who may read answers.
        ),
    ]
    if crowd:
        layout = _shown_together(crowd)
        tables.append(Table("next_token_ensemble", "Many people together", ENSEMBLE, crowd, layouts=[layout]))
    pictures = []
    if listed:

        def draw(path: Path) -> None:
            dots = [(name, n, right / n) for name, n, right, _models in listed]
            lines = [(model.name, analysis.mean(model.right, table).or_nan) for model in table.models]
            path.write_text(charts.dots(dots, lines), encoding="utf-8", newline="")

        pictures.append(
            Picture(
                "next_token_people",
                "Each person and the models",
                f"{len(listed)} people, a dot each, by their share of right guesses; {LINE_OF_MODEL}.",
                draw,
            )
        )
    data = {
        "guesses": own.n,
        "right": own.right,
        "people": len(table.people),
        "passages": len(table.passages),
        "given": table.given,
        "share": _as_json(own.figure),
        "figures": _records(FIGURES, first),
        "parts": _records(PARTS, parts),
        "persons": _records(BY_PERSON, people),
        "ensemble": _records(ENSEMBLE, crowd),
        **({"bits_a_character": bits} if bits else {}),
    }
    return Findings(title, said, tables, pictures, notes=more, data=data)


def _bits(table: GuessTable, own: analysis.RightShare) -> dict[str, Any]:
    """Bits a character: the most that people's can be, with its interval, and each model's."""
    kinds = len(set(table.truth) | set(table.guess))
    most = [
        None if share is None else round(analysis.most_bits(share, kinds), 6)
        # The more often people are right, the less uncertain they can be.
        for share in (own.figure.value, own.figure.high, own.figure.low)
    ]
    models = {}
    for model in table.models:
        never = bool(np.isposinf(model.surprisal).any())  # It gave some true character no chance.
        nats = analysis.mean(model.surprisal, table, scale="number")
        ends = (None, None, None) if never else (nats.value, nats.low, nats.high)
        value, low, high = (_rounded(None if one is None else one / math.log(2)) for one in ends)
        models[model.name] = {"value": value, "low": low, "high": high}
    return {
        "characters": kinds,
        "people_at_most": dict(zip(("value", "low", "high"), most, strict=True)),
        "perplexity_at_most": None if most[0] is None else round(2 ** most[0], 6),
        "models": models,
    }


def _bits_in_words(bits: dict[str, Any]) -> list[str]:
    most = bits["people_at_most"]
    within = "" if most["low"] is None or most["high"] is None else f", {most['low']:.2f} to {most['high']:.2f}"
    said = [
        f"people's uncertainty is at most {most['value']:.2f} bits a character (Fano's bound with "
        f"{bits['characters']} characters{within}), a perplexity of {bits['perplexity_at_most']:.1f} at most"
    ]
    for name, one in bits["models"].items():
        if one["value"] is not None:
            ends = "" if one["low"] is None or one["high"] is None else f" ({one['low']:.2f} to {one['high']:.2f})"
            said.append(f"{name}: {one['value']:.2f} bits a character{ends}")
    return said


def _figures(table: GuessTable) -> list[tuple[Any, ...]]:
    own = analysis.share(table)
    rows: list[tuple[Any, ...]] = [(PEOPLE, own.n, own.right, *_ends(own.figure), None, None, None)]
    for model in table.models:
        known = np.isfinite(model.right)
        n, right = int(known.sum()), int(model.right[known].sum())
        rows.append(
            (model.name, n, right, *_ends(analysis.mean(model.right, table)), *_ends(analysis.perplexity(model, table)))
        )
    for model in table.models:
        n = int(np.isfinite(model.right).sum())
        difference = analysis.mean(table.right - model.right, table, scale="difference")
        rows.append((f"{PEOPLE} less {model.name}", n, None, *_ends(difference), None, None, None))
    return rows


def _parts(table: GuessTable) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for division, parts in analysis.divisions(table).items():
        own = np.array(parts, dtype=str)
        for part in sorted({one for one in parts if one}, key=analysis.order_of):
            inside = own == part
            found = analysis.share(table, inside)
            rows.append((division, part, PEOPLE, found.n, *_ends(found.figure)))
            for model in table.models:
                n = int((inside & np.isfinite(model.right)).sum())
                if n:
                    rows.append((division, part, model.name, n, *_ends(analysis.mean(model.right, table, inside))))
    return rows


def _people(table: GuessTable, listed: Sequence[Any]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name, n, right, shares in listed:
        pairs = [(model.name, share) for model, share in zip(table.models, shares, strict=True)] or [("", None)]
        rows += [(name, n, right, _rounded(right / n), model, _rounded(share)) for model, share in pairs]
    return rows


def _together(table: GuessTable, found: analysis.EnsembleFigures | None) -> list[tuple[Any, ...]]:
    if found is None:
        return []
    names = [model.name for model in table.models]
    return [
        ("most frequent guess", found.positions, *_ends(found.ensemble)),
        ("mean person", found.positions, *_ends(found.person)),
        ("most frequent guess less mean person", found.positions, *_ends(found.difference)),
        *((name, found.positions, *_ends(one)) for name, one in zip(names, found.models, strict=True)),
    ]


def _ends(figure: Bounded) -> tuple[float | None, float | None, float | None]:
    return _rounded(figure.value), _rounded(figure.low), _rounded(figure.high)


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _as_json(figure: Bounded) -> dict[str, float | None]:
    value, low, high = _ends(figure)
    return {"value": value, "low": low, "high": high}


def _records(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [{column.name: value for column, value in zip(columns, row, strict=True)} for row in rows]


def _percent(figure: Bounded) -> str:
    return _words(*_ends(figure))


def _words(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    ends = "" if low is None or high is None else f" ({100 * low:.1f} to {100 * high:.1f})"
    return f"{100 * value:.1f} %{ends}"


def _shown_figures(rows: Sequence[Sequence[Any]]) -> Layout:
    shown = []
    for who, n, right, value, low, high, perplexity, least, most in rows:
        nats = "" if perplexity is None else f"{perplexity:,.1f}"
        if least is not None and most is not None:
            nats += f" ({least:,.1f} to {most:,.1f})"
        shown.append([who, f"{n:,}", "" if right is None else f"{right:,}", _words(value, low, high), nats])
    return Layout(["who", "guesses", "right", "share, 95 %", "perplexity, 95 %"], shown)


def _shown_parts(rows: Sequence[Sequence[Any]]) -> list[Layout]:
    layouts = []
    for division in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == division]
        shown = [[part, who, f"{n:,}", _words(value, low, high)] for _division, part, who, n, value, low, high in own]
        layouts.append(Layout(["part", "who", "guesses", "share, 95 %"], shown, title=f"By {division}"))
    return layouts


def _shown_people(table: GuessTable, listed: Sequence[Any]) -> Layout:
    shown = [
        [name, f"{n:,}", f"{100 * right / n:.1f} %", *("-" if one is None else f"{100 * one:.1f} %" for one in shares)]
        for name, n, right, shares in listed
    ]
    note = f"People with {analysis.LEAST_OF_PERSON} guesses or more; models on the same positions."
    return Layout(["person", "guesses", "right", *(model.name for model in table.models)], shown, note=note)


def _shown_together(rows: Sequence[Sequence[Any]]) -> Layout:
    shown = [[who, f"{n:,}", _words(value, low, high)] for who, n, value, low, high in rows]
    return Layout(["who", "positions", "share, 95 %"], shown)
