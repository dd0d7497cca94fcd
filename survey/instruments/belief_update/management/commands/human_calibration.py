"""`manage.py human_calibration SLUG --people-study SLUG2`: do people foresee what people and models get right?

A short name of `report SLUG human_calibration people_study=SLUG2`.
"""

from survey.console.reports import ShortName

from ...reports.calibration.report import CalibrationReport


class Command(ShortName):
    help = (
        "Accuracy of people and of language models by what a belief study's respondents expected of them (figure 7): "
        "in the regions 0-30, 30-70 and 70-100 % of posterior belief, with standard errors."
    )
    report = CalibrationReport
    name = "human_calibration"
