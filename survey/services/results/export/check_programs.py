"""The programs of an export that compute every figure again with R. Imports models and below."""

from collections.abc import Iterable
from pathlib import Path

from survey.contracts import instruments
from survey.models import Study

CHECK = "check.R"
NAMES = (CHECK, "formulas.R")
READS = ("design", "figures", "estimates")  # tables
SCRIPTS = Path(__file__).with_name("scripts")


def check_programs(study: Study, tables: Iterable[str] = READS) -> dict[str, str]:
    """By name. None for a study without estimates, or where the export has not all `tables` (without an ending) that
    they read."""
    if instruments.of_study(study).estimates is None or not set(READS) <= set(tables):
        return {}
    return {name: (SCRIPTS / name).read_text(encoding="utf-8") for name in NAMES}
