"""One simulated person's way through a study, by the pages or by the API."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
from django.core.signing import Signer

from survey.exceptions import HunchError
from survey.instruments.registry import SimulatedPerson
from survey.models.question import plain_text
from survey.services.seeds import derive
from survey.study_file import StudyConfig

from .page import Page

MARK_SALT = "hunch.simulated"
MISREADS = 0.08  # The share of people who get a comprehension check wrong at first.
MOST_STEPS = 2000  # A study has far fewer; a page that never changes must end in an error and not in a loop.
CARELESS = 0.04  # The share of people who answer attention checks without reading them.
REMARK = "No remarks. (This person is simulated.)"


class SimulationError(HunchError):
    """A page or the API did not do what it promises; the message has the address and what it said."""

    code = "simulation_failed"
    status = 500


class Person:
    """What one person answers where no instrument is asked: checks and forms, from the seed alone."""

    def __init__(self, *, config: StudyConfig, items: SimulatedPerson, seed: int) -> None:
        self.items = items
        self._chance = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._misreads = self._chance.random() < MISREADS
        # By chances of their own: what is asked here must not change what somebody answers elsewhere.
        self._attention = random.Random(derive(seed, "attention"))  # noqa: S311
        self._careless = self._attention.random() < CARELESS
        self._attention_checks = {check.name: check for check in config.sitting.attention_checks}
        self._right = {check.name: check.options[0] for block in config.blocks for check in block.checks}
        self._fields = {field.name: field for block in config.blocks for field in block.fields}
        self.panel_ids = (
            {name: f"{self._identity.getrandbits(96):024x}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")}
            if config.panel.kind == "prolific"
            else {}
        )

    # People of two runs must differ even if the runs share a seed, or the second would be sent away as the first.
    _identity = random.SystemRandom()

    def answer_checks(self, checks: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
        """The value of the right option of each check; of a wrong one at the first attempt of who misreads."""
        answers = {}
        for name, options in checks.items():
            right = next((value for value, text in options if text == self._right.get(name)), None)
            if right is None:
                raise SimulationError(f"the check {name!r} does not show its right option")
            answers[name] = right
        if self._misreads:
            self._misreads = False
            name, right = next(iter(answers.items()))
            answers[name] = next(value for value, _text in checks[name] if value != right)
        return answers

    def answer_attention(self, checks: Mapping[str, Sequence[tuple[str, str]]]) -> dict[str, str]:
        """A right option of the attention check; whatever comes from who does not read."""
        answers = {}
        for name, options in checks.items():
            check = self._attention_checks.get(name)
            right = [value for value, text in options if check is not None and text in check.options[: check.right]]
            if not right:
                raise SimulationError(f"the check {name!r} does not show its right option")
            answers[name] = self._attention.choice([value for value, _text in options] if self._careless else right)
        return answers

    def answer_fields(self, names: Sequence[str]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for name in names:
            field = self._fields[name]
            if field.kind == "choice":
                answers[name] = self._chance.choice([code for code in field.codes if code not in field.screen_out])
            elif field.kind == "multiple":
                together = [code for code in field.codes if code not in field.exclusive]
                answers[name] = self._chance.sample(together, self._chance.randint(1, len(together)))
            elif field.kind == "likert":
                answers[name] = str(self._chance.randint(1, field.points or 1))
            elif field.kind == "number":
                low = 18 if field.minimum is None else field.minimum
                high = max(low, 80) if field.maximum is None else field.maximum
                answers[name] = str(self._chance.randint(low, high))
            else:
                answers[name] = REMARK[: field.max_characters]
        return answers


def open_client(base_url: str) -> httpx.Client:
    """One browser: its own cookies, no proxy, and nowhere but the one host."""
    home = urlsplit(base_url).netloc

    def stay_at_home(request: httpx.Request) -> None:
        if request.url.netloc.decode() != home:
            raise SimulationError(f"led away from {base_url} to {request.url}")

    return httpx.Client(
        base_url=base_url,
        headers={"X-Hunch-Simulated": Signer(salt=MARK_SALT).sign("simulator")},
        follow_redirects=True,
        trust_env=False,
        timeout=60.0,  # A laptop that also trains may keep a page waiting.
        event_hooks={"request": [stay_at_home]},
    )


def visit_pages(*, client: httpx.Client, slug: str, person: Person, go_on: Callable[[], bool]) -> tuple[str, str]:
    """Take part through the pages; return outcome and completion code, or why the door stayed closed and ""."""
    response = client.get(f"/s/{slug}/", params=person.panel_ids)
    page = Page(response.text)
    if page.refused:
        return page.refused, ""
    page = _read(client.get(f"/s/{slug}/consent"))
    if page.refused:
        return page.refused, ""
    page, address = _post(client, f"/s/{slug}/consent", page, {"consent": "yes"})
    for _step in range(MOST_STEPS):
        if page.refused:
            return page.refused, ""
        if page.kind == "end":
            return page.outcome, page.code
        if not go_on():
            return "stopped", ""
        page, address = _post(client, address, page, _answers(page, person))
    raise SimulationError(f"{address}: no end after {MOST_STEPS} steps")


def _answers(page: Page, person: Person) -> dict[str, Any]:
    if page.kind in ("item", "practice") and page.screen:
        return person.items.answer(screen=page.screen, parts=page.parts)
    if page.kind == "checks":
        return person.answer_checks(page.choices)
    if page.kind == "attention":
        return person.answer_attention(page.choices)
    if page.kind == "form":
        return person.answer_fields([*page.choices, *page.several, *page.blanks])
    if page.kind == "debriefing":
        return {name: values[0] for name, values in page.buttons.items()}  # that the answers may be used
    return {}


def _post(client: httpx.Client, address: str, page: Page, answers: Mapping[str, Any]) -> tuple[Page, str]:
    if page.form is None:
        raise SimulationError(f"{address} shows no form: {page.summary}")
    target = urljoin(address, page.form.attributes.get("action", ""))
    response = client.post(target, data={**page.hidden, **answers})
    return _read(response), response.url.path


def _read(response: httpx.Response) -> Page:
    page = Page(response.text)
    if response.is_error and not page.refused:
        raise SimulationError(
            f"{response.request.method} {response.url.path} answered {response.status_code}: {page.summary}"
        )
    return page


def visit_api(*, client: httpx.Client, slug: str, person: Person, go_on: Callable[[], bool]) -> tuple[str, str]:
    """Take part through the respondents' API; returns what `visit_pages` does."""
    response = client.post(f"/api/v1/studies/{slug}/sittings/", json={"consent": True, **person.panel_ids})
    if response.status_code == httpx.codes.FORBIDDEN:
        return str(response.json()["error"]["code"]), ""
    begun = _json(response)
    client.headers["X-Sitting-Token"] = begun["token"]
    step = begun["step"]
    for _step in range(MOST_STEPS):
        if step["kind"] == "end":
            return step["outcome"], step["code"]
        if not go_on():
            return "stopped", ""
        answers = {"step": step["number"], **_api_answers(step, person)}
        step = _json(client.post("/api/v1/sitting/", json=answers))
    raise SimulationError(f"/api/v1/sitting/: no end after {MOST_STEPS} steps")


def _api_answers(step: Mapping[str, Any], person: Person) -> dict[str, Any]:
    if step["screen"]:
        screen = step["screen"]
        return {
            "screen": screen["name"],
            **person.items.answer(screen=screen["name"], parts=readable_parts(screen["parts"])),
        }
    if step["kind"] in ("checks", "attention"):
        answer = person.answer_checks if step["kind"] == "checks" else person.answer_attention
        return answer(
            {
                check["name"]: [(str(option["value"]), option["text"]) for option in check["options"]]
                for check in step["checks"]
            }
        )
    if step["kind"] == "debriefing":
        return {field["name"]: field["options"][0] for field in step["fields"]}
    if step["kind"] == "form":
        return person.answer_fields([field["name"] for field in step["fields"]])
    return {}


def readable_parts(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """A screen's parts as a reader sees them."""
    return {
        name: plain_text(part["value"]) if part["kind"] == "question" else str(part["value"])
        for name, part in parts.items()
    }


def _json(response: httpx.Response) -> dict[str, Any]:
    if response.is_error:
        raise SimulationError(
            f"{response.request.method} {response.url.path} answered {response.status_code}: {response.text[:300]}"
        )
    found: dict[str, Any] = response.json()
    return found


ROUTES = {"pages": visit_pages, "api": visit_api}
