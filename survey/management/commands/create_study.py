"""`manage.py create_study FILE.toml`: a study with its stages (draft) and completion codes."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model

from survey.console.command import HunchCommand
from survey.exceptions import NotFound
from survey.services.studies import creating


class Command(HunchCommand):
    help = "Create a study from a study file. docs/study-file.md lists its keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")
        parser.add_argument("--owner", metavar="USER", help="the account that owns it, may spend and invites others")

    def handle(self, *args: Any, path: str, owner: str | None = None, **options: Any) -> None:
        user = get_user_model().objects.filter(username=owner, is_active=True).first() if owner else None
        if owner and user is None:
            raise NotFound(f"--owner: no active user is called {owner!r}; the admin makes one")
        study = creating.create_study(text=creating.read_study_file(path), source_name=path, by=user)
        stages = study.stages.count()
        self.stdout.write(
            f"created study {study.slug} on {study.bank} with {stages} stage{'s' if stages > 1 else ''}; "
            f"next: open_stage {study.slug}"
        )
        if user is None:
            self.stderr.write(f"nobody but superusers sees it yet; add people: members {study.slug} set USER owner")
        for remark in creating.remarks_on(study):
            self.stdout.write(f"note: {remark}")
