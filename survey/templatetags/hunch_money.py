"""Money in templates. Imports Django and the results kit alone."""

from django import template

from survey.figures.words import money

register = template.Library()


@register.filter
def cents(amount: int | None) -> str:
    """Whole cents as units: 250 is 2.50."""
    return money(amount)
