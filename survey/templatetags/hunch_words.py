"""Numbers with a unit in templates. Imports Django and the results kit alone."""

from django import template

from survey.figures import words

register = template.Library()


@register.filter
def cents(amount: int | None) -> str:
    """Whole cents as units: 250 is 2.50."""
    return words.money(amount)


@register.filter
def duration(seconds: float | None) -> str:
    """40 s, 12 min, 2 h 10 min."""
    return words.duration(seconds)
