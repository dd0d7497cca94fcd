"""No browser and no proxy keeps an export, a refused body or an unknown page.

That none keeps what any address answers is held where all of them are asked (tests/authorization).
"""

from typing import Any

import pytest
from django.test import Client

from survey.models import Study

pytestmark = pytest.mark.slow


def is_kept(response: Any) -> bool:
    return "no-store" not in response.headers.get("Cache-Control", "")


@pytest.mark.thorough
def test_an_export_is_not_kept(study: Study, as_superuser: Client) -> None:
    for name in ("answers.csv", "codebook.md", "forms.csv"):
        response = as_superuser.post(f"/admin/survey/study/{study.pk}/export/{name}")
        assert response.status_code == 200 and not is_kept(response)


def test_a_refused_body_and_an_unknown_page_are_not_kept(db: None, settings: Any) -> None:
    settings.HUNCH_MAX_BODY = 10
    client = Client()
    assert not is_kept(client.post("/api/v1/sitting/", "x" * 100, content_type="text/plain"))
    assert not is_kept(client.get("/nowhere"))
