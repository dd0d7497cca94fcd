"""Figure 7 as a page with its downloads, and the same by REST."""

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from survey.admin.pictures import inline
from survey.instruments.belief_update.reports.calibration.calibrating import human_calibration
from survey.instruments.belief_update.reports.calibration.expectations import perplexity_table
from survey.models import ApiToken, Study
from tests import cast
from tests.admin.conftest import client_of
from tests.kept import kept
from tests.survey.foresight import N, belief_study, even, model, people_study

pytestmark = [pytest.mark.django_db, pytest.mark.any_database, pytest.mark.slow]
API = "/api/v1/studies/beliefs/reports/human_calibration/"


@pytest.fixture
def beliefs() -> Study:
    return foreseen()


@kept
def foreseen() -> Study:
    """People foresee everything; three people and two models have answered all questions."""
    bank = cast.small_bank(N, tasks=2)
    people_study(bank, right=even)
    model(bank, "<b>always</b>")
    model(bank, "never", right=lambda position: False)
    return belief_study(
        bank,
        posterior=lambda pair, sitting: 90 if pair.target.position % 2 == 0 else 10,
        conditions=[{"factor": "answerer", "levels": ["model", "ai_or_person"]}],
    )


def page_of(study: Study) -> str:
    return reverse("admin:survey_study_report", args=[study.pk, "human_calibration"])


def file_of(study: Study, name: str) -> str:
    return reverse("admin:survey_study_report_file", args=[study.pk, "human_calibration", name])


def reader(*, may_export: bool = True) -> Client:
    user = User.objects.create_user(f"reader {may_export}")
    if may_export:
        user.user_permissions.add(Permission.objects.get(codename="export_study"))
    cast.join_all(user)
    return Client(headers={"Authorization": f"Token {ApiToken.issue(user=user)[1]}"})


def test_the_page_shows_figure_and_table_and_the_study_leads_to_it(beliefs: Study, as_superuser: Client) -> None:
    address = page_of(beliefs)
    assert address in as_superuser.get(reverse("admin:survey_study_change", args=[beliefs.pk])).content.decode()
    page = as_superuser.get(address).content.decode()
    assert "hunch-figure" in page and "12 beliefs, 3 people answering" in page
    assert "100.0 %" in page and "Belief from" in page
    # A belief of 90 % that comes true has perplexity 1 / 0.9; of the two models one does what was foreseen.
    assert "perplexity of people" in page and "1.111" in page
    assert "&lt;b&gt;always&lt;/b&gt;" in page and "<b>always</b>" not in page
    assert page.count("<section") == page.count("</section")


def test_the_address_chooses_models_levels_and_the_other_study(beliefs: Study, as_superuser: Client) -> None:
    query = {"people_study": "people", "model": ["never"], "condition": ["answerer=model"]}
    page = as_superuser.get(page_of(beliefs), query).content.decode()
    assert "6 beliefs" in page and "hold for never, not for models at large" in page
    assert "<option selected>never</option>" in page
    wrong = as_superuser.get(page_of(beliefs), {"people_study": "gull"}).content.decode()
    assert "no study is called &#x27;gull&#x27;" in wrong and "hunch-figure" not in wrong


def test_figure_and_table_are_downloaded_as_the_page_shows_them(beliefs: Study, as_superuser: Client) -> None:
    query = {"model": "never"}
    page = as_superuser.get(page_of(beliefs), query).content.decode()
    files = {
        name: as_superuser.post(f"{file_of(beliefs, name)}?model=never") for name in ("figure7.csv", "figure7.svg")
    }
    assert inline(files["figure7.svg"].content.decode()) in page
    assert files["figure7.csv"]["Content-Disposition"] == 'attachment; filename="beliefs-figure7.spreadsheet.csv"'
    rows = list(csv.DictReader(io.StringIO(files["figure7.csv"].content.decode())))
    assert [row["answerers"] for row in rows if row["answerers_are"] == "language models"] == ["1", "0", "1"]
    assert [row["accuracy"] for row in rows[:3]] == ["0.0", "", "1.0"]


def test_what_cannot_be_shown_is_said_and_cannot_be_downloaded(as_superuser: Client) -> None:
    alone = cast.small_study("beliefs", on=cast.small_bank(N, tasks=2))
    assert "create one with the instrument own_answers" in as_superuser.get(page_of(alone)).content.decode()
    for name in ("figure7.csv", "figure7.png"):
        assert as_superuser.post(file_of(alone, name)).status_code == 404
    assert as_superuser.get(reverse("admin:survey_study_report", args=[0, "human_calibration"])).status_code == 404


def test_only_who_may_see_the_study_sees_it(beliefs: Study, django_user_model: Any) -> None:
    staff = client_of(django_user_model.objects.create_user("staff", is_staff=True))
    for address in (page_of(beliefs), file_of(beliefs, "figure7.csv")):
        assert staff.get(address).status_code == 404


def test_the_api_gives_the_commands_figures(beliefs: Study) -> None:
    query = {"people_study": "people", "model": ["never", "<b>always</b>"], "condition": "answerer=model"}
    actual = reader().get(API, query).json()["data"]
    expected = human_calibration(beliefs, people_study=Study.objects.get(slug="people"), condition=["answerer=model"])
    perplexity = json.loads(json.dumps(perplexity_table(expected.expectations).records()))
    assert actual == {**expected.as_json(), "perplexity": perplexity}
    assert len(actual["points"]) == 6 and actual["points"][1]["accuracy"] is None


def test_the_api_says_what_is_missing_and_to_whom_it_is_closed(beliefs: Study, client: Client) -> None:
    assert client.get(API).status_code == 401
    assert reader(may_export=False).get(API, {"people_study": "people"}).status_code == 403
    mine = reader()
    unnamed = mine.get(API)
    assert (unnamed.status_code, unnamed.json()["error"]["code"]) == (400, "invalid")
    assert "there are: people" in unnamed.json()["error"]["message"]
    assert mine.get(API, {"people_study": "gull"}).status_code == 404
    assert mine.get(API, {"people_study": "people", "model": "gull"}).status_code == 404
    assert mine.get(API, {"people_study": "beliefs"}).status_code == 409
    assert mine.get(API, {"people_study": "people", "condition": "weather=fine"}).status_code == 400
