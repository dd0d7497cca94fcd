"""The report `alignment`: do language models perform as a study's people expect?"""

import math
from collections.abc import Iterator, Mapping, Sequence

from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import HunchError
from survey.figures import Column, Figure, FigureColumn, LinkedCell, PartColumn, Table, TableView
from survey.figures.words import number, percent, short
from survey.models import LanguageModel, Question, Study, Task
from survey.services.results.people_and_models.fragile_table import fragile_table
from survey.services.results.people_and_models.unreadable_replies import UNREADABLE
from survey.services.results.reports import CONDITION

from . import aligning
from .beliefs import BeliefComparison
from .scores import PAPER_ALPHAS, ModelScore
from .tables import accuracy_picture, differences_table, scores_table

MAX_SAMPLES = 100_000
LARGEST_ALPHA = 1e9
LONGEST = 160  # characters of a question in a list
BELIEFS = (
    Column("answers", "number", "The answers whose change was predicted before they were given."),
    Column("respondents", "number", "Who gave them."),
    Column(
        "mixture", "number", "Mean squared error of the mixture's posteriors, as fractions, out of sample.", digits=4
    ),
    Column("regression", "number", "The regression's.", digits=4),
    FigureColumn("improvement", "number", "The mixture's error less the regression's.", digits=4, prefix=""),
)
DEPLOYMENT = (
    Column("rule", "text", "threshold: deployed where the belief is above it. proportional: as often as believed."),
    Column("threshold", "share", "The threshold; empty under the other rule."),
    Column("beliefs", "text", "Where the beliefs come from: mixture or regression."),
    Column("llm", "text", "The language model.", heading="model"),
    Column("pairs", "number", "The pairs that it has."),
    FigureColumn("correct", "share", "How often it is correct.", low="Lower end of the 95 % interval."),
    Column("deployed", "share", "How often it is deployed."),
    FigureColumn(
        "performance",
        "share",
        "How often it is correct where it is deployed: human-deployed performance.",
        low="Lower end of the 95 % interval.",
    ),
    UNREADABLE,
)
FAILURES = (
    Column("llm", "text", "The language model.", heading="model"),
    Column("evidence_id", "text", "The question that it answered correctly."),
    Column("target_id", "text", "The question at which it then failed."),
    Column("evidence_task", "text", "The task of the first."),
    Column("target_task", "text", "The task of the second."),
    FigureColumn(
        "gain_points",
        "number",
        "By how many points people became more confident, on average.",
        heading="points",
        digits=1,
        signed=True,
        parts={},
    ),
    Column("answers", "number", "How many people saw the pair."),
    PartColumn(
        "gain_points",
        "low",
        Column(
            "gain_low", "number", "Lower end of the gain's 95 % interval over these answers; empty for a single one."
        ),
    ),
    PartColumn("gain_points", "high", Column("gain_high", "number", "Its upper end.")),
    Column("evidence", "text", "The first question.", in_file=False),
    Column("target", "text", "The second question.", in_file=False),
)


def model_names(study: Study) -> list[str]:
    """The language models that have answered questions of the study's bank."""
    models = LanguageModel.objects.filter(answers__question__bank=study.bank_id).distinct().order_by("name")
    return list(models.values_list("name", flat=True))


def task_names(study: Study) -> list[str]:
    return list(Task.objects.filter(bank=study.bank_id).order_by("name").values_list("name", flat=True))


ALPHA = Argument(
    "alpha",
    "alpha: how often a wrong deployment counts as a right one; 19 is a threshold of 95 %",
    many=True,
    label="Weights of wrong deployments",
    example="19",
)
THRESHOLD = Argument(
    "threshold", "a model is deployed above this belief", default="0.5", label="Threshold of beliefs (0 to 1)"
)


class AlignmentReport(Report):
    """Scores and differences of language models, how well beliefs are predicted, deployment, and failures."""

    arguments = (
        ALPHA,
        THRESHOLD,
        Argument(
            "samples",
            "of the bootstrap, for the intervals: more take longer and are more exact",
            default=str(aligning.SAMPLES),
            on_pages="500",
            most_on_web=2000,
            label="Resamples",
        ),
        Argument(
            "failures",
            "how many pairs that led people astray are listed",
            default="10",
            on_pages="50",
            label="Failures",
        ),
        Argument(
            "llm", "only failures of this language model", choices=model_names, label="Failures of the language model"
        ),
        Argument("task", "only failures to or from this task", choices=task_names, label="Failures of the task"),
        CONDITION,
    )

    def obstacle(self, study: Study) -> str:
        return aligning.obstacle(study)

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        alphas = arguments.numbers("alpha", lowest=0, highest=LARGEST_ALPHA) or list(PAPER_ALPHAS)
        condition = arguments["condition"]
        try:
            alignment = aligning.alignment_of(
                study,
                alphas=alphas,
                threshold=arguments.number("threshold", lowest=0, highest=1),
                samples=arguments.whole("samples", lowest=100, highest=MAX_SAMPLES),
                condition=condition,
            )
        except ValueError as exc:
            raise HunchError(str(exc)) from exc
        failures_shown = arguments.whole("failures", lowest=0, highest=10_000)
        carried = _fragility_table(alignment)
        failures = aligning.failures_of(
            study, llm=arguments.one("llm"), task=arguments.one("task"), condition=condition
        )
        averages = alignment.averages
        return ReportResult(
            title=f"Alignment of language models: {study.title}",
            headline=_headline(alignment.scores),
            lines=[
                f"Beliefs mix this study's averages ({number(averages.prior, 3)} before, "
                f"{number(averages.posterior_correct, 3)} after a correct, "
                f"{number(averages.posterior_incorrect, 3)} after an incorrect answer) by the predictions "
                f"of {alignment.predictor} for stage {alignment.stage}. For the intervals, pairs and respondents are "
                "resampled.",
            ],
            tables=[
                scores_table(alignment.scores, pairs=alignment.pairs, unreadable=alignment.unreadable),
                differences_table(alignment.differences),
                *([_beliefs_table(alignment.beliefs)] if alignment.beliefs is not None else []),
                _deployment_table(alignment.deployment, alignment.unreadable),
                carried,
                _failures_table(failures, failures_shown),
            ],
            pictures=[accuracy_picture(alignment.comparison)],
            notes=alignment.notes,
            data={**alignment.as_json(), "fragility": carried.records()},
        )


def _headline(scores: Sequence[ModelScore]) -> str:
    """Which model fits what people believe best, at the first weight of wrong answers."""
    known = [score for score in scores if math.isfinite(score.accuracy[0])]
    if not known:
        return ""
    best = max(known, key=lambda score: float(score.accuracy[0]))
    accuracy = Figure.between(best.accuracy[0], best.accuracy_interval[0]).in_words(3)
    fits = f"Of {len(known)} language models {best.name} fits" if len(known) > 1 else f"{best.name} fits"
    most = " best" if len(known) > 1 else ""
    return f"{fits} what people believe{most} with a weighted accuracy of {accuracy} at alpha {short(best.alphas[0])}."


def _beliefs_table(comparison: BeliefComparison) -> Table:
    improvement = Figure.between(comparison.improvement, comparison.interval)
    return Table(
        "beliefs",
        "How well beliefs are predicted, out of sample (mean squared error)",
        BELIEFS,
        [[comparison.n, comparison.respondents, comparison.mixture, comparison.regression, improvement]],
    )


def _deployment_table(tables: Sequence[aligning.DeploymentTable], unreadable: Mapping[str, int]) -> Table:
    return Table(
        "deployment",
        "Human-deployed performance",
        DEPLOYMENT,
        [
            [
                *(table.rule.kind, table.rule.threshold if table.rule.kind == "threshold" else None, table.beliefs),
                *(model.name, model.pairs, Figure.between(model.mean, model.mean_interval), model.share),
                *(Figure.between(model.performance, model.performance_interval), unreadable[model.name]),
            ]
            for table in tables
            for model in table.models
        ],
        views=[_deployment_view(table) for table in tables],
    )


def _fragility_table(alignment: aligning.StudyAlignment) -> Table:
    return fragile_table(
        [(_ranking(table), table.fragility) for table in alignment.deployment],
        [model.name for model in alignment.deployment[0].models],
        unit="pairs",
        label=lambda row: alignment.pair_labels[row],
    )


def _ranking(table: aligning.DeploymentTable) -> str:
    rule = f"above {short(table.rule.threshold)}" if table.rule.kind == "threshold" else "proportional"
    return f"{rule}, {table.beliefs}"


def _deployment_view(table: aligning.DeploymentTable) -> TableView:
    rule = table.rule
    how = f"where the belief is above {short(rule.threshold)}" if rule.kind == "threshold" else "as often as believed"
    return TableView(
        ["llm", "correct", "deployed", "performance"],
        where={"rule": rule.kind, "beliefs": table.beliefs},
        title=f"Human-deployed performance: deployed {how}; beliefs by {table.beliefs}",
        note=" ".join(_remarks(table)),
    )


def _remarks(table: aligning.DeploymentTable) -> Iterator[str]:
    if table.note:
        yield table.note
    for reversal in table.reversals:
        yield (
            f"{reversal.better} answers more correctly than {reversal.worse} (by "
            f"{percent(reversal.mean_difference)}) and does "
            f"worse when deployed (by {percent(-reversal.performance_difference)})."
        )


def _failures_table(lines: Sequence[aligning.FailureLine], limit: int) -> Table:
    """All of them in the file, the first ones for people."""
    return Table(
        "failures",
        "Pairs that led people astray",
        FAILURES,
        [
            [
                *(line.llm, line.evidence.external_id, line.target.external_id),
                *(line.evidence.task.name, line.target.task.name, Figure(line.gain, line.low, line.high), line.answers),
                *(_question(line.evidence), _question(line.target)),
            ]
            for line in lines
        ],
        note="The model was right on the evidence, people believed more, and it was then wrong." if lines else "None.",
        views=[TableView(["llm", "evidence", "target", "gain_points", "answers"], most=limit)],
    )


def _question(question: Question) -> LinkedCell:
    text = question.plain if len(question.plain) <= LONGEST else f"{question.plain[: LONGEST - 1]}…"
    return LinkedCell(f"{question.external_id} {text}", question)
