"""What a study's people answered and what models say of the same items, event by event. Imports models and below."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from survey.contracts import instruments
from survey.contracts.expectations import ComparedEvent, Expectations, Expecting, ItemReader
from survey.exceptions import HunchError, StateRefused
from survey.models import Assignment, Item, Stage, Study
from survey.services.answers.blinding import shown_conditions
from survey.services.answers.conditions import has_levels, read_condition, relations_of
from survey.services.answers.counting import BATCH_SIZE, counting
from survey.services.results.estimates.weights import answer_weights

MIN_NAMED = 5


@dataclass(frozen=True)
class Selection:
    """What a report was asked: an event's name or nothing for all, readers' names or nothing for all, FACTOR=LEVEL, and
    the days from which on texts existed and until which readers learnt, where somebody knows better."""

    event: str = ""
    readers: Sequence[str] = ()
    condition: Sequence[str] = ()
    written: date | None = None
    trained: Sequence[tuple[str, date]] = ()


@dataclass(frozen=True)
class Comparable:
    """The events that can be compared, and notes: on those that cannot, and on what readers may have learnt."""

    found: tuple[Expectations, ...]
    notes: tuple[str, ...]


def expecting_of(study: Study) -> Expecting | None:
    """What the study's instrument can compare; None if it has nothing, or cannot be used."""
    return instruments.of_study(study).expectations if instruments.is_known(study.instrument) else None


def events_of(study: Study) -> Sequence[ComparedEvent]:
    expecting = expecting_of(study)
    return () if expecting is None else expecting.events


def read(study: Study, asked: Selection) -> Comparable:
    """
    Raises:
        StateRefused: no event can be compared; says what is missing for each.
        HunchError: there is no such event, reader or condition.
    """
    expecting = expecting_of(study)
    if expecting is None:
        raise StateRefused(f"{study.slug}: {study.instrument} does not say what people and models expect of its items")
    names = [event.name for event in expecting.events]
    if asked.event and asked.event not in names:
        raise HunchError(f"event: there is no {asked.event!r}; there are: {', '.join(names)}")
    wanted = [name for name in names if asked.event in ("", name)]
    reasons = {name: expecting.obstacle(name) for name in wanted}
    if all(reasons.values()):
        raise StateRefused("; ".join(dict.fromkeys(reasons.values())))
    answers, weights = _answers(study, asked.condition)
    all_expectations: list[Expectations] = []
    missing: list[str] = []
    for name in wanted:
        try:
            if reasons[name]:
                raise StateRefused(reasons[name])
            all_expectations.append(expecting.of(answers, weights, event=name))
        except StateRefused as exc:
            missing.append(f"nothing is said about the event {name}: {exc.message}")
    if not all_expectations:
        raise StateRefused("; ".join(missing))
    all_expectations = _chosen(all_expectations, asked)
    notes = [*missing, *(note for expectations in all_expectations for note in expectations.notes)]
    notes += [note for expectations in all_expectations for note in learnt(expectations, asked)]
    chosen = read_condition(study, asked.condition)
    if others := [
        shown_condition.factor for shown_condition in shown_conditions(study) if shown_condition.factor not in chosen
    ]:
        together = f"answers under all levels of {', '.join(others)} together"
        notes.append(f"{together}; “Only under the condition” (condition) takes one")
    return Comparable(tuple(all_expectations), tuple(dict.fromkeys(notes)))


def _answers(study: Study, condition: Sequence[str]) -> tuple[list[Assignment], np.ndarray]:
    """The answers that enter the study's figures, in the order of stages and plans, and their weights."""
    levels = read_condition(study, condition)
    weight_of = answer_weights(study, levels)
    stages: list[Stage] = list(study.main_stages())
    rows = counting(stages).select_related("sitting", "slot__item").prefetch_related(*relations_of(study))
    rows = rows.order_by("slot__stage__index", "slot__number")
    answers = [row for row in rows.iterator(BATCH_SIZE) if row.pk in weight_of and has_levels(row, levels)]
    if not answers:
        under = " under this condition" if condition else ""
        raise StateRefused(f"{study.slug}: no answer{under} counts yet in a stage that stands for all items")
    items: dict[int, Item] = {}
    for answer in answers:  # One object per item, no matter who answered it: what belongs to items is read once.
        answer.slot.item = items.setdefault(answer.slot.item_id, answer.slot.item)
    instruments.of_study(study).label_reading.read(list(items.values()), answers)
    return answers, np.array([weight_of[answer.pk] for answer in answers])


def _chosen(all_expectations: Sequence[Expectations], asked: Selection) -> list[Expectations]:
    if not asked.readers:
        return list(all_expectations)
    known = list(dict.fromkeys(reader.name for expectations in all_expectations for reader in expectations.readers))
    if strangers := [name for name in asked.readers if name not in known]:
        raise HunchError(f"reader: there is no {', '.join(strangers)}; there are: {', '.join(known)}")
    narrowed = [
        replace(expectations, readers=tuple(reader for reader in expectations.readers if reader.name in asked.readers))
        for expectations in all_expectations
    ]
    return [expectations for expectations in narrowed if expectations.readers]


def learnt(expectations: Expectations, asked: Selection) -> Iterator[str]:
    """Notes on texts that a model may have learnt, since they are older than it is, or since that is not known."""
    trained = dict(asked.trained)
    written = asked.written or expectations.written
    readers = [reader for reader in expectations.readers if reader.kind != "predictor"]
    unknown: list[ItemReader] = []
    for reader in readers:
        until = trained.get(reader.name, reader.trained)
        if until is None or written is None:
            unknown.append(reader)
        elif written <= until:
            yield (
                f"{reader.name} learnt until {until.isoformat()}, and the texts existed on {written.isoformat()}: it "
                "may have learnt them, and then says less about new ones"
            )
    if unknown:
        names = ", ".join(reader.name for reader in unknown[:MIN_NAMED])
        more = f" and {len(unknown) - MIN_NAMED} others" if len(unknown) > MIN_NAMED else ""
        since = "" if written is None else f"; the texts existed on {written.isoformat()}"
        yield (
            f"it is not known whether the texts are older than {names}{more}: a model may have learnt them{since}. "
            "“Texts existed on” (texts_from) and “Models learnt until” (trained) take what you know"
        )
