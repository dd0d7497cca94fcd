"""What a pilot showed: times and drop-outs by screen, failed checks, how people used the scale, and their remarks.

Only reads. A pilot's answers are used for nothing else.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from survey.contracts import instruments
from survey.exceptions import StateRefused
from survey.models import (
    AttentionAnswer,
    CheckAttempt,
    Response,
    ScreenTiming,
    Sitting,
    Stage,
    Study,
)
from survey.services.answers.counting import counted_answers
from survey.services.results.remarks import Remark, remarks_of
from survey.services.sittings.flow import current_step
from survey.services.sittings.hourly_pay import HourlyPay, hourly_pay_by_pilot

STEP_COLUMNS = ("kind", "name", "sitting", "taken_at", "server_ms")
RESPONSE_COLUMNS = ("screen", "assignment__sitting", "answered_at", "server_ms")


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of n values."""

    n: int
    median: float
    lower: float
    upper: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread | None":
        if not values:
            return None
        if len(values) == 1:
            return cls(1, values[0], values[0], values[0])
        lower, middle, upper = quantiles(values, n=4, method="inclusive")
        return cls(len(values), middle, lower, upper)


@dataclass(frozen=True)
class ScreenLine:
    """One screen: how long it took, in seconds, and how many people left there for good."""

    kind: str
    name: str
    seconds: Spread | None
    left: int


@dataclass(frozen=True)
class CheckLine:
    """A comprehension check (both attempts) or an attention check (one)."""

    name: str
    question: str
    shown: int
    failed: int
    failed_again: int | None


@dataclass(frozen=True)
class ShareLine:
    """How often the answer to one kind of question was exactly this one."""

    what: str
    value: Hashable
    share: float
    n: int


@dataclass(frozen=True)
class PilotReport:
    study: Study
    begun: int
    finished: int
    by_state: dict[str, int]
    withdrawn: int
    minutes: Spread | None
    screens: list[ScreenLine]
    checks: list[CheckLine]
    outcomes: list[tuple[str, float, int]]
    shares: list[ShareLine]
    remarks: list[Remark]
    pay: HourlyPay | None


def pilot_report(study: Study) -> PilotReport:
    """The results of all pilots of the study together. Simulated people count: a pilot may be tried out with them.

    Raises:
        StateRefused: the study has no pilot, or nobody has begun it.
    """
    if not study.config.pilots:
        raise StateRefused(f"{study.slug} has no pilot: set pilot = true in its first stage")
    stages = list(study.stages.filter(index__lte=study.config.pilots).order_by("index"))
    everybody = list(
        Sitting.objects.filter(stage__in=stages).select_related("stage__study__bank", "respondent").order_by("pk")
    )
    if not everybody:
        raise StateRefused(f"{study.slug}: nobody has begun the pilot yet")
    for sitting in everybody:
        sitting.stage.study = study
    people = [sitting for sitting in everybody if sitting.withdrawn_at is None]
    done = [sitting for sitting in people if sitting.state == Sitting.State.COMPLETE and not sitting.expired_at]
    minutes = [
        (sitting.ended_at - sitting.started_at).total_seconds() / 60 for sitting in done if sitting.ended_at is not None
    ]
    outcomes, shares = _answers(study, stages)
    return PilotReport(
        study=study,
        begun=len(people),
        finished=sum(sitting.state == Sitting.State.COMPLETE for sitting in people),
        by_state=dict(Counter(sitting.get_state_display() for sitting in people)),
        withdrawn=len(everybody) - len(people),
        minutes=Spread.of(minutes),
        screens=_screens(people),
        checks=[*_checks(people), *_attention(people)],
        outcomes=outcomes,
        shares=shares,
        remarks=remarks_of(people),
        pay=hourly_pay_by_pilot(study),
    )


def _screens(people: Sequence[Sitting]) -> list[ScreenLine]:
    """In the order in which most people saw them."""
    begun = {sitting.pk: sitting.started_at for sitting in people}
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    since_the_start: dict[tuple[str, str], list[float]] = defaultdict(list)
    steps = ScreenTiming.objects.filter(sitting__in=people)
    responses = Response.objects.filter(assignment__sitting__in=people)
    for key, sitting, at, ms in (
        *(((kind, name), *rest) for kind, name, *rest in steps.values_list(*STEP_COLUMNS)),
        *((("item", screen), *rest) for screen, *rest in responses.values_list(*RESPONSE_COLUMNS)),
    ):
        seconds[key].append(ms / 1000)
        since_the_start[key].append((at - begun[sitting]).total_seconds())
    left: Counter[tuple[str, str]] = Counter()
    for sitting in people:
        if sitting.state == Sitting.State.EXPIRED:
            step = current_step(sitting)
            left[step.kind, step.screen.name if step.screen else step.block.name or ""] += 1
        elif sitting.state == Sitting.State.FAILED_CHECKS:
            left["checks", sitting.current_block.name or ""] += 1
    order = sorted(seconds, key=lambda key: median(since_the_start[key]))
    order += [key for key in left if key not in seconds]
    return [ScreenLine(kind, name, Spread.of(seconds.get((kind, name), [])), left[kind, name]) for kind, name in order]


def _checks(people: Sequence[Sitting]) -> Iterable[CheckLine]:
    shown_counts: Counter[str] = Counter()
    failed: dict[int, Counter[str]] = {1: Counter(), 2: Counter()}
    for attempt, answers in CheckAttempt.objects.filter(sitting__in=people).values_list("attempt", "answers"):
        for name, chosen in answers.items():
            shown_counts[name] += attempt == 1
            failed[attempt][name] += chosen != 0  # In the file the right option comes first.
    files = {sitting.study_sha256: sitting.config for sitting in people}.values()
    words = {check.name: str(check.question) for file in files for block in file.blocks for check in block.checks}
    for name in shown_counts:
        yield CheckLine(name, words.get(name, ""), shown_counts[name], failed[1][name], failed[2][name])


def _attention(people: Sequence[Sitting]) -> Iterable[CheckLine]:
    passed: dict[str, list[bool]] = defaultdict(list)
    for name, is_right in AttentionAnswer.objects.filter(sitting__in=people).values_list("name", "passed"):
        passed[name].append(is_right)
    for name, outcomes in sorted(passed.items()):
        yield CheckLine(name, "attention check", len(outcomes), len(outcomes) - sum(outcomes), None)


def _answers(study: Study, stages: Sequence[Stage]) -> tuple[list[tuple[str, float, int]], list[ShareLine]]:
    instrument = instruments.of_study(study)
    answers = []
    for stage in stages:
        stage.study = study
        answers += counted_answers(stage, pilots=True)
    if not answers:
        return [], []
    estimates = instrument.estimates
    outcomes = [
        (name.replace("_", " "), float(values.mean()), len(values))
        for name, values in (estimates.outcomes(answers) if estimates is not None else {}).items()
    ]
    stated: dict[str, Counter[Hashable]] = defaultdict(Counter)
    for _sitting, kind, value in instrument.signals.stated_values({answer.sitting_id for answer in answers}):
        stated[kind][value] += 1
    shares = [
        ShareLine(kind, value, counts[value] / counts.total(), counts.total())
        for kind, counts in stated.items()
        for value in instrument.signals.round_values
    ]
    return outcomes, shares
