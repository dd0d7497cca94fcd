"""How well language models predict texts: perplexity by token, word and character, as findings about no study."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from predictors.readings.text_reading import TextReading, common_begin
from survey.contracts.reports import Picture, ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, Table, TableView
from survey.figures.charts import Axis, ForestChart, ForestRow
from survey.figures.csv_lines import csv_lines
from survey.figures.words import integer, number
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
KNOWN = (
    Column("model", "text", "What read the texts."),
    Column("words", "number", "Words that every model knows and has read as tokens of their own.", whole=True),
    Column("characters", "number", "Characters of these words, each with the blanks before it.", whole=True),
    FigureColumn(
        "bits_per_character",
        "number",
        "Bits of these words / their characters; empty where it is infinite.",
        heading="bits / char",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval, by resampling texts; empty for a single text.",
        high="Its upper end; empty where it is infinite.",
    ),
    Column("perplexity_per_word", "number", "exp(nats / words).", heading="perplexity / word", digits=2),
    FigureColumn(
        "difference",
        "number",
        "Bits per character of the first model less those of this one.",
        heading="bits / char, less",
        digits=3,
        prefix="difference_",
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
    marks = _marks(texts, begins)
    detailed = any(reading.distributions is not None for figure in figures for reading in figure.readings.of_texts)
    return ReportResult(
        title="How well language models predict the texts",
        lines=[
            *_lines(texts, begins, models=len(readings)),
            *(
                f"{figure.name}: {_unsure(figure.total)}{_of_all(figure.readings.vocabulary)}"
                for figure in figures
                if figure.total.tokens
            ),
            *(f"for comparison, {name}: {number(bits, 3)} bits a character" for name, bits in marks),
        ],
        tables=[
            _table(figures, intervals, rankings, normalised=normalised),
            *_differences(rankings, intervals),
            *_known_words(figures, texts, begins),
            *_fragile(rankings, [text for text, begin in zip(texts, begins, strict=True) if begin < len(text.text)]),
        ],
        files=[ReportFile("tokens.csv", lambda: _token_file(figures, texts, detailed=detailed))],
        pictures=[
            Picture.of(
                "perplexity",
                "Bits per character",
                "The bits per character of each model with 95 % intervals by resampling texts; lower is better.",
                _chart(figures, intervals, marks),
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
            "marks": dict(marks),
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


def _of_all(vocabulary: int | None) -> str:
    return "" if vocabulary is None else f"; all {integer(vocabulary)} where it knew nothing"


def _marks(texts: Sequence[Text], begins: Sequence[int]) -> list[tuple[str, float]]:
    """What bits per character are held against: knowing which characters stand there, and how often each does."""
    counts = Counter(letter for text, begin in zip(texts, begins, strict=True) for letter in text.text[begin:])
    if len(counts) < 2:
        return []
    shares = np.array(list(counts.values()), dtype=np.float64) / counts.total()
    return [
        (f"all {len(counts)} characters alike", math.log2(len(counts))),
        ("characters by frequency", float(-(shares * np.log2(shares)).sum())),
    ]


def _known_words(figures: Sequence[ModelFigures], texts: Sequence[Text], begins: Sequence[int]) -> Iterator[Table]:
    """All models on the same words, where one of them does not know all: the words that each of them knows."""
    if len(figures) < 2 or not any(figure.unpaid for figure in figures):
        return
    of_texts = [
        _scores_of_known(
            text.text,
            begin,
            [figure.readings.of_texts[place] for figure in figures],
            [None if figure.readings.unknown is None else figure.readings.unknown[place] for figure in figures],
        )
        for place, (text, begin) in enumerate(zip(texts, begins, strict=True))
    ]
    scores = {
        figure.name: [of_text[place] for of_text in of_texts if of_text[place].words]
        for place, figure in enumerate(figures)
    }
    totals = {name: added(own) for name, own in scores.items() if own}
    if not totals:
        return
    ordered = sorted(totals, key=lambda name: (totals[name].bits_per_character, name))
    intervals = text_intervals({name: scores[name] for name in ordered}, rng=generator(SEED, "known words"))
    best = finite(totals[ordered[0]].bits_per_character)
    rows: list[list[Any]] = []
    for name in ordered:
        total, bits = totals[name], finite(totals[name].bits_per_character)
        less = None if best is None or bits is None or name == ordered[0] else best - bits
        rows.append(
            [
                name,
                total.words,
                total.characters,
                Figure.between(total.bits_per_character, intervals.bits_per_character[name]),
                total.perplexity_per_word,
                Figure.between(less, intervals.differences.get(name)),
            ]
        )
    words = sum(len(text.text.split()) for text in texts)
    yield Table(
        "known_words",
        "On the words that every model knows",
        KNOWN,
        rows,
        note=f"{integer(totals[ordered[0]].words)} of {integer(words)} words: those that one model reads as unknown, "
        "or in one token with another word, are left out for all. Known words are commoner, so that the figures are "
        "lower than on whole texts.",
    )


def _scores_of_known(
    text: str, begin: int, readings: Sequence[TextReading], marks: Sequence[np.ndarray | None]
) -> list[TextScore]:
    """Each model's score of a text's words, with the blanks before them, that all models know."""
    ends = np.array([word.end() for word in re.finditer(r"\S+", text)], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    known = starts >= begin
    sums = []
    for reading, unknown in zip(readings, marks, strict=True):
        tokens = reading.of_text
        first = np.searchsorted(ends, tokens["start"], side="right")
        last = np.searchsorted(ends, np.maximum(tokens["end"] - 1, tokens["start"]), side="right")
        wrong = np.isnan(tokens["logprob"]) | (last > first)
        if unknown is not None:
            wrong |= unknown
        for place in np.flatnonzero(wrong):
            known[first[place] : last[place] + 1] = False
        inside = first < len(ends)
        sums.append(np.bincount(first[inside], weights=-tokens["logprob"][inside], minlength=len(ends)))
    characters = int((ends - starts)[known].sum())
    return [TextScore.of(-nats[known], words=int(known.sum()), characters=characters) for nats in sums]


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
                f"nothing for which they were: its figures are lower bounds, and it {UNRANKED}. The words that all "
                "models know compare it with them"
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


def _chart(
    figures: Sequence[ModelFigures], intervals: ModelIntervals, marks: Sequence[tuple[str, float]] = ()
) -> ForestChart:
    """Bits per character, one row per model. A model that does not pay for all it read has a mark of its own, and so
    has what the models are held against."""
    series = ["bits per character"]
    if any(figure.unpaid for figure in figures):
        series.append("at least: some of what it read is unknown to it")
    if marks:
        series.append("for comparison")

    def row(model: ModelFigures) -> ForestRow:
        bits = model.total.bits_per_character
        figure = Figure.between(bits, intervals.bits_per_character[model.name])
        return ForestRow(model.name, [Figure(), figure] if model.unpaid else [figure], _bound(bits, model, 3))

    return ForestChart(
        title="Bits per character of each model; lower is better",
        x=Axis("bits per character", includes=(0.0,)),
        series=series if len(series) > 1 else [""],
        rows=[
            *(row(figure) for figure in figures),
            *(
                ForestRow(name, [*[Figure()] * (len(series) - 1), Figure(bits)], in_words(bits, 3))
                for name, bits in marks
            ),
        ],
    )
