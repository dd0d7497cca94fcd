"""Training and test rows from CSV files in the columns of the paper's released data. Standard library and numpy.

Two kinds of file are known by their columns:

- `q1, q2, source1, source2, previous_correct, belief_change`: a row is an answer, a majority label, or a fraction of
  answers. Optional columns are `weight` (0 or more), `responses` (how many answers the label sums up), `respondent`,
  `prior` (the chance of a right answer to q2 that was stated before the evidence, 0 to 100; a mean where a row sums up
  several answers) and `models_right` (the share of language models that answer q2 right, 0 to 1). Cells of the last two
  may be empty: not known.
- `q1, q2, source1, source2, pred_if_correct, pred_if_incorrect`: a pair with a model's two predictions, read as two
  rows with soft labels, one for each outcome.

Every cell is taken as text, so an option that reads "nan" stays what it is. Questions in the bank's markup become the
plain text that predictors read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.cell_numbers import number_of
from predictors.errors import PredictorError
from predictors.hardness import IN_FILES, MODELS, PEOPLE
from predictors.markup import plain_text
from predictors.pairs import Pair, Progress
from predictors.registry import Estimator

TEXT_COLUMNS = ("q1", "q2", "source1", "source2")
LABEL_COLUMNS = (*TEXT_COLUMNS, "previous_correct", "belief_change")
SOFT_COLUMNS = (*TEXT_COLUMNS, "pred_if_correct", "pred_if_incorrect")

_YES_NO = {"1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0}
_ARRAYS = ("labels", "weights", "responses", "majority", "counted")
_COLUMNS = {PEOPLE: "priors", MODELS: "models_right"}
_BESIDE = {IN_FILES[column]: name for column, name in _COLUMNS.items()}
_PROBLEMS_SHOWN = 10
# Files write shares with two decimals or more.
_ROUNDING = 0.005


@dataclass(frozen=True)
class PairTable:
    """n rows to learn from or to measure on.

    Attributes:
        pairs: n pairs, in plain text.
        labels: float64 (n,) in [0, 1], the share of the answers that are changes.
        weights: float64 (n,), 0 or more.
        responses: int64 (n,), how many answers a label sums up; 1 where the file does not say.
        majority: bool (n,), the label is the majority of several answers and not their share.
        counted: bool (n,), the label is a share of a known number of answers: labels * responses are whole numbers.
        respondents: n names, or None where not every row has one.
        pair_ids: int64 (n,), equal for rows that show the same evidence, outcome and target.
        questions: n times both questions as the file has them, markup and all.
        source: the files' names.
        priors: float64 (n,) in [0, 1], NaN where none is known: the stated chance of a right answer to the target,
            before the evidence. None where no row has one.
        models_right: the same of the share of language models that answer the target right.
    """

    pairs: list[Pair]
    labels: NDArray[np.float64]
    weights: NDArray[np.float64]
    responses: NDArray[np.int64]
    majority: NDArray[np.bool_]
    counted: NDArray[np.bool_]
    respondents: list[str] | None
    pair_ids: NDArray[np.int64]
    questions: list[tuple[str, str]]
    source: str
    priors: NDArray[np.float64] | None = None
    models_right: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def outcomes(self) -> NDArray[np.int64]:
        """int64 (n,), 1 where the evidence question was answered correctly."""
        return np.array([pair.outcome for pair in self.pairs], dtype=np.int64)

    @property
    def says_responses(self) -> bool:
        """Whether some label is known to sum up answers."""
        return bool((self.majority | self.counted).any())

    def columns(self, names: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """The named columns of how hard targets are, (n,) each, as far as the rows have them."""
        columns = {name: getattr(self, _COLUMNS[name]) for name in names}
        return {name: column for name, column in columns.items() if column is not None}

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> PairTable:
        """The given rows, by index or by mask."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        indices = chosen.tolist()
        return replace(
            self,
            pairs=[self.pairs[index] for index in indices],
            respondents=None if self.respondents is None else [self.respondents[index] for index in indices],
            pair_ids=self.pair_ids[chosen],
            questions=[self.questions[index] for index in indices],
            **{name: getattr(self, name)[chosen] for name in _ARRAYS},
            priors=None if self.priors is None else self.priors[chosen],
            models_right=None if self.models_right is None else self.models_right[chosen],
        )

    def require_both_classes(self) -> None:
        """
        Raises:
            PredictorError: rows of both classes are needed, and one class has no row with weight.
        """
        counting = self.labels[self.weights > 0]
        for constant in (0, 1):
            if (counting == constant).all():
                raise PredictorError(
                    f"{self.source}: belief_change: all {len(counting)} rows with weight are {constant}; "
                    f"rows of the class {1 - constant} are needed too."
                )


def fit_on(estimator: Estimator, table: PairTable, progress: Progress | None = None) -> Estimator:
    """Fit an estimator on a table's rows; returns it.

    An estimator with `uses_responses` is given how many answers each label sums up, where that is known. To any other
    a share of k answers counts as k single answers. An estimator whose settings name columns is given those.

    Raises:
        PredictorError: the rows cannot be learnt from. Stopped: `progress` returned False.
    """
    learner: Any = estimator
    named = getattr(estimator, "columns", ())
    arguments: dict[str, Any] = {"columns": table.columns(named)} if named else {}
    if getattr(estimator, "uses_responses", False):
        weights, arguments["responses"] = table.weights, table.responses if table.says_responses else None
    else:
        weights = table.weights * np.where(table.counted, table.responses, 1)
    fitted: Estimator = learner.fit(table.pairs, table.labels, weights, progress, **arguments)
    return fitted


def predict_on(
    estimator: Estimator, table: PairTable, progress: Progress | None = None, *, majorities: bool = False
) -> NDArray[np.float64]:
    """Probability of change for each row, (n,).

    With `majorities`, rows whose label is a majority get the probability of that majority, from an estimator that has
    `predict_majority(pairs, responses)`. Ask for it only where the estimator was given what its labels sum up.
    """
    teller: Any = estimator
    probabilities: NDArray[np.float64] = teller.predict_proba(
        table.pairs, progress, **given_to_predict(estimator, table)
    )[:, 1]
    if majorities and table.majority.any() and predicts_majorities(estimator):
        several = table.take(table.majority)
        probabilities = probabilities.copy()
        probabilities[table.majority] = teller.predict_majority(
            several.pairs, several.responses, **given_to_predict(estimator, several)
        )
    return probabilities


def given_to_predict(estimator: Estimator, table: PairTable) -> dict[str, Any]:
    """The columns that an estimator needs to predict, as keyword arguments; never what people stated of the rows."""
    named = getattr(estimator, "columns", ())
    return {"columns": table.columns(name for name in named if name != PEOPLE)} if named else {}


def predicts_majorities(estimator: Estimator) -> bool:
    """Whether an estimator knows one person's change from the majority of several."""
    return hasattr(estimator, "predict_majority")


Lines = tuple[Sequence[str], Iterable[tuple[int, dict[str, str]]]]
"""A header, and the cells of each row by column with the number of its line."""


def read(path: Path | str, lines: Lines | None = None) -> PairTable:
    """The rows of one CSV file (UTF-8), in their order.

    Args:
        lines: what the file holds, where somebody else has read it; then `path` names it in messages.

    Raises:
        PredictorError: the file cannot be read, lacks columns or rows, or holds a cell that cannot be used; one line
            a problem, `FILE:LINE: column: what to do`.
    """
    header, cells = lines or _lines(Path(path))
    if set(LABEL_COLUMNS) <= set(header):
        rows = _labelled(str(path), header, cells)
    elif set(SOFT_COLUMNS) <= set(header):
        rows = _soft(str(path), header, cells)
    else:
        lacking = [name for name in LABEL_COLUMNS if name not in header]
        raise PredictorError(
            f"{path}:1: the columns {', '.join(lacking)} are missing; "
            f"a file has {', '.join(LABEL_COLUMNS)}, or pred_if_correct and pred_if_incorrect in place of the last two."
        )
    rows.refuse_problems()
    return rows.table()


def join(tables: Sequence[PairTable]) -> PairTable:
    """Several tables as one, in their order.

    Raises:
        PredictorError: there are none.
    """
    if not tables:
        raise PredictorError("tables: there are none; give at least one file.")
    pairs = [pair for table in tables for pair in table.pairs]
    named = [table.respondents for table in tables]
    return PairTable(
        pairs=pairs,
        respondents=None if None in named else [name for names in named for name in names or ()],
        pair_ids=_pair_ids(pairs),
        questions=[both for table in tables for both in table.questions],
        source=", ".join(table.source for table in tables),
        **{name: np.concatenate([getattr(table, name) for table in tables]) for name in _ARRAYS},
        priors=_joined([(table.priors, len(table)) for table in tables]),
        models_right=_joined([(table.models_right, len(table)) for table in tables]),
    )


def _joined(parts: Sequence[tuple[NDArray[np.float64] | None, int]]) -> NDArray[np.float64] | None:
    """Columns one after the other, NaN for the rows of a table that lacks it; None where all lack it."""
    if all(column is None for column, _n in parts):
        return None
    return np.concatenate([np.full(n, np.nan) if column is None else column for column, n in parts])


class _Rows:
    """Rows while they are read, with what is wrong with them."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []
        self.pairs: list[Pair] = []
        self.labels: list[float] = []
        self.weights: list[float] = []
        self.responses: list[int] = []
        self.respondents: list[str] = []
        self.questions: list[tuple[str, str]] = []
        self.states_responses = False
        self.states_respondents = False
        self.beside: dict[str, list[float]] = {}

    def problem(self, line: int, column: str, text: str) -> None:
        self.problems.append(f"{self.file}:{line}: {column}: {text}")

    def texts(self, line: int, cells: dict[str, str]) -> tuple[str, str, str, str]:
        """Both texts and both tasks of a row."""
        for column in TEXT_COLUMNS:
            if not plain_text(cells[column]):
                self.problem(line, column, "is empty; every pair has two questions and their tasks.")
        return (plain_text(cells["q1"]), plain_text(cells["q2"]), cells["source1"].strip(), cells["source2"].strip())

    def number(
        self, line: int, cells: dict[str, str], column: str, meaning: str, allowed: Callable[[float], bool]
    ) -> float:
        """The number in a cell; a problem is noted and 0 returned where there is none or it is not allowed."""
        value = number_of(cells[column])
        if value is None or not allowed(value):
            self.problem(line, column, f"{cells[column][:40]!r} is not {meaning}.")
            return 0.0
        return value

    def fraction(self, line: int, cells: dict[str, str], column: str) -> float:
        """A fraction of what stands next to the texts; NaN where the cell is empty."""
        if not cells[column].strip():
            return float("nan")
        if column == "prior":
            return (
                self.number(line, cells, column, "a number between 0 and 100, or empty", lambda v: 0 <= v <= 100) / 100
            )
        return self.number(line, cells, column, "a number between 0 and 1, or empty", lambda v: 0 <= v <= 1)

    def refuse_problems(self) -> None:
        if not self.problems and not self.pairs:
            raise PredictorError(f"{self.file}: has a header and no rows; give at least one pair.")
        if self.problems:
            lines = self.problems[:_PROBLEMS_SHOWN]
            if more := len(self.problems) - len(lines):
                lines.append(f"{self.file}: and {more} more problem{'s' if more > 1 else ''}.")
            raise PredictorError("\n".join(lines))

    def table(self) -> PairTable:
        labels = np.array(self.labels)
        responses = np.array(self.responses, dtype=np.int64)
        # Where every label is 0 or 1 although it sums up several answers, it says which side most of them were on.
        all_whole = bool(np.isin(labels, (0.0, 1.0)).all())
        several = responses > 1
        return PairTable(
            pairs=self.pairs,
            labels=labels,
            weights=np.array(self.weights),
            responses=responses,
            majority=several & all_whole,
            counted=np.full(len(labels), self.states_responses) & ~(several & all_whole),
            respondents=self.respondents if self.states_respondents else None,
            pair_ids=_pair_ids(self.pairs),
            questions=self.questions,
            source=self.file,
            priors=self.column("priors"),
            models_right=self.column("models_right"),
        )

    def column(self, name: str) -> NDArray[np.float64] | None:
        """What the rows say next to the texts; None where the file has no such column."""
        return np.array(self.beside[name], dtype=np.float64) if name in self.beside else None


def _labelled(file: str, header: Sequence[str], lines: Iterable[tuple[int, dict[str, str]]]) -> _Rows:
    rows = _Rows(file)
    rows.states_responses = "responses" in header
    rows.states_respondents = "respondent" in header
    rows.beside = {name: [] for column, name in _BESIDE.items() if column in header}
    for line, cells in lines:
        texts = rows.texts(line, cells)
        outcome = _YES_NO.get(cells["previous_correct"].strip().lower())
        if outcome is None:
            rows.problem(line, "previous_correct", f"{cells['previous_correct'][:40]!r} is neither 1 nor 0.")
        label = float(_YES_NO.get(cells["belief_change"].strip().lower(), -1))
        if label < 0:
            label = rows.number(
                line, cells, "belief_change", "a number between 0 (belief kept) and 1 (changed)", lambda v: 0 <= v <= 1
            )
        weight, responses = 1.0, 1
        if "weight" in header:
            weight = rows.number(line, cells, "weight", "a number of 0 or more", lambda v: 0 <= v < np.inf)
        if rows.states_responses:
            count = rows.number(
                line, cells, "responses", "a whole number of 1 or more", lambda v: 1 <= v < 2**31 and v == int(v)
            )
            responses = int(count) or 1
            share = round(label * responses) / responses
            if abs(label - share) > _ROUNDING:
                rows.problem(line, "belief_change", f"{cells['belief_change']} is not a share of {responses} answers.")
            label = share
        if rows.states_respondents and not cells["respondent"].strip():
            rows.problem(line, "respondent", "is empty; name one in every row, or leave the column out.")
        for column, name in _BESIDE.items():
            if name in rows.beside:
                rows.beside[name].append(rows.fraction(line, cells, column))
        rows.pairs.append(Pair(*texts, outcome or 0))
        rows.labels.append(label)
        rows.weights.append(weight)
        rows.responses.append(responses)
        rows.respondents.append(cells.get("respondent", "").strip())
        rows.questions.append((cells["q1"], cells["q2"]))
    if rows.weights and not any(rows.weights) and not rows.problems:
        raise PredictorError(f"{file}: weight: every weight is 0; at least one row must count.")
    return rows


def _soft(file: str, header: Sequence[str], lines: Iterable[tuple[int, dict[str, str]]]) -> _Rows:
    rows = _Rows(file)
    for line, cells in lines:
        texts = rows.texts(line, cells)
        for column, outcome in (("pred_if_correct", 1), ("pred_if_incorrect", 0)):
            label = rows.number(line, cells, column, "a probability between 0 and 1", lambda v: 0 <= v <= 1)
            rows.pairs.append(Pair(*texts, outcome))
            rows.labels.append(label)
            rows.weights.append(1.0)
            rows.responses.append(1)
            rows.questions.append((cells["q1"], cells["q2"]))
    return rows


def _lines(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """The header, and the cells of each row by column with the number of the line on which the row ends."""
    try:
        text = path.read_bytes().decode("utf-8-sig").lstrip("\ufeff")
    except OSError as exc:
        raise PredictorError(f"{path}: cannot be read ({exc.strerror}); check the path.") from exc
    except UnicodeDecodeError as exc:
        raise PredictorError(f"{path}: is not UTF-8 (byte {exc.start}); save it as UTF-8.") from exc
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as exc:
        raise PredictorError(f"{path}:1: is not CSV ({exc}).") from exc
    if not any(header):
        raise PredictorError(f"{path}: is empty; its first line names the columns {', '.join(LABEL_COLUMNS)}.")
    twice = sorted({name for name in header if name and header.count(name) > 1})
    if twice:
        raise PredictorError(f"{path}:1: the column {twice[0]} is there twice; keep one.")
    return header, _cells(path, header, reader)


def _cells(path: Path, header: list[str], reader: Iterator[list[str]]) -> Iterator[tuple[int, dict[str, str]]]:
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            raise PredictorError(f"{path}:{line + 1}: is not CSV ({exc}).") from exc
        line = reader.line_num  # type: ignore[attr-defined]
        if not any(cell.strip() for cell in cells):  # Editors leave blank lines at the end, and sheets empty rows.
            continue
        if len(cells) != len(header):
            raise PredictorError(
                f"{path}:{line}: has {len(cells)} cells and the header {len(header)}; "
                "put texts with commas or line breaks into quotation marks."
            )
        yield line, dict(zip(header, cells, strict=True))


def numbered(values: Iterable[Hashable]) -> NDArray[np.int64]:
    """Numbers from 0, (n,), equal for equal values, in order of appearance."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in values], dtype=np.int64)


def _pair_ids(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    return numbered((pair.evidence_text, pair.target_text, pair.outcome) for pair in pairs)
