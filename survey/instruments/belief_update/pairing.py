"""The belief update's candidates as pairs of questions, so that all of them can be scored and drawn without a list."""

import re
from collections.abc import Collection, Sequence

import numpy as np

from bandit.candidates import Pairs
from survey.instruments.question_pairs import QuestionPairs
from survey.models import Question

from .real_evidence import RealOutcomes

# In a row without evidence, which is a control, evidence and outcome are -1.
ROW = np.dtype([("evidence", "<i4"), ("target", "<i4"), ("outcome", "i1")])
KEY = re.compile(r"^(\d+):([01])>(\d+)$")


class BeliefPairs(QuestionPairs):
    """`real`: what a language model really answered, if only real answers are evidence."""

    def __init__(self, real: RealOutcomes | None) -> None:
        self.real = real

    def rows_of_pairs(self, pairs: Pairs) -> np.ndarray:
        rows = np.empty(len(pairs), dtype=ROW)
        rows["evidence"], rows["target"], rows["outcome"] = pairs.evidence, pairs.target, pairs.outcome
        return rows

    def pairs_of_rows(self, rows: np.ndarray) -> Pairs:
        """Candidate rows as pairs over the questions, in order."""
        return Pairs(evidence=rows["evidence"], target=rows["target"], outcome=rows["outcome"])

    def pairs_of_keys(self, keys: Collection[str], questions: Sequence[Question]) -> Pairs:
        index = {question.position: place for place, question in enumerate(questions)}
        pairs = []
        for match in filter(None, map(KEY.match, keys)):
            evidence, outcome, target = map(int, match.groups())
            if evidence in index and target in index:
                pairs.append((index[evidence], index[target], outcome))
        columns = np.array(pairs, dtype=np.int64).reshape(-1, 3).T
        return Pairs(evidence=columns[0], target=columns[1], outcome=columns[2])

    def outcome_of_evidence(self, questions: Sequence[Question]) -> np.ndarray | None:
        return None if self.real is None else self.real.outcome_of(questions)
