"""Words with their meaning: one list, in the documents and at the heads of the console's tables."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.http import HttpRequest
from django.template import RequestContext, Template
from django.template.loader import render_to_string

from survey.figures import glossary
from tests.admin.test_words import reports_of_all
from tools import glossary_page

ROOT = Path(__file__).parents[2]
# Heads that everybody understands. Another one has its meaning among our words, and stands as {% term "..." %}.
PLAIN = """
About, Actions, Added, Added by, Alike, Answers, Arrived, At the panel, Before publishing, Bonuses, By, Came to it,
Change, Check, Code, Column, Complete, Decided, Design and trade-off, Do, Done, Drawn at random (holdout), Drawn by
the design, Error, Event, Factor, Failed, Failed again, Fees and VAT, Figure, Figure or file, Filled, Flag, For,
Given, Here, Ids, Keys, Last answer, Left there, Level, Line, Lines, Made, May spend, Median, Message, Next try, Now,
Of those who arrived, Order, Page, Payment, People, People done, Person, Places, Posting, Predictor, Progress, Quarter
above, Quarter below, Question, Questions, Quota: cell, Receiver, Refused because, Remarks, Role, Rule of the study
file, Scores from, Seconds, Since, Sittings, Stage, State, Step, Tenth above, Text, Texts, There now, Time left,
Times, to, To approve, Trained after, Tries, Until, What, What stands in it, What was found, What was written, What
you saw at the panel, When, Who, Why
"""
HEAD = re.compile(r'<th scope="col"[^>]*>([A-Za-z][^<{]*)</th>')


@cache
def everything_else() -> str:
    """What documents, pages and code say, but for the list itself."""
    paths = [path for path in (ROOT / "docs").glob("*.md") if path.name != "glossary.md"]
    paths += [path for kind in ("*.py", "*.html") for path in (ROOT / "survey").rglob(kind)]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths if path.name != "glossary.py").lower()


def test_the_page_of_our_words_is_what_the_list_says() -> None:
    assert glossary_page.TARGET.read_text(encoding="utf-8") == glossary_page.page(), "python -m tests.renew glossary"


def test_no_word_of_the_list_is_unused() -> None:
    names = [re.sub(r" of a \w+$", "", name) for words in glossary.PARTS.values() for name in words]
    assert [name for name in names if not re.search(rf"\b{re.escape(name.lower())}", everything_else())] == []


def test_no_word_stands_twice_in_the_list() -> None:
    names = [name.lower() for words in glossary.PARTS.values() for name in words]
    assert len(names) == len(set(names)) > 80


def test_every_head_of_a_reports_table_says_what_stands_below_it() -> None:
    without = [
        f"{name}: {table}: {column.name}"
        for name, report in reports_of_all()
        for table, columns in report.exported.items()
        for column in columns
        if not getattr(column, "description", "of another column")
    ]
    assert without == []


def test_a_head_of_a_page_is_plain_or_one_of_our_words() -> None:
    plain = {" ".join(name.split()) for name in PLAIN.split(",")}
    wrong = [
        f"{path.name}: {head}"
        for path in (ROOT / "survey/templates").rglob("*.html")
        for head in HEAD.findall(path.read_text(encoding="utf-8"))
        if head not in plain
    ]
    assert wrong == []
    named = [
        word
        for path in (ROOT / "survey/templates").rglob("*.html")
        for word in re.findall(r'{% term "([^"]+)" %}', path.read_text(encoding="utf-8"))
    ]
    assert len(named) > 10 and [word for word in named if glossary.word_of(word) is None] == []


@pytest.mark.parametrize(
    ("written", "name"),
    [("Candidates", "candidates"), ("Stage", "stage"), ("Strata", None), ("Estimate [95 % interval]", "estimate")],
)
def test_a_word_is_known_as_pages_write_it(written: str, name: str | None) -> None:
    words = {own: word for part in glossary.PARTS.values() for own, word in part.items()}
    assert glossary.word_of(written) == (words[name] if name else None)


def test_a_word_is_a_button_that_opens_its_meaning_and_each_meaning_stands_once() -> None:
    words = '{% term "Counted" %}{% term "Counted" %}{% term word meaning %}{% term "Name" %}'
    html = Template("{% load hunch_terms %}" + words + "{% term_notes %}").render(
        RequestContext(HttpRequest(), {"word": "<b>", "meaning": "a & b"})
    )
    assert html.count('popovertarget="term-1"') == 2 and html.count('<div popover id="term-1"') == 1
    assert 'popovertarget="term-2" title="a &amp; b">&lt;b&gt;</button>Name<div' in html
    assert "<strong>Counted</strong>: Answers that were complete in time" in html


def test_a_meaning_on_a_page_has_no_link_of_the_documents() -> None:
    html = Template('{% load hunch_terms %}{% term "Member" %}').render(RequestContext(HttpRequest()))
    assert "Who may work on a study." in html and "rights.md" not in html


def test_names_of_the_code_stand_on_a_studys_page_in_words() -> None:
    screens = [SimpleNamespace(kind="item", name="own_answer")]
    funnel = render_to_string("admin/survey/study/funnel.html", {"screens": screens})
    assert "item own answer" in funnel and "own_answer" not in funnel
    remarks = [SimpleNamespace(facts={"sitting": 1, "questions": ["q7"], "screen": "own_answer"})]
    assert "q7 (own answer)" in render_to_string("admin/survey/study/remarks.html", {"remarks": remarks})
