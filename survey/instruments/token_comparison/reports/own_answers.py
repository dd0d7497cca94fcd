"""`token_comparison --answers FILE`: the whole analysis of comparisons that somebody has, without a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ValidationInfo, field_validator

from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows
from survey.instruments.token_comparison.analysis.checking import CheckModel
from survey.instruments.token_comparison.analysis.loss import ComparisonAnswers, Comparisons, log_odds_of_percent
from survey.services.base.seeds import generator

from .comparison_results import StudyComparisons, report_result, work_out

SEED = 0
MAX_COUNT = 1_000_000_000


Percent = Annotated[
    float | None,
    cells.number(
        "{} is not a number between 0 and 100, without them: the odds would be 0 or infinite",
        lambda value: 0 < value < 100,
        empty=None,
    ),
]
Multiplicity = Annotated[
    float, cells.number("{} is no whole number from 1", lambda value: 0 < value <= MAX_COUNT and value == int(value))
]
LogProbability = Annotated[
    float,
    cells.number("{} is no natural logarithm of a probability: give a number up to 0", lambda value: value <= 0),
]
Weight = Annotated[float, cells.number("{} is no number above 0", lambda value: 0 < value < MAX_COUNT, empty=1.0)]


@declared
class TokenComparisonRow(TableRow):
    """A comparison of the true next token with another one, answered by a person or by nobody.

    Each model NAME of `--models` has the columns `log_NAME_true` and `log_NAME_other`, as the generator has
    `log_g_true`. Rows of the same context and other token are one comparison that several people answered; without
    `other` every row is a draw of its own, as in the original game.
    """

    read_by = "`token_comparison --answers FILE`"
    compared = frozenset({"weight"})
    names: ClassVar[tuple[str, ...]] = ()
    """The models."""
    context: Annotated[str, cells.text("name the context")] = column("The context's name.")
    percent_true: Percent = column(
        "The chance given to the true token, between 0 and 100; empty where nobody was asked."
    )
    person: cells.Stripped = column("Whose answer it is; empty for draws that nobody was asked about.")
    multiplicity: Multiplicity = column("How many draws the row stands for.")
    log_g_true: LogProbability = column("Natural logarithm of the generator's probability of the true token.")
    log_g_other: LogProbability = column(
        "The same of the other one; where all known of both is equal, they are the same."
    )
    other: cells.Stripped = column("The other token's id.", "")
    text: cells.Stripped = column("The text that the context begins, for the intervals.", "")
    weight: Weight = column("1 / the chance of the context to be in the data.", 1.0)

    @field_validator("person")
    @classmethod
    def _is_named(cls, person: str, info: ValidationInfo) -> str:
        if not person and info.data.get("percent_true") is not None:
            raise ValueError("is empty where percent_true is not: say whose answer it is")
        return person

    @property
    def logs(self) -> Mapping[str, tuple[float, float]]:
        """By model, and of the generator as "": the logarithms of the true and of the other token."""
        logs = {
            name: (getattr(self, f"model_{place}_true"), getattr(self, f"model_{place}_other"))
            for place, name in enumerate(self.names)
        }
        return {"": (self.log_g_true, self.log_g_other), **logs}

    @property
    def is_same(self) -> bool:
        """Whether the other token is the true one, by id: all that is known of both is equal. Displayed strings do not
        tell, since different tokens can be displayed alike."""
        return all(true == other for true, other in self.logs.values())


def make(path: Path, *, models: Sequence[str] = (), by_person: bool = False, ddof: int = 1) -> ReportResult:
    """
    Args:
        models: names of the models to check: the file has log_NAME_true and log_NAME_other of each.
        by_person: each person alone too.
        ddof: what is taken off the numbers in standard deviations, 1 or 0.

    Raises:
        HunchError: the file cannot be used, or holds no answer; says what to do.
    """
    rows = read_answers(path, models)
    built = built_from(rows, models)
    if not len(built.answers):
        raise HunchError(f"{path}: percent_true: no row has an answer to a comparison of two different tokens")
    persons = None
    if by_person:
        persons = {}
        for name in sorted({row.person for row in rows if row.percent_true is not None}):
            own = built_from([row for row in rows if row.person in ("", name)], models)
            persons[name] = (own.comparisons, own.answers, own.models)
    material = StudyComparisons(
        comparisons=built.comparisons,
        answers=built.answers,
        models=built.models,
        contexts=built.contexts,
        texts=built.texts,
        persons=persons,
        ddof=ddof,
    )
    figures = work_out(material, rng=generator(SEED, "token comparison"))
    if figures is None:
        raise HunchError(f"{path}: no context has an answer")
    c = built.comparisons
    people = len({row.person for row in rows if row.person})
    asked = sum(row.percent_true is not None for row in rows)
    report = report_result(
        material,
        figures,
        title="Comparisons of next tokens",
        lines=[
            f"{people} people, {integer(asked)} answers, {c.contexts} contexts in {len(built.texts)} texts; "
            f"{integer(round(float(c.same.sum())))} of {integer(round(float(c.draws.sum())))} draws are the true token "
            "itself"
        ],
    )
    return replace(report, files=[ReportFile.of_json("token_comparison.json", report.data)])


@dataclass(frozen=True, eq=False)
class Built:
    """Rows as arrays, with the names of contexts and texts."""

    comparisons: Comparisons
    answers: ComparisonAnswers
    models: Sequence[CheckModel]
    contexts: Sequence[str]
    texts: Sequence[str]


@dataclass
class _Context:
    log_g_true: float
    text: str
    weight: float
    same: float = 0.0
    draws: float = 0.0
    logs: dict[str, float] = field(default_factory=dict)


def built_from(rows: Sequence[TokenComparisonRow], models: Sequence[str] = ()) -> Built:
    """Rows of the same context and other token are one comparison, answered by several people; without the column
    other each row is one, as a person who was shown a draw of their own."""
    contexts: dict[str, _Context] = {}
    items: dict[tuple[str, str], int] = {}
    of_item: list[TokenComparisonRow] = []
    people: dict[str, int] = {}
    answers: list[tuple[int, int, float]] = []
    for row in rows:
        own = contexts.setdefault(row.context, _Context(row.log_g_true, row.text, row.weight))
        own.logs.update({name: true for name, (true, _other) in row.logs.items()})
        key = (row.context, row.other or f"line {row.line}")
        known = key in items
        if row.is_same:
            if not known:
                items[key] = -1
                own.same += row.multiplicity
                own.draws += row.multiplicity
            continue
        if not known:
            items[key] = len(of_item)
            of_item.append(row)
            own.draws += row.multiplicity
        if row.percent_true is not None:
            answers.append((items[key], people.setdefault(row.person, len(people)), row.percent_true))
    place = {name: number for number, name in enumerate(contexts)}
    texts: dict[str, int] = {}
    for name, context in contexts.items():
        texts.setdefault(context.text or name, len(texts))
    all_of = list(contexts.items())
    item, person, percent = (list(column) for column in zip(*answers, strict=True)) if answers else ([], [], [])
    comparisons = Comparisons(
        text=np.array([texts[draw_row.text or name] for name, draw_row in all_of], dtype=np.int64),
        log_g_true=np.array([draw_row.log_g_true for _name, draw_row in all_of]),
        draws=np.array([draw_row.draws for _name, draw_row in all_of]),
        same=np.array([draw_row.same for _name, draw_row in all_of]),
        weight=np.array([draw_row.weight for _name, draw_row in all_of]),
        context=np.array([place[row.context] for row in of_item], dtype=np.int64),
        multiplicity=np.array([row.multiplicity for row in of_item]),
        log_g_other=np.array([row.log_g_other for row in of_item]),
        item_weight=np.ones(len(of_item)),
    )
    return Built(
        comparisons,
        ComparisonAnswers(
            np.array(item, dtype=np.int64),
            np.array(person, dtype=np.int64),
            log_odds_of_percent(np.array(percent, dtype=np.float64)),
        ),
        [
            CheckModel(
                name,
                np.array([draw_row.logs.get(name, math.nan) for _context, draw_row in all_of]),
                np.array([row.logs[name][1] for row in of_item]),
            )
            for name in models
        ],
        list(contexts),
        list(texts),
    )


def read_answers(path: Path, models: Sequence[str] = ()) -> list[TokenComparisonRow]:
    """
    Raises:
        FileErrors: with every problem.
    """
    rows = read_rows(row_with(models), path, Problems(), guesses=False)
    answers: list[TokenComparisonRow] = []
    first: dict[str, TokenComparisonRow] = {}
    seen: dict[tuple[str, str], TokenComparisonRow] = {}
    for row in rows:
        before = first.setdefault(row.context, row)
        if (before.log_g_true, before.text, before.weight) != (row.log_g_true, row.text, row.weight):
            message = f"line {before.line} of this context has another log_g_true, text or weight"
            rows.wrong(row.line, "context", message)
        if row.other:
            same = seen.setdefault((row.context, row.other), row)
            if (same.logs, same.multiplicity) != (row.logs, row.multiplicity):
                message = f"line {same.line} of this comparison has another multiplicity or other log-probabilities"
                rows.wrong(row.line, "other", message)
            if row.person:
                rows.once(row, "person", (row.context, row.other, row.person), "answered this comparison already")
        answers.append(row)
    rows.refuse("" if answers else "holds no answer: give at least one row")
    return answers


def row_with(models: Sequence[str]) -> type[TokenComparisonRow]:
    """The rows of a file that has these models."""
    columns: dict[str, Any] = {"__annotations__": {}, "names": tuple(models), "__module__": __name__}
    for name in models:
        for which in ("true", "other"):
            field_name = f"model_{models.index(name)}_{which}"
            columns["__annotations__"][field_name] = LogProbability
            columns[field_name] = column(f"As log_g_{which}, of {name}.", name=f"log_{name}_{which}")
    return declared(type("ModelComparisonRow", (TokenComparisonRow,), columns))
