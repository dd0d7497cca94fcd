"""Money in templates. Imports only Django."""

from django import template

register = template.Library()


@register.filter
def cents(amount: int | None) -> str:
    """Whole cents as units: 250 is 2.50."""
    return "–" if amount is None else f"{amount / 100:.2f}"
