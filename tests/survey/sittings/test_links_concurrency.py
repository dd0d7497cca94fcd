"""Links, and the browser's reports about a screen, used by many at once: on PostgreSQL with real threads."""

from collections import Counter
from typing import Any

import pytest

from survey.exceptions import EntryRefused
from survey.models import EntryLink, PanelIdentity, Respondent, Response, Sitting, Study, UnfinishedScreen
from survey.models.screen_timing import MAX_UNFINISHED
from survey.services.sittings.answering import advance
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.links import ids_of_link, make_links
from survey.services.sittings.timing import record_unfinished
from tests import cast

from .test_concurrency import no_errors, together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
LINKS: dict[str, Any] = {"panel": {"kind": "links"}}


def token_of(study: Study) -> str:
    return make_links(study, count=1, root="http://x")[0].address.partition("=")[2]


def test_two_people_at_once_with_one_link_are_one_person() -> None:
    study = cast.open_stage(**LINKS).study
    ids = ids_of_link(study, token_of(study))
    results = together(*[lambda: begin_sitting(study=study, ids=ids)] * 6)
    no_errors(results)
    assert len({sitting.pk for sitting in results}) == 1
    assert Respondent.objects.count() == Sitting.objects.count() == 1
    assert EntryLink.objects.get().used_at is not None


def test_a_used_link_whose_person_was_forgotten_lets_nobody_of_many_in() -> None:
    study = cast.open_stage(**LINKS).study
    ids = ids_of_link(study, token_of(study))
    begin_sitting(study=study, ids=ids)
    PanelIdentity.objects.all().delete()
    results = together(*[lambda: begin_sitting(study=study, ids=ids)] * 4)
    assert Counter(type(result) for result in results) == {EntryRefused: 4}
    assert Respondent.objects.count() == 1


def test_links_that_are_made_at_once_have_numbers_of_their_own() -> None:
    study = cast.open_stage(**LINKS).study
    results = together(*[lambda: make_links(Study.objects.get(pk=study.pk), count=5, root="http://x")] * 4)
    no_errors(results)
    assert sorted(link.number for made in results for link in made) == list(range(1, 21))


def test_a_word_on_an_unfinished_screen_never_stands_in_an_answers_way() -> None:
    visitor = cast.Visitor(cast.open_stage().study).to_items()
    step = visitor.step.number
    sitting = visitor.reload()

    def tell() -> bool:
        return record_unfinished(sitting=Sitting.objects.get(pk=sitting.pk), step=str(step), data={})

    results = together(*[tell] * 7, lambda: advance(sitting=sitting, step=step, data={"value": 50}))
    no_errors(results)
    assert results[-1].number == step + 1
    assert Response.objects.count() == 1
    assert UnfinishedScreen.objects.count() <= MAX_UNFINISHED
    assert visitor.reload().step == step + 1
