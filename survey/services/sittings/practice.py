"""The practice item: the instrument's own screens on an example, then how they work. It counts for nothing.

Core and pages know no more of it than the instrument's contract says.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.contracts.screens import Screen
from survey.models import PracticeAnswer, Sitting, Study
from survey.study_file import Place


def problems(study: Study, instrument: Instrument) -> Iterator[tuple[Place, str]]:
    """What is wrong with the practice block of a study that is to be created."""
    for index, block in enumerate(study.config.blocks):
        if block.kind != "practice":
            continue
        if instrument.practice is None:
            yield ("blocks", index, "kind"), f"{instrument.name} has no practice item: remove the block"
            continue
        for name, message in instrument.practice.problems(block.example):
            yield ("blocks", index, "example", name), message


def given(sitting: Sitting) -> list[dict[str, Any]]:
    """The answers so far, in order."""
    return [{"screen": answer.screen, **answer.data} for answer in sitting.practice_answers.order_by("number")]


def shown(sitting: Sitting) -> tuple[Screen | None, Sequence[str]]:
    """The screen to answer; after the last one none, and what was entered in sentences."""
    practice = instruments.of_study(sitting.stage.study).practice
    if practice is None:
        raise RuntimeError(f"{sitting} stands at a practice item that its instrument does not have")
    answers = given(sitting)
    screen = practice.screen(sitting=sitting, example=sitting.current_block.example, given=answers)
    return screen, () if screen else practice.summary(answers)


def accept(*, sitting: Sitting, screen: Screen, data: Mapping[str, Any], now: datetime) -> None:
    """Store an answer. Needs the sitting's lock.

    Raises:
        FieldErrors: it was not accepted; nothing is stored.
    """
    cleaned = screen.accepted(data)
    PracticeAnswer.objects.create(
        sitting=sitting,
        number=sitting.practice_answers.count() + 1,
        screen=screen.name,
        data=cleaned,
        at=now,
    )
