"""Errors for callers, one class for each way a caller may react. Imports only the request's id of survey."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from survey.logs import request_ids


class HunchError(Exception):
    """An error for the caller: a code for programs, a sentence for people, an HTTP status."""

    code = "error"
    status = 400
    # More values for programs, next to the code and the sentence.
    details: Mapping[str, str] = {}
    # After how many seconds the same request may succeed; 0 where time changes nothing.
    retry_after = 0

    def __init__(
        self, message: str, *, code: str | None = None, status: int | None = None, retry_after: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.status = status or self.status
        self.retry_after = retry_after


class NotFound(HunchError):
    code = "not_found"
    status = 404


class EntryRefused(HunchError):
    """A person cannot begin: closed, full, already taken part, or a broken link."""

    code = "entry_refused"
    status = 403


class SittingUnknown(HunchError):
    """The token belongs to no sitting here: it is missing, forged, or from another study."""

    code = "sitting_unknown"
    status = 403


class OutOfOrder(HunchError):
    """A POST for a step that has not been reached."""

    code = "out_of_order"
    status = 409


class StateRefused(HunchError):
    """The study or stage is not in a state that allows this."""

    code = "state_refused"
    status = 409


class PlanRefused(HunchError):
    """The plan that was asked for cannot be drawn or dealt."""

    code = "plan_refused"
    status = 422


class PayTooLow(HunchError):
    """People would be paid less than their panel allows."""

    code = "pay_too_low"
    status = 422


class ComputeAway(HunchError):
    """The machines that should compute cannot be reached, or were lost. The same work succeeds later."""

    code = "compute_away"
    status = 503

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=60)


class ComputeRefused(HunchError):
    """The machines that should compute cannot do it until somebody changes something there."""

    code = "compute_refused"
    status = 503


class StorageAway(HunchError):
    """The files of predictors and plans cannot be reached. The same work succeeds later."""

    code = "storage_away"
    status = 503

    def __init__(self, message: str) -> None:
        super().__init__(message, retry_after=60)


class StorageRefused(HunchError):
    """The files of predictors and plans cannot be used until somebody changes a setting or a right."""

    code = "storage_refused"
    status = 503


class FieldErrors(HunchError):
    """Answers that were not accepted: for each field, what is wrong and how to fix it."""

    code = "invalid"
    status = 422

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        self.errors = {name: [str(message) for message in messages] for name, messages in errors.items()}
        super().__init__("; ".join(f"{name}: {' '.join(messages)}" for name, messages in self.errors.items()))


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a file. `str()` is the line for people: `FILE:LINE: field: what to do`.

    Only commands and pages turn it into text. `file` is empty if the text did not come from a named file; `line` is
    None and `field` is empty if the problem has none.
    """

    file: str
    line: int | None
    field: str
    message: str

    def __str__(self) -> str:
        place = ":".join(part for part in (self.file, str(self.line or "")) if part)
        return ": ".join(part for part in (place, self.field, self.message) if part)


class FileErrors(HunchError):
    """A file that was refused, with everything that is wrong with it.

    Args:
        shown: the most problems that the message shows; `problems` holds all of them.
    """

    code = "bad_file"
    status = 422

    def __init__(self, problems: Iterable[Problem], *, shown: int | None = None) -> None:
        self.problems = tuple(problems)
        self.lines = [str(problem) for problem in self.problems[:shown]]
        if more := len(self.problems) - len(self.lines):
            self.lines.append(f"and {more} more problem{'s' if more > 1 else ''}")
        super().__init__("\n".join(self.lines))


def _by_field(detail: Any, name: str = "") -> Iterator[tuple[str, list[str]]]:
    """Messages by field. A problem inside a nested field has the name `outer.inner`."""
    if isinstance(detail, Mapping):
        for inner, messages in detail.items():
            yield from _by_field(messages, f"{name}.{inner}" if name else str(inner))
    else:
        messages = detail if isinstance(detail, Sequence) and not isinstance(detail, str) else [detail]
        yield name or "body", [str(message) for message in messages]


def api_exception_handler(exc: Exception, context: Any) -> Any:
    """One JSON shape for every error of the API: {"error": {"code", "message", "request_id", "fields"?}}."""
    from rest_framework.exceptions import APIException, ValidationError
    from rest_framework.response import Response
    from rest_framework.views import exception_handler, set_rollback

    request_id = {"request_id": request_ids.current.get()}
    if isinstance(exc, HunchError):
        set_rollback()
        body: dict[str, Any] = {"code": exc.code, "message": exc.message, **exc.details, **request_id}
        if isinstance(exc, FieldErrors):
            body["fields"] = exc.errors
        headers = {"Retry-After": str(exc.retry_after)} if exc.retry_after else None
        return Response({"error": body}, status=exc.status, headers=headers)
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        refused = FieldErrors(dict(_by_field(response.data)))
        body = {"code": refused.code, "message": refused.message, "fields": refused.errors}
    elif isinstance(exc, APIException):
        body = {"code": str(exc.get_codes()), "message": str(exc.detail)}
    else:
        body = {"code": "not_found" if response.status_code == 404 else "refused", "message": str(exc) or "Not found."}
    response.data = {"error": body | request_id}
    return response
