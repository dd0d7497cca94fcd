"""The contract of instruments: how wide it is, its page in the documents, and what every instrument says of itself."""

import inspect
from dataclasses import replace

import pytest

from survey.contracts import instruments
from survey.contracts.exports import Answered
from survey.contracts.instruments import Instrument
from survey.contracts.item_rows import ItemRows
from survey.models import Assignment, Item, Response
from tools import instruments_page

MOST_MEMBERS = 30
# Objects that an instrument has, or has not; what each can do is a class of its own.
CAPABILITIES = {
    "pairing",
    "learning",
    "priority",
    "practice",
    "controls",
    "estimates",
    "expectations",
    "preparation",
    "signals",
    "booklets",
    "label_reading",
    "verdicts",
    "export",
}


def test_an_instrument_has_at_most_thirty_members_beside_its_capabilities() -> None:
    members = {name for name in {**vars(Instrument), **inspect.get_annotations(Instrument)} if not name.startswith("_")}
    assert members >= CAPABILITIES
    assert len(members - CAPABILITIES) <= MOST_MEMBERS, "give what is new to a capability, or derive it from `rows`"


def test_answers_are_read_with_what_counts_of_them_in_one_statement() -> None:
    """Beliefs are read without what else was said; deeper relations are no part of it."""
    for item_rows, joined in (
        (ItemRows(item="x", questions=("q",), answers=("belief", "explanation"), labels=("belief",)), {"belief": {}}),
        (ItemRows(item="x", questions=("q",), answers=("written_word__scores",)), {"written_word": {}}),
        (ItemRows(), False),
    ):
        assert item_rows.with_answers(Response.objects.all()).query.select_related == joined


def test_its_page_is_what_the_classes_say() -> None:
    written = instruments_page.TARGET.read_text(encoding="utf-8")
    assert written == instruments_page.page(), "run python -m tests.renew instruments"


@pytest.mark.parametrize("name", instruments.names())
def test_earlier_defaults_are_values_that_the_option_still_takes(name: str) -> None:
    model = instruments.kind(name).options_model
    for option, values in model.earlier_defaults.items():
        assert option in model.model_fields, option
        for value in values:
            assert getattr(model.model_validate({option: value}), option) == value
            assert value != model.model_fields[option].default, f"{option}: {value!r} is the present default"


def test_an_item_without_a_question_is_read_by_its_own_row() -> None:
    rows = ItemRows(item="pair", answers=("belief",))
    assert rows.label_paths == rows.export_paths == ["responses__belief", "slot__item__pair"]
    assert rows.outcome_paths == rows.label_paths and replace(rows, outcomes_read_items=False).outcome_paths == [
        "responses__belief"
    ]
    assert rows.questions_of([]) == [] and ItemRows().export_paths == []


@pytest.mark.parametrize("name", instruments.names())
def test_its_rows_are_relations_that_there_are(name: str) -> None:
    """A wrong name would be noticed only where it is read."""
    rows = instruments.kind(name).rows
    queryset = Assignment.objects.all()
    str(rows.with_items(queryset).query)
    for path in {*rows.export_paths, *rows.label_paths, *rows.outcome_paths}:
        assert Assignment.objects.filter(**{f"{path}__isnull": False}).query


@pytest.mark.parametrize("name", instruments.names())
def test_the_facts_of_its_columns_are_lookups_that_there_are(name: str) -> None:
    export, rows = instruments.kind(name)().export, instruments.kind(name).rows
    facts = [fact for column in export.columns for fact in column.facts]
    lookups = [fact.lookup for fact in facts if isinstance(fact, Answered)]
    assert str(Response.objects.order_by(*export.response_order).values_list(*lookups).query)
    of_items = [f"{rows.item}__{fact}" for fact in facts if isinstance(fact, str)]
    assert of_items and str(Item.objects.values_list(*of_items).query)
