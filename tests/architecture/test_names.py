"""One word for one thing: no two classes of the project have the same name."""

import ast
from collections import defaultdict

import pytest

from tests.architecture.test_source import ROOT, python_files

pytestmark = pytest.mark.slow

# A library's plain data, and the row in which the survey stores the same thing.
SAME_THING = {"Pair", "Stratum"}
# Django asks for these names.
FIXED = {"Command", "Migration"}


def test_no_two_classes_have_the_same_name() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in python_files():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: where for name, where in places.items() if len(where) > 1 and name not in SAME_THING | FIXED} == {}
