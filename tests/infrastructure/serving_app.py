"""A small WSGI application for tests of the web process: it says what reached it, or is slow, large or broken.

Run by gunicorn with our own configuration, or with that of serving_config. SERVING_DEADLINE in the environment
replaces the request's deadline.
"""

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import django

from survey.web import body_limits, web_worker

if "python:survey.gunicorn_config" in sys.argv:
    django.setup()
else:  # With the other one nothing needs Django's models and the pages.
    body_limits.admin_root = lambda: "/admin/"  # type: ignore[assignment]
    body_limits.upload_page = lambda: "/admin/survey/bank/add/"  # type: ignore[assignment]
web_worker.BODIES_LIMIT = int(os.environ.get("SERVING_BODIES", "500000000"))
web_worker.REQUEST_DEADLINE = float(os.environ.get("SERVING_DEADLINE", "10"))

LARGE = int(os.environ.get("SERVING_LARGE", "12000000"))  # bytes; more than the sockets of both sides hold


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path = environ["PATH_INFO"]
    if path == "/large":
        start_response("200 OK", [("Content-Length", str(LARGE))])
        return (b"%08d" % number * 1000 for number in range(LARGE // 8000))
    if path == "/breaks-off":
        start_response("200 OK", [("Content-Length", "1000000")])
        return _breaks_off()
    if path == "/broken":
        raise ValueError("broken at once")
    if path.startswith("/sleep/"):
        print(f"{path} has come", file=sys.stderr, flush=True)
        time.sleep(float(path.removeprefix("/sleep/")))
    said = {
        "pid": os.getpid(),
        "path": path,
        "loaded": "frontend.views" in sys.modules,
        "passed_over": gc.get_freeze_count(),
        "method": environ["REQUEST_METHOD"],
        "length": environ.get("CONTENT_LENGTH", ""),
        "encoding": environ.get("HTTP_TRANSFER_ENCODING", ""),
        "scheme": environ["wsgi.url_scheme"],
        "forwarded": [environ.get(f"HTTP_{name}") for name in ("X_FORWARDED_PROTO", "X_FORWARDED_FOR", "HOST")],
    }
    try:
        body = environ["wsgi.input"].read()
    except OSError as exc:
        said["refused"] = str(exc)
    else:
        said |= {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    answer = json.dumps(said).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))])
    return [answer]  # For HEAD too, as Django does.


def _breaks_off() -> Iterator[bytes]:
    yield b"x" * 200_000
    raise ValueError("in the middle")
