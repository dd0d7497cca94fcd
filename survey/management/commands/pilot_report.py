"""`manage.py pilot_report SLUG`: what a study's pilot showed; a short name of `report SLUG pilot`."""

from survey.console.reports import ShortName
from survey.services.results.pilots.pilot_report import Pilot
from survey.services.results.reports import PILOT


class Command(ShortName):
    help = "What a pilot showed: minutes and drop-outs by screen, failed checks, remarks, and pay by the hour."
    report = Pilot
    name = PILOT
