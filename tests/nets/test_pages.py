"""Every page of the console and every address of the API that can be read, of a running and of a finished study.

    python -m tests.renew pages

writes the texts in `data/pages` again. The addresses come from the URL configuration, so a new page is there by itself.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.models import ApiToken, Study
from survey.services.base.groups import ensure_researchers_group
from tests import cast
from tests.admin.test_pages import busy_study
from tests.authorization.test_table import address_of, routes
from tests.golden import store

from .recording import Script, script

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.any_database]
__all__ = ["script"]

# Other orders of the same rows.
ORDERS = re.compile(r'href="(\?sort=-?\w+)"')
OF_A_STUDY = "admin/survey/study/<int:pk>/"
# Forms for one's own account, and what other tests hold: documents, the API's own description, pages without a study,
# whether a broker is there.
LEFT_OUT = re.compile(
    r"docs/|hooks/|healthz|static|tokens/|logo/|api/v1/(schema|docs|openapi)|s/|.*(history|delete|jsi18n|autocomplete|password"
    r"|login|logout|first-account|second-factor|/add/|/r/)"
)


def addresses(study: Study, *, of_study: bool) -> Iterator[str]:
    for route in sorted(set(routes())):
        if (
            not route.endswith("<path:object_id>/")
            and not LEFT_OUT.match(route)
            and route.startswith(OF_A_STUDY) == of_study
            and not route.startswith("^")
        ):
            yield address_of(route, study)


def owner_of(study: Study, *, may_all: bool) -> User:
    """Somebody who owns the study, and may also do everything else or what researchers may."""
    user = User.objects.create_user("owner", is_staff=True, is_superuser=may_all)
    user.groups.add(ensure_researchers_group())
    cast.join(user, study)
    return user


def look_at(script: Script, study: Study, *, of_study: bool, api: bool = False, may_all: bool = False) -> None:
    user = owner_of(study, may_all=may_all)
    client = Client()
    if api:
        token = ApiToken.issue(user=user, scope=ApiToken.Scope.RUN)[1]
        client = Client(headers={"Authorization": f"Token {token}"})
    else:
        client.force_login(user)
    for address in addresses(study, of_study=of_study):
        if address.startswith("/api/") == api:
            page = script.page(client, address)
            if of_study and page.status_code == 200 and not page.streaming:
                for query in list(dict.fromkeys(ORDERS.findall(page.content.decode()))):
                    script.page(client, f"{address}{query}", most=2)


@pytest.mark.parametrize("part", ["study", "others", "api"])
def test_running(script: Script, part: str) -> None:
    look_at(script, script.prepare(busy_study), of_study=part == "study", api=part == "api", may_all=True)


@pytest.mark.parametrize("slug", ["beliefs", "words"])
def test_finished(script: Script, settings: Any, slug: str) -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    script.prepare(store.load_with_instruments)
    look_at(script, Study.objects.select_related("bank").get(slug=slug), of_study=True)
