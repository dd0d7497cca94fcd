"""Answers to a form block, checked field by field. Imports only the study file's classes from survey."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from survey.exceptions import FieldErrors
from survey.study_file import LONGEST_TEXT, NOT_SAID, FieldConfig

LARGEST_NUMBER = 10**12


def options_of(field: FieldConfig) -> list[tuple[str, str]]:
    """What can be chosen, as (value sent, words), in order; empty for fields in which people write."""
    if field.kind == "likert":
        options = [(str(point), field.label_of_point(point)) for point in range(1, (field.points or 0) + 1)]
    else:
        options = list(zip(field.codes, field.options, strict=True))
    return [*options, (NOT_SAID, _("Prefer not to say"))] if field.prefer_not_to_say else options


def read_form(
    fields: Sequence[FieldConfig], in_file: Sequence[FieldConfig], data: Mapping[str, Any]
) -> dict[str, str | int | list[str] | None]:
    """The answers as they are stored: by field, None if one was left out.

    Args:
        shown: the fields in the language that the respondent reads.
        in_file: the same fields in the file's first language: options without values are stored in its words.

    Raises:
        FieldErrors: some were not accepted.
    """
    answers: dict[str, str | int | list[str] | None] = {}
    errors: dict[str, list[str]] = {}
    for field, stored in zip(fields, in_file, strict=True):
        try:
            if field.kind == "multiple":
                answers[field.name] = _several(field, stored, given_values(data, field.name))
            else:
                answers[field.name] = _single(field, stored, str(data.get(field.name) or "").strip())
        except ValueError as exc:
            errors[field.name] = [str(exc)]
    if errors:
        raise FieldErrors(errors)
    return answers


def given_values(data: Mapping[str, Any], name: str) -> list[str]:
    """All values that were sent under a name: by a page's check boxes, or as a list."""
    entered = data.getlist(name) if hasattr(data, "getlist") else data.get(name) or []
    values = entered if isinstance(entered, list | tuple) else [entered]
    return [text for text in (str(value).strip() for value in values) if text]


def refuse_lists(data: Mapping[str, Any], fields: Sequence[FieldConfig]) -> None:
    """
    Raises:
        FieldErrors: several values, but the field takes one.
    """
    several = {field.name for field in fields if field.kind == "multiple"}
    wrong = [name for name, value in data.items() if isinstance(value, list | tuple) and name not in several]
    if wrong:
        raise FieldErrors({name: [_("Send a single value.")] for name in wrong})


def is_screened_out(in_file: Sequence[FieldConfig], answers: Mapping[str, Any]) -> bool:
    """Whether one of the answers ends the sitting here."""
    return any(answers.get(field.name) in field.screen_out for field in in_file if field.screen_out)


def _single(field: FieldConfig, stored: FieldConfig, entered: str) -> str | int | None:
    if not entered:
        if field.required:
            raise ValueError(_("Please answer this question."))
        return None
    if field.prefer_not_to_say and entered == NOT_SAID:
        return NOT_SAID
    if field.kind == "choice":
        return _code(field, stored, entered)
    if field.kind == "likert":
        points = [str(point) for point in range(1, (field.points or 0) + 1)]
        if entered not in points:
            raise ValueError(_("Choose one of the answers."))
        return int(entered)
    if field.kind == "text":
        limit = field.max_characters or LONGEST_TEXT
        # Browsers send two characters for a line break, but people count one.
        if len(entered.replace("\r\n", "\n")) > limit:
            raise ValueError(_("Please write at most %(limit)d characters.") % {"limit": limit})
        return entered
    return _number(field, entered)


def _several(field: FieldConfig, stored: FieldConfig, entered: Sequence[str]) -> list[str] | None:
    chosen = list(dict.fromkeys(entered))
    if not chosen:
        if field.required:
            raise ValueError(_("Please answer this question."))
        return None
    alone = {*field.exclusive, *([NOT_SAID] if field.prefer_not_to_say else [])}
    for choice in chosen:
        if choice in alone and len(chosen) > 1:
            words = field.options[list(field.codes).index(choice)] if choice in field.codes else _("Prefer not to say")
            raise ValueError(_("“%(option)s” does not go together with other answers.") % {"option": words})
    if chosen == [NOT_SAID] and field.prefer_not_to_say:
        return chosen
    codes = {_code(field, stored, choice) for choice in chosen}
    return [str(code) for code in stored.codes if code in codes]


def _code(field: FieldConfig, stored: FieldConfig, entered: str) -> str:
    if entered not in field.codes:
        raise ValueError(_("Choose one of the answers."))
    return str(stored.codes[list(field.codes).index(entered)])


def _number(field: FieldConfig, entered: str) -> int:
    try:
        number = int(entered)
    except ValueError:
        number = None
    if number is None or "_" in entered:  # Python takes 1_0 for 10.
        raise ValueError(_("Enter a whole number."))
    low, high = field.minimum, field.maximum
    if (low is not None and number < low) or (high is not None and number > high) or abs(number) > LARGEST_NUMBER:
        raise ValueError(_("Enter a number from %(low)s to %(high)s.") % {"low": low, "high": high})
    return number
