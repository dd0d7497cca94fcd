"""The report `two_studies`: a study's figures less another's, by the errors of both."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import bandit
from survey.exceptions import HunchError
from survey.models import Assignment, Study
from survey.services.results import reports
from survey.services.results.estimates import study_estimates
from tests import cast
from tests.kept import kept
from tests.survey.answers.test_majorities import change

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def answered(slug: str, *, every: int, sittings: int) -> Study:
    """A study of one uniform stage in which every so many answers change a belief."""
    stage = cast.full_of_answers(cast.open_stage(slug, stages=[{"sittings": sittings}]))
    for place, answer in enumerate(Assignment.objects.filter(slot__stage=stage).order_by("slot__number")):
        change(answer, changes=place % every == 0)
    return stage.study


@kept
def after_and_before() -> Study:
    answered("before", every=4, sittings=16)
    return answered("after", every=2, sittings=12)


def compare(study: Study, **asked: str) -> Any:
    return reports.make(study, "two_studies", {name: [text] for name, text in {"other": "before", **asked}.items()})


def test_a_difference_has_the_errors_of_both_studies_by_welch() -> None:
    study = after_and_before()
    made = compare(study)
    rows = {row["figure"]: row for row in made.data["figures"]}
    both = [study_estimates.estimate(Study.objects.get(slug=slug)) for slug in ("after", "before")]
    assert set(rows) == {figure.name for figure in both[0].figures}
    for figure, other in zip(both[0].figures, both[1].figures, strict=True):
        row = rows[figure.name]
        this, that = figure.combined, other.combined
        assert this is not None and that is not None
        assert row["difference"] == pytest.approx(this.value - that.value)
        variances = this.standard_error**2, that.standard_error**2
        if not sum(variances):
            continue
        parts = zip(variances, (this.degrees_of_freedom, that.degrees_of_freedom), strict=True)
        freedom = sum(variances) ** 2 / sum(variance**2 / df for variance, df in parts)
        half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
        assert row["difference_high"] - row["difference"] == pytest.approx(half, rel=1e-6)
        assert row["p"] == pytest.approx(2 * stats.t.sf(abs(row["difference"]) / math.sqrt(sum(variances)), freedom))
    first = rows[both[0].figures[0].name]
    assert first["difference"] == pytest.approx(0.25, abs=0.05) and first["difference_low"] > 0
    assert "after less before is" in made.headline
    mirrored = {row["figure"]: row for row in compare(Study.objects.get(slug="before"), other="after").data["figures"]}
    assert mirrored[first["figure"]]["difference"] == pytest.approx(-first["difference"])


def test_people_who_answered_both_may_make_it_no_surer() -> None:
    study = after_and_before()
    apart, same = (compare(study, people=people).data["figures"][0] for people in ("other", "same"))
    assert same["difference"] == apart["difference"]
    errors = [
        study_estimates.estimate(Study.objects.get(slug=slug)).figures[0].combined.standard_error
        for slug in ("after", "before")
    ]
    widths = [row["difference_high"] - row["difference_low"] for row in (apart, same)]
    assert widths[1] / widths[0] >= sum(errors) / math.hypot(*errors) > 1.3


def test_parts_that_both_have_are_compared_too() -> None:
    made = compare(after_and_before(), by="outcome")
    assert {(row["division"], row["label"]) for row in made.data["figures"]} >= {("", ""), ("outcome", "correct")}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"other": "nobody"}, "no study is called 'nobody'"),
        ({"other": "after"}, "other: after is this study"),
        ({"people": "some"}, "people: 'some' is none of: other, same"),
    ],
)
def test_what_cannot_be_compared_is_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(HunchError, match=message):
        compare(after_and_before(), **asked)


def test_a_study_of_another_kind_and_one_alone_say_so() -> None:
    study = cast.small_study("alone")
    assert {line.entry.name: line.obstacle for line in reports.lines_of(study)}["two_studies"] == (
        "alone: there is no other study of this kind"
    )


@pytest.mark.thorough
@pytest.mark.parametrize("people", [(20, 40), (60, 60)])
def test_an_interval_of_a_difference_of_two_studies_covers(people: tuple[int, int]) -> None:
    """Two studies of people who differ, 12 answers each, in 2,000 worlds."""
    rng = np.random.default_rng(3)
    covered = 0
    for _world in range(2000):
        estimates = []
        for size, mean in zip(people, (0.4, 0.55), strict=True):
            chance = rng.beta(8 * mean, 8 * (1 - mean), size).repeat(12)
            answers = (rng.random(len(chance)) < chance).astype(float)
            estimates.append(
                bandit.hajek(
                    values=answers,
                    probability=np.full(len(answers), 0.01),
                    cluster=np.arange(size).repeat(12),
                    share=True,
                )
            )
        low, high = bandit.minus(*estimates, same_people=False).interval
        covered += low <= 0.4 - 0.55 <= high
    assert 0.93 <= covered / 2000 <= 0.97
