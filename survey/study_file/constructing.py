"""Making a model of data that it does not accept, as far as that goes. Imports pydantic alone."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

Model = TypeVar("Model", bound=BaseModel)


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a field's annotation names."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from models_in(inner)


def as_far_as_possible(model: type[Model], raw: Mapping[str, Any]) -> Model:
    """The model with each of its values checked where that succeeds, and as it was stored where not. Keys that the
    model does not know are left out; missing ones have their defaults."""
    values = {
        name: _value(field, raw[name]) if name in raw else _default(field) for name, field in model.model_fields.items()
    }
    return model.model_construct(**values)


def _default(field: FieldInfo) -> Any:
    return None if field.is_required() else field.get_default(call_default_factory=True)


def _value(field: FieldInfo, raw: Any) -> Any:
    annotation: Any = field.annotation
    try:
        whole: Any = Annotated[(annotation, *field.metadata)] if field.metadata else annotation
        return TypeAdapter(whole).validate_python(raw)
    except (ValidationError, ValueError):
        inner = next(models_in(annotation), None)
        if inner is not None and isinstance(raw, Mapping):
            return as_far_as_possible(inner, raw)
        if inner is not None and isinstance(raw, list):
            return [as_far_as_possible(inner, entry) if isinstance(entry, Mapping) else entry for entry in raw]
        return raw
