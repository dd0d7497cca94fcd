"""8. How fast each person was and how alike their answers are: flags by rule, named with the person."""

import pytest
from django.test import Client

from survey.models import Response
from tests import cast

from .pages import read, study_page

pytestmark = [pytest.mark.django_db, pytest.mark.thorough]


def test_a_person_who_is_too_fast_and_always_says_the_same_is_counted_listed_and_shown(browser_of: Client) -> None:
    study = cast.open_study(
        flags={"speeder": {"seconds_per_item": 2}, "same_answers": {"share": 1.0, "items": 3}},
        exclusions={"flags": ["same_answers"]},
    )
    fast, slow = cast.begin(study), cast.begin(study)
    for sitting in (fast, slow):
        step = cast.walk(sitting, until="item")
        values = iter(("50", "50") * 3 if sitting is fast else ("10", "20", "30", "40", "55", "65"))
        while step.kind == "item":
            step = cast.advance(sitting=sitting, step=step.number, data=cast.answers_for(step, value=next(values)))
        cast.walk(sitting)
    Response.objects.filter(assignment__sitting=slow).update(server_ms=30_000)
    body = read(browser_of, study_page(study))
    assert "the median item took less than 2 s" in body and "one answer makes up 100 % or more" in body
    listed = read(browser_of, f"/admin/survey/sitting/?study={study.slug}&flag=speeder")
    assert fast.respondent.pseudonym in listed and slow.respondent.pseudonym not in listed
    replay = read(browser_of, f"/admin/survey/sitting/{fast.pk}/replay/")
    assert "speeder, same_answers" in replay and "after 0.0 s" in replay
    assert "<dd>none</dd>" in read(browser_of, f"/admin/survey/sitting/{slow.pk}/replay/")
