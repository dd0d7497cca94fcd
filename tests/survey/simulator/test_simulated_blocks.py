"""Simulated people get through attention checks, every kind of question, screening, and the choice about one's data."""

from collections import Counter
from typing import Any

import pytest

from survey.models import AttentionAnswer, DataChoice, FormAnswer, Sitting, Study
from survey.services.sittings import quotas
from survey.simulator import Crowd, visitors
from tests import cast
from tests.frontend.test_blocks import ABOUT, ASKING, READ, SCREENER, blocks
from tests.survey.sittings.test_quotas import AGE, USE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database, pytest.mark.thorough]
NONSENSE = {
    "name": "swim",
    "after_item": 3,
    "kind": "nonsense",
    "text": "I swim to the moon.",
    "options": ["never", "rarely", "often"],
    "right": 2,
    "shuffle": False,
}


def study_of_everything() -> Study:
    made = blocks(before=SCREENER, after=ABOUT, debriefing=ASKING)
    for name in ("demographics", "ai_use", "looked_up", "comment"):
        made.insert(-2, {"kind": "form", "ready": name})
    return cast.open_study(
        blocks=made, sitting={"items": 3, "attention_checks": [READ, NONSENSE]}, stages=[{"sittings": 4}]
    )


@pytest.mark.parametrize("through", ["pages", "api"])
def test_simulated_people_get_through_every_kind_of_page(through: str, live_server: Any) -> None:
    study = study_of_everything()
    crowd = Crowd(study=study, respondents=3, base_url=live_server.url, through=through)
    assert crowd.run() == Counter(completed=3)
    assert AttentionAnswer.objects.count() == 6
    assert DataChoice.objects.filter(may_use=True).count() == 3
    assert FormAnswer.objects.filter(block="screener", answers__adult="Yes").count() == 3
    for answers in FormAnswer.objects.filter(block="about").values_list("answers", flat=True):
        assert answers["agree"] in range(1, 6) and answers["tools"]
    assert FormAnswer.objects.filter(block="demographics").count() == 3
    assert set(Sitting.objects.values_list("state", flat=True)) == {"complete"}


@pytest.mark.parametrize(("share", "passed"), [(0.0, {True}), (1.0, {True, False})])
def test_careless_people_fail_attention_checks_and_others_do_not(
    share: float, passed: set[bool], live_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visitors, "CARELESS", share)
    study = study_of_everything()
    assert Crowd(study=study, respondents=4, base_url=live_server.url).run() == Counter(completed=4)
    assert set(AttentionAnswer.objects.values_list("passed", flat=True)) == passed


def test_simulated_people_fill_the_cells_of_quotas_and_those_beyond_find_them_full(live_server: Any) -> None:
    # A form behind the items asks `age` and `use` as well.
    screener = {"kind": "form", "name": "screener", "fields": [{**AGE, "name": "years"}, {**USE, "name": "used"}]}
    cells = [
        {"name": "often", "places": 2, "answers": {"used": ["daily"]}},
        {"name": "seldom", "places": 2, "answers": {"used": ["some"]}},
    ]
    ages = [{"name": "young", "share": 0.25, "between": {"years": [18, 29]}}]
    study = cast.open_study(
        blocks=blocks(before=screener),
        quotas=[{"name": "use", "cells": cells}, {"name": "age", "otherwise": "admit", "cells": ages}],
        panel={"kind": "generic"},
        stages=[{"sittings": 4}],
    )
    crowd = Crowd(study=study, respondents=4, base_url=live_server.url)
    outcomes = crowd.run()
    taken = quotas.taken_in(study.stages.get(index=1))
    assert (taken["use", "often"], taken["use", "seldom"], taken["age", "young"]) == (2, 2, 1)
    assert outcomes == Counter(completed=4)
    report = crowd.report()
    assert report.differences == () and "0 people found their part of a quota full" in report.lines
