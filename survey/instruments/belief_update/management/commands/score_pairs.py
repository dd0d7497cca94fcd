"""`manage.py score_pairs`: uniform pairs of a bank, each scored under both outcomes, without a study that draws them.

The file is one that `paper --sample` and `alignment --sample` read.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit.errors import DesignError
from predictors import registry, training
from predictors.datasets import fit_on, join, plain_text
from predictors.errors import PredictorError
from predictors.pairs import Pair, Progress
from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.figures.csv_lines import csv_line
from survey.services.banks import importing as question_banks
from survey.services.stages.runs import ready_run
from survey.services.stages.training import folders_of
from survey.services.studies import lookup

from ...reports.alignment.both_outcomes import MAX_PAIRS, PAIRS, uniform_pairs
from ...reports.alignment.files import SampleRow, read_pairs, read_questions
from ...reports.rows import belief_update_of
from .evaluate_predictors import ProgressBar, chosen_rows, processors, whole_number

Scorer = Callable[[Sequence[Pair], Progress], NDArray[Any]]


class Command(HunchCommand):
    help = (
        "Draw uniform pairs of questions, score each under both outcomes by a study's predictor (--study) or by one "
        "trained on a file (--train), and write the file that `paper --sample` and `alignment --sample` read."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        questions = parser.add_mutually_exclusive_group(required=True)
        questions.add_argument("--bank", metavar="NAME", help="the questions of a bank (NAME or NAME@VERSION)")
        questions.add_argument("--questions", metavar="FILE", help="id, source, question: the questions of a file")
        predictor = parser.add_mutually_exclusive_group(required=True)
        predictor.add_argument("--study", metavar="SLUG", help="the predictor that this study trained last")
        predictor.add_argument(
            "--train", action="append", metavar="FILE", help="train one on these rows, as for evaluate_predictors"
        )
        parser.add_argument("--stage", type=whole_number(1), metavar="N", help="with --study: trained after stage N")
        parser.add_argument(
            "--predictor",
            metavar="NAME",
            help="with --train: which one, as for evaluate_predictors (embedding_xgboost)",
        )
        parser.add_argument(
            "--pairs", type=whole_number(1), default=PAIRS, metavar="N", help=f"how many pairs ({PAIRS}, the paper's)"
        )
        parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the CSV file to write")

    def handle(
        self,
        *args: Any,
        bank: str | None,
        questions: str | None,
        study: str | None,
        train: list[str] | None,
        stage: int | None,
        predictor: str | None,
        pairs: int,
        seed: int,
        out: Path,
        **options: Any,
    ) -> None:
        if stage is not None and study is None:
            raise HunchError("--stage: is for --study; a predictor trained on files has no stage")
        if predictor is not None and train is None:
            raise HunchError("--predictor: is for --train; a study has its own predictor")
        if pairs > MAX_PAIRS:
            raise HunchError(f"--pairs: {pairs} is over {MAX_PAIRS}; write a lower number")
        if not out.parent.is_dir():
            raise HunchError(f"--out: the folder {out.parent} does not exist; make it first")
        if bank is not None or study is not None:
            self.require_database()
        texts = self._texts(bank, questions)
        try:
            drawn = uniform_pairs(len(texts), pairs, np.random.default_rng(seed))
        except DesignError as exc:
            raise HunchError(f"{bank or questions}: {exc}") from exc
        training.limit_threads(processors())
        name, scorer = _of_study(study, stage) if study is not None else _trained_on(train or [], predictor, seed)
        plain = [plain_text(text) for _task, text in texts]
        ends = list(zip(drawn.evidence.tolist(), drawn.target.tolist(), strict=True))
        rows = [
            Pair(plain[evidence], plain[target], texts[evidence][0], texts[target][0], outcome)
            for outcome in (1, 0)
            for evidence, target in ends
        ]
        with ProgressBar(name) as bar:
            try:
                scores = np.asarray(scorer(rows, bar), dtype=np.float64)
            except PredictorError as exc:
                raise HunchError(f"{name}: {exc}") from exc
        with out.open("w", encoding="utf-8", newline="") as file:
            file.write(csv_line(SampleRow.columns()))
            for (evidence, target), right, wrong in zip(ends, *np.split(scores, 2), strict=True):
                (task1, text1), (task2, text2) = texts[evidence], texts[target]
                file.write(csv_line([text1, text2, task1, task2, float(right), float(wrong)]))
        means = " and ".join(f"{part.mean():.3f}" for part in np.split(scores, 2))
        self.stdout.write(
            f"wrote {len(ends)} uniform pairs, scored by {name}, to {out}; the mean predicted change is {means}, after "
            "a right and after a wrong answer"
        )

    def _texts(self, bank: str | None, path: str | None) -> list[tuple[str, str]]:
        """Task and text of each question."""
        if path is not None:
            return [(task, text) for _id, task, text in read_questions(path)]
        rows = question_banks.find_bank(str(bank)).questions.order_by("position")
        return list(rows.values_list("task__name", "text"))


def _of_study(slug: str, index: int | None) -> tuple[str, Scorer]:
    study = lookup.find_study(slug)
    if belief_update_of(study).pairing is None:
        raise HunchError(f"{slug}: its items have several evidence questions; its predictor is not one of pairs")
    stages = study.main_stages().order_by("-index")
    wanted = stages if index is None else stages.filter(index=index)
    run = next((run for run in map(ready_run, wanted) if run is not None and run.members), None)
    if run is None:
        after = "yet" if index is None else f"after stage {index}"
        raise HunchError(f"{slug}: no predictor has been trained {after}")
    if names := training.columns_of(run.name, run.params):
        raise HunchError(f"{slug}: {run} reads {', '.join(names)} next to the texts, which pairs of a bank do not have")
    folders = folders_of(run)
    return str(run), lambda rows, progress: training.score(folders, rows, progress)


def _trained_on(paths: Sequence[str], name: str | None, seed: int) -> tuple[str, Scorer]:
    try:
        rows = chosen_rows(name or "embedding_xgboost", [], seeds=None, paper=False)
        if len(rows) != 1 or rows[0].columns:
            raise PredictorError(f"--predictor: {name}: name one predictor of texts alone.")
        table = join([read_pairs(path) for path in paths])
        table.require_both_classes()
        with ProgressBar(rows[0].name) as bar:
            estimator: Any = fit_on(registry.create(rows[0].predictor, dict(rows[0].params), seed), table, bar)
    except PredictorError as exc:
        raise HunchError(str(exc)) from exc
    return rows[0].name, lambda pairs, progress: estimator.predict_proba(pairs, progress)[:, 1]
