"""`manage.py export SLUG --out DIR`: the study's answers, the instrument's further files and the codebook."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand, add_condition
from survey.contracts.reports import ReportArguments
from survey.exceptions import HunchError
from survey.models import Study
from survey.services.answers import conditions
from survey.services.base import audit_chain, auditing
from survey.services.base.job_kinds import Work, find_kind
from survey.services.results.export import files
from survey.services.studies import lookup


class Command(HunchCommand):
    help = (
        "Write a study's answers as CSV, with their codebook. Files of the same names are replaced. With --format, "
        "--table or --since: one ZIP, the same as pages and the API make."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to write to")
        add_condition(parser)
        for argument in find_kind("export").arguments:
            if argument.name != "condition":
                parser.add_argument(
                    f"--{argument.name}", action="append", default=[], metavar=argument.name.upper(), help=argument.help
                )

    def handle(self, *args: Any, slug: str, out: Path, condition: list[str], **options: Any) -> None:
        study = lookup.find_study(slug)
        asked = {name: options[name] for name in ("format", "table", "since") if options[name]}
        if asked:
            self._zip(study, out, {**asked, "condition": condition})
        else:
            self._folder(study, out, condition)
        head = audit_chain.head()
        self.stdout.write(f"head of the audit: seal {head.number}, {head.sha256}")

    def _folder(self, study: Study, out: Path, condition: list[str]) -> None:
        levels = conditions.read_condition(study, condition)
        chosen: dict[str, Any] = {"condition": levels} if levels else {}
        auditing.record("export_answers", study, form="folder", **chosen)
        audit_chain.seal_entries()  # So that the export holds its own entry, with its seal.
        for entry in files.write_export(study, out, levels=levels):
            rows = "" if entry.rows is None else f" ({entry.rows} row{'' if entry.rows == 1 else 's'})"
            self.stdout.write(f"wrote {entry.path}{rows}")

    def _zip(self, study: Study, out: Path, asked: dict[str, Any]) -> None:
        kind = find_kind("export")
        arguments = kind.checked(study, asked)
        auditing.record("export_answers", study, form="zip", **asked)
        try:
            out.mkdir(parents=True, exist_ok=True)
            made = kind.make(Work(study, ReportArguments(arguments), out, lambda _done, _total, _words: None, None))
        except OSError as exc:
            raise HunchError(f"{out}: cannot be written: {exc.strerror}") from exc
        for name, rows in made["rows"].items():
            self.stdout.write(f"{name}: {rows} row{'' if rows == 1 else 's'}")
        self.stdout.write(f"wrote {out / f'{study.slug}-export.zip'}")
        self.stdout.write(f"for the next increment: --since {made['next_since']}")
