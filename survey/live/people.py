"""How people go through a study: the funnel, arrivals, times of screens, conditions, failed checks. Only reads.

Everything is counted by the database or read in a fixed number of statements, whatever the number of answers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Avg, Count, F, IntegerField, Q, QuerySet, Value
from django.db.models.functions import Cast, Least, TruncHour

from survey.models import (
    Assignment,
    AssignmentCondition,
    AttentionAnswer,
    CheckAttempt,
    ConditionLevel,
    QuotaPlace,
    Response,
    ScreenTiming,
    Sitting,
    Stage,
    Study,
)
from survey.services.answers.leaving import Leavers, leavers_of
from survey.services.sittings import quotas
from survey.study_file import BlockConfig, StudyConfig

State = Sitting.State
HOURS = 48  # of arrivals
# Times are counted in steps of a quarter of a second, up to ten minutes: a few thousand counts in place of all times.
STEP_MS = 250
MAX_STEPS = 10 * 60 * 1000 // STEP_MS
QUANTILES = (0.5, 0.25, 0.75, 0.9)


# The funnel


@dataclass(frozen=True)
class FunnelLine:
    """A step of the way: how many people came to it, are there now, and left there for good."""

    name: str
    reached: int
    here: int
    left: int
    is_item: bool = False

    @property
    def share_left(self) -> float:
        return self.left / self.reached if self.reached else 0.0


@dataclass(frozen=True)
class Funnel:
    """The way of a stage's people from arrival to the end.

    `withdrawn` are counted at the step that they had come to. A step counts all who ended there, whatever the reason;
    `left` are those who left before their last item.
    """

    stage: int
    arrived: int
    finished: int
    lines: tuple[FunnelLine, ...]
    withdrawn: int = 0
    left: int = 0
    finished_late: int = 0

    @property
    def worst(self) -> FunnelLine | None:
        """The step at which most people leave; None if nobody has left."""
        left = [line for line in self.lines if line.left]
        return max(left, key=lambda line: line.left) if left else None


def funnels(study: Study, stages: Sequence[Stage]) -> tuple[Funnel, ...]:
    """One for each stage that somebody has begun."""
    sittings = Sitting.objects.filter(stage__in=stages).order_by()
    columns = ("stage", "study_sha256", "state", "block")
    ended = sittings.filter(Q(state=State.COMPLETE) | Q(booklet__isnull=True))
    rows = [(*row[:-1], 0, row[-1]) for row in ended.values_list(*columns).annotate(n=Count("pk"))]
    # Anyone who stopped among the items stands at one of them.
    unfinished = sittings.exclude(state=State.COMPLETE).filter(booklet__isnull=False)
    done = Count("assignments", filter=Q(assignments__completed_at__isnull=False))
    rows += [(*row[1:], 1) for row in unfinished.values_list("pk", *columns).annotate(done=done)]
    withdrawn = dict(sittings.filter(withdrawn_at__isnull=False).values_list("stage").annotate(n=Count("pk")))
    of_stage: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for stage, *row in rows:
        of_stage[stage].append(tuple(row))
    leavers = leavers_of(stages)
    return tuple(
        _funnel(study, stage, of_stage[stage.pk], withdrawn.get(stage.pk, 0), leavers.get(stage.pk, Leavers()))
        for stage in stages
        if of_stage[stage.pk]
    )


def _funnel(study: Study, stage: Stage, rows: Iterable[tuple[Any, ...]], withdrawn: int, leavers: Leavers) -> Funnel:
    names = step_names(study.config)
    here, left, finished = Counter[int](), Counter[int](), 0
    for sha256, state, block, done, n in rows:
        if state == State.COMPLETE:
            finished += n
            continue
        place = _place(study.as_of(sha256), block, done)
        # A file that was amended may have had more steps.
        (here if state == State.LIVE else left)[min(place, len(names) - 1)] += n
    lines, reached = [], finished + here.total() + left.total()
    arrived = reached
    for place, (name, is_item) in enumerate(names):
        lines.append(FunnelLine(name, reached, here[place], left[place], is_item))
        reached -= here[place] + left[place]
    lines.append(FunnelLine("finished", reached, 0, 0))
    return Funnel(
        stage.index, arrived, finished, tuple(lines), withdrawn, len(leavers.left), len(leavers.finished_late)
    )


def step_names(config: StudyConfig) -> list[tuple[str, bool]]:
    """The steps after the consent in order, and whether each is an item; the page of the end is not among them."""
    names: list[tuple[str, bool]] = []
    for block in config.blocks[1:-1]:
        if block.kind == "items":
            names += [(f"item {number}", True) for number in range(1, config.sitting.items + 1)]
        else:
            names.append((block_name(block), False))
    return names or [("after the consent", False)]


def block_name(block: BlockConfig) -> str:
    words = block.kind if block.kind != "form" else "form"
    return f"{words} {block.name}" if block.name else words


def _place(config: StudyConfig, block: int, done: int) -> int:
    """The place among `step_names` of a person at that block with so many items done."""
    place = 0
    for index, other_block in enumerate(config.blocks[1:-1], start=1):
        items = config.sitting.items if other_block.kind == "items" else 1
        if index == block:
            return place + (min(done, items - 1) if other_block.kind == "items" else 0)
        place += items
    return max(place - 1, 0)


# Arrivals


@dataclass(frozen=True)
class Hour:
    """How many people arrived in the hour that begins at this time."""

    at: datetime
    arrivals: int


def arrivals(stages: Sequence[Stage], now: datetime) -> tuple[Hour, ...]:
    """Every hour from the first arrival of the last two days on, those without anybody too."""
    since = now - timedelta(hours=HOURS)
    rows = Sitting.objects.filter(stage__in=stages, started_at__gte=since).order_by()
    counts = dict(rows.values_list(TruncHour("started_at")).annotate(n=Count("pk")))
    if not counts:
        return ()
    hour, hours = min(counts), []
    while hour <= now:
        hours.append(Hour(hour, counts.get(hour, 0)))
        hour += timedelta(hours=1)
    return tuple(hours)


def newest_arrival(stages: Sequence[Stage]) -> datetime | None:
    return Sitting.objects.filter(stage__in=stages).order_by("-started_at").values_list("started_at", flat=True).first()


# Times of screens


@dataclass(frozen=True)
class ScreenTimes:
    """The times of one screen in one stage, in seconds, to a quarter of a second. `at_most`: the longest of them may
    be longer, since times are counted up to ten minutes."""

    stage: int
    kind: str
    name: str
    times: int
    median: float
    lower: float
    upper: float
    ninetieth: float


def screen_times(study: Study, stages: Sequence[Stage]) -> tuple[ScreenTimes, ...]:
    """Every screen of every stage in the order of the study file."""
    index_of = {stage.pk: stage.index for stage in stages}
    steps = Least(F("server_ms") / Value(STEP_MS), Value(MAX_STEPS), output_field=IntegerField())
    counts: dict[tuple[int, str, str], Counter[int]] = defaultdict(Counter)
    order: dict[tuple[int, str, str], list[tuple[float, int]]] = defaultdict(list)
    timings = (
        ScreenTiming.objects.filter(sitting__stage__in=stages).order_by().annotate(bin=Cast(steps, IntegerField()))
    )
    of_page = ("sitting__stage", "kind", "name", "bin")
    for stage, kind, name, bin_, n, at in timings.values_list(*of_page).annotate(n=Count("pk"), at=Avg("step")):
        counts[stage, kind, name][bin_] += n
        order[stage, kind, name].append((float(at), n))
    responses = Response.objects.filter(assignment__sitting__stage__in=stages).order_by()
    responses = responses.annotate(bin=Cast(steps, IntegerField()))
    of_item = ("assignment__sitting__stage", "screen", "bin")
    for stage, name, bin_, n, at in responses.values_list(*of_item).annotate(n=Count("pk"), at=Avg("number")):
        counts[stage, "item", name][bin_] += n
        order[stage, "item", name].append((float(at), n))
    blocks: list[tuple[str, str]] = [(block.kind, block.name or "") for block in study.config.blocks]
    items = next(place for place, (kind, _name) in enumerate(blocks) if kind == "items")

    def place_of(key: tuple[int, str, str]) -> tuple[int, int, int, float]:
        stage, kind, name = key
        among_items = kind in ("item", "attention")
        known = (kind, name) if (kind, name) in blocks else next((block for block in blocks if block[0] == kind), None)
        place = items if among_items or known is None else blocks.index(known)
        total = sum(n for _at, n in order[key])
        return index_of[stage], place, kind == "attention", sum(at * n for at, n in order[key]) / total

    return tuple(_times(index_of[key[0]], key[1], key[2], counts[key]) for key in sorted(counts, key=place_of))


def _times(stage: int, kind: str, name: str, counts: Counter[int]) -> ScreenTimes:
    median, lower, upper, ninetieth = (_quantile(counts, share) for share in QUANTILES)
    return ScreenTimes(stage, kind, name, counts.total(), median, lower, upper, ninetieth)


def _quantile(counts: Counter[int], share: float) -> float:
    """Seconds: the middle of the step in which that share of the times is reached."""
    wanted, so_far, last = share * counts.total(), 0, 0
    for last in sorted(counts):
        so_far += counts[last]
        if so_far >= wanted:
            break
    return (last + 0.5) * STEP_MS / 1000


# Conditions


@dataclass(frozen=True)
class LevelCount:
    """How many sittings (or items) of a stage have a level, and how many of them are complete."""

    stage: int
    factor: str
    level: str
    per: str
    given: int
    complete: int


def balance(study: Study, stages: Sequence[Stage]) -> tuple[LevelCount, ...]:
    """Every level of every factor in every stage that somebody has begun, in the order of the study file."""
    if not study.config.conditions:
        return ()
    of_sitting = ConditionLevel.objects.filter(sitting__stage__in=stages).order_by()
    done = Count("pk", filter=Q(sitting__state=State.COMPLETE))
    rows = of_sitting.values_list("sitting__stage", "factor", "level").annotate(n=Count("pk"), done=done)
    counts = {(stage, factor, level): (n, complete) for stage, factor, level, n, complete in rows}
    if any(condition.per == "item" for condition in study.config.conditions):
        of_item = AssignmentCondition.objects.filter(assignment__slot__stage__in=stages).order_by()
        done = Count("pk", filter=Q(assignment__state=Assignment.State.COUNTED))
        per_item = of_item.values_list("assignment__slot__stage", "factor", "level")
        items = per_item.annotate(n=Count("pk"), done=done)
        counts |= {(stage, factor, level): (n, complete) for stage, factor, level, n, complete in items}
    begun = {stage for stage, _factor, _level in counts}
    return tuple(
        LevelCount(
            stage.index,
            condition.factor,
            level,
            condition.per,
            *counts.get((stage.pk, condition.factor, level), (0, 0)),
        )
        for stage in stages
        if stage.pk in begun
        for condition in study.config.conditions
        for level in condition.levels
    )


# Quotas


@dataclass(frozen=True)
class QuotaLine:
    """A cell of a quota in one stage: its places, who holds one and has finished or not, and how many people found it
    full. `places` is None for those who belong in no cell, whose `cell` is empty."""

    stage: int
    quota: str
    cell: str
    places: int | None
    inside: int
    complete: int
    found_full: int

    @property
    def free(self) -> int | None:
        return None if self.places is None else max(0, self.places - self.inside - self.complete)


def quota_lines(study: Study, stages: Sequence[Stage]) -> tuple[QuotaLine, ...]:
    """Every cell in every stage that somebody was placed in, in the order of the study file."""
    if not study.config.quotas:
        return ()
    placed = QuotaPlace.objects.filter(stage__in=stages).order_by()
    columns = ("stage", "quota", "cell")
    taken = quotas.taking(placed).values_list(*columns, "sitting__state").annotate(n=Count("pk"))
    inside, complete = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
    for stage, quota, cell, state, n in taken:
        (inside if state == State.LIVE else complete)[stage, quota, cell] += n
    others = placed.exclude(state=QuotaPlace.State.HELD).values_list(*columns).annotate(n=Count("pk"))
    full = {(stage, quota, cell): n for stage, quota, cell, n in others}
    begun = {key[0] for key in (*inside, *complete, *full)}
    lines = []
    for stage in stages:
        for quota in study.config.quotas if stage.pk in begun else ():
            for cell, places in quota.places(stage.config.sittings).items():
                key = stage.pk, quota.name, cell
                counts = (inside[key], complete[key], full.get(key, 0))
                lines.append(QuotaLine(stage.index, quota.name, cell, places, *counts))
            if outside := full.get((stage.pk, quota.name, ""), 0):
                lines.append(QuotaLine(stage.index, quota.name, "", None, 0, 0, outside))
    return tuple(lines)


# Checks


@dataclass(frozen=True)
class CheckCount:
    """A check: how many people saw it and failed it. `failed_again` is None where there is one attempt."""

    stage: int
    name: str
    question: str
    shown: int
    failed: int
    failed_again: int | None


def checks(study: Study, stages: Sequence[Stage]) -> tuple[CheckCount, ...]:
    """Every comprehension check and every attention check of each stage."""
    index_of = {stage.pk: stage.index for stage in stages}
    return tuple(
        sorted(
            [*_comprehension(study, index_of), *_attention(study, index_of)],
            key=lambda check: (check.stage, check.failed_again is None),
        )
    )


def _comprehension(study: Study, index_of: Mapping[int, int]) -> Iterator[CheckCount]:
    shown_counts: Counter[tuple[int, str]] = Counter()
    failed: dict[int, Counter[tuple[int, str]]] = {1: Counter(), 2: Counter()}
    attempts = CheckAttempt.objects.filter(sitting__stage__in=index_of).order_by()
    for stage, attempt, answers in attempts.values_list("sitting__stage", "attempt", "answers").iterator(2000):
        for name, chosen in answers.items():
            shown_counts[stage, name] += attempt == 1
            failed[attempt][stage, name] += chosen != 0  # In the file the right option comes first.
    words = {check.name: str(check.question) for block in study.config.blocks for check in block.checks}
    for key in shown_counts:
        stage, name = key
        yield CheckCount(index_of[stage], name, words.get(name, ""), shown_counts[key], failed[1][key], failed[2][key])


def _attention(study: Study, index_of: Mapping[int, int]) -> Iterator[CheckCount]:
    words = {check.name: str(check.text) for check in study.config.sitting.attention_checks}
    answers: QuerySet[AttentionAnswer] = AttentionAnswer.objects.filter(sitting__stage__in=index_of).order_by()
    counts = answers.values_list("sitting__stage", "name").annotate(
        n=Count("pk"), failed=Count("pk", filter=Q(passed=False))
    )
    for stage, name, n, failed in counts:
        yield CheckCount(index_of[stage], name, words.get(name, ""), n, failed, None)
