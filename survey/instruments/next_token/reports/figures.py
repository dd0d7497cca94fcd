"""Tables, figures and JSON of guesses: the same for a study and for a file of guesses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from survey.contracts.reports import Picture, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, PointChart, ScatterPoint
from survey.figures.words import DIFFERENCE, integer, number, percent
from survey.instruments.next_token.analysis import guesses as analysis
from survey.instruments.next_token.analysis import shannon
from survey.instruments.next_token.analysis.guesses import GuessTable

PEOPLE = "people"
BUSY = f"people with {analysis.MIN_OF_PERSON} guesses or more"
ENDS = {
    "low": Column("low", "number", "Lower end of its 95 % interval, by person and passage."),
    "high": Column("high", "number", "Upper end."),
}
FIGURES = (
    Column("who", "text", "people, the name of a model, or people less a model."),
    Column("asked", "number", "Guesses: for a model, those at positions that it has read.", whole=True),
    Column("right", "number", "Right ones among them, without weights.", whole=True),
    FigureColumn(
        "share",
        "0 to 1",
        "Right guesses over guesses, design-weighted; for a difference, people less the model.",
        parts=ENDS,
    ),
    FigureColumn(
        "perplexity",
        "number",
        "Of a model at these positions; empty for people.",
        digits=1,
        low="Lower end of its 95 % interval.",
        high="Upper end.",
    ),
    Column(
        "perplexity_at_least",
        "number",
        "Of a model that lists only its likeliest tokens: what its perplexity is at least, and `perplexity` at most.",
        digits=1,
        heading="at least",
    ),
)
ABOVE = (
    Column("who", "text", "The model."),
    Column("people", "number", "People with 50 guesses or more at positions that it has read.", whole=True),
    Column("above", "number", "Those who are right more often than the model on these positions.", whole=True),
    Column("equal", "number", "Those who are right exactly as often.", whole=True),
    FigureColumn(
        "share",
        "0 to 1",
        "Of these people, those above the model.",
        parts={
            "low": Column("low", "number", "Lower end of its 95 % interval: other people, the same texts."),
            "high": ENDS["high"],
        },
    ),
)
PARTS = (
    Column("division", "text", "What the guesses are divided by."),
    Column("part", "text", "The part."),
    Column("who", "text", "people, or the name of a model on the same positions."),
    Column("asked", "number", "Guesses.", whole=True, heading="guesses"),
    FigureColumn("share", "0 to 1", "Right guesses over guesses, design-weighted.", parts=ENDS),
)
BY_PERSON = (
    Column("person", "text", "Pseudonym, or the name in the file."),
    Column("asked", "number", "Guesses; only people with 50 or more are listed.", whole=True, heading="guesses"),
    Column("right", "number", "Right ones among them.", whole=True),
    Column("share", "0 to 1", "Their share."),
    Column("who", "text", "A model on the same positions; empty where there is none."),
    Column("share_of_model", "0 to 1", "The model's share of right guesses there."),
)
ENSEMBLE = (
    Column("who", "text", "The most frequent guess, the mean person, their difference, or a model."),
    Column("positions", "number", "Positions that five or more people guessed.", whole=True),
    FigureColumn(
        "share",
        "0 to 1",
        "Of these positions, those at which it is the true token.",
        parts={**ENDS, "low": Column("low", "number", "Lower end of its 95 % interval, by passage and person.")},
    ),
)
PRACTICE = (
    Column("part", "text", "Guesses of a person, counted from their first; or each doubling of their number."),
    Column("people", "number", "People with guesses in this part and in the first one.", whole=True),
    Column("guesses", "number", "Their guesses in this part.", whole=True),
    FigureColumn(
        "change",
        "-1 to 1",
        "Their mean share of right guesses in this part less their own in the first one; for a doubling, the slope "
        "over the guesses of each person.",
        parts={"low": Column("low", "number", "Lower end of its 95 % interval, by person."), "high": ENDS["high"]},
    ),
)
REMARKS = (
    Column("where", "text", "The question of the form, or the item."),
    Column("text", "text", "What somebody wrote.", written=True),
)
SHANNON = (
    Column("unit", "text", "A character, a word with the blanks around it, or a token of a tokenizer."),
    Column("length", "number", "Characters of such a unit in these texts, on average.", digits=2),
    FigureColumn(
        "bits_least",
        "number",
        "Bits that it holds for people, at least: Shannon’s lower bound.",
        digits=2,
        low="Lower end of its 95 % interval, by person and passage.",
        high="Upper end.",
    ),
    FigureColumn(
        "bits_most",
        "number",
        "At most: Shannon’s upper bound.",
        digits=2,
        low="Lower end of its 95 % interval.",
        high="Upper end.",
    ),
    FigureColumn(
        "perplexity_least",
        "number",
        "The perplexity of a unit, at least: 2 to the power of its bits.",
        digits=1,
        low="Lower end of its 95 % interval.",
        high="Upper end.",
    ),
    FigureColumn(
        "perplexity_most",
        "number",
        "At most.",
        digits=1,
        low="Lower end of its 95 % interval.",
        high="Upper end.",
    ),
)


@dataclass(frozen=True)
class ShannonGame:
    """What people’s guesses until right say, and by name the mean characters of the units for which it is said, the
    character first; NaN where the texts have no such unit."""

    uncertainty: shannon.Uncertainty
    lengths: Mapping[str, float]

    def units(self) -> list[tuple[str, float]]:
        """Those that the texts have, with their mean characters."""
        return [(unit, length) for unit, length in self.lengths.items() if not math.isnan(length)]


LINE_OF_MODEL = "a line is a model on all of these positions"


def report_result(
    table: GuessTable,
    *,
    title: str,
    notes: Sequence[str] = (),
    characters: bool = False,
    remarks: Sequence[tuple[str, str]] = (),
    game: ShannonGame | None = None,
) -> ReportResult:
    """
    table: one guess or more. characters: the tokens are characters, so that figures are in bits per character too.
    remarks: what people wrote in their own words, and where. game: of characters that were guessed until right.
    """
    own = analysis.share(table)
    together = analysis.ensemble(table)
    listed = analysis.by_person(table)
    said = [
        f"{integer(own.n)} guesses by {integer(len(table.people))} people in {integer(len(table.passages))} passages"
    ]
    if table.given:
        said.append(f"{integer(table.given)} tokens that nobody can type were shown and not asked for")
    more = list(notes)
    bits = _bits(table, own) if characters else {}
    entropy = Table(
        "next_token_shannon",
        "Shannon’s game",
        SHANNON,
        [] if game is None else _shannon(game),
        note="Bits that a unit holds for people, from their guesses until each character is right (Shannon 1951).",
    )
    if game is not None:
        said += _game_in_words(game)
    if bits:
        said += _bits_in_words(bits, with_people=game is None)
    more += _open_ends(table)
    if any(np.isinf(model.surprisal).any() for model in table.models):
        more.append("an infinite perplexity: the model gave some true token no chance at all")
    if together is None:
        more.append(f"no position was guessed by {analysis.MIN_OF_ENSEMBLE} people, so there is no ensemble")
    if not listed:
        more.append(f"nobody has {analysis.MIN_OF_PERSON} guesses, so there is no table by person")
    parts = _parts(table)
    first = Table("next_token", "Right guesses", FIGURES, _figures(table))
    by_part = Table(
        "next_token_parts",
        "Where people are right",
        PARTS,
        parts,
        views=[
            TableView(["part", "who", "asked", "share"], title=f"By {division}", where={"division": division})
            for division in dict.fromkeys(row[0] for row in parts)
        ],
    )
    practice = Table(
        "next_token_practice",
        "Practice within people",
        PRACTICE,
        _practice(table),
        note="Each person with themselves, so that it does not matter who stays.",
    )
    written = Table("next_token_remarks", "Remarks", REMARKS, remarks, verbatim=True)
    above = Table(
        "next_token_above",
        "People above each model",
        ABOVE,
        _above(table) if listed else [],
        note=f"People with {analysis.MIN_OF_PERSON} guesses or more, each on the positions of their own.",
    )
    by_person = Table(
        "next_token_people",
        "By person",
        BY_PERSON,
        _people(table, listed),
        note=f"People with {analysis.MIN_OF_PERSON} guesses or more; models on the same positions.",
        verbatim=True,  # What single people did is for those who may read answers.
        views=[TableView(["person", "asked", "share"], across="who", cells="share_of_model")] if table.models else (),
    )
    crowd = Table("next_token_ensemble", "Many people together", ENSEMBLE, _together(table, together))
    pictures = []
    if listed:
        shares = [(model.name, analysis.mean(model.right, table).number) for model in table.models]
        chart = PointChart(
            title="Right guesses of each person, and models on the same positions",
            x=Axis("guesses of the person", log=True),
            y=Axis("right guesses", share=True, includes=(0.0,)),
            points=[ScatterPoint(n, right / n) for _name, n, right, _models in listed],
            levels=[(f"{name}, {percent(share)}", share) for name, share in shares],
        )
        text = f"{len(listed)} people, a dot each, by their share of right guesses; {LINE_OF_MODEL}."
        pictures.append(Picture.of("next_token_people", "Each person and the models", text, chart))
    data = {
        "guesses": own.n,
        "right": own.right,
        "people": len(table.people),
        "passages": len(table.passages),
        "given": table.given,
        "share": _figure(own.figure),
        "figures": first.records(),
        "parts": by_part.records(),
        "practice": practice.records(),
        "above": above.records(),
        "persons": by_person.records(),
        "ensemble": crowd.records(),
        "remarks": written.records(),
        "shannon": entropy.records(),
        **({"bits_a_character": bits} if bits else {}),
    }
    of_models, of_game = [above] if table.models else [], [entropy] if entropy.rows else []
    others = [more_rows for more_rows in (crowd, written) if more_rows.rows]
    tables = [first, *of_game, by_part, practice, *of_models, by_person, *others]
    return ReportResult(title, said, tables, pictures, notes=more, data=data, headline=_headline(own, table))


MAX_IN_HEADLINE = 3  # models


def _headline(own: analysis.RightShare, table: GuessTable) -> str:
    """How often people are right, and each of a few models at the same positions."""
    if own.figure.value is None:
        return ""
    shares = [(model.name, analysis.mean(model.right, table)) for model in table.models[:MAX_IN_HEADLINE]]
    models = [f"{name} {share.in_words(unit='share')}" for name, share in shares if share.is_defined]
    beside = f"; at the same positions {', '.join(models)}" if models else ""
    return f"People guess {own.figure.in_words(unit='share')} of the tokens right{beside}."


def _bits(table: GuessTable, own: analysis.RightShare) -> dict[str, Any]:
    """Bits per character: the most that people's can be, with its interval, and each model's."""
    kinds = len(set(table.truth) | set(table.guess))

    def bits(share: float | None) -> float | None:
        return None if share is None else analysis.most_bits(share, kinds)

    # The more often people are right, the less uncertain they can be.
    most = _figure(Figure(bits(own.figure.value), bits(own.figure.high), bits(own.figure.low)))
    models = {}
    for model in table.models:
        never = bool(np.isposinf(model.surprisal).any())  # It gave some true character no chance.
        nats = analysis.mean(model.surprisal, table, scale="number")
        models[model.name] = Figure() if never else _figure(nats, math.log(2))
    return {
        "characters": kinds,
        "people_at_most": most,
        "perplexity_at_most": None if most.value is None else round(2**most.value, 6),
        "models": models,
    }


def _bits_in_words(bits: dict[str, Any], *, with_people: bool) -> Iterator[str]:
    """with_people: first guesses are all that is known of them."""
    if with_people:
        yield (
            f"people's uncertainty is at most {bits['people_at_most']} bits per character (Fano's bound with "
            f"{bits['characters']} characters), a perplexity of {number(bits['perplexity_at_most'], 1)} at most"
        )
    for name, figure in bits["models"].items():
        if figure.is_defined:
            yield f"{name}: {figure} bits per character"


def _figures(table: GuessTable) -> list[tuple[Any, ...]]:
    own = analysis.share(table)
    rows: list[tuple[Any, ...]] = [(PEOPLE, own.n, own.right, _figure(own.figure), None, None)]
    busy = analysis.of_the_busy(table)
    if busy.any() and not busy.all():
        those = analysis.share(table, busy)
        rows.append((BUSY, those.n, those.right, _figure(those.figure), None, None))
    for model in table.models:
        known = np.isfinite(model.right)
        n, right = int(known.sum()), int(model.right[known].sum())
        rows.append(
            (
                model.name,
                n,
                right,
                _figure(analysis.mean(model.right, table)),
                _figure(analysis.perplexity(model, table)),
                _rounded(analysis.least_perplexity(model, table)),
            )
        )
    for model in table.models:
        n = int(np.isfinite(model.right).sum())
        difference = analysis.mean(table.right - model.right, table, scale="difference")
        points_less = replace(_figure(difference), unit=DIFFERENCE)
        rows.append((f"{PEOPLE} less {model.name}", n, None, points_less, None, None))
    return rows


def _open_ends(table: GuessTable) -> Iterator[str]:
    """What is not known of models that list only their likeliest tokens."""
    for model in table.models:
        if model.least is None:
            continue
        known = int(np.isfinite(model.right).sum())
        places = ""
        if model.unsure is not None:
            unsure = int(np.sum(model.unsure))
            places = f"; at {integer(unsure)} of {integer(known)} guesses these might outweigh the likeliest one"
        yield (
            f"{model.name} names no tokens of these texts, so it is read by the characters that its likeliest "
            "tokens cover. Its perplexity is a bound, since tokens beyond its list may spell the true token too"
            f"{places}"
        )


def _shannon(game: ShannonGame) -> list[tuple[Any, ...]]:
    rows = []
    for unit, length in game.units():
        bounds = (game.uncertainty.least, game.uncertainty.most)
        bits = [_figure(figure, 1 / length) for figure in bounds]
        rows.append((unit, round(length, 6), *bits, *(_figure(shannon.perplexity_of(each, length)) for each in bounds)))
    return rows


def _game_in_words(game: ShannonGame) -> Iterator[str]:
    least, most = game.uncertainty.least, game.uncertainty.most
    if not least.is_defined:
        return
    upper = f"and {_figure(most)} at most" if most.is_defined else f"(no upper bound: {most.withheld})"
    yield f"the next character holds {_figure(least)} bits at least {upper} for people"
    for unit, length in game.units()[1:]:
        low, high = (number(shannon.perplexity_of(bits, length).number, 1) for bits in (least, most))
        bounds = f"{low} to {high}" if most.is_defined else f"{low} at least"
        yield f"that is a perplexity of {bounds} for each {unit} of {number(length, 1)} characters on average"
    if game.uncertainty.untold:
        yield f"{percent(game.uncertainty.untold)} of the characters were shown before anybody guessed them"


def _practice(table: GuessTable) -> list[tuple[Any, ...]]:
    first, *others = analysis.practice_by_part(table)
    rows: list[tuple[Any, ...]] = [(first.part, first.people, first.guesses, None)] if first.people else []
    rows += [
        (part.part, part.people, part.guesses, replace(_figure(part.change), unit=DIFFERENCE))
        for part in others
        if part.people
    ]
    people, change = analysis.practice_per_doubling(table)
    if change.is_defined:
        rows.append(
            ("each doubling of the guesses so far", people, len(table), replace(_figure(change), unit=DIFFERENCE))
        )
    return rows


def _above(table: GuessTable) -> list[tuple[Any, ...]]:
    counts = [(model.name, analysis.people_above(model, table)) for model in table.models]
    return [
        (name, count.people, count.above, count.equal, _figure(count.figure)) for name, count in counts if count.people
    ]


def _parts(table: GuessTable) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for division, parts in analysis.divisions(table).items():
        own = np.array(parts, dtype=str)
        for part in sorted({part for part in parts if part}, key=analysis.order_of):
            inside = own == part
            right_share = analysis.share(table, inside)
            rows.append((division, part, PEOPLE, right_share.n, _figure(right_share.figure)))
            for model in table.models:
                n = int((inside & np.isfinite(model.right)).sum())
                if n:
                    rows.append((division, part, model.name, n, _figure(analysis.mean(model.right, table, inside))))
    return rows


def _people(table: GuessTable, listed: Sequence[Any]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for name, n, right, shares in listed:
        pairs = [(model.name, share) for model, share in zip(table.models, shares, strict=True)] or [("", None)]
        rows += [(name, n, right, _rounded(right / n), model, _rounded(share)) for model, share in pairs]
    return rows


def _together(table: GuessTable, ensemble: analysis.EnsembleFigures | None) -> list[tuple[Any, ...]]:
    if ensemble is None:
        return []
    names = [model.name for model in table.models]
    return [
        ("most frequent guess", ensemble.positions, _figure(ensemble.ensemble)),
        ("mean person", ensemble.positions, _figure(ensemble.person)),
        ("most frequent guess less mean person", ensemble.positions, _figure(ensemble.difference)),
        *(
            (name, ensemble.positions, _figure(model_figure))
            for name, model_figure in zip(names, ensemble.models, strict=True)
        ),
    ]


def _figure(figure: Figure | Figure, unit: float = 1.0) -> Figure:
    """With 6 digits, in this unit."""
    value, low, high = (_rounded(end, unit) for end in (figure.value, figure.low, figure.high))
    return Figure(value, low, high, withheld=figure.withheld)


def _rounded(value: float | None, unit: float = 1.0) -> float | None:
    return None if value is None else round(value / unit, 6)
