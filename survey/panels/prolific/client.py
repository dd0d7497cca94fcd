"""Prolific's REST API: one method for each call. Imports only httpx, settings, the contract and its HTTP base.

What is safe to repeat is repeated (`survey.contracts.panel_api`): every read, and every write that has the same effect
twice (approve, set the number of places). Setting up and paying bonuses is never repeated. Statuses stay the strings
that came.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.conf import settings

from survey.contracts.panel_api import AT_THE_DOOR, Answer, PanelApi, part_of_path, sentences
from survey.contracts.panels import PanelUnreachable
from survey.exceptions import HunchError

PAGE_SIZE = 100
NOT_CONFIGURED = "HUNCH_PROLIFIC_TOKEN is not set: without it Prolific cannot be asked"


class ProlificClient(PanelApi):
    """One account at Prolific.

    Args:
        token: the account's API token; it may be empty where only the public keys are read.
        more: the other arguments of a `PanelApi`.
    """

    def __init__(self, *, url: str, token: str, **more: Any) -> None:
        headers = {"Authorization": f"Token {token}"} if token else {}
        check = ("HUNCH_PROLIFIC_TOKEN", "HUNCH_PROLIFIC_URL")
        super().__init__(title="Prolific", url=url, headers=headers, check=check, **more)

    # Studies

    def create_study(self, body: Mapping[str, Any]) -> Answer:
        """Create a draft. Not repeated, since that could make a second one: find the first by its internal name."""
        return self.call("POST", "/api/v1/studies/", "create the draft", json=body, explain=True)

    def studies(self) -> Iterator[Answer]:
        return self.pages("/api/v1/studies/", {"page_size": PAGE_SIZE}, "list the studies", following=_next_page)

    def study(self, study: str) -> Answer:
        return self.call("GET", f"/api/v1/studies/{part_of_path(study)}/", "read the study", repeat=True)

    def transition(self, study: str, action: str, *, publish_at: str = "") -> Answer:
        """PUBLISH, PAUSE, START, STOP, CANCEL_PUBLISH, or SCHEDULE_PUBLISH with the time."""
        path = f"/api/v1/studies/{part_of_path(study)}/transition/"
        body = {"action": action, "publish_at": publish_at} if publish_at else {"action": action}
        what = f"{action.lower().replace('_', ' ')} the study"
        return self.call("POST", path, what, json=body, explain=True)

    def test_study(self, study: str) -> Answer:
        """A trial of a draft, for test participants alone. Not repeated, since that could make a second one."""
        path = f"/api/v1/studies/{part_of_path(study)}/test-study/"
        return self.call("POST", path, "make a test study", explain=True)

    def recruitment_time(self, study: str) -> Answer:
        path = f"/api/v1/studies/{part_of_path(study)}/predicted-recruitment-time/"
        return self.call("GET", path, "predict the time of recruiting", repeat=True)

    def demographics(self, study: str) -> str:
        """What is known of the study's people, as CSV. No filter is named: only the basic facts."""
        path, what = f"/api/v1/studies/{part_of_path(study)}/demographic-export/", "export demographic data"
        response = self.send("POST", path, what, json={"filters": []}, repeat=True, explain=True)
        head = response.text.partition("\n")[0].lower()
        if head and not all(name in head for name in ("submission id", "participant id")):
            raise self.unreadable(what, "a table")
        return response.text

    # Money

    def cost_of(self, reward: int, places: int) -> Answer:
        """What so many places would cost, in cents, with fee and VAT."""
        body = {"reward": reward, "total_available_places": places}
        return self.call("POST", "/api/v1/study-cost-calculator/", "calculate the cost", json=body, repeat=True)

    def study_cost(self, study: str, *, projected: bool = False) -> Answer:
        """What the study has cost so far; or what it will cost, if all places are used."""
        query = {"is_projected": "true"} if projected else None
        path = f"/api/v1/studies/{part_of_path(study)}/cost/"
        return self.call("GET", path, "read the cost", params=query, repeat=True)

    def balance(self, workspace: str) -> Answer:
        path = f"/api/v1/workspaces/{part_of_path(workspace)}/balance/"
        return self.call("GET", path, "read the balance", repeat=True)

    def reward_recommendations(self, workspace: str, currency: str) -> list[Answer]:
        """The newest first, in cents per hour."""
        query = {"workspace_id": workspace, "currency": currency}
        what, path = "read the recommended reward", "/api/v1/reward-recommendations/"
        return self.read_list(self.send("GET", path, what, params=query, repeat=True, explain=True), what)

    # Participant groups

    def groups(self, place: Mapping[str, str]) -> Iterator[Answer]:
        """Those of a workspace or a project: {"workspace_id": ...} or {"project_id": ...}."""
        query = {**place, "limit": PAGE_SIZE}
        return self.pages("/api/v1/participant-groups/", query, "list the participant groups", following=_next_page)

    def create_group(self, name: str, place: Mapping[str, str]) -> Answer:
        """Not repeated, since that could make a second one: find the first by its name."""
        body = {"name": name, **place}
        return self.call("POST", "/api/v1/participant-groups/", "make a participant group", json=body, explain=True)

    def add_to_group(self, group: str, people: Sequence[str]) -> None:
        path = f"/api/v1/participant-groups/{part_of_path(group)}/participants/"
        body = {"participant_ids": list(people)}
        self.call("POST", path, "add people to a participant group", json=body, repeat=True, empty=True)

    def remove_from_group(self, group: str, people: Sequence[str]) -> None:
        path = f"/api/v1/participant-groups/{part_of_path(group)}/participants/"
        body = {"participant_ids": list(people)}
        self.call("DELETE", path, "take people out of a participant group", json=body, repeat=True, empty=True)

    def set_places(self, study: str, places: int) -> Answer:
        """Set the total number of places; Prolific only lets it grow."""
        path = f"/api/v1/studies/{part_of_path(study)}/"
        body = {"total_available_places": places}
        return self.call("PATCH", path, "change the places", json=body, repeat=True, explain=True)

    def set_publish_at(self, study: str, publish_at: str) -> Answer:
        """Set when a draft is published. It is scheduled by a transition afterwards."""
        path = f"/api/v1/studies/{part_of_path(study)}/"
        return self.call("PATCH", path, "set the time", json={"publish_at": publish_at}, repeat=True, explain=True)

    # Submissions

    def submissions(self, study: str) -> Iterator[Answer]:
        query = {"study": study, "page_size": PAGE_SIZE, "ordering": "started_at"}
        return self.pages("/api/v1/submissions/", query, "list the submissions", following=_next_page)

    def submission(self, submission: str) -> Answer:
        return self.call("GET", f"/api/v1/submissions/{part_of_path(submission)}/", "read a submission", repeat=True)

    def approve(self, submission: str) -> Answer:
        return self._decide(submission, {"action": "APPROVE"}, "approve a submission", repeat=True)

    def approve_all(self, submissions: Sequence[str]) -> None:
        body = {"submission_ids": list(submissions)}
        path = "/api/v1/submissions/bulk-approve/"
        self.call("POST", path, "approve submissions", json=body, repeat=True, empty=True)

    def reject(self, submission: str, *, category: str, message: str) -> Answer:
        body = {"action": "REJECT", "rejection_category": category, "message": message}
        return self._decide(submission, body, "reject a submission", repeat=False)

    def _decide(self, submission: str, body: Mapping[str, Any], what: str, *, repeat: bool) -> Answer:
        path = f"/api/v1/submissions/{part_of_path(submission)}/transition/"
        return self.call("POST", path, what, json=body, repeat=repeat)

    def request_return(self, submission: str, reasons: Sequence[str]) -> Answer:
        path = f"/api/v1/submissions/{part_of_path(submission)}/request-return/"
        return self.call("POST", path, "ask for a return", json={"request_return_reasons": list(reasons)})

    # Bonuses

    def set_up_bonuses(self, study: str, amounts: Sequence[tuple[str, str]]) -> Answer:
        """(submission or person, amount in whole units such as "1.50"). This alone pays nothing."""
        lines = "".join(f"{who},{amount}\n" for who, amount in amounts)
        body = {"study_id": study, "csv_bonuses": lines}
        return self.call("POST", "/api/v1/submissions/bonus-payments/", "set up the bonuses", json=body)

    def pay_bonuses(self, batch: str) -> None:
        """Pay what was set up. Prolific pays twice if asked twice, so this is sent once, whatever comes back.

        Raises:
            PanelError: `outcome_is_known` is False where it may have been paid.
        """
        path = f"/api/v1/bulk-bonus-payments/{part_of_path(batch)}/pay/"
        self.call("POST", path, "pay the bonuses", once=True, empty=True)

    # Signed entry

    def study_keys(self) -> Answer:
        """The public keys that entry links are signed with."""
        return self.call("GET", "/.well-known/study/jwks.json", "read the signing keys", repeat=True)

    # Webhooks

    def webhook_secret(self, workspace: str) -> str:
        """The secret that signs the workspace's webhooks; empty if it has none."""
        what = "read the webhook secret"
        answer = self.call("GET", "/api/v1/hooks/secrets/", what, params={"workspace_id": workspace}, repeat=True)
        values = [str(row["value"]) for row in self.rows_of(answer.get("results"), what) if row.get("value")]
        return values[-1] if values else ""

    def subscriptions(self, workspace: str) -> Iterator[Answer]:
        """The workspace's subscriptions that are switched on."""
        query = {"workspace_id": workspace, "is_enabled": "true", "limit": PAGE_SIZE}
        return self.pages("/api/v1/hooks/subscriptions/", query, "list the webhook subscriptions", following=_next_page)

    def new_webhook_secret(self, workspace: str) -> str:
        """Make a new secret that signs the workspace's webhooks from now on; the previous one stops working."""
        what = "make a webhook secret"
        response = self.call("POST", "/api/v1/hooks/secrets/", what, json={"workspace_id": workspace}, once=True)
        if not isinstance(response.get("value"), str):
            raise PanelUnreachable(f"Prolific: to {what}: its answer holds none")
        return str(response["value"])

    def subscribe(self, workspace: str, event_type: str, url: str) -> None:
        """Have events of this kind posted to us, and confirm it with the one-time value in the answer."""
        what = f"subscribe to {event_type}"
        body = {"workspace_id": workspace, "event_type": event_type, "target_url": url}
        response = self.send("POST", "/api/v1/hooks/subscriptions/", what, json=body, once=True, explain=True)
        subscription = self.read(response, what)
        identifier, proof = str(subscription.get("id") or ""), response.headers.get("X-Hook-Secret", "")
        if not identifier or not proof:
            raise PanelUnreachable(f"Prolific: to {what}: its answer cannot be confirmed")
        path = f"/api/v1/hooks/subscriptions/{part_of_path(identifier)}/"
        self.call("POST", path, what, json={"secret": proof}, explain=True, empty=True)

    # What its errors say

    def code_in(self, body: Any) -> str:
        return str(_error(body).get("error_code") or "")

    def words_in(self, body: Any) -> str:
        title = _error(body).get("title")
        return "; ".join(sentences(_error(body).get("detail"))) or (title if isinstance(title, str) else "")


def _error(body: Any) -> Mapping[str, Any]:
    error = body.get("error") if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else {}


def _next_page(page: Answer) -> Any:
    """A page past the end would be a 404, so that each page names the one after it."""
    return ((page.get("_links") or {}).get("next") or {}).get("href")


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
        return ProlificClient(url=url, token=token, **AT_THE_DOOR)
    return ProlificClient(url=url, token=token)


def open_public_client() -> ProlificClient:
    """A client for calls that need no token, while a person waits for a page."""
    return ProlificClient(url=settings.HUNCH_PROLIFIC_URL, token="", **AT_THE_DOOR)
