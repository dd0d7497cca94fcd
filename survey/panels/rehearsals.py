"""A study's whole life once at its panel, by a test participant and without money, before anybody real is sent.

The panel makes a trial of what would be drafted. It leads into the study's test copy, so that nothing of it counts.
Somebody takes part as the panel's test participant; then the panel is asked how it looks from there, and each step is
held against what is stored here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.utils import timezone

from survey.contracts import panels
from survey.contracts.panels import PanelCannot, PanelClient, PanelIds, SubmissionAtPanel, SubmissionStatus
from survey.exceptions import StateRefused
from survey.models import CompletionCode, PanelIdentity, Posting, Rehearsal, Sitting, Stage, Study
from survey.services.base.auditing import record
from survey.services.sittings import previews
from survey.services.sittings.identities import person_hash
from survey.services.stages.test_stages import open_copy
from survey.services.studies import test_copies

from .addresses import address_for_panel, public_root
from .asking import client_of

Outcome = CompletionCode.Outcome


@dataclass(frozen=True)
class RehearsalStep:
    """`sentence` says what was found, or what to do."""

    title: str
    is_done: bool
    sentence: str = ""


def newest(study: Study) -> Rehearsal | None:
    """The study's newest rehearsal; None if there was none, or its test copy was renewed since."""
    copy = test_copies.copy_of(study)
    rehearsal = study.rehearsals.order_by("-pk").first()
    return rehearsal if rehearsal is not None and copy is not None and rehearsal.copy == copy.pk else None


def begin(
    study: Study,
    *,
    root: str | None = None,
    client: PanelClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Rehearsal:
    """Have the panel make a trial that leads into the study's test copy, which is renewed where there was one before.

    Raises:
        StateRefused: the study is a test copy, or has no panel that can be asked, or no reward.
        PanelError: the panel did not make it.
    """
    test_copies.refuse_copy(study, "is not rehearsed at a panel")
    panel = study.config.panel
    if panels.get(panel.kind).client is None:
        raise StateRefused(f'panel.kind: {study.slug} is "{panel.kind}" and has no panel that it could be rehearsed at')
    if panel.reward is None:
        raise StateRefused(f"panel.reward: {study.slug} names none, and the panel needs it")
    with client_of(panel.kind, client) as asked:
        if not asked.can("rehearse"):
            raise PanelCannot(f"{panel.kind} makes no trials: walk through the test copy instead")
        if newest(study) is not None:
            # The same test participant may come again, and takes part once in a copy.
            test_copies.renew_copy(study, by=by, via=via)
        stage = open_copy(study, by=by, via=via)
        sent = asked.compose(_as_posting(study, stage), address=_address(stage.study, root or public_root()))
        made = asked.rehearse(sent)
    rehearsal = Rehearsal.objects.create(
        study=study,
        copy=stage.study.pk,
        panel=panel.kind,
        external_id=made.external_id[:64],
        address=made.address,
        created_by=by if getattr(by, "pk", None) else None,
    )
    record("rehearse", study, by=by, via=via, external_id=rehearsal.external_id)
    return rehearsal


def _as_posting(study: Study, stage: Stage) -> Posting:
    """What is composed from; it is never stored, and costs nothing."""
    config = study.config
    return Posting(
        study=stage.study,
        stage=stage,
        panel=config.panel.kind,
        internal_name=f"{study.slug[:60]} rehearsal {study.rehearsals.count() + 1}",
        places=1,
        reward=config.panel.reward or 0,
        screen_outs=config.panel.screen_outs,
        currency=config.panel.currency,
        expected_minutes=config.expected_minutes,
    )


def _address(copy: Study, root: str) -> str:
    """Of the test copy, with the panel's placeholders and the invitation that a test copy asks for."""
    address = address_for_panel(copy, root)
    return f"{address}{'&' if '?' in address else '?'}{urlencode({previews.PARAMETER: previews.secret_of(copy)})}"


def look(
    rehearsal: Rehearsal, *, client: PanelClient | None = None, by: Any = None, via: str = "command"
) -> list[RehearsalStep]:
    """How far it is. Who finished is approved as real people are; then the trial is over, and is stopped at the panel.

    Raises:
        PanelError: the panel could not be asked, or did not do it.
    """
    with client_of(rehearsal.panel, client) as asked:
        submission = _submission(rehearsal, asked)
        sitting = _sitting(rehearsal, submission)
        status = _status(rehearsal, submission)
        if submission is not None and sitting is not None and sitting.state == Sitting.State.COMPLETE:
            if status == SubmissionStatus.AWAITING_REVIEW:
                asked.approve(submission.submission)
                submission = asked.submission(submission.submission)
                status = _status(rehearsal, submission)
            if status.is_paid and not rehearsal.is_over and asked.can("stop"):
                asked.stop(rehearsal.external_id)
    steps = list(_steps(rehearsal, submission, sitting, status))
    is_over = all(step.is_done for step in steps)
    if is_over and not rehearsal.is_over:
        record("rehearsed", rehearsal.study, by=by, via=via, external_id=rehearsal.external_id)
    rehearsal.steps = [[step.title, step.is_done, step.sentence] for step in steps]
    rehearsal.is_over, rehearsal.read_at = is_over, timezone.now()
    rehearsal.save(update_fields=["steps", "is_over", "read_at"])
    return steps


def steps_of(rehearsal: Rehearsal) -> list[RehearsalStep]:
    """As they were found the last time; before that, what to do first."""
    if not rehearsal.steps:
        return list(_steps(rehearsal, None, None, SubmissionStatus.UNKNOWN))
    return [RehearsalStep(*step) for step in rehearsal.steps]


def _submission(rehearsal: Rehearsal, client: PanelClient) -> SubmissionAtPanel | None:
    """The newest one that was not given back."""
    rows = list(client.submissions(rehearsal.external_id))
    usable_rows = [row for row in rows if not _status(rehearsal, row).ended_unpaid]
    return next(reversed(usable_rows or rows), None)


def _status(rehearsal: Rehearsal, submission: SubmissionAtPanel | None) -> SubmissionStatus:
    return panels.find(rehearsal.panel).submission_status(submission.status) if submission else SubmissionStatus.UNKNOWN


def _sitting(rehearsal: Rehearsal, submission: SubmissionAtPanel | None) -> Sitting | None:
    copy = Study.objects.filter(pk=rehearsal.copy).first()
    if submission is None or copy is None:
        return None
    ids = PanelIds(rehearsal.panel, submission.person, rehearsal.external_id, submission.submission)
    known = PanelIdentity.objects.filter(study=copy, person_hash=person_hash(copy, ids))
    return Sitting.objects.filter(respondent__panel_identity__in=known).select_related("respondent").first()


def _steps(
    rehearsal: Rehearsal, submission: SubmissionAtPanel | None, sitting: Sitting | None, status: SubmissionStatus
) -> Iterator[RehearsalStep]:
    where = rehearsal.address or "the panel's page of test studies"
    yield RehearsalStep("The panel has taken the study", True, "texts, codes, pay and address were accepted")
    yield RehearsalStep(
        "A test participant takes part",
        submission is not None,
        "a place is taken" if submission else f"log in at the panel as your test participant, and open {where}",
    )
    yield RehearsalStep(
        "They arrive here with the panel's ids",
        sitting is not None,
        f"{sitting.respondent.pseudonym} in the test copy" if sitting else "nobody has come with these ids yet",
    )
    is_complete = sitting is not None and sitting.state == Sitting.State.COMPLETE
    state = sitting.get_state_display() if sitting else "not begun"
    yield RehearsalStep("They go through all pages", is_complete, state)
    codes = CompletionCode.objects.filter(study=rehearsal.copy, outcome=Outcome.COMPLETED)
    right = codes.values_list("code", flat=True).first()
    has_code = submission is not None and bool(submission.code) and submission.code == right
    entered = "the code arrived at the panel" if has_code else "the panel has no right code yet: finish by the end page"
    yield RehearsalStep("They return to the panel with the code", has_code, entered)
    said = submission.status if submission else "nothing yet"
    yield RehearsalStep("They are approved", status.is_paid, f"the panel says {said}")
