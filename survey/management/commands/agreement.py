"""`manage.py agreement SLUG`: a short name of `report SLUG agreement`."""

from survey.console.reports import ShortName
from survey.services.results.people_and_models.agreement_report import AgreementReport
from survey.services.results.reports import AGREEMENT


class Command(ShortName):
    help = "How far people and models agree on the same items, next to the ceiling that people’s noise sets."
    report = AgreementReport
    name = AGREEMENT
