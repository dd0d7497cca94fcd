"""`manage.py leaderboard SLUG`: how every predictor of a study did on later answers."""

from argparse import ArgumentParser
from typing import Any

from predictors.evaluation import PARTS_BY_OUTCOME as PARTS
from survey.console.command import HunchCommand
from survey.console.tables import table
from survey.services.answers.conditions import in_words, read_condition
from survey.services.stages.leaderboard import SORTS, Line, MetricValue, leaderboard
from survey.services.studies import finding

HEADER = ["predictor", "role", "after", "on", "answers", "weighting", "n"]


class Command(HunchCommand):
    help = "Show how a study's predictors did on answers that they had not seen."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--sort", choices=list(SORTS), default="evaluated", help="default: by stage and answers")
        parser.add_argument(
            "--condition", default="", metavar="FACTOR=LEVEL", help="judged by the answers under this level alone"
        )
        parser.add_argument("--part", choices=PARTS, default="overall", help="the answers after a correct one, ...")

    def handle(self, *args: Any, slug: str, sort: str, part: str, condition: str, **options: Any) -> None:
        study = finding.find_study(slug)
        level = in_words(read_condition(study, [condition] if condition else []))
        lines = leaderboard(study, sort=sort, level=level)
        if not lines:
            self.stdout.write(f"{study.slug} has trained no predictor yet")
            return
        header = [*HEADER, "AUC", "95 %", "NLL", "95 %", "AUC - main", "95 %", "NLL - main", "95 %"]
        self.stdout.write(table(header, [_row(line, part) for line in lines]))
        self.stdout.write("")
        self.stdout.write("AUC: higher is better, a coin toss has 0.5. NLL: lower is better, a coin toss has 0.693.")
        self.stdout.write("weighting design: over all candidates, by the design's weights; none: answers as they came.")


def _row(line: Line, part: str) -> list[str]:
    figures = [
        cell
        for found in (line.figures["auc"], line.figures["nll"], line.difference["auc"], line.difference["nll"])
        for cell in _cells(found[part])
    ]
    evaluated = [_known(line.evaluated_on), line.answers or "-", line.weighting or "-", _known(line.n)]
    return [line.predictor, line.run.role, str(line.trained_after), *evaluated, *figures]


def _known(value: int | None) -> str:
    return "-" if value is None else str(value)


def _cells(figure: MetricValue) -> list[str]:
    if figure.value is None:
        return ["-", ""]
    interval = "" if figure.low is None or figure.high is None else f"{figure.low:.3f} to {figure.high:.3f}"
    return [f"{figure.value:.3f}", interval]
