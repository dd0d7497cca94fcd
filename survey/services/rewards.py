"""What an hour is paid, against the panel's minimum. Panels hold it against the median of the real times."""

from dataclasses import dataclass
from statistics import median

from survey.exceptions import PayTooLow
from survey.models import Sitting, Study
from survey.recruitment import registry

# Below so many finished sittings a median says less than the expectation does.
ENOUGH = 10


@dataclass(frozen=True)
class HourlyPay:
    """Cents an hour at the median (or expected) minutes, and the least that the panel allows."""

    cents: float
    minimum: int
    currency: str
    minutes: float
    finished: int

    @property
    def is_measured(self) -> bool:
        return self.finished >= ENOUGH

    @property
    def is_too_low(self) -> bool:
        return self.cents < self.minimum

    @property
    def basis(self) -> str:
        if self.is_measured:
            return f"the median of {self.finished} finished sittings, {self.minutes:.1f} minutes"
        return f"the expected {self.minutes:g} minutes"

    def __str__(self) -> str:
        return (
            f"{self.cents / 100:.2f} {self.currency} an hour by {self.basis}; the panel's minimum is "
            f"{self.minimum / 100:.2f}"
        )


def hourly_pay(study: Study, *, reward: int | None = None, as_expected: bool = False) -> HourlyPay | None:
    """What a reward comes to; None where the study has no panel, or names no reward.

    Args:
        reward: in cents; without it the newest posting's, or else the study file's.
        as_expected: by what the study file says alone, whatever was measured and posted since.
    """
    settings = study.settings
    panel = registry.get(settings.panel.kind)
    if panel is None or settings.panel.reward is None:
        return None
    if reward is None and not as_expected:
        reward = study.postings.order_by("-pk").values_list("reward", flat=True).first()
    times = [] if as_expected else minutes_taken(study)
    minutes = median(times) if len(times) >= ENOUGH else float(settings.expected_minutes)
    return HourlyPay(
        cents=(reward or settings.panel.reward) * 60 / max(minutes, 1 / 60),
        minimum=panel.minimum_an_hour[settings.panel.currency],
        currency=settings.panel.currency,
        minutes=minutes,
        finished=len(times),
    )


def minutes_taken(study: Study) -> list[float]:
    """From consent to the end, of everybody real who finished without a break that expired the sitting."""
    finished = Sitting.objects.filter(
        stage__study=study, state=Sitting.State.COMPLETE, expired_at__isnull=True, respondent__is_simulated=False
    )
    times = finished.values_list("started_at", "ended_at")
    return [(ended - started).total_seconds() / 60 for started, ended in times if ended is not None]


def refuse_low_pay(study: Study, *, reward: int | None = None, as_expected: bool = False) -> None:
    """
    Raises:
        PayTooLow: the reward comes to less an hour than the panel's minimum.
    """
    pay = hourly_pay(study, reward=reward, as_expected=as_expected)
    if pay is not None and pay.is_too_low:
        raise PayTooLow(f"panel.reward: {pay}; make the reward {_needed(pay)} or more, or the sitting shorter")


def _needed(pay: HourlyPay) -> int:
    """The smallest reward that is enough, in cents."""
    return -int(-pay.minimum * pay.minutes // 60)
