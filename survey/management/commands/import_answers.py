"""`manage.py import_answers FILE --bank NAME`: which questions language models answered correctly."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.models import Bank
from survey.services.banks import model_answers
from survey.services.banks.importing import find_bank
from survey.services.banks.model_answers import Imported


class Command(HunchCommand):
    help = "Import answers of language models (llm, question_id, correct): all of them, or none if one is wrong."
    noun = "answers"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")
        parser.add_argument("--bank", required=True, metavar="NAME", help="NAME, or NAME@VERSION")

    def import_file(self, path: str, bank: Bank) -> Imported:
        return model_answers.import_answers(path, bank)

    def handle(self, *args: Any, path: str, bank: str, **options: Any) -> None:
        question_bank = find_bank(bank)
        done = self.import_file(path, question_bank)
        for note in done.notes:
            self.stderr.write(note)
        for llm, count in done.new.items():
            again = f"; {done.known[llm]} were there already" if done.known[llm] else ""
            self.stdout.write(f"imported {count} {self.noun} of {llm} to {question_bank}{again}")
