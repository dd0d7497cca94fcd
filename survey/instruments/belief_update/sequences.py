"""Items with a target and several evidence questions in an order: their candidate rows, keys, pools and controls."""

import re
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from bandit import Sequences, rank_of_sequences, sequence_universe, uniform_sequences
from bandit.errors import DesignError
from survey.contracts.instruments import Candidates
from survey.models import Question

from .real_evidence import RealOutcomes

KEY = re.compile(r"^(\d+:[01](?:,\d+:[01])+)>(\d+)$")
TRIES = 200
FURTHER = (("evidence", "<i4"), ("outcome", "i1"))


class BeliefSequences:
    """`steps`: how many evidence questions an item has, 2 or 3. `real`: what a language model really answered, if only
    real answers are evidence."""

    def __init__(self, steps: int, real: RealOutcomes | None) -> None:
        self.steps = steps
        self.real = real

    @cached_property
    def row(self) -> np.dtype:
        """The first evidence question as in a pair's row, then the others. All are -1 in a control without evidence."""
        further = [(f"{name}_{step}", kind) for step in self._further for name, kind in FURTHER]
        return np.dtype([("evidence", "<i4"), ("target", "<i4"), ("outcome", "i1"), *further])

    @property
    def _further(self) -> range:
        return range(2, self.steps + 1)

    def names(self, step: int) -> tuple[str, str]:
        """The fields of a row with the evidence question at this place, from 1, and with its outcome."""
        return ("evidence", "outcome") if step == 1 else (f"evidence_{step}", f"outcome_{step}")

    @property
    def question_names(self) -> tuple[str, ...]:
        """The fields of a row that name a question."""
        return ("target", *(self.names(step)[0] for step in range(1, self.steps + 1)))

    def rows_of(self, sequences: Sequences) -> np.ndarray:
        rows = np.empty(len(sequences), dtype=self.row)
        rows["target"] = sequences.target
        for step in range(1, self.steps + 1):
            evidence, outcome = self.names(step)
            rows[evidence], rows[outcome] = sequences.evidence[:, step - 1], sequences.outcome[:, step - 1]
        return rows

    def step_rows(self, rows: np.ndarray, step: int) -> np.ndarray:
        """The same rows with the evidence question at this place as their first, as a single pair would have it."""
        step_rows = rows.copy()
        evidence, outcome = self.names(step)
        step_rows["evidence"], step_rows["outcome"] = rows[evidence], rows[outcome]
        return step_rows

    def universe_size(self, n_questions: int) -> int:
        return sequence_universe(n_questions, self.steps, outcomes=2 if self.real is None else 1)

    def draw(
        self, *, questions: Sequence[Question], size: int, rng: np.random.Generator, exclude: Collection[str]
    ) -> Candidates:
        pool = uniform_sequences(
            n_questions=len(questions),
            steps=self.steps,
            size=size,
            rng=rng,
            exclude=np.unique(rank_of_sequences(self.of_keys(exclude, questions), len(questions))),
            outcome=None if self.real is None else self.real.outcome_of(questions),
        )
        return Candidates(
            rows=self.rows_of(pool.sequences), universe_size=pool.universe_size, probability=pool.probability
        )

    def key(self, row: np.void, questions: Sequence[Question]) -> str:
        parts = [
            f"{questions[row[evidence]].position}:{int(row[outcome])}"
            for evidence, outcome in map(self.names, range(1, self.steps + 1))
        ]
        return f"{','.join(parts)}>{questions[row['target']].position}"

    def of_keys(self, keys: Collection[str], questions: Sequence[Question]) -> Sequences:
        """The items over these questions that the keys name, in any order. Keys of other items are passed over."""
        index = {question.position: place for place, question in enumerate(questions)}
        targets, evidence, outcomes = [], [], []
        for match in filter(None, map(KEY.match, keys)):
            steps = [tuple(map(int, part.split(":"))) for part in match[1].split(",")]
            named = [int(match[2]), *(position for position, _outcome in steps)]
            if len(steps) == self.steps and all(position in index for position in named):
                targets.append(index[named[0]])
                evidence.append([index[position] for position in named[1:]])
                outcomes.append([outcome for _position, outcome in steps])
        return Sequences(
            target=np.array(targets, dtype=np.int64),
            evidence=np.array(evidence, dtype=np.int64).reshape(-1, self.steps),
            outcome=np.array(outcomes, dtype=np.int64).reshape(-1, self.steps),
        )

    def unrelated(self, *, questions: Sequence[Question], count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` different rows whose evidence is from other domains than their target; from other tasks if the bank
        has one domain.

        Raises:
            DesignError: there are not so many, or they are too rare to be found.
        """
        domains = [question.task.domain or question.task.name for question in questions]
        groups = domains if len(set(domains)) > 1 else [question.task.name for question in questions]
        group = np.unique(groups, return_inverse=True)[1]
        unrelated_rows: dict[int, np.ndarray] = {}
        outcome = None if self.real is None else self.real.outcome_of(questions)
        for _try in range(TRIES):
            pool = uniform_sequences(
                n_questions=len(questions), steps=self.steps, size=2 * count + 64, rng=rng, outcome=outcome
            )
            drawn = pool.sequences
            fits = (group[drawn.evidence] != group[drawn.target][:, None]).all(axis=1)
            ranks, rows = rank_of_sequences(drawn, len(questions)), self.rows_of(drawn)
            for place in rng.permutation(np.flatnonzero(fits)):
                unrelated_rows.setdefault(int(ranks[place]), rows[place])
            if len(unrelated_rows) >= count:
                return np.array(list(unrelated_rows.values())[:count], dtype=self.row)
        raise DesignError(
            f"controls: {count} with unrelated evidence need as many items whose evidence is from other domains (or "
            f"tasks) than the target, and {len(unrelated_rows)} were found; lower the share of controls or "
            "leave this kind out"
        )
