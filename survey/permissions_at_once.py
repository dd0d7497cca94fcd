"""A user's permissions, their own and those of their groups, read by one statement instead of two.

Django's own backend stays: it logs users in, and finds here what it would read itself. Every request to the admin reads
them, so the statement stands here as it is sent: to put it together each time would take seven times as long.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpRequest

OF_A_USER = """
SELECT django_content_type.app_label, auth_permission.codename
FROM auth_permission JOIN django_content_type ON django_content_type.id = auth_permission.content_type_id
WHERE auth_permission.id IN (
    SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %s
    UNION ALL
    SELECT permission_id FROM auth_group_permissions
    JOIN auth_user_groups ON auth_user_groups.group_id = auth_group_permissions.group_id
    WHERE auth_user_groups.user_id = %s
)
"""


class PermissionsAtOnce:
    def authenticate(self, request: HttpRequest | None) -> None:
        """Nobody logs in here."""

    def get_all_permissions(self, user: Any, obj: Any = None) -> set[str]:
        if not user.is_active or user.is_anonymous or obj is not None:
            return set()
        if not hasattr(user, "_perm_cache"):  # Where Django's own backend keeps them, too.
            user._perm_cache = {f"{app}.{name}" for app, name in _granted(user)}
        known: set[str] = user._perm_cache
        return known

    def has_perm(self, user: Any, permission: str, obj: Any = None) -> bool:
        return permission in self.get_all_permissions(user, obj)

    def has_module_perms(self, user: Any, app_label: str) -> bool:
        return any(name.partition(".")[0] == app_label for name in self.get_all_permissions(user))


def _granted(user: Any) -> Iterable[tuple[str, str]]:
    """The apps and names of the permissions."""
    if user.is_superuser:
        return Permission.objects.order_by().values_list("content_type__app_label", "codename")
    with connection.cursor() as cursor:
        cursor.execute(OF_A_USER, [user.pk, user.pk])
        found: list[tuple[str, str]] = cursor.fetchall()
    return found
