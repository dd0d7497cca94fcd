"""A user's permissions are read by one statement, and they are those that Django's own backend finds."""

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User

from survey.permissions_at_once import PermissionsAtOnce
from tests.statements import counted

pytestmark = pytest.mark.django_db


def user_of(kind: str) -> User:
    user = User.objects.create_user("somebody", is_superuser=kind == "superuser", is_active=kind != "inactive")
    group, other = Group.objects.create(name="exporters"), Group.objects.create(name="others")
    group.permissions.add(Permission.objects.get(codename="export_study"), Permission.objects.get(codename="run_study"))
    other.permissions.add(Permission.objects.get(codename="amend_study"))
    if kind != "nobody":
        user.groups.add(group)
        user.user_permissions.add(
            Permission.objects.get(codename="run_study"), Permission.objects.get(codename="pay_people")
        )
    User.objects.create_user("another").groups.add(other)
    return User.objects.get(pk=user.pk)


@pytest.mark.parametrize("kind", ["member", "nobody", "superuser", "inactive"])
def test_they_are_those_of_djangos_backend(kind: str) -> None:
    expected = ModelBackend().get_all_permissions(user_of(kind))
    user = User.objects.get(username="somebody")
    found, statements = counted(lambda: PermissionsAtOnce().get_all_permissions(user))
    assert found == expected
    assert len(statements) == (0 if kind == "inactive" else 1)
    assert len(found) == {"member": 3, "nobody": 0, "inactive": 0}.get(kind, Permission.objects.count())


def test_a_user_is_asked_by_one_statement_also_where_something_is_refused() -> None:
    user = user_of("member")
    asked = ("survey.run_study", "survey.export_study", "survey.amend_study")
    found, statements = counted(lambda: [user.has_perm(name) for name in asked])
    assert found == [True, True, False] and len(statements) == 1
    assert user.has_module_perms("survey") and not user.has_module_perms("auth")
