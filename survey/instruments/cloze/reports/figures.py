"""All figures of cloze norms next to language models, for studies and for norms that somebody has, as a report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit.fragility import Fragility
from predictors.evaluation.reading_times import Delta, PreparedWords, TimedWords, delta_log_likelihood, prepared
from predictors.evaluation.scoring import LN2, finite, perplexity_of
from survey.contracts.reports import Picture, ReportResult
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow, PointChart, ScatterPoint
from survey.figures.words import integer
from survey.instruments.cloze.analysis import correlation
from survey.instruments.cloze.analysis.answers import WordAnswers, halves, halves_of_counts
from survey.instruments.cloze.analysis.correlation import Positions
from survey.services.results.people_and_models.fragile_table import fragile_table
from survey.services.results.people_and_models.model_comparison import (
    NOTHING_KNOWN,
    ComparedModel,
    Comparison,
    ModelFacts,
    Threshold,
)

Floats = NDArray[np.float64]

MODELS = (
    Column("model", "text", "The language model."),
    Column("positions", "number", "Positions with people's and the model's surprisal.", whole=True),
    Column(
        "perplexity",
        "number",
        "exp of its mean surprisal, by word, at the positions whose words all models have read and know.",
    ),
    Column("bits_per_character", "number", "Its surprisal in bits over the characters of the words, a space each."),
    FigureColumn(
        "pnc",
        "number",
        "Correlation of people's and its surprisal over positions, by design weights.",
        heading="PNC",
        digits=3,
        prefix="",
    ),
    Column("ceiling", "number", "The highest PNC there can be: the root of the reliability of people's surprisal."),
    Column("pnc_over_ceiling", "number", "PNC / ceiling.", digits=3),
    Column("spearman", "number", "The same correlation of ranks.", digits=3),
    Column("pnc_corrected", "number", "PNC with the boundary-corrected surprisal.", digits=3),
)
DIFFERENCES = (
    Column("model", "text", "The one model."),
    Column("other", "text", "The other model."),
    FigureColumn(
        "difference",
        "number",
        "PNC of the one less PNC of the other, on the same positions.",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval, on the same resamples.",
    ),
    Column("positions", "number", "Positions that both models have.", whole=True),
)
PARTS = (
    Column("model", "text", "The language model."),
    Column("division", "text", "What divides the positions."),
    Column("part", "text", "The part."),
    Column("positions", "number", "How many it has.", whole=True),
    FigureColumn("pnc", "number", "PNC there.", heading="PNC", digits=3, prefix=""),
)
DELTAS = (
    Column("model", "text", "The language model, or people."),
    Column("time", "text", "Which reading time."),
    Column("words", "number", "Words that count.", whole=True),
    Column("delta_log_likelihood", "number", "What the surprisal of this and the previous word adds, in nats."),
    Column("unseen", "number", "The same by word, for words that the fit has not seen, in nats."),
)
MODEL_WORDS = (
    Column("model", "text", "The language model."),
    Column("sentence", "text", "Id of the sentence."),
    Column("position", "number", "Words before the word.", whole=True),
    Column("word", "text", "The sentence's own word."),
    Column("surprisal", "number", "Of the word, without the punctuation after it, in nats.", digits=2),
    Column("surprisal_corrected", "number", "The same, corrected for where words end; empty where it is not known."),
    Column("entropy", "number", "Of what the model expected there, over its tokens, in nats; empty where not known."),
    Column("likeliest", "text", "The likeliest words there; empty where they are not known."),
    Column("people", "text", "The most frequent words of people."),
)
PEOPLE = "people"
WORDS_SHOWN = 5
MAX_GROUPS = 6  # models in one scatter; more could not be told apart
MIN_IN_PART = 10  # positions; a part with fewer has no figure


@dataclass(frozen=True, eq=False)
class ModelColumn:
    """One model at N positions, in nats, NaN where a value is not known. unknown: where it read the word as one class
    of everything unknown; nowhere without it."""

    name: str
    surprisal: Floats
    corrected: Floats
    entropy: Floats
    likeliest: Sequence[str]
    facts: ModelFacts = NOTHING_KNOWN
    unknown: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, dtype=bool))

    @property
    def known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.surprisal)


@dataclass(frozen=True, eq=False)
class NormTable:
    """N positions that enter the figures.

    human, square: people's surprisal and its mean square at the number of answers that is aimed at. n, k, distinct:
    counts, where they are known. frequent: people's most frequent words. divisions: parts by the division's name.
    """

    sentence: Sequence[str]
    position: NDArray[np.int64]
    word: Sequence[str]
    human: Floats
    square: Floats
    weight: Floats
    most: int
    smoothing: float
    n: NDArray[np.int64] | None = None
    k: NDArray[np.int64] | None = None
    distinct: NDArray[np.int64] | None = None
    answers: WordAnswers | None = None
    influence: Floats | None = None
    frequent: Sequence[str] = ()
    divisions: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.sentence)

    @property
    def sentence_number(self) -> NDArray[np.int64]:
        return np.unique(np.array(self.sentence, dtype=str), return_inverse=True)[1].reshape(-1).astype(np.int64)

    def positions(self) -> Positions:
        known = self.answers is not None and self.influence is not None
        return Positions(
            self.human,
            self.square,
            self.weight,
            self.sentence_number,
            self.answers.position if self.answers is not None and known else None,
            self.influence if known else None,
            self.answers.person if self.answers is not None and known else None,
        )

    def reliability(self, rng: np.random.Generator) -> float | None:
        """Of people's surprisal at the number of answers that is aimed at; None where answers are not known."""
        if self.answers is not None:
            pairs = halves(self.answers, smoothing=self.smoothing, most=self.most, rng=rng)
            return correlation.reliability(pairs, self.weight)
        if self.n is None or self.k is None or self.distinct is None:
            return None
        counts = halves_of_counts(self.k, self.n, self.distinct, smoothing=self.smoothing, most=self.most, rng=rng)
        return correlation.reliability(counts, self.weight)


@dataclass(frozen=True, eq=False)
class ReadingTimes:
    """Words of whole sentences with reading times, of which the norms are a part or all: `times` by name (W,),
    people's surprisal there (W,), and each model's (W,)."""

    words: TimedWords
    times: Mapping[str, Floats]
    people: Floats
    models: Mapping[str, Floats]
    keeps_punctuation: bool = False


@dataclass(frozen=True)
class ModelPnc:
    """What is printed of one model."""

    name: str
    pnc: Figure
    pnc_corrected: float | None
    spearman: float | None
    perplexity: float | None
    bits_per_character: float | None
    column: ModelColumn = field(repr=False)


@dataclass(frozen=True, eq=False)
class ClozeFigures:
    """All figures."""

    models: Sequence[ModelPnc]
    differences: Mapping[tuple[str, str], Figure]
    parts: Sequence[tuple[str, str, str, Figure]]
    deltas: Sequence[tuple[str, str, Delta]]
    mean: Figure
    reliability: float | None
    common: int = 0
    """Positions whose words all models have read and know, over which their losses are compared."""
    order: tuple[Fragility, NDArray[np.int64]] | None = None
    """Which few positions carry the order of the models by PNC, and the places of those that all models have."""

    @property
    def ceiling(self) -> float | None:
        return None if self.reliability is None else math.sqrt(min(self.reliability, 1.0))

    def as_json(self) -> dict[str, Any]:
        """By model: pnc, interval, ceiling and positions."""
        return {
            model.name: {
                "pnc": finite(model.pnc.value),
                "interval": model.pnc.interval,
                "ceiling": finite(self.ceiling),
                "positions": model.pnc.answers,
            }
            for model in self.models
        }


def work_out(
    table: NormTable,
    models: Sequence[ModelColumn],
    *,
    rng: np.random.Generator,
    times: ReadingTimes | None = None,
) -> ClozeFigures:
    """All figures of these positions and models."""
    positions = table.positions()
    values = {model.name: model.surprisal for model in models}
    single, differences = correlation.pnc(positions, values, rng=rng)
    corrected, _none = correlation.pnc(
        positions,
        {model.name: model.corrected for model in models if np.isfinite(model.corrected).any()},
        rng=rng,
        samples=2,
    )
    reliability = table.reliability(rng)
    parts = [
        (name, division, part, value)
        for division, labels in table.divisions.items()
        for (name, part), value in sorted(correlation.by_part(positions, values, labels, rng=rng).items())
        if (value.answers or 0) >= MIN_IN_PART
    ]
    # What one model has not read, or has read as something unknown, tells nothing of the others: losses are compared
    # where all of them have read the word.
    read = [~np.isnan(model.surprisal) & ~model.unknown for model in models]
    common = np.all(read, axis=0) & np.isfinite(table.human) if models else np.zeros(len(table.human), dtype=bool)
    return ClozeFigures(
        models=[_of_model(table, model, single[model.name], corrected.get(model.name), common) for model in models],
        common=int(common.sum()),
        differences=differences,
        parts=parts,
        deltas=[] if times is None else list(_deltas(times)),
        mean=correlation.mean_surprisal(positions, rng=rng),
        reliability=reliability,
        order=correlation.fragile_order(positions, values),
    )


def _of_model(
    table: NormTable,
    model: ModelColumn,
    pnc: Figure,
    corrected: Figure | None,
    common: NDArray[np.bool_],
) -> ModelPnc:
    inside = model.known & np.isfinite(table.human)
    ranks = None
    if inside.sum() >= correlation.FEWEST:
        ranks = correlation.spearman(table.human[inside], model.surprisal[inside], table.weight[inside])
    perplexity = bits = None
    if np.isinf(model.surprisal[common]).any():
        perplexity = bits = math.inf
    elif common.any():
        weight = table.weight[common] / table.weight[common].sum()
        characters = np.array([len(word) + 1 for word in table.word], dtype=np.float64)[common]
        nats = float((weight * model.surprisal[common]).sum())
        perplexity, bits = perplexity_of(nats), nats / LN2 / float((weight * characters).sum())
    return ModelPnc(model.name, pnc, corrected.value if corrected else None, ranks, perplexity, bits, model)


def _deltas(times: ReadingTimes) -> Any:
    words: PreparedWords = prepared(times.words, keeps_punctuation=times.keeps_punctuation)
    for name, values in [*times.models.items(), (PEOPLE, times.people)]:
        for time, column in times.times.items():
            delta = delta_log_likelihood(words, column, values)
            if delta is not None:
                yield name, time, delta


def report_result(
    table: NormTable,
    figures: ClozeFigures,
    *,
    title: str,
    lines: Sequence[str],
    notes: Sequence[str],
    norms: Table | None = None,
    data: Mapping[str, Any] | None = None,
    above: str = "",
) -> ReportResult:
    """The figures as tables and pictures. `above`: over models, also among those with so much of a measure.

    Raises:
        HunchError: `above` is no measure with a number.
    """
    models = [model.column for model in figures.models]
    comparison = _comparison(figures, above)
    tables = [_models_table(figures)]
    if len(models) > 1:
        tables += comparison.tables()
    if figures.differences:
        tables.append(_differences_table(figures))
    if figures.order is not None:
        tables.append(_order_table(table, models, *figures.order))
    if figures.deltas:
        tables.append(_deltas_table(figures))
    if figures.parts:
        tables.append(_parts_table(figures))
    if norms is not None:
        tables.append(norms)
    if models:
        tables.append(_model_words(table, models))
    return ReportResult(
        title=title,
        headline=_headline(figures),
        lines=[*lines, *_lines(figures), *comparison.sentences()],
        tables=tables,
        pictures=[*_pictures(table, figures), *comparison.pictures()],
        notes=notes,
        data={"models": figures.as_json(), "reliability": finite(figures.reliability), **(data or {})},
    )


def _headline(figures: ClozeFigures) -> str:
    """What people's surprisal is, and which model's goes with it most closely."""
    said = [f"People's mean surprisal is {replace(figures.mean, unit='nats')}."] if figures.mean.is_defined else []
    known = [model for model in figures.models if model.pnc.is_defined]
    if known:
        best = max(known, key=lambda model: model.pnc.number)
        highest = f", the highest of {len(known)} models" if len(known) > 1 else ""
        said.append(f"The PNC of {best.name} is {best.pnc.in_words(3)}{highest}.")
    return " ".join(said)


def _lines(figures: ClozeFigures) -> list[str]:
    lines = []
    if figures.reliability is not None:
        lines.append(
            f"reliability of people's surprisal: {Figure(figures.reliability).in_words(3)}; no model's PNC is expected "
            f"above {Figure(figures.ceiling).in_words(3)}"
        )
    return lines


def _models_table(figures: ClozeFigures) -> Table:
    ceiling = figures.ceiling
    rows = [
        [
            model.name,
            model.pnc.answers,
            model.perplexity,
            model.bits_per_character,
            model.pnc,
            ceiling,
            None if model.pnc.value is None or not ceiling else model.pnc.value / ceiling,
            model.spearman,
            model.pnc_corrected,
        ]
        for model in figures.models
    ]
    note = f"Perplexity and bits are of the {integer(figures.common)} positions whose words all of these models know."
    return Table("models", "Language models next to people", MODELS, rows, note=note)


def _differences_table(figures: ClozeFigures) -> Table:
    rows = [[first_model, other, value, value.answers] for (first_model, other), value in figures.differences.items()]
    return Table("differences", "Differences of PNC between models", DIFFERENCES, rows)


def _order_table(
    table: NormTable, models: Sequence[ModelColumn], fragility: Fragility, places: NDArray[np.int64]
) -> Table:
    def label(row: int) -> str:
        place = int(places[row])
        return f"{table.sentence[place]}@{int(table.position[place])}"

    names = [model.name for model in models]
    return fragile_table([("", fragility)], names, unit="positions", label=label)


def _parts_table(figures: ClozeFigures) -> Table:
    rows = [[name, division, part, value.answers, value] for name, division, part, value in figures.parts]
    return Table("parts", "PNC by part", PARTS, rows)


def _deltas_table(figures: ClozeFigures) -> Table:
    rows = [[name, time, delta.words, delta.total, delta.a_word] for name, time, delta in figures.deltas]
    return Table(
        "delta_log_likelihood",
        "What surprisal adds to the prediction of reading times",
        DELTAS,
        rows,
        note="A column of noise in the model's place would have a delta log-likelihood of about 1.",
    )


def _model_words(table: NormTable, models: Sequence[ModelColumn]) -> Table:
    rows: list[list[Any]] = [
        [
            model.name,
            table.sentence[row],
            int(table.position[row]),
            table.word[row],
            float(model.surprisal[row]),
            float(model.corrected[row]),
            float(model.entropy[row]),
            model.likeliest[row] if len(model.likeliest) else "",
            table.frequent[row] if len(table.frequent) else "",
        ]
        for model in models
        for row in range(len(table))
        if not math.isnan(model.surprisal[row])
    ]
    view = TableView(
        ["model", "sentence", "position", "word", "surprisal", "likeliest", "people"],
        rows=sorted(range(len(rows)), key=lambda place: (rows[place][0], -rows[place][4])),
        most=40,
        note="The words that surprise each model most come first.",
    )
    return Table("model_words", "What models expected at each position", MODEL_WORDS, rows, views=[view], verbatim=True)


def _pictures(table: NormTable, figures: ClozeFigures) -> Any:
    models = [model for model in figures.models if model.pnc.value is not None]
    if not models:
        return
    rows = [ForestRow(model.name, [model.pnc]) for model in models]
    yield Picture.of(
        "pnc",
        "PNC of each model",
        "The predictability norm correlation of each model with its 95 % interval.",
        ForestChart(title="PNC of each model, 95 % intervals", x=Axis("PNC"), rows=rows, mark_at=0.0),
    )
    points = [
        ScatterPoint(float(x), float(y), group=model.name)
        for model in models[:MAX_GROUPS]
        for x, y in zip(model.column.surprisal, table.human, strict=True)
    ]
    yield Picture.of(
        "surprisals",
        "Human against model surprisal",
        "People's surprisal at each position against the model's, in nats"
        + (f"; the first {MAX_GROUPS} of {len(models)} models." if len(models) > MAX_GROUPS else "."),
        PointChart(
            title="Human against model surprisal",
            x=Axis("model surprisal (nats)"),
            y=Axis("human surprisal (nats)"),
            points=points,
        ),
    )


def _comparison(figures: ClozeFigures, above: str) -> Comparison:
    """Perplexity, PNC and delta log-likelihood of each reading time, over models."""
    times = {time: f"delta_{place + 1}" for place, time in enumerate(dict.fromkeys(of for _, of, _ in figures.deltas))}
    deltas = {(name, times[time]): delta.total for name, time, delta in figures.deltas}
    models = [
        ComparedModel.of_report(
            model.name,
            model.column.facts,
            perplexity=model.perplexity,
            pnc=model.pnc.value,
            deltas={key: deltas.get((model.name, key), math.nan) for key in times.values()},
        )
        for model in figures.models
    ]
    titles = {key: f"delta log-likelihood of {time}" for time, key in times.items()}
    comparison = Comparison(models, titles=titles, explained=["pnc", *titles])
    return replace(comparison, above=Threshold.read(above, comparison.measures)) if above else comparison
