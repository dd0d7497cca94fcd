"""The paper's tables and figures from files: training and test rows, scored pairs, answers of language models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.comparison import PredictorComparison
from predictors.datasets import PairTable, plain_text
from survey.exceptions import HunchError

from .alignment import PAPER_AVERAGES, AlignmentComparison
from .alignment_files import Sample, match, read_answers
from .paper import (
    METRICS,
    PAPER_ALPHAS,
    PARTS,
    PaperFigure,
    Piece,
    Ranked,
    ScoredPairs,
    figure_2,
    figure_3_right,
    group_table,
    model_tables,
    sentence,
    table_1,
    tried,
)

NOT_IN_FILES = "files of labels hold no beliefs, which a study has: hunch paper SLUG"
ON_TEST_FILE = "The rows are those of the test file, which may hold extremes of the predictions."


@dataclass(frozen=True, eq=False)
class Measured:
    """Predictors on the test rows: what was found, their probabilities by name (n,), and why others have none."""

    test: PairTable
    found: PredictorComparison
    probabilities: Mapping[str, NDArray[np.float64]]
    failures: Mapping[str, str]


def pieces_from(
    measured: Measured | None,
    why_not_measured: str,
    sample: Sample | None,
    answers: str | None,
    questions: Iterable[tuple[str, str, str]] | None,
    *,
    samples: int,
    seed: int,
) -> list[Piece]:
    """Every piece; what the files do not give says so.

    Args:
        why_not_measured: why there is no `measured`.
        questions: id, task and text of each question that the answers name.
    """
    tables = _model_tables(sample, answers, questions, samples=samples, seed=seed)

    def need() -> Measured:
        if measured is None:
            raise HunchError(why_not_measured)
        return measured

    return [
        tried("table1", "Table 1", lambda: _table_1(need())),
        tables["table2"],
        tried("table3", "Table 3", lambda: _groups(need(), "table3")),
        tried("table4", "Table 4", lambda: _groups(need(), "table4")),
        tables["table5"],
        tried("figure2", "Figure 2", lambda: _figure_2(sample)),
        tried("figure3_left", "Figure 3, left", lambda: sentence(NOT_IN_FILES)),
        tried("figure3_right", "Figure 3, right", lambda: _figure_3_right(need())),
        tried("figure5", "Figure 5", lambda: sentence(NOT_IN_FILES)),
    ]


def _table_1(measured: Measured) -> Piece:
    rows: dict[str, dict[tuple[str, str], PaperFigure]] = {}
    for name, one in measured.found["metrics"].items():
        rows[name] = {}
        values: Mapping[str, Mapping[str, float | None]] = {"nll": one["nll"], "auc": one["auc"]}
        ends: Mapping[str, Mapping[str, Any]] = {"nll": one["intervals"]["nll"], "auc": one["intervals"]["auc"]}
        for metric in METRICS:
            for part in PARTS:
                low, high = ends[metric][part] or (None, None)
                rows[name][metric, part] = PaperFigure(one["n"], values[metric][part], low, high)
    rows |= {name: {} for name in measured.failures}
    reasons = "".join(f" Not measured: {reason}." for reason in measured.failures.values())
    note = f"{measured.found['n']} test rows; intervals are over pairs. {ON_TEST_FILE}{reasons}"
    return table_1(rows, note)


def _groups(measured: Measured, name: str) -> Piece:
    reference = measured.found["reference"]
    scores = measured.probabilities[reference]
    tasks = [(pair.evidence_task, pair.target_task) for pair in measured.test.pairs]
    labels = measured.test.labels
    note = f"{reference} on the {len(labels)} test rows. {ON_TEST_FILE}"
    if name == "table3":
        groupings = [[(first, "") for first, _second in tasks], [("", second) for _first, second in tasks]]
        title = "Table 3: AUC by the task generalized from, and to"
        return group_table(name, title, labels, scores, groupings, note=note)
    return group_table(name, "Table 4: AUC by the pair of tasks", labels, scores, [tasks], note=note)


def _figure_2(sample: Sample | None) -> Piece:
    if sample is None:
        raise HunchError("no pairs with two predictions are given: --sample FILE")

    def texts(place: int) -> tuple[str, str]:
        return plain_text(sample.evidence[place][1]), plain_text(sample.target[place][1])

    pairs = {1: ScoredPairs(sample.change_if_correct, texts), 0: ScoredPairs(sample.change_if_incorrect, texts)}
    note = (
        f"{len(sample)} pairs of {sample.file}, each under both outcomes, with the predictions as given; the paper has "
        "10,000. In brackets: 95 % intervals of the mean over such pairs."
    )
    return figure_2(pairs, note)


def _figure_3_right(measured: Measured) -> Piece:
    reference = measured.found["reference"]
    line = Ranked(f"{reference} on the test file", measured.test.labels, measured.probabilities[reference])
    return figure_3_right([line], f"{ON_TEST_FILE} Lines by stage need a study: hunch paper SLUG.")


def _model_tables(
    sample: Sample | None,
    answers: str | None,
    questions: Iterable[tuple[str, str, str]] | None,
    *,
    samples: int,
    seed: int,
) -> dict[str, Piece]:
    titles = {"table2": "Table 2", "table5": "Table 5"}
    missing = [
        words
        for words, there in (
            ("pairs with two predictions (--sample FILE)", sample is not None),
            ("answers of language models (--answers FILE)", answers is not None),
            ("the questions that they name (--questions FILE or --bank NAME)", questions is not None),
        )
        if not there
    ]
    if sample is None or answers is None or questions is None:
        said = f"it needs {' and '.join(missing)}"
        return {name: tried(name, title, lambda: sentence(said)) for name, title in titles.items()}
    try:
        matched = match(sample, questions, read_answers(answers))
        comparison = AlignmentComparison(
            matched.trials,
            change_if_correct=sample.change_if_correct,
            change_if_incorrect=sample.change_if_incorrect,
            averages=PAPER_AVERAGES,
            samples=samples,
            rng=np.random.default_rng(seed),
        )
        made = dict(model_tables([comparison.score(name, PAPER_ALPHAS) for name in comparison.trials]))
    except (HunchError, ValueError) as exc:
        said = str(exc)
        return {name: tried(name, title, lambda: sentence(said)) for name, title in titles.items()}
    return {name: tried(name, title, partial(made.__getitem__, name)) for name, title in titles.items()}
