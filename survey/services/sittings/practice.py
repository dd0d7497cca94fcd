"""The practice items: the instrument's screens with each example, and behind the last one a page that repeats its
answers. They do not count.

Core and pages know them only through the instrument's contract.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from survey.contracts import instruments
from survey.contracts.instruments import Instrument
from survey.contracts.screens import Screen
from survey.models import PracticeAnswer, Sitting, Study
from survey.study_file import FieldPath

# Stands between the answers to two examples. No screen of an instrument has this name.
SUMMARY = "(summary)"


def problems(study: Study, instrument: Instrument) -> Iterator[tuple[FieldPath, str]]:
    """Problems with the practice block of a study that is to be created."""
    for index, block in enumerate(study.config.blocks):
        if block.kind != "practice":
            continue
        if instrument.practice is None:
            yield ("blocks", index, "kind"), f"{instrument.name} has no practice item: remove the block"
            continue
        for number, example in enumerate(block.all_examples):
            place: FieldPath = ("blocks", index, "examples", number) if block.examples else ("blocks", index, "example")
            for name, message in instrument.practice.problems(example):
                yield (*place, name), message


@dataclass(frozen=True)
class PracticeStep:
    """What a sitting is shown of its practice: the screen to answer, or after the last example's last one none and, in
    sentences, what was entered. `number` of `total` examples, from 1. `begins`: it is the first page of all."""

    screen: Screen | None
    feedback: Sequence[str]
    number: int
    total: int
    begins: bool


def shown(sitting: Sitting) -> PracticeStep:
    """By the stored answers alone."""
    practice = instruments.of_study(sitting.stage.study).practice
    if practice is None:
        raise RuntimeError(f"{sitting} stands at a practice item that its instrument does not have")
    examples = sitting.current_block.all_examples
    done, answers = 0, list[dict[str, Any]]()
    for answer in sitting.practice_answers.order_by("number"):
        if answer.screen == SUMMARY:
            done, answers = done + 1, []
        else:
            answers.append({"screen": answer.screen, **answer.data})
    screen = practice.screen(sitting=sitting, example=examples[done], given=answers)
    begins = not done and not answers
    return PracticeStep(screen, () if screen else practice.summary(answers), done + 1, len(examples), begins)


def accept(*, sitting: Sitting, screen: Screen, data: Mapping[str, Any], now: datetime) -> None:
    """Store an answer, and go on to the next example behind an example's last one. Needs the sitting's lock.

    Raises:
        FieldErrors: it was not accepted; nothing is stored.
    """
    _store(sitting, screen.name, screen.accepted(data), now)
    if len(sitting.current_block.all_examples) > 1 and shown(sitting).screen is None:
        go_to_next_example(sitting, now)


def go_to_next_example(sitting: Sitting, now: datetime) -> bool:
    """Store that an example is finished. False after the last example. Needs the sitting's lock."""
    now_at = shown(sitting)
    if now_at.number == now_at.total:
        return False
    _store(sitting, SUMMARY, {}, now)
    return True


def _store(sitting: Sitting, screen: str, data: Mapping[str, Any], now: datetime) -> None:
    number = sitting.practice_answers.count() + 1
    PracticeAnswer.objects.create(sitting=sitting, number=number, screen=screen, data=data, at=now)
