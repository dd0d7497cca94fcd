"""`manage.py export SLUG --out DIR`: the study's answers, the instrument's further files and the codebook."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand, add_condition
from survey.services.answers import conditions
from survey.services.base import audit_chain, auditing
from survey.services.results.export import files
from survey.services.studies import finding


class Command(HunchCommand):
    help = "Write a study's answers as CSV, with their codebook. Files of the same names are replaced."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write to")
        add_condition(parser)

    def handle(self, *args: Any, slug: str, out: Path, condition: list[str], **options: Any) -> None:
        study = finding.find_study(slug)
        levels = conditions.read_condition(study, condition)
        chosen: dict[str, Any] = {"condition": levels} if levels else {}
        auditing.record("export_answers", study, form="folder", **chosen)
        audit_chain.seal_entries()  # So that the export holds its own entry, with its seal.
        written = files.write_export(study, out, levels=levels)
        for entry in written:
            rows = "" if entry.rows is None else f" ({entry.rows} row{'' if entry.rows == 1 else 's'})"
            self.stdout.write(f"wrote {entry.path}{rows}")
        head = audit_chain.head()
        self.stdout.write(f"head of the audit: seal {head.number}, {head.sha256}")
