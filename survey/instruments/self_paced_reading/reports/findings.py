"""The figures of reading times as tables, pictures and files."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from survey.contracts.reports import Findings, Layout, Picture, ReportFile, Table
from survey.contracts.tables import Column
from survey.instruments.self_paced_reading.analysis import figures
from survey.instruments.self_paced_reading.analysis.cleaning import LeftOut
from survey.instruments.self_paced_reading.analysis.figures import ReadingOfModel
from survey.services.results.expectations.errors import Bounded
from survey.services.results.forest_chart import ForestRow, Whisker, forest

from . import gamm
from .material import ReadingMaterial

LINEAR, GAMM = "linear", "gamm"
FITS = (LINEAR, GAMM)
SHOWN = 40  # lines for people; the file has all
TENTHS = 10
SINGLE = {"people": "person", "passages read": "passage read"}

CLEANING = (
    Column("rule", "text", "What is left out, in this order; a time is counted by the first rule alone."),
    Column("times", "number", "Times that the rule left out.", whole=True),
    Column("left_out", "number", "People, or passages that a person read, that it left out whole.", whole=True),
    Column("of", "text", "Which of the two."),
)
MODELS = (
    Column("model", "text", "Name of the language model."),
    Column("correlation", "number", "Of surprisal and mean time, over the words that have both."),
    Column("correlated_words", "number", "How many these are.", whole=True),
    Column("delta_log_likelihood", "number", "What the surprisals add to the linear model, in nats, over all rows."),
    Column("delta_a_row", "number", "The same on rows that the fit has not seen, in nats a row."),
    Column(
        "rows", "number", "Rows of the fit: single times, or mean times of words where nobody is named.", whole=True
    ),
    Column("words", "number", "Words of the fit.", whole=True),
)
SLOPES = (
    Column("model", "text", "Name of the language model."),
    Column("surprisal_of", "text", "This word, a word before it, or all together."),
    Column("ms_a_nat", "number", "Milliseconds a nat of surprisal."),
    Column("low", "number", "Lower end of the 95 % interval, by person and passage; empty without people."),
    Column("high", "number", "Its upper end."),
)
WORDS = (
    Column("passage", "text", "Id of the passage."),
    Column("position", "number", "Words before this one.", whole=True),
    Column("word", "text", "The word, with its punctuation."),
    Column("mean_time", "number", "Mean of the times that count, in milliseconds."),
    Column("times", "number", "How many count.", whole=True),
)


def make(material: ReadingMaterial, *, fit: str, title: str, lines: Sequence[str], notes: Sequence[str]) -> Findings:
    """Tables, pictures and files; with the fit `gamm` also the script for R and its data."""
    kept = material.kept
    time, right = figures.mean_time(kept), figures.right_share(material.times)
    models = _models(material)
    tables = [_cleaning_table(material)]
    if models:
        tables += [_models_table(models), _slopes_table(models)]
    tables.append(_words_table(material))
    more = [*lines, *_lines(material, time, right)]
    files = [ReportFile("reading.json", _json(material, models, time, right))]
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
            f"models are compared on the {int(common.sum()):,} words to which all of them give a surprisal; the others "
            "enter no fit"
        )
    if not material.has_people:
        said.append("nobody is named in these times: the mean time of each word is fitted, without intervals")
    return Findings(
        title=title,
        lines=more,
        tables=tables,
        pictures=list(_pictures(material, models)),
        files=files,
        notes=said,
        data=_data(material, models, time, right),
    )


def _models(material: ReadingMaterial) -> list[ReadingOfModel]:
    if not material.frequencies_known:
        return []
    common = _read_by_all(material)
    return [
        figures.of_model(
            name,
            words=material.words,
            prepared=material.prepared,
            times=material.kept,
            surprisal=np.where(common, surprisal, np.nan),
            has_people=material.has_people,
        )
        for name, surprisal in material.models.items()
    ]


def _read_by_all(material: ReadingMaterial) -> np.ndarray:
    """Which words (W,) all models give a surprisal to: what they add to a fit is compared on the same words."""
    known = [np.isfinite(surprisal) for surprisal in material.models.values()]
    return np.all(known, axis=0) if known else np.zeros(len(material.words.word), dtype=bool)


def _lines(material: ReadingMaterial, time: Bounded, right: Bounded) -> list[str]:
    kept, every = len(material.kept), len(material.times)
    said = [
        f"{kept:,} of {every:,} times count; every rule of the table below can be changed",
        f"mean time a word: {_ms(time)}",
    ]
    if right.is_defined:
        said.append(f"questions answered right: {_share(right)}, by all people")
    return said


def _ms(value: Bounded) -> str:
    if not value.is_defined:
        return "-"
    end = "" if value.low is None or value.high is None else f" (95 %: {value.low:.1f} to {value.high:.1f})"
    return f"{value.value:.1f} ms{end}"


def _share(value: Bounded) -> str:
    end = "" if value.low is None or value.high is None else f" (95 %: {100 * value.low:.1f} to {100 * value.high:.1f})"
    return f"{100 * value.or_nan:.1f} %{end}"


def _cleaning_table(material: ReadingMaterial) -> Table:
    rows = [[one.rule, one.times, one.whole, one.of_what] for one in material.cleaning.left_out]
    shown = [[one.rule, f"{one.times:,}", _whole(one) if one.of_what else "-"] for one in material.cleaning.left_out]
    return Table(
        "reading_left_out",
        "What is left out",
        CLEANING,
        rows,
        layouts=[Layout(["rule", "times", "whole"], shown)],
        note="The rules apply in this order, and a time is counted once.",
    )


def _whole(one: LeftOut) -> str:
    return f"1 {SINGLE[one.of_what]}" if one.whole == 1 else f"{one.whole:,} {one.of_what}"


def _models_table(models: Sequence[ReadingOfModel]) -> Table:
    rows, shown = [], []
    for one in models:
        total = None if one.delta is None else one.delta.total
        each = None if one.delta is None else one.delta.a_word
        rows.append([one.name, _known(one.correlation), one.correlated, total, each, one.rows, one.words])
        shown.append(
            [
                one.name,
                f"{one.correlation:.3f}" if math.isfinite(one.correlation) else "-",
                f"{one.correlated:,}",
                "-" if total is None else f"{total:.1f}",
                "-" if each is None else f"{each:.5f}",
                f"{one.rows:,}",
                f"{one.words:,}",
            ]
        )
    header = ["model", "r with mean time", "words with both", "delta log-likelihood", "a row, unseen", "rows", "words"]
    return Table(
        "reading_models",
        "What surprisal adds to the prediction of times",
        MODELS,
        rows,
        layouts=[Layout(header, shown)],
        note="A column of noise in the model's place would add half a nat for each surprisal that enters.",
    )


def _of(place: int) -> str:
    return {0: "this word", 1: "the word before"}.get(place, f"{place} words before")


def _slopes_table(models: Sequence[ReadingOfModel]) -> Table:
    rows: list[list[Any]] = []
    shown = []
    for one in models:
        named = [(_of(place), slope) for place, slope in enumerate(one.slopes)]
        for name, slope in [*named, ("all together", one.total)]:
            rows.append([one.name, name, _known(slope.value), slope.low, slope.high])
            shown.append([one.name, name, _ms(slope)])
    return Table(
        "reading_slopes",
        "Milliseconds a nat of surprisal",
        SLOPES,
        rows,
        layouts=[Layout(["model", "surprisal of", "ms a nat"], shown)],
        note="Beside length, log frequency, their product, and the position. Intervals are by person and passage.",
    )


def _words_table(material: ReadingMaterial) -> Table:
    means, count = figures.mean_times(material.kept, len(material.words.word))
    order = np.lexsort((material.words.position, material.words.sentence))
    rows = [
        [
            material.passage_names[int(material.words.sentence[row])],
            int(material.words.position[row]),
            material.words.word[row],
            _known(float(means[row])),
            int(count[row]),
        ]
        for row in order.tolist()
    ]
    slowest = sorted((row for row in rows if row[3] is not None), key=lambda row: -row[3])[:SHOWN]
    layout = Layout(
        ["passage", "position", "word", "mean time", "times"],
        [[row[0], str(row[1]), row[2], f"{row[3]:.1f} ms", str(row[4])] for row in slowest],
        note="The words that took longest; the file has all." if len(rows) > len(slowest) else "",
    )
    return Table("reading_words", "Words", WORDS, rows, layouts=[layout])


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _pictures(material: ReadingMaterial, models: Sequence[ReadingOfModel]) -> Sequence[Picture]:
    made = []
    drawn = [one for one in models if any(slope.is_defined for slope in one.slopes)]
    if drawn:
        series = [_of(place) for place in range(material.previous + 1)]

        def slopes(path: Path) -> None:
            path.write_text(
                forest(
                    name="slopes",
                    title="Milliseconds a nat of surprisal",
                    axis="ms a nat, with 95 % intervals",
                    series=series,
                    rows=[ForestRow(one.name, list(one.slopes)) for one in drawn],
                    mark_at=0.0,
                ),
                encoding="utf-8",
            )

        rows = "; ".join(
            f"{one.name}: " + ", ".join(f"{of} {_ms(slope)}" for of, slope in zip(series, one.slopes, strict=True))
            for one in drawn
        )
        made.append(Picture("slopes", "Milliseconds a nat of surprisal", rows, slopes))
    tenths = {name: _tenths(material, surprisal) for name, surprisal in material.models.items()}
    usable = {name: found for name, found in tenths.items() if found}
    if usable:
        count = max(len(found) for found in usable.values())

        def by_tenth(path: Path) -> None:
            path.write_text(
                forest(
                    name="tenths",
                    title="Mean time by surprisal",
                    axis="mean time, ms",
                    series=list(usable),
                    rows=[
                        ForestRow(
                            f"part {place + 1} of {count}",
                            [Whisker(found[place][1] if place < len(found) else None) for found in usable.values()],
                        )
                        for place in range(count)
                    ],
                ),
                encoding="utf-8",
            )

        text = "; ".join(
            f"{name}: from {found[0][1]:.0f} ms at {found[0][0]:.1f} nats "
            f"to {found[-1][1]:.0f} ms at {found[-1][0]:.1f} nats"
            for name, found in usable.items()
        )
        made.append(
            Picture("tenths", "Mean time of words, from the least to the most surprising tenth", text, by_tenth)
        )
    return made


def _tenths(material: ReadingMaterial, surprisal: np.ndarray) -> list[tuple[float, float]]:
    """The mean surprisal and the mean time of words in up to ten equal parts by surprisal."""
    means, _count = figures.mean_times(material.kept, len(material.words.word))
    rows = np.flatnonzero(np.isfinite(surprisal) & np.isfinite(means))
    if len(rows) < 2 * TENTHS:
        return []
    order = rows[np.argsort(surprisal[rows], kind="stable")]
    return [(float(surprisal[part].mean()), float(means[part].mean())) for part in np.array_split(order, TENTHS)]


def _data(material: ReadingMaterial, models: Sequence[ReadingOfModel], time: Bounded, right: Bounded) -> dict[str, Any]:
    return {
        "times": len(material.times),
        "counted": len(material.kept),
        "left_out": {one.rule: one.times for one in material.cleaning.left_out},
        "mean_time": _bounded(time),
        "right": _bounded(right),
        "models": {one.name: _of_model(one) for one in models},
    }


def _of_model(one: ReadingOfModel) -> dict[str, Any]:
    return {
        "correlation": _known(one.correlation),
        "correlated_words": one.correlated,
        "delta_log_likelihood": None if one.delta is None else one.delta.total,
        "delta_a_row": None if one.delta is None else one.delta.a_word,
        "rows": one.rows,
        "words": one.words,
        "slopes": [_bounded(slope) for slope in one.slopes],
        "slope": _bounded(one.total),
    }


def _bounded(value: Bounded) -> dict[str, Any]:
    interval = None if value.low is None or value.high is None else [value.low, value.high]
    return {"value": _known(value.value), "interval": interval}


def _json(material: ReadingMaterial, models: Sequence[ReadingOfModel], time: Bounded, right: Bounded) -> Any:
    content = json.dumps(_data(material, models, time, right), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return content.encode
