"""Another front end can be written from the OpenAPI document alone."""

from collections import Counter
from typing import Any

import pytest
from django.utils import timezone

from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, AttentionAnswer, Booklet, FormAnswer, Sitting, Withdrawal
from tests import cast
from tests.api.everything import MODES, STUDY, Reader
from tests.api.front_end import FrontEnd

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
KINDS = ["form", "instructions", "practice", "checks", "item", "attention", "item", "form", "debriefing", "end"]


def in_order(steps: list[dict[str, Any]]) -> list[str]:
    """The kinds, each named once as long as it lasts."""
    kinds = [step["kind"] for step in steps]
    return [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]


@pytest.mark.thorough
@pytest.mark.parametrize(("language", "thanks"), [(None, "Thank you."), ("de", "Vielen Dank.")])
def test_a_front_end_walks_a_whole_sitting_by_the_document_alone(language: str | None, thanks: str) -> None:
    study = cast.open_study(**STUDY)
    visit = FrontEnd("cast", Reader(wrong=1), language=language)
    end = visit.take_part()
    assert (end["outcome"], end["code"]) == ("completed", study.completion_code("completed"))
    assert end["text"].startswith(thanks)
    assert in_order(visit.seen) == KINDS
    sitting = Sitting.objects.get()
    assert (sitting.state, sitting.language) == ("complete", language or "en")
    assert set(Assignment.objects.values_list("state", flat=True)) == {"counted"}
    assert Belief.objects.filter(kind="posterior").count() == 4
    assert AttentionAnswer.objects.get().passed
    forms = {answer.block: answer.answers for answer in FormAnswer.objects.all()}
    assert forms["screener"] == {"adult": "yes"} and forms["about"]["tools"] == ["pen"]
    # The four items together asked in all four ways, and the fields of each show the way.
    modes = Counter(assignment.levels()["mode"] for assignment in Assignment.objects.all())
    assert modes == dict.fromkeys(MODES, 1)
    assert {step["attempt"] for step in visit.seen if step["kind"] == "checks"} == {1, 2}
    (hinted,) = [step for step in visit.seen if step["hints"]]
    assert hinted["hints"] == [{"en": "Those of language models.", "de": "Die von Sprachmodellen."}[sitting.language]]
    assert [step for step in visit.seen if step["kind"] == "practice"][-1]["feedback"]


def test_who_fails_the_checks_twice_comes_to_another_end() -> None:
    study = cast.open_study(**STUDY)
    end = FrontEnd("cast", Reader(wrong=2)).take_part()
    assert (end["outcome"], end["code"]) == ("failed_checks", study.completion_code("failed_checks"))


def test_who_is_screened_out_comes_to_another_end() -> None:
    study = cast.open_study(**STUDY)
    end = FrontEnd("cast", Reader(), prefers={"adult": "no"}).take_part()
    assert (end["outcome"], end["code"]) == ("screened_out", study.completion_code("screened_out"))


def test_who_withdraws_has_completed() -> None:
    study = cast.open_study(**STUDY)
    end = FrontEnd("cast", Reader(), prefers={"my_data": "withdraw"}).take_part()
    assert (end["outcome"], end["code"]) == ("completed", study.completion_code("completed"))
    assert Withdrawal.objects.count() == 1 and not Belief.objects.exists()


def test_who_finds_all_places_taken_after_the_checks_comes_to_another_end() -> None:
    study = cast.open_study(**STUDY)
    late = FrontEnd("cast", Reader())
    late.take_part(until="checks")
    Booklet.objects.update(claimed_at=timezone.now())
    end = late.go_on()
    assert (end["outcome"], end["code"]) == ("study_full", study.completion_code("study_full"))


def test_a_number_that_stands_there_at_the_start_is_reported() -> None:
    cast.open_study(**STUDY)
    visit = FrontEnd("cast", Reader())
    visit.take_part()
    fields = [field for step in visit.seen if step["screen"] for field in step["screen"]["fields"]]
    assert {field["initial"] for field in fields} == {None, 50}
