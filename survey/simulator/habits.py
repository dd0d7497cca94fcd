"""What people do besides answering: leave, come back, hurry, click twice. Standard library and seeds alone."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from survey.exceptions import HunchError
from survey.figures.words import short
from survey.services.base.seeds import derive
from survey.study_file import StudyConfig

Kind = Literal["ordinary", "dropout", "back_soon", "back_late", "speeder", "double_tabs"]


@dataclass(frozen=True)
class Rates:
    """Shares of the people, 0..1, each person having one habit at most; scanners are extra, as a share of the people.

    dropouts: leave for good, on any page from the first one on. returners: leave and come back by the same link, every
    other one after their sitting has expired. speeders: answer at random. double_tabs: click twice, send a page again
    after a lost reply, or answer in a second tab or in an outdated one. scanners: programs that open a link before its
    person does, or a link that nobody uses, and only read.
    """

    dropouts: float = 0.0
    returners: float = 0.0
    speeders: float = 0.0
    double_tabs: float = 0.0
    scanners: float = 0.0

    def __post_init__(self) -> None:
        for rate in fields(self):
            value = getattr(self, rate.name)
            if not 0 <= value <= 1:
                raise HunchError(f"--{rate.name.replace('_', '-')}: {short(value)} is not a share between 0 and 1")
        if self.dropouts + self.returners + self.speeders + self.double_tabs > 1 + 1e-9:
            raise HunchError("--dropouts, --returners, --speeders and --double-tabs are more than all people together")


NONE = Rates()
# Roughly the rates of online panels.
REALISTIC = Rates(dropouts=0.1, returners=0.06, speeders=0.05, double_tabs=0.1, scanners=0.1)


@dataclass(frozen=True)
class Habit:
    """What one person does besides answering.

    leaves_before: the page, counted from 0, that is seen and not sent; None if the person stays. newcomer: starts after
    the sittings of those who left have expired, and may get what they left unanswered. scanned: a program opens the
    person's link first.
    """

    kind: Kind = "ordinary"
    leaves_before: int | None = None
    newcomer: bool = False
    scanned: bool = False


ORDINARY = Habit()


def pages_of(config: StudyConfig) -> int:
    """About how many pages a sitting has, from the first one on: an item counts as two."""
    return 2 + sum(2 * config.sitting.items if block.kind == "items" else 1 for block in config.blocks[1:-1])


def habits_of(people: int, *, rates: Rates, config: StudyConfig, seed: int) -> list[Habit]:
    """One habit for each person, in the order in which they start. The rates, rounded, say how many of each kind."""
    chance = random.Random(derive(seed, "habits"))  # noqa: S311 - reproducible on purpose
    pages = pages_of(config)
    back = round(people * rates.returners)
    wanted: dict[Kind, int] = {
        "dropout": round(people * rates.dropouts),
        "back_soon": back - back // 2,
        "back_late": back // 2,
        "speeder": round(people * rates.speeders),
        "double_tabs": round(people * rates.double_tabs),
        "ordinary": people,
    }
    kinds = [kind for kind, count in wanted.items() for _number in range(count)][:people]
    chance.shuffle(kinds)
    # People who come back must have begun, so they leave after the first page and consent.
    first = {"dropout": 0, "back_soon": 2, "back_late": 2}
    leaving = [chance.randrange(first[kind], pages) if kind in first else None for kind in kinds]
    newcomers = _some_ordinary(kinds, chance) if {"dropout", "back_late"} & set(kinds) else set()
    scanned = set(chance.sample(range(people), min(people, _scanners(people, rates) // 2)))
    return [
        Habit(kind=kind, leaves_before=page, newcomer=index in newcomers, scanned=index in scanned)
        for index, (kind, page) in enumerate(zip(kinds, leaving, strict=True))
    ]


def stray_scanners(people: int, rates: Rates) -> int:
    """How many programs open links that no person follows."""
    total = _scanners(people, rates)
    return total - min(people, total // 2)


def _scanners(people: int, rates: Rates) -> int:
    return round(people * rates.scanners)


def _some_ordinary(kinds: Sequence[Kind], chance: random.Random) -> set[int]:
    ordinary = [index for index, kind in enumerate(kinds) if kind == "ordinary"]
    return set(chance.sample(ordinary, len(ordinary) // 4))
