"""What somebody sees who is no member of a study: nothing of it, in no list, filter, form or count."""

from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.auth.models import Permission, User
from django.test import Client, RequestFactory

from survey.admin_base.page_loading import _show_by_rights
from survey.instruments.belief_update.models import Pair
from survey.models import AuditEntry, Bank, LanguageModel, Question, QuestionReport, Study
from survey.read_only_admin import ByRights  # The name by which packages from outside know it.
from tests import cast, databases

from .conftest import client_of
from .test_pages import address, busy, our_models

pytestmark = pytest.mark.slow

__all__ = ["busy"]
HIDDEN = "zebra"


@pytest.fixture
def outsider(busy: Study) -> User:
    """May do whatever an account can be permitted, and owns another study. What is hidden has names of its own."""
    Study.objects.update(slug=f"{HIDDEN}-study", title=f"The {HIDDEN}")
    Bank.objects.update(name=f"{HIDDEN}-bank")
    for model in LanguageModel.objects.all():
        LanguageModel.objects.filter(pk=model.pk).update(name=f"{HIDDEN}-model-{model.pk}")
    Question.objects.update(text=HIDDEN)
    QuestionReport.objects.update(text=HIDDEN)
    with databases.unguarded():
        AuditEntry.objects.update(subject=HIDDEN)
    user = User.objects.create_user("outsider", is_staff=True)
    user.user_permissions.set(Permission.objects.all())
    cast.join(user, cast.study(slug="own", bank=cast.bank(name="own-bank").name))
    return user


def test_no_page_names_anything_of_another_study(outsider: User) -> None:
    client = client_of(outsider)
    pages = ["/admin/", "/admin/survey/entrylink/add/", "/admin/survey/answercollection/add/"]
    pages += ["/admin/survey/apitoken/add/", *(address(model, "changelist") for model in our_models())]
    for page in pages:
        response = client.get(page)
        assert response.status_code == 200, page
        assert HIDDEN not in response.content.decode(), page
    own = client.get("/admin/survey/study/").content.decode()
    assert "own" in own and client.get("/admin/survey/stage/").context["cl"].result_count == 2


@pytest.mark.thorough
def test_a_superuser_sees_it_all(outsider: User, as_superuser: Client) -> None:
    for name in ("study", "bank", "languagemodel", "questionreport", "auditentry"):
        assert HIDDEN in as_superuser.get(f"/admin/survey/{name}/").content.decode(), name


@pytest.mark.thorough
def test_a_language_models_answers_are_counted_on_ones_own_banks(busy: Study, outsider: User) -> None:
    shared = LanguageModel.objects.create(name="shared")
    for bank in (busy.bank, Study.objects.get(slug="own").bank):
        shared.answers.create(question=bank.questions.all()[0], correct=True)
    rows = client_of(outsider).get("/admin/survey/languagemodel/").context["cl"].result_list
    assert [(row.name, row.answered, row.judged, row.correct) for row in rows] == [("shared", 1, 1, 1)]


def test_a_plain_page_of_another_package_shows_by_rights_as_well(busy: Study, outsider: User) -> None:
    site = AdminSite()
    site.register(Pair)
    request: Any = RequestFactory().get("/")
    request.user = outsider
    assert site._registry[Pair].get_queryset(request).exists()
    _show_by_rights(site, known={})
    page = site._registry[Pair]
    assert isinstance(page, ByRights)
    assert not page.get_queryset(request).exists()
    choices = page.get_field_queryset(None, Pair._meta.get_field("item"), request)
    assert choices is not None and not choices.exists()
    request.user = User.objects.get(username="super")
    assert page.get_queryset(request).exists()


def test_a_viewer_sees_no_single_person_and_no_code(busy: Study) -> None:
    viewer = User.objects.create_user("viewer", is_staff=True)
    viewer.user_permissions.set(Permission.objects.all())
    cast.join(viewer, busy, "viewer", may_spend=False)
    client = client_of(viewer)
    body = client.get(f"/admin/survey/study/{busy.pk}/change/").content.decode()
    assert all(code.code not in body for code in busy.codes.all()) and 'value="answers.csv"' not in body
    for name in ("respondent", "sitting", "assignment", "questionreport", "submission", "posting", "panelidentity"):
        assert f"/admin/survey/{name}/?study=" not in body
        assert client.get(f"/admin/survey/{name}/").context["cl"].result_count == 0, name
    assert client.get("/admin/survey/slot/").context["cl"].result_count > 0


def test_an_amended_file_names_only_what_its_owner_may_see(busy: Study, outsider: User) -> None:
    own = Study.objects.get(slug="own")
    client = client_of(outsider)
    for line in (f'bank = "{busy.bank.name}@1"', f'bank = "{HIDDEN}-bank"', 'bank = "nobody"'):
        text = own.source_text.replace('bank = "own-bank"', line)
        body = client.post(f"/admin/survey/study/{own.pk}/amend/", {"reason": "why", "text": text, "show": "1"})
        assert "among those that you see" in body.content.decode(), line
        assert "there are:" not in body.content.decode()
    text = own.source_text.replace("Welcome", "Hello")
    response = client.post(f"/admin/survey/study/{own.pk}/amend/", {"reason": "why", "text": text, "show": "1"})
    assert 'name="amend"' in response.content.decode()
