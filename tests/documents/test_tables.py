"""docs/tables.md has every kind of table that people bring, as its rows are declared."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

from survey.input_tables.rows import TableRow

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tables.md"
BEGINS = "<!-- From here on this page is made of the code: python -m tests.renew tables -->\n"
pytestmark = pytest.mark.any_database


def declared_rows() -> list[type[TableRow]]:
    """Those that a command reads, by name."""
    rows = set()
    for path in (ROOT / "survey").rglob("*.py"):
        if "TableRow" in path.read_text(encoding="utf-8"):
            module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
            rows |= {kind for _name, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, TableRow)}
    return sorted((row for row in rows if row.__dict__.get("read_by")), key=lambda row: row.__name__)


def section_of(row: type[TableRow]) -> str:
    words = re.sub(r"(?<!^)([A-Z])", r" \1", row.__name__.removesuffix("Row"))
    lines = [f"## {words.capitalize()}", "", f"{inspect.getdoc(row)}", "", f"Read by {row.read_by}.", ""]
    lines += ["| column | needed | what it holds |", "|---|---|---|"]
    for name, field in row.columns().items():
        lines.append(f"| `{name}` | {'yes' if field.is_required() else '-'} | {field.description} |")
    rest = "Other columns are refused." if row.is_strict else "Other columns are passed over."
    return "\n".join([*lines, "", rest if "further column" not in str(row.__doc__) else "", ""]).rstrip() + "\n"


def test_the_page_is_what_the_rows_declare(request: pytest.FixtureRequest) -> None:
    rows = declared_rows()
    assert len(rows) > 15 and all(field.description for row in rows for field in row.columns().values())
    head, begins, _made = PAGE.read_text(encoding="utf-8").partition(BEGINS)
    page = head + begins + "\n" + "\n".join(map(section_of, rows))
    if request.config.getoption("--renew"):
        PAGE.write_text(page, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page
