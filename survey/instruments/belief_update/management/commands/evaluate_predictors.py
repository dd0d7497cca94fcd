"""`manage.py evaluate_predictors --train FILE --test FILE`: compare predictors of belief change, as in table 1."""

import errno
import json
import os
import traceback
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from predictors import comparison
from predictors.comparison import Predictions
from predictors.datasets import PairTable, join, read
from predictors.errors import PredictorError
from predictors.pairs import Progress
from predictors.registry import settings_of
from predictors.training import limit_threads
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.exceptions import HunchError
from survey.instruments.belief_update import predictor_report
from survey.services.results import reports

Params = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Measurement:
    """The rows to measure on, a function that makes a predictor's predictions for them, and the training rows (None if
    each fold has its own)."""

    rows: PairTable
    run: Callable[[str, Progress], Predictions]
    train: PairTable | None


class PredictorsFailed(HunchError):
    """Some predictors could not be measured; the others were."""

    code = "predictors_failed"
    status = 500


def whole_number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise ArgumentTypeError(f"{text!r} is not a whole number of {least} or more")
        return value

    return parse


def setting(text: str) -> tuple[str, str, Any]:
    """PREDICTOR.SETTING=VALUE; the value is read as JSON where it is JSON, else as text."""
    path, equals, value = text.partition("=")
    name, dot, field = path.partition(".")
    if not (equals and dot and name and field):
        raise ArgumentTypeError(f"{text!r} is not PREDICTOR.SETTING=VALUE, for instance bert.epochs=3")
    try:
        return name, field, json.loads(value)
    except json.JSONDecodeError:
        return name, field, value


class Command(HunchCommand):
    help = "Train predictors on files and measure them side by side on another file, as in table 1 of the paper."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--train",
            action="append",
            required=True,
            metavar="FILE",
            help="CSV: q1, q2, source1, source2 and previous_correct, belief_change (optional: weight, responses, "
            "respondent), or pred_if_correct, pred_if_incorrect; may be given several times",
        )
        parser.add_argument("--test", metavar="FILE", help="CSV with the same columns; without it see --folds")
        parser.add_argument(
            "--folds",
            type=whole_number(2),
            default=5,
            metavar="K",
            help="without --test: cross-validate the first training file, the others help to train (5)",
        )
        parser.add_argument(
            "--question-disjoint", action="store_true", help="with --folds: also keep every question on one side"
        )
        parser.add_argument("--predictors", metavar="A,B,...", help="default: all that need nothing but this machine")
        parser.add_argument("--out", type=Path, metavar="DIR", help="write tables, predictions and figures")
        parser.add_argument(
            "--seeds", type=whole_number(1), metavar="N", help="networks in bert (2 on a CPU, 5 on a GPU)"
        )
        parser.add_argument("--paper", action="store_true", help="5 networks in bert, as in the paper, on a CPU too")
        parser.add_argument(
            "--set",
            dest="overrides",
            action="append",
            type=setting,
            default=[],
            metavar="PREDICTOR.SETTING=VALUE",
            help="for instance bert.checkpoint=google-bert/bert-base-uncased; may be given several times",
        )
        parser.add_argument(
            "--samples", type=whole_number(1), default=1000, metavar="N", help="bootstrap resamples (1000)"
        )
        parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S")

    def handle(
        self,
        *args: Any,
        train: list[str],
        test: str | None,
        folds: int,
        question_disjoint: bool,
        predictors: str | None,
        out: Path | None,
        seeds: int | None,
        paper: bool,
        overrides: list[tuple[str, str, Any]],
        samples: int,
        seed: int,
        **options: Any,
    ) -> None:
        # Predictors are trained one after another, each on all processors. Torch reads this when it is imported.
        limit_threads(_processors())
        try:
            named = [name.strip() for name in predictors.split(",")] if predictors else []
            names = named or comparison.local_predictors()
            params = _params(names, overrides, seeds=seeds, paper=paper)
            tables = [read(path) for path in train]
            if test is None:
                measurement = self._by_folds(tables, params, folds, seed, question_disjoint=question_disjoint)
            else:
                measurement = self._by_test_file(tables, read(test), params, seed)
        except PredictorError as exc:
            raise HunchError(str(exc)) from exc
        if out is not None:
            _make_folder(out)
        made, failures = self._run_all(names, measurement)
        if made:
            found = comparison.compare(measurement.rows, made, train=measurement.train, seed=seed, samples=samples)
            seconds = {one.name: round(one.seconds, 3) for one in made}
            for section in predictor_report.sections(found, seconds):
                self.stdout.write(section)
            if out is not None:
                facts = {
                    "train": train,
                    "test": test,
                    "folds": folds if test is None else None,
                    "seed": seed,
                    "samples": samples,
                    "settings": params,
                    "seconds": seconds,
                    "failures": failures,
                }
                columns = {one.name: one.probabilities for one in made}
                self.stdout.write("")
                for path in reports.write_files(
                    predictor_report.writers_of(found, measurement.rows, columns, facts), out
                ):
                    self.stdout.write(f"wrote {path}")
        if failures:
            raise PredictorsFailed("\n".join(failures.values()))

    def _by_test_file(self, tables: Sequence[PairTable], test: PairTable, params: Params, seed: int) -> Measurement:
        train = join(tables)
        test.require_both_classes()
        kept = comparison.without_test_pairs(train, test)
        if dropped := len(train) - len(kept):
            self.stdout.write(
                f"{dropped} training rows are left out: each is a test pair, its reverse or other outcome"
            )
        if not len(kept):
            raise PredictorError(f"{train.source}: no row is left to train on; give rows that are not test pairs.")
        kept.require_both_classes()
        self.stdout.write(f"{len(kept)} training rows, {len(test)} test rows\n")

        def run(name: str, progress: Progress) -> Predictions:
            return comparison.train_and_predict(name, params[name], seed=seed, train=kept, test=test, progress=progress)

        return Measurement(test, run, kept)

    def _by_folds(
        self, tables: Sequence[PairTable], params: Params, count: int, seed: int, *, question_disjoint: bool
    ) -> Measurement:
        own, extra = tables[0], join(tables[1:]) if tables[1:] else None
        own.require_both_classes()
        rng = np.random.default_rng(seed)
        whole, folds = comparison.folds_of(own, extra, folds=count, rng=rng, question_disjoint=question_disjoint)
        tested = np.sort(np.concatenate([fold.test for fold in folds]))
        if not len(tested):
            raise PredictorError(f"{own.source}: no fold has a test row; use fewer folds.")
        learnt = ", ".join(str(len(fold.train)) for fold in folds)
        self.stdout.write(f"cross-validation of {own.source}: {len(tested)} of {len(own)} rows are tested")
        self.stdout.write(f"{count} folds, with {learnt} training rows\n")

        def run(name: str, progress: Progress) -> Predictions:
            made = comparison.cross_validate(name, params[name], seed=seed, table=whole, folds=folds, progress=progress)
            return replace(made, probabilities=made.probabilities[tested])

        return Measurement(own.take(tested), run, None)

    def _run_all(self, names: Sequence[str], measurement: Measurement) -> tuple[list[Predictions], dict[str, str]]:
        """Measure each predictor in turn. A failure is reported, and the others are still measured."""
        made, failures = [], {}
        for name in names:
            with ProgressBar(name) as shown:
                try:
                    made.append(measurement.run(name, shown))
                    continue
                except PredictorError as exc:
                    failures[name] = f"{name}: {exc}"
                except ImportError as exc:
                    failures[name] = f"{name}: {exc.name} is not installed; install requirements/ml.lock"
                except Exception as exc:
                    # A bug in our code. It must not cost an hour of the other predictors' work.
                    failures[name] = f"{name}: failed unexpectedly ({type(exc).__name__}: {exc})"
                    self.stderr.write(traceback.format_exc())
            self.stderr.write(failures[name])
        return made, failures


class ProgressBar:
    """A bar that follows a library's progress callback; its total comes with the first call."""

    def __init__(self, name: str) -> None:
        self.shown = bar(total=1, name=name)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *exc: object) -> None:
        self.shown.close()

    def __call__(self, done: int, total: int, text: str) -> None:
        total = max(total, done, 1)
        if total != self.shown.total or done < self.shown.n:  # A different task has begun: predicting after training.
            self.shown.reset(total=total)
        self.shown.update(done - self.shown.n)


def _processors() -> int:
    """The number of processors that this process may use, or OMP_NUM_THREADS if it is set."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted) > 0:
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _params(
    names: Sequence[str], overrides: Sequence[tuple[str, str, Any]], *, seeds: int | None, paper: bool
) -> Params:
    """The settings of each predictor, all checked before the first one trains for hours."""
    params: Params = {name: {} for name in names}
    if len(params) < len(names):
        raise PredictorError("--predictors: a name is there twice; give each once.")
    for name in names:
        settings_of(name, {})
    for name, field, value in overrides:
        if name not in params:
            raise PredictorError(f"--set {name}.{field}: {name!r} is not among the predictors: {', '.join(names)}.")
        params[name][field] = value
    if "bert" in params:
        own = params["bert"].get("members")
        params["bert"]["members"] = seeds or own or comparison.default_seeds(as_in_paper=paper)
    for name, chosen in params.items():
        settings_of(name, chosen)
    return params


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as exc:
        raise HunchError(f"--out {folder}: cannot be made or written ({exc.strerror}); choose another folder") from exc
