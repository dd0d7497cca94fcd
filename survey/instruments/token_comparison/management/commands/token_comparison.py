"""`manage.py token_comparison SLUG`, `--prepare`, or `--answers FILE`: people's loss at predicting the next token."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from survey.console.progress_bars import bar
from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.contracts import instruments
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.instruments.token_comparison.options import ComparisonOptions
from survey.instruments.token_comparison.preparing import prepare
from survey.instruments.token_comparison.reports.own_answers import make
from survey.instruments.token_comparison.reports.study_report import TokenComparisonReport
from survey.models import Question, Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.banks.importing import find_bank
from survey.services.studies.creating import read_study_file
from survey.services.studies.lookup import find_study
from survey.study_file import parse
from survey.study_file.language_models import LanguageModelConfig

NAME = "token_comparison"


class Command(ReportCommand):
    help = (
        "People's loss and perplexity at predicting the next token of a study, next to models whose loss is known. Or "
        "the same of answers that you have: --answers FILE (person, context, multiplicity, percent_true, log_g_true, "
        "log_g_other; log_NAME_true and log_NAME_other for each of --models). --prepare draws the comparisons."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a study; with --prepare also a study file")
        add_report_arguments(parser, TokenComparisonReport)
        parser.add_argument(
            "--prepare",
            action="store_true",
            help="let the generator draw the comparisons of the study's bank, and its [[models]] read them",
        )
        parser.add_argument("--answers", type=Path, metavar="FILE", help="answers that you have, instead of a study")
        parser.add_argument(
            "--models", action="append", default=[], metavar="NAME,...", help="with --answers: models to check"
        )
        parser.add_argument(
            "--ddof", type=int, choices=(0, 1), default=1, help="with --answers: what is taken off in errors"
        )
        self.add_output_arguments(parser)

    def handle(
        self, *args: Any, slug: str | None, answers: Path | None, prepare: bool, out: Path | None, **options: Any
    ) -> None:
        if bool(slug) == bool(answers):
            raise HunchError("SLUG: name a study, or give --answers FILE, and not both")
        if answers is not None:
            self._of_file(answers, prepare, options, out)
            return
        if options["models"]:
            raise HunchError("--models: a study's models stand in its file as [[models]]; leave it out")
        self.require_database()
        if prepare:
            self._prepare(slug or "")
            return
        study = find_study(slug or "")
        self.show(study, NAME, report_arguments_from(TokenComparisonReport, options), out=out)

    def _of_file(self, path: Path, prepare: bool, options: dict[str, Any], out: Path | None) -> None:
        if prepare or options["condition"]:
            raise HunchError("--prepare, --condition: they are for a study; leave them out with --answers")
        by = options["by"]
        if by not in ([], ["person"]):
            raise HunchError(f"--by: {by[-1]!r} is not person; leave it out or write person")
        models = [name.strip() for text in options["models"] for name in text.split(",") if name.strip()]
        if len(set(models)) < len(models):
            raise HunchError("--models: names a model twice; name each once")
        self.show_result(make(path, models=models, by_person=bool(by), ddof=options["ddof"]), out=out)

    def _prepare(self, named: str) -> None:
        questions, options, models = (
            _of_study_file(Path(named)) if named.endswith(".toml") else _of_study(find_study(named))
        )
        with bar(total=0, name="contexts") as progress_bar:

            def progress(what: str, done: int, total: int) -> None:
                progress_bar.set_description(what[:22])
                progress_bar.total = total
                progress_bar.update(done - progress_bar.n)

            preparation = prepare(questions, options, models, progress=progress)
        self.stdout.write(
            f"{integer(preparation.contexts)} contexts of {integer(len(questions))} texts, "
            f"{integer(preparation.made)} of them "
            "drawn now"
        )
        for name, count in preparation.read.items():
            self.stdout.write(f"{name}: {integer(count)} contexts read now")


Wanted = tuple[Sequence[Question], ComparisonOptions, Sequence[LanguageModelConfig]]


def _of_study(study: Study) -> Wanted:
    if study.instrument != NAME:
        raise HunchError(f"{study.slug}: is of the kind {study.instrument}; --prepare is for {NAME} studies")
    return filtered_questions(study), instruments.of_study(study).options, study.config.models


def _of_study_file(path: Path) -> Wanted:
    config = parse(read_study_file(path))
    if config.instrument.kind != NAME:
        raise HunchError(f"{path}: is of the kind {config.instrument.kind}; --prepare is for {NAME} studies")
    try:
        options = ComparisonOptions.model_validate(config.instrument.options)
    except ValidationError as exc:
        raise HunchError(f"{path}: instrument.options: {exc.errors()[0]['msg']}") from exc
    study = Study(
        slug=config.slug,
        bank=find_bank(config.bank),
        instrument=NAME,
        stored_config=config.model_dump(mode="json"),
    )
    return filtered_questions(study), options, config.models
