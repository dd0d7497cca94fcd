"""The values of an instrument's columns, made of the facts that were read."""

from types import SimpleNamespace
from typing import Any

from survey.contracts.exports import SETTING, AnswerColumn, Answered, AnswerExport, AnswerPlace
from survey.services.results.export.answer_values import AnswerValues

PLACE = AnswerPlace("", "en", "0" * 32, 1, 3, {"tone": "warm"})
TEXT, MORE = Answered("word__text"), Answered("word__scores__rule")
EVERY = Answered("word__text", every=True)
FIRST = Answered("word__text", screens=("first",))


def column(name: str, of: Any, value: Any = None) -> AnswerColumn:
    return AnswerColumn(name, "text", "What it is.", of=of, value=value)


def values(*columns: AnswerColumn, item: list[Any] | None = None, responses: list[tuple[Any, ...]]) -> list[Any]:
    instrument: Any = SimpleNamespace(export=AnswerExport(), rows=SimpleNamespace(item="row"))
    return AnswerValues(instrument, columns).values(item, responses, PLACE)


def test_what_is_read_of_responses_is_each_lookup_once_and_the_row_that_decides_which_they_are() -> None:
    instrument: Any = SimpleNamespace(export=AnswerExport(), rows=SimpleNamespace(item="row"))
    made = AnswerValues(instrument, (column("a", TEXT), column("b", (MORE, TEXT)), column("c", FIRST)))
    assert made.lookups == ["word", "word__text", "word__scores__rule"]
    assert AnswerValues(instrument, (column("c", FIRST),)).lookups == ["word__text"]


def test_the_last_response_with_such_a_row_counts_or_the_last_on_a_screen_or_each() -> None:
    columns = (column("last", TEXT), column("first", FIRST), column("all", EVERY, ",".join))
    responses = [("first", 1, "so"), ("again", 2, "it"), ("thanks", None, None)]
    assert values(*columns, responses=responses) == ["it", "so", "so,it"]
    assert values(*columns, responses=responses[1:]) == ["it", None, "it"]
    assert values(*columns, responses=responses[2:]) == values(*columns, responses=[]) == [None, None, None]


def test_a_last_response_without_a_fact_does_not_take_it_from_an_earlier_one() -> None:
    responses = [("first", 1, "so", 1), ("again", 2, "it", None)]
    assert values(column("text", TEXT), column("rule", MORE), responses=responses) == ["it", None]


def test_a_value_is_empty_where_one_of_its_facts_is() -> None:
    columns = (column("known", ("of", TEXT), "{}{}".format), column("half", (TEXT, MORE), "{}{}".format))
    assert values(*columns, item=["bank "], responses=[("first", 1, "it", None)]) == ["bank it", None]
    assert values(*columns, item=None, responses=[("first", 1, "it", 0)]) == [None, "it0"]


def test_a_columns_setting_is_of_the_answers_place() -> None:
    assert values(column("tone", SETTING, lambda place: place.levels["tone"]), responses=[]) == ["warm"]


def test_what_follows_from_the_item_alone_comes_at_its_columns_place() -> None:
    columns = (column("text", TEXT), column("id", "id"), column("both", (TEXT, "name"), "{}{}".format))
    # `AnswerValues.items` gives the columns that are about the item alone, then the other facts of it.
    assert values(*columns, item=["q1", "n"], responses=[("first", 1, "it")]) == ["it", "q1", "itn"]
