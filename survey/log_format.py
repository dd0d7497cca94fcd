"""How a log record becomes one line. Imports only the standard library: gunicorn and Celery use it too.

A panel sends people with their ids in the query string. These ids must not reach a log, whatever writes the record. So
the finished line is cleaned, including message, arguments and traceback.
"""

import logging
import re
import time

QUERY_STRING = re.compile(r"\?[^\s\"'<>|]+")
# The parameters of a form or an address, as Django prints them. All are removed: a panel may use any name.
QUERY_DICT = re.compile(r"<QueryDict: \{.*?\}>", re.DOTALL)
PERSONAL_VALUE = re.compile(
    r"((?:PROLIFIC_PID|SESSION_ID|STUDY_ID|participant\w*|assignmentId|workerId)['\"]?\s*[=:]\s*)"
    r"(\[?['\"][^'\"]*['\"]\]?|[^\s&\"',;)}\]]+)",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """`text` without query strings and without the values of parameters that name a person."""
    return PERSONAL_VALUE.sub(r"\1[removed]", QUERY_DICT.sub("<QueryDict>", QUERY_STRING.sub("?[removed]", text)))


class LineFormatter(logging.Formatter):
    """`2026-01-31T12:00:00Z INFO survey.services.stages.lifecycle: message`, a traceback joined with ` | `."""

    converter = staticmethod(time.gmtime)

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")

    def format(self, record: logging.LogRecord) -> str:
        return redact(" | ".join(super().format(record).splitlines()))
