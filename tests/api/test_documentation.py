"""docs/rest.md says what the API does: kinds, types, statuses and measured times are compared with the document."""

import re
from pathlib import Path

from survey.api import serializers
from survey.api.schema import REFUSALS
from survey.services.sittings.timing import CLIENT_FIELDS
from tests.api.documented import document

TEXT = (Path(__file__).resolve().parents[2] / "docs/rest.md").read_text()


def rows(header: str) -> set[str]:
    """The first column of the table with that header."""
    table = TEXT.split(f"| {header} |", 1)[1].split("\n\n", 1)[0]
    return {cell.strip("` ") for line in table.splitlines()[2:] for cell in line.split("|")[1].split(",")}


def values_of(schema: str, name: str) -> set[str]:
    field = document()["components"]["schemas"][schema]["properties"][name]
    reference = field.get("$ref") or next((schema["$ref"] for schema in field.get("allOf", ())), "")
    return set(document()["components"]["schemas"][reference.rsplit("/", 1)[1]]["enum"] if reference else field["enum"])


def test_every_kind_of_step_and_type_of_field_is_reported() -> None:
    assert rows("`kind`") == values_of("Step", "kind")
    assert rows("a field's `type`") == values_of("StepField", "type")


def test_no_field_of_an_answer_has_a_name_of_the_code_alone() -> None:
    """A class of the framework uses the name `fields` itself: `fields_` in the code is `fields` in an answer."""
    classes = [kind for kind in vars(serializers).values() if isinstance(kind, type) and hasattr(kind, "get_fields")]
    names = {kind: list(kind().get_fields()) for kind in classes if kind.__module__ == serializers.__name__}
    assert not [kind for kind, fields in names.items() if any(name.endswith("_") for name in fields)]
    assert "fields" in document()["components"]["schemas"]["Screen"]["properties"]


def test_every_status_of_an_error_is_reported() -> None:
    assert rows("status") == {str(status) for status in (*REFUSALS, 405, 406)}


def test_everything_that_can_be_measured_is_reported() -> None:
    assert set(re.findall(r"client_(\w+)", TEXT)) == set(CLIENT_FIELDS)


def test_every_address_of_respondents_is_reported() -> None:
    for path, operations in document()["paths"].items():
        if any("respondents" in operation["tags"] for operation in operations.values()):
            assert path.removeprefix("/api/v1/").replace("{slug}", "SLUG") in TEXT, path
