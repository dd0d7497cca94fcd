"""Pausing what sends people here while the site does not work. Nothing is started again: a person does that.

The panel is asked first: what it does not show as active was paused or stopped by somebody, and is left as it is.
Pausing needs no database, which may be what is broken.
"""

from dataclasses import dataclass

from django.db.models import Q

from survey.contracts import panels
from survey.contracts.panels import PanelCannot, PanelRefused, PostingState
from survey.models import Posting, Stage
from survey.panels.asking import client_of, state_meant
from survey.panels.postings import postings_in

from .alerting import Cause, Trouble
from .studies import of_studies


@dataclass(frozen=True)
class Recruitment:
    """What sends people here: a posting, or a study whose panel has no API (then `posting` is None)."""

    study_id: int
    slug: str
    panel: str
    posting: int | None = None
    external_id: str = ""

    @property
    def subject(self) -> str:
        return f"study {self.slug}" if self.posting is None else subject_of(self.posting, self.slug)


def subject_of(posting: int, slug: str) -> str:
    """How alerts name a posting."""
    return f"posting {posting} of {slug}"


def under_way() -> list[Recruitment]:
    """Everything that may send people now. A posting that is perhaps published counts."""
    perhaps = Posting.objects.exclude(external_id="").filter(pending=Posting.Pending.PUBLISH)
    postings = Posting.objects.filter(Q(pk__in=postings_in(PostingState.ACTIVE).values("pk")) | Q(pk__in=perhaps))
    recruitments = [
        Recruitment(study_id, slug, panel, pk, external_id)
        for pk, study_id, slug, panel, external_id in postings.order_by("pk").values_list(
            "pk", "study_id", "study__slug", "panel", "external_id"
        )
    ]
    for stage in of_studies(Stage.objects).filter(state=Stage.State.OPEN).select_related("study").order_by("pk"):
        kind = panels.of_study(stage.study)
        if kind.pays_from_a_list:
            recruitments.append(Recruitment(stage.study_id, stage.study.slug, stage.study.config.panel.kind))
    return recruitments


def pause(recruitment: Recruitment, *, was_asked: bool) -> str | None:
    """Pause it at the panel. Returns the panel's word for its state now; None if it was not active and stays as it is.

    Args:
        was_asked: an earlier call may have paused it, and its answer was lost.

    Raises:
        HunchError: it could not be paused, and may still send people.
    """
    if recruitment.posting is None:
        raise PanelCannot("its panel has no API: pause it on the panel's own pages, or stop handing out links")
    with client_of(recruitment.panel) as client:
        if not client.can("pause"):
            raise PanelCannot("its panel's API cannot pause: pause it on the panel's own pages")
        state = client.posting(recruitment.external_id).state
        if state_meant(recruitment.panel, state) != PostingState.ACTIVE:
            return state if was_asked and state_meant(recruitment.panel, state) == PostingState.PAUSED else None
        try:
            return client.pause(recruitment.external_id)
        except PanelRefused:
            # Somebody may have paused it in between.
            if state_meant(recruitment.panel, client.posting(recruitment.external_id).state) == PostingState.ACTIVE:
                raise
            return None


def was_paused(recruitment: Recruitment, why: str) -> Trouble:
    message = (
        f"Hunch has paused it at {recruitment.panel}, because {why} "
        f"It is not started again by itself. When all works: `hunch posting {recruitment.slug} start`."
    )
    return Trouble(Cause.POSTING_PAUSED, recruitment.subject, message, recruitment.study_id)


def could_not_be_paused(recruitment: Recruitment, why: str, error: str) -> Trouble:
    message = f"People may still be sent here, although {why} It could not be paused: {error}."
    return Trouble(Cause.NOT_PAUSED, recruitment.subject, message, recruitment.study_id)
