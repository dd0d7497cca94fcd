"""Each page of the admin has a Help that leads to its subject, and the documents have every place that is named."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from survey.admin.report_pages import help_of_report
from survey.admin_base.admin_site import HELP
from survey.admin_base.navigation import GROUPS
from survey.admin_base.read_only_admin import HELP_OF_TABLES
from survey.documents import pages
from survey.documents.addresses import help_address
from tests import cast

ROOT = Path(__file__).resolve().parents[2]
# Beside AdminPage and the model's `help`: what templates, messages and other pages link to.
NAMED = re.compile(r"""help_(?:link|address)[( ]\s*f?["']([\w/.-]+\.md(?:#[\w-]+)?)["']""")
pytestmark = pytest.mark.any_database


def missing(place: str) -> str:
    """What is wrong with a place in the documents; empty if it is there."""
    name, _sharp, anchor = place.partition("#")
    document = pages.document(name.removesuffix(".md"))
    if document is None or not name.endswith(".md"):
        return f"there is no page {name}"
    return f"{name} has no heading #{anchor}" if anchor and anchor not in document.anchors else ""


def test_every_page_of_the_admin_has_a_place_in_the_documents_that_is_there() -> None:
    site: Any = admin.site
    places = {
        name: place if isinstance(place, str) else place({"name": "estimates", "group": "banks"})
        for name, place in site.help_places.items()
    }
    of_site = {pattern.name for pattern in site.get_urls() if getattr(pattern, "name", None)}
    without_page = {"logout", "autocomplete", "jsi18n", "view_on_site", "app_list"}
    assert of_site - without_page <= set(places) and set(places) > set(HELP)
    assert {name: missing(place) for name, place in places.items() if missing(place)} == {}
    assert not any(missing(group.help) for group in GROUPS)


def test_every_page_of_a_row_and_every_model_of_ours_leads_to_its_own_subject() -> None:
    """The page of all tables is where those lead that only "Advanced" lists."""
    site: Any = admin.site
    listed = {table.model for group in GROUPS for table in group.tables} | {"survey.study", "survey.job"}
    general = {model._meta.label_lower for model, page in site._registry.items() if page.help == HELP_OF_TABLES}
    assert general & listed == set()


def test_every_place_that_code_and_templates_link_to_is_there() -> None:
    files = [path for folder in ("survey", "frontend") for path in (ROOT / folder).rglob("*.*")]
    named = {
        (path.name, place)
        for path in files
        if path.suffix in (".py", ".html", ".jinja")
        for place in NAMED.findall(path.read_text(encoding="utf-8"))
    }
    assert named, "the pattern finds none of them"
    assert {(name, place): missing(place) for name, place in named if missing(place)} == {}


def test_a_report_of_another_package_leads_to_the_page_of_all() -> None:
    assert help_of_report({"name": "of_a_package"}) == "reading-reports.md"
    assert help_of_report({"name": "methods"}) == "reading-reports.md#methods-methods"


@pytest.mark.django_db
def test_help_stands_in_the_head_of_every_page(client: Client, admin_user: User) -> None:
    study = cast.open_study()
    login = client.get(reverse("admin:login")).content.decode()
    assert f'href="{help_address("tour.md#logging-in")}"' in login
    client.force_login(admin_user)
    for address, place in {
        reverse("admin:index"): "tour.md#home",
        reverse("admin:desk_group", args=["people"]): "tour.md#people",
        reverse("admin:survey_study_change", args=[study.pk]): "tour.md#the-page-of-a-study",
        reverse("admin:survey_study_members", args=[study.pk]): "rights.md#members",
        reverse("admin:survey_study_report", args=[study.pk, "methods"]): "reading-reports.md#methods-methods",
        reverse("admin:survey_sitting_changelist"): "tour.md#people",
        reverse("admin:cloze_writtenword_changelist"): "cloze.md",
        reverse("admin:auth_user_changelist"): "operation.md#researchers-accounts",
        reverse("admin:advanced"): HELP_OF_TABLES,
    }.items():
        page = client.get(address).content.decode()
        assert page.count('class="desk-help"') == 1, address
        assert f'class="desk-help" href="{help_address(place)}"' in page, address
