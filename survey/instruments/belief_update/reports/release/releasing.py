"""A study in the columns of the paper's released data: what predictors learn from, and the labels they are judged by.

Nothing of these rows is about a person: questions, tasks, the outcome that was shown, and the label.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from predictors.hardness import MODELS, PEOPLE, checked_columns
from survey.contracts import instruments
from survey.contracts.tables import Column
from survey.exceptions import HunchError, StateRefused
from survey.figures.csv_lines import csv_lines
from survey.models import Assignment, Stage, Study
from survey.services.answers.counting import ESTIMATED, frozen, frozen_stages, training_examples
from survey.services.answers.majorities import IN_WORDS, ItemMajority, facts_of, majorities_of, ties_of

from ...export import PAPER_COLUMNS, paper_row
from ...hardness import columns_of
from ...labels import beliefs_of

TRAIN, TEST = "train.csv", "test.csv"
BESIDE = {
    PEOPLE: Column(
        "prior",
        "percentage points",
        "The chance of a right answer to q2 that was stated before the evidence, 0 to 100. Empty in test.csv: "
        "predictors may learn from the priors of training rows alone.",
    ),
    MODELS: Column(
        "models_right",
        "number",
        "The share of language models that answer q2 right, 0 to 1; empty where none has answered it.",
    ),
}
Row = tuple[Any, ...]


@dataclass(frozen=True)
class StageCounts:
    """What a stage gives to the release. `frozen` counts its frozen answers to sampled and holdout slots."""

    stage: int
    pilot: bool
    state: str
    design: str
    frozen: int
    train: int
    test: int


@dataclass(frozen=True, eq=False)
class TestStage:
    """A frozen test stage with its items, and what the manifest would say of them now."""

    __test__ = False  # its name would make pytest collect it

    stage: Stage
    majorities: Sequence[ItemMajority]
    facts: dict[str, Any]

    @property
    def labelled(self) -> list[ItemMajority]:
        return [majority for majority in self.majorities if majority.label is not None]


@dataclass(frozen=True, eq=False)
class Release:
    """The rows of both files, and where they come from. `without_test` says why there are no test rows; empty if there
    are."""

    study: Study
    train: Sequence[Row]
    test: Sequence[Row]
    tests: Sequence[TestStage]
    stages: Sequence[StageCounts]
    simulated: int
    without_test: str
    columns: Sequence[Column] = PAPER_COLUMNS

    @property
    def files(self) -> dict[str, bytes]:
        """The files by name, as they are written."""
        files = {TRAIN: as_csv(self.train, self.columns)}
        return {**files, TEST: as_csv(self.test, self.columns)} if self.test else files


def obstacle(study: Study) -> str:
    """Why nothing can be released, as far as the study's own row says it: lists of reports ask nothing else."""
    return "" if study.locked_at else f"{study.slug}: no main stage has been opened yet"


def checked_names(text: str) -> tuple[str, ...]:
    """The names of columns next to the paper's, of a text that joins them with + or commas; none where it is empty.

    Raises:
        HunchError: one is not known, or is there twice.
    """
    try:
        return checked_columns(text) if text else ()
    except ValueError as exc:
        raise HunchError(f"columns: {exc}") from exc


def release_of(study: Study, beside: Sequence[str] = ()) -> Release:
    """The study's rows: every frozen answer that may train, and every labelled item of the frozen test stages.

    Answers about the pair of a holdout or of a test stage, in whichever order, are not among the training rows.

    beside: columns of how hard targets are, after the paper's (`predictors.hardness`). No prior stands in a test row:
    predictors may learn from the priors of training rows alone.

    Raises:
        StateRefused: no stage is frozen whose answers train, or none of its answers can.
    """
    stages = frozen_stages(study)
    if not any(stage.config.teaches for stage in stages):
        raise StateRefused(
            f"{study.slug}: no stage whose answers train is frozen yet; close one and wait until it is frozen"
        )
    answers = _learnable(training_examples(stages[-1]), study)
    if not answers:
        raise StateRefused(f"{study.slug}: none of the frozen answers may train, so there is nothing to release")
    threshold = _threshold(study)
    tests = [_test_stage(stage) for stage in stages if stage.config.design.kind == "test_set"]
    labelled = [majority for test in tests for majority in test.labelled]
    return Release(
        study=study,
        columns=(*PAPER_COLUMNS, *(BESIDE[name] for name in beside)),
        train=_with_columns(
            [paper_row(answer, beliefs_of(answer).changed(threshold)) for answer in answers],
            columns_of(answers, beside),
            beside,
        ),
        test=_with_columns(
            [paper_row(majority.answer, bool(majority.label)) for majority in labelled],
            columns_of([majority.answer for majority in labelled], [name for name in beside if name != PEOPLE]),
            beside,
        ),
        tests=tests,
        stages=list(_counts(study, answers, tests)),
        simulated=frozen(stages, roles=ESTIMATED).filter(sitting__respondent__is_simulated=True).count(),
        without_test=_without_test(study, tests),
    )


def as_csv(rows: Sequence[Row], columns: Sequence[Column] = PAPER_COLUMNS) -> bytes:
    """The rows in the paper's columns, or in these. Texts equal the bank's byte for byte."""
    return "".join(csv_lines(columns, rows)).encode()


def readme(release: Release) -> str:
    """What the files hold, in counts and plain words."""
    study = release.study
    threshold = _threshold(study)
    lines = [
        f"# {study.title}",
        "",
        f"The study `{study.slug}` in the columns of the paper's released data. The bank is {study.bank} (sha256 "
        f"{study.bank.sha256}); the study file has the sha256 {study.source_sha256}.",
        "",
        "| file | rows | changed | after a correct answer | sha256 |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, rows in ((TRAIN, release.train), (TEST, release.test)):
        if rows:
            changed, correct = sum(row[5] for row in rows), sum(row[4] for row in rows)
            sha256 = hashlib.sha256(release.files[name]).hexdigest()
            lines.append(f"| {name} | {len(rows)} | {changed} | {correct} | {sha256} |")
    lines += [
        "",
        f"- `{TRAIN}`: a row for each frozen answer that predictors may learn from. `belief_change` is 1 where the two "
        f"numbers differ by more than {threshold} points.",
    ]
    if release.test:
        lines.append(
            f"- `{TEST}`: a row for each item of a test stage. `belief_change` is the label of more than half of its "
            "answers. A test stage holds extremes of the predictions: no figure on this file is one of all pairs."
        )
    else:
        lines.append(f"- There is no `{TEST}`: {release.without_test}.")
    for test in release.tests:
        answered = [majority.answered for majority in test.majorities]
        each = f", {min(answered)} to {max(answered)} answers each" if answered else ""
        lines.append(
            f"- Stage {test.stage.index}: {test.facts['items']} items{each}, {test.facts['label_1']} with the label 1, "
            f"{test.facts['label_0']} with the label 0, {test.facts['tied']} ties ({IN_WORDS[ties_of(test.stage)]})."
        )
    lines += [
        f"- {sum(stage.frozen for stage in release.stages)} frozen answers count; {len(release.train)} of them are in "
        f"`{TRAIN}`. The others are those of holdouts and test stages, and answers about the same pairs as those, in "
        "whichever order. Answers of pilots, excluded and withdrawn ones are in no file and not counted here.",
    ]
    if release.simulated:
        lines.append(f"- {release.simulated} of the frozen answers were given by simulated respondents.")
    lines += [
        "",
        "| stage | design | state | frozen answers | in train.csv | items in test.csv |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {stage.stage}{' (pilot)' if stage.pilot else ''} | {stage.design} | {stage.state} | {stage.frozen} | "
            f"{stage.train} | {stage.test} |"
            for stage in release.stages
        ),
        "",
        "| column | kind | meaning |",
        "| --- | --- | --- |",
        *(f"| {column.name} | {column.kind} | {column.description} |" for column in release.columns),
        "",
        'The files are UTF-8. Read them with missing-value detection off: a text may be "nan". No row says who '
        "answered.",
    ]
    return "\n".join(lines) + "\n"


def _with_columns(rows: Sequence[Row], known: Mapping[str, np.ndarray], beside: Sequence[str]) -> Sequence[Row]:
    """The rows with the cells of these columns after their own, empty where nothing is known."""
    if not beside:
        return rows
    cells = [
        [None if math.isnan(value) else _in_file(name, value) for value in known[name].tolist()]
        if name in known
        else [None] * len(rows)
        for name in beside
    ]
    return [(*row, *more) for row, more in zip(rows, zip(*cells, strict=True), strict=True)]


def _in_file(name: str, value: float) -> float:
    return round(100 * value) if name == PEOPLE else round(value, 6)


def _threshold(study: Study) -> int:
    threshold: int = instruments.of_study(study).options.threshold
    return threshold


def _learnable(answers: Sequence[Assignment], study: Study) -> list[Assignment]:
    fit = instruments.learning_of(instruments.of_study(study)).learnable(answers)
    return [answer for answer, is_fit in zip(answers, fit.tolist(), strict=True) if is_fit]


def _test_stage(stage: Stage) -> TestStage:
    majorities = majorities_of(stage)
    return TestStage(stage, majorities, facts_of(majorities, stage))


def _without_test(study: Study, tests: Sequence[TestStage]) -> str:
    if any(test.labelled for test in tests):
        return ""
    if tests:
        return f"no item of test stage {', '.join(str(test.stage.index) for test in tests)} has a majority label"
    planned = [stage for stage in study.main_stages() if stage.config.design.kind == "test_set"]
    if planned:
        return f"test stage {planned[0].index} is not frozen yet"
    return 'the study has no test stage (a stage with the design "test_set")'


def _counts(study: Study, answers: Sequence[Assignment], tests: Sequence[TestStage]) -> Iterator[StageCounts]:
    of_train: dict[int, int] = {}
    for answer in answers:
        of_train[answer.slot.stage_id] = of_train.get(answer.slot.stage_id, 0) + 1
    of_test = {test.stage.pk: len(test.labelled) for test in tests}
    for stage in study.stages.order_by("index"):
        stage.study = study
        yield StageCounts(
            stage=stage.index,
            pilot=stage.is_pilot,
            state=stage.state,
            design=stage.config.design.kind,
            frozen=frozen([stage], roles=ESTIMATED).count(),
            train=of_train.get(stage.pk, 0),
            test=of_test.get(stage.pk, 0),
        )
