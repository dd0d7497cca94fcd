"""The report `budget`: what a study would find by its own study file, and what it costs.

Sizes, designs, bank, pay and minutes are the study's. The truth about people is unknown, so the user states it.
`plan_budget` reads all of it from a file, for any study.
"""

from collections.abc import Iterator
from dataclasses import replace

import bandit
from bandit.candidates import universe_size
from survey.contracts.budget_files import Prices
from survey.contracts.reports import Argument, Report, ReportArguments, ReportResult
from survey.exceptions import StateRefused
from survey.figures.words import integer
from survey.models import Study
from survey.services.banks.eligibility import filtered_questions
from survey.services.results import budgets
from survey.services.studies.checking import PLATFORM_FEE
from survey.study_file import StageConfig, StudyConfig

from .planner import BeliefBudget, BeliefBudgetConfig, BeliefPolicyConfig, StudyShape
from .simulation import simulated_figures
from .worlds import BankShape, TruthShape, kinds_of, world_over

FILE = "`hunch plan_budget FILE.toml` simulates what a file describes"
MAX_STUDIES = 100
# If a study draws from all pairs, this many candidates stand for them.
AS_POOL = 12_000
# Epsilons and trade-offs that are simulated next to the study's own designs, the most telling ones first.
FRONTIER = (0.1, 0.3, 0.2, 0.5)
FRONTIER_STUDIES = 4
PLANNED, UNIFORM = "as planned", "uniform"


class BudgetReport(Report):
    """The planned study next to the same study drawn uniformly, each simulated several times."""

    arguments = (
        Argument(
            "studies",
            "simulated studies of each policy",
            default="10",
            on_pages="4",
            most_on_web=10,
            label="Simulated studies",
        ),
        Argument(
            "dropout",
            "the share of people who leave, each at a random place",
            default="0.1",
            label="People who leave (share, 0 to 1)",
        ),
        Argument(
            "changes_incorrect",
            "the share of beliefs that change after an incorrect answer",
            default="0.46",
            label="Beliefs that change after an incorrect answer (share, 0 to 1)",
        ),
        Argument(
            "changes_correct",
            "the share of beliefs that change after a correct answer",
            default="0.32",
            label="Beliefs that change after a correct answer (share, 0 to 1)",
        ),
        Argument(
            "frontier",
            "points between finding many changes and estimating exactly, a design each; 0 for none",
            default="2",
            most_on_web=2,
            label="Further designs to compare",
        ),
        Argument(
            "fee",
            "what the panel takes, as a share of the rewards",
            default=f"{PLATFORM_FEE:.3f}",
            label="The panel's fee (share, 0 to 1)",
        ),
    )

    def obstacle(self, study: Study) -> str:
        stages = _main_stages(study.config)
        for number, stage in enumerate(stages, start=study.config.pilots + 1):
            if stage.design.kind == "test_set" or stage.design.needs_disagreement:
                return (
                    f"{study.slug}: stage {number} is a test set, or is drawn by disagreement, which cannot be "
                    f"simulated; {FILE}"
                )
            if stage.sittings < 2:
                return f"{study.slug}: stage {number} has one sitting, too few to simulate; {FILE}"
        return ""

    def make(self, study: Study, arguments: ReportArguments) -> ReportResult:
        config = study.config
        stages = _main_stages(config)
        kinds = kinds_of(filtered_questions(study))
        if len(kinds) < 2:
            raise StateRefused(f"{study.slug}: {len(kinds)} questions are left to draw from, fewer than 2")
        reward = (config.panel.reward or 0) / 100
        plan = BeliefBudgetConfig(
            title=study.title,
            seed=study.seed,
            studies=arguments.whole("studies", lowest=2, highest=MAX_STUDIES),
            bank=BankShape(name=f"{study.bank.name}@{study.bank.version}"),
            truth=TruthShape(
                changes_incorrect=arguments.number("changes_incorrect", lowest=0.01, highest=0.99),
                changes_correct=arguments.number("changes_correct", lowest=0.01, highest=0.99),
            ),
            study=StudyShape(
                sittings=[stage.sittings for stage in stages],
                items=config.sitting.items,
                candidates=min(_candidates(config), universe_size(len(kinds))),
                holdout=config.roles.holdout,
                controls=config.roles.controls,
                dropout=arguments.number("dropout", lowest=0, highest=0.95),
                minutes=config.expected_minutes,
            ),
            money=Prices(
                currency=config.panel.currency,
                reward=reward,
                platform_fee=arguments.number("fee", lowest=0, highest=5),
            ),
            frontier_studies=min(FRONTIER_STUDIES, arguments.whole("studies", lowest=2, highest=MAX_STUDIES)),
            frontier=list(FRONTIER[: arguments.whole("frontier", lowest=0, highest=len(FRONTIER))]),
            # What it is drawn for stands in the notes where the simulation has no such figure.
            policies=[
                BeliefPolicyConfig(name=PLANNED, **stages[-1].design.model_dump(exclude_none=True, exclude={"for"}))
            ],
        )
        designs = tuple(stage.design.build() for stage in stages)
        policies: dict[str, tuple[bandit.Design, ...]] = {PLANNED: designs}
        if any(stage.design.kind != "uniform" for stage in stages[1:]):
            policies[UNIFORM] = (bandit.Uniform(),)
        budget = BeliefBudget(plan, world=world_over(kinds, plan.truth), policies=policies)
        result = budgets.report(budget, source=study.slug)
        return replace(result, title=f"Budget of {study.slug}: {study.title}", notes=(*_notes(study), *result.notes))


def _main_stages(config: StudyConfig) -> list[StageConfig]:
    return config.stages[config.pilots :]


def _candidates(config: StudyConfig) -> int:
    return config.candidates.size if config.candidates.kind == "pool" else AS_POOL


def _notes(study: Study) -> Iterator[str]:
    config = study.config
    yield f"The truth about pairs and people is assumed, not measured; {FILE}, with every assumption in it."
    if config.panel.reward is None:
        yield "The study file names no reward: nothing is paid here."
    if config.candidates.kind != "pool":
        yield (
            f"The study draws from all pairs; {integer(AS_POOL)} of them, drawn again for each stage, stand for these "
            "here, where proportional can draw too; the study itself would need a pool for that."
        )
    if any(config.roles_of(number) != config.roles for number in range(config.pilots + 1, len(config.stages) + 1)):
        yield "Some stages have roles of their own; those of the whole study are simulated throughout."
    for number, stage in enumerate(config.stages, start=1):
        design = stage.design.build()
        if len(simulated := simulated_figures(design)) != max(1, len(set(design.estimated))):
            yield f"Stage {number} is simulated as if it were drawn for {', '.join(simulated)} alone."
    if config.instrument.options.get("evidence") == "real":
        yield "Both outcomes of each question are simulated, though the study shows only those that really happened."
