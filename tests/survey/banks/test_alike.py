"""The same question under two ids, and questions that are nearly the same, are found in bounded work."""

from typing import Any

import pytest

from survey.services.banks import alike as subject
from survey.services.banks.alike import alike
from survey.services.banks.importing import QuestionRow

LONG = "Which of these rivers flows through the capital of the country with the largest number of lakes"


def rows(*texts: str, answers: tuple[str, ...] = ()) -> list[QuestionRow]:
    keys = answers or ("1",) * len(texts)
    return [
        QuestionRow(f"q{n}", "s", text, key, line=n + 2) for n, (text, key) in enumerate(zip(texts, keys, strict=True))
    ]


def test_the_same_question_under_two_ids_is_found_whatever_its_case_spaces_and_markup() -> None:
    report = alike(rows("What is  new?", "<b>what is</b> New ?", "What is old?", answers=("1", "2", "3")))
    assert [(pair.first.id, pair.second.id, pair.same_answer) for pair in report.same] == [("q0", "q1", False)]
    assert report.near == [] and report.is_whole


def test_nearly_the_same_questions_are_found_and_those_that_differ_in_a_number_are_not() -> None:
    report = alike(rows(f"{LONG}?", f"{LONG}, please?", "What is 17 and 25 added up?", "What is 17 and 26 added up?"))
    assert [(pair.first.id, pair.second.id) for pair in report.near] == [("q0", "q1")]
    assert 90 <= report.near[0].percent < 100


def test_the_work_is_bounded_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "MAX_COMPARED", 10)
    many = rows(*(f"{LONG} {'very ' * (n % 7)}{chr(97 + n % 26)}{chr(97 + n // 26)}?" for n in range(60)))
    report = alike(many)
    assert not report.is_whole and report.near_count <= 10


def test_only_the_first_pairs_are_kept_and_all_are_counted(monkeypatch: Any) -> None:
    monkeypatch.setattr(subject, "MAX_SHOWN", 3)
    report = alike(rows(*["Same?"] * 10))
    assert (len(report.same), report.same_count) == (3, 9)
