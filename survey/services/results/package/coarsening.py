"""What a public package holds of people: less than the export, so that nobody is recognised. Imports models and below.

Times become the Monday of their week, ages bands of ten years, and what fewer than a few people said becomes "other".
What people wrote in their own words is left out until somebody has reviewed it. Nothing of a panel is here.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from survey.contracts.tables import TIME, Column, ExtraFile
from survey.models import FormAnswer, Respondent, Study
from survey.study_file import NOT_SAID

FEWEST = 5  # people who said the same; what fewer said is merged
BAND = 10  # years
OTHER = "other"
AGES = ("age", "alter", "years_old")  # names of form fields that ask for an age
# Tables of people's single pages, of what they wrote, and of who in the team did what: they stay inside.
LEFT_OUT = frozenset(
    {
        *("audit", "practice", "question_reports", "steps", "unfinished_screens", "amendments", "candidates", "checks"),
        "quotas",
    }
)
# Columns that hold exact times or the panel's facts, whatever else is in them.
DROPPED = frozenset(
    {
        *("responses", "panel_status", "panel_seconds", "approved_at", "reward", "bonus", "currency"),
        *("remarks", "last_seen_at", "expired_at", "consented_at", "withdrawn_at"),
    }
)


class Coarse:
    """How one study's tables become public ones. `reviewed`: somebody has read all texts, so that they stay."""

    def __init__(self, study: Study, *, reviewed: bool) -> None:
        self.reviewed = reviewed
        self._names = _new_names(study)
        self._common = _common_answers(study)
        self._kinds = _field_kinds(study)

    def table(self, file: ExtraFile) -> ExtraFile | None:
        """The public table; None if it stays inside."""
        stem = file.name.removesuffix(".csv")
        if stem in LEFT_OUT:
            return None
        kept = [
            (index, column)
            for index, column in enumerate(file.columns)
            if column.name not in DROPPED and (self.reviewed or not column.written)
        ]
        changes = [self._change(stem, column) for _index, column in kept]
        columns = [_public(column) for _index, column in kept]
        return ExtraFile(file.name, columns, self._rows(stem, file, kept, changes))

    def _rows(
        self, stem: str, file: ExtraFile, kept: Sequence[tuple[int, Column]], changes: Sequence[Callable[[Any], Any]]
    ) -> Iterator[Sequence[Any]]:
        places = {column.name: index for index, column in enumerate(file.columns)}
        for row in file.rows:
            if stem == "forms":
                answer = self._answer(row[places["block"]], row[places["field"]], row[places["answer"]])
                if answer is None:
                    continue
                row = [*row]
                row[places["answer"]] = answer
            yield [change(row[index]) for (index, _column), change in zip(kept, changes, strict=True)]

    def _change(self, stem: str, column: Column) -> Callable[[Any], Any]:
        if column.kind == TIME:
            return week_of
        if column.name == "respondent":
            return self._new_name
        if column.name == "forms" and stem == "sittings":
            return self._forms
        return lambda value: value

    def _new_name(self, name: str | None) -> str | None:
        return None if name is None else self._names[name]

    def _forms(self, text: str | None) -> str | None:
        if text is None:
            return None
        given: dict[str, dict[str, Any]] = json.loads(text)
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for block, answers in given.items():
            for name, answer in answers.items():
                if (coarse := self._answer(block, name, answer)) is not None:
                    found[block][name] = coarse
        return json.dumps(found, ensure_ascii=False, sort_keys=True) if found else None

    def _answer(self, block: str, name: str, answer: Any) -> Any:
        """One answer of a form; None where it stays inside."""
        if answer == NOT_SAID:
            return answer
        kind = self._kinds.get((block, name), "choice")
        if kind == "text":
            return answer if self.reviewed else None
        if any(name.lower() == age or name.lower().endswith(f"_{age}") for age in AGES):
            answer = band_of(answer)
        elif kind == "number":
            return answer
        said = self._common.get((block, name), set())
        if isinstance(answer, list):
            return sorted({one if str(one) in said else OTHER for one in answer}, key=str)
        return answer if str(answer) in said else OTHER


def week_of(time: str | None) -> str | None:
    """The Monday of its week."""
    if time is None:
        return None
    day = datetime.fromisoformat(time).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def band_of(age: Any) -> Any:
    """Ten years, such as 20-29; what is no number stays."""
    try:
        low = int(age) // BAND * BAND
    except (TypeError, ValueError):
        return age
    return f"{low}-{low + BAND - 1}"


def _public(column: Column) -> Column:
    if column.kind == TIME:
        return Column(column.name, "date", f"{column.description} The Monday of that week.")
    if column.name == "respondent":
        return Column(column.name, column.kind, "A name for the person that stands in these files alone.")
    return column


def _new_names(study: Study) -> dict[str, str]:
    """Names that stand nowhere else, in an order that says nothing."""
    known = Respondent.objects.filter(study=study).order_by().values_list("pseudonym", flat=True)
    ordered = sorted(known, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    width = len(str(len(ordered)))
    return {name: f"p{number:0{width}}" for number, name in enumerate(ordered, start=1)}


def _field_kinds(study: Study) -> dict[tuple[str, str], str]:
    blocks = study.config.blocks
    return {(block.name or "", one.name): one.kind for block in blocks for one in block.fields}


def _common_answers(study: Study) -> dict[tuple[str, str], set[str]]:
    """By block and field: what at least a few people said, ages by their bands."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    given = FormAnswer.objects.filter(sitting__stage__study=study).order_by().values_list("block", "answers")
    for block, answers in given.iterator():
        for name, answer in answers.items():
            is_age = any(name.lower() == age or name.lower().endswith(f"_{age}") for age in AGES)
            for one in answer if isinstance(answer, list) else [answer]:
                counts[block, name][str(band_of(one) if is_age else one)] += 1
    return {place: {said for said, people in found.items() if people >= FEWEST} for place, found in counts.items()}
