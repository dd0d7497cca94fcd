"""Looking people up at the entrance: how often the panel is asked, and what people read who cannot be looked up."""

import threading
from dataclasses import replace
from typing import Any

import httpx
import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from survey.contracts.panels import PanelBusy, PanelUnreachable
from survey.exceptions import EntryRefused
from survey.models import BudgetCount, Respondent, Study
from survey.panels.prolific import client as prolific_client
from survey.panels.prolific.fake import FakeProlific
from survey.panels.prolific.panel import Prolific
from survey.services.base import memory
from survey.services.sittings import lookups
from survey.services.sittings.entry import arrive
from tests import cast
from tests.frontend.pages import read
from tests.waiting import PATIENCE, eventually

from .test_prolific import STUDY

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
NOON = "2026-03-01T12:00:01Z"


@pytest.fixture(autouse=True)
def _one_second_into_a_span(time_machine: Any) -> None:
    time_machine.move_to(NOON, tick=False)


@pytest.fixture
def study(fake: FakeProlific) -> Study:
    fake.studies["study1"] = {**STUDY, "id": "study1", "status": "ACTIVE", "total_available_places": 500}
    return cast.open_study(panel=cast.PROLIFIC)


def of_a_real_person(fake: FakeProlific) -> dict[str, str]:
    place = fake.take_place("study1")
    assert place is not None
    return {"PROLIFIC_PID": place["participant_id"], "STUDY_ID": place["study_id"], "SESSION_ID": place["id"]}


def made_up(number: int) -> dict[str, str]:
    return {"PROLIFIC_PID": f"{number:024x}", "STUDY_ID": "study1", "SESSION_ID": f"{number + 9000:024x}"}


def come(query: dict[str, str], *, at: str = "198.51.100.7", **headers: str) -> Any:
    return Client().get("/s/cast/", query, REMOTE_ADDR=at, headers=headers)


def refusal(response: Any) -> str:
    return read(response.content.decode()).main["data-refused"]


@pytest.mark.thorough
def test_sixty_made_up_arrivals_of_one_address_cost_twenty_calls(fake: FakeProlific, study: Study) -> None:
    answers = [come(made_up(number)) for number in range(60)]
    assert len(fake.calls) == lookups.OF_ADDRESS.most == 20
    assert [answer.status_code for answer in answers] == [403] * 20 + [429] * 40
    last = answers[-1]
    assert refusal(last) == "too_many_from_here" and 0 < int(last.headers["Retry-After"]) <= lookups.OF_ADDRESS.seconds
    assert come(of_a_real_person(fake), at="203.0.113.9").status_code == 302, "other addresses come in"
    assert come(of_a_real_person(fake)).status_code == 429


def test_people_whom_the_panel_sent_do_not_use_up_their_buildings_budget(fake: FakeProlific, study: Study) -> None:
    assert {come(of_a_real_person(fake)).status_code for _person in range(25)} == {302}
    assert len(fake.calls) == 25


def test_all_addresses_together_have_a_budget(
    fake: FakeProlific, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "OF_ALL", replace(lookups.OF_ALL, most=30))
    answers = [come(made_up(number), at=f"198.51.100.{number}") for number in range(60)]
    assert len(fake.calls) == 30
    assert [answer.status_code for answer in answers] == [403] * 30 + [503] * 30
    assert {refusal(answer) for answer in answers[30:]} == {"entry_not_checked"}
    assert {answer.headers["Retry-After"] for answer in answers[30:]} == {"59"}


def test_a_header_that_a_client_writes_buys_no_other_budget(fake: FakeProlific, study: Study, settings: Any) -> None:
    settings.HUNCH_BEHIND_PROXY = False
    for number in range(24):
        come(made_up(number), **{"X-Forwarded-For": f"203.0.113.{number}"})
    assert len(fake.calls) == 20


def test_the_same_made_up_ids_are_looked_up_once(fake: FakeProlific, study: Study) -> None:
    assert {refusal(come(made_up(1), at=f"198.51.100.{number}")) for number in range(9)} == {"not_sent_by_panel"}
    assert len(fake.calls) == 1
    person = of_a_real_person(fake)
    assert {come(person).status_code for _time in range(9)} == {302}
    assert len(fake.calls) == 2


def test_a_submission_made_a_moment_later_is_found_soon(fake: FakeProlific, study: Study, time_machine: Any) -> None:
    person = of_a_real_person(fake)
    held_back = fake.submissions.pop(person["SESSION_ID"])
    assert come(person).status_code == 403
    fake.submissions[person["SESSION_ID"]] = held_back
    time_machine.move_to(timezone.now().timestamp() + lookups.KEPT[lookups.Verdict.NOT_SENT] + 1)
    assert come(person).status_code == 302


class Panel:
    """The panel's answers, one after the other; the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: Any) -> None:
        self.answers, self.calls = list(answers), 0
        monkeypatch.setattr(Prolific, "look_up", lambda _self, _study, _ids: self.look_up())

    def look_up(self) -> Any:
        self.calls += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_after_some_failures_nobody_is_asked_for_a_minute(
    study: Study, monkeypatch: pytest.MonkeyPatch, time_machine: Any
) -> None:
    panel = Panel(monkeypatch, PanelUnreachable("no answer"))
    answers = [come(made_up(number), at=f"198.51.100.{number}") for number in range(12)]
    assert panel.calls == lookups.FAILURES.most + 1
    assert {(answer.status_code, refusal(answer)) for answer in answers} == {(503, "entry_not_checked")}
    assert [int(answer.headers["Retry-After"]) for answer in answers] == [5] * 4 + [60] * 8
    assert not Respondent.objects.exists()
    panel.answers = [lookups.Verdict.SENT]
    time_machine.move_to("2026-03-01T12:01:02Z", tick=False)
    assert come(made_up(1)).status_code == 302


def test_a_panel_that_asks_for_a_pause_gets_it(
    study: Study, monkeypatch: pytest.MonkeyPatch, time_machine: Any
) -> None:
    panel = Panel(monkeypatch, PanelBusy("too many", answered=429, retry_after=150))
    answers = [come(made_up(number)) for number in range(5)]
    assert panel.calls == 1
    assert {answer.headers["Retry-After"] for answer in answers} == {"150"}
    assert "Please try again in 3 minutes." in answers[-1].content.decode()
    panel.answers = [PanelBusy("too many", answered=429, retry_after=10**9)]
    time_machine.move_to("2026-03-01T12:03:00Z", tick=False)
    assert come(made_up(1)).headers["Retry-After"] == str(lookups.LONGEST_PAUSE) == "600"


@pytest.mark.parametrize(("given", "seconds"), [("150", 150), ("0", 5), ("soon", 5), ("inf", 5), ("-9", 5), ("", 5)])
def test_what_the_panels_api_says_of_the_pause_is_read(
    fake: FakeProlific, study: Study, monkeypatch: pytest.MonkeyPatch, given: str, seconds: int
) -> None:
    def busy(request: httpx.Request) -> httpx.Response:
        return httpx.Response(429, headers={"Retry-After": given})

    def open_client(*, at_the_door: bool = False) -> prolific_client.ProlificClient:
        return prolific_client.ProlificClient(
            url=fake.url, token=fake.token, patience=1, transport=httpx.MockTransport(busy)
        )

    monkeypatch.setattr("survey.panels.prolific.panel.open_client", open_client)
    assert come(made_up(1)).headers["Retry-After"] == str(seconds)


def test_a_slow_panel_blocks_two_threads_and_no_more(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are told to come back: they do not wait for a panel that does not answer."""
    monkeypatch.setattr(lookups, "LONGEST_WAIT", 0.05)
    let_go, asked = threading.Event(), threading.Semaphore(0)

    class Slow:
        name = "prolific"

        def look_up(self, *_given: Any) -> Any:
            asked.release()
            assert let_go.wait(PATIENCE)
            return lookups.Verdict.SENT

    monkeypatch.setattr(lookups, "spend", lambda *_given, **_more: 0)  # SQLite would let one thread write at a time.
    monkeypatch.setattr(lookups, "give_back", lambda *_given, **_more: None)
    monkeypatch.setattr(lookups, "closed_for", lambda *_given, **_more: 0)
    results: list[Any] = []

    def visit(number: int) -> None:
        try:
            results.append(lookups._ask(Slow(), study, None, timezone.now()))  # type: ignore[arg-type]
        except EntryRefused as exc:
            results.append(exc)

    threads = [threading.Thread(target=visit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    assert asked.acquire(timeout=PATIENCE) and asked.acquire(timeout=PATIENCE)
    assert lookups.MAX_LOOKUPS_AT_ONCE == 2
    assert eventually(lambda: sum(thread.is_alive() for thread in threads) == 2)
    assert not asked.acquire(blocking=False)
    let_go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert results.count(lookups.LookedUp(lookups.Verdict.SENT)) == 2
    refused = [result for result in results if isinstance(result, EntryRefused)]
    assert {(refusal.code, refusal.status, refusal.retry_after) for refusal in refused} == {
        ("entry_not_checked", 503, lookups.SOON)
    }
    assert lookups._running._value == 2, "all threads were released"


def test_the_page_of_a_failed_look_up_is_kind_and_leads_on(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    Panel(monkeypatch, PanelUnreachable("no answer"))
    response = come(made_up(1))
    page, html = read(response.content.decode()), response.content.decode()
    assert "You have done nothing wrong" in page.text and "Please try again in 5 seconds." in page.text
    assert 'href=""' in html and made_up(1)["PROLIFIC_PID"] not in html
    assert "no-store" in response.headers["Cache-Control"]
    german = cast.open_study(slug="deutsch", panel=cast.PROLIFIC, texts={"language": "de"})
    response = Client(headers={"Accept-Language": "en"}).get(german.get_absolute_url(), made_up(2))
    assert response.headers["Content-Language"] == "de"
    assert "Bitte versuchen Sie es in 5 Sekunden noch einmal." in response.content.decode()


def test_by_api_the_refusal_says_when_to_come_back(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    Panel(monkeypatch, PanelUnreachable("no answer"))
    body = {"consent": True, **made_up(1)}
    response = Client().post("/api/v1/studies/cast/sittings/", body, content_type="application/json")
    assert (response.status_code, response.json()["error"]["code"]) == (503, "entry_not_checked")
    assert response.headers["Retry-After"] == "5"


def test_who_has_begun_comes_back_while_the_panel_cannot_be_asked(
    fake: FakeProlific, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    person, browser = of_a_real_person(fake), Client()
    browser.get("/s/cast/", person)
    Panel(monkeypatch, PanelUnreachable("no answer"))
    assert browser.get("/s/cast/", person).status_code == 302, "who was let in is not looked up again"
    browser.post("/s/cast/consent", {"consent": "yes"})
    assert come(person).status_code == 302, "on another device"


@pytest.mark.parametrize("method", ["get", "set", "add"])
def test_without_a_cache_people_come_in_and_the_budgets_hold(
    fake: FakeProlific, study: Study, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """A cache that cannot be reached is an empty one."""

    def gone(*_given: Any, **_more: Any) -> Any:
        raise ConnectionError("no cache")

    monkeypatch.setattr(memory.cache, method, gone, raising=False)
    assert come(of_a_real_person(fake)).status_code == 302
    for number in range(24):
        come(made_up(number))
    assert len(fake.calls) == 21


def test_an_emptied_cache_resets_no_budget(fake: FakeProlific, study: Study) -> None:
    for number in range(24):
        cache.clear()
        come(made_up(number))
    assert len(fake.calls) == 20
    assert BudgetCount.objects.filter(what="look_up_address").count() == 1


def test_simulated_people_and_programs_count_by_their_address_too(fake: FakeProlific, study: Study) -> None:
    assert arrive(study, made_up(1), host="testserver", simulated=True)
    assert not BudgetCount.objects.exists() and fake.calls == []
