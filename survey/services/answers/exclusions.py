"""Which sittings a stage leaves out: by their present flags, and stored once the stage is frozen."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from survey.models import Exclusion, Stage, Study
from survey.services.answers.flags import Flags, flags_of
from survey.services.base.hashing import digest


def left_out(stage: Stage) -> dict[int, Flags]:
    """The sittings whose answers do not count, with the flags that are the reason: as decided when the stage was
    frozen; before that by the present flags."""
    if stage.state == Stage.State.FROZEN:
        return dict(Exclusion.objects.filter(stage=stage).order_by("pk").values_list("sitting", "flags"))
    return _flagged_for_exclusion(stage)


def _flagged_for_exclusion(stage: Stage) -> dict[int, Flags]:
    reasons = stage.study.config.exclusions.flags
    if not reasons:
        return {}
    found = flags_of(stage.sittings.order_by("pk").values_list("pk", flat=True))
    because = {pk: tuple(name for name in flags if name in reasons) for pk, flags in found.items()}
    return {pk: flags for pk, flags in because.items() if flags}


def decide_exclusions(stage: Stage, *, now: datetime) -> dict[int, Flags]:
    """Store what the stage leaves out. Call it inside the transaction that freezes the stage."""
    found = _flagged_for_exclusion(stage)
    Exclusion.objects.bulk_create(
        [
            Exclusion(stage=stage, sitting_id=sitting, flags=list(flags), decided_at=now)
            for sitting, flags in found.items()
        ],
        batch_size=2000,
    )
    return found


def exclusion_facts(study: Study, excluded: Collection[int]) -> dict[str, Any]:
    """For a frozen stage's manifest: the rules, and the snapshot's answers that do not count. Empty without rules."""
    reasons = study.config.exclusions.flags
    if not reasons:
        return {}
    rules = study.config.flags.model_dump(mode="json", exclude_none=True)
    return {"excluded": sorted(excluded), "exclusion_rules": {name: rules[name] for name in reasons}}


def snapshot_digest(digests: Iterable[str], facts: Mapping[str, Any]) -> str:
    """Hash over the hashes of all answers, and over the exclusions if any, since predictors learn from the others."""
    answers = list(digests)
    return digest([answers, facts["excluded"]]) if facts.get("excluded") else digest(answers)
