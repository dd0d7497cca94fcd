"""Attention checks: which one a sitting is at, what it shows, and who failed how many. Imports models and below.

Failing is only a flag. Nothing that a respondent sees depends on it, and it rejects nobody: `panels.reconciliation`
proposes to look at people who failed as many as the panel requires.
"""

import random
from collections.abc import Iterable, Sequence

from django.db.models import Count

from survey.models import AttentionAnswer, Sitting
from survey.services.base.seeds import derive
from survey.study_file import AttentionCheckConfig, Note, StudyConfig

from .queries import Standing

FAILED_TO_REJECT = 2  # What panels require before a rejection in studies that are not very short.
# Studies of this length or more should have at least that many checks, or nobody can fail enough of them.
LONG_MINUTES = 5


def due_check(sitting: Sitting, standing: Standing) -> AttentionCheckConfig | None:
    """The check that comes before the item at which the sitting stands, or after all of them, in its language.

    A booklet may have fewer items than the study file says: later checks then come after its last item. Anyone who
    stopped is asked those of the items that they have answered.
    """
    checks = sitting.shown_config.sitting.attention_checks
    following, last = standing.assignment, standing.total
    if not checks or (following is not None and following.position == 1):
        return None
    for check in sorted(checks, key=lambda check: check.after_item):
        if following is not None:
            is_due = check.after_item < following.position
        else:
            is_due = not standing.stopped or check.after_item <= last
        if is_due and check.name not in standing.checks:
            return check
    return None


def options_shown(sitting: Sitting, check: AttentionCheckConfig) -> tuple[tuple[int, str], ...]:
    """The options as (index in the file, text), in the order of this sitting."""
    options = list(enumerate(check.options))
    if check.shuffle:
        random.Random(derive(sitting.stage.seed, "attention", check.name, sitting.public_id.hex)).shuffle(options)  # noqa: S311
    return tuple(options)


def failed_checks(sittings: Iterable[Sitting]) -> dict[int, int]:
    """The number of failed attention checks by sitting; sittings that failed none are left out."""
    failed = AttentionAnswer.objects.filter(passed=False, sitting__in=[sitting.pk for sitting in sittings])
    return dict(failed.order_by().values_list("sitting").annotate(Count("pk")))


def remarks(config: StudyConfig) -> Sequence[Note]:
    """Remarks about the checks for the person who creates the study."""
    checks = len(config.sitting.attention_checks)
    if config.expected_minutes < LONG_MINUTES or checks >= FAILED_TO_REJECT:
        return ()
    return (
        Note(
            "sitting.attention_checks",
            f"{checks or 'none'}; panels ask for {FAILED_TO_REJECT} failed ones before a "
            f"submission of {LONG_MINUTES} minutes or more may be rejected for them, and this study takes "
            f"{config.expected_minutes}",
        ),
    )
