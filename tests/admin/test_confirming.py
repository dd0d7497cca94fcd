"""The page that asks before something is done: when it is done, with which sum, and what a refusal says."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django import forms
from django.http import HttpResponse
from django.test import RequestFactory

from survey.admin import confirming
from survey.admin.confirming import Confirmation, ConfirmedAction, confirm
from survey.exceptions import StateRefused
from survey.models import Study


class WordForm(forms.Form):
    word = forms.CharField()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is told on the next page. The page that asks is its context."""
    told: list[tuple[str, str]] = []
    channel = SimpleNamespace(
        success=lambda _request, words: told.append(("success", words)),
        error=lambda _request, words: told.append(("error", words)),
    )
    monkeypatch.setattr(confirming, "messages", channel)
    monkeypatch.setattr(confirming, "admin_page", lambda _request, _template, **context: SimpleNamespace(**context))
    return told


def ask(
    do: Callable[..., Any], *, sent: dict[str, str] | None = None, then: str = "", obstacle: str = "", **of: Any
) -> Any:
    page = Confirmation(Study, "Really?", [], "/back/", then=then, currency="USD", obstacle=obstacle)
    request = RequestFactory().get("/") if sent is None else RequestFactory().post("/", sent)
    request.user = SimpleNamespace(pk=7)  # type: ignore[assignment]
    return confirm(request, ConfirmedAction("name", "Label", "Why.", do, **of), "subject", page)


class Done(list[Any]):
    def __call__(self, subject: str, *, by: Any, via: str, **values: Any) -> str:
        self.append((subject, by.pk, via, values))
        return "It is done."


def test_a_get_asks_and_a_post_does_it_and_says_so(said: list[tuple[str, str]]) -> None:
    done = Done()
    assert ask(done).error == "" and done == []
    assert ask(done, sent={}).url == "/back/" and ask(done, sent={}, then="/then/").url == "/then/"
    assert done == [("subject", 7, "admin", {})] * 2 and said == [("success", "It is done.")] * 2
    file = HttpResponse(b"a file")
    assert ask(lambda *_of, **_how: file, sent={}) is file and len(said) == 2


def test_nothing_is_done_where_something_stands_in_the_way_or_a_field_is_wrong(said: list[tuple[str, str]]) -> None:
    done = Done()
    assert ask(done, sent={}, obstacle="not now").confirmation.obstacle == "not now"
    assert ask(done, sent={"word": ""}, form=WordForm).form.errors.keys() == {"word"}
    assert done == [] and said == []
    ask(done, sent={"word": "w"}, form=WordForm)
    assert done == [("subject", 7, "admin", {"word": "w"})]


def test_what_costs_money_is_done_for_the_sum_that_was_typed(said: list[tuple[str, str]]) -> None:
    done = Done()
    costs = {"costs": lambda _subject, _values: 1250}
    for typed in ("", "12.49", "1250", "nonsense"):
        page = ask(done, sent={"sum": typed}, **costs)
        assert page.error and page.cents == 1250
    assert done == []
    assert ask(done, sent={"sum": "12.50"}, **costs).url == "/back/"
    assert done == [("subject", 7, "admin", {"cents": 1250})]


def test_the_price_is_made_sure_of_before_the_sum_is_asked_for(said: list[tuple[str, str]]) -> None:
    done, asked = Done(), Done()
    priced = {
        "ask_price": lambda subject: asked.append(subject),
        "costs": lambda _subject, values: (values and 100) or None,
    }
    page = ask(done, sent={"word": "w"}, form=WordForm, **priced)
    assert (page.cents, page.says_price, page.error, asked, done) == (100, False, "", ["subject"], [])
    assert ask(done, form=WordForm, **priced).says_price and asked == ["subject"]
    ask(done, sent={"word": "w", "sum": "1.00"}, form=WordForm, **priced)
    assert asked == ["subject"] and done == [("subject", 7, "admin", {"word": "w", "cents": 100})]


def test_a_refusal_is_said_on_the_next_page_or_on_this_one(said: list[tuple[str, str]]) -> None:
    def refuses(*_of: Any, **_how: Any) -> str:
        raise StateRefused("the stage is open")

    assert ask(refuses, sent={}).url == "/back/" and ask(refuses, sent={}, then="/then/").url == "/then/"
    ask(refuses, sent={}, refused="Not closed: ")
    assert said == [("error", "Label: the stage is open")] * 2 + [("error", "Not closed: the stage is open")]
    assert ask(refuses, sent={}, stays=True).error == "the stage is open" and len(said) == 3
