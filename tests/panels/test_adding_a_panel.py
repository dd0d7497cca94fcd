"""The section "Adding a panel" of docs/panels.md against the contract, and against the toy that was written by it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from toy_panel.client import ToyClient
from toy_panel.panel import ToyPanel

from survey.console import new_package
from survey.contracts import panel_api, panels
from survey.contracts.panels import Panel, PanelClient
from survey.study_file import PanelConfig
from tools import panels_page

ROOT = Path(__file__).parents[2]
TOY = ROOT / "tests" / "packages" / "toy_panel"
SECTION = (ROOT / "docs" / "panels.md").read_text().partition("\n## Adding a panel\n")[2]
assert "\n## " not in SECTION, "the section is the last one"
ALLOWED = {
    "survey.contracts.panels",
    "survey.contracts.panel_api",
    "survey.exceptions",
    "survey.study_file",
    "survey.models",
}
# What Hunch works out by itself from the rest.
WORKED_OUT = {"options", "pays_from_a_list", "problem", "can"}


def table_under(heading: str) -> list[str]:
    """The first column of the tables in a part of the section."""
    part = re.search(rf"(?ms)^### \d\. {heading}\n(.*?)(?=^### |\Z)", SECTION)
    assert part is not None, heading
    rows = re.findall(r"(?m)^\| (`.+?`) \|", part[1])
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def public(kind: type) -> set[str]:
    return {name for name in {*vars(kind), *kind.__annotations__} if not name.startswith("_")}


def test_the_page_of_the_contract_is_what_the_classes_say() -> None:
    assert panels_page.TARGET.read_text() == panels_page.page(), "run python -m tests.renew panels"


def test_every_class_that_is_passed_between_a_panel_and_the_rest_has_its_place_on_that_page() -> None:
    ours = {name for name, kind in vars(panels).items() if getattr(kind, "__module__", "") == panels.__name__}
    classes = {name for name in ours if isinstance(getattr(panels, name), type) and not name.startswith("_")}
    assert classes - {"PanelUnknown"} == set(panels_page.CLASSES["panels"])


def test_the_members_that_the_section_names_are_there() -> None:
    assert set(table_under("The panel")) <= public(Panel) - WORKED_OUT


def test_every_call_of_a_client_is_in_the_section_and_nothing_else() -> None:
    errors = {"PanelMissing", "PanelRefused", "PanelBusy", "PanelUnreachable"}
    in_tables = set(table_under("The client"))
    assert errors <= in_tables
    in_words = set(re.findall(r"`(\w+)`", SECTION))
    calls = {name for name in public(PanelClient) if callable(getattr(PanelClient, name))} - WORKED_OUT
    assert in_tables - errors >= calls - {"open", "close", "missing_setting"}
    assert public(PanelClient) - WORKED_OUT <= in_words


def test_every_file_and_class_that_the_section_names_is_there() -> None:
    paths = re.findall(r"`((?:tests|survey)/[\w./]+)`", SECTION)
    assert len(set(paths)) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []
    classes = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)*)`", SECTION))
    assert {"Panel", "PanelClient", "SubmissionStatus"} <= classes
    assert {name for name in classes if not hasattr(panels, name) and not hasattr(panel_api, name)} == set()
    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", SECTION)) == {"BUILT_IN", "PAY_KEYS", "OWN_PARAMETERS"}


def test_the_entry_point_in_the_section_is_the_toys() -> None:
    (block,) = re.findall(r"(?ms)^```toml\n(.*?)^```", SECTION)
    theirs = tomllib.loads((TOY / "pyproject.toml").read_text())["project"]["entry-points"]
    assert tomllib.loads(block)["project"]["entry-points"] == theirs
    assert panels.ENTRY_POINTS in theirs


def test_the_toy_states_what_the_section_lists_and_overrides_most_calls() -> None:
    stated = set(vars(ToyPanel)) & public(Panel)
    assert {"contract", "name", "title", "keys", "options_model", "client", "verdict", "admit"} <= stated
    lacks = {name for name in table_under("The client") if name in vars(PanelClient) and not ToyClient.can(name)}
    assert lacks == {
        *(
            "stop",
            "reject",
            "prepare_bonuses",
            "approve_all",
            "schedule",
            "unschedule",
            "rehearse",
            "recruitment_hours",
        ),
        *("fees", "spent", "wallet", "pay_advice", "group", "add_to_group", "remove_from_group", "demographics"),
    }


def test_the_toy_imports_of_hunch_what_the_section_allows() -> None:
    assert of_hunch(TOY / "src") <= ALLOWED and "survey.contracts.panels" in of_hunch(TOY / "src")


def test_a_new_panel_imports_of_hunch_what_the_section_allows(tmp_path: Path) -> None:
    folder = new_package.write(new_package.PANEL, "crowdly", tmp_path)
    (folder / "crowdly" / "tests.py").unlink()  # They play Hunch's part.
    assert of_hunch(folder) <= ALLOWED and "survey.contracts.panel_api" in of_hunch(folder)


def of_hunch(folder: Path) -> set[str]:
    """The modules of ours that the files in a folder import."""
    imported = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                imported.add(node.module)
            elif isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
    return {name for name in imported if name.split(".")[0] in ("survey", "frontend", "bandit", "predictors")}


@pytest.mark.parametrize("name", ["generic", "links", "open", "prolific", "toypanel"])
def test_the_keys_that_a_panel_takes_are_keys_of_the_study_file(name: str) -> None:
    assert panels.get(name).keys <= set(PanelConfig.model_fields)
