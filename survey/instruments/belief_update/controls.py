"""Control pairs, which measure noise: a target without evidence, and evidence unrelated to its target."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from bandit.candidates import Pairs, pair_from_rank, universe_size
from bandit.errors import DesignError


def targets(*, count: int, n_questions: int, rng: np.random.Generator) -> np.ndarray:
    """`count` different questions to ask about twice, with no evidence in between; (count,)."""
    if count > n_questions:
        raise DesignError(
            f"controls: {count} without evidence need as many questions, and there are {n_questions}; "
            "lower the share of controls or add questions"
        )
    drawn: np.ndarray = rng.choice(n_questions, size=count, replace=False)
    return drawn


def unrelated_pairs(
    *,
    count: int,
    places: Sequence[tuple[str, str]],
    rng: np.random.Generator,
    outcome: np.ndarray | None = None,
) -> Pairs:
    """`count` different pairs, drawn uniformly from those whose questions are from different domains.

    `places`: each question's domain and task. If the bank has only one domain, the tasks differ instead. `outcome`: the
    real outcome of each question (N,); without it, both outcomes are drawn.
    """
    domains = [domain or task for domain, task in places]
    groups = domains if len(set(domains)) > 1 else [task for _domain, task in places]
    outcomes = 2 if outcome is None else 1
    there_are = outcomes * (len(groups) ** 2 - sum(size**2 for size in Counter(groups).values()))
    if count > there_are:
        raise DesignError(
            f"controls: {count} with unrelated evidence need as many pairs of questions from different domains (or "
            f"tasks), and there are {there_are}; lower the share of controls or leave this kind out"
        )
    names = {name: number for number, name in enumerate(dict.fromkeys(groups))}
    group = np.array([names[name] for name in groups])
    drawn = np.empty(0, dtype=np.int64)
    # The first distinct pairs of an endless sequence of uniform pairs are a sample without replacement.
    while drawn.size < count:
        ranks = rng.integers(outcomes * universe_size(len(groups)) // 2, size=2 * count + 64, dtype=np.int64)
        if outcome is not None:
            ranks = 2 * ranks + outcome[ranks // (len(groups) - 1)]
        pairs = pair_from_rank(ranks, len(groups))
        drawn = np.concatenate([drawn, ranks[group[pairs.evidence] != group[pairs.target]]])
        _, first = np.unique(drawn, return_index=True)
        drawn = drawn[np.sort(first)][:count]
    return pair_from_rank(drawn, len(groups))
