"""`manage.py fake_prolific`: a fake Prolific on this machine, for trying out a whole study."""

import time
from argparse import ArgumentParser
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.panels.prolific.fake import WORKSPACE, FakeProlific, FakeServer, deliver

LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Command(HunchCommand):
    help = "Pretend to be Prolific on a loopback port, until Ctrl-C: its API, its people, its webhooks."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8100)
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--currency", choices=["GBP", "USD"], default="USD", help="of its account")
        parser.add_argument("--busy-every", type=int, default=0, metavar="N", help="answer every Nth call with 429")
        parser.add_argument(
            "--trouble-every", type=int, default=0, metavar="N", help="let every Nth call go wrong in some way"
        )
        parser.add_argument("--signed", action="store_true", help="sign entry links")
        parser.add_argument(
            "--webhooks",
            default=f"http://127.0.0.1:{settings.HUNCH_PORT}/hooks/prolific",
            metavar="URL",
            help="where events are posted, late, twice and out of order; loopback only",
        )

    def handle(self, *args: Any, port: int, seed: int, signed: bool, currency: str, **options: Any) -> None:
        if urlsplit(options["webhooks"]).hostname not in LOOPBACK:
            raise HunchError(
                "--webhooks: a fake panel posts only to this machine: http://127.0.0.1:PORT/hooks/prolific"
            )
        trouble = {"busy_every": options["busy_every"], "trouble_every": options["trouble_every"]}
        fake = FakeProlific(seed=seed, signs_entry=signed, currency=currency, **trouble)
        fake.test_people.append(fake.new_id())
        with FakeServer(fake, port=port):
            self.stdout.write(f"Participants' page  {fake.url}/")
            self.stdout.write(f"For Hunch           HUNCH_PROLIFIC_URL={fake.url} HUNCH_PROLIFIC_TOKEN={fake.token}")
            self.stdout.write(f"                    HUNCH_PROLIFIC_WEBHOOK_SECRET={fake.secret}")
            self.stdout.write(f"completion_url      {fake.url}/submissions/complete?cc={{code}}")
            self.stdout.write(f"For its balance     HUNCH_PROLIFIC_WORKSPACE={WORKSPACE}")
            self.stdout.write("Ctrl-C ends it, and it forgets everything.")
            try:
                while True:
                    time.sleep(3)
                    deliver(fake, options["webhooks"])
            except KeyboardInterrupt:
                self.stdout.write("Stopped.")
