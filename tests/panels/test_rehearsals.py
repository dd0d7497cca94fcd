"""A study's whole life once at the panel, by a test participant: it leads into the test copy, and costs nothing."""

from io import StringIO
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from survey.contracts.panels import PanelIds, PanelRefused, SubmissionAtPanel
from survey.exceptions import StateRefused
from survey.models import AuditEntry, Posting, Rehearsal, Sitting, Study
from survey.panels import money, rehearsals
from survey.panels.prolific.fake import FakeProlific
from survey.services.sittings.enrolment import begin_sitting
from survey.services.stages import test_stages
from survey.services.studies import test_copies
from tests import cast

from .world import PAY

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TESTER = "5f00000000000000000000ee"


@pytest.fixture
def study() -> Study:
    return cast.open_study(
        panel={**cast.PROLIFIC, **PAY, "filters": [{"filter_id": "age", "selected_range": {"lower": 18}}]},
        sitting={"items": 1},
        stages=[{"sittings": 3}],
    )


def takes_part(fake: FakeProlific, client: Client, begun: Rehearsal) -> tuple[dict[str, Any], Sitting]:
    """The test participant, by HTTP: as far as the consent page, and from there by the services."""
    place = fake.take_place(begun.external_id, person=TESTER)
    assert place is not None
    address = urlsplit(fake.entry_address(place["id"]))
    assert place["id"] in address.query and "preview=" in address.query
    page = client.get(f"{address.path}?{address.query}", follow=True)
    assert page.status_code == 200 and "PID" not in page.request["QUERY_STRING"]
    agreed = client.post(f"{address.path.rstrip('/')}/consent", {"consent": "yes"}, follow=True)
    assert agreed.status_code == 200
    return place, Sitting.objects.get(respondent__study=begun.copy)


def done(steps: list[rehearsals.RehearsalStep]) -> int:
    return sum(step.is_done for step in steps)


def test_a_test_participant_goes_the_whole_way_and_it_costs_nothing(
    fake: FakeProlific, client: Client, study: Study
) -> None:
    fake.test_people.append(TESTER)
    begun = rehearsals.begin(study, root="http://testserver")
    assert "filters" not in fake.studies[begun.external_id]
    assert [step.is_done for step in rehearsals.steps_of(begun)] == [True] + [False] * 5
    steps = rehearsals.look(begun)
    assert done(steps) == 1 and begun.address in steps[1].sentence
    assert fake.take_place(begun.external_id, person="5f00000000000000000000ab") is None, "only testers see it"
    place, sitting = takes_part(fake, client, begun)
    assert sitting.stage.study.is_test and done(rehearsals.look(begun)) == 3
    cast.walk(sitting)
    assert done(rehearsals.look(begun)) == 4
    fake.submit(place["id"], Study.objects.get(pk=begun.copy).completion_code("completed"))
    assert done(rehearsals.look(begun)) == 6
    assert begun.is_over and fake.submissions[place["id"]]["status"] == "APPROVED"
    assert fake.studies[begun.external_id]["status"] == "COMPLETED"
    assert done(rehearsals.look(begun)) == 6, "looking again changes nothing"
    assert money.committed(study) == 0 and fake._available() == fake.balance and not Posting.objects.exists()
    assert not study.respondents.exists()
    assert [entry.action for entry in AuditEntry.objects.filter(action__startswith="rehears").order_by("pk")] == [
        "rehearse",
        "rehearsed",
    ]


def test_the_newest_participation_that_was_not_given_back_is_looked_at_and_approved_once(study: Study) -> None:
    copy = test_stages.open_copy(study).study
    trial = Rehearsal.objects.create(study=study, copy=copy.pk, panel="prolific", external_id="t")
    right, calls = copy.completion_code("completed"), []
    statuses, codes = {"x1": "RETURNED", "x2": "ACTIVE", "x3": "TIMED-OUT"}, {"x2": ""}

    def at_panel(name: str) -> SubmissionAtPanel:
        return SubmissionAtPanel(name, "p", "t", statuses[name], codes.get(name, right))

    def approve(name: str) -> None:
        calls.append(("approve", name))
        statuses[name] = "APPROVED"

    client: Any = SimpleNamespace(
        submissions=lambda _trial: map(at_panel, statuses),
        submission=at_panel,
        approve=approve,
        stop=lambda name: calls.append(("stop", name)),
        can=lambda call: call == "stop",
    )

    def looked() -> tuple[int, str]:
        steps = rehearsals.look(trial, client=client)
        assert [list(step) for step in trial.steps] == [[step.title, step.is_done, step.sentence] for step in steps]
        return done(steps), steps[5].sentence

    assert looked() == (2, "the panel says ACTIVE")
    statuses.pop("x2")
    assert looked() == (3, "the panel says TIMED-OUT"), "it is shown where there is no other one; and has the code"
    statuses["x2"] = "AWAITING REVIEW"
    sitting = begin_sitting(study=copy, ids=PanelIds("prolific", "p", "t", "x2"))
    assert (looked(), calls) == ((3, "the panel says AWAITING REVIEW"), []), "nobody is approved who has not finished"
    Sitting.objects.filter(pk=sitting.pk).update(state="complete", ended_at=timezone.now())
    assert looked() == (5, "the panel says APPROVED") and not trial.is_over
    assert calls == [("approve", "x2"), ("stop", "t")]
    codes["x2"] = "ANOTHER"
    assert looked()[0] == 5 and not trial.is_over
    codes["x2"] = right
    assert looked()[0] == 6 and trial.is_over and trial.read_at is not None
    calls.clear()
    assert looked()[0] == 6 and calls == []
    assert AuditEntry.objects.filter(action="rehearsed").count() == 1
    assert rehearsals.newest(study) == trial
    test_copies.renew_copy(study)
    assert rehearsals.newest(study) is None, "it led into a copy that is gone"


def test_a_wrong_code_is_noticed(fake: FakeProlific, client: Client, study: Study) -> None:
    fake.test_people.append(TESTER)
    begun = rehearsals.begin(study, root="http://testserver")
    place, sitting = takes_part(fake, client, begun)
    cast.walk(sitting)
    fake.submit(place["id"], None)
    steps = rehearsals.look(begun)
    assert [step.is_done for step in steps] == [True, True, True, True, False, True]
    assert "no right code" in steps[4].sentence and not begun.is_over


def test_the_same_participant_may_come_again_in_a_new_copy(fake: FakeProlific, client: Client, study: Study) -> None:
    fake.test_people.append(TESTER)
    first = rehearsals.begin(study, root="http://testserver")
    takes_part(fake, client, first)
    second = rehearsals.begin(study, root="http://testserver")
    assert second.copy != first.copy and rehearsals.newest(study) == second
    takes_part(fake, client, second)
    assert done(rehearsals.look(second)) == 3
    test_copies.delete_copy(study)
    assert rehearsals.newest(study) is None and done(rehearsals.look(second)) == 2


def test_without_a_test_participant_the_panel_says_what_is_missing(fake: FakeProlific, study: Study) -> None:
    with pytest.raises(PanelRefused, match="Create a test participant first"):
        rehearsals.begin(study, root="http://testserver")
    assert not Rehearsal.objects.exists()


def test_what_cannot_be_rehearsed_says_why(fake: FakeProlific, study: Study) -> None:
    with pytest.raises(StateRefused, match="is the test copy of a study"):
        rehearsals.begin(test_copies.make_copy(study))
    with pytest.raises(StateRefused, match=r'panel.kind: lab is "open"'):
        rehearsals.begin(cast.open_study(slug="lab"))
    unpaid = cast.open_study(slug="unpaid", panel={**cast.PROLIFIC})
    with pytest.raises(StateRefused, match=r"panel\.reward"):
        rehearsals.begin(unpaid)


def test_the_command_begins_and_then_goes_on(fake: FakeProlific, study: Study) -> None:
    fake.test_people.append(TESTER)

    def told(*more: str) -> str:
        out = StringIO()
        call_command("posting", study.slug, "rehearse", "--root", "http://testserver", *more, stdout=out)
        return out.getvalue()

    assert "open http://127.0.0.1" in told() and "then: hunch posting cast rehearse" in told()
    assert Rehearsal.objects.count() == 1
    told("--again")
    assert Rehearsal.objects.count() == 2


def test_the_page_begins_and_looks(fake: FakeProlific, admin_client: Client, study: Study) -> None:
    fake.test_people.append(TESTER)
    address = f"/admin/survey/posting/rehearse/{study.pk}/"
    assert b"Make the trial at the panel" in admin_client.get(address).content
    page = admin_client.post(address, {"begin": "1"}, follow=True).content.decode()
    assert "How far it is" in page and "log in at the panel as your test participant" in page
    fake.take_place(Rehearsal.objects.get().external_id, person=TESTER)
    page = admin_client.post(address, {"look": "1"}, follow=True).content.decode()
    assert "a place is taken" in page and Rehearsal.objects.count() == 1
    fake.test_people.clear()
    assert b"Create a test participant first" in admin_client.post(address, {"begin": "1"}).content
