"""Who may come back for a later wave: everybody who finished the wave before, in their own time. Imports models and
base.

Whom the panel lists as rejected, screened out or returned did not finish, whatever our sitting says. Should that be
taken back there, they may come.

The days count from the moment at which a person finished. Nobody waits for simulated people and in test copies.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from survey.contracts import panels
from survey.contracts.panels import PanelIds, SubmissionStatus
from survey.exceptions import EntryRefused, StateRefused
from survey.models import Respondent, Sitting, Stage, Study, Submission, WaveIdentity

from .identities import submission_hash

NOT_FINISHED = frozenset({SubmissionStatus.REJECTED, SubmissionStatus.RETURNED, SubmissionStatus.SCREENED_OUT})


@dataclass(frozen=True)
class WaveWindow:
    """When a person may begin a wave: from `opens` to before `closes`."""

    opens: datetime
    closes: datetime


def wave_of(study: Study, stage: Stage) -> int:
    """The stage's wave, where only its index was read."""
    return study.config.stages[stage.index - 1].wave


def window_after(study: Study, wave: int, finished_at: datetime) -> WaveWindow:
    """When somebody who finished the wave before at that time may begin this one, by the study file in force."""
    config = study.config.waves[wave - 2]
    opens = finished_at + timedelta(days=config.after_days)
    return WaveWindow(opens, opens + timedelta(days=config.open_days))


def is_of_this_visit(study: Study, sitting: Sitting, ids: PanelIds) -> bool:
    """Whether these ids began this sitting, and not another wave of the same person. Without submission ids nobody can
    tell."""
    known = _submission_of(sitting)
    return bool(known) and known == submission_hash(study, ids)


def submission_is_another(study: Study, sitting: Sitting, ids: PanelIds) -> bool:
    known = _submission_of(sitting)
    return bool(known) and known != submission_hash(study, ids)


def _submission_of(sitting: Sitting) -> str:
    if sitting.wave == 1:
        return str(sitting.respondent.panel_identity.submission_hash)
    rows = WaveIdentity.objects.filter(identity__respondent=sitting.respondent_id, wave=sitting.wave)
    return rows.values_list("submission_hash", flat=True).first() or ""


def refuse_who_is_not_due(study: Study, wave: int, before: Sitting | None, *, now: datetime) -> Sitting:
    """The sitting of the wave before, of somebody who may begin this one now.

    Args:
        before: the person's newest sitting of an earlier wave; None if they have none.

    Raises:
        EntryRefused: they did not finish the wave before, the panel does not list it as finished, or they come too
            early or too late.
    """
    if before is None or before.wave != wave - 1 or before.state != Sitting.State.COMPLETE or before.withdrawn_at:
        raise EntryRefused(
            _("This part of the study is for people who finished the part before it. Nothing has been recorded."),
            code="not_in_earlier_wave",
        )
    if _not_finished_at_panel(study, before.wave, [before.respondent]):
        raise EntryRefused(
            _(
                "This part of the study is for people whose participation in the part before it was accepted. Nothing "
                "has been recorded."
            ),
            code="not_in_earlier_wave",
        )
    if before.ended_at is None or study.is_test or before.respondent.is_simulated:
        return before
    window = window_after(study, wave, before.ended_at)
    if now < window.opens:
        raise EntryRefused(
            _("It is too early for the next part. You can begin it from %(day)s. Nothing has been recorded.")
            % {"day": _day(window.opens)},
            code="too_early",
        )
    if now >= window.closes:
        raise EntryRefused(
            _("The time for this part was over on %(day)s. Nothing has been recorded.") % {"day": _day(window.closes)},
            code="too_late",
        )
    return before


def _not_finished_at_panel(study: Study, wave: int, people: Collection[Respondent] | None = None) -> set[int]:
    """The respondents, of these or of all, whom the panel listed as rejected, screened out or returned in that wave
    when it was last read."""
    rows = Submission.objects.filter(posting__study=study, posting__wave=wave, respondent__isnull=False)
    if people is not None:
        rows = rows.filter(respondent__in=people)
    listed = rows.order_by().values_list("respondent", "posting__panel", "status")
    return {who for who, panel, said in listed if panels.find(panel).submission_status(said) in NOT_FINISHED}


def _day(at: datetime) -> str:
    return date_format(timezone.localtime(at), "DATETIME_FORMAT")


def stage_of_wave(study: Study, wave: int) -> Stage:
    """The wave's first stage that is not over yet.

    Raises:
        StateRefused: the study has no such wave, or it is over.
    """
    waves = len(study.config.waves)
    if not 2 <= wave <= waves + 1:
        has = f"its later waves are 2 to {waves + 1}" if waves else "its file has no [[waves]]"
        raise StateRefused(f"wave: {study.slug} has no later wave {wave}: {has}")
    indices = [index for index, stage in enumerate(study.config.stages, start=1) if stage.wave == wave]
    over = (Stage.State.CLOSING, Stage.State.FROZEN)
    stage = study.stages.filter(index__in=indices).exclude(state__in=over).order_by("index").first()
    if stage is None:
        raise StateRefused(f"wave: wave {wave} of {study.slug} is over, so nobody is invited to it any more")
    return stage


@dataclass(frozen=True)
class Due:
    """Somebody who may be invited: the sitting of the wave before, and when they may begin."""

    sitting: Sitting
    window: WaveWindow


def due_for(study: Study, wave: int, *, now: datetime) -> list[Due]:
    """Everybody who finished the wave before, has not begun this one and can still come, in the order in which they
    finished. People whose time has not come yet are among them."""
    began = Sitting.objects.filter(respondent__study=study, wave=wave).values("respondent")
    not_finished = _not_finished_at_panel(study, wave - 1)
    rows = Sitting.objects.filter(
        respondent__study=study, wave=wave - 1, state=Sitting.State.COMPLETE, withdrawn_at=None
    ).exclude(respondent__in=began)
    due = []
    for sitting in rows.select_related("respondent__panel_identity").order_by("ended_at", "pk"):
        if sitting.respondent_id in not_finished:
            continue
        window = window_after(study, wave, sitting.ended_at or now)
        if sitting.respondent.is_simulated or study.is_test or now < window.closes:
            due.append(Due(sitting, window))
    return due
