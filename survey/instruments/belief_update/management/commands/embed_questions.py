"""`manage.py embed_questions BANK`: store what an aid by embeddings finds similar questions with."""

from argparse import ArgumentParser
from typing import Any

from predictors.settings import BUNDLED_CHECKPOINT
from survey.console.command import HunchCommand
from survey.instruments.belief_update import aids
from survey.services.banks import importing as question_banks


class Command(HunchCommand):
    help = (
        "Compute and store an embedding of every question of a bank, for studies whose aid finds similar questions by "
        'embeddings (aid_similarity = "embeddings"). Plans that exist keep their aids.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("bank", metavar="BANK", help="NAME or NAME@VERSION")
        parser.add_argument(
            "--model", default=BUNDLED_CHECKPOINT, metavar="MODEL", help=f"what reads the texts ({BUNDLED_CHECKPOINT})"
        )

    def handle(self, *args: Any, bank: str, model: str, **options: Any) -> None:
        question_bank = question_banks.find_bank(bank)
        questions = list(question_bank.questions.order_by("position"))
        numbers = aids.embed_questions(questions, model=model)
        self.stdout.write(
            f"stored the embeddings of {len(questions)} questions of {question_bank}: {numbers} numbers each, {model}"
        )
