"""The pay per hour, compared with the panel's minimum. Panels compute it from the median of the real times."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from django.db.models import QuerySet

from survey.contracts import panels
from survey.exceptions import PayTooLow
from survey.figures.words import money, number, short
from survey.models import Sitting, Study
from survey.study_file import StudyConfig

# With fewer finished sittings than this, the expected minutes say more than a median.
ENOUGH = 10
ENOUGH_IN_A_PILOT = 3


@dataclass(frozen=True)
class HourlyPay:
    """Cents per hour at the median (or expected) minutes, and the lowest pay that the panel allows."""

    cents: float
    minimum: int
    currency: str
    minutes: float
    finished: int
    is_of_pilot: bool = False

    @property
    def is_measured(self) -> bool:
        return self.finished >= (ENOUGH_IN_A_PILOT if self.is_of_pilot else ENOUGH)

    @property
    def is_too_low(self) -> bool:
        return self.cents < self.minimum

    @property
    def basis(self) -> str:
        if self.is_measured and self.is_of_pilot:
            return f"the pilot's median of {self.finished} finished sittings, {number(self.minutes, 1)} minutes"
        if self.is_measured:
            return f"the median of {self.finished} finished sittings, {number(self.minutes, 1)} minutes"
        return f"the expected {short(self.minutes)} minutes"

    def __str__(self) -> str:
        return (
            f"{money(self.cents, self.currency)} an hour by {self.basis}; the panel's minimum is {money(self.minimum)}"
        )


def hourly_pay(study: Study, *, reward: int | None = None, as_expected: bool = False) -> HourlyPay | None:
    """The hourly pay of a reward; None if the panel has no minimum, or the study names no reward. The minimum is what
    the panel said when the newest posting was read, or else what it names in general.

    Args:
        reward: in cents; without it the newest posting's, or else the study file's.
        as_expected: use only the study file, not what was measured and posted since.
    """
    config = study.config
    postings = study.postings.order_by("-pk").values_list("reward", "panel_facts", "currency")
    newest = None if as_expected else postings.first()
    said = None
    if newest is not None:
        reward = newest[0] if reward is None else reward
        said = newest[1].get("minimum") if newest[2] == config.panel.currency else None
    times = [] if as_expected else minutes_taken(study)
    minutes = median(times) if len(times) >= ENOUGH else float(config.expected_minutes)
    return _pay(config, reward or config.panel.reward, minutes, finished=len(times), said=said)


def hourly_pay_by_pilot(study: Study) -> HourlyPay | None:
    """The hourly pay of the study file's reward by the pilot's times. None if too few finished the pilot, if nobody is
    paid, or if its sittings were different: with other blocks, or another number of items."""
    config = study.config

    def lasts_as_long(sitting: Sitting) -> bool:
        then = study.as_of(sitting.study_sha256)
        return (then.sitting.items, len(then.blocks)) == (config.sitting.items, len(config.blocks))

    pilots = _finished(study).filter(stage__index__lte=config.pilots)
    times = _minutes(sitting for sitting in pilots if lasts_as_long(sitting))
    if len(times) < ENOUGH_IN_A_PILOT:
        return None
    return _pay(config, config.panel.reward, median(times), finished=len(times), is_of_pilot=True)


def _pay(
    config: StudyConfig,
    reward: int | None,
    minutes: float,
    *,
    finished: int,
    is_of_pilot: bool = False,
    said: int | None = None,
) -> HourlyPay | None:
    """`said`: the minimum that the panel named when it was asked; else the one that it names in general."""
    minimum = said or panels.find(config.panel.kind).minimum_an_hour.get(config.panel.currency)
    if minimum is None or config.panel.reward is None or reward is None:
        return None
    return HourlyPay(
        cents=reward * 60 / max(minutes, 1 / 60),
        minimum=minimum,
        currency=config.panel.currency,
        minutes=minutes,
        finished=finished,
        is_of_pilot=is_of_pilot,
    )


def minutes_taken(study: Study) -> list[float]:
    """Times from consent to the end, of all real people who finished without letting the sitting expire. The pilot's
    people are used until somebody has finished a main stage."""
    main = _minutes(_finished(study).filter(stage__index__gt=study.config.pilots))
    return main or _minutes(_finished(study))


def _finished(study: Study) -> QuerySet[Sitting]:
    return Sitting.objects.filter(
        stage__study=study,
        state=Sitting.State.COMPLETE,
        expired_at__isnull=True,
        withdrawn_at__isnull=True,
        respondent__is_simulated=False,
    )


def _minutes(sittings: Iterable[Sitting]) -> list[float]:
    return [
        (sitting.ended_at - sitting.started_at).total_seconds() / 60
        for sitting in sittings
        if sitting.ended_at is not None
    ]


def refuse_low_pay(study: Study, *, reward: int | None = None, as_expected: bool = False) -> None:
    """
    Raises:
        PayTooLow: the reward is less per hour than the panel's minimum.
    """
    _refuse(hourly_pay(study, reward=reward, as_expected=as_expected))


def refuse_low_pay_by_pilot(study: Study) -> None:
    """
    Raises:
        PayTooLow: by the pilot's times, the reward is less per hour than the panel's minimum.
    """
    _refuse(hourly_pay_by_pilot(study))


def _refuse(pay: HourlyPay | None) -> None:
    if pay is not None and pay.is_too_low:
        raise PayTooLow(f"panel.reward: {pay}; make the reward {_needed(pay)} or more, or the sitting shorter")


def _needed(pay: HourlyPay) -> int:
    """The smallest reward that is enough, in cents."""
    return -int(-pay.minimum * pay.minutes // 60)
