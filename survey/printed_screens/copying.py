"""A temporary, open copy of a study with items of every kind. Use it in a transaction that is rolled back."""

import copy
import secrets
from collections.abc import Sequence

import numpy as np
from django.utils import timezone

from survey.contracts import instruments
from survey.contracts.instruments import ANOTHER_PERSON, REPEAT, Instrument
from survey.exceptions import StateRefused
from survey.models import Booklet, CompletionCode, Item, Question, Slot, Stage, Stratum, Study
from survey.services.banks.eligibility import eligible_questions
from survey.services.base.seeds import derive, generator

CANDIDATES = 200
MAX_KINDS = 6


def open_copy(study: Study) -> tuple[Stage, dict[int, str]]:
    """The copy's stage with one booklet, and the kind of each item by its primary key.

    The copy's completion codes are words that name their purpose, not the codes that people receive.

    Raises:
        StateRefused: the bank has no questions for the study.
    """
    made = copy.copy(study)
    made.pk, made._state.adding, made.test_of = None, True, None
    made.slug = f"screens-{secrets.token_hex(8)}"
    made.save()
    CompletionCode.objects.bulk_create(
        CompletionCode(study=made, outcome=outcome, code=f"CODE-{outcome.upper().replace('_', '-')}")
        for outcome in CompletionCode.Outcome.values
    )
    now = timezone.now()
    stage = Stage.objects.create(
        study=made,
        index=1,
        state=Stage.State.OPEN,
        seed=derive(study.seed, "screens"),
        plan_sha256="0" * 64,
        planned_at=now,
        opened_at=now,
    )
    questions = eligible_questions(made)
    if len(questions) < instruments.of_study(made).needs.questions:
        raise StateRefused(
            f"{study.slug}: {study.bank} has too few questions for it ({len(questions)}) to show its items"
        )
    return stage, _fill(stage, questions)


def _fill(stage: Stage, questions: Sequence[Question]) -> dict[int, str]:
    """One booklet of the study's size: an item of each kind first, then each control, then more of the first ones."""
    study, instrument = stage.study, instruments.of_study(stage.study)
    rng = generator(stage.seed, "items")
    rows = instrument.draw_candidates(questions=questions, size=CANDIDATES, rng=rng).rows
    items, kinds = _store(study, instrument, rows, questions)
    first = [kinds.index(kind) for kind in dict.fromkeys(kinds)][:MAX_KINDS]
    others = [place for place in range(len(items)) if place not in first]
    controls = _controls(study, instrument, questions, rng)
    size = study.config.sitting.items
    sampled = [items[place] for place in [*first, *others]][: max(len(first), size - len(controls))]
    booklet = Booklet.objects.create(stage=stage, number=1)
    stratum = Stratum.objects.create(stage=stage, name="all", size=len(items), slots=len(sampled))
    slots = [
        Slot(
            stage=stage,
            item=item,
            role=Slot.Role.SAMPLED,
            stratum=stratum,
            inclusion_probability=1.0,
            pool_probability=1.0,
        )
        for item in sampled
    ]
    places = len(first)
    slots[places:places] = [
        Slot(stage=stage, item=item, role=Slot.Role.CONTROL, control_kind=kind) for kind, item in controls
    ]
    for number, slot in enumerate(slots, start=1):
        slot.booklet, slot.number, slot.position = booklet, number, number
    Slot.objects.bulk_create(slots)
    known = {item.pk: kind for item, kind in zip(items, kinds, strict=True)}
    return {**known, **{item.pk: kind for kind, item in controls}}


def _store(
    study: Study, instrument: Instrument, rows: np.ndarray, questions: Sequence[Question]
) -> tuple[list[Item], list[str]]:
    """The items of these rows, and the kind of each: the first thing by which the instrument distinguishes items."""
    by_key = {instrument.item_key(row, questions): place for place, row in enumerate(rows)}
    items = Item.objects.bulk_create([Item(study=study, key=key) for key in by_key])
    instrument.create_typed_items(items=items, rows=rows[list(by_key.values())], questions=questions)
    divisions = instrument.estimates.divisions(items) if instrument.estimates is not None else {}
    labels = next(iter(divisions.values()), np.full(len(items), "item"))
    return items, [str(label) for label in labels]


def _controls(
    study: Study, instrument: Instrument, questions: Sequence[Question], rng: np.random.Generator
) -> list[tuple[str, Item]]:
    roles = study.config.roles
    controls = instrument.controls
    if not roles.controls or controls is None:
        return []
    items = []
    for kind in roles.control_kinds or controls.kinds:
        if kind in (REPEAT, ANOTHER_PERSON):  # They would show the same screens again.
            continue
        row = controls.draw(kind=kind, count=1, questions=questions, rng=rng)
        key = instrument.item_key(row[0], questions)
        item = Item.objects.filter(study=study, key=key).first()
        if item is None:
            item = Item.objects.create(study=study, key=key)
            instrument.create_typed_items(items=[item], rows=row, questions=questions)
        items.append((kind, item))
    return items
