"""Reports of errors to a Sentry server, where SENTRY_DSN is set. Imports request_ids and log_format.

A report is built again from what is known to name nobody: types, places in the code, the request's method and path.
What people sent, cookies, query strings, local variables and the words of other libraries' errors are left out.
"""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from survey.logs import request_ids
from survey.logs.log_format import redact

KEPT = ("event_id", "timestamp", "platform", "level", "logger", "release", "environment", "transaction", "sdk")
KEPT_OF_FRAMES = ("filename", "function", "module", "lineno", "pre_context", "context_line", "post_context", "in_app")
OURS = ("survey.", "frontend.", "predictors.", "bandit.")
Report = Mapping[str, Any]


def start() -> None:
    """Report from now on.

    Raises:
        ImproperlyConfigured: the package is not installed.
    """
    try:
        import sentry_sdk
    except ImportError:
        raise ImproperlyConfigured('SENTRY_DSN: nothing can be reported; run: pip install "hunch[sentry]"') from None
    sentry_sdk.init(**options())


def options() -> dict[str, Any]:
    return {
        "dsn": settings.SENTRY_DSN,
        "environment": settings.HUNCH_ENV,
        "send_default_pii": False,
        "include_local_variables": False,
        "max_request_body_size": "never",
        "auto_session_tracking": False,
        "before_send": cleaned,
        # A trail of log lines and statements would hold what people answered.
        "before_breadcrumb": lambda _crumb, _hint: None,
    }


def cleaned(event: Report, _hint: Report) -> dict[str, Any]:
    """The report with what may be known outside, and nothing else."""
    report = {name: event[name] for name in KEPT if name in event}
    report["tags"] = {"request_id": request_ids.current.get()}
    request = event.get("request") or {}
    if request:
        report["request"] = {"method": request.get("method", ""), "url": str(request.get("url", "")).partition("?")[0]}
    message = (event.get("logentry") or {}).get("message")
    if message and str(event.get("logger") or "").startswith((*OURS, "django.")):
        report["logentry"] = {"message": redact(str(message))}  # Without its values.
    exceptions = (event.get("exception") or {}).get("values") or ()
    if exceptions:
        report["exception"] = {"values": [_cleaned_exception(exception) for exception in exceptions]}
    return report


def _cleaned_exception(exception: Report) -> dict[str, Any]:
    frames = (exception.get("stacktrace") or {}).get("frames") or ()
    is_ours = str(exception.get("module") or "").startswith(OURS)
    return {
        "type": exception.get("type"),
        "module": exception.get("module"),
        # Only our own errors are known to hold no id of a person.
        "value": redact(str(exception.get("value") or "")) if is_ours else "[removed]",
        "mechanism": {"type": "generic", "handled": (exception.get("mechanism") or {}).get("handled", True)},
        "stacktrace": {"frames": [{name: f[name] for name in KEPT_OF_FRAMES if name in f} for f in frames]},
    }
