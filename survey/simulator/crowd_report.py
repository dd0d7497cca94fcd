"""What simulated people did, and whether the server has counted the same. Only reads the database."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Max

from survey.contracts import panels
from survey.models import Assignment, QuotaPlace, Respondent, Response, Sitting, Slot, Stage, Study
from survey.services.sittings.capacity import free_booklets, free_capacity
from survey.services.sittings.enrolment import find_sitting
from survey.services.sittings.return_address import shows_code

from .visitors import Person


@dataclass(frozen=True)
class Before:
    """The state of the study before the simulated people came."""

    last_respondent: int

    @classmethod
    def of(cls, study: Study) -> "Before":
        return cls(last_respondent=study.respondents.aggregate(last=Max("pk"))["last"] or 0)


@dataclass(frozen=True)
class CrowdReport:
    """`lines` say what was done, `agreed` which counts the server shares, `differences` which it does not."""

    lines: tuple[str, ...]
    agreed: tuple[str, ...]
    differences: tuple[str, ...]


def report_on(
    *,
    stage: Stage,
    people: Sequence[Person],
    strays: Sequence[Mapping[str, str]],
    before: Before,
    given_up: int,
    read: int,
) -> CrowdReport:
    comparisons = list(_compared(stage, people, strays, before))
    return CrowdReport(
        lines=tuple(_done(stage, people, strays, given_up=given_up, read=read)),
        agreed=tuple(text for text, seen, stored in comparisons if seen == stored),
        differences=tuple(
            f"{text}: {seen} seen, {stored} stored" for text, seen, stored in comparisons if seen != stored
        ),
    )


def _done(
    stage: Stage, people: Sequence[Person], strays: Sequence[Mapping[str, str]], *, given_up: int, read: int
) -> Iterator[str]:
    habits = Counter(person.habit.kind for person in people)
    if left := habits["dropout"]:
        yield f"{left} people were to leave for good; {given_up} sittings were given up after a silence"
    if habits["back_soon"] or habits["back_late"]:
        late = Assignment.objects.filter(
            sitting__in=_sittings(people), state=Assignment.State.LATE, completed_at__isnull=False
        ).count()
        yield (
            f"{habits['back_soon']} came back soon and {habits['back_late']} after their sitting had expired; "
            f"answers that came late and do not count: {late}"
        )
    if stage.study.config.quotas:
        placed = QuotaPlace.objects.filter(sitting__in=_sittings(people)).order_by()
        full = placed.filter(state=QuotaPlace.State.FULL).values("sitting").distinct().count()
        yield f"{full} people found their part of a quota full"
    if hurried := habits["speeder"]:
        refused = sum(person.diary.refused_answers for person in people)
        yield f"{hurried} answered at random; {refused} of their answers were refused at first"
    repeats: Counter[str] = sum((person.diary.repeats for person in people), Counter())
    if repeats:
        yield "sent more than once: " + ", ".join(f"{count} by {how}" for how, count in sorted(repeats.items()))
    scanned = sum(person.habit.scanned for person in people)
    if scanned or strays:
        yield f"{scanned + len(strays)} programs read {read} pages, {scanned} of them before the link's own person came"


def _sittings(people: Sequence[Person]) -> list[int]:
    tokens = (token for person in people for token in person.diary.tokens)
    known = filter(None, map(Sitting.public_id_of, tokens))
    return list(Sitting.objects.filter(public_id__in=known).values_list("pk", flat=True))


def _compared(
    stage: Stage, people: Sequence[Person], strays: Sequence[Mapping[str, str]], before: Before
) -> Iterator[tuple[str, object, object]]:
    """For each number: what it counts, its value as the people saw it, and its value in the database."""
    sittings = Sitting.objects.filter(pk__in=_sittings(people))
    begun = [person for person in people if person.diary.tokens]
    if stage.wave > 1:
        new = Respondent.objects.filter(sittings__in=sittings, is_simulated=True, sittings__wave=stage.wave)
    else:
        new = Respondent.objects.filter(study=stage.study_id, pk__gt=before.last_respondent, is_simulated=True)
    yield "people who began", len(begun), new.count()
    yield "sittings that they were let into", sum(len(person.diary.tokens) for person in begun), len(begun)
    yield "sittings of these people", len(begun), Sitting.objects.filter(respondent__in=new, wave=stage.wave).count()
    outcomes = Counter(person.diary.outcome for person in people)
    yield (
        "people who reached the last page",
        outcomes["completed"],
        sittings.filter(state=Sitting.State.COMPLETE).count(),
    )
    codes = {person.diary.code for person in people if person.diary.outcome == "completed"}
    # Pages show none where no panel asks for it.
    none = set() if shows_code(stage.study, "completed") else {""}
    yield "codes that they were shown", codes <= {stage.study.completion_code("completed"), *none}, True
    yield (
        "answers to items that were taken",
        sum(person.diary.item_answers for person in people),
        Response.objects.filter(assignment__sitting__in=sittings).count(),
    )
    held = Slot.objects.filter(stage=stage, assignments__state__in=Assignment.HOLDING)
    yield "slots that two people hold", 0, held.annotate(n=Count("pk")).filter(n__gt=1).count()
    of_person = Sitting.objects.filter(stage__study=stage.study_id).order_by().values("respondent", "wave")
    yield "people with two sittings", 0, of_person.annotate(n=Count("pk")).filter(n__gt=1).count()
    seated = stage.sittings.filter(booklet__isnull=False).count()
    claimed = stage.booklets.count() - free_booklets(stage).count()
    yield "booklets taken", claimed, seated
    yield "places given beyond those there are", 0, max(0, -free_capacity(stage))
    yield "programs that began anything", 0, sum(_began(stage.study, ids) for ids in strays)


def _began(study: Study, ids: Mapping[str, str]) -> bool:
    known = panels.of_study(study).recognise(study, ids)
    return known is not None and find_sitting(study, known) is not None
