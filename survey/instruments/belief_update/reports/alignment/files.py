"""The files that alignment is computed from: a sample of pairs with predictions, answers of language models, questions.

Every cell is read as text: in published files an option may be the word "nan".
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from predictors import datasets
from predictors.datasets import PairTable
from predictors.markup import plain_text
from survey.exceptions import FileErrors, Problem
from survey.input_tables import cells, reader
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, check_header, column, declared, read_rows
from survey.services.banks.model_answers import AnswerRow

from .scores import Trial

NO_PROBABILITY = "{} is not a probability; give every pair a prediction between 0 and 1, or leave the row out"
SHOWN = 10
Probability = Annotated[float, cells.number(NO_PROBABILITY, lambda value: 0 <= value <= 1)]


@declared
class SampleRow(TableRow):
    """A pair of questions with the predicted chances that beliefs change. A pair that stands twice is taken once."""

    read_by = "`alignment --sample FILE`, `paper --sample FILE`"
    q1: str = column("The evidence question's text.")
    q2: str = column("The target question's text.")
    source1: str = column("The evidence question's task.")
    source2: str = column("The target question's task.")
    pred_if_correct: Probability = column("The chance of a change after a right answer to q1, 0 to 1.")
    pred_if_incorrect: Probability = column("The same after a wrong one.")


@declared
class QuestionTextRow(TableRow):
    """A question of which a sample's pairs are made."""

    read_by = "`alignment --questions FILE`, `paper --questions FILE`"
    id: cells.Stripped = column("The id that answers name.")
    source: str = column("Its task.")
    question: str = column("Its text.")


@dataclass(frozen=True)
class Sample:
    """n pairs: evidence question, target question, and the predicted probability of a change after either outcome.
    `repeated`: the lines that were left out, since a line before them has the same pair."""

    evidence: list[tuple[str, str]]
    target: list[tuple[str, str]]
    change_if_correct: NDArray[np.float64]
    change_if_incorrect: NDArray[np.float64]
    file: str
    lines: list[int]
    repeated: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.evidence)

    @property
    def notes(self) -> list[str]:
        """What is not said by the pairs themselves."""
        if not self.repeated:
            return []
        return [
            f"{self.file}: {len(self.repeated)} rows repeat the pair of a row before them and are left out "
            f"(lines {_listed(self.repeated)})"
        ]


@dataclass(frozen=True)
class AnswersByModel:
    """How right each language model is: model -> question id -> a number from 0 to 1, in the file's order."""

    correct: Mapping[str, Mapping[str, float]]
    file: str


def read_sample(path: Path | str) -> Sample:
    """The pairs of a file, each once: a row that repeats a pair would make every interval too narrow.

    Raises:
        FileErrors: unreadable, columns missing, a prediction missing or not a probability, one pair with two
            predictions, or no row.
    """
    rows = read_rows(SampleRow, path, Problems(shown=SHOWN), guesses=False)
    pairs: dict[tuple[str, str, str, str], tuple[int, float, float]] = {}
    repeated = []
    for row in rows:
        pair = row.source1, row.q1, row.source2, row.q2
        first, *before = pairs.setdefault(pair, (row.line, row.pred_if_correct, row.pred_if_incorrect))
        if first != row.line:
            if before != [row.pred_if_correct, row.pred_if_incorrect]:
                rows.wrong(row.line, "q1, q2", f"is the pair of line {first} with another prediction; keep one of them")
            repeated.append(row.line)
    rows.refuse("" if pairs else "holds no pair; add at least one row under the header")
    lines, if_correct, if_incorrect = (list(column) for column in zip(*pairs.values(), strict=True))
    return Sample(
        evidence=[pair[:2] for pair in pairs],
        target=[pair[2:] for pair in pairs],
        change_if_correct=np.array(if_correct, dtype=np.float64),
        change_if_incorrect=np.array(if_incorrect, dtype=np.float64),
        file=str(path),
        lines=lines,
        repeated=repeated,
    )


def read_answers(path: Path | str) -> AnswersByModel:
    """
    Raises:
        FileErrors: unreadable, columns missing, a value that is not from 0 to 1, two rows that contradict each other.
    """
    rows = read_rows(AnswerRow, path, Problems(shown=SHOWN), guesses=False)
    correct: dict[str, dict[str, float]] = {}
    for row in rows:
        if correct.setdefault(row.llm, {}).setdefault(row.question_id, row.correct) != row.correct:
            message = f"{row.llm} has two answers to {row.question_id} that differ; keep one, or give their mean"
            rows.wrong(row.line, "correct", message)
    rows.refuse("" if correct else "holds no answer; add at least one row under the header")
    return AnswersByModel(correct=correct, file=str(path))


def read_questions(path: Path | str) -> Iterator[tuple[str, str, str]]:
    """(id, source, text) of every question, in the file's order.

    Raises:
        FileErrors: unreadable or columns missing.
    """
    rows = read_rows(QuestionTextRow, path, Problems(), guesses=False)
    questions = [(row.id, row.source, row.question) for row in rows]
    rows.refuse()
    return iter(questions)


def read_pairs(path: Path | str) -> PairTable:
    """The rows of one table with pairs and labels, for predictors.

    Raises:
        FileErrors: it is no table.
        PredictorError: as in `predictors.datasets.read`.
    """
    table = reader.read_path(path, limits=reader.OWN_FILES, guesses=False)
    check_header(table, problems := Problems(), required=(), optional=None)
    problems.raise_if_any()
    return datasets.read(path, (table.header, table.by_column()))


@dataclass(frozen=True)
class Matched:
    """The models' rows for a sample, and notes on what could not be matched. `given`: by model and question how right
    it is, of all questions that are among those given."""

    trials: list[Trial]
    notes: list[str]
    given: Mapping[str, Mapping[Hashable, float]]


def match(sample: Sample, questions: Iterable[tuple[str, str, str]], answers: AnswersByModel) -> Matched:
    """Find every model's answers to a sample's pairs, by the questions' source and text.

    Texts are compared as a reader sees them: markup and white space do not count, which a bank keeps in its own way. A
    text may have several ids: each model uses the first one, in the order of the questions, that it has answered. A
    model without answers to a pair's questions is scored on its other pairs, and a note says so.

    Raises:
        FileErrors: a pair's question is not among the questions; or all answers are to other questions.
    """
    read_as = {key: _as_read(*key) for key in {*sample.evidence, *sample.target}}
    wanted = set(read_as.values())
    ids: dict[tuple[str, str], list[str]] = {}
    known: set[str] = set()
    for question, source, text in questions:
        known.add(question)
        if (key := _as_read(source, text)) in wanted:
            ids.setdefault(key, []).append(question)
    problems = [
        Problem(
            sample.file,
            line,
            column,
            f"no question of source {key[0]!r} has this text: {key[1][:60]!r}; "
            "give the bank or file that the sample was drawn from",
        )
        for line, *pair in zip(sample.lines, sample.evidence, sample.target, strict=True)
        for column, key in zip(("q1", "q2"), pair, strict=True)
        if read_as[key] not in ids
    ]
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    notes = sample.notes
    strangers = {
        llm: [question_id for question_id in given if question_id not in known]
        for llm, given in answers.correct.items()
    }
    for llm, unknown in strangers.items():
        if len(unknown) == len(answers.correct[llm]):
            message = (
                f"none of the {len(unknown)} questions that {llm} answered is among the questions given (the first: "
                f"{unknown[0]!r}); these are answers for another bank"
            )
            problems.append(Problem(answers.file, None, "question_id", message))
        elif unknown:
            notes.append(
                f"{llm}: {len(unknown)} of its {len(answers.correct[llm])} answers are to questions that are not among "
                f"those given (the first: {unknown[0]!r}); they are left out"
            )
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    trials = []
    for llm, answered in answers.correct.items():
        trial = _trial(llm, answered, sample, {key: ids[seen] for key, seen in read_as.items()})
        if missing := int((~trial.answered).sum()):
            lines = [line for line, there in zip(sample.lines, trial.answered, strict=True) if not there]
            notes.append(
                f"{llm}: no answer to both questions of {missing} of {len(sample)} pairs "
                f"(lines {_listed(lines)}); it is scored on the other {len(sample) - missing}"
            )
        if trial.answered.any():
            trials.append(trial)
    if not trials:
        message = "no language model has answered both questions of any pair"
        why = [Problem("", None, "", note) for note in notes]
        raise FileErrors([Problem(answers.file, None, "", message), *why], shown=SHOWN)
    inside: dict[str, dict[Hashable, float]] = {
        llm: {key: value for key, value in own.items() if key in known} for llm, own in answers.correct.items()
    }
    return Matched(trials=trials, notes=notes, given=inside)


def _trial(
    llm: str, own_answers: Mapping[str, float], sample: Sample, ids: Mapping[tuple[str, str], Sequence[str]]
) -> Trial:
    def look(key: tuple[str, str]) -> float:
        return next((own_answers[question_id] for question_id in ids[key] if question_id in own_answers), -1.0)

    outcome = np.asarray([look(key) for key in sample.evidence], dtype=np.float64)
    correct = np.asarray([look(key) for key in sample.target], dtype=np.float64)
    answered = (outcome >= 0) & (correct >= 0)
    return Trial(
        name=llm, outcome=np.where(answered, outcome, 0), correct=np.where(answered, correct, 0), answered=answered
    )


def _as_read(source: str, text: str) -> tuple[str, str]:
    return source.strip(), " ".join(plain_text(text).split())


def _listed(lines: Sequence[int]) -> str:
    return ", ".join([*map(str, lines[:SHOWN]), *(["..."] if len(lines) > SHOWN else [])])
