"""Makes the golden studies. Only a change that means to alter stored facts runs it again:

DJANGO_SETTINGS_MODULE=tests.settings python manage.py shell -c "from tests.golden.make import main; main()"

Where only what is read off them has changed, such as a further file of the export, `python -m tests.renew golden` is
enough.

Three studies on one bank: beliefs with everything that a study can have, beliefs about real answers, and own answers.
"""

from datetime import timedelta
from typing import Any

import numpy as np
from django.conf import settings
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from survey.contracts.panels import PanelIds
from survey.models import LanguageModel, ModelAnswer, Sitting, Stage, Study
from survey.services.banks.question_flags import flag_questions
from survey.services.sittings import expiry, withdrawal
from survey.services.sittings.answering import advance
from survey.services.sittings.comments import report_question
from survey.services.sittings.enrolment import begin_sitting
from survey.services.sittings.flow import current_step
from survey.services.stages import jobs, lifecycle
from survey.services.studies import amending
from tests import cast, databases
from tests.golden import store

BELIEFS: dict[str, Any] = {
    "slug": "beliefs",
    "panel": {**cast.PROLIFIC, "reward": 300, "currency": "USD", "spending_cap": 100000},
    "candidates": {"size": 600},
    "roles": {"holdout": 0.2, "controls": 0.2},
    "sitting": {
        "items": 5,
        "attention_checks": [
            {"name": "look", "after_item": 2, "kind": "instruction", "text": "Choose b.", "options": ["b", "a"]}
        ],
    },
    "instrument": {"kind": "belief_update", "options": {"explanation": 0.5, "own_answer": True, "confidence": True}},
    "predictor": {"name": "same_task"},
    "stages": [
        {"sittings": 3, "pilot": True},
        {"sittings": 12},
        {"sittings": 12, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}},
        {"sittings": 12, "design": {"kind": "epsilon_greedy", "epsilon": 0.25}},
    ],
    "conditions": [
        {"factor": "framing", "levels": ["plain", "warm"]},
        {
            "factor": "mode",
            "levels": ["blank", "keep"],
            "per": "item",
            "options": {"keep": {"answer_mode": "keep_button"}},
        },
    ],
    "flags": {"attention": {"failed": 1}, "same_answers": {"items": 3, "share": 1.0}},
    "exclusions": {"flags": ["attention"]},
}
REAL: dict[str, Any] = {
    "slug": "real",
    "candidates": {"kind": "exhaustive"},
    "roles": {"holdout": 0.25, "controls": 0.2},
    "instrument": {"kind": "belief_update", "options": {"evidence": "real", "language_model": "parrot"}},
    "stages": [{"sittings": 8}, {"sittings": 8}],
}
ANSWERS: dict[str, Any] = {
    "slug": "answers",
    "instrument": {"kind": "own_answers", "options": {"answers_per_question": 4}},
    "sitting": {"items": 8},
    "stages": [{"sittings": 6}],
}


def answers(step: Any, rng: np.random.Generator) -> dict[str, Any]:
    """What somebody enters: beliefs that change now and then, and answers that are sometimes right."""
    if step.kind == "attention":
        (check,) = step.checks
        wanted = 0 if rng.random() < 0.9 else 1
        return {check.name: str(check.order.index(wanted) + 1)}
    if step.kind != "item":
        return cast.answers_for(step)
    if step.screen.name == "answer":
        asked = step.assignment.slot.item.asked_question.question
        right = str(asked.answer) if rng.random() < 0.6 else "something else"
        return {"answer": "A" if "A. " in asked.text else right, "confidence": str(int(rng.integers(0, 101)))}
    if step.screen.name == "prior":
        value = int(rng.integers(20, 91))
    elif step.screen.name == "posterior":
        value = int(step.screen.parts["prior"]["value"])
        value = int(np.clip(value + rng.integers(-20, 21), 0, 100)) if rng.random() < 0.5 else value
    else:
        value = 0
    fields = cast.answers_for(step, value=str(value))
    if "confidence" in step.screen.form().fields:
        fields["confidence"] = "80"
    return fields


def person(study: Study, number: int, rng: np.random.Generator, *, leave_after: int = 10_000) -> Sitting:
    panel = study.config.panel.kind
    ids = (
        PanelIds(panel, f"P{number:04}", "S1", f"SUB{number:04}")
        if panel == "prolific"
        else PanelIds(panel, f"P{number}")
    )
    sitting = begin_sitting(study=study, ids=ids)
    for count in range(leave_after):
        sitting.refresh_from_db()
        step = current_step(sitting)
        if step.kind == "end":
            break
        timing = {"client_shown_ms": str(100 + count), "client_submitted_ms": str(4000 + count)}
        advance(sitting=sitting, step=step.number, data={**answers(step, rng), **timing})
        if step.kind == "item" and count % 17 == 3:
            report_question(
                sitting=sitting, position=step.position, screen=step.screen.name, text=f"Odd, says {number}."
            )
    return sitting


def run_stage(study: Study, index: int, rng: np.random.Generator, numbers: Any, *, leavers: int = 0) -> None:
    stage = lifecycle.open_stage(Stage.objects.select_related("study__bank").get(study=study, index=index))
    for _leaver in range(leavers):
        left = person(study, next(numbers), rng, leave_after=9)
        Sitting.objects.filter(pk=left.pk).update(last_seen_at=timezone.now() - timedelta(hours=3))
    expiry.expire_sittings()
    while True:
        expiry.deal_make_up_booklets(stage)
        if not stage.booklets.filter(claimed_at__isnull=True).exists():
            break
        person(study, next(numbers), rng)
    jobs.run_inline(lifecycle.close_stage(stage))


def main() -> None:
    settings.HUNCH_IDENTITY_KEY = store.IDENTITY_KEY
    call_command("migrate", verbosity=0)
    numbers = iter(range(1, 10_000))
    rng = np.random.default_rng(2026)
    bank = cast.bank(120)
    for name, share in (("parrot", 0.6), ("owl", 0.85)):
        model = LanguageModel.objects.create(name=name)
        for question in bank.questions.order_by("position"):
            ModelAnswer.objects.create(
                language_model=model, question=question, correct=bool(rng.random() < share), response="A", stated="A"
            )
    studies = {config["slug"]: cast.study(**config) for config in (BELIEFS, REAL, ANSWERS)}
    beliefs = studies["beliefs"]
    run_stage(beliefs, 1, rng, numbers)
    flag_questions(bank=bank, external_ids=["q7"], kind="broken", reason="two answers are right")
    run_stage(beliefs, 2, rng, numbers, leavers=2)
    changed = cast.study_text(**{**BELIEFS, "title": "A study of the cast, amended"})
    amending.amend(beliefs, text=changed, source_name="cast.toml", reason="a better title")
    beliefs = Study.objects.get(slug="beliefs")
    run_stage(beliefs, 3, rng, numbers, leavers=1)
    run_stage(beliefs, 4, rng, numbers)
    gone = Sitting.objects.filter(stage__study=beliefs, stage__index=2, state="complete").order_by("pk").first()
    withdrawal.withdraw(respondent=gone.respondent, now=timezone.now(), reason="asked by mail")
    for index in (1, 2):
        run_stage(studies["real"], index, rng, numbers, leavers=1)
    run_stage(studies["answers"], 1, rng, numbers)
    store.write_database()
    # The dump cuts times to milliseconds: what is compared is read off the dump.
    with transaction.atomic(), databases.unguarded():
        call_command("flush", interactive=False, verbosity=0)
    store.load_database()
    print("Now: python -m tests.renew golden")
