"""What a page reads of a sitting: the rows as they are, in statements that were compiled once."""

import uuid

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from survey.exceptions import SittingUnknown
from survey.models import Assignment, AttentionAnswer, Response, Sitting
from survey.services.base.compiled import CompiledQuery
from survey.services.sittings.queries import locked_sitting, sitting_for, standing_of
from tests import cast

pytestmark = pytest.mark.django_db

SITTINGS = CompiledQuery(
    lambda number, public_id: Sitting.objects.filter(stage__study=number, public_id=public_id).select_related("stage"),
    number=int,
    public_id=uuid.UUID,
)


@pytest.fixture
def visitor() -> cast.Visitor:
    return cast.Visitor(cast.open_stage().study).to_items()


def test_a_compiled_query_gives_the_rows_of_its_queryset_for_any_values() -> None:
    stage = cast.open_stage()
    sittings = [cast.Visitor(stage.study).sitting for _person in range(2)]
    for sitting in [*sittings, *sittings]:
        with CaptureQueriesContext(connection) as queries:
            (row,) = SITTINGS.rows(number=stage.study_id, public_id=sitting.public_id)
            assert row.stage.index == 1
        assert len(queries) == 1
        stored = Sitting.objects.get(pk=sitting.pk)
        for field in Sitting._meta.concrete_fields:
            assert getattr(row, field.attname) == getattr(stored, field.attname), field.attname
    assert SITTINGS.first(number=stage.study_id + 1, public_id=sittings[0].public_id) is None


def test_a_compiled_query_whose_value_is_not_in_the_statement_is_refused() -> None:
    careless = CompiledQuery(lambda number: Sitting.objects.filter(step=3), number=int)
    with pytest.raises(ValueError, match="not every one of number"):
        careless.rows(number=3)


@pytest.mark.django_db(transaction=True)
def test_a_row_is_locked_inside_a_transaction_only() -> None:
    sitting = cast.Visitor(cast.open_stage().study).sitting
    with transaction.atomic():
        assert locked_sitting(sitting.pk) == sitting
    with pytest.raises(transaction.TransactionManagementError):
        locked_sitting(sitting.pk)


def test_the_study_file_stays_in_the_database(visitor: cast.Visitor) -> None:
    sitting_for(visitor.sitting.token).config  # noqa: B018 - once, so that this process keeps it
    with CaptureQueriesContext(connection) as queries:
        sitting = sitting_for(visitor.sitting.token, slug="small")
        assert sitting.config.slug == sitting.stage.study.slug == "small"
        assert sitting.shown_config.sitting.items == 3
    assert len(queries) == 1
    assert "source_text" not in queries[0]["sql"] and '"stored_config"' not in queries[0]["sql"]


def test_a_sitting_of_another_study_is_unknown(visitor: cast.Visitor) -> None:
    with pytest.raises(SittingUnknown):
        sitting_for(visitor.sitting.token, slug="another")


def test_where_a_sitting_stands_follows_its_answers(visitor: cast.Visitor) -> None:
    seen = []
    for _screen in range(6):
        at = standing_of(visitor.reload())
        assert at.assignment is not None
        stored = list(Response.objects.filter(assignment=at.assignment).order_by("number"))
        assert at.responses == stored == list(at.assignment.responses.all())
        assert [response.assignment for response in at.responses] == [at.assignment] * len(stored)
        seen.append((at.assignment.position, at.total, at.is_last, len(at.responses)))
        visitor.post(value=50)
    assert seen == [(item, 3, item == 3, number) for item in (1, 2, 3) for number in (0, 1)]
    at = standing_of(visitor.reload())
    assert (at.assignment, at.responses, at.total) == (None, [], 0)


CHECK = {
    "name": "read",
    "after_item": 2,
    "kind": "nonsense",
    "text": "Have you been on the moon?",
    "options": ["No", "Yes"],
}
CONDITIONS = [
    {"factor": "framing", "levels": ["plain", "warm"]},
    {
        "factor": "mode",
        "levels": ["direction", "blank"],
        "per": "item",
        "options": {mode: {"answer_mode": mode} for mode in ("direction", "blank")},
    },
]


def test_levels_and_attention_checks_are_read_with_the_item() -> None:
    study = cast.open_study(conditions=CONDITIONS, sitting={"items": 3, "attention_checks": [CHECK]})
    sitting = cast.begin(study)
    cast.walk(sitting, until="item")
    for was_asked in (False, True):
        sitting = sitting_for(sitting.token)
        at = standing_of(sitting)
        assert at.assignment is not None
        with CaptureQueriesContext(connection) as queries:
            levels = at.assignment.levels()
        assert len(queries) == 0
        assert levels == Assignment.objects.get(pk=at.assignment.pk).levels()
        assert set(levels) == {"framing", "mode"} and sitting.levels() == {"framing": levels["framing"]}
        assert at.checks == (frozenset({"read"}) if was_asked else frozenset())
        fields = {"position": 1, "answer": 0, "shown": [0, 1], "passed": True, "at": sitting.last_seen_at}
        AttentionAnswer.objects.get_or_create(sitting=sitting, name="read", defaults=fields)
