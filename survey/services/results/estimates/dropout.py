"""Who left before their last item, and what that may do to the figures: read from a stage's rows for `bandit.dropout`.

Items that were never given to anybody are not among those that people left: nothing of them depends on a person.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

import bandit
from bandit import DesignError, LeavingTest
from survey.services.answers.leaving import Leavers
from survey.services.base.seeds import derive

from .stage_rows import GivenItem, StageRows


@dataclass(frozen=True)
class LeavingLine:
    """People who left, under one level of a factor or, with empty names, all of them.

    `people` began the items, `left` of them are gone before their last one (`survey.services.answers.leaving`), whether
    or not a rule excludes them. `given` items were given to those whom no rule excludes, of which `unanswered` have no
    answer that counts and can get none: also those that somebody who finished answered too late. `test` is of leaving
    on the last answer, None where nobody was at risk.
    """

    factor: str
    level: str
    people: int
    left: int
    given: int
    unanswered: int
    test: LeavingTest | None

    @property
    def title(self) -> str:
        return f"{self.factor}={self.level}" if self.factor else "everybody"


@dataclass(frozen=True)
class ExcludedLine:
    """People under one level of a factor that was drawn for people, or with empty names all of them: how many were
    given items, and how many of them a rule of the study file excludes. `p`: how often chance alone would make their
    share differ so much from that under the other levels (Fisher's exact test), None in the line of all."""

    factor: str
    level: str
    people: int
    excluded: int
    p: float | None

    @property
    def title(self) -> str:
        return f"{self.factor}={self.level}" if self.factor else "everybody"


@dataclass(frozen=True)
class Leaving:
    """What is known of people who left, and of those whom a rule excludes (`excluded`, empty where there are none).
    `outcome` is what the test and the weights go by; `no_weights` says why there are no weighted figures, and is empty
    if there are some. `odds_ratio` is that of the bounds. `finished_late` people finished with an answer that came too
    late: they did not leave, and items of theirs are unanswered."""

    outcome: str
    odds_ratio: float
    no_weights: str
    lines: tuple[LeavingLine, ...]
    excluded: tuple[ExcludedLine, ...] = ()
    finished_late: int = 0


@dataclass(frozen=True, eq=False)
class AnswersInOrder:
    """Every answer to an item that estimates use, under all levels, in the order of the sittings; arrays (n,).

    `number`: its place among its sitting's items. `left`: whether the person left after it; `known`: whether it is
    known that they did or did not. `levels`, (n, factors): under which level of each factor it was given, numbered.
    """

    key: np.ndarray
    value: np.ndarray
    stage: np.ndarray
    sitting: np.ndarray
    person: np.ndarray
    number: np.ndarray
    left: np.ndarray
    known: np.ndarray
    levels: np.ndarray


def read_answered(rows: Sequence[StageRows], values: Mapping[int, float], factors: Sequence[str]) -> AnswersInOrder:
    """The answers with what came after them.

    Args:
        values: by the key of each answer, what leaving may depend on. Answers without one are not read.
        factors: of the conditions, whose levels leaving may depend on.
    """
    answered: list[tuple[int, float, int, int, int, int, bool, bool]] = []
    under: list[list[str]] = []
    for of_stage in rows:
        for items in _sittings(of_stage.given):
            places = [index for index, item in enumerate(items) if item.answer is not None and item.answer.pk in values]
            for index, after in zip(places, [*places[1:], None], strict=False):
                answer = items[index].answer
                rest = items[index + 1 :]
                # After the last answer: gone, if all that is left can get no answer any more.
                left = after is None and bool(rest) and all(item.is_over and item.answer is None for item in rest)
                known = bool(rest) and (left or after is not None)
                if answer is not None:
                    sitting = items[index].sitting
                    own = (of_stage.stage.index, sitting.pk, sitting.respondent_id, index + 1)
                    answered.append((answer.pk, values[answer.pk], *own, left, known))
                    under.append([items[index].levels.get(factor, "") for factor in factors])
    columns = list(zip(*answered, strict=True)) or [()] * 8
    numbered = [np.unique(np.array(column, dtype=str), return_inverse=True)[1] for column in zip(*under, strict=True)]
    levels = np.column_stack(numbered) if numbered else np.empty((len(answered), 0), dtype=np.int64)
    kinds = (np.int64, np.float64, np.int64, np.int64, np.int64, np.int64, np.bool_, np.bool_)
    arrays: list[np.ndarray] = [np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)]
    return AnswersInOrder(*[*arrays, levels])


def _sittings(items: Sequence[GivenItem]) -> Iterator[list[GivenItem]]:
    """The items of each sitting, in their order."""
    start = 0
    for index in range(1, len(items) + 1):
        if index == len(items) or items[index].sitting.pk != items[start].sitting.pk:
            yield list(items[start:index])
            start = index


def staying_chances(answered: AnswersInOrder, seed: int) -> tuple[dict[int, float], str]:
    """Each answer's chance that its person was still there, by the answer's key; none, and why, where too few left."""
    try:
        chances = bandit.staying_chances(
            value=answered.value,
            sitting=answered.sitting,
            number=answered.number,
            left=answered.left,
            known=answered.known,
            cluster=answered.person,
            rng=np.random.default_rng(derive(seed, "staying")),
            levels=answered.levels,
        )
    except DesignError as exc:
        return {}, str(exc).partition(": ")[2]
    return dict(zip(answered.key.tolist(), chances.tolist(), strict=True)), ""


def lines(
    rows: Sequence[StageRows], answered: AnswersInOrder, factors: Sequence[str], levels: Mapping[str, str]
) -> Iterator[LeavingLine]:
    """Everybody, and each level of each factor; with `levels`, only the items under these."""
    leavers = _together(rows)
    given_items = [(item, True) for of_stage in rows for item in of_stage.given]
    items = [
        (item, is_used)
        for item, is_used in [*given_items, *((item, False) for of_stage in rows for item in of_stage.excluded)]
        if all(item.levels.get(factor) == level for factor, level in levels.items())
    ]
    everybody = _line("", "", items, answered, leavers)
    # A sitting may have nothing but items that no estimate uses.
    yield everybody if levels else replace(everybody, people=len(leavers.began), left=len(leavers.left))
    for factor in factors:
        if factor in levels:
            continue
        for level in sorted({item.levels[factor] for item, _is_used in items if factor in item.levels}):
            under = [(item, is_used) for item, is_used in items if item.levels.get(factor) == level]
            yield _line(factor, level, under, answered, leavers)


def finished_late(rows: Sequence[StageRows], levels: Mapping[str, str]) -> int:
    """How many people finished with an answer that came too late; with `levels`, of those who had items under them."""
    late = _together(rows).finished_late
    if not levels:
        return len(late)
    return len(
        {
            item.sitting.pk
            for of_stage in rows
            for item in (*of_stage.given, *of_stage.excluded)
            if item.sitting.pk in late and all(item.levels.get(factor) == level for factor, level in levels.items())
        }
    )


def _together(rows: Sequence[StageRows]) -> Leavers:
    parts = [of_stage.leavers for of_stage in rows]
    return Leavers(
        frozenset().union(*(part.began for part in parts)),
        frozenset().union(*(part.left for part in parts)),
        frozenset().union(*(part.finished_late for part in parts)),
    )


def _line(
    factor: str, level: str, items: Sequence[tuple[GivenItem, bool]], answered: AnswersInOrder, leavers: Leavers
) -> LeavingLine:
    """Of items, each with whether no rule excludes its person."""
    people = {item.sitting.pk for item, _is_used in items}
    used = [item for item, is_used in items if is_used]
    inside = np.isin(answered.key, [item.answer.pk for item in used if item.answer is not None]) & answered.known
    test = None
    if inside.any():
        _, stratum = np.unique(
            np.column_stack([answered.stage[inside], answered.number[inside]]), axis=0, return_inverse=True
        )
        test = bandit.leaving_test(left=answered.left[inside], value=answered.value[inside], stratum=stratum.ravel())
    return LeavingLine(
        factor=factor,
        level=level,
        people=len(people),
        left=len(people & leavers.left),
        given=len(used),
        unanswered=sum(is_lost(item) for item in used),
        test=test,
    )


def excluded_lines(
    rows: Sequence[StageRows], factors: Sequence[str], levels: Mapping[str, str]
) -> Iterator[ExcludedLine]:
    """Everybody, and each level of each factor that is drawn for people; nothing where nobody is excluded. Rules act
    after the levels have: if they exclude more people under one level than under another, figures by level compare
    people who are no longer alike."""
    people: dict[int, Mapping[str, str]] = {}
    out: set[int] = set()
    for of_stage in rows:
        for items, are_out in ((of_stage.given, False), (of_stage.excluded, True)):
            for item in items:
                own = item.sitting.levels()
                if all(own.get(factor, level) == level for factor, level in levels.items()):
                    people[item.sitting.respondent_id] = own
                    out |= {item.sitting.respondent_id} if are_out else set()
    if not out:
        return
    yield ExcludedLine("", "", len(people), len(out), None)
    for factor in factors:
        known = sorted({own[factor] for own in people.values() if factor in own})
        for level in known if len(known) > 1 else ():
            inside = {who for who, own in people.items() if own.get(factor) == level}
            others = {who for who, own in people.items() if factor in own} - inside
            p = bandit.fisher_exact((len(inside & out), len(inside)), (len(others & out), len(others)))
            yield ExcludedLine(factor, level, len(inside), len(inside & out), p)


def is_lost(item: GivenItem) -> bool:
    """Whether it was given to somebody and can get no answer of theirs any more."""
    return item.is_over and item.answer is None
