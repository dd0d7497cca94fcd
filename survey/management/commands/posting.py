"""`manage.py posting SLUG WHAT`: a study at its panel."""

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.figures import words
from survey.figures.rendering import aligned
from survey.models import Posting, Study
from survey.panels import accounts, money, postings, rehearsals
from survey.panels.accounts import Advice
from survey.panels.postings import Move
from survey.panels.submissions import read_posting
from survey.services.sittings.hourly_pay import hourly_pay
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Show a study's postings and what they cost; draft, adopt, schedule, publish, pause, start or stop one; give "
        "it more places."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
        what.add_parser("show", help="what is posted, and what an hour is paid")
        draft = what.add_parser(
            "draft", help="make a draft at the panel; call it again after a failure to continue the same draft"
        )
        draft.add_argument("--stage", type=int, metavar="N", help="default: the first that is not frozen")
        draft.add_argument("--places", type=int, metavar="N", help="default: as the study file says")
        draft.add_argument("--reward", type=int, metavar="CENTS", help="default: as the study file says")
        draft.add_argument("--root", metavar="URL", help="scheme and host under which people reach this server")
        adopt = what.add_parser("adopt", help="take up a study that was made on the panel's own pages")
        adopt.add_argument("external_id", metavar="PANEL_STUDY_ID")
        adopt.add_argument("--stage", type=int, metavar="N", help="default: the first that is not frozen")
        trial = what.add_parser(
            "rehearse",
            help="the whole life once at the panel, by a test participant and without money; call it again to go on",
        )
        trial.add_argument("--again", action="store_true", help="begin again, in a new test copy")
        trial.add_argument("--root", metavar="URL", help="scheme and host under which people reach this server")
        later = what.add_parser("schedule", help="have the panel show it to people from a time on")
        later.add_argument("--at", required=True, metavar="TIME", help="such as 2027-01-31T09:00+01:00")
        later.add_argument("--posting", type=int, metavar="N", help="default: the newest")
        for name, text in (
            (
                "cost",
                "what it may cost and has cost, here and at the panel; balance, recommended pay, time of recruiting",
            ),
            ("unschedule", "take a schedule back"),
            ("publish", "show it to the panel's people; its stage must be open"),
            ("pause", "nobody else is sent; those inside finish"),
            ("start", "go on after a pause, or when all places were used"),
            ("stop", "over for good"),
        ):
            what.add_parser(name, help=text).add_argument(
                "--posting", type=int, metavar="N", help="default: the newest"
            )
        places = what.add_parser("add-places", help="how many places to add")
        places.add_argument("more", type=int, metavar="N")
        places.add_argument("--posting", type=int, metavar="N", help="default: the newest")

    def handle(self, *args: Any, slug: str, what: str, **options: Any) -> None:
        study = lookup.find_study(slug)
        if what == "show":
            self._show(study)
            return
        if what == "rehearse":
            self._rehearse(study, again=options["again"], root=options["root"])
            return
        if what in ("draft", "adopt"):
            stage = lookup.find_stage(study, options["stage"])
            if what == "draft":
                made = postings.draft(stage, places=options["places"], reward=options["reward"], root=options["root"])
            else:
                made = postings.adopt(stage, options["external_id"])
            self._tell(made)
            return
        posting = postings.find_posting(study, options["posting"])
        if what == "cost":
            self._tell_cost(posting)
        elif what == "schedule":
            self._tell(postings.schedule(posting, _moment(options["at"])))
        elif what == "unschedule":
            self._tell(postings.unschedule(posting))
        elif what == "publish":
            self._tell(postings.publish(posting))
        elif what == "add-places":
            self._tell(postings.add_places(posting, options["more"]))
        else:
            self._tell(postings.change(posting, Move(what)))

    def _rehearse(self, study: Study, *, again: bool, root: str | None) -> None:
        rehearsal = None if again else rehearsals.newest(study)
        begun = rehearsals.begin(study, root=root) if rehearsal is None else rehearsal
        steps = rehearsals.look(begun)
        self.stdout.write(
            aligned(
                ["step", "done", ""], [[step.title, "yes" if step.is_done else "no", step.sentence] for step in steps]
            )
        )
        if not begun.is_over:
            self.stdout.write(f"then: hunch posting {study.slug} rehearse")

    def _tell(self, posting: Posting) -> None:
        self.stdout.write(
            f"posting {posting.pk} ({posting}, {posting.external_id}) is {posting.state} with {posting.places} places "
            f"at {words.money(posting.reward, posting.currency)}"
        )

    def _tell_cost(self, posting: Posting) -> None:
        read_posting(posting)
        currency = posting.currency
        fee = f", with the panel's fee of {posting.fees}" if posting.fee_rate else ""
        if posting.fixed_fee:
            fee += f", and {words.money(posting.fixed_fee, currency)} for the representative sample"
        self.stdout.write(f"it may cost {words.money(posting.cost, currency)}{fee}")
        cap, spent = posting.study.config.panel.spending_cap, money.committed(posting.study)
        limit = "no cap" if cap is None else words.money(cap)
        self.stdout.write(f"the study has committed {words.money(spent, currency)} of {limit}")
        if posting.published_at is None:
            self._tell_advice(posting, accounts.advice_of(posting))
            return
        account = accounts.account_of(posting)
        there = account.there
        rows = [
            [name, words.money(getattr(account.here, name)), words.money(getattr(there, name)) if there else "–"]
            for name in ("rewards", "bonuses", "fees", "total")
        ]
        self.stdout.write(aligned([f"{currency} so far", "here", "at the panel"], rows))
        self.stdout.write(account.sentence)

    def _tell_advice(self, posting: Posting, advice: Advice) -> None:
        currency = posting.currency
        balance = "not known" if advice.balance is None else words.money(advice.balance, currency)
        self.stdout.write(f"in the account at the panel: {balance}")
        if advice.recommended is not None:
            whose = "for this account" if advice.is_said else "in general; it could not be asked for this account"
            self.stdout.write(f"recommended: {words.money(advice.recommended, currency)} an hour ({whose})")
        if pay := hourly_pay(posting.study, reward=posting.reward):
            self.stdout.write(f"{pay}")
        hours = "not known" if advice.hours is None else f"{words.number(advice.hours, 1)} hours, says the panel"
        self.stdout.write(f"recruiting may take: {hours}")

    def _show(self, study: Study) -> None:
        rows = [
            [
                str(posting.pk),
                str(posting.stage.index),
                _state(posting),
                str(posting.places),
                words.money(posting.reward, posting.currency),
                posting.external_id,
            ]
            for posting in study.postings.select_related("stage").order_by("pk")
        ]
        self.stdout.write(aligned(["posting", "stage", "state", "places", "reward", "panel's id"], rows))
        if pay := hourly_pay(study):
            self.stdout.write(f"{'too low: ' if pay.is_too_low else ''}{pay}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise HunchError(f"--at: {text!r} is no time: write it as 2027-01-31T09:00+01:00") from exc
    if moment.tzinfo is None:
        raise HunchError(f"--at: {text!r} has no time zone: write it as 2027-01-31T09:00+01:00")
    return moment


def _state(posting: Posting) -> str:
    state = posting.state or "not at the panel"
    return f"{state} (no answer yet: {posting.get_pending_display()})" if posting.pending else state
