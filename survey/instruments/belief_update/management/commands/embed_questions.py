"""`manage.py embed_questions BANK`: store what an aid by embeddings finds similar questions with."""

from argparse import ArgumentParser
from typing import Any

from predictors.embeddings import embed, source_of
from predictors.errors import PredictorError
from predictors.settings import BUNDLED_CHECKPOINT
from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.instruments.belief_update.aids import store_vectors
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
        try:
            source = source_of(model)
            vectors = embed([question.plain for question in questions], model=model)
        except ImportError as exc:
            raise HunchError(
                f'model: {model} needs a package that is not installed ({exc}); run: pip install "hunch[ml]", or set '
                'aid_similarity = "words"'
            ) from exc
        except PredictorError as exc:
            raise HunchError(f"model: {exc}") from exc
        store_vectors(questions, vectors, model=f"{model} {source.fingerprint}"[:200])
        self.stdout.write(
            f"stored the embeddings of {len(questions)} questions of {question_bank}: {vectors.shape[1]} "
            f"numbers each, {model}"
        )
