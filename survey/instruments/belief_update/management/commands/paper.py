"""`manage.py paper SLUG --out DIR`, or from files: the paper's tables 1 to 5 and its figures 2 to 7.

Of a study it is the same as the report `paper`.
"""

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from predictors import comparison
from predictors.comparison import Contender, Predictions
from predictors.datasets import join
from predictors.errors import PredictorError
from predictors.training import limit_threads, processors
from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.banks import importing as question_banks
from survey.services.studies import lookup, test_copies

from ...reports.alignment.files import read_pairs, read_questions, read_sample
from ...reports.calibration.calibrating import people_studies
from ...reports.paper.files import Measured, pieces_from
from ...reports.paper.pieces import report_result
from .evaluate_predictors import ProgressBar, chosen_rows, whole_number


class Command(ReportCommand):
    help = (
        "The paper's tables 1 to 5 and figures 2 to 7, of a study (SLUG) or from files, each with n, interval and "
        "the paper's own number; what cannot be made says why."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", nargs="?", metavar="SLUG", help="a study; without it files are read")
        parser.add_argument(
            "--people-study",
            metavar="SLUG",
            help="with SLUG: the study in which people answer, for figure 7 (the only one of the bank, if it has one)",
        )
        parser.add_argument("--train", action="append", default=[], metavar="FILE", help="as for evaluate_predictors")
        parser.add_argument("--test", metavar="FILE", help="labels to test on, with the same columns")
        parser.add_argument("--sample", metavar="FILE", help="uniform pairs with a predictor's two predictions")
        parser.add_argument("--answers", metavar="FILE", help="llm, question_id, correct")
        source = parser.add_mutually_exclusive_group()
        source.add_argument("--questions", metavar="FILE", help="id, source, question: whose ids the answers use")
        source.add_argument("--bank", metavar="NAME", help="the same, from an imported bank (NAME or NAME@VERSION)")
        parser.add_argument("--predictors", metavar="A,B,...", help="as for evaluate_predictors")
        parser.add_argument("--paper", action="store_true", help="the paper's settings, as for evaluate_predictors")
        parser.add_argument(
            "--samples", type=whole_number(100), default=1000, metavar="N", help="resamples, 100 or more (1000)"
        )
        parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S")
        self.add_output_arguments(parser, required=True, out="the folder to write to")

    def handle(self, *args: Any, slug: str | None, out: Path, **options: Any) -> None:
        files = ("train", "test", "sample", "answers", "questions", "bank", "predictors")
        flags = [f"--{name}" for name in files if options[name]]
        if slug is not None:
            if flags:
                raise HunchError(f"{flags[0]}: is for files: a study has its own; leave it out, or leave SLUG out")
            self.require_database()
            study = lookup.find_study(slug)
            self.show(study, "paper", {"people_study": _people_study(study, options["people_study"])}, out=out)
            return
        if options["people_study"] is not None:
            raise HunchError("--people-study: is for a study; files have no answers of people")
        if flags in ([], ["--predictors"]):
            raise HunchError("name a study, or files: --train and --test, --sample and --answers")
        if bool(options["train"]) != (options["test"] is not None):
            raise HunchError("--train, --test: table 1 needs both; give both, or none")
        limit_threads(processors())
        sample = read_sample(options["sample"]) if options["sample"] else None
        measured, why = self._measured(**options)
        pieces = pieces_from(
            measured,
            why,
            sample,
            options["answers"],
            self._questions(options["questions"], options["bank"]),
            samples=options["samples"],
            seed=options["seed"],
        )
        self.show_result(report_result("The paper's tables and figures, from files", pieces), out=out)

    def _questions(self, path: str | None, bank: str | None) -> Iterable[tuple[str, str, str]] | None:
        if path is not None:
            return read_questions(path)
        if bank is None:
            return None
        self.require_database()
        rows = question_banks.find_bank(bank).questions.order_by("position")
        return rows.values_list("external_id", "task__name", "text").iterator(chunk_size=2000)

    def _measured(
        self,
        *,
        train: list[str],
        test: str | None,
        predictors: str | None,
        paper: bool,
        samples: int,
        seed: int,
        **options: Any,
    ) -> tuple[Measured | None, str]:
        """The predictors on the test file, or why they could not be measured."""
        if test is None:
            return None, "no training and test rows are given: --train FILE and --test FILE"
        try:
            rows = chosen_rows(predictors, [], seeds=None, paper=paper)
            if beside := [row.name for row in rows if row.columns]:
                raise PredictorError(
                    f"--predictors: {', '.join(beside)}: the paper's tables are of texts alone; leave the columns "
                    "out, and use evaluate_predictors --columns for them."
                )
            table, tested = join([read_pairs(path) for path in train]), read_pairs(test)
        except PredictorError as exc:
            raise HunchError(str(exc)) from exc
        try:
            remaining = comparison.without_test_pairs(table, tested)
            if not len(remaining):
                raise PredictorError(f"{table.source}: no row is left to train on; give rows that are not test pairs.")
            remaining.require_both_classes()
        except PredictorError as exc:
            return None, str(exc)
        made: list[Predictions] = []
        failures: dict[str, str] = {}
        for row in rows:
            with ProgressBar(row.name) as bar:
                try:
                    made.append(_one(row, seed, remaining, tested, bar))
                except (PredictorError, ImportError) as exc:
                    failures[row.name] = f"{row.name}: {exc}".rstrip(".")
        if not made:
            return None, "; ".join(failures.values())
        compared = comparison.compare(tested, made, train=remaining, seed=seed, samples=samples)
        return Measured(
            tested, compared, {run.name: run.probabilities for run in made}, failures, len(table) - len(remaining)
        ), ""


def _people_study(study: Study, named: str | None) -> list[str]:
    """The named study, which must exist; else the only one in which people answer questions of the bank."""
    if named is not None:
        people = lookup.find_study(named)
        test_copies.refuse_copy(people, "gives no figure next to another study's")
        return [people.slug]
    there = people_studies(study)
    return [there[0].slug] if len(there) == 1 else []


def _one(row: Contender, seed: int, train: Any, test: Any, progress: Any) -> Predictions:
    made = comparison.train_and_predict(row.predictor, row.params, seed=seed, train=train, test=test, progress=progress)
    return Predictions(row.name, made.probabilities, made.seconds)
