"""How a log record becomes one line, for people or for programs. gunicorn and Celery use it too. Imports `request_ids`.

A panel sends people with their ids in the query string. These ids must not reach a log, whatever writes the record. So
the finished line is cleaned, including message, arguments and traceback.
"""

import json
import logging
import re
import time

from survey.logs import request_ids

QUERY_STRING = re.compile(r"\?[^\s\"'<>|]+")
# The parameters of a form or an address, as Django prints them. All are removed: a panel may use any name.
QUERY_DICT = re.compile(r"<QueryDict: \{.*?\}>", re.DOTALL)
PERSONAL_VALUE = re.compile(
    r"((?:PROLIFIC_PID|SESSION_ID|STUDY_ID|participant\w*|assignmentId|workerId)['\"]?\s*[=:]\s*)"
    r"(\[?['\"][^'\"]*['\"]\]?|[^\s&\"',;)}\]]+)",
    re.IGNORECASE,
)


# What a terminal obeys, what breaks or turns a line, and halves of characters that no file can hold.
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def redact(text: str) -> str:
    """`text` without query strings and without the values of parameters that name a person."""
    return PERSONAL_VALUE.sub(r"\1[removed]", QUERY_DICT.sub("<QueryDict>", QUERY_STRING.sub("?[removed]", text)))


def escape(text: str) -> str:
    """`text` without control characters: anyone who sends a path or a header writes no line of their own into a log."""
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class LineFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z INFO survey.services.stages.lifecycle: message`, a traceback joined with ` | `.

    The id of the request or task, if there is one, follows the level.
    """

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(request)s%(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        request_id = request_ids.current.get()
        record.request = f"[{request_id}] " if request_id else ""
        return escape(redact(" | ".join(super().format(record).split("\n"))))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `at`, `level`, `logger`, `message`, and where there are any `request_id`, `exception`.

    Nothing else of a record is written: its other attributes may be whole requests.
    """

    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "at": f"{self.formatTime(record, '%Y-%m-%dT%H:%M:%S')}.{int(record.msecs):03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "request_id": request_ids.current.get(),
            "message": redact(record.getMessage()),
            "exception": redact(self.formatException(record.exc_info)) if record.exc_info else "",
        }
        return escape(json.dumps({name: value for name, value in entry.items() if value}, ensure_ascii=False))
