"""`manage.py leaderboard SLUG`: how every predictor of a study did on later answers."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from survey.console.command import HunchCommand
from survey.contracts.instruments import Metric
from survey.exceptions import HunchError
from survey.figures import Column, FigureColumn, Table, rendering
from survey.services.answers.conditions import in_words, read_condition
from survey.services.stages.leaderboard import (
    COLUMNS_NOTE,
    MAJORITIES,
    MAJORITIES_NOTE,
    LeaderboardLine,
    bits_of,
    boards_of,
    carried_by,
    leaderboard,
    learning_of,
    read_by,
    shown_metrics,
    sorts_of,
)
from survey.services.studies import lookup

HEADER = ["predictor", "role", "after", "on", "answers", "weighting", "n"]


class Command(HunchCommand):
    help = "Show how a study's predictors did on answers that they had not seen."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument(
            "--sort",
            default="evaluated",
            help="evaluated (by stage and answers, the default), trained, predictor, n, or a metric of the instrument",
        )
        parser.add_argument(
            "--condition", default="", metavar="FACTOR=LEVEL", help="judge only by the answers under this level"
        )
        parser.add_argument(
            "--part", help="a part of the answers that the instrument names; all of them where none is given"
        )

    def handle(self, *args: Any, slug: str, sort: str, part: str | None, condition: str, **options: Any) -> None:
        study = lookup.find_study(slug)
        learning = learning_of(study)
        metrics = shown_metrics(learning)
        parts = [part.name for part in learning.parts] if learning is not None else []
        for flag, value, known in (("--sort", sort, list(sorts_of(learning))), ("--part", part, parts)):
            if value is not None and value not in known:
                raise HunchError(f"{flag}: {value!r} is not one of {', '.join(known) or 'none'}", code="invalid")
        level = in_words(read_condition(study, [condition] if condition else []))
        lines = leaderboard(study, sort=sort, level=level)
        if not lines:
            self.stdout.write(f"{study.slug} has trained no predictor yet")
            return
        alone, beside = boards_of(lines)
        for title, board in (("", alone), ("\nWith columns next to the texts", beside)):
            if board:
                if title:
                    self.stdout.write(title)
                (sheet,) = rendering.sheets_of(_table(board, part or parts[0], metrics))
                self.stdout.write(rendering.aligned(sheet.header, sheet.texts()))
        if beside:
            self.stdout.write(COLUMNS_NOTE)
            for sentence in read_by(lines):
                self.stdout.write(sentence)
        self.stdout.write("")
        self.stdout.write(" ".join(metric.hint for metric in metrics))
        self.stdout.write("weighting design: over all candidates, by the design's weights; none: answers as they came.")
        if carried := carried_by(lines):
            self.stdout.write("How few answers decide who is ahead, an upper bound of the fewest:")
            self.stdout.write("\n".join(carried))
        if any(line.answers == MAJORITIES for line in lines):
            self.stdout.write(MAJORITIES_NOTE)


def _table(lines: Sequence[LeaderboardLine], part: str, metrics: Sequence[Metric]) -> Table:
    columns = [Column(name, "text", "") for name in HEADER]
    for metric in metrics:
        columns.append(FigureColumn(metric.head, "number", metric.title, digits=3))
        if metric.is_log_score:
            columns.append(Column(f"{metric.head}, bits", "number", metric.title, digits=3))
    columns += [FigureColumn(f"{metric.head} - main", "number", metric.title, digits=3) for metric in metrics]
    return Table("leaderboard", "Leaderboard", columns, [_row(line, part, metrics) for line in lines])


def _row(line: LeaderboardLine, part: str, metrics: Sequence[Metric]) -> dict[str, Any]:
    counts = (line.trained_after, line.evaluated_on, line.answers, line.weighting, line.n)
    row: dict[str, Any] = dict(zip(HEADER, (line.predictor, line.run.role, *counts), strict=True))
    for metric in metrics:
        figure = line.figures[metric.name][part]
        row |= {metric.head: figure, f"{metric.head} - main": line.difference[metric.name][part]}
        if metric.is_log_score:
            row[f"{metric.head}, bits"] = bits_of(figure)
    return row
