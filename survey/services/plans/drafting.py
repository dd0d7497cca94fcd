"""A plan before it is written: slots by role, drawn, numbered and dealt. Reads and writes no row.

A plan depends only on its `Recipe`, the candidates and the questions. So it can be drawn again at any time and compared
with what was stored.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bandit.booklets import deal
from bandit.designs import Design, TestSet
from bandit.errors import DesignError
from bandit.roles import DealtWithRepeats, RolePart, RolePlan, deal_with_repeats, plan_roles
from bandit.short_booklets import deal_short_with_repeats
from survey.contracts import instruments
from survey.contracts.instruments import ANOTHER_PERSON, REPEAT
from survey.models import Question, Slot, Stage, Study
from survey.services.base.hashing import digest
from survey.services.base.seeds import generator
from survey.study_file import LEARNED, DesignConfig, RolesConfig, StudyConfig

from .candidates import DrawnSlots, Everything, ListedPool, draw_slots

Role = Slot.Role
HOLDOUT = "holdout"
HOLDOUT_DRAWS = 1000
CONTROL_DRAWS = 10


@dataclass(frozen=True)
class Recipe:
    """How a stage is planned. `kinds`: of its controls, none where it has no controls. `responses`: slots of each
    sampled item; a test set says it in its design."""

    seed: int
    sittings: int
    items: int
    design: DesignConfig
    holdout: float = 0.0
    controls: float = 0.0
    kinds: tuple[str, ...] = ()
    short_booklets: bool = False
    responses: int = 1
    # What its design has learnt from answers of earlier stages, if it does.
    learned: Mapping[str, Any] | None = None

    @property
    def drawing_design(self) -> Design:
        """The design, with what it has learnt."""
        design = self.design.build()
        return design if self.learned is None else design.with_facts(self.learned)

    def as_facts(self) -> dict[str, Any]:
        """For the manifest. Later settings are written only if they differ from how it always was before them."""
        several = {"responses_per_item": self.responses} if self.responses > 1 else {}
        learned = {} if self.learned is None else {LEARNED: dict(self.learned)}
        return {
            **several,
            **learned,
            "seed": self.seed,
            "design": {"kind": self.design.kind, **self.design.parameters},
            "roles": {"holdout": self.holdout, "controls": self.controls, "control_kinds": list(self.kinds)},
            "sittings": self.sittings,
            "items": self.items,
            "short_booklets": self.short_booklets,
        }

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> "Recipe":
        """The recipe that a stage was planned by."""
        roles = manifest["roles"]
        return cls(
            seed=manifest["seed"],
            sittings=manifest["sittings"],
            items=manifest["items"],
            design=DesignConfig.model_validate(manifest["design"]),
            holdout=roles["holdout"],
            controls=roles["controls"],
            kinds=tuple(roles["control_kinds"]),
            short_booklets=manifest["short_booklets"],
            responses=manifest.get("responses_per_item", 1),
            learned=manifest.get(LEARNED),
        )


def control_kinds(roles: RolesConfig, instrument: instruments.Instrument) -> tuple[str, ...]:
    """The kinds of controls that a study asks; by default all that the instrument has.

    Raises:
        DesignError: the study file names one that the instrument does not have.
    """
    kinds = instrument.controls.kinds if instrument.controls is not None else ()
    if roles.control_kinds is None:
        return kinds
    possible = (*kinds, ANOTHER_PERSON)
    strangers = [kind for kind in roles.control_kinds if kind not in possible]
    if strangers:
        known = ", ".join(possible)
        raise DesignError(f"control_kinds: {instrument.name} has {known}, not {', '.join(strangers)}")
    return tuple(dict.fromkeys(roles.control_kinds))


def instrument_of_file(config: StudyConfig) -> instruments.Instrument:
    """The instrument with the sound options of a study file that is not stored: they may decide which capabilities it
    has. Options that the file leaves out have today's defaults.

    Raises:
        InstrumentMissing: it is not installed, or is broken.
    """
    kind = instruments.kind(config.instrument.kind)
    stored = config.model_dump(mode="json")
    stored["instrument"]["options"] = kind.options_model.model_validate(config.instrument.options).model_dump(
        mode="json"
    )
    return kind(Study(slug=config.slug, instrument=kind.name, stored_config=stored))


def recipe_of(
    config: StudyConfig, *, index: int, seed: int, instrument: instruments.Instrument | None = None
) -> Recipe:
    """The recipe that the study file gives stage `index`.

    Args:
        instrument: the study's instrument; by default the one that the file names, with the file's options.

    Raises:
        DesignError: a control that the instrument does not have.
    """
    stage, roles = config.stages[index - 1], config.roles_of(index)
    kinds = control_kinds(roles, instrument or instrument_of_file(config)) if roles.controls else ()
    return Recipe(
        seed=seed,
        sittings=stage.sittings,
        items=config.sitting.items,
        design=stage.design,
        holdout=roles.holdout,
        controls=roles.controls if kinds else 0.0,
        kinds=kinds,
        responses=stage.slots_per_item,
    )


def stage_recipe(stage: Stage, *, short_booklets: bool = False) -> Recipe:
    """The recipe of a stage now: a person may have chosen a different design since the study file.

    Raises:
        DesignError: a control that the instrument does not have.
    """
    instrument = instruments.of_study(stage.study)
    recipe = recipe_of(stage.study.config, index=stage.index, seed=stage.seed, instrument=instrument)
    config = stage.config
    return replace(recipe, design=config.design, responses=config.slots_per_item, short_booklets=short_booklets)


def slots_by_role(recipe: Recipe) -> RolePlan:
    """How many slots have which role.

    Raises:
        DesignError: one role leaves no room for another, a test set does not fill its sittings, or the slots do not
            divide into items with the requested number of answers. The message has the sizes.
    """
    plan = _role_plan(recipe, recipe.sittings)
    design = recipe.design.build()
    if not isinstance(design, TestSet):
        _refuse_a_remainder(recipe, plan.sampled)
        return plan
    fitting = next(
        sittings
        for sittings in range(-(-design.slots // recipe.items), 2 * design.slots * recipe.items + 2)
        if _items(recipe, sittings) >= design.slots
    )
    if recipe.sittings != fitting:
        raise DesignError(
            f"sittings: {design.pairs} pairs with {design.responses_per_pair} responses each are {design.slots} slots; "
            f"with their controls they fill {fitting} sittings of {recipe.items}, not {recipe.sittings}"
        )
    part = plan.sampled
    return RolePlan(
        sampled=RolePart(booklets=part.booklets, items=design.slots, controls=part.controls),
        holdout=plan.holdout,
        size=plan.size,
    )


def _refuse_a_remainder(recipe: Recipe, part: RolePart) -> None:
    if part.items % recipe.responses == 0 and part.booklets >= recipe.responses:
        return
    if part.booklets < recipe.responses:
        raise DesignError(
            f"responses_per_item: {recipe.responses} different people are to answer each item, and there are "
            f"{part.booklets} sittings to sample; plan more sittings"
        )
    near = sorted(range(1, recipe.sittings + 3 * recipe.responses), key=lambda count: abs(count - recipe.sittings))
    fitting = [count for count in near if (items := _items(recipe, count)) and not items % recipe.responses]
    fix = f"plan {' or '.join(map(str, sorted(fitting[:2])))} sittings" if fitting else "change the shares of the roles"
    raise DesignError(
        f"responses_per_item: {recipe.sittings} sittings leave {part.items} slots to sampled items, which is no whole "
        f"number of items with {recipe.responses} answers each; {fix}, or another number of answers"
    )


def _role_plan(recipe: Recipe, sittings: int) -> RolePlan:
    return plan_roles(
        booklets=sittings, size=recipe.items, holdout=recipe.holdout, controls=recipe.controls, kinds=recipe.kinds
    )


def _items(recipe: Recipe, sittings: int) -> int:
    """Slots for sampled items in this many sittings; 0 if the controls leave none."""
    try:
        return _role_plan(recipe, sittings).sampled.items
    except DesignError:
        return 0


@dataclass(frozen=True)
class PlannedStratum:
    """A stratum as it is stored: `slots` counts the candidates drawn from it."""

    name: str
    size: int
    slots: int
    lowest: float | None = None
    mean: float | None = None
    highest: float | None = None


@dataclass(frozen=True)
class PlannedSlot:
    """One slot as it is stored. `repeat_of` is the number of the slot that it asks again."""

    number: int
    key: str
    role: str
    stratum: str | None = None
    inclusion_probability: float | None = None
    pool_probability: float | None = None
    score: float | None = None
    replicate: int = 1
    control_kind: str = ""
    repeat_of: int | None = None
    booklet: int = 0
    position: int = 0

    def as_facts(self) -> list[Any]:
        """For the plan's hash. A plain sampled slot is written as before there were other roles."""
        facts: list[Any] = [
            self.number,
            self.key,
            self.stratum,
            self.inclusion_probability,
            self.pool_probability,
            self.booklet,
            self.position,
        ]
        if self.role != Role.SAMPLED or self.replicate != 1:
            facts += [self.role, self.replicate, self.control_kind, self.repeat_of]
        return facts


@dataclass(frozen=True, eq=False)
class Draft:
    """A drawn and dealt plan that is not written yet. `rows` has a row for each distinct key."""

    slots: list[PlannedSlot]
    strata: list[PlannedStratum]
    rows: Mapping[str, np.void]
    booklets: int

    @property
    def sha256(self) -> str:
        """Of every slot in the order of the draw: its item, stratum, probabilities and place."""
        return digest([slot.as_facts() for slot in self.slots])


class CannotDeal(DesignError):
    """The slots could not be dealt into full booklets; `booklets` shorter ones would be enough."""

    def __init__(self, message: str, *, booklets: int) -> None:
        super().__init__(message)
        self.booklets = booklets


@dataclass(eq=False)
class _Part:
    """Slots with separate booklets, before they are numbered: sampled ones or the holdout, and their controls."""

    name: str
    slots: list[dict[str, Any]]
    keys: list[tuple[Any, ...]]
    groups: list[tuple[Any, ...]]
    repeatable: list[bool]
    repeats: int
    # The list of each slot, where a booklet holds slots of one list; else empty.
    lists: list[Hashable] = field(default_factory=list)


def draft(
    recipe: Recipe,
    source: ListedPool | Everything,
    *,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
) -> Draft:
    """Draw, number and deal a stage's slots.

    Raises:
        CannotDeal: only into shorter booklets, which the recipe does not allow.
        DesignError: the design or a role does not fit; the message has the sizes.
    """
    roles = slots_by_role(recipe)
    drawn = draw_slots(
        source,
        design=recipe.drawing_design,
        n=roles.sampled.items,
        seed=recipe.seed,
        instrument=instrument,
        questions=questions,
        responses_per_item=recipe.responses,
    )
    rows: dict[str, np.void] = {}
    strata = [
        PlannedStratum(
            stratum.name, stratum.size, stratum.n // drawn.replicates, stratum.lowest, stratum.mean, stratum.highest
        )
        for stratum in drawn.strata
    ]
    sampled = _sampled_part(drawn, roles.sampled, instrument, questions, rows)
    parts = [sampled]
    if roles.holdout.booklets:
        held_out, stratum = holdout_part(recipe, roles.holdout, instrument, questions, rows)
        parts.append(held_out)
        strata.append(stratum)
    parts, dealt = _with_controls(recipe, parts, [roles.sampled, roles.holdout], instrument, questions, rows)
    return _numbered(recipe, parts, dealt, strata, rows)


def try_holdout(recipe: Recipe, *, instrument: instruments.Instrument, questions: Sequence[Question]) -> None:
    """Try to draw and deal a stage's holdout as the plan will. That needs no scores, and nothing is stored.

    Raises:
        CannotDeal: only into shorter booklets.
        DesignError: it does not fit; the message has the sizes.
    """
    roles = slots_by_role(recipe)
    if roles.holdout.booklets:
        rows: dict[str, np.void] = {}
        part, _stratum = holdout_part(recipe, roles.holdout, instrument, questions, rows)
        _with_controls(recipe, [part], [roles.holdout], instrument, questions, rows)


def _sampled_part(
    drawn: DrawnSlots,
    part: RolePart,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    rows: dict[str, np.void],
) -> _Part:
    booklets = instrument.booklets
    slots: list[dict[str, Any]] = []
    for index, row in enumerate(drawn.rows):
        key = instrument.item_key(row, questions)
        rows[key] = row
        slots.append(
            {
                "key": key,
                "role": Role.SAMPLED.value,
                "stratum": drawn.strata[drawn.stratum[index]].name,
                "inclusion_probability": float(drawn.inclusion_probability[index]),
                "pool_probability": drawn.pool_probability,
                "score": None if np.isnan(drawn.score[index]) else float(drawn.score[index]),
                "replicate": int(drawn.replicate[index]),
            }
        )
    return _Part(
        name="",
        slots=slots,
        keys=[_keys(booklets, row, slot["key"]) for row, slot in zip(drawn.rows, slots, strict=True)],
        groups=[
            (Role.SAMPLED.value, int(stratum), *booklets.balance_keys(row, questions))
            for row, stratum in zip(drawn.rows, drawn.stratum, strict=True)
        ],
        repeatable=[True] * len(slots),
        repeats=dict(part.controls).get(REPEAT, 0),
        lists=[own for row in drawn.rows if (own := booklets.latin_square_list(row, questions)) is not None],
    )


def _keys(booklets: instruments.Booklets, row: np.void, key: str) -> tuple[Any, ...]:
    """The keys that nobody sees twice. An item without conflicts still conflicts with itself."""
    return booklets.conflict_keys(row) or (("item", key),)


def holdout_part(
    recipe: Recipe,
    part: RolePart,
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    rows: dict[str, np.void],
) -> tuple[_Part, PlannedStratum]:
    """Uniform over all items: the chance is known whatever the design, and there is no first phase.

    Where conflict keys are exchangeable, it is drawn again until no key is in more slots than there are booklets: a
    small bank's holdout can then be dealt, and every item keeps the same chance. Elsewhere that would favour items with
    rare keys: it is drawn once, and what cannot be dealt is refused.
    """
    booklets = instrument.booklets
    rng = generator(recipe.seed, HOLDOUT)
    for _draw in range(HOLDOUT_DRAWS):
        drawn = instrument.draw_candidates(questions=questions, size=part.items, rng=rng)
        if len(drawn.rows) < part.items:
            raise DesignError(f"holdout: needs {part.items} items and there are {drawn.universe_size}; lower it")
        names = [instrument.item_key(row, questions) for row in drawn.rows]
        keys = [_keys(booklets, row, name) for row, name in zip(drawn.rows, names, strict=True)]
        if not booklets.keys_are_exchangeable or (
            max(Counter(key for own in keys for key in own).values()) <= part.booklets
        ):
            break
    else:
        raise DesignError(
            f"holdout: {part.items} items over {len(questions)} questions do not fit into {part.booklets} booklets "
            "with no question twice in one; lower its share, shorten the sittings or add questions"
        )
    slots = []
    for row, key in zip(drawn.rows, names, strict=True):
        rows[key] = row
        slots.append(
            {
                "key": key,
                "role": Role.HOLDOUT.value,
                "stratum": HOLDOUT,
                "inclusion_probability": drawn.probability,
                "pool_probability": 1.0,
            }
        )
    made = _Part(
        name=HOLDOUT,
        slots=slots,
        keys=keys,
        groups=[(Role.HOLDOUT.value, *booklets.balance_keys(row, questions)) for row in drawn.rows],
        repeatable=[True] * len(slots),
        repeats=dict(part.controls).get(REPEAT, 0),
    )
    return made, PlannedStratum(HOLDOUT, drawn.universe_size, part.items)


def _with_controls(
    recipe: Recipe,
    parts: list[_Part],
    plans: list[RolePart],
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    rows: dict[str, np.void],
) -> tuple[list[_Part], list[DealtWithRepeats]]:
    """The parts with their controls, dealt. Controls that cannot be dealt are drawn again: nothing uses their chance.

    Raises:
        CannotDeal: no controls could be dealt with these items, or the items alone cannot be.
        DesignError: there are too few controls of a kind.
    """
    # Those that ask an item of the plan again come last: they leave out items that are controls already.
    own = sorted((kind for kind in recipe.kinds if kind != REPEAT), key=lambda kind: kind == ANOTHER_PERSON)

    def attempt(number: int) -> tuple[list[_Part], list[DealtWithRepeats]]:
        whole = [
            replace(part, slots=[*part.slots], keys=[*part.keys], groups=[*part.groups], repeatable=[*part.repeatable])
            for part in parts
        ]
        for kind in own:
            _add_controls(recipe, kind, number, whole, plans, instrument, questions, rows)
        return whole, _dealt(recipe, whole)

    last = CONTROL_DRAWS - 1 if own else 0
    for number in range(last):
        with suppress(CannotDeal):
            return attempt(number)
    return attempt(last)


def _add_controls(
    recipe: Recipe,
    kind: str,
    number: int,
    parts: list[_Part],
    plans: list[RolePart],
    instrument: instruments.Instrument,
    questions: Sequence[Question],
    rows: dict[str, np.void],
) -> None:
    """One kind of the instrument's own controls, drawn at once for the stage and shared out to its parts."""
    counts = [dict(plan.controls).get(kind, 0) for plan in plans[: len(parts)]]
    if not sum(counts):
        return
    rng = generator(recipe.seed, "controls", kind, number)
    if kind == ANOTHER_PERSON:
        for index, count in enumerate(counts):
            _ask_another_person(parts, index, count, rng)
        return
    if instrument.controls is None:
        raise DesignError(f"controls: {instrument.name} has none")
    drawn = iter(instrument.controls.draw(kind=kind, count=sum(counts), questions=questions, rng=rng))
    for part, count in zip(parts, counts, strict=True):
        for _place in range(count):
            row = next(drawn)
            key = instrument.item_key(row, questions)
            rows[key] = row
            part.slots.append({"key": key, "role": Role.CONTROL.value, "control_kind": kind})
            part.keys.append(_keys(instrument.booklets, row, key))
            part.groups.append((Role.CONTROL.value, kind))
            part.repeatable.append(False)


def _ask_another_person(parts: list[_Part], index: int, count: int, rng: np.random.Generator) -> None:
    """Items of one part that are asked of one more person: drawn uniformly from its slots, each item at most once.

    An item that both parts have, or that is a control already, is passed over, so that it is known whose answers belong
    together. The booklets' rule that nobody sees a question twice makes it another person.
    """
    part = parts[index]
    elsewhere = {slot["key"] for other in (*parts[:index], *parts[index + 1 :]) for slot in other.slots}
    elsewhere |= {slot["key"] for slot in part.slots if slot["role"] == Role.CONTROL.value}
    free = [
        place
        for place, slot in enumerate(part.slots)
        if slot["key"] not in elsewhere and slot.get("replicate", 1) == 1 and slot["role"] != Role.CONTROL.value
    ]
    if count > len(free):
        raise DesignError(
            f"controls: {count} items to ask of another person, and there are {len(free)} to choose from; lower the "
            "share of controls"
        )
    for place in rng.choice(len(free), size=count, replace=False) if count else ():
        asked = free[int(place)]
        key = part.slots[asked]["key"]
        part.slots.append({"key": key, "role": Role.CONTROL.value, "control_kind": ANOTHER_PERSON})
        part.keys.append(part.keys[asked])
        part.groups.append((Role.CONTROL.value, ANOTHER_PERSON))
        part.repeatable.append(False)


def _seed_name(part: _Part, name: str) -> tuple[str, ...]:
    return (name, part.name) if part.name else (name,)


def _dealt_by_list(recipe: Recipe, part: _Part) -> DealtWithRepeats:
    """Each list's slots into booklets of their own; the booklets of all lists in random order.

    Raises:
        DesignError: slots do not fill booklets, or have controls, which are on no list.
    """
    if len(part.lists) != len(part.slots) or part.repeats:
        raise DesignError("lists: every slot must be on a list; remove controls and repeats")
    of_list: dict[Hashable, list[int]] = {}
    for slot, name in enumerate(part.lists):
        of_list.setdefault(name, []).append(slot)
    booklets = []
    for place, name in enumerate(sorted(of_list, key=str)):
        slots = of_list[name]
        dealt = deal(
            conflict_keys=[part.keys[slot] for slot in slots],
            groups=[part.groups[slot] for slot in slots],
            size=recipe.items,
            rng=generator(recipe.seed, *_seed_name(part, "deal"), "list", place),
            allow_short_last=False,
        )
        booklets += [[slots[inside] for inside in booklet] for booklet in dealt]
    order = generator(recipe.seed, *_seed_name(part, "deal"), "lists").permutation(len(booklets))
    return DealtWithRepeats(booklets=[booklets[place] for place in order], repeat_of={})


def _dealt(recipe: Recipe, parts: list[_Part]) -> list[DealtWithRepeats]:
    if any(part.lists for part in parts):
        return [_dealt_by_list(recipe, part) for part in parts]
    try:
        return [
            deal_with_repeats(
                conflict_keys=part.keys,
                groups=part.groups,
                repeatable=part.repeatable,
                repeats=part.repeats,
                size=recipe.items,
                rng=generator(recipe.seed, *_seed_name(part, "deal")),
            )
            for part in parts
        ]
    except DesignError as exc:
        short = [
            deal_short_with_repeats(
                part.keys,
                repeatable=part.repeatable,
                repeats=part.repeats,
                size=recipe.items,
                rng=generator(recipe.seed, *_seed_name(part, "deal_short")),
            )
            for part in parts
        ]
        if recipe.short_booklets:
            return short
        raise CannotDeal(str(exc), booklets=sum(len(dealt.booklets) for dealt in short)) from exc


def _numbered(
    recipe: Recipe,
    parts: list[_Part],
    dealt: list[DealtWithRepeats],
    strata: list[PlannedStratum],
    rows: Mapping[str, np.void],
) -> Draft:
    """Slots are numbered by role: sampled, holdout, controls, repeats; booklets of both parts are mixed."""
    count = sum(len(part.booklets) for part in dealt)
    # People get booklets in the order of their numbers, so those of the holdout must not all come last.
    order = generator(recipe.seed, "booklets").permutation(count) if len(parts) > 1 else np.arange(count)
    places: list[dict[int, tuple[int, int]]] = []
    first = 0
    for part in dealt:
        places.append(
            {
                slot: (int(order[first + offset]) + 1, position)
                for offset, slots in enumerate(part.booklets)
                for position, slot in enumerate(slots, start=1)
            }
        )
        first += len(part.booklets)
    entries = [
        (part_index, slot, facts) for part_index, part in enumerate(parts) for slot, facts in enumerate(part.slots)
    ]
    # Sorting keeps the order within a role, which for sampled slots is the order of the draw.
    entries.sort(key=lambda entry: (Role.SAMPLED, Role.HOLDOUT, Role.CONTROL).index(Role(entry[2]["role"])))
    number = {(part_index, slot): place for place, (part_index, slot, _facts) in enumerate(entries, start=1)}
    slots = [
        PlannedSlot(
            number=number[part_index, slot],
            booklet=places[part_index][slot][0],
            position=places[part_index][slot][1],
            **facts,
        )
        for part_index, slot, facts in entries
    ]
    for part_index, part in enumerate(dealt):
        for repeat, original in sorted(part.repeat_of.items()):
            asked = slots[number[part_index, original] - 1]
            booklet, position = places[part_index][repeat]
            slots.append(
                PlannedSlot(
                    number=len(slots) + 1,
                    key=asked.key,
                    role=Role.REPEAT.value,
                    replicate=asked.replicate,
                    repeat_of=asked.number,
                    booklet=booklet,
                    position=position,
                )
            )
    used = {slot.key: rows[slot.key] for slot in slots}
    return Draft(slots=slots, strata=strata, rows=used, booklets=count)
