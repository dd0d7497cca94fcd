"""What Prolific takes and answers by its own documents: fields, types, enums and transitions, each with its source.

The fake and our client are held to it on every call of every test that uses the `fake` fixture: what we send must be
what Prolific takes, what the fake answers must be what Prolific answers, and no status may change as it cannot there.
Fields that we neither send nor read are left out; Prolific may send more.

Sources (read in November 2026):
    STUDY     https://docs.prolific.com/api-reference/studies/the-study-object, .../create-study, .../get-study
    FILTERS   https://docs.prolific.com/api-reference/filters/advanced-filtering
    QUOTAS    https://docs.prolific.com/api-reference/filters/study-distribution-quotas-with-filters
    SCREEN    https://prolific.notion.site/New-Custom-Screening-July-2025-23770df1d20280c29cdee4cea83f2371
    SUBMIT    https://docs.prolific.com/api-reference/submissions/submission-object, .../get-submission
    RETURN    https://docs.prolific.com/api-reference/submissions/request-submission-return
    BULK      https://github.com/prolific-oss/cli, client/payloads.go
    BONUS     https://docs.prolific.com/api-reference/bonuses, and client/responses.go of the same
    HOOKS     https://docs.prolific.com/api-reference/webhooks, and model/hook.go of the same
    ERRORS    https://docs.prolific.com/api-reference/introduction/errors, and client/responses.go of the same
    COST      https://docs.prolific.com/api-reference/studies/get-study-cost, .../calculate-study-cost
    BALANCE   https://github.com/prolific-oss/cli, client/responses.go (WorkspaceBalanceResponse)
    PAY       https://docs.prolific.com/api-reference/reward-recommendations, and model/reward_recommendation.go
    TIME      https://docs.prolific.com/api-reference/studies/get-study-predicted-recruitment-time
    GROUPS    https://docs.prolific.com/api-reference/participant-groups, client/payloads.go, model/participant_group.go
    WHEN      https://docs.prolific.com/api-reference/study-collections/transition-mutually-exclusive-study-collection:
              publish_at of a collection, in the call or on the object; model/study.go has the field of a study
    TEST      https://docs.prolific.com/documentation/core-concepts/testing-study-set-up, cmd/study/test_study.go
    SAMPLES   https://docs.prolific.com/api-reference/representative-sample-studies
    PEOPLE    https://docs.prolific.com/api-reference/studies/export-demographic-data
    TOKEN     https://docs.prolific.com/api-reference/well-known-endpoints/get-study-jwks
"""

import base64
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import jsonschema

TEXT = {"type": "string"}
NAME = {"type": "string", "minLength": 1}
COUNT = {"type": "integer", "minimum": 1}
CENTS = {"type": "integer", "minimum": 0}
TIME = {"type": ["string", "null"], "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"}
MAYBE = {"type": ["string", "null"]}


def thing(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None, *, closed: bool = False) -> Any:
    """An object with these fields. `closed`: with no others, as where Prolific refuses what it does not know."""
    properties = {**required, **(optional or {})}
    return {
        "type": "object",
        "required": [*required],
        "properties": properties,
        "additionalProperties": not closed,
    }


def one_of(*values: str) -> Any:
    return {"enum": [*values]}


STUDY_STATES = ("UNPUBLISHED", "SCHEDULED", "PUBLISHING", "ACTIVE", "PAUSED", "AWAITING REVIEW", "COMPLETED")
SUBMISSION_STATES = (
    *("RESERVED", "ACTIVE", "TIMED-OUT", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "REJECTED", "RETURNED"),
    "SCREENED OUT",
)
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT"),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
SAMPLES = (
    *("UK_REP_SAMPLE", "UK_REGIONAL_REP_SAMPLE", "REP_SAMPLE_UK_ENGLISH_AGE_POLITICAL_AFFILIATION", "US_REP_SAMPLE"),
    *("US_REGIONAL_REP_SAMPLE", "REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION"),
    "REP_SAMPLE_US_ENGLISH_AGE_POLITICAL_AFFILIATION_ETHNICITY",
)
# SCREEN; STUDY
ACTION = {
    "oneOf": [
        thing({"action": one_of("AUTOMATICALLY_APPROVE", "MANUALLY_REVIEW")}, closed=True),
        thing({"action": one_of("REQUEST_RETURN"), "return_reason": NAME}, closed=True),
        thing({"action": one_of("ADD_TO_PARTICIPANT_GROUP"), "participant_group": NAME}, closed=True),
        thing(
            {"action": one_of("FIXED_SCREEN_OUT_PAYMENT"), "fixed_screen_out_reward": COUNT, "slots": COUNT},
            closed=True,
        ),
    ]
}
CODE = thing(
    {"code": NAME, "code_type": NAME, "actions": {"type": "array", "items": ACTION, "minItems": 1}},
    {"actor": one_of("participant", "researcher")},
    closed=True,
)  # fmt: skip
# FILTERS; QUOTAS. A bound is a whole number, a number or a date.
BOUND = {"type": ["number", "string"]}
FILTER = {
    "$defs": {
        "filter": {
            "oneOf": [
                thing(
                    {"filter_id": {"not": one_of("and", "or"), "type": "string"},
                     "selected_values": {"type": "array", "items": TEXT, "minItems": 1}},
                    {"weightings": {"type": "object", "additionalProperties": COUNT}},
                    closed=True,
                ),
                thing(
                    {"filter_id": {"not": one_of("and", "or"), "type": "string"},
                     "selected_range": thing({}, {"lower": BOUND, "upper": BOUND}, closed=True)},
                    closed=True,
                ),
                thing(
                    {"filter_id": one_of("and", "or"),
                     "selected_filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}, "minItems": 1}},
                    closed=True,
                ),
            ]
        }
    }
}  # fmt: skip
STUDY_SENT = {
    **FILTER,
    **thing(
        {
            "name": {"type": "string", "minLength": 1, "maxLength": 120},
            "description": {"type": "string", "minLength": 1},
            "external_study_url": {"type": "string", "pattern": "^https?://"},
            "reward": COUNT,
            "total_available_places": COUNT,
            "estimated_completion_time": COUNT,
            "completion_codes": {"type": "array", "items": CODE, "minItems": 1},
        },
        {
            "internal_name": NAME,
            "is_external_study_url_secure": {"type": "boolean"},
            "prolific_id_option": one_of("question", "url_parameters", "not_required"),
            "maximum_allowed_time": COUNT,
            "device_compatibility": {"type": "array", "items": one_of("desktop", "tablet", "mobile"), "minItems": 1},
            "filters": {"type": "array", "items": {"$ref": "#/$defs/filter"}},
            "filter_set_id": NAME,
            "study_type": one_of("SINGLE", "QUOTA", *SAMPLES),
            "project": NAME,
            "metadata": NAME,
            "content_warnings": {"type": "array", "items": one_of("explicit", "sensitive"), "maxItems": 1},
            "content_warning_details": NAME,
            "submissions_config": thing({}, {"max_submissions_per_participant": {"type": "integer"}}, closed=True),
        },
        closed=True,
    ),
}
STUDY = thing(
    {"id": NAME, "name": NAME, "status": one_of(*STUDY_STATES), "total_available_places": COUNT, "reward": COUNT}
)
SUBMISSION = thing(
    {"id": NAME, "status": one_of(*SUBMISSION_STATES), "started_at": TIME},
    {"study_id": NAME, "participant_id": NAME, "participant": NAME, "study_code": MAYBE, "entered_code": MAYBE,
     "completed_at": TIME, "time_taken": {"type": ["number", "null"]}, "return_requested": TIME,
     "parent_study_id": MAYBE},
)  # fmt: skip


def page_of(row: Any) -> Any:
    links = thing({"next": thing({"href": MAYBE})})
    return thing(
        {"results": {"type": "array", "items": row}}, {"_links": links, "meta": thing({"count": {"type": "integer"}})}
    )


# A bonus is sent in whole units ("1.50"), and answered in cents, with fees and VAT.
MONEY = {"type": "number", "minimum": 0}
BONUS = thing({"id": NAME, "study": NAME, "amount": MONEY, "fees": MONEY, "vat": MONEY, "total_amount": MONEY})
BONUS_LINES = {"type": "string", "pattern": r"^([0-9A-Za-z_-]+,\d+\.\d\d\n){1,200}$"}
HOOK = thing({"id": NAME, "event_type": NAME, "target_url": NAME, "is_enabled": {"type": "boolean"}})
SECRET = thing({"value": NAME, "workspace_id": NAME})
DETAIL = {"type": ["string", "object", "array"]}
ERROR = thing(
    {
        "error": thing(
            {"status": {"type": "integer"}, "error_code": {"type": "integer"}, "title": TEXT}, {"detail": DETAIL}
        )
    }
)
EVENT = thing({"resource_id": NAME, "event_type": NAME}, {"participant_id": NAME, "status": one_of(*SUBMISSION_STATES)})
KEYS = thing(
    {
        "keys": {
            "type": "array",
            "minItems": 1,
            "items": thing({"kty": one_of("RSA"), "kid": NAME, "n": NAME, "e": NAME}),
        }
    }
)
PAYLOAD = thing(
    {"iss": one_of("https://www.prolific.com"), "iat": COUNT, "exp": COUNT, "aud": NAME, "sub": NAME,
     "prolific": thing({"workspace_id": NAME})},
)  # fmt: skip


# COST. In cents; a blank is as good as nothing.
AMOUNT = thing({"amount": MONEY, "currency": one_of("USD", "GBP")})
BREAKDOWN = thing({}, dict.fromkeys(("rewards", "fees", "tax", "rep_sample_fees", "rep_sample_tax"), AMOUNT))
COST = thing({}, {"rewards": BREAKDOWN, "bonuses": BREAKDOWN})
QUOTE = thing({"total_cost": MONEY}, {"rewards": MONEY, "fees": MONEY, "vat": MONEY})
BALANCE = thing({"currency_code": NAME, "total_balance": {"type": "integer"}, "available_balance": {"type": "integer"}})
PAY_ADVICE = {
    "type": "array",
    "items": thing({"currency": NAME, "min_reward_per_hour": COUNT, "recommended_reward_per_hour": COUNT}),
}
GROUP = thing({"id": NAME, "name": NAME})
MEMBERS = thing({"results": {"type": "array", "items": thing({"participant_id": NAME})}})
PLACE = {"oneOf": [thing({"name": NAME, key: NAME}, closed=True) for key in ("workspace_id", "project_id")]}


@dataclass(frozen=True, eq=False)
class Call:
    """`sent` is None where nothing is sent; `answer` None where the answer's body is not read."""

    method: str
    path: str
    answer: Any = None
    sent: Any = None
    query: frozenset[str] = frozenset()


CALLS = (
    Call("GET", r"/\.well-known/study/jwks\.json", KEYS),
    Call("GET", r"/api/v1/studies/", page_of(STUDY), query=frozenset({"page", "page_size"})),
    Call("POST", r"/api/v1/studies/", STUDY, STUDY_SENT),
    Call("GET", r"/api/v1/studies/[^/]+/", STUDY),
    # Once published, nothing but the places may change of what we set (STUDY).
    Call(
        "PATCH",
        r"/api/v1/studies/[^/]+/",
        STUDY,
        {
            "oneOf": [
                thing({"total_available_places": COUNT}, closed=True),
                thing({"publish_at": {**TIME, "type": "string"}}, closed=True),
            ]
        },
    ),
    Call(
        "POST",
        r"/api/v1/studies/[^/]+/transition/",
        STUDY,
        thing(
            {"action": one_of("PUBLISH", "PAUSE", "START", "STOP", "SCHEDULE_PUBLISH", "CANCEL_PUBLISH")},
            {"publish_at": {**TIME, "type": "string"}},
            closed=True,
        ),
    ),
    Call("POST", r"/api/v1/studies/[^/]+/test-study/", thing({"study_id": NAME, "study_url": NAME})),
    Call("GET", r"/api/v1/studies/[^/]+/cost/", COST, query=frozenset({"is_projected"})),
    Call(
        "GET",
        r"/api/v1/studies/[^/]+/predicted-recruitment-time/",
        thing({"precise_recruitment_time_hours": {"type": "number", "minimum": 0}}),
    ),
    Call(
        "POST",
        r"/api/v1/studies/[^/]+/demographic-export/",
        {"type": "string", "pattern": "^Submission id,Participant id,"},
        thing({"filters": {"type": "array", "items": thing({"filter_id": NAME}), "maxItems": 15}}, closed=True),
    ),
    Call(
        "POST",
        r"/api/v1/study-cost-calculator/",
        QUOTE,
        thing({"reward": COUNT, "total_available_places": COUNT}, closed=True),
    ),
    Call("GET", r"/api/v1/workspaces/[^/]+/balance/", BALANCE),
    Call("GET", r"/api/v1/reward-recommendations/", PAY_ADVICE, query=frozenset({"workspace_id", "currency"})),
    Call(
        "GET",
        r"/api/v1/participant-groups/",
        page_of(GROUP),
        query=frozenset({"workspace_id", "project_id", "limit", "offset"}),
    ),
    Call("POST", r"/api/v1/participant-groups/", GROUP, PLACE),
    Call(
        "POST",
        r"/api/v1/participant-groups/[^/]+/participants/",
        MEMBERS,
        thing({"participant_ids": {"type": "array", "items": NAME, "minItems": 1}}, closed=True),
    ),
    Call(
        "DELETE",
        r"/api/v1/participant-groups/[^/]+/participants/",
        MEMBERS,
        thing({"participant_ids": {"type": "array", "items": NAME, "minItems": 1}}, closed=True),
    ),
    Call(
        "GET",
        r"/api/v1/submissions/",
        page_of(SUBMISSION),
        query=frozenset({"study", "page", "page_size", "ordering"}),
    ),
    Call("GET", r"/api/v1/submissions/[^/]+/", SUBMISSION),
    Call(
        "POST",
        r"/api/v1/submissions/[^/]+/transition/",
        SUBMISSION,
        {
            "oneOf": [
                thing({"action": one_of("APPROVE")}, closed=True),
                thing(
                    {"action": one_of("REJECT"), "rejection_category": one_of(*CATEGORIES),
                     "message": {"type": "string", "minLength": 100}},
                    closed=True,
                ),
            ]
        },
    ),
    Call(
        "POST",
        r"/api/v1/submissions/[^/]+/request-return/",
        SUBMISSION,
        thing({"request_return_reasons": {"type": "array", "items": NAME, "minItems": 1}}, closed=True),
    ),
    Call(
        "POST",
        r"/api/v1/submissions/bulk-approve/",
        None,
        thing({"submission_ids": {"type": "array", "items": NAME, "minItems": 1, "maxItems": 1000}}, closed=True),
    ),
    Call(
        "POST",
        r"/api/v1/submissions/bonus-payments/",
        BONUS,
        thing({"study_id": NAME, "csv_bonuses": BONUS_LINES}, closed=True),
    ),
    Call("POST", r"/api/v1/bulk-bonus-payments/[^/]+/pay/"),
    Call("GET", r"/api/v1/hooks/secrets/", page_of(SECRET), query=frozenset({"workspace_id"})),
    Call("POST", r"/api/v1/hooks/secrets/", SECRET, thing({"workspace_id": NAME}, closed=True)),
    Call(
        "GET",
        r"/api/v1/hooks/subscriptions/",
        page_of(HOOK),
        query=frozenset({"workspace_id", "is_enabled", "limit", "offset"}),
    ),
    Call(
        "POST",
        r"/api/v1/hooks/subscriptions/",
        HOOK,
        thing(
            {"workspace_id": NAME, "event_type": one_of("submission.status.change", "study.status.change"),
             "target_url": {"type": "string", "pattern": "^https://"}},
            closed=True,
        ),
    ),
    Call("POST", r"/api/v1/hooks/subscriptions/[^/]+/", HOOK, thing({"secret": NAME}, closed=True)),
)  # fmt: skip

# What may follow what (STUDY, SUBMIT). A researcher may undo a return or a rejection there.
STUDY_MOVES = {
    "UNPUBLISHED": {"SCHEDULED", "PUBLISHING", "ACTIVE"},
    "SCHEDULED": {"UNPUBLISHED", "PUBLISHING", "ACTIVE"},
    "PUBLISHING": {"ACTIVE"},
    "ACTIVE": {"PAUSED", "AWAITING REVIEW", "COMPLETED"},
    "PAUSED": {"ACTIVE", "AWAITING REVIEW", "COMPLETED"},
    "AWAITING REVIEW": {"ACTIVE", "PAUSED", "COMPLETED"},
    "COMPLETED": {"ACTIVE", "AWAITING REVIEW"},
}
SUBMISSION_MOVES = {
    "RESERVED": {"ACTIVE", "RETURNED", "TIMED-OUT"},
    "ACTIVE": {"AWAITING REVIEW", "APPROVED", "RETURNED", "TIMED-OUT", "SCREENED OUT"},
    "AWAITING REVIEW": {"APPROVED", "PARTIALLY APPROVED", "REJECTED", "RETURNED", "SCREENED OUT"},
    "RETURNED": {"AWAITING REVIEW"},
    "REJECTED": {"AWAITING REVIEW", "APPROVED"},
}


def shortest_time_allowed(minutes: int) -> int:
    """The least `maximum_allowed_time`, in minutes, for an expected time (STUDY)."""
    return math.ceil(2 + 2 * minutes + 2 * math.sqrt(minutes))


@dataclass
class Keeper:
    """Holds calls to the contract. What breaks it is kept, since calls are answered in a thread of the fake."""

    faults: list[str] = field(default_factory=list)
    seen: set[Call] = field(default_factory=set)

    def look_at_call(self, method: str, target: str, body: bytes, status: int, answer: Any) -> None:
        parts = urlsplit(target)
        where = f"{method} {parts.path}"
        calls = [call for call in CALLS if call.method == method and re.fullmatch(call.path, parts.path)]
        # The first match: /submissions/bulk-approve/ has the shape of a submission's page, too.
        exact = [call for call in calls if "[^/]" not in call.path] or calls
        if not exact:
            self.faults.append(f"{where}: no such call")
            return
        call = exact[0]
        names = {part.partition("=")[0] for part in parts.query.split("&") if part}
        if strangers := names - call.query:
            self.faults.append(f"{where}: parameters {sorted(strangers)}")
        if status >= 400:
            self._hold(f"{where} answers {status}", answer, ERROR)
            return
        self.seen.add(call)
        if call.sent is not None:
            self._hold(f"{where} is sent", json.loads(body or b"null"), call.sent)
        elif body:
            self.faults.append(f"{where}: is sent a body")
        if call.answer is not None:
            self._hold(f"{where} answers", answer, call.answer)

    def look_at_event(self, body: bytes) -> None:
        self._hold("an event", json.loads(body), EVENT)

    def look_at_token(self, token: str) -> None:
        payload = token.split(".")[1]
        self._hold("a token", json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))), PAYLOAD)

    def look_at_move(self, what: str, was: str, now: str, allowed: Mapping[str, set[str]]) -> None:
        if was != now and now not in allowed.get(was, set()):
            self.faults.append(f"a {what} went from {was} to {now}")

    def _hold(self, where: str, value: Any, schema: Any) -> None:
        for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
            path = ".".join(str(part) for part in error.absolute_path)
            self.faults.append(f"{where}: {path or 'it'}: {error.message[:200]}")
