"""Planning budgets, for the `BudgetPlanner` of any instrument: reads a file and simulates its plans."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import django
import numpy as np

from bandit import DesignError
from predictors.training import limit_threads
from survey.contracts.budgets import BudgetPlanner, PlanOutlook, Simulated, StudyPlan
from survey.contracts.reports import ReportResult
from survey.exceptions import FileErrors, Problem
from survey.services.base.seeds import generator
from survey.services.base.toml_files import checked

Planner = BudgetPlanner[Any, Any]


def read(kind: type[Planner], raw: Mapping[str, Any], *, path: Path, studies: int | None = None) -> Planner:
    """The planner of a file.

    Args:
        raw: what the file holds, without `instrument`. studies: simulated studies of each plan, in place of the file's
            number.

    Raises:
        FileErrors: values are wrong; lists every problem.
    """
    config = checked(kind.config_model, raw, path)
    return kind(config if studies is None else config.model_copy(update={"studies": studies}))


def simulated_studies(planner: Planner) -> int:
    """How many studies are simulated in all."""
    return sum(plan.studies or planner.config.studies for plan in planner.plans)


def report(
    planner: Planner, *, source: str, jobs: int = 1, progress: Callable[[], None] = lambda: None
) -> ReportResult:
    """Simulate all plans of a file.

    Args:
        source: what problems name, such as the file. jobs: processes. progress: is called after each study.

    Raises:
        FileErrors: a plan does not fit the sizes.
    """
    config = planner.config
    outlooks = simulate(
        type(planner),
        planner.plans,
        studies=config.studies,
        seed=config.seed,
        source=source,
        jobs=jobs,
        progress=progress,
    )
    return planner.report_result(outlooks)


def simulate(
    kind: type[Planner],
    plans: Sequence[StudyPlan[Any]],
    *,
    studies: int,
    seed: int,
    source: str,
    jobs: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> list[PlanOutlook[Any]]:
    """What the studies of each plan find. The same seed gives the same figures, whatever the number of processes.

    Raises:
        FileErrors: a plan does not fit the sizes.
    """
    outlooks = []
    with _workers(jobs) as each:
        running = [
            (plan, each(partial(_one_study, kind, plan, seed), range(plan.studies or studies))) for plan in plans
        ]
        for plan, results in running:
            figures = []
            try:
                for result in results:
                    figures.append(result)
                    progress()
            except DesignError as exc:
                field = f"{kind.config_model.compared}.{plan.name}"
                raise FileErrors([Problem(source, None, field, str(exc))]) from exc
            outlooks.append(PlanOutlook(plan, figures))
    return outlooks


def _one_study(kind: type[Planner], plan: StudyPlan[Any], seed: int, number: int) -> Simulated:
    named = kind.randomness
    rng = generator(seed, named, plan.name, number) if named else np.random.default_rng([seed, number])
    return kind.simulate(kind.of_study(plan.setting, number), rng)


@contextmanager
def _workers(jobs: int) -> Iterator[Callable[..., Iterator[Simulated]]]:
    """`map`, in so many processes."""
    if jobs == 1:
        yield map
        return
    limit_threads(1)  # One thread for each process that is started here: studies run in parallel instead.
    # A process starts without Django, which the planner of an instrument may need.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=django.setup) as pool:
        try:
            yield pool.map
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
