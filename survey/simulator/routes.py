"""The two ways through a study, by its pages and by its API, as one interface. It only knows what is shown."""

import random
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol
from urllib.parse import urljoin

import httpx

from survey.models.question import plain_text

from .page import Page
from .visitors import Person, SimulationError

SITTING_COOKIE = "hunch_sitting"
UNREADABLE = 422


@dataclass(frozen=True)
class Shown:
    """What a person sees now.

    kind: "welcome" (with nothing to send), "back" (a known person may go on), "consent", or a step's kind. number: the
    step's number. refused: why the person is not admitted. errors: why the last answer was not accepted. item: whether
    the answer is stored as a response to an item.
    """

    kind: str
    number: int | None = None
    refused: str = ""
    outcome: str = ""
    code: str = ""
    errors: str = ""
    page: Page | None = None
    address: str = ""
    step: Mapping[str, Any] | None = None

    @property
    def place(self) -> tuple[str, int | None, str]:
        return self.kind, self.number, self.outcome


class Route(Protocol):
    """`token`: the sitting's token, empty before there is one. `ids`: the person's ids, needed to begin again."""

    ids: Mapping[str, str]

    @property
    def token(self) -> str: ...

    def arrive(self) -> Shown:
        """Open the link."""

    def go_in(self) -> Shown:
        """Go from the first page to the consent form."""

    def open(self, current: Shown, person: Person) -> None:
        """Say that a screen was begun, where its instrument asks for that."""

    def send(self, current: Shown, answers: Mapping[str, Any]) -> Shown:
        """Send answers to what is shown. Returns what is shown next."""

    def answers(self, current: Shown, person: Person) -> dict[str, Any]:
        """What this person answers."""

    def careless(self, current: Shown, chance: random.Random) -> dict[str, Any]:
        """Something that looks like an answer, by somebody who has not read the question."""

    def leave(self, current: Shown, seen: Mapping[str, int]) -> None:
        """Close the window without answering."""


class Pages:
    """The way of a browser."""

    def __init__(self, *, client: httpx.Client, slug: str, ids: Mapping[str, str]) -> None:
        self.client = client
        self.home = f"/s/{slug}/"
        self.ids = ids

    @property
    def token(self) -> str:
        return next((cookie.value or "" for cookie in self.client.cookies.jar if cookie.name == SITTING_COOKIE), "")

    def arrive(self) -> Shown:
        return self._read(self.client.get(self.home, params=dict(self.ids)))

    def go_in(self) -> Shown:
        return self._read(self.client.get(f"{self.home}consent"))

    def look(self) -> Shown:
        """Load the sitting's current page again."""
        return self._read(self.client.get(f"{self.home}sitting"))

    def open(self, current: Shown, person: Person) -> None:
        page = current.page
        beacon = page.form.attributes.get("data-beacon") if page and page.form else None
        if page is None or not page.screen or not beacon:
            return
        if nonce := person.items.opening(screen=page.screen):
            answer = self.client.post(beacon, data={**page.hidden, "opened": nonce})
            if answer.is_error and answer.status_code != httpx.codes.CONFLICT:  # Another tab was faster.
                raise SimulationError(f"POST {beacon} answered {answer.status_code}")

    def send(self, current: Shown, answers: Mapping[str, Any]) -> Shown:
        if current.page is None or current.page.form is None:
            raise SimulationError(f"{current.address} shows no form: {current.page.summary if current.page else ''}")
        target = urljoin(current.address, current.page.form.attributes.get("action", ""))
        return self._read(self.client.post(target, data={**current.page.hidden, **answers}))

    def answers(self, current: Shown, person: Person) -> dict[str, Any]:
        page = current.page
        if page is None or current.kind in ("welcome", "back"):
            return {}
        if current.kind == "consent":
            return {"consent": "yes", "script": "1"}  # They answer as a browser with its scripts does.
        if current.kind in ("item", "practice") and page.screen:
            return person.items.answer(screen=page.screen, parts=page.parts)
        if current.kind == "checks":
            return person.answer_checks(page.choices)
        if current.kind == "attention":
            return person.answer_attention(page.choices)
        if current.kind == "form":
            return person.answer_fields([*page.choices, *page.several, *page.blanks])
        if current.kind == "debriefing":
            return {name: values[0] for name, values in page.buttons.items()}  # that the answers may be used
        return {}

    def careless(self, current: Shown, chance: random.Random) -> dict[str, Any]:
        page = current.page
        if page is None:
            return {}
        choices = {name: [value for value, _text in options] for name, options in page.choices.items()}
        return _at_random(choices, page.blanks, chance)

    def leave(self, current: Shown, seen: Mapping[str, int]) -> None:
        beacon = current.page.form.attributes.get("data-beacon") if current.page and current.page.form else None
        if current.page is not None and beacon:
            answer = self.client.post(beacon, data={**current.page.hidden, **seen})
            if answer.is_error:
                raise SimulationError(f"POST {beacon} answered {answer.status_code}")

    def _read(self, response: httpx.Response) -> Shown:
        page = Page(response.text)
        address = response.url.path
        refused_answer = bool(page.errors) and page.form is not None
        if response.is_error and not page.refused and not refused_answer:
            raise SimulationError(
                f"{response.request.method} {address} answered {response.status_code}: {page.summary}"
            )
        kind = page.kind
        if not kind:
            kind = "welcome" if page.form is None else "consent" if address.endswith("/consent") else "back"
        return Shown(
            kind=kind,
            number=int(page.step) if page.step else None,
            refused=page.refused,
            outcome=page.outcome,
            code=page.code,
            errors=page.summary if refused_answer else "",
            page=page,
            address=address,
        )


class Api:
    """The way of another front end."""

    ids: Mapping[str, str]

    def __init__(self, *, client: httpx.Client, slug: str, ids: Mapping[str, str]) -> None:
        self.client = client
        self.study = f"/api/v1/studies/{slug}/"
        # In an open study the front end makes up an id for the person. Without it, a repeated request would begin
        # twice.
        self.ids = ids or {"person": secrets.token_hex(16)}
        self.token = ""

    def arrive(self) -> Shown:
        step = self._json(self.client.get(self.study))
        return Shown(kind="welcome", step=step)

    def go_in(self) -> Shown:
        return Shown(kind="consent")

    def open(self, current: Shown, person: Person) -> None:
        screen = (current.step or {}).get("screen")
        if not screen:
            return
        if nonce := person.items.opening(screen=screen["name"]):
            response = self.client.post(
                "/api/v1/sitting/left/",
                json={"step": current.number, "opened": nonce},
                headers={"X-Sitting-Token": self.token},
            )
            if response.is_error and response.status_code != httpx.codes.CONFLICT:
                raise SimulationError(f"POST /api/v1/sitting/left/ answered {response.status_code}")

    def send(self, current: Shown, answers: Mapping[str, Any]) -> Shown:
        if current.kind == "consent":
            return self._begin(answers)
        response = self.client.post(
            "/api/v1/sitting/", json={"step": current.number, **answers}, headers={"X-Sitting-Token": self.token}
        )
        if response.status_code == UNREADABLE:
            return replace(current, errors=response.text[:300])
        return self._shown(self._json(response))

    def _begin(self, answers: Mapping[str, Any]) -> Shown:
        response = self.client.post(f"{self.study}sittings/", json={**answers, **_in_json(self.ids)})
        if response.status_code == httpx.codes.FORBIDDEN:
            return Shown(kind="refused", refused=str(response.json()["error"]["code"]))
        begun = self._json(response)
        self.token = begun["token"]
        return self._shown(begun["step"])

    def answers(self, current: Shown, person: Person) -> dict[str, Any]:
        if current.kind == "consent":
            return {"consent": True}
        step = current.step
        if step is None:
            return {}
        if screen := step.get("screen"):
            return {
                "screen": screen["name"],
                **person.items.answer(screen=screen["name"], parts=readable_parts(screen["parts"])),
            }
        if current.kind in ("checks", "attention"):
            answer = person.answer_checks if current.kind == "checks" else person.answer_attention
            return answer(
                {
                    check["name"]: [(str(option["value"]), option["text"]) for option in check["options"]]
                    for check in step["checks"]
                }
            )
        if current.kind == "debriefing":
            return {field["name"]: field["options"][0] for field in step["fields"]}
        if current.kind == "form":
            return person.answer_fields([field["name"] for field in step["fields"]])
        return {}

    def careless(self, current: Shown, chance: random.Random) -> dict[str, Any]:
        screen = (current.step or {}).get("screen")
        if not screen:
            return {}
        choices = {field["name"]: field["options"] for field in screen["fields"] if field.get("options")}
        blanks = [field["name"] for field in screen["fields"] if not field.get("options")]
        return {"screen": screen["name"], **_at_random(choices, blanks, chance)}

    def leave(self, current: Shown, seen: Mapping[str, int]) -> None:
        """The API has no call for this."""

    def _shown(self, step: Mapping[str, Any]) -> Shown:
        return Shown(kind=step["kind"], number=step["number"], outcome=step["outcome"], code=step["code"], step=step)

    @staticmethod
    def _json(response: httpx.Response) -> dict[str, Any]:
        if response.is_error:
            raise SimulationError(
                f"{response.request.method} {response.url.path} answered {response.status_code}: {response.text[:300]}"
            )
        content: dict[str, Any] = response.json()
        return content


def readable_parts(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """A screen's parts as a reader sees them."""
    return {
        name: plain_text(part["value"]) if part["kind"] == "question" else str(part["value"])
        for name, part in parts.items()
    }


def _in_json(ids: Mapping[str, str]) -> dict[str, Any]:
    """Whom a front end made up, by a field of its own; what an address carries, as its parameters."""
    own = {name: value for name, value in ids.items() if name == "person"}
    carried = {name: value for name, value in ids.items() if name != "person"}
    return {**own, "parameters": carried} if carried else own


def _at_random(choices: Mapping[str, Sequence[Any]], blanks: Sequence[str], chance: random.Random) -> dict[str, Any]:
    chosen = {name: chance.choice(list(options)) for name, options in choices.items()}
    return {**chosen, **{name: str(10 * chance.randint(0, 10)) for name in blanks}}


class Opening(Protocol):
    def __call__(self, *, client: httpx.Client, slug: str, ids: Mapping[str, str]) -> Route: ...


ROUTES: Mapping[str, Opening] = {"pages": Pages, "api": Api}
