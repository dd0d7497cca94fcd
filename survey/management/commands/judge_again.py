"""`manage.py judge_again --bank NAME`: judge stored replies, and judges' scores of them, by the present rules."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.banks.answer_checking import RULES_VERSION
from survey.services.banks.importing import find_bank
from survey.services.banks.judging_again import judge_again


class Command(HunchCommand):
    help = (
        "Judge the stored replies to a bank's questions by the present rules, and read judges' scores of them again. "
        "Says what changes and which studies use the bank; writes only with --yes. Verdicts that a planned study rests "
        "on stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--bank", required=True, metavar="NAME", help="NAME, or NAME@VERSION")
        parser.add_argument("--yes", action="store_true", help="store the new verdicts")

    def handle(self, *args: Any, bank: str, yes: bool, **options: Any) -> None:
        again = judge_again(find_bank(bank), write=yes)
        for difference in again.differences:
            self.stdout.write(str(difference))
        done = "judged again" if yes else "would be judged again (--yes stores it)"
        changed = sum(not difference.studies for difference in again.differences)
        because = f", since planned studies rest on them: {', '.join(again.resting)}" if again.resting else ""
        known = f"; {again.unreadable} of these are known as unreadable from now on" if again.unreadable else ""
        self.stdout.write(
            f"{again.judged} answers {done} by rules {RULES_VERSION}, {changed} verdicts differ; {again.used} answers "
            f"stay as they were judged{because}{known}"
        )
        done = "read again" if yes else "would be read again (--yes stores it)"
        for name, scores in again.scores.items():
            for line in scores.differences:
                self.stdout.write(line)
            self.stdout.write(
                f"{name}: {scores.read} scores of judges {done} by rules {scores.rules}, {len(scores.differences)} "
                f"differ; {scores.left} stay, since their stored replies cannot be parted, or their template is gone"
            )
        if again.studies:
            self.stdout.write(f"studies with this bank, whose reports may change: {', '.join(again.studies)}")
