"""How many statements a page takes, and the committed rows of query_counts.json that say how many it took before.

    python -m tests.renew query_counts

writes the file again. A change of a number then shows in the diff of a commit, and somebody says why.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.db import connection

FILE = Path(__file__).with_name("query_counts.json")
# What only begins or ends a transaction or a part of one, or changes limits of time (PostgreSQL alone).
NOT_COUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET CONSTRAINTS", "SELECT SET_CONFIG", "RESET")
Result = TypeVar("Result")


def counted(call: Callable[[], Result]) -> tuple[Result, list[str]]:
    """What the call gives, and the statements that it took."""
    statements: list[str] = []

    def note(execute: Callable[..., Any], sql: str, *arguments: Any) -> Any:
        statements.append(str(sql))
        return execute(sql, *arguments)

    # Django's own list of queries does not have the text of a prepared statement.
    with connection.execute_wrapper(note):
        result = call()
    return result, [statement for statement in statements if not statement.upper().startswith(NOT_COUNTED)]


class QueryCounts:
    """The rows of one section: the most statements that each page took."""

    def __init__(self, section: str) -> None:
        self.section = section
        self.rows: dict[str, int] = {}

    def count(self, name: str, call: Callable[[], Result]) -> Result:
        result, statements = counted(call)
        self.rows[name] = max(self.rows.get(name, 0), len(statements))
        return result

    def compare(self, *, renew: bool) -> None:
        """Fail where a number is another one than the committed one."""
        stored: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        if renew:
            stored[self.section] = self.rows
            FILE.write_text(json.dumps(stored, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        wrong = {
            name: f"{self.rows.get(name)} statements, committed are {stored[self.section].get(name)}"
            for name in {*self.rows, *stored[self.section]}
            if self.rows.get(name) != stored[self.section].get(name)
        }
        assert wrong == {}, f"{wrong}: say why in the commit, and run `python -m tests.renew query_counts`"
