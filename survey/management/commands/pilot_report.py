"""`manage.py pilot_report SLUG`: what a study's pilot taught."""

from argparse import ArgumentParser
from typing import Any

from survey.console.command import HunchCommand
from survey.console.tables import percent, table
from survey.services.results import piloting
from survey.services.studies import finding


class Command(HunchCommand):
    help = "What a pilot taught: minutes and losses by screen, checks that failed, remarks, the pay by the hour."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")

    def handle(self, *args: Any, slug: str, **options: Any) -> None:
        report = piloting.pilot_report(finding.find_study(slug))
        states = ", ".join(f"{count} {state}" for state, count in report.by_state.items())
        self._say(f"{slug}: {report.begun} people began the pilot, {report.finished} finished ({states})")
        if report.withdrawn:
            self._say(f"{report.withdrawn} took their answers back and are left out")
        if report.minutes:
            spread = report.minutes
            self._say(f"minutes: median {spread.median:.1f}, quartiles {spread.lower:.1f} and {spread.upper:.1f}")
        if report.pay:
            self._say(f"pay: {report.pay}" + (" (too low)" if report.pay.is_too_low else ""))
        self._table(
            ["screen", "n", "median s", "quartiles", "left here"],
            [
                [
                    f"{line.kind} {line.name}".strip(),
                    str(line.seconds.n) if line.seconds else "",
                    f"{line.seconds.median:.1f}" if line.seconds else "",
                    f"{line.seconds.lower:.1f}, {line.seconds.upper:.1f}" if line.seconds else "",
                    str(line.left),
                ]
                for line in report.screens
            ],
        )
        self._table(
            ["check", "people", "failed", "failed again", "question"],
            [
                [
                    line.name,
                    str(line.shown),
                    str(line.failed),
                    "" if line.failed_again is None else str(line.failed_again),
                    " ".join(line.question.split())[:60],
                ]
                for line in report.checks
            ],
        )
        self._table(
            ["outcome", "mean", "answers"], [[name, f"{mean:.3f}", str(n)] for name, mean, n in report.outcomes]
        )
        self._table(
            ["exactly", "share", "answers"],
            [[f"{line.what} {line.value}", percent(line.share), str(line.n)] for line in report.shares],
        )
        for remark in report.remarks:
            self._say(f"{remark.where}: {' '.join(remark.text.split())}")

    def _say(self, line: str) -> None:
        self.stdout.write(line)

    def _table(self, header: list[str], rows: list[list[str]]) -> None:
        if rows:
            self._say("")
            self._say(table(header, rows))
