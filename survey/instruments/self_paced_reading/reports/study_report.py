"""The report `reading` of a study: times, what is left out of them, and what its models' surprisal adds."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from predictors.evaluation.reading_times import TimedWords
from predictors.readings import Text
from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError, StateRefused
from survey.figures.words import integer
from survey.instruments.self_paced_reading.analysis.cleaning import CleaningRules, ReadTimes
from survey.instruments.self_paced_reading.labels import answer_of, times_of
from survey.instruments.self_paced_reading.model_words import source_of, surprisals
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, study_answers
from survey.services.banks.frequencies import log_frequencies
from survey.services.banks.readings import unknown_words
from survey.services.results.people_and_models.model_comparison import ABOVE, ModelFacts
from survey.services.results.reports import CONDITION

from . import reading_results
from .material import ReadingMaterial

if TYPE_CHECKING:
    from survey.contracts.tables import Column
    from survey.models import Assignment, Question, Study


MARKED = {"leave_out": "left out", "keep": "count too"}


class ReadingReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (
        CONDITION,
        Argument(
            "model",
            "linear; smooth: length, frequency and position as curves; or gamm: linear, and next to the report stand "
            "the data and a script for R's mgcv",
            default="linear",
            choices=lambda study: reading_results.FITS,
            label="Fitted model",
        ),
        Argument(
            "marked",
            "leave_out, or keep: passages that are marked count too",
            default="leave_out",
            choices=lambda study: MARKED,
            label="Passages with marks",
        ),
        ABOVE,
    )

    exported: ClassVar[Mapping[str, "Sequence[Column]"]] = {
        "reading_left_out": reading_results.CLEANING,
        "reading_models": reading_results.MODELS,
        "reading_slopes": reading_results.SLOPES,
        "reading_words": reading_results.WORDS,
    }

    def obstacle(self, study: "Study") -> str:
        if counting(study.main_stages()).exists():
            return ""
        return f"nobody has read a passage of {study.slug} yet"

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        fit, marked = arguments.one("model"), arguments.one("marked")
        if fit not in reading_results.FITS:
            raise HunchError(f"model: {fit!r} is none of: {', '.join(reading_results.FITS)}")
        if marked not in MARKED:
            raise HunchError(f"marked: {marked!r} is none of: {', '.join(MARKED)}")
        answers = [
            study_answer
            for study_answer in study_answers(study, levels=read_condition(study, arguments["condition"]))
            if times_of(study_answer)
        ]
        if not answers:
            raise StateRefused(self.obstacle(study) or "nobody has read a passage under this condition")
        material, notes = _material(study, answers, keeps_marked=marked == "keep", smooth=fit == reading_results.SMOOTH)
        people = len({answer.sitting.respondent_id for answer in answers})
        return reading_results.make(
            material,
            fit=fit,
            title="Reading times",
            lines=[f"{integer(people)} people read {integer(len(material.passage_names))} passages"],
            notes=notes,
            above=arguments.one("above"),
        )


def _material(
    study: "Study", answers: "Sequence[Assignment]", *, keeps_marked: bool, smooth: bool
) -> tuple[ReadingMaterial, list[str]]:
    options = instruments.of_study(study).options
    passages: dict[int, Question] = {}
    for answer in answers:
        question = answer.slot.item.read_passage.question
        passages.setdefault(question.pk, question)
    questions = sorted(passages.values(), key=lambda question: question.position)
    texts = [question.plain.split() for question in questions]
    words = [word for text in texts for word in text]
    first = dict(zip((question.pk for question in questions), np.cumsum([0, *map(len, texts)]).tolist(), strict=False))
    number = {question.pk: place for place, question in enumerate(questions)}
    notes = []
    frequency = np.full(len(words), math.nan)
    if options.frequencies:
        frequency = log_frequencies(options.frequencies, words)
    elif not study.config.models:
        notes.append("the study names no language model: add [[models]] and the option frequencies to compare some")
    stretch = np.repeat(np.arange(len(texts)), [len(text) for text in texts]).astype(np.int64)
    place = np.concatenate([np.arange(len(text)) for text in texts]).astype(np.int64)
    last = np.concatenate([np.arange(len(text)) == len(text) - 1 for text in texts])
    passage_texts = [Text(question.external_id, question.plain) for question in questions]
    sources = {model.name: source_of(model) for model in study.config.models}
    unknown = np.zeros(len(words), dtype=bool)
    models = {}
    for name, by_question in surprisals(study, questions).items():
        column = np.full(len(words), math.nan)
        for key, values in by_question.items():
            if len(values) == len(texts[number[key]]):
                column[first[key] : first[key] + len(values)] = values
        if np.isfinite(column).sum() < 3:
            notes.append(f"{name}: left out, since it has not read the passages: `hunch reading {study.slug} --read`")
            continue
        models[name] = column
        if (marks := unknown_words(sources[name], passage_texts)) is not None:
            unknown |= np.concatenate(marks)
    return (
        ReadingMaterial(
            tuple(question.external_id for question in questions),
            TimedWords(words, stretch, place, frequency, last),
            _times(answers, first, number),
            has_people=True,
            models=models,
            rules=CleaningRules(options.shortest, options.longest, options.least_right, keeps_marked),
            previous=options.previous,
            frequencies_known=bool(options.frequencies),
            smooth=smooth,
            unknown=unknown,
            facts={model.name: ModelFacts.of_config(model) for model in study.config.models},
        ),
        notes,
    )


def _times(answers: "Sequence[Assignment]", first: dict[int, int], number: dict[int, int]) -> ReadTimes:
    word, passage, person, time, right, marked = [], [], [], [], [], []
    people: dict[int, int] = {}
    for assignment in answers:
        read, answer = times_of(assignment), answer_of(assignment)
        if read is None:
            continue
        key, count = assignment.slot.item.read_passage.question_id, len(read.times)
        word.append(first[key] + np.arange(count))
        passage.append(np.full(count, number[key]))
        person.append(np.full(count, people.setdefault(assignment.sitting.respondent_id, len(people))))
        time.append(np.array(read.times, dtype=np.float64))
        right.append(np.full(count, math.nan if answer is None else float(answer.right)))
        marked.append(np.full(count, bool(read.marks)))
    return ReadTimes(
        np.concatenate(word).astype(np.int64),
        np.concatenate(passage).astype(np.int64),
        np.concatenate(person).astype(np.int64),
        np.concatenate(time),
        np.concatenate(right),
        np.concatenate(marked),
    )
