"""The page that shows answers one by one: what it shows, finds, sorts and hides, and its file."""

import csv
import io
import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from survey.contracts import instruments
from survey.models import Assignment, AuditEntry, Exclusion, Question, Sitting, Study
from survey.services.results.export.answer_list import COUNTS, NOT, AnswerList, Selection
from tests import cast
from tests.statements import counted

from .conftest import PERSON, SUBMISSION, client_of, stage_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def address(study: Study, query: str = "", file: str = "") -> str:
    return f"/admin/survey/study/{study.pk}/answers/{file}{query}"


def listed(study: Study, **selection: Any) -> list[dict[str, Any]]:
    stages = list(study.stages.order_by("index"))
    for stage in stages:
        stage.study = study
    answers = AnswerList(study, stages, Selection(**selection))
    names = [column.name for column in answers.columns]
    keys = answers.keys()
    assert answers.count() == len(keys)
    return [dict(zip(names, values, strict=True)) for _answer, values in answers.rows(keys)]


def test_each_answer_stands_with_its_questions_beliefs_and_why_it_does_not_count(study: Study) -> None:
    first, late = Assignment.objects.filter(slot__stage=stage_of(study), state="counted").order_by("pk")[:2]
    Assignment.objects.filter(pk=late.pk).update(state="late")
    other = Sitting.objects.filter(stage=stage_of(study)).exclude(pk=first.sitting_id).get()
    Exclusion.objects.create(stage=other.stage, sitting=other, flags=["speeder"], decided_at=timezone.now())
    rows = listed(study)
    assert len(rows) == Assignment.objects.count()
    person = first.sitting.respondent.pseudonym
    row = next(row for row in rows if (row["respondent"], row["position"]) == (person, 1))
    assert row["question"] and row["evidence"] and row["question"] != row["evidence"]
    assert (row["prior"], row["posterior"], row["change"], row["stage"]) == (60, 70, 10, 1)
    milliseconds = [response.server_ms for response in first.responses.all()]
    assert row["seconds"] == pytest.approx(sum(milliseconds) / 1000)
    standings = {row["counts"] for row in rows}
    assert standings == {"counts", "came too late", "excluded by a rule: speeder", "being answered"}
    for name, words in ((COUNTS, {"counts"}), (NOT, standings - {"counts"}), ("late", {"came too late"})):
        assert {row["counts"] for row in listed(study, counts=name)} == words
    assert len(listed(study, counts=COUNTS)) + len(listed(study, counts=NOT)) == len(rows)
    assert {row["counts"] for row in listed(study, counts="excluded")} == {"excluded by a rule: speeder"}


def test_answers_are_narrowed_searched_and_sorted(study: Study) -> None:
    person = listed(study)[0]["respondent"]
    assert {row["respondent"] for row in listed(study, person=person)} == {person}
    assert {row["stage"] for row in listed(study, stage=2)} == {2}
    under_warm = listed(study, levels={"framing": "warm"})
    warm = Sitting.objects.filter(conditions__level="warm", assignments__isnull=False)
    assert under_warm and {row["respondent"] for row in under_warm} == {
        sitting.respondent.pseudonym for sitting in warm.distinct()
    }
    evidence = Assignment.objects.order_by("pk")[0].slot.item.pair.evidence
    Question.objects.filter(pk=evidence.pk).update(text="<b>Where do Herons sleep?</b>")
    with_words = listed(study, words="herons SLEEP")
    assert with_words and all("Herons" in f"{row['question']} {row['evidence']}" for row in with_words)
    assert not listed(study, words="no such words") and not listed(study, person="r-none")
    for descending in (True, False):
        seconds = [row["seconds"] for row in listed(study, sort="seconds", descending=descending)]
        known = [number for number in seconds if number is not None]
        assert len(set(known)) > 1 and known == sorted(known, reverse=descending)
        assert len(known) < len(seconds) and seconds[: len(known)] == known, "what is not known stands last"
    people = [row["respondent"] for row in listed(study, sort="respondent")]
    assert people == sorted(people)


def test_the_page_escapes_texts_and_names_no_panel_id(study: Study, as_researcher: Client) -> None:
    target = Assignment.objects.order_by("pk")[0].slot.item.pair.target
    Question.objects.filter(pk=target.pk).update(text='<script>alert("x")</script> Which tag?')
    body = as_researcher.get(address(study, "?sort=-seconds")).content.decode()
    assert "&lt;script&gt;alert" in body and "<script>alert" not in body
    assert PERSON not in body and SUBMISSION not in body
    sitting = Sitting.objects.order_by("pk")[0]
    assert f"/admin/survey/sitting/{sitting.pk}/replay/" in body and sitting.respondent.pseudonym in body
    assert 'aria-sort="descending"' in body and "framing=warm" in body
    study_page = as_researcher.get(f"/admin/survey/study/{study.pk}/change/").content.decode()
    assert f'href="{address(study)}"' in study_page


def test_a_blind_study_shows_no_condition_and_filters_by_none(study: Study, as_researcher: Client) -> None:
    Study.objects.filter(pk=study.pk).update(is_blind=True)
    assert "framing" not in as_researcher.get(address(study)).content.decode()
    body = as_researcher.get(address(study, "?condition=framing%3Dwarm")).content.decode()
    assert "hidden while the study is blind" in body and "<tbody>" not in body
    refused = as_researcher.post(address(study, "?condition=framing%3Dwarm", "file/"))
    assert not refused.headers.get("Content-Disposition")
    assert not AuditEntry.objects.filter(action="export_answers").exists()


def test_what_is_listed_is_downloaded_and_written_down(study: Study, as_researcher: Client) -> None:
    target = Assignment.objects.filter(slot__stage=stage_of(study))[0].slot.item.pair.target
    Question.objects.filter(pk=target.pk).update(text="=1+1")
    response: Any = as_researcher.post(address(study, "?stage=1&sort=-seconds", "file/"))
    rows = list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))
    in_order = listed(study, stage=1, sort="seconds", descending=True)
    assert [row["respondent"] for row in rows] == [row["respondent"] for row in in_order]
    assert "'=1+1" in {row["question"] for row in rows} and {row["stage"] for row in rows} == {"1"}
    entry = AuditEntry.objects.get(action="export_answers")
    assert entry.detail["chosen"] == {"stage": "1", "sort": "-seconds"} and entry.detail["guarded"] is True
    exact: Any = as_researcher.post(address(study, "?stage=1", "file/"), {"exact": "1"})
    text = b"".join(exact.streaming_content).decode()
    assert "=1+1" in {row["question"] for row in csv.DictReader(io.StringIO(text))}


def test_a_viewer_reads_no_answer_and_who_may_not_export_gets_no_file(study: Study, researcher: User) -> None:
    cast.join(researcher, study, "viewer")
    assert client_of(researcher).get(address(study)).status_code == 403
    cast.join(researcher, study, "analyst")
    page = client_of(researcher).get(address(study))
    assert page.status_code == 200 and "listed_answers.csv" in page.content.decode()
    for group in researcher.groups.all():
        group.permissions.remove(*group.permissions.filter(codename="export_study"))
    page = client_of(User.objects.get(pk=researcher.pk)).get(address(study))
    assert page.status_code == 200 and "listed_answers.csv" not in page.content.decode()
    assert client_of(researcher).post(address(study, file="file/")).status_code == 403


def test_a_page_takes_at_most_ten_statements_whatever_it_lists(study: Study, as_superuser: Client) -> None:
    as_superuser.get(address(study))
    for query in ("", "?counts=counts&words=question&sort=-seconds&condition=framing%3Dwarm&person=r"):
        answer, statements = counted(lambda query=query: as_superuser.get(address(study, query)))
        assert answer.status_code == 200 and b"<tbody>" in answer.content and len(statements) <= 10


def test_pages_lead_to_each_other(study: Study, as_superuser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("survey.admin.answers.PER_PAGE", 4)
    total = Assignment.objects.count()
    people: list[str] = []
    for number in range(1, -(-total // 4) + 1):
        body = as_superuser.get(address(study, f"?counts=&page={number}")).content.decode()
        people += re.findall(r'<th scope="row"><a href="[^"]*">(r-[0-9a-f]+)</a>', body)
    first = as_superuser.get(address(study, "?page=nonsense")).content.decode()
    assert len(people) == total and f"1 to 4 of {total} answers" in first


@pytest.mark.parametrize("name", instruments.names())
def test_what_an_instrument_shows_first_is_of_its_columns(name: str) -> None:
    export = instruments.kind(name)().export
    assert set(export.first_look) <= {column.name for column in export.columns}
