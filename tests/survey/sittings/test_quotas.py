"""Quotas by answers before the items: who gets a place, who ends, who gets the place back, and where it is shown."""

import json
import re
from operator import attrgetter
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from survey import study_file
from survey.exceptions import EntryRefused
from survey.live.people import quota_lines
from survey.models import Assignment, FormAnswer, QuotaPlace, Sitting, Stage, Study
from survey.panels.owed_list import owed_list
from survey.services.results.export import contents
from survey.services.results.export.sitting_files import sitting_files
from survey.services.results.methods import methods_section
from survey.services.results.package.coarsening import LEFT_OUT
from survey.services.sittings import quotas
from survey.services.sittings.enrolment import find_sitting, stage_to_join
from survey.services.sittings.withdrawal import withdraw
from survey.services.stages import jobs, lifecycle
from survey.services.studies.checking import check_study
from survey.study_file import QuotaConfig
from tests import cast

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
USE = {
    "name": "use",
    "label": "How often?",
    "kind": "choice",
    "options": ["Every day", "Sometimes", "Never"],
    "values": ["daily", "some", "never"],
    "required": True,
}
AGE = {"name": "age", "label": "Age?", "kind": "number", "minimum": 18, "required": True}
LIKE = {"name": "like", "label": "Like?", "kind": "likert", "points": 3, "labels": ["no", "yes"], "required": True}
OFTEN: dict[str, Any] = {
    "name": "use",
    "when_full": "screened_out",
    "cells": [
        {"name": "often", "places": 2, "answers": {"use": ["daily"]}},
        {"name": "seldom", "places": 2, "answers": {"use": ["some"]}},
    ],
}
AGES: dict[str, Any] = {
    "name": "age",
    "otherwise": "admit",
    "cells": [
        {"name": "young", "places": 1, "between": {"age": [18, 29]}},
        {"name": "older", "places": 3, "between": {"age": [30, 60]}},
    ],
}


def form(*fields: dict[str, Any], name: str = "screener") -> dict[str, Any]:
    return {"kind": "form", "name": name, "fields": list(fields)}


SCREENER = (form(USE),)


def study_of(*quotas: dict[str, Any], forms: Any = SCREENER, **overrides: Any) -> dict[str, Any]:
    blocks = [cast.BLOCKS[0], *forms, *cast.BLOCKS[1:]]
    return {"blocks": blocks, "quotas": list(quotas), "panel": {"kind": "generic"}, **overrides}


def come(study: Study, **answers: Any) -> cast.Visitor:
    visitor = cast.Visitor(study)
    visitor.post(**answers)
    return visitor


def places() -> list[tuple[str, str, str]]:
    return [(place.quota, place.cell, place.state) for place in QuotaPlace.objects.order_by("pk")]


def read(study: Study, name: str) -> list[dict[str, Any]]:
    (named_file,) = [file for file in sitting_files(study, since=None) if file.name == name]
    return [dict(zip([column.name for column in named_file.columns], row, strict=True)) for row in named_file.rows]


# Getting a place


def test_who_finds_the_cell_full_ends_before_the_checks() -> None:
    study = cast.open_stage(**study_of(OFTEN)).study
    for _person in range(2):
        assert come(study, use="daily").step.kind == "checks"
    third = come(study, use="daily")
    assert (third.step.kind, third.step.outcome) == ("end", "screened_out")
    assert third.step.code == third.code_for("screened_out") and third.sitting.booklet is None
    assert come(study, use="some").step.kind == "checks", "another cell has places"
    assert places() == [("use", "often", "held")] * 2 + [("use", "often", "full"), ("use", "seldom", "held")]


def test_who_belongs_in_no_cell_ends_or_goes_on_as_the_file_says() -> None:
    study = cast.open_stage(**study_of(OFTEN)).study
    assert come(study, use="never").step.outcome == "screened_out"
    other = cast.open_stage("other", **study_of({**OFTEN, "otherwise": "study_full"})).study
    assert come(other, use="never").step.outcome == "study_full"
    third = cast.open_stage("third", **study_of({**OFTEN, "otherwise": "admit"})).study
    assert come(third, use="never").step.kind == "checks"
    assert places() == [("use", "", "outside")] * 3


def test_who_found_the_cell_full_may_come_to_the_next_stage_and_whom_nobody_looks_for_may_not() -> None:
    full = {**OFTEN, "when_full": "study_full", "otherwise": "study_full"}
    made = cast.open_stage(**study_of(full, stages=[{"sittings": 4}, {"sittings": 4}]))
    study = made.study
    for _person in range(2):
        come(study, use="daily")
    late, other = come(study, use="daily"), come(study, use="never")
    assert find_sitting(study, late.ids) == late.sitting, "in the same stage it is over"
    jobs.run_inline(lifecycle.close_stage(made, now=True))
    lifecycle.open_stage(cast.stage_of(study, 2))
    assert find_sitting(study, other.ids) == other.sitting
    assert find_sitting(study, late.ids) is None
    next_study = cast.open_stage("next", panel={"kind": "generic", "exclude_people_of": [study.slug]}).study
    assert cast.begin(next_study, late.ids), "they took no part in the other study"
    again = cast.Visitor(study, ids=late.ids)
    assert again.sitting.respondent.came_before == late.sitting.respondent
    assert again.post(use="daily").kind == "checks" and again.sitting.stage.index == 2
    assert cast.begin(study, late.ids) == again.sitting, "once"
    with pytest.raises(EntryRefused, match="earlier study"):
        cast.begin(next_study, other.ids)


def test_a_quota_over_two_forms_is_decided_after_the_second(django_assert_max_num_queries: Any) -> None:
    both = {
        "name": "both",
        "cells": [
            {"name": "old_daily", "places": 1, "between": {"age": [60, 99]}, "answers": {"use": ["daily"]}},
            {"name": "rest", "places": 3, "between": {"age": [18, 59]}},
        ],
    }
    study = cast.open_stage(**study_of(both, AGES, forms=(form(AGE, name="first"), form(USE, name="second")))).study
    visitor = come(study, age="64")
    assert visitor.step.kind == "form" and places() == [("age", "", "outside")]
    visitor.reload()
    with django_assert_max_num_queries(12):
        visitor.post(use="daily")
    assert visitor.step.kind == "checks" and places()[1:] == [("both", "old_daily", "held")]
    assert QuotaPlace.objects.get(quota="both").answers == {"age": 64, "use": "daily"}
    late = come(study, age="70")
    assert late.post(use="daily").outcome == "study_full", "turned away, since the file says nothing else"
    assert come(study, age="20").step.kind == "form"
    young = come(study, age="21")
    assert (young.step.kind, young.step.outcome) == ("end", "study_full"), "the quota of ages has one young place"


def test_answers_of_a_later_form_with_the_same_name_decide_nothing() -> None:
    again = form({**USE, "label": "And now?"}, name="again")
    blocks = [cast.BLOCKS[0], form(USE), *cast.BLOCKS[1:3], again, cast.BLOCKS[3]]
    study = cast.open_stage(**study_of(OFTEN)).study if False else None
    made = cast.open_stage(**{**study_of(OFTEN), "blocks": blocks})
    assert study is None
    visitor = come(made.study, use="daily")
    assert visitor.step.kind == "checks" and QuotaPlace.objects.count() == 1


def test_who_could_get_no_place_reads_so_at_the_door(capsys: pytest.CaptureFixture[str]) -> None:
    stage = cast.open_stage(**study_of(OFTEN, stages=[{"sittings": 6}]))
    study = stage.study
    for use in ("daily", "daily", "some"):
        come(study, use=use)
    assert stage_to_join(study) == stage
    last = come(study, use="some")
    with pytest.raises(EntryRefused) as refused:
        stage_to_join(study)
    assert refused.value.code == "full"
    last.expire()
    assert stage_to_join(study) == stage, "a place came free"
    call_command("study_status", study.slug)
    assert re.search(r"use: seldom +1 +2 +1 +0 +0", capsys.readouterr().out)
    other = cast.open_stage("other", **study_of({**OFTEN, "otherwise": "admit"}, stages=[{"sittings": 6}]))
    for use in ("daily", "daily", "some", "some"):
        come(other.study, use=use)
    assert stage_to_join(other.study) == other


# Giving it back


def test_places_of_who_leaves_fails_or_withdraws_go_to_others() -> None:
    stage = cast.open_stage(**study_of(OFTEN))
    study = stage.study
    silent, failing = come(study, use="daily"), come(study, use="daily")
    assert come(study, use="daily").step.outcome == "screened_out"
    silent.expire()
    failing.check(right=False)
    failing.check(right=False)
    assert quotas.taken_in(stage) == {}
    gone, remaining = come(study, use="daily"), come(study, use="daily")
    withdraw(respondent=gone.sitting.respondent, now=timezone.now())
    assert not gone.sitting.quota_places.exists(), "what they answered is deleted with it"
    remaining.finish()
    assert quotas.taken_in(stage) == {("use", "often"): 1}


def test_who_left_after_the_last_item_keeps_the_place() -> None:
    stage = cast.open_stage(**study_of(OFTEN, forms=(form(USE),), blocks=[
        cast.BLOCKS[0], form(USE), *cast.BLOCKS[1:3], form(AGE, name="about"), cast.BLOCKS[3],
    ]))  # fmt: skip
    visitor = come(stage.study, use="daily").to_items()
    while visitor.step.kind == "item":
        visitor.answer()
    visitor.expire()
    assert quotas.taken_in(stage) == {("use", "often"): 1}
    half = come(stage.study, use="daily").to_items()
    half.answer()
    half.expire()
    assert quotas.taken_in(stage) == {("use", "often"): 1}, "the rest of these items goes to somebody else"
    come(stage.study, use="daily")
    assert visitor.post(age="30").outcome == "completed", "the last place is their own"
    assert quotas.taken_in(stage) == {("use", "often"): 2}


def test_who_comes_back_gets_the_place_again_or_counts_no_more() -> None:
    stage = cast.open_stage(**study_of(OFTEN))
    early = come(stage.study, use="daily").expire()
    inside = come(stage.study, use="daily").to_items()
    inside.answer()
    inside.expire()
    assert inside.post(value=50).kind == "item" and "late" not in inside.states(), "the place was free still"
    inside.expire()
    for _person in range(2):
        come(stage.study, use="daily")
    ended = early.check()
    assert (ended.kind, ended.outcome) == ("end", "screened_out"), "nothing but the form was answered"
    inside.post(value=50)
    assert inside.reload().state == "live" and set(inside.states()) == {"counted", "late"}
    assert sorted(QuotaPlace.objects.values_list("state", flat=True)) == ["held", "held", "lost", "lost"]
    assert quotas.taken_in(stage) == {("use", "often"): 2}


def test_more_places_let_more_people_in() -> None:
    """Of the file in force, also for who began before it changed."""
    stage = cast.open_stage(**study_of({**OFTEN, "cells": [{**OFTEN["cells"][0], "places": 1}, OFTEN["cells"][1]]}))
    come(stage.study, use="daily")
    waiting = cast.Visitor(stage.study)
    study = Study.objects.get(pk=stage.study.pk)
    stored = json.loads(json.dumps(study.stored_config))
    stored["quotas"][0]["cells"][0]["places"] = 2
    Study.objects.filter(pk=study.pk).update(stored_config=stored, source_sha256="f" * 64)
    assert waiting.post(use="daily").kind == "checks"


def test_a_part_that_has_more_people_than_places_is_full() -> None:
    """After places were taken away from it, or after a late return."""
    stage = cast.open_stage(**study_of(OFTEN))
    for _person in range(2):
        come(stage.study, use="daily")
    waiting = cast.Visitor(stage.study)
    study = Study.objects.get(pk=stage.study.pk)
    stored = json.loads(json.dumps(study.stored_config))
    stored["quotas"][0]["cells"][0]["places"] = 1
    Study.objects.filter(pk=study.pk).update(stored_config=stored, source_sha256="f" * 64)
    assert waiting.post(use="daily").outcome == "screened_out"
    assert places()[-1] == ("use", "often", "full")


# The study file


@pytest.mark.parametrize(
    ("sittings", "shares", "places"),
    [
        (40, [0.5, 0.5], [20, 20]),
        (10, [1 / 3, 1 / 3, 1 / 3], [4, 3, 3]),
        (7, [0.5, 0.3, 0.2], [4, 2, 1]),
        (9, [0.25, 0.25], [2, 2]),
        (2, [0.9, 0.05, 0.05], [2, 0, 0]),
    ],
)
def test_shares_are_rounded_so_that_they_add_up(sittings: int, shares: list[float], places: list[int]) -> None:
    cells = [{"name": f"c{n}", "share": share, "answers": {"use": [str(n)]}} for n, share in enumerate(shares)]
    quota = QuotaConfig.model_validate({"name": "q", "cells": cells})
    assert list(quota.places(sittings).values()) == places
    assert sum(places) == round(sum(shares) * sittings)


CELL, OTHER = OFTEN["cells"]


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        ({"cells": [CELL, {**OTHER, "answers": {"use": ["daily", "some"]}}]}, "somebody can belong in often and"),
        ({"cells": [CELL, {**OTHER, "answers": {"like": ["1"]}}]}, "somebody can belong in often and"),
        ({"cells": [CELL, {**CELL, "answers": {"use": ["some"]}}]}, "two cells are called often"),
        ({"cells": [CELL, {"name": "x", "share": 0.5, "answers": {"use": ["some"]}}]}, "give all of them the same"),
        ({"cells": [{**CELL, "share": 0.5}]}, "give places or share"),
        ({"cells": [{"name": "x", "places": 2}]}, "who belongs in it"),
        ({"cells": [{**CELL, "answers": {"use": []}}]}, "use names none"),
        ({"cells": [{**CELL, "answers": {"use": ["weekly"]}}]}, "weekly is no answer to use"),
        ({"cells": [{**CELL, "answers": {"like": ["4"]}}]}, "4 is no answer to like"),
        ({"cells": [{**CELL, "answers": {"where": ["x"]}}]}, "no form before the items asks where"),
        ({"cells": [{**CELL, "answers": {"age": ["18"]}}]}, "age is of the kind 'number'"),
        ({"cells": [{**CELL, "answers": {"free": ["x"]}}]}, "free: set required = true"),
        ({"cells": [{"name": "x", "places": 2, "between": {"age": [30, 18]}}]}, "above the second"),
    ],
)
def test_quotas_that_could_not_be_counted_are_refused(quota: dict[str, Any], words: str) -> None:
    free = {**USE, "name": "free", "options": ["x", "y"], "values": ["x", "y"], "required": False}
    text = cast.study_text(**study_of({"name": "q", **quota}, forms=(form(USE, AGE, LIKE, free),)))
    with pytest.raises(study_file.StudyFileError) as refused:
        study_file.parse(text)
    assert words in str(refused.value)


def test_a_question_that_two_forms_ask_decides_nothing() -> None:
    text = cast.study_text(**study_of(OFTEN, forms=(form(USE), form(USE, name="second"))))
    with pytest.raises(study_file.StudyFileError, match="two forms before the items ask use"):
        study_file.parse(text)


def test_check_study_adds_the_places_up_and_names_who_belongs_nowhere() -> None:
    cast.bank()

    def checked(*cells: dict[str, Any]) -> Any:
        text = cast.study_text(**study_of({**OFTEN, "cells": list(cells)}, stages=[{"sittings": 4}]))
        return check_study(text=text, source_name="new.toml", fee=0.25)

    check = checked(CELL, {**OTHER, "places": 1})
    assert [f"{finding.level}: {finding.message}" for finding in check.findings if finding.field == "quotas.use"] == [
        "problem: its places add up to 3, and stage 1 needs 4 people, so it can never be full: give more places, "
        'or set otherwise = "admit"',
        "remark: in no cell, and so screened_out: use: never",
    ]
    assert check.stages[0].quotas == {"use": {"often": 2, "seldom": 1}}
    assert "screened_out" in check.codes
    tiny = ({"name": cell["name"], "answers": cell["answers"], "share": share} for cell, share in
            ((CELL, 0.9), (OTHER, 0.1)))  # fmt: skip
    assert any("has no place for: seldom" in finding.message for finding in checked(*tiny).findings)


def test_who_finds_a_part_full_is_owed_the_fixed_pay() -> None:
    panel = {"kind": "generic", "reward": 200, "screen_out_pay": 20, "screen_out_places": 5, "turned_away_pay": 30}
    stage = cast.open_stage(**study_of(OFTEN, panel=panel))
    for _person in range(3):
        come(stage.study, use="daily")
    stage.study.refresh_from_db()
    assert [line.amount for line in owed_list(stage.study)] == [0, 0, 20]


# Where it is shown


def test_it_is_exported_shown_live_and_written_down() -> None:
    stage = cast.open_stage(**study_of(OFTEN))
    study = stage.study
    done = come(study, use="daily").finish()
    half = come(study, use="daily").to_items()
    half.answer()
    come(study, use="daily")
    come(study, use="never")
    half.expire()
    rows = [(row["cell"], row["state"], row["counts"], row["answers"]) for row in read(study, "quotas.csv")]
    assert rows == [
        ("often", "held", True, '{"use": "daily"}'),
        ("often", "held", False, '{"use": "daily"}'),
        ("often", "full", False, '{"use": "daily"}'),
        (None, "outside", False, '{"use": "never"}'),
    ]
    assert read(study, "quotas.csv")[0]["respondent"] == done.sitting.respondent.pseudonym
    counts = attrgetter("cell", "places", "inside", "complete", "free", "found_full")
    lines = [counts(line) for line in quota_lines(study, [stage])]
    assert lines == [("often", 2, 0, 1, 1, 1), ("seldom", 2, 0, 0, 2, 0), ("", None, 0, 0, None, 1)]
    text = " ".join(" ".join(part) for part in methods_section.paragraphs(methods_section.methods_of(study)).values())
    assert "A quota by use, answered before the items, limits each stage: often (2 people), seldom (2 people)." in text
    assert "1 person found their part full." in text
    assert "quotas" in LEFT_OUT, "a public package has none of it"


def test_shares_are_written_down_in_per_cent() -> None:
    cells = [
        {"name": cell["name"], "answers": cell["answers"], "share": share}
        for cell, share in ((CELL, 0.125), (OTHER, 0.5))
    ]
    study = cast.open_stage(**study_of({**OFTEN, "cells": cells})).study
    come(study, use="some").finish()
    text = " ".join(" ".join(part) for part in methods_section.paragraphs(methods_section.methods_of(study)).values())
    assert "often (12.5 % of the sittings), seldom (50 % of the sittings)" in text
    assert "1 person agreed to take part" in text


def test_a_study_without_quotas_has_no_such_file() -> None:
    study = cast.open_stage().study
    assert "quotas.csv" not in {file.name for file in contents.file_heads(study)}
    assert quota_lines(study, list(Stage.objects.all())) == ()
    assert not FormAnswer.objects.exists() and not Assignment.objects.exists() and not Sitting.objects.exists()
