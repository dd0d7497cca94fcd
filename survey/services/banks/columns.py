"""Which column of a table is what of a question: guessed by its name, or said by hand."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from survey.exceptions import FileErrors, HunchError, Problem
from survey.input_tables.reader import ReadTable

from .importing import LONGEST, BankRow, QuestionRow

COLUMNS = tuple(BankRow.columns())
# Other names that people give them, without spaces and marks.
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("questionid", "qid", "itemid", "nr", "no", "number", "nummer", "key_id", "frageid"),
    "source": ("task", "subject", "category", "topic", "dataset", "aufgabe", "fach", "thema", "kategorie"),
    "question": ("text", "prompt", "questiontext", "stem", "frage", "fragetext", "aufgabentext"),
    "answer": (
        "key",
        "solution",
        "correct",
        "correctanswer",
        "rightanswer",
        "target",
        "gold",
        "antwort",
        "lösung",
        "loesung",
    ),
    "domain": ("field", "area", "gebiet", "bereich", "fachgebiet"),
    "reason": ("explanation", "rationale", "why", "begründung", "begruendung", "erklärung"),
}
NUMBERED = "q{:05d}"
MUCH_LONGER = 1.5  # Texts of questions against those of any other column.


@dataclass(frozen=True)
class ColumnChoice:
    """What of a question each column of a file is. `numbered`: ids are made from the rows' order. `task`: the one task
    of all questions, where no column says it. `html`: whether the texts are in the bank's markup; None: as they look.
    """

    columns: Mapping[str, str]
    numbered: bool = False
    task: str = ""
    html: bool | None = None


def guessed(header: Sequence[str]) -> ColumnChoice:
    """The columns by their names: exact ones first, then other names that people give them."""
    columns = {name: name for name in COLUMNS if header.count(name) == 1}
    for name in COLUMNS:
        if name in columns:
            continue
        for heading in header:
            if (
                heading not in columns.values()
                and header.count(heading) == 1
                and _plain(heading) in (name, *OTHER_NAMES[name])
            ):
                columns[name] = heading
                break
    return ColumnChoice(columns)


def proposed(table: ReadTable, *, name: str) -> ColumnChoice:
    """What a page proposes, for somebody to look at before anything is stored: the names, then headings that have a
    known name among their words, then the column of by far the longest texts as the question. Where there are no ids
    the rows are numbered; where there are no tasks all questions are of one.

    Args:
        name: of that one task.
    """
    chosen = dict(guessed(table.header).columns)
    free = [column for column in dict.fromkeys(table.header) if column and table.header.count(column) == 1]
    for key in COLUMNS:
        names = {key, *OTHER_NAMES[key]}
        fitting = (column for column in free if column not in chosen.values() and names & set(_words(column)))
        if key not in chosen and (column := next(fitting, None)) is not None:
            chosen[key] = column
    if "question" not in chosen and (column := _longest(table, [one for one in free if one not in chosen.values()])):
        chosen["question"] = column
    chosen = {key: chosen[key] for key in COLUMNS if key in chosen}
    return ColumnChoice(chosen, numbered="id" not in chosen, task="" if "source" in chosen else name)


def _words(heading: str) -> list[str]:
    return [_plain(word) for word in heading.replace("_", " ").replace("-", " ").split()]


def _longest(table: ReadTable, among: Sequence[str]) -> str:
    """The column whose texts are by far the longest; empty where no column is."""
    places = [(table.header.index(column), column) for column in among]
    lengths = sorted(
        (
            (sum(len(values[place]) for _line, values in table.rows if place < len(values)), column)
            for place, column in places
        ),
        reverse=True,
    )
    if not lengths or not lengths[0][0] or (len(lengths) > 1 and lengths[0][0] < MUCH_LONGER * lengths[1][0]):
        return ""
    return lengths[0][1]


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def said(pairs: Sequence[str], *, numbered: bool = False, task: str = "") -> ColumnChoice | None:
    """The choice that a command's options state, as `question=Frage`; None where they state nothing.

    Raises:
        HunchError: one is no such pair, or names what a question does not have.
    """
    columns = {}
    for pair in pairs:
        name, equals, column = pair.partition("=")
        if not equals or name not in COLUMNS or not column:
            raise HunchError(f"--column: {pair!r}: write NAME=COLUMN, with a name of {', '.join(COLUMNS)}")
        columns[name] = column
    return ColumnChoice(columns, numbered, task) if columns or numbered or task else None


def problems_of(table: ReadTable, choice: ColumnChoice) -> list[Problem]:
    """Why the choice does not make questions of the table: each at the header."""
    problems = []

    def add(message: str, name: str = "header") -> None:
        problems.append(Problem(table.file, table.header_line, name, message))

    for name, column in choice.columns.items():
        if column not in table.header:
            near = difflib.get_close_matches(column, table.header, 1)
            add(f"has no column {column[:60]!r} for {name}" + (f": did you mean {near[0]!r}?" if near else ""))
        elif table.header.count(column) > 1:
            add(f"names the column {column[:60]!r} twice: keep one")
    taken = list(choice.columns.values())
    for column in dict.fromkeys(taken):
        if taken.count(column) > 1:
            names = " and ".join(name for name, chosen in choice.columns.items() if chosen == column)
            add(f"the column {column[:60]!r} is chosen for {names}: choose one")
    for name in BankRow.required():
        if name in choice.columns or (name == "id" and choice.numbered) or (name == "source" and choice.task.strip()):
            continue
        instead = {"id": ", or have the rows numbered", "source": ", or name one task for all questions"}.get(name, "")
        add(f"no column is chosen for {name}: choose one{instead}")
    if choice.numbered and "id" in choice.columns:
        add("the ids come from a column and from the rows' order: choose one")
    if choice.task and "source" in choice.columns:
        add("the task comes from a column and is named for all: choose one")
    if len(choice.task) > LONGEST["source"]:
        add(f"the task's name has {len(choice.task)} characters; at most {LONGEST['source']}")
    return problems


def questions(table: ReadTable, choice: ColumnChoice) -> Iterator[QuestionRow]:
    """The rows as questions, texts as they stand.

    Raises:
        FileErrors: rows without the header's number of fields, or a choice that does not fit; with every problem.
    """
    taken = choice.columns.values()
    problems = problems_of(table, choice) or [*table.problems_in(taken), *table.shown_in(taken)]
    if problems:
        raise FileErrors(problems, shown=20)
    places = {name: table.header.index(column) for name, column in choice.columns.items()}
    for number, (line, values) in enumerate(table.rows, start=1):
        texts: dict[str, Any] = {name: values[place] for name, place in places.items()}
        if choice.numbered:
            texts["id"] = NUMBERED.format(number)
        if choice.task.strip():
            texts["source"] = choice.task.strip()
        yield QuestionRow(**{"domain": "", "reason": "", **texts}, file=table.file, line=line)
