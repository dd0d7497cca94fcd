"""Are people calibrated about people and about models? Figure 7 of the paper (appendix F, eq. 10). Imports numpy and
the results kit alone.

A respondent sees whether somebody answered x' correctly, and states how likely the same one is right on x. An answerer
is a person or a language model. An answerer matches a belief if it really answered both questions, and its outcome on
x' is the one that was shown. The accuracy of a region of posterior belief is the mean, over the beliefs in that region,
of how often matching answerers are right on x.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import bandit
from survey.figures import Column, Table
from survey.figures.charts import Axis, Line, LineChart

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Percentage points. A belief of 30 or 70 belongs to the region above; 100 belongs to the last one.
REGIONS = ((0, 30), (30, 70), (70, 100))


@dataclass(frozen=True, eq=False)
class BeliefsAboutOthers:
    """n stated posteriors in percentage points: who stated them, about which target question, after which outcome (0 or
    1) on which evidence question, and the weight of each; arrays of n."""

    posterior: Floats
    respondent: Ints
    evidence: Ints
    outcome: Ints
    target: Ints
    weight: Floats

    def __post_init__(self) -> None:
        n = len(self.posterior)
        for name in ("respondent", "evidence", "outcome", "target", "weight"):
            if getattr(self, name).shape != (n,):
                raise ValueError(f"{name}: shape {getattr(self, name).shape} for {n} posteriors; give one value each")
        if not ((self.posterior >= 0) & (self.posterior <= 100)).all():
            raise ValueError("posterior: must lie between 0 and 100 percentage points everywhere")
        if not np.isin(self.outcome, (0, 1)).all():
            raise ValueError("outcome: use 1 for correct and 0 for incorrect")
        if not (np.isfinite(self.weight) & (self.weight > 0)).all():
            raise ValueError("weight: must be above 0 and finite everywhere")


@dataclass(frozen=True, eq=False)
class RealAnswers:
    """m answers that were really given: by whom, to which question, and how right each is (0 or 1, or a fraction of
    repeated or graded replies); arrays of m."""

    answerer: Ints
    question: Ints
    correct: NDArray[Any]

    def __post_init__(self) -> None:
        if not (self.answerer.shape == self.question.shape == self.correct.shape) or self.answerer.ndim != 1:
            raise ValueError("answerer, question, correct: give one value of each an answer")
        if not ((self.correct >= 0) & (self.correct <= 1)).all():
            raise ValueError("correct: use 1 for right and 0 for wrong, or a fraction between them")
        pairs = np.unique(np.stack([self.answerer, self.question]), axis=1)
        if pairs.shape[1] != len(self.answerer):
            raise ValueError("question: somebody answered one twice; keep the first answer")


@dataclass(frozen=True)
class RegionAccuracy:
    """One point of the figure. `beliefs`: stated posteriors with a matching answerer; `matches`: pairs of a belief and
    an answerer. Accuracy and standard error are NaN if nothing matches, the error also if it cannot be estimated."""

    lower: int
    upper: int
    beliefs: int
    respondents: int
    questions: int
    answerers: int
    matches: int
    mean_belief: float
    accuracy: float
    standard_error: float
    degrees_of_freedom: float = math.inf

    @property
    def interval(self) -> tuple[float, float] | None:
        """Student's 95 % interval of the accuracy; None where there is no error."""
        return bandit.student_interval(self.accuracy, self.standard_error, self.degrees_of_freedom, within=(0.0, 1.0))


@dataclass(frozen=True)
class CalibrationLine:
    """One line of the figure, for people or for models."""

    name: str
    regions: tuple[RegionAccuracy, ...]


@dataclass(frozen=True, eq=False)
class Matches:
    """Every belief with every answerer that matches it: the belief's index, the answerer, the chance that it shows the
    outcome that was shown (1 without fractions), and how right it is on the target."""

    belief: Ints
    answerer: Ints
    chance: Floats
    correct: Floats


def calibration(name: str, beliefs: BeliefsAboutOthers, answers: RealAnswers) -> CalibrationLine:
    """Accuracy of the answerers by region of posterior belief (eq. 10).

    A belief with several matching answerers counts once; they share its weight, by the chance of each to show what was
    shown. The standard error allows any
    dependence between matches that share the respondent, the question answered or the answerer. So the answerers,
    too, count as a sample.

    Raises:
        ValueError: no belief, or none that any answerer matches.
    """
    matches = matched(name, beliefs, answers)
    return CalibrationLine(name, tuple(_region(beliefs, matches, lower, upper) for lower, upper in REGIONS))


def matched(name: str, beliefs: BeliefsAboutOthers, answers: RealAnswers) -> Matches:
    """Every belief with every answerer that matches it.

    Raises:
        ValueError: no belief, or none that any answerer matches.
    """
    if not len(beliefs.posterior):
        raise ValueError("posterior: there is no belief")
    answerers, by = np.unique(answers.answerer, return_inverse=True)
    questions = np.unique(np.concatenate([beliefs.evidence, beliefs.target, answers.question]))
    correct = np.full((len(questions), len(answerers)), np.nan)
    correct[np.searchsorted(questions, answers.question), by.reshape(-1)] = answers.correct
    seen = correct[np.searchsorted(questions, beliefs.evidence)]
    asked = correct[np.searchsorted(questions, beliefs.target)]
    chance = np.where(beliefs.outcome[:, None] == 1, seen, 1 - seen)
    belief, column = np.nonzero((np.nan_to_num(chance) > 0) & np.isfinite(asked))
    if not len(belief):
        raise ValueError(
            f"{name}: nobody answered both questions of a pair with the outcome that was shown; the answerers need to "
            "have answered the belief study's questions, several each"
        )
    return Matches(
        belief=belief,
        answerer=answerers[column],
        chance=chance[belief, column],
        correct=asked[belief, column],
    )


def region_of(posterior: Floats, lower: int, upper: int) -> NDArray[np.bool_]:
    """Which beliefs lie in a region; 100 belongs to the last one."""
    inside: NDArray[np.bool_] = (posterior >= lower) & ((posterior < upper) | ((upper == 100) & (posterior == 100)))
    return inside


def _region(beliefs: BeliefsAboutOthers, matches: Matches, lower: int, upper: int) -> RegionAccuracy:
    inside = region_of(beliefs.posterior[matches.belief], lower, upper)
    belief, answerer, correct = matches.belief[inside], matches.answerer[inside], matches.correct[inside]
    chance = matches.chance[inside]
    places, place = np.unique(belief, return_inverse=True)
    shared = np.bincount(place.reshape(-1), weights=chance, minlength=len(places))
    respondent, target = beliefs.respondent[belief], beliefs.target[belief]
    weight = beliefs.weight[belief] * chance / shared[place.reshape(-1)]
    accuracy = float(np.average(correct, weights=weight)) if len(belief) else float("nan")
    own = beliefs.weight[places]
    clusters = _several([respondent, target, answerer])
    return RegionAccuracy(
        lower=lower,
        upper=upper,
        beliefs=len(places),
        respondents=len(np.unique(respondent)),
        questions=len(np.unique(target)),
        answerers=len(np.unique(answerer)),
        matches=len(belief),
        mean_belief=float(np.average(beliefs.posterior[places], weights=own)) if len(places) else float("nan"),
        accuracy=accuracy,
        standard_error=clustered_error(correct, weight, clusters),
        degrees_of_freedom=bandit.clustered_freedom(weight, *clusters) if clusters else math.inf,
    )


def clustered_error(values: Floats, weight: Floats, clusters: Sequence[Ints]) -> float:
    """Standard error of a weighted mean of n values that depend on each other within clusters of several kinds.

    See `bandit.clustered_variance`. A kind with a single cluster, such as one answerer, shows nothing about how such
    clusters differ and is left out; NaN if no kind has two.
    """
    several = _several(clusters)
    if not several:
        return float("nan")
    influence = weight * (values - np.average(values, weights=weight)) / weight.sum()
    return float(np.sqrt(bandit.clustered_variance(influence, *several)))


def _several(clusters: Sequence[Ints]) -> list[Ints]:
    """The kinds with two clusters or more."""
    return [kind for kind in clusters if bandit.cluster_count(kind) > 1]


# The paper's table
COLUMNS = (
    Column("answerers_are", "text", "Whose answers: people or language models.", heading="answerers"),
    Column("lower", "percent", "Lower end of the region of posterior belief, included.", heading="belief from"),
    Column("upper", "percent", "Its upper end; only 100 is included.", heading="to"),
    Column("beliefs", "number", "Posteriors in the region with an answerer that bears on them."),
    Column("respondents", "number", "Who stated them."),
    Column("questions", "number", "The target questions."),
    Column("answerers", "number", "Who answered.", heading="who answered"),
    Column("matches", "number", "Pairs of a belief and an answerer."),
    Column("mean_belief", "percent", "The mean of the beliefs.", digits=1),
    Column("accuracy", "share", "How often the answerers are right; empty without a match."),
    Column("standard_error", "share", "By respondent, question answered and answerer."),
    Column(
        "unreadable",
        "number",
        "How many replies of the language models could not be read; they count as not right. Empty for people.",
    ),
)


def calibration_table(lines: Sequence[CalibrationLine], unreadable: Mapping[str, int]) -> Table:
    """One row for each line and region. `unreadable`: how many of its answerers' replies could not be read, by the
    line's name."""
    return Table(
        "figure7",
        "The figure's points",
        COLUMNS,
        [
            [
                line.name,
                *(value if np.isfinite(value) else None for value in (getattr(region, c.name) for c in COLUMNS[1:-1])),
                unreadable.get(line.name),
            ]
            for line in lines
            for region in line.regions
        ],
        note="A belief counts where an answerer has the outcome that was shown and answered the target question too. "
        "Standard errors by respondent, question answered and answerer.",
    )


def calibration_chart(lines: Sequence[CalibrationLine]) -> LineChart:
    """Accuracy of the answerers by region of posterior belief, one line each for people and for models."""
    return LineChart(
        title="Do people foresee who answers correctly?",
        x=Axis(
            "posterior belief that the answer is correct",
            ticks=[(place, f"{lower} to {upper} %") for place, (lower, upper) in enumerate(REGIONS)],
        ),
        y=Axis("answerer’s accuracy (bars: standard error)", share=True, includes=(0.0, 1.0)),
        lines=[
            Line(
                line.name,
                [(place, region.accuracy) for place, region in enumerate(line.regions)],
                [
                    (
                        max(0.0, region.accuracy - region.standard_error),
                        min(1.0, region.accuracy + region.standard_error),
                    )
                    for region in line.regions
                ],
            )
            for line in lines
        ],
    )
