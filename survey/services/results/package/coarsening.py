"""What a public package holds of people: less than the export, so that nobody is recognised. Imports models and below.

Times become the Monday of their week, ages bands of ten years, other numbers bands that hold a few people each, and
what fewer than a few people said becomes "other". What people wrote in their own words is left out until somebody has
reviewed it. Nothing of a panel is here. Rows stand in the order of the people's new names: theirs would be that of
arrival.
"""

import hashlib
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from survey.contracts.tables import TIME, Column, ExtraFile
from survey.models import FormAnswer, Respondent, Sitting, Study
from survey.services.sittings import debriefing
from survey.services.sittings.forms import LARGEST_NUMBER
from survey.study_file import NOT_SAID

FEWEST = 5  # people who said the same; what fewer said is merged
BAND = 10  # years
# A column of numbers has the narrowest bands with which at most this share of its people become "other".
MAX_MERGED = 0.2
OTHER = "other"
PSEUDONYM = re.compile(r"\br-[0-9a-f]{16}\b")
AGES = ("age", "alter", "years_old")  # names of form fields that ask for an age
# Tables of people's single pages, of what they wrote, and of who in the team did what: they stay inside.
LEFT_OUT = frozenset(
    {
        *("audit", "practice", "question_reports", "steps", "unfinished_screens", "amendments", "candidates", "checks"),
        *("quotas", "margins"),
    }
)
# Columns that hold exact times or the panel's facts, whatever else is in them.
DROPPED = frozenset(
    {
        *("responses", "panel_status", "panel_seconds", "approved_at", "reward", "bonus", "currency"),
        *("remarks", "last_seen_at", "expired_at", "consented_at", "withdrawn_at"),
    }
)
GROUPS = "margin__"  # Columns of people's groups in the population's margins: forms say these, more coarsely.


class Coarse:
    """How one study's tables become public ones. `reviewed`: somebody has read all texts, so that they stay."""

    def __init__(self, study: Study, *, reviewed: bool) -> None:
        self.reviewed = reviewed
        self._names = _new_names(study)
        self._kinds = _field_kinds(study)
        self._answers = {
            place: _Common.of(answers, is_number=self._kinds.get(place) == "number", is_age=_is_age(place[1]))
            for place, answers in _answers_of(study).items()
        }
        sittings = Sitting.objects.filter(stage__study=study).order_by()
        facts = list(sittings.values_list("respondent", "respondent__is_simulated", "language"))
        self._languages = _Common.of(facts)

    def table(self, file: ExtraFile) -> ExtraFile | None:
        """The public table; None if it stays inside."""
        stem = file.name.removesuffix(".csv")
        if stem in LEFT_OUT:
            return None
        public = [
            (index, column)
            for index, column in enumerate(file.columns)
            if column.name not in DROPPED
            and not column.name.startswith(GROUPS)
            and (self.reviewed or not column.written)
        ]
        changes = [self._change(stem, column) for _index, column in public]
        columns = [_public(stem, column) for _index, column in public]
        rows = self._rows(stem, file, public, changes)
        return ExtraFile(file.name, columns, _with_bands(_by_person(rows), stem, columns))

    def _rows(
        self, stem: str, file: ExtraFile, public: Sequence[tuple[int, Column]], changes: Sequence[Callable[[Any], Any]]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Each row with the new name of the first person in it; of those without one it is empty."""
        places = {column.name: index for index, column in enumerate(file.columns)}
        for row in file.rows:
            if stem == "forms":
                answer = self._form_answer(row[places["block"]], row[places["field"]], row[places["answer"]])
                if answer is None:
                    continue
                row = [*row]
                row[places["answer"]] = answer
            person = next((self._names[value] for value in row if type(value) is str and value in self._names), "")
            yield person, [change(row[index]) for (index, _column), change in zip(public, changes, strict=True)]

    def _change(self, stem: str, column: Column) -> Callable[[Any], Any]:
        if column.kind == TIME:
            return week_of
        if column.name == "forms" and stem == "sittings":
            return self._forms
        if column.name == "language" and stem in ("sittings", "answers"):
            return lambda value: None if value is None else self._languages.said(value)
        return self._renamed

    def _renamed(self, value: Any) -> Any:
        """With new names for people, in whichever column they stand: an instrument may call its own "person"."""
        if type(value) is not str or "r-" not in value:
            return value
        return self._names.get(value) or PSEUDONYM.sub(lambda name: self._names.get(name[0], OTHER), value)

    def _forms(self, text: str | None) -> str | None:
        if text is None:
            return None
        answers_by_block: dict[str, dict[str, Any]] = json.loads(text)
        forms: dict[str, dict[str, Any]] = defaultdict(dict)
        for block, answers in answers_by_block.items():
            for name, answer in answers.items():
                if (coarse := self._answer(block, name, answer)) is not None:
                    forms[block][name] = coarse
        return json.dumps(forms, ensure_ascii=False, sort_keys=True) if forms else None

    def _form_answer(self, block: str, name: str, answer: Any) -> Any:
        """As forms.csv has it: several answers are a JSON list, and the choice after the debriefing is no form."""
        if (block, name) == ("debriefing", debriefing.FIELD):
            return answer
        if self._kinds.get((block, name)) == "multiple" and type(answer) is str and answer.startswith("["):
            return json.dumps(self._answer(block, name, json.loads(answer)), ensure_ascii=False)
        return self._answer(block, name, answer)

    def _answer(self, block: str, name: str, answer: Any) -> Any:
        """One answer of a form; None where it stays inside, or where there is none."""
        if answer is None or answer == NOT_SAID:
            return answer
        if self._kinds.get((block, name)) == "text":
            return answer if self.reviewed else None
        common = self._answers.get((block, name)) or _Common(1, frozenset())
        if isinstance(answer, list):
            return sorted({common.said(value) for value in answer}, key=str)
        return common.said(answer)


@dataclass(frozen=True)
class _Common:
    """What at least a few people said in one place: numbers in bands of `width`, and everything else as it is."""

    width: int
    values: frozenset[str]

    @classmethod
    def of(
        cls, answers: Iterable[tuple[int, bool, Any]], *, is_number: bool = False, is_age: bool = False
    ) -> "_Common":
        """
        Args:
            answers: who said it, whether they are simulated, and what they said. Who said it twice is one person.
        """
        rows = list(answers)
        if is_age or not is_number:
            width = BAND if is_age else 1
            return cls(width, frozenset(_said_by_some(rows, width)))
        people = {person for person, _simulated, _answer in rows}
        for width in _widths():
            values = _said_by_some(rows, width)
            merged = {person for person, _simulated, answer in rows if str(band_of(answer, width)) not in values}
            if len(merged) <= MAX_MERGED * len(people):
                return cls(width, frozenset(values))
        return cls(1, frozenset())

    def said(self, answer: Any) -> Any:
        coarse = band_of(answer, self.width)
        return coarse if str(coarse) in self.values else OTHER


def _widths() -> Iterator[int]:
    """1, 2, 5, 10 and so on, until every number stands in one of two bands."""
    ten = 1
    while ten <= LARGEST_NUMBER:
        yield from (ten, 2 * ten, 5 * ten)
        ten *= 10


def _said_by_some(rows: Sequence[tuple[int, bool, Any]], width: int) -> set[str]:
    """What a few people said. Simulated people hide nobody: a few real ones, where a real one said it."""
    real: dict[str, set[int]] = defaultdict(set)
    simulated: dict[str, set[int]] = defaultdict(set)
    for person, is_simulated, answer in rows:
        (simulated if is_simulated else real)[str(band_of(answer, width))].add(person)
    return {said for said in {*real, *simulated} if len(real.get(said) or simulated[said]) >= FEWEST}


def _by_person(rows: Iterable[tuple[str, Sequence[Any]]]) -> Iterator[Sequence[Any]]:
    """By the people's new names, and each person's own rows as they came. Rows of no person come last."""
    with closing(sqlite3.connect("")) as table:  # On the disk, where there are many.
        table.execute("CREATE TABLE row (person TEXT, cells TEXT)")
        table.executemany(
            "INSERT INTO row VALUES (?, ?)", ((person, json.dumps([*cells], default=_plain)) for person, cells in rows)
        )
        for (cells,) in table.execute("SELECT cells FROM row ORDER BY person = '', person, rowid"):
            yield json.loads(cells)


def _plain(value: Any) -> Any:
    """Numbers of numpy, which reports have in their rows."""
    return value.item()


def _with_bands(rows: Iterable[Sequence[Any]], stem: str, columns: Sequence[Column]) -> Iterable[Sequence[Any]]:
    """A sitting's length is what a panel knows of a person as well."""
    if stem != "sittings":
        return rows
    names = [column.name for column in columns]
    person, simulated, seconds = (names.index(name) for name in ("respondent", "simulated", "seconds"))
    people = [[*row] for row in rows]
    lengths = _Common.of([(row[person], bool(row[simulated]), row[seconds]) for row in people], is_number=True)
    for row in people:
        row[seconds] = lengths.said(row[seconds])
    return people


def week_of(time: str | None) -> str | None:
    """The Monday of its week."""
    if time is None:
        return None
    day = datetime.fromisoformat(time).date()
    return (day - timedelta(days=day.weekday())).isoformat()


def band_of(number: Any, width: int) -> Any:
    """The band of a number, such as 20-29; what is no number stays, and so do numbers in bands of 1."""
    if width == 1:
        return number
    try:
        low = int(number) // width * width
    except (TypeError, ValueError):
        return number
    return f"{low}-{low + width - 1}" if low >= 0 else f"{low} to {low + width - 1}"


def _public(stem: str, column: Column) -> Column:
    if column.kind == TIME:
        return Column(column.name, "date", f"{column.description} The Monday of that week.")
    if column.name == "respondent":
        return Column(column.name, column.kind, "A name for the person that stands in these files alone.")
    if column.name == "seconds" and stem == "sittings":
        return Column(column.name, "text", f"{column.description} A band, such as 300-399.")
    return column


def _new_names(study: Study) -> dict[str, str]:
    """Names that stand nowhere else, in an order that says nothing."""
    known = Respondent.objects.filter(study=study).order_by().values_list("pseudonym", flat=True)
    ordered = sorted(known, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    width = len(str(len(ordered)))
    return {name: f"p{number:0{width}}" for number, name in enumerate(ordered, start=1)}


def _field_kinds(study: Study) -> Mapping[tuple[str, str], str]:
    return {(block.name or "form", field.name): field.kind for block in study.config.blocks for field in block.fields}


def _is_age(name: str) -> bool:
    return any(name.lower() == age or name.lower().endswith(f"_{age}") for age in AGES)


def _answers_of(study: Study) -> Mapping[tuple[str, str], list[tuple[int, bool, Any]]]:
    """By block and field: who said what."""
    said: dict[tuple[str, str], list[tuple[int, bool, Any]]] = defaultdict(list)
    rows = FormAnswer.objects.filter(sitting__stage__study=study).order_by()
    facts = rows.values_list("sitting__respondent", "sitting__respondent__is_simulated", "block", "answers")
    for person, is_simulated, block, answers in facts.iterator():
        for name, answer in answers.items():
            for value in answer if isinstance(answer, list) else [answer]:
                if value is not None and value != NOT_SAID:
                    said[block, name].append((person, is_simulated, value))
    return said
