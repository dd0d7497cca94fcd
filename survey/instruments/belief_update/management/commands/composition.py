"""`manage.py composition SLUG`: how beliefs after several evidence questions add up.

A short name of `report SLUG composition`.
"""

from survey.console.reports import ShortName

from ...reports.composition.report import CompositionReport


class Command(ShortName):
    help = (
        "How beliefs after several evidence questions add up: the slope on the sum of single changes in log-odds, the "
        "weight of each step, order effects, and which way to put evidence together fits best."
    )
    report = CompositionReport
    name = "composition"
