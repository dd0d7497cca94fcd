"""Are people calibrated about people and about models? Figure 7 of the paper (appendix F, eq. 10). Imports numpy and
the results kit alone.

A respondent sees whether somebody answered x' correctly, and states how likely the same one is right on x. An answerer
is a person or a language model. An answerer matches a belief if it really answered both questions, and its outcome on
x' is the one that was shown. The accuracy of a region of posterior belief is the mean, over the beliefs in that region,
of how often matching answerers are right on x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from survey.figures import Column, Table

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
    found = matched(name, beliefs, answers)
    return CalibrationLine(name, tuple(_region(beliefs, found, lower, upper) for lower, upper in REGIONS))


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


def _region(beliefs: BeliefsAboutOthers, found: Matches, lower: int, upper: int) -> RegionAccuracy:
    inside = region_of(beliefs.posterior[found.belief], lower, upper)
    belief, answerer, correct = found.belief[inside], found.answerer[inside], found.correct[inside]
    chance = found.chance[inside]
    places, place = np.unique(belief, return_inverse=True)
    shared = np.bincount(place.reshape(-1), weights=chance, minlength=len(places))
    respondent, target = beliefs.respondent[belief], beliefs.target[belief]
    weight = beliefs.weight[belief] * chance / shared[place.reshape(-1)]
    accuracy = float(np.average(correct, weights=weight)) if len(belief) else float("nan")
    own = beliefs.weight[places]
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
        standard_error=clustered_error(correct, weight, [respondent, target, answerer]),
    )


def clustered_error(values: Floats, weight: Floats, clusters: Sequence[Ints]) -> float:
    """Standard error of a weighted mean of n values that depend on each other within clusters of several kinds.

    To first order: add the variances by each kind of cluster, subtract those by two kinds at once, and so on (Cameron,
    Gelbach and Miller, "Robust inference with multiway clustering", 2011), each with its G / (G - 1). The result is at
    least that of any single kind, since the sum can be smaller by chance. A kind with a single cluster, such as one
    answerer, shows nothing about how such clusters differ and is left out; NaN if no kind has two.
    """
    kinds = [np.unique(kind, return_inverse=True)[1].reshape(-1) for kind in clusters]
    kinds = [kind for kind in kinds if len(kind) and kind.max() > 0]
    if not kinds:
        return float("nan")
    influence = weight * (values - np.average(values, weights=weight)) / weight.sum()
    variance, single = 0.0, 0.0
    for size in range(1, len(kinds) + 1):
        for chosen in combinations(kinds, size):
            cluster = np.unique(np.stack(chosen), axis=1, return_inverse=True)[1].reshape(-1)
            part = _variance(influence, cluster)
            variance += (-1) ** (size + 1) * part
            single = max(single, part) if size == 1 else single
    return float(np.sqrt(max(variance, single)))


def _variance(influence: Floats, cluster: Ints) -> float:
    sums = np.bincount(cluster, weights=influence)
    return float(len(sums) / (len(sums) - 1) * (sums**2).sum())


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
                *(value if np.isfinite(value) else None for value in asdict(region).values()),
                unreadable.get(line.name),
            ]
            for line in lines
            for region in line.regions
        ],
        note="A belief counts where an answerer has the outcome that was shown and answered the target question too. "
        "Standard errors by respondent, question answered and answerer.",
    )


WIDTH, HEIGHT = 640, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 40, 60
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # Okabe and Ito's, which colour-blind people can distinguish
_MARKS = (
    "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",  # a disc
    "M-5,-5h10v10h-10z",  # a square
    "M0,-6L6,5H-6z",
    "M0,-6L6,0L0,6L-6,0z",
)


def calibration_svg(lines: Sequence[CalibrationLine]) -> str:
    """Accuracy of the answerers by region of posterior belief, one line each for people and for models, as SVG.

    The same lines give the same text. It holds no script and no style sheet, so a page may include it unchanged.
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="figure7-title" font-family="sans-serif" font-size="13" fill="currentColor">',
        '<title id="figure7-title">Do people foresee who answers correctly?</title>',
        *_axes(),
    ]
    for place, line in enumerate(lines):
        colour, mark = _COLOURS[place % len(_COLOURS)], _MARKS[place % len(_MARKS)]
        parts += [f'<g stroke="{colour}" fill="{colour}">', *_line(line, mark, aside=place - (len(lines) - 1) / 2)]
        x = _LEFT + 12 + 190 * place
        parts.append(f'<path d="{mark}" transform="translate({x},{_TOP - 20})"/></g>')
        parts.append(f'<text x="{x + 12}" y="{_TOP - 15}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _across(region: float) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (region + 0.5) / len(REGIONS)


def _up(share: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share


def _axes() -> list[str]:
    found = []
    for percent in range(0, 101, 20):
        y = f"{_up(percent / 100):.1f}"
        found.append(f'<path d="M{_LEFT},{y}H{WIDTH - _RIGHT}" stroke="currentColor" stroke-opacity="0.25"/>')
        found.append(f'<text x="{_LEFT - 8}" y="{y}" text-anchor="end" dominant-baseline="middle">{percent}</text>')
    for place, (lower, upper) in enumerate(REGIONS):
        x, below = f"{_across(place):.1f}", HEIGHT - _BOTTOM + 20
        found.append(f'<text x="{x}" y="{below}" text-anchor="middle">{lower} to {upper} %</text>')
    middle, side = (WIDTH + _LEFT - _RIGHT) / 2, (HEIGHT + _TOP - _BOTTOM) / 2
    return [
        *found,
        f'<text x="{middle}" y="{HEIGHT - 14}" text-anchor="middle">posterior belief that the answer is correct</text>',
        f'<text x="16" y="{side}" text-anchor="middle" transform="rotate(-90 16 {side})">'
        "answerer’s accuracy in % (bars: standard error)</text>",
    ]


def _line(line: CalibrationLine, mark: str, *, aside: float) -> list[str]:
    points = [
        (_across(place) + 14 * aside, region)
        for place, region in enumerate(line.regions)
        if np.isfinite(region.accuracy)
    ]
    path = "L".join(f"{x:.1f},{_up(region.accuracy):.1f}" for x, region in points)
    found = [f'<path d="M{path}" fill="none" stroke-width="2"/>'] if len(points) > 1 else []
    for x, region in points:
        error = region.standard_error
        if np.isfinite(error):
            low, high = (_up(min(1.0, max(0.0, region.accuracy + sign * error))) for sign in (-1, 1))
            ends = "".join(f"M{x - 5:.1f},{y:.1f}h10" for y in (low, high))
            found.append(f'<path d="M{x:.1f},{low:.1f}V{high:.1f}{ends}" fill="none"/>')
        found.append(f'<path d="{mark}" transform="translate({x:.1f},{_up(region.accuracy):.1f})"/>')
    return found
