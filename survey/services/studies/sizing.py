"""Which sizes fit a bank: how many items a sitting, and how many sittings a stage, can have at most, in words.

Found by trying, with the code that draws and deals plans, so that it holds for every instrument and design. Nothing is
stored, and nothing large is tried.
"""

import copy
from collections.abc import Callable, Sequence

import numpy as np

from survey.contracts import instruments
from survey.exceptions import PlanRefused
from survey.figures.words import short
from survey.models import Question, Stage, Study
from survey.services.plans.planning import design_problems, try_stage
from survey.study_file import StudyConfig

MAX_ITEMS = 200  # of a sitting, by the study file
MAX_SLOTS = 20_000  # of a stage that is tried
MAX_CANDIDATES = 50_000
MAX_SITTINGS = 2000
TRIED = 20  # candidates that are looked at


def limits_of(study: Study, questions: Sequence[Question], index: int) -> str:
    """The largest sizes that fit, for stage `index` (from 1; 0: all of them cannot be drawn); empty where there is no
    limit near, or finding it would take long."""
    config = study.config
    if index < 1 or (config.candidates.kind == "pool" and config.candidates.size > MAX_CANDIDATES):
        return ""
    stage = config.stages[index - 1]
    if stage.sittings * config.sitting.items * stage.slots_per_item > MAX_SLOTS:
        return ""

    def fits(items: int, sittings: int) -> bool:
        return _fits(study, questions, index, items=items, sittings=sittings)

    parts = []
    if (whole := _without_repeats(study, questions)) and whole < MAX_ITEMS:
        parts.append(f"at most {whole} item{_s(whole)} a sitting, since no question comes twice in it")
    own = config.sitting.items
    items = _largest(lambda wanted: fits(wanted, stage.sittings), whole or MAX_ITEMS, near=own)
    if 0 < items < (whole or MAX_ITEMS):
        parts.append(f"with {stage.sittings} sitting{_s(stage.sittings)} at most {items} item{_s(items)}")
    if whole and own > whole:
        own = whole
    bound = min(MAX_SITTINGS, MAX_SLOTS // own, _pool(study, questions) * stage.responses_per_item // own + 1)
    sittings = _largest(lambda wanted: fits(own, wanted), bound, near=stage.sittings)
    if 0 < sittings < bound:
        parts.append(f"with {own} item{_s(own)} at most {sittings} sitting{_s(sittings)}")
    return f"{len(questions)} questions, {_stage(config, index)}: {'; '.join(parts)}" if parts else ""


def _without_repeats(study: Study, questions: Sequence[Question]) -> int:
    """How many items fit into a sitting in which no question comes twice; 0 where items have no questions in common."""
    instrument = instruments.of_study(study)
    tried = instrument.draw_candidates(questions=questions, size=TRIED, rng=np.random.default_rng(study.seed))
    booklets = instrument.booklets
    keys = min((len(booklets.conflict_keys(row)) for row in tried.rows), default=0)
    return len(questions) // keys if keys else 0


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _stage(config: StudyConfig, index: int) -> str:
    design = config.stages[index - 1].design
    top = f", top {short(100 * design.top_fraction)} %" if design.top_fraction is not None else ""
    return f"stage {index} ({design.kind}{top})"


def _pool(study: Study, questions: Sequence[Question]) -> int:
    everything = instruments.of_study(study).universe_size(questions)
    return min(everything, study.config.candidates.size) if study.config.candidates.kind == "pool" else everything


def _fits(study: Study, questions: Sequence[Question], index: int, *, items: int, sittings: int) -> bool:
    """Whether stage `index` could be drawn and dealt with these sizes."""
    config = study.config
    stages = list(config.stages)
    stages[index - 1] = stages[index - 1].model_copy(update={"sittings": sittings})
    sitting = config.sitting.model_copy(update={"items": items})
    tried = copy.copy(study)
    tried.__dict__["config"] = config.model_copy(update={"sitting": sitting, "stages": stages})
    instrument = instruments.of_study(tried)
    universe = instrument.universe_size(questions)
    if any(
        True for _problem in design_problems(tried.config, universe_size=universe, instrument=instrument, only=index)
    ):
        return False
    try:
        try_stage(Stage(study=tried, index=index, seed=study.seed), questions)
    except PlanRefused:
        return False
    return True


def _largest(fits: Callable[[int], bool], most: int, *, near: int) -> int:
    """The largest number up to `most` that fits, if what is smaller than one that fits does too; 0 where none does.

    The search begins near the number that is asked for: far larger ones take far longer to try.
    """
    low, high = 0, min(most, max(1, near))
    while fits(high):
        low = high
        if high == most:
            return most
        high = min(most, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
