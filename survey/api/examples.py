"""The recorded examples of the document: `python -m tests.renew examples` writes them. Imports nothing from survey."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from drf_spectacular.utils import OpenApiExample

SUCCESS = ["200", "201", "202"]
FILE = Path(__file__).with_name("examples.json")


@cache
def recorded() -> dict[str, dict[str, dict[str, Any]]]:
    """What was sent and answered: `bodies` by the name of a shape or serializer, `errors` by status; then by the
    example's name."""
    stored: dict[str, dict[str, dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return stored


def examples_of(shape: str, **where: Any) -> list[OpenApiExample]:
    """The examples of a body; none where none was recorded.

    Args:
        where: `request_only` or `response_only`.
    """
    bodies = recorded()["bodies"].get(shape, {})
    return [OpenApiExample(name, value=value, status_codes=SUCCESS, **where) for name, value in bodies.items()]


def examples_of_error(status: int) -> list[OpenApiExample]:
    of_status = recorded()["errors"][str(status)]
    return [
        OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])
        for name, value in of_status.items()
    ]
