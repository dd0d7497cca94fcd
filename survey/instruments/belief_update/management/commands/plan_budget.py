"""`manage.py plan_budget FILE.toml`: simulates what a study would find, how precise it would be and what it costs."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from survey.console.progress_bars import bar
from survey.console.reports import ReportCommand
from survey.exceptions import HunchError
from survey.instruments.belief_update.reports import budget_tables, budgeting


class Command(ReportCommand):
    help = "Simulate a study under several policies, from a file such as studies/example-budget.toml."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path)
        parser.add_argument("--studies", type=int, metavar="N", help="simulated studies of each policy, 2 or more")
        parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="K", help="processes")
        parser.add_argument("--out", type=Path, metavar="DIR", help="write the tables (CSV), figures (SVG), sentences")

    def handle(self, *args: Any, path: Path, studies: int | None, jobs: int, out: Path | None, **options: Any) -> None:
        config = budgeting.read_budget(path)
        if studies is not None:
            if not 2 <= studies <= 10_000:
                raise HunchError(f"--studies: {studies} is not from 2 to 10,000")
            config = config.model_copy(update={"studies": studies})
        if jobs < 1:
            raise HunchError(f"--jobs: {jobs} is not 1 or more")
        if config.bank.name:
            self.require_database()
        with bar(total=budgeting.simulated_studies(config), name="simulated studies", unit=" studies") as shown:
            found = budgeting.plan_budget(config, jobs=jobs, progress=lambda: shown.update())
        self.show_findings(budget_tables.findings(found), out=out)
