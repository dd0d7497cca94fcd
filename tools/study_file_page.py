"""Writes docs/study-file.md: tools/pages/study-file.md, with the keys as the models declare them.

    python -m tests.renew study_file

Type and default come from a model's fields, the meaning from the text below a field. In the source stands
`<!-- keys: TABLE -->` for the keys of a table of the study file, `<!-- keys: instrument.options of NAME -->` for an
instrument's options, and `<!-- columns: quotas.csv -->` for that file's columns.
"""

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tools" / "pages" / "study-file.md"
TARGET = ROOT / "docs" / "study-file.md"
WORDS = {str: "text", bool: "true or false", int: "whole number", float: "number", date: "date", dict: "table"}
NOTE = (
    "<!-- Written by `python -m tests.renew study_file`: change tools/pages/study-file.md, or the models' fields. -->\n"
)
NAME_PATTERN = "^[a-z][a-z0-9_]{0,39}$"


def page() -> str:
    """The page as it should be.

    Raises:
        ValueError: the source lacks a table of the study file, or names one that there is not; or a key has no text.
    """
    from survey.services.results.export.common_columns import STUDY
    from survey.services.results.export.sitting_files import QUOTAS
    from survey.study_file import StudyConfig

    models = {"top": StudyConfig, **dict(_tables(StudyConfig)), **_options()}
    text = SOURCE.read_text(encoding="utf-8").replace("\n\n", f"\n\n{NOTE}\n", 1)
    named = re.findall(r"(?m)^<!-- keys: (.+) -->$", text)
    if different := set(named) ^ models.keys():
        raise ValueError(f"{SOURCE.name} and the models differ in the tables {', '.join(sorted(different))}")
    for table in named:
        text = text.replace(f"<!-- keys: {table} -->\n", keys_of(models[table]))
    columns = "".join(f"| {quota.name} | {quota.kind} | {quota.description} |\n" for quota in (STUDY, *QUOTAS))
    return text.replace(
        "<!-- columns: quotas.csv -->\n", "| column | kind | meaning |\n| --- | --- | --- |\n" + columns
    )


def _tables(model: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    from survey.study_file.parsing import models_in

    for name, field in model.model_fields.items():
        inner_path = f"{path}.{name}".lstrip(".")
        for inner in models_in(field.annotation):
            if inner is not model:  # A group of filters holds filters.
                yield inner_path, inner
                yield from _tables(inner, inner_path)


def _options() -> dict[str, Any]:
    """The options of the instruments that come with Hunch."""
    from survey.contracts import instruments

    kinds = sorted(path.name for path in (ROOT / "survey" / "instruments").iterdir() if (path / "apps.py").is_file())
    return {f"instrument.options of {name}": instruments.kind(name).options_model for name in kinds}


def keys_of(model: Any) -> str:
    from survey.study_file.meanings import meanings_of

    meanings = meanings_of(model)
    rows = []
    for name, field in model.model_fields.items():
        if name not in meanings:
            raise ValueError(f"{model.__name__}.{name} has no text below it that says what it means")
        plain = isinstance(field.default, str | int | float)
        default = "required" if field.is_required() else f"`{json.dumps(field.default)}`" if plain else "-"
        if isinstance(field.json_schema_extra, dict):
            default = str(field.json_schema_extra.get("default_in_words", default))
        rows.append(
            f"| `{name}` | {_type_in_words(field.annotation, field.metadata)} | {default} | {meanings[name]} |\n"
        )
    return "| key | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _type_in_words(annotation: Any, rules: Sequence[Any] = ()) -> str:
    """`rules`: what pydantic keeps of `Annotated` next to the type. A text that they make a name is one."""
    origin = get_origin(annotation)
    parts = [part for part in get_args(annotation) if part is not NoneType]
    if origin is Annotated:
        return _type_in_words(parts[0], [inner for rule in parts[1:] for inner in getattr(rule, "metadata", [rule])])
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type_in_words(part, rules) for part in parts))
    if origin is Literal:
        *others, last = (f"`{json.dumps(value)}`" for value in parts)
        return (f"{', '.join(others)} or {last}" if others else last) if len(parts) <= 3 else "text"
    if origin in (list, tuple):
        word = _type_in_words(parts[0])
        return "list of texts" if word.endswith('"`') else f"list of {word}s"
    if annotation is str and any(getattr(rule, "pattern", None) == NAME_PATTERN for rule in rules):
        return "name"
    return WORDS.get(origin or annotation, "table")


def main() -> None:
    import django

    os.environ.setdefault("HUNCH_VAR", tempfile.mkdtemp(prefix="hunch-docs-"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
    django.setup()
    TARGET.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
