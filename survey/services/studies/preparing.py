"""Preparing a study's texts as a job: language models read them, tokens are drawn, embeddings are stored."""

from collections.abc import Mapping
from typing import Any

from survey.contracts import instruments
from survey.contracts.preparation import Preparation
from survey.models import Study
from survey.processes import queues
from survey.services.base import rights
from survey.services.base.auditing import record
from survey.services.base.job_kinds import JobKind, Work
from survey.services.base.rights import Right

NAME = "prepare"


def _preparation_of(study: Study) -> Preparation | None:
    if instruments.problem_with(study.instrument):
        return None
    return instruments.of_study(study).preparation


def _forbids(study: Study, by: Any) -> str:
    """A model behind a server may cost money, and a path on this one is nobody's who edits a study file."""
    preparation = _preparation_of(study)
    if preparation is None or not preparation.outside or rights.may_collect_answers(by):
        return ""
    return (
        f"{preparation.outside[0]} is behind a server, or is a path on this one; that needs the permission to ask "
        "language models (survey.collect_answers), so let somebody who has it press the button"
    )


def _make(work: Work) -> Mapping[str, Any]:
    preparation = _preparation_of(work.study)
    if preparation is None:  # The file was changed since somebody asked.
        return {}
    counts = dict(preparation.prepare(work.progress))
    record("prepare_texts", work.study, by=work.asked_by, via="worker", texts=preparation.texts, read=counts)
    return {"texts": preparation.texts, "read": counts}


KIND = JobKind(
    name=NAME,
    title="Prepare the texts",
    summary=(
        "What takes too long for a page is computed of the study's texts and stored: language models read them, tokens "
        "and embeddings are made. What is there already is passed over."
    ),
    right=Right.RUN,
    make=_make,
    suits=lambda study: _preparation_of(study) is not None,
    forbids=_forbids,
    queue=queues.SCORE,
)
