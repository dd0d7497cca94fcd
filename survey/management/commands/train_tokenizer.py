"""`manage.py train_tokenizer FILE... --name NAME`: train a byte-pair tokenizer."""

from argparse import ArgumentParser
from typing import Any

from predictors.readings.tokenizing import LARGEST, SMALLEST, can_be_typed
from survey.console.command import HunchCommand
from survey.services.banks import passages, text_files
from survey.services.banks.importing import find_bank


class Command(HunchCommand):
    help = "Train a byte-pair tokenizer from texts and store it as pairs:NAME, for studies of next tokens."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", metavar="FILE", nargs="*", help="plain text, or CSV with id and text")
        parser.add_argument("--bank", default="", metavar="NAME", help="the texts of a bank too")
        parser.add_argument("--name", required=True, metavar="NAME", help="letters, digits, - and _")
        parser.add_argument(
            "--size", type=int, default=4000, metavar="N", help=f"tokens, {SMALLEST + 1} to {LARGEST} (4000)"
        )

    def handle(self, *args: Any, paths: list[str], bank: str, name: str, size: int, **options: Any) -> None:
        texts = text_files.read_texts(paths) if paths or not bank else []
        if bank:
            texts += text_files.texts_of_bank(find_bank(bank))
        row = passages.train_tokenizer(texts, name=name, size=size)
        typed = sum(can_be_typed(token) for token in row.vocabulary)
        self.stdout.write(
            f"stored {row.source}: {row.size:,} tokens, of which people can type {typed:,}; hash {row.sha256[:12]}"
        )
