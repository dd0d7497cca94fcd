"""The main figure of a report in words, true for odd cases too: ties, a single model, what is not known."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bandit import Estimate
from survey.contracts import instruments
from survey.contracts.measures import Measure
from survey.figures import Figure
from survey.instruments.belief_update.reports.alignment import report as alignment
from survey.instruments.cloze.reports import figures as cloze
from survey.instruments.preference.analysis.analysing import WinShare
from survey.instruments.preference.reports import tables as preferences
from survey.instruments.token_comparison.reports import comparison_results
from survey.services.results.estimates import headlines
from survey.services.results.people_and_models import agreement_report, gaps_report
from survey.services.results.people_and_models.agreeing import ReaderAgreement
from survey.services.results.people_and_models.gaps import Gaps, PartGap

UNKNOWN = Figure()


def preferred(models: str, shares: dict[str, tuple[Figure, int]], order: list[int] | None = None) -> str:
    """Of models with names of a letter; the shares by pairs of letters, both ways as an analysis has them."""
    wins = []
    for (first, second), (share, n) in shares.items():
        turned = Figure(None if share.value is None else 1 - share.value, n and 0.1, n and 0.9)
        wins.append(WinShare(models.index(first), models.index(second), n, 0.0, 0, share))
        wins.append(WinShare(models.index(second), models.index(first), n, 0.0, 0, turned))
    ranking = None if order is None else SimpleNamespace(order=order)
    return preferences.headline(SimpleNamespace(models=models, wins=wins, ranking=ranking))  # type: ignore[arg-type]


def test_it_says_who_is_preferred_to_whom() -> None:
    one = {"ab": (Figure(0.69, 0.55, 0.8), 54)}
    assert preferred("ab", one, [0, 1]) == "a is preferred to b in 69 % of 54 comparisons (55 to 80 %)."
    assert preferred("ab", {"ba": one["ab"]}) == "b is preferred to a in 69 % of 54 comparisons (55 to 80 %)."
    assert preferred("ab", {"ab": (Figure(1.0), 1)}) == "a is preferred to b in 100 % of 1 comparison."
    assert preferred("ab", {"ab": (Figure(0.496, 0.3, 0.7), 8)}) == (
        "b and a are preferred to each other equally often, in 50 % of 8 comparisons (10 to 90 %)."
    )
    assert preferred("ab", {}) == "a and b were not compared."
    assert preferred("ab", {"ab": (UNKNOWN, 3)}) == "a and b were not compared."
    assert preferred("abc", one | {"bc": (Figure(0.6), 5)}, [1, 0, 2]) == (
        "a is preferred to b in 69 % of 54 comparisons (55 to 80 %); b is preferred to c in 60 % of 5 comparisons; "
        "a and c were not compared."
    )
    many = {"ab": one["ab"], "cd": (Figure(0.8), 5)}
    assert preferred("abcd", many, [2, 3, 0, 1]) == "c is preferred to d in 80 % of 5 comparisons."
    assert preferred("a", {}) == ""


@pytest.mark.parametrize(
    ("correlations", "text"),
    [
        ([], ""),
        ([("cat", UNKNOWN, UNKNOWN)], ""),
        (
            [("cat", Figure(-0.1, -0.4, 0.2), UNKNOWN)],
            "Of the event “right”, the agreement of cat with people is -0.10 [-0.40, 0.20].",
        ),
        (
            [("ape", UNKNOWN, UNKNOWN), ("cat", Figure(0.2), UNKNOWN), ("dog", Figure(0.7), Figure(0.9))],
            "Of the event “right”, the agreement of dog with people is 0.70, the closest of 2; 0.90 is the most to be "
            "expected.",
        ),
    ],
)
def test_agreement_names_the_closest_reader(correlations: list[tuple[str, Figure, Figure]], text: str) -> None:
    readers = [ReaderAgreement(name, "model", 9, 9, 9, 0, own, ceiling) for name, own, ceiling in correlations]
    assert agreement_report._headline([("right", reader) for reader in readers]) == text


@pytest.mark.parametrize(
    ("gap", "text"),
    [
        (UNKNOWN, ""),
        (
            Figure(-0.241, -0.422, -0.06),
            "People expect the event “right” 24.1 points less than owl does (gap -24.1 points [-42.2, -6.0]).",
        ),
        (
            Figure(0.05, -0.1, 0.2),
            "People expect the event “right” 5.0 points more than owl does (gap 5.0 points [-10.0, 20.0]); the "
            "interval holds 0, so that this may be chance.",
        ),
        (Figure(-0.0001), "People expect the event “right” just as much as owl does."),
    ],
)
def test_a_gap_says_who_expects_more(gap: Figure, text: str) -> None:
    parts = (PartGap("task", "algebra", 9, 9, 0.1, 0.2, Figure(0.9)), PartGap("", "", 9, 9, 0.5, 0.7, gap))
    assert gaps_report._headline("right", Gaps("owl", "model", parts, UNKNOWN, (), "")) == text
    assert gaps_report._headline("right", Gaps("owl", "model", (), UNKNOWN, (), "")) == ""


def test_alignment_names_the_best_of_several_models() -> None:
    def score(name: str, accuracy: float) -> SimpleNamespace:
        return SimpleNamespace(name=name, accuracy=[accuracy], accuracy_interval=[(0.5, 0.6)], alphas=np.array([1.0]))

    best = "fits what people believe best with a weighted accuracy of 0.550 [0.500, 0.600] at alpha 1."
    assert alignment._headline([score("owl", 0.51), score("cat", 0.55)]) == f"Of 2 language models cat {best}"  # type: ignore[list-item]
    assert alignment._headline([score("cat", 0.55)]) == f"cat {best.replace(' best', '')}"  # type: ignore[list-item]
    assert alignment._headline([score("cat", float("nan"))]) == ""  # type: ignore[list-item]


def test_cloze_says_what_is_known_of_people_and_models() -> None:
    def said(mean: Figure, *pncs: Figure) -> str:
        models = [SimpleNamespace(name=f"m{place}", pnc=pnc) for place, pnc in enumerate(pncs)]
        return cloze._headline(SimpleNamespace(mean=mean, models=models))  # type: ignore[arg-type]

    people = "People's mean surprisal is 1.10 nats."
    assert said(UNKNOWN) == said(UNKNOWN, UNKNOWN) == "" and said(Figure(1.1)) == people
    assert said(Figure(1.1), Figure(-0.2)) == f"{people} The PNC of m0 is -0.200."
    assert said(UNKNOWN, Figure(0.1), Figure(0.3), UNKNOWN) == "The PNC of m1 is 0.300, the highest of 2 models."


@pytest.mark.parametrize(
    ("difference", "error", "text"),
    [
        (float("nan"), float("nan"), ""),
        (0.5, 0.1, "People's loss at a token, less that of the generator, is 0.500 nats [0.300, 0.700]."),
        (
            -0.1,
            0.1,
            "People's loss at a token, less that of the generator, is -0.100 nats [-0.300, 0.100]; the range holds 0, "
            "so that they may do as well as it.",
        ),
    ],
)
def test_people_are_set_against_the_generator(difference: float, error: float, text: str) -> None:
    people = SimpleNamespace(difference=difference, within=lambda: (difference - 2 * error, difference + 2 * error))
    assert comparison_results._headline(people) == text  # type: ignore[arg-type]


def main_figure(value: float | None, unit: str, sentence: str = "", naive: float | None = None) -> tuple[Any, Measure]:
    """A figure of estimates with an interval of 0.1 to each side, and its measure."""

    def estimate(value: float | None, width: float) -> Any:
        if value is None:
            return None
        return Estimate(value, 0.05, 8.0, (value - width, value + width), 20, 9, 20.0, (1.0, 1.0))

    figure = SimpleNamespace(title="share read", unit=unit, combined=estimate(value, 0.1), naive=estimate(naive, 0.0))
    return figure, Measure("read", "share read", unit, np.empty(0), sentence=sentence)


def test_estimates_begin_with_sentences_that_have_the_plain_figure_beside_them() -> None:
    changed = main_figure(0.311, "share", "{} of beliefs changed at all", 0.47)
    moved = main_figure(-0.52, "points", "the mean change of beliefs is {}")
    assert headlines.sentences(*zip(changed, main_figure(0.2, "share"), moved, strict=True)) == (
        "31.1 % of beliefs changed at all (21.1 to 41.1); the plain share would say 47.0 %.",
        "The mean change of beliefs is -0.52 points (-0.62 to -0.42).",
    )
    assert headlines.sentences(*zip(main_figure(0.2, "share", naive=0.25), strict=True)) == (
        "“share read” is 20.0 % (10.0 to 30.0); the plain share would say 25.0 %.",
    )
    assert headlines.sentences(*zip(main_figure(None, "share", "{} changed"), strict=True)) == ()
    assert len(headlines.sentences(*zip(*[changed] * 4, strict=True))) == headlines.HEADLINES
    named = main_figure(0.5, "share", "in {} of comparisons m{} is preferred")
    assert headlines.sentences(*zip(named, strict=True))[0].startswith("In 50.0 % of comparisons m{} is preferred")


def test_every_instrument_with_estimates_says_its_main_figures_in_sentences() -> None:
    kinds = [instruments.kind(name) for name in instruments.names()]
    own = [kind().estimates for kind in kinds if kind.__module__.startswith("survey.")]
    for estimates in filter(None, own):
        first, *others = estimates.estimands([], thresholds=(5, 0)).measures
        assert "{}" in first.sentence
        assert all("{}" in measure.sentence for measure in others if measure.sentence)
    assert len(own) > 6


def test_gaps_have_a_picture_of_each_model_and_those_of_an_event_share_their_axis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    charts: list[Any] = []

    def drawn(_name: str, _title: str, _text: str, chart: Any, *, beside: str) -> str:
        charts.append(chart)
        return beside

    monkeypatch.setattr(gaps_report.Picture, "of", drawn)
    parts = [(PartGap("", "", 9, 9, 0.5, 0.7, Figure(value, value - 0.1, value + 0.1)),) for value in (0.1, -0.3, 0.6)]
    events = [SimpleNamespace(event=SimpleNamespace(name=name)) for name in ("right", "right", "changed")]
    gaps = [
        Gaps(name, "model", part, UNKNOWN, (), "") for name, part in zip(("owl", "cat", "ours"), parts, strict=True)
    ]
    first, second, other = gaps_report._pictures(list(zip(events, gaps, strict=True)))  # type: ignore[arg-type]
    assert first == second != other and "right" in str(first)
    assert [(min(chart.x.includes), max(chart.x.includes)) for chart in charts] == [
        *[pytest.approx((-40, 20))] * 2,
        pytest.approx((50, 70)),
    ]
    assert [chart.title for chart in charts[:2]] == ["right: people less owl", "right: people less cat"]
