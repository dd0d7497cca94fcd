"""Which sittings a stage excludes: by their present flags, and stored once the stage is frozen."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from survey.models import Exclusion, Sitting, Stage, Study
from survey.services.answers.sitting_flags import Flags, flags_of
from survey.services.base.hashing import digest


def excluded_sittings(stage: Stage) -> dict[int, Flags]:
    """The sittings whose answers do not count, with the flags that are the reason: as decided when the stage was
    frozen; before that by the present flags."""
    if stage.state == Stage.State.FROZEN:
        return dict(Exclusion.objects.filter(stage=stage).order_by("pk").values_list("sitting", "flags"))
    return flagged_sittings([stage])


def flagged_sittings(stages: Iterable[Stage]) -> dict[int, Flags]:
    """The sittings of these stages whose answers the present flags exclude, with the flags that are the reason. A few
    queries, however many stages there are."""
    reasons = {stage.pk: stage.study.config.exclusions.flags for stage in stages}
    with_rules = [pk for pk, flags in reasons.items() if flags]
    if not with_rules:
        return {}
    stage_of = dict(Sitting.objects.filter(stage__in=with_rules).order_by("pk").values_list("pk", "stage"))
    because = {
        sitting: tuple(name for name in flags if name in reasons[stage_of[sitting]])
        for sitting, flags in flags_of(stage_of).items()
    }
    return {sitting: flags for sitting, flags in because.items() if flags}


def decide_exclusions(stage: Stage, *, now: datetime) -> dict[int, Flags]:
    """Store what the stage excludes. Call it inside the transaction that freezes the stage."""
    flagged = flagged_sittings([stage])
    Exclusion.objects.bulk_create(
        [
            Exclusion(stage=stage, sitting_id=sitting, flags=list(flags), decided_at=now)
            for sitting, flags in flagged.items()
        ],
        batch_size=2000,
    )
    return flagged


def exclusion_digests(stage: Stage) -> list[str]:
    """A hash of each excluded sitting and its flags, for the audit: that an exclusion was added, removed or changed
    later can be shown without the audit naming anybody. A withdrawal takes an exclusion away and leaves its hash."""
    exclusions = (
        Exclusion.objects.filter(stage=stage).order_by("pk").values_list("sitting__respondent__pseudonym", "flags")
    )
    return sorted(digest([stage.index, pseudonym, flags]) for pseudonym, flags in exclusions)


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
