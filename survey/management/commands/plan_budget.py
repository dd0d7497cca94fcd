"""`manage.py plan_budget FILE.toml`: simulates what a study would find, how precise it would be and what it costs."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.utils.module_loading import import_string

from survey.console.progress_bars import bar
from survey.console.reports import ReportCommand
from survey.contracts import instruments
from survey.contracts.budget_files import MOST_STUDIES
from survey.contracts.budgets import BudgetPlanner
from survey.exceptions import FileErrors, HunchError, Problem
from survey.services.base.toml_files import read_toml
from survey.services.results import budgets
from survey.study_file.blocks import InstrumentConfig


class Command(ReportCommand):
    help = "Simulate a study under several policies, from a file such as studies/example-budget.toml."
    needs_database = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="FILE", type=Path)
        parser.add_argument("--studies", type=int, metavar="N", help="simulated studies of each policy, 2 or more")
        parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="K", help="processes")
        self.add_output_arguments(parser, out="write the tables (CSV), figures (SVG), sentences")

    def handle(self, *args: Any, path: Path, studies: int | None, jobs: int, out: Path | None, **options: Any) -> None:
        raw = read_toml(path)
        planner = _planner(path, raw.pop("instrument", InstrumentConfig.model_fields["kind"].default))
        if studies is not None and not 2 <= studies <= MOST_STUDIES:
            raise HunchError(f"--studies: {studies} is not from 2 to {MOST_STUDIES:,}")
        if jobs < 1:
            raise HunchError(f"--jobs: {jobs} is not 1 or more")
        budget = budgets.read(planner, raw, path=path, studies=studies)
        if budget.needs_database:
            self.require_database()
        total = budgets.simulated_studies(budget)
        with bar(total=total, name="simulated studies", unit=" studies") as progress_bar:
            report = budgets.report(budget, source=str(path), jobs=jobs, progress=lambda: progress_bar.update())
        self.show_result(report, out=out)


def _planner(path: Path, name: object) -> type[BudgetPlanner[Any, Any]]:
    """The planner of the instrument that a file names.

    Raises:
        FileErrors: there is no such instrument, or it plans no budgets; names those that do.
    """
    able = [name for name in instruments.names() if instruments.kind(name).budget_planner]
    if name not in able:
        message = f"{name!r} plans no budgets; these instruments do: {', '.join(able)}"
        raise FileErrors([Problem(str(path), None, "instrument", message)])
    planner: type[BudgetPlanner[Any, Any]] = import_string(instruments.kind(str(name)).budget_planner)
    return planner
