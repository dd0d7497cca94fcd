"""Ids that name a person never reach a log."""

import json
import logging
import re
import runpy
import sys

import pytest

from survey import gunicorn_config, settings
from survey.logs.log_format import JsonFormatter, LineFormatter, redact

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


@pytest.mark.parametrize("formatter", [LineFormatter, JsonFormatter])
def test_what_a_visitor_sends_writes_no_control_character(formatter: type[logging.Formatter]) -> None:
    """A terminal would obey ESC; NUL, BEL, C1, a turned line and half a surrogate are no text either."""
    sent = "/s/\x1b[31mred\x07\x00\x7f\x9b2J\x85\r\u2028\u202e\udc80/é"
    line = formatter().format(record('"GET %s" 404', sent))
    assert line.isprintable() and line.encode() and "[31mred" in line and "é" in line
    assert all(f"\\u{ord(character):04x}" in line for character in "\x1b\x00\x7f\x9b\x85\u202e\udc80") or (
        json.loads(line)["message"] == f'"GET {sent}" 404'
    )


def test_other_text_stays() -> None:
    assert (
        redact("stage 2 of demo: 300 of 300 slots; is it full? no")
        == "stage 2 of demo: 300 of 300 slots; is it full? no"
    )


def test_gunicorn_writes_through_our_formatter() -> None:
    assert gunicorn_config.logconfig_dict["formatters"]["line"]["()"] == "survey.logs.log_format.LineFormatter"


# As JSON


def test_json_has_the_same_ids_removed_and_nothing_beside_what_is_named() -> None:
    failed = record("at %s", f"/s/demo/?PROLIFIC_PID={PERSON}")
    failed.request = f"<WSGIRequest: {PERSON}>"
    try:
        raise ValueError(f"first line\nSESSION_ID='{PERSON}'")
    except ValueError:
        failed.exc_info = sys.exc_info()
    line = JsonFormatter().format(failed)
    entry = json.loads(line)
    assert PERSON not in line and "\n" not in line
    assert set(entry) == {"at", "level", "logger", "message", "exception"}
    assert (entry["level"], entry["logger"], entry["message"]) == ("WARNING", "survey", "at /s/demo/?[removed]")
    assert "ValueError: first line" in entry["exception"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry["at"])


@pytest.mark.parametrize(("chosen", "formatter"), [("json", "JsonFormatter"), ("", "LineFormatter")])
def test_the_setting_chooses_the_format(chosen: str, formatter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUNCH_LOG", chosen)
    read = runpy.run_path(settings.__file__)
    assert read["LOGGING"]["formatters"]["line"]["()"] == f"survey.logs.log_format.{formatter}"
