"""Quotas with many at once, on PostgreSQL with real threads."""

from collections import Counter

import pytest

from survey.models import QuotaPlace
from survey.services.sittings import quotas
from tests import cast

from .test_concurrency import no_errors, together
from .test_quotas import AGE, AGES, OFTEN, USE, come, form, study_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgresql]
MANY = {**OFTEN, "cells": [{**cell, "places": places} for cell, places in zip(OFTEN["cells"], (7, 9), strict=True)]}


def test_of_forty_who_come_at_once_exactly_as_many_get_in_as_there_are_places() -> None:
    stage = cast.open_stage(**study_of(MANY, stages=[{"sittings": 40}]))

    def comes(use: str) -> tuple[str, str]:
        visitor = cast.Visitor(stage.study)
        step = visitor.post(use=use)
        return use, step.outcome or visitor.check().kind

    results = together(*[lambda use=use: comes(use) for use in ("daily", "some") * 20])
    no_errors(results)
    assert Counter(results) == {
        ("daily", "item"): 7,
        ("daily", "screened_out"): 13,
        ("some", "item"): 9,
        ("some", "screened_out"): 11,
    }
    assert quotas.taken_in(stage) == {("use", "often"): 7, ("use", "seldom"): 9}


def test_two_quotas_and_people_who_come_back_at_the_same_time_stay_exact() -> None:
    stage = cast.open_stage(**study_of(MANY, AGES, forms=(form(USE, AGE),), stages=[{"sittings": 40}]))
    away = [come(stage.study, use="daily", age="70").expire() for _person in range(5)]
    fresh = [cast.Visitor(stage.study) for _person in range(12)]
    results = together(
        *[lambda visitor=visitor: visitor.post(use="daily", age="20") for visitor in fresh[:4]],
        *[lambda visitor=visitor: visitor.check().kind for visitor in away],
        *[lambda visitor=visitor: visitor.post(use="daily", age="45") for visitor in fresh[4:]],
    )
    no_errors(results)
    taken = quotas.taken_in(stage)
    assert taken["use", "often"] <= 7 and taken.get(("age", "young"), 0) <= 1 and taken.get(("age", "older"), 0) <= 3
    lost = QuotaPlace.objects.filter(state="lost").count()
    assert lost == sum(result == "end" for result in results[4:9])
    assert QuotaPlace.objects.filter(quota="use", sitting__state="live", state="held").count() == taken["use", "often"]
