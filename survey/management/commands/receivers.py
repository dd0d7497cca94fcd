"""`manage.py receivers SLUG`: where a study's alerts are sent, and changing it from the shell."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError, NotFound
from survey.figures.rendering import aligned
from survey.models import Receiver, Study
from survey.operation import deliveries, receivers
from survey.services.studies import lookup

NEWEST = 20  # of what a receiver was sent
CAUSES = [cause.value for cause in receivers.OFFERED]


class Command(HunchCommand):
    help = (
        "List the receivers of a study's alerts, which are webhooks and e-mail addresses. Add one, send it a test "
        "event, show what it was sent, switch it off or on, or remove it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        does = parser.add_subparsers(dest="what", metavar="WHAT")
        does.add_parser("list", help="all of them; so does no word at all")
        add = does.add_parser("add", help="a webhook by its https address, or an e-mail address")
        add.add_argument("address", metavar="ADDRESS")
        add.add_argument(
            "--cause",
            action="append",
            metavar="CAUSE",
            help=f"an alert that it gets, and again for another one; without it all: {', '.join(CAUSES)}",
        )
        for name, words in (
            ("test", "queue a test event, which a worker sends within some seconds"),
            ("sent", f"the {NEWEST} newest events that it was sent, with its answers"),
            ("off", "switch it off; what happens meanwhile is not sent later"),
            ("on", "switch it on again"),
            ("remove", "remove it, with the list of what it was sent"),
        ):
            does.add_parser(name, help=words).add_argument("number", metavar="NUMBER", type=int)

    def handle(self, *args: Any, slug: str, what: str | None = None, **options: Any) -> None:
        study = lookup.find_study(slug)
        if what == "add":
            self._add(study, options["address"].strip(), options["cause"])
        elif what in (None, "list"):
            self._list(study)
        else:
            self._do(_found(study, options["number"]), what)

    def _add(self, study: Study, address: str, causes: list[str] | None) -> None:
        is_email = "@" in address and "://" not in address
        kind = Receiver.Kind.EMAIL if is_email else Receiver.Kind.WEBHOOK
        receiver, secret = receivers.add(study, kind=kind, address=address, causes=CAUSES if causes is None else causes)
        self.stdout.write(f"added {receiver.pk}: {receiver}")
        if secret:
            self.stdout.write(f"secret: {secret}")
            self.stderr.write("Keep the secret: it is shown this once. It signs each event (docs/operation.md).")

    def _list(self, study: Study) -> None:
        rows = [
            [
                str(receiver.pk),
                str(receiver),
                "on" if receiver.is_active else f"off: {receiver.off_because}",
                ", ".join(receiver.causes),
            ]
            for receiver in study.receivers.all()
        ]
        self.stdout.write(aligned(["number", "receiver", "state", "gets"], rows) if rows else "there is no receiver")

    def _do(self, receiver: Receiver, what: str) -> None:
        if what == "sent":
            rows = [
                [
                    delivery.event,
                    delivery.get_state_display(),
                    str(delivery.tries),
                    delivery.answer,
                    f"{delivery.created_at:%Y-%m-%d %H:%M:%S}",
                ]
                for delivery in receiver.deliveries.all()[:NEWEST]
            ]
            head = ["event", "state", "tries", "last answer", "made (UTC)"]
            self.stdout.write(aligned(head, rows) if rows else "nothing was sent yet")
        elif what == "test":
            deliveries.send_test(receiver)
            shows = f"`receivers {receiver.study.slug} sent {receiver.pk}` shows the answer"
            self.stdout.write(f"a worker sends it within some seconds; {shows}")
        elif what == "remove":
            number = receiver.pk
            receivers.remove(receiver)
            self.stdout.write(f"removed {number}: {receiver}")
        elif receivers.switch(receiver, on=what == "on", why="by a person"):
            self.stdout.write(f"{receiver.pk} is {what}")
        else:
            raise HunchError(f"{receiver.pk} is {what} already")


def _found(study: Study, number: int) -> Receiver:
    receiver = study.receivers.select_related("study").filter(pk=number).first()
    if receiver is None:
        raise NotFound(f"{study.slug} has no receiver {number}; `receivers {study.slug}` lists them")
    return receiver
