"""`manage.py perplexity FILE... --model SOURCE`: how well language models predict texts."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from predictors.errors import PredictorError
from predictors.readings import NO_DETAIL, Detail, Source, Text, parse_source
from survey.console.progress_bars import bar
from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.services.banks import readings, text_files
from survey.services.banks.importing import find_bank
from survey.services.results.people_and_models import perplexities


class Command(ReportCommand):
    help = (
        "Read texts with language models: bits per character, perplexity per word and per token. A model is "
        "local:FOLDER (Hugging Face, or one GGUF file), endpoint:MODEL (the server of HUNCH_LLM_URL), ngram:NAME, "
        "lm:NAME, arpa:FILE, or file:CSV."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", metavar="FILE", nargs="*", help="plain text, or CSV with id and text")
        parser.add_argument("--bank", metavar="NAME", help="the texts of a bank instead: NAME, or NAME@VERSION")
        parser.add_argument(
            "--model", action="append", required=True, metavar="SOURCE", help="SCHEME:TARGET, or NAME=SCHEME:TARGET"
        )
        parser.add_argument("--train", metavar="FILE", help="the texts that the models learnt from")
        parser.add_argument("--lines", action="store_true", help="each line of a plain file is a text")
        parser.add_argument("--by", choices=["text", "task"], help="figures for each text, or each task of the bank")
        parser.add_argument("--top", type=int, default=0, metavar="K", help="the K likeliest tokens at each place")
        parser.add_argument("--samples", type=int, default=0, metavar="N", help="N tokens drawn at each place")
        parser.add_argument(
            "--normalised", action="store_true", help="perplexity per token as a share of the vocabulary too"
        )
        self.add_output_arguments(parser)

    def handle(
        self,
        *args: Any,
        paths: list[str],
        bank: str | None,
        model: list[str],
        train: str | None,
        lines: bool,
        by: str | None,
        top: int,
        samples: int,
        normalised: bool,
        out: Path | None,
        **options: Any,
    ) -> None:
        if bool(paths) == bool(bank):
            raise HunchError("FILE: give files, or --bank NAME, and not both")
        if by == "task" and not bank:
            raise HunchError("--by: only a bank has tasks; give --bank NAME, or --by text")
        if (top or samples) and out is None:
            raise HunchError("--top, --samples: they are columns of tokens.csv; give --out DIR")
        try:
            sources = [parse_source(text) for text in model]
            detail = Detail(top=top, samples=samples) if top or samples else NO_DETAIL
        except PredictorError as exc:
            raise HunchError(str(exc)) from exc
        groups: list[str] = []
        if bank:
            question_bank = find_bank(bank)
            texts = text_files.texts_of_bank(question_bank)
            if not texts:
                raise HunchError(f"--bank: {question_bank} has no text without a flag")
            if by == "task":
                groups = text_files.tasks_of_bank(question_bank)
            readings.note_bank(question_bank)
        else:
            texts = text_files.read_texts(paths, by_lines=lines)
        if by == "text":
            groups = [text.id for text in texts]
        learnt = text_files.read_texts([train], by_lines=lines) if train else []
        if learnt and any(source.scheme == "file" for source in sources):
            raise HunchError("--train: a file of readings holds no training texts; leave it out, or read with a model")
        self.show_result(
            perplexities.report_result(
                texts=texts,
                readings=[self._read(source, texts, detail) for source in sources],
                groups=groups,
                train=learnt,
                train_readings=[self._read(source, learnt, NO_DETAIL) for source in sources] if learnt else (),
                normalised=normalised,
            ),
            out=out,
        )

    def _read(self, source: Source, texts: list[Text], detail: Detail) -> readings.Readings:
        progress_bar = bar(total=len(texts), name=source.name[:22])

        def progress(done: int, total: int) -> None:
            progress_bar.update(done - progress_bar.n)

        try:
            return readings.read(source, texts, detail=detail, progress=progress)
        except KeyboardInterrupt:
            raise HunchError("stopped; what was read is stored. Run the same command again to go on") from None
        finally:
            progress_bar.close()
