"""Prolific's REST API: one method for each call. Imports only httpx, settings and the contract's errors.

A failed call is repeated where that is safe: every read, every write that has the same effect twice (approve, set the
number of places), and anything that certainly did not arrive (no connection, 429). Setting up and paying bonuses is
never repeated. Statuses stay the strings that came. No message, log or repr holds the token or a person's id.
"""

import functools
import math
import random
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from django.conf import settings

from survey.contracts.panels import PanelBusy, PanelError, PanelMissing, PanelRefused, PanelUnreachable
from survey.exceptions import HunchError

TIMEOUT = httpx.Timeout(20.0, connect=5.0)
# While a person waits for their first page, and a thread of the server with them.
SHORT_TIMEOUT = httpx.Timeout(2.0, connect=1.0)
TRIES = 4
FIRST_WAIT = 0.5  # seconds; doubled each time, and a random part of it is waited
LONGEST_WAIT = 30.0  # seconds that a Retry-After may ask for
PAGE_SIZE = 100
LONGEST_LIST = 1000  # pages: stops a `next` that leads in circles
NOT_CONFIGURED = "HUNCH_PROLIFIC_TOKEN is not set: without it Prolific cannot be asked"
Sleep = Callable[[float], None]


class ProlificClient:
    """One account at Prolific.

    Args:
        url: scheme and host, without a slash at the end.
        token: the account's API token; it may be empty where only the public keys are read.
        patience: how often a call that is safe to repeat is tried, the first time included.
    """

    def __init__(
        self,
        *,
        url: str,
        token: str,
        timeout: httpx.Timeout = TIMEOUT,
        patience: int = TRIES,
        sleep: Sleep = time.sleep,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        headers = {"Authorization": f"Token {token}"} if token else {}
        self._url = url.rstrip("/")
        self._patience = patience
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=self._url,
            headers=headers,
            timeout=timeout,
            transport=transport,
            verify=_certificates(),
            follow_redirects=False,
        )

    def __repr__(self) -> str:
        return f"<Prolific at {self._url}>"

    def __enter__(self) -> "ProlificClient":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # Studies

    def create_study(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create a draft. Not repeated, since that could make a second one: find the first by its internal name."""
        return self._call("POST", "/api/v1/studies/", "create the draft", json=body, explain=True)

    def studies(self) -> Iterator[dict[str, Any]]:
        return self._pages("/api/v1/studies/", {"page_size": PAGE_SIZE}, "list the studies")

    def study(self, study: str) -> dict[str, Any]:
        return self._call("GET", f"/api/v1/studies/{_part(study)}/", "read the study", repeat=True)

    def transition(self, study: str, action: str, *, publish_at: str = "") -> dict[str, Any]:
        """PUBLISH, PAUSE, START, STOP, CANCEL_PUBLISH, or SCHEDULE_PUBLISH with the time."""
        path = f"/api/v1/studies/{_part(study)}/transition/"
        body = {"action": action, "publish_at": publish_at} if publish_at else {"action": action}
        what = f"{action.lower().replace('_', ' ')} the study"
        return self._call("POST", path, what, json=body, explain=True)

    def test_study(self, study: str) -> dict[str, Any]:
        """A trial of a draft, for test participants alone. Not repeated, since that could make a second one."""
        path = f"/api/v1/studies/{_part(study)}/test-study/"
        return self._call("POST", path, "make a test study", explain=True)

    def recruitment_time(self, study: str) -> dict[str, Any]:
        path = f"/api/v1/studies/{_part(study)}/predicted-recruitment-time/"
        return self._call("GET", path, "predict the time of recruiting", repeat=True)

    def demographics(self, study: str) -> str:
        """What is known of the study's people, as CSV. No filter is named: only the basic facts."""
        path, what = f"/api/v1/studies/{_part(study)}/demographic-export/", "export demographic data"
        response = self._send("POST", path, what, json={"filters": []}, repeat=True)
        _read(response, what, explain=True, empty=True)
        head = response.text.partition("\n")[0].lower()
        if head and not all(name in head for name in ("submission id", "participant id")):
            raise _unreadable(what, "a table")
        return response.text

    # Money

    def cost_of(self, reward: int, places: int) -> dict[str, Any]:
        """What so many places would cost, in cents, with fee and VAT."""
        body = {"reward": reward, "total_available_places": places}
        return self._call("POST", "/api/v1/study-cost-calculator/", "calculate the cost", json=body, repeat=True)

    def study_cost(self, study: str, *, projected: bool = False) -> dict[str, Any]:
        """What the study has cost so far; or what it will cost, if all places are used."""
        query = {"is_projected": "true"} if projected else None
        path = f"/api/v1/studies/{_part(study)}/cost/"
        return self._call("GET", path, "read the cost", params=query, repeat=True)

    def balance(self, workspace: str) -> dict[str, Any]:
        path = f"/api/v1/workspaces/{_part(workspace)}/balance/"
        return self._call("GET", path, "read the balance", repeat=True)

    def reward_recommendations(self, workspace: str, currency: str) -> list[dict[str, Any]]:
        """The newest first, in cents per hour."""
        query = {"workspace_id": workspace, "currency": currency}
        what, path = "read the recommended reward", "/api/v1/reward-recommendations/"
        response = self._send("GET", path, what, params=query, repeat=True)
        return _read_list(response, what)

    # Participant groups

    def groups(self, place: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        """Those of a workspace or a project: {"workspace_id": ...} or {"project_id": ...}."""
        query = {**place, "limit": PAGE_SIZE}
        return self._pages("/api/v1/participant-groups/", query, "list the participant groups")

    def create_group(self, name: str, place: Mapping[str, str]) -> dict[str, Any]:
        """Not repeated, since that could make a second one: find the first by its name."""
        body = {"name": name, **place}
        return self._call("POST", "/api/v1/participant-groups/", "make a participant group", json=body, explain=True)

    def add_to_group(self, group: str, people: Sequence[str]) -> None:
        path = f"/api/v1/participant-groups/{_part(group)}/participants/"
        body = {"participant_ids": list(people)}
        self._call("POST", path, "add people to a participant group", json=body, repeat=True, empty=True)

    def remove_from_group(self, group: str, people: Sequence[str]) -> None:
        path = f"/api/v1/participant-groups/{_part(group)}/participants/"
        body = {"participant_ids": list(people)}
        self._call("DELETE", path, "take people out of a participant group", json=body, repeat=True, empty=True)

    def set_places(self, study: str, places: int) -> dict[str, Any]:
        """Set the total number of places; Prolific only lets it grow."""
        path = f"/api/v1/studies/{_part(study)}/"
        body = {"total_available_places": places}
        return self._call("PATCH", path, "change the places", json=body, repeat=True, explain=True)

    def set_publish_at(self, study: str, publish_at: str) -> dict[str, Any]:
        """Set when a draft is published. It is scheduled by a transition afterwards."""
        path = f"/api/v1/studies/{_part(study)}/"
        return self._call("PATCH", path, "set the time", json={"publish_at": publish_at}, repeat=True, explain=True)

    # Submissions

    def submissions(self, study: str) -> Iterator[dict[str, Any]]:
        query = {"study": study, "page_size": PAGE_SIZE, "ordering": "started_at"}
        return self._pages("/api/v1/submissions/", query, "list the submissions")

    def submission(self, submission: str) -> dict[str, Any]:
        return self._call("GET", f"/api/v1/submissions/{_part(submission)}/", "read a submission", repeat=True)

    def approve(self, submission: str) -> dict[str, Any]:
        return self._decide(submission, {"action": "APPROVE"}, "approve a submission", repeat=True)

    def approve_all(self, submissions: Sequence[str]) -> None:
        body = {"submission_ids": list(submissions)}
        path = "/api/v1/submissions/bulk-approve/"
        self._call("POST", path, "approve submissions", json=body, repeat=True, empty=True)

    def reject(self, submission: str, *, category: str, message: str) -> dict[str, Any]:
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        return self._decide(submission, body, "reject a submission", repeat=False)

    def _decide(self, submission: str, body: Mapping[str, Any], what: str, *, repeat: bool) -> dict[str, Any]:
        path = f"/api/v1/submissions/{_part(submission)}/transition/"
        return self._call("POST", path, what, json=body, repeat=repeat)

    def request_return(self, submission: str, reasons: Sequence[str]) -> dict[str, Any]:
        path = f"/api/v1/submissions/{_part(submission)}/request-return/"
        return self._call("POST", path, "ask for a return", json={"request_return_reasons": list(reasons)})

    # Bonuses

    def set_up_bonuses(self, study: str, amounts: Sequence[tuple[str, str]]) -> dict[str, Any]:
        """(submission or person, amount in whole units such as "1.50"). This alone pays nothing."""
        lines = "".join(f"{who},{amount}\n" for who, amount in amounts)
        body = {"study_id": study, "csv_bonuses": lines}
        return self._call("POST", "/api/v1/submissions/bonus-payments/", "set up the bonuses", json=body)

    def pay_bonuses(self, batch: str) -> None:
        """Pay what was set up. Prolific pays twice if asked twice, so this is sent once, whatever comes back.

        Raises:
            PanelError: `outcome_is_known` is False where it may have been paid.
        """
        path = f"/api/v1/bulk-bonus-payments/{_part(batch)}/pay/"
        self._call("POST", path, "pay the bonuses", once=True, empty=True)

    # Signed entry

    def study_keys(self) -> dict[str, Any]:
        """The public keys that entry links are signed with."""
        return self._call("GET", "/.well-known/study/jwks.json", "read the signing keys", repeat=True)

    # Webhooks

    def webhook_secret(self, workspace: str) -> str:
        """The secret that signs the workspace's webhooks; empty if it has none."""
        what = "read the webhook secret"
        response = self._call("GET", "/api/v1/hooks/secrets/", what, params={"workspace_id": workspace}, repeat=True)
        values = [str(row["value"]) for row in _rows(response, what) if row.get("value")]
        return values[-1] if values else ""

    def subscriptions(self, workspace: str) -> Iterator[dict[str, Any]]:
        """The workspace's subscriptions that are switched on."""
        query = {"workspace_id": workspace, "is_enabled": "true", "limit": PAGE_SIZE}
        return self._pages("/api/v1/hooks/subscriptions/", query, "list the webhook subscriptions")

    def new_webhook_secret(self, workspace: str) -> str:
        """Make a new secret that signs the workspace's webhooks from now on; the previous one stops working."""
        what = "make a webhook secret"
        response = self._call("POST", "/api/v1/hooks/secrets/", what, json={"workspace_id": workspace}, once=True)
        if not isinstance(response.get("value"), str):
            raise PanelUnreachable(f"Prolific: to {what}: its answer holds none")
        return str(response["value"])

    def subscribe(self, workspace: str, event_type: str, url: str) -> None:
        """Have events of this kind posted to us, and confirm it with the one-time value in the answer."""
        what = f"subscribe to {event_type}"
        body = {"workspace_id": workspace, "event_type": event_type, "target_url": url}
        response = self._send("POST", "/api/v1/hooks/subscriptions/", what, json=body, once=True)
        subscription = _read(response, what, explain=True, empty=False)
        identifier, proof = str(subscription.get("id") or ""), response.headers.get("X-Hook-Secret", "")
        if not identifier or not proof:
            raise PanelUnreachable(f"Prolific: to {what}: its answer cannot be confirmed")
        path = f"/api/v1/hooks/subscriptions/{_part(identifier)}/"
        self._call("POST", path, what, json={"secret": proof}, explain=True, empty=True)

    # How a call is made

    def _pages(self, path: str, query: Mapping[str, Any], what: str) -> Iterator[dict[str, Any]]:
        """Every row of a list. Follows the next page's address in each answer: a page past the end would be a 404."""
        page = self._call("GET", path, what, params=query, repeat=True)
        for _number in range(LONGEST_LIST):
            yield from _rows(page, what)
            following = ((page.get("_links") or {}).get("next") or {}).get("href")
            if not following:
                return
            parts = urlsplit(following)
            # Only path and query are used: the token must go to no other host.
            page = self._call("GET", f"{parts.path}?{parts.query}", what, repeat=True)
        raise PanelUnreachable(f"Prolific: to {what}: the list does not end")

    def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        repeat: bool = False,
        once: bool = False,
        explain: bool = False,
        empty: bool = False,
    ) -> dict[str, Any]:
        """Make one call and return the answer's JSON.

        Args:
            what: words for messages, without any id.
            repeat: the call may be repeated, since twice does no harm.
            once: never repeat, even if the call certainly did not arrive.
            explain: put the panel's own words into the message. Not for calls about people: they may name them.
            empty: expect an answer without a body.
        """
        response = self._send(method, path, what, json=json, params=params, repeat=repeat, once=once)
        return _read(response, what, explain=explain, empty=empty)

    def _send(
        self,
        method: str,
        path: str,
        what: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        repeat: bool = False,
        once: bool = False,
    ) -> httpx.Response:
        """The first answer that is neither a lost connection, nor a 429, nor a server error."""
        for number in range(self._patience):
            is_last = once or number == self._patience - 1
            try:
                response = self._http.request(method, path, json=json, params=params)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as exc:
                if is_last:
                    raise PanelUnreachable(f"Prolific: to {what}: no connection") from exc
                self._wait(number)
                continue
            except httpx.HTTPError as exc:
                if is_last or not repeat:
                    raise PanelUnreachable(
                        f"Prolific: to {what}: the connection broke before an answer came", outcome_is_known=False
                    ) from exc
                self._wait(number)
                continue
            if response.status_code == 429:
                pause = _retry_after(response)
                if is_last or (pause is not None and pause > LONGEST_WAIT):
                    message = f"Prolific: to {what}: too many requests; try again later"
                    raise PanelBusy(message, answered=429, retry_after=math.ceil(pause or 0))
                self._wait(number, at_least=pause or 0.0)
                continue
            if response.status_code >= 500:
                if is_last or not repeat:
                    raise PanelUnreachable(
                        f"Prolific: to {what}: it answered {response.status_code}",
                        answered=response.status_code,
                        outcome_is_known=False,
                    )
                self._wait(number)
                continue
            return response
        raise AssertionError("the last try returns or raises")

    def _wait(self, number: int, *, at_least: float = 0.0) -> None:
        jitter = random.uniform(0, FIRST_WAIT * 2**number)  # noqa: S311 - only spreads the tries
        self._sleep(at_least + jitter)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """All clients share them: reading them takes longer than most calls."""
    return httpx.create_ssl_context()


def _part(identifier: str) -> str:
    return quote(identifier, safe="")


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds; None where it is missing, or no number."""
    try:
        seconds = float(response.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _rows(page: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    rows = page.get("results")
    if not isinstance(rows, list):
        raise PanelUnreachable(f"Prolific: to {what}: the answer holds no list")
    return rows


def _read(response: httpx.Response, what: str, *, explain: bool, empty: bool) -> dict[str, Any]:
    if response.is_success:
        if empty:
            return {}
        try:
            body = response.json()
        except (ValueError, RecursionError) as exc:
            raise _unreadable(what) from exc
        if not isinstance(body, dict):
            raise _unreadable(what)
        return body
    if response.is_redirect:
        raise PanelUnreachable(f"Prolific: to {what}: it points elsewhere; check HUNCH_PROLIFIC_URL")
    reason = _reason(response, explain=explain)
    if response.status_code in (401, 403):
        reason += "; check HUNCH_PROLIFIC_TOKEN"
    kind: type[PanelError] = PanelMissing if response.status_code == 404 else PanelRefused
    raise kind(f"Prolific: to {what}: {reason}", answered=response.status_code)


def _read_list(response: httpx.Response, what: str) -> list[dict[str, Any]]:
    if not response.is_success:
        _read(response, what, explain=True, empty=True)
    try:
        rows = response.json()
    except (ValueError, RecursionError) as exc:
        raise _unreadable(what) from exc
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise PanelUnreachable(f"Prolific: to {what}: the answer holds no list")
    return rows


def _unreadable(what: str, form: str = "JSON") -> PanelError:
    return PanelUnreachable(f"Prolific: to {what}: its answer is not {form}", outcome_is_known=False)


def _reason(response: httpx.Response, *, explain: bool) -> str:
    reason = f"it answered {response.status_code}"
    try:
        error = response.json()["error"]
        code, title, detail = error.get("error_code"), error.get("title"), error.get("detail")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return reason
    if code:
        reason += f" (error {code})"
    if explain:
        words = "; ".join(_sentences(detail)) or (title if isinstance(title, str) else "")
        reason += f": {words[:500]}" if words else ""
    return reason


def _sentences(detail: Any, name: str = "") -> Iterator[str]:
    """The texts of an error's detail: one text, a list of them, or texts by the name of a field, to any depth."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            yield from _sentences(value, f"{name}.{key}" if name else str(key))
    elif isinstance(detail, list):
        for value in detail:
            yield from _sentences(value, name)
    elif isinstance(detail, str | int | float) and detail != "":
        yield f"{name}: {detail}" if name else str(detail)


def is_configured() -> bool:
    return bool(settings.HUNCH_PROLIFIC_TOKEN)


def open_client(*, at_the_door: bool = False) -> ProlificClient:
    """The client of the account that the settings name.

    Args:
        at_the_door: a person waits for a page, so ask only once and with a short timeout.

    Raises:
        HunchError: no token is set.
    """
    if not is_configured():
        raise HunchError(NOT_CONFIGURED)
    url, token = settings.HUNCH_PROLIFIC_URL, settings.HUNCH_PROLIFIC_TOKEN
    if at_the_door:
        return ProlificClient(url=url, token=token, timeout=SHORT_TIMEOUT, patience=1)
    return ProlificClient(url=url, token=token)


def open_public_client() -> ProlificClient:
    """A client for calls that need no token, while a person waits for a page."""
    return ProlificClient(url=settings.HUNCH_PROLIFIC_URL, token="", timeout=SHORT_TIMEOUT, patience=1)
