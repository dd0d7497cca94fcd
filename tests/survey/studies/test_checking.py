"""A study file is checked before it becomes a study; nothing is written."""

import json
import re
import tomllib
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.utils import timezone

from survey.exceptions import FileErrors
from survey.models import AuditEntry, Study
from survey.services.studies.checking import StudyCheck, check_study
from survey.services.studies.creating import create_study
from survey.study_file import StageConfig
from tests import cast

pytestmark = pytest.mark.django_db

SHIPPED = sorted(path for path in Path(settings.BASE_DIR, "studies").rglob("*.toml") if "budget" not in path.name)
PAID = {**cast.PROLIFIC, "reward": 200, "spending_cap": 100_000}


def checked(*, fee: float = 0.25, **overrides: Any) -> StudyCheck:
    return check_study(text=cast.study_text(**overrides), source_name="new.toml", fee=fee)


def messages(check: StudyCheck, level: str = "problem") -> list[str]:
    return [f"{finding.field}: {finding.message}" for finding in check.findings if finding.level == level]


@pytest.fixture(autouse=True)
def _bank(db: None) -> None:
    cast.bank()


def test_a_good_file_has_no_problem_and_nothing_is_written() -> None:
    check = checked()
    assert not check.has_problems and messages(check) == []
    assert (check.slug, check.bank, check.retention_until) == ("cast", "cast version 1", "2099-12-31")
    assert not Study.objects.exists() and not AuditEntry.objects.exists()


def test_it_counts_sittings_and_slots_by_role() -> None:
    check = checked(roles={"holdout": 0.3, "controls": 0}, stages=[{"sittings": 4, "pilot": True}, {"sittings": 8}])
    assert [(stage.stage, stage.pilot, stage.sittings) for stage in check.stages] == [(1, True, 4), (2, False, 8)]
    assert check.stages[1].slots["sampled"] + check.stages[1].slots["holdout"] == 24
    assert check.stages[1].slots["holdout"] > 0 and check.stages[1].slots["controls"] == 0


def test_it_adds_up_the_cost_with_the_fee() -> None:
    cost = checked(panel=PAID).cost
    assert cost is not None
    assert (cost.people, cost.rewards, cost.fee, cost.total) == (6, 1200, 300, 1500)


ADULT = {"name": "adult", "label": "Adult?", "kind": "choice", "options": ["Yes", "No"], "required": True}
SCREENER = {"kind": "form", "name": "screener", "fields": [{**ADULT, "screen_out": ["No"]}]}
SCREENS = [*cast.BASE["blocks"][:2], SCREENER, *cast.BASE["blocks"][2:]]


def test_screen_outs_are_part_of_the_cost_and_under_the_cap() -> None:
    panel = {**PAID, "screen_out_pay": 20, "screen_out_places": 5}
    cost = checked(panel=panel, blocks=SCREENS).cost
    # Two stages with a posting each, five places at 20 cents.
    assert cost is not None and (cost.screen_outs, cost.fee, cost.total) == (200, 350, 1750)
    assert messages(checked(panel={**panel, "spending_cap": 1399}, blocks=SCREENS)) == [
        "panel.spending_cap: 1399 does not cover the rewards of all places and the screen-outs, 1400: raise it"
    ]
    assert messages(checked(panel={**panel, "spending_cap": 1400}, blocks=SCREENS)) == []


@pytest.mark.parametrize(
    ("pay", "blocks", "level", "words"),
    [
        ({"screen_out_pay": 20, "screen_out_places": 5}, cast.BASE["blocks"], "problem", "screens anybody out"),
        ({"screen_out_pay": 13, "screen_out_places": 5}, SCREENS, "problem", "the panel's minimum is 14"),
        ({}, SCREENS, "remark", "which the panel requires"),
    ],
)
def test_it_says_what_is_wrong_with_screen_outs(pay: Any, blocks: Any, level: str, words: str) -> None:
    problems = messages(checked(panel={**PAID, **pay}, blocks=blocks), level)
    assert [words in message for message in problems if message.startswith("panel.screen_out_pay")] == [True]


def test_it_refuses_a_time_that_the_panel_would_refuse() -> None:
    panel = {**PAID, "reward": 400, "expected_minutes": 9, "maximum_minutes": 25}
    assert messages(checked(panel=panel)) == [
        "panel.maximum_minutes: 25: for 9 expected minutes the panel takes 26 or more"
    ]
    assert messages(checked(panel={**panel, "maximum_minutes": 26})) == []


def test_it_refuses_pay_under_the_panels_minimum() -> None:
    check = checked(panel={**PAID, "reward": 20}, texts={**cast.BASE["texts"], "minutes": 10})
    assert messages(check) == [
        "panel.reward: 1.20 USD an hour by the expected 10 minutes; the panel's minimum is 8.00: "
        "make it 134 or more, or the sitting shorter"
    ]
    assert check.pay is not None and check.pay.minimum == 800


def test_it_refuses_a_file_without_a_term_or_with_one_that_is_past() -> None:
    assert messages(checked(data={}))[0].startswith("data.retention_until: is missing")
    assert messages(checked(data={"retention_until": "2020-01-01"}))[0].startswith(
        "data.retention_until: 2020-01-01 is past"
    )


def test_it_refuses_a_cap_that_does_not_cover_the_rewards() -> None:
    assert messages(checked(panel={**PAID, "spending_cap": 500}))[0].startswith(
        "panel.spending_cap: 500 does not cover"
    )
    without = {key: value for key, value in PAID.items() if key != "spending_cap"}
    assert messages(checked(panel=without))[0].startswith("panel.spending_cap: none is named")


def test_it_says_what_creating_would_refuse_at_its_line() -> None:
    text = cast.study_text(instrument={"options": {"threshold": 200}}, questions={"tasks": ["nothing"]})
    check = check_study(text=text, source_name="new.toml")
    assert {finding.field for finding in check.findings if finding.level == "problem"} == {
        "instrument.options.threshold"
    }
    line = next(finding.line for finding in check.findings if finding.level == "problem")
    assert line is not None and text.splitlines()[line - 1].startswith("threshold")
    broken = check_study(text=cast.study_text(sittings=1), source_name="new.toml")
    assert broken.has_problems and broken.findings[0].field == "sittings"


@pytest.mark.parametrize("source_name", ["new.toml", "draft:2: seed: old.toml", ""])
def test_a_message_with_colons_and_numbers_arrives_whole(source_name: str) -> None:
    text = cast.study_text(
        instrument={"options": {"stranger": 1}}, panel={**cast.PROLIFIC, "exclude_people_of": ["not-there"]}
    ).replace("stranger", '"a:3: b"')
    check = check_study(text=text, source_name=source_name)
    with pytest.raises(FileErrors) as refused:
        create_study(text=text, source_name=source_name)
    wanted = [(problem.line, problem.field, problem.message) for problem in refused.value.problems]
    assert [
        (finding.line, finding.field, finding.message) for finding in check.findings if finding.level == "problem"
    ] == wanted
    (option,) = (finding for finding in check.findings if "a:3: b" in finding.field)
    assert option.field == "instrument.options.a:3: b" and option.message.startswith("unknown option; ")
    assert [problem.line for problem in refused.value.problems] == sorted(
        problem.line or 0 for problem in refused.value.problems
    )


def test_a_bank_that_is_not_loaded_is_a_remark() -> None:
    check = checked(bank="unheard_of")
    assert messages(check) == []
    assert any(remark.startswith("bank: ") for remark in messages(check, "remark"))


def test_it_remarks_on_what_ethics_boards_expect() -> None:
    bare = [block for block in cast.BASE["blocks"] if block["kind"] in ("consent", "items", "end")]
    remarks = messages(checked(blocks=bare, texts={"minutes": 3}), "remark")
    for expected in (
        "no debriefing",
        "no instructions",
        "no comprehension checks",
        "texts.contact: none",
        "the consent",
        "does not seem to say that pages measure how long they are looked at",
    ):
        assert any(expected in remark for remark in remarks), expected


def test_it_names_the_codes_and_what_the_panel_does_on_them() -> None:
    assert checked(panel=PAID).codes == {
        "completed": "manually_review",
        "no_consent": "request_return",
        "failed_checks": "request_return",
        "study_full": "request_return",
    }


def test_missing_words_of_a_language_are_problems() -> None:
    check = checked(texts={**cast.BASE["texts"], "languages": ["en", "de"]})
    assert any('has no text in "de"' in problem for problem in messages(check))


def test_a_study_that_is_there_is_checked_as_amended() -> None:
    cast.open_study()
    check = checked(seed=8)
    assert any("with which it is amended" in remark for remark in messages(check, "remark"))


@pytest.mark.slow
def test_the_command_ends_with_status_1_where_something_would_stop_it(tmp_path: Path) -> None:
    file = tmp_path / "new.toml"
    file.write_text(cast.study_text(panel=PAID))
    out = StringIO()
    call_command("check_study", str(file), stdout=out)
    assert "0 problems" in out.getvalue() and "cost: 6 people" in out.getvalue()
    file.write_text(cast.study_text(data={}))
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("check_study", str(file), "--json", stdout=out)
    assert ended.value.code == 1
    as_json = json.loads(out.getvalue())
    assert as_json["ok"] is False and as_json["findings"][0]["field"] == "data.retention_until"


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_files_that_come_along_have_no_problem(path: Path) -> None:
    check = check_study(text=path.read_text(encoding="utf-8"), source_name=path.name)
    assert messages(check) == []


def test_it_adds_up_the_sampled_slots_that_predictors_learn_from() -> None:
    design = {"kind": "epsilon_greedy"}
    check = checked(
        roles={"holdout": 0, "controls": 0},
        stages=[{"sittings": 2, "pilot": True}, {"sittings": 4}, {"sittings": 5, "design": design}],
        predictor={"name": "same_task"},
    )
    items = [stage.slots["sampled"] for stage in check.stages]
    assert [stage.sampled_so_far for stage in check.stages] == [None, items[1], items[1] + items[2]]


def test_it_says_what_a_test_stage_asks_for_and_refuses_a_pool_without_enough_at_the_ends() -> None:
    design = {"kind": "test_set", "pairs": 6, "responses_per_pair": 4, "top_fraction": 0.1, "bottom_fraction": 0.1}
    stages = [{"sittings": 4}, {"sittings": 8, "design": design, "ties": "left_out"}]
    common = {"roles": {"holdout": 0, "controls": 0}, "predictor": {"name": "same_task"}, "stages": stages}
    test = checked(**common).stages[1].test
    assert test is not None
    assert (test.items, test.responses_per_item, test.from_top, test.from_bottom) == (6, 4, 4, 2)
    assert (test.ties, test.candidates) == ("left_out", 31)  # ceil(0.1 * 31) = 4 and ceil(0.1 * 30) = 3.
    # What predictions will be about is not known yet, so that the way out is said before anybody is paid.
    (remark,) = [message for message in messages(checked(**common), "remark") if message.startswith("stages.2")]
    assert "plan_stage" in remark and "2 --short-booklets" in remark
    few = messages(checked(**common, candidates={"size": 30}))
    assert any(message.startswith("candidates.size: 30: stage 2 draws 4 items from the top 0.1") for message in few)
    assert not any(
        message.startswith("candidates.size") for message in messages(checked(**common, candidates={"size": 31}))
    )


def test_ties_belong_to_test_sets() -> None:
    check = checked(stages=[{"sittings": 4, "ties": "label_1"}])
    assert messages(check) == ["stages.1.ties: only a test set has majority labels: remove it"]
    with_default = {"kind": "test_set"}
    assert StageConfig.model_validate({"sittings": 4, "design": with_default}).ties == "label_0"
    assert StageConfig.model_validate({"sittings": 4}).ties is None


def test_the_papers_study_has_the_papers_numbers() -> None:
    path = Path(settings.BASE_DIR, "studies", "example-paper.toml")
    check = check_study(text=path.read_text(encoding="utf-8"), source_name=path.name, fee=1 / 3)
    assert [stage.sampled_so_far for stage in check.stages] == [
        8_805,
        10_410,
        12_015,
        13_620,
        15_240,
        16_860,
        18_480,
        None,
    ]
    assert all(stage.slots["holdout"] == stage.slots["controls"] == 0 for stage in check.stages)
    test = check.stages[-1].test
    assert test is not None and check.stages[-1].slots["sampled"] == 492 * 9
    assert (test.items, test.from_top, test.from_bottom, test.top_fraction, test.bottom_fraction) == (
        *(492, 328, 164),
        *(0.01, 0.01),
    )
    assert check.cost is not None
    assert (check.cost.people, check.cost.rewards, check.cost.total) == (1_528, 382_000, 509_333)
    words = path.read_text(encoding="utf-8")
    for said in ("1,528 people", "3,820 USD", "5,093 USD", "18,480"):
        assert said in words
    out = StringIO()
    call_command("check_study", str(path), stdout=out)
    assert "492 items, 328 of the top 1 % and 164 of the bottom 1 % of the scores, 9 people each" in out.getvalue()


ADAPTIVE: dict[str, Any] = {
    "stages": [{"sittings": 60}, {"sittings": 60, "design": {"kind": "epsilon_greedy", "epsilon": 0.2}}],
    "predictor": {"name": "same_task"},
    "candidates": {"size": 5000},
    "sitting": {"items": 8},
    "roles": {"holdout": 0, "controls": 0},
}


@pytest.mark.slow
def test_it_says_what_larger_pools_would_find(tmp_path: Path) -> None:
    cast.small_bank(200)  # 79,600 pairs: 80,000 candidates there are not.
    settings_ = {**ADAPTIVE, "bank": "small"}
    path = tmp_path / "study.toml"
    path.write_text(cast.study_text(**settings_), encoding="utf-8")
    out = StringIO()
    call_command("check_study", str(path), stdout=out)
    said = re.search(
        r"with 5,000 candidates (0\.\d{3}) of the answers from stage 2 on have label 1.* (0\.\d{3}) with 20,000",
        out.getvalue(),
    )
    assert said is not None
    own, larger = map(float, said.groups())
    assert own + 0.01 < larger


@pytest.mark.thorough
@pytest.mark.parametrize(
    "more",
    [
        {"candidates": {"size": 20_000}},
        {"candidates": {"kind": "exhaustive"}},
        {"stages": [{"sittings": 60}]},
    ],
)
def test_it_says_nothing_of_pools_where_none_is_larger(more: dict[str, Any]) -> None:
    cast.small_bank(200)
    settings_ = {**ADAPTIVE, "bank": "small", **more}
    assert check_study(text=cast.study_text(**settings_), source_name="new.toml", pools=True).pools == []


def test_it_says_when_a_stage_ends_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    stages = [{"sittings": 90, "stop": {"width": 0.04, "factor": "framing"}}]
    conditions = [{"factor": "framing", "levels": ["one", "two"]}]
    cast.small_bank(60)
    path.write_text(
        cast.study_text(bank="small", stages=stages, conditions=conditions, candidates={"size": 500}), encoding="utf-8"
    )
    out = StringIO()
    call_command("check_study", str(path), stdout=out)
    assert (
        "stage 1 ends once its interval of the difference by framing is narrower than 0.04, with 30 to 90 people"
        in out.getvalue()
    )


def fields(check: StudyCheck, level: str = "remark") -> set[str]:
    return {finding.field for finding in check.findings if finding.level == level}


def test_money_is_compared_at_its_bounds() -> None:
    enough = {**PAID, "reward": 40, "expected_minutes": 3}  # 8.00 an hour, the panel's minimum.
    assert "panel.reward" not in fields(checked(panel=enough), "problem")
    assert "panel.reward" in fields(checked(panel={**enough, "reward": 39}), "problem")
    screened = {**PAID, "screen_out_pay": 14, "screen_out_places": 5}
    assert "panel.screen_out_pay" not in fields(checked(panel=screened, blocks=SCREENS), "problem")
    # 1200 of rewards, and 300 of fees at 25 %.
    for cap, is_said in ((1499, True), (1500, False), (1200, True)):
        said = messages(checked(panel={**PAID, "spending_cap": cap}), "remark")
        assert (
            any(message.startswith("panel.spending_cap") and "about 1500 in all" in message for message in said)
            is is_said
        ), cap
    cost = checked(panel={**PAID, "reward": 1}, fee=0.25, stages=[{"sittings": 2, "pilot": True}, {"sittings": 5}]).cost
    assert cost is not None and (cost.people, cost.rewards, cost.fee, cost.total) == (7, 7, 2, 9)


@pytest.mark.slow
def test_it_remarks_on_what_a_panel_needs() -> None:
    stages = [{"sittings": 4}, {"sittings": 2}]
    for places, is_said in ((3, True), (4, False)):
        assert ("panel.places" in fields(checked(panel={**PAID, "places": places}, stages=stages))) is is_said
    without = {name: value for name, value in PAID.items() if name != "completion_url"}
    assert "panel.completion_url" in fields(checked(panel=without))
    assert "panel.completion_url" not in fields(checked(panel=PAID))
    assert "panel.project" in fields(checked(panel=PAID))
    assert "panel.project" not in fields(checked(panel={**PAID, "project": "p1"}))
    assert "panel.participant_group" in fields(checked(panel=PAID, stages=stages))
    assert "panel.participant_group" not in fields(checked(panel=PAID, stages=stages[:1]))
    assert "panel.participant_group" not in fields(checked(panel={**PAID, "participant_group": "g"}, stages=stages))
    assert "panel.filter_set" in fields(checked(panel={**PAID, "filter_set": "s"}))
    assert "panel.filter_set" not in fields(checked(panel=PAID))
    unpaid = {name: value for name, value in PAID.items() if name != "reward"}
    assert "panel.reward" in fields(checked(panel=unpaid)) and "panel.reward" not in fields(checked())
    # Who pays nobody needs no pilot.
    assert any("no pilot" in message for message in messages(checked(panel=PAID), "remark"))
    assert not any("no pilot" in message for message in messages(checked(), "remark"))
    piloted = checked(panel=PAID, stages=[{"sittings": 1, "pilot": True}, *stages])
    assert not any("no pilot" in message for message in messages(piloted, "remark"))


def test_it_remarks_on_nothing_that_is_there() -> None:
    """Of what ethics boards ask for, the file of the cast has all but a long consent."""
    remarks = [message for message in messages(checked(), "remark") if message.startswith(("blocks", "texts"))]
    assert not [
        remark
        for remark in remarks
        if "no debriefing" in remark or "no instructions" in remark or "no compreh" in remark
    ]
    for length, is_said in ((199, True), (200, False)):
        blocks = [
            {**block, "text": "x" * length} if block["kind"] == "consent" else block for block in cast.BASE["blocks"]
        ]
        said = messages(checked(blocks=blocks), "remark")
        assert any(f"the consent has {length} characters" in message for message in said) is is_said


@pytest.mark.parametrize(
    ("places", "otherwise", "is_short", "is_unplaced"),
    [(3, "screened_out", True, True), (4, "screened_out", False, True), (3, "admit", False, False)],
)
def test_places_of_a_quota_that_could_never_fill_a_stage(
    places: int, otherwise: str, is_short: bool, is_unplaced: bool
) -> None:
    asked = {"kind": "form", "name": "you", "fields": [ADULT]}
    cells = [{"name": "adult", "places": places, "answers": {"adult": ["Yes"]}}]
    blocks = [*cast.BASE["blocks"][:2], asked, *cast.BASE["blocks"][2:]]
    check = checked(
        blocks=blocks, quotas=[{"name": "q", "otherwise": otherwise, "cells": cells}], stages=[{"sittings": 4}]
    )
    assert any("so it can never be full" in message for message in messages(check)) is is_short
    assert any("in no cell, and so " in message for message in messages(check, "remark")) is is_unplaced


@pytest.mark.slow
def test_waves_are_compared_at_their_bounds() -> None:
    today = timezone.now().date()
    links = {"kind": "links", "currency": "USD", "reward": 100}
    waves = [{"after_days": 10, "open_days": 2}]

    def said(days: int, *, places: int = 4, open_days: int = 2) -> set[str]:
        check = checked(
            panel=links,
            stages=[{"sittings": 1, "pilot": True}, {"sittings": 4}, {"sittings": places, "wave": 2}],
            waves=[{**waves[0], "open_days": open_days}],
            data={"retention_until": (today + timedelta(days=days)).isoformat()},
        )
        return {f"{finding.field} {finding.level}" for finding in check.findings}

    last = 10 + 2
    assert "data.retention_until problem" not in said(last)
    assert "data.retention_until problem" in said(last - 1)
    assert "waves.1 remark" not in said(last) and "waves.1 remark" in said(last, places=3)
    assert "waves.1 remark" in said(last, open_days=1)


def test_a_set_of_filters_that_waves_cannot_add_to_is_a_problem() -> None:
    waves = {"stages": [{"sittings": 4}, {"sittings": 4, "wave": 2}], "waves": [{"after_days": 1, "open_days": 7}]}
    assert "panel.filter_set" in fields(checked(panel={**PAID, "filter_set": "s"}, **waves), "problem")
    filters = [{"filter_id": "age", "selected_range": {"lower": 18}}]
    assert "panel.filter_set" not in fields(checked(panel={**PAID, "filters": filters}, **waves), "problem")


@pytest.mark.slow
def test_a_users_file_is_a_new_study_and_a_commands_the_next_file_of_its_study(django_user_model: Any) -> None:
    cast.study()
    reader = django_user_model.objects.create_superuser("reader")
    check = check_study(text=cast.study_text(seed=8), source_name="new.toml", reader=reader)
    assert any("exists already" in message for message in messages(check))
    assert not any("exists already" in message for message in messages(checked(seed=8)))


# What texts say against the rest of the file


def with_texts(instructions: str, **overrides: Any) -> list[str]:
    blocks = [cast.BLOCKS[0], {"kind": "instructions", "text": instructions}, *cast.BLOCKS[1:]]
    return messages(checked(blocks=blocks, sitting={"items": 6}, stages=[{"sittings": 4}], **overrides), "remark")


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "You will see about 15 questions.",
            'blocks.2.text: says "15 questions", and a sitting has 6 items: write {items}',
        ),
        ("You will see fifteen short questions.", 'says "fifteen short questions", and a sitting has 6 items'),
        ("You will see 6 questions, or {items} questions.", ""),
        ("It takes 20 minutes.", 'says "20 minutes", and texts.minutes is 3: write {minutes}'),
        ("It takes {minutes} minutes, and at most 60 minutes.", ""),
        ("You get 3.00 USD.", 'says "3.00 USD", and panel.reward is 2.00 USD: write {reward}'),
        ("You get $2.00, which is {reward}.", ""),
        ("Say if the **left** one is right.", "'**' makes nothing bold, people read it as it stands: remove it"),
        ("2 ** 3 is 8.", "'**' makes nothing bold"),
        ("# Welcome", "'#' makes no heading"),
        ("* one\n* two", "'*' makes no list: begin each line with \"- \""),
        ("See [here](https://a.example).", "makes no link: write the address alone"),
        ("A <b>word</b>.", "'<b>' is no markup here"),
        (
            "80 percent of such questions, in 2 questions and 5 minutes of an hour's 60 minutes: a_b__c",
            'says "5 minutes"',
        ),
    ],
)
def test_texts_are_held_against_the_file(text: str, remark: str) -> None:
    remarks = [line for line in with_texts(text, panel=PAID) if line.startswith("blocks.2.text")]
    assert len(remarks) == bool(remark) and remark in "".join(remarks)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{item} questions", "there is no {item}; there are {items}, {minutes}, {reward}, {retention_until}"),
        ("{reward}", "{reward} needs panel.reward: add that key, or remove {reward}"),
        ("{}", ""),
        ("{{item}} and {{{{x}}}}", ""),
        ("{items} {minutes} {retention_until}", ""),
    ],
)
def test_a_name_in_braces_that_there_is_not_is_refused(text: str, problem: str) -> None:
    blocks = [cast.BLOCKS[0], {"kind": "instructions", "text": text}, *cast.BLOCKS[1:]]
    found = messages(checked(blocks=blocks))
    assert len(found) == bool(problem) and problem in "".join(found)
    assert not problem or found[0].startswith("blocks.2.text: ")


def test_names_in_braces_are_checked_in_every_language_and_under_every_level() -> None:
    texts = {"languages": ["en", "de"], "welcome": {"en": "{items}", "de": "{fragen}"}, "minutes": 3}
    conditions = [{"factor": "f", "levels": ["a", "b"], "texts": {"a": {"end": {"en": "{x}", "de": "x"}}}}]
    found = [line.split(";")[0] for line in messages(checked(texts=texts, conditions=conditions))]
    unknown = [line for line in found if "there is no" in line]
    assert unknown == ["texts.welcome: there is no {fragen}", "conditions.1.texts.a.end: there is no {x}"]


GERMAN = "Welche der Städte ist nicht die Hauptstadt von einem Land, und für wen ist das bei der Frage mit dem Namen?"
ENGLISH = (
    "Which of these cities is not the capital of a country, and what have they been called by those who were there?"
)


@pytest.mark.parametrize(
    ("questions", "texts", "remark"),
    [
        (ENGLISH, {"language": "de"}, True),
        (GERMAN, {}, True),
        (ENGLISH, {}, False),
        (GERMAN, {"language": "de"}, False),
        (ENGLISH, {"language": "de", "bank_language": "en"}, False),
        ("12 + 7 = ?", {"language": "de"}, False),
        ("Quelle est la capitale de la France, et pourquoi les gens y sont-ils venus avec des enfants?", {}, False),
    ],
)
def test_a_bank_in_another_language_is_remarked_where_that_is_sure(
    questions: str, texts: dict[str, Any], remark: bool
) -> None:
    cast.small_bank(20, name="other").questions.update(text=questions)
    remarks = messages(checked(bank="other", texts={"welcome": "Willkommen.", **texts}), "remark")
    assert any("bank_language" in line for line in remarks) is remark


# Words for people of a panel


def test_instructions_of_shannons_game_are_short_and_plain() -> None:
    file = tomllib.loads((Path(settings.BASE_DIR) / "studies" / "example-shannon.toml").read_text(encoding="utf-8"))
    text = next(block["text"] for block in file["blocks"] if block["kind"] == "instructions")
    assert 60 < len(re.findall(r"[^\W_]+(?:[’'.,-][^\W_]+)*", text)) <= 120
    every_text = [file["texts"]["welcome"], *(block.get("text", "") for block in file["blocks"])]
    assert not any(word in text.casefold() for text in every_text for word in ("token", "**", "·", "entropy"))


@pytest.mark.parametrize("name", ["example-token-comparison.toml", "example-next-token.toml"])
def test_instructions_of_the_token_studies_are_short_and_plain(name: str) -> None:
    file = tomllib.loads((Path(settings.BASE_DIR) / "studies" / name).read_text(encoding="utf-8"))
    page = (Path(settings.BASE_DIR) / "docs" / name.removeprefix("example-").replace(".toml", ".md")).read_text("utf-8")
    (german,) = re.findall(r"(?s)<!-- instructions: de -->\n+```text\n(.*?)```", page)
    english = next(block["text"] for block in file["blocks"] if block["kind"] == "instructions")
    for text in (english, german):
        assert len(re.findall(r"[^\W_]+(?:[’'.,-][^\W_]+)*", text)) <= 120
    every_text = [file["texts"]["welcome"], german, *(block.get("text", "") for block in file["blocks"])]
    assert not any(word in text.casefold() for text in every_text for word in ("token", "**", "·"))


def test_a_bank_that_is_not_there_is_a_remark_for_a_command_and_a_problem_for_a_person(
    django_user_model: Any,
) -> None:
    text = cast.study_text(bank="nobodys", predictor={"name": "no_such"})
    reader = django_user_model.objects.create_user("reader")
    of_command, of_reader = (check_study(text=text, source_name="new.toml", reader=who) for who in (None, reader))
    assert any("what needs its questions was not checked" in line for line in messages(of_command, "remark"))
    assert [line.partition(":")[0] for line in messages(of_command)] == ["predictor.name"]
    assert [line.partition(":")[0] for line in messages(of_reader)] == ["bank"]
    assert not any("was not checked" in line for line in messages(of_reader, "remark"))


def test_a_robust_first_stage_scouts_and_that_is_said() -> None:
    design = {"kind": "robust", "find": 0.5}
    stages = [{"sittings": 4, "pilot": True}, {"sittings": 4, "design": design}, {"sittings": 4, "design": design}]
    check = checked(stages=stages, predictor={"name": "same_task"})
    assert not check.has_problems, check.findings
    assert [finding.message for finding in check.findings if finding.field == "stages.2.design"] == [
        "robust learns from earlier answers and there are none yet, so that this stage scouts: it is drawn uniformly"
    ]
    assert [stage.design for stage in check.stages] == ["uniform", "uniform", "robust"]
    stages[1]["design"] = {"kind": "robust", "find": 1.5}
    assert any(line.startswith("stages.2.design.find: ") for line in messages(checked(stages=stages)))
