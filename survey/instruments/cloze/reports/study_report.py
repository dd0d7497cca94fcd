"""The report `cloze` of a study: norms, and how well the surprisal of its language models goes with people's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from django.db.models import Count

from predictors.readings.sources import ARPA
from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures import Table, TableView
from survey.figures.words import integer, number
from survey.instruments.cloze.analysis.answers import WordAnswers, answer_influence, human_surprisal
from survey.instruments.cloze.analysis.normalising import normalised
from survey.instruments.cloze.chances import chance_of_positions
from survey.instruments.cloze.estimands import position_part
from survey.instruments.cloze.labels import judged_word_of
from survey.instruments.cloze.model_words import ModelWords, unknown_words, words_of_models
from survey.instruments.cloze.norms import COLUMNS, Norm, norms_of, rows_of
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, labelled_answers
from survey.services.base.seeds import generator
from survey.services.results.people_and_models.model_comparison import ABOVE, ModelFacts
from survey.services.results.reports import CONDITION

from . import figures

if TYPE_CHECKING:
    from survey.models import Assignment, Study

SHOWN = 40  # lines for people; the file has all


class ClozeReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (CONDITION, ABOVE)

    def obstacle(self, study: "Study") -> str:
        least = instruments.of_study(study).options.least
        by_position = counting(study.main_stages()).order_by().values("slot__item").annotate(n=Count("pk"))
        if by_position.filter(n__gte=least).exists():
            return ""
        return f"no position of {study.slug} has {least} answers yet: collect more, or lower the option least"

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        options = instruments.of_study(study).options
        lenient = options.normalisation == "lenient"
        answers = labelled_answers(study, levels=read_condition(study, arguments["condition"]))
        norms = {norm.asked.pk: norm for norm in norms_of(answers)}
        counted = [norm for norm in norms.values() if norm.n >= options.least]
        if not counted:
            raise StateRefused(self.obstacle(study) or f"no position has {options.least} answers under this condition")
        notes = []
        if few := len(norms) - len(counted):
            notes.append(f"{few} positions have fewer than {options.least} answers and are left out")
        short = sum(norm.n < options.responses_per_item for norm in counted)
        if short:
            notes.append(
                f"{short} positions have fewer than the {options.responses_per_item} answers that the figures aim at; "
                "their surprisal is noisier, which makes every PNC smaller"
            )
        table = _table(study, counted, answers, options, lenient=lenient)
        models, missing = _models(study, counted)
        notes += missing
        rng = generator(study.config.seed, "cloze report")
        worked_out = figures.work_out(table, models, rng=rng)
        rows = list(rows_of(counted, lenient=lenient, smoothing=options.smoothing))
        return figures.report_result(
            table,
            worked_out,
            title="Cloze norms",
            lines=[
                f"{integer(len(counted))} positions of {integer(len(set(table.sentence)))} sentences with at least "
                f"{options.least} answers, {integer(sum(norm.n for norm in counted))} answers"
            ],
            notes=notes,
            norms=_norms_table(rows),
            above=arguments.one("above"),
            data={"positions": len(counted)},
        )


def _table(
    study: "Study", norms: Sequence[Norm], answers: "Sequence[Assignment]", options: Any, *, lenient: bool
) -> figures.NormTable:
    place = {norm.asked.pk: row for row, norm in enumerate(norms)}
    single = _answers(place, answers, lenient=lenient)
    most, smoothing = options.responses_per_item, options.smoothing
    rng = generator(study.config.seed, "cloze thinning")
    human = human_surprisal(single, smoothing=smoothing, most=most, rng=rng)
    chances = chance_of_positions(study)
    return figures.NormTable(
        sentence=[norm.asked.question.external_id for norm in norms],
        position=np.array([norm.asked.position for norm in norms], dtype=np.int64),
        word=[norm.asked.target for norm in norms],
        human=human.mean,
        square=human.square,
        weight=np.array([1 / chances.get(norm.asked.pk, 1.0) for norm in norms], dtype=np.float64),
        most=most,
        smoothing=smoothing,
        answers=single,
        influence=answer_influence(single, smoothing=smoothing, most=most),
        frequent=[_frequent(norm.counts(lenient=lenient)) for norm in norms],
        divisions={
            "position": [position_part(norm.asked.position) for norm in norms],
            "source": [norm.asked.question.task.name for norm in norms],
        },
    )


def _answers(place: Mapping[int, int], answers: "Sequence[Assignment]", *, lenient: bool) -> WordAnswers:
    position, word, match, person = [], [], [], []
    numbers: dict[str, int] = {}
    own_words: dict[int, str] = {}
    for answer in answers:
        score = judged_word_of(answer)
        row = place.get(answer.slot.item_id)
        if score is None or row is None:
            continue
        hit = score.lenient if lenient else score.exact
        if row not in own_words:
            own_words[row] = normalised(answer.slot.item.asked_word.target)
        own = own_words[row] if hit else score.normalised
        position.append(row)
        word.append(numbers.setdefault(own, len(numbers)))
        match.append(hit)
        person.append(answer.sitting.respondent_id)
    return WordAnswers(
        len(place),
        np.array(position, dtype=np.int64),
        np.array(word, dtype=np.int64),
        np.array(match, dtype=bool),
        np.array(person, dtype=np.int64),
    )


def _frequent(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return ", ".join(f"{word} {count}" for word, count in ordered[: figures.WORDS_SHOWN])


def _models(study: "Study", norms: Sequence[Norm]) -> tuple[list[figures.ModelColumn], list[str]]:
    """The models that have read these sentences, and a note on each that has not."""
    questions = {norm.asked.question_id: norm.asked.question for norm in norms}
    keys = [norm.asked.question_id for norm in norms]
    places = [norm.asked.position for norm in norms]
    columns, notes = [], []
    for model in words_of_models(study, list(questions.values())):
        column = _column(model, keys, places)
        if np.isfinite(column.surprisal).sum() < 3:
            notes.append(
                f"{model.config.name}: left out, since it has not read the sentences: `hunch cloze {study.slug} --read`"
            )
            continue
        missing = int((~np.isfinite(column.surprisal)).sum())
        if missing:
            notes.append(f"{model.config.name}: {missing} positions have no finite surprisal and are left out")
        column = replace(column, unknown=unknown_words(model.config, questions, keys, places))
        if unknown := int(column.unknown.sum()):
            notes.append(
                f"{model.config.name}: does not know the words at {unknown} of {len(keys)} positions, and says there "
                "only how likely any unknown word is, so that no model's perplexity counts them"
            )
        if model.config.source.startswith(f"{ARPA}:"):
            notes.append(
                f"{model.config.name}: an ARPA file, which has one probability for all words that it does not list; "
                "where the sentences hold such words, its perplexity is a lower bound"
            )
        columns.append(column)
    if not study.config.models:
        notes.append("the study names no language model: add [[models]] with name and source to compare some")
    return columns, notes


def _column(model: ModelWords, keys: Sequence[int], places: Sequence[int]) -> figures.ModelColumn:
    config = model.config
    return figures.ModelColumn(
        config.name,
        model.of("surprisal", keys, places),
        model.of("corrected", keys, places),
        model.of("entropy", keys, places),
        [_likeliest(model.words(key, place)) for key, place in zip(keys, places, strict=True)],
        ModelFacts.of_config(config),
    )


def _likeliest(words: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{word} {number(chance)}" for word, chance in words[: figures.WORDS_SHOWN])


def _norms_table(rows: Sequence[Sequence[Any]]) -> Table:
    view = TableView(
        {
            **dict.fromkeys(("sentence", "position", "word"), ""),
            "n": "answers",
            "k_lenient": "the word",
            "p": "share",
            "low": "95 %, from",
            "high": "to",
            **dict.fromkeys(("surprisal", "entropy"), ""),
        },
        rows=sorted(range(len(rows)), key=lambda place: -rows[place][9]),
        most=SHOWN,
        note="The words that surprised people most come first.",
    )
    return Table("cloze", "Norms", COLUMNS, rows, views=[view], verbatim=True)
