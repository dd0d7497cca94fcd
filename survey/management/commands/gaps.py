"""`manage.py gaps SLUG`: a short name of `report SLUG gaps`."""

from survey.console.reports import ShortName
from survey.services.results.people_and_models.gaps_report import GapsReport
from survey.services.results.reports import GAPS


class Command(ShortName):
    help = "Where people and models part: mean gaps with intervals by parts of the items, and single items."
    report = GapsReport
    name = GAPS
