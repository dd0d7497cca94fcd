"""`manage.py flag_questions IDS... --bank NAME --kind KIND --reason WHY`: keep questions out of what is drawn next."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.db import transaction

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.models import Question
from survey.services.banks import question_flags
from survey.services.banks.importing import find_bank
from survey.services.banks.question_flags import Wish

NONE = "none"


class Command(HunchCommand):
    help = (
        "Flag questions of a bank, all or none. Plans that are drawn from then on leave them out; slots that are "
        "planned already are still shown and count."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "questions",
            nargs="+",
            metavar="FILE|ID",
            help="ids, or one file: one id per line, or CSV with a column id and optionally reason",
        )
        parser.add_argument(
            "--bank", required=True, metavar="NAME", help="NAME for its newest version, or NAME@VERSION"
        )
        kinds = [*filter(None, Question.Flag.values), NONE]
        parser.add_argument("--kind", required=True, choices=kinds, help="none removes the flags")
        parser.add_argument(
            "--reason", default="", metavar="WHY", help="kept with each flag; a file may give one for each question"
        )

    def handle(self, *args: Any, questions: list[str], bank: str, kind: str, reason: str, **options: Any) -> None:
        question_bank = find_bank(bank)
        wishes = self._wishes(questions)
        by_reason: dict[str, list[str]] = {}
        for wish in wishes:
            by_reason.setdefault(wish.reason or reason, []).append(wish.external_id)
        if kind != NONE and "" in by_reason:
            raise HunchError(f"--reason: say why {by_reason[''][0]} is flagged; the reason is kept with the flag")
        with transaction.atomic():
            changed = [
                question
                for why, ids in by_reason.items()
                for question in question_flags.flag_questions(
                    bank=question_bank, external_ids=ids, kind="" if kind == NONE else kind, reason=why
                )
            ]
        flagged = question_bank.questions.exclude(flag="").count()
        self.stdout.write(
            f"changed {len(changed)} of {len(wishes)} questions; {flagged} of {question_bank} are flagged now"
        )

    @staticmethod
    def _wishes(questions: list[str]) -> list[Wish]:
        if len(questions) == 1 and Path(questions[0]).is_file():
            return question_flags.read_ids(Path(questions[0]))
        return [Wish(question) for question in questions]
