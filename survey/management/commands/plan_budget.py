"""`manage.py plan_budget FILE.toml`: what a study would find, how sure it would be and what it costs, by simulation."""

import csv
import math
import os
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from survey.console.command import HunchCommand
from survey.console.progress import bar
from survey.console.tables import table
from survey.exceptions import HunchError
from survey.instruments.belief_update.figures import budget as budget_figures
from survey.instruments.belief_update.reports import budgeting
from survey.instruments.belief_update.reports.budgeting import Budget
from survey.services.base.writing import replace_file

COLUMNS = (
    *("policy", "studies", "answers", "changes_found", "monte_carlo_error", "changes_per_answer"),
    *("width_share", "width_change", "width_size", "coverage_share", "naive_bias"),
    *("detectable_outcome", "detectable_condition", "detectable_evidence", "auc_last", "auc_highest"),
    *("people", "complete", "hours", "rewards", "fees", "cost", "currency"),
)
STAGE_COLUMNS = ("policy", "stage", "answers", "changes_found", "auc")


class Command(HunchCommand):
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
        with bar(total=config.studies * len(config.policies), name="simulated studies", unit=" studies") as shown:
            found = budgeting.plan_budget(config, jobs=jobs, progress=lambda: shown.update())
        for line in _page(found):
            self.stdout.write(line)
        if out is not None:
            for written in _write(found, out):
                self.stdout.write(f"wrote {written}")


def _percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{100 * value:.{digits}f}"


def _page(budget: Budget) -> Iterator[str]:
    costs, truth = budget.costs, budget.config.truth
    yield f"{budget.config.title}: {budget.config.studies} simulated studies of each policy"
    yield (
        f"Truth: {_percent(truth.changes_incorrect, 0)} % of beliefs change after an incorrect, "
        f"{_percent(truth.changes_correct, 0)} % after a correct answer; logit sd {truth.pair_sd:g} between pairs "
        f"({_percent(truth.hidden_share, 0)} % of it in no text) and {truth.respondent_sd:g} between people."
    )
    yield (
        f"{costs.people} people begin, {costs.complete:.0f} finish; {costs.hours:,.0f} hours; "
        f"{costs.rewards:,.2f} rewards + {costs.fees:,.2f} fees = {costs.total:,.2f} {costs.currency}."
    )
    yield ""
    yield "What each policy finds, and how wide its final 95 % intervals over all pairs are"
    yield table(
        ["policy", "changes found", "an answer", "share (points)", "change (points)", "size (points)", "naive bias"],
        [
            [
                one.name,
                f"{one.total:,.0f} +- {1.96 * one.found_error:.0f}",
                f"{one.per_answer:.3f}",
                _percent(one.widths[0]),
                f"{one.widths[1]:.2f}" if math.isfinite(one.widths[1]) else "-",
                f"{one.widths[2]:.2f}" if math.isfinite(one.widths[2]) else "-",
                f"{100 * one.naive_bias:+.1f}",
            ]
            for one in budget.outlooks
        ],
    )
    yield ""
    yield "Smallest difference of shares found with 80 % power (two-sided, 5 %), in points"
    yield table(
        ["policy", "after incorrect against correct", "condition A against B", "evidence against none"],
        [[one.name, *(_percent(size) for size in one.detectable)] for one in budget.outlooks],
    )
    yield ""
    yield "AUC over all pairs of the predictor trained after each stage"
    yield table(
        ["policy", *(f"stage {stage + 1}" for stage in range(len(budget.config.study.sittings))), "highest possible"],
        [[one.name, *(f"{auc:.3f}" for auc in one.auc), f"{one.best_auc:.3f}"] for one in budget.outlooks],
    )
    yield ""
    yield "Changes found in each stage"
    yield table(
        ["policy", *(f"stage {stage + 1}" for stage in range(len(budget.config.study.sittings)))],
        [[one.name, *(f"{found:.0f}" for found in one.found)] for one in budget.outlooks],
    )
    for sentence in budget.sentences():
        yield ""
        yield sentence


def _write(budget: Budget, folder: Path) -> list[Path]:
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, header, rows in (
            ("policies.csv", COLUMNS, list(_rows(budget))),
            ("stages.csv", STAGE_COLUMNS, list(_stage_rows(budget))),
        ):
            with replace_file(folder / name) as path, path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(header)
                writer.writerows(rows)
            written.append(folder / name)
        with replace_file(folder / "sentences.txt") as path:
            path.write_text("\n\n".join(budget.sentences()) + "\n", encoding="utf-8")
        written.append(folder / "sentences.txt")
        for name, draw in (("found.svg", budget_figures.found_by_stage), ("auc.svg", budget_figures.auc_by_stage)):
            with replace_file(folder / name) as path:
                draw(budget.outlooks, path)
            written.append(folder / name)
    except OSError as exc:
        raise HunchError(f"{folder}: cannot be written: {exc.strerror}") from exc
    return written


def _rows(budget: Budget) -> Iterator[list[Any]]:
    costs = budget.costs
    for one in budget.outlooks:
        yield [
            *(one.name, one.studies, sum(one.answers), one.total, one.found_error, one.per_answer),
            *(*one.widths, one.coverage, one.naive_bias),
            *("" if size is None else size for size in one.detectable),
            *(one.auc[-1], one.best_auc),
            *(costs.people, costs.complete, costs.hours, costs.rewards, costs.fees, costs.total, costs.currency),
        ]


def _stage_rows(budget: Budget) -> Iterator[list[Any]]:
    for one in budget.outlooks:
        for stage, values in enumerate(zip(one.answers, one.found, one.auc, strict=True), start=1):
            yield [one.name, stage, *values]
