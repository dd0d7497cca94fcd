"""The perplexity of people's expectations: how much of their belief was on what really happened.

The beliefs and the answerers that match them are those of figure 7. Imports only numpy, the scoring library and the
results kit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from predictors.evaluation.scoring import LogScore, log_score, log_score_interval, perplexity_of
from survey.figures import Column, Figure, FigureColumn, Table

from .figure7 import BeliefsAboutOthers, Floats, RealAnswers, matched

FLOOR = 0.01  # One point: the least that a person can state above 0.
SAMPLES = 1000
COLUMNS = (
    Column("answerers_are", "text", "Whose answers: people or language models.", heading="answerers"),
    Column("beliefs", "number", "Posteriors with an answerer that bears on them."),
    Column("respondents", "number", "Who stated them."),
    Column("answerers", "number", "Who answered.", heading="who answered"),
    Column("perplexity", "number", "Perplexity of the stated beliefs; empty where it is infinite.", digits=3),
    Column(
        "certain_and_wrong",
        "share",
        "How often somebody was certain and wrong: a belief of 0 or 100 that did not come true.",
    ),
    FigureColumn(
        "perplexity_at_floor",
        "number",
        f"Perplexity where a belief gives no outcome less than {FLOOR}.",
        heading=f"at floor {FLOOR}",
        digits=3,
        prefix="",
        low="Lower end of its 95 % interval, by resampling respondents and questions.",
    ),
    Column("bits_at_floor", "number", "The same log score in bits.", heading="bits", digits=3),
)


@dataclass(frozen=True)
class StatedExpectations:
    """What the beliefs about one kind of answerer cost.

    as_stated: the log score of the beliefs as people stated them, infinite where one was certain and wrong.
    certain_and_wrong: the share of these, weighted as everything is. floored: no outcome gets less than `FLOOR`, with
    the 95 % interval of its perplexity.
    """

    name: str
    beliefs: int
    respondents: int
    answerers: int
    as_stated: LogScore
    certain_and_wrong: float
    floored: LogScore
    interval: tuple[float, float] | None


def perplexity_table(lines: Sequence[StatedExpectations]) -> Table:
    """How surprised people were by what really happened."""
    return Table(
        "perplexity",
        "The perplexity of people's expectations",
        COLUMNS,
        [
            [
                *(line.name, line.beliefs, line.respondents, line.answerers),
                *(line.as_stated.perplexity, line.certain_and_wrong),
                *(Figure.between(line.floored.perplexity, line.interval), line.floored.bits),
            ]
            for line in lines
        ],
        note="1 is certain and right, 2 is a coin toss. A belief of 0 or 100 that did not come true makes it infinite.",
    )


def expectations(
    name: str, beliefs: BeliefsAboutOthers, answers: RealAnswers, *, rng: np.random.Generator, samples: int = SAMPLES
) -> StatedExpectations:
    """The log score that n posteriors give to what the answerers matching them really did.

    A belief with several matching answerers counts once; they share its weight, as in figure 7. A reply that is right
    in part counts in part as right and in part as wrong. The interval resamples respondents and target questions, each
    by itself; the answerers are taken as they are.

    Raises:
        ValueError: no belief, or none that any answerer matches.
    """
    matches = matched(name, beliefs, answers)
    places, place = np.unique(matches.belief, return_inverse=True)
    place = place.reshape(-1)
    shared = np.bincount(place, weights=matches.chance, minlength=len(places))
    weight = beliefs.weight[matches.belief] * matches.chance / shared[place]
    stated = beliefs.posterior[matches.belief] / 100
    probabilities = np.concatenate([stated, 1 - stated])
    happened = np.concatenate([weight * matches.correct, weight * (1 - matches.correct)])
    as_stated, floored = log_score(probabilities, happened), log_score(probabilities, happened, floor=FLOOR)
    if as_stated is None or floored is None:  # Every belief has an answerer, whose chances are above 0.
        raise ValueError("posterior: there is no belief")
    of_belief = np.concatenate([place, place])
    interval = log_score_interval(
        _of_each(of_belief, np.maximum(probabilities, FLOOR), happened),
        np.bincount(of_belief, weights=happened),
        cluster=(beliefs.respondent[places], beliefs.target[places]),
        rng=rng,
        samples=samples,
    )
    return StatedExpectations(
        name=name,
        beliefs=len(places),
        respondents=len(np.unique(beliefs.respondent[places])),
        answerers=len(np.unique(matches.answerer)),
        as_stated=as_stated,
        certain_and_wrong=float(happened[probabilities == 0].sum() / happened.sum()),
        floored=floored,
        interval=None if interval is None else (perplexity_of(interval[0]), perplexity_of(interval[1])),
    )


def _of_each(belief: np.ndarray, probability: Floats, weight: Floats) -> Floats:
    """One probability a belief that costs as much as those of all its answerers: their geometric mean."""
    losses = np.bincount(belief, weights=-weight * np.log(probability)) / np.bincount(belief, weights=weight)
    return np.exp(-losses)
