"""The researchers' API: who may read, and that it says what the export says."""

import csv
from collections.abc import Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from survey.api import researchers
from survey.models import ApiToken, Assignment, AuditEntry, Study
from survey.services.base.auditing import actor_of
from survey.services.results.export import answers_file, files
from tests import cast
from tests.kept import kept

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
PATHS = (
    "/api/v1/studies/",
    "/api/v1/studies/cast/stages/",
    "/api/v1/studies/cast/answers/",
    "/api/v1/studies/cast/answers.csv",
)


@pytest.fixture
def study() -> Study:
    return answered_study()


@kept
def answered_study() -> Study:
    study = cast.open_study()
    cast.walk(cast.begin(study))
    cast.walk(cast.begin(study), until="item", screen="posterior")
    return study


def token_of(name: str, *, may_export: bool) -> str:
    user = User.objects.create_user(name)
    if may_export:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    return ApiToken.issue(user=user)[1]


@pytest.fixture
def reader(db: None) -> Iterator[Client]:
    secret = token_of("reader", may_export=True)
    with cast.owner_of_every_study(User.objects.get(username="reader")):
        yield Client(headers={"Authorization": f"Token {secret}"})


@pytest.mark.parametrize("path", PATHS)
def test_only_who_may_export_reads(client: Client, study: Study, reader: Client, path: str) -> None:
    assert reader.get(path).status_code == 200
    nobody = client.get(path)
    assert (nobody.status_code, nobody.json()["error"]["code"]) == (401, "not_authenticated")
    stranger = client.get(path, headers={"Authorization": f"Token {token_of('other', may_export=False)}"})
    assert (stranger.status_code, stranger.json()["error"]["code"]) == (403, "permission_denied")
    forged = client.get(path, headers={"Authorization": "Token forged"})
    assert (forged.status_code, forged.json()["error"]["code"]) == (401, "authentication_failed")


@pytest.mark.parametrize("path", PATHS)
def test_the_token_of_who_was_deactivated_or_may_not_export_any_more_reads_nothing(
    study: Study, reader: Client, path: str
) -> None:
    user = User.objects.get(username="reader")
    user.user_permissions.clear()
    refused = reader.get(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "permission_denied")
    user.is_superuser, user.is_active = True, False
    user.save()
    refused = reader.get(path)
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "authentication_failed")


def test_the_admins_session_is_a_login_too(admin_client: Client, study: Study) -> None:
    assert admin_client.get(PATHS[0]).status_code == 200


def test_studies_and_stages_are_listed_with_their_counts(reader: Client, study: Study) -> None:
    (listed,) = reader.get("/api/v1/studies/").json()
    assert (listed["slug"], listed["stages"], listed["url"]) == ("cast", 2, "http://testserver/s/cast/")
    first, second = reader.get("/api/v1/studies/cast/stages/").json()
    assert (first["state"], first["slots"], first["in_time"], first["counted"]) == ("open", 12, 3, 3)
    assert first["free_booklets"] == 2
    assert first["sittings"] == {"complete": 1, "live": 1}
    assert (second["state"], second["slots"]) == ("draft", 0)


def test_the_streamed_csv_is_the_export_byte_for_byte(reader: Client, study: Study, tmp_path: Any) -> None:
    files.write_export(study, tmp_path)
    response = reader.get("/api/v1/studies/cast/answers.csv")
    assert response.streaming
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert response.getvalue() == (tmp_path / "answers.csv").read_bytes()


def test_a_client_that_asks_for_csv_gets_it_and_errors_as_json(reader: Client, study: Study) -> None:
    accept = {"Accept": "text/csv"}
    assert reader.get("/api/v1/studies/cast/answers.csv", headers=accept).status_code == 200
    refused = reader.get("/api/v1/studies/nobody/answers.csv", headers=accept)
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")


def test_a_mistyped_address_says_what_a_researcher_can_do(reader: Client, study: Study) -> None:
    said = reader.get("/api/v1/studies/nobody/answers/").json()["error"]["message"]
    assert said == "no study is called 'nobody', or you are not a member of it; GET /api/v1/studies/ lists yours"
    user = User.objects.create_user("outsider")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    outsider = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
    of_others = outsider.get("/api/v1/studies/cast/answers/").json()["error"]["message"]
    assert of_others == said.replace("nobody", "cast")
    assert "GET /api/v1/ lists" in reader.get("/api/v1/answers/").json()["error"]["message"]
    assert "the link you were given" in reader.get("/nothing/").content.decode()
    staff = Client()
    staff.force_login(User.objects.create_superuser("super"))
    assert "a study of which you are not a member" in staff.get("/admin/nothing/").content.decode()


def pages_from(address: str | None, reader: Client, *, most: int) -> list[dict[str, Any]]:
    """Page after page to the last one. More than there can be would be the same ones again."""
    pages: list[dict[str, Any]] = []
    while address:
        assert len(pages) < most, f"another page after {most}: {address}"
        pages.append(reader.get(address).json())
        address = pages[-1]["next"]
    return pages


def test_json_pages_follow_one_another_to_the_end(
    reader: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_file, "PAGE", 5)
    pages = pages_from("/api/v1/studies/cast/answers/", reader, most=4)
    assert len(pages) == 4
    rows = [row for page in pages for row in page["results"]]
    assert [row["slot"] for row in rows] == list(range(1, 13))
    counted = [row for row in rows if row["status"] == "counted"]
    assert [(row["prior"], row["posterior"]) for row in counted] == [(60, 70)] * 3
    assert counted[0]["responses"][1]["screen"] == "posterior"
    lines = list(csv.DictReader(StringIO("".join(files.answers_csv(study)), newline="")))
    assert [row["evidence_text"] or "" for row in rows if row["evidence_text"]] == [
        line["evidence_text"] for line in lines if line["evidence_text"]
    ]
    assert list(rows[0]) == list(lines[0])


def test_json_pages_hold_the_weights_of_the_file(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_file, "PAGE", 5)
    stage = cast.full_of_answers(cast.open_stage("full"))
    cast.join_all(User.objects.get(username="reader"))
    page = reader.get("/api/v1/studies/full/answers/").json()
    second = reader.get(page["next"]).json()
    weights = [row["weight"] for row in page["results"] + second["results"]]
    lines = csv.DictReader(StringIO("".join(files.answers_csv(stage.study)), newline=""))
    assert [str(weight) for weight in weights] == [line["weight"] for line in lines][:10] and len(weights) == 10
    # An answer that no longer counts changes all weights: none is taken from the page before.
    Assignment.objects.filter(slot__stage=stage, slot__number__lte=3).update(state="late")
    assert [row["weight"] for row in reader.get("/api/v1/studies/full/answers/").json()["results"]][:3] == [None] * 3


def test_a_stage_can_be_asked_for(reader: Client, study: Study) -> None:
    assert len(reader.get("/api/v1/studies/cast/answers/?stage=1").json()["results"]) == 12
    assert reader.get("/api/v1/studies/cast/answers/?stage=2").json() == {"next": None, "results": []}
    lines = [
        len(reader.get(f"/api/v1/studies/cast/answers.csv?stage={index}").getvalue().splitlines()) for index in (1, 2)
    ]
    assert lines == [1 + 12, 1]


def test_answers_under_a_condition_can_be_asked_for_page_by_page(
    reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_file, "PAGE", 2)
    study = cast.open_study(conditions=[{"factor": "mode", "levels": ["field", "choice"], "per": "item"}])
    cast.walk(cast.begin(study))
    cast.walk(cast.begin(study))
    everything = list(csv.DictReader(StringIO("".join(files.answers_csv(study)), newline="")))
    wanted = [int(row["slot"]) for row in everything if '"mode": "field"' in row["condition"]]
    pages = pages_from("/api/v1/studies/cast/answers/?stage=1&condition=mode=field", reader, most=12)
    slots = [row["slot"] for page in pages for row in page["results"]]
    assert slots == wanted and 2 <= len(slots) <= 4
    lines = reader.get("/api/v1/studies/cast/answers.csv?condition=mode=field").getvalue().decode().splitlines()
    assert len(lines) == 1 + len(wanted)
    for path in ("answers/", "answers.csv", "estimates/", "leaderboard/"):
        refused = reader.get(f"/api/v1/studies/cast/{path}?condition=mode=odd")
        assert "there are: mode=field, mode=choice" in refused.json()["error"]["message"], path
        assert refused.status_code == 400


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("query", "status"), [("stage=9", 404), ("stage=x", 400), ("stage=", 400), ("cursor=x", 400), ("cursor=-1", 400)]
)
def test_a_query_that_means_nothing_is_refused(reader: Client, study: Study, query: str, status: int) -> None:
    response = reader.get(f"/api/v1/studies/cast/answers/?{query}")
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_reading_answers_is_written_down(reader: Client, study: Study) -> None:
    reader.get("/api/v1/studies/cast/answers.csv")
    reader.get("/api/v1/studies/cast/answers/")
    entries = AuditEntry.objects.filter(action="export_answers", subject="cast", via="api")
    assert {entry.actor for entry in entries} == {actor_of(User.objects.get(username="reader"))}
    assert sorted(entry.detail["form"] for entry in entries) == ["csv", "json"]


def test_no_page_of_answers_is_read_without_a_first_one(
    reader: Client, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of a page further on comes from the page before. Each page is in the audit."""
    monkeypatch.setattr(answers_file, "PAGE", 4)
    assert reader.get("/api/v1/studies/cast/answers/?cursor=1-0").status_code == 400
    assert not AuditEntry.objects.filter(action="export_answers").exists()
    following = reader.get("/api/v1/studies/cast/answers/").json()["next"]
    assert [row["slot"] for row in reader.get(following).json()["results"]] == [5, 6, 7, 8]
    assert reader.get(f"{following}&stage=1").status_code == 400
    assert reader.get(following.replace("cursor=1-4", "cursor=1-0")).status_code == 400
    cast.open_study(slug="other")
    assert reader.get("/api/v1/studies/other/answers/").status_code == 200
    assert reader.get(following.replace("/cast/", "/other/")).status_code == 400
    user = User.objects.create_user("another")
    user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    other = Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})
    assert other.get(following).status_code == 400
    read = AuditEntry.objects.filter(action="export_answers", study="cast").order_by("pk")
    assert [entry.detail.get("after") for entry in read] == [None, [1, 4]]
    monkeypatch.setattr(researchers, "CURSOR_HOLDS", timedelta(seconds=-1))
    refused = reader.get(following)
    assert refused.status_code == 400 and "begin again" in refused.json()["error"]["message"]


# Tokens that run


def test_a_stage_is_moved_by_a_token_that_may_run_and_no_other(study: Study) -> None:
    user = User.objects.create_user("runner")
    user.user_permissions.add(*Permission.objects.filter(codename__in=["run_study", "export_study"]))
    cast.join(user, study, "editor")
    path, asked = "/api/v1/studies/cast/stages/", {"stage": 1, "move": "pause"}

    def post(scope: str, **changed: Any) -> Any:
        secret = ApiToken.issue(user=user, scope=scope)[1]
        client = Client(headers={"Authorization": f"Token {secret}"})
        return client.post(path, {**asked, **changed}, content_type="application/json")

    assert post("read").status_code == 403 and study.stages.get(index=1).state == "open"
    moved = post("run")
    assert (moved.status_code, moved.json()[0]["state"]) == (200, "paused")
    entry = AuditEntry.objects.get(action="pause_stage")
    assert (entry.actor, entry.via, entry.study) == (actor_of(user), "api", "cast")
    assert [post("run", move=move).status_code for move in ("burn", "open", "close")] == [400, 200, 200]
    assert post("run", move="open").status_code == 409 and post("run", stage=9).status_code == 404
    cast.join(user, study, "analyst")
    assert post("run").status_code == 403
