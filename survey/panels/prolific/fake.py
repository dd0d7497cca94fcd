"""A fake Prolific on this machine: its API, its participants, its webhooks. Imports only the standard library,
cryptography and httpx, and listens on loopback only.

It copies the awkward behaviour of the real one. A leaver's place goes to the next person at once. A list's last page
may be full. Calls come back with 429. Webhooks come late, twice and out of order. Bonuses are paid again if asked for
again. Any call can be made to fail, or to be carried out twice (`break_next`). All randomness comes from the seed.
"""

import base64
import csv
import hashlib
import hmac
import io
import json
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from enum import StrEnum
from html import escape
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256

NOT_JSON = object()  # An answer that no client can read.
ISSUER = "https://www.prolific.com"
PATIENCE = 60.0  # seconds over which calls are counted, where they are limited
WORKSPACE = "fake-workspace"
HOLDS_A_PLACE = ("RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED")
FEE, VAT = Decimal("0.333"), Decimal("0.2")  # Of what people get, and of the fee.
REASON_LENGTH = 100  # characters that a rejection's message needs
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT"),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
STUDY_MOVES = {
    "PUBLISH": ({"UNPUBLISHED"}, "ACTIVE"),
    "SCHEDULE_PUBLISH": ({"UNPUBLISHED", "SCHEDULED"}, "SCHEDULED"),
    "CANCEL_PUBLISH": ({"SCHEDULED"}, "UNPUBLISHED"),
    "PAUSE": ({"ACTIVE"}, "PAUSED"),
    "START": ({"PAUSED"}, "ACTIVE"),
    "STOP": ({"ACTIVE", "PAUSED", "AWAITING REVIEW"}, "COMPLETED"),
}


class Refused(Exception):
    """An error that the API answers with."""

    def __init__(self, status: int, title: str, detail: Any = "", *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(title)
        self.status, self.title, self.detail, self.headers = status, title, detail or title, dict(headers or {})


class Breakage(StrEnum):
    """What goes wrong with a call."""

    LOST = "it never arrives"
    ANSWER_LOST = "it is carried out, and its answer gets lost"
    TWICE = "it is carried out twice"
    FAILS = "it is answered with 500"
    BUSY = "it is answered with 429"
    GARBAGE = "it is carried out, and its answer is not JSON"
    REFUSED = "it is refused, with an object as detail"
    REFUSED_BY_LIST = "it is refused, with a list as detail"


# What happens by itself. A request that comes twice, and a refusal without a reason, are for tests alone.
TROUBLES = (Breakage.LOST, Breakage.ANSWER_LOST, Breakage.FAILS, Breakage.BUSY, Breakage.GARBAGE)


@dataclass(frozen=True)
class Webhook:
    """What would be posted, byte for byte."""

    headers: Mapping[str, str]
    body: bytes


@dataclass
class FakeProlific:
    """The whole state. Every public method is something that a researcher or a participant does, or that time brings.

    Args:
        page_size: the most rows on a page of a list, whatever is asked for.
        busy_every: one in this many calls is answered with 429.
        trouble_every: one in this many calls goes wrong, in any of the ways that a real one does.
        a_minute: how many calls are answered within a minute; 0: any number.
        fee, vat: what is taken of what people get, and of the fee.
        sample_fee: cents that a representative sample costs in addition.
        balance: cents in the wallet.
        slow: a study is PUBLISHING until it is read the next time.
        time_in_study: the time of publishing is taken from the study, and not from the call that schedules it.
        clock: seconds; tests bring their own clock.
    """

    seed: int = 0
    token: str = "fake-token"  # noqa: S105 - known to everybody
    secret: str = "fake-webhook-secret"  # noqa: S105
    page_size: int = 20
    busy_every: int = 0
    trouble_every: int = 0
    a_minute: int = 0
    fee: Decimal = FEE
    vat: Decimal = VAT
    sample_fee: int = 2500
    balance: int = 10_000_000
    currency: str = "USD"
    minimum: int = 800
    recommended: int = 1200
    slow: bool = False
    time_in_study: bool = False
    has_breakdown: bool = True
    signs_entry: bool = False
    has_secret: bool = True
    clock: Callable[[], float] = time.time
    url: str = "http://127.0.0.1"
    studies: dict[str, dict[str, Any]] = field(default_factory=dict)
    submissions: dict[str, dict[str, Any]] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    test_people: list[str] = field(default_factory=list)
    demographics: dict[str, dict[str, str]] = field(default_factory=dict)
    # By submission, in currency units: bonuses, and what people who were screened out got.
    paid: list[tuple[str, Decimal]] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 - reproducible on purpose, nothing secret
        self._lock = threading.RLock()
        self._waiting: list[Webhook] = []
        self._events = 0
        self._key: rsa.RSAPrivateKey | None = None
        self._broken: list[tuple[str, str, Breakage]] = []
        self._asked: list[float] = []

    def new_id(self) -> str:
        """24 hexadecimal digits, as the real ones."""
        return f"{self._rng.getrandbits(96):024x}"

    # Participants and time

    def take_place(
        self, study: str, *, person: str = "", part: str = "", reserve: bool = False
    ) -> dict[str, Any] | None:
        """Somebody takes a free place; None where there is none, the study admits nobody, or not this person.

        Args:
            part: the id of the study's part that the person comes by, as with quotas.
            reserve: only the place is taken; `enter` goes on from there.
        """
        with self._lock:
            study_row = self.studies[study]
            if study_row["status"] != "ACTIVE" or self._held(study) >= study_row["total_available_places"]:
                return None
            if person and not self._may_see(study_row, person):
                return None
            submission: dict[str, Any] = {
                "id": self.new_id(),
                "study_id": part or study,
                "participant_id": person or self.new_id(),
                "status": "RESERVED" if reserve else "ACTIVE",
                "started_at": self._now(),
                "completed_at": None,
                "study_code": None,
                "time_taken": None,
                "began": self.clock(),
                "asked_back": False,
                "return_requested": None,
                "reasons": [],
                "parent_study_id": study if part else None,
            }
            self.submissions[submission["id"]] = submission
            self._tell(submission)
            return submission

    def enter(self, submission: str) -> None:
        """Who has reserved a place opens the study."""
        with self._lock:
            if self.submissions[submission]["status"] == "RESERVED":
                self._move(self.submissions[submission], "ACTIVE")

    def approve_in_part(self, submission: str) -> None:
        """The researcher pays only a part, on Prolific's own pages."""
        with self._lock:
            if self.submissions[submission]["status"] == "AWAITING REVIEW":
                self._move(self.submissions[submission], "PARTIALLY APPROVED")

    def reach_the_time(self) -> None:
        """What is scheduled is published."""
        with self._lock:
            for study in self.studies.values():
                if study["status"] == "SCHEDULED":
                    study["status"] = "ACTIVE"

    def entry_address(self, submission: str) -> str:
        """The address that the participant is sent to, with ids filled in, and signed if the study wants it."""
        submission_row = self.submissions[submission]
        study = self.studies[_whole(submission_row)]
        values = {
            "PROLIFIC_PID": submission_row["participant_id"],
            "STUDY_ID": submission_row["study_id"],
            "SESSION_ID": submission,
        }
        address = str(study["external_study_url"])
        for name, value in values.items():
            # Elsewhere people are asked for their id, or it is not passed on.
            if study.get("prolific_id_option", "url_parameters") == "url_parameters":
                address = address.replace(f"{{{{%{name}%}}}}", value)
        if self.signs_entry or study.get("is_external_study_url_secure"):
            address += f"&prolific_token={self.sign(values, audience=address)}"
        return address

    def submit(self, submission: str, code: str | None) -> None:
        """The participant comes back with a code, or says by hand that they are done (None)."""
        with self._lock:
            submission_row = self.submissions[submission]
            if submission_row["status"] != "ACTIVE":
                return
            submission_row["study_code"] = code if code is not None else "NOCODE"
            submission_row["completed_at"] = self._now()
            submission_row["time_taken"] = int(self.clock() - submission_row["began"])
            actions = self._actions(_whole(submission_row), code)
            if "FIXED_SCREEN_OUT_PAYMENT" in actions:
                self._screen_out(submission_row, actions["FIXED_SCREEN_OUT_PAYMENT"])
                self._into_group(submission_row, actions)
                return
            self._move(submission_row, "APPROVED" if "AUTOMATICALLY_APPROVE" in actions else "AWAITING REVIEW")
            self._into_group(submission_row, actions)
            if "REQUEST_RETURN" in actions:
                self._ask_back(submission_row, ["by the code"])
            self._rest_if_full(_whole(submission_row))

    def give_up(self, submission: str) -> None:
        """The participant returns the submission; they may do so even after they finished."""
        with self._lock:
            submission_row = self.submissions[submission]
            if submission_row["status"] in ("ACTIVE", "RESERVED", "AWAITING REVIEW"):
                self._move(submission_row, "RETURNED")

    def time_out(self, submission: str) -> None:
        with self._lock:
            submission_row = self.submissions[submission]
            if submission_row["status"] in ("ACTIVE", "RESERVED"):
                self._move(submission_row, "TIMED-OUT")

    def follow_requests(self) -> int:
        """Let everybody who was asked to return their submission do so; return how many."""
        with self._lock:
            asked = [s for s in self.submissions.values() if s["asked_back"] and s["status"] == "AWAITING REVIEW"]
            for submission in asked:
                self._move(submission, "RETURNED")
            return len(asked)

    def lose_next_answer(self, part: str) -> None:
        """Carry out the next call whose path holds `part`, and let its answer get lost."""
        self.break_next(part, Breakage.ANSWER_LOST)

    def break_next(self, part: str, how: Breakage, *, method: str = "", times: int = 1) -> None:
        """Let the next calls whose path holds `part` go wrong."""
        self._broken += [(method, part, how)] * times

    def webhooks(self) -> list[Webhook]:
        """All events that waited: late, each twice and in random order."""
        with self._lock:
            waiting, self._waiting = self._waiting * 2, []
            self._rng.shuffle(waiting)
            return waiting

    def sign_webhook(self, body: bytes, *, event_id: str) -> Webhook:
        stamp = str(int(self.clock()))
        signature = hmac.new(self.secret.encode(), stamp.encode() + body, hashlib.sha256).digest()
        return Webhook(
            headers={
                "Content-Type": "application/json",
                "X-Event-ID": event_id,
                "X-Timestamp": stamp,
                "X-Prolific-Request-Timestamp": stamp,
                "X-Prolific-Request-Signature": base64.b64encode(signature).decode(),
            },
            body=body,
        )

    # Signed entry

    @property
    def key(self) -> rsa.RSAPrivateKey:
        if self._key is None:
            self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return self._key

    def sign(self, values: Mapping[str, str], *, audience: str, **claims: Any) -> str:
        """A token as in the signed links. `claims` and `header` replace the right values, for tests with wrong ones."""
        issued = int(self.clock())
        header = claims.pop("header", {"alg": "RS256", "kid": "fake-1", "typ": "JWT"})
        payload = {
            "iss": ISSUER,
            "iat": issued,
            "exp": issued + 120,
            "aud": audience,
            "sub": values["SESSION_ID"],
            "prolific": {**values, "workspace_id": WORKSPACE},
            **claims,
        }
        text = ".".join(_text64(json.dumps(part).encode()) for part in (header, payload))
        return f"{text}.{_text64(self.key.sign(text.encode(), padding.PKCS1v15(), SHA256()))}"

    def key_set(self) -> dict[str, Any]:
        numbers = self.key.public_key().public_numbers()
        modulus, exponent = (_text64(n.to_bytes((n.bit_length() + 7) // 8, "big")) for n in (numbers.n, numbers.e))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "fake-1", "n": modulus, "e": exponent}]}

    # The API

    def answer(self, method: str, target: str, *, token: str, body: bytes = b"") -> tuple[int, dict[str, str], Any]:
        """One request: status, headers and what becomes JSON."""
        with self._lock:
            parts = urlsplit(target)
            self.calls.append((method, parts.path))
            breakage = self._breakage(method, parts.path)
            try:
                self._refuse_in_place_of(breakage)
                for _time in range(2 if breakage == Breakage.TWICE else 1):
                    result = self._answer(method, parts.path, dict(parse_qs(parts.query)), token=token, body=body)
            except Refused as refusal:
                error = {"status": refusal.status, "error_code": 140100, "title": refusal.title}
                return refusal.status, refusal.headers, {"error": {**error, "detail": refusal.detail}}
            except KeyError:
                return 404, {}, {"error": {"status": 404, "error_code": 140004, "title": "Not found"}}
            if breakage == Breakage.ANSWER_LOST:
                raise ConnectionAbortedError
            if breakage == Breakage.GARBAGE:
                return result[0], {}, NOT_JSON
            headers = {}
            if isinstance(result[1], dict) and "proof" in result[1]:
                headers["X-Hook-Secret"] = result[1]["proof"]
            answer = _without_proof(result[1]) if isinstance(result[1], dict) else result[1]
            return result[0], headers, answer

    def _breakage(self, method: str, path: str) -> Breakage | None:
        for number, (of_method, part, how) in enumerate(self._broken):
            if part in path and of_method in ("", method):
                del self._broken[number]
                return how
        if self.trouble_every and len(self.calls) % self.trouble_every == 0:
            return self._rng.choice(TROUBLES)
        return None

    @staticmethod
    def _refuse_in_place_of(breakage: Breakage | None) -> None:
        match breakage:
            case Breakage.LOST:
                raise ConnectionAbortedError
            case Breakage.FAILS:
                raise Refused(500, "Server error")
            case Breakage.BUSY:
                raise Refused(429, "Too many requests", headers={"Retry-After": "0"})
            case Breakage.REFUSED:
                raise Refused(400, "Invalid", {"reward": ["is too low"]})
            case Breakage.REFUSED_BY_LIST:
                raise Refused(400, "Invalid", ["one thing", {"name": ["another"]}])

    def _answer(
        self, method: str, path: str, query: Mapping[str, list[str]], *, token: str, body: bytes
    ) -> tuple[int, Any]:
        if path == "/.well-known/study/jwks.json":
            return 200, self.key_set()
        if token != f"Token {self.token}":
            raise Refused(401, "Authentication credentials were not provided.")
        if self.busy_every and len(self.calls) % self.busy_every == 0:
            raise Refused(429, "Too many requests", headers={"Retry-After": "0"})
        self._refuse_too_many()
        data = json.loads(body) if body else {}
        match [method, *path.removeprefix("/api/v1").strip("/").split("/")]:
            case ["GET", "studies"]:
                return 200, self._page("/api/v1/studies/", list(self.studies.values()), query)
            case ["POST", "studies"]:
                return 201, self._create(data)
            case ["GET", "studies", study]:
                study_copy = dict(self.studies[study])
                if study_copy["status"] == "PUBLISHING":
                    self.studies[study]["status"] = "ACTIVE"
                return 200, study_copy
            case ["PATCH", "studies", study]:
                return 200, self._change(self.studies[study], data)
            case ["POST", "studies", study, "transition"]:
                return 200, self._transition(self.studies[study], data)
            case ["POST", "studies", study, "test-study"]:
                return 200, self._test_study(self.studies[study])
            case ["GET", "studies", study, "cost"]:
                projected = query.get("is_projected", ["false"])[0] == "true"
                return 200, self._cost(self.studies[study], projected=projected)
            case ["GET", "studies", study, "predicted-recruitment-time"]:
                hours = self.studies[study]["total_available_places"] / 50
                return 200, {"precise_recruitment_time_hours": hours, "display_string": f"{hours:g} hours"}
            case ["POST", "studies", study, "demographic-export"]:
                return 200, self._demographics(study)
            case ["POST", "study-cost-calculator"]:
                return 200, self._quote(data["reward"] * data["total_available_places"])
            case ["GET", "workspaces", str(), "balance"]:
                return 200, self._balance()
            case ["GET", "reward-recommendations"]:
                rates = {"min_reward_per_hour": self.minimum, "recommended_reward_per_hour": self.recommended}
                return 200, [{"currency": query["currency"][0], **rates}]
            case ["GET", "participant-groups"]:
                rows = [{"id": key, "name": row["name"]} for key, row in self.groups.items()]
                return 200, {"results": rows, "_links": {"next": {"href": None}}}
            case ["POST", "participant-groups"]:
                group = {"id": self.new_id(), "name": data["name"], "participant_count": 0}
                self.groups[group["id"]] = {**group, "people": set()}
                return 201, group
            case ["POST", "participant-groups", group, "participants"]:
                self.groups[group]["people"] |= set(data["participant_ids"])
                rows = [{"participant_id": who} for who in sorted(self.groups[group]["people"])]
                return 200, {"results": rows}
            case ["DELETE", "participant-groups", group, "participants"]:
                self.groups[group]["people"] -= set(data["participant_ids"])
                rows = [{"participant_id": who} for who in sorted(self.groups[group]["people"])]
                return 200, {"results": rows}
            case ["GET", "submissions"]:
                (study,) = query["study"]
                rows = [_public(s) for s in self.submissions.values() if s["study_id"] == study]
                return 200, self._page("/api/v1/submissions/", rows, query)
            case ["POST", "submissions", "bonus-payments"]:
                return 201, self._set_up(data)
            case ["GET", "submissions", submission]:
                return 200, _public(self.submissions[submission])
            case ["POST", "submissions", submission, "transition"]:
                return 200, self._decide(self.submissions[submission], data)
            case ["POST", "submissions", submission, "request-return"]:
                self._ask_back(self.submissions[submission], data["request_return_reasons"])
                return 200, _public(self.submissions[submission])
            case ["POST", "submissions", "bulk-approve"]:
                for submission in data["submission_ids"]:
                    if self.submissions[submission]["status"] == "AWAITING REVIEW":
                        self._move(self.submissions[submission], "APPROVED")
                return 202, {}
            case ["GET", "hooks", "secrets"]:
                rows = [{"id": "secret-1", "value": self.secret, "workspace_id": query["workspace_id"][0]}]
                return 200, {"results": rows if self.has_secret else []}
            case ["GET", "hooks", "subscriptions"]:
                rows = [_without_proof(row) for row in self.subscriptions.values() if row["is_enabled"]]
                mine = [row for row in rows if row["workspace_id"] == query["workspace_id"][0]]
                return 200, {"results": mine, "_links": {"next": {"href": None}}}
            case ["POST", "hooks", "secrets"]:
                self.secret, self.has_secret = self.new_id(), True
                return 201, {"value": self.secret, "workspace_id": data["workspace_id"]}
            case ["POST", "hooks", "subscriptions"]:
                subscription = {**data, "id": self.new_id(), "is_enabled": False, "proof": self.new_id()}
                self.subscriptions[subscription["id"]] = subscription
                return 201, subscription
            case ["POST", "hooks", "subscriptions", subscription_id]:
                subscription_row = self.subscriptions[subscription_id]
                if data.get("secret") != subscription_row["proof"]:
                    raise Refused(400, "Invalid secret")
                subscription_row["is_enabled"] = True
                return 200, subscription_row
            case ["POST", "bulk-bonus-payments", batch, "pay"]:
                self._pay(self.batches[batch])
                return 202, {}
        raise Refused(404, "Not found")

    def _page(self, path: str, rows: list[Any], query: Mapping[str, list[str]]) -> dict[str, Any]:
        size = min(int(query.get("page_size", ["20"])[0]), self.page_size)
        number = int(query.get("page", ["1"])[0])
        if number > 1 and (number - 1) * size >= len(rows):
            raise Refused(404, "Invalid page.")  # As at Prolific, also after a full last page.
        others = "".join(f"&{name}={quote(values[0])}" for name, values in query.items() if name != "page")
        has_more = number * size < len(rows)
        following = f"{self.url}{path}?page={number + 1}{others}" if has_more else None
        return {
            "results": rows[(number - 1) * size : number * size],
            "_links": {"next": {"href": following, "title": "Next"}},
            "meta": {"count": len(rows)},
        }

    def _create(self, data: Mapping[str, Any]) -> dict[str, Any]:
        needed = ("name", "description", "external_study_url", "reward", "total_available_places")
        missing = [name for name in (*needed, "estimated_completion_time", "completion_codes") if not data.get(name)]
        if missing:
            raise Refused(400, "Invalid study", f"{missing[0]}: This field is required.")
        minutes, allowed = data["estimated_completion_time"], data.get("maximum_allowed_time")
        shortest = math.ceil(2 + 2 * minutes + 2 * math.sqrt(minutes))
        if allowed is not None and allowed < shortest:
            raise Refused(400, "Invalid study", {"maximum_allowed_time": [f"must be at least {shortest}"]})
        if len(data.get("content_warnings", ())) > 1:
            raise Refused(400, "Invalid study", {"content_warnings": ["only one can be selected"]})
        study = {**data, "id": self.new_id(), "status": "UNPUBLISHED", "currency_code": self.currency}
        self.studies[study["id"]] = study
        return study

    def _test_study(self, study: Mapping[str, Any]) -> dict[str, Any]:
        """A copy that only test participants see, and that costs nothing."""
        if study["status"] != "UNPUBLISHED":
            raise Refused(400, "Not possible", "Only a draft can be tested.")
        if not self.test_people:
            raise Refused(400, "Not possible", "Create a test participant first.")
        copy = {**study, "id": self.new_id(), "status": "ACTIVE", "is_test": True, "total_available_places": 1}
        self.studies[copy["id"]] = copy
        return {"study_id": copy["id"], "study_url": f"{self.url}/take/{copy['id']}"}

    def _change(self, study: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        allowed = {"internal_name", "total_available_places"} if study["status"] != "UNPUBLISHED" else set(data)
        if strangers := sorted(set(data) - allowed):
            raise Refused(400, "Cannot be changed", f"{strangers[0]} cannot be changed once the study is published.")
        places = data.get("total_available_places", study["total_available_places"])
        if places < study["total_available_places"] and study["status"] != "UNPUBLISHED":
            raise Refused(400, "Cannot be lowered", "total_available_places can only be increased.")
        if places > study["total_available_places"] and study["status"] in ("AWAITING REVIEW", "COMPLETED"):
            study["status"] = "ACTIVE"
        study.update(data)
        return study

    def _transition(self, study: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        action = data.get("action", "")
        if action not in STUDY_MOVES or study["status"] not in STUDY_MOVES[action][0]:
            raise Refused(400, "Not possible", f"A study that is {study['status']} cannot {action}.")
        if action in ("PUBLISH", "SCHEDULE_PUBLISH"):
            needed = sum(row["amount"] for row in self._cost(study, projected=True)["rewards"].values())
            if needed > self._available():
                raise Refused(400, "Not enough balance", f"{needed} are needed, and {self._available()} are there.")
        publish_at = study.get("publish_at") if self.time_in_study else data.get("publish_at")
        if action == "SCHEDULE_PUBLISH" and not publish_at:
            raise Refused(400, "Not possible", {"publish_at": ["This field is required."]})
        study["status"] = STUDY_MOVES[action][1]
        if action == "PUBLISH" and self.slow:
            study["status"] = "PUBLISHING"
        study["publish_at"] = publish_at if action == "SCHEDULE_PUBLISH" else None
        return study

    # Money, in whole cents

    def _quote(self, cents: float) -> dict[str, Any]:
        fees = _whole_cents(Decimal(cents) * self.fee)
        vat = _whole_cents(fees * self.vat)
        parts = {"rewards": cents, "fees": fees, "vat": vat} if self.has_breakdown else {}
        return {"total_cost": cents + fees + vat, **parts}

    def _cost(self, study: Mapping[str, Any], *, projected: bool = False) -> dict[str, Any]:
        """What it has cost, or what it will cost where all its places are used."""
        mine = [s for s in self.submissions.values() if _whole(s) == study["id"]]
        screened = {s["id"] for s in mine if s["status"] == "SCREENED OUT"}
        out = sum(int(100 * units) for who, units in self.paid if who in screened)
        actions = [action for entry in study["completion_codes"] for action in entry["actions"]]
        if projected:
            slots = [action for action in actions if action["action"] == "FIXED_SCREEN_OUT_PAYMENT"]
            people = study["reward"] * study["total_available_places"]
            people += sum(slot["fixed_screen_out_reward"] * slot["slots"] for slot in slots)
        else:
            people = study["reward"] * sum(s["status"] in ("APPROVED", "PARTIALLY APPROVED") for s in mine) + out
        batches = [batch for batch in self.batches.values() if batch["study"] == study["id"]]
        is_sample = study.get("study_type", "SINGLE") not in ("SINGLE", "QUOTA")
        sample = self.sample_fee if is_sample and (projected or people) else 0
        fees = _whole_cents(people * self.fee)
        rewards = {"rewards": people, "fees": fees, "tax": _whole_cents(fees * self.vat)}
        rewards |= {"rep_sample_fees": sample, "rep_sample_tax": _whole_cents(sample * self.vat)}
        bonuses = {
            "rewards": sum(batch["costs"]["amount"] * batch["times"] for batch in batches),
            "fees": sum(batch["costs"]["fees"] * batch["times"] for batch in batches),
            "tax": sum(batch["costs"]["vat"] * batch["times"] for batch in batches),
        }
        return {
            kind: {name: {"amount": cents, "currency": self.currency} for name, cents in parts.items()}
            for kind, parts in (("rewards", rewards), ("bonuses", bonuses))
        }

    def _available(self) -> int:
        """What is in the wallet in addition to what published studies may still cost."""
        held = 0
        for study in self.studies.values():
            if study["status"] == "UNPUBLISHED" or study.get("is_test"):
                continue
            parts = self._cost(study, projected=True)
            held += sum(row["amount"] for row in parts["rewards"].values())
            held += sum(row["amount"] for row in self._cost(study)["bonuses"].values())
        return self.balance - held

    def _balance(self) -> dict[str, Any]:
        return {
            "currency_code": self.currency,
            "total_balance": self.balance,
            "available_balance": self._available(),
        }

    def _refuse_too_many(self) -> None:
        if not self.a_minute:
            return
        now = self.clock()
        self._asked = [at for at in self._asked if now - at < PATIENCE]
        if len(self._asked) >= self.a_minute:
            wait = math.ceil(PATIENCE - (now - self._asked[0]))
            raise Refused(429, "Too many requests", headers={"Retry-After": str(wait)})
        self._asked.append(now)

    # Whom it may send

    def _may_see(self, study: Mapping[str, Any], person: str) -> bool:
        """Whether the study's groups and earlier studies keep the person away. Filters of facts let everybody in."""
        if study.get("is_test") and person not in self.test_people:
            return False
        for study_filter in study.get("filters", ()):
            named = study_filter.get("selected_values", ())
            is_in = any(person in self.groups.get(key, {}).get("people", ()) for key in named)
            took_part = any(s["participant_id"] == person and _whole(s) in named for s in self.submissions.values())
            match study_filter["filter_id"]:
                case "participant_group_blocklist" if is_in:
                    return False
                case "participant_group_allowlist" if not is_in:
                    return False
                case "previous_studies_blocklist" if took_part:
                    return False
        return True

    def _into_group(self, submission: Mapping[str, Any], actions: Mapping[str, Mapping[str, Any]]) -> None:
        if action := actions.get("ADD_TO_PARTICIPANT_GROUP"):
            self.groups[action["participant_group"]]["people"].add(submission["participant_id"])

    def _demographics(self, study: str) -> str:
        out = io.StringIO()
        lines = csv.writer(out)
        names = sorted({name for facts in self.demographics.values() for name in facts})
        lines.writerow(["Submission id", "Participant id", "Status", "Started at", "Time taken", *names])
        for row in self.submissions.values():
            if _whole(row) == study:
                facts = self.demographics.get(row["participant_id"], {})
                values = [facts.get(name, "DATA_EXPIRED") for name in names]
                start = [row["id"], row["participant_id"], row["status"], row["started_at"], row["time_taken"]]
                lines.writerow([*start, *values])
        return out.getvalue()

    def _decide(self, submission: dict[str, Any], data: Mapping[str, Any]) -> dict[str, Any]:
        action = data.get("action")
        if action == "APPROVE" and submission["status"] == "APPROVED":
            return _public(submission)
        if submission["status"] != "AWAITING REVIEW":
            raise Refused(400, "Not possible", f"A submission that is {submission['status']} cannot be decided on.")
        if action == "REJECT":
            if data.get("rejection_category") not in CATEGORIES or len(data.get("message", "")) < REASON_LENGTH:
                raise Refused(400, "Invalid rejection")
            self._move(submission, "REJECTED")
        elif action == "APPROVE":
            self._move(submission, "APPROVED")
        else:
            raise Refused(400, "Unknown action")
        return _public(submission)

    def _set_up(self, data: Mapping[str, Any]) -> dict[str, Any]:
        rows = []
        for who, amount in csv.reader(io.StringIO(data["csv_bonuses"])):
            known = {
                key for s in self.submissions.values() if _whole(s) == data["study_id"]
                for key in (s["id"], s["participant_id"])
            }  # fmt: skip
            try:
                rows.append((who, Decimal(amount)))
            except InvalidOperation as exc:
                raise Refused(400, "Invalid amount") from exc
            if who not in known:
                raise Refused(400, "Invalid participant", f"{who} did not take part in this study.")
        cents = int(100 * sum((units for _who, units in rows), Decimal(0)))
        fees = _whole_cents(cents * self.fee)
        vat = _whole_cents(fees * self.vat)
        costs = {"amount": cents, "fees": fees, "vat": vat, "total_amount": cents + fees + vat}
        batch = {"id": self.new_id(), "study": data["study_id"], "rows": rows, "costs": costs, "times": 0}
        self.batches[batch["id"]] = batch
        return {"id": batch["id"], "study": data["study_id"], **{name: float(value) for name, value in costs.items()}}

    def _pay(self, batch: dict[str, Any]) -> None:
        self.paid += batch["rows"]  # As often as it is asked.
        batch["times"] += 1

    # What follows from a change

    def _held(self, study: str) -> int:
        return sum(_whole(s) == study and s["status"] in HOLDS_A_PLACE for s in self.submissions.values())

    def _screen_out(self, submission: dict[str, Any], action: Mapping[str, Any]) -> None:
        """Paid at once. The study pauses itself when the last place for a screen-out is used."""
        study = _whole(submission)
        self._move(submission, "SCREENED OUT")
        self.paid.append((submission["id"], Decimal(action["fixed_screen_out_reward"]) / 100))
        out = [s for s in self.submissions.values() if _whole(s) == study and s["status"] == "SCREENED OUT"]
        if len(out) >= action["slots"]:
            self.studies[study]["status"] = "PAUSED"

    def _actions(self, study: str, code: str | None) -> dict[str, dict[str, Any]]:
        return {
            action["action"]: action
            for entry in self.studies[study]["completion_codes"]
            if code is not None and entry["code"] == code
            for action in entry["actions"]
        }

    def _rest_if_full(self, study: str) -> None:
        done = [s for s in self.submissions.values() if _whole(s) == study and s["status"] in HOLDS_A_PLACE[2:]]
        if self.studies[study]["status"] == "ACTIVE" and len(done) >= self.studies[study]["total_available_places"]:
            self.studies[study]["status"] = "AWAITING REVIEW"

    def _ask_back(self, submission: dict[str, Any], reasons: list[str]) -> None:
        submission["asked_back"], submission["return_requested"] = True, self._now()
        submission["reasons"] += reasons

    def _move(self, submission: dict[str, Any], status: str) -> None:
        submission["status"] = status
        study = self.studies[_whole(submission)]
        if study["status"] == "AWAITING REVIEW" and status in ("RETURNED", "REJECTED"):
            study["status"] = "PAUSED"  # A place is free again; nobody is sent until the study is started.
        self._tell(submission)

    def _tell(self, submission: Mapping[str, Any]) -> None:
        self._events += 1
        body = {
            "resource_id": submission["id"],
            "event_type": "submission.status.change",
            "participant_id": submission["participant_id"],
            "status": submission["status"],
        }
        self._waiting.append(self.sign_webhook(json.dumps(body).encode(), event_id=f"event-{self.seed}-{self._events}"))

    def _now(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))


def _whole_cents(amount: Decimal) -> int:
    return int(amount.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def _whole(submission: Mapping[str, Any]) -> str:
    return str(submission["parent_study_id"] or submission["study_id"])


def _public(submission: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in submission.items() if name not in ("began", "asked_back", "reasons")}


def _without_proof(subscription: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in subscription.items() if name != "proof"}


def _text64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class FakeServer(ThreadingHTTPServer):
    """The same over HTTP, on loopback alone, with a page on which a person can take part."""

    daemon_threads = True

    def __init__(self, prolific: FakeProlific, *, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), FakeHandler)
        self.prolific = prolific
        prolific.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> "FakeServer":
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.shutdown()
        self.server_close()


class FakeHandler(BaseHTTPRequestHandler):
    """GET /, /take/STUDY, /submissions/complete?cc=CODE and /leave are for participants; all else is the API."""

    server: FakeServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # Headers and body leave together. A body of its own would wait until the headers are acknowledged.

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a line would hold the ids."""

    def _api(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            status, headers, answer = self.server.prolific.answer(
                self.command, self.path, token=self.headers.get("Authorization", ""), body=body
            )
        except ConnectionAbortedError:
            self.close_connection = True
            return
        if isinstance(answer, str):
            self._send(status, answer.encode(), {"Content-Type": "text/csv", **headers})
            return
        text = b"<html>" if answer is NOT_JSON else json.dumps(answer).encode()
        self._send(status, text, {"Content-Type": "application/json", **headers})

    def do_POST(self) -> None:
        self._api()

    def do_PATCH(self) -> None:
        self._api()

    def do_DELETE(self) -> None:
        self._api()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        fake = self.server.prolific
        if parts.path == "/":
            return self._page(_list_of_studies(fake))
        if parts.path.startswith("/take/"):
            study = parts.path.removeprefix("/take/")
            submission = fake.take_place(study) if study in fake.studies else None
            if submission is None:
                return self._page("<p>No place is free. <a href='/'>Back</a></p>")
            cookie = f"submission={submission['id']}; Path=/; HttpOnly; SameSite=Lax"
            return self._send(302, b"", {"Location": fake.entry_address(submission["id"]), "Set-Cookie": cookie})
        if parts.path in ("/submissions/complete", "/leave"):
            held = SimpleCookie(self.headers.get("Cookie", "")).get("submission")
            if held is None or held.value not in fake.submissions:
                return self._page("<p>You have no submission here. <a href='/'>Back</a></p>")
            if parts.path == "/leave":
                fake.give_up(held.value)
            else:
                fake.submit(held.value, parse_qs(parts.query).get("cc", [None])[0])
            status = fake.submissions[held.value]["status"]
            return self._page(f"<p>Your submission is now {status}. <a href='/'>Back</a></p>")
        return self._api()

    def _page(self, body: str) -> None:
        page = f"<!doctype html><title>Fake Prolific</title><h1>Fake Prolific</h1>{body}"
        self._send(200, page.encode(), {"Content-Type": "text/html; charset=utf-8"})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _list_of_studies(fake: FakeProlific) -> str:
    rows = "".join(
        f"<li>{escape(str(study['name']))}: {escape(study['status'])} "
        f"<a href='/take/{escape(study['id'])}'>Take part</a></li>"
        for study in fake.studies.values()
    )
    return f"<ul>{rows or '<li>No study yet.</li>'}</ul><p><a href='/leave'>Return my submission</a></p>"


def deliver(fake: FakeProlific, url: str) -> int:
    """Post the events that wait; return how many were accepted. The others are lost, as can happen at Prolific."""
    taken = 0
    for event in fake.webhooks():
        try:
            taken += httpx.post(url, content=event.body, headers=dict(event.headers), timeout=5).is_success
        except httpx.HTTPError:
            continue
    return taken
