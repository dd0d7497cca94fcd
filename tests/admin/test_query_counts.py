"""The statements of every admin list, as query_counts.json has them: at most 10, for any number of rows."""

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client

from survey.models import Study
from tests.statements import QueryCounts

from .test_pages import INSTALLED_FOR_TESTS, address, busy, many_rows_of_everything, our_models

pytestmark = [pytest.mark.django_db, pytest.mark.query_counts("admin"), pytest.mark.slow]
MOST = 10
__all__ = ["busy"]


def test_every_list_takes_as_many_statements_as_are_committed(
    busy: Study,
    as_superuser: Client,
    superuser: User,
    query_counts: QueryCounts,
) -> None:
    many_rows_of_everything(busy, superuser)
    query_counts.count("GET index", partial(as_superuser.get, "/admin/"))
    for model in our_models():
        if model._meta.app_label not in INSTALLED_FOR_TESTS:
            page = partial(as_superuser.get, address(model, "changelist"))
            assert query_counts.count(f"GET {model._meta.label_lower}", page).status_code == 200
    answers = partial(as_superuser.get, f"/admin/survey/study/{busy.pk}/answers/")
    assert query_counts.count("GET answers of a study", answers).status_code == 200
    for name, number in query_counts.rows.items():
        assert number <= MOST, (name, number)
