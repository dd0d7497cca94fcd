"""A study at a panel: its draft from the study file, published, paused, started and given more places.

Every row is written before the panel is asked. Nothing is published without a spending cap, and what the places may
cost is committed before they are offered.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext_lazy

from survey.contracts import panels
from survey.exceptions import NotFound, StateRefused
from survey.models import CompletionCode, Posting, Stage, Study
from survey.panels.errors import PanelError
from survey.panels.money import locked_study, refuse_over_cap
from survey.services.base.auditing import record
from survey.services.base.locks import locked_stage
from survey.services.sittings.capacity import free_booklets
from survey.services.sittings.hourly_pay import refuse_low_pay
from survey.study_file import PROLIFIC_PARAMETERS

from .client import ProlificClient, open_client

CODE_TYPES = {
    CompletionCode.Outcome.COMPLETED: "COMPLETED",
    CompletionCode.Outcome.NO_CONSENT: "NO_CONSENT",
    CompletionCode.Outcome.FAILED_CHECKS: "FAILED_COMPREHENSION_CHECK",
    CompletionCode.Outcome.STUDY_FULL: "STUDY_FULL",
    CompletionCode.Outcome.SCREENED_OUT: "SCREENED_OUT",
}
RETURN_REASONS = {
    CompletionCode.Outcome.NO_CONSENT: gettext_lazy("You chose not to take part."),
    CompletionCode.Outcome.FAILED_CHECKS: gettext_lazy(
        "The questions about the instructions were not answered correctly."
    ),
    CompletionCode.Outcome.STUDY_FULL: gettext_lazy("All places of the study were taken."),
    CompletionCode.Outcome.SCREENED_OUT: gettext_lazy("This study looks for people in another situation."),
}
EARLIER_STUDIES = "previous_studies_blocklist"  # The panel's filter: nobody who was in one of these studies.
DEVICES = ("desktop", "tablet", "mobile")
IN_MANIFEST = ("filters", "device_compatibility", "total_available_places", "estimated_completion_time", "reward")
WAITS_FOR_REVIEW = "AWAITING REVIEW"  # All places are used: it must be started again to admit more.


def public_root() -> str:
    """Scheme and host under which people reach us."""
    if settings.IN_PRODUCTION:
        return f"https://{settings.ALLOWED_HOSTS[0].lstrip('.')}"
    return f"http://127.0.0.1:{settings.HUNCH_PORT}"


def find_posting(study: Study, number: int | None = None) -> Posting:
    """The posting of that number (its row's), or the newest one.

    Raises:
        NotFound: there is none.
    """
    found = study.postings.select_related("study__bank", "stage")
    posting = found.filter(pk=number).first() if number is not None else found.first()
    if posting is None:
        numbers = ", ".join(str(pk) for pk in study.postings.values_list("pk", flat=True))
        raise NotFound(f"{study.slug} has no such posting; it has: {numbers or 'none yet, draft one first'}")
    return posting


def draft_body(posting: Posting, *, root: str) -> dict[str, Any]:
    """What the panel is sent for a draft."""
    study = posting.study
    panel = study.config.panel
    query = "&".join(f"{name}={{{{%{name}%}}}}" for name in PROLIFIC_PARAMETERS)
    body: dict[str, Any] = {
        "name": study.title[:120],
        "internal_name": posting.internal_name,
        "description": study.config.texts.welcome,
        "external_study_url": f"{root}{reverse('frontend:welcome', args=[study.slug])}?{query}",
        "is_external_study_url_secure": panel.signed_entry,
        "prolific_id_option": "url_parameters",
        "completion_codes": [
            _code(study, code)
            for code in study.codes.order_by("pk")
            if code.outcome != CompletionCode.Outcome.SCREENED_OUT or study.config.screens_out
        ],
        "total_available_places": posting.places,
        "estimated_completion_time": posting.expected_minutes,
        "reward": posting.reward,
        "device_compatibility": list(panel.devices or DEVICES),
        "filters": _filters(study),
        "submissions_config": {"max_submissions_per_participant": 1},
    }
    if panel.maximum_minutes is not None:
        body["maximum_allowed_time"] = panel.maximum_minutes
    return body


def _filters(study: Study) -> list[dict[str, Any]]:
    """The study file's, and one more that keeps people away whom our own door would turn away.

    A later stage is another study to the panel. Without this its earlier people would be sent once more, take places,
    and find out here that they cannot take part.
    """
    filters = [one.model_dump(exclude_none=True, exclude_defaults=True) for one in study.config.panel.filters]
    slugs = [study.slug, *study.config.panel.exclude_people_of]
    earlier = Posting.objects.filter(study__slug__in=slugs, panel=study.config.panel.kind, published_at__isnull=False)
    ids = list(earlier.exclude(external_id="").order_by("pk").values_list("external_id", flat=True))
    for one in filters:
        if one["filter_id"] == EARLIER_STUDIES:
            ids = [*one.get("selected_values", []), *ids]
    others = [one for one in filters if one["filter_id"] != EARLIER_STUDIES]
    return [*others, {"filter_id": EARLIER_STUDIES, "selected_values": ids}] if ids else others


def _code(study: Study, code: CompletionCode) -> dict[str, Any]:
    outcome = CompletionCode.Outcome(code.outcome)
    action: dict[str, Any] = {"action": getattr(study.config.panel.codes, outcome.value).upper()}
    if action["action"] == "REQUEST_RETURN":
        with translation.override(study.config.texts.language):
            action["return_reason"] = str(RETURN_REASONS[outcome])
    return {"code": code.code, "code_type": CODE_TYPES[outcome], "actor": "participant", "actions": [action]}


def draft(
    stage: Stage,
    *,
    places: int | None = None,
    reward: int | None = None,
    root: str | None = None,
    client: ProlificClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Make a draft at the panel; nobody sees it there yet. Called again after a failure it goes on with the same one.

    Args:
        reward: in cents, where people turned out to take longer than the study file's reward is enough for.

    Raises:
        StateRefused: the study has no panel or no reward, or the stage has no place.
        PayTooLow: an hour would be paid less than the panel's minimum.
        PanelError: the panel did not take it, or cannot be reached.
    """
    if client is None:
        with open_client() as own:
            return draft(stage, places=places, reward=reward, root=root, client=own, by=by, via=via)
    study = stage.study
    panel = study.config.panel
    if panels.get(panel.kind) is None:
        raise StateRefused(f'panel.kind: {study.slug} is "{panel.kind}" and has no panel that it could be posted at')
    if panel.reward is None:
        raise StateRefused(f"panel.reward: {study.slug} names none, and the panel needs it")
    reward = reward or panel.reward
    refuse_low_pay(study, reward=reward)
    posting = _row(stage, places=places, reward=reward, by=by)
    if posting.external_id:
        return posting
    # A draft whose answer got lost is there already, under its internal name.
    namesakes = [one for one in client.studies() if one.get("internal_name") == posting.internal_name]
    found = next((one for one in namesakes if _is_our_own(client.study(str(one.get("id"))), study)), None)
    if found is None:
        posting.draft = draft_body(posting, root=root or public_root())
        posting.save(update_fields=["draft"])
        found = client.create_study(posting.draft)
    external_id = str(found.get("id") or "")
    if not external_id:
        raise PanelError("Prolific: to create the draft: its answer has no id")
    posting.external_id, posting.state = external_id[:64], str(found.get("status") or "")[:40]
    posting.save(update_fields=["external_id", "state"])
    _tell_the_manifest(posting, posting.draft)
    record("draft_posting", posting, by=by, via=via, external_id=posting.external_id, places=posting.places)
    return posting


def _is_our_own(told: Mapping[str, Any], study: Study) -> bool:
    """Whether a draft of that name has this study's codes. Another installation (a rehearsal's, one before a database
    was made anew) may have drafted a study of the same name, which pays by its own codes and leads to its own door."""
    codes = told.get("completion_codes")
    if not isinstance(codes, list) or not codes:
        return True
    ours = set(study.codes.values_list("code", flat=True))
    return any(isinstance(entry, Mapping) and entry.get("code") in ours for entry in codes)


@transaction.atomic
def _row(stage: Stage, *, places: int | None, reward: int, by: Any) -> Posting:
    """The stage's posting that is not at the panel yet, or a new one."""
    study = locked_study(stage.study)
    unfinished = stage.postings.filter(external_id="").select_related("study", "stage").first()
    if unfinished is not None:
        return unfinished
    panel = study.config.panel
    wanted = places or panel.places or free_booklets(stage).count() or stage.config.sittings
    return Posting.objects.create(
        study=study,
        stage=stage,
        panel=panel.kind,
        internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
        reward=reward,
        currency=panel.currency,
        places=wanted,
        expected_minutes=study.config.expected_minutes,
        created_by=by if getattr(by, "pk", None) else None,
    )


@transaction.atomic
def _tell_the_manifest(posting: Posting, told: Mapping[str, Any]) -> None:
    """Whom the panel may send, and for what pay, belongs to what a stage's answers are answers of."""
    stage = locked_stage(posting.stage_id)
    facts = {name: told[name] for name in IN_MANIFEST if name in told}
    others = [one for one in stage.manifest.get("postings", ()) if one["internal_name"] != posting.internal_name]
    stage.record(postings=[*others, {"internal_name": posting.internal_name, **facts}])
    stage.save(update_fields=["manifest"])


def adopt(
    stage: Stage,
    external_id: str,
    *,
    client: ProlificClient | None = None,
    by: Any = None,
    via: str = "command",
) -> Posting:
    """Take up a study that somebody made on the panel's own pages.

    Raises:
        StateRefused: it is somebody's posting already.
        PanelError: the panel does not know it.
    """
    if client is None:
        with open_client() as own:
            return adopt(stage, external_id, client=own, by=by, via=via)
    study = stage.study
    told = client.study(external_id)
    with transaction.atomic():
        locked_stage(stage.pk)  # Stages before the study, as everywhere.
        locked_study(study)
        if Posting.objects.filter(panel=study.config.panel.kind, external_id=external_id).exists():
            raise StateRefused("this study of the panel is a posting already")
        state = str(told.get("status") or "")[:40]
        posting = Posting.objects.create(
            study=study,
            stage=stage,
            panel=study.config.panel.kind,
            internal_name=f"{study.slug[:60]} stage {stage.index} posting {study.postings.count() + 1}",
            external_id=external_id,
            state=state,
            reward=int(told.get("reward") or study.config.panel.reward or 1),
            currency=study.config.panel.currency,
            places=int(told.get("total_available_places") or 1),
            expected_minutes=int(told.get("estimated_completion_time") or study.config.expected_minutes),
            created_by=by if getattr(by, "pk", None) else None,
            published_at=timezone.now() if state not in ("", "UNPUBLISHED") else None,
        )
        _tell_the_manifest(posting, told)
        record("adopt_posting", posting, by=by, via=via, external_id=external_id)
    return posting


def publish(posting: Posting, *, client: ProlificClient | None = None, by: Any = None, via: str = "command") -> Posting:
    """Show it to people. Its stage is open, its pay is enough, and its places fit under the study's cap.

    Raises:
        StateRefused, PayTooLow: one of these is not so.
        PanelError: where its outcome is not known the money counts as committed until the panel was read again.
    """
    if client is None:
        with open_client() as own:
            return publish(posting, client=own, by=by, via=via)
    _refuse_without_draft(posting)
    stage = Stage.objects.get(pk=posting.stage_id)
    if stage.state != Stage.State.OPEN:
        raise StateRefused(f"stage {stage.index} is {stage.state}: open it first, or people come to a closed door")
    refuse_low_pay(posting.study, reward=posting.reward)
    with transaction.atomic():
        study = locked_study(posting.study)
        refuse_over_cap(study, posting.reward * posting.places)
        if not Posting.objects.filter(pk=posting.pk, published_at__isnull=True).update(published_at=timezone.now()):
            raise StateRefused(f"{posting} was published before: pause or start it")
    try:
        told = client.transition(posting.external_id, "PUBLISH")
    except PanelError as exc:
        if exc.outcome_is_known:
            Posting.objects.filter(pk=posting.pk).update(published_at=None)
        raise
    posting.refresh_from_db(fields=["published_at"])
    _remember(posting, told)
    record("publish_posting", posting, by=by, via=via, places=posting.places, cents=posting.committed)
    return posting


def change(
    posting: Posting, action: str, *, client: ProlificClient | None = None, by: Any = None, via: str = "command"
) -> Posting:
    """PAUSE: those inside finish. START: goes on. STOP: over for good.

    Raises:
        PanelError: the panel did not do it.
    """
    if client is None:
        with open_client() as own:
            return change(posting, action, client=own, by=by, via=via)
    _refuse_without_draft(posting)
    _remember(posting, client.transition(posting.external_id, action))
    record(f"{action.lower()}_posting", posting, by=by, via=via)
    return posting


def add_places(
    posting: Posting, more: int, *, client: ProlificClient | None = None, by: Any = None, via: str = "command"
) -> Posting:
    """Offer so many places more; a panel only ever adds. A posting whose places were all used is started again.

    Raises:
        StateRefused: not a positive number, or over the cap.
        PanelError: the panel did not do it.
    """
    if client is None:
        with open_client() as own:
            return add_places(posting, more, client=own, by=by, via=via)
    _refuse_without_draft(posting)
    if more < 1:
        raise StateRefused("places: give a positive number: a panel only ever adds places")
    with transaction.atomic():
        study = locked_study(posting.study)
        if posting.published_at is not None:
            refuse_over_cap(study, posting.reward * more)
        before = Posting.objects.get(pk=posting.pk).places
        Posting.objects.filter(pk=posting.pk).update(places=before + more)
    try:
        told = client.set_places(posting.external_id, before + more)
    except PanelError as exc:
        if exc.outcome_is_known:
            Posting.objects.filter(pk=posting.pk, places=before + more).update(places=before)
        raise
    posting.refresh_from_db(fields=["places"])
    _remember(posting, told)
    record("add_places", posting, by=by, via=via, more=more, places=posting.places)
    if posting.state == WAITS_FOR_REVIEW:
        change(posting, "START", client=client, by=by, via=via)
    return posting


def _refuse_without_draft(posting: Posting) -> None:
    if not posting.external_id:
        raise StateRefused(f"{posting} is not at the panel yet: draft it again")


def _remember(posting: Posting, told: dict[str, Any]) -> None:
    posting.state = str(told.get("status") or posting.state)[:40]
    posting.save(update_fields=["state"])
