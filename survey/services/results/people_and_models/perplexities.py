"""How well language models predict texts: perplexity by token, word and character, as findings about no study."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit.fragility import fragile_means
from predictors.errors import PredictorError
from predictors.evaluation.scoring import (
    LN2,
    ModelIntervals,
    TextScore,
    TrainTest,
    added,
    finite,
    in_words,
    text_intervals,
)
from predictors.readings import Text
from predictors.readings.text_reading import common_begin
from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.csv_lines import csv_lines
from survey.figures.words import integer
from survey.services.banks.readings import Readings, same_texts
from survey.services.base.seeds import generator
from survey.services.results.people_and_models.fragile_table import fragile_table

SEED = 0
BY_TEXT_SHOWN = 40  # Lines for people; files have all.
INCOMPARABLE = "not comparable per token"
UNRANKED = "is not ranked with models of another vocabulary"
MODELS = (
    Column("model", "text", "What read the texts."),
    Column("group", "text", "The text or the task; empty for all texts together."),
    Column("texts", "number", "How many texts, of those of which every model read something."),
    Column("tokens", "number", "How many tokens of the characters that every model read, without the end of a text."),
    Column("words", "number", "Words of these characters: what stands between white space."),
    Column("characters", "number", "Characters that every model read."),
    Column(
        "nats", "number", "Sum of -ln p over the tokens, the log-likelihood without its sign; empty where infinite."
    ),
    FigureColumn(
        "bits_per_character",
        "number",
        "nats / ln 2 / characters; empty where it is infinite.",
        heading="bits / char",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval, by resampling texts; empty for a single text.",
        high="Its upper end; empty where it is infinite.",
    ),
    Column(
        "perplexity_per_word",
        "number",
        "exp(nats / words); empty where it is infinite.",
        heading="perplexity / word",
        digits=2,
    ),
    Column(
        "bits_per_token",
        "number",
        "nats / ln 2 / tokens, the cross-entropy H; empty where it is infinite.",
        heading="H, bits / token",
        digits=2,
    ),
    Column(
        "perplexity_per_token",
        "number",
        "exp(nats / tokens), which is 2 to the power of H; empty where it is infinite.",
        heading="perplexity / token",
        digits=2,
    ),
    Column("infinite", "number", "Tokens with probability 0, each of which makes the figures infinite."),
    Column("perplexity_without_infinite", "number", "exp(nats / tokens) without these tokens."),
    Column(
        "train_perplexity_per_token",
        "number",
        "The same figure on the training texts, where they were given.",
        heading="train",
        digits=2,
    ),
    Column(
        "train_to_test",
        "number",
        "Train perplexity / test perplexity, a token; 0 where the test's is infinite.",
        heading="train / test",
        digits=2,
    ),
    Column("overfitted", "number", "1 where that ratio is below 0.5."),
    Column("tokenizer", "text", "SHA-256 of what cut the texts into tokens."),
    Column("vocabulary", "number", "How many tokens the model chooses from; empty where that is not known."),
    Column(
        "normalised_perplexity",
        "number",
        "Perplexity per token / vocabulary: 1 is a model that knows nothing.",
        heading="perplexity / vocabulary",
    ),
    Column("unknown", "number", "Tokens read as one class of everything unknown; empty where that is not known."),
    Column("unknown_share", "share", "These, of the tokens.", heading="unknown"),
    Column("at_least", "number", "1 where such a class hides what stood there: the figures are lower bounds."),
    Column("ranking", "number", "Models of the same number are ranked with one another, and no others."),
    Column("cut_by", "text", "The beginnings of the tokenizers' hashes.", heading="tokenizer", in_file=False),
    Column("bound", "text", "≥ where the model has not paid for all that it read.", heading="bound", in_file=False),
)
DIFFERENCES = (
    Column("model", "text", "The model with the fewest bits per character of its ranking."),
    Column("other", "text", "Another model of this ranking, on the same characters."),
    FigureColumn(
        "difference",
        "number",
        "Bits per character of the one less those of the other.",
        heading="bits / char, less",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval: texts resampled, the same ones for both models.",
    ),
)
TOKENS = (
    Column("model", "text", "What read the text."),
    Column("text", "text", "The name of the text: its id, or the file's."),
    Column("token", "text", "What the token covers of it; empty for the end of a text."),
    Column("start", "number", "Its first character, from 0."),
    Column("end", "number", "The character after its last."),
    Column("surprisal", "number", "-log2 p, in bits; inf where p is 0, empty where the token was not read."),
)
EXPECTED = (
    Column("entropy", "number", "Of what the model expected there, in bits."),
    Column("likeliest", "JSON", "The likeliest tokens there with their probabilities."),
    Column("drawn", "JSON", "Tokens drawn from what the model expected there."),
)


@dataclass(frozen=True)
class ModelFigures:
    """One model on what all models read of the texts, and in each group.

    scores: of the texts of which all read something. own: on all that this model read. unknown: tokens that it read as
    one class of everything unknown, None where it does not say. unpaid: of these, with a probability above 0, which
    says that something unknown stood there and not what.
    """

    readings: Readings
    scores: Sequence[TextScore]
    total: TextScore
    groups: Mapping[str, TextScore]
    train: TrainTest | None
    own: TextScore
    unknown: int | None
    unpaid: int

    @property
    def name(self) -> str:
        return self.readings.source.name

    @property
    def ranked_with(self) -> tuple[str, ...]:
        """Models for which this is the same are ranked: those that pay for all they read, and those that leave the same
        words unnamed."""
        return tuple(sorted(self.readings.tokenizers)) if self.unpaid else ()

    @property
    def unknown_share(self) -> float | None:
        return None if self.unknown is None or not self.total.tokens else self.unknown / self.total.tokens

    def normalised(self, score: TextScore) -> float | None:
        """Perplexity per token as a share of the vocabulary; None where the vocabulary is not known."""
        size = self.readings.vocabulary
        return None if size is None else score.normalised(size)


def report_result(
    *,
    texts: Sequence[Text],
    readings: Sequence[Readings],
    groups: Sequence[str] = (),
    train: Sequence[Text] = (),
    train_readings: Sequence[Readings] = (),
    normalised: bool = False,
) -> ReportResult:
    """The table, the tokens and the picture of one or more models on the same texts.

    Args:
        groups: the group of each text, such as its task; figures are printed for each as well.
        train, train_readings: the texts that the models learnt from, and the same models' readings of these.
        normalised: people see perplexity per token as a share of the vocabulary too; files always have it.

    Raises:
        HunchError: two models have the same name.
    """
    names = [reading.source.name for reading in readings]
    if len(set(names)) < len(names):
        raise HunchError("model: two have the same name; name one of them: NAME=SCHEME:TARGET")
    begins = _begins(readings, texts)
    train_begins = _begins(train_readings, train)
    figures = [
        _figures(
            model_readings,
            texts,
            begins,
            groups,
            learnt=_score_of(train_readings[place], train, train_begins) if train_readings else None,
        )
        for place, model_readings in enumerate(readings)
    ]
    rankings = _rankings(figures)
    figures = [model_figures for ranking in rankings for model_figures in ranking]
    try:
        intervals = _intervals(rankings)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    notes = _notes(figures, texts, train)
    detailed = any(reading.distributions is not None for figure in figures for reading in figure.readings.of_texts)
    return ReportResult(
        title="How well language models predict the texts",
        lines=[
            *_lines(texts, begins, models=len(readings)),
            *(f"{figure.name}: {_unsure(figure.total)}" for figure in figures if figure.total.tokens),
        ],
        tables=[
            _table(figures, intervals, rankings, normalised=normalised),
            *_differences(rankings, intervals),
            *_fragile(rankings, [text for text, begin in zip(texts, begins, strict=True) if begin < len(text.text)]),
        ],
        files=[ReportFile("tokens.csv", lambda: _token_file(figures, texts, detailed=detailed))],
        pictures=[
            Picture.of(
                "perplexity",
                "Bits per character",
                "The bits per character of each model with 95 % intervals by resampling texts; lower is better.",
                _chart(figures, intervals),
            )
        ],
        notes=notes,
        data={
            "models": [
                {
                    **model_figures.total.as_json(),
                    "model": model_figures.name,
                    "vocabulary": model_figures.readings.vocabulary,
                    "normalised_perplexity": finite(model_figures.normalised(model_figures.total)),
                    "train": model_figures.train.as_json() if model_figures.train else None,
                    "unknown": model_figures.unknown,
                    "unknown_share": model_figures.unknown_share,
                    "at_least": bool(model_figures.unpaid),
                    "ranking": place,
                }
                for place, ranking in enumerate(rankings, start=1)
                for model_figures in ranking
            ],
            "notes": notes,
        },
    )


def _begins(readings: Sequence[Readings], texts: Sequence[Text]) -> list[int]:
    """From which character of each text on all models read it."""
    return [
        common_begin([reading.of_texts[place] for reading in readings], len(text.text))
        for place, text in enumerate(texts)
    ]


def _lines(texts: Sequence[Text], begins: Sequence[int], *, models: int) -> list[str]:
    lines = [f"{len(texts)} texts, {integer(sum(len(text.text) for text in texts))} characters"]
    if any(begins):
        who = "all models" if models > 1 else "the model"
        left = sum(len(text.text) - begin for text, begin in zip(texts, begins, strict=True))
        empty = sum(begin >= len(text.text) for text, begin in zip(texts, begins, strict=True))
        nothing = f"; {empty} of the texts had nothing that {who} read" if empty else ""
        lines.append(f"figures are of the {integer(left)} characters that {who} read{nothing}")
    return lines


def _unsure(score: TextScore) -> str:
    """A perplexity with what it means."""
    perplexity = in_words(score.perplexity_per_token)
    return (
        f"{in_words(score.bits_per_token)} bits a token, perplexity {perplexity}: as unsure at each token as among "
        f"{perplexity} equally likely ones"
    )


def _figures(
    readings: Readings, texts: Sequence[Text], begins: Sequence[int], groups: Sequence[str], learnt: TextScore | None
) -> ModelFigures:
    scores = [
        reading.score(text.text, begin=begin)
        for reading, text, begin in zip(readings.of_texts, texts, begins, strict=True)
    ]
    total = added(scores)
    of_groups = {
        group: added([score for score, own in zip(scores, groups, strict=True) if own == group])
        for group in dict.fromkeys(groups)
    }
    unknown, unpaid = _unknown(readings, texts, begins)
    return ModelFigures(
        readings,
        [score for score in scores if score.characters],
        total,
        of_groups,
        train=None if learnt is None else TrainTest(learnt, total),
        own=added([reading.score(text.text) for reading, text in zip(readings.of_texts, texts, strict=True)]),
        unknown=unknown,
        unpaid=unpaid,
    )


def _score_of(readings: Readings, texts: Sequence[Text], begins: Sequence[int]) -> TextScore:
    each = zip(readings.of_texts, texts, begins, strict=True)
    return added([reading.score(text.text, begin=begin) for reading, text, begin in each])


def _unknown(readings: Readings, texts: Sequence[Text], begins: Sequence[int]) -> tuple[int | None, int]:
    if readings.unknown is None:
        return None, 0
    unknown = unpaid = 0
    for reading, marks, text, begin in zip(readings.of_texts, readings.unknown, texts, begins, strict=True):
        if begin < len(text.text):
            inside = marks & (reading.of_text["start"] >= begin)
            unknown += int(inside.sum())
            unpaid += int((inside & np.isfinite(reading.log_probabilities)).sum())
    return unknown, unpaid


def _rankings(figures: Sequence[ModelFigures]) -> list[list[ModelFigures]]:
    """Models that may be compared, best first: those that pay for all they read before those that do not."""
    rankings: dict[tuple[str, ...], list[ModelFigures]] = {}
    for figure in sorted(figures, key=_by_bits):
        rankings.setdefault(figure.ranked_with, []).append(figure)
    return sorted(rankings.values(), key=lambda ranking: (ranking[0].unpaid > 0, ranking[0].name))


def _intervals(rankings: Sequence[Sequence[ModelFigures]]) -> ModelIntervals:
    of_model: dict[str, tuple[float, float] | None] = {}
    differences: dict[str, tuple[float, float] | None] = {}
    for ranking in rankings:
        ranking_intervals = text_intervals(
            {model_figures.name: model_figures.scores for model_figures in ranking}, rng=generator(SEED, "perplexity")
        )
        of_model.update(ranking_intervals.bits_per_character)
        differences.update(ranking_intervals.differences)
    return ModelIntervals(of_model, differences)


def _by_bits(model_figures: ModelFigures) -> tuple[float, str]:
    bits = model_figures.total.bits_per_character
    return (math.inf if bits is None else bits, model_figures.name)


def _notes(figures: Sequence[ModelFigures], texts: Sequence[Text], train: Sequence[Text]) -> list[str]:
    notes: list[str] = []
    if len({tokenizer for figure in figures for tokenizer in figure.readings.tokenizers}) > 1:
        how = (
            "within each ranking by bits per character"
            if any(figure.unpaid for figure in figures)
            else "by bits per character"
        )
        notes.append(
            f"{INCOMPARABLE}: the models cut texts into different tokens; compare them {how}, by which the table is "
            "sorted"
        )
    for figure in figures:
        readings = figure.readings.of_texts
        if any(reading.skips_first for reading in readings):
            notes.append(
                f"{figure.name}: has no token for the beginning of a text, so that the first token of each "
                "was not read; "
                "no model is scored there"
            )
        if figure.own != figure.total:
            notes.append(
                f"{figure.name}: on all that it read: {in_words(figure.own.bits_per_character, 3)} bits per character, "
                f"{integer(figure.own.characters)} characters"
            )
        if figure.unpaid:
            notes.append(
                f"{figure.name}: read {integer(figure.unknown)} of {integer(figure.total.tokens)} tokens as "
                "unknown, and paid "
                f"nothing for which they were: its figures are lower bounds, and it {UNRANKED}. Take a model of "
                "characters or of tokens to compare"
            )
        if any(reading.reads_end for reading in readings):
            whole = added(
                [reading.score(text.text, with_end=True) for reading, text in zip(readings, texts, strict=True)]
            )
            notes.append(
                f"{figure.name}: predicts the end of a text too; it is left out here. With it: {whole.tokens} tokens, "
                f"{_unsure(whole)}"
            )
        if figure.total.infinite:
            notes.append(
                f"{figure.name}: gives probability 0 to {figure.total.infinite} of {figure.total.tokens} "
                "tokens; without these "
                f"its perplexity is {in_words(figure.total.perplexity_of_finite)} a token"
            )
        if figure.readings.of_others:
            notes.append(
                f"{figure.name}: {figure.readings.of_others} stored readings of these texts were made by "
                "other weights, "
                "another tokenizer or another version of the code, and are not used"
            )
        if figure.train is not None and figure.train.is_overfitted:
            notes.append(f"{figure.name}: overfitted: its train perplexity is less than half of its test perplexity")
    if train and (both := same_texts(train, texts)):
        notes.append(
            f"{len(both)} of the {len(texts)} test texts are training texts, such as {both[0]}: leave them out"
        )
    return notes


def _differences(rankings: Sequence[Sequence[ModelFigures]], intervals: ModelIntervals) -> list[Table]:
    """The best model of each ranking less each other one; their intervals are of the same resamples."""
    rows = []
    for best, *others in rankings:
        for other in others:
            mine, theirs = (finite(model.total.bits_per_character) for model in (best, other))
            value = None if mine is None or theirs is None else mine - theirs
            rows.append([best.name, other.name, Figure.between(value, intervals.differences[other.name])])
    return [Table("differences", "Differences on the same characters", DIFFERENCES, rows)] if rows else []


def _fragile(rankings: Sequence[Sequence[ModelFigures]], texts: Sequence[Text]) -> list[Table]:
    """Which few texts carry the ranking by bits per character, of the models that have a finite one. `texts`: those of
    which all read something."""
    ranked = [
        [model_figures for model_figures in ranking if finite(model_figures.total.bits_per_character) is not None]
        for ranking in rankings
    ]
    ranked = [ranking for ranking in ranked if len(ranking) > 1] if len(texts) > 1 else []
    tables = []
    for place, ranking in enumerate(ranked, start=1):
        characters = np.array([score.characters for score in ranking[0].scores], dtype=np.float64)
        bits = (
            np.array([[score.nats / LN2 for score in model_figures.scores] for model_figures in ranking]) / characters
        )
        fragility = fragile_means(values=-bits.T, weight=characters)  # Fewer bits are better.
        names = [model_figures.name for model_figures in ranking]
        of_file = "fragility" if place == 1 else f"fragility_{place}"
        tables.append(
            fragile_table([("", fragility)], names, unit="texts", label=lambda index: texts[index].id, name=of_file)
        )
    return tables


def _table(
    figures: Sequence[ModelFigures],
    intervals: ModelIntervals,
    rankings: Sequence[Sequence[ModelFigures]],
    *,
    normalised: bool,
) -> Table:
    figured = ["bits_per_character", "perplexity_per_word", "bits_per_token", "perplexity_per_token"]
    shown = ["model", "bound", *figured, "tokens", "unknown_share", "cut_by", "train_perplexity_per_token"]
    shown += ["train_to_test", "overfitted", *(["normalised_perplexity"] if normalised else [])]
    groups = list(dict.fromkeys(group for figure in figures for group in figure.groups))
    ranks = {model_figures.name: place for place, ranking in enumerate(rankings, start=1) for model_figures in ranking}
    rows = [
        _row(
            figure, "", figure.total, len(figure.scores), intervals.bits_per_character[figure.name], ranks[figure.name]
        )
        for figure in figures
    ]
    rows += [
        _row(figure, group, figure.groups[group], None, None, ranks[figure.name])
        for figure in figures
        for group in groups
    ]
    # People see all models of a group together.
    places = [
        len(figures) + model * len(groups) + group for group in range(len(groups)) for model in range(len(figures))
    ]
    views = [TableView(shown, rows=range(len(figures)))]
    if groups:
        by_group = ["group", "model", "bound", *figured, "tokens"]
        views.append(TableView(by_group, title="By group", rows=places, most=BY_TEXT_SHOWN * len(figures)))
    return Table("perplexity", "Perplexity", MODELS, rows, views=views)


def _bound(value: float | None, of: ModelFigures, digits: int) -> str:
    """A figure, said to be a lower bound where the model has not paid for all it read."""
    return f"{'≥ ' if of.unpaid and value is not None else ''}{in_words(value, digits)}"


def _row(
    model_figures: ModelFigures,
    group: str,
    score: TextScore,
    texts: int | None,
    interval: tuple[float, float] | None,
    ranking: int,
) -> dict[str, Any]:
    train = model_figures.train if not group else None
    row = score.as_json()
    return {
        "model": model_figures.name,
        "group": group or None,
        "texts": texts,
        "tokens": score.tokens,
        "words": score.words,
        "characters": score.characters,
        "nats": row["nats"],
        "bits_per_character": Figure.between(score.bits_per_character, interval),
        "perplexity_per_word": score.perplexity_per_word,
        "bits_per_token": score.bits_per_token,
        "perplexity_per_token": score.perplexity_per_token,
        "infinite": score.infinite,
        "perplexity_without_infinite": row["perplexity_of_finite"],
        "train_perplexity_per_token": None if train is None else train.train.perplexity_per_token,
        "train_to_test": None if train is None else train.ratio,
        "overfitted": None if train is None else int(train.is_overfitted),
        "tokenizer": " ".join(sorted(model_figures.readings.tokenizers)),
        "vocabulary": model_figures.readings.vocabulary,
        "normalised_perplexity": model_figures.normalised(score),
        "unknown": None if group else model_figures.unknown,
        "unknown_share": None if group else model_figures.unknown_share,
        "at_least": int(model_figures.unpaid > 0),
        "ranking": ranking,
        "cut_by": ", ".join(tokenizer[:8] for tokenizer in sorted(model_figures.readings.tokenizers)),
        "bound": "≥" if model_figures.unpaid else "",
    }


def _token_file(figures: Sequence[ModelFigures], texts: Sequence[Text], *, detailed: bool) -> bytes:
    columns = (*TOKENS, *EXPECTED) if detailed else TOKENS
    return "".join(csv_lines(columns, _token_rows(figures, texts, detailed=detailed))).encode("utf-8", "surrogatepass")


def _token_rows(figures: Sequence[ModelFigures], texts: Sequence[Text], *, detailed: bool) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for figure in figures:
        for reading, text in zip(figure.readings.of_texts, texts, strict=True):
            listed = reading.distributions
            bits = -reading.tokens["logprob"] / LN2
            for place, (token, value) in enumerate(zip(reading.strings(text.text), bits.tolist(), strict=True)):
                start, end = int(reading.tokens["start"][place]), int(reading.tokens["end"][place])
                cell = None if math.isnan(value) else "inf" if math.isinf(value) else value + 0.0
                row = [figure.name, text.id, token, start, end, cell]
                if detailed:
                    row += [None, None, None] if listed is None else _expected(listed, place)
                rows.append(row)
    return rows


def _expected(listed: Any, place: int) -> list[Any]:
    entropy = float(listed.entropy[place])
    return [
        None if math.isnan(entropy) else entropy / LN2,
        json.dumps([[token, math.exp(value)] for token, value in listed.top[place]], ensure_ascii=False),
        json.dumps(list(listed.samples[place]), ensure_ascii=False),
    ]


def _chart(figures: Sequence[ModelFigures], intervals: ModelIntervals) -> ForestChart:
    """Bits per character, one row per model. A model that does not pay for all it read has a mark of its own."""

    def row(model: ModelFigures) -> ForestRow:
        bits = model.total.bits_per_character
        figure = Figure.between(bits, intervals.bits_per_character[model.name])
        return ForestRow(model.name, [Figure(), figure] if model.unpaid else [figure], _bound(bits, model, 3))

    return ForestChart(
        title="Bits per character of each model; lower is better",
        x=Axis("bits per character", includes=(0.0,)),
        series=["bits per character", "at least: some of what it read is unknown to it"]
        if any(figure.unpaid for figure in figures)
        else [""],
        rows=[row(figure) for figure in figures],
    )
