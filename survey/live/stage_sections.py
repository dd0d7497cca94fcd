"""Every stage of a study in numbers. Read in a fixed number of queries, however many stages and answers there are.

Only the outcomes need the answers themselves. They are read in chunks and cached until the counted answers change.
What is found here holds no rows, so that a snapshot can keep it as JSON.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from django.core.cache import cache
from django.db.models import Count, F, Max, Q, QuerySet
from django.utils import timezone

from survey.contracts import instruments
from survey.contracts.instruments import Learning
from survey.contracts.measures import SHARE
from survey.figures import Figure
from survey.figures.words import number, percent
from survey.models import (
    Assignment,
    Booklet,
    CandidateSet,
    Evaluation,
    JobStep,
    PredictorRun,
    Sitting,
    Slot,
    Stage,
    Stratum,
    Study,
)
from survey.services.answers.counting import TRAINED, counting, in_time
from survey.services.results.policies.comparing import design_words
from survey.services.sittings.capacity import sittings_inside
from survey.services.sittings.expiry import longest_silence
from survey.services.stages.leaderboard import all_answers, learning_of, shown_metrics
from survey.services.stages.waiting import Waiting, why_not_begun

CHUNK = 2000  # answers
DAY = 24 * 3600  # seconds
MIN_REFRESH = timedelta(minutes=1)


@dataclass(frozen=True)
class Mean:
    """The mean of an outcome over n answers: a share if that is the outcome's unit."""

    value: float
    n: int
    is_share: bool

    def __str__(self) -> str:
        return percent(self.value) if self.is_share else number(self.value)


@dataclass(frozen=True)
class Outcomes:
    """An instrument's first outcome over a stage's counted, sampled answers; `name` is empty if there is none."""

    name: str = ""
    overall: Mean | None = None
    by_stratum: tuple[tuple[int | None, Mean], ...] = ()

    def in_stratum(self, stratum: int | None) -> Mean | None:
        """The mean of the answers to slots of that stratum; None stands for slots outside of all."""
        return dict(self.by_stratum).get(stratum)


@dataclass(frozen=True)
class MetricTable:
    """Metrics by part: each part is a column, each metric a row. A metric without parts is in the first column."""

    parts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class StratumRow:
    name: str
    candidates: int | None
    drawn: int
    in_time: int
    counted: int
    mean: Mean | None
    lowest: float | None
    highest: float | None


@dataclass(frozen=True)
class RunFacts:
    """A predictor run; `stage` is the number of the stage that it was trained after."""

    pk: int
    stage: int
    name: str
    role: str
    is_main: bool
    example_count: int
    members: int
    is_ready: bool
    seconds: float

    @classmethod
    def of(cls, run: PredictorRun, stage: Stage) -> "RunFacts":
        return cls(
            pk=run.pk,
            stage=stage.index,
            name=run.name,
            role=run.get_role_display(),
            is_main=run.role == PredictorRun.Role.MAIN,
            example_count=run.example_count,
            members=len(run.members),
            is_ready=run.is_ready,
            seconds=run.seconds,
        )


@dataclass(frozen=True)
class RunLine:
    """A predictor run, and the numbers of the later stages whose answers judge it."""

    run: RunFacts
    evaluated_on: tuple[int, ...]


@dataclass(frozen=True)
class StepFacts:
    """A step of work. `seconds_left` is what is left at the speed so far; None where nothing is known of it."""

    pk: int
    title: str
    state: str
    state_in_words: str
    progress_done: int
    progress_total: int
    progress_text: str
    seconds: float | None
    seconds_left: float | None
    tries_left: int
    error: str
    kind: str = ""
    waits: Waiting | None = None

    @classmethod
    def of(cls, step: JobStep, now: datetime, waits: Waiting | None = None) -> "StepFacts":
        return cls(
            pk=step.pk,
            title=step.title,
            state=step.state,
            state_in_words=step.get_state_display(),
            progress_done=step.progress_done,
            progress_total=step.progress_total,
            progress_text=step.progress_text,
            seconds=step.seconds,
            seconds_left=_seconds_left(step, now),
            tries_left=step.tries_left,
            error=step.error,
            kind=step.kind,
            waits=waits,
        )


def _seconds_left(step: JobStep, now: datetime) -> float | None:
    if step.state != JobStep.State.RUNNING or step.started_at is None or not step.progress_done > 0:
        return None
    so_far = max((now - step.started_at).total_seconds(), 0.0)
    return so_far * max(step.progress_total - step.progress_done, 0) / step.progress_done


@dataclass(frozen=True)
class Inside:
    """People who can still give an answer that counts, and when the last of them expires who sends nothing more."""

    people: int
    until: datetime


@dataclass(frozen=True)
class CandidateFacts:
    pk: int
    size: int
    universe_size: int
    kind: str


@dataclass(frozen=True)
class EvaluationTable:
    """How well the predictor did on a stage's answers, which it had not seen: a table for each way of weighting."""

    run: RunFacts
    tables: tuple[tuple[str, MetricTable], ...]
    leading: float | None
    """The study's leading metric (the first that tables show) over all answers."""
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class StageSection:
    """A stage in its present state, for one section of the page. `stage` is its row; a snapshot leaves it out."""

    index: int
    stage: Stage | None
    slots: int
    in_time: int
    counted: int
    late: int
    sittings: Mapping[str, int]
    booklets: int
    free_booklets: int
    make_up_booklets: int
    outcomes: Outcomes
    strata: tuple[StratumRow, ...]
    candidates: CandidateFacts | None
    runs: tuple[RunLine, ...]
    judged: EvaluationTable | None
    steps: tuple[StepFacts, ...]
    inside: Inside | None = None
    """Whom a closing stage waits for."""

    @property
    def live(self) -> int:
        return self.sittings.get(Sitting.State.LIVE, 0)

    @property
    def design(self) -> str:
        """How it draws, in words."""
        if self.stage is None:
            return ""
        config = self.stage.config
        words = design_words(config.design) + (f"; {config.stop.in_words(config.sittings)}" if config.stop else "")
        return f"pilot, {words}" if self.stage.is_pilot else words

    @property
    def complete(self) -> int:
        return self.sittings.get(Sitting.State.COMPLETE, 0)

    @property
    def failed_steps(self) -> list[StepFacts]:
        return [step for step in self.steps if step.state == JobStep.State.FAILED]

    @property
    def is_working(self) -> bool:
        return bool(self.unfinished_steps)

    @property
    def unfinished_steps(self) -> list[StepFacts]:
        return [step for step in self.steps if step.state in (JobStep.State.QUEUED, JobStep.State.RUNNING)]

    @property
    def training_seconds_left(self) -> float | None:
        """Of all members that are not trained yet, at the speed of those before; None where nothing is known of it."""
        training = [step for step in self.steps if step.kind == JobStep.Kind.TRAIN]
        whole = [step.seconds for step in training if step.seconds is not None]
        left = [step.seconds_left for step in training if step.seconds_left is not None]
        queued = sum(step.state == JobStep.State.QUEUED for step in training)
        if not left or (queued and not whole):
            return None
        return sum(left) + queued * (sum(whole) / len(whole) if whole else 0.0)

    @property
    def sittings_by_state(self) -> list[tuple[str, int]]:
        return [(label, self.sittings[state]) for state, label in Sitting.State.choices if state in self.sittings]


def running_sections(stages: Sequence[Stage], now: datetime) -> dict[int, StageSection]:
    """Of stages of any studies, by key: people, places and work. What their plans and answers say is left empty.

    Args:
        stages: with their studies.
    """
    by_pk = {stage.pk: stage for stage in stages}
    steps = _grouped(JobStep.objects.filter(stage__in=stages).select_related("predictor_run").order_by("pk"), by_pk)
    waiting = why_not_begun([step for of_stage in steps.values() for step in of_stage], now)
    inside = _inside(stages)
    sittings = _counts(Sitting.objects.filter(stage__in=stages), "stage", "state")
    booklets: dict[int, Mapping[str, Any]] = {
        row["stage"]: row
        for row in Booklet.objects.filter(stage__in=stages)
        .order_by()
        .values("stage")
        .annotate(
            all=Count("pk"),
            free=Count("pk", filter=Q(claimed_at__isnull=True)),
            make_up=Count("pk", filter=Q(kind=Booklet.Kind.MAKE_UP)),
        )
    }
    return {
        stage.pk: StageSection(
            index=stage.index,
            stage=stage,
            slots=0,
            in_time=0,
            counted=0,
            late=0,
            sittings={key[1]: count for key, count in sittings.items() if key[0] == stage.pk},
            booklets=booklets.get(stage.pk, {}).get("all", 0),
            free_booklets=booklets.get(stage.pk, {}).get("free", 0),
            make_up_booklets=booklets.get(stage.pk, {}).get("make_up", 0),
            outcomes=Outcomes(),
            strata=(),
            candidates=None,
            runs=(),
            judged=None,
            steps=tuple(StepFacts.of(step, now, waiting.get(step.pk)) for step in steps[stage.pk]),
            inside=inside.get(stage.pk),
        )
        for stage in stages
    }


def sections(
    study: Study, outcomes: Mapping[int, Outcomes] | None = None, *, now: datetime | None = None
) -> list[StageSection]:
    """Every stage of the study, in order.

    Args:
        outcomes: by the stage's key, if they were read before; they need the answers themselves.
    """
    stages = list(study.stages.order_by("index"))
    for stage in stages:
        stage.study = study
    running = running_sections(stages, now or timezone.now())
    by_pk = {stage.pk: stage for stage in stages}
    strata = _grouped(Stratum.objects.filter(stage__in=stages).order_by("pk"), by_pk)
    runs = _grouped(PredictorRun.objects.filter(stage__in=stages).order_by("created_at"), by_pk)
    run_by_pk = {run.pk: run for lines in runs.values() for run in lines}
    evaluations = list(Evaluation.objects.filter(stage__in=stages).order_by("stage__index"))
    candidates = {
        candidate_set.stage_id: CandidateFacts(
            candidate_set.pk, candidate_set.size, candidate_set.universe_size, candidate_set.get_kind_display()
        )
        for candidate_set in CandidateSet.objects.filter(stage__in=stages)
    }
    drawn = _counts(Slot.objects.filter(stage__in=stages), "stage", "stratum")
    answered = _counts(in_time(stages), "slot__stage", "slot__stratum")
    counted = _counts(counting(stages), "slot__stage", "slot__stratum")
    late = _counts(
        Assignment.objects.filter(slot__stage__in=stages, state=Assignment.State.LATE, completed_at__isnull=False),
        "slot__stage",
    )
    outcomes = stage_outcomes(study, stages) if outcomes is None else outcomes
    learning = learning_of(study)
    return [
        replace(
            running[stage.pk],
            slots=_total(drawn, stage.pk),
            in_time=_total(answered, stage.pk),
            counted=_total(counted, stage.pk),
            late=_total(late, stage.pk),
            outcomes=replace(outcomes.get(stage.pk, Outcomes()), by_stratum=()),
            strata=tuple(
                _stratum_lines(stage, strata[stage.pk], drawn, answered, counted, outcomes.get(stage.pk, Outcomes()))
            ),
            candidates=candidates.get(stage.pk),
            runs=tuple(_run_line(run, evaluations, by_pk) for run in runs[stage.pk]),
            judged=_judgement(stage, evaluations, run_by_pk, learning),
        )
        for stage in stages
    ]


def _inside(stages: Sequence[Stage]) -> dict[int, Inside]:
    """By the key of each closing stage that waits for somebody."""
    closing = {stage.pk: stage for stage in stages if stage.state == Stage.State.CLOSING}
    if not closing:
        return {}
    rows = sittings_inside(*closing.values()).order_by().values_list("stage")
    return {
        pk: Inside(people, last + longest_silence(closing[pk].study))
        for pk, people, last in rows.annotate(people=Count("pk"), last=Max("last_seen_at"))
    }


def _grouped(rows: Iterable[Any], stages: Mapping[int, Stage]) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = defaultdict(list)
    for row in rows:
        row.stage = stages[row.stage_id]
        groups[row.stage_id].append(row)
    return groups


def _counts(rows: Any, *names: str) -> dict[tuple[Any, ...], int]:
    return {row[:-1]: row[-1] for row in rows.order_by().values_list(*names).annotate(n=Count("pk"))}


def _total(counts: Mapping[tuple[Any, ...], int], stage: int) -> int:
    return sum(count for key, count in counts.items() if key[0] == stage)


def _stratum_lines(
    stage: Stage,
    strata: Sequence[Stratum],
    drawn: Mapping[tuple[Any, ...], int],
    answered: Mapping[tuple[Any, ...], int],
    counted: Mapping[tuple[Any, ...], int],
    outcomes: Outcomes,
) -> list[StratumRow]:
    lines = [
        StratumRow(
            name=stratum.name,
            candidates=stratum.size,
            drawn=drawn.get((stage.pk, stratum.pk), 0),
            in_time=answered.get((stage.pk, stratum.pk), 0),
            counted=counted.get((stage.pk, stratum.pk), 0),
            mean=outcomes.in_stratum(stratum.pk),
            lowest=stratum.lowest_score,
            highest=stratum.highest_score,
        )
        for stratum in strata
    ]
    if outside := drawn.get((stage.pk, None)):  # Controls and repeats were not drawn from a stratum.
        lines.append(
            StratumRow(
                name="controls, repeats",
                candidates=None,
                drawn=outside,
                in_time=answered.get((stage.pk, None), 0),
                counted=0,
                mean=outcomes.in_stratum(None),
                lowest=None,
                highest=None,
            )
        )
    return lines


def _run_line(run: PredictorRun, evaluations: Sequence[Evaluation], stages: Mapping[int, Stage]) -> RunLine:
    return RunLine(
        run=RunFacts.of(run, stages[run.stage_id]),
        evaluated_on=tuple(
            stages[evaluation.stage_id].index for evaluation in evaluations if evaluation.predictor_run_id == run.pk
        ),
    )


# The ways of weighting answers: their names in `Evaluation.metrics`, and on the page. The first one is preferred.
COUNTED = {
    "weighted": "By the design's weights, which makes it a figure over all candidates",
    "naive": "The answers as they came",
    "holdout": "The uniform holdout",
    "majority": "The test stage's items, each once, by the label of most of its answers (extremes, not all candidates)",
}


def _judgement(
    stage: Stage, evaluations: Sequence[Evaluation], runs: Mapping[int, PredictorRun], learning: Learning | None
) -> EvaluationTable | None:
    metrics = shown_metrics(learning)
    for evaluation in evaluations:
        run = runs.get(evaluation.predictor_run_id)
        if evaluation.stage_id == stage.pk and run is not None and run.role == PredictorRun.Role.MAIN:
            leads = (metrics[0].name, all_answers(learning)) if learning is not None and metrics else None
            return EvaluationTable(
                run=RunFacts.of(run, run.stage),
                tables=tuple(
                    (title, metric_table(evaluation.metrics[name], learning))
                    for name, title in COUNTED.items()
                    if name in evaluation.metrics
                ),
                leading=leading(evaluation.metrics, *leads) if leads else None,
                interval=_leading_interval(evaluation.metrics, *leads) if leads else None,
            )
    return None


def leading(metrics: Mapping[str, Any], name: str, part: str) -> float | None:
    """A metric over all answers, weighted in the best way there is (see `COUNTED`)."""
    counted: Mapping[str, Any] = next((metrics[way] for way in COUNTED if way in metrics), {})
    value = (counted.get(name) or {}).get(part)
    return float(value) if isinstance(value, int | float) else None


def _leading_interval(metrics: Mapping[str, Any], name: str, part: str) -> tuple[float, float] | None:
    counted: Mapping[str, Any] = next((metrics[way] for way in COUNTED if way in metrics), {})
    ends = ((counted.get("intervals") or {}).get(name) or {}).get(part)
    return (float(ends[0]), float(ends[1])) if ends else None


def metric_table(metrics: Mapping[str, Any], learning: Learning | None) -> MetricTable:
    """Each metric, with its interval if there is one."""
    heads = {"n": "answers", **{metric.name: metric.head for metric in shown_metrics(learning)}}
    intervals = metrics.get("intervals") or {}
    figures = {name: value for name, value in metrics.items() if name != "intervals"}
    parts: list[str] = []
    for value in figures.values():
        if isinstance(value, Mapping):
            parts += [part for part in value if part not in parts]
    rows = [
        (
            heads.get(name, name.replace("_", " ")),
            tuple(_with_interval(value.get(part), (intervals.get(name) or {}).get(part)) for part in parts)
            if isinstance(value, Mapping)
            else (_number(value), *([""] * (len(parts) - 1))),
        )
        for name, value in figures.items()
    ]
    return MetricTable(parts=tuple(part.replace("_", " ") for part in parts), rows=tuple(rows))


def _with_interval(value: Any, interval: Sequence[float] | None) -> str:
    return _number(value) if interval is None else Figure.between(value, interval).in_words(3)


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return number(value, 3) if isinstance(value, float) else str(value)


# Outcomes


@dataclass(frozen=True)
class _CachedOutcomes:
    """Outcomes in the cache, with the answers they were read from: how many, and when the newest was complete."""

    mark: tuple[int, datetime]
    read_at: datetime
    outcomes: Outcomes


def stage_outcomes(study: Study, stages: Sequence[Stage], *, now: datetime | None = None) -> dict[int, Outcomes]:
    """The first outcome of each stage, by the stage's key.

    Cached outcomes are used if the stage's answers did not change. If they did, the cached ones are still used for a
    little while: reloading the page of an open stage must not read all of its answers each time.
    """
    now = now or timezone.now()
    counted = counting(stages, roles=TRAINED, pilots=True)
    marks: dict[int, tuple[int, datetime]] = {
        stage: (n, newest)
        for stage, n, newest in counted.order_by()
        .values_list("slot__stage")
        .annotate(n=Count("pk"), newest=Max("completed_at"))
    }
    cached: dict[str, _CachedOutcomes] = cache.get_many(_cache_key(pk) for pk in marks)
    known_outcomes = {
        pk: cached[_cache_key(pk)].outcomes
        for pk, mark in marks.items()
        if _cache_key(pk) in cached and _is_fresh(cached[_cache_key(pk)], mark, now)
    }
    changed = [pk for pk in marks if pk not in known_outcomes]
    read = _read_outcomes(study, counted.filter(slot__stage__in=changed)) if changed else {}
    cache.set_many(
        {_cache_key(pk): _CachedOutcomes(marks[pk], now, outcomes) for pk, outcomes in read.items()}, timeout=DAY
    )
    return {stage.pk: known_outcomes.get(stage.pk) or read.get(stage.pk) or Outcomes() for stage in stages}


def _cache_key(stage: int) -> str:
    return f"survey.live.outcomes:{stage}"


def _is_fresh(cached: _CachedOutcomes, mark: tuple[int, datetime], now: datetime) -> bool:
    # A withdrawal changes the count, and a new answer changes the time.
    return cached.mark == mark or now - cached.read_at < MIN_REFRESH


def _read_outcomes(study: Study, counted: QuerySet[Assignment]) -> dict[int, Outcomes]:
    if not instruments.is_known(study.instrument):
        return {}
    instrument = instruments.of_study(study)
    if instrument.estimates is None:
        return {}
    values: dict[int, dict[int | None, list[float]]] = defaultdict(lambda: defaultdict(list))
    if (first := instrument.label_reading.first_outcome(counted)) is not None:
        name, read = first
        for row in read:
            values[row.stage][row.stratum].append(row.value)
        return _by_stage(values, name, is_share=instrument.estimates.unit_of(name) == SHARE)
    # Slots are not read: a large study would spend most of the time on making them.
    answers = counted.annotate(of_stage=F("slot__stage"), of_stratum=F("slot__stratum")).order_by("pk")
    rows = answers.iterator(chunk_size=CHUNK)
    name = ""
    while chunk := list(islice(rows, CHUNK)):
        instrument.label_reading.read_outcomes(chunk)
        outcomes = instrument.estimates.outcomes(chunk)
        if not outcomes:
            return {}
        name = next(iter(outcomes))
        for answer, value in zip(chunk, outcomes[name].tolist(), strict=True):
            values[answer.of_stage][answer.of_stratum].append(float(value))
    return _by_stage(values, name, is_share=instrument.estimates.unit_of(name) == SHARE)


def _by_stage(
    values: Mapping[int, Mapping[int | None, list[float]]], name: str, *, is_share: bool
) -> dict[int, Outcomes]:
    return {stage: _outcomes(name, by_stratum, is_share=is_share) for stage, by_stratum in values.items()}


def _outcomes(name: str, values: Mapping[int | None, list[float]], *, is_share: bool) -> Outcomes:
    together = [value for part in values.values() for value in part]
    return Outcomes(
        name=name.replace("_", " "),
        overall=Mean(sum(together) / len(together), len(together), is_share),
        by_stratum=tuple((key, Mean(sum(part) / len(part), len(part), is_share)) for key, part in values.items()),
    )
