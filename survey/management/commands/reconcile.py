"""`manage.py reconcile SLUG`: our view of every submission against the panel's."""

from argparse import ArgumentParser
from collections import Counter
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.contracts import panels
from survey.exceptions import HunchError, NotFound
from survey.figures.csv_lines import csv_lines
from survey.figures.rendering import aligned
from survey.figures.words import money
from survey.models import Study, Submission
from survey.panels import accounts, owed_list, reconciliation
from survey.panels.reconciliation import Reconciliation
from survey.services.base.writing import write_private_file
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Read every submission from the panel and show where it differs from what is stored here, what to do and what "
        "is owed. With --approve and --ask-back it is done."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--approve", action="store_true", help="approve everybody who finished")
        parser.add_argument(
            "--ask-back", action="store_true", help="ask people for a return where it is due, each person once"
        )
        parser.add_argument("--person", metavar="PSEUDONYM", help="the person that --reject or --settle is about")
        parser.add_argument("--reject", metavar="CATEGORY", help="for one of the panel's reasons")
        parser.add_argument("--message", default="", metavar="TEXT", help="why, at least as long as the panel asks for")
        parser.add_argument("--out", type=Path, metavar="FILE.csv", help="other panels, links: who is owed what")
        parser.add_argument(
            "--with-panel-ids",
            action="store_true",
            help="with the panel's ids, for paying; the audit records that you asked",
        )
        parser.add_argument("--settle", metavar="TEXT", help="what you decided about a difference, in a sentence")

    def handle(self, *args: Any, slug: str, person: str | None, **options: Any) -> None:
        study = lookup.find_study(slug)
        if panels.get(study.config.panel.kind).pays_from_a_list:
            self._list(study, **options)
            return
        reconciliations = reconciliation.read_and_reconcile(study)
        if not reconciliations:
            raise HunchError(f"{slug} has no posting at a panel: hunch posting {slug} draft")
        if options["reject"] or options["settle"]:
            submission = _submission(study, person)
            if options["reject"]:
                reconciliation.reject(submission, category=options["reject"], message=options["message"])
            else:
                reconciliation.settle_difference(submission, options["settle"])
        for reconciled in reconciliations:
            if options["approve"]:
                self.stdout.write(f"approved: {reconciliation.approve_finished(reconciled.posting)}")
            if options["ask_back"]:
                self.stdout.write(f"asked for a return: {reconciliation.ask_back(reconciled.posting)}")
            self._show(reconciliation.reconcile(reconciled.posting))

    def _list(self, study: Study, *, out: Path | None, with_panel_ids: bool, **options: Any) -> None:
        """For studies without a panel that can be asked: what is to be paid, and to whom."""
        if any(options[name] for name in ("approve", "ask_back", "reject", "settle")):
            raise HunchError(f"{study.slug} has no panel that can be asked for this: use --out to see who is owed what")
        lines = owed_list.owed_list(study)
        counts = Counter((str(line.sitting.state), " ".join(line.flags), line.amount) for line in lines)
        rows = [[state, flags, str(amount), str(n)] for (state, flags, amount), n in sorted(counts.items())]
        self.stdout.write(aligned(["state", "flags", "owed each", "people"], rows))
        total = sum(line.amount for line in lines)
        self.stdout.write(f"{money(total, study.config.panel.currency)} owed to {len(lines)} people")
        if out is None:
            return
        columns = [*owed_list.COLUMNS]
        cells = owed_list.rows_of(study, lines)
        if with_panel_ids:
            columns = [*owed_list.PANEL_COLUMNS, *columns]
            cells = owed_list.rows_with_ids(study, lines)
        write_private_file(out, csv_lines(columns, cells))
        self.stdout.write(f"wrote {out} ({len(lines)} rows)")

    def _show(self, reconciled: Reconciliation) -> None:
        posting = reconciled.posting
        self.stdout.write(f"posting {posting.pk}: {posting}, {posting.state}, {len(reconciled.findings)} submissions")
        counts = [[ours, theirs, str(n)] for ours, theirs, n in reconciled.counts]
        self.stdout.write(aligned(["here", "at the panel", "people"], counts))
        if differences := reconciled.differences:
            rows = [[f.who, f.ours, f.theirs, f.judgement.action.value, f.why] for f in differences]
            self.stdout.write(aligned(["who", "here", "at the panel", "do", "why"], rows))
        self.stdout.write(
            f"{len(reconciled.differences)} to settle, {money(reconciled.owed_cents, posting.currency)} owed "
            "on top of rewards"
        )
        if posting.published_at is not None:
            account = accounts.account_of(posting)
            self.stdout.write(f"it has cost {money(account.here.total, posting.currency)}: {account.sentence}")


def _submission(study: Study, person: str | None) -> Submission:
    rows = Submission.objects.filter(posting__study=study, respondent__pseudonym=person or "")
    row = rows.select_related("posting__study").order_by("-pk").first()
    if row is None:
        raise NotFound(f"--person: {person or 'missing'}: name somebody by the pseudonym that the table shows")
    return row
