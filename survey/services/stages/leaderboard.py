"""Every training of a study's predictors and how it did on later answers, as lines of one table.

The instrument (`Learning`) says which metrics judge predictors, and on which parts of the answers.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from predictors import training as predictor_training
from predictors.errors import PredictorError
from predictors.evaluation.scoring import in_bits
from predictors.hardness import MODELS
from survey.contracts import instruments
from survey.contracts.instruments import Learning, Metric
from survey.contracts.tables import Column
from survey.figures import Figure
from survey.models import Evaluation, PredictorRun, Study

SAMPLED, HOLDOUT, MAJORITIES = "sampled", "holdout", "majorities"
MAJORITIES_NOTE = (
    "Majorities: the items of a test stage, each once, by the label of most of its answers. They are extremes of "
    "the scores, so that these figures are none of all items."
)
COLUMNS_NOTE = (
    "These read how hard the target is in addition to the texts: people's priors, from training answers alone, or "
    "language models' answers. That is another task than the paper's, which is text alone, so that they are not ranked "
    "with the predictors of texts."
)
LEVELS = "levels"  # In `Evaluation.metrics`: the same under each FACTOR=LEVEL.
# In a difference: so few answers decide which of the two predictors has the better log score.
LOST = "lost"
# In the result of a training and in `Evaluation.metrics`: what columns next to the texts were made of.
SOURCES = "sources"
# What `Evaluation.metrics` calls it -> whose answers, how they count.
WEIGHTINGS = {
    "weighted": (SAMPLED, "design"),
    "naive": (SAMPLED, "none"),
    "holdout": (HOLDOUT, "design"),
    "majority": (MAJORITIES, "none"),
}


def bits_of(figure: Figure) -> float | None:
    """A log score in bits; it is stored in nats."""
    return None if figure.value is None else in_bits(figure.value)


Figures = Mapping[str, Mapping[str, Figure]]  # by metric, then by part


def _in_a_line(value: Any) -> str:
    """A setting's value; of a template's text its hash, which two templates do not share."""
    if isinstance(value, list):
        return "+".join(map(str, value))
    text = str(value)
    return hashlib.sha256(text.encode()).hexdigest()[:12] if "\n" in text else text


@dataclass(frozen=True)
class LeaderboardLine:
    """A predictor run, evaluated on a stage's answers with one weighting; a line of dashes if not evaluated yet.

    `difference` is the run's figures minus those of the main predictor, on the same answers. `lost`: without so few of
    the answers the other one of the two would have the better log score, an upper bound of the fewest; None where no
    such set was found, or where it was not looked for. `sources`: what its columns next to the texts were made of, as
    `Evaluation` holds it.
    """

    run: PredictorRun
    trained_after: int
    evaluated_on: int | None = None
    answers: str = ""
    weighting: str = ""
    n: int | None = None
    figures: Figures = field(default_factory=dict)
    difference: Figures = field(default_factory=dict)
    lost: int | None = None
    sources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def predictor(self) -> str:
        """Its name with the parameters that were set, since two may have the same name."""
        params = ", ".join(f"{name} {_in_a_line(value)}" for name, value in self.run.params.items())
        return f"{self.run.name} ({params})" if params and not self.is_main else self.run.name

    @property
    def columns(self) -> tuple[str, ...]:
        """What it reads in addition to the texts; empty for a predictor of texts alone, as the paper's task is."""
        try:
            return predictor_training.columns_of(self.run.name, self.run.params)
        except PredictorError:  # A run of an earlier version, whose settings are no longer known.
            return ()

    @property
    def is_main(self) -> bool:
        return self.run.role == PredictorRun.Role.MAIN

    @property
    def columns_read(self) -> str:
        """Which answers of language models the column `models` was made of, at training and at prediction; empty for
        others, and for figures of earlier versions."""
        predicted = (self.sources.get("prediction") or {}).get(MODELS)
        if not predicted:
            return ""
        learnt = (self.sources.get("training") or {}).get(MODELS) or []
        if learnt == predicted:
            return f"learnt from and predicted with {_in_words(predicted)}"
        return (
            f"learnt from {_in_words(learnt)}, predicted with {_in_words(predicted)}: language models' answers were "
            "added or graded in between, so that the column does not mean the same in both"
        )


def _in_words(sources: Sequence[Mapping[str, Any]]) -> str:
    return (
        " and ".join(
            f"{source['answers']} graded answers of {source['models']} language models (SHA-256 "
            f"{source['sha256'][:12]})"
            for source in sources
        )
        or "answers of language models that were not noted"
    )


def read_by(lines: Sequence[LeaderboardLine]) -> list[str]:
    """A sentence for each predictor and stage of which it is known what its columns were made of."""
    sentences = (
        f"{line.predictor} on stage {line.evaluated_on}: {line.columns_read}." for line in lines if line.columns_read
    )
    return list(dict.fromkeys(sentences))


def boards_of(lines: Sequence[LeaderboardLine]) -> tuple[list[LeaderboardLine], list[LeaderboardLine]]:
    """The lines as two leaderboards: of predictors of texts alone, and of those with columns next to the texts."""
    return [line for line in lines if not line.columns], [line for line in lines if line.columns]


def carried_by(lines: Sequence[LeaderboardLine]) -> list[str]:
    """A sentence for each line of which it is known how few answers decide who of the two is ahead."""
    return [
        f"{line.predictor} on stage {line.evaluated_on} ({line.answers}, weighting {line.weighting}): without "
        f"{line.lost} of {line.n} answers the main predictor and it would change places by log score."
        for line in lines
        if line.lost is not None
    ]


def learning_of(study: Study) -> Learning | None:
    """What the study's instrument learns; None if it has no label or the instrument cannot be used."""
    return instruments.of_study(study).learning if instruments.is_known(study.instrument) else None


def shown_metrics(learning: Learning | None) -> list[Metric]:
    """The metrics in the order of tables for people: first those of which higher is better."""
    return sorted(learning.metrics if learning is not None else (), key=lambda metric: not metric.highest_first)


def known_metrics() -> list[Metric]:
    """The metrics of every installed instrument, each name once, in the order of `shown_metrics`."""
    metrics: dict[str, Metric] = {}
    for name in instruments.names():
        for metric in shown_metrics(instruments.kind(name)().learning):
            metrics.setdefault(metric.name, metric)
    return list(metrics.values())


def all_answers(learning: Learning) -> str:
    """The name of the part that is all answers."""
    return learning.parts[0].name


def figures_of(metrics: Mapping[str, Any], learning: Learning) -> Figures:
    """The metrics that `Learning.evaluate` gave, with their intervals."""
    intervals = metrics.get("intervals") or {}
    return {
        metric.name: {
            part.name: Figure.between(
                (metrics.get(metric.name) or {}).get(part.name), (intervals.get(metric.name) or {}).get(part.name)
            )
            for part in learning.parts
        }
        for metric in learning.metrics
    }


def _differences_of(compared: Mapping[str, Any], learning: Learning) -> Figures:
    cells = {metric.name: compared.get(metric.name) or {} for metric in learning.metrics}
    return {
        metric: {
            part.name: Figure.between(
                (cell.get(part.name) or {}).get("difference"), (cell.get(part.name) or {}).get("interval")
            )
            for part in learning.parts
        }
        for metric, cell in cells.items()
    }


Sort = tuple[Callable[[LeaderboardLine], Any], bool]


def _over_all_answers(metric: str, part: str) -> Callable[[LeaderboardLine], float | None]:
    return lambda line: line.figures[metric][part].value


def sorts_of(learning: Learning | None) -> dict[str, Sort]:
    """The sort keys by name, and whether the highest comes first."""
    sorts: dict[str, Sort] = {
        "evaluated": (lambda line: line.evaluated_on, False),
        "trained": (lambda line: line.trained_after, False),
        "predictor": (lambda line: line.predictor, False),
        "n": (lambda line: line.n, True),
    }
    if learning is not None:
        for metric in shown_metrics(learning):
            sorts[metric.name] = (_over_all_answers(metric.name, all_answers(learning)), metric.highest_first)
    return sorts


def leaderboard(
    study: Study, *, sort: str = "evaluated", reverse: bool = False, level: str = ""
) -> list[LeaderboardLine]:
    """All lines of a study. Lines with equal values keep the order of stages and answers, the main predictor first;
    lines without a value come last.

    Args:
        sort: one of `sorts_of` the instrument's learning.
        reverse: against the sort's usual direction.
        level: FACTOR=LEVEL, to use only the figures from answers under this level.
    """
    learning = learning_of(study)
    if learning is None:
        return []
    runs = PredictorRun.objects.filter(stage__study=study).select_related("stage").order_by("stage__index", "pk")
    judged: dict[int, list[Evaluation]] = {}
    for evaluation in Evaluation.objects.filter(stage__study=study).select_related("stage").order_by("stage__index"):
        judged.setdefault(evaluation.predictor_run_id, []).append(evaluation)
    lines: list[LeaderboardLine] = []
    for run in runs:
        lines += [line for result in judged.get(run.pk, []) for line in _lines(run, result, level, learning)] or [
            LeaderboardLine(
                run=run,
                trained_after=run.stage.index,
                figures=figures_of({}, learning),
                difference=_differences_of({}, learning),
            )
        ]
    order = {name: place for place, name in enumerate(WEIGHTINGS.values())}
    lines.sort(
        key=lambda line: (
            line.evaluated_on is None,
            line.evaluated_on or 0,
            order.get((line.answers, line.weighting), 0),
            not line.is_main,
        )
    )
    value, falls = sorts_of(learning)[sort]
    with_value = [line for line in lines if value(line) is not None]
    without = [line for line in lines if value(line) is None]
    return sorted(with_value, key=value, reverse=falls != reverse) + without


def _lines(run: PredictorRun, evaluation: Evaluation, level: str, learning: Learning) -> list[LeaderboardLine]:
    metrics = (evaluation.metrics.get(LEVELS) or {}).get(level, {}) if level else evaluation.metrics
    differences = metrics.get("difference") or {}
    return [
        LeaderboardLine(
            run=run,
            trained_after=run.stage.index,
            evaluated_on=evaluation.stage.index,
            answers=answers,
            weighting=weighting,
            n=metrics[name].get("n"),
            figures=figures_of(metrics[name], learning),
            difference=_differences_of(differences.get(name) or {}, learning),
            lost=(differences.get(name) or {}).get(LOST),
            sources=evaluation.metrics.get(SOURCES) or {},
        )
        for name, (answers, weighting) in WEIGHTINGS.items()
        if name in metrics
    ]


# As a file

FILE = "leaderboard.csv"


def _figure_columns(name: str, description: str) -> list[Column]:
    return [
        Column(name, "number", f"{description}."),
        Column(f"{name}_low", "number", f"Lower end of the 95 % interval of {name}, by resampling respondents."),
        Column(f"{name}_high", "number", "Its upper end."),
    ]


_COLUMNS = (
    Column("predictor", "text", "Name of the predictor."),
    Column("role", "text", "main: plans the next stage. compared: named in the study file. baseline: always trained."),
    Column("params", "JSON object", "Its parameters, where they differ from the defaults."),
    Column("trained_after", "number", "The last stage whose answers it was trained on."),
    Column("training_answers", "number", "How many answers it was trained on."),
    Column("evaluated_on", "number", "The stage whose answers judge it; empty where none do yet."),
    Column(
        "answers",
        "text",
        "sampled; holdout: the uniform one, without pairs that trained; or majorities: the items of a test stage, each "
        "once, by the label of most of its answers.",
    ),
    Column("weighting", "text", "design: by 1 / (inclusion_probability * pool_probability). none: each counts once."),
    Column("n", "number", "How many answers judge it, or items by their majority labels."),
)


def columns_of(learning: Learning) -> tuple[Column, ...]:
    """The columns of the file."""
    return (
        *_COLUMNS,
        *(
            column
            for metric in learning.metrics
            for part in learning.parts
            for column in _figure_columns(f"{metric.name}_{part.name}", f"{metric.title} {part.title}")
        ),
        *(
            column
            for metric in learning.metrics
            for column in _figure_columns(
                f"{metric.name}_difference",
                f"Its {metric.name} less that of the main predictor, over all of the same answers",
            )
        ),
        Column(
            "columns",
            "text",
            "What it reads in addition to the texts, with + between: people (priors of training answers) or models "
            "(their answers). Empty: texts alone, as the paper's task is. The two are leaderboards of their own.",
        ),
    )


def file_rows(study: Study, learning: Learning) -> Iterator[list[Any]]:
    """The lines as rows of `columns_of`."""
    for line in leaderboard(study):
        figures = [line.figures[metric.name][part.name] for metric in learning.metrics for part in learning.parts]
        figures += [line.difference[metric.name][all_answers(learning)] for metric in learning.metrics]
        yield [
            line.run.name,
            line.run.role,
            json.dumps(line.run.params, sort_keys=True) if line.run.params else None,
            line.trained_after,
            line.run.example_count,
            line.evaluated_on,
            line.answers or None,
            line.weighting or None,
            line.n,
            *(value for figure in figures for value in (figure.value, figure.low, figure.high)),
            "+".join(line.columns) or None,
        ]
