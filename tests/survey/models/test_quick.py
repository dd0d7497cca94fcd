"""Models whose rows are written at once have the same rows as Django's own way gives."""

from typing import Any

import pytest
from django.apps import apps
from django.db import models

from survey.models import Question, Sitting
from survey.models.quick import QuickRows
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.every_database]
QUICK = [model for model in apps.get_models() if issubclass(model, QuickRows)]


def as_django_reads(row: models.Model) -> dict[str, Any]:
    fields = type(row)._meta.concrete_fields
    instance = type(row)(*(row.__dict__[field.attname] for field in fields))
    return {name: value for name, value in instance.__dict__.items() if name != "_state"}


@pytest.mark.slow
@pytest.mark.parametrize("model", QUICK, ids=lambda model: model.__name__)
def test_a_row_is_what_django_makes_of_it(model: Any) -> None:
    cast.Visitor(cast.open_stage().study).finish()
    row = model._default_manager.first()
    assert row is not None
    assert {name: value for name, value in row.__dict__.items() if name != "_state"} == as_django_reads(row)
    assert (row._state.adding, row._state.db) == (False, "default")
    row.refresh_from_db()
    row.save()
    assert model._default_manager.get(pk=row.pk) == row


def test_deferred_columns_are_read_when_they_are_asked_for() -> None:
    cast.Visitor(cast.open_stage().study).finish()
    question = Question.objects.defer("text").first()
    assert question is not None and "text" not in question.__dict__
    assert question.text == Question.objects.get(pk=question.pk).text


def test_related_rows_are_joined_as_before() -> None:
    cast.Visitor(cast.open_stage().study).finish()
    sitting = Sitting.objects.select_related("respondent", "booklet", "consent").get()
    assert sitting.respondent.pk == sitting.respondent_id and sitting.consent.sitting is sitting
    assert sitting.booklet is not None and sitting.booklet.pk == sitting.booklet_id
