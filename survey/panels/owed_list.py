"""Who is owed what where no panel can be asked: a list to pay from, at a panel without an API or in a lab.

People are listed by pseudonym. Panel ids are added only if somebody asks for them in order to pay; the audit says so.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from django.db.models import Max

from survey.contracts import panels
from survey.contracts.tables import Column
from survey.exceptions import StateRefused
from survey.models import AuditEntry, CompletionCode, Sitting, Study
from survey.services.answers.sitting_flags import marks_of
from survey.services.base.auditing import record
from survey.services.sittings.endings import outcome_of
from survey.services.sittings.identities import identity_of, unseal

from .money import CAME_BEFORE, is_another_visit, promised, promised_points, turned_away_pay

FILE = "owed.csv"
LISTED = "see_panel_identities"  # In the audit.
COLUMNS = (
    Column("respondent", "text", "Pseudonym."),
    Column("stage", "number", "The stage, from 1."),
    Column("state", "text", "The sitting's state."),
    Column("finished_at", "time, UTC", "When it ended; empty while it has not."),
    Column("code", "text", "The completion code that the person was shown; empty while there is none."),
    Column("owed", "number", "In whole cents or pence of the study's currency: reward and bonus together."),
    Column("currency", "text", "The study's currency."),
    Column(
        "flags",
        "text",
        "The sitting's flags, for you to look at: nobody is paid less for one. `came_before`: the person found no "
        "place in an earlier visit, which is paid, and none in this one.",
    ),
)
PANEL_COLUMNS = (
    Column("person", "text", "What the panel calls the person."),
    Column("submission", "text", "The panel's id of the participation, where it sent one."),
)


@dataclass(frozen=True)
class OwedLine:
    """One person who took part, and what they should get."""

    sitting: Sitting
    code: str
    amount: int
    flags: Sequence[str]


def owed_list(study: Study) -> list[OwedLine]:
    """Everybody real who consented, in the order of arrival.

    Raises:
        StateRefused: the study's panel is asked instead, or nobody is paid.
    """
    if study.is_test:
        raise StateRefused(f"{study.slug} is a test copy: nobody in it is paid")
    panel = panels.get(study.config.panel.kind)
    if not panel.pays_from_a_list:
        why = "nobody is paid" if panel.is_open else f"its panel is asked instead: `hunch pay_bonuses {study.slug}`"
        raise StateRefused(f'panel.kind: {study.slug} is "{panel.name}" and has no such list: {why}')
    sittings = list(
        Sitting.objects.filter(stage__study=study, respondent__is_simulated=False)
        .select_related("respondent__panel_identity", "stage")
        .order_by("stage__index", "started_at", "pk")
    )
    codes = dict(CompletionCode.objects.filter(study=study).values_list("outcome", "code"))
    points = promised_points(study, sittings)
    flags = marks_of(study, [sitting.pk for sitting in sittings])
    lines = []
    for sitting in sittings:
        amount = owed_for(study, sitting, points.get(sitting.pk, Decimal(0)))
        marks = (*flags.get(sitting.pk, ()), *([CAME_BEFORE] if is_another_visit(sitting) else []))
        lines.append(OwedLine(sitting, codes[outcome_of(sitting)] if sitting.is_over else "", amount, marks))
    return lines


def owed_for(study: Study, sitting: Sitting, points: Decimal) -> int:
    """Cents, reward and bonus together."""
    pay = promised(study, sitting)
    if sitting.state == Sitting.State.COMPLETE:
        return pay.reward + max(0, int((points * pay.point).quantize(Decimal(1), rounding=ROUND_HALF_UP)))
    by_state = {Sitting.State.TURNED_AWAY: turned_away_pay(sitting, pay), Sitting.State.SCREENED_OUT: pay.screened_out}
    return by_state.get(Sitting.State(sitting.state), 0)


def waiting_for_list(study: Study) -> set[int]:
    """The respondents, by key, who are owed money and of whom no list with the panel's ids was made since their sitting
    ended. Hunch does not record what is paid from a list. Without the ids nobody could be paid any more."""
    people = Sitting.objects.filter(stage__study=study, respondent__is_simulated=False)
    ended = list(people.filter(ended_at__isnull=False).select_related("respondent").order_by("pk"))
    points = promised_points(study, ended)
    lists = AuditEntry.objects.filter(action=LISTED, subject=str(study))
    newest = lists.aggregate(newest=Max("at"))["newest"]
    return {
        sitting.respondent_id
        for sitting in ended
        if owed_for(study, sitting, points.get(sitting.pk, Decimal(0)))
        and (newest is None or (sitting.ended_at is not None and sitting.ended_at >= newest))
    }


def rows_of(study: Study, lines: Sequence[OwedLine]) -> Iterator[list[Any]]:
    """One value for each of `COLUMNS`."""
    for line in lines:
        sitting = line.sitting
        yield [
            *(sitting.respondent.pseudonym, sitting.stage.index, sitting.state, _time(sitting.ended_at)),
            *(line.code or None, line.amount, study.config.panel.currency, " ".join(line.flags) or None),
        ]


def rows_with_ids(study: Study, lines: Sequence[OwedLine]) -> Iterator[list[Any]]:
    """One value for each of `PANEL_COLUMNS` and `COLUMNS`. The audit records that somebody asked for the ids.

    Raises:
        StateRefused: the study's people have no panel ids.
    """
    if not panels.of_study(study).has_submissions:
        raise StateRefused(f"panel.kind: the people of {study.slug} came by links, and no panel has a name for them")
    record(LISTED, study, people=len(lines))
    for line, row in zip(lines, rows_of(study, lines), strict=True):
        first = getattr(line.sitting.respondent, "panel_identity", None)
        identity = first if line.sitting.wave == 1 else identity_of(line.sitting)
        ids = unseal(bytes(identity.ids_encrypted).decode()) if identity is not None else None
        yield [*((ids.person, ids.submission or None) if ids is not None else (None, None)), *row]


def _time(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None
