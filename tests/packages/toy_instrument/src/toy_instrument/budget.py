"""What a study of the toy would find, for `hunch plan_budget`."""

import numpy as np

import bandit
from survey.contracts.budget_files import PoliciesConfig
from survey.contracts.budgets import BudgetPlanner, PolicySetting, Simulated
from survey.figures import Figure

WORDS = 1000


class ToyBudget(BudgetPlanner[PoliciesConfig, PolicySetting[PoliciesConfig]]):
    @staticmethod
    def simulate(plan: PolicySetting[PoliciesConfig], rng: np.random.Generator) -> Simulated:
        """Words are guessed rightly more or less often, and later stages draw by that."""
        study = plan.config.study
        ease = rng.beta(2, 3, WORDS)
        shares = []
        for stage, people in enumerate(study.sittings):
            drawn = bandit.draw(
                design=plan.design(stage), n=people * study.items, scores=ease, n_candidates=WORDS, rng=rng
            )
            right = rng.random(len(drawn.selected)) < ease[drawn.selected]
            shares += right.reshape(people, study.items).mean(axis=1).tolist()
        share, error, freedom = (
            float(np.mean(shares)),
            float(np.std(shares, ddof=1)) / len(shares) ** 0.5,
            len(shares) - 1,
        )
        ends = bandit.student_interval(share, error, freedom)
        return {"right": Figure.between(share, ends, "share", standard_error=error, degrees_of_freedom=freedom)}
