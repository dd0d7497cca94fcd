"""The words of the console are people's words: labels with units in place of the program's names."""

from typing import Any

import pytest

from survey.admin.report_pages import Field, in_labels
from survey.contracts.reports import Argument, Report
from survey.services.base import job_kinds
from tests.survey.results.test_every_report import every_report

LONGEST = 62  # characters of a label: it stands in one line of a phone


def reports_of_all() -> list[tuple[str, Report]]:
    entries: list[Any] = [parameters.values[1] for parameters in every_report()]
    return [(entry.name, entry.load()) for entry in entries]


def test_every_argument_of_a_report_or_job_has_a_label_in_words_on_pages() -> None:
    arguments = [(name, argument) for name, report in reports_of_all() for argument in report.arguments]
    arguments += [(kind.name, argument) for kind in job_kinds.all_kinds() for argument in kind.arguments]
    assert len(arguments) > 60
    wrong = [
        f"{name}: {argument.name}: {argument.label!r}"
        for name, argument in arguments
        if not argument.label
        or "_" in argument.label
        or not argument.label[0].isupper()
        or len(argument.label) > LONGEST
    ]
    assert wrong == []


def test_a_choice_stands_on_the_page_under_its_words_and_is_sent_by_its_value() -> None:
    argument = Argument("marked", "", choices=lambda _study: {"leave_out": "left out", "keep": "count too"})
    assert Field(argument, argument.choices_in(None), ()).options == [  # type: ignore[arg-type]
        ("leave_out", "left out"),
        ("keep", "count too"),
    ]
    assert Field(argument, ["a", "b"], ()).options == [("a", "a"), ("b", "b")]


def test_a_message_on_a_page_names_the_label_that_stands_there() -> None:
    fee = Argument("fee", "", label="The panel's fee (share, 0 to 1)")
    said = in_labels("fee: '9' is not a number from 0 to 5\nother: stays: as it is", [fee])
    assert said == "The panel's fee (share, 0 to 1): '9' is not a number from 0 to 5\nother: stays: as it is"
