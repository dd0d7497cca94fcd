"""Sums that somebody types before money is spent."""

from django.http import HttpRequest

from survey.figures.words import money


def sum_error(request: HttpRequest, cents: int, currency: str) -> str:
    """Empty if the sum that was typed is what it costs now: it may have grown since the page was shown."""
    wanted = money(cents)
    typed = request.POST.get("sum", "").replace(currency, "").replace(",", ".").strip()
    return "" if typed == wanted else f"Type the sum as it is now: {wanted}. Nothing was done."
