"""Entry: which people are admitted, which are refused, and what is kept in the browser."""

import pytest
from django.test import Client
from django.utils import timezone

from frontend import cookies
from survey.models import PanelIdentity, Respondent, Sitting, Study
from survey.services.sittings.identities import unseal_for
from survey.services.stages.lifecycle import pause_stage
from survey.services.studies.amending import amend
from survey.study_file.kept import forget_files
from tests import cast
from tests.frontend.pages import arrive, fields_for, get, go_to, read, send, shown_again

pytestmark = pytest.mark.django_db
IDS = "?PROLIFIC_PID=person1&STUDY_ID=study1&SESSION_ID=session1"


@pytest.fixture
def panel_study() -> Study:
    return cast.open_study(panel=cast.PROLIFIC)


def test_panel_ids_leave_the_address_at_once_and_are_sealed(client: Client, panel_study: Study) -> None:
    response = client.get(f"/s/cast/{IDS}")
    assert (response.status_code, response.headers["Location"]) == (302, "/s/cast/")
    cookie = response.cookies["hunch_person"]
    assert "person1" not in cookie.value and "session1" not in cookie.value
    visitor = unseal_for(panel_study, cookie.value, max_age_seconds=60)
    assert visitor is not None
    assert (visitor.ids.person, visitor.ids.study, visitor.ids.submission) == ("person1", "study1", "session1")
    assert (cookie["path"], cookie["samesite"], cookie["httponly"]) == ("/s/cast/", "Lax", True)
    assert not Respondent.objects.exists()


def test_what_a_browser_holds_ends_after_its_time_there_and_here(
    client: Client, panel_study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.get(f"/s/cast/{IDS}")
    page = go_to(client, "item", screen="prior")
    client.post("/s/cast/sitting", {**fields_for(page), "value": "101"})
    month, hour = 30 * 24 * 3600, 3600
    held = {name: (morsel["max-age"], morsel["path"], morsel["samesite"]) for name, morsel in client.cookies.items()}
    assert held["hunch_person"] == held["hunch_sitting"] == (month, "/s/cast/", "Lax")
    assert held["hunch_returned"] == (hour, "/s/cast/sitting", "Lax")
    assert "There is a problem" in client.get("/s/cast/sitting").content.decode()
    monkeypatch.setattr(cookies, "HOUR", -1)
    assert "There is a problem" not in client.get("/s/cast/sitting").content.decode()
    assert client.post("/s/cast/resume").headers["Location"] == "/s/cast/sitting"
    monkeypatch.setattr(cookies, "MAX_AGE_SECONDS", -1)
    assert client.post("/s/cast/resume").headers["Location"] == "/s/cast/"


def test_the_cookies_are_sent_over_tls_alone_where_there_is_tls(client: Client, settings: object) -> None:
    settings.SESSION_COOKIE_SECURE = True  # type: ignore[attr-defined]
    cast.open_study()
    arrive(client)
    assert client.cookies["hunch_person"]["secure"] and client.cookies["hunch_sitting"]["secure"]
    assert client.cookies["hunch_sitting"]["httponly"]


def test_a_panels_respondent_gets_the_panels_address_with_the_code(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    page = go_to(client, "end")
    code = panel_study.completion_code("completed")
    assert f'href="https://panel.example/complete?cc={code}"' in client.get("/s/cast/sitting").content.decode()
    assert page.code.strip() == code


def test_without_the_panels_ids_nobody_begins(client: Client, panel_study: Study) -> None:
    response = client.get("/s/cast/")
    assert response.status_code == 403
    assert read(response.content.decode()).main["data-refused"] == "no_panel_ids"
    assert client.post("/s/cast/consent", {"consent": "yes"}).status_code == 303
    assert not Sitting.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID=a&SESSION_ID=b",
        "?PROLIFIC_PID=PROLIFIC_PID&STUDY_ID=a&SESSION_ID=b",
        "?PROLIFIC_PID=undefined&STUDY_ID=a&SESSION_ID=b",
        "?PROLIFIC_PID=a",
        "?PROLIFIC_PID=a&STUDY_ID=b&SESSION_ID=" + "c" * 65,
    ],
)
def test_a_link_that_was_not_filled_in_is_reported(client: Client, panel_study: Study, query: str) -> None:
    response = client.get(f"/s/cast/{query}")
    assert response.status_code == 400
    assert read(response.content.decode()).main["data-refused"] == "bad_panel_ids"


def test_the_same_ids_come_back_to_their_sitting_in_another_browser(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    page = go_to(client, "item", screen="posterior")
    elsewhere = Client()
    welcome = get(elsewhere, f"/s/cast/{IDS}")
    assert "Continue where you were" in welcome.text
    again = read(elsewhere.post("/s/cast/resume", follow=True).content.decode())
    assert (again.main, again.parts) == (page.main, page.parts)
    assert PanelIdentity.objects.count() == 1


def test_another_submission_of_the_same_person_is_refused(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    arrive(client)
    response = Client().get("/s/cast/?PROLIFIC_PID=person1&STUDY_ID=study1&SESSION_ID=session2", follow=True)
    assert response.status_code == 403
    assert read(response.content.decode()).main["data-refused"] == "already_taken_part"


def test_the_next_person_at_a_shared_computer_gets_a_sitting_of_their_own(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    arrive(client)
    client.get("/s/cast/?PROLIFIC_PID=person2&STUDY_ID=study1&SESSION_ID=session2")
    assert client.get("/s/cast/sitting").status_code == 403
    arrive(client)
    assert Sitting.objects.count() == 2


def test_opening_the_panels_link_again_does_not_disturb_an_open_tab(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    page = go_to(client, "item", screen="prior")
    client.get(f"/s/cast/{IDS}")
    assert send(client, page).form["data-screen"] == "posterior"


def test_resuming_needs_the_ids_of_the_sitting(client: Client) -> None:
    cast.begin(cast.open_study())
    assert client.post("/s/cast/resume").status_code == 303
    assert "hunch_sitting" not in client.cookies


@pytest.mark.parametrize("method", ["get", "head"])
def test_a_sitting_is_given_back_to_a_click_alone(client: Client, panel_study: Study, method: str) -> None:
    """A page that is loaded ahead, or a picture on somebody's page, gives nothing back."""
    client.get(f"/s/cast/{IDS}")
    go_to(client, "item", screen="prior")
    elsewhere = Client()
    elsewhere.get(f"/s/cast/{IDS}")
    response = getattr(elsewhere, method)("/s/cast/resume")
    assert (response.status_code, response.headers["Location"]) == (303, "/s/cast/")
    assert "hunch_sitting" not in elsewhere.cookies


def test_a_person_cookie_of_a_panel_that_the_study_has_left_is_nobodys(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    assert "hunch_person" in client.cookies
    panel_study.stored_config["panel"] = {**panel_study.stored_config["panel"], "kind": "open"}
    panel_study.save(update_fields=["stored_config"])
    forget_files()  # An amended file has another hash; this one has not.
    arrive(client)
    assert PanelIdentity.objects.get().panel == "open"


def test_a_changed_or_foreign_person_cookie_counts_as_none(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    sealed = client.cookies["hunch_person"].value
    client.cookies["hunch_person"] = sealed[:-4] + "AAAA"
    assert client.get("/s/cast/").status_code == 403
    client.cookies["hunch_person"] = sealed
    cast.open_study(slug="open-one")
    visitor = Client()
    visitor.cookies["hunch_person"] = sealed
    arrive(visitor, "open-one")
    assert PanelIdentity.objects.get().panel == "open"


def test_not_agreeing_stores_nothing_and_gives_its_own_code(client: Client, panel_study: Study) -> None:
    client.get(f"/s/cast/{IDS}")
    page = read(shown_again(client, client.post("/s/cast/consent", {"consent": "no"})).content.decode())
    assert page.code.strip() == panel_study.completion_code("no_consent")
    assert "without completing" in page.text
    assert not Respondent.objects.exists() and not PanelIdentity.objects.exists()


def test_consent_is_one_of_two_answers(client: Client) -> None:
    cast.open_study()
    client.get("/s/cast/")
    response = shown_again(client, client.post("/s/cast/consent", {"consent": "perhaps"}))
    assert "error-summary" in response.content.decode()
    assert not Respondent.objects.exists()


def test_nobody_agrees_to_words_that_they_have_not_read(client: Client) -> None:
    study = cast.open_study()
    client.get("/s/cast/")
    seen = read(client.get("/s/cast/consent").content.decode()).hidden["words"]
    other = [{**cast.BASE["blocks"][0], "text": "Other words.", "version": "3"}, *cast.BASE["blocks"][1:]]
    amend(study, text=cast.study_text(blocks=other), source_name="cast.toml", reason="clearer")
    response = shown_again(client, client.post("/s/cast/consent", {"consent": "yes", "words": seen}))
    assert "Please read it once more" in response.content.decode()
    assert not Respondent.objects.exists()
    now = read(response.content.decode()).hidden["words"]
    assert client.post("/s/cast/consent", {"consent": "yes", "words": now}).status_code == 303
    assert Sitting.objects.get().consent.version == "3"


def test_consent_is_stored_with_its_version_and_language(client: Client) -> None:
    cast.open_study(texts={"language": "de"})
    client.get("/s/cast/")
    client.post("/s/cast/consent", {"consent": "yes"})
    consent = Sitting.objects.get().consent
    assert (consent.version, consent.language) == ("2", "de")


def test_who_agrees_a_second_time_is_led_to_the_same_sitting(client: Client) -> None:
    cast.open_study()
    client.get("/s/cast/")
    first = client.post("/s/cast/consent", {"consent": "yes"})
    held = client.cookies["hunch_sitting"].value
    second = client.post("/s/cast/consent", {"consent": "yes"})
    assert (second.status_code, second.headers["Location"]) == (first.status_code, first.headers["Location"])
    assert second.headers["Location"].endswith("/sitting") and "hunch_sitting" not in second.cookies
    del client.cookies["hunch_sitting"]  # As where the first answer never arrived.
    client.post("/s/cast/consent", {"consent": "yes"})
    assert client.cookies["hunch_sitting"].value == held
    assert Sitting.objects.count() == 1


def test_a_full_stage_says_so_before_consent(client: Client, panel_study: Study) -> None:
    panel_study.stages.get(index=1).booklets.update(claimed_at=timezone.now())
    response = client.get(f"/s/cast/{IDS}", follow=True)
    page = read(response.content.decode())
    assert (response.status_code, page.main["data-refused"]) == (403, "full")
    assert page.code.strip() == panel_study.completion_code("study_full")
    assert client.get("/s/cast/consent").status_code == 403
    assert client.post("/s/cast/consent", {"consent": "yes"}).status_code == 403
    assert not Respondent.objects.exists()


@pytest.mark.parametrize("panel", [{}, cast.PROLIFIC], ids=["open", "prolific"])
def test_a_closed_stage_says_so_before_consent_and_gives_no_code(client: Client, panel: dict[str, str]) -> None:
    study = cast.open_study(panel=panel) if panel else cast.open_study()
    pause_stage(study.stages.get(index=1))
    for address in (f"/s/cast/{IDS if panel else ''}", "/s/cast/"):
        response = client.get(address, follow=True)
        assert response.status_code == 403
        assert read(response.content.decode()).main["data-refused"] == "closed"
        assert not [code for code in study.codes.values_list("code", flat=True) if code in response.content.decode()]
    assert not Respondent.objects.exists()


@pytest.mark.parametrize("path", ["/s/nobody/", "/s/nobody/consent", "/s/nobody/sitting", "/s/", "/nowhere"])
def test_an_unknown_address_gets_a_page(client: Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code == 404
    assert "<h1>Page not found</h1>" in response.content.decode()
    assert "the link you were given" in response.content.decode()


def test_a_researchers_wrong_address_speaks_of_no_link_that_they_were_given(admin_client: Client) -> None:
    page = admin_client.get("/admin/survey/study/999999/members/")
    assert page.status_code == 404
    assert (
        "There is nothing at this address, or it belongs to a study" in page.content.decode()
        and "were given" not in page.content.decode()
    )


def test_a_form_without_its_token_gets_a_page_that_says_what_to_do(settings: object) -> None:
    settings.CSRF_FAILURE_VIEW = "frontend.views.csrf_failure"  # type: ignore[attr-defined]
    cast.open_study()
    client = Client(enforce_csrf_checks=True)
    client.get("/s/cast/")
    response = client.post("/s/cast/consent", {"consent": "yes"})
    assert response.status_code == 403
    assert "load the page again" in response.content.decode()
    assert not Respondent.objects.exists()


def test_a_whole_sitting_passes_the_csrf_check() -> None:
    cast.open_study()
    client = Client(enforce_csrf_checks=True)
    page = get(client, "/s/cast/consent")
    get(client, "/s/cast/")
    page = get(client, "/s/cast/consent")
    page = read(client.post("/s/cast/consent", {**page.hidden, "consent": "yes"}, follow=True).content.decode())
    while page.main["data-kind"] != "end":
        page = send(client, page)
    assert page.main["data-outcome"] == "completed"


def test_a_crash_shows_a_calm_page_and_no_trace(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(slug: str) -> Study:
        raise RuntimeError("a secret detail")

    monkeypatch.setattr("survey.services.sittings.enrolment.study_of", broken)
    client.raise_request_exception = False
    response = client.get("/s/cast/")
    assert response.status_code == 500
    body = response.content.decode()
    assert "Something went wrong on our side" in body
    assert "secret detail" not in body and "Traceback" not in body


def test_ten_megabytes_of_form_are_refused_and_the_sitting_goes_on(client: Client) -> None:
    cast.open_study()
    page = go_to(client, "item", screen="prior")
    response = client.post("/s/cast/sitting", {**page.hidden, "value": "1" * 10_000_000})
    assert response.status_code == 413
    assert send(client, page).form["data-screen"] == "posterior"


def test_a_form_of_a_thousand_fields_is_refused_with_a_page(client: Client) -> None:
    cast.open_study()
    page = go_to(client, "item", screen="prior")
    response = client.post("/s/cast/sitting", {**page.hidden, **{f"field{n}": "1" for n in range(1000)}})
    assert response.status_code == 400
    assert "<h1>" in response.content.decode()


def test_an_open_study_knows_a_browser_again(client: Client) -> None:
    cast.open_study()
    client.get("/s/cast/")
    first = client.cookies["hunch_person"].value
    client.get("/s/cast/")
    assert client.cookies["hunch_person"].value == first
    arrive(client)
    arrive(client)
    assert Respondent.objects.count() == 1


def test_the_root_page_leads_researchers_on(client: Client) -> None:
    body = client.get("/").content.decode()
    assert 'href="/admin/"' in body and 'href="/api/docs/"' in body
