"""Reports in the terminal: their lines, tables and notes, and their files."""

import json
from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from survey.contracts.reports import Report, ReportResult
from survey.exceptions import HunchError
from survey.figures import rendering
from survey.models import Study
from survey.services.results import reports
from survey.services.results.png import drawer
from survey.services.studies.lookup import find_study

from .command import HunchCommand


def page(findings: ReportResult, *, out: bool = False) -> Iterator[str]:
    """What people read of a report, a part at a time. `out`: its files are written too."""
    yield from findings.said
    yield from findings.lines
    for table in findings.tables:
        yield from rendering.terminal(table)
    if findings.pictures and not out:
        yield ""
        for picture in findings.pictures:
            yield f"{picture.title}: --out DIR draws {picture.name}.svg"


class ReportCommand(HunchCommand):
    """A command that shows a report of a study. A subclass says which, and takes its arguments its own way."""

    png = False  # figures as PNG too

    def add_output_arguments(
        self,
        parser: ArgumentParser,
        *,
        required: bool = False,
        out: str = "write tables as CSV, figures as SVG and all as JSON",
    ) -> None:
        parser.add_argument("--out", type=Path, required=required, metavar="DIR", help=out)
        add_png_argument(parser)

    def check_options(self, options: Mapping[str, Any]) -> None:
        self.png = check_png(options)

    def show(
        self,
        study: Study,
        name: str,
        arguments: Mapping[str, Sequence[str]],
        *,
        out: Path | None,
        as_json: bool = False,
    ) -> None:
        """Make the report, print it, and write its files where a folder is given.

        Raises:
            HunchError: an argument cannot be used, there is nothing to show, or the folder cannot be written.
        """
        findings = self.with_more(reports.make(study, name, arguments))
        if out is not None or as_json:
            reports.record_reading(study, name, arguments, by=None, via="command")
        if as_json:
            self.stdout.write(json.dumps(reports.as_json(study, name, findings), ensure_ascii=False, indent=1))
        else:
            self.print_page(findings, out=out is not None)
        if out is not None:
            for path in reports.write(study, name, findings, out, png=self.png):
                # A program that reads the JSON from a pipe must find nothing else in it.
                (self.stderr if as_json else self.stdout).write(f"wrote {path}")

    def with_more(self, findings: ReportResult) -> ReportResult:
        """The findings with what options of the command add."""
        return findings

    def show_result(self, findings: ReportResult, *, out: Path | None) -> None:
        """The same for findings that are about no study: files have no JSON with all of it.

        Raises:
            HunchError: the folder cannot be written.
        """
        self.print_page(findings, out=out is not None)
        if out is not None:
            for path in reports.write_files(reports.writers_of(findings, png=self.png), out):
                self.stdout.write(f"wrote {path}")

    def print_page(self, findings: ReportResult, *, out: bool) -> None:
        for note in findings.notes:
            self.stderr.write(f"note: {note}")
        for part in page(findings, out=out):
            self.stdout.write(part)


def add_png_argument(parser: ArgumentParser) -> None:
    parser.add_argument("--png", action="store_true", help="with --out: write each figure as PNG too")


def check_png(options: Mapping[str, Any]) -> bool:
    """Whether figures are to be PNG too.

    Raises:
        HunchError: they cannot be; says what to do.
    """
    if not options.get("png"):
        return False
    if options.get("out") is None:
        raise HunchError("--png: needs a folder to write to; add --out DIR")
    drawer()
    return True


def add_report_arguments(parser: ArgumentParser, report: type[Report]) -> None:
    """An option for each argument of the report, by its name with hyphens."""
    for argument in report.arguments:
        default = f" ({argument.default})" if argument.default else ""
        more = "; may be given again" if argument.many else ""
        parser.add_argument(
            f"--{argument.name.replace('_', '-')}",
            dest=argument.name,
            action="append",
            default=[],
            metavar="VALUE",
            help=f"{argument.help}{default}{more}",
        )


def report_arguments_from(
    report: type[Report], options: Mapping[str, Any], *, lists: Collection[str] = ()
) -> dict[str, list[str]]:
    """What was given for the report's arguments; those of `lists` may also hold several values, parted by commas."""
    arguments = {argument.name: list(options[argument.name]) for argument in report.arguments}
    for name in lists:
        arguments[name] = [part.strip() for text in arguments[name] for part in text.split(",")]
    return {name: texts for name, texts in arguments.items() if texts}


class ShortName(ReportCommand):
    """A command that is a short name of one report of a study: its options are the report's arguments, which the report
    itself checks. A subclass says which report, under which name."""

    report: ClassVar[type[Report]]
    name: ClassVar[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        add_report_arguments(parser, self.report)
        self.add_output_arguments(parser)

    def handle(self, *args: Any, slug: str, out: Path | None, **options: Any) -> None:
        self.show(find_study(slug), self.name, report_arguments_from(self.report, options), out=out)
