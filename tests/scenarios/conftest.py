"""The fake panel, and somebody who owns every study and may spend."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client

from survey.services.base.groups import ensure_researchers_group
from tests import cast
from tests.panels.conftest import fake, signing_key

__all__ = ["fake", "signing_key"]
MAY = ("pay_people", "amend_study", "withdraw_people")


@pytest.fixture(autouse=True)
def _empty_cache() -> None:
    cache.clear()


@pytest.fixture
def researcher(db: None) -> Any:
    user = User.objects.create_user("researcher", is_staff=True)
    user.groups.add(ensure_researchers_group())
    user.user_permissions.set(Permission.objects.filter(codename__in=MAY))
    with cast.owner_of_every_study(user):
        yield user


@pytest.fixture
def browser_of(researcher: Any) -> Client:
    """The researcher's pages, without a script."""
    client = Client()
    client.force_login(researcher)
    return client
