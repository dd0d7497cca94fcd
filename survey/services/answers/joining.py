"""Reading relations by joins where they have one row each, and so in few statements. Imports Django alone."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model, Prefetch


def joined(model: type[Model], relations: Iterable[str]) -> list[Prefetch | str]:
    """The same relations for `prefetch_related`: what follows on a relation of many rows is joined to them.

    So `responses__score` and `responses__belief` are read by one statement, and not by three.
    """
    beside: list[str] = []
    of_many: dict[str, list[str]] = defaultdict(list)
    for relation in relations:
        first, _dots, rest = relation.partition("__")
        if _has_many(model, first) and (not rest or is_single(_related(model, first), rest)):
            of_many[first] += [rest] if rest else []
        else:
            beside.append(relation)
    # Before the others: what else goes by way of these rows must find them read.
    joined_rows: list[Prefetch | str] = []
    for many, singles in of_many.items():
        rows = _related(model, many)._default_manager.all()
        joined_rows.append(Prefetch(many, rows.select_related(*singles) if singles else rows))
    return [*joined_rows, *beside]


class KnownRows(list[Any]):
    """What `all()` of a relation gives from now on: rows that were read for many owners at once. Only to be iterated:
    unlike what `prefetch_related` leaves, it costs nothing for each owner."""


def hand_rows(owner: Model, relation: str, rows: KnownRows) -> None:
    owner.__dict__.setdefault("_prefetched_objects_cache", {})[relation] = rows


def is_single(model: type[Model], path: str) -> bool:
    """Whether a row of the model has at most one row at the end of this path, so that a join can read it."""
    for name in path.split("__"):
        try:
            field = model._meta.get_field(name)
        except FieldDoesNotExist:
            return False
        if not (field.many_to_one or field.one_to_one) or not isinstance(field.related_model, type):
            return False
        model = field.related_model
    return True


def _has_many(model: type[Model], name: str) -> bool:
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return bool(field.one_to_many and isinstance(field.related_model, type))


def _related(model: type[Model], name: str) -> type[Model]:
    related: Any = model._meta.get_field(name)
    related_model: type[Model] = related.related_model
    return related_model
