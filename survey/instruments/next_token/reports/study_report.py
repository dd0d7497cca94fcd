"""The report `next_token` of a study: right guesses of people, and of models at the very same positions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from survey.contracts import instruments
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.instruments.next_token.analysis import shannon
from survey.instruments.next_token.analysis.guesses import GuessTable, ModelGuesses, numbers_of
from survey.instruments.next_token.instrument import NextToken
from survey.instruments.next_token.screens import attempts_of
from survey.models import TokenizerRecord
from survey.services.answers.conditions import read_condition
from survey.services.answers.counting import counting, design_weights, study_answers
from survey.services.banks import passages
from survey.services.banks.readings import text_hash
from survey.services.results.remarks import remarks_of
from survey.services.results.reports import CONDITION

from .figures import ABOVE, BY_PERSON, ENSEMBLE, FIGURES, PARTS, PRACTICE, SHANNON, ShannonGame, report_result

if TYPE_CHECKING:
    from survey.models import Assignment, Study


class NextTokenReport(Report):
    arguments: ClassVar[Sequence[Argument]] = (CONDITION,)
    exported = {
        "next_token": FIGURES,
        "next_token_parts": PARTS,
        "next_token_shannon": SHANNON,
        "next_token_practice": PRACTICE,
        "next_token_above": ABOVE,
        "next_token_people": BY_PERSON,
        "next_token_ensemble": ENSEMBLE,
    }

    def obstacle(self, study: "Study") -> str:
        if not counting(study.main_stages()).exists():
            return f"no run of {study.slug} counts yet; open a stage and wait for people"
        return ""

    def make(self, study: "Study", arguments: ReportArguments) -> ReportResult:
        instrument = instruments.of_study(study)
        if not isinstance(instrument, NextToken):
            raise HunchError(f"{study.slug} is a study of {instrument.name}, and this report is about next tokens")
        answers = study_answers(study, levels=read_condition(study, arguments["condition"]))
        table, tries, notes = table_of(instrument, answers)
        people = {answer.sitting_id: answer.sitting for answer in answers}
        return report_result(
            table,
            title=f"Next tokens: {study.title}",
            notes=notes,
            characters=instrument.options.unit == "character",
            game=None if tries is None else _game(instrument, table, tries, answers),
            remarks=[(remark.where, remark.text) for remark in remarks_of(list(people.values()))],
        )


def _game(
    instrument: NextToken, table: GuessTable, tries: shannon.Tries, answers: "Sequence[Assignment]"
) -> ShannonGame:
    """What Shannon's game says, and for units of these texts: a character, a word, and a token of each tokenizer that
    has cut all of them."""
    questions = {answer.slot.item.token_run.question_id: answer.slot.item.token_run.question for answer in answers}
    texts = passages.texts_of(list(questions.values()))
    characters = len({character.casefold() for text in texts for character in text.text})
    lengths = {"character": 1.0, "word": shannon.word_length([text.text for text in texts])}
    total = sum(len(text.text) for text in texts)
    for record in TokenizerRecord.objects.exclude(pk=instrument.tokenizer.pk).order_by("source"):
        counts = passages.token_counts(record, texts)
        if len(counts) == len({text.text for text in texts}):
            lengths[f"token of {record.source}"] = total / sum(counts[text_hash(text.text)] for text in texts)
    return ShannonGame(shannon.uncertainty(table, tries, characters=characters), lengths)


def table_of(
    instrument: NextToken, answers: "Sequence[Assignment]"
) -> tuple[GuessTable, shannon.Tries | None, list[str]]:
    """The first guesses of these answers with what each model of the study expected there, how many there were until
    each was right (None unless people guess so), and a note on each model that has not read the passages."""
    ordered = sorted(
        zip(answers, design_weights(answers), strict=True), key=lambda pair: (pair[0].sitting_id, pair[0].completed_at)
    )
    passages_of = {answer.slot.item.token_run.question_id: answer.slot.item.token_run.question for answer in answers}
    place = {key: number for number, key in enumerate(passages_of)}
    people = {
        key: number for number, key in enumerate(dict.fromkeys(answer.sitting.respondent_id for answer, _w in ordered))
    }
    names = {answer.sitting.respondent_id: answer.sitting.respondent.pseudonym for answer in answers}
    person, passage, position, run_place, right, weight = [], [], [], [], [], []
    guess, truth, tokens, given_tokens = [], [], [], 0
    tries, ended_right = [], []
    for answer, own_weight in ordered:
        run = answer.slot.item.token_run
        of_run = run.run_tokens
        given_tokens += len(of_run) - len(run.asked_places)
        attempts = attempts_of(answer)
        last = {guess.place: guess for guess in attempts}
        for made_guess in (guess for guess in attempts if guess.attempt == 1):
            tries.append(last[made_guess.place].attempt)
            ended_right.append(last[made_guess.place].right)
            person.append(people[answer.sitting.respondent_id])
            passage.append(place[run.question_id])
            position.append(made_guess.position)
            run_place.append(made_guess.place + 1)
            right.append(float(made_guess.right))
            weight.append(own_weight)
            guess.append(made_guess.text)
            truth.append(run.text_of(of_run[made_guess.place]))
            tokens.append(made_guess.true_token)
    hashes = [text_hash(question.plain) for question in passages_of.values()]
    models, notes = _models(instrument, list(passages_of.values()), hashes, passage, position, tokens)
    codes = np.array(person, dtype=np.int64)
    table = GuessTable(
        person=codes,
        passage=np.array(passage, dtype=np.int64),
        people=[names[key] for key in people],
        passages=[question.external_id for question in passages_of.values()],
        position=np.array(position, dtype=np.int64),
        place=np.array(run_place, dtype=np.int64),
        number=numbers_of(codes),
        right=np.array(right),
        weight=np.array(weight),
        guess=guess,
        truth=truth,
        given=given_tokens,
        models=models,
    )
    if not instrument.options.until_right:
        return table, None, notes
    return table, shannon.Tries(np.array(tries, dtype=np.int64), np.array(ended_right, dtype=bool)), notes


def _models(
    instrument: NextToken,
    questions: Sequence,
    hashes: Sequence[str],
    passage: Sequence[int],
    position: Sequence[int],
    tokens: Sequence[int],
) -> tuple[list[ModelGuesses], list[str]]:
    columns, notes = [], []
    texts = passages.texts_of(questions)
    for model in instrument.study.config.models:
        expected = passages.expectations_of(passages.source_of(model), instrument.tokenizer, texts)
        right, nats, least = (np.full(len(tokens), np.nan) for _column in range(3))
        unsure = np.zeros(len(tokens), dtype=bool)
        for row, (own, at, token) in enumerate(zip(passage, position, tokens, strict=True)):
            said = expected.get(hashes[own])
            if said is not None and at < len(said) and not np.isnan(said[at]["logprob"]):
                right[row] = float(said[at]["top_id"] == token)
                nats[row], least[row] = -said[at]["logprob"], -said[at]["logprob_most"]
                unsure[row] = not said[at]["sure"]
        missing = int(np.isnan(right).sum())
        if missing == len(tokens):
            notes.append(
                f"{model.name}: left out, since it has not read the passages: `hunch jobs ask prepare "
                f"{instrument.study.slug} --now`"
            )
            continue
        if missing:
            notes.append(f"{model.name}: {integer(missing)} guesses are at positions that it has not read")
        is_known = np.array_equal(nats, least, equal_nan=True)
        columns.append(ModelGuesses(model.name, right, nats, None if is_known else least, unsure))
    columns, more = at_common_positions(columns)
    notes += more
    if not instrument.study.config.models:
        notes.append("the study names no language model: add [[models]] with name and source to compare some")
    return columns, notes


def at_common_positions(models: Sequence[ModelGuesses]) -> tuple[list[ModelGuesses], list[str]]:
    """The models at the positions that all of them have read, and a note where that leaves any out."""
    read = [np.isfinite(model.right) for model in models]
    if all(np.array_equal(mask, read[0]) for mask in read):
        return list(models), []
    common = np.all(read, axis=0)
    note = f"models are compared at the {integer(int(common.sum()))} guesses at positions that all of them have read"
    return [model.at(common) for model in models], [note]
