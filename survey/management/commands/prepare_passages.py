"""`manage.py prepare_passages SLUG` or `--bank NAME`: tokens of passages, and what models expect at each."""

from argparse import ArgumentParser
from typing import Any

from predictors.readings import Source
from survey.console.command import HunchCommand
from survey.console.progress_bars import bar
from survey.console.sources import sources_of
from survey.exceptions import HunchError
from survey.models import Question
from survey.services.banks import passages
from survey.services.banks.importing import find_bank
from survey.services.studies.lookup import find_study


class Command(HunchCommand):
    help = (
        "Cut the passages of a bank into tokens, and let language models read them: next-token studies take both from "
        "the database, and nobody waits for a model. What is stored is passed over, so it can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a study: its bank, tokenizer and [[models]]")
        parser.add_argument("--bank", default="", metavar="NAME", help="a bank of passages, or NAME@VERSION")
        parser.add_argument("--tokenizer", default="", metavar="SOURCE", help=passages.SOURCES)
        parser.add_argument(
            "--model",
            action="append",
            default=[],
            metavar="NAME=SOURCE",
            help="what reads: local:FOLDER, endpoint:MODEL, ngram:NAME or file:TABLE",
        )

    def handle(self, *args: Any, slug: str | None, bank: str, tokenizer: str, model: list[str], **options: Any) -> None:
        if bool(slug) == bool(bank):
            raise HunchError("SLUG: name a study, or give --bank NAME, and not both")
        models = sources_of(model)
        if slug:
            questions, tokenizer, models = _of_study(slug, tokenizer, models)
        else:
            if not tokenizer:
                raise HunchError(f"--tokenizer: is missing; write {passages.SOURCES}")
            questions = list(find_bank(bank).questions.filter(flag="").order_by("position"))
        with bar(total=0, name="passages") as progress_bar:

            def progress(what: str, done: int, total: int) -> None:
                progress_bar.set_description(what[:22])
                progress_bar.total = total
                progress_bar.update(done - progress_bar.n)

            preparation = passages.prepare(questions, tokenizer=tokenizer, models=models, progress=progress)
        self.stdout.write(
            f"{preparation.passages:,} passages have {preparation.tokens:,} tokens by {preparation.tokenizer}"
        )
        for name, count in preparation.read.items():
            self.stdout.write(f"{name}: {count:,} passages read now")


def _of_study(slug: str, tokenizer: str, models: list[Source]) -> tuple[list[Question], str, list[Source]]:
    study = find_study(slug)
    study_tokenizer = study.config.instrument.options.get("tokenizer", "")
    if study.config.instrument.options.get("unit") == "character":
        study_tokenizer = passages.CHARACTERS
    if not study_tokenizer or tokenizer or models:
        raise HunchError(
            f"{slug}: its file says which tokenizer and models it has; give --bank NAME for others"
            if study_tokenizer
            else f"{slug}: is of the kind {study.instrument} and has no tokenizer; give --bank NAME and --tokenizer"
        )
    named = study.config.models
    return (
        list(study.bank.questions.filter(flag="").order_by("position")),
        study_tokenizer,
        [passages.source_of(model) for model in named],
    )
