"""Where panels are found: ours by name, those of packages by entry point, and what happens if one is broken."""

import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from survey.contracts import panels
from survey.contracts.panels import PanelClient, PanelUnknown, PostingState, SubmissionStatus
from tests import packages

WHOLE = """
from survey.contracts.panels import Panel

class Swing(Panel):
    contract = 1
    name = "swing"
    title = "swing"
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package with this source and an entry point of this name."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def install_one(source: str, *, name: str = "swing", value: str = "swing_package:Swing") -> None:
        package = tmp_path / "swing"
        (package / "src").mkdir(parents=True)
        (package / "src" / "swing_package.py").write_text(source)
        (package / "pyproject.toml").write_text(
            f'[project]\nname = "swing"\nversion = "1"\n[project.entry-points."hunch.panels"]\n{name} = "{value}"\n'
        )
        packages.install([package], tmp_path / "metadata")
        panels.look_again()

    yield install_one
    for module in set(sys.modules) - before:
        if module.startswith("swing_package"):
            del sys.modules[module]
    monkeypatch.undo()
    panels.look_again()


def test_a_panel_of_a_package_is_found_by_its_entry_point(install: Install) -> None:
    install(WHOLE)
    assert panels.get("swing").title == "swing"
    assert panels.get("swing") is panels.get("swing"), "imported once"
    assert panels.names() == ["generic", "links", "open", "prolific", "swing", "toypanel"]


@pytest.mark.parametrize(
    ("source", "value", "why"),
    [
        ("raise RuntimeError('no chains')", "swing_package:Swing", "RuntimeError: no chains"),
        (WHOLE, "swing_package:Slide", "AttributeError"),
        (WHOLE, "no_such_package:Swing", "ModuleNotFoundError"),
        (WHOLE.replace("contract = 1", "contract = 99"), "swing_package:Swing", "it is written for contract 99"),
        (WHOLE.replace("contract = 1", "pass"), "swing_package:Swing", "it is written for contract None"),
        (WHOLE.replace('name = "swing"', 'name = "slide"'), "swing_package:Swing", "it calls itself 'slide'"),
        ("class Swing: pass", "swing_package:Swing", "it is no Panel"),
    ],
)
def test_a_broken_one_is_named_in_a_warning_and_the_rest_goes_on(
    install: Install, caplog: pytest.LogCaptureFixture, source: str, value: str, why: str
) -> None:
    install(source, value=value)
    with caplog.at_level(logging.WARNING):
        assert panels.names() == ["generic", "links", "open", "prolific", "toypanel"]
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert f"the panel 'swing' ({value}) cannot be used: {why}" in warning.getMessage()
    with pytest.raises(PanelUnknown, match=r"'swing'.*there are: generic, links, open, prolific, toypanel") as caught:
        panels.get("swing")
    assert why in caught.value.message
    assert len(caplog.records) == 1, "said once"
    assert panels.get("prolific").title == "Prolific"
    in_its_place = panels.find("swing")
    assert (in_its_place.name, in_its_place.client, why in in_its_place.problem) == ("swing", None, True)


def test_a_package_does_not_take_the_place_of_a_panel_that_is_here(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    install(WHOLE.replace('name = "swing"', 'name = "prolific"'), name="prolific")
    assert panels.names().count("prolific") == 1 and panels.get("prolific").title == "Prolific"
    assert "panel 'prolific': the name is taken; swing_package:Swing is not used" in caplog.text


def test_asking_for_one_that_is_not_there_says_which_there_are() -> None:
    with pytest.raises(
        PanelUnknown, match="no panel is called 'mturk'; there are: generic, links, open, prolific, toy"
    ):
        panels.get("mturk")
    with pytest.raises(LookupError):
        panels.get("mturk")


@pytest.mark.parametrize("name", ["generic", "links", "open", "prolific"])
def test_each_of_ours_is_whole(name: str) -> None:
    panel = panels.get(name)
    assert (panel.name, panel.contract, panel.problem) == (name, panels.CONTRACT, "")
    assert panel.pays_from_a_list == (name in ("generic", "links"))


def test_prolific_can_do_every_call_and_knows_a_word_for_every_status() -> None:
    client = panels.get("prolific").client
    assert client is not None
    calls = [name for name, call in vars(PanelClient).items() if callable(call) and not name.startswith("_")]
    assert len(calls) > 15
    assert [name for name in calls if not client.can(name)] == []
    with pytest.raises(AttributeError, match="has no call 'paws'"):
        client.can("paws")
    from survey.panels.prolific import statuses

    assert {*statuses.SUBMISSIONS.values(), SubmissionStatus.UNKNOWN} == set(SubmissionStatus)
    assert {*statuses.POSTINGS.values(), PostingState.UNKNOWN} == set(PostingState)
