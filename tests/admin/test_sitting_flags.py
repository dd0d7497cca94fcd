"""Flags in the list of sittings, on their pages and on the study page."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.models import Response, Sitting, Stage, Study, UnfinishedScreen
from survey.services.stages import jobs, lifecycle
from tests import cast

from .conftest import stage_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
LIST = "/admin/survey/sitting/"
# Who says 60 throughout as a prior is flagged by the second rule: that is everybody of the cast.
RULES: dict[str, Any] = {
    "flags": {"speeder": {"seconds_per_item": 5, "words_per_second": 0}, "hidden": {}},
    "exclusions": {"flags": ["speeder"]},
}


@pytest.fixture
def quick() -> Study:
    """Three people have finished, one of them too fast; the stage is open."""
    study = cast.open_study(**RULES)
    for _person in range(3):
        cast.walk(cast.begin(study))
    Response.objects.update(server_ms=60_000)
    Response.objects.filter(assignment__sitting=first(study)).update(server_ms=900)
    return study


def first(study: Study) -> Sitting:
    sitting = Sitting.objects.filter(stage__study=study).order_by("pk").first()
    assert sitting is not None
    return sitting


def listed(client: Client, **query: Any) -> set[int]:
    return {row.pk for row in client.get(LIST, query).context["cl"].result_list}


@pytest.mark.thorough
def test_the_list_shows_flags_in_as_many_queries_for_many_as_for_few(quick: Study, as_researcher: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            body = as_researcher.get(LIST).content.decode()
        assert body.count('<td class="field-flags">speeder</td>') == 1
        return len(captured)

    few = queries()
    Stage.objects.update(arrivals=3)
    cast.walk(cast.begin(quick), until="items")
    Response.objects.exclude(assignment__sitting=first(quick)).update(server_ms=60_000)
    assert queries() == few


def test_the_list_is_narrowed_to_a_flag(quick: Study, as_researcher: Client) -> None:
    fast = {first(quick).pk}
    everybody = set(Sitting.objects.values_list("pk", flat=True))
    assert listed(as_researcher, flag="speeder") == listed(as_researcher, flag="any") == fast
    assert listed(as_researcher, flag="none") == everybody - fast
    assert listed(as_researcher, flag="hidden") == set()
    assert listed(as_researcher, flag="nonsense") == everybody
    assert listed(as_researcher, flag="excluded") == set()


def test_a_frozen_stage_names_whom_it_leaves_out(quick: Study, as_researcher: Client) -> None:
    jobs.run_inline(lifecycle.close_stage(stage_of(quick), now=True))
    assert listed(as_researcher, flag="excluded") == {first(quick).pk}
    page = as_researcher.get(f"{LIST}{first(quick).pk}/change/").content.decode()
    assert "[&quot;speeder&quot;]" in page
    study_page = as_researcher.get(f"/admin/survey/study/{quick.pk}/change/").content.decode()
    assert "Stage 1 excludes the answers of 1 sitting, as was decided when it was frozen." in study_page


def test_a_sittings_page_shows_its_times_and_the_screens_that_were_left(quick: Study, as_researcher: Client) -> None:
    UnfinishedScreen.objects.create(
        sitting=first(quick), step=2, number=1, kind="checks", left_at=timezone.now(), client={"hidden_ms": 1234}
    )
    page = as_researcher.get(f"{LIST}{first(quick).pk}/change/").content.decode()
    assert "hidden_ms&quot;: 1234" in page
    assert "Screen timings" in page and ">debriefing<" in page


@pytest.mark.thorough
def test_the_study_page_counts_each_rule_and_says_what_follows(quick: Study, as_researcher: Client) -> None:
    page = as_researcher.get(f"/admin/survey/study/{quick.pk}/change/").content.decode()
    assert "the median item took less than 5 s" in page
    assert f"{LIST}?study=cast&amp;flag=speeder" in page
    section = page[page.index('id="flags"') :]
    assert section.index("excluded (final when the stage is frozen)") < section.index("the page was hidden for 50 %")
    assert 'data-label="Sittings">1</td>' in section


@pytest.mark.thorough
def test_a_study_without_rules_has_no_such_section(study: Study, as_researcher: Client) -> None:
    cache.clear()
    assert 'id="flags"' not in as_researcher.get(f"/admin/survey/study/{study.pk}/change/").content.decode()


def test_an_old_session_changes_nothing(quick: Study, as_researcher: Client) -> None:
    before = list(Sitting.objects.order_by("pk").values())
    as_researcher.get(LIST, {"flag": "any", "q": "r-"})
    assert list(Sitting.objects.order_by("pk").values()) == before
    assert Sitting.objects.filter(last_seen_at__gt=timezone.now() + timedelta(seconds=1)).count() == 0
