"""`manage.py reconcile SLUG`: our view of every submission against the panel's."""

from argparse import ArgumentParser
from typing import Any

from survey.exceptions import HunchError, NotFound
from survey.management.command import HunchCommand
from survey.management.tables import table
from survey.models import Study, Submission
from survey.recruitment import reconciliation
from survey.recruitment.reconciliation import REJECTION_CATEGORIES, Reconciliation
from survey.services import studies


class Command(HunchCommand):
    help = (
        "Read every submission from the panel and show where it differs from what is stored here, what to do and what "
        "is owed. With --approve and --ask-back it is done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--approve", action="store_true", help="approve everybody who finished")
        parser.add_argument("--ask-back", action="store_true", help="ask for a return where it is due, each once")
        parser.add_argument("--person", metavar="PSEUDONYM", help="whom --reject or --settle is about")
        parser.add_argument("--reject", choices=REJECTION_CATEGORIES, metavar="CATEGORY")
        parser.add_argument("--message", default="", metavar="TEXT", help="why, in 100 characters or more")
        parser.add_argument("--settle", metavar="TEXT", help="what you decided about a difference, in a sentence")

    def handle(self, *args: Any, slug: str, person: str | None, **options: Any) -> None:
        study = studies.find_study(slug)
        found = reconciliation.read_and_reconcile(study)
        if not found:
            raise HunchError(f"{slug} has no posting at a panel: manage.py posting {slug} draft")
        if options["reject"] or options["settle"]:
            submission = _submission(study, person)
            if options["reject"]:
                reconciliation.reject(submission, category=options["reject"], message=options["message"])
            else:
                reconciliation.settle_difference(submission, options["settle"])
        for one in found:
            if options["approve"]:
                self.stdout.write(f"approved: {reconciliation.approve_finished(one.posting)}")
            if options["ask_back"]:
                self.stdout.write(f"asked for a return: {reconciliation.ask_back(one.posting)}")
            self._show(reconciliation.reconcile(one.posting))

    def _show(self, found: Reconciliation) -> None:
        posting = found.posting
        self.stdout.write(f"posting {posting.pk}: {posting}, {posting.state}, {len(found.findings)} submissions")
        counts = [[ours, theirs, str(n)] for ours, theirs, n in found.counts]
        self.stdout.write(table(["here", "at the panel", "people"], counts))
        if differences := found.differences:
            rows = [[f.who, f.ours, f.theirs, f.judgement.action.value, f.judgement.sentence] for f in differences]
            self.stdout.write(table(["who", "here", "at the panel", "do", "why"], rows))
        self.stdout.write(
            f"{len(found.differences)} to settle, {found.owed_cents / 100:.2f} {posting.currency} owed beside rewards"
        )


def _submission(study: Study, person: str | None) -> Submission:
    rows = Submission.objects.filter(posting__study=study, respondent__pseudonym=person or "")
    row = rows.select_related("posting__study").order_by("-pk").first()
    if row is None:
        raise NotFound(f"--person: {person or 'missing'}: name somebody by the pseudonym that the table shows")
    return row
