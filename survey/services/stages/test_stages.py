"""A test copy in which somebody can begin: made or renewed where that is needed, with an open stage."""

from typing import Any

from survey.exceptions import StateRefused
from survey.models import Stage, Study
from survey.services.sittings.capacity import admitting_stage
from survey.services.studies import test_copies

from . import lifecycle

__test__ = False  # Its name would make pytest collect it.


def open_copy(study: Study, *, by: Any = None, via: str = "command") -> Stage:
    """The stage of the study's test copy that admits people. The copy is made if there is none, and renewed if the
    study's file has changed; its next stage is opened if none is open.

    Args:
        study: the study, or its test copy.

    Raises:
        StateRefused: every stage of the copy is over, or its next stage cannot be opened now.
    """
    copy = study if study.is_test else test_copies.make_copy(study, by=by, via=via)
    stage = admitting_stage(copy)
    return stage if stage is not None else _next_opened(copy, by=by, via=via)


def _next_opened(copy: Study, *, by: Any, via: str) -> Stage:
    following = copy.stages.select_related("study__bank").exclude(state=Stage.State.FROZEN).order_by("index").first()
    original = copy.test_of.slug if copy.test_of else copy.slug
    if following is None:
        raise StateRefused(f"every stage of {copy.slug} is over: renew it (`hunch test_copy {original} renew`)")
    if following.state == Stage.State.CLOSING:
        raise StateRefused(
            f"stage {following.index} of {copy.slug} is being closed: wait until what follows is planned, "
            f"or renew it (`hunch test_copy {original} renew`)"
        )
    return lifecycle.open_stage(following, by=by, via=via)
