"""Where a sitting is and what it is shown there. Only reads; `answering` moves the sitting on."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from survey.contracts import instruments, panels
from survey.contracts.screens import Screen
from survey.models import Assignment, Sitting
from survey.services.base.seeds import derive
from survey.study_file import BlockConfig, CheckConfig

from . import practice
from .attention import due_check, options_shown
from .endings import outcome_of, text_at_the_end
from .progress import NOWHERE, Progress, among_items, in_block
from .queries import Standing, standing_of

MAXIMUM_CHECK_ATTEMPTS = 2


@dataclass(frozen=True)
class CheckQuestion:
    """A check as this sitting sees it: options in the sitting's random order, as (index in the file, text).

    The first `right` options in the file are right; this never leaves the server.
    """

    name: str
    question: str
    options: tuple[tuple[int, str], ...]
    right: int = 1

    @property
    def order(self) -> list[int]:
        """The options' indices in the file, in the order shown."""
        return [index for index, _text in self.options]


@dataclass(frozen=True)
class Step:
    """What the person is shown now. `number` comes back with the POST, so that a repeated POST is recognised.

    `position` of `total` counts items, and practice examples where there are several. `progress` is how far they have
    come, as people see it.
    """

    number: int
    kind: str
    block: BlockConfig
    text: str = ""
    checks: tuple[CheckQuestion, ...] = ()
    attempt: int = 0
    hints: tuple[str, ...] = ()
    screen: Screen | None = None
    feedback: tuple[str, ...] = ()
    standing: Standing | None = None
    position: int = 0
    total: int = 0
    outcome: str = ""
    code: str = ""
    paid: bool = False
    progress: Progress = NOWHERE

    @property
    def assignment(self) -> Assignment | None:
        """The item that is shown, if the step is one."""
        return self.standing.assignment if self.standing is not None and self.kind == "item" else None


def check_questions(sitting: Sitting, block: BlockConfig) -> tuple[CheckQuestion, ...]:
    questions = []
    for check in block.checks:
        options = list(enumerate(check.options))
        random.Random(derive(sitting.stage.seed, "check", check.name, sitting.public_id.hex)).shuffle(options)  # noqa: S311
        questions.append(CheckQuestion(check.name, check.question, tuple(options)))
    return tuple(questions)


def current_step(sitting: Sitting, *, to_answer: bool = False) -> Step:
    """The step to show. It depends only on the row, so that reload, back button and another tab all show the same.

    Args:
        to_answer: leaves out what only its page says of earlier attempts (`attempt`, `hints`).
    """
    study = sitting.stage.study
    blocks = sitting.shown_config.blocks
    if sitting.is_over:
        outcome = outcome_of(sitting)
        return Step(
            number=sitting.step,
            kind="end",
            block=blocks[-1],
            text=text_at_the_end(sitting),
            outcome=outcome,
            code=study.completion_code(outcome),
            progress=Progress(percent=100),
        )
    block = sitting.current_block
    progress = in_block(sitting.shown_config, sitting.block)
    if block.kind == "checks":
        attempts = [] if to_answer else list(sitting.check_attempts.all())
        hints = (
            tuple(check.hint for check in _failed(block.checks, attempts[-1].answers) if check.hint) if attempts else ()
        )
        return Step(
            number=sitting.step,
            kind="checks",
            block=block,
            text=sitting.text_of(block),
            checks=check_questions(sitting, block),
            attempt=len(attempts) + 1,
            hints=hints,
            progress=progress,
        )
    if block.kind == "items":
        return step_among_items(sitting, standing_of(sitting))
    text = sitting.text_of(block)
    if block.kind == "practice":
        practice_state = practice.shown(sitting)
        several = practice_state.total > 1
        gone = (practice_state.number - 1 + (0.5 if practice_state.screen is None else 0.0)) / practice_state.total
        return Step(
            number=sitting.step,
            kind="practice",
            block=block,
            text=text if practice_state.begins else "",
            screen=practice_state.screen,
            feedback=tuple(practice_state.feedback),
            position=practice_state.number if several else 0,
            total=practice_state.total if several else 0,
            progress=in_block(sitting.shown_config, sitting.block, within=gone),
        )
    paid = panels.of_study(study).has_submissions
    return Step(number=sitting.step, kind=block.kind, block=block, text=text, paid=paid, progress=progress)


def step_among_items(sitting: Sitting, standing: Standing, *, screen: Screen | None = None) -> Step:
    """The step of a sitting that stands there: an attention check that is due, or a screen of the item.

    Args:
        screen: the item's next one, where it is known already.
    """
    block = sitting.current_block
    progress = among_items(sitting.shown_config, sitting.block, standing)
    if check := due_check(sitting, standing):
        question = CheckQuestion(check.name, check.text, options_shown(sitting, check), right=check.right)
        return Step(
            number=sitting.step,
            kind="attention",
            block=block,
            checks=(question,),
            standing=standing,
            progress=progress,
        )
    if standing.assignment is None:
        return _welcome_back(sitting, progress)
    screen = screen or instruments.of_study(sitting.stage.study).next_screen(standing.assignment)
    if screen is None:
        raise RuntimeError(f"{sitting} stands at its items with nothing to answer")
    return Step(
        number=sitting.step,
        kind="item",
        block=block,
        screen=screen,
        standing=standing,
        position=standing.assignment.position,
        total=standing.total,
        progress=progress,
    )


def words_while_missing() -> str:
    """What respondents read while the study's instrument is missing. The reason is not for them."""
    return _(
        "This study cannot be shown at the moment. Nothing is lost: what you have answered is stored. "
        "Please try again later, or write to those who run the study."
    )


def _welcome_back(sitting: Sitting, progress: Progress) -> Step:
    """The last item counted as it was when the sitting expired. Who comes back continues with what is behind the items,
    by a POST, as anybody does."""
    text = _("All your answers are stored. Please continue with what is left of the study.")
    block = BlockConfig(kind="instructions", title=_("Welcome back"), text=text)
    return Step(number=sitting.step, kind="instructions", block=block, text=text, progress=progress)


def _failed(checks: list[CheckConfig], answers: Mapping[str, int]) -> list[CheckConfig]:
    """In the study file the right option comes first."""
    return [check for check in checks if answers.get(check.name) != 0]
