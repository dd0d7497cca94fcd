"""Weights of answers as a process knows them from the page before."""

import pytest

from survey.models import Assignment
from survey.services.results.estimates.weights import answer_weights, known_weights
from tests import cast
from tests.survey.results.test_interim import running

pytestmark = pytest.mark.django_db


@pytest.mark.thorough
def test_what_is_known_under_one_level_is_not_taken_for_the_whole_or_for_another() -> None:
    study = running(0.5, factor="framing").study
    stages = [cast.stage_of(study)]
    stages[0].study = study
    sizes = []
    for levels in ({"framing": "one"}, {}, {"framing": "two"}, {"framing": "one"}):
        known = known_weights(study, levels, stages)
        assert known == answer_weights(study, levels, stages)
        sizes.append(len(known))
    assert sizes == [120, 240, 120, 120]


@pytest.mark.thorough
def test_an_answer_that_took_the_place_of_another_is_noticed() -> None:
    """As many answers as before, and the same newest one."""
    study = running(0.5).study
    stages = [cast.stage_of(study)]
    stages[0].study = study
    first, other = Assignment.objects.filter(slot__stage=stages[0]).order_by("pk")[:2]
    for lost, answered in ((first, other), (other, first)):
        Assignment.objects.filter(pk=lost.pk).update(state="released", completed_at=None)
        Assignment.objects.filter(pk=answered.pk).update(state="counted", completed_at=first.completed_at)
        known = known_weights(study, {}, stages)
        assert known == answer_weights(study, {}, stages) and lost.pk not in known and answered.pk in known
