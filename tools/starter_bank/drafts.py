"""A question before it is laid out, and the one place that lays it out as text.

Dependency rule: the standard library only.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

LETTERS = "ABCD"


class Row(TypedDict):
    """One line of `starter.csv`; the keys are its header, in order."""

    id: str
    source: str
    question: str
    answer: str
    domain: str
    reason: str


@dataclass(frozen=True)
class Draft:
    """A stem, its right answer and one line that says why it is right.

    With `wrong` the question is multiple choice; without it people type the answer.
    """

    stem: str
    answer: str
    reason: str
    wrong: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        options = (self.answer, *self.wrong)
        if len(set(options)) < len(options):
            raise ValueError(f"wrong: must differ from the answer and from each other: {self.stem!r} {options}")
        if len(options) > len(LETTERS):
            raise ValueError(f"wrong: at most {len(LETTERS) - 1} are possible: {self.stem!r}")


def seeded(name: str) -> random.Random:
    """The random generator of one task: always the same, so that the bank can be rebuilt byte for byte."""
    return random.Random(f"starter bank: {name}")  # noqa: S311 -- chance for layout, not for secrets


def lay_out(*, task: str, domain: str, drafts: Iterable[Draft]) -> list[Row]:
    """Turn the drafts of a task into rows, numbered from 1, with the right letters spread evenly."""
    rng = seeded(f"letters of {task}")
    decks: dict[int, list[str]] = {}
    rows: list[Row] = []
    for number, draft in enumerate(drafts, start=1):
        question, answer = f"<b>{draft.stem}</b>", draft.answer
        if draft.wrong:
            answer = _deal_letter(decks.setdefault(len(draft.wrong) + 1, []), len(draft.wrong) + 1, rng)
            options = list(draft.wrong)
            options.insert(LETTERS.index(answer), draft.answer)
            listed = "<br>".join(f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False))
            question = f"<b>{draft.stem}<br></b>{listed}"
        rows.append(
            Row(
                id=f"{task}:{number}", source=task, question=question, answer=answer, domain=domain, reason=draft.reason
            )
        )
    return rows


def _deal_letter(deck: list[str], size: int, rng: random.Random) -> str:
    """Draw the next letter from a deck that holds each of the first `size` letters once, reshuffled when empty."""
    if not deck:
        deck.extend(LETTERS[:size])
        rng.shuffle(deck)
    return deck.pop()
