"""Ids that name a person never reach a log."""

import logging
import sys

import pytest

from survey import gunicorn_config
from survey.log_format import LineFormatter, redact

PERSON = "5f1a2b3c4d5e6f7a8b9c0d1e"


def record(message: str, *args: object, **extra: object) -> logging.LogRecord:
    return logging.LogRecord("survey", logging.WARNING, __file__, 1, message, args, None, **extra)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        f"Error handling request /s/demo/?PROLIFIC_PID={PERSON}&STUDY_ID={PERSON}&SESSION_ID={PERSON}",
        f"Not Found: /s/demo/?participant={PERSON}",
        f"<WSGIRequest: GET '/s/demo/?prolific_pid={PERSON}'>",
        f"refused: PROLIFIC_PID={PERSON}",
        f"<QueryDict: {{'PROLIFIC_PID': ['{PERSON}'], 'SESSION_ID': ['{PERSON}']}}>",
        f'{{"participant_id": "{PERSON}"}}',
    ],
)
def test_the_ids_of_a_person_are_removed(text: str) -> None:
    assert PERSON not in redact(text)


def test_arguments_and_tracebacks_are_cleaned_too() -> None:
    line = LineFormatter().format(record("at %s", f"/s/demo/?PROLIFIC_PID={PERSON}"))
    assert PERSON not in line and "/s/demo/" in line
    try:
        raise ValueError(f"SESSION_ID={PERSON}")
    except ValueError:
        failed = record("it failed")
        failed.exc_info = sys.exc_info()
    line = LineFormatter().format(failed)
    assert PERSON not in line and "ValueError" in line


def test_a_record_is_one_line() -> None:
    assert "\n" not in LineFormatter().format(record("first\nsecond"))


def test_other_text_stays() -> None:
    assert (
        redact("stage 2 of demo: 300 of 300 slots; is it full? no")
        == "stage 2 of demo: 300 of 300 slots; is it full? no"
    )


def test_gunicorn_logs_neither_query_string_nor_referrer() -> None:
    names = gunicorn_config.access_log_format
    assert not any(part in names for part in ("%(q)s", "%(r)s", "%(f)s", "%({"))
    assert gunicorn_config.logconfig_dict["formatters"]["line"]["()"] == "survey.log_format.LineFormatter"
