"""Figure 7 as a page: what `manage.py human_calibration` prints."""

from typing import Any

from django.http import QueryDict
from django.utils.safestring import SafeString, mark_safe

from survey.exceptions import HunchError, StateRefused
from survey.instruments.belief_update.reports import calibrating
from survey.instruments.belief_update.reports.calibrating import HumanCalibration
from survey.instruments.belief_update.reports.figure7 import calibration_svg
from survey.models import LanguageModel, Study

FILES = {"figure7.csv": "text/csv", "figure7.svg": "image/svg+xml"}


def found_for(study: Study, query: QueryDict) -> HumanCalibration:
    """
    Raises:
        HunchError: nobody has answered the bank's questions, or what was chosen does not go together.
    """
    studies = calibrating.people_studies(study)
    wanted = query.get("people_study", "") or (studies[0].slug if studies else "")
    chosen = next((one for one in studies if one.slug == wanted), None)
    if chosen is None:
        raise StateRefused(
            f"{wanted or 'No study'}: no study in which people answer questions of {study.bank} themselves; create one "
            "with the instrument own_answers on the same version of the bank"
        )
    return calibrating.human_calibration(
        study,
        people_study=chosen,
        models=query.getlist("model"),
        condition=[one for one in query.getlist("condition") if one],
    )


def context(study: Study, query: QueryDict) -> dict[str, Any]:
    """What the page shows; its address chooses the other study, language models and levels."""
    shown: dict[str, Any] = {
        "people_studies": calibrating.people_studies(study),
        "models": list(
            LanguageModel.objects.filter(answers__question__bank=study.bank_id)
            .distinct()
            .order_by("name")
            .values_list("name", flat=True)
        ),
        "conditions": [
            (one.factor, [(f"{one.factor}={level}", level) for level in one.levels]) for one in study.config.conditions
        ],
        "chosen": {name: query.getlist(name) for name in ("people_study", "model", "condition")},
        "query": query.urlencode(),
    }
    try:
        found = found_for(study, query)
    except HunchError as exc:
        return {**shown, "problem": exc.message}
    return {
        **shown,
        "found": found,
        "svg": figure(found),
        "files": list(FILES),
        "rows": [
            (
                line.name,
                f"{region.lower} to {region.upper} %",
                _percent(region.accuracy),
                _percent(region.standard_error),
                _percent(region.mean_belief / 100),
                (region.beliefs, region.respondents, region.questions, region.answerers, region.matches),
            )
            for line in found.lines
            for region in line.regions
        ],
    }


def figure(found: HumanCalibration) -> SafeString:
    """Made of numbers and of texts that are escaped where it is made."""
    return mark_safe(calibration_svg(found.lines))  # noqa: S308


def content(name: str, found: HumanCalibration) -> str:
    return calibration_svg(found.lines) if name.endswith(".svg") else "".join(calibrating.figure7_csv(found.lines))


def _percent(share: float) -> str:
    return "–" if share != share else f"{100 * share:.1f} %"
