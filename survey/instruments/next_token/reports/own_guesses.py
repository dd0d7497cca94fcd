"""`next_token --guesses FILE`: the analysis of guesses that somebody has, without a study."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import ValidationInfo, field_validator

from survey.contracts.reports import ReportFile, ReportResult
from survey.exceptions import HunchError
from survey.input_tables import cells
from survey.input_tables.problems import Problems
from survey.input_tables.rows import TableRow, column, declared, read_rows
from survey.instruments.next_token.analysis.guesses import GuessTable, numbers_of

from .figures import report_result

Asked = Annotated[bool, cells.choice({"1": True, "0": False}, "{} is neither 1 nor 0 (a token that was given)")]


@declared
class GuessRow(TableRow):
    """A guess of the next token. It is right where it is the true token, letter for letter."""

    is_strict = True
    read_by = "`next_token --guesses FILE`"
    person: Annotated[str, cells.text("give every guess one", keeps_space=True)] = column("Who guessed.")
    passage: Annotated[str, cells.text("give every guess one", keeps_space=True)] = column("The text's name.")
    position: cells.Position = column("The token's place in the text, from 0.")
    guess: str = column("The guess.")
    asked: Asked = column("1; 0 where the token was given and nobody guessed.")
    truth: str = column("The true token; empty only where nobody guessed.")

    @field_validator("truth")
    @classmethod
    def _is_known(cls, truth: str, info: ValidationInfo) -> str:
        if not truth and info.data.get("asked"):
            raise ValueError("is empty: give the true token, or 0 in asked")
        return truth


def read_guesses(path: Path) -> GuessTable:
    """The guesses of a file, a table of `GuessRow`.

    Raises:
        FileErrors: lists every problem with its line. HunchError: no guess was asked for.
    """
    rows = read_rows(GuessRow, path, Problems(), limits=None)
    guesses: list[tuple[str, str, int, str, str]] = []
    given = 0
    for row in rows:
        if row.asked:
            guesses.append((row.person, row.passage, row.position, row.guess, row.truth))
        given += not row.asked
    rows.refuse()
    if not guesses:
        raise HunchError(f"{path}: asked: no guess was asked for; give rows with 1")
    names, passages, positions, guess, truth = (list(column) for column in zip(*guesses, strict=True))
    people, person = _coded(names)
    texts, passage = _coded(passages)
    return GuessTable(
        person=person,
        passage=passage,
        people=people,
        passages=texts,
        position=np.array(positions, dtype=np.int64),
        place=np.zeros(len(guesses), dtype=np.int64),
        number=numbers_of(person),
        right=np.array([word == true for word, true in zip(guess, truth, strict=True)], dtype=np.float64),
        weight=np.ones(len(guesses)),
        guess=guess,
        truth=truth,
        given=given,
    )


def make(path: Path) -> ReportResult:
    """
    Raises:
        FileErrors, HunchError: as `read_guesses`.
    """
    made = report_result(read_guesses(path), title="Guesses of next tokens")
    return replace(made, files=[ReportFile.of_json("next_token.json", made.data)])


def _coded(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], dtype=np.int64)
