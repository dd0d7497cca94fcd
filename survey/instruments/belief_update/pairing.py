"""The belief update's candidates as pairs of questions, for scoring and streaming all of them."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from bandit.candidates import Pairs, rank_of
from survey.contracts.instruments import Pairing
from survey.models import Question

from .real_evidence import RealOutcomes

# In a row without evidence, which is a control, evidence and outcome are -1.
ROW = np.dtype([("evidence", "<i4"), ("target", "<i4"), ("outcome", "i1")])
KEY = re.compile(r"^(\d+):([01])>(\d+)$")


class BeliefPairs(Pairing):
    """`real`: what a language model really answered, if only real answers are evidence."""

    def __init__(self, real: RealOutcomes | None) -> None:
        self.real = real

    def rows_of_pairs(self, pairs: Pairs) -> np.ndarray:
        rows = np.empty(len(pairs), dtype=ROW)
        rows["evidence"], rows["target"], rows["outcome"] = pairs.evidence, pairs.target, pairs.outcome
        return rows

    def pairs_of_rows(self, rows: np.ndarray) -> Pairs:
        return Pairs(evidence=rows["evidence"], target=rows["target"], outcome=rows["outcome"])

    def outcome_of_evidence(self, questions: Sequence[Question]) -> np.ndarray | None:
        return None if self.real is None else self.real.outcome_of(questions)

    def ranks_of(self, keys: Collection[str], questions: Sequence[Question]) -> np.ndarray:
        index = {question.position: place for place, question in enumerate(questions)}
        found = []
        for match in filter(None, map(KEY.match, keys)):
            evidence, outcome, target = map(int, match.groups())
            if evidence in index and target in index:
                found.append((index[evidence], index[target], outcome))
        columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
        pairs = Pairs(evidence=columns[0], target=columns[1], outcome=columns[2])
        ranks = np.unique(rank_of(pairs, len(questions)))
        happened = self.outcome_of_evidence(questions)
        return ranks if happened is None else ranks[happened[ranks // 2 // (len(questions) - 1)] == ranks % 2]
