"""Which tests `make check`, `make test` and `make test-all` run, and which of them on PostgreSQL."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import is_about_the_database, names_the_database, pytest_collection_modifyitems

DATABASE = pytest.mark.django_db
COMMITS = pytest.mark.django_db(transaction=True)
RUNS = [("check", False), ("test", False), ("test", True), ("all", False), ("all", True)]


class Item:
    def __init__(self, *marks: Any, fixtures: tuple[str, ...] = ()) -> None:
        self.marks = [mark.mark for mark in marks]
        self.fixturenames = fixtures

    def iter_markers(self) -> Any:
        return iter(self.marks)

    def get_closest_marker(self, name: str) -> Any:
        return next((mark for mark in self.marks if mark.name == name), None)


def is_run(item: Item, tier: str, *, on_postgresql: bool) -> bool:
    options = {"--tier": tier, "--database-only": on_postgresql}
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    items: list[Any] = [item]
    pytest_collection_modifyitems(SimpleNamespace(getoption=options.get, hook=hook), items)  # type: ignore[arg-type]
    return bool(items)


@pytest.mark.parametrize(
    ("item", "runs"),
    [
        (Item(), "check test all"),
        (Item(DATABASE), "check test all all+"),
        (Item(DATABASE, pytest.mark.slow), "test all all+"),
        (Item(DATABASE, pytest.mark.thorough), "all all+"),
        (Item(DATABASE, pytest.mark.any_database), "check test all"),
        (Item(DATABASE, pytest.mark.every_database), "check test test+ all all+"),
        (Item(COMMITS), "check test all all+"),
        (Item(COMMITS, pytest.mark.any_database), "check test all"),
        (Item(COMMITS, pytest.mark.thorough), "all all+"),
        (Item(fixtures=("child_environment", "transactional_db")), "test all all+"),
        (Item(fixtures=("live_server",)), "test all"),
        (Item(pytest.mark.every_database, fixtures=("live_server",)), "test test+ all all+"),
        (Item(DATABASE, pytest.mark.browser), "test all"),
        (Item(pytest.mark.torch), "test all"),
    ],
)
def test_marks_say_which_runs_take_a_test(item: Item, runs: str) -> None:
    taken = [tier + "+" * there for tier, there in RUNS if is_run(item, tier, on_postgresql=there)]
    assert " ".join(taken) == runs


def test_what_is_for_postgresql_stands_in_files_that_are_read_there(request: pytest.FixtureRequest) -> None:
    files = {item.path for item in request.session.items if is_about_the_database(item)}
    assert [str(path) for path in sorted(files) if not names_the_database(path)] == []
