"""What the demo does apart from running processes: its studies, its researcher, its table and its verdict."""

import re
import secrets
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from django.contrib.auth import get_user_model
from django.db.models import Sum

from bandit.estimators import Comparison, compare_shares
from survey import study_file
from survey.contracts import instruments
from survey.contracts.instruments import Demonstration, DemonstrationVerdict, Metric
from survey.exceptions import NotFound
from survey.figures.rendering import aligned
from survey.figures.words import number, percent
from survey.models import Bank, Evaluation, JobStep, PredictorRun, Stage, Study
from survey.services.answers.counting import TRAINED, counted_answers
from survey.services.base.first_account import DEMO_EMAIL
from survey.services.base.groups import ensure_researchers_group
from survey.services.results.estimates.outcome_table import outcome_table
from survey.services.stages.leaderboard import all_answers, figures_of, learning_of, shown_metrics
from survey.services.studies import creating
from survey.storage.paths import STUDIES_DIR
from survey.study_file.blocks import InstrumentConfig
from survey.study_file.editing import EditableFile

INSTRUMENT: str = InstrumentConfig.model_fields["kind"].default
CANDIDATES_A_PERSON = 150  # ten for each item
LEVEL = 0.05  # of the one-sided test
# The demo's user has this address. A user of the same name with another address is a different person and stays as is.
RESEARCHER_EMAIL = DEMO_EMAIL


def demonstration_of(instrument: str, *, reversal: bool = False) -> Demonstration:
    """What the demo runs of that instrument.

    Raises:
        InstrumentMissing: there is no instrument of that name.
        NotFound: it has no demonstration, or none of a reversal; names those that have one.
    """

    def of(name: str) -> Demonstration | None:
        demonstration = instruments.kind(name).demonstration
        return demonstration.reversal if reversal and demonstration is not None else demonstration

    demonstration = of(instrument)
    if demonstration is None:
        others = [name for name in instruments.names() if of(name) is not None]
        what = "no demonstration of a reversal" if reversal else "no demonstration"
        raise NotFound(f"--instrument: {instrument} brings {what}; these do: {', '.join(others)}")
    return demonstration


def load_bank(instrument: str, *, reversal: bool = False) -> Bank:
    """The bank of the instrument's demonstration; imported unless it is stored."""
    bank: Bank = _function(demonstration_of(instrument, reversal=reversal).load_bank)()
    return bank


def _function(path: str) -> Any:
    module, _dot, name = path.rpartition(".")
    return getattr(import_module(module), name)


def create_demo_study(
    *,
    instrument: str = INSTRUMENT,
    name: str = "",
    seed: int | None = None,
    respondents: int | None = None,
    owner: Any = None,
    reversal: bool = False,
) -> Study:
    """Create the instrument's demonstration under the next free slug, with another seed or stage size if given.

    The changes are made in the file's text, so that the stored file shows what was run.

    Args:
        name: what the slug begins with; by default `demo`, and with the instrument's name behind it for all but the one
            that studies have if they name none.
    """
    demonstration = demonstration_of(instrument, reversal=reversal)
    file = demonstration.study_file
    text = creating.read_study_file(STUDIES_DIR / file)
    own = "demo" if instrument == INSTRUMENT else f"demo-{instrument.replace('_', '-')}"
    own += "-reversal" if reversal else ""
    if demonstration.predictor:
        edited = EditableFile(text)
        edited.set(("predictor",), {"name": demonstration.predictor})
        text = edited.text
    if demonstration.pool is not None:
        text = _changed(text, "size", str(demonstration.pool))
    text = _changed(text, "slug", f'"{_free_slug(name or own)}"')
    if seed is not None:
        text = _changed(text, "seed", str(seed))
    if respondents is not None:
        text = _changed(text, "sittings", str(respondents))
        # The top tenth must hold the slots that are drawn from it.
        size = study_file.parse(text).candidates.size
        text = _changed(text, "size", str(max(size, respondents * CANDIDATES_A_PERSON)))
    return creating.create_study(text=text, source_name=Path(file).name, by=owner)


def _changed(text: str, key: str, value: str) -> str:
    changed, count = re.subn(rf"(?m)^{key} = \S+", f"{key} = {value}", text)
    if not count:
        raise ValueError(f"the study file has no line `{key} = ...`")
    return changed


def _free_slug(name: str) -> str:
    taken = set(Study.objects.filter(slug__startswith=name).values_list("slug", flat=True))
    number, slug = 1, name
    while slug in taken:
        number += 1
        slug = f"{name}-{number}"
    return slug


def make_researcher() -> tuple[Any, str]:
    """A researcher's user with a new random password, and the password, which is stored nowhere."""
    users = get_user_model().objects
    number, name = 1, "researcher"
    while users.filter(username=name).exclude(email=RESEARCHER_EMAIL).exists():
        number += 1
        name = f"researcher-{number}"
    user, _created = users.get_or_create(
        username=name, defaults={"email": RESEARCHER_EMAIL, "first_name": "Demo", "is_staff": True}
    )
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    user.groups.add(ensure_researchers_group())
    return user, password


@dataclass(frozen=True)
class StageLine:
    """One line of the demo's table; None where there is no value."""

    stage: int
    answers: int
    share: float | None
    top: float | None
    rest: float | None
    judged: float | None
    training_seconds: float | None
    planning_seconds: float | None
    metric: Metric | None = None
    """What `judged` is: the first metric that tables show of the study's instrument."""
    outcome: str = "changed"
    """What `share`, `top` and `rest` are means of: the instrument's first outcome."""

    @classmethod
    def of(cls, stage: Stage) -> "StageLine":
        stage_table = outcome_table(stage)
        shares = {name: stratum.share for name, stratum in stage_table.by_stratum.items()} if stage_table else {}
        judged = Evaluation.objects.filter(stage=stage, predictor_run__role=PredictorRun.Role.MAIN).first()
        learning = learning_of(stage.study)
        metric = next(iter(shown_metrics(learning)), None)
        value = None
        if learning is not None and metric is not None:
            naive = figures_of(judged.metrics.get("naive", {}) if judged else {}, learning)
            value = naive[metric.name][all_answers(learning)].value
        planning = stage.job_steps.filter(
            kind__in=[JobStep.Kind.SCORE, JobStep.Kind.PLAN], state=JobStep.State.DONE, finished_at__isnull=False
        )
        return cls(
            stage=stage.index,
            answers=stage_table.answers if stage_table else 0,
            share=stage_table.share if stage_table else None,
            top=shares.get("top"),
            rest=shares.get("rest"),
            judged=value,
            training_seconds=stage.predictor_runs.filter(role=PredictorRun.Role.MAIN).aggregate(s=Sum("seconds"))["s"],
            planning_seconds=sum(step.seconds or 0 for step in planning) if planning else None,
            metric=metric,
            outcome=stage_table.outcome if stage_table else "",
        )

    def as_json(self) -> dict[str, Any]:
        """With what it is judged by under the metric's name."""
        row = {field.name: getattr(self, field.name) for field in fields(self)}
        metric = row.pop("metric")
        row.pop("outcome")
        return {(metric.name if metric else name) if name == "judged" else name: value for name, value in row.items()}


def stage_lines(study: Study) -> list[StageLine]:
    return [StageLine.of(stage) for stage in study.stages.select_related("study__bank").order_by("index")]


def stage_table(lines: list[StageLine]) -> str:
    metric = next((line.metric for line in lines if line.metric is not None), None)
    judged = [f"{metric.head} before"] if metric is not None else []
    outcome = next((line.outcome for line in lines if line.outcome), "share").replace("_", " ")
    header = ["stage", "answers", outcome, "top", "rest", *judged, "training s", "planning s"]
    return aligned(
        header,
        [
            [
                str(line.stage),
                str(line.answers),
                percent(line.share),
                percent(line.top),
                percent(line.rest),
                *([number(line.judged, 3)] if metric is not None else []),
                number(line.training_seconds, 1),
                number(line.planning_seconds, 1),
            ]
            for line in lines
        ],
    )


@dataclass(frozen=True)
class DemoVerdict:
    """Whether the last stage found more changes than the first, and whether that was the right result."""

    comparison: Comparison
    null: bool

    @property
    def lifted(self) -> bool:
        p = self.comparison.p_one_sided
        return p is not None and p < LEVEL

    @property
    def passed(self) -> bool:
        return self.lifted != self.null

    @property
    def sentence(self) -> str:
        comparison = self.comparison
        shares = f"{percent(comparison.first)} changed in the first stage, {percent(comparison.second)} in the last"
        test = (
            "no test, since nothing varies between respondents"
            if comparison.p_one_sided is None
            else f"one-sided test clustered by respondent: p = {comparison.p_one_sided:.2g}"
        )
        if self.null:
            what = "a lift, although none exists here" if self.lifted else "no lift, as expected here"
        else:
            what = "the last stage finds more changes" if self.lifted else "the last stage does not find more changes"
        return f"{'PASSED' if self.passed else 'FAILED'}: {what} ({shares}; {test})."

    @property
    def figures(self) -> dict[str, Any]:
        p = self.comparison.p_one_sided
        return {"lift": self.comparison.ratio, "p": None if p is None else float(f"{p:.6g}")}


def verdict_on(study: Study, *, null: bool, reversal: bool = False) -> "DemoVerdict | DemonstrationVerdict":
    """What the study's demonstration says of it; without words of its own, whether the last stage found more."""
    path = demonstration_of(study.instrument, reversal=reversal).verdict
    if path:
        verdict: DemonstrationVerdict = _function(path)(study, null)
        return verdict
    return lift_of(study, null=null)


def lift_of(study: Study, *, null: bool) -> DemoVerdict:
    first, *_between, last = study.stages.select_related("study__bank").order_by("index")
    (first_values, first_people), (last_values, last_people) = _changes(first), _changes(last)
    comparison = compare_shares(
        first=first_values, first_cluster=first_people, second=last_values, second_cluster=last_people
    )
    return DemoVerdict(comparison=comparison, null=null)


def _changes(stage: Stage) -> tuple[np.ndarray, np.ndarray]:
    """The first outcome of each counted answer, and the respondent of each."""
    answers = counted_answers(stage, roles=TRAINED)
    outcomes = instruments.estimates_of(instruments.of_study(stage.study)).outcomes(answers)
    return next(iter(outcomes.values())), np.asarray([answer.sitting.respondent_id for answer in answers])


def summary(*, seconds: float, lines: list[StageLine], verdict: DemoVerdict | DemonstrationVerdict) -> dict[str, Any]:
    """What the demo prints last, for programs to read."""

    def rounded(value: Any) -> Any:
        return round(value, 4) if isinstance(value, float) else value

    return {
        "seconds": round(seconds, 1),
        "stages": [{name: rounded(value) for name, value in line.as_json().items()} for line in lines],
        **{name: value if name == "p" else rounded(value) for name, value in verdict.figures.items()},
    }
