"""`manage.py methods SLUG`: a study's methods section; a short name of `report SLUG methods`."""

from survey.console.reports import ShortName
from survey.services.results.methods.methods_section import Methods
from survey.services.results.reports import METHODS


class Command(ShortName):
    help = (
        "Sampling, people and estimates in words and tables. --out writes Markdown, LaTeX, figures, a text to "
        "preregister and a page for an ethics board."
    )
    report = Methods
    name = METHODS
