"""The bank that comes with preferences: 40 prompts in six categories, with the replies of three authors of ours."""

from pathlib import Path

from survey.input_tables.problems import Problems
from survey.models import Bank, ModelAnswer
from survey.services.banks import texts
from survey.services.banks.importing import import_rows
from survey.services.banks.model_answers import import_replies
from survey.services.base.hashing import digest

BANK = "starter-prompts"
AUTHORS = ("heron", "lark", "wren")
PROMPTS, REPLIES = (Path(__file__).with_name(name) for name in ("starter_prompts.csv", "starter_replies.csv"))


def load_starter_prompts() -> Bank:
    """The bank with its replies; imported only where no version of it holds the same prompts."""
    problems = Problems()
    rows = list(texts.read(PROMPTS, problems, format="prompts"))
    problems.raise_if_any()
    bank = Bank.objects.filter(name=BANK, sha256=digest([row.content for row in rows])).first()
    if bank is None:
        bank = import_rows(rows, problems, bank_name=BANK, source_file=PROMPTS.name)
    if not ModelAnswer.objects.filter(question__bank=bank, language_model__name__in=AUTHORS).exists():
        import_replies(REPLIES, bank)
    return bank
