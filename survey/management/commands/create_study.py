"""`manage.py create_study FILE.toml`: a study with its stages (draft) and completion codes."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.services.studies import creating


class Command(HunchCommand):
    help = "Create a study from a study file. docs/study-file.md lists its keys."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE")

    def handle(self, *args: Any, path: str, **options: Any) -> None:
        study = creating.create_study(text=creating.read_study_file(path), source_name=path)
        stages = study.stages.count()
        self.stdout.write(
            f"created study {study.slug} on {study.bank} with {stages} stage{'s' if stages > 1 else ''}; "
            f"next: open_stage {study.slug}"
        )
        for remark in creating.remarks_on(study):
            self.stdout.write(f"note: {remark}")
