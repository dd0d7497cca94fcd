"""`manage.py import_replies FILE --bank NAME`: what language models replied to a bank's questions."""

from survey.models import Bank
from survey.services.banks import model_answers
from survey.services.banks.model_answers import Imported

from . import import_answers


class Command(import_answers.Command):
    help = "Import whole replies of language models (llm, question_id, response): all of them, or none if one is wrong."
    noun = "replies"

    def import_file(self, path: str, bank: Bank) -> Imported:
        return model_answers.import_replies(path, bank)
