"""`manage.py calibration SLUG`: a short name of `report SLUG calibration`."""

from survey.console.reports import ShortName
from survey.services.results.people_and_models.calibration_report import ChancesReport
from survey.services.results.reports import CALIBRATION


class Command(ShortName):
    help = "Log score in bits, bias and reliability of people, models, judges and predictors, on one scale."
    report = ChancesReport
    name = CALIBRATION
