"""Tables of the results kit on pages."""

from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse

register = template.Library()


@register.filter
def admin_page(row: Any) -> str:
    """The address of a row's page in the admin; empty if there is no row, or no page for such rows."""
    if row is None:
        return ""
    try:
        return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    except NoReverseMatch:
        return ""
