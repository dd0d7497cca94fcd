"""`token_comparison --answers FILE`: the whole analysis of comparisons that somebody has, without a study."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from survey.contracts.reports import Findings, ReportFile
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.instruments.token_comparison.analysis.checking import CheckModel
from survey.instruments.token_comparison.analysis.estimating import ComparisonAnswers, Comparisons, log_odds_of_percent
from survey.services.banks.csv_rows import csv_rows, number_of
from survey.services.banks.importing import Problems
from survey.services.base.seeds import generator

from .findings import StudyComparisons, findings, work_out

SEED = 0
REQUIRED = ("person", "context", "multiplicity", "percent_true", "log_g_true", "log_g_other")
# Which token the other one is, and which text the context begins.
FURTHER = ("other", "text", "weight")
MOST = 1_000_000_000


@dataclass(frozen=True)
class AnswerRow:
    """A row of the file. person "" and percent None: the comparison was asked of nobody."""

    line: int
    person: str
    context: str
    multiplicity: float
    percent: float | None
    g: tuple[float, float]
    models: Mapping[str, tuple[float, float]]
    other: str
    text: str
    weight: float

    @property
    def is_same(self) -> bool:
        """Whether the other token is the true one, by id: all that is known of both is equal. Displayed strings do not
        tell, since different tokens can be displayed alike."""
        return all(true == other for true, other in (self.g, *self.models.values()))


def make(path: Path, *, models: Sequence[str] = (), by_person: bool = False, ddof: int = 1) -> Findings:
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
        for name in sorted({row.person for row in rows if row.percent is not None}):
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
    asked = sum(row.percent is not None for row in rows)
    found = findings(
        material,
        figures,
        title="Comparisons of next tokens",
        lines=[
            f"{people} people, {integer(asked)} answers, {c.contexts} contexts in {len(built.texts)} texts; "
            f"{integer(round(float(c.same.sum())))} of {integer(round(float(c.draws.sum())))} draws are the true token "
            "itself"
        ],
    )
    return replace(found, files=[ReportFile.of_json("token_comparison.json", found.data)])


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


def built_from(rows: Sequence[AnswerRow], models: Sequence[str] = ()) -> Built:
    """Rows of the same context and other token are one comparison, answered by several people; without the column
    other each row is one, as a person who was shown a draw of their own."""
    contexts: dict[str, _Context] = {}
    items: dict[tuple[str, str], int] = {}
    of_item: list[AnswerRow] = []
    people: dict[str, int] = {}
    answers: list[tuple[int, int, float]] = []
    for row in rows:
        own = contexts.setdefault(row.context, _Context(row.g[0], row.text, row.weight))
        own.logs.update({name: logs[0] for name, logs in row.models.items()})
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
        if row.percent is not None:
            answers.append((items[key], people.setdefault(row.person, len(people)), row.percent))
    place = {name: number for number, name in enumerate(contexts)}
    texts: dict[str, int] = {}
    for name, one in contexts.items():
        texts.setdefault(one.text or name, len(texts))
    all_of = list(contexts.items())
    item, person, percent = (list(column) for column in zip(*answers, strict=True)) if answers else ([], [], [])
    comparisons = Comparisons(
        text=np.array([texts[one.text or name] for name, one in all_of], dtype=np.int64),
        log_g_true=np.array([one.log_g_true for _name, one in all_of]),
        draws=np.array([one.draws for _name, one in all_of]),
        same=np.array([one.same for _name, one in all_of]),
        weight=np.array([one.weight for _name, one in all_of]),
        context=np.array([place[row.context] for row in of_item], dtype=np.int64),
        multiplicity=np.array([row.multiplicity for row in of_item]),
        log_g_other=np.array([row.g[1] for row in of_item]),
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
                np.array([one.logs.get(name, math.nan) for _context, one in all_of]),
                np.array([row.models[name][1] for row in of_item]),
            )
            for name in models
        ],
        list(contexts),
        list(texts),
    )


def read_answers(path: Path, models: Sequence[str] = ()) -> list[AnswerRow]:
    """
    Raises:
        FileErrors: with every problem.
    """
    problems = Problems()
    names = [f"log_{name}_{which}" for name in models for which in ("true", "other")]
    found: list[AnswerRow] = []
    first: dict[str, AnswerRow] = {}
    seen: dict[tuple[str, str], AnswerRow] = {}
    given: dict[tuple[str, str, str], int] = {}
    for line, cells in csv_rows(path, (*REQUIRED, *names), problems, guesses=False):
        row = _row(str(path), line, cells, models, problems)
        if row is None:
            continue
        before = first.setdefault(row.context, row)
        if (before.g[0], before.text, before.weight) != (row.g[0], row.text, row.weight):
            problems.add(
                str(path), line, "context", f"line {before.line} of this context has another log_g_true, text or weight"
            )
        if row.other:
            same = seen.setdefault((row.context, row.other), row)
            if (same.g, same.multiplicity, same.models) != (row.g, row.multiplicity, row.models):
                problems.add(
                    str(path),
                    line,
                    "other",
                    f"line {same.line} of this comparison has another multiplicity or other log-probabilities",
                )
            if row.person:
                other = given.setdefault((row.context, row.other, row.person), line)
                if other != line:
                    problems.add(
                        str(path), line, "person", f"answered this comparison in line {other} already: keep one"
                    )
        found.append(row)
    if not found and not problems:
        problems.add(str(path), 1, "file", "holds no answer: give at least one row")
    problems.raise_if_any()
    return found


def _row(file: str, line: int, cells: Mapping[str, str], models: Sequence[str], problems: Problems) -> AnswerRow | None:
    before = len(problems)
    context, person = cells["context"].strip(), cells["person"].strip()
    if not context:
        problems.add(file, line, "context", "is empty: name the context")
    percent = None
    if cells["percent_true"].strip():
        percent = number_of(cells["percent_true"])
        if percent is None or not 0 < percent < 100:
            problems.add(
                file,
                line,
                "percent_true",
                f"{cells['percent_true'][:20]!r} is not a number between 0 and 100, without them: the odds would be "
                "0 or infinite",
            )
        if not person:
            problems.add(file, line, "person", "is empty where percent_true is not: say whose answer it is")
    multiplicity = number_of(cells["multiplicity"])
    if multiplicity is None or not 0 < multiplicity <= MOST or multiplicity != int(multiplicity):
        problems.add(file, line, "multiplicity", f"{cells['multiplicity'][:20]!r} is no whole number from 1")
    weight = number_of(cells.get("weight", "") or "1")
    if weight is None or not 0 < weight < MOST:
        problems.add(file, line, "weight", f"{cells.get('weight', '')[:20]!r} is no number above 0")
    logs: dict[str, tuple[float, float]] = {}
    for name in ("g", *models):
        both = []
        for which in ("true", "other"):
            text = cells[f"log_{name}_{which}"]
            value = number_of(text)
            if value is None or value > 0:
                problems.add(
                    file,
                    line,
                    f"log_{name}_{which}",
                    f"{text[:20]!r} is no natural logarithm of a probability: give a number up to 0",
                )
            both.append(value or 0.0)
        logs[name] = (both[0], both[1])
    if len(problems) > before or multiplicity is None or weight is None:
        return None
    g = logs.pop("g")
    return AnswerRow(
        line,
        person,
        context,
        multiplicity,
        percent,
        g,
        logs,
        cells.get("other", "").strip(),
        cells.get("text", "").strip(),
        weight,
    )
