"""The files that alignment is computed from: a sample of pairs with predictions, answers of language models, questions.

Every cell is read as text: in published files an option may be the word "nan".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from predictors import datasets
from predictors.cell_numbers import number_of
from predictors.datasets import PairTable
from predictors.markup import plain_text
from survey.exceptions import FileErrors, Problem
from survey.services.banks import tables
from survey.services.banks.importing import Problems, rows_of

from .scores import Trial

SAMPLE_COLUMNS = ("q1", "q2", "source1", "source2", "pred_if_correct", "pred_if_incorrect")
ANSWER_COLUMNS = ("llm", "question_id", "correct")
QUESTION_COLUMNS = ("id", "source", "question")
YES_NO = {"true": 1.0, "false": 0.0}
SHOWN = 10


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
    problems: list[Problem] = []
    evidence, target, if_correct, if_incorrect, lines = [], [], [], [], []
    known: dict[tuple[str, ...], tuple[int, list[float | None]]] = {}
    repeated = []
    for line, row in csv_rows(path, SAMPLE_COLUMNS):
        predictions = []
        for column in ("pred_if_correct", "pred_if_incorrect"):
            value = _probability(row[column])
            if value is None:
                message = (
                    f"{row[column][:40]!r} is not a probability; give every pair a prediction between 0 and 1, or "
                    "leave the row out"
                )
                problems.append(Problem(str(path), line, column, message))
            predictions.append(value)
        if None in predictions:
            continue
        first, said = known.setdefault((row["source1"], row["q1"], row["source2"], row["q2"]), (line, predictions))
        if first != line:
            if said != predictions:
                message = f"is the pair of line {first} with another prediction; keep one of them"
                problems.append(Problem(str(path), line, "q1, q2", message))
            repeated.append(line)
            continue
        evidence.append((row["source1"], row["q1"]))
        target.append((row["source2"], row["q2"]))
        if_correct.append(predictions[0])
        if_incorrect.append(predictions[1])
        lines.append(line)
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    if not evidence:
        raise FileErrors([Problem(str(path), 1, "file", "holds no pair; add at least one row under the header")])
    return Sample(
        evidence=evidence,
        target=target,
        change_if_correct=np.asarray(if_correct, dtype=np.float64),
        change_if_incorrect=np.asarray(if_incorrect, dtype=np.float64),
        file=str(path),
        lines=lines,
        repeated=repeated,
    )


def read_answers(path: Path | str) -> AnswersByModel:
    """
    Raises:
        FileErrors: unreadable, columns missing, a value that is not from 0 to 1, two rows that contradict each other.
    """
    problems: list[Problem] = []
    correct: dict[str, dict[str, float]] = {}
    for line, row in csv_rows(path, ANSWER_COLUMNS):
        value = YES_NO.get(row["correct"].strip().lower(), _probability(row["correct"]))
        llm, question = row["llm"].strip(), row["question_id"].strip()
        if value is None:
            problems.append(Problem(str(path), line, "correct", _not_right(row["correct"])))
        if not llm or not question:
            problems.append(Problem(str(path), line, "llm" if not llm else "question_id", "is empty; name it"))
        if value is None or not llm or not question:
            continue
        known = correct.setdefault(llm, {}).setdefault(question, value)
        if known != value:
            message = f"{llm} has two answers to {question} that differ; keep one, or give their mean"
            problems.append(Problem(str(path), line, "correct", message))
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    if not correct:
        raise FileErrors([Problem(str(path), 1, "file", "holds no answer; add at least one row under the header")])
    return AnswersByModel(correct=correct, file=str(path))


def read_questions(path: Path | str) -> Iterator[tuple[str, str, str]]:
    """(id, source, text) of every question, in the file's order.

    Raises:
        FileErrors: unreadable or columns missing.
    """
    for _line, row in csv_rows(path, QUESTION_COLUMNS):
        yield row["id"].strip(), row["source"], row["question"]


def read_pairs(path: Path | str) -> PairTable:
    """The rows of one table with pairs and labels, for predictors.

    Raises:
        FileErrors: it is no table.
        PredictorError: as in `predictors.datasets.read`.
    """
    table = tables.read_path(path, limits=tables.OWN_FILES, guesses=False)
    return datasets.read(path, (table.header, rows_with(table, ())))


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
    shown = {key: _as_read(*key) for key in {*sample.evidence, *sample.target}}
    wanted = set(shown.values())
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
        if shown[key] not in ids
    ]
    if problems:
        raise FileErrors(problems, shown=SHOWN)
    notes = sample.notes
    strangers = {llm: [one for one in given if one not in known] for llm, given in answers.correct.items()}
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
    for llm, given in answers.correct.items():
        trial = _trial(llm, given, sample, {key: ids[seen] for key, seen in shown.items()})
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


def _trial(llm: str, given: Mapping[str, float], sample: Sample, ids: Mapping[tuple[str, str], Sequence[str]]) -> Trial:
    def look(key: tuple[str, str]) -> float:
        return next((given[one] for one in ids[key] if one in given), -1.0)

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


def _not_right(text: str) -> str:
    return f"{text[:40]!r} is neither 0 nor 1, nor a fraction between them"


def _probability(text: str) -> float | None:
    value = number_of(text)
    return value if value is not None and 0 <= value <= 1 else None


def csv_rows(path: Path | str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row of a table as texts, with the line on which it begins; further columns are allowed."""
    return rows_with(tables.read_path(path, limits=tables.OWN_FILES, guesses=False), columns)


def csv_rows_of(content: bytes, path: str, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The same of what a file holds; `path` names it in messages."""
    return rows_with(tables.read(content, path, limits=tables.OWN_FILES, guesses=False), columns)


def rows_with(table: tables.ReadTable, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """
    Raises:
        FileErrors: it lacks one of these columns, or a row has other fields than the header.
    """
    problems = Problems()
    rows = list(rows_of(table, problems, required=columns, optional=None))
    problems.raise_if_any()
    return iter(rows)
