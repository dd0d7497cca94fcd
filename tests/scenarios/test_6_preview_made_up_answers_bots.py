"""6. Preview, made-up answers, bots: everything is seen before anybody is paid, and none of it is in the study."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from survey.models import Job, Posting, Study
from survey.services.base import jobs
from survey.services.stages import jobs as steps
from survey.services.studies import test_copies
from survey.simulator import dry_run
from tests import cast
from tests.frontend import pages

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.thorough]
ADDRESS = re.compile(r'href="http://testserver(/s/[^"]+)"')


@pytest.fixture
def posted() -> Study:
    """An open study with an active posting."""
    study = cast.open_study(
        panel={**cast.PROLIFIC, "reward": 500, "spending_cap": 10_000},
        stages=[{"sittings": 4}, {"sittings": 4}],
        predictor={"name": "logistic"},
        conditions=[{"factor": "mood", "levels": ["calm", "hurried"]}],
    )
    stage = cast.stage_of(study)
    facts: dict[str, Any] = {"reward": 500, "places": 4, "currency": "USD", "expected_minutes": 3}
    Posting.objects.create(study=study, stage=stage, panel="prolific", external_id="x", state="ACTIVE", **facts)
    return study


@pytest.fixture(autouse=True)
def _nothing_of_it_is_in_the_study(posted: Study) -> Iterator[None]:
    cache.clear()
    yield
    stage = cast.stage_of(posted)
    assert not posted.respondents.exists() and stage.arrivals == 0
    assert not stage.booklets.exclude(claimed_at=None).exists()


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("super"))
    return client


def test_a_colleague_without_an_account_walks_through_under_the_chosen_condition(
    posted: Study, browser: Client
) -> None:
    made = browser.post(f"/admin/survey/study/{posted.pk}/try/", {"level_mood": "hurried"}).content.decode()
    match = ADDRESS.search(made)
    assert match is not None
    colleague = Client()
    assert b"[Test]" in colleague.get(match[1].replace("&amp;", "&"), follow=True).content
    pages.go_to(colleague, "end", slug="cast_test")
    assert b"TEST-COMPLETED" in colleague.get("/s/cast_test/sitting").content
    (respondent,) = test_copies.find_copy(posted).respondents.all()
    assert respondent.sittings.get().levels() == {"mood": "hurried"}


def test_made_up_answers_fill_every_page_before_any_money_is_spent(
    posted: Study, browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def workers(_seconds: float) -> None:
        for step in steps.due_steps():
            steps.run_step(step.pk)

    monkeypatch.setattr(dry_run.time, "sleep", workers)
    browser.post(f"/admin/survey/job/ask/{posted.pk}/dry_run/", {"people": "4"})
    job = Job.objects.get()
    assert jobs.run(job.pk)
    page = browser.get(f"/admin/survey/study/{posted.pk}/try/").content.decode()
    copy = test_copies.find_copy(posted)
    links = set(re.findall(rf'<a href="(/admin/survey/study/{copy.pk}/[^"#]+)[^"]*">', page))
    assert len(links) > 4, page
    for address in links:
        assert browser.get(address).status_code == 200, address
    refused = [row for row in Job.objects.get().result["filled"] if row["why"]]
    assert all(row["why"].rstrip(".") in page.replace("&#x27;", "'").replace("&quot;", '"') for row in refused)
    assert browser.get(f"/admin/survey/job/{job.pk}/files/cast-dry-run.zip").status_code == 200


def test_bots_that_only_read_begin_nothing_and_others_stay_in_the_copy(posted: Study, live_server: Any) -> None:
    options: dict[str, Any] = {"test": True, "respondents": 3, "base_url": live_server.url, "scanners": 1.0}
    call_command("simulate", posted.slug, **options, dropouts=0, returners=0, speeders=0, double_tabs=1.0)
    copy = test_copies.find_copy(posted)
    assert copy.respondents.count() == 3  # The programs read pages, and nobody's page that was sent twice counts twice.
    assert not copy.respondents.filter(is_simulated=False).exists()
    assert Client().get(f"/s/{copy.slug}/").status_code == 404
