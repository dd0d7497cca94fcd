"""`manage.py evaluate_predictors --train FILE --test FILE`, or `--study SLUG`: compare predictors of belief change."""

import errno
import os
import re
import tempfile
import traceback
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from predictors import comparison, registry
from predictors.comparison import Contender, Predictions
from predictors.datasets import PairTable, join
from predictors.errors import PredictorError
from predictors.hardness import checked_columns
from predictors.pairs import Progress
from predictors.registry import settings_of
from predictors.training import limit_threads, processors
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.console.reports import add_png_argument, check_png
from survey.exceptions import HunchError
from survey.input_tables.decoding import json_of
from survey.instruments.belief_update import predictor_report
from survey.instruments.belief_update.reports.alignment.files import read_pairs
from survey.instruments.belief_update.reports.release import releasing
from survey.services.base import keys
from survey.services.results import reports
from survey.services.results.png import with_png
from survey.services.studies import lookup

OWN_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
# Before the next setting; a value may hold colons, as in bundled:minilm-l6.
NEXT_SETTING = re.compile(r":(?=[A-Za-z_]+=)")


@dataclass(frozen=True)
class Measurement:
    """The rows to measure on, a function that makes a predictor's predictions for them, and the training rows (None if
    each fold has its own)."""

    rows: PairTable
    run: Callable[[Contender, Progress], Predictions]
    train: PairTable | None
    learnt: PairTable


@dataclass
class Outcome:
    """What was measured, and why the others were not. `unexpected`: a bug was among the reasons."""

    made: list[Predictions] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    unexpected: bool = False


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


def columns(text: str) -> tuple[str, ...]:
    try:
        return checked_columns(text)
    except ValueError as exc:
        raise ArgumentTypeError(str(exc)) from exc


def setting(text: str) -> tuple[str, str, Any]:
    """PREDICTOR.SETTING=VALUE; the value is read as JSON where it is JSON, else as text."""
    path, equals, value = text.partition("=")
    name, dot, chosen = path.partition(".")
    if not (equals and dot and name and chosen):
        raise ArgumentTypeError(f"{text!r} is not PREDICTOR.SETTING=VALUE, for instance bert.epochs=3")
    return name, chosen, _value(value)


def _value(text: str) -> Any:
    """A setting's value: JSON where it is JSON, else the text."""
    try:
        return json_of(text)
    except ValueError:
        return text


def contenders(text: str) -> list[Contender]:
    """The rows that A,B,... names. Each is PREDICTOR or NAME=PREDICTOR, with settings as in
    NAME=PREDICTOR:SETTING=VALUE:SETTING=VALUE.

    Raises:
        PredictorError: one cannot be read, a predictor is not known, or a name is there twice.
    """
    listed = [_contender(part.strip()) for part in text.split(",") if part.strip()]
    names = [contender.name for contender in listed]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise PredictorError(
            f"--predictors: {twice}: a name is there twice; give each once, as in other={twice}:SETTING=VALUE."
        )
    return listed


def _contender(text: str) -> Contender:
    what, *settings = NEXT_SETTING.split(text)
    own, equals, predictor = what.partition("=")
    if not equals:
        own = predictor = what
    settings_of(predictor, {})
    if not OWN_NAME.fullmatch(own):
        raise PredictorError(
            f"--predictors: {own!r} is no name for a row; use small letters, digits and _, a letter first."
        )
    if own != predictor and own in registry.DECLARATIONS:
        raise PredictorError(f"--predictors: {own}={predictor}: {own} is another predictor; choose another name.")
    params = {}
    for setting in settings:
        chosen, _equals, value = setting.partition("=")
        if chosen in params:
            raise PredictorError(f"--predictors: {own}: {chosen} is there twice; keep one.")
        params[chosen] = _value(value)
    return Contender(own, predictor, params)


class Command(HunchCommand):
    help = (
        "Train predictors on files, or on a study's answers, and measure them side by side on another file, or on the "
        "majority labels of the study's test stage, as in table 1 of the paper."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--train",
            action="append",
            default=[],
            metavar="FILE",
            help="CSV: q1, q2, source1, source2 and previous_correct, belief_change (optional: weight, responses, "
            "respondent), or pred_if_correct, pred_if_incorrect; may be given several times",
        )
        parser.add_argument("--test", metavar="FILE", help="CSV with the same columns; without it see --folds")
        parser.add_argument(
            "--study",
            metavar="SLUG",
            help="instead of files: the rows that `release` writes, its training answers and its majority labels",
        )
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
        parser.add_argument(
            "--predictors",
            metavar="A,B,...",
            help="default: all that need nothing but this machine. One predictor may be there several times, under "
            "names of its own: NAME=PREDICTOR:SETTING=VALUE:SETTING=VALUE, as in bert_base=bert:checkpoint=FOLDER",
        )
        parser.add_argument(
            "--columns",
            type=columns,
            default=(),
            metavar="people,models",
            help="also measure hybrid and same_task with columns next to the texts, in a table of their own: people "
            "(priors of the training rows), models (models_right), or both",
        )
        parser.add_argument("--out", type=Path, metavar="DIR", help="write tables, predictions and figures")
        add_png_argument(parser)
        parser.add_argument(
            "--seeds", type=whole_number(1), metavar="N", help="networks in bert (2 on a CPU, 5 on a GPU)"
        )
        parser.add_argument(
            "--paper",
            action="store_true",
            help="the paper's settings: checkpoint, epochs, batch, rate and five networks in bert, and so on; without "
            "--predictors the rows of its table 1, of which those without key or weights say so",
        )
        parser.add_argument(
            "--set",
            dest="overrides",
            action="append",
            type=setting,
            default=[],
            metavar="PREDICTOR.SETTING=VALUE",
            help="for instance bert.checkpoint=google-bert/bert-base-uncased, by a row's name; may be given several "
            "times",
        )
        parser.add_argument(
            "--samples", type=whole_number(1), default=1000, metavar="N", help="bootstrap resamples (1000)"
        )
        parser.add_argument("--seed", type=whole_number(0), default=0, metavar="S")

    def check_options(self, options: Mapping[str, Any]) -> None:
        check_png(options)

    def handle(
        self,
        *args: Any,
        train: list[str],
        test: str | None,
        study: str | None,
        folds: int,
        question_disjoint: bool,
        predictors: str | None,
        columns: tuple[str, ...],
        out: Path | None,
        seeds: int | None,
        paper: bool,
        overrides: list[tuple[str, str, Any]],
        samples: int,
        seed: int,
        **options: Any,
    ) -> None:
        # Predictors are trained one after another, each on all processors. Torch reads this when it is imported.
        limit_threads(processors())
        _refuse_two_sources(train, test, study)
        try:
            rows = chosen_rows(predictors, overrides, seeds=seeds, paper=paper, columns=columns)
            read_beside = tuple(dict.fromkeys(name for row in rows for name in row.columns))
            released = self._released(study, read_beside) if study is not None else None
            if released is not None:
                measurement = self._by_test_file([released[0]], released[1], seed)
            elif test is None:
                tables = [read_pairs(path) for path in train]
                measurement = self._by_folds(tables, folds, seed, question_disjoint=question_disjoint)
            else:
                measurement = self._by_test_file([read_pairs(path) for path in train], read_pairs(test), seed)
            comparison.require_columns(rows, measurement.learnt)
        except PredictorError as exc:
            raise HunchError(str(exc)) from exc
        if out is not None:
            _make_folder(out)
        outcome = self._run_all(rows, measurement)
        if outcome.made:
            compared = comparison.compare(
                measurement.rows,
                outcome.made,
                train=measurement.train,
                seed=seed,
                samples=samples,
                apart=[row.name for row in rows if row.columns],
            )
            seconds = {run.name: round(run.seconds, 3) for run in outcome.made}
            for section in predictor_report.sections(
                compared, seconds, outcome.failures, [row.name for row in rows if row.columns]
            ):
                self.stdout.write(section)
            if out is not None:
                facts = {
                    "train": train,
                    "test": test,
                    "study": study,
                    "folds": folds if test is None and study is None else None,
                    "seed": seed,
                    "samples": samples,
                    "settings": {row.name: dict(row.params) for row in rows},
                    "predictors": {row.name: row.predictor for row in rows},
                    "columns": {row.name: list(row.columns) for row in rows if row.columns},
                    "seconds": seconds,
                    "failures": outcome.failures,
                }
                predicted = {run.name: run.probabilities for run in outcome.made}
                self.stdout.write("")
                writers = predictor_report.writers_of(compared, measurement.rows, predicted, facts)
                for path in reports.write_files(with_png(writers) if options["png"] else writers, out):
                    self.stdout.write(f"wrote {path}")
        # Nobody named the rows of the paper's table: that one has no key or weights here is a part of the answer.
        are_named = bool(predictors) or not paper
        if outcome.failures and (are_named or outcome.unexpected or not outcome.made):
            raise PredictorsFailed("\n".join(outcome.failures.values()))

    def _released(self, slug: str, columns: Sequence[str]) -> tuple[PairTable, PairTable]:
        """The study's rows as `release` writes them, read as those files are.

        Raises:
            HunchError: there is no such study, or it has no such rows; says what is missing.
        """
        self.require_database()
        keys.check()
        study = lookup.find_study(slug)
        if study.instrument != "belief_update":
            raise HunchError(f"--study {slug}: is of the kind {study.instrument}; only belief studies have such rows")
        release = releasing.release_of(study, columns)
        if not release.test:
            raise HunchError(
                f"--study {slug}: there are no labels to test on: {release.without_test}. `release` writes "
                "its training "
                "answers; --train cross-validates them"
            )
        reports.record_reading(study, "release", {}, by=None, via="command")
        with tempfile.TemporaryDirectory() as folder:
            tables = []
            for name in (releasing.TRAIN, releasing.TEST):
                path = Path(folder) / name
                path.write_bytes(release.files[name])
                tables.append(replace(read_pairs(path), source=f"{slug} {name}"))
        return tables[0], tables[1]

    def _by_test_file(self, tables: Sequence[PairTable], test: PairTable, seed: int) -> Measurement:
        train = join(tables)
        test.require_both_classes()
        remaining = comparison.without_test_pairs(train, test)
        if dropped := len(train) - len(remaining):
            self.stdout.write(
                f"{dropped} training rows are left out: each is a test pair, its reverse or other outcome"
            )
        if not len(remaining):
            raise PredictorError(f"{train.source}: no row is left to train on; give rows that are not test pairs.")
        remaining.require_both_classes()
        self.stdout.write(f"{len(remaining)} training rows, {len(test)} test rows\n")

        def run(row: Contender, progress: Progress) -> Predictions:
            made = comparison.train_and_predict(
                row.predictor, row.params, seed=seed, train=remaining, test=test, progress=progress
            )
            return replace(made, name=row.name)

        return Measurement(test, run, remaining, remaining)

    def _by_folds(self, tables: Sequence[PairTable], count: int, seed: int, *, question_disjoint: bool) -> Measurement:
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

        def run(row: Contender, progress: Progress) -> Predictions:
            made = comparison.cross_validate(
                row.predictor,
                row.params,
                seed=seed,
                table=whole,
                folds=folds,
                progress=progress,
                workers=processors(),
            )
            return replace(made, name=row.name, probabilities=made.probabilities[tested])

        return Measurement(own.take(tested), run, None, whole)

    def _run_all(self, rows: Sequence[Contender], measurement: Measurement) -> Outcome:
        """Measure each predictor in turn. A failure is reported, and the others are still measured."""
        outcome = Outcome()
        for row in rows:
            with ProgressBar(row.name) as bar:
                try:
                    outcome.made.append(measurement.run(row, bar))
                    continue
                except PredictorError as exc:
                    outcome.failures[row.name] = f"{row.name}: {exc}"
                except ImportError as exc:
                    outcome.failures[row.name] = (
                        f"{row.name}: {exc.name} is not installed; install requirements/ml.lock"
                    )
                except Exception as exc:
                    # A bug in our code. It must not cost an hour of the other predictors' work.
                    outcome.failures[row.name] = f"{row.name}: failed unexpectedly ({type(exc).__name__}: {exc})"
                    outcome.unexpected = True
                    self.stderr.write(traceback.format_exc())
            self.stderr.write(outcome.failures[row.name])
        return outcome


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


def _refuse_two_sources(train: Sequence[str], test: str | None, study: str | None) -> None:
    if study is not None and (train or test is not None):
        raise HunchError("--study: takes its rows from the study; leave --train and --test out")
    if study is None and not train:
        raise HunchError("--train: name a file to learn from, or --study SLUG")


def chosen_rows(
    predictors: str | None,
    overrides: Sequence[tuple[str, str, Any]],
    *,
    seeds: int | None,
    paper: bool,
    columns: Sequence[str] = (),
) -> list[Contender]:
    """The rows with their settings, all checked before the first one trains for hours."""
    if predictors:
        rows = contenders(predictors)
    elif paper:
        rows = list(comparison.PAPER_ROWS)
    else:
        rows = [Contender(name, name, {}) for name in comparison.local_predictors()]
    settings: dict[str, dict[str, Any]] = {row.name: {} for row in rows}
    for name, setting_name, value in overrides:
        if name not in settings:
            raise PredictorError(
                f"--set {name}.{setting_name}: {name!r} is not among the predictors: {', '.join(settings)}."
            )
        settings[name][setting_name] = value
    chosen = []
    for row in rows:
        params = {**row.params, **settings[row.name]}
        if row.predictor == "bert" and seeds is not None:
            params["members"] = seeds
        made = replace(row, params=params)
        if paper:
            made = made.with_params(**comparison.PAPER_SETTINGS.get(row.predictor, {}))
        settings_of(made.predictor, made.params)
        if made.predictor == "bert":
            made = made if "members" in made.params else made.with_params(members=comparison.default_seeds())
        chosen.append(made)
    return comparison.with_columns(chosen, columns) if columns else chosen


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as exc:
        raise HunchError(f"--out {folder}: cannot be made or written ({exc.strerror}); choose another folder") from exc
