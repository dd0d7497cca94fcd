"""`manage.py leaderboard SLUG`: how every predictor of a study did on later answers."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from survey.console.command import HunchCommand
from survey.console.text_tables import decimal, table
from survey.contracts.instruments import Metric
from survey.exceptions import HunchError
from survey.services.answers.conditions import in_words, read_condition
from survey.services.stages.leaderboard import (
    COLUMNS_NOTE,
    MAJORITIES,
    MAJORITIES_NOTE,
    LeaderboardLine,
    MetricValue,
    boards_of,
    carried_by,
    leaderboard,
    learning_of,
    read_by,
    shown_metrics,
    sorts_of,
)
from survey.services.studies import finding

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
        study = finding.find_study(slug)
        learning = learning_of(study)
        metrics = shown_metrics(learning)
        parts = [one.name for one in learning.parts] if learning is not None else []
        for flag, given, known in (("--sort", sort, list(sorts_of(learning))), ("--part", part, parts)):
            if given is not None and given not in known:
                raise HunchError(f"{flag}: {given!r} is not one of {', '.join(known) or 'none'}", code="invalid")
        level = in_words(read_condition(study, [condition] if condition else []))
        lines = leaderboard(study, sort=sort, level=level)
        if not lines:
            self.stdout.write(f"{study.slug} has trained no predictor yet")
            return
        heads = [metric.head for metric in metrics]
        header = [
            *HEADER,
            *(
                title
                for metric in metrics
                for title in (metric.head, "95 %", *(["bits"] if metric.is_log_score else []))
            ),
            *(title for head in heads for title in (f"{head} - main", "95 %")),
        ]
        alone, beside = boards_of(lines)
        if alone:
            self.stdout.write(table(header, [_row(line, part or parts[0], metrics) for line in alone]))
        if beside:
            self.stdout.write("\nWith columns beside the texts")
            self.stdout.write(table(header, [_row(line, part or parts[0], metrics) for line in beside]))
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


def _row(line: LeaderboardLine, part: str, metrics: Sequence[Metric]) -> list[str]:
    figures: list[str] = []
    for metric in metrics:
        figure = line.figures[metric.name][part]
        figures += [*_cells(figure), *([decimal(figure.bits, 3)] if metric.is_log_score else [])]
    for metric in metrics:
        figures += _cells(line.difference[metric.name][part])
    evaluated = [_known(line.evaluated_on), line.answers or "-", line.weighting or "-", _known(line.n)]
    return [line.predictor, line.run.role, str(line.trained_after), *evaluated, *figures]


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)


def _cells(figure: MetricValue) -> list[str]:
    if figure.value is None:
        return ["-", ""]
    interval = "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"
    return [f"{figure.value:.3f}", interval]
