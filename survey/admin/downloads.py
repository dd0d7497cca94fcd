"""Files that the admin's buttons bring. Imports only models.

A table is guarded for spreadsheets, unless somebody chooses the byte-exact file, which the API and the commands give
too. The two have different names.
"""

from django.http import HttpRequest

from survey.models import Study

EXACT = "exact"  # the name of the button that asks for it


def is_guarded(request: HttpRequest, file: str) -> bool:
    return file.endswith(".csv") and EXACT not in request.POST


def save_as(study: Study, file: str, *, guarded: bool) -> str:
    """The header `Content-Disposition`."""
    name = f"{file.removesuffix('.csv')}.spreadsheet.csv" if guarded else file
    return f'attachment; filename="{study.slug}-{name}"'
