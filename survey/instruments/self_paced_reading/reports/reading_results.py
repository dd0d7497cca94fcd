"""The figures of reading times as tables, pictures and files."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow, Line, LineChart
from survey.figures.figure import finite
from survey.figures.words import integer, number
from survey.instruments.self_paced_reading.analysis import figures
from survey.instruments.self_paced_reading.analysis.figures import ReadingOfModel

from . import gamm
from .material import ReadingMaterial

LINEAR, SMOOTH, GAMM = "linear", "smooth", "gamm"
FITS = (LINEAR, SMOOTH, GAMM)
SHOWN = 40  # lines for people; the file has all
TENTHS = 10

CLEANING = (
    Column("rule", "text", "What is left out, in this order; a time is counted by the first rule alone."),
    Column("times", "number", "Times that the rule left out.", whole=True),
    Column("left_out", "number", "People, or passages that a person read, that it left out whole.", whole=True),
    Column("of", "text", "Which of the two."),
)
MODELS = (
    Column("model", "text", "Name of the language model."),
    Column("correlation", "number", "Of surprisal and mean time, over the words that have both.", digits=3),
    Column("correlated_words", "number", "How many these are.", whole=True, heading="words with both"),
    Column("delta_log_likelihood", "number", "What the surprisals add to the linear model, in nats, over all rows."),
    Column("delta_a_row", "number", "The same on rows that the fit has not seen, in nats a row.", digits=5),
    Column(
        "rows", "number", "Rows of the fit: single times, or mean times of words where nobody is named.", whole=True
    ),
    Column("words", "number", "Words of the fit.", whole=True),
)
SLOPES = (
    Column("model", "text", "Name of the language model."),
    Column("surprisal_of", "text", "This word, a word before it, or all together."),
    FigureColumn(
        "ms_a_nat",
        "number",
        "Milliseconds per nat of surprisal.",
        heading="ms per nat",
        digits=1,
        prefix="",
        low="Lower end of the 95 % interval, by person and passage; empty without people.",
    ),
)
WORDS = (
    Column("passage", "text", "Id of the passage."),
    Column("position", "number", "Words before this one.", whole=True),
    Column("word", "text", "The word, with its punctuation."),
    Column("mean_time", "number", "Mean of the times that count, in milliseconds.", heading="mean ms", digits=1),
    Column("times", "number", "How many count.", whole=True),
)


def make(
    material: ReadingMaterial,
    *,
    fit: str,
    title: str,
    lines: Sequence[str],
    notes: Sequence[str],
    models: Sequence[ReadingOfModel] | None = None,
) -> ReportResult:
    """Tables, pictures and files; with the fit `gamm` also the script for R and its data. models: those of `models_of`,
    where they are known already."""
    kept_times = material.kept
    time, right = figures.mean_time(kept_times), figures.right_share(material.times)
    models = models_of(material) if models is None else models
    tables = [_cleaning_table(material)]
    if models:
        tables += [_models_table(models), _slopes_table(material, models)]
    tables.append(_words_table(material))
    more = [*lines, *_lines(material, right)]
    data = _data(material, models, time, right)
    files: list[ReportFile] = []
    said = list(notes)
    if fit == GAMM and models:
        files += [
            ReportFile(gamm.DATA, lambda: gamm.data(material)),
            ReportFile(gamm.SCRIPT, lambda: gamm.script(material)),
        ]
        more.append(
            f"generalised additive mixed models are fitted by R: Rscript {gamm.SCRIPT}, in the folder of this report"
        )
    common = _read_by_all(material)
    if models and any((np.isfinite(surprisal) & ~common).any() for surprisal in material.models.values()):
        said.append(
            f"models are compared on the {integer(int(common.sum()))} words to which all of them give a surprisal; the "
            "others enter no fit"
        )
    if not material.has_people:
        said.append("nobody is named in these times: the mean time of each word is fitted, without intervals")
        if material.fixated is not None:
            said.append(
                "previous_fixated enters no fit here: it says something of one person's reading, and nobody is named"
            )
    return ReportResult(
        title=title,
        headline=f"On average people look at a word for {in_ms(time)}." if time.is_defined else "",
        lines=more,
        tables=tables,
        pictures=list(_pictures(material, models)),
        files=files,
        notes=said,
        data=data,
    )


def models_of(material: ReadingMaterial) -> list[ReadingOfModel]:
    """What each model adds, on the words to which all of them give a surprisal; none without frequencies."""
    if not material.frequencies_known:
        return []
    common = _read_by_all(material)
    return [
        figures.of_model(
            name,
            words=material.words,
            prepared=material.prepared,
            times=material.kept_singles,
            surprisal=np.where(common, surprisal, np.nan),
            has_people=material.has_people,
        )
        for name, surprisal in material.models.items()
    ]


def _read_by_all(material: ReadingMaterial) -> np.ndarray:
    """Which words (W,) all models give a surprisal to: what they add to a fit is compared on the same words."""
    known = [np.isfinite(surprisal) for surprisal in material.models.values()]
    return np.all(known, axis=0) if known else np.zeros(len(material.words.word), dtype=bool)


def _lines(material: ReadingMaterial, right: Figure) -> Iterator[str]:
    yield (
        f"{integer(len(material.kept))} of {integer(len(material.times))} times count; every rule of the table below "
        "can be changed"
    )
    if right.is_defined:
        yield f"questions answered right (95 % interval): {right.in_words(unit='share')}, by all people"


def in_ms(figure: Figure) -> str:
    return replace(figure, unit="ms").in_words(1)


def _cleaning_table(material: ReadingMaterial) -> Table:
    return Table(
        "reading_left_out",
        "What is left out",
        CLEANING,
        [[left_out.rule, left_out.times, left_out.whole, left_out.of_what] for left_out in material.cleaning.left_out],
        note="The rules apply in this order, and a time is counted once.",
    )


def _models_table(models: Sequence[ReadingOfModel]) -> Table:
    return Table(
        "reading_models",
        "What surprisal adds to the prediction of times",
        MODELS,
        [row_of(model) for model in models],
        note="A column of noise in the model's place would add half a nat for each surprisal that enters.",
    )


def row_of(model: ReadingOfModel) -> list[Any]:
    """Its cells under MODELS."""
    return [model.name, model.correlation, model.correlated, *_deltas(model), model.rows, model.words]


def _deltas(reading: ReadingOfModel) -> tuple[float | None, float | None]:
    """In all, and per row that the fit has not seen."""
    return (None, None) if reading.delta is None else (reading.delta.total, reading.delta.a_word)


def _of(place: int) -> str:
    return {0: "this word", 1: "the word before"}.get(place, f"{place} words before")


def next_to(material: ReadingMaterial) -> str:
    """What else the fits hold."""
    curves = ", as curves" if material.smooth else ""
    fixated = ", and whether the word before was fixated" if material.enters_fixated else ""
    return f"Next to length, log frequency, their product, and the position{curves}{fixated}."


def _slopes_table(material: ReadingMaterial, models: Sequence[ReadingOfModel]) -> Table:
    rows = [
        [model.name, name, slope]
        for model in models
        for name, slope in [
            *((_of(place), slope) for place, slope in enumerate(model.slopes)),
            ("all together", model.total),
        ]
    ]
    return Table(
        "reading_slopes",
        "Milliseconds per nat of surprisal",
        SLOPES,
        rows,
        note=f"{next_to(material)} Intervals are by person and passage.",
    )


def _words_table(material: ReadingMaterial) -> Table:
    means, count = figures.mean_times(material.kept, len(material.words.word))
    order = np.lexsort((material.words.position, material.words.sentence))
    rows = [
        [
            material.passage_names[int(material.words.sentence[row])],
            int(material.words.position[row]),
            material.words.word[row],
            float(means[row]),
            int(count[row]),
        ]
        for row in order.tolist()
    ]
    measured = [place for place, row in enumerate(rows) if math.isfinite(row[3])]
    view = TableView(
        rows=sorted(measured, key=lambda place: -rows[place][3]),
        most=SHOWN,
        note="The words that took longest come first.",
    )
    return Table("reading_words", "Words", WORDS, rows, views=[view])


def _pictures(material: ReadingMaterial, models: Sequence[ReadingOfModel]) -> Sequence[Picture]:
    made = []
    drawn = [model for model in models if any(slope.is_defined for slope in model.slopes)]
    if drawn:
        series = [_of(place) for place in range(material.previous + 1)]
        slopes = ForestChart(
            title="Milliseconds per nat of surprisal",
            x=Axis("ms per nat, with 95 % intervals"),
            series=series,
            rows=[ForestRow(reading.name, list(reading.slopes)) for reading in drawn],
            mark_at=0.0,
        )
        text = "; ".join(
            f"{reading.name}: "
            + ", ".join(f"{of} {in_ms(slope)}" for of, slope in zip(series, reading.slopes, strict=True))
            for reading in drawn
        )
        made.append(Picture.of("slopes", "Milliseconds per nat of surprisal", text, slopes))
    tenths = {name: _tenths(material, surprisal) for name, surprisal in material.models.items()}
    usable = {name: points for name, points in tenths.items() if points}
    if usable:
        by_tenth = LineChart(
            title="Mean time by surprisal",
            x=Axis("mean surprisal of the words, nats"),
            y=Axis("mean time, ms"),
            lines=[Line(name, tenths) for name, tenths in usable.items()],
        )
        text = "; ".join(
            f"{name}: from {number(tenths[0][1], 0)} ms at {number(tenths[0][0], 1)} nats "
            f"to {number(tenths[-1][1], 0)} ms at {number(tenths[-1][0], 1)} nats"
            for name, tenths in usable.items()
        )
        title = "Mean time of words, from the least to the most surprising tenth"
        made.append(Picture.of("tenths", title, text, by_tenth))
    return made


def _tenths(material: ReadingMaterial, surprisal: np.ndarray) -> list[tuple[float, float]]:
    """The mean surprisal and the mean time of words in up to ten equal parts by surprisal."""
    means, _count = figures.mean_times(material.kept, len(material.words.word))
    rows = np.flatnonzero(np.isfinite(surprisal) & np.isfinite(means))
    if len(rows) < 2 * TENTHS:
        return []
    order = rows[np.argsort(surprisal[rows], kind="stable")]
    return [(float(surprisal[part].mean()), float(means[part].mean())) for part in np.array_split(order, TENTHS)]


def _data(material: ReadingMaterial, models: Sequence[ReadingOfModel], time: Figure, right: Figure) -> dict[str, Any]:
    return {
        "times": len(material.times),
        "counted": len(material.kept),
        "left_out": {left_out.rule: left_out.times for left_out in material.cleaning.left_out},
        "mean_time": _as_json(time),
        "right": _as_json(right),
        "models": {model.name: _of_model(model) for model in models},
    }


def _of_model(reading: ReadingOfModel) -> dict[str, Any]:
    total, each = _deltas(reading)
    return {
        "correlation": finite(reading.correlation),
        "correlated_words": reading.correlated,
        "delta_log_likelihood": total,
        "delta_a_row": each,
        "rows": reading.rows,
        "words": reading.words,
        "slopes": [_as_json(slope) for slope in reading.slopes],
        "slope": _as_json(reading.total),
    }


def _as_json(figure: Figure) -> dict[str, Any]:
    return {"value": figure.value, "interval": figure.interval}
