"""Small parts that many others rest on, by values computed by hand: fees, spans of files, contracts' data."""

import errno
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from django.db import InterfaceError, InternalError, OperationalError, ProgrammingError
from django.test import RequestFactory

from survey.contracts import panels
from survey.contracts.measures import Measure
from survey.contracts.panels import PanelIds, PostingCost, SubmissionAtPanel, SubmissionStatus
from survey.contracts.tables import Column
from survey.exceptions import EntryRefused, FileErrors, Problem, StorageAway
from survey.fees import FeeRates
from survey.services.results.people_and_models.unreadable_replies import notes_on_unreadable, unreadable_by_model
from survey.storage import outages
from survey.web.ranged_files import span_of


@pytest.mark.parametrize(
    ("cents", "fee", "vat", "expected"),
    [
        (100, 2500, 2000, (25, 5)),
        (2, 2500, 0, (1, 0)),  # Half a cent counts as a whole one.
        (1, 2500, 0, (0, 0)),
        (1000, 3333, 2000, (333, 67)),  # VAT on the rounded fee: 66.6.
        (0, 2500, 2000, (0, 0)),
        (200, 4280, 2000, (86, 17)),
    ],
)
def test_fees_and_their_vat_are_rounded_half_up(cents: int, fee: int, vat: int, expected: tuple[int, int]) -> None:
    rates = FeeRates(fee=fee, vat=vat, fixed=3000)
    assert (rates.fee_on(cents), rates.vat_on(cents)) == expected
    assert rates.on(cents) == sum(expected), "the fixed fee is the posting's"


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        ("", (0, 10)),
        ("bytes=0-", (0, 10)),
        ("bytes=3-", (3, 10)),
        ("bytes=3-5", (3, 6)),
        ("bytes=3-3", (3, 4)),
        ("bytes=3-99", (3, 10)),
        ("bytes=9-", (9, 10)),
        ("bytes=10-", None),
        ("bytes=5-4", None),
        ("bytes=-4", (6, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=-0", None),
        ("bytes=-", (0, 10)),
        ("bytes=0-1,3-4", (0, 10)),
        ("lines=0-1", (0, 10)),
        ("bytes= 3 - 5", (3, 6)),
        ("bytes=" + "9" * 19 + "-", None),
    ],
)
def test_a_span_of_a_file_is_what_was_asked_for(asked: str, span: tuple[int, int] | None) -> None:
    headers = {"Range": asked} if asked else {}
    request = RequestFactory().get("/", headers=headers)
    assert span_of(request, 10, '"now"') == span
    before = RequestFactory().get("/", headers={**headers, "If-Range": '"before"'})
    assert span_of(before, 10, '"now"') == (0, 10), "of a file that has changed the whole is sent"
    same = RequestFactory().get("/", headers={**headers, "If-Range": '"now"'})
    assert span_of(same, 10, '"now"') == span


def test_the_last_bytes_of_an_empty_file_cannot_be_sent() -> None:
    assert span_of(RequestFactory().get("/", headers={"Range": "bytes=-5"}), 0, "") is None


def caused(exc: Exception, **facts: Any) -> Exception:
    exc.__cause__ = type("Cause", (Exception,), facts)()
    return exc


@pytest.mark.parametrize(
    ("exc", "is_outage"),
    [
        (StorageAway("x"), True),
        (OSError(errno.ENOSPC, "full"), True),
        (OSError(errno.EROFS, "read-only"), True),
        (OSError(errno.ENOENT, "none"), False),
        (OSError("10 requested and 4 written"), True),
        (ValueError("10 requested and 4 written"), False),
        (ValueError("No space left on device"), True),
        (caused(OperationalError(), sqlite_errorcode=5), True),
        (caused(OperationalError(), sqlite_errorcode=5 | 1 << 8), True),
        (caused(OperationalError(), sqlite_errorcode=1), False),
        (caused(OperationalError(), sqlstate="57P01"), True),
        (caused(OperationalError(), sqlstate="54000"), False),
        (OperationalError(), True),
        (InterfaceError(), True),
        (caused(InternalError(), sqlstate="25006"), True),
        (caused(InternalError(), sqlstate="XX000"), False),
        (ProgrammingError(), False),
    ],
)
def test_an_outage_is_nobodys_mistake(exc: Exception, is_outage: bool) -> None:
    assert outages.is_outage(exc) is is_outage


def measure(unit: str = "share", **more: Any) -> Measure:
    return Measure("m", "M", unit, np.array([0.0, 1.0]), **more)


def test_a_figure_lies_where_its_values_do() -> None:
    share, ratio = measure(), measure(per=np.array([1.0, 1.0]))
    points, unknown = measure("points", span=(-100.0, 50.0)), measure("points")
    assert [figure.range for figure in (share, ratio, points, unknown)] == [(0, 1), None, (-100, 50), None]
    assert [figure.scale for figure in (share, ratio, points)] == ["logit", "plain", "plain"]
    assert [figure.range_of_difference for figure in (share, ratio, points)] == [(-1, 1), None, (-150, 150)]


def test_a_columns_type_follows_from_its_words() -> None:
    kinds = ("0 or 1", "milliseconds", "percentage points", "number", "share", "0 to 1", "time, UTC", "JSON", "text")
    types = [Column("c", kind, "").type for kind in kinds]
    assert types == ["whole", "whole", "whole", "number", "number", "number", "time", "json", "text"]
    assert Column("c", "number", "", whole=True).type == "whole"


def test_each_status_of_a_submission_means_one_thing_for_money() -> None:
    status = SubmissionStatus
    assert [state for state in status if state.is_paid] == [status.APPROVED, status.PARTIALLY_APPROVED]
    assert [state for state in status if state.is_under_way] == [status.RESERVED, status.UNDER_WAY]
    assert [state for state in status if state.ended_unpaid] == [status.RETURNED, status.TIMED_OUT]
    assert PostingCost(rewards=100, bonuses=20, fees=3, currency="USD").total == 123


def test_what_a_panel_calls_its_people_is_not_printed() -> None:
    ids = PanelIds("prolific", "PERSON", "STUDY", "SUBMISSION")
    row = SubmissionAtPanel(
        "SUBMISSION", "PERSON", "posting", "APPROVED", completed_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    for record in (ids, row, panels.Bonus("SUBMISSION", "PERSON", 5), panels.Demographics("SUBMISSION", "PERSON")):
        assert "PERSON" not in repr(record) and "SUBMISSION" not in repr(record)
    event = panels.Event("e", "kind", "SUBMISSION", person="PERSON")
    assert "PERSON" not in repr(event) and "SUBMISSION" not in repr(event)
    assert "LINK" not in repr(panels.InviteLink(1, 2, "LINK", *(datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))))


class Fake(panels.Panel):
    contract = panels.CONTRACT
    name = title = "fake"

    def parameter_names(self, config: Any) -> dict[str, str]:
        return {"person": "pid", "submission": "sid"}

    def proof_names(self, config: Any) -> list[str]:
        return ["sig"]

    def token_name(self, config: Any) -> str:
        return "token"


def test_a_parameter_that_counts_has_one_value() -> None:
    panel, config = Fake(), None
    said: Any = panel.said_once
    assert said(config, {"pid": ["a", " a ", ""], "x": ["1", "2"], "sid": "s"}) == {"pid": "a", "x": "2", "sid": "s"}
    for name in ("pid", "sid", "sig", "token"):
        with pytest.raises(EntryRefused, match=name) as refused:
            said(config, {name: ["a", "b"]})
        assert (refused.value.code, refused.value.status) == ("bad_panel_ids", 400)
    assert said(config, {"pid": []}) == {}


def test_who_came_is_read_off_an_address_that_is_filled_in() -> None:
    study: Any = type("Study", (), {"config": None})()
    panel = Fake()
    assert panel.recognise(study, {"pid": " a1 ", "sid": "s1"}) == PanelIds("fake", "a1", "", "s1")
    assert panel.recognise(study, {"other": "x"}) is None and panel.recognise(study, {"pid": " ", "sid": ""}) is None
    for pid in ("", "{{%PID%}}", "PID", "pid", "a b", "a" * 500):
        with pytest.raises(EntryRefused, match="pid is missing or was not filled in"):
            panel.recognise(study, {"pid": pid, "sid": "s1"})


def test_a_panel_without_an_api_pays_from_a_list() -> None:
    kinds = {name: panels.get(name).pays_from_a_list for name in ("open", "links", "generic", "prolific")}
    assert kinds == {"open": False, "links": True, "generic": True, "prolific": False}
    missing = panels.find("not-there")
    assert missing.problem and not missing.pays_from_a_list


def test_problems_of_a_file_are_lines_for_people() -> None:
    assert str(Problem("f.csv", 3, "id", "is empty")) == "f.csv:3: id: is empty"
    assert str(Problem("", 3, "", "x")) == "3: x" and str(Problem("f", None, "id", "x")) == "f: id: x"
    errors = FileErrors((Problem("f", line, "", "x") for line in range(1, 4)), shown=2)
    assert errors.lines == ["f:1: x", "f:2: x", "and 1 more problem"] and len(errors.problems) == 3
    assert FileErrors((Problem("f", 1, "", "x") for _line in range(4)), shown=2).lines[-1] == "and 2 more problems"


def test_replies_that_cannot_be_read_are_counted_by_model_and_by_these_questions() -> None:
    rows = [("owl", 1, 2), ("owl", 2, 0), ("cat", 1, 0), ("owl", 3, 5)]
    answers: Any = SimpleNamespace(order_by=lambda *_names: answers, values_list=lambda *_names: rows)
    answers.graded = lambda: answers
    assert unreadable_by_model(answers) == {"owl": (3, 7), "cat": (1, 0)}
    of_two = unreadable_by_model(answers, questions={1, 2})
    assert of_two == {"owl": (2, 2), "cat": (1, 0)}
    assert unreadable_by_model(answers, questions=()) == {}
    (note,) = notes_on_unreadable(of_two)
    assert note == "owl: 2 of its replies to 2 questions could not be read; they count as not right"
