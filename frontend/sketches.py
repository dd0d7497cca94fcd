"""Pages of a study that is not stored, for its authors: by the same templates and the same code as respondents' pages.

Nothing of them can be sent. A question is drawn from the bank in a transaction that is rolled back; all other pages
need no row.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

from survey.contracts.panels import PanelIds
from survey.exceptions import HunchError
from survey.models import AssignmentCondition, Bank, Sitting, Stage, Study
from survey.printed_screens.copying import open_copy
from survey.printed_screens.files import WITHOUT_SCRIPT, Changes
from survey.printed_screens.walking import undone
from survey.services.sittings.enrolment import begin_sitting, claim_booklet
from survey.study_file import StudyConfig

from .views import consent_page, step_page, welcome_page

NOWHERE = -1  # The key of a row that there is not.
FIRST = "first"  # The page before all blocks.
CHANGES: Changes = (
    *WITHOUT_SCRIPT,
    (re.compile(r"<noscript>.*?</noscript>", re.DOTALL), ""),
    (re.compile(r" data-with-script hidden"), ""),
    (re.compile(r'<input type="hidden"[^>]*>'), ""),
)


def page(
    request: HttpRequest,
    *,
    text: str,
    config: StudyConfig,
    bank: Bank | None,
    place: str,
    language: str,
    levels: Mapping[str, str],
) -> HttpResponse:
    """The page of a study file as people would read it.

    Args:
        text: of the file; `config` is what it says, as far as it can be read.
        bank: the one that its questions are drawn from; None where there is none.
        place: "first", or the number of a block, from 0.
        levels: by factor, the level under which it is read; the first one where none is given, or none that there is.
    """
    study = _unstored(text, config, bank)
    language = language if language in config.languages else config.languages[0]
    with translation.override(language):
        try:
            response = _shown(request, study, place, language, levels)
        except (HunchError, LookupError, ValueError, AttributeError) as exc:
            reason = exc.message if isinstance(exc, HunchError) else "This page cannot be shown yet."
            return HttpResponse(reason, content_type="text/plain; charset=utf-8")
    html = response.content.decode()
    for pattern, by in CHANGES:
        html = pattern.sub(by, html)
    shown = HttpResponse(html)
    # Opened in a tab of its own, it sends nothing either.
    shown.headers["Content-Security-Policy"] = "sandbox; default-src 'self'; img-src 'self' data:; form-action 'none'"
    return shown


def _unstored(text: str, config: StudyConfig, bank: Bank | None) -> Study:
    study = Study(
        pk=NOWHERE,
        slug=config.slug,
        title=config.title,
        bank=bank,
        instrument=config.instrument.kind,
        seed=config.seed,
        stored_config=config.model_dump(mode="json", warnings=False),
        source_text=text,
        source_sha256=hashlib.sha256(text.encode()).hexdigest(),
    )
    unknown: Any = study
    unknown.config = config
    unknown.completion_code = lambda outcome: "CODE"  # None is drawn before the study is made.
    return study


def _shown(request: HttpRequest, study: Study, place: str, language: str, wanted: Mapping[str, str]) -> HttpResponse:
    config = study.config
    if place == FIRST:
        return welcome_page(request, study, language)
    block = min(int(place), len(config.blocks) - 1)
    kind = config.blocks[block].kind
    if kind == "consent":
        return consent_page(request, study, study.config_in(language), words="")
    levels = {}
    for condition in config.conditions:
        level = wanted.get(condition.factor, "")
        levels[condition.factor] = level if level in condition.levels else condition.levels[0]
    if kind == "items":
        return _question(request, study, block, language, levels)
    now = timezone.now()
    stage = Stage(pk=NOWHERE, study=study, index=1, seed=study.seed)
    sitting = Sitting(pk=NOWHERE, stage=stage, language=language, block=block, step=1, started_at=now, last_seen_at=now)
    if kind == "end":
        sitting.state = Sitting.State.COMPLETE
    sitting.known_levels = levels
    return step_page(request, sitting)


def _question(request: HttpRequest, study: Study, block: int, language: str, levels: Mapping[str, str]) -> HttpResponse:
    """The first page of an item, for which rows are made and taken back."""
    if study.bank is None:
        raise LookupError("no bank")
    now = timezone.now()
    with undone():
        stage, _kinds = open_copy(study)
        ids = PanelIds(study.config.panel.kind, *(secrets.token_hex(12) for _id in range(3)))
        sitting = begin_sitting(study=stage.study, ids=ids, language=language, simulated=True)
        claim_booklet(sitting, now=now)
        sitting.block = block
        sitting.save(update_fields=["block"])
        for factor, level in levels.items():
            sitting.conditions.filter(factor=factor).update(level=level)
            AssignmentCondition.objects.filter(assignment__sitting=sitting, factor=factor).update(level=level)
        rows = Sitting.objects.select_related("stage__study__bank", "respondent", "booklet")
        return step_page(request, rows.get(pk=sitting.pk))
