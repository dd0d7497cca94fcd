"""Users and groups: who may see and change whom. The audit records each change of rights and passwords.

Users are deactivated and not deleted: the audit must still say who did what. Only superusers give rights. Others with
the permission to change users see no superuser, and change nobody who has a permission that they lack, or a right in a
study: anyone who sets a password can log in with it.
"""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from survey.services.base import auditing, rights, second_factor
from survey.web.lockout import unlock

User = get_user_model()
# The pages of django-otp would show the secrets.
admin.site.unregister([User, Group, TOTPDevice, StaticDevice])

RIGHTS = ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")
MARKS = ("is_active", "is_staff", "is_superuser")


def _permissions(owner: Any) -> set[str]:
    """Those given to a user or group itself."""
    permissions = owner.user_permissions if isinstance(owner, User) else owner.permissions
    return {f"{app}.{name}" for app, name in permissions.values_list("content_type__app_label", "codename")}


def rights_of(user: Any) -> set[str]:
    """What was given to a user, each in a word."""
    marks = {mark.removeprefix("is_") for mark in MARKS if getattr(user, mark)}
    return marks | {f"group {name}" for name in user.groups.values_list("name", flat=True)} | _permissions(user)


def _has_more_than(user: Any, other: Any) -> bool:
    """Whether a user has a permission that the other lacks. Inactive users are as strong as they could be again."""
    has = [Permission.objects.filter(Q(user=account) | Q(group__user=account)) for account in (user, other)]
    return has[0].exclude(pk__in=has[1].values("pk")).exists()


class RecordsRights:
    """Writes what was given and taken to the audit, in the transaction of the change."""

    audited_as: ClassVar[str]
    given_to: ClassVar["staticmethod[[Any], set[str]]"]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        form.given_before = self.given_to(type(obj).objects.get(pk=obj.pk)) if change else set()
        super().save_model(request, obj, form, change)  # type: ignore[misc]

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)  # type: ignore[misc]
        before, after = form.given_before, self.given_to(form.instance)
        if before != after or not change:
            auditing.record(
                f"{'change' if change else 'add'}_{self.audited_as}",
                form.instance,
                by=request.user,
                via="admin",
                given=sorted(after - before),
                taken=sorted(before - after),
            )


class RecordsEdits:
    """Writes to the audit which fields Django's own form changed, and never their values."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        parts = [change for part in message if isinstance(part, dict) for change in part.values()]
        if fields := [field for change in parts for field in change.get("fields", ())]:
            auditing.record("admin_change", obj, by=request.user, via="admin", fields=fields)
        return super().log_change(request, obj, message)  # type: ignore[misc]


@admin.register(User)
class KeptUserAdmin(RecordsRights, RecordsEdits, UserAdmin):
    help = "operation.md#researchers-accounts"
    audited_as = "user"
    given_to = staticmethod(rights_of)
    actions = ("unlock_users", "remove_second_factors")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        users = super().get_queryset(request)
        return users if request.user.is_superuser else users.filter(is_superuser=False)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        may = bool(super().has_change_permission(request, obj))
        if not may or obj is None or request.user.is_superuser or obj.pk == request.user.pk:
            return may
        if obj.is_superuser or _has_more_than(obj, request.user):
            return False
        return not rights.reaches_more_than(obj, request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = [*super().get_readonly_fields(request, obj), "audit_name"]
        if request.user.is_superuser:
            return fields
        # Others may deactivate people whom they may change, and not themselves.
        mine = obj is not None and obj.pk == request.user.pk
        return [*fields, "last_login", "date_joined", *(name for name in RIGHTS if mine or name != "is_active")]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj is None else [*fieldsets, ("Audit", {"fields": ["audit_name"]})]

    @admin.display(description="audit name")
    def audit_name(self, user: Any) -> str:
        """As entries of the audit name the user."""
        return auditing.actor_of(user)

    def get_actions(self, request: HttpRequest) -> Any:
        return super().get_actions(request) if request.user.is_superuser else {}

    @admin.action(description="Unlock: let them try to log in again at once")
    def unlock_users(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        unlocked = [user for user in queryset if unlock(user, by=request.user, via="admin")]
        self.message_user(request, f"{len(unlocked)} of {len(queryset)} had failed to log in; they can try again.")

    @admin.action(description="Remove their codes: they have lost the device")
    def remove_second_factors(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        removed = [user for user in queryset if second_factor.remove(user, by=request.user, via="admin")]
        self.message_user(request, f"{len(removed)} of {len(queryset)} were asked for codes, and no longer are.")

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        match = request.resolver_match
        if isinstance(match, ResolverMatch) and match.url_name == "auth_user_password_change":
            auditing.record("change_password", obj, by=request.user, via="admin")
        return super().log_change(request, obj, message)


@admin.register(Group)
class GuardedGroupAdmin(RecordsRights, RecordsEdits, GroupAdmin):
    """Who changes a group gives rights to all in it, maybe to themselves: superusers alone."""

    help = "operation.md#researchers-accounts"
    audited_as = "group"
    given_to = staticmethod(_permissions)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_superuser)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_superuser)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        for group in queryset:
            auditing.record("delete_group", group, by=request.user, via="admin", taken=sorted(_permissions(group)))
        return super().log_deletions(request, queryset)
