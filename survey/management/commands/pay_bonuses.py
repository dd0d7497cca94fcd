"""`manage.py pay_bonuses SLUG`: show what is owed in addition to the rewards, and pay it once."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.figures import words
from survey.figures.rendering import aligned
from survey.models import PaymentBatch
from survey.panels import money
from survey.services.studies import lookup


class Command(HunchCommand):
    help = "Show whom a study owes a bonus. With --pay it is paid, under the study's spending cap and never twice."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--pay", action="store_true", help="pay all of it")
        parser.add_argument(
            "--settle",
            nargs=2,
            metavar=("PAYMENT", "paid|not-paid"),
            help="what you saw at the panel about a payment whose outcome is unknown",
        )

    def handle(self, *args: Any, slug: str, pay: bool, settle: list[str] | None, **options: Any) -> None:
        study = lookup.find_study(slug)
        if settle:
            number, said = settle
            batch = PaymentBatch.objects.filter(posting__study=study, pk=number if number.isdecimal() else 0).first()
            if batch is None or said not in ("paid", "not-paid"):
                raise NotFound("--settle: name a payment of this study by its number, then paid or not-paid")
            settled = money.settle(batch, was_paid=said == "paid")
            self.stdout.write(f"payment {settled.pk} is {settled.get_state_display()}")
        rows = []
        for posting in study.postings.exclude(external_id="").select_related("study").order_by("pk"):
            if pay:
                for batch in money.pay_owed(posting):
                    cents = sum(payment.amount for payment in batch.payments.all())
                    self.stdout.write(f"payment {batch.pk}: {words.money(cents, posting.currency)} paid")
            for bonus in money.owed(posting):
                who = bonus.submission.respondent
                amount = words.money(bonus.amount, posting.currency)
                rows.append([str(posting.pk), who.pseudonym if who else "–", bonus.kind.label, amount])
        self.stdout.write(aligned(["posting", "who", "for", "amount"], rows) if rows else "nothing is owed")
        cap = study.config.panel.spending_cap
        spent = money.committed(study)
        self.stdout.write(f"committed: {words.money(spent)} of {'no cap' if cap is None else words.money(cap)}")
