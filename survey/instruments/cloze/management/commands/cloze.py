"""`manage.py cloze SLUG`, or `cloze --norms FILE --readings FILE`: cloze norms next to language models."""

from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from survey.console.progress_bars import read_with_bar
from survey.console.reports import ReportCommand, add_report_arguments, report_arguments_from
from survey.exceptions import HunchError
from survey.figures.words import integer
from survey.instruments.cloze.model_words import read_models
from survey.instruments.cloze.reports.own_norms import NormSettings, make
from survey.instruments.cloze.reports.study_report import ClozeReport
from survey.instruments.cloze.rescoring import rescore
from survey.services.studies.lookup import find_study

DEFAULTS = NormSettings()


class Command(ReportCommand):
    help = (
        "Cloze norms of a study, and how well language models' surprisal goes with people's. Or the same of norms "
        "that you have: --norms FILE (sentence, position, word; n and k, or surprisal; further columns are reading "
        "times) and --readings FILE (model, sentence, position, surprisal)."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG", nargs="?", help="a cloze study")
        add_report_arguments(parser, ClozeReport)
        parser.add_argument("--read", action="store_true", help="let the study's [[models]] read its sentences first")
        parser.add_argument(
            "--rescore", action="store_true", help="judge words by the newest rule first; what earlier rules said stays"
        )
        parser.add_argument("--norms", type=Path, metavar="FILE", help="norms that you have, instead of a study")
        parser.add_argument("--readings", type=Path, metavar="FILE", help="what models gave to the same words")
        parser.add_argument("--exact", action="store_true", help="with --norms: a slip of one letter does not count")
        parser.add_argument("--keep-first", action="store_true", help="with --norms: first words count too")
        parser.add_argument("--keep-last", action="store_true", help="with --norms: last words count too")
        parser.add_argument("--smoothing", type=float, default=DEFAULTS.smoothing, metavar="A", help="with --norms")
        parser.add_argument("--least", type=int, default=DEFAULTS.least, metavar="N", help="answers of a position")
        parser.add_argument(
            "--responses-per-item",
            type=int,
            default=DEFAULTS.responses_per_item,
            metavar="N",
            help="the figures aim at so many answers at each position",
        )
        parser.add_argument("--times", default="", metavar="A,B", help="which further columns are reading times; all")
        parser.add_argument(
            "--frequencies", default="", metavar="FILE", help="word and log_frequency or count; or ngram:NAME"
        )
        parser.add_argument(
            "--keep-punctuation",
            action="store_true",
            help="reading times: words with punctuation and other non-letters count, and those after them",
        )
        self.add_output_arguments(parser)

    def handle(
        self, *args: Any, slug: str | None, norms: Path | None, readings: Path | None, out: Path | None, **options: Any
    ) -> None:
        if bool(slug) == bool(norms):
            raise HunchError("SLUG: name a study, or give --norms FILE, and not both")
        if norms is not None:
            if readings is None:
                raise HunchError("--readings: is missing; --norms needs it: model, sentence, position, surprisal")
            if options["read"] or options["rescore"]:
                raise HunchError("--read, --rescore: they are for a study; leave them out with --norms")
            if options["frequencies"].startswith("ngram:"):
                self.require_database()
            self.show_result(make(norms, readings, _settings(options)), out=out)
            return
        if readings is not None:
            raise HunchError("--readings: a study's models stand in its file as [[models]]; leave it out")
        self.require_database()
        study = find_study(slug or "")
        if study.instrument != "cloze" and (options["read"] or options["rescore"]):
            raise HunchError(
                f"{study.slug}: is of the kind {study.instrument}; --read and --rescore are for cloze studies"
            )
        if options["rescore"]:
            self.stdout.write(f"{integer(rescore(study))} words judged anew")
        if options["read"]:
            read_with_bar(partial(read_models, study, everything=True), study, noun="sentences", say=self.stdout.write)
        self.show(study, "cloze", report_arguments_from(ClozeReport, options), out=out)


def _settings(options: dict[str, Any]) -> NormSettings:
    return NormSettings(
        lenient=not options["exact"],
        skip_first=not options["keep_first"],
        skip_last=not options["keep_last"],
        smoothing=options["smoothing"],
        least=options["least"],
        responses_per_item=options["responses_per_item"],
        times=tuple(part.strip() for part in options["times"].split(",") if part.strip()),
        frequencies=options["frequencies"],
        keeps_punctuation=options["keep_punctuation"],
        above=(options["above"] or [""])[-1],
    )
