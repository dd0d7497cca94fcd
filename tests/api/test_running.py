"""Running a study by the API: created from its file, its stages moved, and what goes on read."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from survey.api.urls import urlpatterns
from survey.models import ApiToken, AuditEntry, Evaluation, JobStep, Posting, PredictorRun, Stage, Study
from survey.services.base.auditing import actor_of
from survey.services.studies import members
from tests import cast
from tests.admin.conftest import study_in_its_second_stage
from tests.panels.world import stored_posting, stored_submission

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
STUDIES = "/api/v1/studies/"


def client_of(user: User, scope: str = ApiToken.Scope.RUN, **fields: Any) -> Client:
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user, scope=scope, **fields)[1]}"})


def send(client: Client, path: str, body: Any = None) -> Any:
    return client.post(path, {} if body is None else body, content_type="application/json")


@pytest.fixture
def owner(db: None) -> User:
    user = User.objects.create_user("owner")
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="survey"))
    return user


@pytest.fixture
def study(owner: User) -> Study:
    made = cast.open_study()
    cast.join(owner, made)
    return made


def test_every_address_is_listed_with_what_it_does(client: Client) -> None:
    listed = client.get("/api/v1/").json()
    assert len(listed["addresses"]) == len(urlpatterns)
    by_address = {line["address"]: line for line in listed["addresses"]}
    assert by_address["/api/v1/sitting/"]["used_by"] == ["respondents"]
    assert [operation["method"] for operation in by_address["/api/v1/studies/"]["operations"]] == ["GET", "POST"]
    assert client.get("/api/schema/").status_code == 200


# Creating


@pytest.fixture
def creator(owner: User, study: Study) -> Client:
    """Somebody who sees the bank of the cast, since their study uses it."""
    return client_of(owner)


def test_a_study_is_created_from_its_file_and_belongs_to_who_made_it(creator: Client, owner: User) -> None:
    text = cast.study_text(slug="made-by-api")
    made = send(creator, STUDIES, {"file": text})
    assert made.status_code == 201, made.json()
    assert made.json()["stages"][0] == {"stage": 1, "state": "draft", "pilot": False}
    stored = Study.objects.get(slug="made-by-api")
    assert (stored.created_by, stored.memberships.get().role) == (owner, "owner")
    assert {"run", "manage_members"} <= set(made.json()["rights"])
    entry = AuditEntry.objects.filter(action="create_study", study="made-by-api").get()
    assert (entry.via, entry.actor) == ("api", actor_of(owner))
    read = creator.get(made.json()["addresses"]["file"]).json()
    assert (read["file"], read["sha256"]) == (text, made.json()["file_sha256"])


def test_a_file_is_checked_without_storing_it(creator: Client) -> None:
    checked = send(creator, STUDIES, {"file": cast.study_text(slug="only-checked"), "check_only": True})
    assert (checked.status_code, checked.json()["created_at"]) == (200, None)
    assert not Study.objects.filter(slug="only-checked").exists()


def test_every_problem_of_a_file_is_named_with_its_line(creator: Client) -> None:
    text = cast.study_text(slug="cast").replace('title = "A study of the cast"', 'title = ""')
    refused = send(creator, STUDIES, {"file": text})
    assert refused.status_code == 422
    fields = refused.json()["error"]["fields"]
    assert fields["title"][0].startswith("line ")
    taken = send(creator, STUDIES, {"file": cast.study_text(slug="cast")}).json()["error"]
    assert list(taken["fields"]) == ["slug"] and "exists already" in taken["message"]


def test_who_may_not_create_studies_creates_none(creator: Client, owner: User, study: Study) -> None:
    body = {"file": cast.study_text(slug="refused")}
    reading = send(client_of(owner, ApiToken.Scope.READ), STUDIES, body)
    limited = send(client_of(owner, studies=[study]), STUDIES, body)
    owner.user_permissions.remove(Permission.objects.get(codename="add_study"))
    unpermitted = send(client_of(owner), STUDIES, body)
    assert [response.status_code for response in (reading, limited, unpermitted)] == [403, 403, 403]
    assert "survey.add_study" in unpermitted.json()["error"]["message"]
    assert not Study.objects.filter(slug="refused").exists()


def test_a_bank_of_other_peoples_studies_is_not_there(owner: User) -> None:
    cast.open_study()
    refused = send(client_of(owner), STUDIES, {"file": cast.study_text(slug="mine")})
    assert list(refused.json()["error"]["fields"]) == ["bank"]


# Stages


def test_a_stage_is_paused_resumed_and_closed(owner: User, study: Study) -> None:
    client, path = client_of(owner), f"{STUDIES}cast/stages/1/"
    assert send(client, f"{path}pause/").json()["state"] == "paused"
    assert send(client, f"{path}resume/").json()["state"] == "open"
    again = send(client, f"{path}resume/")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "state_refused")
    assert send(client, f"{path}close/").json()["state"] == "closing"
    assert client.get(path).json()["state"] == "closing"
    actions = AuditEntry.objects.filter(study="cast", via="api").order_by("id").values_list("action", flat=True)
    assert list(actions) == ["pause_stage", "open_stage", "close_stage"]


def test_a_stage_is_planned_by_hand(owner: User) -> None:
    study = cast.study()
    cast.join(owner, study)
    planned = send(client_of(owner), f"{STUDIES}cast/stages/1/plan/").json()
    assert (planned["state"], planned["slots"]) == ("planned", 12)
    assert send(client_of(owner), f"{STUDIES}cast/stages/1/plan/").json()["slots"] == 12  # The same plan.


def test_failed_steps_are_tried_again(owner: User, study: Study) -> None:
    stage = study.stages.get(index=1)
    Stage.objects.filter(pk=stage.pk).update(state="closing")
    JobStep.objects.create(stage=stage, kind="freeze", input_sha256="0" * 64, state="failed", error="it broke")
    elsewhere = cast.open_study(slug="other").stages.get(index=1)
    JobStep.objects.create(stage=elsewhere, kind="freeze", input_sha256="0" * 64, state="failed", error="theirs")
    client = client_of(owner)
    (step,) = client.get(f"{STUDIES}cast/steps/").json()
    assert (step["state"], step["error"], step["title"]) == ("failed", "it broke", "freeze answers")
    assert send(client, f"{STUDIES}cast/stages/1/retry/").json()["retried"] == 1
    assert client.get(f"{STUDIES}cast/steps/").json()[0]["state"] == "queued"
    assert send(client, f"{STUDIES}cast/stages/1/retry/").json()["retried"] == 0
    assert elsewhere.job_steps.get().state == "failed"


def test_what_does_not_exist_is_refused_in_words(owner: User, study: Study) -> None:
    client = client_of(owner)
    unknown = send(client, f"{STUDIES}cast/stages/1/reopen/")
    assert unknown.status_code == 404 and "pause" in unknown.json()["error"]["message"]
    assert send(client, f"{STUDIES}cast/stages/9/pause/").status_code == 404
    assert client.get(f"{STUDIES}cast/stages/{10**30}/").status_code == 404
    odd = send(client, f"{STUDIES}cast/stages/1/pause/", {"short_booklets": True})
    assert (odd.status_code, list(odd.json()["error"]["fields"])) == (422, ["short_booklets"])


def test_a_token_that_only_reads_moves_nothing(owner: User, study: Study) -> None:
    refused = send(client_of(owner, ApiToken.Scope.READ), f"{STUDIES}cast/stages/1/pause/")
    assert refused.status_code == 403
    assert study.stages.get(index=1).state == "open"


def test_who_may_not_run_the_study_moves_nothing(owner: User, study: Study) -> None:
    cast.join(User.objects.create_user("second owner"), study)
    members.set_member(study, user=owner, role="analyst", may_spend=False)
    assert send(client_of(owner), f"{STUDIES}cast/stages/1/pause/").status_code == 403
    assert client_of(owner).get(f"{STUDIES}cast/overview/").json()["rights"] == ["see", "read_answers", "export"]
    assert client_of(owner).get(f"{STUDIES}cast/postings/").status_code == 403


# What goes on


def test_trainings_are_listed_with_the_stages_that_judge_them(owner: User) -> None:
    study = study_in_its_second_stage()
    cast.join(owner, study)
    run = PredictorRun.objects.filter(stage__study=study).order_by("pk")[0]
    Evaluation.objects.filter(predictor_run=run).delete()
    Evaluation.objects.create(predictor_run=run, stage=study.stages.get(index=2), metrics={"naive": {"n": 1}})
    client = client_of(owner)
    listed = client.get(f"{STUDIES}{study.slug}/runs/").json()
    training = next(line for line in listed if line["number"] == run.pk)
    assert (training["predictor"], training["trained_after"], training["evaluated_on"]) == (run.name, 1, [2])
    assert len(listed) == PredictorRun.objects.filter(stage__study=study).count()
    steps = client.get(f"{STUDIES}{study.slug}/steps/").json()
    assert [line["number"] for line in steps] == sorted(JobStep.objects.values_list("pk", flat=True)) and len(steps) > 2
    assert {(line["stage"], line["state"]) for line in steps} == {(1, "done")}
    cast.join(owner, cast.small_study("other"))
    assert client.get(f"{STUDIES}other/runs/").json() == client.get(f"{STUDIES}other/steps/").json() == []


def test_postings_are_listed_without_what_only_the_panel_may_know(owner: User, study: Study) -> None:
    Posting.objects.create(
        study=study,
        stage=study.stages.get(index=1),
        panel="prolific",
        internal_name="cast 1",
        external_id="0123456789",
        state="ACTIVE",
        reward=225,
        currency="GBP",
        places=4,
        expected_minutes=15,
        draft={"completion_codes": [{"code": "SECRET"}]},
    )
    response = client_of(owner).get(f"{STUDIES}cast/postings/")
    (line,) = response.json()
    assert (line["meaning"], line["reward"], line["submissions"]) == ("active", 225, {})
    assert b"SECRET" not in response.content


def test_each_posting_has_its_own_people_and_costs(owner: User, study: Study) -> None:
    other = cast.open_study(slug="other")
    first, second, theirs = (
        stored_posting(of, places=places, reward=100, fee_rate=2500, panel_facts=facts)
        for of, places, facts in (
            (study, 4, {}),
            (study, 6, {"spent": {"rewards": 300, "bonuses": 20, "fees": 80, "currency": "USD"}}),
            (other, 8, {}),
        )
    )
    for posting, status in ((first, "APPROVED"), (second, "APPROVED"), (second, "APPROVED"), (second, "RETURNED")):
        stored_submission(posting, None, status)
    stored_submission(theirs, None, "APPROVED")
    lines = client_of(owner).get(f"{STUDIES}cast/postings/").json()
    assert [line["number"] for line in lines] == [first.pk, second.pk]
    assert [line["submissions"] for line in lines] == [{"APPROVED": 1}, {"APPROVED": 2, "RETURNED": 1}]
    assert [(line["places"], line["may_cost"], line["has_cost"]) for line in lines] == [(4, 500, None), (6, 750, 400)]
