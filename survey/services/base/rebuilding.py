"""Data classes from the plain JSON that `dataclasses.asdict` made of them. Uses only the standard library."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from datetime import datetime
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints


def rebuilt(kind: Any, value: Any) -> Any:
    """A value of a type that data classes, tuples, mappings, times and "or None" are made of, from plain JSON."""
    if value is None:
        return None
    if kind is datetime:
        return datetime.fromisoformat(value)
    if is_dataclass(kind):
        whole: Any = kind
        kinds = _kinds_of(whole)
        return whole(**{name: rebuilt(kinds[name], inner) for name, inner in value.items()})
    origin, inside = get_origin(kind), get_args(kind)
    if origin is tuple:
        kinds_inside = repeat(inside[0]) if inside[-1] is Ellipsis else inside
        return tuple(map(rebuilt, kinds_inside, value))
    if origin is Mapping:
        return {name: rebuilt(inside[1], inner) for name, inner in value.items()}
    if origin in (Union, UnionType):
        return rebuilt(next(part for part in inside if part is not NoneType), value)
    return value


@cache
def _kinds_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
