"""The study file's attention checks, questions of forms, ready forms and the choice about one's data."""

from typing import Any

import pytest
from pydantic import ValidationError

from survey import study_file
from survey.study_file import AttentionCheckConfig, BlockConfig, FieldConfig, StudyConfig, StudyFileError
from survey.study_file.ready import READY_FORMS
from tests import cast

INSTRUCTION = {
    "name": "read",
    "after_item": 1,
    "kind": "instruction",
    "text": "Please choose often.",
    "options": ["Often", "Never"],
}
CHOICE = {"name": "adult", "label": "Adult?", "kind": "choice", "options": ["Yes", "No"]}
SCREENS = {**CHOICE, "required": True, "screen_out": ["No"]}
SEVERAL = {"name": "uses", "label": "Which?", "kind": "multiple", "options": ["A", "B"]}
SCALE = {"name": "agree", "label": "How far?", "kind": "likert", "points": 3, "labels": ["low", "high"]}


def message(refused: pytest.ExceptionInfo[ValidationError]) -> str:
    return refused.value.errors()[0]["msg"]


def file(*, blocks: list[dict[str, Any]] | None = None, **overrides: Any) -> str:
    return cast.study_text(blocks=blocks or cast.BASE["blocks"], **overrides)


def refusals(text: str) -> list[tuple[str, str]]:
    with pytest.raises(StudyFileError) as refused:
        study_file.parse(text)
    return [(problem.field, problem.message) for problem in refused.value.problems]


def with_block(block: dict[str, Any], place: int) -> str:
    blocks = cast.BASE["blocks"]
    return file(blocks=[*blocks[:place], block, *blocks[place:]])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"text": "Please choose rarely."}, '"Often", is not named'),
        ({"text": "Choose oftentimes."}, '"Often", is not named'),
        ({"right": 2, "options": ["Often", "Never", "x"]}, "an instruction names one answer"),
        ({"right": 2}, "nobody can fail"),
        ({"options": ["Often", "Often"]}, "two options are the same"),
        ({"options": ["Often"]}, "at least 2"),
        ({"kind": "memory"}, "instruction"),
        ({"after_item": 0}, "greater than or equal to 1"),
        ({"name": "step"}, "used by the pages"),
    ],
)
def test_it_refuses_an_attention_check_that_is_none(changes: dict[str, Any], expected: str) -> None:
    AttentionCheckConfig.model_validate(INSTRUCTION)
    with pytest.raises(ValidationError) as refused:
        AttentionCheckConfig.model_validate({**INSTRUCTION, **changes})
    assert expected in message(refused)


def test_a_nonsense_item_needs_no_instruction() -> None:
    check = AttentionCheckConfig.model_validate({**INSTRUCTION, "kind": "nonsense", "text": "I eat stones."})
    assert (check.right, check.shuffle) == (1, True)


@pytest.mark.parametrize(
    ("checks", "field", "expected"),
    [
        ([{**INSTRUCTION, "after_item": 4}], "sitting.attention_checks.1.after_item", "choose 1 to 3"),
        ([INSTRUCTION, INSTRUCTION], "sitting.attention_checks.2.name", "two attention checks are called read"),
    ],
)
def test_it_refuses_attention_checks_that_do_not_fit_the_sitting(checks: Any, field: str, expected: str) -> None:
    messages = dict(refusals(file(sitting={"items": 3, "attention_checks": checks})))
    assert expected in messages[field]


@pytest.mark.parametrize(
    ("field", "changes", "expected"),
    [
        (CHOICE, {"options": ["Yes"]}, "at least two options"),
        (CHOICE, {"options": ["Yes", "Yes"]}, "two are the same"),
        (CHOICE, {"values": ["yes"]}, "one for each option: 2"),
        (CHOICE, {"values": ["yes", "yes"]}, "values: two are the same"),
        (CHOICE, {"values": ["yes", "prefer_not_to_say"]}, "choose another value"),
        (CHOICE, {"exclusive": ["No"]}, "'multiple' has exclusive"),
        (CHOICE, {"points": 3}, "'likert' has points"),
        (CHOICE, {"max_characters": 3}, "'text' has max_characters"),
        (CHOICE, {"minimum": 3}, "'number' has minimum"),
        (SCREENS, {"screen_out": ["Maybe"]}, "Maybe is not among the options"),
        (SCREENS, {"values": ["yes", "no"]}, "No is not among the values"),
        (SCREENS, {"required": False}, "set required = true"),
        (SCREENS, {"screen_out": ["Yes", "No"]}, "nobody could take part"),
        (SEVERAL, {"screen_out": ["A"]}, "'choice' has screen_out"),
        (SEVERAL, {"exclusive": ["C"]}, "exclusive: C"),
        (SCALE, {"points": None}, "needs points"),
        (SCALE, {"points": 12}, "less than or equal to 11"),
        (SCALE, {"points": 4, "labels": ["a", "b", "c"]}, "give 2, for the two ends, or 4"),
        (SCALE, {"labels": []}, "give 2"),
        (SCALE, {"options": ["a", "b"]}, "has options"),
    ],
)
def test_it_refuses_a_question_that_does_not_fit_its_kind(field: Any, changes: Any, expected: str) -> None:
    FieldConfig.model_validate(field)
    with pytest.raises(ValidationError) as refused:
        FieldConfig.model_validate({**field, **changes})
    assert expected in message(refused)


def test_the_points_of_a_scale_have_the_words_of_its_ends_or_all_of_them() -> None:
    ends = FieldConfig.model_validate(SCALE)
    every = FieldConfig.model_validate({**SCALE, "labels": ["low", "middle", "high"]})
    assert [ends.label_of_point(point) for point in (1, 2, 3)] == ["low", "", "high"]
    assert [every.label_of_point(point) for point in (1, 2, 3)] == ["low", "middle", "high"]


FORM = {"kind": "form", "name": "screener", "fields": [SCREENS]}
CHOOSE = {"kind": "debriefing", "text": "What it was about.", "asks_to_use": True}


@pytest.mark.parametrize(
    ("block", "place", "field", "expected"),
    [
        (FORM, 4, "blocks.5.fields", "people are screened out before the items only"),
        (CHOOSE, 2, "blocks.3.asks_to_use", "no answers have been given yet"),
        ({**CHOOSE, "kind": "instructions"}, 4, "blocks.5", 'only a block of kind "debriefing"'),
        ({"kind": "instructions", "text": "x", "ready": "comment"}, 4, "blocks.5", 'only a block of kind "form"'),
        ({"kind": "form", "ready": "comment", "name": "remarks"}, 4, "blocks.5", "always called comment"),
        ({"kind": "form", "ready": "comment", "version": "2"}, 4, "blocks.5.version", "has its own"),
        ({"kind": "form", "ready": "comment", "fields": [CHOICE]}, 4, "blocks.5.fields", "has its own"),
        ({"kind": "form", "ready": "income"}, 4, "blocks.5.ready", "demographics"),
    ],
)
def test_it_refuses_a_block_in_the_wrong_place_or_with_keys_of_another(
    block: dict[str, Any], place: int, field: str, expected: str
) -> None:
    assert any(name == field and expected in words for name, words in refusals(with_block(block, place)))


def test_it_refuses_to_ask_twice_whether_the_data_may_be_used() -> None:
    text = file(blocks=[*cast.BASE["blocks"][:-1], CHOOSE, CHOOSE, cast.BASE["blocks"][-1]])
    assert ("blocks.8.asks_to_use", "blocks.7 asks already: ask once") in refusals(text)


def test_the_same_blocks_in_their_places_are_good() -> None:
    blocks = cast.BASE["blocks"]
    config = study_file.parse(file(blocks=[*blocks[:2], FORM, *blocks[2:-1], CHOOSE, blocks[-1]]))
    assert config.screens_out
    assert not study_file.parse(file()).screens_out


@pytest.mark.parametrize("name", READY_FORMS)
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_ready_form_is_stored_as_it_was_asked_and_read_back(name: str, language: str) -> None:
    blocks = [*cast.BASE["blocks"][:-1], {"kind": "form", "ready": name}, cast.BASE["blocks"][-1]]
    config = study_file.parse(file(blocks=blocks, texts={"language": language}))
    block = config.blocks[-2]
    assert (block.name, block.version) == (name, "1") and block.fields and block.title
    stored = config.model_dump(mode="json")
    assert StudyConfig.model_validate(stored).blocks[-2] == block
    # What was asked stays, whatever the ready form is in a later release.
    stored["blocks"][-2]["fields"] = stored["blocks"][-2]["fields"][:1]
    assert len(StudyConfig.model_validate(stored).blocks[-2].fields) == 1


def test_a_ready_form_speaks_every_language_of_the_file_and_stores_the_same_values() -> None:
    ready = BlockConfig.model_validate({"kind": "form", "ready": "demographics"})
    config = study_file.parse(file())
    blocks = [*config.blocks[:-1], ready, config.blocks[-1]]
    both = StudyConfig.model_validate(
        {
            **config.model_dump(mode="json"),
            "blocks": [block.model_dump(mode="json") for block in blocks],
            "texts": {**config.texts.model_dump(mode="json"), "language": "en", "languages": ["en", "de"]},
        }
    )
    english, german = (both.in_language(code).blocks[-2] for code in ("en", "de"))
    assert (english.title, german.title) == ("About you", "Zu Ihrer Person")
    for field, other in zip(english.fields, german.fields, strict=True):
        assert field.codes == other.codes and field.options != other.options and field.label != other.label


def test_a_ready_form_may_have_another_title_and_text() -> None:
    block = BlockConfig.model_validate({"kind": "form", "ready": "comment", "title": "Remarks", "text": "Tell us."})
    assert (block.title, block.text, block.name) == ("Remarks", "Tell us.", "comment")


def test_a_study_without_the_new_keys_asks_for_nothing_new() -> None:
    config = study_file.parse(file())
    assert config.sitting.attention_checks == []
    assert not any(block.asks_to_use or block.ready for block in config.blocks)
