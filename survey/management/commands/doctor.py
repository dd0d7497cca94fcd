"""`manage.py doctor`: whether every part of this installation works, and what to do where one does not."""

from typing import Any

from survey.console.command import HunchCommand
from survey.operation.doctor import Grade, examine


class Command(HunchCommand):
    help = "Look at database, Redis, workers, beat, disk, clock, keys, hosts, TLS, e-mail and panels; change nothing."
    needs_database = False  # That it is missing is one of the findings.

    def handle(self, *args: Any, **options: Any) -> None:
        is_broken = False
        for finding in examine():
            self.stdout.write(f"{finding.grade:8} {finding.part}: {finding.what}")
            if finding.to_do:
                self.stdout.write(f"{'':8} -> {finding.to_do}")
            is_broken = is_broken or finding.grade == Grade.BROKEN
        if is_broken:
            raise SystemExit(1)
