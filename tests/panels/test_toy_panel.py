"""A panel of somebody else's: a package of its own, found by its entry point, with an API that nobody here knows.

It goes from a draft to paid bonuses by the commands, tasks, pages and addresses that Prolific goes by.
"""

import os
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from toy_panel import server
from toy_panel.panel import ToyPanel
from toy_panel.server import ToyServer

from survey import tasks
from survey.contracts import panels
from survey.contracts.panels import PanelClient
from survey.exceptions import EntryRefused, FileErrors, HunchError
from survey.models import PaymentBatch, Posting, Respondent, Sitting, Study, Submission, WebhookEvent
from survey.panels import money, postings, purging, reconciliation, submissions
from survey.panels.postings import Move
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.queries import sitting_for
from survey.services.studies.checking import check_study
from tests import cast

from .test_pages import do, page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NAMES = ("toypanel", "toy_panel", "toy-panel")
TOY: dict[str, Any] = {
    "kind": "toypanel",
    "options": {"crew": "swingers"},
    "reward": 100,
    "spending_cap": 10_000,
    "completion_url": "https://toys.example/back?word={code}",
}


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyServer]:
    """The panel's own side, new for each test."""
    monkeypatch.setattr(server, "SERVER", ToyServer())
    monkeypatch.setenv("TOY_PANEL_TOKEN", "t")
    return server.SERVER


def the_study(**panel: Any) -> Study:
    return cast.open_study(panel={**TOY, **panel}, sitting={"items": 1}, stages=[{"sittings": 6}])


def command(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def posted(**panel: Any) -> Posting:
    study = the_study(**panel)
    command("posting", study.slug, "draft", "--root", "http://testserver")
    command("posting", study.slug, "publish")
    return Posting.objects.select_related("study__bank", "stage").get()


def arrives(toys: ToyServer, posting: Posting, browser: Client) -> dict[str, Any]:
    """Somebody takes a ticket and opens the address that the panel sends them to."""
    ticket = toys.somebody_comes(posting.external_id)
    address = urlsplit(toys.address(ticket))
    assert address.netloc == "testserver"
    response = browser.get(f"{address.path}?{address.query}", follow=True)
    assert response.status_code == 200, response.content.decode()
    return ticket


def takes_part(toys: ToyServer, posting: Posting, *, until: str = "end") -> dict[str, Any]:
    """They come by the pages, consent there, and answer."""
    browser = Client()
    ticket = arrives(toys, posting, browser)
    response = browser.post("/s/cast/consent", {"consent": "yes"})
    assert response.status_code == 303
    sitting = sitting_for(browser.cookies["hunch_sitting"].value, slug=posting.study.slug)
    step = cast.walk(sitting, until=until)
    if step.kind == "end":
        toys.hand_in(ticket, step.code)
        last = browser.get("/s/cast/sitting").content.decode()
        assert f"https://toys.example/back?word={step.code}" in last
    return ticket


# From a draft to paid bonuses


@pytest.mark.django_db
def test_a_study_goes_from_its_draft_to_paid_bonuses(toys: ToyServer, client: Client) -> None:
    study = the_study()
    assert "is sketched with 6 places" in command("posting", study.slug, "draft", "--root", "http://testserver")
    (job,) = toys.jobs.values()
    assert (job["crew"], job["seats"], job["coins"]) == ("swingers", 6, 100)
    assert job["door"] == "http://testserver/s/cast/?toy_who=~toy_who~&toy_job=~toy_job~&toy_ticket=~toy_ticket~"
    (recorded,) = study.stages.get(index=1).manifest["postings"]
    assert recorded == {"internal_name": job["label"], "crew": "swingers", "seats": 6, "coins": 100}
    command("posting", study.slug, "publish")
    command("posting", study.slug, "add-places", "2")
    assert (job["mood"], job["seats"]) == ("swinging", 8)
    posting = Posting.objects.get()
    assert (posting.panel, posting.state, posting.places) == ("toypanel", "swinging", 8)

    finishes, is_late, is_late_too = (takes_part(toys, posting) for _ in range(3))
    gives_up = takes_part(toys, posting, until="item")
    is_late["mood"] = is_late_too["mood"] = "asleep"
    toys.hand_in(gives_up, "-")

    # The panel posts an event, and beat reads what it is about.
    headers, body = toys.event(finishes)
    for _twice in range(2):
        assert client.post("/hooks/toypanel", body, content_type="application/json", headers=headers).status_code == 204
    assert (WebhookEvent.objects.count(), tasks.work_on_webhooks()) == (1, 1)
    assert Submission.objects.get().status == "waiting"
    assert (tasks.read_panels(), Submission.objects.count()) == (1, 4)
    assert set(Submission.objects.values_list("status", flat=True)) == {"waiting", "asleep"}

    output = command("reconcile", study.slug, "--approve", "--ask-back")
    assert "approved: 1" in output and "asked for a return: 1" in output
    assert (finishes["mood"], gives_up.get("asked"), finishes.get("asked")) == ("thanked", "not finished", None)
    assert "asked for a return: 0" in command("reconcile", study.slug, "--ask-back"), "each person once"

    assert "finished after the panel's time was over" in command("pay_bonuses", study.slug)
    assert toys.paid == []
    assert "nothing is owed" in command("pay_bonuses", study.slug, "--pay")
    assert "nothing is owed" in command("pay_bonuses", study.slug, "--pay")
    assert sorted(toys.paid) == sorted([(is_late["ticket"], 100), (is_late_too["ticket"], 100)]), "paid once"
    gives_up["mood"] = "gone"
    (report,) = reconciliation.read_and_reconcile(study)
    assert report.differences == []


@pytest.mark.django_db
def test_each_payment_of_a_posting_has_a_key_of_its_own(toys: ToyServer) -> None:
    """The panel takes a second one with the same key for the first."""
    posting = posted()
    for count in (1, 2):
        takes_part(toys, posting)["mood"] = "asleep"
        submissions.read_posting(posting)
        assert "nothing is owed" in command("pay_bonuses", "cast", "--pay")
        assert len(toys.paid) == count


@pytest.mark.django_db
def test_a_payment_whose_answer_got_lost_is_not_made_again(toys: ToyServer) -> None:
    posting = posted()
    takes_part(toys, posting)["mood"] = "asleep"
    submissions.read_posting(posting)
    toys.loses_the_answer = True
    with pytest.raises(SystemExit):
        command("pay_bonuses", "cast", "--pay")
    with pytest.raises(SystemExit):
        command("pay_bonuses", "cast", "--pay")
    batch = PaymentBatch.objects.get()
    assert (batch.state, [cents for _ticket, cents in toys.paid]) == (PaymentBatch.State.UNKNOWN, [100])
    with pytest.raises(SystemExit):
        command("pay_bonuses", "cast", "--settle", str(batch.pk), "paid")  # It may be on its way.
    over = timezone.now() - PanelClient.longest_call
    PaymentBatch.objects.update(created_at=over, sent_at=over)
    command("pay_bonuses", "cast", "--settle", str(batch.pk), "paid")
    assert "nothing is owed" in command("pay_bonuses", "cast", "--pay")
    assert len(toys.paid) == 1


@pytest.mark.django_db
def test_a_posting_behind_a_closed_door_is_paused(toys: ToyServer) -> None:
    posting = posted()
    command("pause_stage", "cast")
    assert tasks.read_panels() == 1
    posting.refresh_from_db()
    assert (posting.state, toys.jobs[posting.external_id]["mood"]) == ("resting", "resting")


@pytest.mark.django_db
def test_a_draft_whose_answer_got_lost_is_found_again(toys: ToyServer) -> None:
    study = the_study()
    posting = postings.draft(study.stages.get(index=1), root="http://testserver")
    Posting.objects.update(external_id="")
    assert postings.draft(study.stages.get(index=1)).external_id == posting.external_id
    assert len(toys.jobs) == 1


# In the admin


@pytest.mark.django_db
def test_the_postings_page_offers_what_the_panel_can_do(toys: ToyServer, admin_client: Client) -> None:
    posting = posted()
    takes_part(toys, posting)
    submissions.read_posting(posting)
    body = page(admin_client, posting)
    assert [name for name in ("read", "pause", "approve") if f"/do/{name}/" in body] == ["read", "pause", "approve"]
    assert do(admin_client, posting, "do/approve", sum="1.00")[1] == ["1 submissions approved."]
    assert do(admin_client, posting, "do/pause")[1] == ["The panel says resting now."]
    assert "/do/start/" in page(admin_client, posting)
    toys.jobs.clear()
    assert "it knows nothing under this id" in do(admin_client, posting, "do/read")[1][0]


@pytest.mark.django_db
def test_a_call_that_the_api_lacks_is_not_offered(
    toys: ToyServer, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = posted()
    assert "/do/pause/" in page(admin_client, posting)
    monkeypatch.delattr(ToyPanel.client, "pause")
    assert "/do/pause/" not in page(admin_client, posting)
    assert "/do/read/" in page(admin_client, posting)


@pytest.mark.django_db
def test_what_the_api_lacks_is_said_and_done_on_the_panels_own_pages(toys: ToyServer) -> None:
    posting = posted()
    with pytest.raises(HunchError, match="cannot stop a posting: do it on the panel's own pages"):
        postings.change(posting, Move.STOP)
    ticket = takes_part(toys, posting)
    submissions.read_posting(posting)
    with pytest.raises(HunchError, match="cannot reject a submission"):
        reconciliation.reject(Submission.objects.get(), category="", message="no")
    assert ticket["mood"] == "waiting"


@pytest.mark.django_db
def test_a_panel_that_can_neither_draft_nor_pay_says_what_to_do(
    toys: ToyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    posting = posted()
    takes_part(toys, posting)["mood"] = "asleep"
    submissions.read_posting(posting)
    monkeypatch.delattr(ToyPanel.client, "pay_bonuses")
    with pytest.raises(HunchError, match="pay them on the panel's own pages"):
        money.pay_owed(posting)
    assert not PaymentBatch.objects.exists()
    monkeypatch.delattr(ToyPanel.client, "draft")
    with pytest.raises(HunchError, match="posting cast adopt"):
        postings.draft(posting.stage)
    assert Posting.objects.count() == 1
    elsewhere = toys.sketch({"label": "by hand", "crew": "x", "door": "", "seats": 3, "coins": 200, "words": {}})
    adopted = postings.adopt(posting.stage, elsewhere["job"])
    assert (adopted.state, adopted.places, adopted.reward, adopted.published_at) == ("sketched", 3, 200, None)


@pytest.mark.django_db
def test_nothing_is_asked_while_a_setting_is_missing(toys: ToyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    posting = posted()
    monkeypatch.delenv("TOY_PANEL_TOKEN")
    assert tasks.read_panels() == 0
    with pytest.raises(HunchError, match="TOY_PANEL_TOKEN is not set"):
        postings.change(posting, Move.PAUSE)


# At the door


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        ({"toy_who": "nobody", "toy_job": "job1", "toy_ticket": "ticket9"}, "not_sent_by_panel"),
        ({"toy_who": "person2", "toy_job": "job7", "toy_ticket": "ticket2"}, "not_sent_by_panel"),
        ({"toy_who": "person2", "toy_job": "job1", "toy_ticket": "~toy_ticket~"}, "bad_panel_ids"),
        ({"toy_who": "person2"}, "bad_panel_ids"),
        ({}, "no_panel_ids"),
    ],
)
def test_who_was_not_sent_is_refused(toys: ToyServer, client: Client, query: dict[str, str], refusal: str) -> None:
    posting = posted()
    ticket = toys.somebody_comes(posting.external_id)
    assert (ticket["who"], ticket["job"], ticket["ticket"]) == ("person2", "job1", "ticket2")
    response = client.get("/s/cast/", query)
    assert f'data-refused="{refusal}"' in response.content.decode()


@pytest.mark.django_db
def test_by_api_they_come_with_the_addresss_parameters(toys: ToyServer, client: Client) -> None:
    posting = posted()
    info = client.get("/api/v1/studies/cast/").json()
    assert (info["panel"], info["parameters"]) == ("toypanel", ["toy_who", "toy_job", "toy_ticket"])
    ticket = toys.somebody_comes(posting.external_id)
    carried = {"toy_who": ticket["who"], "toy_job": ticket["job"], "toy_ticket": ticket["ticket"]}
    body = {"consent": True, "parameters": carried}
    response = client.post("/api/v1/studies/cast/sittings/", body, content_type="application/json")
    assert response.status_code == 201, response.content
    assert Sitting.objects.count() == 1


@pytest.mark.django_db
def test_the_panel_admits_inside_the_transaction_and_its_refusal_leaves_nothing(
    toys: ToyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = the_study(options={"crew": "few", "most_people": 1})
    seen = []

    def admit(self: ToyPanel, study: Study, ids: panels.PanelIds, **more: Any) -> None:
        seen.append((connection.in_atomic_block, ids.person, Respondent.objects.count()))
        original(self, study, ids, **more)

    original = ToyPanel.admit
    monkeypatch.setattr(ToyPanel, "admit", admit)
    first = begin_sitting(study=study, ids=panels.PanelIds("toypanel", "p1", "j", "t1"))
    assert begin_sitting(study=study, ids=panels.PanelIds("toypanel", "p1", "j", "t1")) == first
    with pytest.raises(EntryRefused, match="The crew of this study is complete"):
        begin_sitting(study=study, ids=panels.PanelIds("toypanel", "p2", "j", "t2"))
    assert seen == [(True, "p1", 0), (True, "p2", 1)]
    assert (Respondent.objects.count(), study.stages.get(index=1).arrivals) == (1, 1)


@pytest.mark.parametrize("headers", [{}, {"X-Toy-Secret": "guessed"}])
@pytest.mark.django_db
def test_an_event_that_is_not_the_panels_is_refused(toys: ToyServer, client: Client, headers: dict[str, str]) -> None:
    assert client.post("/hooks/toypanel", b"{}", content_type="application/json", headers=headers).status_code == 403
    assert client.post("/hooks/generic", b"{}", content_type="application/json").status_code == 404
    assert client.post("/hooks/unheard-of", b"{}", content_type="application/json").status_code == 404
    assert not WebhookEvent.objects.exists()


# In the study file


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("panel", "said"),
    [
        ({"options": {}}, "panel.options.crew: Field required"),
        (
            {"options": {"crew": "x", "swing": 1}},
            "panel.options.swing: unknown option; toypanel has: crew, most_people",
        ),
        ({"devices": ["desktop"]}, 'panel: a panel of the kind "toypanel" has no devices: remove it'),
    ],
)
def test_what_the_panel_does_not_take_is_refused_at_its_line(panel: dict[str, Any], said: str) -> None:
    with pytest.raises(FileErrors) as caught:
        cast.study(panel={**TOY, **panel})
    assert said in str(caught.value)


@pytest.mark.django_db
def test_its_minimum_an_hour_is_asked_of_the_reward(toys: ToyServer) -> None:
    cast.bank()
    check = check_study(text=cast.study_text(panel={**TOY, "reward": 20}), source_name="x")
    assert any("minimum is 5.00" in str(finding) for finding in check.findings)


# Packages that are gone or broken


@pytest.fixture
def uninstall(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Takes away the metadata that names the package's entry points, as uninstalling does."""

    def take_away() -> None:
        metadata = str(Path(os.environ["HUNCH_TEST_FOLDER"], "packages"))
        monkeypatch.setattr(sys, "path", [folder for folder in sys.path if folder != metadata])
        panels.look_again()

    yield take_away
    monkeypatch.undo()
    panels.look_again()


@pytest.mark.django_db
def test_a_study_whose_panel_is_gone_admits_nobody_and_says_why(
    toys: ToyServer, client: Client, admin_client: Client, uninstall: Callable[[], None]
) -> None:
    posting = posted()
    inside = Client()
    arrives(toys, posting, inside)
    assert inside.post("/s/cast/consent", {"consent": "yes"}).status_code == 303
    uninstall()

    with pytest.raises(panels.PanelUnknown, match="no panel is called 'toypanel'; there are: generic, links, open"):
        panels.get("toypanel")
    response = client.get("/s/cast/", {"toy_who": "a", "toy_job": "b", "toy_ticket": "c"})
    assert 'data-refused="closed"' in response.content.decode()
    assert inside.get("/s/cast/sitting").status_code == 200, "who has begun goes on"
    step = cast.walk(Sitting.objects.get())
    assert step.kind == "end" and inside.get("/s/cast/sitting").status_code == 200
    study_page = admin_client.get(f"/admin/survey/study/{posting.study_id}/change/").content.decode()
    assert "no panel is called &#x27;toypanel&#x27;" in study_page
    assert "no panel is called &#x27;toypanel&#x27;" in page(admin_client, posting)
    assert tasks.read_panels() == 0
    assert "nobody knows who is still to be paid" in purging.payments_open(posting.study)
    with pytest.raises(SystemExit):
        command("reconcile", "cast")


# Nothing in the core knows it


def files_that_name_it(folder: str) -> list[str]:
    files = []
    for path in sorted((ROOT / folder).rglob("*")):
        if path.is_file() and path.suffix in (".py", ".html", ".toml", ".po", ".js", ".css", ".md", ".txt", ".json"):
            text = path.read_text(errors="replace").lower()
            if any(name in text for name in NAMES):
                files.append(str(path.relative_to(ROOT)))
    return files


def test_no_file_of_the_core_names_it() -> None:
    for core in ("survey", "frontend", "bandit", "predictors", "tools", "studies"):
        assert files_that_name_it(core) == []
    source = "tests/packages/toy_panel/src/toy_panel"
    assert [file for file in files_that_name_it("tests") if not file.startswith("tests/nets/data/")] == [
        "tests/nets/test_commands.py",
        "tests/packages/README.md",
        "tests/packages/toy_panel/pyproject.toml",
        f"{source}/client.py",
        f"{source}/panel.py",
        "tests/panels/test_adding_a_panel.py",
        "tests/panels/test_registry.py",
        "tests/panels/test_toy_panel.py",
        "tests/panels/test_webhooks.py",
    ]
