"""Flags, exclusions, parameters and links in the study file: what is refused, at its line and in words."""

from typing import Any

import pytest

from survey import study_file
from survey.contracts import panels
from survey.exceptions import FileErrors
from survey.study_file import StudyConfig, StudyFileError
from tests import cast

CHECK = {"name": "moon", "after_item": 1, "kind": "nonsense", "text": "Can you eat it?", "options": ["no", "yes"]}
FORM: dict[str, Any] = {
    "kind": "form",
    "name": "about",
    "fields": [{"name": "help", "label": "Help?", "kind": "choice", "options": ["none", "some"]}],
}


def parsed(**overrides: Any) -> StudyConfig:
    return study_file.parse(cast.study_text(**overrides))


def refusal(**overrides: Any) -> str:
    with pytest.raises(StudyFileError) as caught:
        parsed(**overrides)
    return str(caught.value)


def with_form(form: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = list(cast.BASE["blocks"])
    return [*blocks[:-1], form, blocks[-1]]


def test_a_file_without_rules_flags_nobody_and_excludes_nobody() -> None:
    config = parsed()
    assert config.flags.names == () and config.exclusions.flags == []


def test_a_rules_table_alone_has_every_default() -> None:
    config = parsed(flags={"speeder": {}, "hidden": {}}, exclusions={"flags": ["hidden"]})
    assert config.flags.names == ("speeder", "hidden")
    assert config.flags.speeder is not None and config.flags.hidden is not None
    assert (config.flags.speeder.seconds_per_item, config.flags.hidden.share) == (4.0, 0.5)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            {"flags": {"speed": {}}},
            'flags.speed: unknown key; did you mean "speeder"? The keys here are attention, hidden, looked_up',
        ),
        ({"flags": {"speeder": {"seconds_per_item": 0, "words_per_second": 0}}}, "so nobody is ever flagged"),
        ({"flags": {"same_answers": {"share": 1.1}}}, "flags.same_answers.share"),
        ({"flags": {"same_answers": {"items": 4}}}, "a sitting has 3 items: choose 2 to 3"),
        ({"flags": {"attention": {}}}, "the sitting has 0 attention checks"),
        ({"flags": {"looked_up": {}}}, 'add a block with ready = "looked_up"'),
        ({"exclusions": {"flags": ["hidden"]}}, "no rule gives the flag hidden: add [flags.hidden]"),
        ({"exclusions": {"flags": ["slow"]}}, "exclusions.flags"),
        (
            {"flags": {"hidden": {}}, "exclusions": {"flags": ["hidden", "hidden"]}},
            "exclusions.flags: one is named twice",
        ),
        (
            {"flags": {"looked_up": {"block": "about", "field": "help"}}, "blocks": with_form(FORM)},
            "looked_up, asked_ai, both is not among the options",
        ),
        (
            {"flags": {"looked_up": {"block": "about", "field": "age"}}, "blocks": with_form(FORM)},
            "about has no choice called age",
        ),
    ],
)
def test_rules_that_cannot_hold_are_refused(overrides: dict[str, Any], message: str) -> None:
    assert message in refusal(**overrides)


def test_rules_that_hold_are_taken() -> None:
    parsed(flags={"attention": {}}, sitting={"items": 3, "attention_checks": [CHECK]})
    parsed(flags={"looked_up": {}}, blocks=with_form({"kind": "form", "ready": "looked_up"}))
    rule = {"block": "about", "field": "help", "values": ["some"]}
    parsed(flags={"looked_up": rule}, blocks=with_form(FORM))


def test_a_refusal_names_the_line_of_its_table() -> None:
    text = cast.study_text(flags={"same_answers": {"items": 100}})
    line = next(n for n, text_line in enumerate(text.splitlines(), start=1) if text_line == "items = 100")
    with pytest.raises(StudyFileError) as caught:
        study_file.parse(text)
    assert caught.value.problems[0].line == line


# Panels


@pytest.mark.parametrize(
    ("panel", "message"),
    [
        ({"kind": "generic", "parameters": {"person": "consent"}}, "used by the pages themselves"),
        ({"kind": "generic", "parameters": {"person": "Link"}}, "used by the pages themselves"),
        ({"kind": "generic", "parameters": {"study": "parameters"}}, "used by the pages themselves"),
        ({"kind": "generic", "parameters": {"person": "p id"}}, "panel.parameters.person"),
        ({"kind": "generic", "parameters": {"person": "id", "submission": "ID"}}, "two parameters have the same name"),
        ({"kind": "generic", "completion_urls": {"completed": "http://x.example"}}, "write https://"),
        ({"kind": "generic", "completion_urls": {"completed": "https://x/{code}{code}"}}, "at most once"),
        ({"kind": "generic", "reward": 5, "turned_away_pay": 6}, "turned_away_pay is above the reward"),
        ({"kind": "M Turk"}, "panel.kind"),
    ],
)
def test_panels_that_no_file_can_name_are_refused(panel: dict[str, Any], message: str) -> None:
    assert message in refusal(panel=panel)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("panel", "said"),
    [
        ({"kind": "prolific", "parameters": {"person": "pid"}}, 'a panel of the kind "prolific" has no parameters'),
        ({"completion_urls": {"completed": "https://x.example"}}, "only a panel has completion_urls: set kind"),
        ({"kind": "generic", "places": 5}, 'a panel of the kind "generic" has no places: remove it'),
        ({"kind": "links", "exclude_people_of": ["a"]}, 'of the kind "links" has no exclude_people_of'),
        ({"kind": "open", "reward": 5}, "only a panel has reward"),
        ({"kind": "prolific", "options": {"crew": "x"}}, "panel.options.crew: unknown option; prolific has: none"),
        ({"kind": "mturk"}, "panel.kind: no panel is called 'mturk'; there are: generic, links, open, prolific"),
    ],
)
def test_panels_that_do_not_fit_are_refused_where_a_study_is_created(panel: dict[str, Any], said: str) -> None:
    with pytest.raises(FileErrors) as caught:
        cast.study(panel=panel)
    assert said in str(caught.value)


def test_a_generic_panel_needs_no_more_than_its_kind() -> None:
    def names_of(**panel: Any) -> dict[str, str]:
        config = parsed(panel=panel)
        return dict(panels.get(config.panel.kind).parameter_names(config))

    assert names_of(kind="generic") == {"person": "pid"}
    assert names_of(kind="links") == {"person": "link"}
    assert names_of(kind="prolific") == {"person": "PROLIFIC_PID", "study": "STUDY_ID", "submission": "SESSION_ID"}
    assert names_of() == {}


def test_an_outcomes_own_address_wins_and_the_code_is_quoted() -> None:
    panel = parsed(
        panel={
            "kind": "generic",
            "completion_url": "https://x.example/?c={code}",
            "completion_urls": {"study_full": "https://x.example/full"},
        }
    ).panel
    assert panel.address_after("completed", "A&B") == "https://x.example/?c=A%26B"
    assert panel.address_after("study_full", "AB") == "https://x.example/full"
    assert parsed().panel.address_after("completed", "AB") == ""
