"""What a page reads of a sitting: the rows as they are, in statements that were compiled once."""

import uuid
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Model
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from survey.exceptions import SittingUnknown
from survey.instruments.belief_update.models import Belief
from survey.models import Assignment, AttentionAnswer, Response, Score, Sitting
from survey.services.base.compiled import CompiledQuery, insert, update
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


def test_rows_are_inserted_and_updated_as_save_does(visitor: cast.Visitor) -> None:
    assignment = Assignment.objects.filter(sitting=visitor.sitting).earliest("position")
    facts = {"shown_ms": 12, "text": 'ä "quoted" \\ %s'}
    rows = []
    for number, store in enumerate((Model.save, insert), start=1):
        response = Response(
            assignment=assignment,
            number=number,
            screen="prior",
            screen_sha256="0" * 64,
            answered_at=timezone.now().replace(microsecond=7),
            server_ms=0,
            client=facts,
        )
        store(response)
        belief = Belief(response=response, kind="prior", value=60, direction="", value_changes=3)
        store(belief)
        score = Score(response=response, value=Decimal("0.25"), rule="brier", version="1")
        store(score)
        assert response.pk and not response._state.adding
        rows.append((response, belief, score))
    for saved, inserted in zip(*rows, strict=True):
        by_save, ours = (type(row).objects.get(pk=row.pk) for row in (saved, inserted))
        for field in by_save._meta.concrete_fields:
            if field.name in ("id", "response", "number", "answered_at"):
                assert getattr(ours, field.attname) == getattr(inserted, field.attname)
            else:
                assert getattr(ours, field.attname) == getattr(by_save, field.attname), field.name
    inserted_response = rows[1][0]
    inserted_response.client, inserted_response.screen, inserted_response.server_ms = {"a": [1]}, "posterior", 9
    update(inserted_response, "client", "server_ms")
    stored = Response.objects.get(pk=inserted_response.pk)
    assert (stored.client, stored.server_ms, stored.screen) == ({"a": [1]}, 9, "prior")
    assert Response.objects.get(pk=rows[0][0].pk).client == facts


def test_a_row_that_is_gone_is_not_updated_in_silence(visitor: cast.Visitor) -> None:
    gone = Score(pk=2**40, value=Decimal(1))
    with pytest.raises(DatabaseError, match="not there to be updated"):
        update(gone, "value")


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
