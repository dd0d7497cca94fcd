"""The study file: its refusals with their lines, and its page of keys."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pydantic import BaseModel, ValidationError

from predictors.registry import default_params
from predictors.registry import names as predictor_names
from survey import study_file
from survey.exceptions import Problem
from survey.study_file import BlockConfig, FieldConfig, QuotaConfig, StageConfig, StudyConfig, StudyFileError
from survey.study_file.blocks import ConditionConfig
from survey.study_file.closing import CompletionSignatureConfig
from survey.study_file.older import read_stored
from survey.study_file.panel import PanelConfig
from survey.study_file.quotas import CellConfig
from survey.study_file.rules import SpeederRule
from survey.study_file.sampling import PredictorConfig
from tools import study_file_page

ROOT = Path(settings.BASE_DIR)

GOOD = '''slug = "good"
title = "A good study"
bank = "mine"
seed = 1

[predictor]
name = "same_task"

[[stages]]
sittings = 4

[[stages]]
sittings = 4
[stages.design]
kind = "epsilon_greedy"

[[blocks]]
kind = "consent"
text = """
Do you agree?
= this line is text, and so is the next
[[not a table]]
"""

[[blocks]]
kind = "checks"
[[blocks.checks]]
name = "one"
question = "Which?"
options = ["right", "wrong"]
[[blocks.checks]]
name = "two"
question = "Which?"
options = ["right", "wrong"]

[[blocks]]
kind = "items"

[[blocks]]
kind = "end"
'''


def refusals(text: str) -> list[str]:
    with pytest.raises(StudyFileError) as refused:
        study_file.parse(text)
    return str(refused.value).splitlines()


def line_of(text: str, part: str, *, nth: int = 1) -> int:
    return [number for number, line in enumerate(text.splitlines(), start=1) if part in line][nth - 1]


def test_it_reads_a_good_file_and_fills_in_the_defaults() -> None:
    config = study_file.parse(GOOD)
    assert (config.slug, config.sitting.items, config.candidates.size, config.panel.kind) == ("good", 15, 3000, "open")
    assert config.stages[1].design.epsilon == 0.1


def test_it_names_the_line_of_a_file_that_is_not_toml() -> None:
    assert refusals(GOOD.replace("seed = 1", "seed = "))[0].startswith("4: file: not TOML")


@pytest.mark.parametrize(
    ("old", "new", "part", "nth", "expected"),
    [
        (
            "seed = 1",
            "seed = 1\nsede = 2",
            "sede",
            1,
            'sede: unknown key; did you mean "seed"? The keys here are bank, blind, blocks',
        ),
        ("sittings = 4\n\n", "sitings = 4\n\n", "sitings", 1, "stages.1.sitings: unknown key"),
        ('kind = "epsilon_greedy"', 'kind = "epsilon_greedy"\neps = 1', "eps = 1", 1, "stages.2.design.eps: unknown"),
        (
            'slug = "good"',
            'slug = "Not Good"',
            "slug",
            1,
            "slug: write small letters, digits and single hyphens",
        ),
        ("seed = 1", "seed = -1", "seed", 1, "seed: must be 0 or more (it is -1)"),
        ("seed = 1", 'seed = "one"', "seed", 1, "seed: write a whole number, without quotes (it is 'one')"),
        ('title = "A good study"\n', "", "slug", 1, "title: is missing: add it"),
        (
            'options = ["right", "wrong"]\n[[',
            'options = ["right", "right"]\n[[',
            "options",
            1,
            "blocks.2.checks.1.options",
        ),
        ('name = "two"', 'name = "one"', "[[blocks]]", 2, "blocks.2: two entries have the same name"),
        (
            'name = "two"',
            'name = "Two!"',
            "Two!",
            1,
            "blocks.2.checks.2.name: write small letters, digits and _",
        ),
        ('name = "two"', 'name = "step"', '"step"', 1, "blocks.2.checks.2.name: this name is used by the pages"),
        ('kind = "end"', 'kind = "debriefing"\ntext = "x"', "[[blocks]]", 1, "blocks: exactly one block of kind"),
        (
            'kind = "items"',
            'kind = "items"\ntext = 5',
            "text = 5",
            1,
            "blocks.3.text: write a text in quotes (it is 5)",
        ),
        (
            "sittings = 4\n\n",
            "sittings = 4\ntrain = false\n\n",
            "train",
            1,
            "stages.1.train: stage 2 is epsilon_greedy",
        ),
        (
            'kind = "epsilon_greedy"',
            'kind = "softmax"\nepsilon = 0.2',
            "epsilon = 0.2",
            1,
            'stages.2.design.epsilon: kind = "softmax" has temperature, floor: remove this key',
        ),
        (
            'kind = "epsilon_greedy"',
            'kind = "epsilon_greedy"\nfloor = 1.0',
            "[stages.design]",
            1,
            "stages.2.design: floor: must be at least 0 and below 1",
        ),
        (
            "seed = 1\n",
            'seed = 1\n[candidates]\nkind = "exhaustive"\nsize = 9\n',
            "size = 9",
            1,
            'candidates.size: kind = "exhaustive" has scored_pairs, rank, shortlist: remove this key',
        ),
        (
            "seed = 1\n",
            "seed = 1\n[candidates]\nshortlist = 9\n",
            "shortlist",
            1,
            'candidates.shortlist: kind = "pool" has size: remove this key',
        ),
        (
            "sittings = 4\n\n",
            "sittings = 4\ndesign = {epsilon = 0.1}\n\n",
            "design = {",
            1,
            'stages.1.design.epsilon: kind = "uniform" has no parameters: remove this key',
        ),
        (
            "seed = 1\n",
            "seed = 1\n[roles]\nholdout = 1.0\n",
            "holdout",
            1,
            "roles.holdout: must be less than 1 (it is 1.0)",
        ),
        (
            "seed = 1\n",
            "seed = 1\n[roles]\ncontrol_kinds = []\n",
            "control_kinds",
            1,
            "roles.control_kinds: has 0 entries; at least 1 are needed",
        ),
        (
            'kind = "epsilon_greedy"',
            'kind = "test_set"\n[stages.roles]\nholdout = 0.1',
            "[stages.roles]",
            1,
            "stages.2.roles: a test set is held out itself",
        ),
        (
            "sittings = 4\n\n",
            'sittings = 4\ndesign = {kind = "epsilon_greedy"}\n\n',
            "design = {",
            1,
            "stages.1.design: the first stage has no predictor",
        ),
    ],
)
def test_it_names_line_and_field_of_a_problem(old: str, new: str, part: str, nth: int, expected: str) -> None:
    text = GOOD.replace(old, new, 1)
    assert text != GOOD
    assert any(line.startswith(f"{line_of(text, part, nth=nth)}: {expected}") for line in refusals(text)), refusals(
        text
    )


@pytest.mark.parametrize("kind", ["proportional", "softmax", "uncertainty"])
def test_it_refuses_a_design_that_cannot_draw_from_all_pairs(kind: str) -> None:
    text = GOOD.replace('kind = "epsilon_greedy"', f'kind = "{kind}"').replace(
        "seed = 1\n", 'seed = 1\n[candidates]\nkind = "exhaustive"\n'
    )
    assert any(f"stages.2.design: {kind} needs a number for every single candidate" in line for line in refusals(text))


def test_it_refuses_strata_of_the_rest_of_all_pairs() -> None:
    text = GOOD.replace('kind = "epsilon_greedy"', 'kind = "epsilon_greedy"\nrest_strata = 4').replace(
        "seed = 1\n", 'seed = 1\n[candidates]\nkind = "exhaustive"\n'
    )
    assert any("stages.2.design.rest_strata: all pairs are cut in two" in line for line in refusals(text))


@pytest.mark.parametrize("kind", sorted(study_file.DESIGNS))
def test_a_design_is_stored_with_its_own_defaults_and_read_back(kind: str) -> None:
    design = study_file.DesignConfig.model_validate({"kind": kind})
    assert design.parameters == study_file.design_defaults(kind)
    assert None not in design.parameters.values()
    assert study_file.DesignConfig.model_validate(design.model_dump(mode="json")) == design


def test_a_design_that_was_stored_with_keys_of_another_kind_is_still_read() -> None:
    stored = {"kind": "uniform", "epsilon": 0.1, "top_fraction": 0.1}
    assert study_file.DesignConfig.model_validate(stored).parameters == {}


def test_a_stages_roles_replace_the_studys_one_by_one() -> None:
    text = GOOD.replace("seed = 1\n", 'seed = 1\n[roles]\nholdout = 0.2\ncontrol_kinds = ["repeat"]\n')
    text = text.replace("sittings = 4\n\n", "sittings = 4\nroles = {holdout = 0}\n\n", 1)
    config = study_file.parse(text)
    assert (config.roles_of(1).holdout, config.roles_of(1).control_kinds) == (0, ["repeat"])
    assert (config.roles_of(2).holdout, config.roles_of(2).controls) == (0.2, 0.0667)


def test_it_tells_all_problems_in_the_order_of_the_lines() -> None:
    lines = refusals(GOOD.replace("seed = 1", "seed = -1").replace("sittings = 4", "sittings = 0"))
    assert [line.split(":")[1].strip() for line in lines] == ["seed", "stages.1.sittings", "stages.2.sittings"]


@pytest.mark.parametrize("change", ["first", "twice", "late_checks", "stranger"])
def test_it_refuses_blocks_that_make_no_sitting(change: str) -> None:
    consent, checks, items, end = GOOD[GOOD.index("[[blocks]]") :].split("[[blocks]]\n")[1:]
    head = GOOD[: GOOD.index("[[blocks]]")]
    blocks, expected = {
        "first": ([checks, consent, items, end], "consent comes first"),
        "twice": ([consent, checks, items, items, end], 'exactly one block of kind "items"'),
        "late_checks": ([consent, items, checks, end], "comprehension checks come before the items"),
        "stranger": (
            [
                consent,
                checks,
                items,
                end + '[[conditions]]\nfactor = "f"\nlevels = ["a", "b"]\ntexts = {a = {x = "y"}}\n',
            ],
            "no block is called x",
        ),
    }[change]
    assert any(expected in line for line in refusals(head + "".join(f"[[blocks]]\n{block}" for block in blocks)))


def test_a_problem_found_elsewhere_gets_the_line_of_its_key_or_of_what_holds_it() -> None:
    problem = study_file.problem_at(GOOD, ("predictor", "name"), "no", file="good.toml")
    assert problem == Problem("good.toml", line_of(GOOD, "same_task"), "predictor.name", "no")
    problem = study_file.problem_at(GOOD, ("predictor", "params", "members"), "no")
    assert problem.line == line_of(GOOD, "[predictor]")


def test_a_condition_changes_the_text_of_a_block_for_its_level() -> None:
    config = study_file.parse(
        GOOD + '[[conditions]]\nfactor = "f"\nlevels = ["a", "b"]\n[conditions.texts.a]\nconsent = "Other words."\n'
    )
    consent = config.blocks[0]
    assert config.block_text(consent, {"f": "a"}) == "Other words."
    assert config.block_text(consent, {"f": "b"}) == config.block_text(consent, {}) == consent.text


# A budget's file has keys of its own.
SHIPPED = sorted(path for path in (ROOT / "studies").rglob("*.toml") if "budget" not in path.name)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_shipped_study_files_are_good(path: Path) -> None:
    study_file.parse(path.read_text(encoding="utf-8"))


# docs/study-file.md


def test_the_page_of_the_study_file_is_what_the_models_say() -> None:
    """Every key with type, default and meaning, and no other: also of the instruments that come with Hunch."""
    written = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
    assert written == study_file_page.page(), "run python -m tests.renew study_file"


def test_a_key_without_a_meaning_and_a_table_without_a_place_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(BaseModel):
        said: int = 1
        """What it is."""
        unsaid: int = 2

    with pytest.raises(ValueError, match=r"Silent\.unsaid has no text"):
        study_file_page.keys_of(Silent)
    monkeypatch.setattr(study_file_page, "_options", dict)
    with pytest.raises(ValueError, match=r"differ in the tables instrument\.options of belief_update"):
        study_file_page.page()


@pytest.mark.parametrize("name", predictor_names())
def test_the_page_of_the_study_file_names_every_predictor_and_its_parameters(name: str) -> None:
    page = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
    section = page[page.index("## `[predictor]`") : page.index("## `[sitting]`")]
    assert f'`"{name}"`' in section
    assert [param for param in default_params(name) if f"`{param}`" not in section] == []


# Rules within one table, each at its bound: what is refused, and the nearest that is not

VALUE = {"filter_id": "age", "selected_values": ["a", "b"]}
GROUP = {"filter_id": "and", "selected_filters": [VALUE]}
ADDRESS = "https://panel.example/done?cc={code}"
PANEL: list[tuple[dict[str, Any], str]] = [
    ({"reward": 100, "turned_away_pay": 101}, "turned_away_pay is above the reward"),
    ({"reward": 100, "turned_away_pay": 100}, ""),
    ({"turned_away_pay": 100}, ""),
    ({"reward": 100, "screen_out_pay": 100, "screen_out_places": 2}, "must be below the reward"),
    ({"reward": 100, "screen_out_pay": 99, "screen_out_places": 2}, ""),
    ({"screen_out_pay": 9}, "belong together"),
    ({"screen_out_places": 9}, "belong together"),
    ({"reward": True}, "should be a valid integer"),
    ({"spending_cap": True}, "should be a valid integer"),
    ({"reward": 0}, "greater than or equal to 1"),
    ({"spending_cap": 0, "turned_away_pay": 0, "bonus_per_point": 0}, ""),
    ({"bonus_per_point": -1}, "greater than or equal to 0"),
    ({"filter_set": "x", "filters": [VALUE]}, "the panel takes one of the two"),
    ({"filter_set": "x", "representative_sample": "UK_REP_SAMPLE"}, "takes no filters next to it"),
    ({"filters": [VALUE], "representative_sample": "UK_REP_SAMPLE"}, "takes no filters next to it"),
    ({"representative_sample": "UK_REP_SAMPLE"}, ""),
    ({"content_warning_details": "blood"}, "say of which kind"),
    ({"content_warning_details": "blood", "content_warning": "explicit"}, ""),
    ({"content_warning": "explicit"}, ""),
    ({"parameters": {"time": "t"}}, "add signed_entry = true"),
    ({"parameters": {"signature": "s"}}, "add signed_entry = true"),
    ({"parameters": {"time": "t", "signature": "s"}, "signed_entry": True}, ""),
    ({"parameters": {"person": "TS"}, "signed_entry": True}, "two parameters have the same name"),
    ({"parameters": {"person": "sig"}, "signed_entry": True}, "two parameters have the same name"),
    ({"parameters": {"person": "sig"}}, ""),
    ({"parameters": {"person": "a", "study": "A"}}, "two parameters have the same name"),
    ({"parameters": {"person": "a", "submission": "a"}}, "two parameters have the same name"),
    ({"parameters": {"person": "Consent"}}, "used by the pages themselves"),
    ({"formats": [{"of": "person"}, {"of": "person"}]}, "person is named twice"),
    ({"formats": [{"of": "person"}, {"of": "study"}]}, ""),
    ({"formats": [{"of": "person", "shortest": 5, "longest": 4}]}, "shortest is above longest"),
    ({"formats": [{"of": "person", "shortest": 5, "longest": 5}]}, ""),
    ({"filters": [{**VALUE, "selected_range": {"lower": 1}}]}, "needs either selected_values or selected_range"),
    ({"filters": [{"filter_id": "age"}]}, "needs either selected_values or selected_range"),
    ({"filters": [{"filter_id": "age", "selected_range": {"lower": 2, "upper": 1}}]}, "lower is above upper"),
    ({"filters": [{"filter_id": "age", "selected_range": {"lower": 1, "upper": 1}}]}, ""),
    ({"filters": [{"filter_id": "age", "selected_range": {"lower": 1, "upper": "2020-01-01"}}]}, "both be dates"),
    ({"filters": [{"filter_id": "age", "selected_range": {}}]}, "needs lower, upper or both"),
    ({"filters": [{**VALUE, "weightings": {"c": 1}}]}, "c is not among selected_values"),
    ({"filters": [{**VALUE, "weightings": {"a": 1}}]}, ""),
    ({"filters": [{**GROUP, "selected_values": ["a"]}]}, "needs selected_filters and nothing else"),
    ({"filters": [{**GROUP, "weightings": {"a": 1}}]}, "needs selected_filters and nothing else"),
    ({"filters": [{"filter_id": "or"}]}, "needs selected_filters and nothing else"),
    ({"filters": [{**VALUE, "selected_filters": [VALUE]}]}, "selected_filters belong to a group"),
    ({"filters": [{"filter_id": "or", "selected_filters": [{"filter_id": "and", "selected_filters": [GROUP]}]}]}, ""),
    (
        {
            "filters": [
                {
                    "filter_id": "or",
                    "selected_filters": [
                        {"filter_id": "or", "selected_filters": [{"filter_id": "and", "selected_filters": [GROUP]}]}
                    ],
                }
            ]
        },
        "4 deep; at most 3",
    ),
    ({"completion_url": "http://panel.example/{code}"}, "write https://HOST"),
    ({"completion_url": "https://{code}.example/"}, "write https://HOST"),
    ({"completion_url": "https://panel.example{code}"}, "write https://HOST"),
    ({"completion_url": "http://127.0.0.1:8000/{code}"}, ""),
    ({"completion_url": f"{ADDRESS}&x={{nobody}}"}, "there is no {nobody}"),
    ({"completion_url": f"{ADDRESS}&x={{code}}"}, "{code} stands in it twice"),
    ({"completion_url": f"{ADDRESS}&sig={{signature}}"}, "needs [panel.completion_signature]"),
    ({"completion_url": ADDRESS, "completion_signature": {}}, "no completion address has {signature}"),
    ({"completion_url": f"{ADDRESS}&sig={{signature}}", "completion_signature": {}}, ""),
    ({"completion_url": f"{ADDRESS}&sig={{signature}}&x=1", "completion_signature": {}}, "as the last parameter"),
    (
        {"completion_url": f"{ADDRESS}&sig={{signature}}&x=1", "completion_signature": {"of": ["person", "code"]}},
        "",
    ),
    (
        {"completion_url": f"{ADDRESS}&sig={{signature}}", "completion_signature": {"of": ["code", "code"]}},
        "name at least one value, and each once",
    ),
    ({"completion_url": f"{ADDRESS}&sig={{signature}}", "completion_signature": {"of": []}}, "name at least one value"),
]


@pytest.mark.parametrize(("given", "says"), PANEL)
def test_a_panels_keys_fit_together(given: dict[str, Any], says: str) -> None:
    if not says:
        PanelConfig.model_validate(given)
        return
    with pytest.raises(ValidationError) as refused:
        PanelConfig.model_validate(given)
    assert says in str(refused.value)


def test_a_panels_keys_say_where_people_go_and_what_they_cost() -> None:
    own = {"study_full": "https://panel.example/full?p={person}", "no_consent": "https://panel.example/no"}
    panel = PanelConfig.model_validate(
        {
            "completion_url": ADDRESS,
            "completion_urls": own,
            "reward": 90,
            "screen_out_pay": 20,
            "screen_out_places": 5,
            "filters": [{"filter_id": "or", "selected_filters": [{**VALUE, "weightings": {"a": 1}}]}],
        }
    )
    assert panel.screen_outs == 100 and PanelConfig().screen_outs == 0
    assert panel.closing_template("completed") == ADDRESS and panel.closing_template("no_consent") == own["no_consent"]
    assert panel.needed_for_closing == {"person"} and panel.uses_codes
    personal = [outcome for outcome in ("completed", "no_consent", "study_full") if panel.is_personal_after(outcome)]
    with_code = [outcome for outcome in ("completed", "no_consent", "study_full") if panel.takes_code_after(outcome)]
    assert (personal, with_code) == (["study_full"], ["completed"])
    assert panel.address_after("completed", "A&B") == "https://panel.example/done?cc=A%26B"
    assert panel.address_after("study_full", "A") == "" and panel.address_after("no_consent", "A") == own["no_consent"]
    assert [panel_filter.is_weighted for panel_filter in panel.filters] == [True] and panel.filters[0].depth == 1
    assert panel.given_keys == [
        *("reward", "screen_out_pay", "screen_out_places", "filters", "completion_urls"),
    ]
    signed = PanelConfig.model_validate(
        {
            "completion_url": "https://panel.example/?sig={signature}",
            "completion_signature": {"of": ["person", "code"], "separator": "|"},
        }
    )
    assert signed.needed_for_closing == {"person", "signature"}
    signature = signed.completion_signature
    assert signature is not None and signature.text_to_sign("x", {"code": "C", "person": "P"}) == "P|C"
    whole = "https://panel.example/?a=1&sig={signature}"
    for of, text in (("address", whole[:26]), ("address_and_separator", whole[:27])):
        assert CompletionSignatureConfig(of=of).text_to_sign(whole, {}) == text


NUMBER = {"name": "age", "label": "Age?", "kind": "number"}
STAGE = {"sittings": 40}
TABLES: list[tuple[type[BaseModel], dict[str, Any], str]] = [
    (FieldConfig, {**NUMBER, "minimum": 18, "bands": [18]}, "nobody can be in the lowest or highest band"),
    (FieldConfig, {**NUMBER, "minimum": 18, "bands": [19], "maximum": 19}, ""),
    (FieldConfig, {**NUMBER, "bands": [20], "maximum": 19}, "nobody can be in the lowest or highest band"),
    (FieldConfig, {**NUMBER, "bands": [20, 20]}, "each above the one before"),
    (FieldConfig, {**NUMBER, "bands": [20, 21]}, ""),
    (StageConfig, {**STAGE, "stop": {"width": 0.1, "after": 41}}, "the stage has 40 sittings"),
    (StageConfig, {**STAGE, "stop": {"width": 0.1, "after": 40}}, ""),
    (StageConfig, {**STAGE, "stop": {"width": 0.1, "after": 29}}, "greater than or equal to 30"),
    (StageConfig, {**STAGE, "stop": {"width": 0}}, "greater than 0"),
    (StageConfig, {**STAGE, "stop": {"width": 0.1}, "pilot": True}, "a pilot's answers are not estimated"),
    (StageConfig, {**STAGE, "stop": {"width": 0.1}, "responses_per_item": 2}, "use responses_per_item = 1"),
    (StageConfig, {**STAGE, "stop": {"width": 0.1}, "design": {"kind": "test_set"}}, "no mean over all candidates"),
    (StageConfig, {**STAGE, "responses_per_item": 3, "design": {"kind": "test_set", "responses_per_pair": 4}}, "keep"),
    (StageConfig, {**STAGE, "responses_per_item": 4, "design": {"kind": "test_set", "responses_per_pair": 4}}, ""),
    (SpeederRule, {"seconds_per_item": 0, "words_per_second": 0}, "nobody is ever flagged"),
    (SpeederRule, {"seconds_per_item": 0}, ""),
    (SpeederRule, {"words_per_second": 0}, ""),
    (ConditionConfig, {"factor": "f", "levels": ["a", "a"]}, "two levels have the same name"),
    (ConditionConfig, {"factor": "f", "levels": ["a"]}, "at least 2"),
    (ConditionConfig, {"factor": "f", "levels": ["a", "b"], "options": {"c": {}}}, "not among the levels"),
    (BlockConfig, {"kind": "debriefing"}, "needs text"),
    (BlockConfig, {"kind": "form", "name": "x"}, "needs a name and at least one"),
    (BlockConfig, {"kind": "form", "fields": [NUMBER]}, "needs a name and at least one"),
    (BlockConfig, {"kind": "practice"}, "needs [blocks.example]"),
    (BlockConfig, {"kind": "practice", "example": {"a": "x"}, "examples": [{"a": "x"}]}, "keep one of them"),
    (BlockConfig, {"kind": "items", "example": {"a": "x"}}, 'only a block of kind "practice"'),
    (BlockConfig, {"kind": "items", "fields": [NUMBER]}, 'only a block of kind "form" has fields'),
    (BlockConfig, {"kind": "form", "name": "x", "fields": [NUMBER, NUMBER]}, "two entries have the same name"),
    (PredictorConfig, {"name": "bert", "compared": [{"name": "bert"}]}, "two predictors are the same"),
    (PredictorConfig, {"name": "bert", "compared": [{"name": "bert", "params": {"epochs": 2}}]}, ""),
    (PredictorConfig, {"name": "a", "compared": [{"name": "b"}, {"name": "b"}]}, "two predictors are the same"),
    (CellConfig, {"name": "c", "places": 1, "between": {"age": [18, 18]}}, ""),
    (CellConfig, {"name": "c", "places": 1, "answers": {"age": ["1"]}, "between": {"age": [18, 19]}}, "keep one"),
    (CellConfig, {"name": "c", "answers": {"age": ["1"]}}, "give places or share"),
    (QuotaConfig, {"name": "q", "cells": [{"name": "c", "share": 1.0, "answers": {"a": ["1"]}}]}, ""),
    (
        QuotaConfig,
        {"name": "q", "cells": [{"name": n, "share": 0.51, "answers": {"a": [n]}} for n in ("b", "c")]},
        "add up to more than 1",
    ),
]


@pytest.mark.parametrize(("model", "given", "says"), TABLES)
def test_a_tables_keys_fit_together(model: type[BaseModel], given: dict[str, Any], says: str) -> None:
    if not says:
        model.model_validate(given)
        return
    with pytest.raises(ValidationError) as refused:
        model.model_validate(given)
    assert says in str(refused.value)


def test_a_cell_holds_and_excludes_by_its_bounds() -> None:
    cell = CellConfig.model_validate({"name": "c", "places": 1, "answers": {"a": ["1"]}, "between": {"age": [18, 30]}})
    assert [cell.holds({"a": 1, "age": age}) for age in (17, 18, 30, 31)] == [False, True, True, False]
    assert not cell.holds({"a": "2", "age": 20}) and not cell.holds({"a": "1"}) and not cell.holds({"age": 20})
    for between, apart in (([31, 40], True), ([30, 40], False), ([1, 17], True), ([1, 18], False)):
        other = CellConfig.model_validate({"name": "d", "places": 1, "between": {"age": between}})
        assert cell.excludes(other) is other.excludes(cell) is apart


def test_a_stage_teaches_and_asks_as_its_design_says() -> None:
    test = {"kind": "test_set", "responses_per_pair": 4}
    stages = [StageConfig.model_validate({**STAGE, **more}) for more in ({}, {"pilot": True}, {"design": test})]
    assert [stage.teaches for stage in stages] == [True, False, False]
    several = StageConfig.model_validate({**STAGE, "responses_per_item": 3})
    assert (several.slots_per_item, stages[2].slots_per_item, stages[2].responses_per_item) == (3, 1, 4)
    default = StageConfig.model_validate({**STAGE, "design": {"kind": "test_set"}})
    assert default.responses_per_item == default.design.responses_per_pair == 9


def test_texts_name_values_of_the_file_as_people_read_them() -> None:
    data = tomllib.loads(GOOD)
    data["texts"] = {
        "languages": ["en", "de"],
        "welcome": {"en": "{items}, {minutes}, {{x}}", "de": "{reward}"},
        "minutes": 7,
    }
    data["panel"] = {"kind": "generic", "reward": 1250, "currency": "USD", "parameters": {"person": "p"}}
    data["data"] = {"retention_until": "2030-01-31"}
    data["sitting"] = {**data.get("sitting", {}), "items": 9}
    data["blocks"][0]["text"] = {"en": "Until {retention_until}: {reward} {unknown}", "de": "{items}"}
    config = StudyConfig.model_validate(data)
    english, german = config.in_language("en"), config.in_language("de")
    assert (english.welcome, german.welcome) == ("9, 7, {x}", "12,50 USD")
    assert english.consent.text == english.block_text(english.blocks[0], {}) == "Until 2030-01-31: 12.50 USD {unknown}"
    assert german.consent.text == "9"
    # The file itself keeps the names.
    assert "{reward}" in config.blocks[0].text


def test_all_that_a_later_version_refuses_of_a_stored_file_is_said() -> None:
    stored = study_file.parse(GOOD).model_dump(mode="json") | {"colour": 1, "shape": 2}
    said = ("colour: this version knows no such key", "shape: this version knows no such key")
    assert read_stored(stored).problems == said
