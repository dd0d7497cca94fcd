"""The paper's tables and figures from files: training and test rows, scored pairs, answers of language models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.comparison import PredictorComparison
from predictors.datasets import PairTable, numbered, plain_text
from survey.exceptions import HunchError
from survey.figures import Figure

from ..alignment.files import Matched, Sample, match, read_answers
from ..alignment.scores import PAPER_AVERAGES, AlignmentComparison
from .figures_4_6_7 import MisleadingPair, Rises, SeenRight, figure_4, figure_6
from .pieces import (
    METRICS,
    PAPER_ALPHAS,
    PARTS,
    Piece,
    Ranked,
    ScoredPairs,
    as_figure,
    figure_2,
    figure_3_right,
    group_table,
    model_tables,
    sentence,
    table_1,
    tried,
)

NOT_IN_FILES = "files of labels hold no beliefs, which a study has: hunch paper SLUG"
NO_PEOPLE = "it needs beliefs and answers of people, which no file has: hunch paper SLUG, with the people's study"
PREDICTED = Rises(
    least=((-1.0, "any"), (0.25, "0.25 or more"), (0.5, "0.5 or more"), (0.75, "0.75 or more")),
    unit="predicted probability that the correct answer changes the belief",
)
ON_TEST_FILE = "The rows are those of the test file, which may hold extremes of the predictions."


@dataclass(frozen=True, eq=False)
class Measured:
    """Predictors on the test rows: what was found, their probabilities by name (n,), and why others have none.
    `dropped` training rows were left out since their pair is in the test rows."""

    test: PairTable
    found: PredictorComparison
    probabilities: Mapping[str, NDArray[np.float64]]
    failures: Mapping[str, str]
    dropped: int = 0


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
    needed = _needed(sample, answers, questions)
    matched: Matched | None = None
    if not needed and sample is not None and answers is not None and questions is not None:
        try:
            matched = match(sample, questions, read_answers(answers))
        except HunchError as exc:
            needed = exc.message.replace("\n", "; ")
    tables = _model_tables(sample, matched, needed, samples=samples, seed=seed)

    def need() -> Measured:
        if measured is None:
            raise HunchError(why_not_measured)
        return measured

    def noted(piece: Piece) -> Piece:
        """A piece about models' answers, with what of the files could not be used."""
        if piece.table is None or matched is None:
            return piece
        note = " ".join([piece.table.note, *_sentences(matched.notes)]).strip()
        return replace(piece, table=replace(piece.table, note=note))

    return [
        tried("table1", "Table 1", lambda: _table_1(need())),
        noted(tables["table2"]),
        tried("table3", "Table 3", lambda: _groups(need(), "table3")),
        tried("table4", "Table 4", lambda: _groups(need(), "table4")),
        noted(tables["table5"]),
        tried("figure2", "Figure 2", lambda: _figure_2(sample)),
        tried("figure3_left", "Figure 3, left", lambda: sentence(NOT_IN_FILES)),
        tried("figure3_right", "Figure 3, right", lambda: _figure_3_right(need())),
        noted(tried("figure4", "Figure 4", lambda: _figure_4(sample, matched, needed))),
        tried("figure5", "Figure 5", lambda: sentence(NOT_IN_FILES)),
        tried("figure6", "Figure 6", lambda: _figure_6(sample)),
        tried("figure7", "Figure 7", lambda: sentence(NO_PEOPLE)),
    ]


def _table_1(measured: Measured) -> Piece:
    rows: dict[str, dict[tuple[str, str], Figure]] = {}
    for name, figures in measured.found["metrics"].items():
        rows[name] = {}
        values: Mapping[str, Mapping[str, float | None]] = {"nll": figures["nll"], "auc": figures["auc"]}
        ends: Mapping[str, Mapping[str, Any]] = {"nll": figures["intervals"]["nll"], "auc": figures["intervals"]["auc"]}
        for metric in METRICS:
            for part in PARTS:
                rows[name][metric, part] = as_figure(values[metric][part], ends[metric][part], figures["n"])
    rows |= {name: {} for name in measured.failures}
    reasons = "".join(f" Not measured: {reason}." for reason in measured.failures.values())
    note = f"{measured.found['n']} test rows; intervals are over pairs. {ON_TEST_FILE}{_repeats(measured)}{reasons}"
    if measured.dropped:
        note += f" {measured.dropped} training rows are left out: each is a test pair, its reverse or other outcome."
    return table_1(rows, note)


def _groups(measured: Measured, name: str) -> Piece:
    reference = measured.found["reference"]
    scores = measured.probabilities[reference]
    tasks = [(pair.evidence_task, pair.target_task) for pair in measured.test.pairs]
    labels = measured.test.labels
    note = f"{reference} on the {len(labels)} test rows. {ON_TEST_FILE}{_repeats(measured)}"
    weights, cluster = measured.test.weights, measured.test.pair_ids
    if name == "table3":
        groupings = [[(first, "") for first, _second in tasks], [("", second) for _first, second in tasks]]
        title = "Table 3: AUC by the task generalized from, and to"
        return group_table(name, title, labels, scores, groupings, note=note, weights=weights, cluster=cluster)
    title = "Table 4: AUC by the pair of tasks"
    return group_table(name, title, labels, scores, [tasks], note=note, weights=weights, cluster=cluster)


def _scored(sample: Sample | None) -> tuple[Sample, dict[int, ScoredPairs]]:
    if sample is None:
        raise HunchError("no pairs with two predictions are given: --sample FILE")
    scored = sample

    def texts(place: int) -> tuple[str, str]:
        return plain_text(scored.evidence[place][1]), plain_text(scored.target[place][1])

    return scored, {
        1: ScoredPairs(scored.change_if_correct, texts),
        0: ScoredPairs(scored.change_if_incorrect, texts),
    }


def _figure_2(sample: Sample | None) -> Piece:
    scored, pairs = _scored(sample)
    note = (
        f"{len(scored)} pairs of {Path(scored.file).name}, each under both outcomes, with the predictions as "
        "given; the "
        "paper has 10,000. Intervals are of the mean over such pairs."
    )
    note = " ".join([note, *_sentences(scored.notes)])
    return figure_2(pairs, note, same_pairs=True)


def _figure_6(sample: Sample | None) -> Piece:
    scored, pairs = _scored(sample)
    note = (
        f"{len(scored)} pairs of {Path(scored.file).name}, each under both outcomes, with the predictions as "
        "given; the "
        "paper has 10,000. The prediction of one pair has no interval over pairs."
    )
    note = " ".join([note, *_sentences(scored.notes)])
    return figure_6(pairs, note)


def _figure_4(sample: Sample | None, matched: Matched | None, needed: str) -> Piece:
    """By predictions in place of what people said."""
    if sample is None or matched is None:
        raise HunchError(needed)
    models, pairs = [], []
    for trial in matched.trials:
        right = np.flatnonzero(trial.answered & (trial.outcome > 0))
        models.append(
            SeenRight(
                llm=trial.name,
                rise=sample.change_if_correct[right],
                wrong=1 - trial.correct[right],
                weight=trial.outcome[right],
                respondent=right,
            )
        )
        pairs += [
            MisleadingPair(
                llm=trial.name,
                texts=(plain_text(sample.evidence[row][1]), plain_text(sample.target[row][1])),
                tasks=(sample.evidence[row][0], sample.target[row][0]),
                n=1,
                rise=Figure(sample.change_if_correct[row]),
            )
            for row in right[(trial.correct[right] < 0.5) & (trial.outcome[right] > 0.5)].tolist()
        ]
    pairs.sort(key=lambda item: (-(item.rise.value or 0.0), item.llm))
    note = (
        f"Pairs of {Path(sample.file).name} whose evidence the model answered correctly: how often it is wrong on the "
        "target, over all of them and over those where a change of belief is predicted. Files hold no beliefs, so that "
        "predicted changes stand in place of stated ones. Intervals are over pairs."
    )
    return figure_4(models, pairs, PREDICTED, note)


def _figure_3_right(measured: Measured) -> Piece:
    reference = measured.found["reference"]
    test = measured.test
    cluster = None
    if test.respondents is not None:
        cluster = numbered(test.respondents)
    elif _repeats(measured):
        cluster = test.pair_ids
    line = Ranked(
        f"{reference} on the test file", test.labels, measured.probabilities[reference], test.weights, cluster
    )
    return figure_3_right([line], f"{ON_TEST_FILE}{_repeats(measured)} Lines by stage need a study: hunch paper SLUG.")


def _repeats(measured: Measured) -> str:
    """How many test rows show a pair and outcome that a row before them has: answers of several people, or copies."""
    repeated = len(measured.test) - len(np.unique(measured.test.pair_ids))
    if not repeated:
        return ""
    return f" {repeated} test rows repeat the pair and outcome of another one, and are resampled together with it."


def _sentences(notes: Iterable[str]) -> list[str]:
    return [f"{note}." for note in notes]


def _needed(sample: Sample | None, answers: str | None, questions: Iterable[tuple[str, str, str]] | None) -> str:
    """Which files are missing for what is about language models; empty if none is."""
    missing = [
        words
        for words, there in (
            ("pairs with two predictions (--sample FILE)", sample is not None),
            ("answers of language models (--answers FILE)", answers is not None),
            ("the questions that they name (--questions FILE or --bank NAME)", questions is not None),
        )
        if not there
    ]
    return f"it needs {' and '.join(missing)}" if missing else ""


def _model_tables(
    sample: Sample | None, matched: Matched | None, needed: str, *, samples: int, seed: int
) -> dict[str, Piece]:
    titles = {"table2": "Table 2", "table5": "Table 5"}
    if sample is None or matched is None:
        return {name: tried(name, title, lambda: sentence(needed)) for name, title in titles.items()}
    try:
        comparison = AlignmentComparison(
            matched.trials,
            change_if_correct=sample.change_if_correct,
            change_if_incorrect=sample.change_if_incorrect,
            averages=PAPER_AVERAGES,
            samples=samples,
            rng=np.random.default_rng(seed),
        )
        made = dict(model_tables([comparison.score(name, PAPER_ALPHAS) for name in comparison.trials]))
    except ValueError as exc:
        said = str(exc)
        return {name: tried(name, title, lambda: sentence(said)) for name, title in titles.items()}
    return {name: tried(name, title, partial(made.__getitem__, name)) for name, title in titles.items()}
