"""What a blind study shows of its conditions: nothing, everywhere, until an owner unblinds it.

Pages, commands, API and exports ask here which conditions there are and which levels somebody had. What computes by
conditions without showing any (drawing levels, showing screens, judging predictors) reads them as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from survey.exceptions import StateRefused
from survey.models import Study
from survey.services.base.auditing import record
from survey.study_file import ConditionConfig

HIDDEN = "hidden while the study is blind"
FILE_HIDDEN = (
    "The study file names the conditions, so that it is hidden while the study is blind. Its hash is shown. Who may "
    "unblind the study can read and amend it."
)


def shown_conditions(study: Study) -> Sequence[ConditionConfig]:
    """The factors of the study with their levels; none while it is blind."""
    return () if study.is_blind else study.config.conditions


def shown_levels(study: Study, levels: Mapping[str, Any]) -> dict[str, Any]:
    """By factor: what is known of its level; nothing while the study is blind."""
    return {} if study.is_blind else dict(levels)


def shown_file(study: Study, text: str) -> str:
    """A study file as text; a sentence in its place while the study is blind."""
    return FILE_HIDDEN if study.is_blind else text


def shown_changes(study: Study, changes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The keys that an amendment changed, with old and new values; without values where they name conditions and the
    study is blind."""
    if not study.is_blind:
        return list(changes)
    return [
        {"key": "conditions", "old": HIDDEN, "new": HIDDEN} if str(change["key"]).startswith("conditions") else change
        for change in changes
    ]


def unblind(study: Study, *, reason: str, by: Any = None, via: str = "command") -> Study:
    """Show the conditions from now on, for good. The audit records who did it and why.

    Raises:
        StateRefused: the reason is missing, or the study is not blind.
    """
    if not reason.strip():
        raise StateRefused("reason: is missing: say in a sentence why the study is unblinded; the audit records it")
    if not Study.objects.filter(pk=study.pk, is_blind=True).update(is_blind=False, unblinded_at=timezone.now()):
        raise StateRefused(f"{study.slug} is not blind: there is nothing to unblind")
    Study.objects.filter(test_of=study.pk).update(is_blind=False)
    study.refresh_from_db(fields=["is_blind", "unblinded_at"])
    record("unblind", study, by=by, via=via, reason=reason.strip()[:1000])
    return study
