"""Users are deactivated and not deleted: the audit must still say who did what."""

from typing import Any

from django.contrib import admin
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin
from django.http import HttpRequest

User = get_user_model()
admin.site.unregister(User)


@admin.register(User)
class KeptUserAdmin(UserAdmin):
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
