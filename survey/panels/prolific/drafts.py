"""What Prolific is sent for a draft: the study file in Prolific's own words."""

import hashlib
from html import escape
from itertools import groupby
from typing import Any

from django.db.models import Q
from django.utils import translation
from django.utils.translation import gettext_lazy

from survey.models import CompletionCode, Posting, Study
from survey.study_file import FilterConfig

Outcome = CompletionCode.Outcome
CODE_TYPES = {
    Outcome.COMPLETED: "COMPLETED",
    Outcome.NO_CONSENT: "NO_CONSENT",
    Outcome.FAILED_CHECKS: "FAILED_COMPREHENSION_CHECK",
    Outcome.STUDY_FULL: "STUDY_FULL",
    Outcome.SCREENED_OUT: "SCREENED_OUT",
}
RETURN_REASONS = {
    Outcome.NO_CONSENT: gettext_lazy("You chose not to take part."),
    Outcome.FAILED_CHECKS: gettext_lazy("The questions about the instructions were not answered correctly."),
    Outcome.STUDY_FULL: gettext_lazy("All places of the study were taken."),
    Outcome.SCREENED_OUT: gettext_lazy("This study looks for people in another situation."),
}
PAYS_SCREEN_OUTS = "FIXED_SCREEN_OUT_PAYMENT"
EARLIER_STUDIES = "previous_studies_blocklist"  # The panel's filter against people of earlier studies.
INVITED_GROUPS = "participant_group_allowlist"  # The panel's filter for members of groups alone.
BLOCKED_GROUPS = "participant_group_blocklist"  # The same against members of groups.
# Who comes back with one of these has begun here, and would not be let in again.
CODES_OF_PARTICIPANTS = (Outcome.COMPLETED, Outcome.FAILED_CHECKS, Outcome.SCREENED_OUT)
DEVICES = ("desktop", "tablet", "mobile")
# Whom Prolific may send, and for what pay.
FACTS = (
    *("filters", "filter_set_id", "study_type", "device_compatibility", "total_available_places"),
    *("estimated_completion_time", "reward", "content_warnings"),
)


def draft_body(posting: Posting, *, address: str) -> dict[str, Any]:
    """What Prolific is sent for a draft."""
    study = posting.study
    panel = study.config.panel
    body: dict[str, Any] = {
        "name": study.title[:120],
        "internal_name": posting.internal_name,
        "description": as_html(study.config.in_language(study.config.texts.language).welcome),
        "external_study_url": address,
        "is_external_study_url_secure": panel.signed_entry,
        "prolific_id_option": "url_parameters",
        "metadata": mark_of(posting),
        "completion_codes": [
            _code(study, code, posting.group)
            for code in study.codes.order_by("pk")
            if code.outcome != Outcome.SCREENED_OUT or study.config.screens_out
        ],
        "total_available_places": posting.places,
        "estimated_completion_time": posting.expected_minutes,
        "reward": posting.reward,
        "device_compatibility": list(panel.devices or DEVICES),
        "submissions_config": {"max_submissions_per_participant": 1},
    }
    if panel.filter_set:
        body["filter_set_id"] = panel.filter_set
    else:
        body["filters"] = _filters(posting)
    if panel.representative_sample:
        body["study_type"] = panel.representative_sample
    elif any(panel_filter.is_weighted for panel_filter in panel.filters):
        body["study_type"] = "QUOTA"
    if panel.content_warning:
        body["content_warnings"] = [panel.content_warning]
    if panel.content_warning_details:
        body["content_warning_details"] = panel.content_warning_details
    if panel.project:
        body["project"] = panel.project
    if panel.maximum_minutes is not None:
        body["maximum_allowed_time"] = panel.maximum_minutes
    return body


def mark_of(posting: Posting) -> str:
    """What stands on a draft so that it is known again: another installation's draft of the same name has other codes,
    and so another mark."""
    codes = sorted(posting.study.codes.values_list("code", flat=True))
    return f"hunch {hashlib.sha256(chr(10).join([posting.internal_name, *codes]).encode()).hexdigest()[:32]}"


def _filters(posting: Posting) -> list[dict[str, Any]]:
    """The study file's filters, and one more that keeps out people whom Hunch would turn away.

    To the panel, a later stage is a different study. Without this filter it would send people of earlier stages again.
    They would take places, and only here find out that they cannot take part. A group holds only those who have begun
    here; the list of earlier studies keeps away everybody whom they sent, also who found all places taken.
    """
    study, group = posting.study, posting.group
    filters = [_as_sent(panel_filter) for panel_filter in study.config.panel.filters]
    if posting.wave > 1:
        return _filters_of_wave(posting, filters)
    if group:
        filters = _with_values(filters, BLOCKED_GROUPS, [group])
    slugs = [*([] if group else [study.slug]), *study.config.panel.exclude_people_of]
    earlier = Posting.objects.filter(study__slug__in=slugs, panel=study.config.panel.kind, published_at__isnull=False)
    earlier = earlier.exclude(external_id="")
    if group:
        # Of postings without the group nobody is in it yet; and who began in one of them is kept away as before.
        earlier = Posting.objects.filter(
            Q(pk__in=earlier) | Q(study=study, panel=study.config.panel.kind, published_at__isnull=False, group="")
        ).exclude(Q(external_id="") | Q(group=group))
    ids = list(earlier.order_by("pk").values_list("external_id", flat=True))
    return _with_values(filters, EARLIER_STUDIES, ids)


def group_of_wave(study: Study, wave: int) -> str:
    """The name of the panel's group of those who are invited to the wave."""
    return f"{study.slug} wave {wave}"


def _filters_of_wave(posting: Posting, filters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of a later wave: only those who are invited, without who took part in another posting of the wave."""
    study = posting.study
    if posting.invited_group:
        filters = _with_values(filters, INVITED_GROUPS, [posting.invited_group])
    slugs = study.config.panel.exclude_people_of
    earlier = Posting.objects.filter(
        Q(study=study, wave=posting.wave) | Q(study__slug__in=slugs), panel=posting.panel, published_at__isnull=False
    ).exclude(external_id="")
    return _with_values(filters, EARLIER_STUDIES, list(earlier.order_by("pk").values_list("external_id", flat=True)))


def _with_values(filters: list[dict[str, Any]], name: str, values: list[str]) -> list[dict[str, Any]]:
    """The filters, with more values of the one with that name."""
    for sent_filter in filters:
        if sent_filter["filter_id"] == name:
            values = [*sent_filter.get("selected_values", []), *values]
    others = [other for other in filters if other["filter_id"] != name]
    return [*others, {"filter_id": name, "selected_values": values}] if values else others


def _as_sent(panel_filter: FilterConfig) -> dict[str, Any]:
    """Whole numbers go out as such: 18 and not 18.0. Dates go out as texts."""
    sent: dict[str, Any] = panel_filter.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    for name, value in sent.get("selected_range", {}).items():
        if isinstance(value, float) and value.is_integer():
            sent["selected_range"][name] = int(value)
    if panel_filter.selected_filters:
        sent["selected_filters"] = [_as_sent(inner) for inner in panel_filter.selected_filters]
    return sent


def as_html(text: str) -> str:
    """A text of the study file as the panel shows it: paragraphs, and lists where lines begin with "- "."""
    parts = []
    for kind, lines in groupby((line.strip() for line in text.splitlines()), key=_kind):
        if kind == "item":
            parts.append(f"<ul>{''.join(f'<li>{escape(line[2:].strip())}</li>' for line in lines)}</ul>")
        elif kind == "text":
            parts.append(f"<p>{'<br>'.join(escape(line) for line in lines)}</p>")
    return "".join(parts)


def _kind(line: str) -> str:
    return "item" if line.startswith("- ") else "text" if line else "gap"


def _code(study: Study, code: CompletionCode, group: str) -> dict[str, Any]:
    made = _code_alone(study, code)
    if group and code.outcome in CODES_OF_PARTICIPANTS:
        made["actions"].append({"action": "ADD_TO_PARTICIPANT_GROUP", "participant_group": group})
    return made


def _code_alone(study: Study, code: CompletionCode) -> dict[str, Any]:
    outcome, panel = Outcome(code.outcome), study.config.panel
    if outcome == Outcome.SCREENED_OUT and panel.screen_out_pay is not None:
        pays = {"fixed_screen_out_reward": panel.screen_out_pay, "slots": panel.screen_out_places}
        actions = [{"action": PAYS_SCREEN_OUTS, **pays}]
        return {"code": code.code, "code_type": "FIXED_SCREENOUT", "actor": "participant", "actions": actions}
    action: dict[str, Any] = {"action": getattr(study.config.panel.codes, outcome.value).upper()}
    if action["action"] == "REQUEST_RETURN":
        with translation.override(study.config.texts.language):
            action["return_reason"] = str(RETURN_REASONS[outcome])
    return {"code": code.code, "code_type": CODE_TYPES[outcome], "actor": "participant", "actions": [action]}
