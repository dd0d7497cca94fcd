"""`manage.py import_replies FILE --bank NAME`: what language models replied to a bank's questions."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.banks import model_answers
from survey.services.banks.importing import find_bank


class Command(HunchCommand):
    help = "Import whole replies of language models (llm, question_id, response): all of them, or none if one is wrong."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")
        parser.add_argument("--bank", required=True, metavar="NAME", help="NAME, or NAME@VERSION")

    def handle(self, *args: Any, path: str, bank: str, **options: Any) -> None:
        question_bank = find_bank(bank)
        done = model_answers.import_replies(path, question_bank)
        for note in done.notes:
            self.stderr.write(note)
        for llm, count in done.new.items():
            again = f"; {done.known[llm]} were there already" if done.known[llm] else ""
            self.stdout.write(f"imported {count} replies of {llm} to {question_bank}{again}")
