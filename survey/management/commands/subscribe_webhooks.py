"""`manage.py subscribe_webhooks --workspace ID --url URL`: have the panel report changes at once."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.exceptions import HunchError
from survey.panels.prolific.client import open_client

EVENTS = ("submission.status.change", "study.status.change")


class Command(HunchCommand):
    help = (
        "Make the workspace's webhook secret, which replaces the one before, and subscribe to changes of submissions "
        "and studies. The secret is shown once: set HUNCH_PROLIFIC_WEBHOOK_SECRET to it."
    )
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, metavar="ID", help="the workspace's id at the panel")
        parser.add_argument("--url", required=True, metavar="URL", help="https://YOUR-HOST/hooks/prolific")

    def handle(self, *args: Any, workspace: str, url: str, **options: Any) -> None:
        if not url.startswith("https://"):
            raise HunchError("--url: the panel posts only to https:// addresses")
        with open_client() as client:
            # Show it before anything else can fail: the previous secret stops working now.
            self.stdout.write(f"HUNCH_PROLIFIC_WEBHOOK_SECRET={client.new_webhook_secret(workspace)}")
            for event in EVENTS:
                client.subscribe(workspace, event, url)
                self.stdout.write(f"subscribed to {event}")
