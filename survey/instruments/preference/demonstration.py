"""What the demonstration of preferences must find: the ranking and the side bias of its simulated people."""

import numpy as np

from survey.contracts.instruments import DemonstrationVerdict, verdict_word
from survey.figures.words import number
from survey.models import Study

from .analysis import bradley_terry
from .material import material_of
from .people import truth_of

Z = 3.5
"""Standard errors that a right estimate may lie from the truth: beyond it once in 2,000 times."""


def verdict_on(study: Study, null: bool) -> DemonstrationVerdict:
    """Passed if every difference of two neighbours, and the side bias, lie near the truth, and the best is first."""
    judged = material_of(study).people
    ranking = bradley_terry.fit(judged)
    truth = truth_of(judged.models, null=null)
    theta = np.array([truth.theta[model] for model in judged.models])
    side = ranking.side
    pairs = [(ranking.difference(model, model + 1), theta[model] - theta[model + 1]) for model in range(len(theta) - 1)]
    pairs.append((side, truth.gamma))
    distances = [abs((figure.value or 0.0) - true) / (figure.standard_error or np.inf) for figure, true in pairs]
    missed = sum(
        not (-np.inf if figure.low is None else figure.low) <= true <= (np.inf if figure.high is None else figure.high)
        for figure, true in pairs
    )
    first = judged.models[ranking.order[0]]
    right = null or first == judged.models[int(np.argmax(theta))]
    passed = bool(max(distances) < Z and right)
    strengths = ", ".join(
        f"{judged.models[model]} {number(ranking.theta[model], signed=True)}" for model in ranking.order
    )
    known = ", ".join(f"{model} {number(value, signed=True)}" for model, value in truth.theta.items())
    sentence = (
        f"{verdict_word(near=passed, held=not missed)}: people rank {strengths} with a side bias of "
        f"{number(side.value or 0.0)} logits; the simulated people were made with {known} and {number(truth.gamma)}. "
        f"The farthest figure lies {number(max(distances), 1)} standard errors from its truth; "
        f"{missed} of {len(pairs)} 95 % intervals miss theirs."
    )
    return DemonstrationVerdict(
        passed=passed,
        sentence=sentence,
        figures={
            "theta": {judged.models[model]: round(float(ranking.theta[model]), 4) for model in ranking.order},
            "gamma": side.value,
            "farthest": max(distances),
        },
    )
