"""Scores of all pairs without a network that learns them."""

from typing import Any

import numpy as np
import pytest

from predictors import pair_scorer

FIDELITY = {
    "n": 500,
    "spearman": 0.93,
    "spearman_interval": [0.92, 0.94],
    "top_decile_recall": 0.97,
    "top_decile_recall_interval": [0.95, 0.98],
}


@pytest.fixture
def scorer(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Factors at hand in place of learnt ones, which need a network; returns what was asked for."""
    asked: list[dict[str, Any]] = []

    def distil(**arguments: Any) -> pair_scorer.PairScorer:
        asked.append(arguments)
        rng = arguments["rng"]
        n = len(arguments["questions"].texts)
        return pair_scorer.PairScorer(
            evidence=rng.integers(-9, 10, (2, n, 3)).astype(np.int8),
            target=rng.integers(-9, 10, (2, n, 3)).astype(np.int8),
            evidence_bias=rng.integers(-50, 50, (2, n)).astype(np.int32),
            target_bias=rng.integers(-50, 50, (2, n)).astype(np.int32),
            unit=0.01,
            scored=np.arange(200),
            unseen=np.arange(2),
        )

    monkeypatch.setattr(pair_scorer, "distil", distil)
    monkeypatch.setattr(
        pair_scorer, "fidelity", lambda _scorer, **_more: {"uniform": FIDELITY, "unseen_questions": None}
    )
    return asked
