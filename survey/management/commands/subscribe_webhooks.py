"""`manage.py subscribe_webhooks --workspace ID --url URL`: have the panel report changes at once."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.panels.prolific.client import open_client

EVENTS = ("submission.status.change", "study.status.change")


class Command(HunchCommand):
    help = (
        "Subscribe to changes of submissions and studies, where the workspace has no such subscription yet, and show "
        "the secret that signs its webhooks: set HUNCH_PROLIFIC_WEBHOOK_SECRET to it. A workspace has one secret for "
        "all its tools, so it is only made where there is none."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="ID", help="the workspace's id at the panel")
        parser.add_argument("--url", required=True, metavar="URL", help="https://YOUR-HOST/hooks/prolific")
        parser.add_argument(
            "--new-secret",
            action="store_true",
            help="replace the secret, which the workspace's other tools use, too",
        )

    def handle(self, *args: Any, workspace: str, url: str, new_secret: bool, **options: Any) -> None:
        if not url.startswith("https://"):
            raise HunchError("--url: the panel posts only to https:// addresses")
        with open_client() as client:
            there = {
                (str(subscription.get("event_type")), str(subscription.get("target_url")))
                for subscription in client.subscriptions(workspace)
            }
            secret = "" if new_secret else client.webhook_secret(workspace)
            # Show it before anything else can fail: where it was replaced, the previous one stops working now.
            self.stdout.write(f"HUNCH_PROLIFIC_WEBHOOK_SECRET={secret or client.new_webhook_secret(workspace)}")
            for event in EVENTS:
                if (event, url) in there:
                    self.stdout.write(f"subscribed to {event} already")
                    continue
                client.subscribe(workspace, event, url)
                self.stdout.write(f"subscribed to {event}")
