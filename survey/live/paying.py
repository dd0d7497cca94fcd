"""Money of a study while it runs: the pay by the hour, what is spent of the cap, who is owed, and where our counts and
the panel's differ. Only reads our rows; no panel is asked."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Count

from survey.contracts import panels
from survey.contracts.panels import SubmissionStatus
from survey.figures import words
from survey.models import PaymentBatch, Posting, Sitting, Stage, Study, Submission
from survey.panels import money, owed_list
from survey.panels.asking import status_of
from survey.services.sittings.hourly_pay import hourly_pay


@dataclass(frozen=True)
class PayByHour:
    """What people get an hour, in words; `is_too_low`: less than the panel's minimum."""

    words: str
    is_too_low: bool


@dataclass(frozen=True)
class Spent:
    """Cents: what postings and bonuses may cost in all, and the study's cap; None if it names none."""

    cents: int
    cap: int | None
    currency: str

    def __str__(self) -> str:
        spent = words.money(self.cents, self.currency)
        if self.cap is None:
            return f"{spent}; the study names no cap"
        return f"{spent} of {words.money(self.cap, self.currency)}"


@dataclass(frozen=True)
class Debt:
    """People of one posting, or of the study's list, who are owed money. `posting` is None for a list."""

    posting: int | None
    people: int
    cents: int
    currency: str

    def __str__(self) -> str:
        people = "1 person is" if self.people == 1 else f"{self.people} people are"
        return f"{people} owed {words.money(self.cents, self.currency)}"


@dataclass(frozen=True)
class AtPanel:
    """A posting in numbers, as the panel said when it was last read."""

    posting: int
    stage: int
    state: str
    places: int
    by_status: tuple[tuple[str, int], ...]
    to_review: int
    unsettled: int
    error: str


@dataclass(frozen=True)
class Paying:
    pay: PayByHour | None
    spent: Spent | None
    debts: tuple[Debt, ...]
    postings: tuple[AtPanel, ...]
    differences: tuple[str, ...]


def paying(study: Study, stages: Sequence[Stage]) -> Paying:
    hourly = hourly_pay(study)
    pay = None if hourly is None else PayByHour(str(hourly), hourly.is_too_low)
    currency, panel = study.config.panel.currency, panels.of_study(study)
    postings = list(study.postings.select_related("stage").order_by("pk"))
    for posting in postings:
        posting.study = posting.stage.study = study
    spent = None
    if postings or study.config.panel.spending_cap is not None:
        spent = Spent(money.committed(study), study.config.panel.spending_cap, currency)
    debts = [debt for posting in postings for debt in _debts(posting)]
    if panel.pays_from_a_list:
        debts += _listed(study, currency)
    rows = _submissions(postings)
    return Paying(
        pay,
        spent,
        tuple(debts),
        tuple(_at_panel(postings, rows)),
        tuple(_differences(study, stages, postings, rows)),
    )


def _debts(posting: Posting) -> Iterator[Debt]:
    owed = money.owed(posting)
    if owed:
        people = len({bonus.submission.pk for bonus in owed})
        yield Debt(posting.pk, people, sum(bonus.amount for bonus in owed), posting.currency)


def _listed(study: Study, currency: str) -> Iterator[Debt]:
    """People of whom no list with the panel's ids was made since they ended."""
    waiting = owed_list.waiting_for_list(study)
    if not waiting:
        return
    lines = [line for line in owed_list.owed_list(study) if line.sitting.respondent_id in waiting]
    yield Debt(None, len(waiting), sum(line.amount for line in lines), currency)


def _submissions(postings: Sequence[Posting]) -> dict[int, list[Submission]]:
    submissions: dict[int, list[Submission]] = defaultdict(list)
    rows = Submission.objects.filter(posting__in=postings).order_by("pk").defer("ids_encrypted", "rejection_message")
    for row in rows if postings else ():
        submissions[row.posting_id].append(row)
    return submissions


def _at_panel(postings: Sequence[Posting], rows: dict[int, list[Submission]]) -> Iterator[AtPanel]:
    unsettled = dict(
        PaymentBatch.objects.filter(posting__in=postings, state__in=["sent", "unknown"])
        .order_by()
        .values_list("posting")
        .annotate(n=Count("pk"))
        if postings
        else ()
    )
    for posting in postings:
        own = rows.get(posting.pk, [])
        waiting = [row for row in own if status_of(row, posting) == SubmissionStatus.AWAITING_REVIEW]
        yield AtPanel(
            posting=posting.pk,
            stage=posting.stage.index,
            state=posting.state or "draft",
            places=posting.places,
            by_status=tuple(sorted(Counter(row.status for row in own).items())),
            to_review=len(waiting),
            unsettled=unsettled.get(posting.pk, 0),
            error=posting.error,
        )


def _differences(
    study: Study, stages: Sequence[Stage], postings: Sequence[Posting], rows: dict[int, list[Submission]]
) -> Iterator[str]:
    """Where two counts of the same people are not the same, a sentence that says which and what shows who it is."""
    begun = dict(Sitting.objects.filter(stage__in=stages).order_by().values_list("stage").annotate(n=Count("pk")))
    for stage in stages:
        if stage.arrivals != begun.get(stage.pk, 0):
            yield (
                f"Stage {stage.index} counted {stage.arrivals} arrivals and has {begun.get(stage.pk, 0)} sittings: "
                "look at the list of sittings"
            )
    # A panel is only compared where it was read: before that we know nothing of it.
    for stage in stages:
        own = [posting for posting in postings if posting.stage_id == stage.pk and posting.read_at is not None]
        if own:
            yield from _against_the_panel(stage, own, rows)


def _against_the_panel(stage: Stage, postings: Sequence[Posting], rows: dict[int, list[Submission]]) -> Iterator[str]:
    newest = max(posting.read_at for posting in postings if posting.read_at is not None)
    real = Sitting.objects.filter(stage=stage, respondent__is_simulated=False, state=Sitting.State.COMPLETE)
    here = set(real.filter(ended_at__lt=newest).order_by().values_list("respondent", flat=True))
    there: set[int | None] = set()
    strangers, late = 0, set()
    for posting in postings:
        for row in rows.get(posting.pk, []):
            status = status_of(row, posting)
            if status == SubmissionStatus.TIMED_OUT:
                late.add(row.respondent_id)
            elif status == SubmissionStatus.AWAITING_REVIEW or status.is_paid:
                strangers += row.respondent_id is None
                there.add(row.respondent_id)
    only_here, only_there = len(here - there - late), len(there - here - {None}) + strangers
    if only_here:
        yield (
            f"Stage {stage.index}: {only_here} of the {len(here)} people who finished here have not handed in at the "
            "panel: the posting's page shows who"
        )
    if only_there:
        yield (
            f"Stage {stage.index}: the panel has {only_there} people as handed in or paid who did not finish here: the "
            "posting's page shows who"
        )
