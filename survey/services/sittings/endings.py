"""What the last page says, by how a sitting ended. Imports models, panels' contract and below."""

from django.utils.translation import gettext as _

from survey.contracts import panels
from survey.models import CompletionCode, Sitting

Outcome = CompletionCode.Outcome
OUTCOMES = {
    Sitting.State.COMPLETE: Outcome.COMPLETED,
    Sitting.State.FAILED_CHECKS: Outcome.FAILED_CHECKS,
    Sitting.State.TURNED_AWAY: Outcome.STUDY_FULL,
    Sitting.State.SCREENED_OUT: Outcome.SCREENED_OUT,
    # A sitting is over in this state only if the person withdrew before the end.
    Sitting.State.EXPIRED: Outcome.NO_CONSENT,
}


def outcome_of(sitting: Sitting) -> Outcome:
    """How a sitting that is over ended."""
    return OUTCOMES[Sitting.State(sitting.state)]


def text_at_the_end(sitting: Sitting) -> str:
    """The study's own words for people who finished; for everybody else, why it ends here."""
    outcome = outcome_of(sitting)
    if sitting.withdrawn_at is not None and outcome == Outcome.COMPLETED:
        paid = panels.of_study(sitting.stage.study).has_submissions
        deleted = _("We have deleted your answers, as you wished. Thank you for your time.")
        return f"{deleted} {_('Your pay is the same as with them.')}" if paid else deleted
    return {
        Outcome.COMPLETED: sitting.text_of(sitting.shown_config.blocks[-1]),
        Outcome.FAILED_CHECKS: _(
            "Thank you for your time. The questions about the instructions were answered in another way than we meant "
            "them, so the study ends here. That happens, and it is not held against you."
        ),
        Outcome.STUDY_FULL: _(
            "Thank you for your interest. While you were reading, the last place of this study was taken, so there are "
            "no questions for you. We are sorry."
        ),
        Outcome.SCREENED_OUT: _(
            "Thank you for your answers. This study looks for people in another situation than yours, so there are no "
            "more questions for you. There was no right or wrong answer."
        ),
        Outcome.NO_CONSENT: _("You have withdrawn from this study. What you had answered has been deleted."),
    }[outcome]
