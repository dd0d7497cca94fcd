"""`next_token --guesses FILE`: the analysis of guesses that somebody has, without a study."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from survey.contracts.reports import Findings, ReportFile
from survey.exceptions import HunchError
from survey.instruments.next_token.analysis.guesses import GuessTable, numbers_of
from survey.services.banks.importing import Problems, read_table

from .figures import findings

COLUMNS = ("person", "passage", "position", "guess", "truth", "asked")


def read_guesses(path: Path) -> GuessTable:
    """The guesses of a file with the columns person, passage, position, guess, truth and asked (1; 0: it was given). A
    guess is right where it is the true token, letter for letter.

    Raises:
        FileErrors: lists every problem with its line. HunchError: no guess was asked for.
    """
    problems = Problems()
    rows: list[tuple[str, str, int, str, str]] = []
    given = 0
    for line, values in read_table(path, problems, required=COLUMNS):
        position, asked = values["position"].strip(), values["asked"].strip()
        for name in ("person", "passage"):
            if not values[name].strip():
                problems.add(str(path), line, name, "is empty: give every guess one")
        if not (position.isdecimal() and position.isascii()):
            problems.add(str(path), line, "position", f"{position[:40]!r} is no whole number from 0 on")
        elif asked not in ("0", "1"):
            problems.add(str(path), line, "asked", f"{asked[:40]!r} is neither 1 nor 0 (a token that was given)")
        elif asked == "0":
            given += 1
        elif not values["truth"]:
            problems.add(str(path), line, "truth", "is empty: give the true token, or 0 in asked")
        else:
            rows.append((values["person"], values["passage"], int(position), values["guess"], values["truth"]))
    problems.raise_if_any()
    if not rows:
        raise HunchError(f"{path}: asked: no guess was asked for; give rows with 1")
    people, person = _coded([row[0] for row in rows])
    passages, passage = _coded([row[1] for row in rows])
    return GuessTable(
        person=person,
        passage=passage,
        people=people,
        passages=passages,
        position=np.array([row[2] for row in rows], dtype=np.int64),
        place=np.zeros(len(rows), dtype=np.int64),
        number=numbers_of(person),
        right=np.array([row[3] == row[4] for row in rows], dtype=np.float64),
        weight=np.ones(len(rows)),
        guess=[row[3] for row in rows],
        truth=[row[4] for row in rows],
        given=given,
    )


def make(path: Path) -> Findings:
    """
    Raises:
        FileErrors, HunchError: as `read_guesses`.
    """
    made = findings(read_guesses(path), title="Guesses of next tokens")
    return replace(made, files=[ReportFile.of_json("next_token.json", made.data)])


def _coded(names: Sequence[str]) -> tuple[list[str], np.ndarray]:
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(place), np.array([place[name] for name in names], dtype=np.int64)
